/* The kernels of points. */
#include "config.h"
#include "kernels_bench.h"

#include <math.h>
#include <stdlib.h>
#include "kernels/points_plan.h"
#include "kernels/test/inputs.h"

enum { CUBE, SCAN };

/* CUBE: anywhere in a cube, in no order. SCAN: on a wavy sheet, row after row, as a camera sees one. */
static int cloud(uint64_t n, int kind, struct recon_points *p)
{
    uint64_t wide = (uint64_t)sqrt((double)n);
    uint32_t seed = 3;

    *p = (struct recon_points){ .n = n, .xyz = T.ctx.host->alloc(&T.ctx, 12 * n) };
    if (!p->xyz)
        return bad("points");
    for (uint64_t i = 0; i < n; i++) {
        float *x = p->xyz + 3 * i;

        for (int a = 0; a < 3; a++)
            x[a] = uniform(&seed);
        if (kind == SCAN) {
            x[0] = (float)(2 * (double)(i / wide) / (double)wide - 1);
            x[1] = (float)(2 * (double)(i % wide) / (double)wide - 1);
            x[2] = 0.5f * sinf(7 * x[0]) * cosf(5 * x[1]) + 0.002f * x[2];
        }
    }
    return to_device(RECON_POINTS, p);
}

static int time_voxels(const struct recon_points *c, const char *size, int meaning, uint32_t side, const char *remark)
{
    const double shape[3] = { side, side, side }, origin[3] = { -1, -1, -1 };
    const struct recon_kernel *k = test_kernel(M, VOXELIZE_NAME);
    struct recon_value *p = test_params(k);
    struct call call = { k, { c }, p };
    struct times t;
    double cells = (double)side * side * side;
    int rc;

    p[VOXELIZE_MEANING].i = meaning;
    p[VOXELIZE_RESOLUTION].i = side;
    if (meaning == VOXELIZE_GRID) {
        p[VOXELIZE_VOXEL].f = 2.0 / side;
        p[VOXELIZE_SHAPE] = (struct recon_value){ .v = shape, .n = 3 };
        p[VOXELIZE_ORIGIN] = (struct recon_value){ .v = origin, .n = 3 };
    }
    rc = time_call(&call, &t);
    if (rc == 0)
        tell(k->name, size, &t, (12 * (double)c->n + 8 * cells) / rate * 1e3, "bytes", remark);
    free(p);
    return rc;
}

int bench_voxels(uint64_t n)
{
    char size[32], text[100];
    int rc = 0;

    for (int kind = CUBE; kind <= SCAN && rc == 0; kind++) {
        struct recon_points c = { 0 };

        snprintf(text, sizeof(text), "%s points, 256^3", count_text(n, size));
        rc = cloud(n, kind, &c) || time_voxels(&c, text, VOXELIZE_GRID, 256, kind == CUBE ? "grid, points in no order" : "grid, points as scanned") ||
             time_voxels(&c, text, VOXELIZE_KAOLIN, 256, kind == CUBE ? "kaolin: read twice, in no order" : "kaolin: read twice, as scanned");
        golden_free(&T.ctx, M->device, RECON_POINTS, &c);
    }
    return rc;
}

int bench_farthest(uint64_t n, uint64_t k)
{
    const struct recon_kernel *kernel = test_kernel(M, FPS_NAME);
    struct recon_value *p = test_params(kernel);
    struct recon_points c = { 0 };
    struct call call = { kernel, { &c }, p };
    struct times t;
    char size[32], text[100];
    int rc;

    p[FPS_COUNT].i = (int64_t)k;
    snprintf(text, sizeof(text), "%s points to %llu", count_text(n, size), (unsigned long long)k);
    rc = cloud(n, CUBE, &c) || time_call(&call, &t);
    if (rc == 0)
        tell(kernel->name, text, &t, 9 * (double)n * (double)k / flops * 1e3, "flops", "in double");
    golden_free(&T.ctx, M->device, RECON_POINTS, &c);
    free(p);
    return rc;
}

int bench_signs(uint64_t n, uint64_t faces)
{
    const struct recon_kernel *k = test_kernel(M, CHECK_SIGN_NAME);
    struct recon_value *p = test_params(k);
    struct recon_mesh m = { 0 };
    struct recon_points c = { 0 };
    struct call call = { k, { &m, &c }, p };
    struct times t;
    char size[32], size2[32], text[100];
    int rc = bench_ball(faces, &m) || cloud(n, CUBE, &c) || time_call(&call, &t);

    snprintf(text, sizeof(text), "%s points, %s faces", count_text(n, size), count_text(m.faces, size2));
    if (rc == 0)
        tell(k->name, text, &t, (13 * (double)n + 24 * (double)m.faces) / rate * 1e3, "bytes", "parity");
    golden_free(&T.ctx, M->device, RECON_POINTS, &c);
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    free(p);
    return rc;
}
