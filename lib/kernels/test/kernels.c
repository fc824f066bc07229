/* Volumes and their surfaces: golden counts, closedness on anything, the plain references; the self-tests of all kernels. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/plan.h"
#include "kernels/test/ctx.h"
#include "kernels/test/inputs.h"
#include "kernels/test/mesh_check.h"

static const struct recon_module *cpu, *ref;

static struct recon_volume make_volume(uint32_t nx, uint32_t ny, uint32_t nz)
{
    uint64_t n = (uint64_t)nx * ny * nz;
    struct recon_volume v = {.dim = {nx, ny, nz}, .origin = {-1, 2, 0.5}, .voxel = 0.125, .truncation = 0.5};

    v.tsdf = xmalloc(n * 4);
    return v;
}

static void free_volume(struct recon_volume *v)
{
    free(v->tsdf);
    free(v->weight);
    free(v->rgb);
}

static int run_mc(struct test_ctx *t, const struct recon_module *m, const struct recon_volume *v,
                  struct recon_value *p, struct recon_mesh *mesh)
{
    const struct recon_kernel *k = test_kernel(m, MC_NAME);
    struct recon_value *def = test_params(k);
    struct recon_cost cost = { 0 };
    int rc;

    *mesh = (struct recon_mesh){ 0 };
    rc = k->run(&t->ctx, (const void *[]){ v, NULL }, p ? p : def, (void *[]){ mesh, NULL }, &cost);
    if (rc)
        test_slot_free(t, RECON_MESH, mesh);
    free(def);
    return rc;
}

/* ---- marching cubes ---- */

static void sphere_of(uint32_t n, const struct golden_count *want, bool also_ref)
{
    struct recon_volume v = make_volume(n, n, n);
    struct recon_mesh m, r;
    struct mesh_facts f;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    golden_sphere(v.tsdf, n);
    v.origin[0] = v.origin[1] = v.origin[2] = -1;
    v.voxel = 2.0 / (n - 1);
    assert_int_equal(run_mc(&t, cpu, &v, NULL, &m), 0);
    assert_int_equal(m.vertices, want->vertices);
    assert_int_equal(m.faces, want->faces);
    mesh_facts(&m, &f);
    assert_int_equal(f.open + f.repeated + f.bad + f.unused, 0);
    assert_int_equal(f.euler, 2);
    /* second order: relative errors of area and volume fall by four when n doubles */
    assert_true(fabs(f.area / (4 * M_PI * 0.49) - 1 + 6.44e-4 * 64 * 64 / n / n) < 2e-4 * 64 * 64 / n / n);
    assert_true(fabs(f.volume / (4.0 / 3 * M_PI * 0.343) - 1 + 1.22e-3 * 64 * 64 / n / n) <
                3e-4 * 64 * 64 / n / n);
    if (also_ref) {
        assert_int_equal(run_mc(&t, ref, &v, NULL, &r), 0);
        assert_int_equal(r.vertices, m.vertices);
        assert_memory_equal(r.xyz, m.xyz, m.vertices * 12);
        assert_memory_equal(r.index, m.index, m.faces * 12);
        test_slot_free(&t, RECON_MESH, &r);
    }
    test_slot_free(&t, RECON_MESH, &m);
    assert_int_equal(t.live, 0);
    free_volume(&v);
}

static void sphere_counts(void **state)
{
    (void)state;
    for (const struct golden_count *c = golden_sphere_counts + 1; c->n; c++)
        sphere_of(c->n, c, c->n <= 64);
}

static void noise_is_closed(void **state)
{
    uint32_t seed = 7;

    (void)state;
    for (int round = 0; round < 24; round++) { /* rows shorter and longer than words of 64, and just at their ends */
        uint32_t n[3] = {2 + next_random(&seed) % 19, 2 + next_random(&seed) % 19,
                         round < 16 ? 2 + next_random(&seed) % 40 : 60 + (uint32_t)round % 8 + 64 * ((uint32_t)round % 3)};
        struct recon_volume v = make_volume(n[0], n[1], n[2]);
        uint64_t count = (uint64_t)n[0] * n[1] * n[2];
        struct recon_value p[4] = { { 0 } };
        struct recon_mesh m, r;
        struct mesh_facts f;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1 + round % 3);
        v.rgb = xmalloc(count * 3);
        for (uint64_t i = 0; i < count; i++) {
            /* a few levels, so that the iso value itself, ties of the decider and equal neighbours occur */
            v.tsdf[i] = round % 2 ? (float)((int)(next_random(&seed) % 7) - 3) / 4
                                  : (float)next_random(&seed) / (1 << 23) - 1;
            for (int c = 0; c < 3; c++)
                v.rgb[3 * i + (uint64_t)c] = (uint8_t)next_random(&seed);
        }
        p[MC_ISO].f = round % 4 == 3 ? 0.25 : 0;
        p[MC_INSIDE].i = round % 3 == 1;
        p[MC_PAD].i = 1;
        if (run_mc(&t, cpu, &v, p, &m)) {
            assert_string_equal(t.rule, "empty-result");
            free_volume(&v);
            continue;
        }
        mesh_facts(&m, &f);
        assert_int_equal(f.open + f.repeated + f.bad + f.unused, 0);
        assert_true(f.volume > -1e-6);
        assert_int_equal(run_mc(&t, ref, &v, p, &r), 0);
        assert_int_equal(r.vertices, m.vertices);
        assert_int_equal(r.faces, m.faces);
        assert_memory_equal(r.xyz, m.xyz, m.vertices * 12);
        assert_memory_equal(r.rgb, m.rgb, m.vertices * 3);
        assert_memory_equal(r.index, m.index, m.faces * 12);
        test_slot_free(&t, RECON_MESH, &m);
        test_slot_free(&t, RECON_MESH, &r);
        assert_int_equal(t.live, 0);
        free_volume(&v);
    }
}

static void unobserved_is_left_out(void **state)
{
    uint32_t seed = 99, n = 24;
    struct recon_volume v = make_volume(n, n, n);
    struct recon_value p[4] = { [MC_MIN_WEIGHT] = { .f = 1 } };
    struct recon_mesh m, r, all;
    struct mesh_facts f;
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    golden_sphere(v.tsdf, n);
    v.weight = xmalloc(n * n * n * 4);
    for (uint32_t i = 0; i < n * n * n; i++)
        v.weight[i] = next_random(&seed) % 20 == 0 ? 1 : 2;
    assert_int_equal(run_mc(&t, cpu, &v, p, &m), 0);
    assert_int_equal(run_mc(&t, ref, &v, p, &r), 0);
    p[MC_MIN_WEIGHT].f = -1;
    assert_int_equal(run_mc(&t, cpu, &v, p, &all), 0);
    mesh_facts(&m, &f);
    assert_int_equal(f.repeated + f.bad + f.unused, 0);
    assert_true(f.open > 0 && m.faces < all.faces);
    assert_int_equal(r.vertices, m.vertices);
    assert_int_equal(r.faces, m.faces);
    assert_memory_equal(r.xyz, m.xyz, m.vertices * 12);
    assert_memory_equal(r.index, m.index, m.faces * 12);
    mesh_facts(&all, &f);
    assert_int_equal(f.open, 0);
    test_slot_free(&t, RECON_MESH, &m);
    test_slot_free(&t, RECON_MESH, &r);
    test_slot_free(&t, RECON_MESH, &all);
    free_volume(&v);
}

/* Weights of noise, rows around the ends of words, padding or not, a few samples that are no number. */
static void unobserved_is_the_reference(void **state)
{
    uint32_t seed = 3;

    (void)state;
    for (uint32_t round = 0; round < 20; round++) {
        struct recon_volume v = make_volume(3 + round % 5, 5, 55 + 7 * round);
        struct recon_value p[4] = { [MC_INSIDE] = { .i = round % 2 }, [MC_PAD] = { .i = round % 3 == 0 } };
        uint64_t count = (uint64_t)v.dim[0] * v.dim[1] * v.dim[2];
        struct recon_mesh m, r;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1 + (int)round % 2);
        v.weight = xmalloc(count * 4);
        for (uint64_t i = 0; i < count; i++) {
            v.tsdf[i] = next_random(&seed) % 50 ? (float)((int)(next_random(&seed) % 9) - 4) / 4 : NAN;
            v.weight[i] = (float)(next_random(&seed) % 8 + round % 4);
        }
        p[MC_MIN_WEIGHT].f = round % 4;
        assert_int_equal(run_mc(&t, cpu, &v, p, &m), 0);
        assert_int_equal(run_mc(&t, ref, &v, p, &r), 0);
        assert_int_equal(r.vertices, m.vertices);
        assert_int_equal(r.faces, m.faces);
        assert_memory_equal(r.xyz, m.xyz, m.vertices * 12);
        assert_memory_equal(r.index, m.index, m.faces * 12);
        test_slot_free(&t, RECON_MESH, &m);
        test_slot_free(&t, RECON_MESH, &r);
        assert_int_equal(t.live, 0);
        free_volume(&v);
    }
}

static void odd_samples(void **state)
{
    struct recon_volume v = make_volume(8, 8, 8);
    struct recon_mesh m;
    struct mesh_facts f;
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 1);
    golden_sphere(v.tsdf, 8);
    v.tsdf[3 * 64 + 3 * 8 + 3] = NAN;
    v.tsdf[3 * 64 + 3 * 8 + 4] = -INFINITY;
    v.tsdf[0] = INFINITY;
    assert_int_equal(run_mc(&t, cpu, &v, NULL, &m), 0);
    assert_int_equal(t.warnings, 1);
    assert_non_null(strstr(t.warned, "1 samples are not a number"));
    mesh_facts(&m, &f);
    assert_int_equal(f.open + f.repeated + f.bad, 0);
    test_slot_free(&t, RECON_MESH, &m);
    for (int i = 0; i < 512; i++)
        v.tsdf[i] = 1;
    assert_int_equal(run_mc(&t, cpu, &v, NULL, &m), -1);
    assert_int_equal(t.code, CODE_DATA);
    assert_string_equal(t.rule, "empty-result");
    assert_int_equal(t.live, 0);
    golden_sphere(v.tsdf, 8);
    t.most = 1000; /* memory that is not there */
    assert_int_equal(run_mc(&t, cpu, &v, NULL, &m), -1);
    assert_int_equal(t.code, CODE_MEMORY);
    assert_int_equal(t.live, 0);
    free_volume(&v);
}

/* ---- fusion ---- */

enum { W = 48, H = 36, FRAMES = 7 };
struct made {
    float depth[FRAMES][W * H];
    uint8_t rgb[FRAMES][W * H * 3];
    double pose[FRAMES][16];
    int given;
};

static int made_next(struct recon_frames *self, struct recon_frame *ret)
{
    struct made *m = self->impl;

    if (m->given == FRAMES)
        return 0;
    *ret = (struct recon_frame){ .depth = m->depth[m->given], .color = m->rgb[m->given], .name = "made" };
    memcpy(ret->pose, m->pose[m->given++], sizeof(ret->pose));
    return 1;
}

static void make_frames(struct made *m, struct recon_frames *f)
{
    uint32_t seed = 5;

    m->given = 0;
    for (int i = 0; i < FRAMES; i++) {
        double a = 0.3 * i, c = cos(a), s = sin(a),
               pose[16] = {c, 0, s, 0.1 * i, 0, 1, 0, -0.05 * i, -s, 0, c, -0.2, 0, 0, 0, 1};

        memcpy(m->pose[i], pose, sizeof(pose));
        for (int k = 0; k < W * H; k++) {
            m->depth[i][k] = next_random(&seed) % 9 ? 0.8f + (float)(next_random(&seed) % 1000) / 1000 : 0;
            for (int b = 0; b < 3; b++)
                m->rgb[i][3 * k + b] = (uint8_t)next_random(&seed);
        }
    }
    *f = (struct recon_frames){.camera = {W, H, 40, 42, 23.3, 17.6},
                               .count = FRAMES,
                               .bounds = {-1, 1, -0.8, 0.8, 0, 1.6},
                               .next = made_next,
                               .impl = m};
}

static int run_fuse(struct test_ctx *t, const struct recon_module *m, struct made *made,
                    const struct recon_value *p, struct recon_volume *v)
{
    const struct recon_kernel *k = test_kernel(m, FUSE_NAME);
    struct recon_cost cost = { 0 }, most = { 0 };
    struct recon_frames f;
    int rc;

    make_frames(made, &f);
    *v = (struct recon_volume){ 0 };
    rc = k->bound(&t->ctx, (const void *[]){ &f }, p, &most);
    if (rc == 0)
        rc = k->run(&t->ctx, (const void *[]){ &f, NULL }, p, (void *[]){ v, NULL }, &cost);
    if (rc)
        test_slot_free(t, RECON_VOLUME, v);
    return rc;
}

static void fuse_is_the_reference(void **state)
{
    static const double box[6] = { -0.9, 1.2, -0.7, 0.6, 0.1, 1.75 };
    struct made *made = xmalloc(sizeof(*made));

    (void)state;
    for (int round = 0; round < 6; round++) {
        struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME));
        struct recon_volume a, b;
        struct test_ctx t;
        uint64_t n, seen = 0;

        test_ctx_init(&t, NULL, NULL, 1 + round % 3);
        p[FUSE_VOXEL].f = round == 5 ? 0.0137 : 0.05;
        p[FUSE_COMPAT].i = round & 1;
        p[FUSE_WEIGHT_MAX].f = round == 2 ? 2 : 0;
        if (round >= 3) {
            p[FUSE_BOUNDS].v = box;
            p[FUSE_BOUNDS].n = 6;
        }
        assert_int_equal(run_fuse(&t, cpu, made, p, &a), 0);
        assert_int_equal(run_fuse(&t, ref, made, p, &b), 0);
        assert_memory_equal(a.dim, b.dim, sizeof(a.dim));
        assert_true(a.truncation == p[FUSE_VOXEL].f * (round & 1 ? 5 : 4));
        n = (uint64_t)a.dim[0] * a.dim[1] * a.dim[2];
        for (uint64_t i = 0; i < n; i++) {
            assert_true(a.weight[i] == b.weight[i]);
            assert_true(fabsf(a.tsdf[i] - b.tsdf[i]) < 1e-5f);
            for (uint64_t c = 3 * i; c < 3 * i + 3; c++)
                assert_in_range(a.rgb[c] - b.rgb[c] + 1, 0, 2);
            seen += a.weight[i] > 0;
        }
        assert_true(seen > n / 20);
        test_slot_free(&t, RECON_VOLUME, &a);
        test_slot_free(&t, RECON_VOLUME, &b);
        assert_int_equal(t.live, 0);
        free(p);
    }
    free(made);
}

static void fuse_refuses(void **state)
{
    static const double elsewhere[6] = {50, 51, 50, 51, 50, 51}, empty[6] = {1, 1, 0, 1, 0, 1},
                        huge[6] = {0, 51.3, 0, 81.22, 0, 36.42}, vast[6] = {0, 1e6, 0, 1, 0, 1},
                        endless[6] = {0, 2000, 0, 2000, 0, 20000};
    static const struct {
        const double *bounds;
        uint32_t n;
        int code;
        const char *rule, *text;
    } cases[] = {
        { elsewhere, 6, CODE_DATA, "empty-result", "touch no voxel" },
        { empty, 6, CODE_USAGE, "", "is an empty box" },
        { elsewhere, 5, CODE_USAGE, "", "has 5 numbers" },
        { huge, 6, CODE_DATA, "volume-too-big", "2565 x 4061 x 1821" },
        { vast, 6, CODE_DATA, "volume-too-big", "50000000 samples along x" },
        { endless, 6, CODE_DATA, "volume-too-big", "100000 x 100000 x 1000000" },
    };
    struct made *made = xmalloc(sizeof(*made));

    (void)state;
    for (int device = 0; device < 2; device++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME));
            struct recon_volume v;
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 2);
            p[FUSE_BOUNDS].v = cases[i].bounds;
            p[FUSE_BOUNDS].n = cases[i].n;
            assert_int_equal(run_fuse(&t, device ? ref : cpu, made, p, &v), -1);
            assert_int_equal(t.code, cases[i].code);
            assert_string_equal(t.rule, cases[i].rule);
            assert_non_null(strstr(t.text, cases[i].text));
            assert_int_equal(t.live, 0);
            free(p);
        }
    free(made);
}

/* ---- all ---- */

static void selftests(void **state)
{
    const struct recon_module *modules[] = { cpu, ref };

    (void)state;
    for (size_t m = 0; m < COUNT(modules); m++)
        for (const struct recon_kernel *const *k = modules[m]->kernels; *k; k++) {
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 2);
            assert_int_equal((*k)->abi, RECON_KERNEL_ABI);
            assert_non_null((*k)->bound);
            assert_non_null((*k)->selftest);
            if ((*k)->selftest(&t.ctx))
                fail_msg("%s of %s: %s", (*k)->name, modules[m]->name, t.text);
            assert_int_equal(t.live, 0);
            test_ctx_release(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sphere_counts),
        cmocka_unit_test(noise_is_closed),
        cmocka_unit_test(unobserved_is_left_out),
        cmocka_unit_test(unobserved_is_the_reference),
        cmocka_unit_test(odd_samples),
        cmocka_unit_test(fuse_is_the_reference),
        cmocka_unit_test(fuse_refuses),
        cmocka_unit_test(selftests),
    };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
