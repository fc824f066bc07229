#include "config.h"
#include "kernels/ref/mesh_ref.h"
#include "kernels/ref/ref.h"

static const struct recon_kernel *const kernels[] = {&ref_tsdf_fuse, &ref_marching_cubes, &ref_scene_render,
                                                     &ref_render_preview, REF_MESH_KERNELS, NULL};

__attribute__((visibility("default")))
const struct recon_module recon_module = {RECON_KERNEL_ABI, "ref", NULL, kernels, NULL};
