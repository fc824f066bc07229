/* kernels/curve.h - points along a space-filling curve, so that what is near lies near in memory. */
#ifndef KERNELS_CURVE_H
#define KERNELS_CURVE_H

#include "recon/kernel.h"
#include "kernels/hd.h"

KERN_BEGIN

#define CURVE_BITS 30

/* two zero bits behind each of ten */
KERN_HD uint32_t curve_spread(uint32_t x)
{
    x = (x | x << 16) & 0x030000ffu;
    x = (x | x << 8) & 0x0300f00fu;
    x = (x | x << 4) & 0x030c30c3u;
    return (x | x << 2) & 0x09249249u;
}

/* The cell of a point along the curve, in a cube given by its low corner and side. */
KERN_HD uint32_t curve_cell(const float low[3], float side, const float x[3])
{
    uint32_t code = 0;

    for (int i = 0; i < 3; i++) {
        float t = (x[i] - low[i]) / side * 1023;

        code |= curve_spread(t > 0 ? t < 1023 ? (uint32_t)t : 1023 : 0) << i;
    }
    return code;
}

/* The numbers of n points (x, y, z; fewer than 2^32) along Morton's curve through 1024 cells a side of a cube around them, those of a
 * cell in ascending order; the caller's to free. NULL after fail(). ret_side: the cube's, not above 0 where there is none.
 * Takes 20 n bytes, of which 4 n are the result. */
uint32_t *curve_sort(struct recon_ctx *ctx, const float *xyz, uint64_t n, float *ret_side);

KERN_END
#endif
