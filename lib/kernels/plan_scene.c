#include "config.h"
#include "base/base.h"
#include "kernels/render.h"
#include "kernels/rows.h"

#include <stdlib.h>

void scene_plan(const struct recon_value *p, struct scene_plan *ret)
{
    uint32_t w = (uint32_t)p[SCENE_WIDTH].i, h = (uint32_t)p[SCENE_HEIGHT].i;
    double f = p[SCENE_FX].f > 0 ? p[SCENE_FX].f : 585.0 * w / 640;

    *ret = (struct scene_plan){.camera = {w, h, f, f, w / 2.0, h / 2.0},
                               .frames = (uint64_t)p[SCENE_FRAMES].i,
                               .seed = (uint32_t)p[SCENE_SEED].i,
                               .which = (int)p[SCENE_SCENE].i,
                               .noise = (float)p[SCENE_NOISE].f,
                               .depth_max = (float)p[SCENE_DEPTH_MAX].f};
}

void scene_view_of(const struct scene_plan *p, const struct scene *s, uint64_t i, double pose[16],
                   struct scene_view *ret)
{
    scene_pose(s, p->which, i, p->frames, pose);
    *ret = (struct scene_view){.fx = (float)p->camera.fx,
                               .fy = (float)p->camera.fy,
                               .cx = (float)p->camera.cx,
                               .cy = (float)p->camera.cy,
                               .noise = p->noise,
                               .depth_max = p->depth_max,
                               .width = p->camera.width,
                               .height = p->camera.height,
                               .seed = s->seed,
                               .frame = (uint32_t)i};
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++)
            ret->r[3 * r + c] = (float)pose[4 * r + c];
        ret->t[r] = (float)pose[4 * r + 3];
    }
}

void scene_depth(const struct scene_view *v, const uint16_t *mm, float *depth)
{
    uint32_t w = v->width, h = v->height;

    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            uint32_t at = y * w + x, d = mm[at];
            uint32_t around[4] = {x ? mm[at - 1] : 0, x + 1 < w ? mm[at + 1] : 0, y ? mm[at - w] : 0,
                                  y + 1 < h ? mm[at + w] : 0};

            depth[at] = d && !(v->noise > 0 && scene_edge_lost(v, at, d, around)) ? (float)(d * 0.001) : 0;
        }
}

struct source {
    struct recon_ctx *ctx;
    struct scene_plan plan;
    struct scene scene;
    struct scene_render how;
    uint64_t given;
    float *depth;
    uint8_t *rgb;
    char name[32];
};

static int next(struct recon_frames *self, struct recon_frame *ret)
{
    struct source *s = self->impl;
    struct scene_view v;

    if (s->given == s->plan.frames)
        return 0;
    scene_view_of(&s->plan, &s->scene, s->given, ret->pose, &v);
    if (s->how.render(s->how.self, &s->plan, &s->scene, &v, s->depth, s->rgb))
        return -1;
    snprintf(s->name, sizeof(s->name), "frame-%06llu", (unsigned long long)s->given);
    ret->depth = s->depth;
    ret->color = s->rgb;
    ret->name = s->name;
    ret->index = s->given++;
    return 1;
}

static int again(struct recon_frames *self)
{
    ((struct source *)self->impl)->given = 0;
    return 0;
}

static void finish(struct recon_frames *self)
{
    struct source *s = self->impl;

    if (!s)
        return;
    if (s->how.done)
        s->how.done(s->how.self);
    s->ctx->host->free(s->ctx, s->depth);
    s->ctx->host->free(s->ctx, s->rgb);
    free(s);
    self->impl = NULL;
}

int scene_source(struct recon_ctx *ctx, const struct recon_value *params, const struct scene_render *how,
                 struct recon_frames *ret)
{
    struct source *s = xcalloc(1, sizeof(*s));
    uint64_t pixels;

    s->ctx = ctx;
    s->how = *how;
    scene_plan(params, &s->plan);
    scene_make(s->plan.which, s->plan.seed, &s->scene);
    pixels = (uint64_t)s->plan.camera.width * s->plan.camera.height;
    *ret = (struct recon_frames){.camera = s->plan.camera,
                                 .count = s->plan.frames,
                                 .next = next,
                                 .rewind = again,
                                 .close = finish,
                                 .impl = s};
    for (int a = 0; a < 3; a++) { /* room for the noise around the walls */
        ret->bounds[2 * a] = s->scene.low[a] - 0.12;
        ret->bounds[2 * a + 1] = s->scene.high[a] + 0.12;
    }
    s->depth = ctx->host->alloc(ctx, pixels * 4);
    s->rgb = s->depth ? ctx->host->alloc(ctx, pixels * 3) : NULL;
    if (s->rgb)
        return 0;
    finish(ret);
    return -1;
}
