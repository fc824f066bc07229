/* Picture of a volume, row by row on all threads. */
#include "config.h"
#include "kernels/cpu/cpu.h"
#include "kernels/render.h"

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
               struct recon_cost *cost)
{
    const struct recon_volume *v = in[0];
    struct recon_image *image = out[0];
    struct march_field f = march_volume(v);
    int samples = (int)p[PREVIEW_SAMPLES].i, rc;
    uint8_t *pixels;
    struct view w;

    preview_view(v, p, &w);
    if (!(pixels = ctx->host->alloc(ctx, (uint64_t)w.width * w.height * 3)))
        return -1;
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 4)
    for (uint32_t y = 0; y < w.height; y++)
        for (uint32_t x = 0; x < w.width; x++)
            preview_pixel(&f, v->rgb, &w, x, y, samples, pixels + 3 * ((size_t)y * w.width + x));
    rc = preview_write(ctx, p, pixels);
    preview_bound(ctx, in, p, cost);
    if (rc == 0 && image)
        *image = (struct recon_image){ .width = w.width, .height = w.height, .channels = 3, .place = RECON_HOST, .pixels = pixels };
    else
        ctx->host->free(ctx, pixels);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_preview(ctx, &cpu_render_preview, NULL);
}

const struct recon_kernel cpu_render_preview = { RECON_KERNEL_ABI, PREVIEW_NAME, PREVIEW_DOC, preview_in,   preview_out,
                                                 preview_params,   preview_bound, run,        selftest,     preview_shape };
