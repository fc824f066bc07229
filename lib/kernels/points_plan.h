/* kernels/points_plan.h - what the kernels of points share between devices. Host memory through ctx->host. C and C++. */
#ifndef KERNELS_POINTS_PLAN_H
#define KERNELS_POINTS_PLAN_H

#include <math.h>
#include <stdbool.h>
#include "kernels/mesh_rows.h"

KERN_BEGIN

int points_copy(struct recon_ctx *ctx, const struct recon_points *p, bool normals, struct recon_points *ret); /* normals: room for them */
void points_free(struct recon_ctx *ctx, struct recon_points *p);

/* ---- points.voxelize ---- */

struct voxel_plan {
    int meaning, form;
    uint32_t dim[3];
    double origin[3]; /* of sample (0, 0, 0); a cell's low corner for grid and kaolin */
    double scale;     /* kaolin: extent */
    double voxel;     /* between samples */
    double center[3]; /* what is added to origin for a cell's centre */
};
void points_box(const struct recon_points *p, double low[3], double high[3]); /* infinite when there are none */
/* Refuses points of no extent where it is wanted, shapes that are no three whole numbers, grids above 2^40 cells. */
int voxel_plan(struct recon_ctx *ctx, const struct recon_points *in, const struct recon_value *params, struct voxel_plan *ret);
int voxel_plan_box(struct recon_ctx *ctx, const double low[3], const double high[3], const struct recon_value *params, struct voxel_plan *ret);
/* The cell of a point: false outside. For kaolin and grid. */
KERN_HD bool voxel_cell(const struct voxel_plan *p, const float *xyz, uint32_t cell[3])
{
    for (int i = 0; i < 3; i++) {
        double x = (double)xyz[i] - p->origin[i];

        x = p->meaning == VOXELIZE_KAOLIN ? rint(x / p->scale * (p->dim[i] - 1)) : floor(x / p->voxel);
        if (!(x >= 0 && x < p->dim[i]))
            return false;
        cell[i] = (uint32_t)x;
    }
    return true;
}
KERN_HD uint64_t voxel_number(const struct voxel_plan *p, const uint32_t cell[3])
{
    return ((uint64_t)cell[0] * p->dim[1] + cell[1]) * p->dim[2] + cell[2];
}
/* The span of cells along an axis whose centres may be within reach of x, one wider than exact; false: none. */
KERN_HD bool voxel_span(const struct voxel_plan *p, int axis, double x, double reach, uint32_t *from, uint32_t *to)
{
    double a = floor((x - reach - p->origin[axis]) / p->voxel), b = ceil((x + reach - p->origin[axis]) / p->voxel);

    if (!(b >= 0 && a < p->dim[axis]))
        return false;
    *from = a > 0 ? (uint32_t)a : 0;
    *to = b < p->dim[axis] - 1 ? (uint32_t)b : p->dim[axis] - 1;
    return true;
}
int voxelize_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int voxelize_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out);
/* Calls what for every cell of a point, until it gives other than 0. 0 or -1. */
int voxel_each(const struct voxel_plan *p, const float *xyz, int (*what)(void *self, const uint32_t cell[3]), void *self);
/* 'auto' becomes dense where that fits nine tenths of free_bytes, else blocks. */
void voxelize_choose(struct voxel_plan *p, uint64_t free_bytes);
uint64_t voxelize_dense_bytes(const struct voxel_plan *p);
uint64_t voxelize_block_bytes(const struct voxel_plan *p, uint64_t blocks);
/* Refuses (65, volume-too-big) when so many blocks need more than nine tenths of free_bytes. */
int voxelize_blocks_fit(struct recon_ctx *ctx, const struct voxel_plan *p, uint64_t blocks, uint64_t free_bytes, const char *where);
/* The blocks with an occupied cell, ranked; points on the host. 0, or -1 after fail(). */
struct blocks;
int voxelize_grid(struct recon_ctx *ctx, const struct voxel_plan *p, const struct recon_points *in, struct blocks *ret);
/* What is asked for must be there: form against the outputs. */
int voxelize_outputs(struct recon_ctx *ctx, const struct voxel_plan *p, void *const *out);
int voxelize_none(struct recon_ctx *ctx, const struct recon_points *in); /* empty-result; -1 */
int golden_voxelize(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

/* ---- points.farthest ---- */

/* The first point's number. */
int fps_first(struct recon_ctx *ctx, const struct recon_points *p, const struct recon_value *params, uint64_t *ret);
int fps_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int fps_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out);
/* The chosen points in their order. */
int fps_give(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *chosen, uint64_t n, struct recon_points *ret);
int golden_fps(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

KERN_HD double point_distance2(const float *a, const float *b)
{
    double x = (double)a[0] - (double)b[0], y = (double)a[1] - (double)b[1], z = (double)a[2] - (double)b[2];

    return x * x + y * y + z * z;
}

/* ---- points.normals ---- */

/* Unit eigenvector of the least eigenvalue of the covariance of n neighbours (numbers in near) by Jacobi's turns; its largest
 * coordinate is above zero. flat: the neighbours lie on a line or a point: no normal, 0 0 0. */
void normal_of(const float *xyz, const uint32_t *near, int n, double normal[3]);
/* Turns normals: params' orient; near: k a point, nearest first. */
int normals_orient(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *near, int k, const struct recon_value *params,
                   float *normals);
int points_normals_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int points_same_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out);
int golden_points_normals(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

KERN_END
#endif
