/* TSDF fusion, voxel by voxel. Frames are pulled on the host into a ring of pinned memory and uploaded one by one on a
 * queue of their own; a batch on the device is fused while the next arrives:
 *   measure  the farthest depth of each frame of the batch
 *   cull     a warp a tile of voxels, a lane a frame: which frames can see it; tiles that any sees go into a list
 *   fuse     blocks take tiles from the list; each thread holds one voxel in registers over the frames that see it
 * The arithmetic of a voxel is cpu/tsdf_fuse.c's, operation by operation and frame by frame, so that volumes are equal
 * bit by bit (the module is compiled without contraction to fma). Decisions are made in float where its error cannot
 * change them, and in double elsewhere: see near_grid(). Values are always those of double where the frame's weight depends on the
 * distance (nvblox). */
#include <cstring>
#include <ctime>
#include "copier.h"
#include "fuse_tiles.cuh"

namespace {

enum { SLOTS = 8 };

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
    copier *helpers;
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

    *y = (dim[1] + dense::ROWS - 1) / dense::ROWS;
    *z = (dim[2] + dense::ALONG - 1) / dense::ALONG;
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
    helpers->copy(s.depth, f.depth, pixels * 4, s.color, f.color, color ? pixels * 3 : 0);
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

template <typename F> void fuse_into(const volume &t, const view *views, int n, const work &w, unsigned grid, cudaStream_t queue)
{
    cull<F><<<blocks_of(w.tiles, THREADS / 32), THREADS, 0, queue>>>(t, views, n, w);
    fuse_tiles<F><<<grid, THREADS, 0, queue>>>(t, views, n, w);
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
    if (plan->compat == FUSE_COMPAT_NVBLOX)
        fuse_into<dense_weighted>(t, h.d_views, n, w, grid, queue);
    else
        fuse_into<dense>(t, h.d_views, n, w, grid, queue);
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
uint64_t frames_bytes(const struct recon_camera *c)
{
    uint64_t pixels = c ? (uint64_t)c->width * c->height : 0;

    return 2 * BATCH * (sizeof(view) + pixels * 7) + (BATCH + 6) * 4;
}
uint64_t device_bytes(const struct fuse_plan *p, const struct recon_camera *c)
{
    uint32_t y, z, tiles = tiles_along(p->dim, &y, &z);

    return fuse_bytes(p) + frames_bytes(c) + tiles * sizeof(tile);
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
    copier helpers(ctx->threads / 4);
    fusing x = {};
    char why[200];
    int rc;

    if (cuda_fuse_elsewhere(ctx, frames, params, why, sizeof(why)))
        return ctx->host->fail(ctx, 64, nullptr, "layout", "tsdf.fuse of module 'cuda': %s", why);
    if (fuse_plan(ctx, frames, params, &plan) ||
        fuse_fits(ctx, &plan, device_bytes(&plan, &frames->camera), cuda_memory_free(ctx), "device") ||
        take_volume(ctx, plan, v))
        return -1;
    x.helpers = &helpers;
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
    x.t.reach = plan.reach;
    x.t.most = plan.weight_max > 0 ? (float)plan.weight_max : INFINITY;
    rc = x.start_up() || x.all() || x.count_updates() || take_color(ctx, x.t, v, plan.voxels) ? -1 : 0;
    x.end();
    fuse_cost(&plan, plan.voxels, &x.counts, cost);
    cost->device_bytes = device_bytes(&plan, &frames->camera);
    cost->host_bytes = host_bytes(&frames->camera);
    return rc;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cuda_tsdf_fuse, &cuda_device);
}

} // namespace

int cuda_fuse_elsewhere(struct recon_ctx *ctx, const struct recon_frames *frames, const struct recon_value *params, char *why, size_t size)
{
    return fuse_elsewhere(ctx, frames, params, frames_bytes(frames ? &frames->camera : nullptr), cuda_memory_free(ctx), why, size);
}

const struct recon_kernel cuda_tsdf_fuse = { RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                             fuse_params,      bound,     run,      selftest, fuse_shape };
