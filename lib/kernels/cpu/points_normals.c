#include "config.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/kd.h"
#include "kernels/points_plan.h"

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    uint64_t k = (uint64_t)p[POINTS_NORMALS_K].i < r->n ? (uint64_t)p[POINTS_NORMALS_K].i : r->n, none = 0;
    struct recon_points c = { 0 };
    struct kd t = { .xyz = r->xyz, .n = (uint32_t)r->n };
    uint32_t *near = NULL;
    int rc = -1;

    if (r->n < 3 || r->n > UINT32_MAX / k)
        return ctx->host->fail(ctx, CODE_DATA, "empty-result", "points", "%llu points, 3 to %llu are taken", (unsigned long long)r->n,
                               (unsigned long long)(UINT32_MAX / k));
    if ((t.order = ctx->host->alloc(ctx, 4 * r->n)) && (t.axis = ctx->host->alloc(ctx, r->n)) &&
        (near = ctx->host->alloc(ctx, 4 * k * r->n)) && points_copy(ctx, r, true, &c) == 0) {
        kd_build(&t);
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 512)
        for (uint64_t i = 0; i < r->n; i++) {
            double n[3];

            kd_near(&t, r->xyz + 3 * i, (uint32_t)k, near + k * i);
            normal_of(r->xyz, near + k * i, (int)k, n);
            for (uint64_t a = 0; a < 3; a++)
                c.normals[3 * i + a] = (float)n[a];
        }
        for (uint64_t i = 0; i < r->n; i++)
            none += c.normals[3 * i] == 0 && c.normals[3 * i + 1] == 0 && c.normals[3 * i + 2] == 0;
        if (none)
            ctx->host->log(ctx, RECON_WARN, NULL, "points", "%llu points have no normal: their neighbours are on a line", (unsigned long long)none);
        rc = normals_orient(ctx, r, near, (int)k, p, c.normals);
    }
    points_normals_bound(ctx, in, p, cost);
    ctx->host->free(ctx, t.order);
    ctx->host->free(ctx, t.axis);
    ctx->host->free(ctx, near);
    if (rc) {
        points_free(ctx, &c);
        return -1;
    }
    *(struct recon_points *)out[0] = c;
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_points_normals(ctx, &cpu_points_normals, NULL);
}

const struct recon_kernel cpu_points_normals = { RECON_KERNEL_ABI,      POINTS_NORMALS_NAME,  POINTS_NORMALS_DOC, points_one_in, points_one_out,
                                                 points_normals_params, points_normals_bound, run,                selftest,      points_same_shape };
