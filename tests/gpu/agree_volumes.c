/* The part of agree for volumes: frames of noise fused by every meaning into every layout, meshes and pictures of volumes in blocks of
 * noise. */
#include "config.h"
#include "agree.h"

#include <math.h>
#include <stdlib.h>

/* ---- frames of noise ---- */

enum { W = 61, H = 43, FRAMES = 70 };

struct shots {
    float depth[W * H];
    uint8_t rgb[3 * W * H];
    int n, given;
};

/* Depths with holes, steps, and some beyond what nvblox reaches; every third frame has no colours. */
static int shots_next(struct recon_frames *self, struct recon_frame *ret)
{
    struct shots *s = self->impl;
    uint32_t seed = 11 + 7 * (uint32_t)s->given;
    double a = 0.4 * s->given, c = cos(a), q = sin(a), pose[16] = { c, 0, q, 0.03 * s->given, 0, 1, 0, -0.02 * s->given, -q, 0, c, -0.2, 0, 0, 0, 1 };

    if (s->given == s->n)
        return 0;
    for (int k = 0; k < W * H; k++) {
        float far = k % W > 50 ? 5.5f : k % W > 30 ? 1 : 0;

        s->depth[k] = uniform(&seed) < -0.8f ? 0 : 0.9f + 0.4f * uniform(&seed) + far;
        for (int b = 0; b < 3; b++)
            s->rgb[3 * k + b] = (uint8_t)(128 + 100 * uniform(&seed));
    }
    *ret = (struct recon_frame){ .depth = s->depth, .color = s->given++ % 3 ? s->rgb : NULL, .name = "shot" };
    memcpy(ret->pose, pose, sizeof(pose));
    return 1;
}

static int shots_rewind(struct recon_frames *self)
{
    ((struct shots *)self->impl)->given = 0;
    return 0;
}

/* count: what the source says of itself; above a million frames none is kept, so that they are decoded twice. */
static void fuse_one(struct tally *t, struct recon_value *p, int n, uint64_t count, const double bounds[6], const char *what)
{
    static struct shots s;
    struct recon_frames f = { .camera = { W, H, 40, 42, 29.8, 20.6 }, .count = count, .bounds = { -1, 1, -0.8, 0.8, 0, 2 }, .next = shots_next,
                              .rewind = shots_rewind, .impl = &s };
    char name[160];

    s.n = n;
    p[FUSE_BOUNDS] = (struct recon_value){ .v = bounds, .n = bounds ? 6 : 0 };
    snprintf(name, sizeof(name), "%s, compat %d, layout %d, colour %d, weights %g, %d frames", what, (int)p[FUSE_COMPAT].i, (int)p[FUSE_LAYOUT].i,
             (int)p[FUSE_COLOR].i, p[FUSE_WEIGHT_MAX].f, n);
    agree_one(t, FUSE_NAME, name, (const void *[]){ &f, NULL }, p, 0);
}

static void fuse_all(struct tally *t)
{
    static const double wide[6] = { -3, 3, -2, 2, -1, 8.3 }, away[6] = { 100, 101, 100, 101, 100, 101 };
    struct recon_value *p = agree_params(FUSE_NAME);

    p[FUSE_VOXEL].f = agree_small ? 0.13 : 0.02;
    for (int i = 0; i < 16; i++) {
        p[FUSE_COMPAT].i = i & 3;
        p[FUSE_LAYOUT].i = i & 4 ? FUSE_BLOCKS : FUSE_DENSE;
        p[FUSE_COLOR].i = i < 8;
        p[FUSE_WEIGHT_MAX].f = i & 8 ? 2.5 : 0;
        fuse_one(t, p, 5, 5, i & 1 ? wide : NULL, "noise");
    }
    for (int i = 0; i < 2; i++) { /* more than two batches: kept on the device, or not */
        p[FUSE_COLOR].i = i;
        fuse_one(t, p, FRAMES, i ? 1 << 21 : FRAMES, NULL, i ? "decoded twice" : "kept");
    }
    for (int i = 0; i < 6; i++) {
        p[FUSE_LAYOUT].i = i & 1 ? FUSE_BLOCKS : FUSE_DENSE;
        fuse_one(t, p, i / 2 == 2 ? 32 : i < 2 ? 0 : 3, 3, i / 2 == 1 ? away : NULL, i < 2 ? "no frame" : i < 4 ? "bounds elsewhere" : "one batch");
    }
    free(p);
}

/* ---- volumes in blocks ---- */

static const struct kind {
    uint32_t dim[3], side;
    float beyond;
    int share; /* of 8 places as many have a block */
    bool weights, rgb, nans;
} kinds[] = {
    { { 37, 21, 70 }, 16, 1, 4, true, true, false }, { { 16, 16, 16 }, 16, 1, 8, true, false, false }, { { 33, 50, 17 }, 8, 0, 3, true, true, true },
    { { 65, 30, 40 }, 32, 1, 5, false, true, false }, { { 40, 40, 100 }, 8, -1, 2, true, false, false }, { { 20, 70, 33 }, 16, 0, 2, false, false, true },
    { { 1, 40, 40 }, 16, 1, 6, true, true, false },   { { 31, 32, 2 }, 16, -1, 4, false, true, false }, { { 30, 30, 30 }, 16, 1, 0, true, true, false },
};

static float value_of(const struct kind *k, const uint32_t at[3], uint32_t *seed)
{
    double d = 0;

    for (int a = 0; a < 3; a++)
        d += (at[a] - k->dim[a] / 2.0) * (at[a] - k->dim[a] / 2.0);
    if (k->nans && next_random(seed) % 50 == 0)
        return NAN;
    return next_random(seed) % 4 ? (float)(sqrt(d) / 8 - 1) : (float)(next_random(seed) % 5) / 2 - 1; /* a ball, and few levels that tie */
}

static struct recon_volume blocks_of(const struct kind *k, uint32_t seed)
{
    struct recon_volume v = { .dim = { k->dim[0], k->dim[1], k->dim[2] }, .origin = { -1, 0.5, 2 }, .voxel = 0.1, .truncation = 0.4, .side = k->side,
                              .beyond = k->beyond };
    uint64_t s = k->side, most = 1;
    uint32_t n[3];

    for (int a = 0; a < 3; a++)
        most *= n[a] = (k->dim[a] + k->side - 1) / k->side;
    v.block = xcalloc(3 * most + 1, 4);
    v.tsdf = xcalloc(most * s * s * s + 1, 4);
    v.weight = k->weights ? xcalloc(most * s * s * s + 1, 4) : NULL;
    v.rgb = k->rgb ? xcalloc(most * s * s * s + 1, 3) : NULL;
    for (uint32_t b = 0; b < most; b++) {
        uint32_t place[3] = { b / n[2] / n[1], b / n[2] % n[1], b % n[2] };

        if ((int)(next_random(&seed) % 8) >= k->share)
            continue;
        memcpy(v.block + 3 * v.blocks, place, 12);
        for (uint64_t i = 0; i < s * s * s; i++) {
            uint64_t to = v.blocks * s * s * s + i;
            uint32_t at[3] = { (uint32_t)(s * place[0] + i / s / s), (uint32_t)(s * place[1] + i / s % s), (uint32_t)(s * place[2] + i % s) };

            v.tsdf[to] = value_of(k, at, &seed);
            if (v.weight)
                v.weight[to] = next_random(&seed) % 6 ? 1 + (float)(next_random(&seed) % 3) : 0;
            for (int c = 0; v.rgb && c < 3; c++)
                v.rgb[3 * to + (uint64_t)c] = (uint8_t)next_random(&seed);
        }
        v.blocks++;
    }
    return v;
}

static void free_volume(struct recon_volume *v)
{
    free(v->block);
    free(v->tsdf);
    free(v->weight);
    free(v->rgb);
}

static void surfaces(struct tally *t)
{
    static const struct {
        double iso, min_weight;
        int inside, pad;
    } ways[] = { { 0, 0, MC_INSIDE_LT, 0 }, { 0, -1, MC_INSIDE_LT, 0 }, { 0.5, -1, MC_INSIDE_GE, 1 }, { 0.25, 1, MC_INSIDE_LT, 1 },
                 { 1.5, -1, MC_INSIDE_LT, 1 }, { -0.5, 0, MC_INSIDE_GE, 1 }, { 9, 0, MC_INSIDE_LT, 0 } };
    struct recon_value *p = agree_params(MC_NAME);

    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t w = 0; w < COUNT(ways); w++) {
            struct recon_volume v;
            char name[60];

            if (agree_small && (i + w) % 3) /* each kind and each way */
                continue;
            v = blocks_of(&kinds[i], 3 + (uint32_t)i);
            p[MC_ISO].f = ways[w].iso;
            p[MC_MIN_WEIGHT].f = ways[w].min_weight;
            p[MC_INSIDE].i = ways[w].inside;
            p[MC_PAD].i = ways[w].pad;
            snprintf(name, sizeof(name), "kind %zu, way %zu", i, w);
            agree_one(t, MC_NAME, name, (const void *[]){ &v, NULL }, p, 0);
            free_volume(&v);
        }
    free(p);
}

static void views(struct tally *t)
{
    struct recon_value *p = agree_params(PREVIEW_NAME);

    p[PREVIEW_WIDTH].i = agree_small ? 24 : 200;
    p[PREVIEW_HEIGHT].i = agree_small ? 18 : 150;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct recon_volume v = blocks_of(&kinds[i], 5 + (uint32_t)i);
        char name[40];

        snprintf(name, sizeof(name), "kind %zu", i);
        agree_one(t, PREVIEW_NAME, name, (const void *[]){ &v, NULL }, p, 0);
        free_volume(&v);
    }
    free(p);
}

/* The plain forms of fusion and of pictures round otherwise: kernels.t and pictures.t hold the CPU's against them. */
int agree_volumes(void)
{
    struct tally fused = { 0 }, meshed = { 0 }, seen = { 0 };
    int failed = 0;

    if (!agree_plain) {
        fuse_all(&fused);
        failed = agree_told(FUSE_NAME, &fused);
    }
    surfaces(&meshed);
    failed += agree_told(MC_NAME, &meshed);
    if (!agree_plain) {
        views(&seen);
        failed += agree_told(PREVIEW_NAME, &seen);
    }
    return failed;
}
