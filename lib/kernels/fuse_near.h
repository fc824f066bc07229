/* kernels/fuse_near.h - which blocks of a volume the depths of a square of pixels come near to, the same for every device. A sample
 * that a pixel places within the band stands in the pixel's pyramid, between its depth less and plus the truncation; so the boxes
 * around those pieces, one sample wider on each side, hold every such sample and its neighbours. C11 and CUDA. */
#ifndef KERNELS_FUSE_NEAR_H
#define KERNELS_FUSE_NEAR_H

#include <stdbool.h>
#include "kernels/plan.h"

enum { FUSE_TILE = 8 }; /* pixels along the side of a square whose depths are looked at together */

struct near_square {
    uint32_t u, v, size; /* first pixel; pixels a side */
};

/* Blocks along an axis from the least to the most coordinate in the world; false: none. */
KERN_HD bool near_span(const struct fuse_plan *p, uint32_t shift, int a, double low, double high, uint32_t ret[2])
{
    double from = ceil((low - p->origin[a]) / p->voxel - 1.001), to = floor((high - p->origin[a]) / p->voxel + 1.001);

    if (!(to >= 0 && from < p->dim[a]))
        return false;
    ret[0] = (from > 0 ? (uint32_t)from : 0) >> shift;
    ret[1] = (to < p->dim[a] - 1 ? (uint32_t)to : p->dim[a] - 1) >> shift;
    return true;
}

/* First and last block along each axis that depths from near to far within the square come near to; false: none. shift: of the
 * blocks' grid. */
KERN_HD bool near_blocks(const struct fuse_plan *p, const struct fuse_view *v, uint32_t shift, const struct near_square *s, double near,
                         double far, uint32_t ret[3][2])
{
    const double half = 0.51; /* pixel, and far more than rounding may shift a sample */
    double u0 = (s->u - half - v->cx) / v->fx, u1 = (s->u + s->size - 1 + half - v->cx) / v->fx, v0 = (s->v - half - v->cy) / v->fy,
           v1 = (s->v + s->size - 1 + half - v->cy) / v->fy;
    int a;

    near = near > p->truncation ? (near - p->truncation) * (1 - 1e-6) : 0;
    far = (far + p->truncation) * (1 + 1e-6);
    for (a = 0; a < 3; a++) { /* the point at depth z is t + z (r0 u + r1 v + r2) */
        double au = v->r[a], av = v->r[3 + a], low = v->r[6 + a], high = low;

        low += (au > 0 ? au * u0 : au * u1) + (av > 0 ? av * v0 : av * v1);
        high += (au > 0 ? au * u1 : au * u0) + (av > 0 ? av * v1 : av * v0);
        if (!near_span(p, shift, a, v->t[a] + low * (low > 0 ? near : far), v->t[a] + high * (high > 0 ? far : near), ret[a]))
            return false;
    }
    return true;
}

#endif
