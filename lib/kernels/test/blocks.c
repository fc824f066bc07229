/* Volumes in blocks against dense ones: the samples that are held are the dense volume's bit for bit, those that are not are 1, and
 * what is made of them is the same byte for byte. What compat means, by formula. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include "kernels/blocks.h"
#include "kernels/plan.h"
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;

/* ---- frames ---- */

enum { W = 48, H = 36, FRAMES = 5 };

struct shots {
    float depth[FRAMES][W * H];
    uint8_t rgb[FRAMES][3 * W * H];
    double pose[FRAMES][16];
    int n, given, rewinds;
};

static int shots_next(struct recon_frames *self, struct recon_frame *ret)
{
    struct shots *s = self->impl;

    if (s->given == s->n)
        return 0;
    *ret = (struct recon_frame){ .depth = s->depth[s->given], .color = s->rgb[s->given], .name = "shot" };
    memcpy(ret->pose, s->pose[s->given++], sizeof(ret->pose));
    return 1;
}

static int shots_rewind(struct recon_frames *self)
{
    struct shots *s = self->impl;

    s->given = 0;
    s->rewinds++;
    return 0;
}

/* Depths of noise with holes, so that each pixel stands for itself. */
static struct shots *noise(struct recon_frames *f)
{
    struct shots *s = xcalloc(1, sizeof(*s));
    uint32_t seed = 11;

    s->n = FRAMES;
    for (int i = 0; i < FRAMES; i++) {
        double a = 0.4 * i, c = cos(a), q = sin(a), pose[16] = { c, 0, q, 0.1 * i, 0, 1, 0, -0.05 * i, -q, 0, c, -0.2, 0, 0, 0, 1 };

        memcpy(s->pose[i], pose, sizeof(pose));
        for (int k = 0; k < W * H; k++) {
            s->depth[i][k] = uniform(&seed) < -0.8f ? 0 : 0.9f + 0.4f * uniform(&seed) + (k % W > 30 ? 1 : 0);
            for (int b = 0; b < 3; b++)
                s->rgb[i][3 * k + b] = (uint8_t)(128 + 100 * uniform(&seed));
        }
    }
    *f = (struct recon_frames){ .camera = { W, H, 40, 42, 23.3, 17.6 }, .count = FRAMES, .bounds = { -1, 1, -0.8, 0.8, 0, 2 },
                                .next = shots_next, .rewind = shots_rewind, .impl = s };
    return s;
}

static void scene(struct test_ctx *t, struct recon_frames *f)
{
    struct recon_value *p = test_params(test_kernel(cpu, SCENE_NAME));

    p[SCENE_FRAMES].i = 20;
    p[SCENE_WIDTH].i = 160;
    p[SCENE_HEIGHT].i = 120;
    *f = (struct recon_frames){ .count = 0 };
    assert_int_equal(test_kernel(cpu, SCENE_NAME)->run(&t->ctx, NULL, p, (void *[]){ f, NULL }, &(struct recon_cost){ 0 }), 0);
    free(p);
}

static struct recon_volume fuse(struct test_ctx *t, const struct recon_module *m, struct recon_frames *f, const struct recon_value *p, int layout)
{
    const struct recon_kernel *k = test_kernel(m, FUSE_NAME);
    struct recon_value q[FUSE_LAYOUT + 1];
    struct recon_volume v = { .side = 0 };
    struct recon_cost cost = { 0 };

    memcpy(q, p, sizeof(q));
    q[FUSE_LAYOUT].i = layout;
    assert_int_equal(f->rewind(f), 0);
    if (k->run(&t->ctx, (const void *[]){ f, NULL }, q, (void *[]){ &v, NULL }, &cost))
        fail_msg("fusing: %s", t->text);
    return v;
}

static struct recon_mesh surface(struct test_ctx *t, const struct recon_module *m, const struct recon_volume *v, const struct recon_value *p)
{
    struct recon_mesh mesh = { 0 };

    if (test_kernel(m, MC_NAME)->run(&t->ctx, (const void *[]){ v, NULL }, p, (void *[]){ &mesh, NULL }, &(struct recon_cost){ 0 }))
        assert_string_equal(t->rule, "empty-result");
    return mesh;
}

static void same_bytes(const struct recon_mesh *a, const struct recon_mesh *b)
{
    assert_int_equal(a->faces, b->faces);
    if (a->faces)
        same_mesh(a, b);
}

/* ---- fusion ---- */

/* Gives how many samples of the dense volume stand in no block. */
static uint64_t holds(struct test_ctx *t, const struct recon_volume *v, const struct recon_volume *dense, bool exact)
{
    uint64_t n = (uint64_t)dense->dim[0] * dense->dim[1] * dense->dim[2], out = 0;
    struct blocks g;

    assert_int_equal(blocks_of_volume(&t->ctx, v, &g), 0);
    assert_memory_equal(v->dim, dense->dim, sizeof(v->dim));
    assert_memory_equal(v->origin, dense->origin, sizeof(v->origin));
    for (uint64_t i = 0; i < n; i++) {
        uint32_t z = (uint32_t)(i % dense->dim[2]), y = (uint32_t)(i / dense->dim[2] % dense->dim[1]), x = (uint32_t)(i / dense->dim[2] / dense->dim[1]);
        uint64_t at = blocks_sample(&g, x, y, z);

        out += at == BLOCKS_NONE;
        if (at == BLOCKS_NONE) {
            assert_true(exact ? dense->tsdf[i] == 1 : dense->tsdf[i] > 0.999999f);
            continue;
        }
        assert_true(v->tsdf[at] == dense->tsdf[i] && v->weight[at] == dense->weight[i]);
        for (uint64_t c = 0; dense->rgb && c < 3; c++)
            assert_int_equal(v->rgb[3 * at + c], dense->rgb[3 * i + c]);
    }
    for (uint64_t b = 0; b < v->blocks; b++) /* beyond the volume there is nothing */
        for (uint32_t i = 0; i < 4096; i++)
            if (v->block[3 * b] * 16 + i / 256 >= v->dim[0] || v->block[3 * b + 1] * 16 + i / 16 % 16 >= v->dim[1] || v->block[3 * b + 2] * 16 + i % 16 >= v->dim[2])
                assert_true(v->tsdf[4096 * b + i] == 1 && v->weight[4096 * b + i] == 0);
    blocks_release(&t->ctx, &g);
    return out;
}

static void same_surface(struct test_ctx *t, const struct recon_volume *v, const struct recon_volume *dense)
{
    static const struct recon_value ways[][MC_PAD + 1] = {
        { [MC_MIN_WEIGHT] = { .f = 0 } },
        { [MC_MIN_WEIGHT] = { .f = 2 }, [MC_PAD] = { .i = 1 } },
        { [MC_MIN_WEIGHT] = { .f = -1 }, [MC_PAD] = { .i = 1 } },
        { [MC_MIN_WEIGHT] = { .f = -1 }, [MC_ISO] = { .f = 0.3 } },
    };

    for (size_t i = 0; i < COUNT(ways); i++) {
        struct recon_mesh a = surface(t, cpu, v, ways[i]), b = surface(t, cpu, dense, ways[i]);

        assert_true(i || b.faces > 100);
        same_bytes(&a, &b);
        test_slot_free(t, RECON_MESH, &a);
        test_slot_free(t, RECON_MESH, &b);
    }
}

static void blocks_are_dense(void **state)
{
    static const double box[6] = { -0.93, 1.2, -0.7, 0.6, 0.1, 1.75 };

    (void)state;
    for (int round = 0; round < 12; round++) {
        struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME));
        int compat = round % 4, threads = 1 + round % 3;
        struct recon_frames f;
        struct shots *s = NULL;
        struct recon_volume dense, v, again;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, threads);
        if (round < 8)
            s = noise(&f);
        else
            scene(&t, &f);
        p[FUSE_VOXEL].f = round < 4 ? 0.019 : 0.04; /* pixels are farther apart than samples at first */
        p[FUSE_COMPAT].i = compat;
        p[FUSE_COLOR].i = round % 2;
        p[FUSE_TRUNCATION].f = round < 4 ? 3 : 0;
        if (round < 8) {
            p[FUSE_BOUNDS].v = box;
            p[FUSE_BOUNDS].n = 6;
        }
        dense = fuse(&t, cpu, &f, p, FUSE_DENSE);
        v = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
        assert_int_equal(v.side, 16);
        if (round >= 8)
            assert_true(holds(&t, &v, &dense, compat != FUSE_COMPAT_NVBLOX) > 0);
        else
            holds(&t, &v, &dense, compat != FUSE_COMPAT_NVBLOX);
        same_surface(&t, &v, &dense);
        t.ctx.threads = 1 + threads % 3;
        f.count = 1 << 21; /* too many to stay in memory: decoded twice */
        again = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
        assert_int_equal(again.blocks, v.blocks);
        assert_memory_equal(again.block, v.block, 12 * v.blocks);
        assert_memory_equal(again.tsdf, v.tsdf, 4 * 4096 * v.blocks);
        assert_memory_equal(again.weight, v.weight, 4 * 4096 * v.blocks);
        test_slot_free(&t, RECON_VOLUME, &dense);
        test_slot_free(&t, RECON_VOLUME, &v);
        test_slot_free(&t, RECON_VOLUME, &again);
        if (!s)
            test_slot_free(&t, RECON_FRAMES, &f);
        assert_int_equal(t.live, 0);
        free(s);
        free(p);
    }
}

/* The reference holds the blocks of the definition; the other those and some more. */
static void blocks_are_the_reference(void **state)
{
    (void)state;
    for (int compat = 0; compat < 4; compat++) {
        struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME));
        struct recon_frames f;
        struct shots *s = noise(&f);
        struct recon_volume a, b;
        struct blocks ga, gb;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[FUSE_VOXEL].f = 0.03;
        p[FUSE_TRUNCATION].f = 2;
        p[FUSE_COMPAT].i = compat;
        a = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
        b = fuse(&t, ref, &f, p, FUSE_BLOCKS);
        assert_int_equal(blocks_of_volume(&t.ctx, &a, &ga), 0);
        assert_int_equal(blocks_of_volume(&t.ctx, &b, &gb), 0);
        for (uint64_t w = 0; w < gb.words; w++)
            assert_int_equal(gb.bits[w] & ~ga.bits[w], 0);
        assert_true(b.blocks > 20 && a.blocks <= b.blocks * 3 / 2);
        for (uint64_t i = 0; i < b.blocks; i++) {
            uint64_t at = blocks_find(&ga, b.block[3 * i], b.block[3 * i + 1], b.block[3 * i + 2]);

            for (uint64_t k = 0; k < 4096; k++) {
                assert_true(fabsf(a.weight[4096 * at + k] - b.weight[4096 * i + k]) <= 1e-5f * b.weight[4096 * i + k]);
                assert_true(fabsf(a.tsdf[4096 * at + k] - b.tsdf[4096 * i + k]) < 1e-5f);
                for (uint64_t c = 0; c < 3; c++)
                    assert_in_range(a.rgb[3 * (4096 * at + k) + c] - b.rgb[3 * (4096 * i + k) + c] + 1, 0, 2);
            }
        }
        blocks_release(&t.ctx, &ga);
        blocks_release(&t.ctx, &gb);
        test_slot_free(&t, RECON_VOLUME, &a);
        test_slot_free(&t, RECON_VOLUME, &b);
        assert_int_equal(t.live, 0);
        free(s);
        free(p);
    }
}

/* ---- compat ---- */

struct meaning {
    const char *name;
    int compat;
    double origin[3], voxel, truncation; /* as they must come out for bounds from -0.37 and voxel 0.05 */
};

/* What a sample must hold after n frames of the same picture: tsdf and weight. */
static void by_formula(const struct shots *s, const struct recon_camera *c, const struct meaning *m, const double p[3], int n, double ret[2])
{
    double u = c->fx * p[0] / p[2] + c->cx, v = c->fy * p[1] / p[2] + c->cy, depth, sdf;
    bool nvblox = m->compat == FUSE_COMPAT_NVBLOX;

    ret[0] = 1;
    ret[1] = 0;
    if (nvblox ? !(p[2] > 0 && p[2] <= 7 && u >= 0 && v >= 0 && u < c->width && v < c->height)
               : !(p[2] > 0 && u >= 0 && v >= 0 && u <= c->width - 1.0 && v <= c->height - 1.0))
        return;
    depth = (double)s->depth[0][(int)v * W + (int)u];
    sdf = depth - p[2];
    if (!(depth > 0) || sdf < -m->truncation)
        return;
    for (int i = 0; i < n; i++) {
        double w = nvblox ? 1 / (p[2] * p[2]) : 1, x = nvblox ? sdf : fmin(sdf, m->truncation);

        ret[0] = (ret[0] * ret[1] + x / m->truncation * w) / (ret[1] + w);
        ret[0] = fmin(1, fmax(-1, ret[0]));
        ret[1] = nvblox ? fmin(ret[1] + w, 5) : ret[1] + w;
    }
}

static void meanings(void **state)
{
    static const struct meaning all[] = {
        { "open3d", FUSE_COMPAT_OPEN3D, { -0.4, -0.4, 0.25 }, 0.05, 0.4 },
        { "nvblox", FUSE_COMPAT_NVBLOX, { -0.375, -0.375, 0.275 }, 0.05, 0.2 },
    };
    static const double box[6] = { -0.37, 0.41, -0.37, 0.41, 0.26, 1.71 }, straight[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(all); i++) {
        const struct meaning *m = &all[i / 2];
        struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME));
        struct recon_frames f;
        struct shots *s = noise(&f);
        struct recon_volume v;
        struct test_ctx t;
        uint64_t seen = 0, at = 0;

        test_ctx_init(&t, NULL, NULL, 2);
        for (int k = 0; k < FRAMES; k++) {
            memcpy(s->depth[k], s->depth[0], sizeof(s->depth[0]));
            memcpy(s->pose[k], straight, sizeof(straight));
        }
        p[FUSE_VOXEL].f = m->voxel;
        p[FUSE_COMPAT].i = m->compat;
        p[FUSE_BOUNDS].v = box;
        p[FUSE_BOUNDS].n = 6;
        v = fuse(&t, i % 2 ? ref : cpu, &f, p, FUSE_DENSE);
        assert_true(fabs(v.truncation - m->truncation) < 1e-12);
        for (int a = 0; a < 3; a++)
            assert_true(fabs(v.origin[a] - m->origin[a]) < 1e-12);
        for (uint32_t x = 0; x < v.dim[0]; x++)
            for (uint32_t y = 0; y < v.dim[1]; y++)
                for (uint32_t z = 0; z < v.dim[2]; z++, at++) {
                    double q[3] = { v.origin[0] + v.voxel * x, v.origin[1] + v.voxel * y, v.origin[2] + v.voxel * z }, want[2];

                    by_formula(s, &f.camera, m, q, FRAMES, want);
                    assert_true(fabs((double)v.weight[at] - want[1]) < 1e-4);
                    assert_true(fabs((double)v.tsdf[at] - want[0]) < 1e-5);
                    seen += v.weight[at] > 0;
                }
        assert_true(seen > at / 3);
        test_slot_free(&t, RECON_VOLUME, &v);
        free(s);
        free(p);
    }
}

/* ---- layout auto; memory ---- */

static void auto_takes_blocks(void **state)
{
    static const double box[6] = { -2, 2.1, -2, 2.1, -2, 2.1 };
    struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME)), *q = test_params(test_kernel(cpu, MC_NAME));
    const struct recon_kernel *k = test_kernel(cpu, FUSE_NAME);
    struct recon_cost most = { 0 };
    struct recon_volume v, b;
    struct recon_frames f;
    struct shots *s = noise(&f);
    struct recon_mesh m;
    struct test_ctx t;
    uint64_t peak;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    p[FUSE_BOUNDS].v = box;
    p[FUSE_BOUNDS].n = 6;
    v = fuse(&t, cpu, &f, p, FUSE_AUTO); /* 147 MB */
    assert_int_equal(v.side, 0);
    test_slot_free(&t, RECON_VOLUME, &v);
    p[FUSE_VOXEL].f = 0.01; /* 1.2 GB */
    p[FUSE_LAYOUT].i = FUSE_AUTO;
    assert_int_equal(f.rewind(&f), 0);
    assert_int_equal(k->bound(&t.ctx, (const void *[]){ &f, NULL }, p, &most), 0);
    t.peak = t.bytes;
    v = fuse(&t, cpu, &f, p, FUSE_AUTO);
    peak = t.peak;
    assert_int_equal(v.side, 16);
    assert_true(v.blocks > 100 && v.blocks < 8000);
    assert_true(peak <= most.host_bytes + 8 * 4096);
    assert_true((double)most.host_bytes < 1.5 * (double)peak);
    b = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
    assert_int_equal(b.blocks, v.blocks);
    assert_memory_equal(b.tsdf, v.tsdf, 4 * 4096 * v.blocks);
    m = surface(&t, cpu, &v, q);
    assert_true(m.faces > 1000);
    test_slot_free(&t, RECON_MESH, &m);
    test_slot_free(&t, RECON_VOLUME, &v);
    test_slot_free(&t, RECON_VOLUME, &b);
    assert_int_equal(t.live, 0);
    free(s);
    free(p);
    free(q);
}

#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed, and so runs into the limit */

/* How much the address space has, and what it may have; 0: as much as it likes. */
static uint64_t space_taken(void)
{
    struct str t = { 0 };
    uint64_t pages;

    assert_int_equal(file_read("/proc/self/statm", 4096, &t, NULL), 0);
    pages = strtoull(t.s, NULL, 10);
    str_release(&t);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_space(uint64_t more)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = more ? space_taken() + more : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

/* Frames stay between the two turns where they may, but not in the place of the volume. */
static void kept_frames_give_way(void **state)
{
    static const double box[6] = { -2, 2.1, -2, 2.1, -2, 2.1 };
    struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME));
    struct recon_volume v, w;
    struct recon_frames f;
    struct recon_cost most = { 0 };
    struct shots *s = noise(&f);
    struct test_ctx t;
    uint64_t need, peak;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    p[FUSE_BOUNDS].v = box;
    p[FUSE_BOUNDS].n = 6;
    p[FUSE_VOXEL].f = 0.01;
    v = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
    assert_int_equal(s->rewinds, 1); /* before it */
    need = v.blocks * 17 * 4096;
    assert_true(need > 50 << 20);
    f.count = (uint32_t)(need / 4 / (W * H * 7)); /* so many are told, a fourth of the volume; with it they do not fit */
    t.peak = t.bytes;
    limit_space(need / 20 * 27);
    w = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
    peak = t.peak;
    assert_int_equal(s->rewinds, 3);
    assert_int_equal(w.blocks, v.blocks);
    assert_memory_equal(w.tsdf, v.tsdf, 4 * 4096 * v.blocks);
    assert_memory_equal(w.rgb, v.rgb, 3 * 4096 * v.blocks);
    test_slot_free(&t, RECON_VOLUME, &w);
    p[FUSE_LAYOUT].i = FUSE_BLOCKS;
    assert_int_equal(f.rewind(&f), 0);
    assert_int_equal(test_kernel(cpu, FUSE_NAME)->bound(&t.ctx, (const void *[]){ &f, NULL }, p, &most), 0);
    assert_true(peak <= t.bytes + most.host_bytes + 8 * 4096);
    limit_space(need / 10 * 9); /* the volume alone is too large */
    assert_int_equal(test_kernel(cpu, FUSE_NAME)->run(&t.ctx, (const void *[]){ &f, NULL }, p, (void *[]){ &w, NULL }, &most), -1);
    assert_string_equal(t.rule, "volume-too-big");
    limit_space(0);
    test_slot_free(&t, RECON_VOLUME, &v);
    assert_int_equal(t.live, 0);
    free(s);
    free(p);
}
#endif

/* ---- pictures ---- */

static void pictures(void **state)
{
    struct recon_value *p = test_params(test_kernel(cpu, FUSE_NAME)), *q = test_params(test_kernel(cpu, PREVIEW_NAME));
    char dir[] = "/tmp/recon-blocks-test.XXXXXX";
    struct recon_volume v, dense;
    struct recon_image a = { 0 }, b = { 0 }, c = { 0 };
    struct recon_frames f;
    struct test_ctx t;
    uint64_t n;

    (void)state;
    assert_non_null(mkdtemp(dir));
    test_ctx_init(&t, NULL, dir, 2);
    scene(&t, &f);
    p[FUSE_VOXEL].f = 0.05;
    q[PREVIEW_WIDTH].i = 80;
    q[PREVIEW_HEIGHT].i = 60;
    dense = fuse(&t, cpu, &f, p, FUSE_DENSE);
    v = fuse(&t, cpu, &f, p, FUSE_BLOCKS);
    assert_int_equal(test_kernel(cpu, PREVIEW_NAME)->run(&t.ctx, (const void *[]){ &v, NULL }, q, (void *[]){ &a, NULL }, &(struct recon_cost){ 0 }), 0);
    assert_int_equal(test_kernel(cpu, PREVIEW_NAME)->run(&t.ctx, (const void *[]){ &dense, NULL }, q, (void *[]){ &b, NULL }, &(struct recon_cost){ 0 }), 0);
    assert_int_equal(test_kernel(ref, PREVIEW_NAME)->run(&t.ctx, (const void *[]){ &v, NULL }, q, (void *[]){ &c, NULL }, &(struct recon_cost){ 0 }), 0);
    n = 0;
    for (int i = 0; i < 80 * 60 * 3; i++)
        n += abs(a.pixels[i] - b.pixels[i]) > 3 || abs(a.pixels[i] - c.pixels[i]) > 3;
    assert_true(n < 80 * 60 * 3 / 50); /* free space is crossed in other steps */
    test_slot_free(&t, RECON_IMAGE, &a);
    test_slot_free(&t, RECON_IMAGE, &b);
    test_slot_free(&t, RECON_IMAGE, &c);
    test_slot_free(&t, RECON_VOLUME, &v);
    test_slot_free(&t, RECON_VOLUME, &dense);
    test_slot_free(&t, RECON_FRAMES, &f);
    assert_int_equal(t.live, 0);
    test_ctx_release(&t);
    dir_remove(dir);
    free(p);
    free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_dense), cmocka_unit_test(blocks_are_the_reference), cmocka_unit_test(meanings),
        cmocka_unit_test(auto_takes_blocks), cmocka_unit_test(pictures),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(kept_frames_give_way),
#endif
    };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
