/* kernels/cuda/mesh_clean.cuh - what the parts of mesh.clean share on the device. */
#ifndef KERNELS_CUDA_MESH_CLEAN_CUH
#define KERNELS_CUDA_MESH_CLEAN_CUH

#include "mesh_topo.cuh"
#include "kernels/clean_plan.h"

/* A mesh while it is cleaned. Vertices stay in the mesh that came; what changes is their list and the faces. */
struct cuda_clean {
    struct recon_ctx *ctx;
    const struct recon_mesh *from;
    Scratch &scratch;
    uint64_t vertices, faces;
    uint32_t *index, *other; /* faces; room for as many */
    uint32_t *source;        /* of each vertex its number in from, or NULL: its own */
    bool has_topo;           /* topo is that of index as it is */
    struct cuda_topo topo;
    struct clean_counts n;
};

/* Faces as they are, at the places of from: while source is NULL. */
static inline struct recon_mesh cuda_clean_mesh(const struct cuda_clean *c)
{
    struct recon_mesh m = {};

    m.vertices = c->vertices;
    m.faces = c->faces;
    m.place = RECON_DEVICE;
    m.xyz = c->from->xyz;
    m.index = c->index;
    return m;
}

/* Each gives 0, or -1 after fail(). Memory beyond the members is given back. */
int cuda_clean_topo(struct cuda_clean *c);          /* found unless it is there */
void cuda_clean_topo_release(struct cuda_clean *c); /* before faces change */

/* Flags, 1 where something stays, become places: at[i] of those before i, at[n] of all, which is told; waits. at: n + 1. */
int cuda_clean_places(struct recon_ctx *ctx, uint32_t *at, uint64_t n, uint32_t *ret);
/* Faces whose flag is 0 go; keep: faces + 1, the last for the sum. */
int cuda_clean_drop(struct cuda_clean *c, uint32_t *keep, uint64_t *ret_gone);
/* Vertices that faces name, ascending, into used, which is taken of scratch; the faces name them by their places there. */
int cuda_clean_used(struct recon_ctx *ctx, Scratch &scratch, uint32_t *index, uint64_t faces, uint64_t vertices, uint32_t **used, uint32_t *ret);

int cuda_clean_non_manifold(struct cuda_clean *c);
int cuda_clean_orient(struct cuda_clean *c);
int cuda_clean_fans(struct cuda_clean *c);
int cuda_clean_small(struct cuda_clean *c, uint64_t least, uint64_t largest);

#endif
