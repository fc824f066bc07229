/* kernels/cuda/voxel_deal.cuh - points in no order into a grid: dealt out by parts of it, so that the counts of a part stand in
 * shared memory and no addition goes far. */
#ifndef KERNELS_CUDA_VOXEL_DEAL_CUH
#define KERNELS_CUDA_VOXEL_DEAL_CUH

#include <cub/block/block_scan.cuh>
#include "voxel_cells.cuh"

namespace {

/* A block deals DEALT points. A part is of PART cells at most: every parts-th LINE of them, so that what lies together in space
 * is many parts'. Shares begin at multiples of PAD numbers of 16 bits, 16 bytes. */
enum { DEALERS = 512, ROUNDS = 4, DEALT = DEALERS * ROUNDS * EACH, PART = 32768, LINE = 32, PARTS_MOST = 1024, PAD = 8 };

/* Shares of parts: of each dealing block, room numbers of cells in their parts; where a share begins, in PADs, and how many are its. */
struct shares {
    uint32_t parts, blocks, room, shift; /* parts is 1 << shift */
    uint16_t *local;
    uint32_t *share; /* parts * blocks: begin + length * 2^16 */
};

static shares shares_of(uint64_t points, uint64_t cells)
{
    shares s = { 1, (uint32_t)((points + DEALT - 1) / DEALT), 0, 0, nullptr, nullptr };

    while ((uint64_t)s.parts * PART < (cells + LINE - 1) / LINE * LINE) {
        s.parts *= 2;
        s.shift++;
    }
    s.room = DEALT + (PAD - 1) * s.parts;
    return s;
}

static uint64_t shares_bytes(const shares &s)
{
    return (uint64_t)s.blocks * (2ull * s.room + 4ull * s.parts);
}

struct dealing {
    uint32_t begin[PARTS_MOST];
    __align__(16) uint16_t local[DEALT + (PAD - 1) * PARTS_MOST];
};

/* begin of each part's share from how many are its; tells the shares. Gives the end of the last. All threads call it. */
__device__ __forceinline__ uint32_t begin_shares(const shares &to, dealing &s)
{
    typedef cub::BlockScan<uint32_t, DEALERS> Scan;
    __shared__ typename Scan::TempStorage room;
    __shared__ uint32_t end;
    const uint32_t each = PARTS_MOST / DEALERS;
    uint32_t first = threadIdx.x * each, sum = 0, begin, n[each];

    for (uint32_t k = 0; k < each; k++) {
        n[k] = first + k < to.parts ? s.begin[first + k] : 0;
        sum += (n[k] + PAD - 1) / PAD;
    }
    Scan(room).ExclusiveSum(sum, begin);
    if (threadIdx.x == DEALERS - 1)
        end = (begin + sum) * PAD;
    for (uint32_t k = 0; k < each && first + k < to.parts; k++) {
        to.share[(uint64_t)(first + k) * to.blocks + blockIdx.x] = begin | n[k] << 16;
        s.begin[first + k] = begin * PAD;
        begin += (n[k] + PAD - 1) / PAD;
    }
    __syncthreads();
    return end;
}

__global__ void __launch_bounds__(DEALERS, 2) deal(const __grid_constant__ grid g, const float *xyz, uint64_t n, shares to, tally *told)
{
    __shared__ dealing s;
    uint64_t first = (uint64_t)(gridDim.x - 1 - blockIdx.x) * DEALT + EACH * threadIdx.x;
    uint32_t at[ROUNDS * EACH], given = 0;
    uint16_t rank[ROUNDS * EACH];

    for (uint32_t i = threadIdx.x; i < to.parts; i += DEALERS)
        s.begin[i] = 0;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        float x[EACH][3];

        load_points(xyz, first + (uint64_t)r * DEALERS * EACH, n, x);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            uint32_t cell[3];
            bool in = cell_of(g, x[k], cell);
            uint32_t c = in ? (cell[0] * g.p.dim[1] + cell[1]) * g.p.dim[2] + cell[2] : ~0u;

            given += in;
            at[EACH * r + k] = c;
            rank[EACH * r + k] = in ? (uint16_t)atomicAdd(&s.begin[c / LINE & (to.parts - 1)], 1u) : 0;
        }
    }
    __syncthreads();
    uint32_t end = begin_shares(to, s);
#pragma unroll
    for (int i = 0; i < ROUNDS * EACH; i++)
        if (at[i] != ~0u)
            s.local[s.begin[at[i] / LINE & (to.parts - 1)] + rank[i]] = (uint16_t)((at[i] / LINE >> to.shift) * LINE + at[i] % LINE);
    __syncthreads();
    for (uint32_t i = PAD * threadIdx.x; i < end; i += PAD * DEALERS)
        *(uint4 *)(to.local + (uint64_t)blockIdx.x * to.room + i) = *(const uint4 *)(s.local + i);
    sum_up(given, &told->given, s.begin[0]);
}

/* One more point in each of up to PAD cells of the part; count: two a word. */
__device__ __forceinline__ void count_share(uint4 q, uint32_t n, uint32_t *count)
{
    const uint32_t word[4] = { q.x, q.y, q.z, q.w };

#pragma unroll
    for (uint32_t i = 0; i < PAD; i++)
        if (i < n) {
            uint32_t c = word[i / 2] >> i % 2 * 16 & 0xffff;

            atomicAdd(&count[c / 2], 1u << c % 2 * 16);
        }
}

/* The part of the block, counted and written; gives how many the counts hold. */
__device__ __forceinline__ uint32_t settle_part(const shares &from, uint32_t *count, uint64_t n, float *weight, float *tsdf)
{
    uint32_t kept = 0;

    for (uint32_t i = threadIdx.x; i < PART / 2; i += blockDim.x)
        count[i] = 0;
    __syncthreads();
    for (uint32_t b = threadIdx.x; b < from.blocks; b += blockDim.x) {
        uint32_t share = from.share[(uint64_t)blockIdx.x * from.blocks + b], left = share >> 16;
        const uint4 *q = (const uint4 *)(from.local + (uint64_t)b * from.room) + (share & 0xffff);

        for (; left > PAD; left -= PAD)
            count_share(*q++, PAD, count);
        if (left)
            count_share(*q, left, count);
    }
    __syncthreads();
    for (uint32_t i = 4 * threadIdx.x; i < PART; i += 4 * blockDim.x) {
        uint64_t c = ((uint64_t)(i / LINE) * from.parts + blockIdx.x) * LINE + i % LINE;

        if (c < n)
            kept += give_cells(*(const uint2 *)(count + i / 2), c, n, weight, tsdf);
    }
    return kept;
}

} // namespace
#endif
