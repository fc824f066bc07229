/* Orientation: faces joined by edges of two are sets with a parity. Where a part can be turned alike, whether a face is turned against
 * the part's first does not depend on the way between them, and the sign of a closed part's volume not on the order of its sum, if the
 * sum is larger than rounding can make it. Parts of which that is not certain go to the host, which walks as it always does. */
#include "mesh_clean.cuh"

#include <cub/block/block_reduce.cuh>

namespace {

enum { THREADS = 256 };

/* ---- sets with a parity: set[f] = a lower face << 1 | whether f is turned against it; a root names itself ---- */

/* Root << 1 | parity against it; paths are halved on the way as in sets_root: a lower parent is a lower number, and has one parity. */
__device__ __forceinline__ uint32_t odd_root(uint32_t *set, uint32_t f)
{
    const volatile uint32_t *p = set;
    uint32_t odd = 0;

    for (uint32_t up = p[f]; up >> 1 != f; up = p[f]) {
        uint32_t over = p[up >> 1];

        if (over >> 1 != up >> 1)
            atomicMin(&set[f], over ^ (up & 1));
        odd ^= (over ^ up) & 1; /* a root's own parity is 0 */
        f = over >> 1;
    }
    return f << 1 | odd;
}

/* As sets_join: the lowest face of a set becomes its root. */
__device__ __forceinline__ void odd_join(uint32_t *set, uint32_t f, uint32_t g, uint32_t odd)
{
    uint32_t a = odd_root(set, f), b = odd_root(set, g);

    while (a >> 1 != b >> 1) {
        uint32_t high = a < b ? b : a, low = a < b ? a : b, was = atomicCAS(&set[high >> 1], high & ~1u, low ^ ((high ^ odd) & 1));

        if (was == (high & ~1u))
            return;
        was ^= high & 1; /* the parent that high's root has got, as seen from high */
        a = odd_root(set, was >> 1) ^ (was & 1);
        b = low;
    }
}

/* The two half-edges of an edge of two; whether both go one way along it. */
struct pair {
    uint32_t f, g, same;
    bool is;
};

__device__ __forceinline__ pair pair_of(const cuda_topo &t, uint64_t e)
{
    pair p = { 0, 0, 0, false };

    if (e < t.edges && topo_count(t, (uint32_t)e) == 2) {
        uint32_t h = t.half[t.first[e]], k = t.half[t.first[e] + 1];

        p = { h / 3, k / 3, t.index[h] == t.index[k], true };
    }
    return p;
}

__global__ void __launch_bounds__(THREADS) begin_sets(uint32_t *set, uint64_t n)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n)
        set[f] = (uint32_t)f << 1;
}

__global__ void __launch_bounds__(THREADS) join_faces(cuda_topo t, uint32_t *set)
{
    pair p = pair_of(t, (uint64_t)blockIdx.x * THREADS + threadIdx.x);

    if (p.is)
        odd_join(set, p.f, p.g, p.same);
}

__global__ void __launch_bounds__(THREADS) settle(uint32_t *set, uint64_t n)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n)
        set[f] = odd_root(set, (uint32_t)f);
}

/* ---- what is known of a part, at its root ---- */

struct part {
    double *volume, *size; /* six times the volume of faces as they are turned, of what its terms are up to sign */
    uint8_t *open;         /* has a border */
    uint8_t *unsure;       /* cannot be turned alike, or its sign is not certain */
};

__global__ void __launch_bounds__(THREADS) look_at_edges(cuda_topo t, const uint32_t *set, part parts)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    pair p = pair_of(t, e);

    if (p.is && ((set[p.f] ^ set[p.g] ^ p.same) & 1))
        parts.unsure[set[p.f] >> 1] = 1; /* whoever does it */
    if (e < t.edges && topo_count(t, (uint32_t)e) == 1)
        parts.open[set[t.half[t.first[e]] / 3] >> 1] = 1;
}

/* Those of a block's first part are summed before they are added: most are of one. */
__global__ void __launch_bounds__(THREADS) add_volumes(struct recon_mesh m, const uint32_t *set, part parts)
{
    typedef cub::BlockReduce<double, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage room;
    __shared__ uint32_t first;
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t root = f < m.faces ? set[f] >> 1 : TOPO_NONE;
    double x = f < m.faces ? (set[f] & 1 ? -1 : 1) * clean_volume(&m, f) : 0, volume, size;

    if (threadIdx.x == 0)
        first = root;
    __syncthreads();
    volume = Reduce(room).Sum(root == first ? x : 0);
    __syncthreads();
    size = Reduce(room).Sum(root == first ? fabs(x) : 0);
    if (threadIdx.x == 0) {
        atomicAdd(&parts.volume[root], volume);
        atomicAdd(&parts.size[root], size);
    } else if (f < m.faces && root != first) {
        atomicAdd(&parts.volume[root], x);
        atomicAdd(&parts.size[root], fabs(x));
    }
    if (f < m.faces && face_degenerate(m.index + 3 * f))
        parts.open[root] = 1;
}

/* Two sums of n numbers, in any orders, differ from the exact one by (n - 1) 2^-53 times the sum of their sizes each, but for terms of
 * second order (Higham, Accuracy and Stability, 4.2); four times that leaves room for those and for the rounding of the sizes' sum. What
 * is no number is not certain. open becomes: to be turned as a whole. */
__global__ void __launch_bounds__(THREADS) judge(const uint32_t *set, uint64_t n, part parts, uint32_t *unsure)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    bool doubt = false;

    if (f < n && set[f] == f << 1) {
        double v = parts.volume[f], least = 8 * (double)n * 1.1102230246251565e-16 * parts.size[f];
        bool open = parts.open[f];

        if (!open && !(fabs(v) > least && parts.size[f] < INFINITY))
            parts.unsure[f] = 1;
        parts.open[f] = !open && v < 0;
        doubt = parts.unsure[f];
    }
    int doubts = __syncthreads_count(doubt);

    if (threadIdx.x == 0 && doubts)
        atomicAdd(unsure, (uint32_t)doubts);
}

__global__ void __launch_bounds__(THREADS) turn_parts(const uint32_t *set, uint64_t n, part parts, uint8_t *turn)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n)
        turn[f] = (set[f] & 1) ^ parts.open[set[f] >> 1];
}

__global__ void __launch_bounds__(THREADS) turn_faces(uint32_t *index, uint64_t n, const uint8_t *turn, uint32_t *turned)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    bool now = f < n && turn[f];

    if (now) {
        uint32_t v = index[3 * f + 1];

        index[3 * f + 1] = index[3 * f + 2];
        index[3 * f + 2] = v;
    }
    int all = __syncthreads_count(now);

    if (threadIdx.x == 0 && all)
        atomicAdd(turned, (uint32_t)all);
}

/* ---- parts for the host ---- */

enum { WALL = 1, WALKED };

/* Faces of uncertain parts, and all others at their edges, so that these have as many faces there as here. */
__global__ void __launch_bounds__(THREADS) mark_walked(const uint32_t *set, uint64_t n, const uint8_t *unsure, uint8_t *mark)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n)
        mark[f] = unsure[set[f] >> 1] ? WALKED : 0;
}

__global__ void __launch_bounds__(THREADS) mark_edges(cuda_topo t, const uint32_t *set, const uint8_t *unsure, uint8_t *edges)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < t.halves && unsure[set[t.half[i] / 3] >> 1])
        edges[t.edge_of[t.half[i]]] = 1; /* whoever does it */
}

__global__ void __launch_bounds__(THREADS) mark_walls(cuda_topo t, const uint32_t *set, const uint8_t *unsure, const uint8_t *edges, uint8_t *mark)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < t.halves && edges[t.edge_of[t.half[i]]] && !unsure[set[t.half[i] / 3] >> 1])
        mark[t.half[i] / 3] = WALL;
}

__global__ void __launch_bounds__(THREADS) flag_marked(const uint8_t *mark, uint64_t n, uint32_t *at)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n)
        at[f] = mark[f] != 0;
}

__global__ void __launch_bounds__(THREADS) list_marked(const uint32_t *index, const uint8_t *mark, const uint32_t *at, uint64_t n, uint32_t *list,
                                                       uint32_t *faces, uint8_t *marks)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= n || !mark[f])
        return;
    list[at[f]] = (uint32_t)f;
    marks[at[f]] = mark[f];
    for (int k = 0; k < 3; k++)
        faces[3 * (uint64_t)at[f] + k] = index[3 * f + k];
}

/* marks: what the host has put there, 2 or 3 of faces that it walked */
__global__ void __launch_bounds__(THREADS) take_turns(const uint32_t *list, const uint8_t *marks, uint64_t n, uint8_t *turn)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n && marks[i] >= 2)
        turn[list[i]] = marks[i] & 1;
}

/* The host's own walk through the parts; marks become turns, 0 of walls. */
int walk(struct recon_ctx *ctx, const struct recon_mesh *m, uint8_t *marks)
{
    const struct recon_host *host = ctx->host;
    uint8_t *turn = (uint8_t *)host->alloc(ctx, m->faces);
    uint32_t *stack = (uint32_t *)host->alloc(ctx, 4 * m->faces);
    struct topo t = {};
    int rc = turn && stack ? topo_build(ctx, m, &t) : -1;

    if (rc == 0) {
        memset(turn, 0, m->faces);
        for (uint32_t f = 0; f < m->faces; f++)
            if (marks[f] == WALKED && turn[f] == 0)
                clean_orient_part(m, &t, f, turn, stack);
        memcpy(marks, turn, m->faces);
    }
    topo_release(ctx, &t);
    host->free(ctx, turn);
    host->free(ctx, stack);
    return rc;
}

/* The marked faces and the vertices they name, numbered anew in their order, which keeps the order of edges. */
struct marked {
    uint64_t faces, vertices;
    uint32_t *list, *index;
    uint8_t *marks;
    float *xyz;
};

int gather_marked(struct cuda_clean *c, Scratch &scratch, const uint8_t *mark, struct marked *s, struct recon_points *places)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    unsigned blocks = blocks_of(c->faces, THREADS);
    uint32_t *at = meanwhile.take<uint32_t>(c->faces + 1), *used, n, vertices;
    struct recon_points from = {};

    if (!at)
        return -1;
    flag_marked<<<blocks, THREADS, 0, queue>>>(mark, c->faces, at);
    if (cuda_launched(c->ctx, "orientation") || cuda_clean_places(c->ctx, at, c->faces, &n) || !(s->list = scratch.take<uint32_t>(n)) ||
        !(s->index = scratch.take<uint32_t>(3 * (uint64_t)n)) || !(s->marks = scratch.take<uint8_t>(n)))
        return -1;
    list_marked<<<blocks, THREADS, 0, queue>>>(c->index, mark, at, c->faces, s->list, s->index, s->marks);
    if (cuda_launched(c->ctx, "orientation") || cuda_clean_used(c->ctx, meanwhile, s->index, n, c->vertices, &used, &vertices))
        return -1;
    s->faces = n;
    s->vertices = vertices;
    from.n = c->from->vertices;
    from.xyz = c->from->xyz;
    return cuda_points_take(c->ctx, &from, used, vertices, places);
}

/* turn of the marked faces, by the host */
int turn_marked(struct cuda_clean *c, const struct marked *s, const float *xyz, uint8_t *turn)
{
    const struct recon_host *host = c->ctx->host;
    struct recon_mesh m = {};
    uint8_t *marks = (uint8_t *)host->alloc(c->ctx, s->faces);
    uint64_t n = s->faces;
    int rc = -1;

    m.vertices = s->vertices;
    m.faces = s->faces;
    m.xyz = (float *)host->alloc(c->ctx, 12 * s->vertices);
    m.index = (uint32_t *)host->alloc(c->ctx, 12 * s->faces);
    if (marks && m.xyz && m.index && cuda_read(c->ctx, m.xyz, xyz, 3 * s->vertices) == 0 && cuda_read(c->ctx, m.index, s->index, 3 * s->faces) == 0 &&
        cuda_read(c->ctx, marks, s->marks, s->faces) == 0 && walk(c->ctx, &m, marks) == 0)
        rc = cuda_device.upload(c->ctx, s->marks, marks, s->faces);
    if (rc == 0) {
        take_turns<<<blocks_of(n + 1, THREADS), THREADS, 0, cuda_stream(c->ctx)>>>(s->list, s->marks, n, turn);
        rc = cuda_launched(c->ctx, "orientation") || cuda_device.sync(c->ctx) ? -1 : 0; /* marks is read until then */
    }
    host->free(c->ctx, marks);
    mesh_free(c->ctx, &m);
    return rc;
}

int ask_host(struct cuda_clean *c, const uint32_t *set, const uint8_t *unsure, uint8_t *turn)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    struct recon_points places = {};
    struct marked s = {};
    uint8_t *mark = meanwhile.take<uint8_t>(c->faces), *edges = meanwhile.take<uint8_t>(c->topo.edges);
    unsigned faces = blocks_of(c->faces, THREADS), halves = blocks_of(c->topo.halves + 1, THREADS);
    int rc;

    if (!mark || !edges || (c->topo.edges && cuda_ok(c->ctx, cudaMemsetAsync(edges, 0, c->topo.edges, queue), "cudaMemset")))
        return -1;
    mark_walked<<<faces, THREADS, 0, queue>>>(set, c->faces, unsure, mark);
    mark_edges<<<halves, THREADS, 0, queue>>>(c->topo, set, unsure, edges);
    mark_walls<<<halves, THREADS, 0, queue>>>(c->topo, set, unsure, edges, mark);
    meanwhile.give_back(edges);
    rc = cuda_launched(c->ctx, "orientation") || gather_marked(c, meanwhile, mark, &s, &places) || turn_marked(c, &s, places.xyz, turn) ? -1 : 0;
    cuda_free(c->ctx, places.xyz);
    return rc;
}

/* turn, of each face; unsure: of how many parts that is the host's to say */
int judge_parts(struct cuda_clean *c, uint32_t *set, uint8_t *turn, uint8_t *unsure, uint32_t *ret)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    uint64_t n = c->faces;
    unsigned faces = blocks_of(n, THREADS), edges = blocks_of(c->topo.edges + 1, THREADS);
    struct part parts = { meanwhile.take<double>(n), meanwhile.take<double>(n), meanwhile.take<uint8_t>(n), unsure };
    uint32_t *count = meanwhile.take<uint32_t>(1);

    if (!parts.volume || !parts.size || !parts.open || !count || cuda_ok(c->ctx, cudaMemsetAsync(parts.volume, 0, 8 * n, queue), "cudaMemset") ||
        cuda_ok(c->ctx, cudaMemsetAsync(parts.size, 0, 8 * n, queue), "cudaMemset") || cuda_ok(c->ctx, cudaMemsetAsync(parts.open, 0, n, queue), "cudaMemset") ||
        cuda_ok(c->ctx, cudaMemsetAsync(unsure, 0, n, queue), "cudaMemset") || cuda_ok(c->ctx, cudaMemsetAsync(count, 0, 4, queue), "cudaMemset"))
        return -1;
    begin_sets<<<faces, THREADS, 0, queue>>>(set, n);
    join_faces<<<edges, THREADS, 0, queue>>>(c->topo, set);
    settle<<<faces, THREADS, 0, queue>>>(set, n);
    look_at_edges<<<edges, THREADS, 0, queue>>>(c->topo, set, parts);
    add_volumes<<<faces, THREADS, 0, queue>>>(cuda_clean_mesh(c), set, parts);
    judge<<<faces, THREADS, 0, queue>>>(set, n, parts, count);
    turn_parts<<<faces, THREADS, 0, queue>>>(set, n, parts, turn);
    return cuda_launched(c->ctx, "orientation") || cuda_read(c->ctx, ret, count, 1) ? -1 : 0;
}

} // namespace

int cuda_clean_orient(struct cuda_clean *c)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    unsigned blocks = blocks_of(c->faces, THREADS);
    uint32_t *set, *count, parts, turned;
    uint8_t *turn, *unsure;

    if (c->faces == 0)
        return 0;
    if (cuda_clean_topo(c) || !(set = meanwhile.take<uint32_t>(c->faces)) || !(turn = meanwhile.take<uint8_t>(c->faces)) ||
        !(unsure = meanwhile.take<uint8_t>(c->faces)) ||
        !(count = meanwhile.take<uint32_t>(1)) || cuda_ok(c->ctx, cudaMemsetAsync(count, 0, 4, queue), "cudaMemset") ||
        judge_parts(c, set, turn, unsure, &parts) || (parts && ask_host(c, set, unsure, turn)))
        return -1;
    turn_faces<<<blocks, THREADS, 0, queue>>>(c->index, c->faces, turn, count);
    if (cuda_launched(c->ctx, "orientation") || cuda_read(c->ctx, &turned, count, 1))
        return -1;
    if (turned)
        cuda_clean_topo_release(c);
    c->n.turned = turned;
    return 0;
}
