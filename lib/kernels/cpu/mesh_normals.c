/* Normals of vertices: each gathers its corners in ascending order, so that no thread waits and the bits are the same. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/mesh_normal.h"

static void gather(const struct recon_mesh *m, const struct rows *corners, int angle, float *normals, uint64_t v)
{
    double sum[3] = { 0 };

    for (uint64_t i = corners->first[v]; i < corners->first[v + 1]; i++)
        normal_add(m, corners->item[i], angle, sum);
    normal_unit(sum, normals + 3 * v);
}

/* corners of vertices, and the copy with its normals */
static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    normals_bound(ctx, in, p, cost);
    if (m)
        cost->host_bytes = 24 * m->faces + (m->rgb ? 35 : 32) * m->vertices + mesh_beyond(m) + 512;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    int angle = p[MESH_NORMALS_WEIGHT].i == MESH_NORMALS_ANGLE;
    struct recon_mesh c = { 0 };
    struct rows corners = { 0 };
    uint64_t none = 0;
    int rc = rows_corners(ctx, m, &corners);

    if (rc == 0)
        rc = mesh_copy(ctx, m, false, true, &c) || mesh_keep(ctx, m, false, &c) ? -1 : 0;
    if (rc == 0 && !(c.normals = ctx->host->alloc(ctx, 12 * m->vertices)))
        rc = -1;
    if (rc == 0) {
#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (m->vertices > 10000)
        for (uint64_t v = 0; v < m->vertices; v++)
            gather(&c, &corners, angle, c.normals, v);
        for (uint64_t v = 0; v < m->vertices; v++)
            none += c.normals[3 * v] == 0 && c.normals[3 * v + 1] == 0 && c.normals[3 * v + 2] == 0;
        if (none)
            ctx->host->log(ctx, RECON_NOTE, NULL, "mesh", "%llu vertices have no normal: in no face, or their faces cancel out", (unsigned long long)none);
        bound(ctx, in, p, cost);
        *(struct recon_mesh *)out[0] = c;
        c = (struct recon_mesh){ 0 };
    }
    mesh_free(ctx, &c);
    rows_release(ctx, &corners);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_normals(ctx, &cpu_mesh_normals, NULL);
}

const struct recon_kernel cpu_mesh_normals = { RECON_KERNEL_ABI,    MESH_NORMALS_NAME, MESH_NORMALS_DOC, mesh_one_in, mesh_one_out,
                                               mesh_normals_params, bound,     run,              selftest,    same_shape };
