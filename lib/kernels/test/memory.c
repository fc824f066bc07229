/* What kernels say they take before a run against what they took, counted at each allocation: never more, and for the dense ones
 * not above one and a half times as much. What a run says afterwards is what it took, to a fifth. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/test/made.h"

static const struct recon_module *cpu;

/* Runs it; out is released by the caller. Gives bound / peak; ret_after: what is said after the run, when all is counted, / peak. */
static double run_counted(struct test_ctx *t, const char *name, const void *const *in, struct recon_value *p, void *const *out, double *ret_after)
{
    const struct recon_kernel *k = test_kernel(cpu, name);
    struct recon_cost most = { 0 }, cost = { 0 };
    uint64_t before = t->bytes, peak;
    double share;

    assert_int_equal(k->bound(&t->ctx, in, p, &most), 0);
    t->peak = before;
    if (k->run(&t->ctx, in, p, out, &cost))
        fail_msg("%s: %s", name, t->text);
    peak = t->peak - before;
    share = (double)most.host_bytes / (double)peak;
    *ret_after = (double)cost.host_bytes / (double)peak;
    print_message("# %s: %.1f MiB were said, %.1f MiB taken: %.2f; counted: %.2f\n", name, (double)most.host_bytes / 1048576,
                  (double)peak / 1048576, share, *ret_after);
    if (peak > most.host_bytes + 8 * 4096) /* malloc makes whole pages of large arrays */
        fail_msg("%s took %llu bytes, %llu were said", name, (unsigned long long)peak, (unsigned long long)most.host_bytes);
    return share;
}

static double run_kernel(struct test_ctx *t, const char *name, const void *const *in, struct recon_value *p, void *const *out)
{
    return run_counted(t, name, in, p, out, &(double){ 0 });
}

static void volumes(void **state)
{
    static const double bounds[6] = { -2.4, 2.4, -1.6, 1.6, -2.4, 2.4 };
    struct recon_frames frames = { 0 };
    struct recon_volume v = { 0 };
    struct recon_mesh m = { 0 };
    struct recon_value *p;
    struct test_ctx t;
    double after;

    (void)state;
    for (int color = 0; color < 2; color++) {
        test_ctx_init(&t, NULL, NULL, 2);
        p = test_params(test_kernel(cpu, SCENE_NAME));
        p[SCENE_FRAMES] = (struct recon_value){ .i = 3, .f = 3 };
        p[SCENE_WIDTH] = (struct recon_value){ .i = 160, .f = 160 };
        p[SCENE_HEIGHT] = (struct recon_value){ .i = 120, .f = 120 };
        assert_int_equal(test_kernel(cpu, SCENE_NAME)->run(&t.ctx, (const void *[]){ NULL }, p, (void *[]){ &frames, NULL }, &(struct recon_cost){ 0 }), 0);
        free(p);
        assert_int_equal(frames.next(&frames, &(struct recon_frame){ 0 }), 1); /* the source's own memory is its own */
        assert_int_equal(frames.rewind(&frames), 0);
        p = test_params(test_kernel(cpu, FUSE_NAME));
        p[FUSE_VOXEL].f = 0.02;
        p[FUSE_BOUNDS] = (struct recon_value){ .v = bounds, .n = 6 };
        p[FUSE_COLOR].i = color;
        assert_true(run_kernel(&t, FUSE_NAME, (const void *[]){ &frames, NULL }, p, (void *[]){ &v, NULL }) < 1.5);
        free(p);
        p = test_params(test_kernel(cpu, MC_NAME));
        run_counted(&t, MC_NAME, (const void *[]){ &v, NULL }, p, (void *[]){ &m, NULL }, &after);
        assert_true(after > 0.99 && after < 1.1); /* before it is counted the mesh is a guess */
        free(p);
        test_slot_free(&t, RECON_MESH, &m);
        test_slot_free(&t, RECON_VOLUME, &v);
        test_slot_free(&t, RECON_FRAMES, &frames);
        v = (struct recon_volume){ 0 };
    }
}

static void voxels(void **state)
{
    static const struct {
        int meaning, form;
        double most;
    } cases[] = { { VOXELIZE_KAOLIN, VOXELIZE_DENSE, 1.5 }, { VOXELIZE_KAOLIN_01, VOXELIZE_DENSE, 1.5 }, { VOXELIZE_GRID, VOXELIZE_DENSE, 1.5 },
                  { VOXELIZE_KAOLIN, VOXELIZE_SPARSE, INFINITY }, { VOXELIZE_GRID, VOXELIZE_SPARSE, INFINITY } };
    struct recon_points in = { .n = 50000, .xyz = xmalloc(600000) };
    uint32_t seed = 9;

    (void)state;
    for (uint64_t i = 0; i < 3 * in.n; i++)
        in.xyz[i] = uniform(&seed);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recon_value *p = test_params(test_kernel(cpu, VOXELIZE_NAME));
        struct recon_volume v = { 0 };
        struct recon_points s = { 0 };
        bool sparse = cases[i].form == VOXELIZE_SPARSE;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[VOXELIZE_MEANING].i = cases[i].meaning;
        p[VOXELIZE_FORM].i = cases[i].form;
        p[VOXELIZE_RESOLUTION].i = 128;
        p[VOXELIZE_VOXEL].f = cases[i].meaning == VOXELIZE_KAOLIN ? 0 : 2.0 / 128;
        assert_true(run_kernel(&t, VOXELIZE_NAME, (const void *[]){ &in, NULL }, p, (void *[]){ sparse ? NULL : (void *)&v, sparse ? (void *)&s : NULL, NULL }) <
                    cases[i].most);
        test_slot_free(&t, RECON_VOLUME, &v);
        test_slot_free(&t, RECON_POINTS, &s);
        free(p);
    }
    free(in.xyz);
}

/* counted kernels: what cannot be known before, borders and fans, is taken at its worst; afterwards it is known */
static void meshes(void **state)
{
    static const struct {
        const char *name;
        double most, after;
    } cases[] = { { MESH_SMOOTH_NAME, 1.5, 1.5 },   { MESH_NORMALS_NAME, 1.5, 1.1 }, { MESH_SUBDIVIDE_NAME, 1.5, 1.1 },
                  { MESH_TRANSFORM_NAME, 1.5, 1.1 }, { MESH_CLEAN_NAME, 2, 1.2 },     { MESH_FILL_NAME, 2.5, 1.2 },
                  { MESH_SIMPLIFY_NAME, 1.5, 1.2 },  { MESH_SIMPLIFY_NAME, 1.5, 1.2 } }; /* both methods */
    int wide = 0;

    (void)state;
    for (int holes = 0; holes < 2; holes++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            struct recon_value *p = test_params(test_kernel(cpu, cases[i].name));
            struct recon_mesh m = sphere(96), a = { 0 };
            uint64_t k = 0;
            double share, after;
            struct test_ctx t;

            for (uint64_t f = 0; holes && f < m.faces; f++)
                if (f % 7)
                    memmove(m.index + 3 * k++, m.index + 3 * f, 12);
            m.faces = holes ? k : m.faces;
            test_ctx_init(&t, NULL, NULL, 2);
            if (str_eq(cases[i].name, MESH_SIMPLIFY_NAME)) {
                p[MESH_SIMPLIFY_FACES].i = 1000;
                p[MESH_SIMPLIFY_METHOD].i = i + 1 == COUNT(cases) ? MESH_SIMPLIFY_ROUNDS : MESH_SIMPLIFY_LEVELS;
            }
            share = run_counted(&t, cases[i].name, (const void *[]){ &m, NULL }, p, (void *[]){ &a, NULL }, &after);
            wide += !(share < cases[i].most && after < cases[i].after && after > 0.99);
            test_slot_free(&t, RECON_MESH, &a);
            assert_int_equal(t.live, 0);
            free_mesh(&m);
            free(p);
        }
    assert_int_equal(wide, 0); /* the shares stand above */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(volumes), cmocka_unit_test(voxels), cmocka_unit_test(meshes) };

    cpu = test_module("cpu");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
