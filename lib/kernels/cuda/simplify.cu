/* mesh.simplify by rounds on the device, see rounds.h. A round is three kernels: due edges claim their ends, those whose claims hold
 * and that may go are listed, and collapse; the host reads how many there were. Edges of the level are few among all, so a block lists those of its
 * eight edges a thread before it looks at them. */
#include "simplify.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include "kernels/mesh_plan.h"

namespace {

enum { THREADS = 128, SHARE = 8 * THREADS /* edges of a block */, BLOCKS = 132 * 16 };

/* what the host reads after a round: edges that were chosen, and of them those that go */
struct told {
    uint32_t chosen, go;
};

struct running {
    struct cuda_simplify *s;
    uint32_t *goes;
    struct told *told;
    uint32_t *least; /* levels: above one, and of all */
    uint32_t round;
    uint8_t level;
};

/* ---- a round ---- */

/* The block's due edges, by their places in it; they count up to n. */
__device__ void list_due(const struct rounds &r, uint64_t edges, uint8_t level, uint16_t *list, uint32_t *n)
{
    uint64_t at = (uint64_t)blockIdx.x * SHARE + 8 * threadIdx.x, due;

    if (threadIdx.x == 0)
        *n = 0;
    __syncthreads();
    if (at < edges && (due = round_due(*(const uint64_t *)(r.level + at), level)) != 0) {
        uint32_t to = atomicAdd(n, (uint32_t)(__popc((uint32_t)due) + __popc((uint32_t)(due >> 32))));

        for (uint32_t i = 0; i < 8; i++)
            if (due >> (8 * i + 7) & 1)
                list[to++] = (uint16_t)(8 * threadIdx.x + i);
    }
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS) claim(struct rounds r, uint64_t edges, uint8_t level, uint32_t round)
{
    __shared__ uint16_t list[SHARE];
    __shared__ uint32_t n;

    list_due(r, edges, level, list, &n);
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        uint32_t e = blockIdx.x * SHARE + list[i], low, high;
        unsigned long long key = round_key(round, e);

        round_ends(&r, e, &low, &high);
        atomicMin((unsigned long long *)&r.claim[low], key);
        atomicMin((unsigned long long *)&r.claim[high], key);
    }
}

/* Edges that hold their claims are few among the due ones: the block lists them before it looks closer. */
__global__ void __launch_bounds__(THREADS) choose(struct rounds r, uint64_t edges, uint8_t level, uint32_t round, uint32_t *goes, struct told *told)
{
    __shared__ uint16_t list[SHARE], chosen[SHARE];
    __shared__ uint32_t n, of, go, to;

    if (threadIdx.x == 0)
        of = go = 0;
    list_due(r, edges, level, list, &n);
    for (uint32_t i = threadIdx.x; i < n; i += THREADS)
        if (round_chosen(&r, blockIdx.x * SHARE + list[i], round))
            chosen[atomicAdd(&of, 1u)] = list[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < of; i += THREADS)
        if (round_goes(&r, blockIdx.x * SHARE + chosen[i]))
            list[atomicAdd(&go, 1u)] = chosen[i]; /* which is read no more */
    __syncthreads();
    if (threadIdx.x == 0 && of) {
        atomicAdd(&told->chosen, of);
        to = go ? atomicAdd(&told->go, go) : 0;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < go; i += THREADS)
        goes[to + i] = blockIdx.x * SHARE + list[i];
}

/* All that go, unless they are more than wanted. */
__global__ void __launch_bounds__(THREADS) collapse(struct rounds r, const uint32_t *goes, const struct told *told, uint64_t wanted)
{
    uint32_t n = told->go;

    if (n > wanted)
        return;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        round_collapse(&r, goes[i]);
}

__global__ void __launch_bounds__(THREADS) collapse_first(struct rounds r, const uint32_t *goes, uint32_t n)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        round_collapse(&r, goes[i]);
}

__global__ void __launch_bounds__(THREADS) find_least(const uint8_t *level, uint64_t edges, int above, uint32_t *least)
{
    __shared__ uint32_t best[2];
    uint64_t at = (uint64_t)blockIdx.x * SHARE + 8 * threadIdx.x;
    uint32_t over = EDGE_OUT, any = EDGE_OUT;

    if (threadIdx.x < 2)
        best[threadIdx.x] = EDGE_OUT;
    __syncthreads();
    for (uint64_t e = at; e < at + 8 && e < edges; e++) {
        uint32_t x = level[e];

        any = x < any ? x : any;
        over = (int)x > above && x < over ? x : over;
    }
    if (over < EDGE_OUT)
        atomicMin(&best[0], over);
    if (any < EDGE_OUT)
        atomicMin(&best[1], any);
    __syncthreads();
    if (threadIdx.x < 2 && best[threadIdx.x] < EDGE_OUT)
        atomicMin(&least[threadIdx.x], best[threadIdx.x]);
}

/* Of more than are wanted the first by their numbers. */
int go_first(struct recon_ctx *ctx, struct running *x, uint32_t of, uint32_t wanted)
{
    Scratch meanwhile(ctx);
    uint32_t *sorted = meanwhile.take<uint32_t>(of);

    if (!sorted || cuda_cub(ctx, meanwhile, "collapses", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortKeys(room, size, x->goes, sorted, (uint64_t)of, 0, bits_of(x->s->edges), cuda_stream(ctx));
        }))
        return -1;
    collapse_first<<<blocks_of(wanted, THREADS), THREADS, 0, cuda_stream(ctx)>>>(x->s->r, sorted, wanted);
    return cuda_launched(ctx, "collapses");
}

/* One round; ret_next: whether the level is done. */
int turn(struct recon_ctx *ctx, struct running *x, const struct recon_value *p, bool *ret_next)
{
    struct cuda_simplify *s = x->s;
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t wanted = simplify_wanted(p, s->faces, s->vertices), went;
    unsigned blocks = blocks_of(s->edges, SHARE), few = blocks < BLOCKS ? blocks : BLOCKS;
    struct told told;

    if ((++x->round & (ROUND_WRAP - 1)) == 0 && cuda_ok(ctx, cudaMemsetAsync(s->r.claim, 0xff, 8 * s->in->vertices, queue), "cudaMemset"))
        return -1;
    if (cuda_ok(ctx, cudaMemsetAsync(x->told, 0, sizeof(*x->told), queue), "cudaMemset"))
        return -1;
    claim<<<blocks, THREADS, 0, queue>>>(s->r, s->edges, x->level, x->round);
    choose<<<blocks, THREADS, 0, queue>>>(s->r, s->edges, x->level, x->round, x->goes, x->told);
    collapse<<<few, THREADS, 0, queue>>>(s->r, x->goes, x->told, wanted);
    if (cuda_launched(ctx, "collapses") || cuda_read(ctx, &told, x->told, 1))
        return -1;
    *ret_next = round_few(told.chosen, s->vertices);
    went = told.go < wanted ? told.go : wanted;
    if (told.go > wanted && go_first(ctx, x, told.go, (uint32_t)wanted))
        return -1;
    s->faces -= 2 * went;
    s->vertices -= went;
    return 0;
}

/* The lowest level above the one that is done, of an edge that does not wait, else that one; *ret_any: whether there is one at all. */
int next_level(struct recon_ctx *ctx, struct running *x, int above, bool *ret_any)
{
    unsigned blocks = blocks_of(x->s->edges, SHARE);
    uint32_t told[2];

    if (cuda_ok(ctx, cudaMemsetAsync(x->least, 0xff, 8, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    find_least<<<blocks, THREADS, 0, cuda_stream(ctx)>>>(x->s->r.level, x->s->edges, above, x->least);
    if (cuda_launched(ctx, "levels") || cuda_read(ctx, told, x->least, 2))
        return -1;
    *ret_any = told[1] < EDGE_OUT;
    if (told[0] < EDGE_OUT)
        x->level = (uint8_t)told[0];
    return 0;
}

int go(struct recon_ctx *ctx, struct running *x, const struct recon_value *p)
{
    bool any, done = false;
    int rc = next_level(ctx, x, -1, &any);

    while (rc == 0 && any && !simplify_enough(p, x->s->faces, x->s->vertices)) {
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, 124, nullptr, "mesh", "stopped at %llu faces", (unsigned long long)x->s->faces);
        rc = turn(ctx, x, p, &done);
        if (rc == 0 && done)
            rc = next_level(ctx, x, x->level, &any);
    }
    return rc;
}

int rounds(struct recon_ctx *ctx, struct cuda_simplify *s, const struct recon_value *p)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t v = s->in->vertices;
    struct running x = {};

    x.s = s;
    x.goes = scratch.take<uint32_t>(v);
    x.told = scratch.take<struct told>(1);
    x.least = scratch.take<uint32_t>(2);
    s->r.claim = scratch.take<uint64_t>(v);
    if (!x.goes || !x.told || !x.least || !s->r.claim ||
        cuda_ok(ctx, cudaMemsetAsync(s->r.claim, 0xff, 8 * v, queue), "cudaMemset"))
        return -1;
    return go(ctx, &x, p);
}

/* ---- the result ---- */

__global__ void __launch_bounds__(THREADS) mark_vertices(const struct corner_vertex *vertex, uint64_t n, uint32_t *there)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v <= n)
        there[v] = v < n && vertex[v].head != NO_CORNER;
}

__global__ void __launch_bounds__(THREADS) mark_faces(const struct corner_face *face, uint64_t n, uint32_t *there)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f <= n)
        there[f] = f < n && face[f].v[0] != NO_CORNER;
}

/* to: the new number of a vertex, also its count up to there */
__global__ void __launch_bounds__(THREADS) give_vertices(struct cuda_simplify s, struct recon_mesh in, const uint32_t *to, struct recon_mesh out)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v >= in.vertices || to[v] == to[v + 1])
        return;
    for (uint64_t i = 0, k = 3 * (uint64_t)to[v]; i < 3; i++) {
        out.xyz[k + i] = s.r.state[v] == VERTEX_MOVED ? s.r.vertex[v].xyz[i] / s.scale : in.xyz[3 * (uint64_t)s.was[v] + i];
        if (out.rgb)
            out.rgb[k + i] = s.r.rgb[3 * v + i];
    }
}

__global__ void __launch_bounds__(THREADS) give_faces(const struct corner_face *face, uint64_t n, const uint32_t *at, const uint32_t *to, uint32_t *index)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= n || at[f] == at[f + 1])
        return;
    for (int i = 0; i < 3; i++)
        index[3 * (uint64_t)at[f] + i] = to[face[f].v[i]];
}

/* counts become sums of those before */
int sum_up(struct recon_ctx *ctx, uint32_t *count, uint64_t n, uint32_t *ret_sum)
{
    Scratch meanwhile(ctx);

    return cuda_cub(ctx, meanwhile, "numbering what is left", [&](void *room, size_t &size) {
        return cub::DeviceScan::ExclusiveSum(room, size, count, count, n + 1, cuda_stream(ctx));
    }) || cuda_read(ctx, ret_sum, count + n, 1) ? -1 : 0;
}

int result(struct recon_ctx *ctx, const struct cuda_simplify *s, struct recon_mesh *ret)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t v = s->in->vertices, f = s->in->faces;
    uint32_t *to = scratch.take<uint32_t>(v + 1), *at = scratch.take<uint32_t>(f + 1), vertices, faces;

    if (!to || !at)
        return -1;
    mark_vertices<<<blocks_of(v + 1, THREADS), THREADS, 0, queue>>>(s->r.vertex, v, to);
    mark_faces<<<blocks_of(f + 1, THREADS), THREADS, 0, queue>>>(s->r.face, f, at);
    if (cuda_launched(ctx, "numbering what is left") || sum_up(ctx, to, v, &vertices) || sum_up(ctx, at, f, &faces))
        return -1;
    ret->place = RECON_DEVICE;
    ret->vertices = vertices;
    ret->faces = faces;
    if (!(ret->xyz = (float *)cuda_alloc(ctx, 12 * ret->vertices)) || !(ret->index = (uint32_t *)cuda_alloc(ctx, 12 * ret->faces)) ||
        (s->r.rgb && !(ret->rgb = (uint8_t *)cuda_alloc(ctx, 3 * ret->vertices))))
        return -1;
    give_vertices<<<blocks_of(v, THREADS), THREADS, 0, queue>>>(*s, *s->in, to, *ret);
    give_faces<<<blocks_of(f, THREADS), THREADS, 0, queue>>>(s->r.face, f, at, to, ret->index);
    return cuda_launched(ctx, "what is left");
}

/* no faces: nothing is left */
int nothing_left(struct recon_ctx *ctx, struct recon_mesh *ret)
{
    ret->place = RECON_DEVICE;
    return (ret->xyz = (float *)cuda_alloc(ctx, 0)) && (ret->index = (uint32_t *)cuda_alloc(ctx, 0)) ? 0 : -1;
}

/* ---- the kernel ---- */

void cost_of(const struct recon_mesh *m, const struct recon_value *p, uint64_t edges, struct recon_cost *cost)
{
    uint64_t v = m->vertices, f = m->faces, prepare = cuda_simplify_prepare_bytes(v, f);
    uint64_t stays = 36 * f + 72 * v + 5 * edges + 8, working = 16 * v + (16 << 20), giving = 19 * v + 16 * f + (16 << 20);

    simplify_cost(m, p, edges, cost);
    cost->host_bytes = 0;
    working = stays + (working > giving ? working : giving);
    cost->device_bytes = (prepare > working ? prepare : working) + 4096;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    (void)ctx;
    if (m)
        cost_of(m, p, 3 * m->faces, cost);
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    Scratch scratch(ctx);
    struct cuda_simplify s = {};
    const struct recon_mesh *m = s.in = (const struct recon_mesh *)in[0];

    if (simplify_check(ctx, p) || simplify_fits(ctx, m))
        return -1;
    if (m->faces && (cuda_index_check(ctx, m) || cuda_simplify_prepare(ctx, scratch, &s)))
        return -1;
    s.r.most = simplify_most(p, s.scale);
    if (m->faces ? (s.edges && rounds(ctx, &s, p)) || result(ctx, &s, (struct recon_mesh *)out[0]) : nothing_left(ctx, (struct recon_mesh *)out[0]))
        return -1;
    simplify_tell(ctx, p, s.faces, s.vertices);
    cost_of(m, p, s.edges, cost);
    return 0;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_simplify(ctx, &cuda_mesh_simplify, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_mesh_simplify = { RECON_KERNEL_ABI,     MESH_SIMPLIFY_NAME, MESH_SIMPLIFY_DOC, mesh_one_in, mesh_one_out,
                                                 mesh_simplify_params, bound,              run,               selftest,    nullptr };
