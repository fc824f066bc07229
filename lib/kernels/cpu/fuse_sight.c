/* What a frame has to say of a block of voxels: the block's corners bound the pixels that its samples fall into and their
 * depths along the axis; the least and the most depth of those pixels come from squares of a few sizes. */
#include "config.h"
#include "kernels/cpu/fuse_cpu.h"

#include <math.h>

/* ---- a frame's copies ---- */

static uint64_t tiles_of(uint64_t width, uint64_t height, struct fuse_tiles *ret)
{
    uint64_t n = 0;
    int level = 0;

    width = (width + FUSE_TILE - 1) / FUSE_TILE;
    height = (height + FUSE_TILE - 1) / FUSE_TILE;
    for (;; level++, width = (width + 1) / 2, height = (height + 1) / 2) {
        n += width * height;
        if (ret) {
            ret->width[level] = (uint32_t)width;
            ret->height[level] = (uint32_t)height;
            ret->levels = level + 1;
        }
        if ((width == 1 && height == 1) || level + 1 == FUSE_LEVELS)
            return n;
    }
}

uint64_t fuse_frame_bytes(uint64_t width, uint64_t height, bool color)
{
    return (width * height * (color ? 7 : 4) + tiles_of(width, height, NULL) * 8 + 63) / 64 * 64;
}

void fuse_frame_place(struct fuse_frame *f, void *memory, uint32_t width, uint32_t height, bool color)
{
    float *at = memory;

    f->depth = at;
    at += (uint64_t)width * height;
    tiles_of(width, height, &f->tiles);
    for (int i = 0; i < f->tiles.levels; i++) {
        uint64_t n = (uint64_t)f->tiles.width[i] * f->tiles.height[i];

        f->tiles.least[i] = at;
        f->tiles.most[i] = at + n;
        at += 2 * n;
    }
    f->color = color ? (uint8_t *)at : NULL;
}

/* Copies `rows` rows of pixels and makes their finest tiles; gives how many have a depth. Columns first, then along the rows. */
KERN_CLONES
static uint32_t tile_rows(const float *depth, float *copy, uint32_t width, uint32_t rows, float *least, float *most)
{
    enum { RUN = 16 * FUSE_TILE };
    uint32_t n = 0;

    for (uint32_t from = 0; from < width; from += RUN) {
        float low[RUN], high[RUN];
        uint32_t run = width - from < RUN ? width - from : RUN;

        for (uint32_t i = 0; i < RUN; i++) {
            low[i] = INFINITY;
            high[i] = 0;
        }
        for (uint32_t y = 0; y < rows; y++)
            for (uint32_t i = 0; i < run; i++) {
                uint64_t at = (uint64_t)y * width + from + i;
                float d = depth[at], had = d > 0 ? d : 0;

                copy[at] = d;
                n += d > 0;
                low[i] = had < low[i] ? had : low[i];
                high[i] = had > high[i] ? had : high[i];
            }
        for (uint32_t i = 0; i < run; i += FUSE_TILE) {
            float l = low[i], m = high[i];

            for (uint32_t j = 1; j < FUSE_TILE; j++) { /* beyond the width stands what changes nothing */
                l = low[i + j] < l ? low[i + j] : l;
                m = high[i + j] > m ? high[i + j] : m;
            }
            least[(from + i) / FUSE_TILE] = l;
            most[(from + i) / FUSE_TILE] = m;
        }
    }
    return n;
}

static void coarser(struct fuse_tiles *t, int level)
{
    uint32_t w = t->width[level], h = t->height[level], from_w = t->width[level - 1], from_h = t->height[level - 1];

    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            float low = INFINITY, high = 0;

            for (uint32_t v = 2 * y; v < 2 * y + 2 && v < from_h; v++)
                for (uint32_t u = 2 * x; u < 2 * x + 2 && u < from_w; u++) {
                    float l = t->least[level - 1][v * from_w + u], m = t->most[level - 1][v * from_w + u];

                    low = l < low ? l : low;
                    high = m > high ? m : high;
                }
            t->least[level][y * w + x] = low;
            t->most[level][y * w + x] = high;
        }
}

void fuse_frame_take(struct fuse_frame *f, const float *depth, uint32_t width, uint32_t height)
{
    struct fuse_tiles *t = &f->tiles;

    f->depths = 0;
    for (uint32_t y = 0; y < height; y += FUSE_TILE) {
        uint32_t at = y / FUSE_TILE * t->width[0], rows = height - y < FUSE_TILE ? height - y : FUSE_TILE;

        f->depths += tile_rows(depth + (uint64_t)y * width, f->depth + (uint64_t)y * width, width, rows, &t->least[0][at], &t->most[0][at]);
    }
    for (int i = 1; i < t->levels; i++)
        coarser(t, i);
    f->farthest = 0;
    for (uint32_t i = 0; i < t->width[t->levels - 1] * t->height[t->levels - 1]; i++)
        f->farthest = fmaxf(f->farthest, t->most[t->levels - 1][i]);
}

/* ---- blocks ---- */

/* Of each block: bounds of depth along the axis and of pixels, a sample at its centre having a whole number. Pixels are
 * bounded where z_low > 0 alone. */
struct reach {
    double z_low[FUSE_BAR], z_high[FUSE_BAR], u_low[FUSE_BAR], u_high[FUSE_BAR], v_low[FUSE_BAR], v_high[FUSE_BAR];
};

static double count_along(const struct fuse_plan *p, const int64_t at[3], int axis, int most)
{
    int64_t left = p->dim[axis] - at[axis];

    return (double)(left < most ? left - 1 : most - 1);
}

KERN_CLONES
static void reach_of(const struct fuse_plan *p, const struct fuse_view *v, const int64_t at[3], struct reach *o)
{
    double nx = count_along(p, at, 0, FUSE_SIDE), ny = count_along(p, at, 1, FUSE_SIDE);

    for (int b = 0; b < FUSE_BAR; b++) {
        o->z_low[b] = o->u_low[b] = o->v_low[b] = INFINITY;
        o->z_high[b] = o->u_high[b] = o->v_high[b] = -INFINITY;
    }
    for (int c = 0; c < 8; c++) {
        double d[3], q[3], step[3];

        d[0] = p->origin[0] + p->voxel * ((double)at[0] + (c & 1 ? nx : 0)) - v->t[0];
        d[1] = p->origin[1] + p->voxel * ((double)at[1] + (c & 2 ? ny : 0)) - v->t[1];
        d[2] = p->origin[2] + p->voxel * ((double)at[2] + (c & 4 ? FUSE_ALONG - 1 : 0)) - v->t[2];
        for (int a = 0; a < 3; a++) {
            q[a] = v->r[3 * a] * d[0] + v->r[3 * a + 1] * d[1] + v->r[3 * a + 2] * d[2];
            step[a] = v->r[3 * a + 2] * p->voxel * FUSE_ALONG;
        }
        for (int b = 0; b < FUSE_BAR; b++) {
            double z = q[2] + b * step[2], s = 1 / z, x = v->fx * (q[0] + b * step[0]) * s, y = v->fy * (q[1] + b * step[1]) * s;

            o->z_low[b] = z < o->z_low[b] ? z : o->z_low[b];
            o->z_high[b] = z > o->z_high[b] ? z : o->z_high[b];
            o->u_low[b] = x < o->u_low[b] ? x : o->u_low[b];
            o->u_high[b] = x > o->u_high[b] ? x : o->u_high[b];
            o->v_low[b] = y < o->v_low[b] ? y : o->v_low[b];
            o->v_high[b] = y > o->v_high[b] ? y : o->v_high[b];
        }
    }
}

/* least and most depth of the pixels u0..u1, v0..v1, or of a few more */
static void depths_in(const struct fuse_tiles *t, const int u[2], const int v[2], float *least, float *most)
{
    int span = u[1] - u[0] > v[1] - v[0] ? u[1] - u[0] : v[1] - v[0], level = 0, shift = 3; /* FUSE_TILE is 1 << 3 */

    while (span >> shift > 1 && level + 1 < t->levels) {
        level++;
        shift++;
    }
    *least = INFINITY;
    *most = 0;
    for (int y = v[0] >> shift; y <= v[1] >> shift; y++)
        for (int x = u[0] >> shift; x <= u[1] >> shift; x++) {
            size_t at = (size_t)y * t->width[level] + (size_t)x;

            *least = t->least[level][at] < *least ? t->least[level][at] : *least;
            *most = t->most[level][at] > *most ? t->most[level][at] : *most;
        }
}

/* first and last pixel between two bounds, cut to the picture; *whole: nothing was cut */
static bool pixels_between(double low, double high, uint32_t size, int ret[2], bool *whole)
{
    const double margin = 0.51; /* half a pixel, and far more than rounding may shift a sample */

    if (!(low - margin < size && high + margin > 0)) /* half a pixel more on each side than the picture has */
        return false;
    *whole = *whole && low - margin > 0 && high + margin < size - 1;
    ret[0] = low - margin > 0 ? (int)(low - margin) : 0;
    ret[1] = high + margin < size - 1 ? (int)(high + margin) + 1 : (int)size - 1;
    return true;
}

static void sight_of(const struct fuse_plan *p, const struct fuse_frame *f, const struct reach *r, int b, struct fuse_sight *o)
{
    const struct fuse_view *v = &f->v;
    double slack = 1e-6 * (1 + fabs(r->z_high[b])); /* metres: far more than rounding */
    bool whole = true;
    float least, most;

    *o = (struct fuse_sight){ FUSE_NOTHING, { 0, -1 }, { 0, -1 } };
    if (r->z_high[b] <= 0 || r->z_low[b] > v->zmax + slack)
        return;
    if (r->z_low[b] <= 1e-3) { /* a corner stands behind the camera or too near to it: pixels are not bounded */
        o->what = FUSE_LOOK;
        return;
    }
    if (!pixels_between(r->u_low[b] + v->cx, r->u_high[b] + v->cx, v->width, o->u, &whole) ||
        !pixels_between(r->v_low[b] + v->cy, r->v_high[b] + v->cy, v->height, o->v, &whole))
        return;
    depths_in(&f->tiles, o->u, o->v, &least, &most);
    if (!(most > 0) || r->z_low[b] > most + p->truncation + slack)
        return;
    o->what = whole && least > 0 && least - r->z_high[b] > p->truncation + slack ? FUSE_FREE : FUSE_LOOK;
}

void fuse_sights(const struct fuse_plan *p, const struct fuse_frame *f, const int64_t at[3], int n, struct fuse_sight sight[FUSE_BAR])
{
    struct reach r;

    reach_of(p, &f->v, at, &r);
    for (int b = 0; b < n; b++)
        sight_of(p, f, &r, b, &sight[b]);
}
