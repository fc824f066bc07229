/* Farthest point sampling with boxes: points are sorted into leaves of a k-d tree; a leaf whose box is farther from the new
 * point than its own farthest least distance keeps its distances. Double from float coordinates: exactly what brute force
 * in double gives, ties to the lowest number. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/kd.h"
#include "kernels/points_plan.h"

#include <stdlib.h>

enum { LEAF = 64 };

struct leaf {
    float low[3], high[3];
    uint32_t from, to;
    uint32_t best; /* place of the farthest, lowest number of those */
    double most;
};

struct fps {
    const struct recon_points *p;
    uint32_t *order; /* numbers of points by leaf */
    double *distance; /* squared, to the nearest chosen; by place in order */
    struct leaf *leaf;
    uint32_t leaves;
};

static void box(const struct fps *f, uint32_t from, uint32_t to, float low[3], float high[3])
{
    for (int a = 0; a < 3; a++) {
        low[a] = INFINITY;
        high[a] = -INFINITY;
        for (uint32_t i = from; i < to; i++) {
            float x = f->p->xyz[3 * (uint64_t)f->order[i] + (uint64_t)a];

            low[a] = x < low[a] ? x : low[a];
            high[a] = x > high[a] ? x : high[a];
        }
    }
}

static void build(struct fps *f)
{
    uint32_t stack[128], top = 0;

    stack[top++] = 0;
    stack[top++] = (uint32_t)f->p->n;
    while (top) {
        uint32_t to = stack[--top], from = stack[--top], middle = from + (to - from) / 2;
        struct leaf l = { .from = from, .to = to, .best = from, .most = INFINITY };
        int axis = 0;

        box(f, from, to, l.low, l.high);
        if (to - from <= LEAF) {
            f->leaf[f->leaves++] = l;
            continue;
        }
        for (int a = 1; a < 3; a++)
            if (l.high[a] - l.low[a] > l.high[axis] - l.low[axis])
                axis = a;
        kd_select(f->p->xyz, f->order, from, to, middle, axis);
        stack[top++] = from;
        stack[top++] = middle;
        stack[top++] = middle;
        stack[top++] = to;
    }
}

static double to_box(const struct leaf *l, const float *p)
{
    double d = 0;

    for (int a = 0; a < 3; a++) {
        double x = p[a] < l->low[a] ? (double)l->low[a] - (double)p[a] : p[a] > l->high[a] ? (double)p[a] - (double)l->high[a] : 0;

        d += x * x;
    }
    return d;
}

/* the chosen one itself is never chosen again */
static void renew(const struct fps *f, struct leaf *l, const float *p, uint32_t number)
{
    l->most = -1;
    for (uint32_t i = l->from; i < l->to; i++) {
        double d = point_distance2(f->p->xyz + 3 * (uint64_t)f->order[i], p);

        d = f->order[i] == number ? -1 : d;
        f->distance[i] = d < f->distance[i] ? d : f->distance[i];
        if (f->distance[i] > l->most || (f->distance[i] == l->most && f->order[i] < f->order[l->best])) {
            l->most = f->distance[i];
            l->best = i;
        }
    }
}

/* the box's bound is sharp but for rounding: a hair is taken off, so that no leaf is passed over wrongly */
static uint32_t next_of(struct fps *f, uint32_t number)
{
    const float *p = f->p->xyz + 3 * (uint64_t)number;
    uint32_t best = 0;

    for (uint32_t i = 0; i < f->leaves; i++) {
        struct leaf *l = &f->leaf[i];

        if (to_box(l, p) * (1 - 1e-12) <= l->most)
            renew(f, l, p, number);
        if (l->most > f->leaf[best].most || (l->most == f->leaf[best].most && f->order[l->best] < f->order[f->leaf[best].best]))
            best = i;
    }
    return f->order[f->leaf[best].best];
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *v, void *const *out, struct recon_cost *cost)
{
    struct fps f = { .p = in[0] };
    uint64_t n = f.p->n, k = n < (uint64_t)v[FPS_COUNT].i ? n : (uint64_t)v[FPS_COUNT].i, at = 0;
    uint32_t *chosen = NULL;
    int rc = fps_first(ctx, f.p, v, &at);

    if (rc == 0 && (!(f.order = ctx->host->alloc(ctx, 4 * n)) || !(f.distance = ctx->host->alloc(ctx, 8 * n)) ||
                    !(f.leaf = ctx->host->alloc(ctx, (n / (LEAF / 2) + 2) * sizeof(*f.leaf))) || !(chosen = ctx->host->alloc(ctx, 4 * k))))
        rc = -1;
    for (uint64_t i = 0; rc == 0 && i < n; i++) {
        f.order[i] = (uint32_t)i;
        f.distance[i] = INFINITY;
    }
    if (rc == 0)
        build(&f);
    for (uint64_t i = 0; rc == 0 && i < k; i++) {
        chosen[i] = (uint32_t)at;
        if (i + 1 < k)
            at = next_of(&f, (uint32_t)at);
        if (i % 1024 == 1023 && ctx->host->cancelled(ctx))
            rc = ctx->host->fail(ctx, CODE_DEADLINE, NULL, "points", "stopped after %llu of %llu points", (unsigned long long)i, (unsigned long long)k);
    }
    if (rc == 0)
        rc = fps_give(ctx, f.p, chosen, k, out[0]);
    fps_bound(ctx, in, v, cost);
    ctx->host->free(ctx, f.order);
    ctx->host->free(ctx, f.distance);
    ctx->host->free(ctx, f.leaf);
    ctx->host->free(ctx, chosen);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fps(ctx, &cpu_points_fps, NULL);
}

const struct recon_kernel cpu_points_fps = { RECON_KERNEL_ABI, FPS_NAME,  FPS_DOC, points_one_in, points_one_out,
                                             fps_params,       fps_bound, run,     selftest,      fps_shape };
