/* Frames of an analytic scene, pixel after pixel, every shape asked at every step. */
#include "config.h"
#include "kernels/ref/ref.h"
#include "kernels/render.h"

#include <stdlib.h>

static int render(void *self, const struct scene_plan *p, const struct scene *s, const struct scene_view *v,
                  float *depth, uint8_t *rgb)
{
    uint16_t *mm = xmalloc((size_t)v->width * v->height * 2);

    (void)self;
    (void)p;
    for (uint32_t w = 0; w < v->height; w++)
        for (uint32_t u = 0; u < v->width; u++) {
            size_t at = (size_t)w * v->width + u;

            mm[at] = (uint16_t)scene_pixel(s, NULL, 0, v, u, w, rgb + 3 * at);
        }
    scene_depth(v, mm, depth);
    free(mm);
    return 0;
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
    struct scene_render how = { render, NULL, NULL };

    if (scene_source(ctx, params, &how, out[0]))
        return -1;
    return bound(ctx, in, params, cost);
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_scene(ctx, &ref_scene_render);
}

const struct recon_kernel ref_scene_render = {RECON_KERNEL_ABI, SCENE_NAME, SCENE_DOC, scene_in, scene_out,
                                              scene_params,     bound,      run,       selftest, NULL};
