#include "config.h"
#include "data/data.h"
#include "kernels/cpu/cpu.h"

#include <stdlib.h>

struct source {
    struct recon_ctx *ctx;
    struct frames_source *frames;
};

static int next(struct recon_frames *self, struct recon_frame *ret)
{
    struct source *s = self->impl;
    struct fault fault = { 0 };
    int rc = frames_next(s->frames, ret, &fault);

    if (rc < 0)
        s->ctx->host->fail(s->ctx, fault.err.code, fault.rule, NULL, "%s", fault.err.text);
    return rc;
}

static int again(struct recon_frames *self)
{
    struct source *s = self->impl;

    frames_rewind(s->frames);
    return 0;
}

static void finish(struct recon_frames *self)
{
    struct source *s = self->impl;

    if (s)
        frames_free(s->frames);
    free(s);
    self->impl = NULL;
}

static void warn(void *self, const char *rule, const char *object, const char *text)
{
    struct recon_ctx *ctx = self;

    ctx->host->log(ctx, RECON_WARN, rule, object, "%s", text);
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    (void)in;
    (void)params;
    /* frames decoded ahead, a Kinect's size assumed: 7 bytes a pixel, and as much for the files being decoded
     */
    cost->host_bytes = (uint64_t)(2 * ctx->threads + 2) * 640 * 480 * 7 * 2;
    return 0;
}

static int check_lengths(struct recon_ctx *ctx, const struct recon_value *p)
{
    uint32_t t = p[FRAMES_READ_TRANSFORM].n, k = p[FRAMES_READ_INTRINSICS].n;

    if (t && t != 16)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "transform", "transform has %u numbers, 16 are wanted", t);
    if (k && k != 4)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "intrinsics", "intrinsics has %u numbers, fx, fy, cx, cy are wanted", k);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
               struct recon_cost *cost)
{
    struct frames_options o = { .depth_scale = p[FRAMES_READ_SCALE].f,
                                .depth_max = p[FRAMES_READ_MAX].f,
                                .invalid = (uint32_t)p[FRAMES_READ_INVALID].i,
                                .stop_on_bad = p[FRAMES_READ_BAD].i == 1,
                                .no_color = !p[FRAMES_READ_COLOR].i,
                                .every = (uint64_t)p[FRAMES_READ_EVERY].i,
                                .limit = (uint64_t)p[FRAMES_READ_LIMIT].i,
                                .layout = (enum frames_layout)p[FRAMES_READ_LAYOUT].i,
                                .axes = (enum frames_axes)p[FRAMES_READ_AXES].i,
                                .pose_scale = p[FRAMES_READ_POSE_SCALE].f,
                                .association = p[FRAMES_READ_ASSOCIATION].f,
                                .transform = p[FRAMES_READ_TRANSFORM].n ? p[FRAMES_READ_TRANSFORM].v : NULL,
                                .intrinsics = p[FRAMES_READ_INTRINSICS].n ? p[FRAMES_READ_INTRINSICS].v : NULL,
                                .threads = ctx->threads,
                                .warn = warn,
                                .warn_self = ctx };
    struct recon_frames *f = out[0];
    struct fault fault = { 0 };
    struct source *s;

    (void)in;
    if (!ctx->dataset)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "dataset", "no dataset to read frames from");
    if (check_lengths(ctx, p))
        return -1;
    s = xcalloc(1, sizeof(*s));
    s->ctx = ctx;
    if (frames_open(ctx->dataset, &o, &s->frames, &fault)) {
        free(s);
        return ctx->host->fail(ctx, fault.err.code, fault.rule, ctx->dataset, "%s", fault.err.text);
    }
    f->camera = *frames_camera(s->frames);
    f->count = frames_count(s->frames);
    f->skipped = frames_skipped(s->frames);
    memcpy(f->bounds, frames_bounds(s->frames), sizeof(f->bounds));
    f->next = next;
    f->rewind = again;
    f->close = finish;
    f->impl = s;
    cost->items = f->count;
    cost->host_bytes = frames_bytes(s->frames);
    return 0;
}

/* two frames written and read back: pixels, poses and camera are the same; used for frames.write too */
int cpu_frames_selftest(struct recon_ctx *ctx)
{
    char dir[] = "/tmp/recon-selftest.XXXXXX";
    float depth[12] = { 1.5f, 0, 2.25f, 0.001f };
    uint8_t rgb[36] = { 10, 20, 30, 40 };
    struct recon_camera camera = { .width = 4, .height = 3, .fx = 5, .fy = 6, .cx = 1.5, .cy = 1 };
    struct recon_frame f = {.depth = depth,
                            .color = rgb,
                            .pose = {0, 0, 1, 1, 1, 0, 0, 2, 0, 1, 0, 3, 0, 0, 0, 1}},
                       got;
    struct frames_options o = { .invalid = 65535, .threads = 1 };
    struct frames_source *s = NULL;
    struct fault fault = { 0 };
    int rc = -1;

    if (!mkdtemp(dir))
        return ctx->host->fail(ctx, CODE_CREATE, NULL, dir,
                               "cannot create a folder in /tmp for the self-test");
    f.name = "frame-000000";
    if (frames_write_one(dir, &f, &camera, FRAMES_PNG, 90, &fault.err))
        goto out;
    f.name = "frame-000001";
    if (frames_write_one(dir, &f, &camera, FRAMES_PNG, 90, &fault.err) ||
        frames_write_camera(dir, &camera, &fault.err) || frames_open(dir, &o, &s, &fault))
        goto out;
    for (int i = 0; i < 2; i++)
        if (frames_next(s, &got, &fault) != 1 || memcmp(got.depth, depth, sizeof(depth)) || !got.color ||
            memcmp(got.color, rgb, sizeof(rgb)) || memcmp(got.pose, f.pose, sizeof(f.pose)))
            goto out;
    rc = frames_next(s, &got, &fault) == 0 && frames_camera(s)->cy == 1 ? 0 : -1;
out:
    if (rc)
        ctx->host->fail(ctx, CODE_INTERNAL, NULL, "frames", "frames are not read as they were written: %s",
                        fault.err.code ? fault.err.text : "other numbers");
    frames_free(s);
    dir_remove(dir);
    return rc;
}

const struct recon_kernel cpu_frames_read = {RECON_KERNEL_ABI,
                                             FRAMES_READ_NAME,
                                             FRAMES_READ_DOC,
                                             frames_read_in,
                                             frames_read_out,
                                             frames_read_params,
                                             bound,
                                             run,
                                             cpu_frames_selftest,
                                             NULL};
