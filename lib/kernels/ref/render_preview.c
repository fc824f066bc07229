/* Picture of a volume, row by row. */
#include "config.h"
#include "kernels/blocks.h"
#include "kernels/ref/ref.h"
#include "kernels/render.h"

#include <stdlib.h>

static void find_box(const struct recon_volume *v, double box[6])
{
    uint64_t *counts = xcalloc((size_t)v->dim[0] + v->dim[1] + v->dim[2], sizeof(*counts)), at = 0;

    for (uint32_t x = 0; x < v->dim[0]; x++)
        for (uint32_t y = 0; y < v->dim[1]; y++)
            for (uint32_t z = 0; z < v->dim[2]; z++, at++)
                if ((!v->weight || v->weight[at] > 0) && v->tsdf[at] < 0.5f && v->tsdf[at] > -0.5f) {
                    counts[x]++;
                    counts[v->dim[0] + y]++;
                    counts[v->dim[0] + v->dim[1] + z]++;
                }
    preview_box(v, counts, box);
    free(counts);
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
               struct recon_cost *cost)
{
    const struct recon_volume *v = in[0];
    struct recon_image *image = out[0];
    struct recon_volume dense = { .side = 0 };
    struct march_field f;
    int samples = (int)p[PREVIEW_SAMPLES].i, rc;
    uint8_t *pixels;
    double box[6];
    struct view w;

    if (v->side) {
        if (volume_spread(ctx, v, &dense))
            return -1;
        v = &dense;
    }
    f = march_volume(v);
    find_box(v, box);
    preview_view_box(v, p, box, &w);
    pixels = ctx->host->alloc(ctx, (uint64_t)w.width * w.height * 3);
    if (!pixels) {
        golden_free(ctx, NULL, RECON_VOLUME, &dense);
        return -1;
    }
    for (uint32_t y = 0; y < w.height; y++)
        for (uint32_t x = 0; x < w.width; x++)
            preview_pixel(&f, v->rgb, &w, x, y, samples, pixels + 3 * ((size_t)y * w.width + x));
    rc = preview_write(ctx, p, pixels);
    preview_bound(ctx, in, p, cost);
    if (rc == 0 && image)
        *image = (struct recon_image){
            .width = w.width, .height = w.height, .channels = 3, .place = RECON_HOST, .pixels = pixels};
    else
        ctx->host->free(ctx, pixels);
    golden_free(ctx, NULL, RECON_VOLUME, &dense);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_preview(ctx, &ref_render_preview, NULL);
}

const struct recon_kernel ref_render_preview = {RECON_KERNEL_ABI, PREVIEW_NAME,   PREVIEW_DOC,   preview_in,
                                                preview_out,      preview_params, preview_bound, run,
                                                selftest,         preview_shape};
