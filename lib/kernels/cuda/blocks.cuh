/* cuda/blocks.cuh - volumes in blocks on the device: the grid of kernels/blocks.h. Its arrays are of the Scratch, in device memory; every
 * function of a context gives 0, or -1 after fail(). */
#ifndef KERNELS_CUDA_BLOCKS_CUH
#define KERNELS_CUDA_BLOCKS_CUH

#include "cuda.cuh"
#include "kernels/blocks.h"

/* Bytes of a planned grid and of what ranking it takes. */
uint64_t cuda_blocks_bytes(const struct blocks *b);
/* An empty grid for volumes of dim: as blocks_take(). */
int cuda_blocks_take(struct recon_ctx *ctx, Scratch &scratch, const uint32_t dim[3], uint32_t side, struct blocks *ret);
/* As blocks_rank(), in order of the queue. */
int cuda_blocks_rank(struct recon_ctx *ctx, Scratch &scratch, const struct blocks *b);
/* How many blocks there are once they are ranked; waits. */
int cuda_blocks_count(struct recon_ctx *ctx, const struct blocks *b, uint64_t *ret);
/* The list of a ranked grid's n blocks into the volume, as blocks_list(). */
int cuda_blocks_list(struct recon_ctx *ctx, const struct blocks *b, uint64_t n, struct recon_volume *v);
/* Places of a ranked grid's blocks in their order, three numbers each; to has room for all. */
int cuda_blocks_places(struct recon_ctx *ctx, const struct blocks *b, uint32_t *to);
/* The grid of a volume in blocks that is on the device. */
int cuda_blocks_of_volume(struct recon_ctx *ctx, Scratch &scratch, const struct recon_volume *v, struct blocks *ret);

/* Sets the bit of a cell; many threads may at once. */
static __device__ __forceinline__ void blocks_mark(const struct blocks &b, uint64_t cell)
{
    uint32_t *word = (uint32_t *)b.bits + (cell >> 5), bit = 1u << (cell & 31); /* little-endian: the same place in 64 bits */

    if (!(*word & bit)) /* most are set already */
        atomicOr(word, bit);
}
/* Blocks before a cell, which may be the one behind the last. */
static __device__ __forceinline__ uint64_t blocks_before(const struct blocks &b, uint64_t cell)
{
    uint64_t w = cell >> 6;

    return b.before[w] + (w < b.words ? (uint64_t)blocks_count_bits(b.bits[w] & (((uint64_t)1 << (cell & 63)) - 1)) : 0);
}

#endif
