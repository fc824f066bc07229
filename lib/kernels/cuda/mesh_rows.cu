#include "mesh_rows.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include "kernels/mesh_plan.h"

namespace {

enum { THREADS = 256 };

/* Corners of each vertex counted; told: the first corner out of range, the most of a vertex. */
__global__ void __launch_bounds__(THREADS) count_corners(const uint32_t *index, uint64_t n, uint64_t vertices, uint32_t *count, unsigned long long *told)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= n)
        return;
    if (index[i] < vertices)
        atomicAdd(&count[index[i]], 1u);
    else
        atomicMin(&told[0], (unsigned long long)i);
}

__global__ void __launch_bounds__(THREADS) find_most(const uint32_t *count, uint64_t n, unsigned long long *told)
{
    __shared__ uint32_t most;
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (threadIdx.x == 0)
        most = 0;
    __syncthreads();
    if (i < n)
        atomicMax(&most, count[i]);
    __syncthreads();
    if (threadIdx.x == 0 && most > told[1])
        atomicMax(&told[1], (unsigned long long)most);
}

/* Each corner into its vertex's row, from the end down: nearly descending. count becomes 0. */
__global__ void __launch_bounds__(THREADS) deal_corners(const uint32_t *index, uint64_t n, const uint32_t *first, uint32_t *count, uint32_t *item)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        item[first[index[i]] + atomicAdd(&count[index[i]], ~0u) - 1] = (uint32_t)i;
}

__global__ void corner_rows(const uint32_t *sorted, uint64_t n, uint64_t vertices, uint32_t *first)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i <= n)
        begin_rows(i, n, vertices, first, [=](uint64_t k) { return (uint64_t)sorted[k]; });
}

/* Two keys a half-edge: from and to, to and from. A face that names a vertex twice gives keys above all others. */
__global__ void edge_keys(const uint32_t *index, uint64_t faces, uint64_t vertices, int bits, unsigned long long *key)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= faces)
        return;
    uint32_t v[3] = { index[3 * f], index[3 * f + 1], index[3 * f + 2] };
    bool none = face_degenerate(v);

    for (int k = 0; k < 3; k++) {
        unsigned long long a = v[k], b = v[(k + 1) % 3], last = (unsigned long long)vertices << bits;

        key[k * faces + f] = none ? last : a << bits | b;
        key[(3 + k) * faces + f] = none ? last : b << bits | a;
    }
}

__global__ void neighbour_rows(const unsigned long long *key, uint64_t n, uint64_t vertices, int bits, uint32_t *first, uint32_t *item)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i > n)
        return;
    begin_rows(i, n, vertices, first, [=](uint64_t k) { return (uint64_t)(key[k] >> bits); });
    if (i < n)
        item[i] = (uint32_t)(key[i] & ((1ull << bits) - 1));
}

__global__ void mark_fixed(const unsigned long long *key, const uint32_t *uses, uint64_t n, uint64_t vertices, int bits, uint8_t *fixed)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n && key[i] >> bits < vertices && uses[i] != 2)
        fixed[key[i] >> bits] = 1; /* whoever does it */
}

} // namespace

uint64_t cuda_rows_corners_bytes(uint64_t vertices, uint64_t faces)
{
    return 8 * (vertices + 1) + 5 * 12 * faces + (16 << 20);
}

/* Rows of any length, by a stable sort. */
static int sort_corners(struct recon_ctx *ctx, const struct recon_mesh *m, struct cuda_rows *r)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t n = r->items;
    uint32_t *sorted = meanwhile.take<uint32_t>(n), *numbers = meanwhile.take<uint32_t>(n);

    if (!sorted || !numbers || cuda_count_up(ctx, numbers, n) || cuda_cub(ctx, meanwhile, "corners of vertices", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortPairs(room, size, m->index, sorted, numbers, r->item, n, 0, bits_of(m->vertices), queue);
        }))
        return -1;
    corner_rows<<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(sorted, n, m->vertices, r->first);
    r->sorted = true;
    return cuda_launched(ctx, "corners of vertices");
}

int cuda_rows_corners(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, struct cuda_rows *ret)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t n = 3 * m->faces, vertices = m->vertices;
    uint32_t *count = meanwhile.take<uint32_t>(vertices + 1);
    unsigned long long *told = meanwhile.take<unsigned long long>(2), copy[2];
    struct cuda_rows r = { scratch.take<uint32_t>(vertices + 1), scratch.take<uint32_t>(n), n, false };

    if (!count || !told || !r.first || !r.item || cuda_ok(ctx, cudaMemsetAsync(count, 0, 4 * (vertices + 1), queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(told, 0xff, 8, queue), "cudaMemset") || cuda_ok(ctx, cudaMemsetAsync(told + 1, 0, 8, queue), "cudaMemset"))
        return -1;
    count_corners<<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(m->index, n, vertices, count, told);
    find_most<<<blocks_of(vertices + 1, THREADS), THREADS, 0, queue>>>(count, vertices, told);
    if (cuda_launched(ctx, "corners of vertices") || cuda_cub(ctx, meanwhile, "corners of vertices", [&](void *room, size_t &size) {
            return cub::DeviceScan::ExclusiveSum(room, size, count, r.first, vertices + 1, queue);
        }) ||
        cuda_read(ctx, copy, told, 2) || cuda_index_refuse(ctx, m, copy[0]))
        return -1;
    *ret = r;
    if (copy[1] > CUDA_ROW_FEW)
        return sort_corners(ctx, m, ret);
    deal_corners<<<blocks_of(n + 1, THREADS), THREADS, 0, queue>>>(m->index, n, r.first, count, r.item);
    return cuda_launched(ctx, "corners of vertices");
}

uint64_t cuda_rows_neighbours_bytes(uint64_t vertices, uint64_t faces)
{
    return 4 * (vertices + 1) + 3 * 48 * faces + (16 << 20);
}

int cuda_rows_neighbours(struct recon_ctx *ctx, Scratch &scratch, const struct recon_mesh *m, uint8_t *fixed, struct cuda_rows *ret)
{
    Scratch meanwhile(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(m->faces + 1, THREADS);
    uint64_t n = 6 * m->faces, told = 0;
    int bits = bits_of(m->vertices);
    unsigned long long *key, *other;
    uint64_t *kept;
    uint32_t *uses = nullptr;
    struct cuda_rows r = { scratch.take<uint32_t>(m->vertices + 1), nullptr, 0, true };

    if (n >= UINT32_MAX)
        return ctx->host->fail(ctx, 65, nullptr, "mesh", "the mesh has %llu faces, at most %u are taken on a device",
                               (unsigned long long)m->faces, UINT32_MAX / 6 - 1);
    if (cuda_index_check(ctx, m) || !r.first || !(key = meanwhile.take<unsigned long long>(n)) || !(other = meanwhile.take<unsigned long long>(n)) ||
        !(kept = meanwhile.take<uint64_t>(1)) || (fixed && !(uses = meanwhile.take<uint32_t>(n))) ||
        (fixed && cuda_ok(ctx, cudaMemsetAsync(fixed, 0, m->vertices, queue), "cudaMemset")))
        return -1;
    edge_keys<<<blocks, THREADS, 0, queue>>>(m->index, m->faces, m->vertices, bits, key);
    if (cuda_launched(ctx, "neighbours of vertices") || cuda_cub(ctx, meanwhile, "neighbours of vertices", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortKeys(room, size, key, other, n, 0, 2 * bits, queue);
        }) ||
        cuda_cub(ctx, meanwhile, "neighbours of vertices", [&](void *room, size_t &size) {
            return fixed ? cub::DeviceRunLengthEncode::Encode(room, size, other, key, uses, kept, n, queue)
                         : cub::DeviceSelect::Unique(room, size, other, key, kept, n, queue);
        }) ||
        cuda_read(ctx, &told, kept, 1) || !(r.item = scratch.take<uint32_t>(told)))
        return -1;
    neighbour_rows<<<blocks_of(told + 1, THREADS), THREADS, 0, queue>>>(key, told, m->vertices, bits, r.first, r.item);
    if (fixed)
        mark_fixed<<<blocks_of(told + 1, THREADS), THREADS, 0, queue>>>(key, uses, told, m->vertices, bits, fixed);
    r.items = told;
    *ret = r;
    return cuda_launched(ctx, "neighbours of vertices");
}
