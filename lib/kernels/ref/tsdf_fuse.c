/* TSDF fusion, one voxel after the other for each frame, in the order and the words of the definition. */
#include "config.h"
#include "kernels/ref/ref.h"

#include <math.h>
#include <stdlib.h>

struct sums {
    double tsdf, weight, color[3];
};

/* half away from zero, as C's round() */
static bool pixel_of(const struct recon_camera *c, const double pose[16], const double p[3], double *z,
                     size_t *ret)
{
    double d[3] = { p[0] - pose[3], p[1] - pose[7], p[2] - pose[11] }, q[3], u, v;

    for (int a = 0; a < 3; a++)
        q[a] = pose[a] * d[0] + pose[4 + a] * d[1] + pose[8 + a] * d[2];
    if (!(q[2] > 0))
        return false;
    u = round(c->fx * q[0] / q[2] + c->cx);
    v = round(c->fy * q[1] / q[2] + c->cy);
    if (!(u >= 0 && u < c->width && v >= 0 && v < c->height))
        return false;
    *z = q[2];
    *ret = (size_t)v * c->width + (size_t)u;
    return true;
}

static void fuse_voxel(const struct fuse_plan *plan, const struct recon_frames *frames,
                       const struct recon_frame *f, const double p[3], struct sums *s, struct fuse_counts *n)
{
    double z, depth, value;
    size_t at;

    if (!pixel_of(&frames->camera, f->pose, p, &z, &at))
        return;
    depth = f->depth[at];
    if (depth <= 0 || depth - z < -plan->truncation)
        return;
    value = fmin(1, (depth - z) / plan->truncation);
    s->tsdf = (s->tsdf * s->weight + value) / (s->weight + 1);
    for (int c = 0; f->color && plan->color && c < 3; c++)
        s->color[c] = (s->color[c] * s->weight + f->color[3 * at + (size_t)c]) / (s->weight + 1);
    s->weight += 1;
    if (plan->weight_max > 0 && s->weight > plan->weight_max)
        s->weight = plan->weight_max;
    n->updates++;
}

static void fuse_frame(const struct fuse_plan *plan, const struct recon_frames *frames,
                       const struct recon_frame *f, struct sums *s, struct fuse_counts *n)
{
    for (uint32_t i = 0; i < plan->dim[0]; i++)
        for (uint32_t j = 0; j < plan->dim[1]; j++)
            for (uint32_t k = 0; k < plan->dim[2]; k++) {
                double p[3] = { plan->origin[0] + plan->voxel * i, plan->origin[1] + plan->voxel * j,
                                plan->origin[2] + plan->voxel * k };

                fuse_voxel(plan, frames, f, p, s++, n);
            }
}

static int fuse_all(struct recon_ctx *ctx, const struct fuse_plan *plan, struct recon_frames *frames,
                    struct sums *s, bool *color, struct fuse_counts *n)
{
    struct recon_frame f;
    int rc;

    while ((rc = frames->next(frames, &f)) > 0) {
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, CODE_DEADLINE, NULL, f.name, "stopped at frame '%s'", f.name);
        n->frames++;
        for (size_t i = 0; i < (size_t)frames->camera.width * frames->camera.height; i++)
            n->depth_pixels += f.depth[i] > 0;
        *color = *color || (f.color && plan->color);
        fuse_frame(plan, frames, &f, s, n);
    }
    return rc;
}

static int hand_over(struct recon_ctx *ctx, const struct fuse_plan *plan, const struct sums *s, bool color,
                     struct recon_volume *v)
{
    if (!(v->tsdf = ctx->host->alloc(ctx, plan->voxels * 4)) ||
        !(v->weight = ctx->host->alloc(ctx, plan->voxels * 4)) ||
        (color && !(v->rgb = ctx->host->alloc(ctx, plan->voxels * 3))))
        return -1;
    for (uint64_t i = 0; i < plan->voxels; i++) {
        v->tsdf[i] = (float)s[i].tsdf;
        v->weight[i] = (float)s[i].weight;
        for (uint64_t c = 0; color && c < 3; c++)
            v->rgb[3 * i + c] = (uint8_t)(s[i].color[c] + 0.5);
    }
    memcpy(v->dim, plan->dim, sizeof(v->dim));
    memcpy(v->origin, plan->origin, sizeof(v->origin));
    v->voxel = plan->voxel;
    v->truncation = plan->truncation;
    return 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_frames *f = in ? in[0] : NULL;
    struct fuse_plan p;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    cost->host_bytes = p.voxels * (sizeof(struct sums) + 11);
    cost->items = p.voxels;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct recon_frames *frames = (struct recon_frames *)(uintptr_t)in[0];
    struct fuse_counts counts = { 0 };
    struct fuse_plan plan;
    struct sums *s;
    bool color = false;
    int rc = -1;

    if (fuse_plan(ctx, frames, params, &plan) ||
        plan_volume_fits(ctx, plan.dim, plan.voxels * (sizeof(*s) + 11), plan_memory_free(), "host"))
        return -1;
    s = ctx->host->alloc(ctx, plan.voxels * sizeof(*s));
    for (uint64_t i = 0; s && i < plan.voxels; i++)
        s[i] = (struct sums){ .tsdf = 1 };
    if (s)
        rc = fuse_all(ctx, &plan, frames, s, &color, &counts);
    if (rc == 0)
        rc = fuse_verdict(ctx, frames, &counts);
    if (rc == 0)
        rc = hand_over(ctx, &plan, s, color, out[0]);
    ctx->host->free(ctx, s);
    fuse_cost(&plan, &counts, cost);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &ref_tsdf_fuse, NULL);
}

const struct recon_kernel ref_tsdf_fuse = {RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                           fuse_params,      bound,     run,      selftest, fuse_shape};
