/* Points into cells of blocks: the points mark the blocks of their cells in a grid of bits, then count in the cells. Counts are floats
 * that ones are added to, which is exact whatever the order, and stays at 2^24. */
#include "voxel_blocks.cuh"

#include <cstring>
#include "blocks.cuh"
#include "slots.cuh"
#include "voxel_cells.cuh"

namespace {

__device__ __forceinline__ void place_of(const grid &g, uint64_t number, uint32_t at[3])
{
    at[2] = (uint32_t)(number % g.p.dim[2]);
    at[1] = (uint32_t)(number / g.p.dim[2] % g.p.dim[1]);
    at[0] = (uint32_t)(number / g.p.dim[2] / g.p.dim[1]);
}

__global__ void __launch_bounds__(THREADS) mark_blocks(const __grid_constant__ grid g, const float *xyz, uint64_t n, struct blocks b)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        each_cell(g, xyz + 3 * i, [&](uint64_t number) {
            uint32_t at[3];

            place_of(g, number, at);
            blocks_mark(b, blocks_cell(&b, at[0] >> b.shift, at[1] >> b.shift, at[2] >> b.shift));
        });
}

__global__ void __launch_bounds__(THREADS) count_points(const __grid_constant__ grid g, const float *xyz, uint64_t n, struct blocks b, float *weight)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        each_cell(g, xyz + 3 * i, [&](uint64_t number) {
            uint32_t at[3];

            place_of(g, number, at);
            atomicAdd(&weight[blocks_sample(&b, at[0], at[1], at[2])], 1.0f);
        });
}

__global__ void __launch_bounds__(THREADS) occupy(const float *weight, float *tsdf, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        tsdf[i] = weight[i] > 0;
}

/* A volume of the plan, its arrays taken: n blocks. */
int take_volume(struct recon_ctx *ctx, const struct voxel_plan *p, const struct blocks *b, uint64_t n, struct recon_volume *v)
{
    uint64_t samples = n * FUSE_BLOCK * FUSE_BLOCK * FUSE_BLOCK;

    v->place = RECON_DEVICE;
    memcpy(v->dim, p->dim, sizeof(v->dim));
    v->voxel = v->truncation = p->voxel;
    for (int i = 0; i < 3; i++)
        v->origin[i] = p->origin[i] + p->center[i];
    if (cuda_blocks_list(ctx, b, n, v) || !(v->weight = (float *)cuda_alloc(ctx, 4 * samples)) || !(v->tsdf = (float *)cuda_alloc(ctx, 4 * samples)))
        return -1;
    return cuda_ok(ctx, cudaMemsetAsync(v->weight, 0, 4 * samples, cuda_stream(ctx)), "cudaMemset");
}

} // namespace

uint64_t cuda_voxel_blocks_bytes(const struct voxel_plan *p, uint64_t n)
{
    struct blocks b;

    blocks_plan(p->dim, FUSE_BLOCK, &b);
    return voxelize_block_bytes(p, n) + cuda_blocks_bytes(&b) - blocks_bytes(p->dim, FUSE_BLOCK);
}

int cuda_voxel_blocks(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct recon_volume *v)
{
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t points = in->n, n, samples;
    Scratch scratch(ctx);
    struct blocks b;
    grid g = {};

    g.p = *p;
    find_by_floats(&g);
    if (cuda_blocks_take(ctx, scratch, p->dim, FUSE_BLOCK, &b))
        return -1;
    if (points)
        mark_blocks<<<blocks_of(points, THREADS), THREADS, 0, queue>>>(g, in->xyz, points, b);
    if (cuda_launched(ctx, "points into cells") || cuda_blocks_rank(ctx, scratch, &b) || cuda_blocks_count(ctx, &b, &n))
        return -1;
    if (n == 0)
        return voxelize_none(ctx, in);
    if (voxelize_blocks_fit(ctx, p, n, cuda_memory_free(ctx), "device") || take_volume(ctx, p, &b, n, v))
        return -1;
    samples = recon_volume_samples(v);
    count_points<<<blocks_of(points, THREADS), THREADS, 0, queue>>>(g, in->xyz, points, b, v->weight);
    occupy<<<blocks_of(samples, THREADS), THREADS, 0, queue>>>(v->weight, v->tsdf, samples);
    return cuda_launched(ctx, "points into cells");
}
