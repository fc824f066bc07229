/* Any volume in blocks: its surface is that of the same volume made dense, byte for byte; and grids of points as such volumes. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/blocks.h"
#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

static struct recon_mesh surface(struct test_ctx *t, const struct recon_module *m, const struct recon_volume *v, const struct recon_value *p)
{
    struct recon_mesh mesh = { 0 };

    if (test_kernel(m, MC_NAME)->run(&t->ctx, (const void *[]){ v, NULL }, p, (void *[]){ &mesh, NULL }, &(struct recon_cost){ 0 }))
        assert_string_equal(t->rule, "empty-result");
    return mesh;
}

/* Blocks here and there with values of a few levels: the surface is that of the same volume made dense, whatever stands in no block. */
static void any_blocks_are_dense(void **state)
{
    uint32_t seed = 21;

    (void)state;
    for (uint32_t round = 0; round < 24; round++) {
        uint32_t side = 8u << round % 3, n = side * side * side;
        struct recon_volume v = { .dim = { 17 + round % 5 * 11, 9 + round % 7 * 9, 30 + round * 5 }, .origin = { 0.5, -1, 2 }, .voxel = 0.25, .truncation = 1,
                                  .beyond = round % 2 ? 1 : 0 }, dense;
        struct recon_value p[] = { [MC_ISO] = { .f = round % 2 ? 0 : 0.5 }, [MC_INSIDE] = { .i = round % 2 ? MC_INSIDE_LT : MC_INSIDE_GE },
                                   [MC_MIN_WEIGHT] = { .f = round % 4 ? 0 : -1 }, [MC_PAD] = { .i = round % 3 == 1 } };
        struct recon_mesh a, b, c;
        struct mesh_facts facts;
        struct blocks g;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1 + (int)round % 3);
        assert_int_equal(blocks_take(&t.ctx, v.dim, side, &g), 0);
        for (uint64_t i = 0; i < (uint64_t)g.n[0] * g.n[1] * g.n[2]; i++)
            g.bits[i >> 6] |= (uint64_t)(uniform(&seed) > -0.4f) << (i & 63);
        blocks_rank(&g);
        assert_int_equal(blocks_list(&t.ctx, &g, &v), 0);
        blocks_release(&t.ctx, &g);
        v.tsdf = t.ctx.host->alloc(&t.ctx, 4 * n * v.blocks);
        v.weight = round % 5 ? t.ctx.host->alloc(&t.ctx, 4 * n * v.blocks) : NULL;
        v.rgb = round % 2 ? t.ctx.host->alloc(&t.ctx, 3 * n * v.blocks) : NULL;
        for (uint64_t i = 0; i < n * v.blocks; i++) {
            v.tsdf[i] = uniform(&seed) > -0.98f ? rintf(3 * uniform(&seed)) / 4 + (round % 2 ? 0 : 0.5f) : NAN;
            if (v.weight)
                v.weight[i] = uniform(&seed) > -0.9f;
            for (uint64_t k = 0; v.rgb && k < 3; k++)
                v.rgb[3 * i + k] = (uint8_t)(100 * uniform(&seed) + 120);
        }
        assert_int_equal(volume_spread(&t.ctx, &v, &dense), 0);
        a = surface(&t, cpu, &v, p);
        b = surface(&t, cpu, &dense, p);
        c = surface(&t, ref, &v, p);
        assert_true(b.faces > 0);
        same_mesh(&a, &b);
        same_mesh(&a, &c);
        mesh_facts(&a, &facts);
        assert_int_equal(facts.repeated + facts.bad + facts.unused, 0);
        if (p[MC_PAD].i && (!v.weight || p[MC_MIN_WEIGHT].f < 0))
            assert_int_equal(facts.open, 0);
        test_slot_free(&t, RECON_MESH, &a);
        test_slot_free(&t, RECON_MESH, &b);
        test_slot_free(&t, RECON_MESH, &c);
        test_slot_free(&t, RECON_VOLUME, &v);
        test_slot_free(&t, RECON_VOLUME, &dense);
        assert_int_equal(t.live, 0);
    }
}

/* ---- points.voxelize ---- */

static int voxelize(struct test_ctx *t, const struct recon_module *m, const struct recon_points *in, struct recon_value *p, int form, struct recon_volume *v,
                    struct recon_points *s)
{
    const struct recon_kernel *k = test_kernel(m, VOXELIZE_NAME);

    p[VOXELIZE_FORM].i = form;
    return k->run(&t->ctx, (const void *[]){ in, NULL }, p, (void *[]){ v, s, NULL }, &(struct recon_cost){ 0 });
}

static void voxels_in_blocks(void **state)
{
    uint32_t seed = 4;

    (void)state;
    for (int round = 0; round < 12; round++) {
        struct recon_points in = { .n = 300, .xyz = xmalloc(3600) }, sparse = { 0 };
        struct recon_value *p = test_params(test_kernel(cpu, VOXELIZE_NAME)), q[MC_PAD + 1] = { [MC_ISO] = { .f = 0.5 }, [MC_INSIDE] = { .i = MC_INSIDE_GE },
                           [MC_MIN_WEIGHT] = { .f = -1 }, [MC_PAD] = { .i = round & 1 } };
        struct recon_volume v = { 0 }, r = { 0 }, dense = { 0 }, spread;
        struct recon_mesh a, b;
        struct recon_cost most = { 0 };
        struct test_ctx t;
        uint64_t n, k = 0;

        test_ctx_init(&t, NULL, NULL, 2);
        for (uint64_t i = 0; i < 3 * in.n; i++)
            in.xyz[i] = (i / 3 % 2 ? 0.8f : -0.8f) + 0.15f * uniform(&seed);
        p[VOXELIZE_MEANING].i = round % 3;
        p[VOXELIZE_RESOLUTION].i = 60;
        p[VOXELIZE_VOXEL].f = round % 3 ? 0.04 : 0;
        assert_int_equal(voxelize(&t, cpu, &in, p, VOXELIZE_DENSE, &dense, NULL), 0);
        p[VOXELIZE_FORM].i = VOXELIZE_BLOCKS;
        assert_int_equal(test_kernel(cpu, VOXELIZE_NAME)->bound(&t.ctx, (const void *[]){ &in, NULL }, p, &most), 0);
        most.host_bytes += t.bytes;
        t.peak = t.bytes;
        assert_int_equal(voxelize(&t, cpu, &in, p, VOXELIZE_BLOCKS, &v, NULL), 0);
        within(&t, VOXELIZE_NAME, &most);
        assert_int_equal(voxelize(&t, ref, &in, p, VOXELIZE_BLOCKS, &r, NULL), 0);
        assert_int_equal(voxelize(&t, cpu, &in, p, VOXELIZE_SPARSE, NULL, &sparse), 0);
        assert_int_equal(volume_spread(&t.ctx, &v, &spread), 0);
        n = (uint64_t)dense.dim[0] * dense.dim[1] * dense.dim[2];
        assert_true(v.side == 16 && v.blocks > 1 && v.blocks * 4096 < n);
        assert_memory_equal(v.dim, dense.dim, 12);
        assert_memory_equal(v.origin, dense.origin, 24);
        assert_memory_equal(spread.tsdf, dense.tsdf, 4 * n);
        assert_memory_equal(spread.weight, dense.weight, 4 * n);
        for (uint64_t i = 0; i < n; i++)
            k += dense.tsdf[i] > 0;
        assert_int_equal(sparse.n, k);
        assert_int_equal(r.blocks, v.blocks);
        assert_memory_equal(r.block, v.block, 12 * v.blocks);
        assert_memory_equal(r.weight, v.weight, 4 * 4096 * v.blocks);
        a = surface(&t, cpu, &v, q);
        b = surface(&t, cpu, &dense, q);
        assert_true(a.faces > 0);
        same_mesh(&a, &b);
        test_slot_free(&t, RECON_MESH, &a);
        test_slot_free(&t, RECON_MESH, &b);
        test_slot_free(&t, RECON_VOLUME, &v);
        test_slot_free(&t, RECON_VOLUME, &r);
        test_slot_free(&t, RECON_VOLUME, &dense);
        test_slot_free(&t, RECON_VOLUME, &spread);
        test_slot_free(&t, RECON_POINTS, &sparse);
        assert_int_equal(t.live, 0);
        free(in.xyz);
        free(p);
    }
}

/* A grid that no memory holds becomes blocks by itself, a small one stays dense. */
static void voxels_that_do_not_fit(void **state)
{
    struct recon_points in = { .n = 2, .xyz = xmalloc(24) };
    struct recon_value *p = test_params(test_kernel(cpu, VOXELIZE_NAME));
    static const float xyz[6] = { 0, 0, 0, 1, 0.5f, 0.25f };
    struct recon_volume v = { 0 };
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    memcpy(in.xyz, xyz, 24);
    p[VOXELIZE_RESOLUTION].i = 32;
    assert_int_equal(voxelize(&t, cpu, &in, p, VOXELIZE_AUTO, &v, NULL), 0);
    assert_int_equal(v.side, 0);
    test_slot_free(&t, RECON_VOLUME, &v);
    v = (struct recon_volume){ 0 };
    p[VOXELIZE_RESOLUTION].i = 8192; /* 4.4 TB */
    assert_int_equal(voxelize(&t, cpu, &in, p, VOXELIZE_DENSE, &v, NULL), -1);
    assert_string_equal(t.rule, "volume-too-big");
    test_ctx_reset(&t);
    assert_int_equal(voxelize(&t, cpu, &in, p, VOXELIZE_AUTO, &v, NULL), 0);
    assert_int_equal(v.side, 16);
    assert_int_equal(v.blocks, 2);
    assert_int_equal(v.block[3], 8191 / 16);
    assert_int_equal(v.block[4], 4096 / 16); /* 4095.5 goes to the even one */
    assert_int_equal(v.block[5], 2048 / 16); /* 2047.75 */
    test_slot_free(&t, RECON_VOLUME, &v);
    assert_int_equal(t.live, 0);
    free(in.xyz);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(any_blocks_are_dense), cmocka_unit_test(voxels_in_blocks),
                                        cmocka_unit_test(voxels_that_do_not_fit) };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
