/* TSDF fusion, voxel by voxel. Frames come in batches (fuse_feed.cuh); a batch on the device is fused while the next arrives:
 *   measure  the farthest depth of each frame of the batch
 *   cull     a warp a tile of voxels, a lane a frame: which frames can see it; tiles that any sees go into a list
 *   fuse     blocks take tiles from the list; each thread holds one voxel in registers over the frames that see it
 * The arithmetic of a voxel is cpu/tsdf_fuse.c's, operation by operation and frame by frame, so that volumes are equal
 * bit by bit (the module is compiled without contraction to fma). Decisions are made in float where its error cannot
 * change them, and in double elsewhere: see doubtful(). Values are always those of double where the frame's weight depends on the
 * distance (nvblox).
 *
 * A volume in blocks takes two turns, as on the CPU: the first marks the blocks near a surface in a grid of bits (fuse_near.cuh),
 * the second fuses all frames into them. Between the turns the frames stay on the device, or are decoded again. */
#include <cstring>
#include "fuse_near.cuh"
#include "fuse_tiles.cuh"

namespace {

/* What a run works with. scratch before feed: the queues are empty when its memory goes back. */
struct fusing {
    struct recon_ctx *ctx;
    struct recon_frames *frames;
    struct recon_cost *cost;
    struct fuse_plan plan;
    Scratch scratch;
    fuse_feed feed;
    volume t = {};
    work w = {};
    struct blocks grid = {}; /* side 0: no first turn */
    uint64_t found = 0, places = 2;
    bool in_blocks = false;
    unsigned resident = 1; /* blocks of threads that run together */
    cudaEvent_t begun[2] = {}; /* around what precedes the first batch that is fused */
    fuse_counts counts = {};

    fusing(struct recon_ctx *c, struct recon_frames *f, const struct fuse_plan &p, struct recon_cost *k)
        : ctx(c), frames(f), cost(k), plan(p), scratch(c), feed(c, f, &plan, k)
    {
    }
    ~fusing()
    {
        for (cudaEvent_t e : begun)
            if (e)
                cudaEventDestroy(e);
    }
    uint64_t samples() const;
    uint64_t besides(uint64_t places) const;
    uint64_t device_bytes() const;
    int survey();
    int choose(uint64_t free_bytes);
    int prepare();
    int count();
    int make_work();
    int take_volume(struct recon_volume *v);
    int fill();
    int take_color();
    int launch(const cuda_batch &b);
    int all();
    int count_updates();
    int finish_colors(struct recon_volume *v);
};

uint32_t tiles_along(const uint32_t dim[3], uint32_t *y, uint32_t *z)
{
    uint64_t n;

    *y = (dim[1] + dense::ROWS - 1) / dense::ROWS;
    *z = (dim[2] + dense::ALONG - 1) / dense::ALONG;
    n = (uint64_t)dim[0] * *y * *z;
    return n > 0x7fffffff ? 0 : (uint32_t)n; /* 0: too many */
}

/* ---- memory ---- */

uint64_t fusing::samples() const
{
    return in_blocks ? found * FUSE_BLOCK * FUSE_BLOCK * FUSE_BLOCK : plan.voxels;
}

/* What the fusion holds on the device besides the volume, its list of blocks and the grid's bits: frames, tiles, counters. */
uint64_t fusing::besides(uint64_t n) const
{
    uint32_t y, z, tiles = tiles_along(plan.dim, &y, &z);

    return feed_device_bytes(&plan, &frames->camera, n) + sizeof(tile) * (in_blocks ? found * FUSE_BLOCK : tiles) + (BATCH + 6) * 4 +
           (grid.side ? cuda_blocks_bytes(&grid) - blocks_bytes(plan.dim, FUSE_BLOCK) : 0);
}

uint64_t fusing::device_bytes() const
{
    return (in_blocks ? fuse_block_bytes(&plan, found) : fuse_bytes(&plan) + blocks_bytes(plan.dim, grid.side)) + besides(places);
}

/* ---- the first turn ---- */

/* Finds the blocks. */
int fusing::survey()
{
    const struct recon_camera *c = &frames->camera;
    cuda_batch *b;

    if (cuda_blocks_take(ctx, scratch, plan.dim, FUSE_BLOCK, &grid) || feed.begin(scratch, places))
        return -1;
    nearing x = { plan, grid, c->width, c->height, (c->width + 2 * FUSE_TILE - 1) / (2 * FUSE_TILE), (c->height + 2 * FUSE_TILE - 1) / (2 * FUSE_TILE) };
    uint64_t groups = (uint64_t)x.across * x.down;

    for (;;) {
        if (feed.next(&b))
            return -1;
        if (!b)
            break;
        uint64_t warps = groups * (unsigned)b->n;

        mark_near<<<blocks_of(warps, NEAR_THREADS / 32), NEAR_THREADS, 0, cuda_stream(ctx)>>>(x, b->frames, b->n);
        if (cuda_launched(ctx, "looking for blocks") || feed.launched())
            return -1;
    }
    return feed.finish() || cuda_blocks_rank(ctx, scratch, &grid) || cuda_blocks_count(ctx, &grid, &found) ? -1 : 0;
}

/* The first turn, and what it decides. */
int fusing::choose(uint64_t free_bytes)
{
    places = feed_places(&plan, frames, free_bytes);
    if (survey())
        return -1;
    const uint64_t held[] = { besides(places), besides(places) }; /* frames in their places stay */

    in_blocks = fuse_choose(&plan, found, held, free_bytes).blocks;
    return 0;
}

/* Which form, and whether it fits; the first turn is made, where it takes one. */
int fusing::prepare()
{
    uint64_t free_bytes = cuda_memory_free(ctx);

    if (!fuse_wants_survey(&plan, besides(2), free_bytes))
        return fuse_fits(ctx, &plan, device_bytes(), free_bytes, "device") || feed.begin(scratch, places) ? -1 : 0;
    if (choose(free_bytes) || (in_blocks && fuse_blocks_fit(ctx, found, device_bytes(), free_bytes, "device")))
        return -1;
    return feed.again();
}

/* What a run will choose, before it: the first turn is made, where the run makes it. */
int fusing::count()
{
    uint64_t free_bytes = cuda_memory_free(ctx);

    if (!frames->next || !frames->rewind || !fuse_wants_survey(&plan, besides(2), free_bytes))
        return 0;
    return choose(free_bytes) || frames->rewind(frames) ? -1 : 0;
}

/* ---- the volume ---- */

int fusing::take_volume(struct recon_volume *v)
{
    uint64_t n = samples();

    v->place = RECON_DEVICE;
    memcpy(v->dim, plan.dim, sizeof(v->dim));
    memcpy(v->origin, plan.origin, sizeof(v->origin));
    v->voxel = plan.voxel;
    v->truncation = plan.truncation;
    v->beyond = 1;
    if (in_blocks && cuda_blocks_list(ctx, &grid, found, v))
        return -1;
    v->tsdf = (float *)cuda_alloc(ctx, n * 4);
    v->weight = v->tsdf ? (float *)cuda_alloc(ctx, n * 4) : nullptr;
    t.tsdf = v->tsdf;
    t.weight = v->weight;
    t.block = v->block;
    memcpy(t.dim, plan.dim, sizeof(plan.dim));
    memcpy(t.origin, plan.origin, sizeof(plan.origin));
    t.voxel = plan.voxel;
    t.truncation = plan.truncation;
    t.reach = plan.reach;
    t.most = plan.weight_max > 0 ? (float)plan.weight_max : INFINITY;
    return v->weight ? 0 : -1;
}

int fusing::make_work()
{
    int sms = 1;
    uint32_t *counters;

    if (in_blocks && found * FUSE_BLOCK <= 0x7fffffff)
        w.tiles = (uint32_t)(found * FUSE_BLOCK);
    else if (!in_blocks)
        w.tiles = tiles_along(plan.dim, &w.tiles_y, &w.tiles_z);
    if (!w.tiles && samples())
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%u x %u x %u voxels are more than one launch covers",
                               plan.dim[0], plan.dim[1], plan.dim[2]);
    w.list = scratch.take<tile>(w.tiles);
    counters = w.list ? scratch.take<uint32_t>(BATCH + 2) : nullptr;
    w.updates = counters ? scratch.take<unsigned long long>(2) : nullptr;
    if (!w.updates || cuda_ok(ctx, cudaMemsetAsync(w.updates, 0, 16, cuda_stream(ctx)), "cudaMemset") ||
        cuda_ok(ctx, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, ctx->device), "cudaDeviceGetAttribute"))
        return -1;
    w.depths = w.updates + 1;
    w.listed = counters;
    w.taken = counters + 1;
    w.farthest = counters + 2;
    resident = (unsigned)sms * RESIDENT;
    return 0;
}

int fusing::fill()
{
    uint64_t n = samples();

    for (cudaEvent_t &e : begun)
        if (cuda_ok(ctx, cudaEventCreate(&e), "cudaEventCreate"))
            return -1;
    if (cuda_ok(ctx, cudaEventRecord(begun[0], cuda_stream(ctx)), "cudaEventRecord") ||
        (n && cuda_ok(ctx, cudaMemsetAsync(t.weight, 0, n * 4, cuda_stream(ctx)), "cudaMemset")))
        return -1;
    if (n)
        fill_one<<<blocks_of(n, 1024), 256, 0, cuda_stream(ctx)>>>(t.tsdf, n);
    return cuda_launched(ctx, "filling the volume") || cuda_ok(ctx, cudaEventRecord(begun[1], cuda_stream(ctx)), "cudaEventRecord") ? -1 : 0;
}

/* ---- fusing ---- */

int fusing::take_color()
{
    t.color = scratch.take<uint16_t>(samples() * 3);
    return t.color ? cuda_ok(ctx, cudaMemsetAsync(t.color, 0, samples() * 6, cuda_stream(ctx)), "cudaMemset") : -1;
}

template <typename F> void fuse_into(const volume &t, const cuda_batch &b, const work &w, unsigned resident, cudaStream_t queue)
{
    cull<F><<<blocks_of(w.tiles, THREADS / 32), THREADS, 0, queue>>>(t, b.frames, b.n, w);
    fuse_tiles<F><<<resident, THREADS, 0, queue>>>(t, b.frames, b.n, w);
}

int fusing::launch(const cuda_batch &b)
{
    cudaStream_t queue = cuda_stream(ctx);
    bool weighted = plan.compat == FUSE_COMPAT_NVBLOX;
    uint32_t pixels = frames->camera.width * frames->camera.height;

    if ((b.has_color && !t.color && samples() && take_color()) || cuda_ok(ctx, cudaMemsetAsync(w.listed, 0, (BATCH + 2) * 4, queue), "cudaMemset"))
        return -1;
    measure<<<(unsigned)b.n * STRIPS, THREADS, 0, queue>>>(b.frames, pixels, w);
    if (!w.tiles) { /* no block was found: the depths are counted, for the refusal */
    } else if (in_blocks && weighted) {
        fuse_into<sparse_weighted>(t, b, w, resident, queue);
    } else if (in_blocks) {
        fuse_into<sparse>(t, b, w, resident, queue);
    } else if (weighted) {
        fuse_into<dense_weighted>(t, b, w, resident, queue);
    } else {
        fuse_into<dense>(t, b, w, resident, queue);
    }
    return cuda_launched(ctx, "fusing");
}

int fusing::all()
{
    cuda_batch *b;

    for (;;) {
        if (feed.next(&b))
            return -1;
        if (!b)
            break;
        if (launch(*b) || feed.launched())
            return -1;
    }
    return feed.finish() || feed_elapsed(ctx, begun[0], begun[1], &cost->device_ms) ? -1 : 0;
}

int fusing::count_updates()
{
    unsigned long long n[2] = { 0, 0 };

    if (cuda_ok(ctx, cudaMemcpyAsync(n, w.updates, 16, cudaMemcpyDeviceToHost, cuda_stream(ctx)), "download") ||
        cuda_ok(ctx, cudaStreamSynchronize(cuda_stream(ctx)), "fusing"))
        return -1;
    counts.frames = feed.taken;
    counts.updates = n[0];
    counts.depth_pixels = n[1];
    return fuse_verdict(ctx, frames, &counts);
}

int fusing::finish_colors(struct recon_volume *v)
{
    uint64_t n = samples() * 3;

    if (!t.color)
        return 0;
    v->rgb = (uint8_t *)cuda_alloc(ctx, n);
    if (!v->rgb)
        return -1;
    finish_color<<<blocks_of(n, 1024), 256, 0, cuda_stream(ctx)>>>(t.color, v->rgb, n);
    return cuda_launched(ctx, "colours of the volume");
}

/* ---- the kernel ---- */

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost)
{
    struct recon_frames *f = in ? (struct recon_frames *)(uintptr_t)in[0] : nullptr;
    struct recon_cost unused = {};
    struct fuse_plan p;
    int rc;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    fuse_guess(&p, f, cost);
    cost->device_bytes = fuse_bytes(&p);
    if (!f)
        return 0;
    fusing x(ctx, f, p, &unused);

    rc = x.count();
    cost->device_bytes = x.device_bytes();
    cost->host_bytes = feed_pinned_bytes(&f->camera);
    if (x.in_blocks) { /* a frame updates a fourth of what is near some surface */
        x.counts.updates = x.samples() / 4 * f->count;
        fuse_cost(&p, x.samples(), &x.counts, cost);
    }
    return rc;
}

int shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out)
{
    struct recon_frames *f = in ? (struct recon_frames *)(uintptr_t)in[0] : nullptr;
    struct recon_volume *v = (struct recon_volume *)out[0];
    struct recon_cost unused = {};
    struct fuse_plan p;
    int rc;

    if (fuse_shape(ctx, in, params, out))
        return -1;
    if (!f || !v->dim[0] || params[FUSE_LAYOUT].i == FUSE_DENSE)
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    fusing x(ctx, f, p, &unused);

    rc = x.count();
    if (rc == 0 && x.in_blocks) {
        v->side = FUSE_BLOCK;
        v->blocks = x.found;
        v->beyond = 1;
    }
    return rc;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out,
        struct recon_cost *cost)
{
    struct recon_frames *frames = (struct recon_frames *)(uintptr_t)in[0];
    struct recon_volume *v = (struct recon_volume *)out[0];
    struct fuse_plan plan;
    int rc;

    if (fuse_plan(ctx, frames, params, &plan))
        return -1;
    fusing x(ctx, frames, plan, cost);

    rc = x.prepare() || (x.samples() && x.take_volume(v)) || x.make_work() || x.fill() || x.all() || x.count_updates() || x.finish_colors(v) ? -1 : 0;
    fuse_cost(&plan, x.samples(), &x.counts, cost);
    cost->device_bytes = x.device_bytes();
    cost->host_bytes = feed_pinned_bytes(&frames->camera);
    return rc;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cuda_tsdf_fuse, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_tsdf_fuse = { RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                             fuse_params,      bound,     run,      selftest, shape };
