/* TSDF fusion, one voxel after the other for each frame, in the order and the words of the definition. All samples are summed up,
 * whatever the layout; in blocks those are handed over that the definition names. */
#include "config.h"
#include "kernels/blocks.h"
#include "kernels/ref/ref.h"

#include <math.h>
#include <stdlib.h>

struct sums {
    double tsdf, weight, color[3];
    bool near; /* some frame placed the sample within the band */
};

/* Half away from zero, as C's round(); where pixels are cut off, the whole part. Pixels that no sample falls into are the last ones. */
static bool pixel_of(const struct fuse_plan *plan, const struct recon_camera *c, const double pose[16], const double p[3], double *z,
                     size_t *ret)
{
    double d[3] = { p[0] - pose[3], p[1] - pose[7], p[2] - pose[11] }, q[3], u, v;

    for (int a = 0; a < 3; a++)
        q[a] = pose[a] * d[0] + pose[4 + a] * d[1] + pose[8 + a] * d[2];
    if (!(q[2] > 0 && q[2] <= plan->reach))
        return false;
    u = round(c->fx * q[0] / q[2] + c->cx - plan->shift);
    v = round(c->fy * q[1] / q[2] + c->cy - plan->shift);
    if (!(u >= 0 && u < (double)c->width - plan->spare && v >= 0 && v < (double)c->height - plan->spare))
        return false;
    *z = q[2];
    *ret = (size_t)v * c->width + (size_t)u;
    return true;
}

static void fuse_voxel(const struct fuse_plan *plan, const struct recon_frames *frames,
                       const struct recon_frame *f, const double p[3], struct sums *s, struct fuse_counts *n)
{
    bool nvblox = plan->compat == FUSE_COMPAT_NVBLOX;
    double z, depth, value, weight, sum;
    size_t at;

    if (!pixel_of(plan, &frames->camera, f->pose, p, &z, &at))
        return;
    depth = f->depth[at];
    if (depth <= 0 || depth - z < -plan->truncation)
        return;
    value = (depth - z) / plan->truncation;
    weight = nvblox && z > 1e-2 ? 1 / (z * z) : 1;
    sum = s->weight + weight;
    s->near = s->near || value < 1;
    if (!nvblox)
        value = fmin(1, value);
    s->tsdf = (s->tsdf * s->weight + value * weight) / sum;
    if (nvblox)
        s->tsdf = fmax(-1, fmin(1, s->tsdf));
    for (int c = 0; f->color && plan->color && c < 3; c++)
        s->color[c] = (s->color[c] * s->weight + f->color[3 * at + (size_t)c] * weight) / sum;
    s->weight = plan->weight_max > 0 && sum > plan->weight_max ? plan->weight_max : sum;
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

static void put(const struct sums *s, struct recon_volume *v, uint64_t at)
{
    v->tsdf[at] = (float)s->tsdf;
    v->weight[at] = (float)s->weight;
    for (uint64_t c = 0; v->rgb && c < 3; c++)
        v->rgb[3 * at + c] = (uint8_t)(s->color[c] + 0.5);
}

/* Whether block b of the grid holds a sample that a frame placed within the band, or a neighbour of one. */
static bool is_near(const struct fuse_plan *p, const struct sums *s, const uint32_t b[3])
{
    int64_t from[3], to[3];

    for (int a = 0; a < 3; a++) {
        from[a] = (int64_t)b[a] * FUSE_BLOCK - 1 < 0 ? 0 : (int64_t)b[a] * FUSE_BLOCK - 1;
        to[a] = (int64_t)b[a] * FUSE_BLOCK + FUSE_BLOCK < p->dim[a] ? (int64_t)b[a] * FUSE_BLOCK + FUSE_BLOCK : p->dim[a] - 1;
    }
    for (int64_t x = from[0]; x <= to[0]; x++)
        for (int64_t y = from[1]; y <= to[1]; y++)
            for (int64_t z = from[2]; z <= to[2]; z++)
                if (s[(x * p->dim[1] + y) * p->dim[2] + z].near)
                    return true;
    return false;
}

static void mark_near(const struct fuse_plan *p, const struct sums *s, struct blocks *g)
{
    uint32_t b[3];

    for (b[0] = 0; b[0] < g->n[0]; b[0]++)
        for (b[1] = 0; b[1] < g->n[1]; b[1]++)
            for (b[2] = 0; b[2] < g->n[2]; b[2]++) {
                uint64_t at = blocks_cell(g, b[0], b[1], b[2]);

                if (is_near(p, s, b))
                    g->bits[at >> 6] |= 1ull << (at & 63);
            }
    blocks_rank(g);
}

static int hand_over(struct recon_ctx *ctx, const struct fuse_plan *plan, const struct sums *s, bool color,
                     const struct blocks *g, struct recon_volume *v)
{
    uint64_t n = g->side ? g->before[g->words] * FUSE_BLOCK * FUSE_BLOCK * FUSE_BLOCK : plan->voxels;

    memcpy(v->dim, plan->dim, sizeof(v->dim));
    memcpy(v->origin, plan->origin, sizeof(v->origin));
    v->voxel = plan->voxel;
    v->truncation = plan->truncation;
    v->beyond = 1;
    if ((g->side && blocks_list(ctx, g, v)) || !(v->tsdf = ctx->host->alloc(ctx, n * 4)) ||
        !(v->weight = ctx->host->alloc(ctx, n * 4)) || (color && !(v->rgb = ctx->host->alloc(ctx, n * 3))))
        return -1;
    for (uint64_t i = 0; i < n; i++)
        put(&(struct sums){ .tsdf = 1 }, v, i);
    for (uint32_t x = 0; x < v->dim[0]; x++)
        for (uint32_t y = 0; y < v->dim[1]; y++)
            for (uint32_t z = 0; z < v->dim[2]; z++, s++) {
                uint64_t at = volume_sample(v, g, x, y, z);

                if (at != BLOCKS_NONE)
                    put(s, v, at);
            }
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
    struct blocks grid = { .side = 0 };
    struct sums *s;
    bool color = false;
    int rc = -1;

    if (fuse_plan(ctx, frames, params, &plan) ||
        fuse_fits(ctx, &plan, plan.voxels * (sizeof(*s) + 11), plan_memory_free(), "host"))
        return -1;
    s = ctx->host->alloc(ctx, plan.voxels * sizeof(*s));
    for (uint64_t i = 0; s && i < plan.voxels; i++)
        s[i] = (struct sums){ .tsdf = 1 };
    if (s)
        rc = fuse_all(ctx, &plan, frames, s, &color, &counts);
    if (rc == 0)
        rc = fuse_verdict(ctx, frames, &counts);
    if (rc == 0 && plan.layout == FUSE_BLOCKS)
        rc = blocks_take(ctx, plan.dim, FUSE_BLOCK, &grid);
    if (rc == 0 && grid.side)
        mark_near(&plan, s, &grid);
    if (rc == 0)
        rc = hand_over(ctx, &plan, s, color, &grid, out[0]);
    ctx->host->free(ctx, s);
    blocks_release(ctx, &grid);
    fuse_cost(&plan, plan.voxels, &counts, cost);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &ref_tsdf_fuse, NULL);
}

const struct recon_kernel ref_tsdf_fuse = {RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                           fuse_params,      bound,     run,      selftest, fuse_shape};
