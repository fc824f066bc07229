/* TSDF fusion. Frames are taken from the source in batches of FUSE_BATCH, copied and measured; then every bar of blocks goes
 * through the frames of the batch in their order (fuse_block.c), so that a volume is the same whatever the number of
 * threads. Blocks that a frame cannot see, and those behind all that it sees, are passed over (fuse_sight.c). */
#include "config.h"
#include "kernels/cpu/fuse_cpu.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

struct batch {
    struct fuse_frame frame[FUSE_BATCH];
    int n;
    void *memory;
};

static uint64_t batch_bytes(const struct fuse_plan *p, const struct recon_camera *c)
{
    return FUSE_BATCH * fuse_frame_bytes(c->width, c->height, p->color);
}

static int take_batch(struct recon_ctx *ctx, const struct fuse_plan *p, const struct recon_camera *c, struct batch *b)
{
    uint64_t each = fuse_frame_bytes(c->width, c->height, p->color);

    b->memory = ctx->host->alloc(ctx, FUSE_BATCH * each);
    if (!b->memory)
        return -1;
    for (int i = 0; i < FUSE_BATCH; i++)
        fuse_frame_place(&b->frame[i], (char *)b->memory + (uint64_t)i * each, c->width, c->height, p->color);
    return 0;
}

/* Takes the next frames into the batch: 1: there may be more, 0: these were the last, -1. */
static int fill_batch(struct recon_ctx *ctx, const struct fuse_plan *p, struct recon_frames *frames, struct batch *b,
                      struct fuse_counts *n, struct recon_cost *cost)
{
    size_t pixels = (size_t)frames->camera.width * frames->camera.height;

    for (b->n = 0; b->n < FUSE_BATCH; b->n++) {
        struct fuse_frame *to = &b->frame[b->n];
        struct recon_frame f;
        double t0 = clock_ms();
        int rc = frames->next(frames, &f);

        cost->wait_ms += clock_ms() - t0;
        if (rc <= 0)
            return rc;
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, CODE_DEADLINE, NULL, f.name, "stopped at frame '%s'", f.name);
        fuse_frame_take(to, f.depth, frames->camera.width, frames->camera.height);
        fuse_view(p, &frames->camera, f.pose, to->farthest, &to->v);
        n->frames++;
        n->depth_pixels += to->depths;
        to->has_color = f.color && p->color;
        if (to->has_color)
            memcpy(to->color, f.color, pixels * 3);
    }
    return 1;
}

static int take_color(struct recon_ctx *ctx, const struct batch *b, struct fuse_target *t)
{
    bool color = false;

    for (int i = 0; i < b->n; i++)
        color = color || b->frame[i].has_color;
    if (!color || t->color)
        return 0;
    if (!(t->color = ctx->host->alloc(ctx, t->plan->voxels * 6)))
        return -1;
    memset(t->color, 0, t->plan->voxels * 6);
    return 0;
}

static uint64_t fuse_batch(struct recon_ctx *ctx, const struct fuse_target *t, const struct batch *b)
{
    const int64_t size[3] = { FUSE_SIDE, FUSE_SIDE, FUSE_ALONG * FUSE_BAR };
    int64_t n[3];
    uint64_t updates = 0;

    for (int a = 0; a < 3; a++)
        n[a] = (t->plan->dim[a] + size[a] - 1) / size[a];
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 1) reduction(+ : updates)
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        int64_t at[3] = { i / (n[1] * n[2]) * size[0], i / n[2] % n[1] * size[1], i % n[2] * size[2] };
        int64_t left = (t->plan->dim[2] - at[2] + FUSE_ALONG - 1) / FUSE_ALONG;

        updates += fuse_bar(t, b->frame, b->n, at, left < FUSE_BAR ? (int)left : FUSE_BAR);
    }
    return updates;
}

static int fuse_all(struct recon_ctx *ctx, struct recon_frames *frames, struct fuse_target *t, struct batch *b,
                    struct fuse_counts *n, struct recon_cost *cost)
{
    int more;

    do {
        more = fill_batch(ctx, t->plan, frames, b, n, cost);
        if (more < 0 || take_color(ctx, b, t))
            return -1;
        if (b->n == 0)
            return 0;
        n->updates += fuse_batch(ctx, t, b);
        t->fresh = false;
    } while (more);
    return 0;
}

/* Pages of two megabytes where the system gives them. */
static float *take_samples(struct recon_ctx *ctx, uint64_t n)
{
    const uintptr_t page = 4096;
    void *p = ctx->host->alloc(ctx, n * 4);

    if (p && n * 4 >= 4u << 20)
        (void)madvise((void *)(((uintptr_t)p + page - 1) & ~(page - 1)), n * 4 - page, MADV_HUGEPAGE);
    return p;
}

/* The samples are filled by the first batch. */
static int take_volume(struct recon_ctx *ctx, const struct fuse_plan *p, struct recon_volume *v)
{
    v->tsdf = take_samples(ctx, p->voxels);
    v->weight = v->tsdf ? take_samples(ctx, p->voxels) : NULL;
    if (!v->weight)
        return -1;
    memcpy(v->dim, p->dim, sizeof(v->dim));
    memcpy(v->origin, p->origin, sizeof(v->origin));
    v->voxel = p->voxel;
    v->truncation = p->truncation;
    return 0;
}

static int finish_color(struct recon_ctx *ctx, const struct fuse_target *t, struct recon_volume *v)
{
    uint64_t n = t->plan->voxels * 3;

    if (!t->color)
        return 0;
    if (!(v->rgb = ctx->host->alloc(ctx, n)))
        return -1;
#pragma omp parallel for num_threads(ctx->threads) schedule(static)
    for (uint64_t i = 0; i < n; i++)
        v->rgb[i] = (uint8_t)((t->color[i] + 128) >> 8 > 255 ? 255 : (t->color[i] + 128) >> 8);
    return 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_frames *f = in ? in[0] : NULL;
    struct fuse_plan p;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &p))
        return -1;
    fuse_guess(&p, f, cost);
    cost->host_bytes = fuse_bytes(&p) + (f ? batch_bytes(&p, &f->camera) : 0);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct recon_frames *frames = (struct recon_frames *)(uintptr_t)in[0];
    struct recon_volume *v = out[0];
    struct fuse_counts counts = { 0 };
    struct fuse_plan plan;
    struct fuse_target t = { .plan = &plan, .fresh = true };
    struct batch batch = { .n = 0 };
    uint64_t bytes;
    int rc;

    if (fuse_plan(ctx, frames, params, &plan))
        return -1;
    bytes = fuse_bytes(&plan) + batch_bytes(&plan, &frames->camera);
    if (plan_volume_fits(ctx, plan.dim, bytes, plan_memory_free(), "host"))
        return -1;
    rc = take_batch(ctx, &plan, &frames->camera, &batch) || take_volume(ctx, &plan, v) ? -1 : 0;
    t.tsdf = v->tsdf;
    t.weight = v->weight;
    if (rc == 0)
        rc = fuse_all(ctx, frames, &t, &batch, &counts, cost);
    ctx->host->free(ctx, batch.memory);
    if (rc == 0)
        rc = fuse_verdict(ctx, frames, &counts);
    if (rc == 0)
        rc = finish_color(ctx, &t, v);
    ctx->host->free(ctx, t.color);
    fuse_cost(&plan, &counts, cost);
    cost->host_bytes = bytes;
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cpu_tsdf_fuse, NULL);
}

const struct recon_kernel cpu_tsdf_fuse = {RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                           fuse_params,      bound,     run,      selftest, fuse_shape};
