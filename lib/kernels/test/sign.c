/* mesh.check_sign: parity and winding numbers against each other and the plain references. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/mesh_rows.h"
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

static void signs(void **state)
{
    struct recon_points in = cloud(2000, 5, 0);
    struct recon_mesh m = sphere(24);
    uint64_t k = 0;

    (void)state;
    signs_agree(cpu, ref, &m, &in, in.n);
    for (int i = 0; i < 24 && k < 2000; i++) /* rays through vertices and edges: the sphere's own grid lines */
        for (int j = 0; j < 24 && k < 2000; j++) {
            in.xyz[3 * k] = -0.05f;
            in.xyz[3 * k + 1] = (float)(-1 + 2.0 * i / 23);
            in.xyz[3 * k++ + 2] = (float)(-1 + 2.0 * j / 23);
        }
    in.n = k;
    signs_agree(cpu, ref, &m, &in, in.n);
    free_points(&in);
    free_mesh(&m);
}

/* points on the surface, at its corners, on edges, beside it, and anywhere around */
static struct recon_points around(const struct recon_mesh *m, uint64_t n, uint32_t seed)
{
    struct recon_points p = cloud(n, seed, 0);

    for (uint64_t i = 0; i < n; i++) {
        uint64_t f = next_random(&seed) % m->faces, kind = i % 5;
        double u = kind == 1 ? 0 : (uniform(&seed) + 1) / 2, v = kind == 1 ? 0 : kind == 2 ? 1 - u : (1 - u) * (uniform(&seed) + 1) / 2;

        for (uint64_t k = 0; kind && k < 3; k++) {
            const float *x = m->xyz + k;
            uint32_t *c = m->index + 3 * f;
            double at = (1 - u - v) * (double)x[3 * (uint64_t)c[0]] + u * (double)x[3 * (uint64_t)c[1]] + v * (double)x[3 * (uint64_t)c[2]];

            p.xyz[3 * i + k] = (float)at + (kind == 4 ? 1e-4f * uniform(&seed) : 0);
        }
    }
    return p;
}

static void same_winding(const struct recon_mesh *m, const struct recon_points *in)
{
    struct recon_points a, b;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    sign_of(cpu, m, in, CHECK_SIGN_WINDING, &a, &t);
    sign_of(ref, m, in, CHECK_SIGN_WINDING, &b, &t);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.xyz, b.xyz, 12 * a.n);
    test_slot_free(&t, RECON_POINTS, &a);
    test_slot_free(&t, RECON_POINTS, &b);
    assert_int_equal(t.live, 0);
}

/* from afar by dipoles or face by face: the same answer, also where the sum is 1/2 (on a surface, in the disc that closes half a
 * sphere) and far from the origin; a mesh without faces has no inside */
static void windings(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 24; round++) {
        struct recon_mesh m = round % 4 == 3 ? garbage(round) : sphere(20);
        struct recon_points in;
        uint64_t k = 0;

        for (uint64_t f = 0; round % 4 == 1 && f < m.faces; f++) /* half of it */
            if (m.xyz[3 * m.index[3 * f] + 2] < 0 && m.xyz[3 * m.index[3 * f + 1] + 2] < 0 && m.xyz[3 * m.index[3 * f + 2] + 2] < 0)
                memmove(m.index + 3 * k++, m.index + 3 * f, 12);
        for (uint64_t f = 0; round % 4 == 2 && f < m.faces; f++) /* full of holes */
            if (f % 3)
                memmove(m.index + 3 * k++, m.index + 3 * f, 12);
        m.faces = k ? k : m.faces;
        in = around(&m, 400, round);
        for (uint64_t i = 0; round % 4 == 1 && i < in.n; i += 3) /* where it was cut */
            in.xyz[3 * i + 2] = -0.05f + 0.02f * in.xyz[3 * i + 2];
        for (uint64_t i = 0; round >= 12 && i < 3 * m.vertices; i++)
            m.xyz[i] += 4096;
        for (uint64_t i = 0; round >= 12 && i < 3 * in.n; i++)
            in.xyz[i] += 4096;
        same_winding(&m, &in);
        m.faces = round % 8 ? m.faces : 0;
        same_winding(&m, &in);
        free_points(&in);
        free_mesh(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(signs), cmocka_unit_test(windings) };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
