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

uint64_t fuse_frame_bytes(uint64_t width, uint64_t height, bool copy, bool color)
{
    return (width * height * (!copy ? 0 : color ? 7 : 4) + tiles_of(width, height, NULL) * 8 + 63) / 64 * 64;
}

void fuse_frame_place(struct fuse_frame *f, void *memory, uint32_t width, uint32_t height, bool copy, bool color)
{
    float *at = memory;

    f->own_depth = copy ? at : NULL;
    at += copy ? (uint64_t)width * height : 0;
    tiles_of(width, height, &f->tiles);
    for (int i = 0; i < f->tiles.levels; i++) {
        uint64_t n = (uint64_t)f->tiles.width[i] * f->tiles.height[i];

        f->tiles.least[i] = at;
        f->tiles.most[i] = at + n;
        at += 2 * n;
    }
    f->own_color = copy && color ? (uint8_t *)at : NULL;
}

enum { RUN = 16 * FUSE_TILE };

/* Columns of a run of pixels, row after row: the least and the most depth, and how many have none. */
struct columns {
    float low[RUN], high[RUN];
    int32_t holes[RUN];
};

KERN_HD void add_row(struct columns *c, const float *restrict from, float *restrict copy, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float d = from[i], had = d > 0 ? d : INFINITY, up = d > 0 ? d : 0;

        if (copy)
            copy[i] = d;
        c->holes[i] += d > 0 ? 0 : 1;
        c->low[i] = had < c->low[i] ? had : c->low[i];
        c->high[i] = up > c->high[i] ? up : c->high[i];
    }
}

/* Makes the finest tiles of `rows` rows of pixels; copies them, unless copy is NULL; gives how many have a depth. Columns first,
 * then along the rows. */
KERN_HD uint32_t tile_rows(const float *depth, float *copy, uint32_t width, uint32_t rows, float *least, float *most)
{
    uint32_t n = width * rows;

    for (uint32_t from = 0; from < width; from += RUN) {
        uint32_t run = width - from < RUN ? width - from : RUN;
        struct columns c;

        for (uint32_t i = 0; i < RUN; i++) {
            c.low[i] = INFINITY;
            c.high[i] = 0;
            c.holes[i] = 0;
        }
        for (uint32_t y = 0; y < rows; y++) {
            uint64_t at = (uint64_t)y * width + from;

            if (run == RUN)
                add_row(&c, depth + at, copy ? copy + at : NULL, RUN);
            else
                add_row(&c, depth + at, copy ? copy + at : NULL, run);
        }
        for (uint32_t i = 0; i < run; i += FUSE_TILE) {
            float l = c.low[i], m = c.high[i];
            int32_t holes = c.holes[i];

            for (uint32_t j = 1; j < FUSE_TILE; j++) { /* beyond the width stands what changes nothing */
                l = c.low[i + j] < l ? c.low[i + j] : l;
                m = c.high[i + j] > m ? c.high[i + j] : m;
                holes += c.holes[i + j];
            }
            least[(from + i) / FUSE_TILE] = holes ? -l : l;
            most[(from + i) / FUSE_TILE] = m;
            n -= (uint32_t)holes;
        }
    }
    return n;
}

KERN_CLONES
static uint32_t tile_copied(const float *depth, float *copy, uint32_t width, uint32_t rows, float *least, float *most)
{
    return tile_rows(depth, copy, width, rows, least, most);
}

KERN_CLONES
static uint32_t tile_only(const float *depth, uint32_t width, uint32_t rows, float *least, float *most)
{
    return tile_rows(depth, NULL, width, rows, least, most);
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

void fuse_frame_take(struct fuse_frame *f, const float *depth, const uint8_t *color, uint32_t width, uint32_t height)
{
    struct fuse_tiles *t = &f->tiles;

    f->depths = 0;
    f->height = height;
    f->depth = f->own_depth ? f->own_depth : depth;
    f->color = f->own_color ? f->own_color : color;
    f->has_color = color != NULL;
    for (uint32_t y = 0; y < height; y += FUSE_TILE) {
        uint32_t at = y / FUSE_TILE * t->width[0], rows = height - y < FUSE_TILE ? height - y : FUSE_TILE;
        const float *from = depth + (uint64_t)y * width;
        float *least = &t->least[0][at], *most = &t->most[0][at];

        f->depths += f->own_depth ? tile_copied(from, f->own_depth + (uint64_t)y * width, width, rows, least, most)
                                  : tile_only(from, width, rows, least, most);
    }
    if (color && f->own_color)
        memcpy(f->own_color, color, (size_t)width * height * 3);
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

    return (double)(left < 1 ? 0 : left < most ? left - 1 : most - 1); /* 0: beyond the end */
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

    while (span >> shift > 7 && level + 1 < t->levels) {
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
