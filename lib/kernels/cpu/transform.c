#include "config.h"
#include "kernels/cpu/mesh_cpu.h"

static void move(const struct transform *t, float *xyz, int64_t n)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)xyz[3 * i], y = (double)xyz[3 * i + 1], z = (double)xyz[3 * i + 2];

        for (int k = 0; k < 3; k++)
            xyz[3 * i + k] = (float)(t->t[4 * k] * x + t->t[4 * k + 1] * y + t->t[4 * k + 2] * z + t->t[4 * k + 3]);
    }
}

/* normals NULL: none */
static void turn(const struct transform *t, float *normals, int64_t n)
{
#pragma omp parallel for schedule(static) if (normals)
    for (int64_t i = 0; i < (normals ? n : 0); i++) {
        const double a = (double)normals[3 * i], b = (double)normals[3 * i + 1], c = (double)normals[3 * i + 2];
        double v[3], length;

        for (int k = 0; k < 3; k++)
            v[k] = t->n[3 * k] * a + t->n[3 * k + 1] * b + t->n[3 * k + 2] * c;
        length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (int k = 0; k < 3; k++)
            normals[3 * i + k] = length > 0 ? (float)(v[k] / length) : 0;
    }
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct recon_mesh m;
    struct transform t;

    if (transform_plan(ctx, p, &t) || mesh_copy(ctx, in[0], true, true, &m))
        return -1;
    if (mesh_keep(ctx, in[0], true, &m)) {
        mesh_free(ctx, &m);
        return -1;
    }
    move(&t, m.xyz, (int64_t)m.vertices);
    turn(&t, m.normals, (int64_t)m.vertices);
    turn(&t, m.corner_normal, (int64_t)m.corner_normals);
    if (t.flip)
        mesh_flip(&m);
    if (t.flip)
        ctx->host->log(ctx, RECON_NOTE, NULL, "mesh", "a reflection: the winding of %llu faces is reversed", (unsigned long long)m.faces);
    transform_bound(ctx, in, p, cost);
    *(struct recon_mesh *)out[0] = m;
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_transform(ctx, &cpu_mesh_transform);
}

static int points_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    struct recon_mesh from = { .vertices = r->n, .xyz = r->xyz, .normals = r->normals, .rgb = r->rgb }, m;
    struct transform t;

    if (transform_plan(ctx, p, &t) || mesh_copy(ctx, &from, true, true, &m))
        return -1;
    ctx->host->free(ctx, m.index);
    move(&t, m.xyz, (int64_t)m.vertices);
    turn(&t, m.normals, (int64_t)m.vertices);
    points_transform_bound(ctx, in, p, cost);
    *(struct recon_points *)out[0] = (struct recon_points){ .n = r->n, .xyz = m.xyz, .normals = m.normals, .rgb = m.rgb };
    return 0;
}

const struct recon_kernel cpu_mesh_transform = { RECON_KERNEL_ABI, MESH_TRANSFORM_NAME, MESH_TRANSFORM_DOC, mesh_one_in, mesh_one_out,
                                                 transform_params, transform_bound,     run,                selftest,    same_shape };
const struct recon_kernel cpu_points_transform = { RECON_KERNEL_ABI, POINTS_TRANSFORM_NAME,  POINTS_TRANSFORM_DOC, points_one_in, points_one_out,
                                                   transform_params, points_transform_bound, points_run,           selftest,      NULL };
