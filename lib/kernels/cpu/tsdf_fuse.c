/* TSDF fusion. Frames are taken from the source in batches of FUSE_BATCH, copied and measured; then every bar of blocks goes
 * through the frames of the batch in their order (fuse_block.c), so that a volume is the same whatever the number of
 * threads. Blocks that a frame cannot see, and those behind all that it sees, are passed over (fuse_sight.c).
 *
 * A volume in blocks takes two turns: the first finds the blocks near a surface (fuse_near.c), the second fuses all frames into
 * them, so that each holds what the dense volume would. Between the turns the frames stay in memory, or are decoded again. */
#include "config.h"
#include "kernels/cpu/fuse_cpu.h"

#include <math.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define KEEP_MOST ((uint64_t)2 << 30) /* bytes of frames that stay in memory between two turns, or a quarter of what is free */

struct batch {
    struct fuse_frame frame[FUSE_BATCH];
    int n;
    void *memory;
};

/* What a run works with. */
struct fusing {
    struct recon_ctx *ctx;
    struct recon_frames *frames;
    struct recon_cost *cost;
    struct fuse_plan plan;
    struct fuse_counts counts;
    struct batch *batch; /* one, or all of the frames */
    size_t batches;
    bool keep;
    struct blocks grid;
    struct fuse_target t;
    void *scratch; /* fuse_bar_bytes() a thread */
};

static uint64_t scratch_bytes(const struct fusing *x)
{
    return (uint64_t)x->ctx->threads * fuse_bar_bytes();
}

static int thread_number(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* ---- frames ---- */

static uint64_t frame_bytes(const struct fuse_plan *p, const struct recon_camera *c, bool copy)
{
    return fuse_frame_bytes(c->width, c->height, copy, p->color);
}

static uint64_t batches_bytes(const struct fuse_plan *p, const struct recon_frames *f, bool keep)
{
    uint64_t n = keep ? (f->count + FUSE_BATCH) / FUSE_BATCH : 1; /* of those kept one more may be begun */

    return n * FUSE_BATCH * frame_bytes(p, &f->camera, !f->lasting);
}

static bool keeps(const struct fuse_plan *p, const struct recon_frames *f, uint64_t free_bytes)
{
    uint64_t most = free_bytes / 4 < KEEP_MOST ? free_bytes / 4 : KEEP_MOST;

    return f->count < 1u << 20 && batches_bytes(p, f, true) <= most;
}

static struct batch *add_batch(struct fusing *x)
{
    const struct recon_camera *c = &x->frames->camera;
    bool copy = !x->frames->lasting;
    uint64_t each = frame_bytes(&x->plan, c, copy);
    struct batch *b;

    x->batch = xrealloc(x->batch, (x->batches + 1) * sizeof(*b));
    b = &x->batch[x->batches];
    b->n = 0;
    b->memory = cpu_take_large(x->ctx, FUSE_BATCH * each);
    if (!b->memory)
        return NULL;
    x->batches++;
    for (int i = 0; i < FUSE_BATCH; i++)
        fuse_frame_place(&b->frame[i], (char *)b->memory + (uint64_t)i * each, c->width, c->height, copy, x->plan.color);
    return b;
}

/* Takes the next frames into the batch: 1: there may be more, 0: these were the last, -1. */
static int fill_batch(struct fusing *x, struct batch *b)
{
    const struct recon_camera *c = &x->frames->camera;
    struct recon_ctx *ctx = x->ctx;

    for (b->n = 0; b->n < FUSE_BATCH; b->n++) {
        struct fuse_frame *to = &b->frame[b->n];
        struct recon_frame f;
        double t0 = clock_ms();
        int rc = x->frames->next(x->frames, &f);

        x->cost->wait_ms += clock_ms() - t0;
        if (rc <= 0)
            return rc;
        if (ctx->host->cancelled(ctx))
            return ctx->host->fail(ctx, CODE_DEADLINE, NULL, f.name, "stopped at frame '%s'", f.name);
        fuse_frame_take(to, f.depth, x->plan.color ? f.color : NULL, c->width, c->height);
        fuse_view(&x->plan, c, f.pose, (double)to->farthest, &to->v);
        x->counts.frames++;
        x->counts.depth_pixels += to->depths;
    }
    return 1;
}

/* Each batch of the source in turn, to what(); they stay in memory where x->keep says so. */
static int each_batch(struct fusing *x, int (*what)(struct fusing *, const struct batch *))
{
    int more;

    do {
        struct batch *b = x->batches && !x->keep ? x->batch : add_batch(x);

        if (!b || (more = fill_batch(x, b)) < 0 || (b->n && what(x, b)))
            return -1;
    } while (more);
    return 0;
}

/* ---- fusing ---- */

static uint64_t color_bytes(const struct fusing *x)
{
    const uint32_t *d = x->plan.dim;

    return (x->t.blocks ? x->t.samples : fuse_parts(d[0], FUSE_SIDE) * fuse_parts(d[1], FUSE_SIDE) * fuse_parts(d[2], FUSE_ALONG) * (FUSE_COLORS / 3)) * 6;
}

static int take_color(struct fusing *x, const struct batch *b)
{
    bool color = false;

    for (int i = 0; i < b->n; i++)
        color = color || b->frame[i].has_color;
    if (!color || x->t.color)
        return 0;
    if (!(x->t.color = cpu_take_large(x->ctx, color_bytes(x))))
        return -1;
    memset(x->t.color, 0, color_bytes(x));
    return 0;
}

static int fuse_batch(struct fusing *x, const struct batch *b)
{
    const int64_t size[3] = { 2 * FUSE_SIDE, 2 * FUSE_SIDE, FUSE_ALONG * FUSE_BAR };
    const struct fuse_target *t = &x->t;
    uint64_t updates = 0;
    int64_t n[3];

    if (take_color(x, b))
        return -1;
    for (int a = 0; a < 3; a++) /* the volume's end, or that of its blocks */
        n[a] = (t->blocks ? t->blocks->n[a] * FUSE_BLOCK + size[a] - 1 : t->plan->dim[a] + size[a] - 1) / size[a];
    if (!x->scratch && !(x->scratch = cpu_take_large(x->ctx, scratch_bytes(x))))
        return -1;
#pragma omp parallel for num_threads(x->ctx->threads) schedule(dynamic, 1) reduction(+ : updates)
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        int64_t at[3] = { i / (n[1] * n[2]) * size[0], i / n[2] % n[1] * size[1], i % n[2] * size[2] };
        int64_t left = (t->plan->dim[2] - at[2] + FUSE_ALONG - 1) / FUSE_ALONG;

        updates += fuse_bar(t, b->frame, b->n, at, left < FUSE_BAR ? (int)left : FUSE_BAR,
                            (char *)x->scratch + (uint64_t)thread_number() * fuse_bar_bytes());
    }
    x->counts.updates += updates;
    x->t.fresh = false;
    return 0;
}

/* ---- blocks ---- */

static int mark_batch(struct fusing *x, const struct batch *b)
{
    int64_t rows = (b->frame[0].tiles.height[0] + 1) / 2;

#pragma omp parallel for num_threads(x->ctx->threads) schedule(dynamic, 4)
    for (int64_t i = 0; i < rows * b->n; i++)
        fuse_near(&x->plan, &b->frame[i / rows], (uint32_t)(i % rows), &x->grid);
    return 0;
}

/* Finds the blocks: the first turn over the frames. */
static int survey(struct fusing *x)
{
    if (blocks_take(x->ctx, x->plan.dim, FUSE_BLOCK, &x->grid) || each_batch(x, mark_batch))
        return -1;
    blocks_rank(&x->grid);
    return 0;
}

static uint64_t found(const struct fusing *x)
{
    return x->grid.before[x->grid.words];
}

/* ---- the volume ---- */

/* The samples are filled by the first batch. */
static int take_volume(struct fusing *x, struct recon_volume *v)
{
    const struct fuse_plan *p = &x->plan;
    uint64_t n = x->t.samples;

    memcpy(v->dim, p->dim, sizeof(v->dim));
    memcpy(v->origin, p->origin, sizeof(v->origin));
    v->voxel = p->voxel;
    v->truncation = p->truncation;
    v->beyond = 1;
    if (x->t.blocks && blocks_list(x->ctx, &x->grid, v))
        return -1;
    x->t.tsdf = v->tsdf = cpu_take_large(x->ctx, n * 4);
    x->t.weight = v->weight = v->tsdf ? cpu_take_large(x->ctx, n * 4) : NULL;
    return v->weight ? 0 : -1;
}

/* Row (x, y) of a box of parts: n samples from part `part` on. */
static void finish_row(const uint16_t *part, uint32_t x, uint32_t y, uint32_t n, uint8_t *to)
{
    const uint16_t *from = part + 3 * FUSE_ALONG * (x % FUSE_SIDE * FUSE_SIDE + y % FUSE_SIDE);
    uint8_t mean[3 * FUSE_ALONG];

    for (uint32_t i = 0; i < 3 * FUSE_ALONG; i++) {
        uint32_t m = (from[i] + 128u) >> 8;

        mean[i] = (uint8_t)(m > 255 ? 255 : m);
    }
    for (uint32_t i = 0; i < n; i++) {
        to[3 * i] = mean[i];
        to[3 * i + 1] = mean[FUSE_ALONG + i];
        to[3 * i + 2] = mean[2 * FUSE_ALONG + i];
    }
}

static void finish_dense(const struct fusing *x, uint32_t i, uint8_t *rgb)
{
    const uint32_t *d = x->plan.dim;
    uint64_t ny = fuse_parts(d[1], FUSE_SIDE), nz = fuse_parts(d[2], FUSE_ALONG);

    for (uint32_t j = 0; j < d[1]; j++)
        for (uint32_t k = 0; k < d[2]; k += FUSE_ALONG)
            finish_row(x->t.color + ((i / FUSE_SIDE * ny + j / FUSE_SIDE) * nz + k / FUSE_ALONG) * FUSE_COLORS, i, j,
                       d[2] - k < FUSE_ALONG ? d[2] - k : FUSE_ALONG, rgb + 3 * (((uint64_t)i * d[1] + j) * d[2] + k));
}

static void finish_block(const struct fusing *x, uint64_t b, uint8_t *rgb)
{
    for (uint32_t i = 0; i < FUSE_BLOCK; i++)
        for (uint32_t j = 0; j < FUSE_BLOCK; j++)
            finish_row(x->t.color + (4 * b + i / FUSE_SIDE * 2 + j / FUSE_SIDE) * FUSE_COLORS, i, j, FUSE_BLOCK,
                       rgb + 3 * (((b * FUSE_BLOCK + i) * FUSE_BLOCK + j) * FUSE_BLOCK));
}

static int finish_color(struct fusing *x, struct recon_volume *v)
{
    uint64_t n = x->t.blocks ? v->blocks : v->dim[0];

    if (!x->t.color)
        return 0;
    if (!(v->rgb = cpu_take_large(x->ctx, x->t.samples * 3)))
        return -1;
#pragma omp parallel for num_threads(x->ctx->threads) schedule(static)
    for (uint64_t i = 0; i < n; i++) {
        if (x->t.blocks)
            finish_block(x, i, v->rgb);
        else
            finish_dense(x, (uint32_t)i, v->rgb);
    }
    return 0;
}

/* ---- the kernel ---- */

/* Bytes beyond the inputs once it is known what is fused into. */
static uint64_t bytes_of(const struct fusing *x)
{
    uint64_t padding = x->plan.color ? color_bytes(x) - 6 * x->t.samples : 0;
    uint64_t volume = x->t.blocks ? fuse_block_bytes(&x->plan, found(x)) : fuse_bytes(&x->plan) + blocks_bytes(x->plan.dim, x->grid.side);

    return volume + padding + scratch_bytes(x) + batches_bytes(&x->plan, x->frames, x->keep);
}

static void release(struct fusing *x)
{
    for (size_t i = 0; i < x->batches; i++)
        x->ctx->host->free(x->ctx, x->batch[i].memory);
    free(x->batch);
    blocks_release(x->ctx, &x->grid);
    x->ctx->host->free(x->ctx, x->t.color);
    x->ctx->host->free(x->ctx, x->scratch);
}

/* Which form, and whether the frames stay. */
static void choose(struct fusing *x, uint64_t free_bytes)
{
    uint64_t besides[] = { batches_bytes(&x->plan, x->frames, false), batches_bytes(&x->plan, x->frames, x->keep) };
    struct fuse_form form = fuse_choose(&x->plan, found(x), besides, free_bytes);

    x->keep = x->keep && form.keep;
    while (!x->keep && x->batches > 1)
        x->ctx->host->free(x->ctx, x->batch[--x->batches].memory);
    if (!form.blocks)
        return;
    x->t.blocks = &x->grid;
    x->t.samples = found(x) * FUSE_BLOCK * FUSE_BLOCK * FUSE_BLOCK;
}

/* Which form; and the first turn, where it takes one. */
static int prepare(struct fusing *x)
{
    uint64_t free_bytes = plan_memory_free(), besides = batches_bytes(&x->plan, x->frames, false);

    x->t.plan = &x->plan;
    x->t.fresh = true;
    x->t.samples = x->plan.voxels;
    if (!fuse_wants_survey(&x->plan, besides, free_bytes))
        return fuse_fits(x->ctx, &x->plan, fuse_bytes(&x->plan) + besides, free_bytes, "host");
    x->keep = x->keep && keeps(&x->plan, x->frames, free_bytes);
    if (survey(x))
        return -1;
    choose(x, free_bytes);
    besides = batches_bytes(&x->plan, x->frames, x->keep);
    return x->t.blocks ? fuse_blocks_fit(x->ctx, found(x), fuse_block_bytes(&x->plan, found(x)) + besides, free_bytes, "host") : 0;
}

/* The frames into the volume: from memory, or from the source. */
static int fuse_all(struct fusing *x)
{
    if (x->grid.side && x->keep) {
        for (size_t i = 0; i < x->batches; i++)
            if (x->batch[i].n && fuse_batch(x, &x->batch[i]))
                return -1;
        return 0;
    }
    if (x->grid.side && x->frames->rewind(x->frames))
        return -1;
    x->counts = (struct fuse_counts){ 0 };
    return each_batch(x, fuse_batch);
}

/* How many samples are fused into, and what that takes: the first turn is made, where the run makes it. */
static int count(struct fusing *x)
{
    const struct recon_frames *f = x->frames;
    uint64_t free_bytes = plan_memory_free(), besides = batches_bytes(&x->plan, f, false);

    x->t.samples = x->plan.voxels;
    if (!f->next || !f->rewind || !fuse_wants_survey(&x->plan, besides, free_bytes))
        return 0;
    if (survey(x))
        return -1;
    x->keep = keeps(&x->plan, f, free_bytes);
    choose(x, free_bytes);
    return f->rewind(x->frames);
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_frames *f = in ? in[0] : NULL;
    struct recon_cost unused = { 0 };
    struct fusing x = { .ctx = ctx, .frames = (struct recon_frames *)(uintptr_t)f, .cost = &unused };
    struct fuse_counts guess = { 0 };
    int rc;

    if (!fuse_known(f, params))
        return 0;
    if (fuse_plan(ctx, f, params, &x.plan))
        return -1;
    fuse_guess(&x.plan, f, cost);
    cost->host_bytes = fuse_bytes(&x.plan);
    if (!f)
        return 0;
    if ((rc = count(&x)) == 0)
        cost->host_bytes = bytes_of(&x);
    if (rc == 0 && x.t.blocks) { /* a frame updates a fourth of what is near some surface */
        guess.updates = x.t.samples / 4 * f->count;
        fuse_cost(&x.plan, x.t.samples, &guess, cost);
    }
    release(&x);
    return rc;
}

static int shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out)
{
    const struct recon_frames *f = in ? in[0] : NULL;
    struct recon_cost unused = { 0 };
    struct fusing x = { .ctx = ctx, .frames = (struct recon_frames *)(uintptr_t)f, .cost = &unused };
    struct recon_volume *v = out[0];
    int rc;

    if (fuse_shape(ctx, in, params, out))
        return -1;
    if (!f || !v->dim[0] || params[FUSE_LAYOUT].i == FUSE_DENSE)
        return 0;
    rc = fuse_plan(ctx, f, params, &x.plan) || count(&x) ? -1 : 0;
    if (rc == 0 && x.t.blocks) {
        v->side = FUSE_BLOCK;
        v->blocks = found(&x);
        v->beyond = 1;
    }
    release(&x);
    return rc;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct fusing x = { .ctx = ctx, .frames = (struct recon_frames *)(uintptr_t)in[0], .cost = cost, .keep = true };
    struct recon_volume *v = out[0];
    int rc;

    if (fuse_plan(ctx, x.frames, params, &x.plan))
        return -1;
    rc = prepare(&x) || (x.t.samples && take_volume(&x, v)) || fuse_all(&x) || fuse_verdict(ctx, x.frames, &x.counts) ? -1 : 0;
    cost->host_bytes = rc ? 0 : bytes_of(&x);
    for (size_t i = 0; i < x.batches; i++) {
        ctx->host->free(ctx, x.batch[i].memory);
        x.batch[i].memory = NULL;
    }
    if (rc == 0)
        rc = finish_color(&x, v);
    fuse_cost(&x.plan, x.t.samples, &x.counts, cost);
    release(&x);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fuse(ctx, &cpu_tsdf_fuse, NULL);
}

const struct recon_kernel cpu_tsdf_fuse = {RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in,  fuse_out,
                                           fuse_params,      bound,     run,      selftest, shape};
