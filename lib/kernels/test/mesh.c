/* Kernels of meshes: golden numbers, invariants, and the plain references. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "base/test/scratch.h"
#include "kernels/mesh_plan.h"
#include "kernels/plan.h"
#include "kernels/test/made.h"
#include "kernels/tree_sum.h"

static const struct recon_module *cpu, *ref;

static const double matrices[4][16] = { { 0 },
                                        { 0, -1, 0, 5, 1, 0, 0, 6, 0, 0, 1, 7, 0, 0, 0, 1 },
                                        { 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1 },
                                        { 0.3, 0.2, -0.7, 1e4, 2, -0.5, 0.25, -3, 0.125, 1, 3, 0.1, 0, 0, 0, 1 } };

/* a reflection turns the faces: the volume keeps its sign, normals look out; what has no inverse is refused */
static void transformed(void **state)
{
    static const double flat[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1 };
    struct recon_value *p = test_params(test_kernel(cpu, MESH_TRANSFORM_NAME));
    struct recon_mesh m = sphere(24), n, a;
    struct mesh_facts f;
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    assert_int_equal(run_mesh(&t, cpu, MESH_NORMALS_NAME, &m, NULL, &n), 0);
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            for (int k = 0; k < 3; k++) {
                p[TRANSFORM_FROM].i = from;
                p[TRANSFORM_TO].i = to;
                p[TRANSFORM_MATRIX] = (struct recon_value){ .v = matrices[k], .n = k ? 16 : 0 };
                assert_int_equal(run_mesh(&t, cpu, MESH_TRANSFORM_NAME, &n, p, &a), 0);
                mesh_facts(&a, &f);
                assert_true(f.volume > 1.3 && f.open == 0);
                for (uint64_t v = 0; v < a.vertices; v++) { /* along the radius, about the new middle */
                    double dot = 0;

                    for (uint64_t i = 0; i < 3; i++)
                        dot += (double)a.normals[3 * v + i] * ((double)a.xyz[3 * v + i] - (k ? matrices[k][4 * i + 3] : 0)) / 0.7;
                    assert_true(dot > 0.97);
                }
                test_slot_free(&t, RECON_MESH, &a);
            }
    p[TRANSFORM_MATRIX] = (struct recon_value){ .v = flat, .n = 16 };
    assert_int_equal(run_mesh(&t, cpu, MESH_TRANSFORM_NAME, &n, p, &a), -1);
    assert_int_equal(t.code, CODE_USAGE);
    assert_non_null(strstr(t.text, "no inverse"));
    p[TRANSFORM_MATRIX].n = 12;
    assert_int_equal(run_mesh(&t, cpu, MESH_TRANSFORM_NAME, &n, p, &a), -1);
    assert_non_null(strstr(t.text, "16 are wanted"));
    test_slot_free(&t, RECON_MESH, &n);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
    free(p);
}

/* a grid with all that files say of corners and faces */
static struct recon_mesh laden(void)
{
    struct recon_mesh m = grid(9, 0.5f);
    uint32_t seed = 3;

    m.uvs = 40;
    m.corner_normals = 30;
    m.extra_bytes = 777;
    m.uv = xcalloc(2 * m.uvs, 4);
    m.uv_index = xcalloc(3 * m.faces, 4);
    m.corner_normal = xcalloc(3 * m.corner_normals, 4);
    m.normal_index = xcalloc(3 * m.faces, 4);
    m.joined = xcalloc(m.faces, 1);
    m.extra = xcalloc(m.extra_bytes, 1);
    m.uv_down = 1;
    for (uint64_t i = 0; i < 2 * m.uvs; i++)
        m.uv[i] = uniform(&seed);
    for (uint64_t i = 0; i < 3 * m.corner_normals; i++)
        m.corner_normal[i] = uniform(&seed);
    for (uint64_t i = 0; i < 3 * m.faces; i++) {
        m.uv_index[i] = i % 7 ? next_random(&seed) % 40 : RECON_NONE;
        m.normal_index[i] = i % 5 ? next_random(&seed) % 30 : RECON_NONE;
    }
    for (uint64_t i = 0; i < m.extra_bytes; i++)
        m.extra[i] = (uint8_t)i;
    return m;
}

static bool all_same(const struct recon_mesh *a, const struct recon_mesh *b)
{
    struct recon_mesh x = *a, y = *b;
    struct recon_array p[RECON_ARRAYS_MAX], q[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(RECON_MESH, &x, p);

    recon_slot_arrays(RECON_MESH, &y, q);
    while (n-- > 0)
        if (p[n].bytes != q[n].bytes || (p[n].bytes && memcmp(*p[n].at, *q[n].at, p[n].bytes)))
            return false;
    return a->uv_down == b->uv_down;
}

/* kernels that keep the faces pass on what stands at them; a reflection turns it with the faces; the others leave all of it */
static void kept(void **state)
{
    static const char *const names[] = { MESH_TRANSFORM_NAME, MESH_SMOOTH_NAME, MESH_NORMALS_NAME, MESH_SUBDIVIDE_NAME };
    struct recon_mesh m = laden(), a, b;

    (void)state;
    for (size_t k = 0; k < COUNT(names); k++)
        for (int flip = 0; flip < (k == 0 ? 2 : 1); flip++) {
            struct recon_value *p = test_params(test_kernel(cpu, names[k]));
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 2);
            if (k == 0)
                p[TRANSFORM_MATRIX] = (struct recon_value){ .v = matrices[1 + flip], .n = 16 };
            assert_int_equal(run_mesh(&t, cpu, names[k], &m, p, &a), 0);
            assert_int_equal(run_mesh(&t, ref, names[k], &m, p, &b), 0);
            assert_true(all_same(&a, &b));
            if (k < 3) {
                assert_true(a.uvs == 40 && a.uv_down == 1 && memcmp(a.uv, m.uv, 320) == 0 && memcmp(a.joined, m.joined, m.faces) == 0);
                assert_true(a.extra_bytes == 777 && memcmp(a.extra, m.extra, 777) == 0);
                assert_int_equal(a.uv_index[4], m.uv_index[flip ? 5 : 4]);
                assert_int_equal(!a.corner_normal, k > 0);
            } else {
                assert_true(!a.uv && !a.uv_index && !a.corner_normal && !a.joined && !a.extra && !a.uvs && !a.extra_bytes);
            }
            if (k == 0) { /* a turn about z, then y and z changed */
                float to[3] = { -m.corner_normal[1], m.corner_normal[0], m.corner_normal[2] };
                float length = sqrtf(to[0] * to[0] + to[1] * to[1] + to[2] * to[2]);

                for (int i = 0; i < 3 && !flip; i++)
                    assert_true(fabsf(a.corner_normal[i] - to[i] / length) < 1e-6f);
                assert_int_equal(a.normal_index[7], m.normal_index[flip ? 8 : 7]);
            }
            test_slot_free(&t, RECON_MESH, &a);
            test_slot_free(&t, RECON_MESH, &b);
            assert_int_equal(t.live, 0);
            free(p);
        }
    free_mesh(&m);
}

/* each kernel that has a reference gives its bits, on anything, for any number of threads */
static void references(void **state)
{
    static const char *const names[] = { MESH_SMOOTH_NAME, MESH_NORMALS_NAME, MESH_SUBDIVIDE_NAME, MESH_TRANSFORM_NAME };

    (void)state;
    for (uint32_t round = 0; round < 400; round++)
        for (size_t k = 0; k < COUNT(names); k++) {
            struct recon_mesh m = round < 390 ? garbage(round) : grid(20 + 40 * (round % 5), 0.5f), a, b;
            struct recon_value *p = test_params(test_kernel(cpu, names[k]));
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 1 + (int)(round % 3));
            p[0].i = round & 1; /* method, weight */
            if (k == 0) {
                p[MESH_SMOOTH_WEIGHTS].i = round >> 1 & 1;
                p[MESH_SMOOTH_BORDER].i = round >> 2 & 1;
                p[MESH_SMOOTH_ITERATIONS].i = 1 + round % 4;
            }
            if (k == 3) {
                p[TRANSFORM_FROM].i = round % 3;
                p[TRANSFORM_TO].i = round / 3 % 3;
                p[TRANSFORM_MATRIX] = (struct recon_value){ .v = matrices[round % 4], .n = round % 4 ? 16 : 0 };
            }
            if (k == 2)
                p[MESH_SUBDIVIDE_LEVELS].i = 1 + (round >> 1 & 1);
            assert_int_equal(run_mesh(&t, cpu, names[k], &m, p, &a), 0);
            assert_int_equal(run_mesh(&t, ref, names[k], &m, p, &b), 0);
            same_mesh(&a, &b);
            test_slot_free(&t, RECON_MESH, &a);
            test_slot_free(&t, RECON_MESH, &b);
            assert_int_equal(t.live, 0);
            free_mesh(&m);
            free(p);
        }
}

static void census(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 500; round++) {
        struct recon_mesh m = round < 490 ? garbage(round) : grid(3 + round % 10, 1);
        struct str a = census_text(cpu, scratch, &m), b = census_text(ref, scratch, &m);

        assert_string_equal(a.s, b.s);
        str_release(&a);
        str_release(&b);
        free_mesh(&m);
    }
}

static void refused(void **state)
{
    static const char *const names[] = { MESH_CHECK_NAME, MESH_CLEAN_NAME, MESH_FILL_NAME, MESH_SUBDIVIDE_NAME, MESH_SMOOTH_NAME, MESH_NORMALS_NAME };
    struct recon_mesh m = mesh_of(3, 1), r;

    (void)state;
    memcpy(m.index, (uint32_t[]){ 0, 1, 3 }, 12);
    for (size_t k = 0; k < COUNT(names); k++) {
        struct test_ctx t;

        test_ctx_init(&t, NULL, scratch, 1);
        assert_int_equal(run_mesh(&t, cpu, names[k], &m, NULL, &r), -1);
        assert_int_equal(t.code, CODE_DATA);
        assert_string_equal(t.rule, "face-index-out-of-range");
        assert_int_equal(t.live, 0);
    }
    free_mesh(&m);
}

/* item t of a block once second halves of width and more are in the first */
static double folded(const double *x, uint64_t n, uint64_t t, uint64_t width)
{
    if (width == TREE_BLOCK)
        return t < n ? x[t] : 0;
    return folded(x, n, t, 2 * width) + folded(x, n, t + width, 2 * width);
}

static double by_blocks(const double *x, uint64_t n)
{
    uint64_t blocks = (n + TREE_BLOCK - 1) / TREE_BLOCK;
    double *sums, sum;

    if (n < 2)
        return n ? x[0] + 0 : 0;
    sums = xcalloc(blocks, sizeof(*sums));
    for (uint64_t b = 0; b < blocks; b++)
        sums[b] = folded(x + TREE_BLOCK * b, n - TREE_BLOCK * b, 0, 1);
    sum = by_blocks(sums, blocks);
    free(sums);
    return sum;
}

/* area and volume are summed in an order that any device can keep */
static void sums(void **state)
{
    static const uint64_t sizes[] = { 0, 1, 2, 255, 256, 257, 511, 512, 65535, 65536, 65537, 65792, 131072, 200000 };
    double *x = xcalloc(200000, sizeof(*x));

    (void)state;
    for (uint64_t i = 0; i < 200000; i++)
        x[i] = (double)((i * 2654435761u) % 1000003) / 7 - 71428;
    x[0] = -0.0;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        struct tree_sum s = { 0 };
        double got, want = by_blocks(x, sizes[k]);

        for (uint64_t i = 0; i < sizes[k]; i++)
            tree_add(&s, x[i]);
        got = tree_end(&s);
        assert_memory_equal(&got, &want, sizeof(got));
    }
    free(x);
}

/* ---- smooth, subdivide, normals ---- */

static double volume_after(const struct recon_mesh *m, int method, int64_t iterations)
{
    struct recon_value *p = test_params(test_kernel(cpu, MESH_SMOOTH_NAME));
    struct mesh_facts f;
    struct recon_mesh a;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    p[MESH_SMOOTH_METHOD].i = method;
    p[MESH_SMOOTH_ITERATIONS].i = iterations;
    assert_int_equal(run_mesh(&t, cpu, MESH_SMOOTH_NAME, m, p, &a), 0);
    mesh_facts(&a, &f);
    assert_int_equal(f.open + f.bad, 0);
    test_slot_free(&t, RECON_MESH, &a);
    free(p);
    return f.volume;
}

static void smoothing(void **state)
{
    struct recon_mesh m = sphere(32), flat = grid(12, 0), a;
    struct recon_value *p = test_params(test_kernel(cpu, MESH_SMOOTH_NAME));
    struct mesh_facts f;
    double last, now;
    struct test_ctx t;

    (void)state;
    mesh_facts(&m, &f);
    last = f.volume;
    for (int64_t n = 1; n < 30; n += 7) { /* a sphere shrinks all the way */
        now = volume_after(&m, MESH_SMOOTH_LAPLACIAN, n);
        assert_true(now < last);
        last = now;
    }
    assert_true(fabs(volume_after(&m, MESH_SMOOTH_TAUBIN, 10) - f.volume) < 0.1 * fabs(volume_after(&m, MESH_SMOOTH_LAPLACIAN, 10) - f.volume));
    /* a plane stays one; with its border fixed the middle of a regular grid does not move */
    test_ctx_init(&t, NULL, NULL, 1);
    p[MESH_SMOOTH_BORDER].i = MESH_SMOOTH_FIX;
    assert_int_equal(run_mesh(&t, cpu, MESH_SMOOTH_NAME, &flat, p, &a), 0);
    for (uint64_t i = 0; i < 3 * flat.vertices; i++)
        assert_true(fabsf(a.xyz[i] - flat.xyz[i]) < 1e-5f);
    test_slot_free(&t, RECON_MESH, &a);
    free_mesh(&flat);
    free_mesh(&m);
    free(p);
}

/* Loop's weights are within rounding of those of the library's cosine, and exact where that is a fraction */
static void betas(void **state)
{
    (void)state;
    assert_true(loop_beta(3) == 0.1875);
    for (uint64_t n = 1; n < 1000000; n += n < 100000 ? 1 : 997) {
        double c = cos(2 * 3.14159265358979323846 / (double)n);

        assert_true(fabs(cos_of_turn(n) - c) < 4e-16);
        assert_true(fabs(loop_beta(n) * (double)n - (0.625 - (0.375 + 0.25 * c) * (0.375 + 0.25 * c))) < 4e-16);
    }
}

static void subdivision(void **state)
{
    struct recon_mesh m = sphere(16), a;
    struct recon_value p[2] = { { .i = MESH_SUBDIVIDE_MIDPOINT }, { .i = 2 } };
    struct mesh_facts before, after;
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    mesh_facts(&m, &before);
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), 0);
    mesh_facts(&a, &after);
    assert_int_equal(after.open + after.repeated + after.bad + after.unused, 0);
    assert_int_equal(after.euler, 2);
    assert_int_equal(a.faces, 16 * m.faces);
    assert_true(fabs(after.area - before.area) < 1e-5 && fabs(after.volume - before.volume) < 1e-5);
    test_slot_free(&t, RECON_MESH, &a);
    p[0].i = MESH_SUBDIVIDE_LOOP;
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), 0);
    mesh_facts(&a, &after);
    assert_int_equal(after.open + after.euler, 2);
    assert_true(after.volume < before.volume && after.volume > 0.9 * before.volume);
    test_slot_free(&t, RECON_MESH, &a);
    p[1].i = 4;
    t.patience = 2; /* the deadline comes between the second level and the third */
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), -1);
    assert_int_equal(t.code, CODE_DEADLINE);
    assert_string_equal(t.text, "stopped with 2 levels to go");
    t.patience = 0;
    p[1].i = 10;
    m.faces = 2; /* 2 * 4^10 is fine, 1052 * 4^10 is not */
    m.faces = 1052;
    t.most = 1 << 28;
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), -1);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
}

static void normals(void **state)
{
    struct recon_mesh m = sphere(64), a;
    struct recon_value p[1] = { { .i = 0 } };
    struct test_ctx t;

    (void)state;
    for (p[0].i = 0; p[0].i < 2; p[0].i++) {
        test_ctx_init(&t, NULL, NULL, 3);
        assert_int_equal(run_mesh(&t, cpu, MESH_NORMALS_NAME, &m, p, &a), 0);
        for (uint64_t v = 0; v < a.vertices; v++) { /* along the radius */
            const float *x = a.xyz + 3 * v, *n = a.normals + 3 * v;
            double r = sqrt((double)x[0] * x[0] + (double)x[1] * x[1] + (double)x[2] * x[2]);

            assert_true((n[0] * x[0] + n[1] * x[1] + n[2] * x[2]) / r > 0.995);
        }
        test_slot_free(&t, RECON_MESH, &a);
    }
    free_mesh(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformed), cmocka_unit_test(kept),    cmocka_unit_test(references), cmocka_unit_test(census),      cmocka_unit_test(sums),
        cmocka_unit_test(betas),       cmocka_unit_test(refused), cmocka_unit_test(smoothing),  cmocka_unit_test(subdivision), cmocka_unit_test(normals),
    };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
