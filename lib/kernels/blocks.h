/* kernels/blocks.h - volumes in blocks (recon/data.h): which block holds a sample. C11 and CUDA.
 *
 * The grid has a bit for each block that there can be, and for each word of 64 bits how many blocks stand before it: number of a
 * block = that + the bits below its own. So a look-up is two loads wherever the block stands, and the grid is a quarter of a
 * byte a block. */
#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include "recon/kernel.h"
#include "kernels/hd.h"

#define BLOCKS_NONE UINT64_MAX

struct blocks {
    uint32_t n[3], side, shift; /* blocks along each axis; side = 1 << shift; 0: the volume is dense */
    uint64_t words;
    uint64_t *bits;
    uint64_t *before; /* words + 1: blocks before each word, the last how many there are */
};

KERN_HD int blocks_count_bits(uint64_t w)
{
#ifdef __CUDA_ARCH__
    return __popcll(w);
#else
    return __builtin_popcountll(w);
#endif
}
KERN_HD uint64_t blocks_cell(const struct blocks *b, uint32_t x, uint32_t y, uint32_t z)
{
    return ((uint64_t)x * b->n[1] + y) * b->n[2] + z;
}
/* Number of block (x, y, z), or BLOCKS_NONE. */
KERN_HD uint64_t blocks_find(const struct blocks *b, uint32_t x, uint32_t y, uint32_t z)
{
    uint64_t at = blocks_cell(b, x, y, z), bit = (uint64_t)1 << (at & 63), word = b->bits[at >> 6];

    return word & bit ? b->before[at >> 6] + (uint64_t)blocks_count_bits(word & (bit - 1)) : BLOCKS_NONE;
}
/* Place of sample (x, y, z) in the arrays, or BLOCKS_NONE. */
KERN_HD uint64_t blocks_sample(const struct blocks *b, uint32_t x, uint32_t y, uint32_t z)
{
    uint64_t k = blocks_find(b, x >> b->shift, y >> b->shift, z >> b->shift);
    uint32_t low = b->side - 1;

    return k == BLOCKS_NONE ? k : (((((k << b->shift) + (x & low)) << b->shift) + (y & low)) << b->shift) + (z & low);
}
/* The same in a volume that is dense or in blocks. */
KERN_HD uint64_t volume_sample(const struct recon_volume *v, const struct blocks *b, uint32_t x, uint32_t y, uint32_t z)
{
    return v->side ? blocks_sample(b, x, y, z) : ((uint64_t)x * v->dim[1] + y) * v->dim[2] + z;
}

KERN_BEGIN

/* The members but the arrays, for volumes of dim. */
void blocks_plan(const uint32_t dim[3], uint32_t side, struct blocks *ret);
/* An empty grid for volumes of dim; bits are zero. blocks_rank() once they are set. 0, or -1 after fail(). */
int blocks_take(struct recon_ctx *ctx, const uint32_t dim[3], uint32_t side, struct blocks *ret);
void blocks_rank(struct blocks *b);
uint64_t blocks_bytes(const uint32_t dim[3], uint32_t side); /* of a grid; side 0: 0 */
/* The grid of a volume, on the host; all zero when it is dense. 0, or -1 after fail(). */
int blocks_of_volume(struct recon_ctx *ctx, const struct recon_volume *v, struct blocks *ret);
void blocks_release(struct recon_ctx *ctx, struct blocks *b);
/* The volume's list of blocks from the grid's bits, in their order. 0, or -1 after fail(). */
int blocks_list(struct recon_ctx *ctx, const struct blocks *b, struct recon_volume *v);
/* A dense copy on the host, as plain as can be. 0, or -1 after fail(). */
int volume_spread(struct recon_ctx *ctx, const struct recon_volume *v, struct recon_volume *ret);

KERN_END
#endif
