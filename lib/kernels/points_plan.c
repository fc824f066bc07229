#include "config.h"
#include "base/base.h"
#include "kernels/blocks.h"
#include "kernels/plan.h"
#include "kernels/points_plan.h"

#include <stdlib.h>

int points_copy(struct recon_ctx *ctx, const struct recon_points *p, bool normals, struct recon_points *ret)
{
    struct recon_points c = { .n = p->n, .place = RECON_HOST };

    c.xyz = ctx->host->alloc(ctx, 12 * p->n);
    c.normals = c.xyz && normals ? ctx->host->alloc(ctx, 12 * p->n) : NULL;
    c.rgb = c.xyz && p->rgb ? ctx->host->alloc(ctx, 3 * p->n) : NULL;
    if (!c.xyz || (normals && !c.normals) || (p->rgb && !c.rgb)) {
        points_free(ctx, &c);
        return -1;
    }
    memcpy(c.xyz, p->xyz, 12 * p->n);
    if (c.normals && p->normals)
        memcpy(c.normals, p->normals, 12 * p->n);
    if (c.rgb)
        memcpy(c.rgb, p->rgb, 3 * p->n);
    *ret = c;
    return 0;
}

void points_free(struct recon_ctx *ctx, struct recon_points *p)
{
    ctx->host->free(ctx, p->xyz);
    ctx->host->free(ctx, p->normals);
    ctx->host->free(ctx, p->rgb);
    *p = (struct recon_points){ 0 };
}

static int wrong(struct recon_ctx *ctx, const struct recon_kernel *k, const char *what, double got, double want)
{
    return ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': %s is %.9g, %.9g wanted", k->name, what, got, want);
}

/* ---- points.voxelize ---- */

void points_box(const struct recon_points *p, double low[3], double high[3])
{
    for (int i = 0; i < 3; i++) {
        low[i] = INFINITY;
        high[i] = -INFINITY;
    }
    for (uint64_t i = 0; i < 3 * p->n; i++) {
        low[i % 3] = fmin(low[i % 3], (double)p->xyz[i]);
        high[i % 3] = fmax(high[i % 3], (double)p->xyz[i]);
    }
}

static int plan_grid(struct recon_ctx *ctx, const struct recon_value *p, const double high[3], struct voxel_plan *r)
{
    const struct recon_value *shape = &p[VOXELIZE_SHAPE];

    if (!(r->voxel > 0))
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "voxel", "voxel must be given for meaning 'grid'");
    for (int i = 0; i < 3; i++) {
        double n = shape->n ? shape->v[i] : floor((high[i] - r->origin[i]) / r->voxel) + 1;

        if (n != floor(n))
            return ctx->host->fail(ctx, CODE_USAGE, NULL, "shape", "shape has %g cells, whole numbers are wanted", n);
        if (!(n <= 1048576))
            return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "volume", "%.0f cells along axis %d, at most 1048576 are taken", n, i);
        r->dim[i] = n >= 1 ? (uint32_t)n : 1;
        r->center[i] = r->voxel / 2;
    }
    return 0;
}

int voxel_plan_box(struct recon_ctx *ctx, const double low[3], const double high[3], const struct recon_value *p, struct voxel_plan *ret)
{
    struct voxel_plan r = { .meaning = (int)p[VOXELIZE_MEANING].i, .form = (int)p[VOXELIZE_FORM].i, .voxel = p[VOXELIZE_VOXEL].f };
    const struct recon_value *origin = &p[VOXELIZE_ORIGIN], *shape = &p[VOXELIZE_SHAPE];
    uint32_t n = (uint32_t)p[VOXELIZE_RESOLUTION].i;

    if ((origin->n && origin->n != 3) || (shape->n && shape->n != 3))
        return ctx->host->fail(ctx, CODE_USAGE, NULL, origin->n && origin->n != 3 ? "origin" : "shape", "three numbers are wanted, %u are given",
                               origin->n && origin->n != 3 ? origin->n : shape->n);
    for (int i = 0; i < 3; i++) {
        r.dim[i] = n;
        r.origin[i] = origin->n ? origin->v[i] : low[i];
        r.scale = fmax(r.scale, high[i] - r.origin[i]);
    }
    if (r.meaning == VOXELIZE_GRID) {
        if (plan_grid(ctx, p, high, &r))
            return -1;
    } else if (r.meaning == VOXELIZE_KAOLIN) {
        if (!(r.scale > 0))
            return ctx->host->fail(ctx, CODE_DATA, "empty-result", "points", "all points are at one place or below origin: no extent to divide by");
        r.voxel = r.scale / (n - 1);
    } else { /* kaolin 0.1: a cube of cells about the origin */
        if (!(r.voxel > 0))
            r.voxel = 1.0 / n;
        for (int i = 0; i < 3; i++)
            r.origin[i] = -r.voxel * (n - 1) / 2;
    }
    if ((double)r.dim[0] * r.dim[1] * r.dim[2] > 1099511627776.0)
        return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "volume", "%u x %u x %u cells, at most 2^40 are taken", r.dim[0], r.dim[1], r.dim[2]);
    *ret = r;
    return 0;
}

int voxel_plan(struct recon_ctx *ctx, const struct recon_points *in, const struct recon_value *p, struct voxel_plan *ret)
{
    double low[3], high[3];

    points_box(in, low, high);
    return voxel_plan_box(ctx, low, high, p, ret);
}

static uint64_t cells_of(const struct voxel_plan *p)
{
    return (uint64_t)p->dim[0] * p->dim[1] * p->dim[2];
}

uint64_t voxelize_dense_bytes(const struct voxel_plan *p)
{
    return 8 * cells_of(p) + 4096;
}

void voxelize_choose(struct voxel_plan *p, uint64_t free_bytes)
{
    if (p->form == VOXELIZE_AUTO)
        p->form = plan_fits(voxelize_dense_bytes(p), free_bytes) ? VOXELIZE_DENSE : VOXELIZE_BLOCKS;
}

/* The cells of a point: kaolin 0.1 those whose centres are within voxel of it. */
int voxel_each(const struct voxel_plan *p, const float *xyz, int (*what)(void *self, const uint32_t cell[3]), void *self)
{
    uint32_t from[3], to[3], cell[3];

    if (p->meaning != VOXELIZE_KAOLIN_01)
        return voxel_cell(p, xyz, cell) ? what(self, cell) : 0;
    for (int i = 0; i < 3; i++)
        if (!voxel_span(p, i, (double)xyz[i], p->voxel, &from[i], &to[i]))
            return 0;
    for (cell[0] = from[0]; cell[0] <= to[0]; cell[0]++)
        for (cell[1] = from[1]; cell[1] <= to[1]; cell[1]++)
            for (cell[2] = from[2]; cell[2] <= to[2]; cell[2]++) {
                double d = 0;

                for (int i = 0; i < 3; i++) {
                    double x = p->origin[i] + p->voxel * cell[i] - (double)xyz[i];

                    d += x * x;
                }
                if (d <= p->voxel * p->voxel && what(self, cell))
                    return -1;
            }
    return 0;
}

static int mark_block(void *self, const uint32_t cell[3])
{
    const struct blocks *g = self;
    uint64_t at = blocks_cell(g, cell[0] >> g->shift, cell[1] >> g->shift, cell[2] >> g->shift);

    g->bits[at >> 6] |= 1ull << (at & 63);
    return 0;
}

int voxelize_grid(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct blocks *ret)
{
    if (blocks_take(ctx, p->dim, FUSE_BLOCK, ret))
        return -1;
    for (uint64_t i = 0; i < in->n; i++)
        voxel_each(p, in->xyz + 3 * i, mark_block, ret);
    blocks_rank(ret);
    return 0;
}

uint64_t voxelize_block_bytes(const struct voxel_plan *p, uint64_t n)
{
    return n * (FUSE_BLOCK * FUSE_BLOCK * FUSE_BLOCK * 8 + 12) + blocks_bytes(p->dim, FUSE_BLOCK) + 4096;
}

int voxelize_blocks_fit(struct recon_ctx *ctx, const struct voxel_plan *p, uint64_t n, uint64_t free_bytes, const char *where)
{
    uint64_t need = voxelize_block_bytes(p, n);
    char a[24], b[24];

    if (plan_fits(need, free_bytes))
        return 0;
    return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "volume",
                           "%llu blocks of 16^3 cells need %s of %s memory, %s are free: take larger cells, or form 'sparse'",
                           (unsigned long long)n, human_bytes(need, a), where, human_bytes(free_bytes, b));
}

int voxelize_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *points = in[0];
    struct voxel_plan v;
    struct blocks g;
    uint64_t n;

    if (!points || !points->xyz)
        return 0;
    if (voxel_plan(ctx, points, p, &v))
        return -1;
    voxelize_choose(&v, plan_memory_free());
    n = (v.meaning == VOXELIZE_KAOLIN_01 ? 27u : 1u) * points->n;
    cost->moved_bytes = 12 * points->n;
    if (v.form == VOXELIZE_BLOCKS) { /* counted: it is as quick as the run */
        if (voxelize_grid(ctx, &v, points, &g))
            return -1;
        cost->host_bytes = voxelize_block_bytes(&v, g.before[g.words]);
        cost->moved_bytes += cost->host_bytes;
        blocks_release(ctx, &g);
    } else if (v.form == VOXELIZE_DENSE) {
        cost->host_bytes = voxelize_dense_bytes(&v);
        cost->moved_bytes += 8 * cells_of(&v);
    } else { /* numbers of cells in an array that doubles, once more for the sort, and the result */
        cost->host_bytes = 36 * n + 12288;
        cost->moved_bytes += 16 * points->n;
    }
    cost->flops = 12 * points->n;
    cost->items = points->n;
    return 0;
}

int voxelize_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    const struct recon_points *points = in[0];
    struct recon_volume *v = out[0];
    struct recon_points *r = out[1];
    struct voxel_plan plan;

    if (points && points->xyz && v && p[VOXELIZE_FORM].i != VOXELIZE_SPARSE) {
        if (voxel_plan(ctx, points, p, &plan))
            return -1;
        voxelize_choose(&plan, plan_memory_free());
        memcpy(v->dim, plan.dim, sizeof(v->dim));
        v->side = plan.form == VOXELIZE_BLOCKS ? FUSE_BLOCK : 0;
    }
    if (points && r)
        r->n = points->n;
    return 0;
}

int voxelize_outputs(struct recon_ctx *ctx, const struct voxel_plan *p, void *const *out)
{
    bool sparse = p->form == VOXELIZE_SPARSE;

    if (out[sparse])
        return 0;
    return ctx->host->fail(ctx, CODE_USAGE, NULL, "form", sparse ? "form 'sparse' gives the slot 'voxels', which no step takes"
                                                                 : "forms 'dense', 'blocks' and 'auto' give the slot 'volume', which no step takes");
}

int voxelize_none(struct recon_ctx *ctx, const struct recon_points *in)
{
    return ctx->host->fail(ctx, CODE_DATA, "empty-result", "volume", "none of %llu points lies in the grid", (unsigned long long)in->n);
}

static int golden_voxel_blocks(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device, const struct recon_points *in,
                               struct recon_value *p)
{
    struct recon_volume v = { 0 }, d = { 0 };
    int rc;

    p[VOXELIZE_FORM].i = VOXELIZE_BLOCKS;
    rc = golden_run(ctx, k, device, (const void *[]){ in, NULL }, p, (void *[]){ &v, NULL, NULL }, NULL);
    if (rc == 0)
        rc = volume_spread(ctx, &v, &d);
    if (rc == 0 && (v.blocks != 1 || d.weight[3 * 16 + 2 * 4 + 1] != 2 || d.tsdf[2 * 16] != 1 || d.tsdf[1] != 0))
        rc = wrong(ctx, k, "the number of blocks", (double)v.blocks, 1);
    golden_free(ctx, NULL, RECON_VOLUME, &v);
    golden_free(ctx, NULL, RECON_VOLUME, &d);
    return rc;
}

/* the corners of a box: kaolin's rounding to the nearest even cell */
int golden_voxelize(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    float xyz[12] = { 0, 0, 0, 1, 0.5f, 0.25f, 1, 0.5f, 0.25f, 0.5f, 0.1f, 0 };
    struct recon_points in = { .n = 4, .xyz = xyz };
    struct recon_value p[] = { [VOXELIZE_MEANING] = { .i = VOXELIZE_KAOLIN }, [VOXELIZE_RESOLUTION] = { .i = 4 }, [VOXELIZE_VOXEL] = { 0 },
                               [VOXELIZE_SHAPE] = { 0 }, [VOXELIZE_ORIGIN] = { 0 }, [VOXELIZE_FORM] = { .i = VOXELIZE_DENSE } };
    struct recon_volume v = { 0 };
    struct recon_points sparse = { 0 };
    double sum = 0;
    int rc = golden_run(ctx, k, device, (const void *[]){ &in, NULL }, p, (void *[]){ &v, NULL, NULL }, NULL);

    for (int i = 0; rc == 0 && i < 64; i++)
        sum += (double)v.tsdf[i];
    /* 0.5 * 3 = 1.5 goes to 2, 0.25 * 3 = 0.75 to 1 */
    if (rc == 0 && (sum != 3 || v.weight[3 * 16 + 2 * 4 + 1] != 2 || v.tsdf[2 * 16] != 1))
        rc = wrong(ctx, k, "the number of occupied cells", sum, 3);
    ctx->host->free(ctx, v.tsdf);
    ctx->host->free(ctx, v.weight);
    if (rc == 0)
        rc = golden_voxel_blocks(ctx, k, device, &in, p);
    p[VOXELIZE_FORM].i = VOXELIZE_SPARSE;
    if (rc == 0)
        rc = golden_run(ctx, k, device, (const void *[]){ &in, NULL }, p, (void *[]){ NULL, &sparse, NULL }, NULL);
    if (rc == 0 && sparse.n != 3)
        rc = wrong(ctx, k, "the number of occupied cells, sparse,", (double)sparse.n, 3);
    points_free(ctx, &sparse);
    return rc;
}

/* ---- points.farthest ---- */

int fps_first(struct recon_ctx *ctx, const struct recon_points *p, const struct recon_value *v, uint64_t *ret)
{
    double mean[3] = { 0 }, most = -1;

    if (p->n == 0 || p->n > UINT32_MAX)
        return ctx->host->fail(ctx, CODE_DATA, "empty-result", "points", "%llu points, 1 to %u are taken", (unsigned long long)p->n, UINT32_MAX);
    if (v[FPS_FIRST].i == FPS_FIRST_INDEX) {
        if ((uint64_t)v[FPS_INDEX].i >= p->n)
            return ctx->host->fail(ctx, CODE_USAGE, NULL, "index", "index %lld is none of %llu points", (long long)v[FPS_INDEX].i,
                                   (unsigned long long)p->n);
        *ret = (uint64_t)v[FPS_INDEX].i;
        return 0;
    }
    for (uint64_t i = 0; i < 3 * p->n; i++)
        mean[i % 3] += (double)p->xyz[i];
    for (int i = 0; i < 3; i++)
        mean[i] /= (double)p->n;
    for (uint64_t i = 0; i < p->n; i++) {
        double d = 0;

        for (uint64_t k = 0; k < 3; k++)
            d += ((double)p->xyz[3 * i + k] - mean[k]) * ((double)p->xyz[3 * i + k] - mean[k]);
        if (d > most) {
            most = d;
            *ret = i;
        }
    }
    return 0;
}

int fps_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    uint64_t k;

    (void)ctx;
    if (!r)
        return 0;
    k = r->n < (uint64_t)p[FPS_COUNT].i ? r->n : (uint64_t)p[FPS_COUNT].i;
    cost->host_bytes = 31 * k + 28 * r->n + 72 * (r->n / 32 + 64) + 4096;
    cost->moved_bytes = 20 * r->n;
    cost->flops = 9 * k * r->n;
    cost->items = k;
    return 0;
}

int fps_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    const struct recon_points *r = in[0];

    (void)ctx;
    if (r && out[0])
        ((struct recon_points *)out[0])->n = r->n < (uint64_t)p[FPS_COUNT].i ? r->n : (uint64_t)p[FPS_COUNT].i;
    return 0;
}

int fps_give(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *chosen, uint64_t n, struct recon_points *ret)
{
    struct recon_points c = { .n = n, .place = RECON_HOST };

    c.xyz = ctx->host->alloc(ctx, 12 * n);
    c.normals = c.xyz && p->normals ? ctx->host->alloc(ctx, 12 * n) : NULL;
    c.rgb = c.xyz && p->rgb ? ctx->host->alloc(ctx, 3 * n) : NULL;
    if (!c.xyz || (p->normals && !c.normals) || (p->rgb && !c.rgb)) {
        points_free(ctx, &c);
        return -1;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(c.xyz + 3 * i, p->xyz + 3 * (uint64_t)chosen[i], 12);
        if (c.normals)
            memcpy(c.normals + 3 * i, p->normals + 3 * (uint64_t)chosen[i], 12);
        if (c.rgb)
            memcpy(c.rgb + 3 * i, p->rgb + 3 * (uint64_t)chosen[i], 3);
    }
    *ret = c;
    return 0;
}

/* a line of eleven points from one end: the other end, the middle, the quarters, ties to the lower */
int golden_fps(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const float want[5] = { 0, 10, 5, 2, 7 };
    float xyz[33] = { 0 };
    struct recon_points in = { .n = 11, .xyz = xyz }, r = { 0 };
    struct recon_value p[] = { [FPS_COUNT] = { .i = 5 }, [FPS_FIRST] = { .i = FPS_FIRST_INDEX }, [FPS_INDEX] = { .i = 0 } };
    int rc;

    for (int i = 0; i < 11; i++)
        xyz[3 * i] = (float)i;
    rc = golden_run(ctx, k, device, (const void *[]){ &in, NULL }, p, (void *[]){ &r, NULL }, NULL);
    for (int i = 0; rc == 0 && i < 5; i++)
        if (r.n != 5 || r.xyz[3 * i] != want[i])
            rc = wrong(ctx, k, "a point", (double)r.xyz[3 * i], (double)want[i]);
    points_free(ctx, &r);
    return rc;
}
