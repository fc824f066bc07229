/* TSDF fusion of a block of voxels with the frames of a batch. The arithmetic is per voxel the definition's, in double, so that
 * a pixel is the one that exact arithmetic gives but for ties; where float leaves one answer only, it is taken. */
#include "config.h"
#include "kernels/cpu/fuse_look.h"

#include <math.h>

KERN_CLONES
static void starts_of(const struct fuse_plan *p, const struct fuse_view *v, const int64_t at[3], struct starts *o)
{
    const double *r = v->r;

    for (int i = 0; i < FUSE_SIDE; i++)
        for (int k = 0; k < FUSE_SIDE; k++) {
            double d[3] = { p->origin[0] + p->voxel * (double)(at[0] + i) - v->t[0],
                            p->origin[1] + p->voxel * (double)(at[1] + k) - v->t[1], p->origin[2] - v->t[2] };

            o->x[FUSE_SIDE * i + k] = r[0] * d[0] + r[1] * d[1] + r[2] * d[2];
            o->y[FUSE_SIDE * i + k] = r[3] * d[0] + r[4] * d[1] + r[5] * d[2];
            o->z[FUSE_SIDE * i + k] = r[6] * d[0] + r[7] * d[1] + r[8] * d[2];
        }
    o->xs = r[2] * p->voxel;
    o->ys = r[5] * p->voxel;
    o->zs = r[8] * p->voxel;
}

/* ---- pixels ---- */

/* Of N samples of a row. */
struct seen {
    int32_t pixel[N], in[N]; /* where it falls, 0 outside the picture; whether it is in the picture */
    double z[N];             /* along the optical axis */
};

/* Pixels of the samples from z = k on. Rounding is half away from zero: above -0.5 that is (int)(u + 0.5). */
KERN_HD void project(const struct fuse_view *v, const struct starts *s, int row, int32_t k, struct seen *o)
{
    double wide = v->width - 0.5, high = v->height - 0.5;

    for (int i = 0; i < N; i++) {
        double at = k + i, zc = s->z[row] + at * s->zs, u = v->fx * (s->x[row] + at * s->xs) / zc + v->cx,
               w = v->fy * (s->y[row] + at * s->ys) / zc + v->cy;
        int ok = (zc > 0) & (u > -0.5) & (u < wide) & (w > -0.5) & (w < high);

        u = ok ? u : 0;
        w = ok ? w : 0;
        o->in[i] = ok;
        o->pixel[i] = ok ? (int32_t)(w + 0.5) * (int32_t)v->stride + (int32_t)(u + 0.5) : 0;
    }
}

/* The same by float. A quotient of float is off by less than 4.5 roundings of itself, the sum with the centre by two more: 5e-7
 * of the largest numbers in it. Gives whether a sample stands so near to the border of two pixels that double must decide. */
KERN_HD int project_fast(const struct fuse_view *v, const struct starts *s, int row, int32_t k, struct seen *o)
{
    float wide = (float)v->width, high = (float)v->height, cx = (float)v->cx + 0.5f, cy = (float)v->cy + 0.5f;
    float off_u = 5e-7f * (wide + 2 * fabsf(cx) + 2), off_v = 5e-7f * (high + 2 * fabsf(cy) + 2);
    double x0 = s->x[row], y0 = s->y[row], z0 = s->z[row], xs = s->xs, ys = s->ys, zs = s->zs, fx = v->fx, fy = v->fy;
    int32_t width = (int32_t)v->stride;
    int unsure = 0;

    for (int i = 0; i < N; i++) {
        double at = k + i, zc = z0 + at * zs;
        float over = 1 / (float)zc, u = (float)(fx * (x0 + at * xs)) * over + cx, w = (float)(fy * (y0 + at * ys)) * over + cy, fu, fw;
        int32_t iu, iw, ok;

        u = u > -0.5f ? u : -0.5f; /* outside is outside */
        w = w > -0.5f ? w : -0.5f;
        u = u < wide + 0.5f ? u : wide + 0.5f;
        w = w < high + 0.5f ? w : high + 0.5f;
        iu = (int32_t)u;
        iw = (int32_t)w;
        fu = fabsf(u - (float)iu);
        fw = fabsf(w - (float)iw);
        unsure |= (fu < off_u) | (fu > 1 - off_u) | (fw < off_v) | (fw > 1 - off_v);
        ok = (zc > 0) & (u > 0) & (u < wide) & (w > 0) & (w < high);
        o->in[i] = ok;
        o->pixel[i] = ok ? iw * width + iu : 0;
        o->z[i] = zc;
    }
    return unsure;
}

/* ---- means ---- */

/* The mean of the colours of a row's samples that are hit. */
KERN_HD void mix_colors(const struct block *b, const struct fuse_frame *f, int row, const int32_t pixel[N], const int32_t hit[N],
                        const float *own)
{
    const float *weight = b->weight + block_at(b, row);
    int any = 0;

    for (int i = 0; i < N; i++)
        any |= hit[i];
    if (!any)
        return;
    for (int c = 0; c < 3; c++) {
        uint16_t *to = b->color + (3 * row + c) * N;
        float rgb[N];

        for (int i = 0; i < N; i++)
            rgb[i] = f->color[3 * (size_t)pixel[i] + (size_t)c];
        for (int i = 0; i < N; i++) {
            float w = weight[i], s = own ? own[i] : 1, old = to[i], mean = (old * w + rgb[i] * 256.0f * s) / (w + s) + 0.5f;
            float kept = hit[i] ? mean : old;

            to[i] = (uint16_t)(int32_t)kept;
        }
    }
}

/* Distance over the truncation, at most 1; hit where the frame has something to say; hits counts them lane by lane. */
KERN_HD void distances(const float *depth, const struct seen *o, double trunc, int n, float s[N], int32_t hit[N], int32_t hits[N])
{
    double inv = 1 / trunc;

    for (int i = 0; i < N; i++) {
        float d = depth[o->pixel[i]];
        double far = d - o->z[i], share = far * inv;
        int32_t ok = o->in[i] & (d > 0) & !(far < -trunc) & (i < n);

        s[i] = (float)(share > 1 ? 1 : share);
        hit[i] = ok;
        hits[i] += ok;
    }
}

/* The same as nvblox has it: not cut off, and with a weight of its own. */
KERN_HD void distances_weighted(const float *depth, const struct seen *o, const struct fuse_plan *p, int n, float s[N], float own[N],
                                int32_t hit[N], int32_t hits[N])
{
    double trunc = p->truncation, inv = 1 / trunc, reach = p->reach;

    for (int i = 0; i < N; i++) {
        float d = depth[o->pixel[i]];
        double z = o->z[i], far = d - z;
        int32_t ok = o->in[i] & (d > 0) & !(far < -trunc) & (z <= reach) & (i < n);

        s[i] = (float)(far * inv);
        own[i] = (float)(z > FUSE_NEAR ? 1 / (z * z) : 1);
        hit[i] = ok;
        hits[i] += ok;
    }
}

KERN_HD void mix_weighted(float tsdf[N], float weight[N], const float s[N], const float own[N], const int32_t hit[N], float most)
{
    for (int i = 0; i < N; i++) {
        float w = weight[i], w1 = w + own[i], mean = (tsdf[i] * w + s[i] * own[i]) / w1, kept = w1 < most ? w1 : most;

        mean = mean < -1 ? -1 : mean > 1 ? 1 : mean;
        tsdf[i] = hit[i] ? mean : tsdf[i];
        weight[i] = hit[i] ? kept : w;
    }
}

KERN_HD void mix_distance(float tsdf[N], float weight[N], const float s[N], const int32_t hit[N], float most)
{
    for (int i = 0; i < N; i++) {
        float w = weight[i], w1 = w + 1, mean = (tsdf[i] * w + s[i]) / w1, kept = w1 < most ? w1 : most;

        tsdf[i] = hit[i] ? mean : tsdf[i];
        weight[i] = hit[i] ? kept : w;
    }
}

/* ---- blocks ---- */

/* Stage by stage, so that rows do not wait for each other. */
KERN_HD uint64_t look_at(struct block *b, const struct fuse_frame *f, const struct starts *s, bool weighted)
{
    const struct fuse_plan *p = b->t->plan;
    bool color = b->color && f->has_color;
    float most = most_weight(p), share[ROWS][N], own[ROWS][N];
    int32_t hit[ROWS][N], k = (int32_t)b->at[2], unsure[ROWS], hits[N] = { 0 };
    struct seen o[ROWS];
    uint64_t updates = 0;

    for (int row = 0; row < ROWS; row++)
        unsure[row] = project_fast(&f->v, s, row, k, &o[row]);
    for (int row = 0; row < ROWS; row++)
        if (unsure[row])
            project(&f->v, s, row, k, &o[row]);
    for (int row = 0; row < ROWS; row++)
        if (weighted)
            distances_weighted(f->depth, &o[row], p, block_row(b, row), share[row], own[row], hit[row], hits);
        else
            distances(f->depth, &o[row], p->truncation, block_row(b, row), share[row], hit[row], hits);
    for (int i = 0; i < N; i++)
        updates += (uint64_t)hits[i];
    for (int row = 0; updates && row < ROWS; row++) {
        if (color)
            mix_colors(b, f, row, o[row].pixel, hit[row], weighted ? own[row] : NULL);
        if (weighted)
            mix_weighted(b->tsdf + block_at(b, row), b->weight + block_at(b, row), share[row], own[row], hit[row], most);
        else
            mix_distance(b->tsdf + block_at(b, row), b->weight + block_at(b, row), share[row], hit[row], most);
    }
    b->changed |= updates > 0;
    b->ones &= !updates;
    return updates;
}

KERN_CLONES
static uint64_t look(struct block *b, const struct fuse_frame *f, const struct starts *s)
{
    return look_at(b, f, s, false);
}

KERN_CLONES
static uint64_t look_weighted(struct block *b, const struct fuse_frame *f, const struct starts *s)
{
    return look_at(b, f, s, true);
}

KERN_HD void pass_row(float *tsdf, float *weight, int n, float most, bool ones)
{
    for (int i = 0; i < n; i++) {
        float w = weight[i], w1 = w + 1;

        weight[i] = w1 < most ? w1 : most;
        if (!ones)
            tsdf[i] = (tsdf[i] * w + 1) / w1;
    }
}

/* Every sample is hit with a distance of 1, of which the mean with 1 is exactly 1. */
KERN_CLONES
static uint64_t pass_free(struct block *b)
{
    float most = most_weight(b->t->plan);

    for (int row = 0; row < ROWS; row++) {
        float *tsdf = b->tsdf + block_at(b, row), *weight = b->weight + block_at(b, row);
        int n = block_row(b, row);

        if (n == N)
            pass_row(tsdf, weight, N, most, b->ones);
        else
            pass_row(tsdf, weight, n, most, b->ones);
    }
    b->changed = true;
    return (uint64_t)b->n[0] * (uint64_t)b->n[1] * (uint64_t)b->n[2];
}

/* Between the block's own rows and a dense volume's. */
static void move_block(struct block *b, bool out)
{
    for (int x = 0; x < b->n[0]; x++)
        for (int y = 0; y < b->n[1]; y++) {
            uint64_t at = b->first + (uint64_t)x * b->step[0] + (uint64_t)y * b->step[1];
            float *tsdf = b->own_tsdf + N * (FUSE_SIDE * x + y), *weight = b->own_weight + N * (FUSE_SIDE * x + y);
            size_t bytes = (size_t)b->n[2] * 4;

            memcpy(out ? b->t->tsdf + at : tsdf, out ? tsdf : b->t->tsdf + at, bytes);
            memcpy(out ? b->t->weight + at : weight, out ? weight : b->t->weight + at, bytes);
        }
}

/* Where the arrays hold the block; false: they do not. */
static bool place_block(struct block *b)
{
    static const int size[3] = { FUSE_SIDE, FUSE_SIDE, FUSE_ALONG };
    const struct blocks *g = b->t->blocks;
    const struct fuse_plan *p = b->t->plan;
    uint64_t part;

    for (int a = 0; a < 3; a++) {
        int64_t left = p->dim[a] - b->at[a];

        b->n[a] = left < 0 ? 0 : left < size[a] ? (int)left : size[a];
    }
    if (!g && (b->n[0] == 0 || b->n[1] == 0))
        return false;
    b->step[0] = g ? FUSE_BLOCK * FUSE_BLOCK : (uint64_t)p->dim[1] * p->dim[2];
    b->step[1] = g ? FUSE_BLOCK : p->dim[2];
    b->first = g ? blocks_sample(g, (uint32_t)b->at[0], (uint32_t)b->at[1], (uint32_t)b->at[2])
                 : (uint64_t)b->at[0] * b->step[0] + (uint64_t)b->at[1] * b->step[1] + (uint64_t)b->at[2];
    if (b->first == BLOCKS_NONE)
        return false;
    b->tsdf = g ? b->t->tsdf + b->first : b->own_tsdf;
    b->weight = g ? b->t->weight + b->first : b->own_weight;
    b->ahead[0] = g ? FUSE_BLOCK * FUSE_BLOCK : FUSE_SIDE * N;
    b->ahead[1] = N;
    part = g ? (b->first >> 3 * g->shift) * 4 + (uint64_t)(b->at[0] / FUSE_SIDE % 2 * 2 + b->at[1] / FUSE_SIDE % 2)
             : ((uint64_t)(b->at[0] / FUSE_SIDE) * fuse_parts(p->dim[1], FUSE_SIDE) + (uint64_t)(b->at[1] / FUSE_SIDE)) *
                       fuse_parts(p->dim[2], FUSE_ALONG) + (uint64_t)(b->at[2] / FUSE_ALONG);
    b->color = b->t->color ? b->t->color + part * FUSE_COLORS : NULL;
    return true;
}

static void take_block(struct block *b)
{
    b->changed = b->ones = b->t->fresh;
    for (int row = 0; b->t->fresh && row < ROWS; row++)
        for (int i = 0; i < N; i++) {
            b->tsdf[block_at(b, row) + (uint32_t)i] = 1;
            b->weight[block_at(b, row) + (uint32_t)i] = 0;
        }
    if (!b->t->fresh && b->tsdf == b->own_tsdf)
        move_block(b, false);
}

/* ---- bars ---- */

static uint64_t see(struct block *b, const struct fuse_frame *f, const struct fuse_sight *s)
{
    const struct fuse_plan *p = b->t->plan;
    uint64_t pixels = (uint64_t)f->v.stride * f->height;
    struct starts starts;

    if (s->what == FUSE_FREE && p->compat != FUSE_COMPAT_NVBLOX && !(b->color && f->has_color))
        return pass_free(b);
    starts_of(p, &f->v, b->at, &starts);
    if (p->compat == FUSE_COMPAT_NVBLOX)
        return look_weighted(b, f, &starts);
    return fuse_has_wide() && pixels > 1 && pixels < 1u << 29 ? fuse_look_wide(b, f, &starts) : look(b, f, &starts);
}

/* The next block's depths come from the third cache or farther: they are asked for while this one is fused. */
static void fetch_depths(const struct fuse_frame *f, const struct fuse_sight *s)
{
    for (int v = s->v[0]; s->what == FUSE_LOOK && v <= s->v[1]; v++)
        for (int u = s->u[0]; u <= s->u[1]; u += 16)
            __builtin_prefetch(f->depth + (size_t)v * f->v.stride + u, 0, 2);
}

enum { PARTS = 4 }; /* of a bar, beside each other in x and y */

struct bar {
    int n;                                               /* blocks that are fused into */
    uint8_t which[PARTS * FUSE_BAR];                     /* part * FUSE_BAR + place along z */
    struct fuse_sight sight[FUSE_BATCH][PARTS * FUSE_BAR];
    struct block block[PARTS * FUSE_BAR];
};

uint64_t fuse_bar_bytes(void)
{
    return sizeof(struct bar);
}

static bool bar_has_blocks(const struct blocks *g, const int64_t at[3], int blocks)
{
    for (int k = 0; k < blocks; k++)
        if (blocks_find(g, (uint32_t)at[0] >> g->shift, (uint32_t)at[1] >> g->shift, ((uint32_t)at[2] >> g->shift) + (uint32_t)k) != BLOCKS_NONE)
            return true;
    return false;
}

/* Blocks that the arrays hold and some frame has something to say of. */
static void choose_blocks(struct bar *x, const struct fuse_target *t, int n, const int64_t at[3], int blocks)
{
    x->n = 0;
    for (int q = 0; q < PARTS; q++)
        for (int k = 0; k < blocks; k++) {
            struct block *b = &x->block[x->n];
            unsigned any = t->fresh;

            for (int i = 0; i < n; i++)
                any |= x->sight[i][q * FUSE_BAR + k].what;
            b->t = t;
            b->at[0] = at[0] + (q >> 1) * FUSE_SIDE;
            b->at[1] = at[1] + (q & 1) * FUSE_SIDE;
            b->at[2] = at[2] + (int64_t)k * FUSE_ALONG;
            if (any && place_block(b))
                x->which[x->n++] = (uint8_t)(q * FUSE_BAR + k);
        }
}

/* Frame after frame, so that what blocks see of its depths stays near; each block takes the frames in their order. */
uint64_t fuse_bar(const struct fuse_target *t, const struct fuse_frame *frames, int n, const int64_t at[3], int blocks, void *scratch)
{
    struct bar *x = scratch;
    uint64_t updates = 0;

    if (t->blocks && !bar_has_blocks(t->blocks, at, blocks))
        return 0;
    for (int i = 0; i < n; i++)
        for (int q = 0; q < PARTS; q++)
            fuse_sights(t->plan, &frames[i], (int64_t[3]){ at[0] + (q >> 1) * FUSE_SIDE, at[1] + (q & 1) * FUSE_SIDE, at[2] }, blocks,
                        x->sight[i] + q * FUSE_BAR);
    choose_blocks(x, t, n, at, blocks);
    for (int j = 0; j < x->n; j++)
        take_block(&x->block[j]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < x->n; j++) {
            if (j + 1 < x->n)
                fetch_depths(&frames[i], &x->sight[i][x->which[j + 1]]);
            if (x->sight[i][x->which[j]].what)
                updates += see(&x->block[j], &frames[i], &x->sight[i][x->which[j]]);
        }
    for (int j = 0; j < x->n; j++)
        if (x->block[j].changed && x->block[j].tsdf == x->block[j].own_tsdf)
            move_block(&x->block[j], true);
    return updates;
}
