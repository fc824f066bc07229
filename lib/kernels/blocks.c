#include "config.h"
#include "base/base.h"
#include "kernels/blocks.h"
#include "kernels/plan.h"

static uint64_t grid_words(const uint32_t dim[3], uint32_t side)
{
    uint64_t n = 1;

    for (int a = 0; a < 3; a++)
        n *= (dim[a] + side - 1) / side;
    return (n + 63) / 64;
}

uint64_t blocks_bytes(const uint32_t dim[3], uint32_t side)
{
    return side ? grid_words(dim, side) * 16 + 8 : 0;
}

void blocks_plan(const uint32_t dim[3], uint32_t side, struct blocks *ret)
{
    *ret = (struct blocks){ .side = side, .words = grid_words(dim, side) };
    while (1u << ret->shift < side)
        ret->shift++;
    for (int a = 0; a < 3; a++)
        ret->n[a] = (dim[a] + side - 1) / side;
}

int blocks_take(struct recon_ctx *ctx, const uint32_t dim[3], uint32_t side, struct blocks *ret)
{
    struct blocks b;

    blocks_plan(dim, side, &b);
    if (!(b.bits = ctx->host->alloc(ctx, blocks_bytes(dim, side))))
        return -1;
    memset(b.bits, 0, b.words * 8);
    b.before = b.bits + b.words;
    *ret = b;
    return 0;
}

void blocks_rank(struct blocks *b)
{
    b->before[0] = 0;
    for (uint64_t w = 0; w < b->words; w++)
        b->before[w + 1] = b->before[w] + (uint64_t)blocks_count_bits(b->bits[w]);
}

int blocks_of_volume(struct recon_ctx *ctx, const struct recon_volume *v, struct blocks *ret)
{
    *ret = (struct blocks){ .side = 0 };
    if (!v->side)
        return 0;
    if (blocks_take(ctx, v->dim, v->side, ret))
        return -1;
    for (uint64_t i = 0; i < v->blocks; i++) {
        uint64_t at = blocks_cell(ret, v->block[3 * i], v->block[3 * i + 1], v->block[3 * i + 2]);

        ret->bits[at >> 6] |= 1ull << (at & 63);
    }
    blocks_rank(ret);
    return 0;
}

void blocks_release(struct recon_ctx *ctx, struct blocks *b)
{
    ctx->host->free(ctx, b->bits);
    *b = (struct blocks){ .side = 0 };
}

int blocks_list(struct recon_ctx *ctx, const struct blocks *b, struct recon_volume *v)
{
    uint32_t *to = ctx->host->alloc(ctx, b->before[b->words] * 12);

    v->side = b->side;
    v->blocks = b->before[b->words];
    v->block = to;
    if (!to)
        return -1;
    for (uint64_t w = 0; w < b->words; w++)
        for (uint64_t left = b->bits[w]; left; left &= left - 1, to += 3) {
            uint64_t at = 64 * w + (uint64_t)__builtin_ctzll(left);

            to[2] = (uint32_t)(at % b->n[2]);
            to[1] = (uint32_t)(at / b->n[2] % b->n[1]);
            to[0] = (uint32_t)(at / b->n[2] / b->n[1]);
        }
    return 0;
}

/* ---- dense again ---- */

static void spread_block(const struct recon_volume *v, uint64_t b, struct recon_volume *to)
{
    const uint32_t *at = v->block + 3 * b, s = v->side;
    uint64_t from = b * s * s * s;

    for (uint32_t i = 0; i < s; i++)
        for (uint32_t j = 0; j < s; j++)
            for (uint32_t k = 0; k < s; k++, from++) {
                uint32_t x = s * at[0] + i, y = s * at[1] + j, z = s * at[2] + k;
                uint64_t n = ((uint64_t)x * v->dim[1] + y) * v->dim[2] + z;

                if (x >= v->dim[0] || y >= v->dim[1] || z >= v->dim[2])
                    continue;
                to->tsdf[n] = v->tsdf[from];
                if (v->weight)
                    to->weight[n] = v->weight[from];
                for (uint64_t c = 0; v->rgb && c < 3; c++)
                    to->rgb[3 * n + c] = v->rgb[3 * from + c];
            }
}

int volume_spread(struct recon_ctx *ctx, const struct recon_volume *v, struct recon_volume *ret)
{
    struct recon_volume d = *v;
    uint64_t n = (uint64_t)v->dim[0] * v->dim[1] * v->dim[2];

    d.tsdf = d.weight = NULL;
    d.rgb = NULL;
    d.block = NULL;
    d.side = 0;
    d.blocks = 0;
    if (plan_volume_fits(ctx, v->dim, n * 11, plan_memory_free(), "host"))
        return -1;
    if (!(d.tsdf = ctx->host->alloc(ctx, 4 * n)) || (v->weight && !(d.weight = ctx->host->alloc(ctx, 4 * n))) ||
        (v->rgb && !(d.rgb = ctx->host->alloc(ctx, 3 * n)))) {
        ctx->host->free(ctx, d.tsdf);
        ctx->host->free(ctx, d.weight);
        return -1;
    }
    for (uint64_t i = 0; i < n; i++)
        d.tsdf[i] = v->beyond;
    if (d.weight)
        memset(d.weight, 0, 4 * n);
    if (d.rgb)
        memset(d.rgb, 0, 3 * n);
    for (uint64_t b = 0; b < v->blocks; b++)
        spread_block(v, b, &d);
    *ret = d;
    return 0;
}
