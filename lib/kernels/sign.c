#include "config.h"
#include "base/base.h"
#include "kernels/mesh_plan.h"
#include "kernels/plan.h"
#include "kernels/points_plan.h"
#include "kernels/sign.h"

#include <stdlib.h>

int sign_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    const struct recon_points *r = in[1];

    (void)ctx;
    if (!m || !r)
        return 0;
    /* the grid's lists are asked for once counted: a triangle is in at most 64 cells on average, else the grid is coarser */
    cost->host_bytes = r->n + 27 * r->n + (64 + 8) * 4 * m->faces + (1 << 20) + 4096;
    cost->moved_bytes = 13 * r->n + 48 * m->faces;
    cost->flops = p[CHECK_SIGN_METHOD].i == CHECK_SIGN_WINDING ? 80 * r->n * m->faces : 600 * r->n;
    cost->items = r->n;
    return 0;
}

/* NPY 1.0: a head of a multiple of 64 bytes, then one byte a point */
static int write_npy(struct recon_ctx *ctx, const char *file, const uint8_t *inside, uint64_t n)
{
    char *path = plan_output(ctx, file);
    struct err err = { 0 };
    struct str t = { 0 };
    int rc;

    if (!path)
        return -1;
    str_addn(&t, "\x93NUMPY\1\0\0\0", 10);
    str_addf(&t, "{'descr': '|u1', 'fortran_order': False, 'shape': (%llu,), }", (unsigned long long)n);
    while (t.len % 64 != 63)
        str_add(&t, " ");
    str_add(&t, "\n");
    t.s[8] = (char)((t.len - 10) & 255);
    t.s[9] = (char)((t.len - 10) >> 8);
    str_addn(&t, inside, n);
    rc = file_write(path, t.s, t.len, 0644, &err);
    if (rc)
        ctx->host->fail(ctx, err.code, NULL, path, "%s", err.text);
    else
        ctx->host->output(ctx, path);
    str_release(&t);
    free(path);
    return rc;
}

int sign_tell(struct recon_ctx *ctx, uint64_t points, uint64_t n, const struct recon_value *params, const uint8_t *inside)
{
    ctx->host->log(ctx, RECON_NOTE, NULL, "points", "%llu of %llu points are inside", (unsigned long long)n, (unsigned long long)points);
    return params[CHECK_SIGN_FILE].s[0] ? write_npy(ctx, params[CHECK_SIGN_FILE].s, inside, points) : 0;
}

int sign_give(struct recon_ctx *ctx, const struct recon_points *p, const struct recon_value *params, const uint8_t *inside, struct recon_points *ret)
{
    uint32_t *chosen;
    uint64_t n = 0;
    int rc = 0;

    for (uint64_t i = 0; i < p->n; i++)
        n += inside[i];
    if (sign_tell(ctx, p->n, n, params, inside))
        return -1;
    if (!ret)
        return 0;
    if (!(chosen = ctx->host->alloc(ctx, 4 * n + 4)))
        return -1;
    n = 0;
    for (uint64_t i = 0; i < p->n; i++)
        if (inside[i])
            chosen[n++] = (uint32_t)i;
    rc = fps_give(ctx, p, chosen, n, ret);
    ctx->host->free(ctx, chosen);
    return rc;
}

/* the octahedron from its middle, through its edges and vertices, and from beside it */
int golden_sign(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const float at[] = { 0, 0, 0,  0.5f, 0, 0,  -0.5f, 0, 0,  -2, 0, 0,  2, 0, 0,  -2, 0.5f, 0,  0.2f, 0.3f, 0.4f,  0.4f, 0.4f, 0.4f,
                                -3, 0.25f, 0.25f,  -3, 1, 0,  -3, 0, 1,  0.1f, -0.3f, 0 };
    static const uint8_t want[] = { 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    float xyz[3 * OCTA_V], copy[sizeof(at) / sizeof(*at)];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = OCTA_F, .xyz = xyz, .index = index };
    struct recon_points in = { .n = COUNT(want), .xyz = copy }, r = { 0 };
    struct recon_value p[] = { [CHECK_SIGN_METHOD] = { .i = CHECK_SIGN_PARITY }, [CHECK_SIGN_FILE] = { .s = "" } };
    uint64_t n = 0;
    int rc;

    memcpy(copy, at, sizeof(at));
    golden_octahedron(xyz, index);
    rc = golden_run(ctx, k, device, (const void *[]){ &m, &in, NULL }, p, (void *[]){ &r, NULL }, NULL);
    for (uint64_t i = 0; rc == 0 && i < COUNT(want); i++)
        if (want[i] && (n >= r.n || memcmp(r.xyz + 3 * n++, at + 3 * i, 12)))
            rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': point %llu is not found inside", k->name, (unsigned long long)i);
    if (rc == 0 && r.n != n)
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': %llu points are inside, %llu wanted", k->name,
                             (unsigned long long)r.n, (unsigned long long)n);
    points_free(ctx, &r);
    return rc;
}
