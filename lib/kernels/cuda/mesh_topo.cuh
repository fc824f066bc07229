/* kernels/cuda/mesh_topo.cuh - edges of a mesh on the device: struct topo of mesh_plan.h, number for number; sets that join. */
#ifndef KERNELS_CUDA_MESH_TOPO_CUH
#define KERNELS_CUDA_MESH_TOPO_CUH

#include "slots.cuh"
#include "kernels/mesh_plan.h"

/* Everything on the device: edges by (lower vertex, higher vertex), the half-edges of an edge ascending. */
struct cuda_topo {
    const uint32_t *index;
    uint64_t vertices, faces, edges, halves;
    uint32_t *half;    /* halves */
    uint32_t *first;   /* edges + 1 */
    uint32_t *edge_of; /* 3 * faces: edge of a half-edge, or TOPO_NONE */
};
/* Memory is of scratch (three pieces), what is needed meanwhile is given back; refuses what topo_build refuses; waits. 0 or -1
 * after fail(). */
int cuda_topo_build(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, struct cuda_topo *ret);
void cuda_topo_release(Scratch &scratch, struct cuda_topo *t); /* gives the three back before scratch ends */
uint64_t cuda_topo_bytes(uint64_t vertices, uint64_t faces);   /* at most, while it is built */

/* corner, 3 * faces: the lowest of the corner's fan, itself where the face has no edges; fans, vertices: of how many fans each is. */
int cuda_topo_fans(struct recon_ctx *ctx, const struct cuda_topo *t, uint32_t *corner, uint32_t *fans);
/* repeated, faces: 1 where an earlier face has the same three vertices, else 0; waits. Takes at most 25 bytes a face and 16 MiB. */
int cuda_topo_repeated(struct recon_ctx *ctx, const struct cuda_topo *t, uint8_t *repeated);

static __device__ __forceinline__ uint32_t topo_count(const struct cuda_topo &t, uint32_t edge)
{
    return t.first[edge + 1] - t.first[edge];
}

/* topo_twin of mesh_plan.h: the half-edge on the other side, or TOPO_NONE. */
static __device__ __forceinline__ uint32_t topo_twin(const struct cuda_topo &t, uint32_t h)
{
    uint32_t e = t.edge_of[h], k;

    if (e == TOPO_NONE || topo_count(t, e) != 2)
        return TOPO_NONE;
    k = t.half[t.first[e]] == h ? t.half[t.first[e] + 1] : t.half[t.first[e]];
    return t.index[k] == t.index[h] ? TOPO_NONE : k;
}

/* ---- sets that join, by all threads at once (set_root and set_join of mesh_plan.h): parent[i] == i is a root ---- */

/* Paths are halved on the way, and numbers only fall: whoever comes late with an older parent changes nothing, so a root may be
 * written down meanwhile. What is read may be old; who is no root never becomes one again. */
static __device__ __forceinline__ uint32_t sets_root(uint32_t *parent, uint32_t i)
{
    const volatile uint32_t *p = parent;

    for (uint32_t up = p[i]; up != i; up = p[i]) {
        uint32_t over = p[up];

        if (over != up)
            atomicMin(&parent[i], over);
        i = over;
    }
    return i;
}

/* A root goes below a lower one, so that when all have joined the lowest number of a set is its root, whoever came first. Ends:
 * each turn that another thread spoils makes a number smaller. */
static __device__ __forceinline__ void sets_join(uint32_t *parent, uint32_t a, uint32_t b)
{
    for (;;) {
        a = sets_root(parent, a);
        b = sets_root(parent, b);
        if (a == b)
            return;
        uint32_t high = a < b ? b : a, low = a < b ? a : b, was = atomicCAS(&parent[high], high, low);

        if (was == high)
            return;
        a = was;
        b = low;
    }
}

#endif
