/* TSDF fusion, voxel by voxel: frames are pulled on the host into pinned memory in batches, uploaded on a queue of their
 * own while the batch before is fused, and each thread holds one voxel in registers over the frames of a batch. The
 * arithmetic of a voxel is cpu/tsdf_fuse.c's, operation by operation and frame by frame, so that volumes are equal bit
 * by bit (the module is compiled without contraction to fma). */
#include <cub/block/block_reduce.cuh>
#include <cstring>
#include <ctime>
#include "cuda.cuh"

namespace {

enum { BATCH = 8, ALONG = 32, ROWS = 8, THREADS = ALONG * ROWS };

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

/* ---- device ---- */

__global__ void fill_one(float *p, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        p[i] = 1.0f;
}

/* Camera coordinates where a row begins: as row_of() of cpu/tsdf_fuse.c. */
__device__ void row_start(const volume &t, const struct fuse_view &v, uint32_t i, uint32_t j, double start[3])
{
    double d[3] = { t.origin[0] + t.voxel * i - v.t[0], t.origin[1] + t.voxel * j - v.t[1], t.origin[2] - v.t[2] };

    for (int a = 0; a < 3; a++)
        start[a] = v.r[3 * a] * d[0] + v.r[3 * a + 1] * d[1] + v.r[3 * a + 2] * d[2];
}

/* Whether a tile (one x, ROWS rows, ALONG samples of each) can meet what the frame sees: each plane of the view is
 * linear, so a tile whose four corners are all outside one of them is outside. The slack is far above rounding. */
__device__ bool tile_seen(const volume &t, const struct fuse_view &v, uint32_t i, uint32_t j, uint32_t k)
{
    double worst[6], left = v.cx + 0.5, right = v.width - 0.5 - v.cx, top = v.cy + 0.5, bottom = v.height - 0.5 - v.cy;

    for (int p = 0; p < 6; p++)
        worst[p] = -1e30;
    for (int c = 0; c < 4; c++) {
        double s[3], x, y, z, at = k + (c & 1 ? ALONG - 1 : 0);

        row_start(t, v, i, j + (c & 2 ? ROWS - 1 : 0), s);
        x = s[0] + at * (v.r[2] * t.voxel);
        y = s[1] + at * (v.r[5] * t.voxel);
        z = s[2] + at * (v.r[8] * t.voxel);
        worst[0] = fmax(worst[0], z);
        worst[1] = fmax(worst[1], v.zmax - z);
        worst[2] = fmax(worst[2], v.fx * x + left * z);
        worst[3] = fmax(worst[3], right * z - v.fx * x);
        worst[4] = fmax(worst[4], v.fy * y + top * z);
        worst[5] = fmax(worst[5], bottom * z - v.fy * y);
    }
    for (int p = 0; p < 6; p++)
        if (worst[p] < -1e-3)
            return false;
    return true;
}

/* One voxel in registers. */
struct held {
    float tsdf, w;
    uint16_t color[3];
};

__device__ bool fuse_one(const volume &t, const view &f, const double start[3], double at, held &h)
{
    const struct fuse_view &v = f.v;
    double zc = start[2] + at * (v.r[8] * t.voxel), u, w, s, inv = 1 / t.truncation;
    float d, w1;
    int32_t pixel;

    if (!(zc > 0))
        return false;
    u = v.fx * (start[0] + at * (v.r[2] * t.voxel)) / zc + v.cx;
    w = v.fy * (start[1] + at * (v.r[5] * t.voxel)) / zc + v.cy;
    if (!(u > -0.5 && u < v.width - 0.5 && w > -0.5 && w < v.height - 0.5))
        return false;
    pixel = (int32_t)(w + 0.5) * (int32_t)v.width + (int32_t)(u + 0.5);
    d = f.depth[pixel];
    s = d - zc;
    if (!(d > 0) || s < -t.truncation)
        return false;
    s = s * inv > 1 ? 1 : s * inv;
    w1 = h.w + 1;
    h.tsdf = (h.tsdf * h.w + (float)s) / w1;
    if (t.color && f.color)
        for (int c = 0; c < 3; c++)
            h.color[c] = (uint16_t)((h.color[c] * h.w + f.color[3 * (size_t)pixel + c] * 256.0f) / w1 + 0.5f);
    h.w = w1 < t.most ? w1 : t.most;
    return true;
}

__global__ void __launch_bounds__(THREADS) fuse_batch(volume t, const view *frames, int n, uint32_t tiles_y, uint32_t tiles_z,
                                                      unsigned long long *updates)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch;
    __shared__ view seen[BATCH];
    __shared__ double start[BATCH][ROWS][3];
    __shared__ int is_seen[BATCH];
    uint32_t block = blockIdx.x, k0 = block % tiles_z * ALONG, j0 = block / tiles_z % tiles_y * ROWS,
             i = block / tiles_z / tiles_y;
    uint32_t k = k0 + threadIdx.x % ALONG, j = j0 + threadIdx.x / ALONG, changed = 0, sum;
    bool inside = k < t.dim[2] && j < t.dim[1], loaded = false;
    uint64_t at = ((uint64_t)i * t.dim[1] + j) * t.dim[2] + k;
    held h = { 0, 0, { 0, 0, 0 } };
    int any = 0;

    if ((int)threadIdx.x < n) {
        seen[threadIdx.x] = frames[threadIdx.x];
        any = tile_seen(t, seen[threadIdx.x].v, i, j0, k0);
        is_seen[threadIdx.x] = any;
    }
    if (!__syncthreads_or(any)) /* the usual case: nothing of the volume is touched */
        return;
    for (int m = threadIdx.x; m < n * ROWS; m += THREADS)
        row_start(t, seen[m / ROWS].v, i, j0 + m % ROWS, start[m / ROWS][m % ROWS]);
    __syncthreads();
    for (int f = 0; f < n; f++) {
        if (!is_seen[f] || !inside)
            continue;
        if (!loaded) {
            h.tsdf = t.tsdf[at];
            h.w = t.weight[at];
            for (int c = 0; c < 3 && t.color; c++)
                h.color[c] = t.color[3 * at + c];
            loaded = true;
        }
        changed += fuse_one(t, seen[f], start[f][threadIdx.x / ALONG], k, h);
    }
    if (changed) {
        t.tsdf[at] = h.tsdf;
        t.weight[at] = h.w;
        for (int c = 0; c < 3 && t.color; c++)
            t.color[3 * at + c] = h.color[c];
    }
    sum = Reduce(scratch).Sum(changed);
    if (threadIdx.x == 0 && sum)
        atomicAdd(updates, (unsigned long long)sum);
}

__global__ void finish_color(const uint16_t *color, uint8_t *rgb, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        uint32_t c = ((uint32_t)color[i] + 128) >> 8;

        rgb[i] = (uint8_t)(c > 255 ? 255 : c);
    }
}

/* ---- host ---- */

double now_ms()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* One of the two halves that take turns: pinned host memory, its place on the device, and when each was last used. */
struct half {
    view *views;                /* pinned */
    float *depth;
    uint8_t *color;
    view *d_views;              /* on the device */
    float *d_depth;
    uint8_t *d_color;
    cudaEvent_t event[4];       /* copy begins, copied, fusion begins, fused */
    bool used;
};

struct fusing {
    struct recon_ctx *ctx;
    struct recon_frames *frames;
    const struct fuse_plan *plan;
    Scratch *scratch;
    volume t;
    half halves[2];
    cudaStream_t copies;
    unsigned long long *d_updates;
    uint64_t pixels, batches;
    fuse_counts counts;
    struct recon_cost *cost;

    int make_half(half &h, char *pinned);
    int start_up();
    void end();
    int reuse(half &h);
    int pull(half &h, int *ret_n);
    int launch(half &h, int n);
    int all();
    int count_updates();
};

uint64_t half_bytes(uint64_t pixels)
{
    return BATCH * (sizeof(view) + pixels * 7);
}

int fusing::make_half(half &h, char *pinned)
{
    h.views = (view *)pinned;
    h.depth = (float *)(pinned + BATCH * sizeof(view));
    h.color = (uint8_t *)(h.depth + BATCH * pixels);
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

int fusing::start_up()
{
    char *pinned = (char *)cuda_pinned(ctx, 2 * half_bytes(pixels));
    uint64_t n = plan->voxels;

    if (!pinned || cuda_ok(ctx, cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), "cudaStreamCreate"))
        return -1;
    for (int i = 0; i < 2; i++)
        if (make_half(halves[i], pinned + i * half_bytes(pixels)))
            return -1;
    d_updates = scratch->take<unsigned long long>(1);
    if (!d_updates || cuda_ok(ctx, cudaMemsetAsync(d_updates, 0, 8, cuda_stream(ctx)), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(t.weight, 0, n * 4, cuda_stream(ctx)), "cudaMemset"))
        return -1;
    fill_one<<<blocks_of(n, 256), 256, 0, cuda_stream(ctx)>>>(t.tsdf, n);
    if (cuda_launched(ctx, "filling the volume"))
        return -1;
    /* the device memory of the copies was taken in order of the main queue */
    return cuda_ok(ctx, cudaEventRecord(halves[0].event[3], cuda_stream(ctx)), "cudaEventRecord") ||
                   cuda_ok(ctx, cudaStreamWaitEvent(copies, halves[0].event[3], 0), "cudaStreamWaitEvent")
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
    for (half &h : halves)
        for (cudaEvent_t e : h.event)
            if (e)
                cudaEventDestroy(e);
    cudaGetLastError();
}

/* Waits until what the half held is fused; its times are read then. */
int fusing::reuse(half &h)
{
    float copy = 0, work = 0;

    if (!h.used)
        return 0;
    if (cuda_ok(ctx, cudaEventSynchronize(h.event[3]), "fusing") ||
        cuda_ok(ctx, cudaEventElapsedTime(&copy, h.event[0], h.event[1]), "cudaEventElapsedTime") ||
        cuda_ok(ctx, cudaEventElapsedTime(&work, h.event[2], h.event[3]), "cudaEventElapsedTime"))
        return -1;
    cost->copy_ms += copy;
    cost->device_ms += work;
    h.used = false;
    return 0;
}

/* Copies one frame's depth; how many pixels have one and the farthest. */
uint64_t take_depth(float *to, const float *from, uint64_t n, float *farthest)
{
    uint64_t have = 0;
    float most = 0;

    for (uint64_t i = 0; i < n; i++) {
        float d = from[i];

        to[i] = d;
        have += d > 0;
        most = d > most ? d : most;
    }
    *farthest = most;
    return have;
}

/* Up to BATCH frames into the half; 0 frames at the end of the source. */
int fusing::pull(half &h, int *ret_n)
{
    struct recon_frame f;
    int n = 0;

    while (n < BATCH) {
        double t0 = now_ms();
        int rc = frames->next(frames, &f);
        view *v = &h.views[n];
        float farthest;

        cost->wait_ms += now_ms() - t0;
        if (rc < 0)
            return -1;
        if (rc == 0)
            break;
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, 124, nullptr, f.name, "stopped at frame '%s'", f.name ? f.name : "");
        counts.frames++;
        counts.depth_pixels += take_depth(h.depth + n * pixels, f.depth, pixels, &farthest);
        memset(v, 0, sizeof(*v));
        fuse_view(plan, &frames->camera, f.pose, farthest, &v->v);
        v->depth = h.d_depth + n * pixels;
        if (f.color && plan->color) {
            memcpy(h.color + n * pixels * 3, f.color, pixels * 3);
            v->color = h.d_color + n * pixels * 3;
        }
        n++;
    }
    *ret_n = n;
    return 0;
}

int fusing::launch(half &h, int n)
{
    cudaStream_t queue = cuda_stream(ctx);
    uint32_t tiles_y = (plan->dim[1] + ROWS - 1) / ROWS, tiles_z = (plan->dim[2] + ALONG - 1) / ALONG;
    uint64_t color = 0, blocks = (uint64_t)plan->dim[0] * tiles_y * tiles_z;

    for (int i = 0; i < n; i++)
        color = h.views[i].color ? (uint64_t)n * pixels * 3 : color;
    if (blocks > 0x7fffffff)
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%u x %u x %u voxels are more than one launch covers",
                               plan->dim[0], plan->dim[1], plan->dim[2]);
    if (color && !t.color) {
        t.color = scratch->take<uint16_t>(plan->voxels * 3);
        if (!t.color || cuda_ok(ctx, cudaMemsetAsync(t.color, 0, plan->voxels * 6, queue), "cudaMemset"))
            return -1;
    }
    if (cuda_ok(ctx, cudaEventRecord(h.event[0], copies), "cudaEventRecord") ||
        cuda_ok(ctx, cudaMemcpyAsync(h.d_views, h.views, n * sizeof(view), cudaMemcpyHostToDevice, copies), "upload") ||
        cuda_ok(ctx, cudaMemcpyAsync(h.d_depth, h.depth, n * pixels * 4, cudaMemcpyHostToDevice, copies), "upload") ||
        (color && cuda_ok(ctx, cudaMemcpyAsync(h.d_color, h.color, color, cudaMemcpyHostToDevice, copies), "upload")) ||
        cuda_ok(ctx, cudaEventRecord(h.event[1], copies), "cudaEventRecord") ||
        cuda_ok(ctx, cudaStreamWaitEvent(queue, h.event[1], 0), "cudaStreamWaitEvent") ||
        cuda_ok(ctx, cudaEventRecord(h.event[2], queue), "cudaEventRecord"))
        return -1;
    fuse_batch<<<(unsigned)blocks, THREADS, 0, queue>>>(t, h.d_views, n, tiles_y, tiles_z, d_updates);
    if (cuda_launched(ctx, "fusing") || cuda_ok(ctx, cudaEventRecord(h.event[3], queue), "cudaEventRecord"))
        return -1;
    cost->copied_bytes += n * (sizeof(view) + pixels * 4) + color;
    h.used = true;
    return 0;
}

int fusing::all()
{
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
    return reuse(halves[0]) || reuse(halves[1]) ? -1 : 0;
}

int fusing::count_updates()
{
    unsigned long long n = 0;

    if (cuda_ok(ctx, cudaMemcpyAsync(&n, d_updates, 8, cudaMemcpyDeviceToHost, cuda_stream(ctx)), "download") ||
        cuda_ok(ctx, cudaStreamSynchronize(cuda_stream(ctx)), "fusing"))
        return -1;
    counts.updates = n;
    return fuse_verdict(ctx, frames, &counts);
}

/* What the fusion holds besides the volume. */
uint64_t frames_bytes(const struct recon_camera *c)
{
    return 2 * half_bytes((uint64_t)c->width * c->height);
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost)
{
    const struct recon_frames *f = in ? (const struct recon_frames *)in[0] : nullptr;
    struct fuse_plan p;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    cost->device_bytes = fuse_bytes(&p) + (f ? frames_bytes(&f->camera) : 0);
    cost->host_bytes = f ? frames_bytes(&f->camera) : 0;
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
    finish_color<<<blocks_of(voxels * 3, 256), 256, 0, cuda_stream(ctx)>>>(t.color, v->rgb, voxels * 3);
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
        plan_volume_fits(ctx, plan.dim, fuse_bytes(&plan) + frames_bytes(&frames->camera), cuda_memory_free(ctx), "device") ||
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
    cost->device_bytes = fuse_bytes(&plan) + frames_bytes(&frames->camera);
    cost->host_bytes = frames_bytes(&frames->camera);
    return rc;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cuda_tsdf_fuse, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_tsdf_fuse = { RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                             fuse_params,      bound,     run,      selftest, fuse_shape };
