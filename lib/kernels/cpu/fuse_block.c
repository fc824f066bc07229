/* TSDF fusion of a block of voxels with the frames of a batch. The arithmetic is per voxel the definition's, in double, so that
 * a pixel is the one that exact arithmetic gives but for ties; where float leaves one answer only, it is taken. */
#include "config.h"
#include "kernels/cpu/fuse_cpu.h"

#include <math.h>

enum { N = FUSE_ALONG, ROWS = FUSE_SIDE * FUSE_SIDE };

/* Samples of a block: row FUSE_SIDE * x + y, then z; beyond the volume's end there is room, but nothing of worth. */
struct block {
    const struct fuse_target *t;
    int64_t at[3];
    int n[3]; /* samples within the volume */
    float tsdf[ROWS][N], weight[ROWS][N];
    bool changed, ones; /* ones: all tsdf are 1 */
};

/* The row's samples in camera coordinates: those of sample 0 of the volume's row, and the steps, which are the frame's. */
struct starts {
    double x[ROWS], y[ROWS], z[ROWS], xs, ys, zs;
};

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
        o->pixel[i] = ok ? (int32_t)(w + 0.5) * (int32_t)v->width + (int32_t)(u + 0.5) : 0;
    }
}

/* The same by float. A quotient of float is off by less than 4.5 roundings of itself, the sum with the centre by two more: 5e-7
 * of the largest numbers in it. Gives whether a sample stands so near to the border of two pixels that double must decide. */
KERN_HD int project_fast(const struct fuse_view *v, const struct starts *s, int row, int32_t k, struct seen *o)
{
    float wide = (float)v->width, high = (float)v->height, cx = (float)v->cx + 0.5f, cy = (float)v->cy + 0.5f;
    float off_u = 5e-7f * (wide + 2 * fabsf(cx) + 2), off_v = 5e-7f * (high + 2 * fabsf(cy) + 2);
    double x0 = s->x[row], y0 = s->y[row], z0 = s->z[row], xs = s->xs, ys = s->ys, zs = s->zs, fx = v->fx, fy = v->fy;
    int32_t width = (int32_t)v->width;
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

/* samples of a row that lie within the volume */
KERN_HD int row_length(const struct block *b, int row)
{
    return row / FUSE_SIDE < b->n[0] && row % FUSE_SIDE < b->n[1] ? b->n[2] : 0;
}

/* The mean of the colours of a row's samples that are hit, of all three channels as one vector. */
KERN_HD void mix_colors(const struct block *b, const struct fuse_frame *f, int row, const int32_t pixel[N], const int32_t hit[N])
{
    const struct fuse_plan *p = b->t->plan;
    uint64_t x = (uint64_t)(b->at[0] + row / FUSE_SIDE), y = (uint64_t)(b->at[1] + row % FUSE_SIDE);
    uint16_t *to = b->t->color + 3 * ((x * p->dim[1] + y) * p->dim[2] + (uint64_t)b->at[2]);
    float rgb[3 * N], weight[3 * N];
    int n = row_length(b, row), any = 0;

    for (int i = 0; i < N; i++)
        any |= hit[i];
    if (!any)
        return;
    for (int i = 0; i < N; i++) { /* weight -1: not hit */
        const uint8_t *from = f->color + 3 * (size_t)pixel[i];

        for (int c = 0; c < 3; c++) {
            rgb[3 * i + c] = from[c];
            weight[3 * i + c] = hit[i] ? b->weight[row][i] : -1;
        }
    }
    for (int i = 0; i < 3 * n; i++) {
        float w = weight[i], old = to[i], mean = (old * w + rgb[i] * 256.0f) / (w + 1) + 0.5f, kept = w >= 0 ? mean : old;

        to[i] = (uint16_t)(int32_t)kept;
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

KERN_HD void mix_distance(float tsdf[N], float weight[N], const float s[N], const int32_t hit[N], float most)
{
    for (int i = 0; i < N; i++) {
        float w = weight[i], w1 = w + 1, mean = (tsdf[i] * w + s[i]) / w1, kept = w1 < most ? w1 : most;

        tsdf[i] = hit[i] ? mean : tsdf[i];
        weight[i] = hit[i] ? kept : w;
    }
}

static float most_weight(const struct fuse_plan *p)
{
    return p->weight_max > 0 ? (float)p->weight_max : INFINITY;
}

/* ---- blocks ---- */

/* Stage by stage, so that rows do not wait for each other. */
KERN_CLONES
static uint64_t look(struct block *b, const struct fuse_frame *f, const struct starts *s)
{
    const struct fuse_plan *p = b->t->plan;
    bool color = b->t->color && f->has_color;
    float most = most_weight(p), share[ROWS][N];
    int32_t hit[ROWS][N], k = (int32_t)b->at[2], unsure[ROWS], hits[N] = { 0 };
    struct seen o[ROWS];
    uint64_t updates = 0;

    for (int row = 0; row < ROWS; row++)
        unsure[row] = project_fast(&f->v, s, row, k, &o[row]);
    for (int row = 0; row < ROWS; row++)
        if (unsure[row])
            project(&f->v, s, row, k, &o[row]);
    for (int row = 0; row < ROWS; row++)
        distances(f->depth, &o[row], p->truncation, row_length(b, row), share[row], hit[row], hits);
    for (int i = 0; i < N; i++)
        updates += (uint64_t)hits[i];
    for (int row = 0; updates && row < ROWS; row++) {
        if (color)
            mix_colors(b, f, row, o[row].pixel, hit[row]);
        mix_distance(b->tsdf[row], b->weight[row], share[row], hit[row], most);
    }
    b->changed |= updates > 0;
    b->ones &= !updates;
    return updates;
}

/* Every sample is hit with a distance of 1, of which the mean with 1 is exactly 1. */
KERN_CLONES
static uint64_t pass_free(struct block *b)
{
    float most = most_weight(b->t->plan);

    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < N; i++) {
            float w = b->weight[row][i], w1 = w + 1;

            b->weight[row][i] = w1 < most ? w1 : most;
            if (!b->ones)
                b->tsdf[row][i] = (b->tsdf[row][i] * w + 1) / w1;
        }
    b->changed = true;
    return (uint64_t)b->n[0] * (uint64_t)b->n[1] * (uint64_t)b->n[2];
}

static void move_block(struct block *b, bool out)
{
    const struct fuse_plan *p = b->t->plan;

    for (int x = 0; x < b->n[0]; x++)
        for (int y = 0; y < b->n[1]; y++) {
            uint64_t at = ((uint64_t)(b->at[0] + x) * p->dim[1] + (uint64_t)(b->at[1] + y)) * p->dim[2] + (uint64_t)b->at[2];
            float *tsdf = b->tsdf[FUSE_SIDE * x + y], *weight = b->weight[FUSE_SIDE * x + y];
            size_t bytes = (size_t)b->n[2] * 4;

            memcpy(out ? b->t->tsdf + at : tsdf, out ? tsdf : b->t->tsdf + at, bytes);
            memcpy(out ? b->t->weight + at : weight, out ? weight : b->t->weight + at, bytes);
        }
}

static void take_block(struct block *b, const struct fuse_target *t, const int64_t at[3])
{
    b->t = t;
    b->changed = b->ones = t->fresh;
    memcpy(b->at, at, sizeof(b->at));
    b->n[0] = t->plan->dim[0] - at[0] < FUSE_SIDE ? (int)(t->plan->dim[0] - at[0]) : FUSE_SIDE;
    b->n[1] = t->plan->dim[1] - at[1] < FUSE_SIDE ? (int)(t->plan->dim[1] - at[1]) : FUSE_SIDE;
    b->n[2] = t->plan->dim[2] - at[2] < FUSE_ALONG ? (int)(t->plan->dim[2] - at[2]) : FUSE_ALONG;
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < N; i++) {
            b->tsdf[row][i] = 1;
            b->weight[row][i] = 0;
        }
    if (!t->fresh)
        move_block(b, false);
}

/* Depths of the next frame come from the second cache or farther: they are asked for while this one is fused. */
static inline void fetch_depths(const struct fuse_frame *f, const struct fuse_sight *s)
{
    for (int v = s->v[0]; s->what == FUSE_LOOK && v <= s->v[1]; v++)
        for (int u = s->u[0]; u <= s->u[1]; u += 16)
            __builtin_prefetch(f->depth + (size_t)v * f->v.width + u);
}

uint64_t fuse_bar(const struct fuse_target *t, const struct fuse_frame *frames, int n, const int64_t at[3], int blocks)
{
    struct fuse_sight sight[FUSE_BATCH][FUSE_BAR];
    uint64_t updates = 0;
    struct starts s;
    struct block b;

    for (int i = 0; i < n; i++)
        fuse_sights(t->plan, &frames[i], at, blocks, sight[i]);
    for (int k = 0; k < blocks; k++) {
        unsigned any = t->fresh;

        for (int i = 0; i < n; i++)
            any |= sight[i][k].what;
        if (!any)
            continue;
        take_block(&b, t, (int64_t[3]){ at[0], at[1], at[2] + (int64_t)k * FUSE_ALONG });
        for (int i = 0; i < n; i++) {
            if (i + 1 < n)
                fetch_depths(&frames[i + 1], &sight[i + 1][k]);
            if (sight[i][k].what == FUSE_FREE && !(t->color && frames[i].has_color)) {
                updates += pass_free(&b);
            } else if (sight[i][k].what) {
                starts_of(t->plan, &frames[i].v, at, &s);
                updates += look(&b, &frames[i], &s);
            }
        }
        if (b.changed)
            move_block(&b, true);
    }
    return updates;
}
