/* mesh.fill_holes against invariants, and what corners of faces that come in have. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "kernels/mesh_plan.h"
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

static void holes(void **state)
{
    uint32_t seed = 3;
    int told = 0;

    (void)state;
    for (int round = 0; round < 40; round++) { /* a sphere with faces taken away, and anything */
        struct recon_mesh m = round < 20 ? sphere(16) : garbage((uint32_t)round), a;
        struct mesh_facts before, after;
        uint64_t k = 0;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        for (uint64_t f = 0; round < 20 && f < m.faces; f++)
            if (next_random(&seed) % (200 / (uint32_t)(round + 1)) || f == 0)
                memmove(m.index + 3 * k++, m.index + 3 * f, 12);
        m.faces = round < 20 ? k : m.faces;
        mesh_facts(&m, &before);
        assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, NULL, &a), 0);
        mesh_facts(&a, &after);
        assert_memory_equal(a.index, m.index, 12 * m.faces);
        assert_true(after.repeated <= before.repeated);
        if (round < 20) { /* what is told closed is closed */
            assert_true(before.open > 0 && after.open < before.open && after.repeated == 0);
            assert_true(t.warnings ? after.open > 0 : after.open == 0);
            told += !t.warnings;
        }
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
        free_mesh(&m);
    }
    assert_true(told > 0);
}

/* a grid's border of n edges: left, by dynamic programming, by shortest diagonals; the closed one has chi 2 */
static void long_hole(void **state)
{
    static const uint32_t sides[] = { 4, 20, 120 };

    (void)state;
    for (size_t i = 0; i < COUNT(sides); i++) {
        struct recon_mesh m = grid(sides[i], 0.3f), a;
        uint32_t border = 4 * (sides[i] - 1);
        struct recon_value p[1] = { { .i = border - 1 } };
        struct mesh_facts f;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, p, &a), 0);
        assert_int_equal(a.faces, m.faces);
        assert_int_equal(t.warnings, 1);
        test_slot_free(&t, RECON_MESH, &a);
        test_ctx_reset(&t);
        p[0].i = border;
        assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, p, &a), 0);
        assert_int_equal(a.faces, m.faces + border - 2);
        mesh_facts(&a, &f);
        assert_int_equal(f.open + f.repeated, 0);
        assert_int_equal(f.euler, 2);
        test_slot_free(&t, RECON_MESH, &a);
        free_mesh(&m);
    }
}

static bool like_one_before(const struct recon_mesh *a, uint64_t faces, uint64_t corner)
{
    for (uint64_t i = 0; i < 3 * faces; i++)
        if (a->index[i] == a->index[corner] && a->uv_index[i] == a->uv_index[corner] && a->normal_index[i] == a->normal_index[corner])
            return true;
    return false;
}

/* what stands at corners: old ones keep theirs, a new one has that of the border's face there; the same by the reference */
static void filled_corners(void **state)
{
    struct recon_mesh m = grid(9, 0.5f), a, b;
    uint32_t seed = 3;
    struct test_ctx t;

    (void)state;
    memmove(m.index + 90, m.index + 102, 12 * (m.faces - 34)); /* holes in the middle and at the rim */
    m.faces -= 4;
    m.uvs = m.corner_normals = 900; /* hardly any twice */
    m.uv = xcalloc(2 * m.uvs, 4);
    m.corner_normal = xcalloc(3 * m.corner_normals, 4);
    m.uv_index = xcalloc(3 * m.faces, 4);
    m.normal_index = xcalloc(3 * m.faces, 4);
    m.joined = xcalloc(m.faces, 1);
    for (uint64_t i = 0; i < 3 * m.faces; i++) {
        m.uv_index[i] = i % 9 ? next_random(&seed) % 900 : RECON_NONE;
        m.normal_index[i] = next_random(&seed) % 900;
        m.joined[i / 3] = i / 3 % 2;
    }
    test_ctx_init(&t, NULL, NULL, 1);
    assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, NULL, &a), 0);
    assert_int_equal(run_mesh(&t, ref, MESH_FILL_NAME, &m, NULL, &b), 0);
    assert_true(a.faces > m.faces && a.faces == b.faces && a.uvs == 900 && a.corner_normals == 900);
    assert_memory_equal(a.uv, m.uv, 8 * m.uvs);
    assert_memory_equal(a.uv_index, m.uv_index, 12 * m.faces);
    assert_memory_equal(a.normal_index, m.normal_index, 12 * m.faces);
    assert_memory_equal(a.joined, m.joined, m.faces);
    for (uint64_t i = 3 * m.faces; i < 3 * a.faces; i++)
        assert_true(like_one_before(&a, m.faces, i) && !a.joined[i / 3]);
    assert_memory_equal(a.uv_index, b.uv_index, 12 * a.faces);
    assert_memory_equal(a.normal_index, b.normal_index, 12 * a.faces);
    test_slot_free(&t, RECON_MESH, &a);
    test_slot_free(&t, RECON_MESH, &b);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(holes), cmocka_unit_test(long_hole), cmocka_unit_test(filled_corners) };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
