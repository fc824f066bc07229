/* Farthest point sampling on the device: one kernel stays on all multiprocessors and keeps every point with its least
 * distance in registers. A turn: each block finds its farthest point and puts it into a record that every other block waits
 * for, so there is no barrier and no second trip to memory. Distances in double, ties to the lowest number: what the plain
 * form gives, bit for bit. */
#include <cstring>
#include "slots.cuh"
#include "kernels/points_plan.h"

namespace {

enum { THREADS = 1024, WORDS = 6, TURNS = 8192 }; /* TURNS: of a launch, between two looks at the deadline */

struct job {
    const float *xyz;
    uint32_t n, all;              /* all: points wanted */
    double *distance;             /* n: to the nearest chosen, squared; kept between launches */
    uint32_t *chosen;             /* all */
    unsigned long long *record;   /* [2][WORDS][blocks]: a value above the turn's number + 1 */
    uint32_t *at;                 /* the point chosen next; kept between launches */
};

/* Order of the candidates: a distance's bits + 1, 0 for a point that was chosen. */
struct best {
    uint64_t key;
    uint32_t number;
};
__device__ __forceinline__ uint64_t key_of(double d)
{
    return d < 0 ? 0 : (uint64_t)__double_as_longlong(d) + 1;
}
__device__ __forceinline__ bool better(const best &a, const best &b)
{
    return a.key > b.key || (a.key == b.key && a.number < b.number);
}

__device__ __forceinline__ uint32_t warp_max(uint32_t x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0u, x);
#else
    for (int k = 16; k; k /= 2)
        x = max(x, __shfl_xor_sync(~0u, x, k));
    return x;
#endif
}

/* The best of a warp in every lane. */
__device__ __forceinline__ best warp_best(const best &b)
{
    uint32_t high = (uint32_t)(b.key >> 32), top = warp_max(high), low = warp_max(high == top ? (uint32_t)b.key : 0);
    bool is = high == top && (uint32_t)b.key == low;
    best r = { (uint64_t)top << 32 | low, ~warp_max(is ? ~b.number : 0) };

    return r;
}

__device__ __forceinline__ unsigned long long look(const unsigned long long *p)
{
#ifdef __CUDA_ARCH__
    unsigned long long x;

    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
    return x;
#else
    __nanosleep(0); /* on the fake of a device the others take their turn */
    return *p;
#endif
}
__device__ __forceinline__ void put(unsigned long long *p, uint32_t value, uint32_t turn)
{
    unsigned long long x = (unsigned long long)value << 32 | turn;

#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
#else
    *p = x;
#endif
}

struct shared {
    best of_warp[THREADS / 32];
    float xyz[THREADS / 32][3];
    uint32_t word[WORDS][THREADS]; /* of all blocks */
};

__device__ __forceinline__ double distance2(const float p[3], const float q[3])
{
    double x = (double)p[0] - (double)q[0], y = (double)p[1] - (double)q[1], z = (double)p[2] - (double)q[2];

    return x * x + y * y + z * z;
}

/* The thread's points against the point that was chosen last; the farthest of them, with its place. */
template <int HELD> struct points {
    float x[HELD][3];
    double d[HELD];

    __device__ void load(const job &j, uint32_t first, uint32_t step)
    {
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            uint64_t i = first + (uint64_t)k * step;

            d[k] = i < j.n ? j.distance[i] : -1;
            for (int a = 0; a < 3; a++)
                x[k][a] = i < j.n ? j.xyz[3 * i + a] : 0;
        }
    }
    __device__ void store(const job &j, uint32_t first, uint32_t step) const
    {
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if (first + (uint64_t)k * step < j.n)
                j.distance[first + (uint64_t)k * step] = d[k];
    }
    __device__ best renew(const job &, uint32_t first, uint32_t step, uint32_t at, const float p[3], float where[3])
    {
        best b = { 0, ~0u };

#pragma unroll
        for (int k = 0; k < HELD; k++) {
            uint32_t i = first + k * step;
            double e = i == at ? -1 : distance2(x[k], p);
            best c;

            d[k] = e < d[k] ? e : d[k];
            c.key = key_of(d[k]);
            c.number = i;
            if (c.key > b.key) {
                b = c;
                for (int a = 0; a < 3; a++)
                    where[a] = x[k][a];
            }
        }
        return b;
    }
};

/* More points than registers hold: they stay in memory. */
template <> struct points<0> {
    __device__ void load(const job &, uint32_t, uint32_t) {}
    __device__ void store(const job &, uint32_t, uint32_t) const {}
    __device__ best renew(const job &j, uint32_t first, uint32_t step, uint32_t at, const float p[3], float where[3])
    {
        best b = { 0, ~0u };

        for (uint64_t i = first; i < j.n; i += step) {
            float x[3] = { j.xyz[3 * i], j.xyz[3 * i + 1], j.xyz[3 * i + 2] };
            double d = j.distance[i], e = i == at ? -1 : distance2(x, p);

            if (e < d)
                j.distance[i] = d = e;
            if (key_of(d) > b.key) {
                b.key = key_of(d);
                b.number = (uint32_t)i;
                for (int a = 0; a < 3; a++)
                    where[a] = x[a];
            }
        }
        return b;
    }
};

/* The block's best goes into its record. */
__device__ __forceinline__ void publish(const job &j, shared &s, uint32_t turn)
{
    uint32_t lane = threadIdx.x % 32;
    best own = s.of_warp[lane % (THREADS / 32)], b = warp_best(own);
    unsigned long long *to = j.record + (uint64_t)(turn & 1) * WORDS * gridDim.x + blockIdx.x;

    if (lane != (uint32_t)__ffs(__ballot_sync(~0u, own.key == b.key && own.number == b.number)) - 1)
        return;
    put(to, (uint32_t)(b.key >> 32), turn + 1);
    put(to + gridDim.x, (uint32_t)b.key, turn + 1);
    put(to + 2 * gridDim.x, b.number, turn + 1);
    for (int a = 0; a < 3; a++)
        put(to + (3 + a) * gridDim.x, __float_as_uint(s.xyz[lane][a]), turn + 1);
}

/* Everybody's records of this turn, each word as soon as it is there. */
__device__ __forceinline__ void gather(const job &j, shared &s, uint32_t turn)
{
    const unsigned long long *from = j.record + (uint64_t)(turn & 1) * WORDS * gridDim.x;

    for (uint32_t t = threadIdx.x; t < WORDS * gridDim.x; t += THREADS) {
        unsigned long long x;

        do
            x = look(from + t);
        while ((uint32_t)x != turn + 1);
        s.word[0][t] = (uint32_t)(x >> 32); /* [word][block], rows of gridDim.x */
    }
}

/* The best of all blocks; each warp by itself. */
__device__ __forceinline__ uint32_t agree(const shared &s, float p[3])
{
    const uint32_t *w = s.word[0];
    uint32_t n = gridDim.x, lane = threadIdx.x % 32, block = 0;
    best own = { 0, ~0u }, b;

    for (uint32_t i = lane; i < n; i += 32) {
        best c = { (uint64_t)w[i] << 32 | w[n + i], w[2 * n + i] };

        if (better(c, own)) {
            own = c;
            block = i;
        }
    }
    b = warp_best(own);
    block = __shfl_sync(~0u, block, __ffs(__ballot_sync(~0u, own.key == b.key && own.number == b.number)) - 1);
    for (int a = 0; a < 3; a++)
        p[a] = __uint_as_float(w[(3 + a) * n + block]);
    return b.number;
}

/* Turns from to to - 1: each notes the point at hand and finds the next. */
template <int HELD> __global__ void __launch_bounds__(THREADS, 1) sample(job j, uint32_t from, uint32_t to)
{
    __shared__ shared s;
    uint32_t first = blockIdx.x * THREADS + threadIdx.x, step = gridDim.x * THREADS, at = *j.at, lane = threadIdx.x % 32;
    float p[3] = { j.xyz[3 * (uint64_t)at], j.xyz[3 * (uint64_t)at + 1], j.xyz[3 * (uint64_t)at + 2] }, where[3] = { 0, 0, 0 };
    points<HELD> own;

    own.load(j, first, step);
    for (uint32_t turn = from; turn < to; turn++) {
        best b, all;

        if (first == 0)
            j.chosen[turn] = at;
        b = own.renew(j, first, step, at, p, where);
        all = warp_best(b);
        if (lane == (uint32_t)__ffs(__ballot_sync(~0u, b.key == all.key && b.number == all.number)) - 1) {
            s.of_warp[threadIdx.x / 32] = b;
            for (int a = 0; a < 3; a++)
                s.xyz[threadIdx.x / 32][a] = where[a];
        }
        __syncthreads();
        if (threadIdx.x < 32)
            publish(j, s, turn);
        gather(j, s, turn);
        __syncthreads();
        at = agree(s, p);
    }
    own.store(j, first, step);
    if (first == 0)
        *j.at = at;
}

__global__ void fill(double *p, uint32_t n)
{
    for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (uint64_t)gridDim.x * 256)
        p[i] = INFINITY;
}

int launch(struct recon_ctx *ctx, job &j, unsigned blocks, uint32_t from, uint32_t to)
{
    static const struct {
        uint32_t held;
        void (*kernel)(job, uint32_t, uint32_t);
    } kernels[] = { { 1, sample<1> }, { 2, sample<2> }, { 4, sample<4> }, { 8, sample<8> } };
    void (*kernel)(job, uint32_t, uint32_t) = sample<0>;
    void *args[] = { &j, &from, &to };

    for (const auto &k : kernels)
        if ((uint64_t)k.held * blocks * THREADS >= j.n) {
            kernel = k.kernel;
            break;
        }
    return cuda_ok(ctx, cudaLaunchCooperativeKernel(kernel, blocks, THREADS, args, 0, cuda_stream(ctx)), "farthest points");
}

/* The first point: a number as it is; the farthest from the mean as the host finds it, in the order of its sums. */
int first_of(struct recon_ctx *ctx, const struct recon_points *p, const struct recon_value *v, uint64_t *ret)
{
    struct recon_points copy = { p->n, RECON_HOST, nullptr, nullptr, nullptr };
    int rc = 0;

    if (p->n && p->n <= UINT32_MAX && v[FPS_FIRST].i == FPS_FIRST_CENTROID) {
        copy.xyz = (float *)ctx->host->alloc(ctx, 12 * p->n);
        rc = copy.xyz ? cuda_read(ctx, copy.xyz, p->xyz, 3 * p->n) : -1;
    }
    rc = rc ? -1 : fps_first(ctx, &copy, v, ret);
    ctx->host->free(ctx, copy.xyz);
    return rc;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *r = (const struct recon_points *)in[0];

    if (!r || fps_bound(ctx, in, p, cost))
        return r ? -1 : 0;
    cost->device_bytes = 31 * cost->items + 8 * r->n + 4 * cost->items + 2 * WORDS * 8 * THREADS + 256;
    cost->host_bytes = p[FPS_FIRST].i == FPS_FIRST_CENTROID ? 12 * r->n : 0;
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *v, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *p = (const struct recon_points *)in[0];
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t first = 0;
    unsigned blocks;
    int processors = 0;
    Scratch scratch(ctx);
    job j = {};

    if (first_of(ctx, p, v, &first) ||
        cuda_ok(ctx, cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device), "cudaDeviceGetAttribute"))
        return -1;
    blocks = blocks_of(p->n, THREADS);
    blocks = blocks > (unsigned)processors ? (unsigned)processors : blocks;
    blocks = blocks > THREADS ? (unsigned)THREADS : blocks;
    j.xyz = p->xyz;
    j.n = (uint32_t)p->n;
    j.all = (uint32_t)(p->n < (uint64_t)v[FPS_COUNT].i ? p->n : (uint64_t)v[FPS_COUNT].i);
    uint32_t start = (uint32_t)first;

    if (!(j.distance = scratch.take<double>(p->n)) || !(j.chosen = scratch.take<uint32_t>(j.all)) || !(j.at = scratch.take<uint32_t>(1)) ||
        !(j.record = scratch.take<unsigned long long>(2 * WORDS * blocks)) ||
        cuda_ok(ctx, cudaMemsetAsync(j.record, 0, 2 * WORDS * blocks * 8, queue), "cudaMemset") || cuda_device.upload(ctx, j.at, &start, 4))
        return -1;
    fill<<<512, 256, 0, queue>>>(j.distance, j.n);
    for (uint32_t from = 0; from < j.all; from += TURNS) {
        if (from && (cuda_device.sync(ctx) || ctx->host->cancelled(ctx)))
            return ctx->host->fail(ctx, 124, nullptr, "points", "stopped after %u of %u points", from, j.all);
        if (launch(ctx, j, blocks, from, j.all - from < TURNS ? j.all : from + TURNS))
            return -1;
    }
    if (cuda_points_take(ctx, p, j.chosen, j.all, (struct recon_points *)out[0]))
        return -1;
    return bound(ctx, in, v, cost);
}

int selftest(struct recon_ctx *ctx)
{
    return golden_fps(ctx, &cuda_points_fps, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_points_fps = { RECON_KERNEL_ABI, FPS_NAME, FPS_DOC, points_one_in, points_one_out, fps_params,
                                              bound,            run,      selftest, fps_shape };
