#include "config.h"
#include "kernels/ref/mesh_ref.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t pair(uint32_t a, uint32_t b)
{
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

uint64_t *ref_edges(struct recon_ctx *ctx, const struct recon_mesh *m, uint64_t *ret_n)
{
    uint64_t *e = ctx->host->alloc(ctx, 24 * m->faces + 8), n = 0, k = 0;

    for (uint64_t f = 0; e && f < m->faces; f++) {
        const uint32_t *v = m->index + 3 * f;

        for (int i = 0; !face_degenerate(v) && i < 3; i++)
            e[n++] = pair(v[i], v[(i + 1) % 3]);
    }
    if (!e)
        return NULL;
    qsort(e, n, 8, ascending);
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || e[i] != e[i - 1])
            e[k++] = e[i];
    *ret_n = k;
    return e;
}

uint64_t ref_edge(const uint64_t *edges, uint64_t n, uint32_t a, uint32_t b)
{
    uint64_t key = pair(a, b);
    const uint64_t *at = bsearch(&key, edges, n, 8, ascending);

    return at ? (uint64_t)(at - edges) : n;
}

static bool shares(const uint32_t *f, const uint32_t *g, uint32_t v)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (f[i] == g[k] && f[i] != v)
                return true;
    return false;
}

/* fans of v: its faces, joined where they share another vertex beside v */
static int fans_of(struct recon_ctx *ctx, const struct recon_mesh *m, const uint64_t *face, uint64_t n, uint32_t v)
{
    uint8_t *seen = ctx->host->alloc(ctx, n);
    bool grown;
    int fans = 0;

    if (!seen)
        return -1;
    memset(seen, 0, n);
    for (uint64_t s = 0; s < n; s++) {
        if (seen[s])
            continue;
        fans++;
        seen[s] = 1;
        do {
            grown = false;
            for (uint64_t i = 0; i < n; i++)
                for (uint64_t k = 0; seen[i] == 1 && k < n; k++)
                    if (!seen[k] && shares(m->index + 3 * face[i], m->index + 3 * face[k], v))
                        seen[k] = 1, grown = true;
        } while (grown);
        for (uint64_t i = 0; i < n; i++)
            seen[i] = seen[i] ? 2 : 0;
    }
    ctx->host->free(ctx, seen);
    return fans;
}

static void count_edges(const struct recon_mesh *m, const uint64_t *e, uint64_t n, uint32_t *uses, int32_t *sum, struct census *c)
{
    memset(uses, 0, 4 * n);
    memset(sum, 0, 4 * n);
    for (uint64_t f = 0; f < m->faces; f++) {
        const uint32_t *v = m->index + 3 * f;

        for (int i = 0; !face_degenerate(v) && i < 3; i++) {
            uint64_t k = ref_edge(e, n, v[i], v[(i + 1) % 3]);

            uses[k]++;
            sum[k] += v[i] < v[(i + 1) % 3] ? 1 : -1;
        }
    }
    for (uint64_t k = 0; k < n; k++) {
        c->border += uses[k] == 1;
        c->non_manifold += uses[k] > 2;
        c->turned += uses[k] == 2 && sum[k] != 0;
    }
    c->edges = n;
}

/* labels spread along edges until nothing changes */
static uint64_t parts(const struct recon_mesh *m, const uint64_t *e, uint64_t n, const uint32_t *uses, bool border, uint32_t *label)
{
    uint64_t count = 0;
    bool changed = true;

    for (uint32_t v = 0; v < m->vertices; v++)
        label[v] = UINT32_MAX;
    while (changed) {
        changed = false;
        for (uint64_t k = 0; k < n; k++) {
            uint32_t a = (uint32_t)(e[k] >> 32), b = (uint32_t)e[k], l;

            if (border && uses[k] != 1)
                continue;
            l = label[a] < label[b] ? label[a] : label[b];
            l = a < l ? a : l;
            if (label[a] != l || label[b] != l) {
                label[a] = label[b] = l;
                changed = true;
            }
        }
    }
    for (uint32_t v = 0; v < m->vertices; v++)
        count += label[v] == v;
    return count;
}

struct triple {
    uint32_t v[3];
};

static int by_vertices(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct triple));
}

static int count_repeated(struct recon_ctx *ctx, const struct recon_mesh *m, struct census *c)
{
    struct triple *t = ctx->host->alloc(ctx, m->faces * sizeof(*t) + 1);
    uint64_t n = 0;

    if (!t)
        return -1;
    for (uint64_t f = 0; f < m->faces; f++) {
        struct triple x;

        memcpy(x.v, m->index + 3 * f, 12);
        if (face_degenerate(x.v))
            continue;
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 2; k++)
                if (x.v[k] > x.v[k + 1]) {
                    uint32_t y = x.v[k];

                    x.v[k] = x.v[k + 1];
                    x.v[k + 1] = y;
                }
        t[n++] = x;
    }
    qsort(t, n, sizeof(*t), by_vertices);
    for (uint64_t i = 1; i < n; i++)
        c->repeated += by_vertices(&t[i], &t[i - 1]) == 0;
    ctx->host->free(ctx, t);
    return 0;
}

static int count_vertices(struct recon_ctx *ctx, const struct recon_mesh *m, struct census *c)
{
    struct rows corners;
    int rc = rows_corners(ctx, m, &corners);

    for (uint32_t v = 0; rc == 0 && v < m->vertices; v++) {
        uint64_t n = corners.first[v + 1] - corners.first[v], k = 0, *face = ctx->host->alloc(ctx, 8 * n + 8);
        int fans;

        if (!face) {
            rc = -1;
            break;
        }
        for (uint64_t i = 0; i < n; i++)
            if (!face_degenerate(m->index + corners.item[corners.first[v] + i] / 3 * 3ull))
                face[k++] = corners.item[corners.first[v] + i] / 3;
        fans = fans_of(ctx, m, face, k, v);
        rc = fans < 0 ? -1 : 0;
        c->used += fans > 0;
        c->split += fans > 1;
        ctx->host->free(ctx, face);
    }
    rows_release(ctx, &corners);
    return rc;
}

/* numbers by 256, each block by halves, then the blocks' sums likewise (tree_sum.h) */
static double sum_up(double *x, uint64_t n)
{
    for (; n > 1; n = (n + 255) / 256)
        for (uint64_t b = 0; 256 * b < n; b++) {
            double t[256];

            for (uint64_t i = 0; i < 256; i++)
                t[i] = 256 * b + i < n ? x[256 * b + i] : 0;
            for (int half = 128; half > 0; half /= 2)
                for (int i = 0; i < half; i++)
                    t[i] += t[half + i];
            x[b] = t[0];
        }
    return n ? x[0] + 0 : 0;
}

static int measure(struct recon_ctx *ctx, const struct recon_mesh *m, struct census *c)
{
    double *area = ctx->host->alloc(ctx, 16 * m->faces + 1), *volume;

    if (!area)
        return -1;
    volume = area + m->faces;
    for (uint64_t f = 0; f < m->faces; f++) {
        const float *a = m->xyz + 3 * (uint64_t)m->index[3 * f];
        double n[3], twice;

        if (face_degenerate(m->index + 3 * f)) {
            c->degenerate++;
            area[f] = volume[f] = 0;
            continue;
        }
        face_cross(m, f, n);
        twice = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        c->zero_area += !(twice > 0);
        area[f] = twice / 2;
        volume[f] = ((double)a[0] * n[0] + (double)a[1] * n[1] + (double)a[2] * n[2]) / 6;
    }
    c->area = sum_up(area, m->faces);
    c->volume = sum_up(volume, m->faces);
    ctx->host->free(ctx, area);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct census c = { .vertices = m->vertices, .faces = m->faces };
    uint64_t n = 0, *e = NULL;
    uint32_t *uses = NULL, *label = NULL;
    int32_t *sum = NULL;
    int rc = count_vertices(ctx, m, &c);

    (void)out;
    if (rc == 0 && (!(e = ref_edges(ctx, m, &n)) || !(uses = ctx->host->alloc(ctx, 4 * n + 4)) || !(sum = ctx->host->alloc(ctx, 4 * n + 4)) ||
                    !(label = ctx->host->alloc(ctx, 4 * m->vertices + 4)) || count_repeated(ctx, m, &c) || measure(ctx, m, &c)))
        rc = -1;
    if (rc == 0) {
        count_edges(m, e, n, uses, sum, &c);
        c.components = parts(m, e, n, uses, false, label);
        c.borders = parts(m, e, n, uses, true, label);
        c.euler = (int64_t)c.used - (int64_t)c.edges + (int64_t)(c.faces - c.degenerate);
        census_bound(ctx, in, p, cost);
        rc = census_report(ctx, p, &c);
    }
    ctx->host->free(ctx, e);
    ctx->host->free(ctx, uses);
    ctx->host->free(ctx, sum);
    ctx->host->free(ctx, label);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return census_selftest(ctx, &ref_mesh_check, NULL);
}

const struct recon_kernel ref_mesh_check = { RECON_KERNEL_ABI,  MESH_CHECK_NAME, MESH_CHECK_DOC, mesh_check_in, mesh_check_out,
                                             mesh_check_params, census_bound,    run,            selftest,      NULL };
