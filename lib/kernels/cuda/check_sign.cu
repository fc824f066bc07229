/* Which points lie inside a mesh, on the device. Parity: rays along +x against the triangles in the cells of a grid over y and
 * z, the host's formula for each (kernels/sign.h); a hit changes a parity, so no order matters. Winding: all triangles, in the
 * host's order. */
#include "slots.cuh"

#include <cub/block/block_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include "kernels/sign.h"

namespace {

enum { THREADS = 128, SIDE_MOST = 2048, CELLS_A_FACE = 64 };

struct grid {
    double low[2], step[2]; /* y, z */
    uint32_t side;
    uint64_t *first; /* side * side + 1: ends while faces are dealt out */
    uint32_t *face;
};

__device__ __forceinline__ uint32_t cell_of(const grid &g, int axis, double x)
{
    double i = floor((x - g.low[axis]) / g.step[axis]);

    return i > 0 ? (i < g.side - 1 ? (uint32_t)i : g.side - 1) : 0;
}

__device__ __forceinline__ void span_of(const grid &g, const struct recon_mesh &m, uint64_t f, uint32_t from[2], uint32_t to[2])
{
    for (int a = 0; a < 2; a++) {
        float low = INFINITY, high = -INFINITY;

        for (int i = 0; i < 3; i++) {
            float x = m.xyz[3 * (uint64_t)m.index[3 * f + i] + 1 + a];

            low = fminf(low, x);
            high = fmaxf(high, x);
        }
        from[a] = cell_of(g, a, (double)low); /* monotone: a point within low and high is in a cell between theirs */
        to[a] = cell_of(g, a, (double)high);
    }
}

__global__ void __launch_bounds__(THREADS) count_all(grid g, struct recon_mesh m, unsigned long long *ret)
{
    typedef cub::BlockReduce<unsigned long long, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage room;
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned long long n = 0;
    uint32_t from[2], to[2];

    if (f < m.faces) {
        span_of(g, m, f, from, to);
        n = (unsigned long long)(to[0] - from[0] + 1) * (to[1] - from[1] + 1);
    }
    n = Reduce(room).Sum(n);
    if (threadIdx.x == 0)
        atomicAdd(ret, n);
}

/* FILL: puts each face into the lists of its cells from their ends down; else counts. A warp shares a face of many cells. */
template <bool FILL> __global__ void __launch_bounds__(THREADS) deal(grid g, struct recon_mesh m)
{
    uint64_t f = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 8, lane = threadIdx.x % 8;
    uint32_t from[2], to[2];

    if (f >= m.faces)
        return;
    span_of(g, m, f, from, to);
    uint64_t wide = to[1] - from[1] + 1, all = wide * (to[0] - from[0] + 1);

    for (uint64_t i = lane; i < all; i += 8) {
        unsigned long long *at = (unsigned long long *)&g.first[(from[0] + i / wide) * g.side + from[1] + i % wide];

        if (FILL)
            g.face[atomicAdd(at, ~0ull) - 1] = (uint32_t)f;
        else
            atomicAdd(at, 1ull);
    }
}

__global__ void __launch_bounds__(THREADS) parity(grid g, struct recon_mesh m, const float *xyz, uint64_t n, uint8_t *inside)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= n)
        return;
    float p[3] = { xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2] };
    uint64_t c = (uint64_t)cell_of(g, 0, (double)p[1]) * g.side + cell_of(g, 1, (double)p[2]);
    uint8_t odd = 0;

    for (uint64_t k = g.first[c]; k < g.first[c + 1]; k++) {
        const uint32_t *v = m.index + 3 * (uint64_t)g.face[k];

        odd ^= triangle_hit(m.xyz + 3 * (uint64_t)v[0], m.xyz + 3 * (uint64_t)v[1], m.xyz + 3 * (uint64_t)v[2], p);
    }
    inside[i] = odd;
}

__global__ void __launch_bounds__(THREADS) winding(struct recon_mesh m, const float *xyz, uint64_t n, uint8_t *inside)
{
    __shared__ float held[THREADS][9];
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    float p[3] = { 0, 0, 0 };
    double sum = 0;

    for (int a = 0; i < n && a < 3; a++)
        p[a] = xyz[3 * i + a];
    for (uint64_t from = 0; from < m.faces; from += THREADS) {
        uint64_t f = from + threadIdx.x, all = m.faces - from < THREADS ? m.faces - from : THREADS;

        __syncthreads();
        for (int k = 0; f < m.faces && k < 9; k++)
            held[threadIdx.x][k] = m.xyz[3 * (uint64_t)m.index[3 * f + k / 3] + k % 3];
        __syncthreads();
        for (uint64_t k = 0; k < all; k++)
            sum += triangle_winding(held[k], held[k] + 3, held[k] + 6, p);
    }
    if (i < n)
        inside[i] = sum > 0.5;
}

/* ---- host ---- */

/* A grid of about as many cells as faces, coarser when long triangles would be in too many. */
int build(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, grid *g)
{
    cudaStream_t queue = cuda_stream(ctx);
    unsigned long long *count = scratch.take<unsigned long long>(1), n = 0;
    unsigned blocks = blocks_of(m->faces + 1, THREADS);
    double low[3], high[3];
    uint64_t cells;

    if (!count || cuda_box(ctx, m->xyz, m->vertices, low, high))
        return -1;
    for (g->side = 1; g->side < SIDE_MOST && (uint64_t)g->side * g->side < m->faces; g->side *= 2)
        ;
    for (;; g->side /= 2) {
        for (int a = 0; a < 2; a++) {
            g->low[a] = low[1 + a];
            g->step[a] = high[1 + a] > low[1 + a] ? (high[1 + a] - low[1 + a]) / g->side : 1;
        }
        if (cuda_ok(ctx, cudaMemsetAsync(count, 0, 8, queue), "cudaMemset"))
            return -1;
        count_all<<<blocks, THREADS, 0, queue>>>(*g, *m, count);
        if (cuda_launched(ctx, "faces into cells") || cuda_read(ctx, &n, count, 1))
            return -1;
        if (n <= CELLS_A_FACE * m->faces || g->side == 1)
            break;
    }
    cells = (uint64_t)g->side * g->side;
    if (!(g->first = scratch.take<uint64_t>(cells + 1)) || !(g->face = scratch.take<uint32_t>(n + 1)) ||
        cuda_ok(ctx, cudaMemsetAsync(g->first, 0, 8 * (cells + 1), queue), "cudaMemset"))
        return -1;
    deal<false><<<8 * blocks, THREADS, 0, queue>>>(*g, *m);
    if (cuda_launched(ctx, "faces into cells") || cuda_cub(ctx, scratch, "faces into cells", [&](void *room, size_t &size) {
            return cub::DeviceScan::InclusiveSum(room, size, g->first, g->first, cells + 1, queue);
        }))
        return -1;
    deal<true><<<8 * blocks, THREADS, 0, queue>>>(*g, *m); /* ends become beginnings */
    return cuda_launched(ctx, "faces into cells");
}

/* Tells, writes the file, fills the output (NULL: nobody asks). */
int give(struct recon_ctx *ctx, Scratch &scratch, const struct recon_points *p, const struct recon_value *params, const uint8_t *inside,
         struct recon_points *ret)
{
    uint64_t *kept = scratch.take<uint64_t>(1), n = 0;
    uint32_t *number = scratch.take<uint32_t>(p->n), *chosen = scratch.take<uint32_t>(p->n);
    uint8_t *copy = nullptr;
    int rc = -1;

    if (!kept || !number || !chosen || cuda_count_up(ctx, number, p->n) || cuda_cub(ctx, scratch, "points inside", [&](void *room, size_t &size) {
            return cub::DeviceSelect::Flagged(room, size, number, inside, chosen, kept, p->n, cuda_stream(ctx));
        }) ||
        cuda_read(ctx, &n, kept, 1))
        return -1;
    if (!params[CHECK_SIGN_FILE].s[0] || ((copy = (uint8_t *)ctx->host->alloc(ctx, p->n)) && cuda_read(ctx, copy, inside, p->n) == 0))
        rc = sign_tell(ctx, p->n, n, params, copy);
    ctx->host->free(ctx, copy);
    return rc || (ret && cuda_points_take(ctx, p, chosen, n, ret)) ? -1 : 0;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    const struct recon_points *r = (const struct recon_points *)in[1];

    if (!m || !r || sign_bound(ctx, in, p, cost))
        return m && r ? -1 : 0;
    cost->device_bytes = 32 * r->n + 4 * (CELLS_A_FACE + 1) * m->faces + 8 * (4 * m->faces + 2) + (16 << 20);
    cost->host_bytes = p[CHECK_SIGN_FILE].s && p[CHECK_SIGN_FILE].s[0] ? 2 * r->n + 4096 : 0;
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    const struct recon_points *r = (const struct recon_points *)in[1];
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(r->n + 1, THREADS);
    bool by_winding = p[CHECK_SIGN_METHOD].i == CHECK_SIGN_WINDING;
    Scratch scratch(ctx);
    uint8_t *inside = scratch.take<uint8_t>(r->n);
    grid g = {};

    if (r->n > UINT32_MAX)
        return ctx->host->fail(ctx, 65, nullptr, "points", "%llu points, at most %u are taken on a device", (unsigned long long)r->n, UINT32_MAX);
    if (!inside || cuda_index_check(ctx, m) || (!by_winding && build(ctx, scratch, m, &g)))
        return -1;
    if (by_winding)
        winding<<<blocks, THREADS, 0, queue>>>(*m, r->xyz, r->n, inside);
    else
        parity<<<blocks, THREADS, 0, queue>>>(g, *m, r->xyz, r->n, inside);
    if (cuda_launched(ctx, "points inside") || give(ctx, scratch, r, p, inside, (struct recon_points *)out[0]))
        return -1;
    return bound(ctx, in, p, cost);
}

int selftest(struct recon_ctx *ctx)
{
    return golden_sign(ctx, &cuda_check_sign, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_check_sign = { RECON_KERNEL_ABI,  CHECK_SIGN_NAME, CHECK_SIGN_DOC, check_sign_in, check_sign_out,
                                              check_sign_params, bound,           run,            selftest,      nullptr };
