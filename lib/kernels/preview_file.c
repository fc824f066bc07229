#include "config.h"
#include "base/base.h"
#include "data/data.h"
#include "kernels/plan.h"
#include "kernels/rows.h"

#include <stdlib.h>

int preview_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                  struct recon_cost *cost)
{
    (void)ctx;
    (void)in;
    cost->items = (uint64_t)p[PREVIEW_WIDTH].i * (uint64_t)p[PREVIEW_HEIGHT].i;
    cost->host_bytes = cost->items * 6; /* the picture, and its PNG */
    return 0;
}

int preview_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    struct recon_image *i = out[0];

    (void)ctx;
    (void)in;
    if (i)
        *i = (struct recon_image){.width = (uint32_t)p[PREVIEW_WIDTH].i,
                                  .height = (uint32_t)p[PREVIEW_HEIGHT].i,
                                  .channels = 3,
                                  .place = i->place};
    return 0;
}

int preview_write(struct recon_ctx *ctx, const struct recon_value *p, uint8_t *pixels)
{
    struct picture picture = {.width = (uint32_t)p[PREVIEW_WIDTH].i,
                              .height = (uint32_t)p[PREVIEW_HEIGHT].i,
                              .channels = 3,
                              .bits = 8,
                              .pixels = pixels};
    char *path = plan_output(ctx, p[PREVIEW_FILE].s);
    struct err err = { 0 };
    int rc = path ? 0 : -1;

    if (rc == 0 && png_write(path, &picture, 2, &err))
        rc = ctx->host->fail(ctx, err.code, NULL, path, "%s", err.text);
    if (rc == 0)
        ctx->host->output(ctx, path);
    free(path);
    return rc;
}
