/* kernels/cpu/mesh_cpu.h - the kernels of meshes and points of the CPU module, one file each. */
#ifndef KERNELS_CPU_MESH_CPU_H
#define KERNELS_CPU_MESH_CPU_H

#include "base/base.h"
#include "kernels/mesh_plan.h"
#include "kernels/mesh_rows.h"
#include "kernels/plan.h"

extern const struct recon_kernel cpu_mesh_read, cpu_points_read, cpu_points_write, cpu_mesh_check, cpu_mesh_clean, cpu_mesh_fill,
    cpu_mesh_subdivide, cpu_mesh_smooth, cpu_mesh_normals, cpu_mesh_simplify, cpu_check_sign, cpu_points_normals, cpu_points_fps,
    cpu_points_voxelize, cpu_mesh_transform, cpu_points_transform;

#define CPU_MESH_KERNELS                                                                                                        \
    &cpu_mesh_read, &cpu_points_read, &cpu_points_write, &cpu_mesh_check, &cpu_mesh_clean, &cpu_mesh_fill, &cpu_mesh_subdivide,   \
        &cpu_mesh_smooth, &cpu_mesh_normals, &cpu_mesh_simplify, &cpu_check_sign, &cpu_points_normals, &cpu_points_fps, \
        &cpu_points_voxelize, &cpu_mesh_transform, &cpu_points_transform

#endif
