/* Points into cells on the device. Dense: a count a cell by atomic additions of whole numbers, which are exact
 * whatever their order. Sparse: numbers of cells, sorted, each once. */
#include "slots.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include "kernels/points_plan.h"

namespace {

enum { THREADS = 256, EACH = 4 };

/* The plan with what divides, so that most cells are found by multiplication. */
struct grid {
    struct voxel_plan p;
    double by[3]; /* about 1 / voxel, or (dim - 1) / scale */
};

/* voxel_cell: the product decides unless it stands within rounding of where the cell changes. */
__device__ __forceinline__ bool cell_along(const grid &g, int a, float at, uint32_t *ret)
{
    double x = (double)at - g.p.origin[a], y = x * g.by[a], edge = g.p.meaning == VOXELIZE_KAOLIN ? y - 0.5 : y;

    if (fabs(edge - rint(edge)) < 1e-7)
        y = g.p.meaning == VOXELIZE_KAOLIN ? x / g.p.scale * (g.p.dim[a] - 1) : x / g.p.voxel;
    y = g.p.meaning == VOXELIZE_KAOLIN ? rint(y) : floor(y);
    if (!(y >= 0 && y < g.p.dim[a]))
        return false;
    *ret = (uint32_t)y;
    return true;
}

__device__ __forceinline__ bool cell_of(const grid &g, const float *xyz, uint64_t *number)
{
    uint32_t cell[3];

    for (int a = 0; a < 3; a++)
        if (!cell_along(g, a, xyz[a], &cell[a]))
            return false;
    *number = voxel_number(&g.p, cell);
    return true;
}

/* Calls give(number) for each cell of a point. */
template <typename F> __device__ __forceinline__ void each_cell(const grid &g, const float xyz[3], F give)
{
    uint32_t from[3], to[3], cell[3];
    uint64_t number;

    if (g.p.meaning != VOXELIZE_KAOLIN_01) {
        if (cell_of(g, xyz, &number))
            give(number);
        return;
    }
    for (int i = 0; i < 3; i++)
        if (!voxel_span(&g.p, i, (double)xyz[i], g.p.voxel, &from[i], &to[i]))
            return;
    for (cell[0] = from[0]; cell[0] <= to[0]; cell[0]++)
        for (cell[1] = from[1]; cell[1] <= to[1]; cell[1]++)
            for (cell[2] = from[2]; cell[2] <= to[2]; cell[2]++) {
                double d = 0;

                for (int i = 0; i < 3; i++) {
                    double x = g.p.origin[i] + g.p.voxel * cell[i] - (double)xyz[i];

                    d += x * x;
                }
                if (!(d > g.p.voxel * g.p.voxel))
                    give(voxel_number(&g.p, cell));
            }
}

/* ---- dense ---- */

/* Adds the points of a warp that follow each other in one cell at once. All lanes call it; is: the lane has a cell. */
__device__ __forceinline__ void add_run(float *weight, uint64_t c, bool is)
{
    uint32_t lane = threadIdx.x % 32, low = (uint32_t)c, high = (uint32_t)(c >> 32);
    uint32_t before = __shfl_up_sync(~0u, low, 1), above = __shfl_up_sync(~0u, high, 1), was = __shfl_up_sync(~0u, (uint32_t)is, 1);
    bool head = lane == 0 || before != low || above != high || was != (uint32_t)is;
    uint32_t behind = __ballot_sync(~0u, head) >> lane >> 1, run = behind ? (uint32_t)__ffs((int)behind) : 32 - lane;

    if (is && head)
        atomicAdd(&weight[c], (float)run);
}

/* weight is 0 before. any becomes 1 when a point lies in the grid. A warp takes EACH times 32 points that follow each other. */
__global__ void __launch_bounds__(THREADS) mark(grid g, const float *xyz, uint64_t n, float *weight, uint32_t *any)
{
    uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * 32 * EACH + threadIdx.x % 32;
    float x[EACH][3];
    int is = 0;

#pragma unroll
    for (int k = 0; k < EACH; k++)
        for (int a = 0; a < 3; a++)
            x[k][a] = first + 32 * k < n ? __ldcs(xyz + 3 * (first + 32 * k) + a) : NAN;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (g.p.meaning == VOXELIZE_KAOLIN_01) {
            each_cell(g, x[k], [&](uint64_t c) {
                is = 1;
                atomicAdd(&weight[c], 1.0f);
            });
        } else {
            uint64_t c = 0;
            bool in = cell_of(g, x[k], &c);

            is |= in;
            add_run(weight, c, in);
        }
    }
    if (__syncthreads_or(is) && threadIdx.x == 0)
        *any = 1;
}

/* A float's count of ones stays at 2^24. told: any, where the host reads it. */
__global__ void __launch_bounds__(THREADS) occupy(float *weight, float *tsdf, uint64_t n, const uint32_t *any, uint32_t *told)
{
    const float most = 16777216;
    uint64_t i = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) * 4;

    if (i == 0)
        *told = *any;
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

int dense(struct recon_ctx *ctx, const grid &g, const struct recon_points *in, struct recon_volume *v)
{
    uint64_t n = (uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2];
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(in->n + 1, THREADS * EACH);
    Scratch scratch(ctx);
    uint32_t *any = scratch.take<uint32_t>(1), *told = (uint32_t *)cuda_pinned(ctx, 4);

    v->place = RECON_DEVICE;
    v->voxel = v->truncation = g.p.voxel;
    for (int i = 0; i < 3; i++) {
        v->dim[i] = g.p.dim[i];
        v->origin[i] = g.p.origin[i] + g.p.center[i];
    }
    if (!any || !told || plan_volume_fits(ctx, g.p.dim, 8 * n, cuda_memory_free(ctx), "device") || !(v->weight = (float *)cuda_alloc(ctx, 4 * n)) ||
        !(v->tsdf = (float *)cuda_alloc(ctx, 4 * n)) || cuda_ok(ctx, cudaMemsetAsync(any, 0, 4, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(v->weight, 0, 4 * n, queue), "cudaMemset"))
        return -1;
    mark<<<blocks, THREADS, 0, queue>>>(g, in->xyz, in->n, v->weight, any);
    occupy<<<blocks_of(n, THREADS * 4), THREADS, 0, queue>>>(v->weight, v->tsdf, n, any, told);
    if (cuda_launched(ctx, "points into cells") || cuda_ok(ctx, cudaStreamSynchronize(queue), "points into cells"))
        return -1;
    return *told ? 0 : voxelize_none(ctx, in);
}

/* ---- sparse ---- */

/* How many cells each point has; given their sums, the cells. */
__global__ void __launch_bounds__(THREADS) cells(grid g, const float *xyz, uint64_t n, uint64_t *sum, uint64_t *number)
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
    for (int i = 0; i < 3; i++)
        g->by[i] = meaning == VOXELIZE_KAOLIN ? (g->p.dim[i] - 1) / g->p.scale : 1 / g->p.voxel;
    return 0;
}

void to_device(const struct recon_points *in, const struct recon_value *p, struct recon_cost *cost)
{
    uint64_t cells = cost->host_bytes > 4096 ? (cost->host_bytes - 4096) / 8 : 0, each = p[VOXELIZE_MEANING].i == VOXELIZE_KAOLIN_01 ? 27 : 1;

    cost->device_bytes = p[VOXELIZE_FORM].i != VOXELIZE_SPARSE ? 8 * cells + 4096 : in->n * (8 + 44 * each) + (16 << 20);
    cost->host_bytes = 0;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *points = (const struct recon_points *)in[0];

    if (!points || !points->xyz || points->place == RECON_DEVICE)
        return 0; /* the grid depends on the points */
    if (voxelize_bound(ctx, in, p, cost))
        return -1;
    to_device(points, p, cost);
    return 0;
}

int shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    const struct recon_points *points = (const struct recon_points *)in[0];

    return points && points->xyz && points->place == RECON_DEVICE ? 0 : voxelize_shape(ctx, in, p, out);
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *points = (const struct recon_points *)in[0];
    grid g = {};
    bool is_dense = p[VOXELIZE_FORM].i != VOXELIZE_SPARSE;

    if (p[VOXELIZE_FORM].i == VOXELIZE_BLOCKS)
        return ctx->host->fail(ctx, 64, nullptr, "form", "points.voxelize of module 'cuda' has no form 'blocks'");
    if (plan_of(ctx, points, p, &g) || voxelize_outputs(ctx, &g.p, out))
        return -1;
    cost->host_bytes = is_dense ? 8 * (uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2] + 4096 : 0;
    to_device(points, p, cost);
    cost->moved_bytes = 12 * points->n + (is_dense ? 8 * (uint64_t)g.p.dim[0] * g.p.dim[1] * g.p.dim[2] : 16 * points->n);
    cost->flops = 12 * points->n;
    cost->items = points->n;
    return is_dense ? dense(ctx, g, points, (struct recon_volume *)out[0]) : sparse(ctx, g, points, (struct recon_points *)out[1]);
}

int selftest(struct recon_ctx *ctx)
{
    return golden_voxelize(ctx, &cuda_points_voxelize, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_points_voxelize = { RECON_KERNEL_ABI, VOXELIZE_NAME, VOXELIZE_DOC, voxelize_in, voxelize_out,
                                                   voxelize_params,  bound,         run,          selftest,    shape };
