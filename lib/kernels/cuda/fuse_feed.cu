#include "fuse_feed.cuh"

#include <cstdlib>
#include <cstring>
#include <ctime>

#define KEEP_MOST ((uint64_t)8 << 30) /* bytes of frames that stay on the device */

namespace {

double now_ms()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

uint64_t slot_bytes(uint64_t pixels)
{
    return (pixels * 7 + 63) / 64 * 64;
}

uint64_t pinned_bytes(uint64_t pixels)
{
    return FEED_SLOTS * slot_bytes(pixels) + 2 * BATCH * sizeof(cuda_frame);
}

uint64_t place_bytes(const struct fuse_plan *p, const struct recon_camera *c)
{
    return BATCH * (sizeof(cuda_frame) + (uint64_t)c->width * c->height * (p->color ? 7 : 4));
}

} // namespace

uint64_t feed_pinned_bytes(const struct recon_camera *c)
{
    return pinned_bytes((uint64_t)c->width * c->height);
}

uint64_t feed_device_bytes(const struct fuse_plan *p, const struct recon_camera *c, uint64_t places)
{
    return places * place_bytes(p, c);
}

uint64_t feed_places(const struct fuse_plan *p, const struct recon_frames *f, uint64_t free_bytes)
{
    uint64_t most = free_bytes / 4 < KEEP_MOST ? free_bytes / 4 : KEEP_MOST, n = (f->count + BATCH - 1) / BATCH;

    return f->count < 1u << 20 && n > 2 && feed_device_bytes(p, &f->camera, n) <= most ? n : 2;
}

int feed_elapsed(struct recon_ctx *ctx, cudaEvent_t from, cudaEvent_t to, double *sum)
{
    float ms = 0;

    if (cuda_ok(ctx, cudaEventSynchronize(to), "fusing") ||
        cuda_ok(ctx, cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime"))
        return -1;
    *sum += ms;
    return 0;
}

fuse_feed::fuse_feed(struct recon_ctx *c, struct recon_frames *f, const struct fuse_plan *p, struct recon_cost *k)
    : ctx(c), frames(f), plan(p), cost(k), helpers(c->threads / 4), pixels((uint64_t)f->camera.width * f->camera.height)
{
}

fuse_feed::~fuse_feed()
{
    if (copies) {
        cudaStreamSynchronize(copies);
        cudaStreamSynchronize(cuda_stream(ctx));
        cudaStreamDestroy(copies);
    }
    for (feed_slot &s : slots)
        for (cudaEvent_t e : s.event)
            if (e)
                cudaEventDestroy(e);
    for (feed_turn &h : turns)
        for (cudaEvent_t e : h.event)
            if (e)
                cudaEventDestroy(e);
    free(places);
    cudaGetLastError();
}

int fuse_feed::make_slot(feed_slot &s, char *pinned)
{
    s.depth = (float *)pinned;
    s.color = (uint8_t *)(s.depth + pixels);
    for (cudaEvent_t &e : s.event)
        if (cuda_ok(ctx, cudaEventCreate(&e), "cudaEventCreate"))
            return -1;
    return 0;
}

int fuse_feed::make_turn(feed_turn &h, char *pinned)
{
    h.frames = (cuda_frame *)pinned;
    for (cudaEvent_t &e : h.event)
        if (cuda_ok(ctx, cudaEventCreate(&e), "cudaEventCreate"))
            return -1;
    return 0;
}

int fuse_feed::begin(Scratch &scratch, uint64_t n)
{
    uint64_t each = BATCH * pixels;
    cuda_frame *views = scratch.take<cuda_frame>(n * BATCH);
    float *depth = views ? scratch.take<float>(n * each) : nullptr;
    uint8_t *color = depth && plan->color ? scratch.take<uint8_t>(n * each * 3) : nullptr;
    char *pinned = depth && (color || !plan->color) ? (char *)cuda_pinned(ctx, pinned_bytes(pixels)) : nullptr;

    if (!pinned || cuda_ok(ctx, cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), "cudaStreamCreate"))
        return -1;
    if (!(places = (cuda_batch *)calloc(n, sizeof(*places))))
        return ctx->host->fail(ctx, 71, nullptr, nullptr, "no host memory left");
    for (n_places = 0; n_places < n; n_places++)
        places[n_places] = { views + n_places * BATCH, depth + n_places * each, color ? color + n_places * each * 3 : nullptr, 0, false };
    for (int i = 0; i < FEED_SLOTS; i++)
        if (make_slot(slots[i], pinned + i * slot_bytes(pixels)))
            return -1;
    for (int i = 0; i < 2; i++)
        if (make_turn(turns[i], pinned + FEED_SLOTS * slot_bytes(pixels) + i * BATCH * sizeof(cuda_frame)))
            return -1;
    /* the device memory was taken in order of the main queue */
    return cuda_ok(ctx, cudaEventRecord(turns[0].event[0], cuda_stream(ctx)), "cudaEventRecord") ||
                   cuda_ok(ctx, cudaStreamWaitEvent(copies, turns[0].event[0], 0), "cudaStreamWaitEvent")
               ? -1 : 0;
}

/* Waits until what the slot held is on the device. */
int fuse_feed::reuse(feed_slot &s)
{
    bool was = s.used;

    s.used = false;
    return was ? feed_elapsed(ctx, s.event[0], s.event[1], &cost->copy_ms) : 0;
}

/* Waits until the batch of the turn is worked on. */
int fuse_feed::reuse(feed_turn &h)
{
    bool was = h.used;

    h.used = false;
    return was ? feed_elapsed(ctx, h.event[1], h.event[2], &cost->device_ms) : 0;
}

/* Frame n of a batch on its way. */
int fuse_feed::send(feed_turn &h, cuda_batch &b, int n, const struct recon_frame &f)
{
    feed_slot &s = slots[pulled++ % FEED_SLOTS];
    bool color = f.color && plan->color;
    cuda_frame *v = &h.frames[n];

    if (reuse(s))
        return -1;
    memset(v, 0, sizeof(*v));
    fuse_view(plan, &frames->camera, f.pose, 0, &v->v);
    v->depth = b.depth + n * pixels;
    v->color = color ? b.color + n * pixels * 3 : nullptr;
    helpers.copy(s.depth, f.depth, pixels * 4, s.color, f.color, color ? pixels * 3 : 0);
    if (cuda_ok(ctx, cudaEventRecord(s.event[0], copies), "cudaEventRecord") ||
        cuda_ok(ctx, cudaMemcpyAsync(b.depth + n * pixels, s.depth, pixels * 4, cudaMemcpyHostToDevice, copies), "upload") ||
        (color && cuda_ok(ctx, cudaMemcpyAsync(b.color + n * pixels * 3, s.color, pixels * 3, cudaMemcpyHostToDevice, copies), "upload")) ||
        cuda_ok(ctx, cudaEventRecord(s.event[1], copies), "cudaEventRecord"))
        return -1;
    s.used = true;
    cost->copied_bytes += pixels * (color ? 7 : 4);
    return 0;
}

/* Up to BATCH frames into the place; 0 frames at the end of the source. */
int fuse_feed::pull(feed_turn &h, cuda_batch &b, int *ret_n)
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
        if (send(h, b, n++, f))
            return -1;
        taken++;
    }
    *ret_n = n;
    return 0;
}

int fuse_feed::send_views(feed_turn &h, cuda_batch &b)
{
    uint64_t bytes = b.n * sizeof(cuda_frame);

    b.has_color = false;
    for (int i = 0; i < b.n; i++)
        b.has_color = b.has_color || h.frames[i].color;
    cost->copied_bytes += bytes;
    return cuda_ok(ctx, cudaMemcpyAsync(b.frames, h.frames, bytes, cudaMemcpyHostToDevice, copies), "upload") ||
                   cuda_ok(ctx, cudaEventRecord(h.event[0], copies), "cudaEventRecord") ||
                   cuda_ok(ctx, cudaStreamWaitEvent(cuda_stream(ctx), h.event[0], 0), "cudaStreamWaitEvent")
               ? -1 : 0;
}

/* The place's batch before the last turn's is worked on when a turn comes again, as there are two places or more. */
int fuse_feed::next(cuda_batch **ret)
{
    feed_turn &h = turns[batches & 1];
    cuda_batch &b = places[batches % n_places];
    int n = 0;

    *ret = nullptr;
    if (reuse(h) || (!held && pull(h, b, &n)))
        return -1;
    if (held ? batches == held : n == 0)
        return 0;
    if (!held) {
        b.n = n;
        if (send_views(h, b))
            return -1;
    }
    batches++;
    now = &h;
    *ret = &b;
    return cuda_ok(ctx, cudaEventRecord(h.event[1], cuda_stream(ctx)), "cudaEventRecord");
}

int fuse_feed::launched()
{
    if (cuda_ok(ctx, cudaEventRecord(now->event[2], cuda_stream(ctx)), "cudaEventRecord"))
        return -1;
    now->used = true;
    return 0;
}

int fuse_feed::finish()
{
    int rc = 0;

    for (feed_turn &h : turns)
        rc = rc || reuse(h);
    for (feed_slot &s : slots)
        rc = rc || reuse(s);
    return rc ? -1 : 0;
}

int fuse_feed::again()
{
    held = batches <= n_places ? batches : 0;
    batches = 0;
    if (held)
        return 0;
    taken = 0;
    return frames->rewind(frames);
}
