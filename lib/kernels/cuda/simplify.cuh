/* kernels/cuda/simplify.cuh - what the parts of mesh.simplify on the device share. */
#ifndef KERNELS_CUDA_SIMPLIFY_CUH
#define KERNELS_CUDA_SIMPLIFY_CUH

#include "slots.cuh"
#include "kernels/rounds.h"

struct cuda_simplify {
    struct rounds r;                /* its arrays are the device's */
    const struct recon_mesh *in;
    uint32_t *was;                  /* of in->vertices numbers, in the mesh: struct simplify_order of quadric.h */
    float scale;                    /* times the mesh's lengths: the longest side of its box from a half to one */
    uint64_t edges;                 /* at the beginning */
    uint64_t faces, vertices;       /* that are left */
};
/* The mesh as the host's form has it before its first round, from in; r.most stays the caller's to set. Memory is of scratch. Waits. 0, or
 * -1 after fail(). */
int cuda_simplify_prepare(struct recon_ctx *ctx, Scratch &scratch, struct cuda_simplify *s);
uint64_t cuda_simplify_prepare_bytes(uint64_t vertices, uint64_t faces); /* at most, what stays included */

#endif
