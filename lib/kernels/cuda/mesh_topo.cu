/* Edges by a stable radix sort of half-edges by (lower vertex, higher vertex); a running sum over where a new pair begins numbers them. */
#include "mesh_topo.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace {

enum { THREADS = 256 };

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

    if (m->faces > UINT32_MAX / 3 - 1 || m->vertices >= UINT32_MAX)
        return ctx->host->fail(ctx, 65, nullptr, "mesh", "the mesh has %llu faces, at most %u are taken", (unsigned long long)m->faces,
                               UINT32_MAX / 3 - 1);
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
