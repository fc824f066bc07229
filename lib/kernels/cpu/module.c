#include "config.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/mesh_cpu.h"

static const struct recon_kernel *const kernels[] = {
    &cpu_frames_read, &cpu_frames_write, &cpu_tsdf_fuse,    &cpu_marching_cubes, &cpu_volume_read,
    &cpu_volume_write, &cpu_mesh_write,  &cpu_scene_render, &cpu_render_preview, CPU_MESH_KERNELS,
    NULL,
};

__attribute__((visibility("default")))
const struct recon_module recon_module = {RECON_KERNEL_ABI, "cpu", NULL, kernels, NULL};
