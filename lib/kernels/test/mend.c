/* Kernels that mend meshes and make them smaller: mesh.clean, mesh.fill_holes, mesh.simplify against invariants and their plain
 * references. */
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
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

/* the same bits or the same refusal, on anything */
static void references(void **state)
{
    static const char *const names[] = { MESH_CLEAN_NAME, MESH_FILL_NAME };

    (void)state;
    for (uint32_t round = 0; round < 1500; round++)
        for (size_t k = 0; k < COUNT(names); k++) {
            struct recon_mesh m = round < 1480 ? garbage(round) : round < 1490 ? grid(4 + 13 * (round % 10), 0.5f) : sphere(12), a, b;
            struct recon_value *p = test_params(test_kernel(cpu, names[k]));
            uint32_t seed = round;
            struct test_ctx t;
            int rc[2];

            test_ctx_init(&t, NULL, NULL, 1);
            if (round >= 1480) /* holes */
                for (uint64_t f = 0; f < m.faces; f++)
                    if (next_random(&seed) % (3 + round % 30) == 0)
                        memmove(m.index + 3 * f, m.index + 3 * f + 3, 12 * (--m.faces - f));
            for (int i = 0; k == 0 && i <= MESH_CLEAN_SPLIT; i++)
                p[i].i = i == MESH_CLEAN_MIN_FACES || i == MESH_CLEAN_LARGEST ? round / 3 % 4 * (round % 7 == (uint32_t)i % 7) : next_random(&seed) % 4 > 0;
            rc[0] = run_mesh(&t, cpu, names[k], &m, p, &a);
            rc[1] = run_mesh(&t, ref, names[k], &m, p, &b);
            assert_int_equal(rc[0], rc[1]);
            if (rc[0] == 0) {
                same_mesh(&a, &b);
                test_slot_free(&t, RECON_MESH, &a);
                test_slot_free(&t, RECON_MESH, &b);
            }
            assert_int_equal(t.live, 0);
            free_mesh(&m);
            free(p);
        }
}

/* two tetrahedra at a vertex, two discs whose holes meet at one: both are parted or closed */
static void touching(void **state)
{
    struct recon_mesh m = mesh_of(7, 6), a;
    struct mesh_facts f;
    struct test_ctx t;

    (void)state;
    /* cones over three sides without their bases, tips together at 0: a border that meets nothing twice, then one vertex in two */
    memcpy(m.xyz, (float[21]){ 0, 0, 0, 1, 0, 1, 0, 1, 1, -1, -1, 1, 1, 0, -1, 0, 1, -1, -1, -1, -1 }, 84);
    memcpy(m.index, (uint32_t[18]){ 0, 1, 2, 0, 2, 3, 0, 3, 1, 0, 5, 4, 0, 6, 5, 0, 4, 6 }, 72);
    test_ctx_init(&t, NULL, NULL, 1);
    assert_int_equal(run_mesh(&t, cpu, MESH_CLEAN_NAME, &m, NULL, &a), 0);
    assert_int_equal(a.vertices, 8);
    assert_int_equal(a.faces, 6);
    test_slot_free(&t, RECON_MESH, &a);
    assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, NULL, &a), 0);
    mesh_facts(&a, &f);
    assert_int_equal(f.open, 0);
    test_slot_free(&t, RECON_MESH, &a);
    free_mesh(&m);
    /* a grid whose two removed cells share a corner: one border goes through it twice */
    m = grid(8, 0.2f);
    for (uint32_t k = 0, cells[2] = { 2 * 7 + 2, 3 * 7 + 3 }; k < 2; k++)
        for (uint32_t i = 0; i < 6; i++)
            m.index[6 * cells[k] + i] = 0; /* faces that name a vertex three times have no edges */
    assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, NULL, &a), 0);
    assert_int_equal(a.faces, m.faces + 4 + (28 - 2)); /* both cells, and the outer border */
    assert_int_equal(t.warnings, 0);
    test_slot_free(&t, RECON_MESH, &a);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
}

/* the same faces at the same places, joined alike; vertices may be numbered otherwise */
static void same_surface(const struct recon_mesh *a, const struct recon_mesh *b)
{
    uint32_t *to = xmalloc(4 * a->vertices + 4), *back = xmalloc(4 * b->vertices + 4);

    assert_int_equal(a->vertices, b->vertices);
    assert_int_equal(a->faces, b->faces);
    memset(to, 0xff, 4 * a->vertices);
    memset(back, 0xff, 4 * b->vertices);
    for (uint64_t i = 0; i < 3 * a->faces; i++) {
        uint32_t v = a->index[i], w = b->index[i];

        assert_memory_equal(a->xyz + 3 * (uint64_t)v, b->xyz + 3 * (uint64_t)w, 12);
        assert_true((to[v] == UINT32_MAX && back[w] == UINT32_MAX) || (to[v] == w && back[w] == v));
        to[v] = w;
        back[w] = v;
    }
    free(to);
    free(back);
}

static void cleaned(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 600; round++) {
        struct recon_mesh m = garbage(round), a, again;
        struct recon_value *p = test_params(test_kernel(cpu, MESH_CLEAN_NAME));
        struct mesh_facts f;
        struct str text;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        p[MESH_CLEAN_ORIENT].i = round & 1;
        p[MESH_CLEAN_MIN_FACES].i = round % 3;
        if (run_mesh(&t, cpu, MESH_CLEAN_NAME, &m, p, &a)) {
            assert_string_equal(t.rule, "empty-result");
            assert_int_equal(t.live, 0);
        } else {
            mesh_facts(&a, &f);
            assert_int_equal(f.bad + f.unused, 0);
            text = census_text(cpu, scratch, &a);
            assert_non_null(strstr(text.s, "\"degenerate\": 0,\n  \"zero_area\": 0,\n  \"repeated\": 0,"));
            assert_non_null(strstr(text.s, "\"non_manifold\": 0,"));
            assert_non_null(strstr(text.s, "\"split\": 0,"));
            str_release(&text);
            p[MESH_CLEAN_MIN_FACES].i = 0;
            assert_int_equal(run_mesh(&t, cpu, MESH_CLEAN_NAME, &a, p, &again), 0);
            same_surface(&a, &again); /* twice is once */
            test_slot_free(&t, RECON_MESH, &a);
            test_slot_free(&t, RECON_MESH, &again);
            assert_int_equal(t.live, 0);
        }
        free_mesh(&m);
        free(p);
    }
}

/* of three faces at an edge the one whose area is no number goes, wherever it stands; by both forms */
static void cleaned_unsized(void **state)
{
    const struct recon_module *forms[] = { cpu, ref };

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct recon_mesh m = mesh_of(5, 3), a;
        struct recon_value *p = test_params(test_kernel(cpu, MESH_CLEAN_NAME));
        struct test_ctx t;

        memcpy(m.xyz, (float[]){ 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, -2, 0, 0, 0, 3 }, 60);
        m.xyz[3 * (2 + i / 2) + 2] = i & 1 ? INFINITY : NAN;
        memcpy(m.index, (uint32_t[]){ 0, 1, 2, 1, 0, 3, 0, 1, 4 }, 36);
        for (size_t k = 0; k < COUNT(forms); k++) {
            test_ctx_init(&t, NULL, NULL, 1);
            p[MESH_CLEAN_UNUSED].i = p[MESH_CLEAN_SPLIT].i = false;
            assert_int_equal(run_mesh(&t, forms[k], MESH_CLEAN_NAME, &m, p, &a), 0);
            assert_int_equal(a.faces, 2);
            for (uint64_t c = 0; c < 6; c++)
                assert_int_not_equal(a.index[c], 2 + i / 2);
            test_slot_free(&t, RECON_MESH, &a);
        }
        free_mesh(&m);
        free(p);
    }
}

/* places that are no numbers are equal to none; half a million of them take no longer than others */
static void cleaned_nowhere(void **state)
{
    struct recon_mesh m = mesh_of(500000, 1), a;
    struct recon_value *p = test_params(test_kernel(cpu, MESH_CLEAN_NAME));
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 1);
    for (uint64_t i = 0; i < 3 * m.vertices; i++)
        m.xyz[i] = NAN;
    memcpy(m.index, (uint32_t[]){ 0, 7, 9 }, 12);
    p[MESH_CLEAN_UNUSED].i = 0;
    assert_int_equal(run_mesh(&t, cpu, MESH_CLEAN_NAME, &m, p, &a), 0);
    assert_int_equal(a.vertices, m.vertices);
    assert_memory_equal(a.index, m.index, 12);
    test_slot_free(&t, RECON_MESH, &a);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
    free(p);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, 24);
}

/* border edges as pairs of places, sorted */
static float *border_of(const struct recon_mesh *m, uint64_t *n)
{
    float *e = xmalloc(72 * m->faces + 24);

    *n = 0;
    for (uint64_t f = 0; f < m->faces; f++)
        for (uint64_t i = 0; i < 3; i++) {
            uint32_t a = m->index[3 * f + i], b = m->index[3 * f + (i + 1) % 3];
            bool paired = false;

            for (uint64_t g = 0; !paired && g < m->faces; g++)
                for (uint64_t k = 0; k < 3; k++)
                    paired = paired || (m->index[3 * g + k] == b && m->index[3 * g + (k + 1) % 3] == a);
            if (!paired) {
                memcpy(e + 6 * *n, m->xyz + 3 * (uint64_t)a, 12);
                memcpy(e + 6 * *n + 3, m->xyz + 3 * (uint64_t)b, 12);
                ++*n;
            }
        }
    qsort(e, *n, 24, by_bytes);
    return e;
}

/* of the tests of mesh.simplify, each for both methods: the state */
static int64_t methods[] = { MESH_SIMPLIFY_LEVELS, MESH_SIMPLIFY_ROUNDS };

static int64_t method_of(void **state)
{
    return *(int64_t *)*state;
}

static void simplified(void **state)
{
    struct recon_mesh m = grid(24, 0.4f), a;
    struct recon_value p[] = { { .i = 300 }, { .i = 0 }, { .f = 0 }, { .i = method_of(state) } };
    uint64_t n, k;
    float *before, *after;
    struct mesh_facts f, g;
    struct test_ctx t;

    memmove(m.index + 600, m.index + 606, 12 * (m.faces - 202)); /* a hole */
    m.faces -= 2;
    before = border_of(&m, &n);
    assert_int_equal(n, 96);
    test_ctx_init(&t, NULL, NULL, 1);
    assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
    assert_true(a.faces <= 300 && a.faces >= 298 && t.warnings == 0);
    mesh_facts(&m, &f);
    mesh_facts(&a, &g);
    assert_int_equal(g.euler, f.euler);
    assert_int_equal(g.repeated + g.bad + g.unused, 0);
    after = border_of(&a, &k);
    assert_int_equal(k, n);
    assert_memory_equal(before, after, 24 * n);
    test_slot_free(&t, RECON_MESH, &a);
    p[0].i = 1; /* more than the border allows */
    assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
    assert_string_equal(t.warned_rule, "simplify-target-not-reached");
    assert_true(a.faces >= 94);
    free(after);
    after = border_of(&a, &k);
    assert_int_equal(k, n);
    assert_memory_equal(before, after, 24 * n);
    test_slot_free(&t, RECON_MESH, &a);
    free(before);
    free(after);
    free_mesh(&m);
}

/* cpu = ref, on anything and on a few that are longer, to any target and error */
static void simplified_plainly(void **state)
{
    uint64_t gone = 0;

    for (uint32_t round = 0; round < 1000; round++) {
        struct recon_mesh m = round < 990 ? garbage(round) : round < 996 ? grid(5 + round % 5, 0.3f * (float)(round % 3)) : sphere(8), a, b;
        struct recon_value *p = test_params(test_kernel(cpu, MESH_SIMPLIFY_NAME));
        uint32_t seed = round;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1 + (int)round % 3);
        p[MESH_SIMPLIFY_FACES].i = next_random(&seed) % 3 ? 0 : 1 + next_random(&seed) % m.faces;
        p[MESH_SIMPLIFY_VERTICES].i = next_random(&seed) % 3 ? 0 : 1 + next_random(&seed) % m.vertices;
        p[MESH_SIMPLIFY_ERROR].f = next_random(&seed) % 3 ? 0 : 0.01 * (next_random(&seed) % 32);
        p[MESH_SIMPLIFY_METHOD].i = method_of(state);
        if (p[MESH_SIMPLIFY_FACES].i == 0 && p[MESH_SIMPLIFY_VERTICES].i == 0 && p[MESH_SIMPLIFY_ERROR].f <= 0)
            p[MESH_SIMPLIFY_FACES].i = 1;
        for (uint32_t i = 0; round % 4 == 1 && i < 3 * m.vertices; i++) /* no place twice, no two sides alike */
            m.xyz[i] += 0.3f * uniform(&seed);
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        assert_int_equal(run_mesh(&t, ref, MESH_SIMPLIFY_NAME, &m, p, &b), 0);
        same_mesh(&a, &b);
        gone += m.faces - a.faces;
        test_slot_free(&t, RECON_MESH, &a);
        test_slot_free(&t, RECON_MESH, &b);
        assert_int_equal(t.live, 0);
        free_mesh(&m);
        free(p);
    }
    assert_true(gone > 1000);
}

/* how far the vertices are from the golden sphere, at most */
static double off_sphere(const struct recon_mesh *m)
{
    double most = 0;

    for (uint64_t v = 0; v < m->vertices; v++) {
        const float *x = m->xyz + 3 * v;

        most = fmax(most, fabs(sqrt((double)x[0] * x[0] + (double)x[1] * x[1] + (double)x[2] * x[2]) - 0.7));
    }
    return most;
}

/* max_error alone: more of it is fewer faces, none above it, the unit of length is the mesh's */
static void simplified_to_error(void **state)
{
    static const double errors[] = { 1e-5, 1e-4, 1e-3, 1e-2 };
    struct recon_mesh m = sphere(48), a, b;
    uint64_t last = m.faces;

    for (size_t i = 0; i < COUNT(errors); i++) {
        struct recon_value p[] = { { .i = 0 }, { .i = 0 }, { .f = errors[i] }, { .i = method_of(state) } };
        struct mesh_facts f;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        mesh_facts(&a, &f);
        assert_int_equal(f.open + f.repeated, 0);
        assert_int_equal(f.euler, 2);
        assert_int_equal(t.warnings, 0);
        assert_true(a.faces < last);
        assert_true(off_sphere(&a) < 2 * errors[i] + off_sphere(&m));
        last = a.faces;
        for (uint64_t k = 0; k < 3 * m.vertices; k++) /* exact */
            m.xyz[k] *= 1024;
        p[2].f *= 1024;
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &b), 0);
        for (uint64_t k = 0; k < 3 * m.vertices; k++)
            m.xyz[k] /= 1024;
        for (uint64_t k = 0; k < 3 * b.vertices; k++)
            b.xyz[k] /= 1024;
        same_mesh(&a, &b);
        test_slot_free(&t, RECON_MESH, &a);
        test_slot_free(&t, RECON_MESH, &b);
        p[0].i = 4; /* and a target that it does not allow */
        p[2].f = errors[i];
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        assert_int_equal(a.faces, last);
        assert_non_null(strstr(t.warned, "max_error"));
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
    }
    free_mesh(&m);
}

/* where nothing is dearer than anything else faces come out alike: no star of slivers around a vertex */
static void simplified_flat(void **state)
{
    struct recon_mesh m = grid(80, 0), a;
    struct recon_value p[] = { { .i = 4000 }, { .i = 0 }, { .f = 0 }, { .i = method_of(state) } };
    uint32_t *corners, most = 0;
    double area = 0;
    struct mesh_facts f;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 1);
    assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
    assert_int_equal(a.faces, 4000);
    mesh_facts(&a, &f);
    assert_true(fabs(f.area - 79 * 79) < 1e-3);
    corners = xcalloc(a.vertices, sizeof(*corners));
    for (uint64_t i = 0; i < 3 * a.faces; i++)
        most = ++corners[a.index[i]] > most ? corners[a.index[i]] : most;
    assert_true(most <= 14);
    for (uint64_t i = 0; i < a.faces; i++) {
        double n[3];

        face_cross(&a, i, n);
        area = fmax(area, n[2] / 2);
        assert_true(n[2] / 2 > 0.05);
    }
    assert_true(area < 8); /* of 1.6 in the middle */
    free(corners);
    test_slot_free(&t, RECON_MESH, &a);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
}

static void simplified_closed(void **state)
{
    static const int64_t wanted[] = { 9000, 2000, 200, 4, 1 };
    struct recon_mesh m = sphere(64), a;

    for (size_t i = 0; i < COUNT(wanted); i++) {
        struct recon_value p[] = { { .i = wanted[i] }, { .i = 0 }, { .f = 0 }, { .i = method_of(state) } };
        struct mesh_facts f;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        mesh_facts(&a, &f);
        assert_int_equal(f.open + f.repeated + f.bad + f.unused, 0);
        assert_int_equal(f.euler, 2);
        assert_true(a.faces >= 4 && (t.warnings || a.faces <= (uint64_t)wanted[i]));
        if (wanted[i] >= 2000) {
            assert_true(off_sphere(&a) < 0.004);
            assert_true(fabs(f.volume / (4.0 / 3 * M_PI * 0.343) - 1) < 0.01);
        }
        test_slot_free(&t, RECON_MESH, &a);
        p[0].i = 0;
        p[1].i = 500; /* by vertices: closed, so F = 2 (V - 2) */
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        assert_int_equal(a.vertices, 500);
        assert_int_equal(a.faces, 996);
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
    }
    free_mesh(&m);
    for (uint32_t round = 0; round < 400; round++) { /* anything: no worse than it was */
        struct recon_value p[] = { { .i = 2 }, { .i = 0 }, { .f = 0 }, { .i = method_of(state) } };
        struct mesh_facts f, g;
        struct test_ctx t;

        m = garbage(round);
        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        mesh_facts(&m, &f);
        mesh_facts(&a, &g);
        assert_true(g.repeated <= f.repeated);
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
        free_mesh(&m);
    }
}

#define BOTH(f) { #f ", by levels", f, NULL, NULL, &methods[0] }, { #f ", by rounds", f, NULL, NULL, &methods[1] }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references), cmocka_unit_test(touching), cmocka_unit_test(cleaned), cmocka_unit_test(cleaned_unsized), BOTH(simplified), BOTH(simplified_closed), BOTH(simplified_plainly),
        BOTH(simplified_to_error), BOTH(simplified_flat), cmocka_unit_test(cleaned_nowhere),
    };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
