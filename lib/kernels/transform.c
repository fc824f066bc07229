#include "config.h"
#include "base/base.h"
#include "kernels/mesh_plan.h"

#include <math.h>

/* to recon's own axes and back: each is its own inverse */
static const double signs[3][3] = { { 1, 1, 1 }, { 1, -1, -1 }, { 1, -1, 1 } };

int transform_plan(struct recon_ctx *ctx, const struct recon_value *p, struct transform *ret)
{
    static const double one[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    const double *m = p[TRANSFORM_MATRIX].n ? p[TRANSFORM_MATRIX].v : one;
    double *t = ret->t, *n = ret->n, det, size = 0;

    if (p[TRANSFORM_MATRIX].n && p[TRANSFORM_MATRIX].n != 16)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "matrix", "matrix has %u numbers, 16 are wanted", p[TRANSFORM_MATRIX].n);
    if (m[12] != 0 || m[13] != 0 || m[14] != 0 || m[15] != 1)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "matrix", "the last row of matrix is %g %g %g %g, 0 0 0 1 is wanted", m[12], m[13], m[14], m[15]);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            t[4 * i + k] = m[4 * i + k] * signs[p[TRANSFORM_FROM].i][k] * signs[p[TRANSFORM_TO].i][k] * p[TRANSFORM_SCALE].f;
            size = fmax(size, fabs(t[4 * i + k]));
        }
        t[4 * i + 3] = m[4 * i + 3];
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            int a = (i + 1) % 3, b = (i + 2) % 3, c = (k + 1) % 3, d = (k + 2) % 3;

            n[3 * i + k] = t[4 * a + c] * t[4 * b + d] - t[4 * a + d] * t[4 * b + c];
        }
    det = t[0] * n[0] + t[1] * n[1] + t[2] * n[2];
    if (!(fabs(det) > 1e-12 * size * size * size))
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "matrix", "matrix has a determinant of %g: it has no inverse", det);
    ret->flip = det < 0;
    for (int i = 0; i < 9; i++)
        n[i] = ret->flip ? -n[i] : n[i];
    return 0;
}

int transform_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    (void)ctx;
    (void)p;
    if (!m)
        return 0;
    cost->host_bytes = m->vertices * (12 + (m->normals ? 12 : 0) + (m->rgb ? 3 : 0)) + m->faces * 12 + mesh_beyond(m) + 256;
    cost->moved_bytes = 2 * cost->host_bytes;
    cost->flops = m->vertices * (m->normals ? 45 : 18);
    cost->items = m->vertices;
    return 0;
}

int points_transform_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    struct recon_mesh m = { 0 };

    if (!r)
        return 0;
    m = (struct recon_mesh){ .vertices = r->n, .xyz = r->xyz, .normals = r->normals, .rgb = r->rgb };
    return transform_bound(ctx, (const void *[]){ &m }, p, cost);
}

/* the octahedron in another system: mirrored and moved it still has its volume, not its negative */
int golden_transform(struct recon_ctx *ctx, const struct recon_kernel *k)
{
    static const double move[16] = { 2, 0, 0, 5, 0, 1, 0, 6, 0, 0, 1, 7, 0, 0, 0, 1 };
    const struct recon_value p[] = { { .i = AXES_OPENNI }, { .i = AXES_OPENCV }, { .f = 0.5 }, { .v = move, .n = 16 } };
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = OCTA_F, .xyz = xyz, .index = index }, r = { 0 };
    struct recon_cost cost = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    rc = k->run(ctx, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, &cost);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (fabs(c.volume - 4.0 / 3 / 4) > 1e-6 || r.xyz[6] != 5 || r.xyz[7] != 5.5f || r.xyz[8] != 7))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': volume %.6g, 0.333333 is wanted", k->name, c.volume);
    mesh_free(ctx, &r);
    return rc;
}
