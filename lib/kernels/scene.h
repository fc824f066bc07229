/* kernels/scene.h - analytic scenes: a few dozen shapes with exact distances. World axes are OpenCV's: y
 * points down; metres. The same numbers on every device: randomness is a hash of counters. C11 and CUDA. */
#ifndef KERNELS_SCENE_H
#define KERNELS_SCENE_H

#include "kernels/hd.h"
#include "recon/data.h"

enum scene_kind { PRIM_ROOM, PRIM_BOX, PRIM_SPHERE, PRIM_CYLINDER, PRIM_TORUS, PRIM_CAPSULE };
enum scene_pattern { PATTERN_SOLID, PATTERN_CHECKER, PATTERN_STRIPES, PATTERN_BRICKS, PATTERN_CLOUDS };
#define SCENE_PRIMS 64

struct scene_prim {
    int32_t kind, pattern;
    float at[3];      /* centre */
    float size[3]; /* half extents; sphere: radius; cylinder, capsule: radius, half height; torus: ring, tube
                      radius */
    float turn[2];    /* cos, sin of the turn about the vertical axis */
    float rounding;   /* edges of a box */
    float scale;      /* of the pattern, metres */
    float color[2][3]; /* 0..1 */
    float reach;      /* radius of a sphere around at that holds the shape; 0: no bound (the room) */
};
struct scene {
    struct scene_prim prim[SCENE_PRIMS];
    int32_t n;
    float low[3], high[3]; /* of all shapes */
    float room_color[3][2][3]; /* walls, floor, ceiling of a PRIM_ROOM */
    float lamp[3];
    uint32_t seed;
};

/* ---- counters to numbers ---- */

KERN_HD uint32_t scene_hash(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    uint32_t h = a * 0x9e3779b9u + 0x7f4a7c15u;
    h = (h ^ b) * 0x85ebca6bu;
    h = (h ^ h >> 13 ^ c) * 0xc2b2ae35u;
    h = (h ^ h >> 16 ^ d) * 0x27d4eb2fu;
    h = (h ^ h >> 15) * 0x165667b1u;
    return h ^ h >> 16;
}
KERN_HD float scene_unit(uint32_t h) /* 0 to 1, 24 bits: exact */
{
    return (float)(h >> 8) * (1.0f / 16777216.0f);
}
KERN_HD float
scene_normal(uint32_t h) /* mean 0, deviation 1: sum of four bytes, so no library function is asked */
{
    int sum = (int)((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) - 510;
    return (float)sum * (1.0f / 147.8f);
}

/* ---- distances ---- */

KERN_HD struct vec3 scene_local(const struct scene_prim *s, struct vec3 p)
{
    float x = p.x - s->at[0], z = p.z - s->at[2];
    return v3(x * s->turn[0] + z * s->turn[1], p.y - s->at[1], z * s->turn[0] - x * s->turn[1]);
}
KERN_HD float scene_prim_distance(const struct scene_prim *s, struct vec3 p)
{
    struct vec3 q = scene_local(s, p);
    float ax = fabsf(q.x), ay = fabsf(q.y), az = fabsf(q.z), a, b, c;

    switch (s->kind) {
    case PRIM_ROOM:
        return minf(minf(s->size[0] - ax, s->size[1] - ay), s->size[2] - az);
    case PRIM_BOX:
        a = ax - s->size[0] + s->rounding;
        b = ay - s->size[1] + s->rounding;
        c = az - s->size[2] + s->rounding;
        return minf(maxf(a, maxf(b, c)), 0.0f) - s->rounding +
               sqrtf(maxf(a, 0.0f) * maxf(a, 0.0f) + maxf(b, 0.0f) * maxf(b, 0.0f) +
                     maxf(c, 0.0f) * maxf(c, 0.0f));
    case PRIM_SPHERE:
        return sqrtf(v3_dot(q, q)) - s->size[0];
    case PRIM_CYLINDER:
        a = sqrtf(q.x * q.x + q.z * q.z) - s->size[0];
        b = ay - s->size[1];
        return minf(maxf(a, b), 0.0f) + sqrtf(maxf(a, 0.0f) * maxf(a, 0.0f) + maxf(b, 0.0f) * maxf(b, 0.0f));
    case PRIM_TORUS:
        a = sqrtf(q.x * q.x + q.z * q.z) - s->size[0];
        return sqrtf(a * a + q.y * q.y) - s->size[1];
    default: /* PRIM_CAPSULE */
        b = maxf(ay - s->size[1], 0.0f);
        return sqrtf(q.x * q.x + b * b + q.z * q.z) - s->size[0];
    }
}
/* Least distance of p to the shapes in list (n of them; NULL: all) and which; list serves a tile of rays. */
KERN_HD float scene_distance(const struct scene *s, const uint16_t *list, int n, struct vec3 p, int *ret_prim)
{
    float best = 1e9f;
    int i, which = -1;

    for (i = 0; i < n; i++) {
        int id = list ? list[i] : i;
        float d = scene_prim_distance(&s->prim[id], p);
        if (d < best) {
            best = d;
            which = id;
        }
    }
    *ret_prim = which;
    return best;
}
/* Outward unit normal of one shape at p. */
KERN_HD struct vec3 scene_gradient(const struct scene_prim *s, struct vec3 p)
{
    const float h = 5e-4f;
    float a = scene_prim_distance(s, v3(p.x + h, p.y - h, p.z - h));
    float b = scene_prim_distance(s, v3(p.x - h, p.y - h, p.z + h));
    float c = scene_prim_distance(s, v3(p.x - h, p.y + h, p.z - h));
    float d = scene_prim_distance(s, v3(p.x + h, p.y + h, p.z + h));
    return v3_unit(v3(a - b - c + d, -a - b + c + d, -a + b - c + d));
}

/* ---- colours ---- */

KERN_HD float scene_cloud(struct vec3 p, uint32_t seed) /* trilinear value noise, 0 to 1 */
{
    float fx = floorf(p.x), fy = floorf(p.y), fz = floorf(p.z), sum = 0;
    int i;

    for (i = 0; i < 8; i++) {
        int ix = (int)fx + (i & 1), iy = (int)fy + (i >> 1 & 1), iz = (int)fz + (i >> 2);
        float wx = p.x - fx, wy = p.y - fy, wz = p.z - fz;
        float w = (i & 1 ? wx : 1 - wx) * (i & 2 ? wy : 1 - wy) * (i & 4 ? wz : 1 - wz);
        sum += w * scene_unit(scene_hash(seed, (uint32_t)ix, (uint32_t)iy, (uint32_t)iz));
    }
    return sum;
}
KERN_HD float scene_mix(const struct scene_prim *s, struct vec3 q,
                        uint32_t seed) /* 0: colour 0, 1: colour 1 */
{
    float inv = 1.0f / s->scale, row, u;

    switch (s->pattern) {
    case PATTERN_CHECKER:
        return (float)(((int)floorf(q.x * inv + 1e-3f) + (int)floorf(q.y * inv + 1e-3f) +
                        (int)floorf(q.z * inv + 1e-3f)) &
                       1);
    case PATTERN_STRIPES:
        u = scene_cloud(v3(q.x * inv * 4, q.y * inv * 4, q.z * inv * 0.5f), seed);
        return 0.5f * u + ((int)floorf(q.x * inv + 1e-3f) & 1 ? 0.25f : 0.0f);
    case PATTERN_BRICKS:
        row = floorf(q.y * inv * 2);
        u = (q.x + q.z) * inv + ((int)row & 1 ? 0.5f : 0.0f);
        return (u - floorf(u) < 0.06f || q.y * inv * 2 - row < 0.12f)
                   ? 1.0f
                   : 0.35f * scene_unit(scene_hash(seed, (uint32_t)(int)floorf(u), (uint32_t)(int)row, 7));
    case PATTERN_CLOUDS:
        return 0.6f * scene_cloud(v3_mul(q, inv), seed) + 0.4f * scene_cloud(v3_mul(q, 3 * inv), seed + 1);
    default:
        return 0.0f;
    }
}
/* Walls with a skirting board, a floor of planks or tiles (the shape's pattern), a plain ceiling. */
KERN_HD float scene_room_mix(const struct scene_prim *o, struct vec3 q, uint32_t seed, int *part)
{
    float gx = o->size[0] - fabsf(q.x), gy = o->size[1] - fabsf(q.y), gz = o->size[2] - fabsf(q.z);

    if (gy < gx && gy < gz) {
        *part = q.y > 0 ? 1 : 2;
        return q.y > 0 ? scene_mix(o, v3(q.x, 0, q.z), seed) : 0.0f;
    }
    *part = 0;
    if (q.y > o->size[1] - 0.08f)
        return 1.0f;
    return 0.25f * scene_cloud(v3_mul(q, 2.5f), seed) + 0.2f * scene_cloud(v3_mul(q, 11.0f), seed + 9);
}
/* Colour of shape `prim` at p with outward normal n, lit by the lamp: 0..255 each. */
KERN_HD void scene_shade(const struct scene *s, int prim, struct vec3 p, struct vec3 n, float rgb[3])
{
    const struct scene_prim *o = &s->prim[prim];
    struct vec3 lamp = v3_sub(v3(s->lamp[0], s->lamp[1], s->lamp[2]), p), q = scene_local(o, p);
    float d2 = v3_dot(lamp, lamp), light = maxf(v3_dot(v3_unit(lamp), n), 0.0f), mix;
    uint32_t seed = s->seed * 131u + (uint32_t)prim;
    int c, part = 0;

    mix = o->kind == PRIM_ROOM ? scene_room_mix(o, q, seed, &part) : scene_mix(o, q, seed);
    light = 0.42f + 0.7f * light / (1.0f + 0.08f * d2) - 0.06f * n.y;
    for (c = 0; c < 3; c++) {
        float a = o->kind == PRIM_ROOM ? s->room_color[part][0][c] : o->color[0][c];
        float b = o->kind == PRIM_ROOM ? s->room_color[part][1][c] : o->color[1][c];

        rgb[c] = clampf(255.0f * light * (a + mix * (b - a)), 0.0f, 255.0f);
    }
}

/* ---- the sensor ---- */

/* Depth as a Kinect gives it, in whole millimetres, 0: none. z: true depth (m), cosine: of ray and normal,
 * noise: 1 for a Kinect, 0 exact; frame, pixel: counters. */
KERN_HD uint32_t scene_sense(float z, float cosine, float noise, uint32_t seed, uint32_t frame,
                             uint32_t pixel)
{
    float sigma = 0.0012f + 0.0019f * (z - 0.4f) * (z - 0.4f), d;

    if (noise > 0.0f) {
        float drop = cosine < 0.25f ? (0.25f - cosine) * 4.0f : 0.0f;
        if (scene_unit(scene_hash(seed, frame, pixel, 3)) < drop * minf(noise, 1.0f) + 0.002f)
            return 0;
        z += noise * sigma * scene_normal(scene_hash(seed, frame, pixel, 4));
        if (z < 0.35f)
            return 0;
        d = floorf(351.0f / (noise * z) +
                   0.5f); /* disparity of a 585 px, 75 mm sensor in eighths of a pixel */
        z = d > 0.0f ? 351.0f / (noise * d) : 0.0f;
    }
    return z > 0.0f && z < 65.0f ? (uint32_t)(z * 1000.0f + 0.5f) : 0;
}

/* ---- made on the host: scene.c ---- */

KERN_BEGIN
/* which: SCENE_ROOM ... of rows.h */
void scene_make(int which, uint32_t seed, struct scene *ret);
/* Camera-to-world of view i of n. */
void scene_pose(const struct scene *s, int which, uint64_t i, uint64_t n, double pose[16]);
/* Shapes that a ray of a tile can meet: rays from eye within the cone (axis unit, cosine and sine of its half
 * angle). list has room for SCENE_PRIMS; gives how many. */
int scene_cull(const struct scene *s, struct vec3 eye, struct vec3 axis, float cosine, float sine,
               uint16_t *list);
KERN_END

#endif
