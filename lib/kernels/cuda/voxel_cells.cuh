/* kernels/cuda/voxel_cells.cuh - the cells of points on the device. */
#ifndef KERNELS_CUDA_VOXEL_CELLS_CUH
#define KERNELS_CUDA_VOXEL_CELLS_CUH

#include "cuda.cuh"
#include "kernels/points_plan.h"

namespace {

enum { THREADS = 256, EACH = 4 };

/* The plan, and in floats what finds most cells: at * by + off rounds to the cell unless it stands as far as sure or more from there. */
struct grid {
    struct voxel_plan p;
    float by[3], off[3], sure[3];
};

/* With Y the place in cells that exact arithmetic gives and O = origin / voxel: by and off are off by 2^-24 of themselves, the sum by
 * 2^-24 of itself, together by less than 2^-22.9 (|Y| + |O| + 1), and voxel_cell's doubles by far less. For |Y| <= dim + 2 that is below
 * error. So where floats give a cell without a doubt it is Y's, and a point whose Y is in the grid gets its cell or a doubt. */
static void find_by_floats(grid *g)
{
    bool kaolin = g->p.meaning == VOXELIZE_KAOLIN;

    for (int a = 0; a < 3; a++) {
        double by = kaolin ? (g->p.dim[a] - 1) / g->p.scale : 1 / g->p.voxel, off = -g->p.origin[a] * by;
        double error = (g->p.dim[a] + fabs(off) + 4) / (1 << 22);
        bool fine = by > 1e-30 && by < 1e30 && error < 0.25;

        g->by[a] = fine ? (float)by : 0;
        g->off[a] = fine ? (float)(off - (kaolin ? 0 : 0.5)) : 0;
        g->sure[a] = fine ? (float)(0.5 - error) : 0; /* 0: nothing is */
    }
}

/* voxel_cell along an axis; ~0: in none. */
__device__ __attribute__((noinline)) uint32_t cell_by_doubles(const struct voxel_plan &p, int a, float at)
{
    double x = (double)at - p.origin[a];

    x = p.meaning == VOXELIZE_KAOLIN ? rint(x / p.scale * (p.dim[a] - 1)) : floor(x / p.voxel);
    return x >= 0 && x < p.dim[a] ? (uint32_t)x : ~0u;
}

/* voxel_cell. A float far from the grid, or no number, has other bits than those of a cell, too. */
__device__ __forceinline__ bool cell_of(const grid &g, const float xyz[3], uint32_t cell[3])
{
    const float whole = 12582912; /* 1.5 x 2^23: a sum with it rounds to a whole number, which its low bits are */
    bool in = true;

#pragma unroll
    for (int a = 0; a < 3; a++) {
        float at = fmaf(xyz[a], g.by[a], g.off[a]), near = at + whole;

        cell[a] = __float_as_uint(near) - 0x4b400000u;
        if (fabsf(at - (near - whole)) >= g.sure[a])
            cell[a] = cell_by_doubles(g.p, a, xyz[a]);
        in = in && cell[a] < g.p.dim[a];
    }
    return in;
}

/* Calls give(number) for each cell of a point. */
template <typename F> __device__ __forceinline__ void each_cell(const grid &g, const float xyz[3], F give)
{
    uint32_t from[3], to[3], cell[3];

    if (g.p.meaning != VOXELIZE_KAOLIN_01) {
        if (cell_of(g, xyz, cell))
            give(voxel_number(&g.p, cell));
        return;
    }
    for (int i = 0; i < 3; i++)
        if (!voxel_span(&g.p, i, (double)xyz[i], g.p.voxel, &from[i], &to[i]))
            return;
    for (cell[0] = from[0]; cell[0] <= to[0]; cell[0]++)
        for (cell[1] = from[1]; cell[1] <= to[1]; cell[1]++)
            for (cell[2] = from[2]; cell[2] <= to[2]; cell[2]++) {
                double d = 0;

                for (int i = 0; i < 3; i++) {
                    double x = g.p.origin[i] + g.p.voxel * cell[i] - (double)xyz[i];

                    d += x * x;
                }
                if (!(d > g.p.voxel * g.p.voxel))
                    give(voxel_number(&g.p, cell));
            }
}

/* What was counted: as points went in, and as it stands in the cells. */
struct tally {
    unsigned long long given, kept;
    uint32_t done;
};

/* Four points that follow each other; beyond n: no numbers. */
__device__ __forceinline__ void load_points(const float *xyz, uint64_t first, uint64_t n, float x[EACH][3])
{
    if (first + EACH <= n) {
        const float4 *from = (const float4 *)(xyz + 3 * first);
        float4 a = __ldcs(from), b = __ldcs(from + 1), c = __ldcs(from + 2);
        const float all[3 * EACH] = { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w };

#pragma unroll
        for (int i = 0; i < 3 * EACH; i++)
            x[i / 3][i % 3] = all[i];
        return;
    }
    for (int i = 0; i < 3 * EACH; i++)
        x[i / 3][i % 3] = first + i / 3 < n ? xyz[3 * first + i] : NAN;
}

/* A block's numbers into to; sum: a number of shared memory that nobody needs any more. All threads call it. */
__device__ __forceinline__ void sum_up(uint32_t x, unsigned long long *to, uint32_t &sum)
{
    __syncthreads();
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (int k = 16; k; k /= 2)
        x += __shfl_xor_sync(~0u, x, k);
    if (threadIdx.x % 32 == 0 && x)
        atomicAdd(&sum, x);
    __syncthreads();
    if (threadIdx.x == 0 && sum)
        atomicAdd(to, (unsigned long long)sum);
}

/* Four cells from c on from counts of 16 bits, which it sums up. */
__device__ __forceinline__ uint32_t give_cells(uint2 counts, uint64_t c, uint64_t n, float *weight, float *tsdf)
{
    const uint32_t w[4] = { counts.x & 0xffff, counts.x >> 16, counts.y & 0xffff, counts.y >> 16 };

    if (c + 4 <= n) {
        *(float4 *)(weight + c) = make_float4(w[0], w[1], w[2], w[3]);
        *(float4 *)(tsdf + c) = make_float4(w[0] > 0, w[1] > 0, w[2] > 0, w[3] > 0);
    } else {
        for (int k = 0; c + k < n; k++) {
            weight[c + k] = w[k];
            tsdf[c + k] = w[k] > 0;
        }
    }
    return w[0] + w[1] + w[2] + w[3];
}

/* The last block leaves what was counted where the host reads it. All threads call it. */
__device__ __forceinline__ void tell_kept(uint32_t kept, tally *told, tally *host, uint32_t &sum)
{
    sum_up(kept, &told->kept, sum);
    if (threadIdx.x)
        return;
    __threadfence();
    if (atomicAdd(&told->done, 1u) == gridDim.x - 1)
        *host = tally{ told->given, atomicAdd(&told->kept, 0ull), 0 };
}

} // namespace
#endif
