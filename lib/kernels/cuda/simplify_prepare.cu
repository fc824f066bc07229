/* mesh.simplify on the device, before the first round: vertices along the curve, faces by their lowest vertex, edges, the corners of each
 * vertex, what never moves, quadrics. Sums run over the faces of a vertex in ascending order, as the host's do. */
#include "simplify.cuh"

#include <cub/device/device_radix_sort.cuh>
#include "kernels/curve.h"
#include "mesh_rows.cuh"
#include "mesh_topo.cuh"

namespace {

enum { THREADS = 256 };

/* ---- orders ---- */

struct box {
    float low[3], side;
};

__global__ void __launch_bounds__(THREADS) find_cells(const float *xyz, uint64_t n, box b, uint32_t *cell)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v < n)
        cell[v] = curve_cell(b.low, b.side, xyz + 3 * v);
}

int sort_vertices(struct recon_ctx *ctx, Scratch &scratch, struct cuda_simplify *s)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t n = s->in->vertices;
    uint32_t *cell = meanwhile.take<uint32_t>(n), *sorted = meanwhile.take<uint32_t>(n), *number = meanwhile.take<uint32_t>(n);
    double low[3], high[3];
    box b = {};

    if (!cell || !sorted || !number || !(s->was = scratch.take<uint32_t>(n)) || cuda_box(ctx, s->in->xyz, n, low, high) ||
        cuda_count_up(ctx, number, n))
        return -1;
    for (int i = 0; i < 3; i++) {
        b.low[i] = (float)low[i];
        b.side = fmaxf(b.side, (float)high[i] - b.low[i]);
    }
    s->scale = simplify_scale(b.side);
    find_cells<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(s->in->xyz, n, b, cell);
    return cuda_launched(ctx, "vertices along a curve") || cuda_cub(ctx, meanwhile, "vertices along a curve", [&](void *room, size_t &size) {
        return cub::DeviceRadixSort::SortPairs(room, size, cell, sorted, number, s->was, n, 0, CURVE_BITS, queue);
    });
}

__global__ void __launch_bounds__(THREADS) invert(const uint32_t *was, uint64_t n, uint32_t *is)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v < n)
        is[was[v]] = (uint32_t)v;
}

__global__ void __launch_bounds__(THREADS) find_least(const uint32_t *index, uint64_t n, const uint32_t *is, uint32_t *least)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= n)
        return;
    uint32_t a = is[index[3 * f]], b = is[index[3 * f + 1]], c = is[index[3 * f + 2]];

    b = b < c ? b : c;
    least[f] = a < b ? a : b;
}

__global__ void __launch_bounds__(THREADS) renumber(const uint32_t *index, const uint32_t *order, uint64_t n, const uint32_t *is, uint32_t *to)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        to[i] = is[index[3 * (uint64_t)order[i / 3] + i % 3]];
}

/* the faces of the mesh in the vertices' new numbers, in their order */
int sort_faces(struct recon_ctx *ctx, Scratch &scratch, const struct cuda_simplify *s, uint32_t **ret)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t v = s->in->vertices, n = s->in->faces;
    uint32_t *index = scratch.take<uint32_t>(3 * n), *is = meanwhile.take<uint32_t>(v), *least = meanwhile.take<uint32_t>(n);
    uint32_t *sorted = meanwhile.take<uint32_t>(n), *number = meanwhile.take<uint32_t>(n), *order = meanwhile.take<uint32_t>(n);

    if (!index || !is || !least || !sorted || !number || !order || cuda_count_up(ctx, number, n))
        return -1;
    invert<<<blocks_of(v, THREADS), THREADS, 0, queue>>>(s->was, v, is);
    find_least<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(s->in->index, n, is, least);
    if (cuda_launched(ctx, "faces along a curve") || cuda_cub(ctx, meanwhile, "faces along a curve", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortPairs(room, size, least, sorted, number, order, n, 0, bits_of(v), queue);
        }))
        return -1;
    renumber<<<blocks_of(3 * n, THREADS), THREADS, 0, queue>>>(s->in->index, order, 3 * n, is, index);
    *ret = index;
    return cuda_launched(ctx, "faces along a curve");
}

/* ---- faces, edges, vertices ---- */

__device__ uint32_t corner_of(uint32_t half)
{
    return half / 3 * 4 + half % 3;
}

__global__ void __launch_bounds__(THREADS) take_faces(cuda_topo t, struct corner_face *face, unsigned long long *told)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    bool there = f < t.faces && t.edge_of[3 * f] != TOPO_NONE;

    if (f < t.faces) {
        for (int i = 0; i < 3; i++) {
            face[f].v[i] = t.index[3 * f + i];
            face[f].e[i] = t.edge_of[3 * f + i];
        }
        if (!there)
            face[f].v[0] = NO_CORNER;
    }
    int n = __syncthreads_count(there);

    if (threadIdx.x == 0 && n)
        atomicAdd(&told[0], (unsigned long long)n);
}

/* Where each edge begins; vertices of edges without another side are locked: whoever does it. */
__global__ void __launch_bounds__(THREADS) take_edges(cuda_topo t, uint32_t *corner, uint8_t *state)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (e >= t.edges)
        return;
    uint32_t h = t.half[t.first[e]];

    corner[e] = corner_of(h);
    if (topo_twin(t, h) == TOPO_NONE)
        state[t.index[h]] = state[t.index[topo_next(h)]] = VERTEX_LOCKED;
}

__global__ void __launch_bounds__(THREADS) take_vertices(struct recon_mesh m, const uint32_t *was, float scale, struct rounds r)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v >= m.vertices)
        return;
    uint64_t from = 3 * (uint64_t)was[v];

    for (int i = 0; i < 3; i++) {
        r.vertex[v].xyz[i] = m.xyz[from + i] * scale;
        if (r.rgb)
            r.rgb[3 * v + i] = m.rgb[from + i];
    }
}

/* ---- corners of a vertex ---- */

/* How many corners the fan around a vertex has, from one of its corners on, and no more than there are; each edge there has another side. */
__device__ uint32_t fan_of(const cuda_topo &t, uint32_t h, uint32_t most)
{
    uint32_t n = 0, g = h;

    do {
        g = topo_next(topo_twin(t, g));
        n++;
    } while (g != h && n < most);
    return n;
}

__device__ void add_face(const struct rounds &r, uint32_t f, struct quadric *to)
{
    const uint32_t *v = r.face[f].v;
    struct quadric q;
    double n[3];

    cross_of(r.vertex[v[0]].xyz, r.vertex[v[1]].xyz, r.vertex[v[2]].xyz, n);
    quadric_face(n, &q);
    for (int k = 0; k < 3; k++) {
        to->d[k] += q.d[k];
        to->o[k] += q.o[k];
    }
    to->area += q.area;
}

/* A vertex a thread: its corners in ascending order become its list. */
template <bool SORTED>
__global__ void __launch_bounds__(THREADS) link_corners(struct rounds r, cuda_topo t, cuda_rows rows, unsigned long long *told)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t own[SORTED ? 1 : CUDA_ROW_FEW], live = 0, some = 0;

    if (v < t.vertices) {
        const uint32_t *item = rows.item + rows.first[v];
        uint32_t n = rows.first[v + 1] - rows.first[v], *at = &r.vertex[v].head;
        struct quadric q = {};

        for (uint32_t i = 0; !SORTED && i < n; i++) {
            uint32_t k = i;

            for (; k > 0 && own[k - 1] > item[i]; k--)
                own[k] = own[k - 1];
            own[k] = item[i];
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t h = SORTED ? item[i] : own[i], c = corner_of(h);

            if (t.edge_of[h] == TOPO_NONE)
                continue;
            *at = c;
            at = &r.face[c >> 2].next[c & 3];
            add_face(r, c >> 2, &q);
            some = h;
            live++;
        }
        *at = NO_CORNER;
        r.vertex[v].q = q;
        if (live && r.state[v] == VERTEX_FREE && fan_of(t, some, live) != live)
            r.state[v] = VERTEX_LOCKED;
    }
    int used = __syncthreads_count(live > 0);

    if (threadIdx.x == 0 && used)
        atomicAdd(&told[1], (unsigned long long)used);
}

__global__ void __launch_bounds__(THREADS) find_levels(struct rounds r, uint64_t n)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (e < n)
        round_level(&r, (uint32_t)e);
}

/* ---- all ---- */

/* what lasts */
int take_arrays(struct recon_ctx *ctx, Scratch &scratch, struct cuda_simplify *s)
{
    struct rounds *r = &s->r;
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t v = s->in->vertices, e = s->edges;

    return !(r->face = scratch.take<struct corner_face>(s->in->faces)) || !(r->vertex = scratch.take<struct corner_vertex>(v)) ||
                   !(r->state = scratch.take<uint8_t>(v)) || (s->in->rgb && !(r->rgb = scratch.take<uint8_t>(3 * v))) ||
                   !(r->corner = scratch.take<uint32_t>(e)) || !(r->level = scratch.take<uint8_t>(e + 8)) ||
                   cuda_ok(ctx, cudaMemsetAsync(r->state, VERTEX_FREE, v, queue), "cudaMemset") ||
                   cuda_ok(ctx, cudaMemsetAsync(r->level, EDGE_NEVER, e + 8, queue), "cudaMemset")
               ? -1
               : 0;
}

} // namespace

uint64_t cuda_simplify_prepare_bytes(uint64_t v, uint64_t f)
{
    uint64_t order = 4 * v + 12 * f, sort = 24 * v + 24 * f + (16 << 20), topo = cuda_topo_bytes(v, f), rows = cuda_rows_corners_bytes(v, f);
    uint64_t last = 36 * f + 68 * v + 15 * f + 8, edges = 36 * f + 4;

    topo = topo > edges + last + rows ? topo : edges + last + rows;
    return order + (sort > topo ? sort : topo) + 4096;
}

int cuda_simplify_prepare(struct recon_ctx *ctx, Scratch &scratch, struct cuda_simplify *s)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    unsigned long long *on_device = meanwhile.take<unsigned long long>(2), told[2];
    struct recon_mesh sorted = {};
    struct cuda_rows rows;
    struct cuda_topo t;

    if (!on_device || sort_vertices(ctx, scratch, s) || sort_faces(ctx, meanwhile, s, &sorted.index))
        return -1;
    sorted.vertices = s->in->vertices;
    sorted.faces = s->in->faces;
    if (cuda_topo_build(ctx, meanwhile, &sorted, &t))
        return -1;
    s->edges = t.edges;
    if (take_arrays(ctx, scratch, s) || cuda_ok(ctx, cudaMemsetAsync(on_device, 0, 16, queue), "cudaMemset") ||
        cuda_rows_corners(ctx, meanwhile, &sorted, &rows))
        return -1;
    take_faces<<<blocks_of(t.faces, THREADS), THREADS, 0, queue>>>(t, s->r.face, on_device);
    if (t.edges)
        take_edges<<<blocks_of(t.edges, THREADS), THREADS, 0, queue>>>(t, s->r.corner, s->r.state);
    take_vertices<<<blocks_of(t.vertices, THREADS), THREADS, 0, queue>>>(*s->in, s->was, s->scale, s->r);
    if (rows.sorted)
        link_corners<true><<<blocks_of(t.vertices, THREADS), THREADS, 0, queue>>>(s->r, t, rows, on_device);
    else
        link_corners<false><<<blocks_of(t.vertices, THREADS), THREADS, 0, queue>>>(s->r, t, rows, on_device);
    if (t.edges)
        find_levels<<<blocks_of(t.edges, THREADS), THREADS, 0, queue>>>(s->r, t.edges);
    if (cuda_launched(ctx, "preparing a mesh") || cuda_read(ctx, told, on_device, 2))
        return -1;
    s->faces = told[0];
    s->vertices = told[1];
    return 0;
}
