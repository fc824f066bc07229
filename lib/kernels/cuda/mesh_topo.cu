/* Edges by a stable radix sort of half-edges by (lower vertex, higher vertex); a running sum over where a new pair begins numbers them. */
#include "mesh_topo.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace {

enum { THREADS = 256, FEW = 32 }; /* FEW: faces at an edge that are looked through one by one */

/* What is used while edges are found: two buffers of each, between which the sort goes. */
struct sorting {
    uint64_t n; /* half-edges, of all faces */
    unsigned long long none; /* key of a half-edge without an edge, above all others */
    cub::DoubleBuffer<unsigned long long> key;
    cub::DoubleBuffer<uint32_t> half;
};

/* none where the face names a vertex twice */
__global__ void __launch_bounds__(THREADS) edge_keys(const uint32_t *index, uint64_t n, int bits, unsigned long long none, unsigned long long *key, uint32_t *half)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (h >= n)
        return;
    const uint32_t *v = index + h / 3 * 3;
    unsigned long long a = index[h], b = v[(h + 1) % 3];

    key[h] = face_degenerate(v) ? none : a < b ? a << bits | b : b << bits | a;
    half[h] = (uint32_t)h;
}

__global__ void __launch_bounds__(THREADS) mark_begins(const unsigned long long *key, uint64_t n, uint32_t *begins)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        begins[i] = i == 0 || key[i] != key[i - 1];
}

/* told: edges, half-edges that have one. number: from 1. */
__global__ void __launch_bounds__(THREADS) find_end(const unsigned long long *key, const uint32_t *number, uint64_t n, unsigned long long none, uint64_t *told)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i > n || (i < n && key[i] != none) || (i > 0 && key[i - 1] == none))
        return;
    told[0] = i ? number[i - 1] : 0;
    told[1] = i;
}

__global__ void __launch_bounds__(THREADS) deal_edges(cuda_topo t, const uint32_t *number, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i == t.halves)
        t.first[t.edges] = (uint32_t)i;
    else if (i < t.halves && (i == 0 || number[i] != number[i - 1]))
        t.first[number[i] - 1] = (uint32_t)i;
    if (i < n)
        t.edge_of[t.half[i]] = i < t.halves ? number[i] - 1 : TOPO_NONE;
}

/* ---- fans ---- */

/* Each half-edge with the first of its edge: corners at the same vertex join. */
__global__ void __launch_bounds__(THREADS) join_fans(cuda_topo t, uint32_t *corner)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= t.halves)
        return;
    uint32_t h = t.half[i], g = t.half[t.first[t.edge_of[h]]];
    bool same = t.index[h] == t.index[g];

    if (g == h)
        return;
    sets_join(corner, h, same ? g : topo_next(g));
    sets_join(corner, topo_next(h), same ? topo_next(g) : g);
}

__global__ void __launch_bounds__(THREADS) count_fans(cuda_topo t, uint32_t *corner, uint32_t *fans)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (h >= 3 * t.faces || t.edge_of[h] == TOPO_NONE)
        return;
    uint32_t root = sets_root(corner, (uint32_t)h);

    corner[h] = root;
    if (root == h)
        atomicAdd(&fans[t.index[h]], 1u);
}

/* ---- repeated faces: those with the same three vertices share their lowest edge and the vertex opposite ---- */

/* The lowest half-edge by number of edge, or TOPO_NONE. */
__device__ __forceinline__ uint32_t lowest_edge(const cuda_topo &t, uint64_t f)
{
    uint32_t h = (uint32_t)(3 * f);

    for (uint32_t k = 3 * (uint32_t)f + 1; k < 3 * (uint32_t)f + 3; k++)
        h = t.edge_of[k] < t.edge_of[h] ? k : h;
    return t.edge_of[h] == TOPO_NONE ? TOPO_NONE : h;
}

/* wide: set to 1 when an edge has more than a few faces; then the result is not whole. */
__global__ void __launch_bounds__(THREADS) look_back(cuda_topo t, uint8_t *repeated, uint32_t *wide)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= t.faces)
        return;
    uint32_t h = lowest_edge(t, f);
    uint8_t is = 0;

    if (h != TOPO_NONE && topo_count(t, t.edge_of[h]) > FEW) {
        *wide = 1; /* whoever does it */
    } else if (h != TOPO_NONE) {
        uint32_t apex = t.index[topo_prev(h)];

        for (const uint32_t *g = t.half + t.first[t.edge_of[h]]; *g < h && !is; g++)
            is = t.index[topo_prev(*g)] == apex;
    }
    repeated[f] = is;
}

__global__ void __launch_bounds__(THREADS) face_keys(cuda_topo t, int bits, unsigned long long *key, uint32_t *face)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= t.faces)
        return;
    uint32_t h = lowest_edge(t, f);

    key[f] = h == TOPO_NONE ? t.edges << bits : (unsigned long long)t.edge_of[h] << bits | t.index[topo_prev(h)];
    face[f] = (uint32_t)f;
}

__global__ void __launch_bounds__(THREADS) mark_equal(const unsigned long long *key, const uint32_t *face, uint64_t n, unsigned long long none, uint8_t *repeated)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        repeated[face[i]] = i > 0 && key[i] == key[i - 1] && key[i] != none;
}

} // namespace

uint64_t cuda_topo_bytes(uint64_t vertices, uint64_t faces)
{
    (void)vertices;
    return 3 * 25 * faces + (16 << 20); /* two keys and two half-edges of each, and what the sort keeps of its tiles */
}

static int sort_edges(struct recon_ctx *ctx, const struct recon_mesh *m, struct sorting *s)
{
    Scratch meanwhile(ctx);
    int bits = bits_of(m->vertices);
    uint64_t n = s->n;

    s->none = (unsigned long long)m->vertices << bits;
    edge_keys<<<blocks_of(n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(m->index, n, bits, s->none, s->key.Current(), s->half.Current());
    return cuda_launched(ctx, "edges of a mesh") || cuda_cub(ctx, meanwhile, "edges of a mesh", [&](void *room, size_t &size) {
        return cub::DeviceRadixSort::SortPairs(room, size, s->key, s->half, n, 0, 2 * bits, cuda_stream(ctx));
    });
}

/* number: of the edge of each sorted half-edge, from 1; told: edges, half-edges that have one */
static int number_edges(struct recon_ctx *ctx, const struct sorting *s, uint32_t *number, uint64_t told[2])
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    unsigned long long *key = s->key.d_buffers[s->key.selector];
    uint64_t *on_device = meanwhile.take<uint64_t>(2), n = s->n;

    if (!on_device)
        return -1;
    mark_begins<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(key, n, number);
    if (cuda_launched(ctx, "edges of a mesh") || cuda_cub(ctx, meanwhile, "edges of a mesh", [&](void *room, size_t &size) {
            return cub::DeviceScan::InclusiveSum(room, size, number, number, n, queue);
        }))
        return -1;
    find_end<<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(key, number, n, s->none, on_device);
    return cuda_launched(ctx, "edges of a mesh") || cuda_read(ctx, told, on_device, 2) ? -1 : 0;
}

int cuda_topo_build(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, struct cuda_topo *ret)
{
    struct cuda_topo t = { m->index, m->vertices, m->faces, 0, 0, nullptr, nullptr, nullptr };
    struct sorting s = {};
    uint64_t told[2] = { 0, 0 };
    uint32_t *number;

    if (topo_fits(ctx, m))
        return -1;
    s.n = 3 * m->faces;
    for (int i = 0; i < 2; i++)
        if (!(s.key.d_buffers[i] = scratch.take<unsigned long long>(s.n)) || !(s.half.d_buffers[i] = scratch.take<uint32_t>(s.n)))
            return -1;
    if (cuda_index_check(ctx, m) || (s.n && sort_edges(ctx, m, &s)))
        return -1;
    t.half = s.half.Current();
    number = s.half.Alternate();
    if (s.n && number_edges(ctx, &s, number, told))
        return -1;
    t.edges = told[0];
    t.halves = told[1];
    scratch.give_back(s.key.Current());
    scratch.give_back(s.key.Alternate());
    if (!(t.edge_of = scratch.take<uint32_t>(s.n)) || !(t.first = scratch.take<uint32_t>(t.edges + 1)))
        return -1;
    deal_edges<<<blocks_of(s.n + 1, THREADS), THREADS, 0, cuda_stream(ctx)>>>(t, number, s.n);
    if (cuda_launched(ctx, "edges of a mesh"))
        return -1;
    scratch.give_back(number);
    *ret = t;
    return 0;
}

void cuda_topo_release(Scratch &scratch, struct cuda_topo *t)
{
    scratch.give_back(t->half);
    scratch.give_back(t->first);
    scratch.give_back(t->edge_of);
    t->half = t->first = t->edge_of = nullptr;
}

int cuda_topo_fans(struct recon_ctx *ctx, const struct cuda_topo *t, uint32_t *corner, uint32_t *fans)
{
    uint64_t n = 3 * t->faces, halves = t->halves;

    if (cuda_count_up(ctx, corner, n) || cuda_ok(ctx, cudaMemsetAsync(fans, 0, 4 * t->vertices, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    if (halves) {
        join_fans<<<blocks_of(halves, THREADS), THREADS, 0, cuda_stream(ctx)>>>(*t, corner);
        count_fans<<<blocks_of(n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(*t, corner, fans);
    }
    return cuda_launched(ctx, "fans of a mesh");
}

/* However many faces an edge has: by sorting all of them. */
static int sort_faces(struct recon_ctx *ctx, const struct cuda_topo *t, uint8_t *repeated)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t n = t->faces;
    int bits = bits_of(t->vertices);
    unsigned long long *key = meanwhile.take<unsigned long long>(n), *key2 = meanwhile.take<unsigned long long>(n);
    uint32_t *face = meanwhile.take<uint32_t>(n), *face2 = meanwhile.take<uint32_t>(n);
    cub::DoubleBuffer<unsigned long long> keys;
    cub::DoubleBuffer<uint32_t> faces;

    if (!key || !key2 || !face || !face2)
        return -1;
    face_keys<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(*t, bits, key, face);
    keys.selector = faces.selector = 0;
    keys.d_buffers[0] = key;
    keys.d_buffers[1] = key2;
    faces.d_buffers[0] = face;
    faces.d_buffers[1] = face2;
    if (cuda_launched(ctx, "repeated faces") || cuda_cub(ctx, meanwhile, "repeated faces", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortPairs(room, size, keys, faces, n, 0, bits + bits_of(t->edges), queue);
        }))
        return -1;
    key = keys.Current();
    face = faces.Current();
    mark_equal<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(key, face, n, t->edges << bits, repeated);
    return cuda_launched(ctx, "repeated faces");
}

int cuda_topo_repeated(struct recon_ctx *ctx, const struct cuda_topo *t, uint8_t *repeated)
{
    Scratch meanwhile(ctx);
    uint64_t n = t->faces;
    uint32_t *wide, told = 0;

    if (n == 0)
        return 0;
    if (!(wide = meanwhile.take<uint32_t>(1)) || cuda_ok(ctx, cudaMemsetAsync(wide, 0, 4, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    look_back<<<blocks_of(n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(*t, repeated, wide);
    if (cuda_launched(ctx, "repeated faces") || cuda_read(ctx, &told, wide, 1))
        return -1;
    return told ? sort_faces(ctx, t, repeated) : 0;
}
