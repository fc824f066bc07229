#include "config.h"
#include "data/data.h"
#include "kernels/cpu/cpu.h"

#include <stdlib.h>

struct batch {
    struct recon_frame *frame;
    char (*name)[64];
    float *depth;
    uint8_t *rgb;
    struct err *err;
    int n, most;
};

static void copy_frame(struct batch *b, const struct recon_frame *f, size_t pixels)
{
    struct recon_frame *t = &b->frame[b->n];
    float *depth = b->depth + pixels * (size_t)b->n;
    uint8_t *rgb = b->rgb + 3 * pixels * (size_t)b->n;

    *t = *f;
    memcpy(depth, f->depth, pixels * sizeof(float));
    if (f->color)
        memcpy(rgb, f->color, 3 * pixels);
    snprintf(b->name[b->n], sizeof(b->name[0]), "%s", f->name);
    t->depth = depth;
    t->color = f->color ? rgb : NULL;
    t->name = b->name[b->n++];
}

static int flush(struct recon_ctx *ctx, struct batch *b, const struct recon_camera *camera,
                 const struct recon_value *p)
{
    static const enum frames_color forms[] = { FRAMES_JPG, FRAMES_PNG, FRAMES_NONE };
    enum frames_color form = forms[p[FRAMES_WRITE_COLOR].i];
    int quality = (int)p[FRAMES_WRITE_QUALITY].i, n = b->n;

    memset(b->err, 0, sizeof(*b->err) * (size_t)b->most);
#pragma omp parallel for num_threads(b->most) schedule(static, 1)
    for (int i = 0; i < n; i++)
        frames_write_one(ctx->out, &b->frame[i], camera, form, quality, &b->err[i]);
    b->n = 0;
    for (int i = 0; i < n; i++)
        if (b->err[i].code)
            return ctx->host->fail(ctx, b->err[i].code, NULL, b->name[i], "%s", b->err[i].text);
    return 0;
}

static void tell(struct recon_ctx *ctx, const struct recon_frame *f, const struct recon_value *p)
{
    static const char *const suffix[] = { "color.jpg", "color.png", NULL };
    const char *names[3] = { "depth.png", f->color ? suffix[p[FRAMES_WRITE_COLOR].i] : NULL, "pose.txt" };

    for (int i = 0; i < 3; i++)
        if (names[i]) {
            char *path = xasprintf("%s/%s.%s", ctx->out, f->name, names[i]);

            ctx->host->output(ctx, path);
            free(path);
        }
}

static int take_batch(struct recon_ctx *ctx, struct batch *b, size_t pixels)
{
    size_t n = (size_t)ctx->threads;

    b->most = ctx->threads;
    b->frame = xcalloc(n, sizeof(*b->frame));
    b->name = xcalloc(n, sizeof(*b->name));
    b->err = xcalloc(n, sizeof(*b->err));
    b->depth = ctx->host->alloc(ctx, n * pixels * sizeof(float));
    b->rgb = b->depth ? ctx->host->alloc(ctx, n * pixels * 3) : NULL;
    return b->rgb ? 0 : -1;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_frames *f = in ? in[0] : NULL;
    uint64_t pixels = f ? (uint64_t)f->camera.width * f->camera.height : 640 * 480;

    (void)params;
    cost->host_bytes = (uint64_t)ctx->threads * pixels * 7 * 3; /* copied, encoded, packed */
    cost->items = f ? f->count : 0;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
               struct recon_cost *cost)
{
    struct recon_frames *frames = (struct recon_frames *)(uintptr_t)in[0];
    size_t pixels = (size_t)frames->camera.width * frames->camera.height;
    struct batch b = { 0 };
    struct recon_frame f;
    struct err err = { 0 };
    uint64_t done = 0;
    int rc, more = 1;

    (void)out;
    rc = take_batch(ctx, &b, pixels);
    while (rc == 0 && more > 0) {
        double t0 = clock_ms();

        more = frames->next(frames, &f);
        cost->wait_ms += clock_ms() - t0;
        if (more > 0) {
            copy_frame(&b, &f, pixels);
            tell(ctx, &f, p);
            done++;
        }
        if (more < 0)
            rc = -1;
        else if (b.n == b.most || (!more && b.n))
            rc = flush(ctx, &b, &frames->camera, p);
        if (rc == 0 && ctx->host->cancelled(ctx))
            rc = ctx->host->fail(ctx, CODE_DEADLINE, NULL, NULL, "stopped while writing frames");
    }
    if (rc == 0 && !done)
        rc = ctx->host->fail(ctx, CODE_DATA, "empty-result", "frames", "there is no frame to write");
    if (rc == 0 && frames_write_camera(ctx->out, &frames->camera, &err))
        rc = ctx->host->fail(ctx, err.code, NULL, NULL, "%s", err.text);
    if (rc == 0) {
        char *path = path_join(ctx->out, "camera-intrinsics.txt");

        ctx->host->output(ctx, path);
        free(path);
    }
    cost->items = done;
    cost->moved_bytes = done * pixels * 7;
    ctx->host->free(ctx, b.depth);
    ctx->host->free(ctx, b.rgb);
    free(b.frame);
    free(b.name);
    free(b.err);
    return rc;
}

const struct recon_kernel cpu_frames_write = {RECON_KERNEL_ABI,
                                              FRAMES_WRITE_NAME,
                                              FRAMES_WRITE_DOC,
                                              frames_write_in,
                                              frames_write_out,
                                              frames_write_params,
                                              bound,
                                              run,
                                              cpu_frames_selftest,
                                              NULL};
