/* kernels/cpu/cpu.h - the kernels of the CPU module, one file each, and what they share. */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include "base/base.h"
#include "kernels/plan.h"
#include "kernels/rows.h"

extern const struct recon_kernel cpu_frames_read, cpu_frames_write, cpu_tsdf_fuse, cpu_marching_cubes,
    cpu_volume_read, cpu_volume_write, cpu_mesh_write, cpu_scene_render, cpu_render_preview;

int cpu_frames_selftest(struct recon_ctx *ctx);
/* The host's alloc, in pages of two megabytes where the system gives them: each page of four kilobytes costs a fault at its first
 * use. The caller's to free with the host's free; NULL after fail(). */
void *cpu_take_large(struct recon_ctx *ctx, uint64_t bytes);

#endif
