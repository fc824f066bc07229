/* mesh.subdivide on the device: the host's numbers and its order of sums (cpu/mesh_subdivide.c), a vertex, an edge or a face a thread. */
#include "mesh_rows.cuh"
#include "mesh_topo.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace {

enum { THREADS = 256 };

/* Neighbours of vertices, ascending: the lower ones of v are below[low[v]] .. below[low[v + 1] - 1], then the higher ones above[high[v]] ..
 * above[high[v + 1] - 1]. Of its edges of other than two faces: how many, and the other ends of two. */
struct ring {
    uint32_t *low, *below, *high, *above;
    uint32_t *sharp, *end; /* vertices, 2 * vertices */
};

/* from, to: the lower and the higher vertex of each edge */
__global__ void __launch_bounds__(THREADS) list_ends(cuda_topo t, uint32_t *from, ring r)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (e >= t.edges)
        return;
    uint32_t h = t.half[t.first[e]], a = t.index[h], b = t.index[topo_next(h)];

    from[e] = a < b ? a : b;
    r.above[e] = a < b ? b : a;
    if (topo_count(t, (uint32_t)e) == 2)
        return;
    uint32_t i = atomicAdd(&r.sharp[a], 1u), k = atomicAdd(&r.sharp[b], 1u);

    if (i < 2)
        r.end[2 * (uint64_t)a + i] = b;
    if (k < 2)
        r.end[2 * (uint64_t)b + k] = a;
}

__global__ void __launch_bounds__(THREADS) list_begins(const uint32_t *sorted, uint64_t n, uint64_t vertices, uint32_t *first)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i <= n)
        begin_rows(i, n, vertices, first, [=](uint64_t k) { return (uint64_t)sorted[k]; });
}

__device__ __forceinline__ void add_place(const float *xyz, uint32_t v, double sum[3])
{
    for (int k = 0; k < 3; k++)
        sum[k] += (double)xyz[3 * (uint64_t)v + k];
}

/* Of two ends, whichever was noted first: a + b is b + a. */
__device__ __forceinline__ void sharp_vertex(const struct recon_mesh &m, const ring &r, uint64_t v, float *to)
{
    double sum[3] = { 0, 0, 0 };

    for (int i = 0; i < 2 && r.sharp[v] == 2; i++)
        add_place(m.xyz, r.end[2 * v + i], sum);
    for (int k = 0; k < 3; k++)
        to[k] = r.sharp[v] == 2 ? (float)(0.75 * (double)m.xyz[3 * v + k] + 0.125 * sum[k]) : m.xyz[3 * v + k];
}

__device__ __forceinline__ void smooth_vertex(const struct recon_mesh &m, const ring &r, uint64_t v, uint64_t n, float *to)
{
    double sum[3] = { 0, 0, 0 }, beta = loop_beta(n);

    for (uint32_t i = r.low[v]; i < r.low[v + 1]; i++)
        add_place(m.xyz, r.below[i], sum);
    for (uint32_t i = r.high[v]; i < r.high[v + 1]; i++)
        add_place(m.xyz, r.above[i], sum);
    for (int k = 0; k < 3; k++)
        to[k] = (float)((1 - (double)n * beta) * (double)m.xyz[3 * v + k] + beta * sum[k]);
}

/* r.low is NULL: all stay. */
__global__ void __launch_bounds__(THREADS) old_vertices(struct recon_mesh m, ring r, struct recon_mesh to)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v >= m.vertices)
        return;
    uint64_t n = r.low ? (uint64_t)(r.low[v + 1] - r.low[v]) + (r.high[v + 1] - r.high[v]) : 0;

    if (n && r.sharp[v])
        sharp_vertex(m, r, v, to.xyz + 3 * v);
    else if (n)
        smooth_vertex(m, r, v, n, to.xyz + 3 * v);
    else
        for (int k = 0; k < 3; k++)
            to.xyz[3 * v + k] = m.xyz[3 * v + k];
    for (int k = 0; m.rgb && k < 3; k++)
        to.rgb[3 * v + k] = m.rgb[3 * v + k];
}

__global__ void __launch_bounds__(THREADS) edge_vertices(struct recon_mesh m, cuda_topo t, bool loop, struct recon_mesh to)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (e >= t.edges)
        return;
    const uint32_t *h = t.half + t.first[e];
    uint32_t a = m.index[h[0]], b = m.index[topo_next(h[0])], low = a < b ? a : b, high = a < b ? b : a, c = 0, d = 0;
    bool smooth = loop && topo_count(t, (uint32_t)e) == 2;
    uint64_t v = 3 * (m.vertices + e);

    if (smooth) {
        c = m.index[topo_prev(h[0])];
        d = m.index[topo_prev(h[1])];
    }
    for (uint32_t k = 0; k < 3; k++) {
        uint64_t i = 3 * (uint64_t)low + k, j = 3 * (uint64_t)high + k;
        double x = ((double)m.xyz[i] + (double)m.xyz[j]) * (smooth ? 0.375 : 0.5);

        if (smooth)
            x += ((double)m.xyz[3 * (uint64_t)c + k] + (double)m.xyz[3 * (uint64_t)d + k]) * 0.125;
        to.xyz[v + k] = (float)x;
        if (m.rgb)
            to.rgb[v + k] = (uint8_t)((m.rgb[i] + m.rgb[j] + 1) / 2);
    }
}

__global__ void __launch_bounds__(THREADS) mark_kept(cuda_topo t, uint32_t *kept)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < t.faces)
        kept[f] = t.edge_of[3 * f] != TOPO_NONE;
}

/* place: of each face among those that have edges; NULL: all do. */
__global__ void __launch_bounds__(THREADS) split_faces(cuda_topo t, const uint32_t *place, uint32_t *to)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= t.faces || t.edge_of[3 * f] == TOPO_NONE)
        return;
    const uint32_t *v = t.index + 3 * f, *at = t.edge_of + 3 * f;
    uint32_t base = (uint32_t)t.vertices, e[3] = { base + at[0], base + at[1], base + at[2] };
    uint4 *four = (uint4 *)(to + 12 * (place ? place[f] : f));

    four[0] = uint4{ v[0], e[0], e[2], v[1] };
    four[1] = uint4{ e[1], e[0], v[2], e[2] };
    four[2] = uint4{ e[1], e[0], e[1], e[2] };
}

/* ---- a level ---- */

int find_rings(struct recon_ctx *ctx, Scratch &scratch, const cuda_topo &t, struct ring *ret)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t vertices = t.vertices, edges = t.edges;
    unsigned of_edges = blocks_of(edges + 1, THREADS);
    uint32_t *from = meanwhile.take<uint32_t>(edges), *sorted = meanwhile.take<uint32_t>(edges);
    struct ring r = { scratch.take<uint32_t>(vertices + 1), scratch.take<uint32_t>(edges),    scratch.take<uint32_t>(vertices + 1),
                      scratch.take<uint32_t>(edges),        scratch.take<uint32_t>(vertices), scratch.take<uint32_t>(2 * vertices) };

    if (!from || !sorted || !r.low || !r.below || !r.high || !r.above || !r.sharp || !r.end ||
        cuda_ok(ctx, cudaMemsetAsync(r.sharp, 0, 4 * vertices, queue), "cudaMemset"))
        return -1;
    list_ends<<<of_edges, THREADS, 0, queue>>>(t, from, r);
    list_begins<<<of_edges, THREADS, 0, queue>>>(from, edges, vertices, r.high);
    if (cuda_launched(ctx, "neighbours of vertices") || (edges && cuda_cub(ctx, meanwhile, "neighbours of vertices", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortPairs(room, size, r.above, sorted, from, r.below, edges, 0, bits_of(vertices), queue);
        })))
        return -1;
    list_begins<<<of_edges, THREADS, 0, queue>>>(sorted, edges, vertices, r.low);
    *ret = r;
    return cuda_launched(ctx, "neighbours of vertices");
}

/* *ret: NULL when every face has edges */
int find_places(struct recon_ctx *ctx, Scratch &scratch, const cuda_topo &t, uint32_t **ret)
{
    uint64_t faces = t.faces;
    uint32_t *place;

    *ret = nullptr;
    if (t.halves == 3 * faces)
        return 0;
    if (!(place = scratch.take<uint32_t>(faces)))
        return -1;
    mark_kept<<<blocks_of(faces, THREADS), THREADS, 0, cuda_stream(ctx)>>>(t, place);
    *ret = place;
    return cuda_launched(ctx, "faces of a mesh") || cuda_cub(ctx, scratch, "faces of a mesh", [&](void *room, size_t &size) {
        return cub::DeviceScan::ExclusiveSum(room, size, place, place, faces, cuda_stream(ctx));
    }) ? -1 : 0;
}

void drop(struct recon_ctx *ctx, struct recon_mesh *m)
{
    cuda_free(ctx, m->xyz);
    cuda_free(ctx, m->rgb);
    cuda_free(ctx, m->index);
    *m = recon_mesh();
}

int room_for(struct recon_ctx *ctx, uint64_t vertices, uint64_t faces, bool rgb, struct recon_mesh *ret)
{
    *ret = recon_mesh();
    ret->place = RECON_DEVICE;
    ret->vertices = vertices;
    ret->faces = faces;
    ret->xyz = (float *)cuda_alloc(ctx, 12 * vertices);
    ret->index = ret->xyz ? (uint32_t *)cuda_alloc(ctx, 12 * faces) : nullptr;
    ret->rgb = ret->index && rgb ? (uint8_t *)cuda_alloc(ctx, 3 * vertices) : nullptr;
    if (ret->index && (ret->rgb || !rgb))
        return 0;
    drop(ctx, ret);
    return -1;
}

int subdivide(struct recon_ctx *ctx, const struct recon_mesh *m, bool loop, struct recon_mesh *ret, uint64_t *ret_edges)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t vertices = m->vertices, faces = m->faces;
    struct cuda_topo t;
    struct ring r = {};
    uint32_t *place;

    if (subdivide_fits(ctx, vertices, faces) || cuda_topo_build(ctx, scratch, m, &t) || (loop && find_rings(ctx, scratch, t, &r)) ||
        find_places(ctx, scratch, t, &place) || room_for(ctx, vertices + t.edges, 4 * (t.halves / 3), m->rgb, ret))
        return -1;
    old_vertices<<<blocks_of(vertices + 1, THREADS), THREADS, 0, queue>>>(*m, r, *ret);
    edge_vertices<<<blocks_of(t.edges + 1, THREADS), THREADS, 0, queue>>>(*m, t, loop, *ret);
    split_faces<<<blocks_of(faces + 1, THREADS), THREADS, 0, queue>>>(t, place, ret->index);
    *ret_edges = t.edges;
    if (!cuda_launched(ctx, "subdivision"))
        return 0;
    drop(ctx, ret);
    return -1;
}

/* ---- the kernel ---- */

/* What a level takes: its input unless that is the caller's, and the most of: finding edges; with them, neighbours; with both, the
 * result. */
uint64_t level_bytes(uint64_t v, uint64_t f, uint64_t edges, bool first, bool loop)
{
    uint64_t input = first ? 0 : 15 * v + 12 * f, found = cuda_topo_bytes(v, f), topo = 24 * f + 4 * edges;
    uint64_t rings = loop ? topo + 25 * edges + 20 * v : 0, all = topo + (loop ? 8 * edges + 20 * v : 0) + 5 * f + 15 * (v + edges) + 48 * f;
    uint64_t most = rings > all ? rings : all;

    return input + (most > found - (16 << 20) ? most : found - (16 << 20)) + (16 << 20);
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    int64_t levels = p[MESH_SUBDIVIDE_LEVELS].i;
    uint64_t v, f, edges;

    if (!m || subdivide_bound(ctx, in, p, cost))
        return m ? -1 : 0;
    subdivide_last(m, levels, &v, &f, &edges);
    cost->host_bytes = 0;
    cost->device_bytes = level_bytes(v, f, edges, levels < 2, p[MESH_SUBDIVIDE_METHOD].i == MESH_SUBDIVIDE_LOOP);
    return 0;
}

/* One level after the other; between, whether there is still time. */
int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct recon_mesh now = *(const struct recon_mesh *)in[0], next;
    bool loop = p[MESH_SUBDIVIDE_METHOD].i == MESH_SUBDIVIDE_LOOP;
    uint64_t most = 0, edges;

    for (int64_t i = 0, n = p[MESH_SUBDIVIDE_LEVELS].i; i < n; i++) {
        int rc = i > 0 && cuda_device.sync(ctx) ? -1 : i > 0 && ctx->host->cancelled(ctx) ? subdivide_stopped(ctx, n - i)
                                                     : subdivide(ctx, &now, loop, &next, &edges);

        if (rc == 0) {
            uint64_t bytes = level_bytes(now.vertices, now.faces, edges, i == 0, loop);

            most = bytes > most ? bytes : most;
            subdivide_cost(now.vertices, now.faces, edges, i == 0, cost);
        }
        if (i > 0)
            drop(ctx, &now);
        if (rc)
            return -1;
        now = next;
    }
    cost->host_bytes = 0;
    cost->device_bytes = most;
    cost->items = now.faces;
    *(struct recon_mesh *)out[0] = now;
    return 0;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_subdivide(ctx, &cuda_mesh_subdivide, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_mesh_subdivide = { RECON_KERNEL_ABI,      MESH_SUBDIVIDE_NAME, MESH_SUBDIVIDE_DOC, mesh_one_in, mesh_one_out,
                                                  mesh_subdivide_params, bound,               run,                selftest,    subdivide_shape };
