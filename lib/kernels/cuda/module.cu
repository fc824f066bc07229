/* The CUDA module: what it has, and what it leaves to the host. */
#include "cuda.cuh"
#include "kernels/quadric.h"

static const struct recon_kernel *const kernels[] = { &cuda_tsdf_fuse,  &cuda_marching_cubes, &cuda_scene,           &cuda_preview,
                                                      &cuda_mesh_smooth, &cuda_mesh_normals,  &cuda_mesh_check,      &cuda_mesh_fill,     &cuda_mesh_clean,
                                                      &cuda_mesh_subdivide, &cuda_mesh_simplify, &cuda_check_sign,
                                                      &cuda_points_fps, &cuda_points_voxelize, &cuda_points_normals, nullptr };

static int elsewhere(struct recon_ctx *ctx, const struct recon_kernel *k, const void *const *in, const struct recon_value *params, char *why,
                     size_t size)
{
    if (k == &cuda_mesh_simplify)
        return simplify_elsewhere(params, why, size);
    return 0;
}

extern "C" __attribute__((visibility("default"))) const struct recon_module recon_module = { RECON_KERNEL_ABI, "cuda",
                                                                                             &cuda_device, kernels, elsewhere };
