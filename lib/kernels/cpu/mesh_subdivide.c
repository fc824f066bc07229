/* Each face becomes four: old vertices keep their numbers, the edge e gets vertex V + e. Loop's masks: edge 3/8 3/8 1/8 1/8,
 * vertex 1 - n beta and beta; at edges of other than two faces 1/2 1/2, at vertices with two of them 1/8 3/4 1/8, with more
 * or one: unmoved. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"

#include <math.h>

struct level {
    const struct recon_mesh *m;
    struct recon_mesh r;
    struct topo t;
    struct rows near;
    uint32_t *sharp; /* edges of other than two faces at a vertex */
    int loop;
};

static void edge_vertex(const struct level *l, uint64_t e)
{
    const struct recon_mesh *m = l->m;
    uint32_t h = l->t.half[l->t.first[e]], a = m->index[h], b = m->index[topo_next(h)];
    uint64_t v = m->vertices + e;
    uint32_t lo = a < b ? a : b, hi = a < b ? b : a, c = 0, d = 0;
    bool smooth = l->loop && topo_count(&l->t, (uint32_t)e) == 2;

    if (smooth) {
        c = m->index[topo_prev(h)];
        d = m->index[topo_prev(l->t.half[l->t.first[e] + 1])];
    }
    for (uint64_t i = 0; i < 3; i++) {
        double x = ((double)m->xyz[3 * (uint64_t)lo + i] + (double)m->xyz[3 * (uint64_t)hi + i]) * (smooth ? 0.375 : 0.5);

        if (smooth)
            x += ((double)m->xyz[3 * (uint64_t)c + i] + (double)m->xyz[3 * (uint64_t)d + i]) * 0.125;
        l->r.xyz[3 * v + i] = (float)x;
        if (m->rgb)
            l->r.rgb[3 * v + i] = (uint8_t)((m->rgb[3 * (uint64_t)lo + i] + m->rgb[3 * (uint64_t)hi + i] + 1) / 2);
    }
}

static void sharp_vertex(const struct level *l, uint64_t v)
{
    const struct recon_mesh *m = l->m;
    double sum[3] = { 0 };

    for (uint64_t k = l->near.first[v]; l->sharp[v] == 2 && k < l->near.first[v + 1]; k++) {
        uint32_t n = l->near.item[k];
        uint32_t low = n < v ? n : (uint32_t)v, high = n < v ? (uint32_t)v : n;
        uint64_t from = 0, to = l->t.edges;

        while (from < to) { /* the edge of the two: edges are sorted by them */
            uint64_t mid = from + (to - from) / 2;
            uint32_t h = l->t.half[l->t.first[mid]], a = m->index[h], b = m->index[topo_next(h)];
            uint32_t x = a < b ? a : b, y = a < b ? b : a;

            if (x < low || (x == low && y < high))
                from = mid + 1;
            else
                to = mid;
        }
        for (uint64_t i = 0; topo_count(&l->t, (uint32_t)from) != 2 && i < 3; i++)
            sum[i] += (double)m->xyz[3 * (uint64_t)n + i];
    }
    for (uint64_t i = 0; i < 3; i++)
        l->r.xyz[3 * v + i] = l->sharp[v] == 2 ? (float)(0.75 * (double)m->xyz[3 * v + i] + 0.125 * sum[i]) : m->xyz[3 * v + i];
}

static void old_vertex(const struct level *l, uint64_t v)
{
    const struct recon_mesh *m = l->m;
    uint64_t n = l->near.first[v + 1] - l->near.first[v];
    double sum[3] = { 0 }, beta;

    if (m->rgb)
        memcpy(l->r.rgb + 3 * v, m->rgb + 3 * v, 3);
    if (!l->loop || n == 0) {
        memcpy(l->r.xyz + 3 * v, m->xyz + 3 * v, 12);
        return;
    }
    if (l->sharp[v]) {
        sharp_vertex(l, v);
        return;
    }
    beta = loop_beta(n);
    for (uint64_t k = l->near.first[v]; k < l->near.first[v + 1]; k++)
        for (uint64_t i = 0; i < 3; i++)
            sum[i] += (double)m->xyz[3 * (uint64_t)l->near.item[k] + i];
    for (uint64_t i = 0; i < 3; i++)
        l->r.xyz[3 * v + i] = (float)((1 - (double)n * beta) * (double)m->xyz[3 * v + i] + beta * sum[i]);
}

/* faces that name a vertex twice have no edges and go */
static void split(const struct level *l, uint64_t f, uint64_t to)
{
    const uint32_t *v = l->m->index + 3 * f;
    uint32_t e[3], base = (uint32_t)l->m->vertices;

    for (uint64_t i = 0; i < 3; i++)
        e[i] = base + l->t.edge_of[3 * f + i];
    memcpy(l->r.index + 12 * to, (uint32_t[]){ v[0], e[0], e[2], v[1], e[1], e[0], v[2], e[2], e[1], e[0], e[1], e[2] }, 48);
}

static int prepare(struct recon_ctx *ctx, struct level *l)
{
    const struct recon_mesh *m = l->m;

    if (subdivide_fits(ctx, m->vertices, m->faces) || topo_build(ctx, m, &l->t) || rows_neighbours(ctx, &l->t, &l->near) ||
        !(l->sharp = ctx->host->alloc(ctx, 4 * m->vertices)))
        return -1;
    memset(l->sharp, 0, 4 * m->vertices);
    for (uint64_t e = 0; e < l->t.edges; e++)
        if (topo_count(&l->t, (uint32_t)e) != 2) {
            uint32_t h = l->t.half[l->t.first[e]];

            l->sharp[m->index[h]]++;
            l->sharp[m->index[topo_next(h)]]++;
        }
    l->r = (struct recon_mesh){ .vertices = m->vertices + l->t.edges, .faces = 4 * (l->t.halves / 3), .place = RECON_HOST };
    l->r.xyz = ctx->host->alloc(ctx, 12 * l->r.vertices);
    l->r.index = l->r.xyz ? ctx->host->alloc(ctx, 12 * l->r.faces) : NULL;
    l->r.rgb = l->r.index && m->rgb ? ctx->host->alloc(ctx, 3 * l->r.vertices) : NULL;
    return l->r.index && (l->r.rgb || !m->rgb) ? 0 : -1;
}

static int subdivide(struct recon_ctx *ctx, const struct recon_mesh *m, int loop, struct recon_mesh *ret)
{
    struct level l = { .m = m, .loop = loop };
    int rc = prepare(ctx, &l);

    if (rc == 0) {
        uint64_t k = 0;

#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (m->faces > 10000)
        for (uint64_t v = 0; v < m->vertices; v++)
            old_vertex(&l, v);
#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (m->faces > 10000)
        for (uint64_t e = 0; e < l.t.edges; e++)
            edge_vertex(&l, e);
        for (uint64_t f = 0; f < m->faces; f++)
            if (l.t.edge_of[3 * f] != TOPO_NONE)
                split(&l, f, k++);
        *ret = l.r;
    } else {
        mesh_free(ctx, &l.r);
    }
    topo_release(ctx, &l.t);
    rows_release(ctx, &l.near);
    ctx->host->free(ctx, l.sharp);
    return rc;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct recon_mesh now = *(const struct recon_mesh *)in[0], next;

    cost->host_bytes = 0;
    for (int64_t i = 0, n = p[MESH_SUBDIVIDE_LEVELS].i; i < n; i++) {
        int rc = i > 0 && ctx->host->cancelled(ctx) ? subdivide_stopped(ctx, n - i)
                                                    : subdivide(ctx, &now, p[MESH_SUBDIVIDE_METHOD].i == MESH_SUBDIVIDE_LOOP, &next);

        if (rc == 0)
            subdivide_cost(now.vertices, now.faces, next.vertices - now.vertices, i == 0, cost);
        if (i > 0)
            mesh_free(ctx, &now);
        if (rc)
            return -1;
        now = next;
    }
    cost->items = now.faces;
    *(struct recon_mesh *)out[0] = now;
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_subdivide(ctx, &cpu_mesh_subdivide, NULL);
}

const struct recon_kernel cpu_mesh_subdivide = { RECON_KERNEL_ABI,      MESH_SUBDIVIDE_NAME, MESH_SUBDIVIDE_DOC, mesh_one_in, mesh_one_out,
                                                 mesh_subdivide_params, subdivide_bound,     run,                selftest,    subdivide_shape };
