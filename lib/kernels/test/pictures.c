/* Scenes and previews against the plain references, and a scene's surface against the scene. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "base/test/scratch.h"
#include "kernels/plan.h"
#include "kernels/scene.h"
#include "kernels/test/ctx.h"

static const struct recon_module *cpu, *ref;

static int open_scene(struct test_ctx *t, const struct recon_module *m, const struct recon_value *p,
                      struct recon_frames *f)
{
    struct recon_cost cost = { 0 };

    *f = (struct recon_frames){ .count = 0 };
    return test_kernel(m, SCENE_NAME)->run(&t->ctx, NULL, p, (void *[]){ f, NULL }, &cost);
}

/* Culled tiles against every shape: other steps of the same ray, so the same surface within the marcher's
 * tolerance but for rays that graze an edge. */
static void scenes_are_the_reference(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        struct recon_value *p = test_params(test_kernel(cpu, SCENE_NAME));
        struct recon_frames a, b;
        struct recon_frame fa, fb;
        struct test_ctx t;
        int shown = 0, off = 0, holes = 0;

        test_ctx_init(&t, NULL, NULL, 2);
        p[SCENE_SCENE].i = which;
        p[SCENE_FRAMES].i = 3;
        p[SCENE_WIDTH].i = 100;
        p[SCENE_HEIGHT].i = 75;
        p[SCENE_NOISE].f = which & 1;
        assert_int_equal(open_scene(&t, cpu, p, &a), 0);
        assert_int_equal(open_scene(&t, ref, p, &b), 0);
        while (a.next(&a, &fa) == 1) {
            assert_int_equal(b.next(&b, &fb), 1);
            assert_string_equal(fa.name, fb.name);
            assert_memory_equal(fa.pose, fb.pose, sizeof(fa.pose));
            for (int i = 0; i < 7500; i++) {
                shown += fa.depth[i] > 0;
                holes += fa.depth[i] == 0;
                off += !(fabsf(fa.depth[i] - fb.depth[i]) < 2.5e-3f);
            }
        }
        assert_int_equal(b.next(&b, &fb), 0);
        assert_true(off < shown / 100);
        assert_true(shown > 3 * 7500 * 9 / 10);
        if (which & 1)
            assert_true(holes > 20);
        assert_int_equal(a.rewind(&a), 0);
        assert_int_equal(a.next(&a, &fa), 1);
        assert_string_equal(fa.name, "frame-000000");
        test_slot_free(&t, RECON_FRAMES, &a);
        test_slot_free(&t, RECON_FRAMES, &b);
        assert_int_equal(t.live, 0);
        free(p);
    }
}

/* a scene without noise, fused: the surface is where the scene says, to a fraction of a voxel */
static void scene_to_surface(void **state)
{
    struct recon_value *sp = test_params(test_kernel(cpu, SCENE_NAME)),
                       *fp = test_params(test_kernel(cpu, FUSE_NAME)), *mp = test_params(test_kernel(cpu, MC_NAME));
    struct scene *s = xmalloc(sizeof(*s));
    struct recon_frames frames;
    struct recon_volume v = { .dim = { 0 } };
    struct recon_mesh m = { 0 };
    struct recon_cost cost = { 0 };
    struct test_ctx t;
    double sum = 0;
    int prim;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    sp[SCENE_FRAMES].i = 12;
    sp[SCENE_WIDTH].i = 320;
    sp[SCENE_HEIGHT].i = 240;
    sp[SCENE_NOISE].f = 0;
    fp[FUSE_VOXEL].f = 0.05;
    assert_int_equal(open_scene(&t, cpu, sp, &frames), 0);
    assert_int_equal(test_kernel(cpu, FUSE_NAME)
                         ->run(&t.ctx, (const void *[]){&frames, NULL}, fp, (void *[]){&v, NULL}, &cost),
                     0);
    assert_int_equal(test_kernel(cpu, MC_NAME)->run(&t.ctx, (const void *[]){ &v, NULL }, mp, (void *[]){ &m, NULL }, &cost), 0);
    scene_make(SCENE_ROOM, 1, s);
    for (uint64_t i = 0; i < m.vertices; i++)
        sum +=
            fabsf(scene_distance(s, NULL, s->n, v3(m.xyz[3 * i], m.xyz[3 * i + 1], m.xyz[3 * i + 2]), &prim));
    assert_true(m.vertices > 5000);
    assert_true(sum / (double)m.vertices < 0.01); /* a fifth of a voxel */
    assert_non_null(m.rgb);
    test_slot_free(&t, RECON_FRAMES, &frames);
    test_slot_free(&t, RECON_VOLUME, &v);
    test_slot_free(&t, RECON_MESH, &m);
    free(s);
    free(sp);
    free(fp);
    free(mp);
}

static void preview_of(struct test_ctx *t, const struct recon_module *m, const struct recon_volume *v,
                       const struct recon_value *p, struct recon_image *image)
{
    struct recon_cost cost = { 0 };

    *image = (struct recon_image){ .width = 0 };
    assert_int_equal(test_kernel(m, PREVIEW_NAME)
                         ->run(&t->ctx, (const void *[]){v, NULL}, p, (void *[]){image, NULL}, &cost),
                     0);
}

static void previews_are_the_reference(void **state)
{
    struct recon_value *p = test_params(test_kernel(cpu, PREVIEW_NAME));
    struct recon_volume v = { .dim = { 40, 40, 40 }, .origin = { -1, 2, 0.5 }, .voxel = 2.0 / 39, .truncation = 1.0 / 8,
                              .tsdf = xmalloc(64000 * sizeof(float)) };
    struct recon_image a, b;
    struct recon_cost cost = { 0 };
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, scratch, 2);
    golden_sphere(v.tsdf, 40);
    for (int i = 0; i < 64000; i++) /* truncated, so that there are blocks to skip */
        v.tsdf[i] = v.tsdf[i] * 8 > 1 ? 1 : v.tsdf[i] * 8 < -1 ? -1 : v.tsdf[i] * 8;
    p[PREVIEW_WIDTH].i = 90;
    p[PREVIEW_HEIGHT].i = 70;
    p[PREVIEW_SAMPLES].i = 1;
    for (int view = 0; view < 7; view++) {
        int off = 0;

        p[PREVIEW_VIEW].i = view;
        p[PREVIEW_UP].i = view % 4;
        preview_of(&t, cpu, &v, p, &a);
        preview_of(&t, ref, &v, p, &b);
        for (int i = 0; i < 90 * 70 * 3; i++)
            off += abs(a.pixels[i] - b.pixels[i]) > 3;
        assert_true(off < 90 * 70 * 3 / 50);
        test_slot_free(&t, RECON_IMAGE, &a);
        test_slot_free(&t, RECON_IMAGE, &b);
    }
    assert_int_equal(t.outputs.n, 14);
    assert_int_equal(test_kernel(cpu, PREVIEW_NAME)
                         ->run(&t.ctx, (const void *[]){&v, NULL}, p, (void *[]){NULL, NULL}, &cost),
                     0);
    p[PREVIEW_FILE].s = "../up.png";
    assert_int_equal(test_kernel(cpu, PREVIEW_NAME)
                         ->run(&t.ctx, (const void *[]){&v, NULL}, p, (void *[]){NULL, NULL}, &cost),
                     -1);
    assert_int_equal(t.code, CODE_USAGE);
    assert_int_equal(t.live, 0);
    test_ctx_release(&t);
    free(v.tsdf);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenes_are_the_reference),
        cmocka_unit_test(scene_to_surface),
        cmocka_unit_test(previews_are_the_reference),
    };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
