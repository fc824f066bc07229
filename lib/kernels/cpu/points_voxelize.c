#include "config.h"
#include "kernels/blocks.h"
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

/* Where cells go: numbers in a list, or counts in a volume. */
struct sink {
    const struct voxel_plan *p;
    struct cells *list;
    struct recon_volume *v;
    const struct blocks *grid;
};

static int put_cell(void *self, const uint32_t cell[3])
{
    const struct sink *s = self;

    if (s->list)
        return add_cell(s->list, voxel_number(s->p, cell));
    s->v->weight[volume_sample(s->v, s->grid, cell[0], cell[1], cell[2])]++;
    return 0;
}

static int mark(const struct recon_points *in, struct sink *s)
{
    for (uint64_t i = 0; i < in->n; i++)
        if (voxel_each(s->p, in->xyz + 3 * i, put_cell, s))
            return -1;
    return 0;
}

/* A volume of the plan, its arrays taken: n samples. */
static int take_volume(struct recon_ctx *ctx, const struct voxel_plan *p, uint64_t n, struct recon_volume *v)
{
    memcpy(v->dim, p->dim, sizeof(v->dim));
    v->voxel = v->truncation = p->voxel;
    for (int i = 0; i < 3; i++)
        v->origin[i] = p->origin[i] + p->center[i];
    v->weight = ctx->host->alloc(ctx, 4 * n);
    v->tsdf = v->weight ? ctx->host->alloc(ctx, 4 * n) : NULL;
    if (!v->tsdf)
        return -1;
    memset(v->weight, 0, 4 * n);
    return 0;
}

static int fill_volume(struct recon_ctx *ctx, struct sink *s, const struct recon_points *in, uint64_t n)
{
    const float *weight = s->v->weight;
    float *value = s->v->tsdf;
    uint64_t occupied = 0;

    mark(in, s);
#pragma omp parallel for num_threads(ctx->threads) schedule(static) reduction(+ : occupied)
    for (uint64_t i = 0; i < n; i++) {
        value[i] = weight[i] > 0 ? 1 : 0;
        occupied += weight[i] > 0;
    }
    return occupied ? 0 : voxelize_none(ctx, in);
}

static int dense(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct recon_volume *ret)
{
    uint64_t n = (uint64_t)p->dim[0] * p->dim[1] * p->dim[2];
    struct recon_volume v = { .place = RECON_HOST };
    struct sink s = { .p = p, .v = &v };

    if (plan_volume_fits(ctx, p->dim, 8 * n, plan_memory_free(), "host"))
        return -1;
    if (take_volume(ctx, p, n, &v) || fill_volume(ctx, &s, in, n)) {
        golden_free(ctx, NULL, RECON_VOLUME, &v);
        return -1;
    }
    *ret = v;
    return 0;
}

static int blocks(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct recon_volume *ret)
{
    struct recon_volume v = { .place = RECON_HOST };
    struct blocks g = { .side = 0 };
    struct sink s = { .p = p, .v = &v, .grid = &g };
    uint64_t left = plan_memory_free();
    int rc = voxelize_grid(ctx, p, in, &g);

    if (rc == 0 && g.before[g.words] == 0)
        rc = voxelize_none(ctx, in);
    if (rc == 0)
        rc = voxelize_blocks_fit(ctx, p, g.before[g.words], left, "host");
    if (rc == 0)
        rc = blocks_list(ctx, &g, &v) || take_volume(ctx, p, recon_volume_samples(&v), &v) || fill_volume(ctx, &s, in, recon_volume_samples(&v)) ? -1 : 0;
    blocks_release(ctx, &g);
    if (rc)
        golden_free(ctx, NULL, RECON_VOLUME, &v);
    else
        *ret = v;
    return rc;
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
    struct sink s = { .p = p, .list = &c };
    uint64_t *other = NULL, *sorted, k = 0;
    int rc = mark(in, &s);

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
    if (voxelize_bound(ctx, in, p, cost))
        return -1;
    voxelize_choose(&plan, plan_memory_free());
    return plan.form == VOXELIZE_DENSE    ? dense(ctx, &plan, in[0], out[0])
           : plan.form == VOXELIZE_BLOCKS ? blocks(ctx, &plan, in[0], out[0])
                                          : sparse(ctx, &plan, in[0], out[1]);
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_voxelize(ctx, &cpu_points_voxelize, NULL);
}

const struct recon_kernel cpu_points_voxelize = { RECON_KERNEL_ABI, VOXELIZE_NAME,  VOXELIZE_DOC, voxelize_in, voxelize_out,
                                                  voxelize_params,  voxelize_bound, run,          selftest,    voxelize_shape };
