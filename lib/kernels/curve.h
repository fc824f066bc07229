/* kernels/curve.h - points along a space-filling curve, so that what is near lies near in memory. */
#ifndef KERNELS_CURVE_H
#define KERNELS_CURVE_H

#include "recon/kernel.h"
#include "kernels/hd.h"

KERN_BEGIN

/* The numbers of n points (x, y, z; fewer than 2^32) along Morton's curve through 1024 cells a side of a cube around them, those of a
 * cell in ascending order; the caller's to free. NULL after fail(). ret_side: the cube's, not above 0 where there is none.
 * Takes 20 n bytes, of which 4 n are the result. */
uint32_t *curve_sort(struct recon_ctx *ctx, const float *xyz, uint64_t n, float *ret_side);

KERN_END
#endif
