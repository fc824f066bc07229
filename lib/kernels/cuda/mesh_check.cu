/* mesh.check on the device: counts are whole numbers, added in any order; area and volume are summed as tree_sum.h says. */
#include "mesh_topo.cuh"

#include "kernels/tree_sum.h"

namespace {

enum { THREADS = TREE_BLOCK };
enum { DEGENERATE, NO_AREA, REPEATED, EDGES_1, EDGES_MANY, TURNED, USED, SPLIT, COMPONENTS, BORDERS, COUNTS };
typedef unsigned long long count_t;

struct size {
    double area, volume;
};

/* One more for each thread of the block that says so; all of them come here. */
__device__ __forceinline__ void tally(count_t *to, bool is)
{
    int n = __syncthreads_count(is);

    if (threadIdx.x == 0 && n)
        atomicAdd(to, (count_t)n);
}

/* tree_block of tree_sum.h, of each thread's number; thread 0 has it. */
__device__ __forceinline__ size block_sum(size own, size *held)
{
    held[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = TREE_BLOCK / 2; half; half /= 2) {
        if (threadIdx.x < half) {
            held[threadIdx.x].area += held[threadIdx.x + half].area;
            held[threadIdx.x].volume += held[threadIdx.x + half].volume;
        }
        __syncthreads();
    }
    return held[0];
}

__global__ void __launch_bounds__(THREADS) measure(struct recon_mesh m, size *sums, count_t *counts)
{
    __shared__ size held[TREE_BLOCK];
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    struct face_size z = { 0, 0, false, false };

    if (f < m.faces)
        z = face_size(&m, f);
    size own = { z.area, z.volume }, sum = block_sum(own, held);

    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
    tally(&counts[DEGENERATE], z.degenerate);
    tally(&counts[NO_AREA], z.none);
}

__global__ void __launch_bounds__(THREADS) add_up(const size *from, uint64_t n, size *to)
{
    __shared__ size held[TREE_BLOCK];
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    size own = { 0, 0 };

    if (i < n)
        own = from[i];
    own = block_sum(own, held);
    if (threadIdx.x == 0)
        to[blockIdx.x] = own;
}

__global__ void __launch_bounds__(THREADS) count_marks(const uint8_t *is, uint64_t n, count_t *to)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    tally(to, i < n && is[i]);
}

__global__ void __launch_bounds__(THREADS) count_edges(cuda_topo t, count_t *counts)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t n = e < t.edges ? topo_count(t, (uint32_t)e) : 0;
    const uint32_t *h = n ? t.half + t.first[e] : nullptr;

    tally(&counts[EDGES_1], n == 1);
    tally(&counts[EDGES_MANY], n > 2);
    tally(&counts[TURNED], n == 2 && t.index[h[0]] == t.index[h[1]]);
}

/* Ends of edges join; with in, those of borders alone, which are marked there. */
__global__ void __launch_bounds__(THREADS) join_parts(cuda_topo t, uint32_t *set, uint8_t *in)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (e >= t.edges || (in && topo_count(t, (uint32_t)e) != 1))
        return;
    uint32_t h = t.half[t.first[e]], a = t.index[h], b = t.index[topo_next(h)];

    if (in)
        in[a] = in[b] = 1; /* whoever does it */
    sets_join(set, a, b);
}

__global__ void __launch_bounds__(THREADS) count_vertices(const uint32_t *fans, const uint32_t *set, uint64_t n, count_t *counts)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t k = v < n ? fans[v] : 0;

    tally(&counts[USED], k > 0);
    tally(&counts[SPLIT], k > 1);
    tally(&counts[COMPONENTS], k > 0 && set[v] == v);
}

__global__ void __launch_bounds__(THREADS) count_borders(const uint8_t *in, const uint32_t *set, uint64_t n, count_t *counts)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    tally(&counts[BORDERS], v < n && in[v] && set[v] == v);
}

/* ---- its steps ---- */

struct looking {
    struct recon_ctx *ctx;
    const struct recon_mesh *m;
    cuda_topo t;
    count_t *counts; /* on the device */
    struct census c;
};

int look_at_faces(struct looking *l)
{
    Scratch scratch(l->ctx);
    cudaStream_t queue = cuda_stream(l->ctx);
    uint64_t faces = l->m->faces;
    unsigned n = blocks_of(faces, TREE_BLOCK);
    size *sums, *next, total;
    uint8_t *repeated;

    if (faces == 0)
        return 0;
    if (!(sums = scratch.take<size>(n)) || !(next = scratch.take<size>(n / TREE_BLOCK + 1)) || !(repeated = scratch.take<uint8_t>(faces)) ||
        cuda_topo_repeated(l->ctx, &l->t, repeated))
        return -1;
    measure<<<n, THREADS, 0, queue>>>(*l->m, sums, l->counts);
    count_marks<<<n, THREADS, 0, queue>>>(repeated, faces, &l->counts[REPEATED]);
    while (n > 1) {
        unsigned fewer = blocks_of(n, TREE_BLOCK);
        size *last = sums;

        add_up<<<fewer, THREADS, 0, queue>>>(sums, n, next);
        n = fewer;
        sums = next;
        next = last;
    }
    if (cuda_launched(l->ctx, "the mesh's area") || cuda_read(l->ctx, &total, sums, 1))
        return -1;
    l->c.area = total.area + 0;
    l->c.volume = total.volume + 0;
    return 0;
}

int look_at_vertices(struct looking *l)
{
    Scratch scratch(l->ctx);
    cudaStream_t queue = cuda_stream(l->ctx);
    uint64_t edges = l->t.edges, vertices = l->m->vertices;
    unsigned of_edges = blocks_of(edges, THREADS), of_vertices = blocks_of(vertices, THREADS);
    uint32_t *corner, *fans, *set;
    uint8_t *border;

    if (edges == 0)
        return 0;
    if (!(corner = scratch.take<uint32_t>(3 * l->m->faces)) || !(fans = scratch.take<uint32_t>(vertices)) ||
        !(set = scratch.take<uint32_t>(vertices)) || !(border = scratch.take<uint8_t>(vertices)) || cuda_topo_fans(l->ctx, &l->t, corner, fans) ||
        cuda_count_up(l->ctx, set, vertices) ||
        cuda_ok(l->ctx, cudaMemsetAsync(border, 0, vertices, queue), "cudaMemset"))
        return -1;
    count_edges<<<of_edges, THREADS, 0, queue>>>(l->t, l->counts);
    join_parts<<<of_edges, THREADS, 0, queue>>>(l->t, set, nullptr);
    count_vertices<<<of_vertices, THREADS, 0, queue>>>(fans, set, vertices, l->counts);
    if (cuda_launched(l->ctx, "parts of a mesh") || cuda_count_up(l->ctx, set, vertices))
        return -1;
    join_parts<<<of_edges, THREADS, 0, queue>>>(l->t, set, border);
    count_borders<<<of_vertices, THREADS, 0, queue>>>(border, set, vertices, l->counts);
    return cuda_launched(l->ctx, "borders of a mesh");
}

int look(struct looking *l)
{
    Scratch scratch(l->ctx);
    struct census *c = &l->c;
    count_t n[COUNTS];

    c->vertices = l->m->vertices;
    c->faces = l->m->faces;
    if (cuda_topo_build(l->ctx, scratch, l->m, &l->t) || !(l->counts = scratch.take<count_t>(COUNTS)) ||
        cuda_ok(l->ctx, cudaMemsetAsync(l->counts, 0, COUNTS * sizeof(count_t), cuda_stream(l->ctx)), "cudaMemset") || look_at_faces(l) ||
        look_at_vertices(l) || cuda_read(l->ctx, n, l->counts, COUNTS))
        return -1;
    c->degenerate = n[DEGENERATE];
    c->zero_area = n[NO_AREA];
    c->repeated = n[REPEATED];
    c->edges = l->t.edges;
    c->border = n[EDGES_1];
    c->non_manifold = n[EDGES_MANY];
    c->turned = n[TURNED];
    c->used = n[USED];
    c->split = n[SPLIT];
    c->components = n[COMPONENTS];
    c->borders = n[BORDERS];
    c->euler = (int64_t)c->used - (int64_t)c->edges + (int64_t)(c->faces - c->degenerate);
    return 0;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    uint64_t found, after;

    if (!m || census_bound(ctx, in, p, cost))
        return m ? -1 : 0;
    found = cuda_topo_bytes(m->vertices, m->faces);
    after = 36 * m->faces + 12 * m->faces + 9 * m->vertices + (1 << 20); /* the edges, then fans and parts; repeated faces take less than edges did */
    cost->host_bytes = 0;
    cost->device_bytes = found > after ? found : after;
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct looking l = {};

    (void)out;
    l.ctx = ctx;
    l.m = (const struct recon_mesh *)in[0];
    return look(&l) || bound(ctx, in, p, cost) ? -1 : census_report(ctx, p, &l.c);
}

int selftest(struct recon_ctx *ctx)
{
    return census_selftest(ctx, &cuda_mesh_check, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_mesh_check = { RECON_KERNEL_ABI, MESH_CHECK_NAME, MESH_CHECK_DOC, mesh_check_in, mesh_check_out, mesh_check_params,
                                              bound,            run,             selftest,       nullptr };
