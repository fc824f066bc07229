/* A fake device module: its "device memory" is host memory behind a tag, so that a runner that forgets a copy, a
 * release or the order of calls is caught. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fake_rows.h"

#define TAG 0x64657669636520ull

struct head {
    uint64_t tag, bytes;
    uint64_t pad[6];
};

static uint64_t now, most;
static double marks[16];
static int marked[16];

static double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int dev_count(char *why, size_t size)
{
    const char *n = getenv("FAKE_DEVICES");

    snprintf(why, size, "FAKE_DEVICES is not set");
    return n ? atoi(n) : 0;
}

static int dev_open(struct recon_ctx *ctx, int index)
{
    ctx->device = index;
    ctx->stream = &now;
    return 0;
}

static void dev_close(struct recon_ctx *ctx)
{
    if (now) {
        fprintf(stderr, "fake device: %llu bytes were not freed\n", (unsigned long long)now);
        abort();
    }
    ctx->stream = NULL;
}

static int dev_describe(struct recon_ctx *ctx, char *name, size_t size, uint64_t *total, uint64_t *free_bytes)
{
    (void)ctx;
    snprintf(name, size, "fake");
    *total = *free_bytes = 1 << 30;
    return 0;
}

static void *dev_alloc(struct recon_ctx *ctx, uint64_t bytes)
{
    struct head *h = bytes < 1 << 28 ? malloc(sizeof(*h) + bytes) : NULL;

    if (!h) {
        ctx->host->fail(ctx, 71, NULL, NULL, "no device memory left");
        return NULL;
    }
    h->tag = TAG;
    h->bytes = bytes;
    now += bytes;
    most = now > most ? now : most;
    return h + 1;
}

static struct head *head_of(const void *p)
{
    struct head *h = (struct head *)(uintptr_t)p - 1;

    if (h->tag != TAG)
        abort();
    return h;
}

static void dev_free(struct recon_ctx *ctx, void *p)
{
    struct head *h;

    (void)ctx;
    if (!p)
        return;
    h = head_of(p);
    h->tag = 0;
    now -= h->bytes;
    free(h);
}

static int dev_upload(struct recon_ctx *ctx, void *device, const void *host, uint64_t bytes)
{
    (void)ctx;
    if (head_of(device)->bytes < bytes)
        abort();
    memcpy(device, host, bytes);
    return 0;
}

static int dev_download(struct recon_ctx *ctx, void *host, const void *device, uint64_t bytes)
{
    (void)ctx;
    if (head_of(device)->bytes < bytes)
        abort();
    memcpy(host, device, bytes);
    return 0;
}

static int dev_sync(struct recon_ctx *ctx)
{
    (void)ctx;
    return 0;
}

static int dev_mark(struct recon_ctx *ctx, int slot)
{
    if (slot < 0 || slot > 15)
        return ctx->host->fail(ctx, 70, NULL, NULL, "mark %d", slot);
    marks[slot] = clock_now();
    marked[slot] = 1;
    return 0;
}

static int dev_elapsed(struct recon_ctx *ctx, int from, int to, double *ms)
{
    if (!marked[from] || !marked[to])
        return ctx->host->fail(ctx, 70, NULL, NULL, "mark %d or %d was not set", from, to);
    *ms = marks[to] - marks[from];
    marked[from] = marked[to] = 0;
    return 0;
}

static uint64_t dev_peak(struct recon_ctx *ctx, int reset)
{
    uint64_t peak = most;

    (void)ctx;
    if (reset)
        most = now;
    return peak;
}

static void dev_ceilings(struct recon_ctx *ctx, double *bytes_per_s, double *flops_per_s)
{
    (void)ctx;
    *bytes_per_s = 1e9;
    *flops_per_s = 0;
}

static int double_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
                      struct recon_cost *cost)
{
    const struct recon_points *from = in[0];
    struct recon_points *to = out[0];

    (void)p;
    if (from->place != RECON_DEVICE || to->place != RECON_DEVICE)
        return ctx->host->fail(ctx, 70, NULL, NULL, "the points are not on the device");
    to->n = from->n;
    to->xyz = dev_alloc(ctx, to->n * 12);
    if (!to->xyz)
        return -1;
    head_of(from->xyz);
    for (uint64_t i = 0; i < to->n * 3; i++)
        to->xyz[i] = 2 * from->xyz[i];
    cost->moved_bytes = to->n * 24;
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    (void)ctx;
    return 0;
}

/* Points that lie far out are the host's. */
static int elsewhere(struct recon_ctx *ctx, const struct recon_kernel *k, const void *const *in, const struct recon_value *p, char *why,
                     size_t size)
{
    const struct recon_points *from = in[0];

    (void)ctx;
    (void)k;
    (void)p;
    if (!from || from->n != 4)
        return 0;
    snprintf(why, size, "four points are too many");
    return 1;
}

static const struct recon_device device = {
    FAKE_ABI,   "fake",       dev_count, dev_open, dev_close,   dev_describe, dev_alloc,    dev_free,
    dev_upload, dev_download, dev_sync,  dev_mark, dev_elapsed, dev_peak,     dev_ceilings,
};
static const struct recon_port double_in[] = { { "points", RECON_POINTS, 0, "" }, { "mesh", RECON_MESH, RECON_PORT_OPTIONAL, "" }, { 0 } };
static const struct recon_kernel double_kernel = { FAKE_ABI, "fake.double", "Twice as far, on the device", double_in,
                                                   points_port, no_params, NULL, double_run, selftest, NULL };
static const struct recon_kernel *const kernels[] = { &double_kernel, NULL };
const struct recon_module recon_module = { FAKE_ABI, "fake", &device, kernels, elsewhere };
