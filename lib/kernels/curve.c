#include "config.h"
#include "kernels/curve.h"

#include <math.h>
#include <string.h>

struct box {
    float low[3], side; /* side: the longest */
};

static struct box box_of(const float *xyz, uint64_t n)
{
    float high[3] = { -INFINITY, -INFINITY, -INFINITY };
    struct box b = { .low = { INFINITY, INFINITY, INFINITY } };

    for (uint64_t v = 0; v < n; v++)
        for (uint64_t i = 0; i < 3; i++) {
            float x = xyz[3 * v + i];

            b.low[i] = x < b.low[i] ? x : b.low[i];
            high[i] = x > high[i] ? x : high[i];
        }
    for (int i = 0; i < 3; i++)
        b.side = fmaxf(b.side, high[i] - b.low[i]);
    return b;
}

/* by the upper 32 bits, of which 30 are set; stable; 2 n of room */
static void sort_cells(uint64_t *key, uint64_t n)
{
    uint64_t *from = key, *to = key + n;

    for (int shift = 32; shift < 62; shift += 10) {
        uint64_t at[1024] = { 0 }, sum = 0, *swap = from;

        for (uint64_t i = 0; i < n; i++)
            at[from[i] >> shift & 1023]++;
        for (int i = 0; i < 1024; i++) {
            uint64_t count = at[i];

            at[i] = sum;
            sum += count;
        }
        for (uint64_t i = 0; i < n; i++)
            to[at[from[i] >> shift & 1023]++] = from[i];
        from = to;
        to = swap;
    }
    memcpy(key, from, 8 * n);
}

uint32_t *curve_sort(struct recon_ctx *ctx, const float *xyz, uint64_t n, float *ret_side)
{
    struct box box = box_of(xyz, n);
    uint64_t *key = ctx->host->alloc(ctx, 16 * n);
    uint32_t *order = key ? ctx->host->alloc(ctx, 4 * n) : NULL;

    for (uint64_t v = 0; order && v < n; v++)
        key[v] = (uint64_t)curve_cell(box.low, box.side, xyz + 3 * v) << 32 | v;
    if (order)
        sort_cells(key, n);
    for (uint64_t v = 0; order && v < n; v++)
        order[v] = (uint32_t)key[v];
    ctx->host->free(ctx, key);
    *ret_side = box.side;
    return order;
}
