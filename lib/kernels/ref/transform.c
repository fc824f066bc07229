#include "config.h"
#include "kernels/ref/mesh_ref.h"

static void turn(const struct transform *t, float *normal)
{
    double sum[3], square = 0;

    for (uint64_t k = 0; k < 3; k++) {
        sum[k] = 0;
        for (uint64_t j = 0; j < 3; j++)
            sum[k] += t->n[3 * k + j] * (double)normal[j];
        square += sum[k] * sum[k];
    }
    for (uint64_t k = 0; k < 3; k++)
        normal[k] = square > 0 ? (float)(sum[k] / sqrt(square)) : 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct recon_mesh r;
    struct transform t;

    if (transform_plan(ctx, p, &t) || mesh_copy(ctx, m, true, true, &r))
        return -1;
    if (mesh_keep(ctx, m, true, &r)) {
        mesh_free(ctx, &r);
        return -1;
    }
    for (uint64_t i = 0; i < m->vertices; i++) {
        for (uint64_t k = 0; k < 3; k++) {
            double sum = 0;

            for (uint64_t j = 0; j < 3; j++)
                sum += t.t[4 * k + j] * (double)m->xyz[3 * i + j];
            r.xyz[3 * i + k] = (float)(sum + t.t[4 * k + 3]);
        }
        if (r.normals)
            turn(&t, r.normals + 3 * i);
    }
    for (uint64_t i = 0; i < r.corner_normals; i++)
        turn(&t, r.corner_normal + 3 * i);
    if (t.flip)
        mesh_flip(&r);
    transform_bound(ctx, in, p, cost);
    *(struct recon_mesh *)out[0] = r;
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_transform(ctx, &ref_mesh_transform);
}

const struct recon_kernel ref_mesh_transform = { RECON_KERNEL_ABI, MESH_TRANSFORM_NAME, MESH_TRANSFORM_DOC, mesh_one_in, mesh_one_out,
                                                 transform_params, transform_bound,     run,                selftest,    same_shape };
