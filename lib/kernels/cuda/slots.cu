#include "slots.cuh"

#include <cstring>

namespace {

enum { THREADS = 256 };

__global__ void take(const float *xyz, const float *normals, const uint8_t *rgb, const uint32_t *chosen, uint64_t n,
                     float *to_xyz, float *to_normals, uint8_t *to_rgb)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= n)
        return;
    uint64_t from = 3 * (uint64_t)chosen[i];

    for (int k = 0; k < 3; k++) {
        to_xyz[3 * i + k] = xyz[from + k];
        if (normals)
            to_normals[3 * i + k] = normals[from + k];
        if (rgb)
            to_rgb[3 * i + k] = rgb[from + k];
    }
}

/* Floats in an order of whole numbers. */
__device__ uint32_t ordered(float x)
{
    uint32_t b = __float_as_uint(x);

    return b >> 31 ? ~b : b | 0x80000000u;
}
float unordered(uint32_t b)
{
    float x;

    b = b >> 31 ? b & 0x7fffffffu : ~b;
    memcpy(&x, &b, 4);
    return x;
}

/* ends: low x y z, high x y z. Four points a thread, 48 bytes. */
__global__ void __launch_bounds__(THREADS) find_box(const float *xyz, uint64_t n, uint32_t *ends)
{
    float low[3] = { INFINITY, INFINITY, INFINITY }, high[3] = { -INFINITY, -INFINITY, -INFINITY };
    __shared__ uint32_t best[6];

    if (threadIdx.x < 6)
        best[threadIdx.x] = threadIdx.x < 3 ? ~0u : 0;
    __syncthreads();
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; 4 * i < n; i += (uint64_t)gridDim.x * THREADS) {
        union {
            float4 q[3];
            float x[12];
        } p;

        if (4 * i + 4 <= n)
            for (int k = 0; k < 3; k++)
                p.q[k] = ((const float4 *)xyz)[3 * i + k];
        else
            for (uint64_t k = 0; k < 12; k++)
                p.x[k] = xyz[12 * i + k < 3 * n ? 12 * i + k : 12 * i + k % 3];
        for (int k = 0; k < 12; k++) {
            low[k % 3] = fminf(low[k % 3], p.x[k]);
            high[k % 3] = fmaxf(high[k % 3], p.x[k]);
        }
    }
    for (int k = 0; k < 3; k++) {
        atomicMin(&best[k], ordered(low[k]));
        atomicMax(&best[3 + k], ordered(high[k]));
    }
    __syncthreads();
    if (threadIdx.x < 3)
        atomicMin(&ends[threadIdx.x], best[threadIdx.x]);
    else if (threadIdx.x < 6)
        atomicMax(&ends[threadIdx.x], best[threadIdx.x]);
}

__global__ void check(const uint32_t *index, uint64_t n, uint64_t vertices, unsigned long long *first)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * THREADS)
        if (index[i] >= vertices)
            atomicMin(first, (unsigned long long)i);
}

__global__ void count_up(uint32_t *p, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        p[i] = (uint32_t)i;
}

unsigned few(uint64_t n)
{
    return n < 1 ? 1 : n > 2112 ? 2112 : (unsigned)n;
}

} // namespace

int cuda_mesh_share(struct recon_ctx *ctx, const struct recon_mesh *m, bool places, struct recon_mesh *ret)
{
    struct recon_mesh all = *m, shared = {};
    struct recon_array a[RECON_ARRAYS_MAX], b[RECON_ARRAYS_MAX];
    int n, rc = 0;

    all.normals = all.corner_normal = nullptr;
    all.normal_index = nullptr;
    if (!places)
        all.xyz = nullptr;
    n = recon_slot_arrays(RECON_MESH, &all, a);
    recon_slot_arrays(RECON_MESH, &shared, b);
    shared.place = RECON_DEVICE;
    shared.vertices = m->vertices;
    shared.faces = m->faces;
    shared.uvs = m->uvs;
    shared.uv_down = m->uv_down;
    shared.extra_bytes = m->extra_bytes;
    for (int i = 0; i < n && rc == 0; i++)
        if ((rc = cuda_share(ctx, *a[i].at)) == 0)
            *b[i].at = *a[i].at;
    *ret = shared;
    return rc;
}

int cuda_points_take(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *chosen, uint64_t n, struct recon_points *ret)
{
    ret->place = RECON_DEVICE;
    ret->n = n;
    if (!(ret->xyz = (float *)cuda_alloc(ctx, 12 * n)) || (p->normals && !(ret->normals = (float *)cuda_alloc(ctx, 12 * n))) ||
        (p->rgb && !(ret->rgb = (uint8_t *)cuda_alloc(ctx, 3 * n))))
        return -1;
    if (n)
        take<<<blocks_of(n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(p->xyz, p->normals, p->rgb, chosen, n, ret->xyz, ret->normals, ret->rgb);
    return cuda_launched(ctx, "taking points");
}

int cuda_box(struct recon_ctx *ctx, const float *xyz, uint64_t n, double low[3], double high[3])
{
    Scratch scratch(ctx);
    uint32_t *ends = scratch.take<uint32_t>(6), told[6];

    if (!ends || cuda_ok(ctx, cudaMemsetAsync(ends, 0xff, 12, cuda_stream(ctx)), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(ends + 3, 0, 12, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    find_box<<<few((n / 4 + THREADS - 1) / THREADS), THREADS, 0, cuda_stream(ctx)>>>(xyz, n, ends);
    if (cuda_launched(ctx, "the points' box") || cuda_read(ctx, told, ends, 6))
        return -1;
    for (int i = 0; i < 3; i++) {
        low[i] = told[i] == ~0u ? (double)INFINITY : (double)unordered(told[i]);
        high[i] = told[3 + i] == 0 ? -(double)INFINITY : (double)unordered(told[3 + i]);
    }
    return 0;
}

int cuda_index_refuse(struct recon_ctx *ctx, const struct recon_mesh *m, unsigned long long corner)
{
    uint32_t vertex;

    if (corner == ~0ull)
        return 0;
    if (cuda_read(ctx, &vertex, m->index + corner, 1))
        return -1;
    return ctx->host->fail(ctx, 65, "face-index-out-of-range", "mesh", "face %llu names vertex %u, %llu are there", corner / 3, vertex,
                           (unsigned long long)m->vertices);
}

int cuda_index_check(struct recon_ctx *ctx, const struct recon_mesh *m)
{
    Scratch scratch(ctx);
    unsigned long long *first = scratch.take<unsigned long long>(1), told;
    unsigned blocks = few((3 * m->faces + THREADS - 1) / THREADS);

    if (!first || cuda_ok(ctx, cudaMemsetAsync(first, 0xff, 8, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    check<<<blocks, THREADS, 0, cuda_stream(ctx)>>>(m->index, 3 * m->faces, m->vertices, first);
    return cuda_launched(ctx, "checking faces") || cuda_read(ctx, &told, first, 1) || cuda_index_refuse(ctx, m, told) ? -1 : 0;
}

int cuda_count_up(struct recon_ctx *ctx, uint32_t *p, uint64_t n)
{
    count_up<<<blocks_of(n + 1, THREADS), THREADS, 0, cuda_stream(ctx)>>>(p, n);
    return cuda_launched(ctx, "counting up");
}
