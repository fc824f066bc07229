/* cuda/fuse_near.cuh - which blocks the frames of a batch come near to: cpu/fuse_near.c's, square by square. A warp has four tiles of
 * pixels beside each other, a lane two pixels of each. */
#ifndef KERNELS_CUDA_FUSE_NEAR_CUH
#define KERNELS_CUDA_FUSE_NEAR_CUH

#include "blocks.cuh"
#include "fuse_feed.cuh"
#include "kernels/fuse_near.h"

namespace {

enum { NEAR_THREADS = 128 };

/* Bits of floats that are not negative are ordered as these are. */
__device__ uint32_t warp_least(uint32_t v)
{
    for (unsigned d = 16; d; d /= 2) {
        uint32_t other = __shfl_xor_sync(0xffffffffu, v, d);

        v = other < v ? other : v;
    }
    return v;
}
__device__ uint32_t warp_most(uint32_t v)
{
    return ~warp_least(~v);
}

struct nearing {
    struct fuse_plan plan;
    struct blocks grid;
    uint32_t width, height; /* of pictures */
    uint32_t across, down;  /* groups of four tiles */
};
/* Pixels of a tile that a lane has; 0: none. */
struct near_pair {
    float d[2];
};

/* All lanes call it, with the same arguments. */
__device__ void mark_piece(const nearing &x, const struct fuse_view &v, const struct near_square &s, float near, float far)
{
    uint32_t span[3][2], y, z;
    uint64_t n;

    if (!near_blocks(&x.plan, &v, x.grid.shift, &s, (double)near, (double)far, span))
        return;
    y = span[1][1] - span[1][0] + 1;
    z = span[2][1] - span[2][0] + 1;
    n = (uint64_t)(span[0][1] - span[0][0] + 1) * y * z;
    for (uint64_t i = threadIdx.x % 32; i < n; i += 32)
        blocks_mark(x.grid, blocks_cell(&x.grid, span[0][0] + (uint32_t)(i / z / y), span[1][0] + (uint32_t)(i / z % y),
                                        span[2][0] + (uint32_t)(i % z)));
}

/* A tile with depths apart: a piece for those from the least on, as far as the truncation reaches, and so on. */
__device__ void mark_parts(const nearing &x, const struct fuse_view &v, const struct near_square &s, const near_pair &p, float from)
{
    while (from < INFINITY) {
        float limit = from + (float)x.plan.truncation, to = from, next = INFINITY;

        for (int i = 0; i < 2; i++) {
            to = p.d[i] <= limit && p.d[i] > to ? p.d[i] : to;
            next = p.d[i] > limit && p.d[i] < next ? p.d[i] : next;
        }
        to = __uint_as_float(warp_most(__float_as_uint(to)));
        next = __uint_as_float(warp_least(__float_as_uint(next)));
        mark_piece(x, v, s, from, to);
        from = next;
    }
}

__device__ near_pair pair_of(const nearing &x, const float *depth, const struct near_square &s)
{
    uint32_t lane = threadIdx.x % 32, u = s.u + lane % FUSE_TILE;
    near_pair p;

    for (int i = 0; i < 2; i++) {
        uint32_t v = s.v + lane / FUSE_TILE + 4 * i;
        float d = u < x.width && v < x.height ? depth[(uint64_t)v * x.width + u] : 0;

        p.d[i] = d > 0 ? d : 0;
    }
    return p;
}

/* Least and most of the depths; most 0: there are none. */
__device__ void depths_of(const near_pair &p, float *least, float *most)
{
    float low = INFINITY, high = 0;

    for (int i = 0; i < 2; i++) {
        low = p.d[i] > 0 && p.d[i] < low ? p.d[i] : low;
        high = p.d[i] > high ? p.d[i] : high;
    }
    *least = __uint_as_float(warp_least(__float_as_uint(low)));
    *most = __uint_as_float(warp_most(__float_as_uint(high)));
}

__global__ void __launch_bounds__(NEAR_THREADS) mark_near(nearing x, const cuda_frame *frames, int n)
{
    uint32_t group = blockIdx.x * (NEAR_THREADS / 32) + threadIdx.x / 32, f = group / (x.across * x.down), at = group % (x.across * x.down);
    uint32_t u = at % x.across * 2 * FUSE_TILE, v = at / x.across * 2 * FUSE_TILE;
    float least[4], most[4], low = INFINITY, high = 0;
    near_pair p[4];

    if (f >= (uint32_t)n)
        return;
    for (int i = 0; i < 4; i++) {
        p[i] = pair_of(x, frames[f].depth, { u + FUSE_TILE * (i & 1), v + FUSE_TILE * (i >> 1), FUSE_TILE });
        depths_of(p[i], &least[i], &most[i]);
        low = least[i] < low ? least[i] : low;
        high = most[i] > high ? most[i] : high;
    }
    if (high > 0 && (double)high - (double)low <= x.plan.truncation) { /* all at once, where their depths are alike */
        mark_piece(x, frames[f].v, { u, v, 2 * FUSE_TILE }, low, high);
        return;
    }
    for (int i = 0; i < 4; i++) {
        struct near_square s = { u + FUSE_TILE * (i & 1), v + FUSE_TILE * (i >> 1), FUSE_TILE };

        if (!(most[i] > 0))
            continue;
        if ((double)most[i] - (double)least[i] <= x.plan.truncation)
            mark_piece(x, frames[f].v, s, least[i], most[i]);
        else
            mark_parts(x, frames[f].v, s, p[i], least[i]);
    }
}

} // namespace

#endif
