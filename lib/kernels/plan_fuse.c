#include "config.h"
#include "kernels/blocks.h"
#include "kernels/plan.h"
#include "kernels/rows.h"
#include "base/base.h"

#include <math.h>

static int refuse_bounds(struct recon_ctx *ctx, const char *why)
{
    return ctx->host->fail(ctx, CODE_USAGE, NULL, "bounds",
                           "bounds %s: x0, x1, y0, y1, z0, z1 in metres are wanted", why);
}

static int choose_bounds(struct recon_ctx *ctx, const struct recon_frames *frames,
                         const struct recon_value *p, double b[6])
{
    if (p->n == 6)
        memcpy(b, p->v, 6 * sizeof(double));
    else if (p->n)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "bounds",
                               "bounds has %u numbers: x0, x1, y0, y1, z0, z1 are wanted", p->n);
    else if (!frames)
        return refuse_bounds(ctx, "is empty and there are no frames to take it from");
    else if (isnan(frames->bounds[0]))
        return ctx->host->fail(ctx, CODE_DATA, "empty-result", "bounds",
                               "no frame of the sample shows any depth, so there are no bounds: check "
                               "depth_scale, depth_max and invalid");
    else
        memcpy(b, frames->bounds, 6 * sizeof(double));
    for (int i = 0; i < 6; i++)
        if (!isfinite(b[i]))
            return refuse_bounds(ctx, "is not finite");
    for (int i = 0; i < 6; i += 2)
        if (b[i] >= b[i + 1])
            return refuse_bounds(ctx, "is an empty box");
    return 0;
}

/* What compat means; doc/kernels.md says where it was read. */
static const struct meaning {
    double truncation; /* voxels */
    double weight_max, within, shift, reach; /* within: of the first sample from the low corner, voxels; the others as in the plan */
    bool world;                              /* the low corner is a whole multiple of voxel */
    uint32_t spare;
} meanings[] = {
    [FUSE_COMPAT_RECON] = { 4, 0, 0.5, 0, INFINITY, false, 0 },
    [FUSE_COMPAT_TSDF_FUSION] = { 5, 0, 0, 0, INFINITY, false, 0 },
    [FUSE_COMPAT_OPEN3D] = { 8, 0, 0, 0.5, INFINITY, true, 1 },
    [FUSE_COMPAT_NVBLOX] = { 4, 5, 0.5, 0.5, 7, true, 0 },
};

int fuse_plan(struct recon_ctx *ctx, const struct recon_frames *frames, const struct recon_value *params,
              struct fuse_plan *ret)
{
    int compat = (int)params[FUSE_COMPAT].i;
    const struct meaning *m = &meanings[compat];
    double b[6], voxel = params[FUSE_VOXEL].f, truncation = params[FUSE_TRUNCATION].f, most = params[FUSE_WEIGHT_MAX].f;
    struct fuse_plan p = {.voxel = voxel,
                          .weight_max = most > 0 ? most : m->weight_max,
                          .color = params[FUSE_COLOR].i != 0,
                          .layout = (int)params[FUSE_LAYOUT].i,
                          .compat = compat,
                          .shift = m->shift,
                          .spare = m->spare,
                          .reach = m->reach,
                          .voxels = 1};

    if (choose_bounds(ctx, frames, &params[FUSE_BOUNDS], b))
        return -1;
    p.truncation = voxel * (truncation > 0 ? truncation : m->truncation);
    for (int a = 0; a < 3; a++) {
        double low = m->world ? floor(b[2 * a] / voxel) * voxel : b[2 * a], n = ceil((b[2 * a + 1] - low) / voxel - 1e-9);

        if (n > 1 << 20)
            return ctx->host->fail(
                ctx, CODE_DATA, "volume-too-big", "volume",
                "bounds of %g m at a voxel of %g m are %.0f samples along %c, at most %d are taken",
                b[2 * a + 1] - b[2 * a], voxel, n, "xyz"[a], 1 << 20);
        p.dim[a] = n < 1 ? 1 : (uint32_t)n;
        p.voxels *= p.dim[a];
        p.origin[a] = low + m->within * voxel;
    }
    if (p.voxels > 1ull << 40)
        return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "volume",
                               "%u x %u x %u = %.3g voxels, at most 2^40 are taken", p.dim[0], p.dim[1],
                               p.dim[2], (double)p.voxels);
    *ret = p;
    return 0;
}

int fuse_known(const struct recon_frames *frames, const struct recon_value *params)
{
    return params[FUSE_BOUNDS].n || (frames && frames->camera.width && !isnan(frames->bounds[0]));
}

int fuse_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out)
{
    struct recon_volume *v = out[0];
    struct fuse_plan p;

    if (!fuse_known(in ? in[0] : NULL, params))
        return 0;
    if (fuse_plan(ctx, in ? in[0] : NULL, params, &p))
        return -1;
    memcpy(v->dim, p.dim, sizeof(v->dim));
    memcpy(v->origin, p.origin, sizeof(v->origin));
    v->voxel = p.voxel;
    v->truncation = p.truncation;
    return 0;
}

uint64_t fuse_bytes(const struct fuse_plan *p)
{
    return p->voxels * (p->color ? 17 : 8);
}

uint64_t fuse_block_bytes(const struct fuse_plan *p, uint64_t n)
{
    return n * (FUSE_BLOCK * FUSE_BLOCK * FUSE_BLOCK * (p->color ? 17 : 8) + 12) + blocks_bytes(p->dim, FUSE_BLOCK);
}

int fuse_wants_survey(const struct fuse_plan *p, uint64_t besides, uint64_t free_bytes)
{
    uint64_t dense = fuse_bytes(p);

    return p->layout == FUSE_BLOCKS || (p->layout == FUSE_AUTO && (dense > FUSE_SMALL || !plan_fits(dense + besides, free_bytes)));
}

static int takes_blocks(const struct fuse_plan *p, uint64_t n, uint64_t besides, uint64_t free_bytes)
{
    uint64_t dense = fuse_bytes(p);

    return p->layout != FUSE_AUTO || dense > fuse_block_bytes(p, n) || !plan_fits(dense + besides, free_bytes);
}

struct fuse_form fuse_choose(const struct fuse_plan *p, uint64_t n, const uint64_t besides[2], uint64_t free_bytes)
{
    struct fuse_form f = { .keep = 1 };

    f.blocks = takes_blocks(p, n, besides[1], free_bytes);
    if (plan_fits((f.blocks ? fuse_block_bytes(p, n) : fuse_bytes(p)) + besides[1], free_bytes))
        return f;
    return (struct fuse_form){ .blocks = takes_blocks(p, n, besides[0], free_bytes) };
}

int fuse_blocks_fit(struct recon_ctx *ctx, uint64_t n, uint64_t need, uint64_t free_bytes, const char *where)
{
    char a[24], b[24];

    if (plan_fits(need, free_bytes))
        return 0;
    return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "volume",
                           "%llu blocks of 16^3 voxels near a surface need %s of %s memory, %s are free: take a larger voxel or smaller "
                           "bounds", (unsigned long long)n, human_bytes(need, a), where, human_bytes(free_bytes, b));
}

int fuse_fits(struct recon_ctx *ctx, const struct fuse_plan *p, uint64_t need, uint64_t free_bytes, const char *where)
{
    char a[24], b[24];

    if (plan_fits(need, free_bytes))
        return 0;
    return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "volume",
                           "%u x %u x %u voxels need %s of %s memory, %s are free: take a larger voxel or smaller bounds, or layout 'blocks', "
                           "which holds those near a surface alone",
                           p->dim[0], p->dim[1], p->dim[2], human_bytes(need, a), where, human_bytes(free_bytes, b));
}

void fuse_view(const struct fuse_plan *plan, const struct recon_camera *c, const double pose[16],
               double farthest, struct fuse_view *ret)
{
    for (int row = 0; row < 3; row++)
        for (int col = 0; col < 3; col++)
            ret->r[3 * row + col] = pose[4 * col + row]; /* the transpose: world to camera */
    for (int a = 0; a < 3; a++)
        ret->t[a] = pose[4 * a + 3];
    ret->fx = c->fx;
    ret->fy = c->fy;
    ret->cx = c->cx - plan->shift;
    ret->cy = c->cy - plan->shift;
    ret->width = c->width > plan->spare ? c->width - plan->spare : 0;
    ret->height = c->height > plan->spare ? c->height - plan->spare : 0;
    ret->stride = c->width;
    ret->reach = plan->reach;
    ret->zmax = fmin(farthest + plan->truncation, plan->reach);
}

int fuse_verdict(struct recon_ctx *ctx, const struct recon_frames *frames, const struct fuse_counts *c)
{
    if (c->updates)
        return 0;
    if (!c->frames)
        return ctx->host->fail(ctx, CODE_DATA, "empty-result", "frames", "there is no frame to fuse");
    if (!c->depth_pixels)
        return ctx->host->fail(
            ctx, CODE_DATA, "empty-result", "frames",
            "no pixel of %llu frames has a depth: check depth_scale, depth_max and invalid",
            (unsigned long long)c->frames);
    return ctx->host->fail(ctx, CODE_DATA, "empty-result", "volume",
                           "%llu frames with %llu depths touch no voxel: the poses may be world-to-camera "
                           "(camera-to-world is wanted), the "
                           "depth in other units (depth_scale), or the bounds elsewhere; depth was seen in x "
                           "%.2f to %.2f, y %.2f to %.2f, z %.2f to %.2f",
                           (unsigned long long)c->frames, (unsigned long long)c->depth_pixels,
                           frames->bounds[0], frames->bounds[1], frames->bounds[2], frames->bounds[3],
                           frames->bounds[4], frames->bounds[5]);
}

void fuse_cost(const struct fuse_plan *plan, uint64_t samples, const struct fuse_counts *c, struct recon_cost *cost)
{
    cost->items = c->updates;
    /* the volume written once, a voxel read and written and its depth read per update */
    cost->moved_bytes = samples * (plan->color ? 17 : 8) + c->updates * (4 + 2 * (plan->color ? 14 : 8));
    cost->flops = c->updates * 28;
}

void fuse_guess(const struct fuse_plan *plan, const struct recon_frames *frames, struct recon_cost *cost)
{
    struct fuse_counts c = { .updates = plan->voxels / 16 * (frames ? frames->count : 0) };

    fuse_cost(plan, plan->voxels, &c, cost);
    cost->items = plan->voxels;
}
