/* cuda/mc_sides.cuh - the first pass of marching cubes over a dense volume: see mc.cu. */
#ifndef KERNELS_CUDA_MC_SIDES_CUH
#define KERNELS_CUDA_MC_SIDES_CUH

#include "mc_surface.cuh"

namespace {

enum { RUN = 8, SIDES = 256 };

/* A warp RUN words, a lane a sample of each. */
__global__ void __launch_bounds__(SIDES) make_sides(job j, uint32_t blocks, unsigned long long *nans)
{
    uint32_t lane = threadIdx.x % 32, x = blockIdx.x / blocks, pad = (uint32_t)j.rule.pad,
             word = ((blockIdx.x - x * blocks) * (SIDES / 32) + threadIdx.x / 32) * RUN, y = word / j.words,
             w = word - y * j.words, mine = 0, mine_seen = 0, bad = 0, in_row = 0;
    float f[RUN], weight[RUN];

    if (word >= j.plane)
        return;
#pragma unroll
    for (uint32_t i = 0; i < RUN; i++) { /* what is less than 0 wraps to more than any dimension */
        uint32_t z = 32 * w + lane - pad;
        uint64_t at = ((uint64_t)(x - pad) * j.dim[1] + (y - pad)) * j.dim[2] + z;
        bool in_volume = x - pad < j.dim[0] && y - pad < j.dim[1] && z < j.dim[2] && word + i < j.plane;

        f[i] = in_volume ? j.tsdf[at] : j.rule.ge ? -INFINITY : INFINITY;
        weight[i] = in_volume && j.seen ? j.weight[at] : INFINITY;
        in_row |= (uint32_t)(32 * w + lane < j.n[2]) << i;
        if (++w == j.words) {
            w = 0;
            y++;
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < RUN; i++) {
        uint32_t in = __ballot_sync(ALL_LANES, j.rule.ge ? f[i] >= j.least : f[i] < j.least);

        mine = lane == i ? in : mine;
        bad += f[i] != f[i];
        if (j.seen) {
            uint32_t seen = __ballot_sync(ALL_LANES, (in_row >> i & 1) && weight[i] > (float)j.rule.min_weight);

            mine_seen = lane == i ? seen : mine_seen;
        }
    }
    if (bad)
        atomicAdd(nans, (unsigned long long)bad);
    if (lane < RUN && word + lane < j.plane) {
        j.inside[(uint64_t)x * j.plane + word + lane] = mine;
        if (j.seen)
            j.seen[(uint64_t)x * j.plane + word + lane] = mine_seen;
    }
}

/* A lane's samples of n words, the others 0. */
__device__ void run_of(const float *from, uint32_t n, float to[RUN])
{
    if (n == RUN) {
#pragma unroll
        for (uint32_t i = 0; i < RUN; i++)
            to[i] = from[32 * i];
    } else {
#pragma unroll
        for (uint32_t i = 0; i < RUN; i++)
            to[i] = i < n ? from[32 * i] : 0;
    }
}

/* The same where rows fill their words and nothing is padded: samples follow each other as words do. */
__global__ void __launch_bounds__(SIDES) make_sides_flat(job j, uint64_t words, unsigned long long *nans)
{
    uint32_t lane = threadIdx.x % 32, mine = 0, mine_seen = 0, bad = 0;
    uint64_t word = ((uint64_t)blockIdx.x * (SIDES / 32) + threadIdx.x / 32) * RUN;
    const float *from = j.tsdf + word * 32 + lane, *from_weight = j.weight + word * 32 + lane;
    uint32_t n = word + RUN <= words ? RUN : (uint32_t)(words - word);
    float f[RUN], weight[RUN];

    if (word >= words)
        return;
    run_of(from, n, f);
    if (j.seen)
        run_of(from_weight, n, weight);
#pragma unroll
    for (uint32_t i = 0; i < RUN; i++) {
        uint32_t in = j.rule.ge ? __ballot_sync(ALL_LANES, f[i] >= j.least) : __ballot_sync(ALL_LANES, f[i] < j.least);

        mine = lane == i ? in : mine;
        bad += f[i] != f[i];
    }
    if (j.seen) {
#pragma unroll
        for (uint32_t i = 0; i < RUN; i++) {
            uint32_t seen = __ballot_sync(ALL_LANES, weight[i] > (float)j.rule.min_weight);

            mine_seen = lane == i ? seen : mine_seen;
        }
    }
    if (bad)
        atomicAdd(nans, (unsigned long long)bad);
    if (lane < RUN && word + lane < words) {
        j.inside[word + lane] = mine;
        if (j.seen)
            j.seen[word + lane] = mine_seen;
    }
}

} // namespace

#endif
