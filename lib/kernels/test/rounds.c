/* mesh.simplify by rounds: the same bytes for any number of threads and as the plain reference; its targets; its error beside that of
 * levels. mend.c holds both methods against the invariants. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/mesh_plan.h"
#include "kernels/rounds.h"
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

#define ROUNDS(faces, vertices, error) { { .i = faces }, { .i = vertices }, { .f = error }, { .i = MESH_SIMPLIFY_ROUNDS } }

static void simplify(const struct recon_module *mod, int threads, const struct recon_mesh *m, struct recon_value *p, struct recon_mesh *ret)
{
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, threads);
    assert_int_equal(run_mesh(&t, mod, MESH_SIMPLIFY_NAME, m, p, ret), 0);
}

static void drop(struct recon_mesh *m)
{
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 1);
    test_slot_free(&t, RECON_MESH, m);
}

/* colours that differ, so that their sums are seen */
static void paint(struct recon_mesh *m)
{
    uint32_t seed = 1;

    m->rgb = xmalloc(3 * m->vertices);
    for (uint64_t i = 0; i < 3 * m->vertices; i++)
        m->rgb[i] = (uint8_t)next_random(&seed);
}

static void threads(void **state)
{
    static const int counts[] = { 2, 3, 8 };
    struct recon_mesh m[] = { sphere(96), grid(180, 0.4f) };

    (void)state;
    for (size_t i = 0; i < COUNT(m); i++)
        for (int way = 0; way < 3; way++) {
            struct recon_value p[] = ROUNDS(way == 0 ? 2000 : 0, way == 1 ? 3001 : 0, way == 2 ? 0.05 : 0);
            struct recon_mesh one, more;

            if (!m[i].rgb)
                paint(&m[i]);
            simplify(cpu, 1, &m[i], p, &one);
            assert_true(one.faces < m[i].faces / 2);
            for (size_t k = 0; k < COUNT(counts); k++) {
                simplify(cpu, counts[k], &m[i], p, &more);
                same_mesh(&one, &more);
                drop(&more);
            }
            drop(&one);
        }
    for (size_t i = 0; i < COUNT(m); i++)
        free_mesh(&m[i]);
}

static void plainly(void **state)
{
    struct recon_mesh m[] = { sphere(10), grid(16, 0.3f), grid(13, 0), spindle(60), spindle(23) };
    struct recon_value p[][4] = { ROUNDS(1, 0, 0), ROUNDS(203, 0, 0), ROUNDS(0, 57, 0), ROUNDS(0, 0, 0.05) };

    (void)state;
    for (size_t i = 0; i < COUNT(m); i++) {
        paint(&m[i]);
        for (size_t k = 0; k < COUNT(p); k++) {
            struct recon_mesh a, b;

            simplify(cpu, 2, &m[i], p[k], &a);
            simplify(ref, 1, &m[i], p[k], &b);
            same_mesh(&a, &b);
            drop(&a);
            drop(&b);
        }
        free_mesh(&m[i]);
    }
}

/* a closed mesh comes down to any even number of faces, and no further: the last round takes only what is wanted */
static void exactly(void **state)
{
    struct recon_mesh m = sphere(40), a;

    (void)state;
    for (uint64_t wanted = m.faces - 2; wanted > 20; wanted = wanted * 7 / 8 & ~1ull) {
        struct recon_value p[] = ROUNDS((int64_t)wanted, 0, 0);

        simplify(cpu, 2, &m, p, &a);
        assert_int_equal(a.faces, wanted);
        drop(&a);
    }
    free_mesh(&m);
}

/* the root mean square over the faces of how far their middles are from the golden sphere */
static double off_sphere(const struct recon_mesh *m)
{
    double sum = 0, area = 0;

    for (uint64_t f = 0; f < m->faces; f++) {
        double n[3], x[3] = { 0, 0, 0 }, d, w;

        for (uint64_t i = 0; i < 9; i++)
            x[i % 3] += (double)m->xyz[3 * (uint64_t)m->index[3 * f + i / 3] + i % 3] / 3;
        face_cross(m, f, n);
        d = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) - 0.7;
        w = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        sum += w * d * d;
        area += w;
    }
    return sqrt(sum / area);
}

static void as_good(void **state)
{
    static const int64_t wanted[] = { 5000, 1000, 200 };
    struct recon_mesh m = sphere(64), a, b;

    (void)state;
    for (size_t i = 0; i < COUNT(wanted); i++) {
        struct recon_value p[] = ROUNDS(wanted[i], 0, 0), levels[] = ROUNDS(wanted[i], 0, 0);

        levels[MESH_SIMPLIFY_METHOD].i = MESH_SIMPLIFY_LEVELS;
        simplify(cpu, 2, &m, p, &a);
        simplify(cpu, 2, &m, levels, &b);
        print_message("# to %d faces: %.6f off by rounds, %.6f by levels\n", (int)wanted[i], off_sphere(&a), off_sphere(&b));
        assert_true(off_sphere(&a) < 1.1 * off_sphere(&b));
        drop(&a);
        drop(&b);
    }
    free_mesh(&m);
}

/* a key of a round is below every key of the round before, but where the count wraps */
static void keys(void **state)
{
    (void)state;
    for (uint32_t round = 1; round < 3 * ROUND_WRAP; round++)
        for (uint32_t e = 0; e < 3; e++) {
            assert_true(round % ROUND_WRAP == 0 || round_key(round, UINT32_MAX - 1 - e) < round_key(round - 1, e));
            assert_true(round_key(round, e) != round_key(round, e + 1) && (uint32_t)round_key(round, e) == e);
            assert_true(round_key(round, UINT32_MAX - 1) < UINT64_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(threads), cmocka_unit_test(plainly), cmocka_unit_test(exactly),
                                        cmocka_unit_test(as_good), cmocka_unit_test(keys) };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
