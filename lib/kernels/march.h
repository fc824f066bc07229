/* kernels/march.h - the ray-marcher: steps along a ray by the distance that a field promises, through
 * analytic scenes (exact distances) and TSDF volumes (trilinear, unobserved parts crossed in small steps).
 * C11 and CUDA. */
#ifndef KERNELS_MARCH_H
#define KERNELS_MARCH_H

#include "kernels/blocks.h"
#include "kernels/scene.h"

struct march_field {
    const struct scene *scene; /* or NULL: the volume */
    const uint16_t *list;      /* shapes to look at, NULL: all n */
    int n;
    const float *tsdf, *weight; /* weight NULL: all observed */
    uint32_t dim[3];
    const struct blocks *grid; /* of a volume in blocks, else NULL */
    float beyond;              /* value where there is no block */
    float origin[3], voxel, truncation;
    const uint8_t
        *block;     /* NULL, or a byte for each 8^3 samples: 0 where no surface can be (march_block_size) */
    float eps;      /* a distance below this is a hit */
    float min_step; /* shortest step */
    float max_step; /* longest step, and the step through what is unobserved */
};

KERN_HD struct march_field march_scene(const struct scene *s, const uint16_t *list, int n)
{
    struct march_field f;
    f.scene = s;
    f.list = list;
    f.n = list ? n : s->n;
    f.tsdf = f.weight = 0;
    f.block = 0;
    f.grid = 0;
    f.beyond = 0;
    f.dim[0] = f.dim[1] = f.dim[2] = 0;
    f.origin[0] = f.origin[1] = f.origin[2] = f.voxel = f.truncation = 0;
    f.eps = 2e-4f;
    f.min_step = 1e-4f;
    f.max_step = 1e9f;
    return f;
}
KERN_HD struct march_field march_volume(const struct recon_volume *v)
{
    struct march_field f;
    int i;
    f.scene = 0;
    f.list = 0;
    f.n = 0;
    f.tsdf = v->tsdf;
    f.weight = v->weight;
    f.block = 0;
    f.grid = 0;
    f.beyond = v->beyond;
    for (i = 0; i < 3; i++) {
        f.dim[i] = v->dim[i];
        f.origin[i] = (float)v->origin[i];
    }
    f.voxel = (float)v->voxel;
    f.truncation = (float)v->truncation;
    f.eps = 0;
    f.min_step = 0.3f * f.voxel;
    f.max_step = 0.9f * f.truncation > f.voxel ? 0.9f * f.truncation : f.voxel;
    return f;
}

/* Place of the sample that stands as far on as bits 0 to 2 of i say, along x, y, z, from sample g; BLOCKS_NONE: in no block. */
KERN_HD uint64_t march_place(const struct march_field *f, const float g[3], int i)
{
    uint32_t x = (uint32_t)g[0] + (uint32_t)(i & 1), y = (uint32_t)g[1] + (uint32_t)(i >> 1 & 1), z = (uint32_t)g[2] + (uint32_t)(i >> 2);
    return f->grid ? blocks_sample(f->grid, x, y, z) : ((uint64_t)x * f->dim[1] + y) * f->dim[2] + z;
}

/* Trilinear value of a volume at p in metres of distance; gives 0 where a corner is unobserved or p is
 * outside. */
KERN_HD int march_sample(const struct march_field *f, struct vec3 p, float *ret)
{
    float g[3], w[3], sum = 0;
    int i;

    g[0] = (p.x - f->origin[0]) / f->voxel;
    g[1] = (p.y - f->origin[1]) / f->voxel;
    g[2] = (p.z - f->origin[2]) / f->voxel;
    for (i = 0; i < 3; i++) {
        float b = floorf(g[i]);
        if (!(b >= 0.0f && b < (float)f->dim[i] - 1.0f))
            return 0;
        w[i] = g[i] - b;
        g[i] = b;
    }
    for (i = 0; i < 8; i++) {
        uint64_t q = march_place(f, g, i);
        float k = (i & 1 ? w[0] : 1 - w[0]) * (i & 2 ? w[1] : 1 - w[1]) * (i & 4 ? w[2] : 1 - w[2]);
        if (f->weight && (q == BLOCKS_NONE || !(f->weight[q] > 0.0f)))
            return 0;
        sum += k * (q == BLOCKS_NONE ? f->beyond : f->tsdf[q]);
    }
    *ret = sum * f->truncation;
    return sum == sum;
}
KERN_HD int march_distance(const struct march_field *f, struct vec3 p, float *ret, int *prim)
{
    if (!f->scene)
        return march_sample(f, p, ret);
    *ret = scene_distance(f->scene, f->list, f->n, p, prim);
    return 1;
}
/* Outward unit normal at a hit: gradient of the field. Gives 0 where it is unknown. */
KERN_HD int march_normal(const struct march_field *f, struct vec3 p, int prim, struct vec3 *ret)
{
    float d[6], h = f->voxel;
    int i;

    if (f->scene) {
        *ret = scene_gradient(&f->scene->prim[prim], p);
        return 1;
    }
    for (i = 0; i < 6; i++) {
        float s = i & 1 ? h : -h;
        if (!march_sample(f, v3(p.x + (i < 2 ? s : 0), p.y + (i >> 1 == 1 ? s : 0), p.z + (i >= 4 ? s : 0)),
                          &d[i]) &&
            !march_sample(f, p, &d[i]))
            return 0;
    }
    *ret = v3_unit(v3(d[1] - d[0], d[3] - d[2], d[5] - d[4]));
    return v3_dot(*ret, *ret) > 0.5f;
}

/* The part of a ray inside the volume's box; 0 when it misses. A scene has no box. */
KERN_HD int march_clip(const struct march_field *f, struct vec3 o, struct vec3 d, float *t0, float *t1)
{
    float from[3], dir[3];
    int i;

    if (f->scene)
        return 1;
    from[0] = o.x, from[1] = o.y, from[2] = o.z;
    dir[0] = d.x, dir[1] = d.y, dir[2] = d.z;
    for (i = 0; i < 3; i++) {
        float inv = 1.0f / (fabsf(dir[i]) > 1e-9f ? dir[i] : 1e-9f);
        float a = (f->origin[i] - from[i]) * inv,
              b = (f->origin[i] + f->voxel * (float)(f->dim[i] - 1) - from[i]) * inv;
        *t0 = maxf(*t0, minf(a, b));
        *t1 = minf(*t1, maxf(a, b));
    }
    return *t0 < *t1;
}

/* Blocks along an axis of n samples. Block b covers samples 8 b to 8 b + 8: its byte is set when one of them
 * is observed and below 1. */
KERN_HD uint32_t march_blocks(uint32_t n)
{
    return (n + 7) / 8;
}
/* 0, or how far to go on from p along d (unit) to leave a block where no surface can be. */
KERN_HD float march_skip(const struct march_field *f, struct vec3 p, struct vec3 d)
{
    float g[3], dir[3], least = 1e9f;
    uint32_t b[3];
    int i;

    g[0] = (p.x - f->origin[0]) / f->voxel;
    g[1] = (p.y - f->origin[1]) / f->voxel;
    g[2] = (p.z - f->origin[2]) / f->voxel;
    dir[0] = d.x, dir[1] = d.y, dir[2] = d.z;
    for (i = 0; i < 3; i++) {
        if (!(g[i] >= 0.0f && g[i] < (float)f->dim[i]))
            return 0;
        b[i] = (uint32_t)g[i] / 8;
    }
    if (f->block[((uint64_t)b[0] * march_blocks(f->dim[1]) + b[1]) * march_blocks(f->dim[2]) + b[2]])
        return 0;
    for (i = 0; i < 3; i++) {
        float side = (float)(dir[i] > 0 ? 8 * b[i] + 8 : 8 * b[i]), t = (side - g[i]) / dir[i];
        if (fabsf(dir[i]) > 1e-6f && t < least)
            least = t;
    }
    return (maxf(least, 0.0f) + 0.01f) * f->voxel;
}

/* First surface met from the front on o + t * d (d unit) with t in [t0, t1]: its t, or -1. *prim: the shape
 * of a scene. */
KERN_HD float march_ray(const struct march_field *f, struct vec3 o, struct vec3 d, float t0, float t1,
                        int *prim)
{
    float t = t0, before = 0, tbefore = t0;
    int i, known = 0;

    *prim = -1;
    for (i = 0; i < 4096 && t <= t1; i++) {
        float dist, step;

        if (f->block && (step = march_skip(f, v3_add(o, v3_mul(d, t)), d)) > 0.0f) {
            known = 0;
            t += step;
            continue;
        }
        if (!march_distance(f, v3_add(o, v3_mul(d, t)), &dist, prim)) {
            known = 0;
            t += f->voxel;
            continue;
        }
        if (dist < f->eps || dist <= 0.0f) {
            if (f->scene)
                return t;
            if (known && before > 0.0f) { /* from the front: refine between the two samples */
                float a = tbefore, b = t, da = before, db = dist, m = t, dm;
                int k;
                for (k = 0; k < 4 && da > db; k++) {
                    m = a + (b - a) * da / (da - db);
                    if (!march_sample(f, v3_add(o, v3_mul(d, m)), &dm))
                        break;
                    if (dm > 0) {
                        a = m;
                        da = dm;
                    } else {
                        b = m;
                        db = dm;
                    }
                }
                return m;
            }
            step = -dist;
        } else {
            step = f->scene ? dist : 0.8f * dist;
        }
        known = 1;
        before = dist;
        tbefore = t;
        step = step < f->min_step ? f->min_step : step;
        t += step > f->max_step ? f->max_step : step;
    }
    return -1.0f;
}

#endif
