/* Smoothing on the device: each vertex gathers its neighbours in ascending order, in double from floats as the host does, so the
 * bits are the same. */
#include "mesh_rows.cuh"

#include "kernels/mesh_plan.h"

namespace {

enum { THREADS = 256, INVERSES = 32 };

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

/* All steps, from the places in from to xyz, and between xyz and another array on the way. */
int smooth_all(struct recon_ctx *ctx, Scratch &scratch, const smoothing &s, const float *from, float *xyz)
{
    float *other = s.turns > 1 ? scratch.take<float>(3 * s.n) : xyz;
    void (*kernel)(cuda_rows, const uint8_t *, const float *, float *, uint64_t, double) = s.distance ? move<true> : move<false>;
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(s.n, THREADS);

    for (int64_t left = other ? s.turns : 0; left > 0; left--) {
        float *to = left % 2 ? xyz : other;

        if (left % 256 == 0 && (cuda_device.sync(ctx) || ctx->host->cancelled(ctx)))
            return ctx->host->fail(ctx, 124, nullptr, "mesh", "stopped with %lld turns to go", (long long)left);
        kernel<<<blocks, THREADS, 0, queue>>>(s.near, s.fixed, from, to, s.n, s.taubin && left % 2 ? s.mu : s.lambda);
        from = to;
    }
    return other && cuda_launched(ctx, "smoothing") == 0 ? 0 : -1;
}

int smooth_bound_device(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    if (!m || smooth_bound(ctx, in, p, cost))
        return m ? -1 : 0;
    cost->host_bytes = 0;
    cost->device_bytes = 25 * m->vertices + cuda_rows_neighbours_bytes(m->vertices, m->faces) + 4096; /* the other arrays are shared */
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
    if (!alone || topo_fits(ctx, m) || cuda_rows_neighbours(ctx, scratch, m, s.fixed, &s.near) || cuda_mesh_share(ctx, m, false, c) ||
        !(c->xyz = (float *)cuda_alloc(ctx, 12 * s.n)) || cuda_ok(ctx, cudaMemsetAsync(alone, 0, 4, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    if (s.n) {
        count_alone<<<blocks_of(s.n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(s.near.first, s.n, alone);
        if (smooth_all(ctx, scratch, s, m->xyz, c->xyz) || cuda_read(ctx, &told, alone, 1))
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

} // namespace

const struct recon_kernel cuda_mesh_smooth = { RECON_KERNEL_ABI,   MESH_SMOOTH_NAME,    MESH_SMOOTH_DOC, mesh_one_in,     mesh_one_out,
                                               mesh_smooth_params, smooth_bound_device, smooth_run,      smooth_selftest, same_shape };
