/* Rays along +x against triangles in the cells of a grid over y and z; winding numbers by winding.c. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/cpu/winding.h"
#include "kernels/sign.h"

#include <math.h>

enum { BATCH = 65536 }; /* points between two questions whether to stop */

struct grid {
    double low[2], step[2]; /* y, z */
    uint32_t side;
    uint64_t *first; /* side * side + 1 */
    uint32_t *face;
};

static uint32_t cell_of(const struct grid *g, int axis, double x)
{
    double i = floor((x - g->low[axis]) / g->step[axis]);

    return i > 0 ? (i < g->side - 1 ? (uint32_t)i : g->side - 1) : 0;
}

static void span_of(const struct grid *g, const struct recon_mesh *m, uint64_t f, uint32_t from[2], uint32_t to[2])
{
    for (int a = 0; a < 2; a++) {
        double low = INFINITY, high = -INFINITY;

        for (uint64_t i = 0; i < 3; i++) {
            double x = (double)m->xyz[3 * (uint64_t)m->index[3 * f + i] + 1 + (uint64_t)a];

            low = fmin(low, x);
            high = fmax(high, x);
        }
        from[a] = cell_of(g, a, low); /* monotone: a point within low and high is in a cell between theirs */
        to[a] = cell_of(g, a, high);
    }
}

static uint64_t count_all(const struct grid *g, const struct recon_mesh *m)
{
    uint64_t n = 0;
    uint32_t from[2], to[2];

    for (uint64_t f = 0; f < m->faces; f++) {
        span_of(g, m, f, from, to);
        n += (uint64_t)(to[0] - from[0] + 1) * (to[1] - from[1] + 1);
    }
    return n;
}

static void deal(struct grid *g, const struct recon_mesh *m, bool fill)
{
    uint32_t from[2], to[2];

    for (uint32_t f = 0; f < m->faces; f++) {
        span_of(g, m, f, from, to);
        for (uint32_t y = from[0]; y <= to[0]; y++)
            for (uint32_t z = from[1]; z <= to[1]; z++) {
                uint64_t c = (uint64_t)y * g->side + z;

                if (fill)
                    g->face[g->first[c + 1]++] = f;
                else
                    g->first[c + 2]++;
            }
    }
}

static int build(struct recon_ctx *ctx, const struct recon_mesh *m, struct grid *g)
{
    double high[2] = { -INFINITY, -INFINITY };
    uint64_t n, cells;

    g->low[0] = g->low[1] = INFINITY;
    for (uint64_t v = 0; v < m->vertices; v++)
        for (int a = 0; a < 2; a++) {
            double x = (double)m->xyz[3 * v + 1 + (uint64_t)a];

            g->low[a] = fmin(g->low[a], x);
            high[a] = fmax(high[a], x);
        }
    for (g->side = 1; g->side < 2048 && (uint64_t)g->side * g->side < m->faces; g->side *= 2)
        ;
    for (;; g->side /= 2) { /* coarser when long triangles would be in too many cells */
        for (int a = 0; a < 2; a++)
            g->step[a] = high[a] > g->low[a] ? (high[a] - g->low[a]) / g->side : 1;
        n = count_all(g, m);
        if (n <= 64 * m->faces || g->side == 1)
            break;
    }
    cells = (uint64_t)g->side * g->side;
    if (!(g->first = ctx->host->alloc(ctx, 8 * (cells + 2))) || !(g->face = ctx->host->alloc(ctx, 4 * n + 4)))
        return -1;
    memset(g->first, 0, 8 * (cells + 2));
    deal(g, m, false);
    for (uint64_t c = 1; c <= cells; c++)
        g->first[c + 1] += g->first[c];
    deal(g, m, true);
    return 0;
}

static uint8_t parity(const struct grid *g, const struct recon_mesh *m, const float *p)
{
    uint64_t c = (uint64_t)cell_of(g, 0, (double)p[1]) * g->side + cell_of(g, 1, (double)p[2]);
    uint8_t odd = 0;

    for (uint64_t i = g->first[c]; i < g->first[c + 1]; i++) {
        const uint32_t *v = m->index + 3 * (uint64_t)g->face[i];

        odd ^= triangle_hit(m->xyz + 3 * (uint64_t)v[0], m->xyz + 3 * (uint64_t)v[1], m->xyz + 3 * (uint64_t)v[2], p);
    }
    return odd;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    const struct recon_points *r = in[1];
    struct winding *w = NULL;
    struct grid g = { 0 };
    uint8_t *inside = ctx->host->alloc(ctx, r->n);
    int rc = inside && indices_fit(ctx, m) == 0 ? 0 : -1;

    if (rc == 0 && p[CHECK_SIGN_METHOD].i == CHECK_SIGN_WINDING)
        rc = (w = winding_build(ctx, m)) ? 0 : -1;
    else if (rc == 0)
        rc = build(ctx, m, &g);
    for (uint64_t from = 0; rc == 0 && from < r->n; from += BATCH) {
        uint64_t to = from + BATCH < r->n ? from + BATCH : r->n;

        if (ctx->host->cancelled(ctx)) {
            rc = ctx->host->fail(ctx, CODE_DEADLINE, NULL, "points", "stopped after %llu points", (unsigned long long)from);
            break;
        }
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 64)
        for (uint64_t i = from; i < to; i++)
            inside[i] = w ? winding_inside(w, r->xyz + 3 * i) : parity(&g, m, r->xyz + 3 * i);
    }
    if (rc == 0)
        rc = sign_give(ctx, r, p, inside, out[0]);
    sign_bound(ctx, in, p, cost);
    ctx->host->free(ctx, inside);
    ctx->host->free(ctx, g.first);
    ctx->host->free(ctx, g.face);
    winding_free(ctx, w);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_sign(ctx, &cpu_check_sign, NULL);
}

const struct recon_kernel cpu_check_sign = { RECON_KERNEL_ABI,  CHECK_SIGN_NAME, CHECK_SIGN_DOC, check_sign_in, check_sign_out,
                                             check_sign_params, sign_bound,      run,            selftest,      NULL };
