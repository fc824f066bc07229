/* mesh.fill_holes on the device: it finds the border, and what joins its vertices; that alone goes to the host, which fills the holes as
 * for the CPU's form (kernels/holes.h); the new faces come behind the old ones on the device. */
#include "mesh_topo.cuh"

#include <cub/device/device_scan.cuh>
#include "kernels/holes.h"

namespace {

enum { THREADS = 256, STEPS = 256 };
const uint32_t FAR = TOPO_NONE - 1; /* no half-edge: a fan of more faces than STEPS */

__device__ __forceinline__ bool is_border(const cuda_topo &t, uint32_t h)
{
    return t.edge_of[h] != TOPO_NONE && topo_count(t, t.edge_of[h]) == 1;
}

/* Bit i: half-edge i of the face is of the border; 7, a face on its own, becomes 0. */
__device__ __forceinline__ unsigned border_mask(const cuda_topo &t, uint32_t f, bool *lone)
{
    unsigned mask = 0;

    for (uint32_t i = 0; i < 3; i++)
        mask |= (unsigned)is_border(t, 3 * f + i) << i;
    *lone = mask == 7;
    return *lone ? 0 : mask;
}

/* ---- counting ---- */

/* halves: of each face, of the border; used: 1 at vertices where they begin; told: halves, lone faces. */
__global__ void __launch_bounds__(THREADS) count_border(cuda_topo t, uint32_t *halves, uint32_t *used, unsigned long long *told)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    bool lone = false;
    unsigned mask = f < t.faces ? border_mask(t, (uint32_t)f, &lone) : 0;
    int n = __popc(mask), all = __syncthreads_count(n > 0), alone = __syncthreads_count(lone);

    all += __syncthreads_count(n > 1); /* two at most */
    if (f < t.faces)
        halves[f] = (uint32_t)n;
    for (uint32_t i = 0; i < 3; i++)
        if (mask >> i & 1)
            used[t.index[3 * f + i]] = 1;
    if (threadIdx.x == 0 && all)
        atomicAdd(&told[0], (unsigned long long)all);
    if (threadIdx.x == 0 && alone)
        atomicAdd(&told[1], (unsigned long long)alone);
}

/* sum: how many of the numbers up to and with i count. Whether i does. */
__device__ __forceinline__ bool counts(const uint32_t *sum, uint64_t i)
{
    return sum[i] != (i ? sum[i - 1] : 0);
}

struct ends {
    uint32_t low, high; /* places among the border's vertices */
};

/* Whether both ends of edge e are of the border. */
__device__ __forceinline__ bool between(const cuda_topo &t, const uint32_t *place, uint64_t e, ends *ret)
{
    uint32_t h = t.half[t.first[e]], a = t.index[h], b = t.index[topo_next(h)], low = a < b ? a : b, high = a < b ? b : a;

    if (!counts(place, low) || !counts(place, high))
        return false;
    ret->low = place[low] - 1;
    ret->high = place[high] - 1;
    return true;
}

__global__ void __launch_bounds__(THREADS) count_edges(cuda_topo t, const uint32_t *place, uint32_t *count)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    ends x;

    if (e < t.edges)
        count[e] = between(t, place, e, &x);
}

/* ---- taking ---- */

__global__ void __launch_bounds__(THREADS) take_halves(cuda_topo t, const uint32_t *sum, const uint32_t *place, struct border b)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= t.faces || !counts(sum, f))
        return;
    bool lone;
    unsigned mask = border_mask(t, (uint32_t)f, &lone);

    for (uint32_t i = 0, to = f ? sum[f - 1] : 0; i < 3; i++)
        if (mask >> i & 1) {
            b.half[to] = (uint32_t)(3 * f + i);
            b.start[to++] = place[t.index[3 * f + i]] - 1;
        }
}

__global__ void __launch_bounds__(THREADS) take_vertices(const float *xyz, uint64_t n, const uint32_t *place, struct border b)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v >= n || !counts(place, v))
        return;
    uint64_t to = place[v] - 1;

    for (int k = 0; k < 3; k++)
        b.xyz[3 * to + k] = xyz[3 * v + k];
}

__global__ void __launch_bounds__(THREADS) take_edges(cuda_topo t, const uint32_t *place, const uint32_t *sum, uint32_t *lower, struct border b)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    ends x;

    if (e >= t.edges || !between(t, place, e, &x))
        return;
    lower[sum[e] - 1] = x.low;
    b.higher[sum[e] - 1] = x.high;
}

/* How many of n ascending numbers are less than x. */
__device__ __forceinline__ uint32_t less_than(const uint32_t *p, uint64_t n, uint64_t x)
{
    uint64_t low = 0, high = n;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;

        if (p[mid] < x)
            low = mid + 1;
        else
            high = mid;
    }
    return (uint32_t)low;
}

__global__ void __launch_bounds__(THREADS) take_rows(const uint32_t *lower, struct border b)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v <= b.vertices)
        b.row[v] = less_than(lower, b.edges, v);
}

/* ---- around fans ---- */

/* The half-edge behind g around the fan at its start; itself on the border, TOPO_NONE where the fan is not to be followed. */
__device__ __forceinline__ uint32_t behind(const cuda_topo &t, uint32_t g)
{
    uint32_t k = is_border(t, g) ? TOPO_NONE : topo_twin(t, g);

    return k != TOPO_NONE ? topo_next(k) : is_border(t, g) ? g : TOPO_NONE;
}

/* What follows each half-edge of the border; FAR after STEPS faces, and *far is 1. A fan has no circle that a border leads into. */
__global__ void __launch_bounds__(THREADS) take_next(cuda_topo t, struct border b, uint32_t *far)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= b.halves)
        return;
    uint32_t g = topo_next(b.half[i]), last = TOPO_NONE;

    for (int n = 0; n < STEPS && g != TOPO_NONE && g != last; n++) {
        last = g;
        g = behind(t, g);
    }
    if (g != last && g != TOPO_NONE) {
        *far = 1; /* whoever says it */
        g = FAR;
    }
    b.next[i] = g >= FAR ? g : less_than(b.half, b.halves, g);
}

__global__ void __launch_bounds__(THREADS) begin_jumps(cuda_topo t, uint32_t *jump)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (h < 3 * t.faces)
        jump[h] = behind(t, (uint32_t)h);
}

/* Twice as far at least; one that another thread has moved on already leads further, to the same end. */
__global__ void __launch_bounds__(THREADS) double_jumps(uint32_t *jump, uint64_t n)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    volatile uint32_t *p = jump;

    if (h >= n)
        return;
    uint32_t over = p[h];

    if (over != TOPO_NONE)
        p[h] = p[over];
}

__global__ void __launch_bounds__(THREADS) take_far(const uint32_t *jump, struct border b)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= b.halves || b.next[i] != FAR)
        return;
    uint32_t g = jump[topo_next(b.half[i])];

    b.next[i] = g == TOPO_NONE ? g : less_than(b.half, b.halves, g);
}

/* ---- host ---- */

struct finding {
    struct recon_ctx *ctx;
    Scratch &scratch;
    const struct recon_mesh *m;
    struct cuda_topo t;
    uint32_t *halves, *place, *edges; /* running sums over faces, vertices, edges */
};

int add_up(finding &f, uint32_t *p, uint64_t n)
{
    Scratch meanwhile(f.ctx);

    return cuda_cub(f.ctx, meanwhile, "the border of a mesh", [&](void *room, size_t &size) {
        return cub::DeviceScan::InclusiveSum(room, size, p, p, n, cuda_stream(f.ctx));
    });
}

/* Half-edges and lone faces of b. */
int count(finding &f, struct border *b)
{
    const struct recon_mesh *m = f.m;
    cudaStream_t queue = cuda_stream(f.ctx);
    unsigned blocks = blocks_of(m->faces, THREADS);
    unsigned long long *told = f.scratch.take<unsigned long long>(2), copy[2];

    if (!told || !(f.halves = f.scratch.take<uint32_t>(m->faces)) || !(f.place = f.scratch.take<uint32_t>(m->vertices)) ||
        cuda_ok(f.ctx, cudaMemsetAsync(told, 0, 16, queue), "cudaMemset") ||
        cuda_ok(f.ctx, cudaMemsetAsync(f.place, 0, 4 * m->vertices, queue), "cudaMemset"))
        return -1;
    count_border<<<blocks, THREADS, 0, queue>>>(f.t, f.halves, f.place, told);
    if (cuda_launched(f.ctx, "the border of a mesh") || cuda_read(f.ctx, copy, told, 2))
        return -1;
    b->halves = copy[0];
    b->lone = copy[1];
    return 0;
}

/* Vertices and edges of b, where it has half-edges. */
int count_more(finding &f, struct border *b)
{
    uint32_t vertices, edges;

    if (!(f.edges = f.scratch.take<uint32_t>(f.t.edges)) || add_up(f, f.halves, f.m->faces) || add_up(f, f.place, f.m->vertices))
        return -1;
    count_edges<<<blocks_of(f.t.edges, THREADS), THREADS, 0, cuda_stream(f.ctx)>>>(f.t, f.place, f.edges);
    if (cuda_launched(f.ctx, "the border of a mesh") || add_up(f, f.edges, f.t.edges) ||
        cuda_read(f.ctx, &vertices, f.place + f.m->vertices - 1, 1) || cuda_read(f.ctx, &edges, f.edges + f.t.edges - 1, 1))
        return -1;
    b->vertices = vertices;
    b->edges = edges;
    return 0;
}

/* Fans of many faces: the end of each by ways that double. */
int far_ends(finding &f, const struct border &on_device)
{
    Scratch meanwhile(f.ctx);
    cudaStream_t queue = cuda_stream(f.ctx);
    uint64_t n = 3 * f.m->faces;
    uint32_t *jump = meanwhile.take<uint32_t>(n);

    if (!jump)
        return -1;
    begin_jumps<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(f.t, jump);
    for (int left = bits_of(n); left > 0; left--)
        double_jumps<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(jump, n);
    take_far<<<blocks_of(on_device.halves, THREADS), THREADS, 0, queue>>>(jump, on_device);
    return cuda_launched(f.ctx, "around the fans of a mesh");
}

/* The block of b, on the host, is the caller's. */
int take(finding &f, struct border *b)
{
    Scratch meanwhile(f.ctx);
    cudaStream_t queue = cuda_stream(f.ctx);
    const struct recon_mesh *m = f.m;
    struct border on_device = *b;
    uint64_t faces = m->faces, vertices = m->vertices, halves = b->halves, rows = b->vertices + 1;
    uint32_t *block = meanwhile.take<uint32_t>(border_bytes(b) / 4), *lower = meanwhile.take<uint32_t>(b->edges), *far = meanwhile.take<uint32_t>(1), is_far;
    void *copy;

    if (!block || !lower || !far || cuda_ok(f.ctx, cudaMemsetAsync(far, 0, 4, queue), "cudaMemset"))
        return -1;
    border_lay(&on_device, block);
    take_halves<<<blocks_of(faces, THREADS), THREADS, 0, queue>>>(f.t, f.halves, f.place, on_device);
    take_vertices<<<blocks_of(vertices, THREADS), THREADS, 0, queue>>>(m->xyz, vertices, f.place, on_device);
    take_edges<<<blocks_of(f.t.edges, THREADS), THREADS, 0, queue>>>(f.t, f.place, f.edges, lower, on_device);
    take_rows<<<blocks_of(rows, THREADS), THREADS, 0, queue>>>(lower, on_device);
    take_next<<<blocks_of(halves, THREADS), THREADS, 0, queue>>>(f.t, on_device, far);
    if (cuda_launched(f.ctx, "the border of a mesh") || cuda_read(f.ctx, &is_far, far, 1) || (is_far && far_ends(f, on_device)) ||
        !(copy = f.ctx->host->alloc(f.ctx, border_bytes(b))))
        return -1;
    border_lay(b, copy);
    return cuda_device.download(f.ctx, copy, block, border_bytes(b));
}

int find_border(struct recon_ctx *ctx, const struct recon_mesh *m, struct border *b)
{
    Scratch scratch(ctx);
    finding f = { ctx, scratch, m, {}, nullptr, nullptr, nullptr };

    if (cuda_topo_build(ctx, scratch, m, &f.t))
        return -1;
    if (m->faces == 0)
        return 0;
    return count(f, b) || (b->halves && (count_more(f, b) || take(f, b))) ? -1 : 0;
}

/* ---- the result ---- */

/* Three numbers a face: the new ones' are those of the corners that they are like. */
__global__ void __launch_bounds__(THREADS) add_corners(const uint32_t *corner, uint64_t n, const uint32_t *from, uint32_t *to)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        to[i] = from[corner[i]];
}

struct growing {
    struct recon_ctx *ctx;
    const struct recon_mesh *m;
    const uint32_t *corner; /* on the device */
    uint64_t n;             /* of them */
};

/* A copy with room behind it; what does not grow is shared. */
int grow_array(struct recon_ctx *ctx, void **to, void *from, uint64_t bytes, uint64_t room)
{
    if (!from)
        return 0;
    if (room == bytes)
        return cuda_share_to(ctx, to, from);
    if (!(*to = cuda_alloc(ctx, room)))
        return -1;
    return bytes ? cuda_ok(ctx, cudaMemcpyAsync(*to, from, bytes, cudaMemcpyDeviceToDevice, cuda_stream(ctx)), "copy of a mesh") : 0;
}

int grow_corners(const growing &g, uint32_t *from, uint32_t **ret)
{
    uint64_t old = 3 * g.m->faces;

    if (grow_array(g.ctx, (void **)ret, from, 4 * old, 4 * (old + g.n)))
        return -1;
    if (!from || g.n == 0)
        return 0;
    add_corners<<<blocks_of(g.n, THREADS), THREADS, 0, cuda_stream(g.ctx)>>>(g.corner, g.n, from, *ret + old);
    return cuda_launched(g.ctx, "corners of new faces");
}

int to_host(struct recon_ctx *ctx, void *from, uint64_t bytes, uint8_t **ret)
{
    if (!from)
        return 0;
    return (*ret = (uint8_t *)ctx->host->alloc(ctx, bytes)) ? cuda_device.download(ctx, *ret, from, bytes) : -1;
}

/* Names, materials and further properties: packed bytes that the host makes longer. */
int grow_extra(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *ret)
{
    struct recon_mesh on_host = *m, grown = {};
    int rc;

    on_host.joined = on_host.extra = nullptr;
    rc = to_host(ctx, m->joined, m->faces, &on_host.joined) || to_host(ctx, m->extra, m->extra_bytes, &on_host.extra) ||
         mesh_grow_extra(ctx, &on_host, more, &grown);
    if (rc == 0) {
        ret->extra_bytes = grown.extra_bytes;
        rc = !(ret->extra = (uint8_t *)cuda_alloc(ctx, grown.extra_bytes)) || cuda_device.upload(ctx, ret->extra, grown.extra, grown.extra_bytes) ||
             cuda_device.sync(ctx);
    }
    ctx->host->free(ctx, on_host.joined);
    ctx->host->free(ctx, on_host.extra);
    ctx->host->free(ctx, grown.extra);
    return rc ? -1 : 0;
}

/* mesh_grow of mesh_plan.h on the device, into an empty slot. */
int give(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *ret)
{
    Scratch scratch(ctx);
    uint32_t *corner = more->faces ? scratch.take<uint32_t>(3 * more->faces) : nullptr;
    growing g = { ctx, m, corner, 3 * more->faces };

    ret->place = RECON_DEVICE;
    ret->vertices = m->vertices;
    ret->faces = m->faces + more->faces;
    ret->uvs = m->uvs;
    ret->uv_down = m->uv_down;
    ret->corner_normals = m->corner_normals;
    ret->extra_bytes = m->extra_bytes;
    if (more->faces && (!corner || cuda_device.upload(ctx, corner, more->corner, 12 * more->faces) || cuda_device.sync(ctx)))
        return -1;
    if (grow_array(ctx, (void **)&ret->xyz, m->xyz, 12 * m->vertices, 12 * m->vertices) ||
        grow_array(ctx, (void **)&ret->normals, m->normals, 12 * m->vertices, 12 * m->vertices) ||
        grow_array(ctx, (void **)&ret->rgb, m->rgb, 3 * m->vertices, 3 * m->vertices) || grow_array(ctx, (void **)&ret->uv, m->uv, 8 * m->uvs, 8 * m->uvs) ||
        grow_array(ctx, (void **)&ret->corner_normal, m->corner_normal, 12 * m->corner_normals, 12 * m->corner_normals) ||
        grow_array(ctx, (void **)&ret->joined, m->joined, m->faces, ret->faces) || grow_corners(g, m->index, &ret->index) ||
        grow_corners(g, m->uv_index, &ret->uv_index) || grow_corners(g, m->normal_index, &ret->normal_index))
        return -1;
    if (m->joined && more->faces && cuda_ok(ctx, cudaMemsetAsync(ret->joined + m->faces, 0, more->faces, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    if (!m->extra || more->faces == 0)
        return grow_array(ctx, (void **)&ret->extra, m->extra, m->extra_bytes, m->extra_bytes);
    return grow_extra(ctx, m, more, ret);
}

/* faces, runs: new ones; widest: edges of the longest loop that is tried. Of the topology half, first and edge_of stay. */
void cost_of(const struct recon_mesh *m, const struct border *b, uint64_t faces, uint64_t runs, uint64_t widest, struct recon_cost *cost)
{
    uint64_t v = m->vertices, n = m->faces, kept, meanwhile, topo = cuda_topo_bytes(v, n), filling = border_bytes(b) + holes_bytes(b, n, widest, &kept);
    uint64_t finding = 36 * n + 4 + 4 * v + 4 * n + (b->halves ? 12 * n + border_bytes(b) + 4 * b->edges + 12 * n : 0) + (1 << 20);
    uint64_t giving = mesh_grow_bytes(m, faces, runs, &meanwhile) + 12 * faces;
    uint64_t extra = m->extra ? mesh_grow_extra_bytes(m, runs, &meanwhile) + m->extra_bytes + (m->joined ? n : 0) + meanwhile + kept : 0;

    cost->device_bytes = topo > finding ? topo : finding;
    cost->device_bytes = (cost->device_bytes > giving ? cost->device_bytes : giving) + 4096;
    cost->host_bytes = (filling > extra ? filling : extra) + 4096;
    cost->moved_bytes = 12 * v + 72 * n;
    cost->items = n;
}

int bound(struct recon_ctx *, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    if (m) {
        struct border b = border_worst(m->vertices, m->faces);
        uint64_t most = (uint64_t)p[MESH_FILL_MAX].i;

        cost_of(m, &b, m->faces, holes_most(&b), most < m->faces + 2 ? most : m->faces + 2, cost);
    }
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    struct border b = {};
    struct holes h = {};
    int rc = find_border(ctx, m, &b);

    rc = rc ? rc : holes_fill(ctx, &b, m->faces, (uint64_t)p[MESH_FILL_MAX].i, &h);
    ctx->host->free(ctx, b.xyz);
    rc = rc ? rc : give(ctx, m, &h.more, (struct recon_mesh *)out[0]);
    if (rc == 0)
        holes_tell(ctx, &h);
    holes_release(ctx, &h);
    cost_of(m, &b, h.more.faces, h.more.runs, h.widest, cost);
    cost->copied_bytes = b.halves ? border_bytes(&b) + 12 * h.more.faces : 0;
    cost->items = h.more.faces;
    return rc;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_fill(ctx, &cuda_mesh_fill, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_mesh_fill = { RECON_KERNEL_ABI, MESH_FILL_NAME, MESH_FILL_DOC, mesh_one_in, mesh_one_out,
                                             mesh_fill_params, bound,          run,           selftest,    nullptr };
