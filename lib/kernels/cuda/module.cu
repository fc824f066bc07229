/* The CUDA module: what it has. */
#include "cuda.cuh"

static const struct recon_kernel *const kernels[] = { &cuda_tsdf_fuse, &cuda_marching_cubes, &cuda_scene, &cuda_preview, nullptr };

extern "C" __attribute__((visibility("default"))) const struct recon_module recon_module = { RECON_KERNEL_ABI, "cuda",
                                                                                             &cuda_device, kernels };
