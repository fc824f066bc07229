/* TSDF fusion, voxel by voxel. Frames are pulled on the host into a ring of pinned memory and uploaded one by one on a
 * queue of their own; a batch on the device is fused while the next arrives:
 *   measure  the farthest depth of each frame of the batch
 *   cull     a warp a tile of voxels, a lane a frame: which frames can see it; tiles that any sees go into a list
 *   fuse     blocks take tiles from the list; each thread holds one voxel in registers over the frames that see it
 * The arithmetic of a voxel is cpu/tsdf_fuse.c's, operation by operation and frame by frame, so that volumes are equal
 * bit by bit (the module is compiled without contraction to fma). Decisions are made in float where its error cannot
 * change them, and in double elsewhere: see near_grid(). */
#include <cub/block/block_reduce.cuh>
#include <cstring>
#include <ctime>
#include "cuda.cuh"

namespace {

enum { BATCH = 32, ALONG = 32, ROWS = 8, THREADS = ALONG * ROWS, SLOTS = 8, RESIDENT = 4, STRIPS = 16 };

struct volume {
    float *tsdf, *weight;
    uint16_t *color; /* running mean in 1/256, or NULL */
    uint32_t dim[3];
    double origin[3], voxel, truncation;
    float most; /* of the weight */
};
/* One frame of a batch on the device. */
struct view {
    struct fuse_view v;
    const float *depth;
    const uint8_t *color; /* or NULL */
};
struct tile {
    uint32_t id, seen; /* by which frames of the batch, a bit each */
};
/* What a batch works with besides frames and volume. */
struct work {
    tile *list;
    uint32_t *listed, *taken; /* tiles in the list; tiles that blocks have taken */
    uint32_t *farthest;       /* of each frame: bits of a float */
    unsigned long long *updates, *depths;
    uint32_t tiles_y, tiles_z, tiles;
};

/* ---- device ---- */

__global__ void fill_one(float *p, uint64_t n)
{
    uint64_t i = 4 * ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= n)
        *(float4 *)(p + i) = make_float4(1, 1, 1, 1);
    else
        for (; i < n; i++)
            p[i] = 1;
}

/* A block a strip of a frame. Depths are positive, so their bits are ordered as they are. */
__global__ void __launch_bounds__(THREADS) measure(const view *frames, uint32_t pixels, work w)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch;
    __shared__ uint32_t most;
    uint32_t f = blockIdx.x / STRIPS, have = 0, sum;
    const float *depth = frames[f].depth;
    float far = 0;

    if (threadIdx.x == 0)
        most = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x % STRIPS * THREADS + threadIdx.x; i < pixels; i += STRIPS * THREADS) {
        float d = depth[i];

        have += d > 0;
        far = d > far ? d : far;
    }
    atomicMax(&most, __float_as_uint(far));
    sum = Reduce(scratch).Sum(have);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax(&w.farthest[f], most);
        atomicAdd(w.depths, (unsigned long long)sum);
    }
}

/* Camera coordinates where a row begins: as row_of() of cpu/tsdf_fuse.c. */
__device__ void row_start(const volume &t, const struct fuse_view &v, uint32_t i, uint32_t j, double start[3])
{
    double d[3] = { t.origin[0] + t.voxel * i - v.t[0], t.origin[1] + t.voxel * j - v.t[1], t.origin[2] - v.t[2] };

    for (int a = 0; a < 3; a++)
        start[a] = v.r[3 * a] * d[0] + v.r[3 * a + 1] * d[1] + v.r[3 * a + 2] * d[2];
}

struct corner {
    uint32_t i, j, k;
};
__device__ corner corner_of(const work &w, uint32_t id)
{
    uint32_t slab = id / w.tiles_z, i = slab / w.tiles_y;
    corner c = { i, (slab - i * w.tiles_y) * ROWS, (id - slab * w.tiles_z) * ALONG };

    return c;
}

/* Whether a tile (one x, ROWS rows, ALONG samples of each) can meet what the frame sees. Each plane of the view is
 * linear: its largest value over the tile is that at the first corner and the steps along y and z that raise it. The
 * slack is far above rounding. */
__device__ bool tile_seen(const volume &t, const struct fuse_view &v, double zmax, const corner &c)
{
    double s[3], dy[3], dz[3], left = v.cx + 0.5, right = v.width - 0.5 - v.cx, top = v.cy + 0.5,
           bottom = v.height - 0.5 - v.cy;

    row_start(t, v, c.i, c.j, s);
    for (int a = 0; a < 3; a++) {
        s[a] += c.k * (v.r[3 * a + 2] * t.voxel);
        dy[a] = v.r[3 * a + 1] * t.voxel * (ROWS - 1);
        dz[a] = v.r[3 * a + 2] * t.voxel * (ALONG - 1);
    }
    auto most = [&](double x, double y, double z) {
        return x * s[0] + y * s[1] + z * s[2] + fmax(x * dy[0] + y * dy[1] + z * dy[2], 0.0) +
               fmax(x * dz[0] + y * dz[1] + z * dz[2], 0.0);
    };
    return most(0, 0, 1) >= -1e-3 && zmax + most(0, 0, -1) >= -1e-3 && most(v.fx, 0, left) >= -1e-3 &&
           most(-v.fx, 0, right) >= -1e-3 && most(0, v.fy, top) >= -1e-3 && most(0, -v.fy, bottom) >= -1e-3;
}

__global__ void __launch_bounds__(THREADS) cull(volume t, const view *frames, int n, work w)
{
    uint32_t lane = threadIdx.x % 32, id = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, seen;
    bool mine = false;

    if (id >= w.tiles)
        return;
    if ((int)lane < n)
        mine = tile_seen(t, frames[lane].v, (double)__uint_as_float(w.farthest[lane]) + t.truncation, corner_of(w, id));
    seen = __ballot_sync(0xffffffffu, mine);
    if (lane == 0 && seen) {
        tile listed = { id, seen };

        w.list[atomicAdd(w.listed, 1u)] = listed;
    }
}

/* A frame as the quick way sees it: x and y are multiplied by fx and fy; `margin` is how near to the border between two
 * pixels float may not decide, `safe` the least z at which that holds. With e = 2^-24 and P = width + height + fx + fy +
 * |cx| + |cy|, coordinates within a tile are off by less than e (3 |x| + 62 step), a quotient by 4 e of itself, so a
 * pixel by less than 12 e P + 62 e (width + fx) voxel / z, which for z > 8 voxels is below 16 e P = margin. */
struct quick {
    const float *depth;
    const uint8_t *color;
    float step[3], cx, cy, wide, high, margin;
    int32_t width;
};
__device__ void quick_of(const volume &t, const view &f, quick *q)
{
    const struct fuse_view &v = f.v;

    q->depth = f.depth;
    q->color = f.color;
    q->step[0] = (float)(v.fx * v.r[2] * t.voxel);
    q->step[1] = (float)(v.fy * v.r[5] * t.voxel);
    q->step[2] = (float)(v.r[8] * t.voxel);
    q->cx = (float)(v.cx + 0.5);
    q->cy = (float)(v.cy + 0.5);
    q->wide = (float)v.width;
    q->high = (float)v.height;
    q->margin = (float)(v.width + v.height + v.fx + v.fy + fabs(v.cx) + fabs(v.cy)) * 0x1p-20f;
    q->width = (int32_t)v.width;
}
__device__ bool near_grid(float u, float w, float margin)
{
    return fabsf(u - rintf(u)) < margin || fabsf(w - rintf(w)) < margin;
}

/* The pixel that double gives, -1: none. */
__device__ int32_t exact_pixel(const volume &t, const struct fuse_view &v, const double start[3], double at)
{
    double zc = start[2] + at * (v.r[8] * t.voxel), u, w;

    if (!(zc > 0))
        return -1;
    u = v.fx * (start[0] + at * (v.r[2] * t.voxel)) / zc + v.cx;
    w = v.fy * (start[1] + at * (v.r[5] * t.voxel)) / zc + v.cy;
    if (!(u > -0.5 && u < v.width - 0.5 && w > -0.5 && w < v.height - 0.5))
        return -1;
    return (int32_t)(w + 0.5) * (int32_t)v.width + (int32_t)(u + 0.5);
}

/* a / b correctly rounded, inv = 1 / b correctly rounded (Markstein 1990: a faithful quotient and one more step); a is 0
 * or far from the least float. */
__device__ float divided(float a, float b, float inv)
{
    float q = a * inv;

    q = fmaf(fmaf(-q, b, a), inv, q);
    return fmaf(fmaf(-q, b, a), inv, q);
}

/* One voxel in registers. */
struct held {
    float tsdf, w;
    uint16_t color[3];
};

__device__ void update(const volume &t, const uint8_t *color, int32_t pixel, float s, held &h)
{
    float w1 = h.w + 1;

    h.tsdf = (h.tsdf * h.w + s) / w1;
    if (t.color && color) {
        float inv = __frcp_rn(w1);

        for (int c = 0; c < 3; c++)
            h.color[c] = (uint16_t)(divided(h.color[c] * h.w + color[3 * (size_t)pixel + c] * 256.0f, w1, inv) + 0.5f);
    }
    h.w = w1 < t.most ? w1 : t.most;
}

/* Whether the frame has a depth for the voxel, not too far in front of it: the value to fuse. local: of the voxel in its
 * tile; row: camera coordinates at the tile's row, at: of the voxel along it from `start` on. */
__device__ bool value_of(const volume &t, const view &f, const quick &q, const float row[3], float local,
                         const double start[3], double at, int32_t *ret_pixel, float *ret)
{
    float z = fmaf(local, q.step[2], row[2]), d, s, doubt, trunc = (float)t.truncation, safe = 8 * (float)t.voxel;
    int32_t pixel;

    if (z < -safe)
        return false;
    if (z > safe) {
        float inv = __fdividef(1.0f, z), u = fmaf(fmaf(local, q.step[0], row[0]), inv, q.cx),
              w = fmaf(fmaf(local, q.step[1], row[1]), inv, q.cy);

        if (u < -q.margin || w < -q.margin || u > q.wide + q.margin || w > q.high + q.margin)
            return false;
        pixel = near_grid(u, w, q.margin) ? exact_pixel(t, f.v, start, at) : (int32_t)w * q.width + (int32_t)u;
    } else {
        pixel = exact_pixel(t, f.v, start, at);
    }
    if (pixel < 0)
        return false;
    d = q.depth[pixel];
    s = d - z;
    doubt = 2e-6f * (fabsf(z) + d + 4 * safe);
    if (!(d > 0) || s < -trunc - doubt)
        return false;
    *ret_pixel = pixel;
    *ret = 1;
    if (s <= trunc + doubt) {
        double exact = d - (start[2] + at * (f.v.r[8] * t.voxel)), part = exact * (1 / t.truncation);

        if (exact < -t.truncation)
            return false;
        *ret = part > 1 ? 1 : (float)part;
    }
    return true;
}

__device__ uint32_t fuse_voxel(const volume &t, const view *frames, const quick *quicks, uint32_t seen, uint64_t at,
                               uint32_t k, const double (*start)[ROWS][3], const float (*row)[ROWS][3])
{
    uint32_t changed = 0, r = threadIdx.x / ALONG;
    held h = { 0, 0, { 0, 0, 0 } };

    for (; seen; seen &= seen - 1) {
        int f = __ffs((int)seen) - 1;
        int32_t pixel;
        float s;

        if (!value_of(t, frames[f], quicks[f], row[f][r], (float)(threadIdx.x % ALONG), start[f][r], k, &pixel, &s))
            continue;
        if (!changed) {
            h.tsdf = t.tsdf[at];
            h.w = t.weight[at];
            for (int c = 0; c < 3 && t.color; c++)
                h.color[c] = t.color[3 * at + c];
        }
        update(t, quicks[f].color, pixel, s, h);
        changed++;
    }
    if (changed) {
        t.tsdf[at] = h.tsdf;
        t.weight[at] = h.w;
        for (int c = 0; c < 3 && t.color; c++)
            t.color[3 * at + c] = h.color[c];
    }
    return changed;
}

__global__ void __launch_bounds__(THREADS, RESIDENT) fuse_tiles(volume t, const view *frames, int n, work w)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch;
    __shared__ view views[BATCH];
    __shared__ quick quicks[BATCH];
    __shared__ double start[BATCH][ROWS][3];
    __shared__ float row[BATCH][ROWS][3];
    __shared__ uint32_t mine;
    uint32_t changed = 0, sum, listed = *w.listed, f = threadIdx.x / ROWS, r = threadIdx.x % ROWS;

    static_assert(BATCH * ROWS == THREADS, "a thread a row of a frame");
    if ((int)threadIdx.x < n) {
        views[threadIdx.x] = frames[threadIdx.x];
        quick_of(t, views[threadIdx.x], &quicks[threadIdx.x]);
    }
    for (;;) {
        if (threadIdx.x == 0)
            mine = atomicAdd(w.taken, 1u);
        __syncthreads();
        if (mine >= listed)
            break;
        tile now = w.list[mine];
        corner c = corner_of(w, now.id);
        uint32_t k = c.k + threadIdx.x % ALONG, j = c.j + threadIdx.x / ALONG;

        if (now.seen >> f & 1) {
            const struct fuse_view &v = views[f].v;
            double scale[3] = { v.fx, v.fy, 1 };

            row_start(t, v, c.i, c.j + r, start[f][r]);
            for (int a = 0; a < 3; a++)
                row[f][r][a] = (float)(scale[a] * (start[f][r][a] + c.k * (v.r[3 * a + 2] * t.voxel)));
        }
        __syncthreads();
        if (k < t.dim[2] && j < t.dim[1])
            changed += fuse_voxel(t, views, quicks, now.seen, ((uint64_t)c.i * t.dim[1] + j) * t.dim[2] + k, k, start, row);
        __syncthreads();
    }
    sum = Reduce(scratch).Sum(changed);
    if (threadIdx.x == 0 && sum)
        atomicAdd(w.updates, (unsigned long long)sum);
}

__device__ uint8_t whole_color(uint16_t mean)
{
    uint32_t c = ((uint32_t)mean + 128) >> 8;

    return (uint8_t)(c > 255 ? 255 : c);
}
__global__ void finish_color(const uint16_t *color, uint8_t *rgb, uint64_t n)
{
    uint64_t i = 4 * ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= n) {
        ushort4 c = *(const ushort4 *)(color + i);

        *(uchar4 *)(rgb + i) = make_uchar4(whole_color(c.x), whole_color(c.y), whole_color(c.z), whole_color(c.w));
    } else {
        for (; i < n; i++)
            rgb[i] = whole_color(color[i]);
    }
}

/* ---- host ---- */

double now_ms()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A frame in pinned memory on its way to the device. */
struct slot {
    float *depth;
    uint8_t *color;
    cudaEvent_t event[2]; /* around its copy */
    bool used;
};
/* One of the two batches that take turns on the device. */
struct half {
    view *views; /* pinned */
    view *d_views;
    float *d_depth;
    uint8_t *d_color;
    cudaEvent_t event[3]; /* copied, fusion begins, fused */
    bool used;
};

struct fusing {
    struct recon_ctx *ctx;
    struct recon_frames *frames;
    const struct fuse_plan *plan;
    Scratch *scratch;
    volume t;
    work w;
    slot slots[SLOTS];
    half halves[2];
    cudaEvent_t begun[2]; /* around what precedes the first batch */
    cudaStream_t copies;
    uint64_t pixels, batches, pulled;
    unsigned grid;
    fuse_counts counts;
    struct recon_cost *cost;

    int make_slot(slot &s, char *pinned);
    int make_half(half &h, char *pinned);
    int make_work();
    int start_up();
    void end();
    int reuse(slot &s);
    int reuse(half &h);
    int send(half &h, int n, const struct recon_frame &f);
    int pull(half &h, int *ret_n);
    int take_color();
    int launch(half &h, int n);
    int all();
    int count_updates();
};

uint64_t slot_bytes(uint64_t pixels)
{
    return (pixels * 7 + 63) / 64 * 64;
}
uint64_t pinned_bytes(uint64_t pixels)
{
    return SLOTS * slot_bytes(pixels) + 2 * BATCH * sizeof(view);
}
uint32_t tiles_along(const uint32_t dim[3], uint32_t *y, uint32_t *z)
{
    uint64_t n;

    *y = (dim[1] + ROWS - 1) / ROWS;
    *z = (dim[2] + ALONG - 1) / ALONG;
    n = (uint64_t)dim[0] * *y * *z;
    return n > 0x7fffffff ? 0 : (uint32_t)n; /* 0: too many */
}

int fusing::make_slot(slot &s, char *pinned)
{
    s.depth = (float *)pinned;
    s.color = (uint8_t *)(s.depth + pixels);
    for (cudaEvent_t &e : s.event)
        if (cuda_ok(ctx, cudaEventCreate(&e), "cudaEventCreate"))
            return -1;
    return 0;
}

int fusing::make_half(half &h, char *pinned)
{
    h.views = (view *)pinned;
    h.d_views = scratch->take<view>(BATCH);
    h.d_depth = h.d_views ? scratch->take<float>(BATCH * pixels) : nullptr;
    h.d_color = h.d_depth ? scratch->take<uint8_t>(BATCH * pixels * 3) : nullptr;
    if (!h.d_color)
        return -1;
    for (cudaEvent_t &e : h.event)
        if (cuda_ok(ctx, cudaEventCreate(&e), "cudaEventCreate"))
            return -1;
    return 0;
}

int fusing::make_work()
{
    int sms = 1;
    uint32_t *counters;

    w.tiles = tiles_along(plan->dim, &w.tiles_y, &w.tiles_z);
    if (!w.tiles)
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%u x %u x %u voxels are more than one launch covers",
                               plan->dim[0], plan->dim[1], plan->dim[2]);
    w.list = scratch->take<tile>(w.tiles);
    counters = w.list ? scratch->take<uint32_t>(BATCH + 2) : nullptr;
    w.updates = counters ? scratch->take<unsigned long long>(2) : nullptr;
    if (!w.updates || cuda_ok(ctx, cudaMemsetAsync(w.updates, 0, 16, cuda_stream(ctx)), "cudaMemset") ||
        cuda_ok(ctx, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, ctx->device), "cudaDeviceGetAttribute"))
        return -1;
    w.depths = w.updates + 1;
    w.listed = counters;
    w.taken = counters + 1;
    w.farthest = counters + 2;
    grid = (unsigned)sms * RESIDENT;
    return 0;
}

int fusing::start_up()
{
    char *pinned = (char *)cuda_pinned(ctx, pinned_bytes(pixels));
    uint64_t n = plan->voxels;

    if (!pinned || cuda_ok(ctx, cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), "cudaStreamCreate"))
        return -1;
    for (int i = 0; i < SLOTS; i++)
        if (make_slot(slots[i], pinned + i * slot_bytes(pixels)))
            return -1;
    for (int i = 0; i < 2; i++)
        if (make_half(halves[i], pinned + SLOTS * slot_bytes(pixels) + i * BATCH * sizeof(view)) ||
            cuda_ok(ctx, cudaEventCreate(&begun[i]), "cudaEventCreate"))
            return -1;
    if (make_work() || cuda_ok(ctx, cudaEventRecord(begun[0], cuda_stream(ctx)), "cudaEventRecord") ||
        cuda_ok(ctx, cudaMemsetAsync(t.weight, 0, n * 4, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    fill_one<<<blocks_of(n, 1024), 256, 0, cuda_stream(ctx)>>>(t.tsdf, n);
    if (cuda_launched(ctx, "filling the volume"))
        return -1;
    /* the device memory of the copies was taken in order of the main queue */
    return cuda_ok(ctx, cudaEventRecord(begun[1], cuda_stream(ctx)), "cudaEventRecord") ||
                   cuda_ok(ctx, cudaStreamWaitEvent(copies, begun[1], 0), "cudaStreamWaitEvent")
               ? -1 : 0;
}

/* Both queues are empty before the memory goes back, also after a failure. */
void fusing::end()
{
    if (copies) {
        cudaStreamSynchronize(copies);
        cudaStreamSynchronize(cuda_stream(ctx));
        cudaStreamDestroy(copies);
    }
    for (slot &s : slots)
        for (cudaEvent_t e : s.event)
            if (e)
                cudaEventDestroy(e);
    for (half &h : halves)
        for (cudaEvent_t e : h.event)
            if (e)
                cudaEventDestroy(e);
    for (cudaEvent_t e : begun)
        if (e)
            cudaEventDestroy(e);
    cudaGetLastError();
}

int add_elapsed(struct recon_ctx *ctx, cudaEvent_t from, cudaEvent_t to, double *sum)
{
    float ms = 0;

    if (cuda_ok(ctx, cudaEventSynchronize(to), "fusing") ||
        cuda_ok(ctx, cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime"))
        return -1;
    *sum += ms;
    return 0;
}

/* Waits until what the slot held is on the device. */
int fusing::reuse(slot &s)
{
    bool was = s.used;

    s.used = false;
    return was ? add_elapsed(ctx, s.event[0], s.event[1], &cost->copy_ms) : 0;
}

/* Waits until what the half held is fused. */
int fusing::reuse(half &h)
{
    bool was = h.used;

    h.used = false;
    return was ? add_elapsed(ctx, h.event[1], h.event[2], &cost->device_ms) : 0;
}

/* Frame n of a batch on its way. */
int fusing::send(half &h, int n, const struct recon_frame &f)
{
    slot &s = slots[pulled++ % SLOTS];
    bool color = f.color && plan->color;
    view *v = &h.views[n];

    if (reuse(s))
        return -1;
    memset(v, 0, sizeof(*v));
    fuse_view(plan, &frames->camera, f.pose, 0, &v->v);
    v->depth = h.d_depth + n * pixels;
    v->color = color ? h.d_color + n * pixels * 3 : nullptr;
    memcpy(s.depth, f.depth, pixels * 4);
    if (color)
        memcpy(s.color, f.color, pixels * 3);
    if (cuda_ok(ctx, cudaEventRecord(s.event[0], copies), "cudaEventRecord") ||
        cuda_ok(ctx, cudaMemcpyAsync(h.d_depth + n * pixels, s.depth, pixels * 4, cudaMemcpyHostToDevice, copies), "upload") ||
        (color && cuda_ok(ctx, cudaMemcpyAsync(h.d_color + n * pixels * 3, s.color, pixels * 3, cudaMemcpyHostToDevice,
                                               copies), "upload")) ||
        cuda_ok(ctx, cudaEventRecord(s.event[1], copies), "cudaEventRecord"))
        return -1;
    s.used = true;
    cost->copied_bytes += pixels * (color ? 7 : 4);
    return 0;
}

/* Up to BATCH frames into the half; 0 frames at the end of the source. */
int fusing::pull(half &h, int *ret_n)
{
    struct recon_frame f;
    int n = 0;

    while (n < BATCH) {
        double t0 = now_ms();
        int rc = frames->next(frames, &f);

        cost->wait_ms += now_ms() - t0;
        if (rc < 0)
            return -1;
        if (rc == 0)
            break;
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, 124, nullptr, f.name, "stopped at frame '%s'", f.name ? f.name : "");
        if (send(h, n++, f))
            return -1;
        counts.frames++;
    }
    *ret_n = n;
    return 0;
}

int fusing::take_color()
{
    t.color = scratch->take<uint16_t>(plan->voxels * 3);
    return t.color ? cuda_ok(ctx, cudaMemsetAsync(t.color, 0, plan->voxels * 6, cuda_stream(ctx)), "cudaMemset") : -1;
}

int fusing::launch(half &h, int n)
{
    cudaStream_t queue = cuda_stream(ctx);
    bool color = false;

    for (int i = 0; i < n; i++)
        color = color || h.views[i].color;
    if (cuda_ok(ctx, cudaMemcpyAsync(h.d_views, h.views, n * sizeof(view), cudaMemcpyHostToDevice, copies), "upload") ||
        cuda_ok(ctx, cudaEventRecord(h.event[0], copies), "cudaEventRecord") ||
        cuda_ok(ctx, cudaStreamWaitEvent(queue, h.event[0], 0), "cudaStreamWaitEvent") ||
        cuda_ok(ctx, cudaEventRecord(h.event[1], queue), "cudaEventRecord") || (color && !t.color && take_color()) ||
        cuda_ok(ctx, cudaMemsetAsync(w.listed, 0, (BATCH + 2) * 4, queue), "cudaMemset"))
        return -1;
    measure<<<(unsigned)n * STRIPS, THREADS, 0, queue>>>(h.d_views, (uint32_t)pixels, w);
    cull<<<blocks_of(w.tiles, THREADS / 32), THREADS, 0, queue>>>(t, h.d_views, n, w);
    fuse_tiles<<<grid, THREADS, 0, queue>>>(t, h.d_views, n, w);
    if (cuda_launched(ctx, "fusing") || cuda_ok(ctx, cudaEventRecord(h.event[2], queue), "cudaEventRecord"))
        return -1;
    cost->copied_bytes += n * sizeof(view);
    h.used = true;
    return 0;
}

int fusing::all()
{
    int rc = 0;

    for (;; batches++) {
        half &h = halves[batches & 1];
        int n = 0;

        if (reuse(h) || pull(h, &n))
            return -1;
        if (n == 0)
            break;
        if (launch(h, n))
            return -1;
    }
    for (half &h : halves)
        rc = rc || reuse(h);
    for (slot &s : slots)
        rc = rc || reuse(s);
    return rc || add_elapsed(ctx, begun[0], begun[1], &cost->device_ms) ? -1 : 0;
}

int fusing::count_updates()
{
    unsigned long long n[2] = { 0, 0 };

    if (cuda_ok(ctx, cudaMemcpyAsync(n, w.updates, 16, cudaMemcpyDeviceToHost, cuda_stream(ctx)), "download") ||
        cuda_ok(ctx, cudaStreamSynchronize(cuda_stream(ctx)), "fusing"))
        return -1;
    counts.updates = n[0];
    counts.depth_pixels = n[1];
    return fuse_verdict(ctx, frames, &counts);
}

/* What the fusion holds besides the volume: on the host, on the device. */
uint64_t host_bytes(const struct recon_camera *c)
{
    return pinned_bytes((uint64_t)c->width * c->height);
}
uint64_t device_bytes(const struct fuse_plan *p, const struct recon_camera *c)
{
    uint64_t pixels = c ? (uint64_t)c->width * c->height : 0;
    uint32_t y, z, tiles = tiles_along(p->dim, &y, &z);

    return fuse_bytes(p) + 2 * BATCH * (sizeof(view) + pixels * 7) + tiles * sizeof(tile) + (BATCH + 6) * 4;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost)
{
    const struct recon_frames *f = in ? (const struct recon_frames *)in[0] : nullptr;
    struct fuse_plan p;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    cost->device_bytes = device_bytes(&p, f ? &f->camera : nullptr);
    cost->host_bytes = f ? host_bytes(&f->camera) : 0;
    fuse_guess(&p, f, cost);
    return 0;
}

int take_volume(struct recon_ctx *ctx, const struct fuse_plan &p, struct recon_volume *v)
{
    v->tsdf = (float *)cuda_alloc(ctx, p.voxels * 4);
    v->place = RECON_DEVICE;
    v->weight = v->tsdf ? (float *)cuda_alloc(ctx, p.voxels * 4) : nullptr;
    memcpy(v->dim, p.dim, sizeof(v->dim));
    memcpy(v->origin, p.origin, sizeof(v->origin));
    v->voxel = p.voxel;
    v->truncation = p.truncation;
    return v->weight ? 0 : -1;
}

int take_color(struct recon_ctx *ctx, const volume &t, struct recon_volume *v, uint64_t voxels)
{
    if (!t.color)
        return 0;
    v->rgb = (uint8_t *)cuda_alloc(ctx, voxels * 3);
    if (!v->rgb)
        return -1;
    finish_color<<<blocks_of(voxels * 3, 1024), 256, 0, cuda_stream(ctx)>>>(t.color, v->rgb, voxels * 3);
    return cuda_launched(ctx, "colours of the volume");
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out,
        struct recon_cost *cost)
{
    struct recon_frames *frames = (struct recon_frames *)(uintptr_t)in[0];
    struct recon_volume *v = (struct recon_volume *)out[0];
    struct fuse_plan plan;
    Scratch scratch(ctx);
    fusing x = {};
    int rc;

    if (fuse_plan(ctx, frames, params, &plan) ||
        plan_volume_fits(ctx, plan.dim, device_bytes(&plan, &frames->camera), cuda_memory_free(ctx), "device") ||
        take_volume(ctx, plan, v))
        return -1;
    x.ctx = ctx;
    x.frames = frames;
    x.plan = &plan;
    x.scratch = &scratch;
    x.cost = cost;
    x.pixels = (uint64_t)frames->camera.width * frames->camera.height;
    x.t.tsdf = v->tsdf;
    x.t.weight = v->weight;
    memcpy(x.t.dim, plan.dim, sizeof(plan.dim));
    memcpy(x.t.origin, plan.origin, sizeof(plan.origin));
    x.t.voxel = plan.voxel;
    x.t.truncation = plan.truncation;
    x.t.most = plan.weight_max > 0 ? (float)plan.weight_max : INFINITY;
    rc = x.start_up() || x.all() || x.count_updates() || take_color(ctx, x.t, v, plan.voxels) ? -1 : 0;
    x.end();
    fuse_cost(&plan, &x.counts, cost);
    cost->device_bytes = device_bytes(&plan, &frames->camera);
    cost->host_bytes = host_bytes(&frames->camera);
    return rc;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cuda_tsdf_fuse, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_tsdf_fuse = { RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                             fuse_params,      bound,     run,      selftest, fuse_shape };
