/* cuda/voxel_blocks.cuh - points.voxelize into a volume in blocks, on the device. */
#ifndef KERNELS_CUDA_VOXEL_BLOCKS_CUH
#define KERNELS_CUDA_VOXEL_BLOCKS_CUH

#include "cuda.cuh"
#include "kernels/points_plan.h"

/* Blocks of cells with points in them, ascending, into an empty slot, in device memory that is the caller's. 0, or -1 after fail(). */
int cuda_voxel_blocks(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct recon_volume *v);
uint64_t cuda_voxel_blocks_bytes(const struct voxel_plan *p, uint64_t blocks); /* at most */

#endif
