/* mesh.clean on the device, step after step as on the host. A table of hashes finds what is equal: a thread puts its number into the
 * first free slot or lowers the number of its like, so the lowest stands there in the end whoever came first. */
#include "mesh_clean.cuh"

#include <cub/device/device_scan.cuh>

namespace {

enum { THREADS = 256 };
const uint32_t NONE = UINT32_MAX;

/* ---- what is equal ---- */

struct places {
    const float *xyz;

    __device__ bool wants(uint32_t i) const /* no number is equal to none, and all of them would stand behind each other */
    {
        return clean_same_place(xyz + 3 * (uint64_t)i, xyz + 3 * (uint64_t)i);
    }
    __device__ uint32_t hash(uint32_t i) const
    {
        return clean_hash(xyz + 3 * (uint64_t)i);
    }
    __device__ bool same(uint32_t i, uint32_t k) const
    {
        return clean_same_place(xyz + 3 * (uint64_t)i, xyz + 3 * (uint64_t)k);
    }
};

struct three {
    uint32_t low, mid, high;
};

/* Faces by their three vertices, in any order. */
struct triples {
    const uint32_t *index;

    __device__ three of(uint32_t f) const
    {
        const uint32_t *v = index + 3 * (uint64_t)f;
        uint32_t low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0], x = v[2];

        return x < low ? three{ x, low, high } : x < high ? three{ low, x, high } : three{ low, high, x };
    }
    __device__ bool wants(uint32_t f) const
    {
        return !face_degenerate(index + 3 * (uint64_t)f);
    }
    __device__ uint32_t hash(uint32_t f) const
    {
        three t = of(f);
        uint64_t h = ((uint64_t)t.low << 32 | t.mid) * 0x9e3779b97f4a7c15ull;

        h = ((h ^ h >> 32) + t.high) * 0xd6e8feb86659fd93ull;
        return (uint32_t)(h ^ h >> 32);
    }
    __device__ bool same(uint32_t f, uint32_t g) const
    {
        three a = of(f), b = of(g);

        return a.low == b.low && a.mid == b.mid && a.high == b.high;
    }
};

/* The slots of n things are twice as many and one, so each walk meets a free one. */
__device__ __forceinline__ uint64_t begin_of(uint32_t hash, uint64_t slots)
{
    return (uint64_t)hash * slots >> 32;
}

template <typename K> __global__ void __launch_bounds__(THREADS) enter(K key, uint64_t n, uint32_t *slot)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x, slots = 2 * n + 1;

    if (i >= n || !key.wants((uint32_t)i))
        return;
    for (uint64_t at = begin_of(key.hash((uint32_t)i), slots);; at = at + 1 < slots ? at + 1 : 0) {
        uint32_t was = ((volatile uint32_t *)slot)[at];

        if (was == NONE)
            was = atomicCAS(&slot[at], NONE, (uint32_t)i);
        if (was == NONE)
            return;
        if (key.same(was, (uint32_t)i)) {
            if (was > (uint32_t)i) /* it only falls */
                atomicMin(&slot[at], (uint32_t)i);
            return;
        }
    }
}

/* The lowest number that is equal to i; all have been entered. */
template <typename K> __device__ __forceinline__ uint32_t first_of(const K &key, uint32_t i, const uint32_t *slot, uint64_t slots)
{
    if (!key.wants(i))
        return i;
    for (uint64_t at = begin_of(key.hash(i), slots);; at = at + 1 < slots ? at + 1 : 0)
        if (slot[at] == NONE || key.same(slot[at], i))
            return slot[at] == NONE ? i : slot[at];
}

__global__ void __launch_bounds__(THREADS) find_first(places key, uint64_t n, const uint32_t *slot, uint32_t *to, uint32_t *merged)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    bool other = false;

    if (i < n) {
        uint32_t first = first_of(key, (uint32_t)i, slot, 2 * n + 1);

        to[i] = first;
        other = first != i;
    }
    int others = __syncthreads_count(other);

    if (threadIdx.x == 0 && others)
        atomicAdd(merged, (uint32_t)others);
}

__global__ void __launch_bounds__(THREADS) rename_all(uint32_t *index, uint64_t n, const uint32_t *to)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        index[i] = to[index[i]];
}

__global__ void __launch_bounds__(THREADS) keep_first(triples key, uint64_t n, const uint32_t *slot, uint32_t *keep)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        keep[i] = first_of(key, (uint32_t)i, slot, 2 * n + 1) == i;
}

__global__ void __launch_bounds__(THREADS) keep_sound(struct recon_mesh m, uint32_t *keep)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < m.faces)
        keep[f] = !clean_degenerate(&m, f);
}

/* ---- lists that become shorter ---- */

__global__ void __launch_bounds__(THREADS) pack_faces(const uint32_t *index, const uint32_t *at, uint64_t n, uint32_t *to)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n && at[f + 1] != at[f])
        for (int k = 0; k < 3; k++)
            to[3 * (uint64_t)at[f] + k] = index[3 * f + k];
}

__global__ void __launch_bounds__(THREADS) mark_used(const uint32_t *index, uint64_t n, uint32_t *at)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        at[index[i]] = 1; /* whoever does it */
}

__global__ void __launch_bounds__(THREADS) list_used(const uint32_t *at, uint64_t n, uint32_t *used)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v < n && at[v + 1] != at[v])
        used[at[v]] = (uint32_t)v;
}

__global__ void __launch_bounds__(THREADS) follow(uint32_t *used, uint64_t n, const uint32_t *source)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        used[i] = source[used[i]];
}

} // namespace

int cuda_clean_places(struct recon_ctx *ctx, uint32_t *at, uint64_t n, uint32_t *ret)
{
    Scratch meanwhile(ctx);

    return cuda_ok(ctx, cudaMemsetAsync(at + n, 0, 4, cuda_stream(ctx)), "cudaMemset") || cuda_cub(ctx, meanwhile, "cleaning", [&](void *room, size_t &size) {
        return cub::DeviceScan::ExclusiveSum(room, size, at, at, n + 1, cuda_stream(ctx));
    }) || cuda_read(ctx, ret, at + n, 1) ? -1 : 0;
}

int cuda_clean_topo(struct cuda_clean *c)
{
    struct recon_mesh m = cuda_clean_mesh(c);

    if (c->has_topo)
        return 0;
    if (cuda_topo_build(c->ctx, c->scratch, &m, &c->topo))
        return -1;
    c->has_topo = true;
    return 0;
}

void cuda_clean_topo_release(struct cuda_clean *c)
{
    if (c->has_topo)
        cuda_topo_release(c->scratch, &c->topo);
    c->has_topo = false;
}

int cuda_clean_drop(struct cuda_clean *c, uint32_t *keep, uint64_t *ret_gone)
{
    uint64_t n = c->faces;
    uint32_t left, *was = c->index;

    if (cuda_clean_places(c->ctx, keep, n, &left))
        return -1;
    *ret_gone = n - left;
    if (left == n)
        return 0;
    cuda_clean_topo_release(c);
    pack_faces<<<blocks_of(n, THREADS), THREADS, 0, cuda_stream(c->ctx)>>>(was, keep, n, c->other);

    c->index = c->other;
    c->other = was;
    c->faces = left;
    return cuda_launched(c->ctx, "cleaning");
}

int cuda_clean_used(struct recon_ctx *ctx, Scratch &scratch, uint32_t *index, uint64_t faces, uint64_t vertices, uint32_t **used, uint32_t *ret)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint32_t *at = meanwhile.take<uint32_t>(vertices + 1);

    if (!at || cuda_ok(ctx, cudaMemsetAsync(at, 0, 4 * vertices, queue), "cudaMemset"))
        return -1;
    mark_used<<<blocks_of(3 * faces + 1, THREADS), THREADS, 0, queue>>>(index, 3 * faces, at);
    if (cuda_launched(ctx, "cleaning") || cuda_clean_places(ctx, at, vertices, ret) || !(*used = scratch.take<uint32_t>(*ret)))
        return -1;
    list_used<<<blocks_of(vertices + 1, THREADS), THREADS, 0, queue>>>(at, vertices, *used);
    rename_all<<<blocks_of(3 * faces + 1, THREADS), THREADS, 0, queue>>>(index, 3 * faces, at);
    return cuda_launched(ctx, "cleaning");
}

/* ---- steps ---- */

/* faces name the first vertex at their place */
static int merge(struct cuda_clean *c)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    uint64_t n = c->vertices, corners = 3 * c->faces;
    uint32_t *slot = meanwhile.take<uint32_t>(2 * n + 1), *to = meanwhile.take<uint32_t>(n), *merged = meanwhile.take<uint32_t>(1), told;
    places key = { c->from->xyz };

    if (!slot || !to || !merged || cuda_ok(c->ctx, cudaMemsetAsync(slot, 0xff, 4 * (2 * n + 1), queue), "cudaMemset") ||
        cuda_ok(c->ctx, cudaMemsetAsync(merged, 0, 4, queue), "cudaMemset"))
        return -1;
    enter<places><<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(key, n, slot);
    find_first<<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(key, n, slot, to, merged);
    rename_all<<<blocks_of(corners + 1, THREADS), THREADS, 0, queue>>>(c->index, corners, to);
    if (cuda_launched(c->ctx, "merging vertices") || cuda_read(c->ctx, &told, merged, 1))
        return -1;
    c->n.merged = told;
    return 0;
}

static int drop_degenerate(struct cuda_clean *c)
{
    Scratch meanwhile(c->ctx);
    uint64_t n = c->faces;
    uint32_t *keep = meanwhile.take<uint32_t>(n + 1);

    if (!keep)
        return -1;
    keep_sound<<<blocks_of(n + 1, THREADS), THREADS, 0, cuda_stream(c->ctx)>>>(cuda_clean_mesh(c), keep);
    return cuda_launched(c->ctx, "faces of no area") || cuda_clean_drop(c, keep, &c->n.degenerate) ? -1 : 0;
}

/* of faces with the same three vertices the first stays */
static int drop_repeated(struct cuda_clean *c)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    uint64_t n = c->faces;
    uint32_t *slot = meanwhile.take<uint32_t>(2 * n + 1), *keep = meanwhile.take<uint32_t>(n + 1);
    triples key = { c->index };

    if (!slot || !keep ||
        cuda_ok(c->ctx, cudaMemsetAsync(slot, 0xff, 4 * (2 * n + 1), queue), "cudaMemset"))
        return -1;
    enter<triples><<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(key, n, slot);
    keep_first<<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(key, n, slot, keep);
    return cuda_launched(c->ctx, "repeated faces") || cuda_clean_drop(c, keep, &c->n.repeated) ? -1 : 0;
}

static int drop_unused(struct cuda_clean *c)
{
    uint32_t *used, n;

    cuda_clean_topo_release(c);
    if (cuda_clean_used(c->ctx, c->scratch, c->index, c->faces, c->vertices, &used, &n))
        return -1;
    if (c->source)
        follow<<<blocks_of(n + 1, THREADS), THREADS, 0, cuda_stream(c->ctx)>>>(used, n, c->source);
    c->n.unused = c->vertices - n;
    c->vertices = n;
    if (c->source)
        c->scratch.give_back(c->source);
    c->source = used;
    return cuda_launched(c->ctx, "unused vertices");
}

static int steps(struct cuda_clean *c, const struct recon_value *p)
{
    if ((p[MESH_CLEAN_MERGE].i && merge(c)) || (p[MESH_CLEAN_DEGENERATE].i && drop_degenerate(c)) || (p[MESH_CLEAN_REPEATED].i && drop_repeated(c)) ||
        (p[MESH_CLEAN_NON_MANIFOLD].i && cuda_clean_non_manifold(c)) || (p[MESH_CLEAN_ORIENT].i == MESH_CLEAN_OUTWARD && cuda_clean_orient(c)) ||
        (p[MESH_CLEAN_SPLIT].i && cuda_clean_fans(c)))
        return -1;
    cuda_clean_topo_release(c);
    if ((p[MESH_CLEAN_MIN_FACES].i || p[MESH_CLEAN_LARGEST].i) &&
        cuda_clean_small(c, (uint64_t)p[MESH_CLEAN_MIN_FACES].i, (uint64_t)p[MESH_CLEAN_LARGEST].i))
        return -1;
    return p[MESH_CLEAN_UNUSED].i ? drop_unused(c) : 0;
}

/* ---- the kernel ---- */

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* copies: of vertices, where fans are parted */
static void cost_of(const struct recon_mesh *m, const struct recon_value *p, uint64_t copies, struct recon_cost *cost)
{
    uint64_t v = m->vertices, f = m->faces, all = v + copies, vertex = p[MESH_CLEAN_MERGE].i ? 15 : 27, few = all < f ? all : f;
    uint64_t topo = greatest(36 * f + 64, cuda_topo_bytes(v, f)), most = 12 * v + 64; /* merging: a table, and what each becomes */

    most = greatest(most, 12 * f + 64);                                                     /* repeated: a table and flags */
    most = greatest(most, 12 * all + greatest(4 * f, 4 * all + 26 * few) + 64);             /* components, flags or their list */
    most = greatest(most, 12 * all + 64);                                                   /* used vertices */
    most = greatest(most, 4 * all + vertex * all + 12 * f);                                 /* what comes out */
    cost->host_bytes = 4096;
    if (p[MESH_CLEAN_NON_MANIFOLD].i) {
        most = greatest(most, topo + 64 * f + 64); /* every half-edge at an edge of three faces */
        cost->host_bytes = greatest(cost->host_bytes, 53 * f + 4096);
    }
    if (p[MESH_CLEAN_ORIENT].i == MESH_CLEAN_OUTWARD) { /* sums of parts, and then parts for the host, which are more */
        most = greatest(most, topo + 6 * f + 22 * f + 20 * v + 64);
        cost->host_bytes = greatest(cost->host_bytes, topo_bytes(v, f) + 18 * f + 12 * v + 4096);
    }
    if (p[MESH_CLEAN_SPLIT].i)
        most = greatest(most, 12 * f + greatest(topo + 4 * v, 12 * f + 8 * v + 4 * all) + 64);
    cost->device_bytes = 24 * f + most + (all + 3 * f) / 16 + (4 << 20); /* and what scans and sorts keep of their tiles */
    cost->moved_bytes = 54 * v + 72 * f;
    cost->items = f;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    (void)ctx;
    if (m) /* at worst a vertex a corner */
        cost_of(m, p, p[MESH_CLEAN_SPLIT].i ? 3 * m->faces : 0, cost);
    return 0;
}

static int give(struct cuda_clean *c, bool normals, struct recon_mesh *to)
{
    struct recon_points p = {}, q = {};
    int rc;

    to->place = p.place = RECON_DEVICE;
    to->vertices = c->vertices;
    to->faces = c->faces;
    p.n = c->from->vertices;
    p.xyz = c->from->xyz;
    p.normals = normals ? c->from->normals : nullptr;
    p.rgb = c->from->rgb;
    if (c->source) {
        rc = cuda_points_take(c->ctx, &p, c->source, c->vertices, &q);
        to->xyz = q.xyz;
        to->normals = q.normals;
        to->rgb = q.rgb;
    } else {
        rc = cuda_share_to(c->ctx, &to->xyz, p.xyz) || cuda_share_to(c->ctx, &to->normals, p.normals) || cuda_share_to(c->ctx, &to->rgb, p.rgb);
    }
    if (rc || !(to->index = (uint32_t *)cuda_alloc(c->ctx, 12 * c->faces)))
        return -1;
    return cuda_ok(c->ctx, cudaMemcpyAsync(to->index, c->index, 12 * c->faces, cudaMemcpyDeviceToDevice, cuda_stream(c->ctx)), "copy of a mesh");
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    Scratch scratch(ctx);
    struct cuda_clean c = { ctx, m, scratch, m->vertices, m->faces, nullptr, nullptr, nullptr, false, {}, {} };

    if (topo_fits(ctx, m) || cuda_index_check(ctx, m) || !(c.index = scratch.take<uint32_t>(3 * m->faces)) || !(c.other = scratch.take<uint32_t>(3 * m->faces)) ||
        (m->faces && cuda_ok(ctx, cudaMemcpyAsync(c.index, m->index, 12 * m->faces, cudaMemcpyDeviceToDevice, cuda_stream(ctx)), "copy of a mesh")) ||
        steps(&c, p) || (c.faces && give(&c, !p[MESH_CLEAN_MERGE].i, (struct recon_mesh *)out[0])) || clean_told(ctx, m->faces, c.faces, &c.n))
        return -1;
    cost_of(m, p, c.n.split, cost);
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_clean(ctx, &cuda_mesh_clean, &cuda_device);
}

const struct recon_kernel cuda_mesh_clean = { RECON_KERNEL_ABI,  MESH_CLEAN_NAME, MESH_CLEAN_DOC, mesh_one_in, mesh_one_out,
                                              mesh_clean_params, bound,           run,            selftest,    nullptr };
