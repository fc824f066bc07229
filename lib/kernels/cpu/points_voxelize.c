#include "config.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/points_plan.h"

#include <stdlib.h>

/* the numbers of occupied cells, once a point and cell */
struct cells {
    struct recon_ctx *ctx;
    uint64_t *v, n, cap;
};

static int add_cell(struct cells *c, uint64_t number)
{
    if (c->n == c->cap) {
        uint64_t cap = 2 * c->cap + 1024, *more = c->ctx->host->alloc(c->ctx, 8 * cap);

        if (!more)
            return -1;
        if (c->n)
            memcpy(more, c->v, 8 * c->n);
        c->ctx->host->free(c->ctx, c->v);
        c->v = more;
        c->cap = cap;
    }
    c->v[c->n++] = number;
    return 0;
}

/* kaolin 0.1: the cells whose centres are within voxel of the point */
static int each_near(const struct voxel_plan *p, const float *xyz, struct recon_volume *v, struct cells *c)
{
    uint32_t from[3], to[3], cell[3];

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
                if (d > p->voxel * p->voxel)
                    continue;
                if (v)
                    v->weight[voxel_number(p, cell)]++;
                else if (add_cell(c, voxel_number(p, cell)))
                    return -1;
            }
    return 0;
}

static int mark(const struct voxel_plan *p, const struct recon_points *in, struct recon_volume *v, struct cells *c)
{
    for (uint64_t i = 0; i < in->n; i++) {
        const float *x = in->xyz + 3 * i;
        uint32_t cell[3];

        if (p->meaning == VOXELIZE_KAOLIN_01) {
            if (each_near(p, x, v, c))
                return -1;
        } else if (voxel_cell(p, x, cell)) {
            if (v)
                v->weight[voxel_number(p, cell)]++;
            else if (add_cell(c, voxel_number(p, cell)))
                return -1;
        }
    }
    return 0;
}

static int dense(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct recon_volume *ret)
{
    struct recon_volume v = { .dim = { p->dim[0], p->dim[1], p->dim[2] }, .place = RECON_HOST, .voxel = p->voxel, .truncation = p->voxel };
    uint64_t n = (uint64_t)p->dim[0] * p->dim[1] * p->dim[2], occupied = 0;

    if (plan_volume_fits(ctx, p->dim, 8 * n, plan_memory_free(), "host"))
        return -1;
    for (int i = 0; i < 3; i++)
        v.origin[i] = p->origin[i] + p->center[i];
    v.weight = ctx->host->alloc(ctx, 4 * n);
    v.tsdf = v.weight ? ctx->host->alloc(ctx, 4 * n) : NULL;
    if (v.tsdf) {
        memset(v.weight, 0, 4 * n);
        mark(p, in, &v, NULL);
#pragma omp parallel for num_threads(ctx->threads) schedule(static) reduction(+ : occupied)
        for (uint64_t i = 0; i < n; i++) {
            v.tsdf[i] = v.weight[i] > 0 ? 1 : 0;
            occupied += v.weight[i] > 0;
        }
    }
    if (!v.tsdf || occupied == 0) {
        ctx->host->free(ctx, v.tsdf);
        ctx->host->free(ctx, v.weight);
        return v.tsdf ? voxelize_none(ctx, in) : -1;
    }
    *ret = v;
    return 0;
}

/* ascending, eight bits a turn; both have n */
static uint64_t *radix(uint64_t *a, uint64_t *b, uint64_t n, uint64_t most)
{
    for (int shift = 0; shift < 64 && most >> shift; shift += 8) {
        uint64_t at[257] = { 0 }, *x;

        for (uint64_t i = 0; i < n; i++)
            at[(a[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            at[i + 1] += at[i];
        for (uint64_t i = 0; i < n; i++)
            b[at[a[i] >> shift & 255]++] = a[i];
        x = a;
        a = b;
        b = x;
    }
    return a;
}

static int sparse(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct recon_points *ret)
{
    struct cells c = { .ctx = ctx };
    struct recon_points r = { .place = RECON_HOST };
    uint64_t *other = NULL, *sorted, k = 0;
    int rc = mark(p, in, NULL, &c);

    if (rc == 0 && c.n == 0)
        rc = voxelize_none(ctx, in);
    if (rc == 0)
        rc = (other = ctx->host->alloc(ctx, 8 * c.n)) ? 0 : -1;
    if (rc == 0) {
        sorted = radix(c.v, other, c.n, (uint64_t)p->dim[0] * p->dim[1] * p->dim[2]);
        for (uint64_t i = 0; i < c.n; i++)
            if (i == 0 || sorted[i] != sorted[i - 1])
                sorted[k++] = sorted[i];
        rc = (r.xyz = ctx->host->alloc(ctx, 12 * k)) ? 0 : -1;
        for (uint64_t i = 0; rc == 0 && i < k; i++) {
            uint64_t z = sorted[i] % p->dim[2], y = sorted[i] / p->dim[2] % p->dim[1], x = sorted[i] / p->dim[2] / p->dim[1];

            r.xyz[3 * i] = (float)(p->origin[0] + p->center[0] + p->voxel * (double)x);
            r.xyz[3 * i + 1] = (float)(p->origin[1] + p->center[1] + p->voxel * (double)y);
            r.xyz[3 * i + 2] = (float)(p->origin[2] + p->center[2] + p->voxel * (double)z);
        }
        r.n = k;
        if (rc == 0)
            *ret = r;
    }
    ctx->host->free(ctx, c.v);
    ctx->host->free(ctx, other);
    return rc;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct voxel_plan plan;

    if (voxel_plan(ctx, in[0], p, &plan) || voxelize_outputs(ctx, &plan, out))
        return -1;
    voxelize_bound(ctx, in, p, cost);
    return plan.form == VOXELIZE_DENSE ? dense(ctx, &plan, in[0], out[0]) : sparse(ctx, &plan, in[0], out[1]);
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_voxelize(ctx, &cpu_points_voxelize, NULL);
}

const struct recon_kernel cpu_points_voxelize = { RECON_KERNEL_ABI, VOXELIZE_NAME,  VOXELIZE_DOC, voxelize_in, voxelize_out,
                                                  voxelize_params,  voxelize_bound, run,          selftest,    voxelize_shape };
