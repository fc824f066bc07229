/* Picture of a volume, row by row on all threads. */
#include "config.h"
#include "kernels/cpu/cpu.h"
#include "kernels/render.h"

struct surface {
    uint64_t *counts; /* of samples near a surface, along x, y and z */
    uint8_t *block;   /* where a surface may be, see march.h */
};

/* Row (x, y) of samples from z on, n of them at `at`: what it adds to the counts, and which blocks of its plane hold a sample
 * below 1. */
static void scan_row(const struct recon_volume *v, const uint32_t from[3], uint32_t n, uint64_t at, uint64_t *counts, uint8_t *block)
{
    uint8_t *row = block + (size_t)(from[1] / 8) * march_blocks(v->dim[2]);

    for (uint32_t z = from[2]; z < from[2] + n; z++, at++) {
        float d = v->tsdf[at];

        if ((v->weight && !(v->weight[at] > 0)) || !(d < 1))
            continue;
        row[z / 8] = 1;
        if (d < 0.5f && d > -0.5f) {
            counts[from[0]]++;
            counts[v->dim[0] + from[1]]++;
            counts[v->dim[0] + v->dim[1] + z]++;
        }
    }
}

/* one plane of samples */
static void scan_plane(const struct recon_volume *v, uint32_t x, uint64_t *counts, uint8_t *block)
{
    uint32_t at[3] = { x, 0, 0 };

    for (at[1] = 0; at[1] < v->dim[1]; at[1]++)
        scan_row(v, at, v->dim[2], ((uint64_t)x * v->dim[1] + at[1]) * v->dim[2], counts, block);
}

/* planes from x on, as many as a mark's block has, of one block of the volume */
static void scan_block(const struct recon_volume *v, uint64_t b, uint32_t x, uint64_t *counts, uint8_t *block)
{
    const uint32_t *place = v->block + 3 * b;
    uint32_t at[3], side = v->side, z = side * place[2], n = v->dim[2] - z < side ? v->dim[2] - z : side;

    at[2] = z;
    for (at[0] = x; at[0] < x + 8 && at[0] < v->dim[0]; at[0]++)
        for (at[1] = side * place[1]; at[1] < side * place[1] + side && at[1] < v->dim[1]; at[1]++)
            scan_row(v, at, n, ((b * side + at[0] % side) * side + at[1] % side) * side, counts, block);
}

/* The planes 8 b to 8 b + 7; blocks ascend by x, so those that hold them stand together. */
static void scan_slab(const struct recon_volume *v, uint32_t b, uint64_t *counts, uint8_t *block)
{
    uint64_t low = 0, high = v->blocks;

    for (uint32_t x = 8 * b; !v->side && x < 8 * b + 8 && x < v->dim[0]; x++)
        scan_plane(v, x, counts, block);
    while (low < high) {
        uint64_t mid = (low + high) / 2;

        if (v->block[3 * mid] < 8 * b / v->side)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < v->blocks && v->block[3 * low] == 8 * b / v->side; low++)
        scan_block(v, low, 8 * b, counts, block);
}

/* block b also answers for sample 8 b + 8, the first of the next: taken from the marks of planes, then along
 * y and z */
static void spread(const struct recon_volume *v, const uint8_t *plane, const uint8_t *after, uint8_t *block)
{
    uint32_t by = march_blocks(v->dim[1]), bz = march_blocks(v->dim[2]);

    for (uint32_t y = 0; y < by; y++)
        for (uint32_t z = 0; z < bz; z++)
            for (int i = 0; i < 4; i++) {
                uint32_t yy = y + (i & 1), zz = z + (i >> 1);

                if (yy < by && zz < bz)
                    block[y * bz + z] |= plane[yy * bz + zz] | (after ? after[yy * bz + zz] : 0);
            }
}

static int find_surface(struct recon_ctx *ctx, const struct recon_volume *v, struct surface *s)
{
    uint32_t bx = march_blocks(v->dim[0]), axes = v->dim[0] + v->dim[1] + v->dim[2];
    uint64_t slab = (uint64_t)march_blocks(v->dim[1]) * march_blocks(v->dim[2]),
             bytes = axes * sizeof(uint64_t);
    uint8_t *mark = ctx->host->alloc(ctx, slab * bx);

    s->block = mark ? ctx->host->alloc(ctx, slab * bx) : NULL;
    s->counts = s->block ? ctx->host->alloc(ctx, bytes * bx) : NULL;
    if (!s->counts) {
        ctx->host->free(ctx, mark);
        return -1;
    }
    memset(mark, 0, slab * bx);
    memset(s->block, 0, slab * bx);
    memset(s->counts, 0, bytes * bx);
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 1)
    for (uint32_t b = 0; b < bx; b++)
        scan_slab(v, b, s->counts + (size_t)b * axes, mark + b * slab);
    for (uint32_t b = 0; b < bx; b++) {
        spread(v, mark + b * slab, b + 1 < bx ? mark + (b + 1) * slab : NULL, s->block + b * slab);
        for (uint32_t i = 0; b && i < axes; i++)
            s->counts[i] += s->counts[(size_t)b * axes + i];
    }
    ctx->host->free(ctx, mark);
    return 0;
}

KERN_CLONES
static void draw_row(const struct march_field *f, const uint8_t *rgb, const struct view *w, uint32_t y,
                     int samples, uint8_t *pixels)
{
    for (uint32_t x = 0; x < w->width; x++)
        preview_pixel(f, rgb, w, x, y, samples, pixels + 3 * x);
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
               struct recon_cost *cost)
{
    const struct recon_volume *v = in[0];
    struct recon_image *image = out[0];
    struct march_field f = march_volume(v);
    int samples = (int)p[PREVIEW_SAMPLES].i, rc;
    struct surface s = { 0 };
    uint8_t *pixels = NULL;
    struct blocks grid;
    double box[6];
    struct view w;

    if (blocks_of_volume(ctx, v, &grid))
        return -1;
    f.grid = v->side ? &grid : NULL;
    rc = find_surface(ctx, v, &s);
    if (rc == 0) {
        preview_box(v, s.counts, box);
        preview_view_box(v, p, box, &w);
        f.block = s.block;
        rc = (pixels = ctx->host->alloc(ctx, (uint64_t)w.width * w.height * 3)) ? 0 : -1;
    }
    if (rc)
        goto out;
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 4)
    for (uint32_t y = 0; y < w.height; y++)
        draw_row(&f, v->rgb, &w, y, samples, pixels + 3 * (size_t)y * w.width);
    rc = preview_write(ctx, p, pixels);
    preview_bound(ctx, in, p, cost);
    if (rc == 0 && image) {
        *image = (struct recon_image){
            .width = w.width, .height = w.height, .channels = 3, .place = RECON_HOST, .pixels = pixels};
        pixels = NULL;
    }
out:
    ctx->host->free(ctx, pixels);
    ctx->host->free(ctx, s.block);
    ctx->host->free(ctx, s.counts);
    blocks_release(ctx, &grid);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_preview(ctx, &cpu_render_preview, NULL);
}

const struct recon_kernel cpu_render_preview = {RECON_KERNEL_ABI, PREVIEW_NAME,   PREVIEW_DOC,   preview_in,
                                                preview_out,      preview_params, preview_bound, run,
                                                selftest,         preview_shape};
