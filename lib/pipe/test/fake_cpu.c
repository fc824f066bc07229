/* A fake "cpu" module: small kernels that do what a test asks of them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fake_rows.h"

/* ---- fake.points: n points whose coordinates are start, start + 1, ... ---- */

enum { N, START, BOX, MODE, LABEL, FLAG };
static const struct recon_param make_params[] = {
    { "n", "", "how many", "3", RECON_INT, 1, 1000000, 0 },
    { "start", "m", "first coordinate", "1", RECON_FLOAT, -100, 100, 0 },
    { "box", "m", "not used", "", RECON_VEC, -10, 10, 0 },
    { "mode", "", "not used", "left", RECON_CHOICE, 0, 0, "left|right" },
    { "label", "", "not used", "", RECON_TEXT, 0, 0, 0 },
    { "flag", "", "not used", "false", RECON_BOOL, 0, 0, 0 },
    { 0 },
};

static int make_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                      struct recon_cost *cost)
{
    (void)ctx;
    (void)in;
    cost->host_bytes = (uint64_t)p[N].i * 12;
    cost->moved_bytes = cost->host_bytes;
    return 0;
}

static int make_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    (void)ctx;
    (void)in;
    ((struct recon_points *)out[0])->n = (uint64_t)p[N].i;
    return 0;
}

static int make_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                    struct recon_cost *cost)
{
    struct recon_points *points = out[0];

    points->n = (uint64_t)p[N].i;
    points->xyz = ctx->host->alloc(ctx, points->n * 12);
    if (!points->xyz)
        return -1;
    for (uint64_t i = 0; i < points->n * 3; i++)
        points->xyz[i] = (float)(p[START].f + (double)i);
    return make_bound(ctx, in, p, cost);
}

/* ---- fake.sum: the sum of all coordinates into a file ---- */

static const struct recon_port sum_in[] = { { "points", RECON_POINTS, RECON_PORT_HOST, "" }, { 0 } };
static const struct recon_param sum_params[] = {
    { "file", "", "name below the output folder", "sum.txt", RECON_TEXT, 0, 0, 0 },
    { 0 },
};

static int sum_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                   struct recon_cost *cost)
{
    const struct recon_points *points = in[0];
    double sum = 0;
    char path[4096];
    FILE *f;

    (void)out;
    if (points->place != RECON_HOST)
        return ctx->host->fail(ctx, 70, NULL, NULL, "the points are not on the host");
    for (uint64_t i = 0; i < points->n * 3; i++)
        sum += (double)points->xyz[i];
    snprintf(path, sizeof(path), "%s/%s", ctx->out, p[0].s);
    f = fopen(path, "w");
    if (!f)
        return ctx->host->fail(ctx, 73, NULL, NULL, "cannot create '%s'", path);
    fprintf(f, "%.1f\n", sum);
    if (fclose(f))
        return ctx->host->fail(ctx, 74, NULL, NULL, "cannot write '%s'", path);
    ctx->host->output(ctx, path);
    cost->items = points->n;
    return 0;
}

/* ---- fake.double: all coordinates twice as large; an optional mesh is not looked at ---- */

static const struct recon_port double_in[] = { { "points", RECON_POINTS, 0, "" },
                                               { "mesh", RECON_MESH, RECON_PORT_OPTIONAL, "" },
                                               { 0 } };

static int double_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                      struct recon_cost *cost)
{
    const struct recon_points *from = in[0];
    struct recon_points *to = out[0];

    (void)p;
    (void)cost;
    to->n = from->n;
    to->xyz = ctx->host->alloc(ctx, to->n * 12);
    if (!to->xyz)
        return -1;
    for (uint64_t i = 0; i < to->n * 3; i++)
        to->xyz[i] = 2 * from->xyz[i];
    return 0;
}

/* ---- fake.frames and fake.count: a source, and what pulls it to its end ---- */

static const struct recon_port frames_port[] = { { "frames", RECON_FRAMES, 0, "" }, { 0 } };

static int frames_next(struct recon_frames *self, struct recon_frame *ret)
{
    int *left = self->impl;

    if (*left == 0)
        return 0;
    --*left;
    memset(ret, 0, sizeof(*ret));
    return 1;
}

static int frames_rewind(struct recon_frames *self)
{
    *(int *)self->impl = (int)self->count;
    return 0;
}

static void frames_close(struct recon_frames *self)
{
    free(self->impl);
}

static int frames_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                      struct recon_cost *cost)
{
    struct recon_frames *f = out[0];

    (void)in;
    (void)p;
    (void)cost;
    if (!ctx->dataset)
        return ctx->host->fail(ctx, 64, NULL, NULL, "a dataset is needed: give --dataset");
    if (access(ctx->dataset, F_OK))
        return ctx->host->fail(ctx, 65, NULL, ctx->dataset, "there is no such dataset");
    *f = (struct recon_frames){ .count = 5, .next = frames_next, .rewind = frames_rewind, .close = frames_close };
    f->impl = malloc(sizeof(int));
    return frames_rewind(f);
}

static int count_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                     struct recon_cost *cost)
{
    struct recon_frames *f = (struct recon_frames *)(uintptr_t)in[0];
    struct recon_points *points = out[0];
    struct recon_frame frame;

    (void)p;
    while (f->next(f, &frame) == 1)
        points->n++;
    points->xyz = ctx->host->alloc(ctx, points->n * 12);
    if (!points->xyz)
        return -1;
    memset(points->xyz, 0, points->n * 12);
    points->xyz[0] = (float)points->n;
    cost->wait_ms = 1;
    return 0;
}

/* ---- fake.fault: fails, dies, hangs, sleeps or warns as asked ---- */

static const struct recon_param fault_params[] = {
    { "what", "", "", "fail", RECON_CHOICE, 0, 0, "fail|silent|crash|hang|sleep|warn|memory|leak" },
    { "code", "", "", "65", RECON_INT, 0, 255, 0 },
    { "ms", "ms", "", "0", RECON_INT, 0, 100000, 0 },
    { 0 },
};

static int fault_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                     struct recon_cost *cost)
{
    (void)in;
    (void)out;
    (void)cost;
    switch (p[0].i) {
    case 0: return ctx->host->fail(ctx, (int)p[1].i, "depth-range", "frame-3", "depth 9 is above 4");
    case 1: return -1;
    case 2: abort();
    case 3: for (;;) pause();
    case 4:
        for (int64_t i = 0; i < p[2].i; i += 5) {
            if (ctx->host->cancelled(ctx))
                return ctx->host->fail(ctx, 70, NULL, NULL, "cancelled");
            usleep(5000);
        }
        return 0;
    case 5:
        ctx->host->log(ctx, RECON_WARN, "depth-empty-frame", "frame-4", "no depth in it");
        ctx->host->log(ctx, RECON_NOTE, NULL, NULL, "a note");
        return 0;
    case 6: ctx->host->alloc(ctx, UINT64_MAX / 4); return 0;
    default: return ctx->host->alloc(ctx, 100) ? 0 : -1;
    }
}

static int good_selftest(struct recon_ctx *ctx)
{
    (void)ctx;
    return 0;
}

static int bad_selftest(struct recon_ctx *ctx)
{
    (void)ctx;
    abort();
}

static const struct recon_kernel points_kernel = { FAKE_ABI, "fake.points", "Points that count up", no_ports, points_port,
                                                   make_params, make_bound, make_run, good_selftest, make_shape };
static const struct recon_kernel sum_kernel = { FAKE_ABI, "fake.sum", "Sum of coordinates", sum_in, no_ports, sum_params,
                                                NULL, sum_run, good_selftest, NULL };
static const struct recon_kernel double_kernel = { FAKE_ABI, "fake.double", "Twice as far", double_in, points_port,
                                                   no_params, NULL, double_run, good_selftest, NULL };
static const struct recon_kernel frames_kernel = { FAKE_ABI, "fake.frames", "Five empty frames", no_ports, frames_port,
                                                   no_params, NULL, frames_run, good_selftest, NULL };
static const struct recon_kernel count_kernel = { FAKE_ABI, "fake.count", "Counts frames", frames_port, points_port,
                                                  no_params, NULL, count_run, good_selftest, NULL };
static const struct recon_kernel fault_kernel = { FAKE_ABI, "fake.fault", "Goes wrong", no_ports, no_ports, fault_params,
                                                  NULL, fault_run, bad_selftest, NULL };
static const struct recon_kernel *const kernels[] = { &points_kernel, &sum_kernel,   &double_kernel, &frames_kernel,
                                                      &count_kernel,  &fault_kernel, NULL };
const struct recon_module recon_module = { FAKE_ABI, "cpu", NULL, kernels, NULL };
