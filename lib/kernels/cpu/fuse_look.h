/* kernels/cpu/fuse_look.h - inside the fusion: a block of samples and one frame. */
#ifndef KERNELS_CPU_FUSE_LOOK_H
#define KERNELS_CPU_FUSE_LOOK_H

#include "kernels/cpu/fuse_cpu.h"

#include <math.h>

enum { N = FUSE_ALONG, ROWS = FUSE_SIDE * FUSE_SIDE };

/* Samples of a block: row FUSE_SIDE * x + y, then z; beyond the volume's end there is room, but nothing of worth. */
struct block {
    const struct fuse_target *t;
    int64_t at[3];
    int n[3];                /* samples within the volume */
    uint64_t first, step[2]; /* in the arrays: place of the block's first sample; from a row to the next in x and in y */
    uint16_t *color;         /* its part of the target's, or NULL */
    float *tsdf, *weight;    /* the rows: within a volume's block where that holds them wholly, else own */
    uint32_t ahead[2];       /* from a row to the next there, in x and in y */
    float own_tsdf[ROWS * N], own_weight[ROWS * N];
    bool changed, ones; /* ones: all tsdf are 1 */
};

/* where a row stands in tsdf and weight */
KERN_HD uint32_t block_at(const struct block *b, int row)
{
    return (uint32_t)(row / FUSE_SIDE) * b->ahead[0] + (uint32_t)(row % FUSE_SIDE) * b->ahead[1];
}

/* The row's samples in camera coordinates: those of sample 0 of the volume's row, and the steps, which are the frame's. */
struct starts {
    double x[ROWS], y[ROWS], z[ROWS], xs, ys, zs;
};

/* samples of a row that lie within the volume */
KERN_HD int block_row(const struct block *b, int row)
{
    return row / FUSE_SIDE < b->n[0] && row % FUSE_SIDE < b->n[1] ? b->n[2] : 0;
}

KERN_HD float most_weight(const struct fuse_plan *p)
{
    return p->weight_max > 0 ? (float)p->weight_max : INFINITY;
}

/* Fuses the frame into the block, with AVX-512's gathers: the same bits. Whether this processor has it. Gives the updates. */
bool fuse_has_wide(void);
uint64_t fuse_look_wide(struct block *b, const struct fuse_frame *f, const struct starts *s);

#endif
