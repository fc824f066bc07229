/* Normals of points on the device: points along a space-filling curve, boxes around 32 of them, around 32 boxes, and so on;
 * each point searches its k nearest through the boxes and fits a plane. Neighbours by (distance, number) and the fit are in
 * double, as on the host, bit for bit. Which side is out is found on the host. */
#include "slots.cuh"

#include <cub/device/device_radix_sort.cuh>
#include "kernels/points_fit.h"
#include "kernels/points_plan.h"

namespace {

enum { THREADS = 128, WIDE = 32, LEVELS = 7 };

struct box {
    float low[3], high[3];
};
struct tree {
    const float4 *at; /* the points in order; w: the number, as bits */
    uint32_t n, levels;
    uint32_t count[LEVELS]; /* boxes of a level; the last has at most WIDE */
    box *level[LEVELS];
};

__device__ uint64_t spread(uint64_t x) /* 21 bits to every third */
{
    x = (x | x << 32) & 0x1f00000000ffffull;
    x = (x | x << 16) & 0x1f0000ff0000ffull;
    x = (x | x << 8) & 0x100f00f00f00f00full;
    x = (x | x << 4) & 0x10c30c30c30c30c3ull;
    return (x | x << 2) & 0x1249249249249249ull;
}

struct frame {
    double low[3], by;
};
__global__ void __launch_bounds__(THREADS) codes(const float *xyz, uint32_t n, frame f, unsigned long long *code, uint32_t *number)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    uint64_t c = 0;

    if (i >= n)
        return;
    for (int a = 0; a < 3; a++) {
        double x = ((double)xyz[3 * (uint64_t)i + a] - f.low[a]) * f.by;

        c |= spread(x > 0 ? (x < 2097151 ? (uint64_t)x : 2097151) : 0) << a;
    }
    code[i] = c;
    number[i] = i;
}

__global__ void __launch_bounds__(THREADS) line_up(const float *xyz, uint32_t n, const uint32_t *number, float4 *to)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < n) {
        const float *p = xyz + 3 * (uint64_t)number[i];

        to[i] = make_float4(p[0], p[1], p[2], __uint_as_float(number[i]));
    }
}

__device__ void widen(box &b, const float *low, const float *high)
{
    for (int a = 0; a < 3; a++) {
        b.low[a] = fminf(b.low[a], low[a]);
        b.high[a] = fmaxf(b.high[a], high[a]);
    }
}

/* The boxes of a level from the points (level 0) or the level below. */
__global__ void __launch_bounds__(THREADS) enclose(tree t, uint32_t level)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, below = level ? t.count[level - 1] : t.n;
    box b = { { INFINITY, INFINITY, INFINITY }, { -INFINITY, -INFINITY, -INFINITY } };

    if (i >= t.count[level])
        return;
    for (uint32_t k = i * WIDE; k < below && k < (i + 1) * WIDE; k++) {
        if (level) {
            widen(b, t.level[level - 1][k].low, t.level[level - 1][k].high);
        } else {
            float p[3] = { t.at[k].x, t.at[k].y, t.at[k].z };

            widen(b, p, p);
        }
    }
    t.level[level][i] = b;
}

__device__ __forceinline__ double to_box(const box &b, const float p[3])
{
    double d = 0;

    for (int a = 0; a < 3; a++) {
        double x = p[a] < b.low[a] ? (double)b.low[a] - (double)p[a] : p[a] > b.high[a] ? (double)p[a] - (double)b.high[a] : 0;

        d += x * x;
    }
    return d * (1 - 1e-12); /* never above the true one */
}

/* The nearest so far, ascending by (distance, number); nothing beyond limit is wanted. */
template <int MOST> struct found {
    double d[MOST], limit;
    uint32_t number[MOST];
    int n, k;

    __device__ __forceinline__ void offer(double e, uint32_t i)
    {
        int at;

        if (n == k && (e > d[n - 1] || (e == d[n - 1] && i > number[n - 1])))
            return;
        at = n < k ? n++ : n - 1;
        for (; at > 0 && (e < d[at - 1] || (e == d[at - 1] && i < number[at - 1])); at--) {
            d[at] = d[at - 1];
            number[at] = number[at - 1];
        }
        d[at] = e;
        number[at] = i;
        if (n == k)
            limit = d[n - 1];
    }
};

__device__ __forceinline__ double distance_of(const tree &t, uint32_t i, const float p[3])
{
    float q[3] = { t.at[i].x, t.at[i].y, t.at[i].z };

    return point_distance2(q, p);
}

/* Through the boxes without a stack: down into a box within the limit, else on; behind the last of a group up. */
template <int MOST> __device__ void search(const tree &t, const float p[3], found<MOST> &f)
{
    uint32_t level = t.levels - 1, i = 0;

    for (;;) {
        bool in = to_box(t.level[level][i], p) <= f.limit;

        if (in && level) {
            level--;
            i *= WIDE;
            continue;
        }
        for (uint32_t k = i * WIDE; in && k < t.n && k < (i + 1) * WIDE; k++) {
            double d = distance_of(t, k, p);

            if (d <= f.limit)
                f.offer(d, __float_as_uint(t.at[k].w));
        }
        i++;
        while (level + 1 < t.levels && (i % WIDE == 0 || i >= t.count[level])) {
            i = (i + WIDE - 1) / WIDE;
            level++;
        }
        if (i >= t.count[level])
            return;
    }
}

/* near: k numbers a point, nearest first. */
template <int MOST> __global__ void __launch_bounds__(THREADS) fit(tree t, const float *xyz, int k, uint32_t *near, float *normals)
{
    uint32_t at = blockIdx.x * THREADS + threadIdx.x;

    if (at >= t.n)
        return;
    float p[3] = { t.at[at].x, t.at[at].y, t.at[at].z };
    uint64_t number = __float_as_uint(t.at[at].w);
    uint32_t from = at > (uint32_t)k / 2 ? at - (uint32_t)k / 2 : 0;
    found<MOST> f;
    double n[3];

    f.n = 0;
    f.k = k;
    f.limit = 0;
    from = from + (uint32_t)k > t.n ? t.n - (uint32_t)k : from;
    for (int i = 0; i < k; i++) /* k points at all bound the distance of the k nearest */
        f.limit = fmax(f.limit, distance_of(t, from + (uint32_t)i, p));
    search(t, p, f);
    normal_fit(xyz, f.number, f.n, n);
    for (int a = 0; a < 3; a++)
        normals[3 * number + a] = (float)n[a];
    for (int i = 0; near && i < k; i++)
        near[number * k + i] = f.number[i];
}

/* ---- host ---- */

int plant(struct recon_ctx *ctx, Scratch &scratch, const struct recon_points *p, tree *t)
{
    cudaStream_t queue = cuda_stream(ctx);
    uint32_t n = (uint32_t)p->n, blocks = blocks_of(n, THREADS), below = n;
    unsigned long long *code = scratch.take<unsigned long long>(n), *sorted = scratch.take<unsigned long long>(n);
    uint32_t *number = scratch.take<uint32_t>(n), *order = scratch.take<uint32_t>(n);
    float4 *at = scratch.take<float4>(n);
    double low[3], high[3], wide = 0;
    frame f;

    if (!code || !sorted || !number || !order || !at || cuda_box(ctx, p->xyz, n, low, high))
        return -1;
    for (int a = 0; a < 3; a++) {
        f.low[a] = low[a];
        wide = high[a] - low[a] > wide ? high[a] - low[a] : wide;
    }
    f.by = wide > 0 ? 2097151 / wide : 0;
    codes<<<blocks, THREADS, 0, queue>>>(p->xyz, n, f, code, number);
    if (cuda_launched(ctx, "order of points") || cuda_cub(ctx, scratch, "order of points", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortPairs(room, size, code, sorted, number, order, n, 0, 63, queue);
        }))
        return -1;
    line_up<<<blocks, THREADS, 0, queue>>>(p->xyz, n, order, at);
    t->at = at;
    t->n = n;
    for (t->levels = 0; t->levels == 0 || below > WIDE; t->levels++) {
        below = (below + WIDE - 1) / WIDE;
        t->count[t->levels] = below;
        if (!(t->level[t->levels] = scratch.take<box>(below)))
            return -1;
    }
    for (uint32_t l = 0; l < t->levels; l++) {
        unsigned some = blocks_of(t->count[l], THREADS);

        enclose<<<some, THREADS, 0, queue>>>(*t, l);
    }
    return cuda_launched(ctx, "order of points");
}

/* Which side is out, on the host: the normals come back turned. */
int turn(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *near, int k, const struct recon_value *v, float *normals)
{
    struct recon_points copy = { p->n, RECON_HOST, (float *)ctx->host->alloc(ctx, 12 * p->n), nullptr, nullptr };
    float *n = (float *)ctx->host->alloc(ctx, 12 * p->n);
    uint32_t *graph = near ? (uint32_t *)ctx->host->alloc(ctx, 4 * k * p->n) : nullptr;
    uint64_t none = 0;
    int rc = -1;

    if (copy.xyz && n && (graph || !near) && cuda_read(ctx, copy.xyz, p->xyz, 3 * p->n) == 0 && cuda_read(ctx, n, normals, 3 * p->n) == 0 &&
        (!near || cuda_read(ctx, graph, near, k * p->n) == 0)) {
        for (uint64_t i = 0; i < p->n; i++)
            none += n[3 * i] == 0 && n[3 * i + 1] == 0 && n[3 * i + 2] == 0;
        if (none)
            ctx->host->log(ctx, RECON_WARN, nullptr, "points", "%llu points have no normal: their neighbours are on a line", (unsigned long long)none);
        rc = normals_orient(ctx, &copy, graph, k, v, n) || cuda_device.upload(ctx, normals, n, 12 * p->n) || cuda_device.sync(ctx) ? -1 : 0;
    }
    ctx->host->free(ctx, copy.xyz);
    ctx->host->free(ctx, n);
    ctx->host->free(ctx, graph);
    return rc;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *v, struct recon_cost *cost)
{
    const struct recon_points *r = (const struct recon_points *)in[0];
    uint64_t k = (uint64_t)v[POINTS_NORMALS_K].i;

    if (!r || points_normals_bound(ctx, in, v, cost))
        return r ? -1 : 0;
    k = v[POINTS_NORMALS_ORIENT].i == POINTS_NORMALS_PROPAGATE ? (k < r->n ? k : r->n) : 0;
    cost->device_bytes = r->n * (27 + 16 + 8 + 16 + 1 + 4 * k) + r->n * 14 + (16 << 20);
    cost->host_bytes = r->n * 24 + (k ? r->n * (20 * k + 13) : 0) + 4096;
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *v, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *p = (const struct recon_points *)in[0];
    struct recon_points *r = (struct recon_points *)out[0];
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t k = (uint64_t)v[POINTS_NORMALS_K].i < p->n ? (uint64_t)v[POINTS_NORMALS_K].i : p->n;
    Scratch scratch(ctx);
    uint32_t *near = nullptr;
    tree t = {};

    if (p->n < 3 || p->n > UINT32_MAX / k)
        return ctx->host->fail(ctx, 65, "empty-result", "points", "%llu points, 3 to %llu are taken", (unsigned long long)p->n,
                               (unsigned long long)(UINT32_MAX / (k ? k : 1)));
    r->place = RECON_DEVICE;
    r->n = p->n;
    if (!(r->xyz = (float *)cuda_alloc(ctx, 12 * p->n)) || !(r->normals = (float *)cuda_alloc(ctx, 12 * p->n)) ||
        (p->rgb && !(r->rgb = (uint8_t *)cuda_alloc(ctx, 3 * p->n))) || plant(ctx, scratch, p, &t) ||
        (v[POINTS_NORMALS_ORIENT].i == POINTS_NORMALS_PROPAGATE && !(near = scratch.take<uint32_t>(k * p->n))) ||
        cuda_ok(ctx, cudaMemcpyAsync(r->xyz, p->xyz, 12 * p->n, cudaMemcpyDeviceToDevice, queue), "copy of points") ||
        (p->rgb && cuda_ok(ctx, cudaMemcpyAsync(r->rgb, p->rgb, 3 * p->n, cudaMemcpyDeviceToDevice, queue), "copy of points")))
        return -1;
    unsigned blocks = blocks_of(t.n, THREADS);

    if (k <= 32)
        fit<32><<<blocks, THREADS, 0, queue>>>(t, p->xyz, (int)k, near, r->normals);
    else
        fit<256><<<blocks, THREADS, 0, queue>>>(t, p->xyz, (int)k, near, r->normals);
    if (cuda_launched(ctx, "normals of points") || turn(ctx, p, near, (int)k, v, r->normals))
        return -1;
    return bound(ctx, in, v, cost);
}

int selftest(struct recon_ctx *ctx)
{
    return golden_points_normals(ctx, &cuda_points_normals, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_points_normals = { RECON_KERNEL_ABI,      POINTS_NORMALS_NAME, POINTS_NORMALS_DOC, points_one_in, points_one_out,
                                                  points_normals_params, bound,               run,                selftest,      points_same_shape };
