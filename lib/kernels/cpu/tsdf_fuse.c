/* TSDF fusion, frame by frame as the source gives them. For each frame the rows of voxels (along z) are cut
 * to what the camera can see, which is linear in k; inside, projections are in double, so that a pixel is the
 * one that exact arithmetic gives but for ties, and volumes are the same whatever the number of threads. */
#include "config.h"
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 64 };

struct target {
    const struct fuse_plan *plan;
    float *tsdf, *weight;
    uint16_t *color; /* running mean in 1/256, 3 a voxel, or NULL */
};
struct row {
    double x0, xs, y0, ys, z0, zs; /* camera coordinates of voxel k: start and step */
    int64_t from, to;
};

/* cuts [from, to) to where a + k * b > 0, one wider than exact */
static void cut(struct row *r, double a, double b)
{
    double k = -a / b;

    if (b == 0) {
        if (a <= 0)
            r->to = r->from;
    } else if (b > 0) {
        if (k > (double)r->from)
            r->from = k > (double)r->to ? r->to : (int64_t)k;
    } else if (k < (double)r->to) {
        r->to = k < (double)r->from ? r->from : (int64_t)k + 2 < r->to ? (int64_t)k + 2 : r->to;
    }
}

static struct row row_of(const struct fuse_plan *p, const struct fuse_view *v, uint32_t i, uint32_t j)
{
    double d[3] = {p->origin[0] + p->voxel * i - v->t[0], p->origin[1] + p->voxel * j - v->t[1],
                   p->origin[2] - v->t[2]};
    const double *r = v->r, left = v->cx + 0.5, right = v->width - 0.5 - v->cx, top = v->cy + 0.5,
                 bottom = v->height - 0.5 - v->cy;
    struct row o = { .x0 = r[0] * d[0] + r[1] * d[1] + r[2] * d[2], .xs = r[2] * p->voxel,
                     .y0 = r[3] * d[0] + r[4] * d[1] + r[5] * d[2], .ys = r[5] * p->voxel,
                     .z0 = r[6] * d[0] + r[7] * d[1] + r[8] * d[2], .zs = r[8] * p->voxel,
                     .from = 0, .to = p->dim[2] };

    cut(&o, o.z0, o.zs);
    cut(&o, v->zmax - o.z0, -o.zs);
    cut(&o, v->fx * o.x0 + left * o.z0, v->fx * o.xs + left * o.zs);
    cut(&o, right * o.z0 - v->fx * o.x0, right * o.zs - v->fx * o.xs);
    cut(&o, v->fy * o.y0 + top * o.z0, v->fy * o.ys + top * o.zs);
    cut(&o, bottom * o.z0 - v->fy * o.y0, bottom * o.zs - v->fy * o.ys);
    return o;
}

/* Pixel of each of n voxels from k on, -1 outside the picture; z along the optical axis. Rounding is half
 * away from zero: above -0.5 that is (int)(u + 0.5). */
KERN_CLONES
static void project(const struct fuse_view *v, const struct row *r, int64_t k, int n, int32_t *pixel,
                    double *z)
{
    double wide = v->width - 0.5, high = v->height - 0.5, fx = v->fx, fy = v->fy, cx = v->cx, cy = v->cy;
    double x0 = r->x0, y0 = r->y0, z0 = r->z0, xs = r->xs, ys = r->ys, zs = r->zs;
    int32_t width = (int32_t)v->width, first = (int32_t)k;

    for (int i = 0; i < n; i++) {
        double at = first + i, zc = z0 + at * zs, u = fx * (x0 + at * xs) / zc + cx,
               w = fy * (y0 + at * ys) / zc + cy;
        int ok = (zc > 0) & (u > -0.5) & (u < wide) & (w > -0.5) & (w < high);

        u = ok ? u : 0;
        w = ok ? w : 0;
        pixel[i] = ok ? (int32_t)(w + 0.5) * width + (int32_t)(u + 0.5) : -1;
        z[i] = zc;
    }
}

static void mix_color(uint16_t *mean, const uint8_t *rgb, float w, float w1)
{
    for (int c = 0; c < 3; c++)
        mean[c] = (uint16_t)((mean[c] * w + rgb[c] * 256.0f) / w1 + 0.5f);
}

/* Of n voxels: s their distance over the truncation, at most 1; hit 1 where the frame has something to say. Gives how
 * many are hit. */
KERN_CLONES
static unsigned distances(const float *depth, const int32_t *pixel, const double *z, double trunc, int n, float *s,
                          int32_t *hit)
{
    double inv = 1 / trunc;
    unsigned hits = 0;

    for (int i = 0; i < n; i++) {
        float d = depth[pixel[i] < 0 ? 0 : pixel[i]];
        double far = d - z[i], share = far * inv;
        int32_t ok = (pixel[i] >= 0) & (d > 0) & !(far < -trunc);

        s[i] = (float)(share > 1 ? 1 : share);
        hit[i] = ok;
        hits += (unsigned)ok;
    }
    return hits;
}

KERN_CLONES
static void mix_distance(float *tsdf, float *weight, const float *s, const int32_t *hit, int n, float most)
{
    for (int i = 0; i < n; i++) {
        float w = weight[i], w1 = w + 1, mean = (tsdf[i] * w + s[i]) / w1, kept = w1 < most ? w1 : most;

        tsdf[i] = hit[i] ? mean : tsdf[i];
        weight[i] = hit[i] ? kept : w;
    }
}

static uint64_t fuse_row(const struct target *t, const struct fuse_view *v, const struct row *r, uint64_t at,
                         const struct recon_frame *f)
{
    double z[BLOCK];
    float most = t->plan->weight_max > 0 ? (float)t->plan->weight_max : INFINITY, s[BLOCK];
    int32_t pixel[BLOCK], hit[BLOCK];
    uint64_t updates = 0;

    for (int64_t k = r->from; k < r->to; k += BLOCK) {
        int n = r->to - k < BLOCK ? (int)(r->to - k) : BLOCK;
        uint64_t q = at + (uint64_t)k;
        unsigned hits;

        project(v, r, k, n, pixel, z);
        hits = distances(f->depth, pixel, z, t->plan->truncation, n, s, hit);
        if (!hits)
            continue;
        updates += hits;
        for (int i = 0; t->color && f->color && i < n; i++)
            if (hit[i]) {
                float w = t->weight[q + (uint64_t)i];

                mix_color(t->color + 3 * (q + (uint64_t)i), f->color + 3 * (size_t)pixel[i], w, w + 1);
            }
        mix_distance(t->tsdf + q, t->weight + q, s, hit, n, most);
    }
    return updates;
}

static uint64_t fuse_frame(struct recon_ctx *ctx, const struct target *t, const struct fuse_view *v,
                           const struct recon_frame *f)
{
    const struct fuse_plan *p = t->plan;
    int64_t rows = (int64_t)p->dim[0] * p->dim[1];
    uint64_t updates = 0;

#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 64) reduction(+ : updates)
    for (int64_t row = 0; row < rows; row++) {
        struct row r = row_of(p, v, (uint32_t)(row / p->dim[1]), (uint32_t)(row % p->dim[1]));

        if (r.from < r.to)
            updates += fuse_row(t, v, &r, (uint64_t)row * p->dim[2], f);
    }
    return updates;
}

/* how many pixels have a depth, and the farthest */
static uint64_t depth_range(const struct recon_frame *f, size_t pixels, float *farthest)
{
    uint64_t n = 0;
    float most = 0;

    for (size_t i = 0; i < pixels; i++) {
        n += f->depth[i] > 0;
        most = f->depth[i] > most ? f->depth[i] : most;
    }
    *farthest = most;
    return n;
}

static int fuse_all(struct recon_ctx *ctx, struct recon_frames *frames, struct target *t,
                    struct fuse_counts *n, struct recon_cost *cost)
{
    const struct fuse_plan *p = t->plan;
    struct recon_frame f;
    struct fuse_view v;
    float farthest;

    for (;;) {
        double t0 = clock_ms();
        int rc = frames->next(frames, &f);

        cost->wait_ms += clock_ms() - t0;
        if (rc <= 0)
            return rc;
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, CODE_DEADLINE, NULL, f.name, "stopped at frame '%s'", f.name);
        n->frames++;
        n->depth_pixels += depth_range(&f, (size_t)frames->camera.width * frames->camera.height, &farthest);
        if (f.color && p->color && !t->color) {
            if (!(t->color = ctx->host->alloc(ctx, p->voxels * 6)))
                return -1;
            memset(t->color, 0, p->voxels * 6);
        }
        fuse_view(p, &frames->camera, f.pose, farthest, &v);
        n->updates += fuse_frame(ctx, t, &v, &f);
    }
}

static int take_volume(struct recon_ctx *ctx, const struct fuse_plan *p, struct recon_volume *v)
{
    v->tsdf = ctx->host->alloc(ctx, p->voxels * 4);
    v->weight = v->tsdf ? ctx->host->alloc(ctx, p->voxels * 4) : NULL;
    if (!v->weight)
        return -1;
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (uint64_t i = 0; i < p->voxels; i++) {
        v->tsdf[i] = 1;
        v->weight[i] = 0;
    }
    memcpy(v->dim, p->dim, sizeof(v->dim));
    memcpy(v->origin, p->origin, sizeof(v->origin));
    v->voxel = p->voxel;
    v->truncation = p->truncation;
    return 0;
}

static int finish_color(struct recon_ctx *ctx, const struct target *t, struct recon_volume *v)
{
    uint64_t n = t->plan->voxels * 3;

    if (!t->color)
        return 0;
    if (!(v->rgb = ctx->host->alloc(ctx, n)))
        return -1;
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (uint64_t i = 0; i < n; i++)
        v->rgb[i] = (uint8_t)((t->color[i] + 128) >> 8 > 255 ? 255 : (t->color[i] + 128) >> 8);
    return 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_frames *f = in ? in[0] : NULL;
    struct fuse_plan p;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    fuse_guess(&p, f, cost);
    cost->host_bytes = fuse_bytes(&p);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct recon_frames *frames = (struct recon_frames *)(uintptr_t)in[0];
    struct recon_volume *v = out[0];
    struct fuse_counts counts = { 0 };
    struct fuse_plan plan;
    struct target t = { .plan = &plan };
    int rc;

    if (fuse_plan(ctx, frames, params, &plan) ||
        plan_volume_fits(ctx, plan.dim, fuse_bytes(&plan), plan_memory_free(), "host"))
        return -1;
    rc = take_volume(ctx, &plan, v);
    t.tsdf = v->tsdf;
    t.weight = v->weight;
    if (rc == 0)
        rc = fuse_all(ctx, frames, &t, &counts, cost);
    if (rc == 0)
        rc = fuse_verdict(ctx, frames, &counts);
    if (rc == 0)
        rc = finish_color(ctx, &t, v);
    ctx->host->free(ctx, t.color);
    fuse_cost(&plan, &counts, cost);
    cost->host_bytes = fuse_bytes(&plan);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cpu_tsdf_fuse, NULL);
}

const struct recon_kernel cpu_tsdf_fuse = {RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                           fuse_params,      bound,     run,      selftest, fuse_shape};
