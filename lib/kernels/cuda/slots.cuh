/* kernels/cuda/slots.cuh - slots that share arrays on the device, choices of points, small readings back. Each function of a context
 * gives 0, or -1 after fail(). */
#ifndef KERNELS_CUDA_SLOTS_CUH
#define KERNELS_CUDA_SLOTS_CUH

#include "cuda.cuh"
#include "kernels/mesh_rows.h"

/* The arrays of m in a further slot, an empty one: all but normals, those of corners too, and xyz without places. On failure ret has
 * what it shares so far, which is the caller's to free. */
int cuda_mesh_share(struct recon_ctx *ctx, const struct recon_mesh *m, bool places, struct recon_mesh *ret);
/* The chosen points in their order, normals and colours with them; numbers on the device. Into an empty slot. */
int cuda_points_take(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *chosen, uint64_t n, struct recon_points *ret);
/* Low and high corner of n points, 12 bytes a point; waits. Infinite when there are none; coordinates that are no number
 * count for nothing. */
int cuda_box(struct recon_ctx *ctx, const float *xyz, uint64_t n, double low[3], double high[3]);
/* Refuses the first face that names a vertex that is not there (face-index-out-of-range); waits. */
int cuda_index_check(struct recon_ctx *ctx, const struct recon_mesh *m);
/* The same for who has looked: 0 when corner is none (all bits set). */
int cuda_index_refuse(struct recon_ctx *ctx, const struct recon_mesh *m, unsigned long long corner);

int cuda_count_up(struct recon_ctx *ctx, uint32_t *p, uint64_t n); /* p[i] = i */

/* Values back to the host, in order of the queue; waits. */
template <typename T> int cuda_read(struct recon_ctx *ctx, T *to, const T *from, uint64_t n)
{
    return cuda_device.download(ctx, to, from, n * sizeof(T));
}

/* A CUB call twice: for the size of its scratch memory, then for the work. call(room, size) -> cudaError_t */
template <typename F> int cuda_cub(struct recon_ctx *ctx, Scratch &scratch, const char *what, F call)
{
    size_t size = 0;
    char *room;

    if (cuda_ok(ctx, call(nullptr, size), what) || !(room = scratch.take<char>(size ? size : 1)))
        return -1;
    return cuda_ok(ctx, call(room, size), what);
}

/* How many bits hold n. */
static inline int bits_of(uint64_t n)
{
    int b = 0;

    while (b < 64 && n >> b)
        b++;
    return b;
}

#endif
