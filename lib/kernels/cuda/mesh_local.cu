/* Smoothing and normals on the device: each vertex gathers its neighbours or corners in ascending order, in double from
 * floats as the host does, so the bits are the same. */
#include "mesh_rows.cuh"

#include "kernels/mesh_normal.h"

namespace {

enum { THREADS = 256, STAGED = 8 * THREADS, STAGED_ALL = CUDA_ROW_FEW * THREADS, INVERSES = 32 };

/* ---- rows of a block, in shared memory when they fit ---- */

struct row {
    const uint32_t *item;
    uint32_t n;
};

/* The row of the thread's vertex v; all threads of a block call it. held: STAGED numbers of shared memory. */
__device__ __forceinline__ row row_of(const cuda_rows &r, uint64_t v, uint64_t vertices, uint32_t *held)
{
    uint64_t low = (uint64_t)blockIdx.x * THREADS, high = low + THREADS < vertices ? low + THREADS : vertices;
    uint32_t from = r.first[low], to = r.first[high], a = v < vertices ? r.first[v] : to, b = v < vertices ? r.first[v + 1] : to;
    row x = { r.item + a, b - a };

    if (to - from <= STAGED) {
        for (uint32_t i = threadIdx.x; i < to - from; i += THREADS)
            held[i] = r.item[from + i];
        __syncthreads();
        x.item = held + (a - from);
    }
    return x;
}

/* The same of rows in any order, descending: each thread puts its own in order. held: STAGED_ALL numbers. */
__device__ __forceinline__ row descending_row_of(const cuda_rows &r, uint64_t v, uint64_t vertices, uint32_t *held)
{
    uint64_t low = (uint64_t)blockIdx.x * THREADS, high = low + THREADS < vertices ? low + THREADS : vertices;
    uint32_t from = r.first[low], to = r.first[high], a = v < vertices ? r.first[v] : to, b = v < vertices ? r.first[v + 1] : to;
    uint32_t *own = held + (a - from);
    row x = { own, b - a };

    for (uint32_t i = threadIdx.x; i < to - from; i += THREADS)
        held[i] = r.item[from + i];
    __syncthreads();
    for (uint32_t i = 1; i < x.n; i++) {
        uint32_t number = own[i], k = i;

        for (; k > 0 && own[k - 1] < number; k--)
            own[k] = own[k - 1];
        own[k] = number;
    }
    return x;
}

/* ---- mesh.smooth ---- */

/* x / n, rounded as the division: r is 1 / n, rounded; the remainder is exact (Markstein 1990). x finite. */
__device__ __forceinline__ double divided(double x, double n, double r)
{
    double q = x * r;

    q = fma(fma(-q, n, x), r, q);
    return fma(fma(-q, n, x), r, q);
}

/* Moves p by its share of the way to its neighbours' mean; 1 / n of short rows is in inverse. */
template <bool DISTANCE>
__device__ __forceinline__ void move_one(float p[3], const float *from, const uint32_t *item, uint32_t n, double share, const double *inverse)
{
    double px = p[0], py = p[1], pz = p[2], x = 0, y = 0, z = 0, sum = DISTANCE ? 0 : n;

#pragma unroll 3
    for (uint32_t i = 0; i < n; i++) {
        const float *q = from + 3 * (uint64_t)item[i];
        double dx = (double)q[0] - px, dy = (double)q[1] - py, dz = (double)q[2] - pz;

        if (DISTANCE) {
            double w = 1 / (sqrt(dx * dx + dy * dy + dz * dz) + 1e-12);

            x += w * dx;
            y += w * dy;
            z += w * dz;
            sum += w;
        } else {
            x += dx;
            y += dy;
            z += dz;
        }
    }
    if (!DISTANCE && n < INVERSES && fabs(x + y + z) < INFINITY) {
        double r = inverse[n];

        x = divided(x, sum, r);
        y = divided(y, sum, r);
        z = divided(z, sum, r);
    } else {
        x /= sum;
        y /= sum;
        z /= sum;
    }
    p[0] = (float)(px + share * x);
    p[1] = (float)(py + share * y);
    p[2] = (float)(pz + share * z);
}

/* One step of all vertices. */
template <bool DISTANCE>
__global__ void __launch_bounds__(THREADS) move(cuda_rows near, const uint8_t *fixed, const float *from, float *to, uint64_t n, double share)
{
    __shared__ double inverse[INVERSES];
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (threadIdx.x < INVERSES)
        inverse[threadIdx.x] = 1.0 / threadIdx.x;
    __syncthreads();
    if (v >= n)
        return;
    uint32_t a = near.first[v], b = near.first[v + 1];
    float p[3] = { from[3 * v], from[3 * v + 1], from[3 * v + 2] };

    if (a != b && !(fixed && fixed[v]))
        move_one<DISTANCE>(p, from, near.item + a, b - a, share, inverse);
    for (int k = 0; k < 3; k++)
        to[3 * v + k] = p[k];
}

__global__ void count_alone(const uint32_t *first, uint64_t n, uint32_t *ret)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    int is = __syncthreads_count(v < n && first[v] == first[v + 1]);

    if (threadIdx.x == 0 && is)
        atomicAdd(ret, (uint32_t)is);
}

struct smoothing {
    cuda_rows near;
    uint8_t *fixed;
    uint64_t n;
    double lambda, mu;
    int64_t turns;
    bool taubin, distance;
};

/* All steps between xyz and another array; the result is in xyz. */
int smooth_all(struct recon_ctx *ctx, Scratch &scratch, const smoothing &s, float *xyz)
{
    float *from = xyz, *to = scratch.take<float>(3 * s.n), *last = to;
    void (*kernel)(cuda_rows, const uint8_t *, const float *, float *, uint64_t, double) = s.distance ? move<true> : move<false>;
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(s.n, THREADS);

    for (int64_t left = to ? s.turns : 0; left > 0; left--) {
        if (left % 256 == 0 && (cuda_device.sync(ctx) || ctx->host->cancelled(ctx)))
            return ctx->host->fail(ctx, 124, nullptr, "mesh", "stopped with %lld turns to go", (long long)left);
        kernel<<<blocks, THREADS, 0, queue>>>(s.near, s.fixed, from, to, s.n, s.taubin && left % 2 ? s.mu : s.lambda);
        last = to;
        to = from;
        from = last;
    }
    if (!to || cuda_launched(ctx, "smoothing"))
        return -1;
    return last == xyz ? 0 : cuda_ok(ctx, cudaMemcpyAsync(xyz, last, 12 * s.n, cudaMemcpyDeviceToDevice, queue), "smoothing");
}

int smooth_bound_device(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    if (!m || smooth_bound(ctx, in, p, cost))
        return m ? -1 : 0;
    cost->host_bytes = 0;
    cost->device_bytes = 27 * m->vertices + 12 * m->faces + cuda_rows_neighbours_bytes(m->vertices, m->faces) + 13 * m->vertices + mesh_beyond(m) + 4096;
    return 0;
}

int smooth_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    struct recon_mesh *c = (struct recon_mesh *)out[0];
    Scratch scratch(ctx);
    uint32_t *alone = scratch.take<uint32_t>(1), told = 0;
    smoothing s = {};

    s.n = m->vertices;
    s.taubin = p[MESH_SMOOTH_METHOD].i == MESH_SMOOTH_TAUBIN;
    s.turns = p[MESH_SMOOTH_ITERATIONS].i * (s.taubin ? 2 : 1);
    s.lambda = p[MESH_SMOOTH_LAMBDA].f;
    s.mu = p[MESH_SMOOTH_MU].f;
    s.distance = p[MESH_SMOOTH_WEIGHTS].i == MESH_SMOOTH_DISTANCE;
    if (p[MESH_SMOOTH_BORDER].i == MESH_SMOOTH_FIX && !(s.fixed = scratch.take<uint8_t>(s.n)))
        return -1;
    if (!alone || cuda_rows_neighbours(ctx, scratch, m, s.fixed, &s.near) || cuda_mesh_copy(ctx, m, c) ||
        cuda_ok(ctx, cudaMemsetAsync(alone, 0, 4, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    if (s.n) {
        count_alone<<<blocks_of(s.n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(s.near.first, s.n, alone);
        if (smooth_all(ctx, scratch, s, c->xyz) || cuda_read(ctx, &told, alone, 1))
            return -1;
    }
    if (told)
        ctx->host->log(ctx, RECON_NOTE, nullptr, "mesh", "%u vertices are in no face and stay where they are", told);
    return smooth_bound_device(ctx, in, p, cost);
}

int smooth_selftest(struct recon_ctx *ctx)
{
    return golden_smooth(ctx, &cuda_mesh_smooth, &cuda_device);
}

/* ---- mesh.normals ---- */

template <int ANGLE, bool SORTED>
__global__ void __launch_bounds__(THREADS) gather(struct recon_mesh m, cuda_rows corners, float *normals, uint32_t *none)
{
    __shared__ uint32_t held[SORTED ? STAGED : STAGED_ALL];
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    row r = SORTED ? row_of(corners, v, m.vertices, held) : descending_row_of(corners, v, m.vertices, held);
    double sum[3] = { 0, 0, 0 };
    float unit[3] = { 1, 0, 0 };

    if (v < m.vertices) {
        for (uint32_t i = 0; i < r.n; i++)
            normal_add(&m, r.item[SORTED ? i : r.n - 1 - i], ANGLE, sum);
        normal_unit(sum, unit);
        for (int k = 0; k < 3; k++)
            normals[3 * v + k] = unit[k];
    }
    int without = __syncthreads_count(unit[0] == 0 && unit[1] == 0 && unit[2] == 0);

    if (threadIdx.x == 0 && without)
        atomicAdd(none, (uint32_t)without);
}

typedef void gather_normals(struct recon_mesh m, cuda_rows corners, float *normals, uint32_t *none);
gather_normals *const gathers[2][2] = { { gather<0, false>, gather<0, true> }, { gather<1, false>, gather<1, true> } };

int normals_bound_device(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    if (!m || normals_bound(ctx, in, p, cost))
        return m ? -1 : 0;
    cost->host_bytes = 0;
    cost->device_bytes = 27 * m->vertices + 12 * m->faces + cuda_rows_corners_bytes(m->vertices, m->faces) + mesh_beyond(m) + 4096;
    return 0;
}

int normals_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    struct recon_mesh *c = (struct recon_mesh *)out[0];
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint32_t *none = scratch.take<uint32_t>(1), told = 0;
    unsigned blocks = blocks_of(m->vertices, THREADS);
    struct cuda_rows corners;

    if (m->faces > UINT32_MAX / 3 - 1)
        return ctx->host->fail(ctx, 65, nullptr, "mesh", "the mesh has %llu faces, at most %u are taken", (unsigned long long)m->faces,
                               UINT32_MAX / 3 - 1);
    if (!none || cuda_rows_corners(ctx, scratch, m, &corners) || cuda_mesh_copy(ctx, m, c) ||
        !(c->normals = (float *)cuda_alloc(ctx, 12 * m->vertices)) || cuda_ok(ctx, cudaMemsetAsync(none, 0, 4, queue), "cudaMemset"))
        return -1;
    if (m->vertices) {
        gather_normals *kernel = gathers[p[MESH_NORMALS_WEIGHT].i == MESH_NORMALS_ANGLE][corners.sorted];

        kernel<<<blocks, THREADS, 0, queue>>>(*m, corners, c->normals, none);
        if (cuda_launched(ctx, "normals") || cuda_read(ctx, &told, none, 1))
            return -1;
    }
    if (told)
        ctx->host->log(ctx, RECON_NOTE, nullptr, "mesh", "%u vertices have no normal: in no face, or their faces cancel out", told);
    return normals_bound_device(ctx, in, p, cost);
}

int normals_selftest(struct recon_ctx *ctx)
{
    return golden_normals(ctx, &cuda_mesh_normals, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_mesh_smooth = { RECON_KERNEL_ABI,   MESH_SMOOTH_NAME,    MESH_SMOOTH_DOC, mesh_one_in,     mesh_one_out,
                                               mesh_smooth_params, smooth_bound_device, smooth_run,      smooth_selftest, same_shape };
const struct recon_kernel cuda_mesh_normals = { RECON_KERNEL_ABI,    MESH_NORMALS_NAME,    MESH_NORMALS_DOC, mesh_one_in,      mesh_one_out,
                                                mesh_normals_params, normals_bound_device, normals_run,      normals_selftest, same_shape };
