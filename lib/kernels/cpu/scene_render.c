/* Frames of an analytic scene: tiles of rays, each with the list of the shapes that its cone can meet. */
#include "config.h"
#include "kernels/cpu/cpu.h"
#include "kernels/render.h"

#include <stdlib.h>

enum { TILE = 16 };

struct renderer {
    struct recon_ctx *ctx;
    uint16_t *mm;
};

static struct vec3 direction(const struct scene_view *v, float u, float w)
{
    float x = (u - v->cx) / v->fx, y = (w - v->cy) / v->fy;

    return v3_unit(v3(v->r[0] * x + v->r[1] * y + v->r[2], v->r[3] * x + v->r[4] * y + v->r[5],
                      v->r[6] * x + v->r[7] * y + v->r[8]));
}

/* the cone around a tile, four pixels wider on each side than its rays so that shifted ones are in */
static int tile_list(const struct scene *s, const struct scene_view *v, uint32_t u, uint32_t w,
                     uint16_t *list)
{
    float reach = 4 + TILE / 2.0f, cosine = 1;
    struct vec3 axis = direction(v, (float)u + TILE / 2.0f, (float)w + TILE / 2.0f);

    for (int i = 0; i < 4; i++)
        cosine = fminf(cosine, v3_dot(axis, direction(v, (float)u + TILE / 2.0f + (i & 1 ? reach : -reach),
                                                      (float)w + TILE / 2.0f + (i & 2 ? reach : -reach))));
    return scene_cull(s, v3(v->t[0], v->t[1], v->t[2]), axis, cosine, sqrtf(fmaxf(1 - cosine * cosine, 0)),
                      list);
}

KERN_CLONES
static void draw_tile(const struct scene *s, const struct scene_view *v, const uint16_t *list, int n,
                      uint32_t u0, uint32_t w0, uint16_t *mm, uint8_t *rgb)
{
    for (uint32_t w = w0; w < w0 + TILE && w < v->height; w++)
        for (uint32_t u = u0; u < u0 + TILE && u < v->width; u++) {
            size_t at = (size_t)w * v->width + u;

            mm[at] = (uint16_t)scene_pixel(s, list, n, v, u, w, rgb + 3 * at);
        }
}

static int render(void *self, const struct scene_plan *p, const struct scene *s, const struct scene_view *v,
                  float *depth, uint8_t *rgb)
{
    struct renderer *r = self;
    int64_t across = (v->width + TILE - 1) / TILE, down = (v->height + TILE - 1) / TILE;

    (void)p;
    if (!r->mm && !(r->mm = r->ctx->host->alloc(r->ctx, (uint64_t)v->width * v->height * 2)))
        return -1;
#pragma omp parallel for num_threads(r->ctx->threads) schedule(dynamic, 4)
    for (int64_t tile = 0; tile < across * down; tile++) {
        uint32_t u0 = (uint32_t)(tile % across) * TILE, w0 = (uint32_t)(tile / across) * TILE;
        uint16_t list[SCENE_PRIMS];
        int n = tile_list(s, v, u0, w0, list);

        draw_tile(s, v, list, n, u0, w0, r->mm, rgb);
    }
    scene_depth(v, r->mm, depth);
    return 0;
}

static void done(void *self)
{
    struct renderer *r = self;

    r->ctx->host->free(r->ctx, r->mm);
    free(r);
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    struct scene_plan p;

    (void)ctx;
    (void)in;
    scene_plan(params, &p);
    cost->host_bytes = (uint64_t)p.camera.width * p.camera.height * 9;
    cost->items = p.frames;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct renderer *r = xcalloc(1, sizeof(*r));
    struct scene_render how = { render, done, r };

    r->ctx = ctx;
    if (scene_source(ctx, params, &how, out[0]))
        return -1;
    return bound(ctx, in, params, cost);
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_scene(ctx, &cpu_scene_render);
}

const struct recon_kernel cpu_scene_render = {RECON_KERNEL_ABI, SCENE_NAME, SCENE_DOC, scene_in, scene_out,
                                              scene_params,     bound,      run,       selftest, NULL};
