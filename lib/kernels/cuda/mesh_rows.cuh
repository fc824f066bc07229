/* kernels/cuda/mesh_rows.cuh - rows of numbers on the device: neighbours and corners of vertices, ascending, by sorting or by counting. */
#ifndef KERNELS_CUDA_MESH_ROWS_CUH
#define KERNELS_CUDA_MESH_ROWS_CUH

#include "slots.cuh"

/* Row v is item[first[v]] .. item[first[v + 1] - 1]. */
struct cuda_rows {
    uint32_t *first; /* n + 1 */
    uint32_t *item;
    uint64_t items;
    bool sorted; /* each row ascending; else in any order, and no row of more than CUDA_ROW_FEW numbers */
};
enum { CUDA_ROW_FEW = 24 };
/* Each gives 0 or -1 after fail(); memory of rows is of scratch, what is needed meanwhile is given back. Refuses the first face
 * that names a vertex that is not there; waits. */
int cuda_rows_corners(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, struct cuda_rows *ret);
/* fixed, NULL or a byte a vertex: 1 at edges of other than two faces, else 0. Faces that name a vertex twice have no edges. */
int cuda_rows_neighbours(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, uint8_t *fixed, struct cuda_rows *ret);
uint64_t cuda_rows_corners_bytes(uint64_t vertices, uint64_t faces); /* at most, rows included */
uint64_t cuda_rows_neighbours_bytes(uint64_t vertices, uint64_t faces);

/* first[v] of sorted owners; owner(i) of items, n of them. One thread an item fills the rows that begin there. */
template <typename F> static __device__ __forceinline__ void begin_rows(uint64_t i, uint64_t n, uint64_t vertices, uint32_t *first, F owner)
{
    uint64_t now = i < n ? owner(i) : vertices, before = i ? owner(i - 1) + 1 : 0;

    now = now < vertices ? now : vertices;
    for (uint64_t v = before; v <= now; v++)
        first[v] = (uint32_t)i;
}

#endif
