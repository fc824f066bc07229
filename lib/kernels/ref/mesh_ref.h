/* kernels/ref/mesh_ref.h - the kernels of meshes and points in plain serial C: they share rows, plans and golden inputs with
 * the others, and no loop. */
#ifndef KERNELS_REF_MESH_REF_H
#define KERNELS_REF_MESH_REF_H

#include "base/base.h"
#include "kernels/mesh_plan.h"
#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/points_plan.h"

extern const struct recon_kernel ref_mesh_check, ref_mesh_transform, ref_mesh_clean, ref_mesh_fill, ref_mesh_smooth, ref_mesh_normals,
    ref_mesh_subdivide, ref_mesh_simplify, ref_check_sign, ref_points_normals, ref_points_fps, ref_points_voxelize;

#define REF_MESH_KERNELS                                                                                                   \
    &ref_mesh_check, &ref_mesh_transform, &ref_mesh_clean, &ref_mesh_fill, &ref_mesh_smooth, &ref_mesh_normals, \
        &ref_mesh_subdivide, &ref_mesh_simplify, &ref_check_sign, &ref_points_normals, &ref_points_fps, &ref_points_voxelize

/* The undirected edges of a mesh, ascending by (lower, higher), each once; *ret_n how many. Faces that name a vertex twice
 * have none. NULL after fail(). */
uint64_t *ref_edges(struct recon_ctx *ctx, const struct recon_mesh *m, uint64_t *ret_n);
/* The place of the edge a-b in them. */
uint64_t ref_edge(const uint64_t *edges, uint64_t n, uint32_t a, uint32_t b);

#endif
