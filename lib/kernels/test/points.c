/* Kernels of points: the plain references, and normals of a sphere. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

static void points_references(void **state)
{
    static const char *const names[] = { FPS_NAME, POINTS_NORMALS_NAME };

    (void)state;
    for (uint32_t round = 0; round < 60; round++)
        for (size_t k = 0; k < COUNT(names); k++) {
            struct recon_points in = cloud(3 + round * 13, round, (int)(round % 3)), r[2] = { { 0 } };
            struct recon_value *p = test_params(test_kernel(cpu, names[k]));
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 1 + (int)(round % 3));
            p[0].i = k == 0 ? 1 + round * 9 : 3 + round % 20; /* count, k */
            p[1].i = k == 0 ? round & 1 : round & 3;          /* first, orient */
            for (int d = 0; d < 2; d++) {
                const struct recon_kernel *kernel = test_kernel(d ? ref : cpu, names[k]);
                struct recon_cost cost = { 0 }, most = { 0 };

                assert_int_equal(kernel->bound(&t.ctx, (const void *[]){ &in, NULL }, p, &most), 0);
                most.host_bytes += t.bytes;
                t.peak = t.bytes;
                assert_int_equal(kernel->run(&t.ctx, (const void *[]){ &in, NULL }, p, (void *[]){ &r[d], NULL }, &cost), 0);
                within(&t, names[k], &most);
            }
            assert_int_equal(r[0].n, r[1].n);
            assert_memory_equal(r[0].xyz, r[1].xyz, 12 * r[0].n);
            assert_memory_equal(r[0].rgb, r[1].rgb, 3 * r[0].n);
            if (k == 1)
                assert_memory_equal(r[0].normals, r[1].normals, 12 * r[0].n);
            for (int d = 0; d < 2; d++)
                test_slot_free(&t, RECON_POINTS, &r[d]);
            assert_int_equal(t.live, 0);
            free_points(&in);
            free(p);
        }
}

static void sphere_normals(void **state)
{
    struct recon_mesh m = sphere(48);
    struct recon_points in = { .n = m.vertices, .xyz = m.xyz }, r;
    const struct recon_kernel *k = test_kernel(cpu, POINTS_NORMALS_NAME);
    struct recon_value *p = test_params(k);
    static const double origin[3] = { 0, 0, 0 };

    (void)state;
    p[POINTS_NORMALS_VIEWPOINT].v = origin;
    p[POINTS_NORMALS_VIEWPOINT].n = 3;
    for (int orient = POINTS_NORMALS_PROPAGATE; orient <= POINTS_NORMALS_OUTWARD; orient++) {
        struct recon_cost cost = { 0 };
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[POINTS_NORMALS_ORIENT].i = orient;
        r = (struct recon_points){ 0 };
        assert_int_equal(k->run(&t.ctx, (const void *[]){ &in, NULL }, p, (void *[]){ &r, NULL }, &cost), 0);
        for (uint64_t i = 0; i < r.n; i++) {
            double dot = 0;

            for (uint64_t a = 0; a < 3; a++)
                dot += (double)r.normals[3 * i + a] * r.xyz[3 * i + a] / 0.7;
            assert_true((orient == POINTS_NORMALS_TO_VIEWPOINT ? -dot : dot) > 0.98);
        }
        test_slot_free(&t, RECON_POINTS, &r);
    }
    free(p);
    free_mesh(&m);
}

static void voxels(void **state)
{
    static const double shape[3] = { 4, 7, 5 }, origin[3] = { -0.5, 0, 0.1 };

    (void)state;
    for (uint32_t round = 0; round < 36; round++) {
        struct recon_points in = cloud(1 + round * 5, round, (int)(round % 3)), sparse[2] = { { 0 } };
        struct recon_volume dense[2] = { { .tsdf = NULL }, { .tsdf = NULL } };
        struct recon_value *p = test_params(test_kernel(cpu, VOXELIZE_NAME));
        int rc[2];
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[VOXELIZE_MEANING].i = round % 3;
        p[VOXELIZE_RESOLUTION].i = 2 + round % 9;
        p[VOXELIZE_VOXEL].f = round % 3 ? 0.3 : 0;
        p[VOXELIZE_FORM].i = round & 1;
        if (round % 4 == 0 && round % 3 == 2)
            p[VOXELIZE_SHAPE] = (struct recon_value){ .v = shape, .n = 3 };
        if (round % 5 == 0)
            p[VOXELIZE_ORIGIN] = (struct recon_value){ .v = origin, .n = 3 };
        for (int d = 0; d < 2; d++) {
            struct recon_cost cost = { 0 }, most = { 0 };

            test_kernel(d ? ref : cpu, VOXELIZE_NAME)->bound(&t.ctx, (const void *[]){ &in, NULL }, p, &most);
            most.host_bytes += t.bytes;
            t.peak = t.bytes;
            rc[d] = test_kernel(d ? ref : cpu, VOXELIZE_NAME)
                        ->run(&t.ctx, (const void *[]){ &in, NULL }, p,
                              (void *[]){ round & 1 ? NULL : (void *)&dense[d], round & 1 ? (void *)&sparse[d] : NULL, NULL }, &cost);
            if (d == 0 || !(round & 1)) /* the reference's sparse form is a dense one */
                within(&t, VOXELIZE_NAME, &most);
        }
        assert_int_equal(rc[0], rc[1]);
        assert_memory_equal(dense[0].dim, dense[1].dim, 12);
        assert_memory_equal(dense[0].origin, dense[1].origin, 24);
        if (dense[0].tsdf) {
            uint64_t n = (uint64_t)dense[0].dim[0] * dense[0].dim[1] * dense[0].dim[2];

            assert_memory_equal(dense[0].tsdf, dense[1].tsdf, 4 * n);
            assert_memory_equal(dense[0].weight, dense[1].weight, 4 * n);
        }
        assert_int_equal(sparse[0].n, sparse[1].n);
        if (sparse[0].n)
            assert_memory_equal(sparse[0].xyz, sparse[1].xyz, 12 * sparse[0].n);
        for (int d = 0; d < 2; d++) {
            test_slot_free(&t, RECON_VOLUME, &dense[d]);
            test_slot_free(&t, RECON_POINTS, &sparse[d]);
        }
        assert_int_equal(t.live, 0);
        free_points(&in);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(points_references), cmocka_unit_test(sphere_normals), cmocka_unit_test(voxels) };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
