/* Points by brute force: every pair is looked at. */
#include "config.h"
#include "kernels/blocks.h"
#include "kernels/ref/mesh_ref.h"
#include "kernels/sign.h"

#include <math.h>

/* ---- points.farthest ---- */

static int fps_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *v, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *p = in[0];
    uint64_t k = p->n < (uint64_t)v[FPS_COUNT].i ? p->n : (uint64_t)v[FPS_COUNT].i, at = 0;
    double *distance = ctx->host->alloc(ctx, 8 * p->n + 8);
    uint32_t *chosen = ctx->host->alloc(ctx, 4 * k + 4);
    int rc = distance && chosen ? fps_first(ctx, p, v, &at) : -1;

    for (uint64_t i = 0; rc == 0 && i < p->n; i++)
        distance[i] = INFINITY;
    for (uint64_t i = 0; rc == 0 && i < k; i++) {
        uint64_t best = 0;

        chosen[i] = (uint32_t)at;
        for (uint64_t j = 0; j < p->n; j++)
            distance[j] = fmin(distance[j], point_distance2(p->xyz + 3 * j, p->xyz + 3 * at));
        distance[at] = -1;
        for (uint64_t j = 1; j < p->n; j++)
            best = distance[j] > distance[best] ? j : best;
        at = best;
    }
    if (rc == 0)
        rc = fps_give(ctx, p, chosen, k, out[0]);
    fps_bound(ctx, in, v, cost);
    ctx->host->free(ctx, distance);
    ctx->host->free(ctx, chosen);
    return rc;
}

static int fps_selftest(struct recon_ctx *ctx)
{
    return golden_fps(ctx, &ref_points_fps, NULL);
}

const struct recon_kernel ref_points_fps = { RECON_KERNEL_ABI, FPS_NAME,  FPS_DOC, points_one_in, points_one_out,
                                             fps_params,       fps_bound, fps_run, fps_selftest,  fps_shape };

/* ---- points.normals ---- */

/* the k nearest by (distance, number), by putting each point where it belongs */
static void nearest(const struct recon_points *p, uint64_t of, uint32_t k, uint32_t *ret, double *d)
{
    uint32_t n = 0;

    for (uint32_t j = 0; j < p->n; j++) {
        double x = point_distance2(p->xyz + 3 * (uint64_t)j, p->xyz + 3 * of);
        uint32_t i = n < k ? n++ : k;

        for (; i > 0 && x < d[i - 1]; i--)
            if (i < k) {
                d[i] = d[i - 1];
                ret[i] = ret[i - 1];
            }
        if (i < k) {
            d[i] = x;
            ret[i] = j;
        }
    }
}

static int normals_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    uint64_t k = (uint64_t)p[POINTS_NORMALS_K].i < r->n ? (uint64_t)p[POINTS_NORMALS_K].i : r->n;
    uint32_t *near = ctx->host->alloc(ctx, 4 * k * r->n + 4);
    struct recon_points c = { 0 };
    double d[256];
    int rc = near && r->n >= 3 ? points_copy(ctx, r, true, &c) : -1;

    for (uint64_t i = 0; rc == 0 && i < r->n; i++) {
        double n[3];

        nearest(r, i, (uint32_t)k, near + k * i, d);
        normal_of(r->xyz, near + k * i, (int)k, n);
        for (uint64_t a = 0; a < 3; a++)
            c.normals[3 * i + a] = (float)n[a];
    }
    if (rc == 0)
        rc = normals_orient(ctx, r, near, (int)k, p, c.normals);
    points_normals_bound(ctx, in, p, cost);
    ctx->host->free(ctx, near);
    if (rc) {
        points_free(ctx, &c);
        return near && r->n < 3 ? ctx->host->fail(ctx, CODE_DATA, "empty-result", "points", "%llu points, 3 are wanted", (unsigned long long)r->n) : -1;
    }
    *(struct recon_points *)out[0] = c;
    return 0;
}

static int normals_selftest(struct recon_ctx *ctx)
{
    return golden_points_normals(ctx, &ref_points_normals, NULL);
}

const struct recon_kernel ref_points_normals = { RECON_KERNEL_ABI,      POINTS_NORMALS_NAME,  POINTS_NORMALS_DOC, points_one_in,    points_one_out,
                                                 points_normals_params, points_normals_bound, normals_run,        normals_selftest, points_same_shape };

/* ---- points.voxelize: each cell asks each point ---- */

static uint64_t count_in(const struct voxel_plan *p, const struct recon_points *in, const uint32_t cell[3])
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < in->n; i++) {
        uint32_t c[3];
        double d = 0;

        if (p->meaning != VOXELIZE_KAOLIN_01) {
            n += voxel_cell(p, in->xyz + 3 * i, c) && memcmp(c, cell, 12) == 0;
            continue;
        }
        for (int a = 0; a < 3; a++) {
            double x = p->origin[a] + p->voxel * cell[a] - (double)in->xyz[3 * i + (uint64_t)a];

            d += x * x;
        }
        n += d <= p->voxel * p->voxel;
    }
    return n;
}

static int voxelize_fill(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, float *weight, uint64_t *occupied)
{
    uint32_t c[3];
    uint64_t i = 0;

    (void)ctx;
    for (c[0] = 0; c[0] < p->dim[0]; c[0]++)
        for (c[1] = 0; c[1] < p->dim[1]; c[1]++)
            for (c[2] = 0; c[2] < p->dim[2]; c[2]++, i++) {
                weight[i] = (float)count_in(p, in, c);
                *occupied += weight[i] > 0;
            }
    return *occupied ? 0 : voxelize_none(ctx, in);
}

static int voxelize_sparse(struct recon_ctx *ctx, const struct voxel_plan *p, const float *weight, uint64_t occupied, struct recon_points *r)
{
    uint64_t k = 0, n = (uint64_t)p->dim[0] * p->dim[1] * p->dim[2];

    *r = (struct recon_points){ .n = occupied, .place = RECON_HOST, .xyz = ctx->host->alloc(ctx, 12 * occupied) };
    for (uint64_t i = 0; r->xyz && i < n; i++) {
        uint64_t at[3] = { i / p->dim[2] / p->dim[1], i / p->dim[2] % p->dim[1], i % p->dim[2] };

        for (uint64_t a = 0; weight[i] > 0 && a < 3; a++)
            r->xyz[3 * k + a] = (float)(p->origin[a] + p->center[a] + p->voxel * (double)at[a]);
        k += weight[i] > 0;
    }
    return r->xyz ? 0 : -1;
}

/* The blocks that hold an occupied cell, from the dense counts. */
static int voxelize_blocks(struct recon_ctx *ctx, const struct voxel_plan *p, const float *weight, struct recon_volume *r)
{
    struct blocks g;
    uint64_t i = 0, n;
    int rc;

    if (blocks_take(ctx, p->dim, FUSE_BLOCK, &g))
        return -1;
    for (uint32_t x = 0; x < p->dim[0]; x++)
        for (uint32_t y = 0; y < p->dim[1]; y++)
            for (uint32_t z = 0; z < p->dim[2]; z++, i++) {
                uint64_t at = blocks_cell(&g, x / FUSE_BLOCK, y / FUSE_BLOCK, z / FUSE_BLOCK);

                g.bits[at / 64] |= (uint64_t)(weight[i] > 0) << at % 64;
            }
    blocks_rank(&g);
    rc = blocks_list(ctx, &g, r);
    n = recon_volume_samples(r);
    if (rc || !(r->weight = ctx->host->alloc(ctx, 4 * n)) || !(r->tsdf = ctx->host->alloc(ctx, 4 * n)))
        rc = -1;
    for (i = 0; rc == 0 && i < n; i++)
        r->weight[i] = r->tsdf[i] = 0;
    i = 0;
    for (uint32_t x = 0; rc == 0 && x < p->dim[0]; x++)
        for (uint32_t y = 0; y < p->dim[1]; y++)
            for (uint32_t z = 0; z < p->dim[2]; z++, i++) {
                uint64_t at = blocks_sample(&g, x, y, z);

                if (at == BLOCKS_NONE)
                    continue;
                r->weight[at] = weight[i];
                r->tsdf[at] = weight[i] > 0;
            }
    blocks_release(ctx, &g);
    return rc;
}

static int voxelize_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *v, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *points = in[0];
    struct recon_volume *r = out[0];
    struct voxel_plan p;
    uint64_t n, occupied = 0;
    float *weight;
    int rc;

    if (voxel_plan(ctx, points, v, &p) || voxelize_outputs(ctx, &p, out))
        return -1;
    voxelize_bound(ctx, in, v, cost);
    n = (uint64_t)p.dim[0] * p.dim[1] * p.dim[2];
    voxelize_choose(&p, plan_memory_free());
    if (!(weight = ctx->host->alloc(ctx, 4 * n)))
        return -1;
    rc = voxelize_fill(ctx, &p, points, weight, &occupied);
    if (rc == 0 && p.form == VOXELIZE_SPARSE)
        rc = voxelize_sparse(ctx, &p, weight, occupied, out[1]);
    if (rc || p.form == VOXELIZE_SPARSE) {
        ctx->host->free(ctx, weight);
        return rc;
    }
    *r = (struct recon_volume){ .dim = { p.dim[0], p.dim[1], p.dim[2] }, .place = RECON_HOST, .voxel = p.voxel, .truncation = p.voxel };
    for (int a = 0; a < 3; a++)
        r->origin[a] = p.origin[a] + p.center[a];
    if (p.form == VOXELIZE_BLOCKS) {
        rc = voxelize_blocks(ctx, &p, weight, r);
        ctx->host->free(ctx, weight);
        return rc;
    }
    r->weight = weight;
    if (!(r->tsdf = ctx->host->alloc(ctx, 4 * n)))
        return -1;
    for (uint64_t i = 0; i < n; i++)
        r->tsdf[i] = weight[i] > 0;
    return 0;
}

static int voxelize_selftest(struct recon_ctx *ctx)
{
    return golden_voxelize(ctx, &ref_points_voxelize, NULL);
}

const struct recon_kernel ref_points_voxelize = { RECON_KERNEL_ABI, VOXELIZE_NAME,  VOXELIZE_DOC, voxelize_in,       voxelize_out,
                                                  voxelize_params,  voxelize_bound, voxelize_run, voxelize_selftest, voxelize_shape };

/* ---- mesh.check_sign: each point asks each face ---- */

static int sign_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    const struct recon_points *r = in[1];
    uint8_t *inside = ctx->host->alloc(ctx, r->n + 1);
    int rc = inside ? indices_fit(ctx, m) : -1;

    for (uint64_t i = 0; rc == 0 && i < r->n; i++) {
        double sum = 0;
        int odd = 0;

        for (uint64_t f = 0; f < m->faces; f++) {
            const float *a = m->xyz + 3 * (uint64_t)m->index[3 * f], *b = m->xyz + 3 * (uint64_t)m->index[3 * f + 1],
                        *c = m->xyz + 3 * (uint64_t)m->index[3 * f + 2];

            if (p[CHECK_SIGN_METHOD].i == CHECK_SIGN_WINDING)
                sum += triangle_winding(a, b, c, r->xyz + 3 * i);
            else
                odd ^= triangle_hit(a, b, c, r->xyz + 3 * i);
        }
        inside[i] = p[CHECK_SIGN_METHOD].i == CHECK_SIGN_WINDING ? sum > 0.5 : odd;
    }
    if (rc == 0)
        rc = sign_give(ctx, r, p, inside, out[0]);
    sign_bound(ctx, in, p, cost);
    ctx->host->free(ctx, inside);
    return rc;
}

static int sign_selftest(struct recon_ctx *ctx)
{
    return golden_sign(ctx, &ref_check_sign, NULL);
}

const struct recon_kernel ref_check_sign = { RECON_KERNEL_ABI,  CHECK_SIGN_NAME, CHECK_SIGN_DOC, check_sign_in, check_sign_out,
                                             check_sign_params, sign_bound,      sign_run,       sign_selftest, NULL };
