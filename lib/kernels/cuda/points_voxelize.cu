/* Points into cells on the device. Dense: a count a cell by atomic additions of whole numbers, which are exact whatever their
 * order; in 16 bits where the cells are many, and again in floats when a cell turns out to have more; many points in no order are
 * dealt out by parts of the grid first. Sparse: numbers of cells, sorted, each once. */
#include "slots.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include "voxel_blocks.cuh"
#include "voxel_deal.cuh"
#include "kernels/blocks.h"

namespace {

#ifndef VOXEL_MANY_POINTS
#define VOXEL_MANY_POINTS (1u << 22) /* from where dealing points out pays: at 1 M it takes longer, at 16 M it takes three quarters */
#endif

enum { AT_A_TIME = 4 };
const uint64_t MANY_CELLS = 1 << 22; /* whose counts in floats, 16 MiB, still leave room in the level-2 cache */

/* Whether so many points are dealt out when they come in no order; each must have one cell. */
bool may_deal(int meaning, uint64_t points, uint64_t cells)
{
    return meaning != VOXELIZE_KAOLIN_01 && cells > MANY_CELLS && cells <= (uint64_t)PARTS_MOST * PART && points >= VOXEL_MANY_POINTS;
}

/* Memory of cells, counts of 16 bits or dealt points included. */
uint64_t dense_bytes(int meaning, uint64_t points, uint64_t cells)
{
    uint64_t counts = cells > MANY_CELLS ? 2 * cells : 0, dealt = may_deal(meaning, points, cells) ? shares_bytes(shares_of(points, cells)) : 0;

    return 8 * cells + counts + dealt + 4096;
}

/* ---- dense ---- */

/* Adds points to the count of a cell: 16 bits, of less than 2^32 cells, or a float. */
__device__ __forceinline__ void add(uint32_t *counts, uint32_t c, uint32_t points)
{
    atomicAdd(counts + (c >> 1), points << (c & 1) * 16);
}
__device__ __forceinline__ void add(float *counts, uint64_t c, uint32_t points)
{
    atomicAdd(counts + c, (float)points);
}

/* Whether the thread before has the same number. All lanes call it. */
__device__ __forceinline__ bool as_before(uint32_t c)
{
    return __shfl_up_sync(~0u, c, 1) == c;
}
__device__ __forceinline__ bool as_before(uint64_t c)
{
    bool low = as_before((uint32_t)c), high = as_before((uint32_t)(c >> 32));

    return low && high;
}

/* The last run of EACH thread's points, at once with those of the threads behind it whose points are all of that cell. All lanes call it. */
template <typename C, typename N> __device__ __forceinline__ void add_last(C *counts, N c, uint32_t run, bool is)
{
    uint32_t lane = threadIdx.x % 32;
    bool same = as_before(c), head = lane == 0 || run != EACH || !same;
    uint32_t behind = __ballot_sync(~0u, head) >> lane >> 1, follow = behind ? (uint32_t)__ffs((int)behind) - 1 : 31 - lane;

    if (is && head)
        add(counts, c, run + EACH * follow);
}

/* Points that follow each other in a cell are added at once. Gives how many lie in the grid. */
template <typename C, typename N> __device__ __forceinline__ uint32_t add_points(const grid &g, const float x[EACH][3], C *counts)
{
    const N none = ~(N)0;
    N last = none;
    uint32_t run = 0, given = 0;

#pragma unroll
    for (int k = 0; k < EACH; k++) {
        uint32_t cell[3];
        N c = cell_of(g, x[k], cell) ? ((N)cell[0] * g.p.dim[1] + cell[1]) * g.p.dim[2] + cell[2] : none;

        given += c != none;
        if (k && c != last) {
            if (last != none)
                add(counts, last, run);
            run = 0;
        }
        last = c;
        run++;
    }
    add_last(counts, last, run, last != none);
    return given;
}

/* counts are 0 before. From the last point to the first: what a pass before this one has read last is still near. */
template <typename C, typename N> __device__ __forceinline__ void mark_points(const grid &g, const float *xyz, uint64_t n, C *counts, tally *told)
{
    uint64_t first = EACH * ((uint64_t)(gridDim.x - 1 - blockIdx.x) * THREADS + threadIdx.x);
    __shared__ uint32_t sum;
    float x[EACH][3];
    uint32_t given = 0;

    load_points(xyz, first, n, x);
    if (g.p.meaning == VOXELIZE_KAOLIN_01) {
        for (int k = 0; k < EACH; k++)
            each_cell(g, x[k], [&](uint64_t c) {
                given++;
                add(counts, (N)c, 1);
            });
    } else {
        given = add_points<C, N>(g, x, counts);
    }
    sum_up(given, &told->given, sum);
}

__global__ void __launch_bounds__(THREADS) mark_halves(const __grid_constant__ grid g, const float *xyz, uint64_t n, uint32_t *counts, tally *told)
{
    mark_points<uint32_t, uint32_t>(g, xyz, n, counts, told);
}

__global__ void __launch_bounds__(THREADS) mark_floats(const __grid_constant__ grid g, const float *xyz, uint64_t n, float *counts, tally *told)
{
    mark_points<float, uint64_t>(g, xyz, n, counts, told);
}

/* A float's count of ones stays at 2^24. told and host as of occupy_halves. */
__global__ void __launch_bounds__(THREADS) occupy(float *weight, float *tsdf, uint64_t n, const tally *told, tally *host)
{
    const float most = 16777216;
    uint64_t i = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) * 4;

    if (i == 0)
        *host = tally{ told->given, told->given, 0 };
    if (i + 4 <= n) {
        float4 w = *(const float4 *)(weight + i);

        *(float4 *)(tsdf + i) = make_float4(w.x > 0, w.y > 0, w.z > 0, w.w > 0);
        if (fmaxf(fmaxf(w.x, w.y), fmaxf(w.z, w.w)) > most)
            *(float4 *)(weight + i) = make_float4(fminf(w.x, most), fminf(w.y, most), fminf(w.z, most), fminf(w.w, most));
        return;
    }
    for (; i < n; i++) {
        tsdf[i] = weight[i] > 0;
        weight[i] = fminf(weight[i], most);
    }
}

/* From counts of 16 bits; four cells a thread at a time. */
__global__ void __launch_bounds__(THREADS) occupy_halves(const uint32_t *counts, float *weight, float *tsdf, uint64_t n, tally *told, tally *host)
{
    uint64_t first = 4 * ((uint64_t)blockIdx.x * AT_A_TIME * THREADS + threadIdx.x);
    __shared__ uint32_t sum;
    uint32_t kept = 0;
    uint2 c[AT_A_TIME];

#pragma unroll
    for (int k = 0; k < AT_A_TIME; k++)
        c[k] = first + 4 * k * THREADS < n ? *(const uint2 *)(counts + (first + 4 * k * THREADS) / 2) : make_uint2(0, 0);
#pragma unroll
    for (int k = 0; k < AT_A_TIME; k++)
        if (first + 4 * k * THREADS < n)
            kept += give_cells(c[k], first + 4 * k * THREADS, n, weight, tsdf);
    tell_kept(kept, told, host, sum);
}

/* A part of the grid a block. The counts are all the shared memory that it takes: 64 KiB, which is what the least device gives. */
__global__ void __launch_bounds__(DEALERS) settle(shares from, uint64_t n, float *weight, float *tsdf, tally *told, tally *host)
{
    extern __shared__ uint32_t count[];

    tell_kept(settle_part(from, count, n, weight, tsdf), told, host, count[0]);
}

/* Looks at four points that follow each other, a thread: host->done becomes how many change their cell more often than not. */
__global__ void __launch_bounds__(THREADS) look(const __grid_constant__ grid g, const float *xyz, uint64_t n, tally *host)
{
    uint64_t last = 0;
    float x[EACH][3];
    uint32_t changes = 0;

    load_points(xyz, n / EACH * threadIdx.x / THREADS * EACH, n, x);
    for (int k = 0; k < EACH; k++) {
        uint32_t cell[3];
        uint64_t c = cell_of(g, x[k], cell) ? voxel_number(&g.p, cell) : ~0ull;

        changes += k && c != last;
        last = c;
    }
    int many = __syncthreads_count(changes > EACH / 2);

    if (threadIdx.x == 0)
        host->done = (uint32_t)many;
}

/* Counts of n cells in 16 bits, room for four at a time, and what was counted; all 0. */
struct halves {
    uint32_t *counts;
    tally *told;
};

int take_halves(struct recon_ctx *ctx, Scratch &scratch, uint64_t n, halves *ret)
{
    uint64_t words = (n + 3) / 4 * 2;

    ret->counts = scratch.take<uint32_t>(words + sizeof(tally) / 4);
    ret->told = (tally *)(ret->counts + words);
    return ret->counts ? cuda_ok(ctx, cudaMemsetAsync(ret->counts, 0, 4 * words + sizeof(tally), cuda_stream(ctx)), "cudaMemset") : -1;
}

/* In 16 bits a cell. A cell whose bits overflow loses 2^16 points, of which the next one may gain one: then fewer are kept than were
 * given. host tells both. */
int dense_halves(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, uint64_t n, const halves &h, struct recon_volume *v, tally *host)
{
    cudaStream_t queue = cuda_stream(ctx);
    unsigned markers = blocks_of(in->n + 1, THREADS * EACH), blocks = blocks_of(n, 4 * AT_A_TIME * THREADS);

    mark_halves<<<markers, THREADS, 0, queue>>>(g, in->xyz, in->n, h.counts, h.told);
    if (cuda_launched(ctx, "points into cells") || !(v->weight = (float *)cuda_alloc(ctx, 4 * n)) || !(v->tsdf = (float *)cuda_alloc(ctx, 4 * n)))
        return -1;
    occupy_halves<<<blocks, THREADS, 0, queue>>>(h.counts, v->weight, v->tsdf, n, h.told, host);
    return cuda_launched(ctx, "points into cells") || cuda_device.sync(ctx) ? -1 : 0;
}

/* Points in no order, dealt out by parts of the grid. */
int dense_dealt(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, uint64_t n, struct recon_volume *v, tally *host)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    shares s = shares_of(in->n, n);
    tally *told = scratch.take<tally>(1);

    s.local = scratch.take<uint16_t>((uint64_t)s.blocks * s.room);
    s.share = scratch.take<uint32_t>((uint64_t)s.blocks * s.parts);
    if (!told || !s.local || !s.share || cuda_ok(ctx, cudaMemsetAsync(told, 0, sizeof(*told), queue), "cudaMemset") ||
        cuda_ok(ctx, cudaFuncSetAttribute(settle, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * PART), "cudaFuncSetAttribute"))
        return -1;
    deal<<<s.blocks, DEALERS, 0, queue>>>(g, in->xyz, in->n, s, told);
    if (cuda_launched(ctx, "points into cells") || !(v->weight = (float *)cuda_alloc(ctx, 4 * n)) || !(v->tsdf = (float *)cuda_alloc(ctx, 4 * n)))
        return -1;
    settle<<<s.parts, DEALERS, 2 * PART, queue>>>(s, n, v->weight, v->tsdf, told, host);
    return cuda_launched(ctx, "points into cells") || cuda_device.sync(ctx) ? -1 : 0;
}

int dense_floats(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, uint64_t n, struct recon_volume *v, tally *host)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    unsigned markers = blocks_of(in->n + 1, THREADS * EACH), blocks = blocks_of(n, THREADS * 4);
    tally *told = scratch.take<tally>(1);

    if (!told || (!v->weight && !(v->weight = (float *)cuda_alloc(ctx, 4 * n))) || (!v->tsdf && !(v->tsdf = (float *)cuda_alloc(ctx, 4 * n))) ||
        cuda_ok(ctx, cudaMemsetAsync(v->weight, 0, 4 * n, queue), "cudaMemset") || cuda_ok(ctx, cudaMemsetAsync(told, 0, sizeof(*told), queue), "cudaMemset"))
        return -1;
    mark_floats<<<markers, THREADS, 0, queue>>>(g, in->xyz, in->n, v->weight, told);
    occupy<<<blocks, THREADS, 0, queue>>>(v->weight, v->tsdf, n, told, host);
    return cuda_launched(ctx, "points into cells") || cuda_device.sync(ctx) ? -1 : 0;
}

/* 1: the points that follow each other are seldom of one cell; 0; -1 after fail(). The device goes on with zeroing counts meanwhile. */
int in_no_order(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, Scratch &scratch, uint64_t n, halves *h, tally *host)
{
    cudaStream_t queue = cuda_stream(ctx);
    cudaEvent_t looked;
    int rc;

    if (cuda_ok(ctx, cudaEventCreateWithFlags(&looked, cudaEventDisableTiming), "cudaEventCreate"))
        return -1;
    look<<<1, THREADS, 0, queue>>>(g, in->xyz, in->n, host);
    rc = cuda_launched(ctx, "points into cells") || cuda_ok(ctx, cudaEventRecord(looked, queue), "cudaEventRecord") ||
         take_halves(ctx, scratch, n, h) || cuda_ok(ctx, cudaEventSynchronize(looked), "points into cells");
    cudaEventDestroy(looked);
    return rc ? -1 : host->done > THREADS / 2;
}

/* Many cells, and how many points were given and kept. */
int dense_many(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, uint64_t n, struct recon_volume *v, tally *host)
{
    Scratch scratch(ctx);
    halves h = { nullptr, nullptr };
    int scattered = may_deal(g.p.meaning, in->n, n) ? in_no_order(ctx, g, in, scratch, n, &h, host) : take_halves(ctx, scratch, n, &h);

    if (scattered)
        return scattered < 0 ? -1 : dense_dealt(ctx, g, in, n, v, host);
    return dense_halves(ctx, g, in, n, h, v, host);
}

int dense(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, struct recon_volume *v)
{
    uint64_t n = (uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2], room = cuda_memory_free(ctx);
    bool many = n > MANY_CELLS && n < UINT32_MAX && plan_fits(dense_bytes(g.p.meaning, in->n, n), room);
    tally *told = (tally *)cuda_pinned(ctx, sizeof(*told));

    v->place = RECON_DEVICE;
    v->voxel = v->truncation = g.p.voxel;
    for (int i = 0; i < 3; i++) {
        v->dim[i] = g.p.dim[i];
        v->origin[i] = g.p.origin[i] + g.p.center[i];
    }
    if (!told || plan_volume_fits(ctx, g.p.dim, 8 * n, room, "device") || (many && dense_many(ctx, g, in, n, v, told)))
        return -1;
    if ((!many || told->given != told->kept) && dense_floats(ctx, g, in, n, v, told))
        return -1;
    return told->given ? 0 : voxelize_none(ctx, in);
}

/* ---- sparse ---- */

/* How many cells each point has; given their sums, the cells. */
__global__ void __launch_bounds__(THREADS) cells(const __grid_constant__ grid g, const float *xyz, uint64_t n, uint64_t *sum, uint64_t *number)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x, k = 0;

    if (i >= n)
        return;
    if (number)
        each_cell(g, xyz + 3 * i, [&](uint64_t c) { number[sum[i] + k++] = c; });
    else
        each_cell(g, xyz + 3 * i, [&](uint64_t) { k++; });
    if (!number)
        sum[i] = k;
}

__global__ void __launch_bounds__(THREADS) centers(struct voxel_plan p, const uint64_t *number, uint64_t n, float *xyz)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= n)
        return;
    uint64_t c = number[i], at[3] = { c / p.dim[2] / p.dim[1], c / p.dim[2] % p.dim[1], c % p.dim[2] };

    for (int a = 0; a < 3; a++)
        xyz[3 * i + a] = (float)(p.origin[a] + p.center[a] + p.voxel * (double)at[a]);
}

int sparse(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, struct recon_points *r)
{
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(in->n + 1, THREADS);
    Scratch scratch(ctx);
    uint64_t *sum = scratch.take<uint64_t>(in->n + 1), *number, *sorted, *kept = scratch.take<uint64_t>(1), all = 0;
    int bits = bits_of((uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2]);

    if (!sum || !kept || cuda_ok(ctx, cudaMemsetAsync(sum + in->n, 0, 8, queue), "cudaMemset"))
        return -1;
    cells<<<blocks, THREADS, 0, queue>>>(g, in->xyz, in->n, sum, nullptr);
    if (cuda_launched(ctx, "points into cells") || cuda_cub(ctx, scratch, "points into cells", [&](void *room, size_t &size) {
            return cub::DeviceScan::ExclusiveSum(room, size, sum, sum, in->n + 1, queue);
        }) ||
        cuda_read(ctx, &all, sum + in->n, 1))
        return -1;
    if (all == 0)
        return voxelize_none(ctx, in);
    if (!(number = scratch.take<uint64_t>(all)) || !(sorted = scratch.take<uint64_t>(all)))
        return -1;
    cells<<<blocks, THREADS, 0, queue>>>(g, in->xyz, in->n, sum, number);
    if (cuda_launched(ctx, "points into cells") || cuda_cub(ctx, scratch, "points into cells", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortKeys(room, size, number, sorted, all, 0, bits, queue);
        }) ||
        cuda_cub(ctx, scratch, "points into cells", [&](void *room, size_t &size) {
            return cub::DeviceSelect::Unique(room, size, sorted, number, kept, all, queue);
        }) ||
        cuda_read(ctx, &all, kept, 1))
        return -1;
    r->place = RECON_DEVICE;
    r->n = all;
    if (!(r->xyz = (float *)cuda_alloc(ctx, 12 * all)))
        return -1;
    centers<<<blocks_of(all, THREADS), THREADS, 0, queue>>>(g.p, number, all, r->xyz);
    return cuda_launched(ctx, "points into cells");
}

/* ---- the kernel ---- */

/* The points are read for their box only where the plan depends on it. */
int plan_of(struct recon_ctx *ctx, const struct recon_points *in, const struct recon_value *p, grid *g)
{
    int64_t meaning = p[VOXELIZE_MEANING].i;
    double low[3] = { 0, 0, 0 }, high[3] = { 0, 0, 0 };
    bool given = meaning == VOXELIZE_KAOLIN_01 || (meaning == VOXELIZE_GRID && p[VOXELIZE_SHAPE].n && p[VOXELIZE_ORIGIN].n);

    if ((!given && cuda_box(ctx, in->xyz, in->n, low, high)) || voxel_plan_box(ctx, low, high, p, &g->p))
        return -1;
    find_by_floats(g);
    return 0;
}

void to_device(const struct recon_points *in, const struct recon_value *p, struct recon_cost *cost)
{
    uint64_t cells = cost->host_bytes > 4096 ? (cost->host_bytes - 4096) / 8 : 0, each = p[VOXELIZE_MEANING].i == VOXELIZE_KAOLIN_01 ? 27 : 1;

    cost->device_bytes = p[VOXELIZE_FORM].i != VOXELIZE_SPARSE ? dense_bytes((int)p[VOXELIZE_MEANING].i, in->n, cells) : in->n * (8 + 44 * each) + (16 << 20);
    cost->host_bytes = 0;
}

/* The plan of points on the host, with the form that a run takes; of blocks how many, counted there. */
int plan_ahead(struct recon_ctx *ctx, const struct recon_points *in, const struct recon_value *p, struct voxel_plan *ret, uint64_t *blocks)
{
    struct blocks b;

    if (voxel_plan(ctx, in, p, ret))
        return -1;
    voxelize_choose(ret, cuda_memory_free(ctx));
    if (ret->form != VOXELIZE_BLOCKS)
        return 0;
    if (voxelize_grid(ctx, ret, in, &b))
        return -1;
    *blocks = b.before[b.words];
    blocks_release(ctx, &b);
    return 0;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *points = (const struct recon_points *)in[0];
    struct voxel_plan plan;
    uint64_t blocks = 0;

    if (!points || !points->xyz || points->place == RECON_DEVICE)
        return 0; /* the grid depends on the points */
    if (voxelize_bound(ctx, in, p, cost) || plan_ahead(ctx, points, p, &plan, &blocks))
        return -1;
    if (plan.form == VOXELIZE_DENSE)
        cost->host_bytes = voxelize_dense_bytes(&plan);
    to_device(points, p, cost);
    if (plan.form == VOXELIZE_BLOCKS)
        cost->device_bytes = cuda_voxel_blocks_bytes(&plan, blocks);
    return 0;
}

int shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    const struct recon_points *points = (const struct recon_points *)in[0];

    struct recon_volume *v = (struct recon_volume *)out[0];
    struct voxel_plan plan;
    uint64_t blocks = 0;

    if (points && points->xyz && points->place == RECON_DEVICE)
        return 0;
    if (voxelize_shape(ctx, in, p, out))
        return -1;
    if (!v || !v->dim[0] || !points || !points->xyz)
        return 0;
    if (plan_ahead(ctx, points, p, &plan, &blocks))
        return -1;
    v->side = plan.form == VOXELIZE_BLOCKS ? FUSE_BLOCK : 0;
    v->blocks = blocks;
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *points = (const struct recon_points *)in[0];
    grid g = {};
    struct recon_volume *v = (struct recon_volume *)out[0];
    bool is_dense = p[VOXELIZE_FORM].i != VOXELIZE_SPARSE;

    if (plan_of(ctx, points, p, &g) || voxelize_outputs(ctx, &g.p, out))
        return -1;
    voxelize_choose(&g.p, cuda_memory_free(ctx));
    cost->host_bytes = is_dense ? 8 * (uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2] + 4096 : 0;
    to_device(points, p, cost);
    cost->moved_bytes = 12 * points->n + (is_dense ? 8 * (uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2] : 16 * points->n);
    cost->flops = 12 * points->n;
    cost->items = points->n;
    if (g.p.form == VOXELIZE_BLOCKS) {
        if (cuda_voxel_blocks(ctx, &g.p, points, v))
            return -1;
        cost->device_bytes = cuda_voxel_blocks_bytes(&g.p, v->blocks);
        cost->moved_bytes = 12 * points->n + cost->device_bytes;
        return 0;
    }
    return is_dense ? dense(ctx, g, points, v) : sparse(ctx, g, points, (struct recon_points *)out[1]);
}

int selftest(struct recon_ctx *ctx)
{
    return golden_voxelize(ctx, &cuda_points_voxelize, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_points_voxelize = { RECON_KERNEL_ABI, VOXELIZE_NAME, VOXELIZE_DOC, voxelize_in, voxelize_out,
                                                   voxelize_params,  bound,         run,          selftest,    shape };
