/* The CUDA module: what it has. */
#include "cuda.cuh"

static const struct recon_kernel *const kernels[] = { &cuda_tsdf_fuse,  &cuda_marching_cubes, &cuda_scene,           &cuda_preview,
                                                      &cuda_mesh_smooth, &cuda_mesh_normals,  &cuda_check_sign,
                                                      &cuda_points_fps, &cuda_points_voxelize, &cuda_points_normals, nullptr };

extern "C" __attribute__((visibility("default"))) const struct recon_module recon_module = { RECON_KERNEL_ABI, "cuda",
                                                                                             &cuda_device, kernels };
