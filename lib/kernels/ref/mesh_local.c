/* Smoothing, normals and subdivision over the list of edges or faces. */
#include "config.h"
#include "kernels/mesh_normal.h"
#include "kernels/ref/mesh_ref.h"

#include <math.h>

/* ---- mesh.smooth: neighbours are added up edge by edge ---- */

struct sum {
    double x[3], w;
};

static void add(struct sum *s, const float *p, const float *q, bool distance)
{
    double d[3], w = 1;

    for (int i = 0; i < 3; i++)
        d[i] = (double)q[i] - (double)p[i];
    if (distance)
        w = 1 / (sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) + 1e-12);
    for (int i = 0; i < 3; i++)
        s->x[i] += w * d[i];
    s->w += w;
}

static void smooth_turn(struct recon_mesh *m, const uint64_t *e, uint64_t n, const uint8_t *fixed, double share, bool distance, struct sum *s)
{
    memset(s, 0, m->vertices * sizeof(*s));
    for (uint64_t k = 0; k < n; k++) {
        uint64_t a = e[k] >> 32, b = e[k] & UINT32_MAX;

        add(&s[a], m->xyz + 3 * a, m->xyz + 3 * b, distance);
        add(&s[b], m->xyz + 3 * b, m->xyz + 3 * a, distance);
    }
    for (uint64_t v = 0; v < m->vertices; v++)
        for (uint64_t i = 0; s[v].w > 0 && !fixed[v] && i < 3; i++)
            m->xyz[3 * v + i] = (float)((double)m->xyz[3 * v + i] + share * (s[v].x[i] / s[v].w));
}

static void fix_border(const struct recon_mesh *m, const uint64_t *e, uint64_t n, uint8_t *fixed, uint32_t *uses)
{
    memset(uses, 0, 4 * n);
    for (uint64_t f = 0; f < m->faces; f++)
        for (uint64_t i = 0; !face_degenerate(m->index + 3 * f) && i < 3; i++)
            uses[ref_edge(e, n, m->index[3 * f + i], m->index[3 * f + (i + 1) % 3])]++;
    for (uint64_t k = 0; k < n; k++)
        if (uses[k] != 2)
            fixed[e[k] >> 32] = fixed[e[k] & UINT32_MAX] = 1;
}

static int smooth_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    bool taubin = p[MESH_SMOOTH_METHOD].i == MESH_SMOOTH_TAUBIN, distance = p[MESH_SMOOTH_WEIGHTS].i == MESH_SMOOTH_DISTANCE;
    uint64_t n = 0, *e = ref_edges(ctx, m, &n);
    struct sum *s = ctx->host->alloc(ctx, m->vertices * sizeof(*s) + 1);
    uint8_t *fixed = ctx->host->alloc(ctx, m->vertices + 1);
    uint32_t *uses = ctx->host->alloc(ctx, 4 * n + 4);
    struct recon_mesh c = { 0 };
    int rc = e && s && fixed && uses && mesh_copy(ctx, m, false, true, &c) == 0 ? mesh_keep(ctx, m, false, &c) : -1;

    if (rc == 0) {
        memset(fixed, 0, m->vertices);
        if (p[MESH_SMOOTH_BORDER].i == MESH_SMOOTH_FIX)
            fix_border(m, e, n, fixed, uses);
        for (int64_t i = 0; i < p[MESH_SMOOTH_ITERATIONS].i; i++) {
            smooth_turn(&c, e, n, fixed, p[MESH_SMOOTH_LAMBDA].f, distance, s);
            if (taubin)
                smooth_turn(&c, e, n, fixed, p[MESH_SMOOTH_MU].f, distance, s);
        }
        smooth_bound(ctx, in, p, cost);
        *(struct recon_mesh *)out[0] = c;
        c = (struct recon_mesh){ 0 };
    }
    mesh_free(ctx, &c);
    ctx->host->free(ctx, e);
    ctx->host->free(ctx, s);
    ctx->host->free(ctx, fixed);
    ctx->host->free(ctx, uses);
    return rc;
}

static int smooth_selftest(struct recon_ctx *ctx)
{
    return golden_smooth(ctx, &ref_mesh_smooth, NULL);
}

const struct recon_kernel ref_mesh_smooth = { RECON_KERNEL_ABI,   MESH_SMOOTH_NAME, MESH_SMOOTH_DOC, mesh_one_in,     mesh_one_out,
                                              mesh_smooth_params, smooth_bound,     smooth_run,      smooth_selftest, same_shape };

/* ---- mesh.normals: faces are dealt out to their vertices ---- */

static int normals_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    double(*sum)[3] = ctx->host->alloc(ctx, 24 * m->vertices + 24);
    struct recon_mesh c = { 0 };
    int rc = sum && mesh_copy(ctx, m, false, true, &c) == 0 ? mesh_keep(ctx, m, false, &c) : -1;

    if (rc == 0 && !(c.normals = ctx->host->alloc(ctx, 12 * m->vertices)))
        rc = -1;
    if (rc == 0) {
        memset(sum, 0, 24 * m->vertices);
        for (uint32_t h = 0; h < 3 * m->faces; h++)
            normal_add(&c, h, p[MESH_NORMALS_WEIGHT].i == MESH_NORMALS_ANGLE, sum[c.index[h]]);
        for (uint64_t v = 0; v < m->vertices; v++)
            normal_unit(sum[v], c.normals + 3 * v);
        normals_bound(ctx, in, p, cost);
        *(struct recon_mesh *)out[0] = c;
        c = (struct recon_mesh){ 0 };
    }
    mesh_free(ctx, &c);
    ctx->host->free(ctx, sum);
    return rc;
}

static int normals_selftest(struct recon_ctx *ctx)
{
    return golden_normals(ctx, &ref_mesh_normals, NULL);
}

const struct recon_kernel ref_mesh_normals = { RECON_KERNEL_ABI,    MESH_NORMALS_NAME, MESH_NORMALS_DOC, mesh_one_in,      mesh_one_out,
                                               mesh_normals_params, normals_bound,     normals_run,      normals_selftest, same_shape };

/* ---- mesh.subdivide ---- */

struct level {
    const struct recon_mesh *m;
    uint64_t *e, n;
    uint32_t *uses;     /* of an edge */
    double (*apex)[3];  /* of an edge: sum of the vertices opposite */
    double (*around)[3], (*along)[3]; /* of a vertex: sum of neighbours; of those across edges of other than two faces */
    uint32_t *degree, *sharp;
};

static void gather(const struct level *l)
{
    const struct recon_mesh *m = l->m;

    for (uint64_t f = 0; f < m->faces; f++)
        for (uint64_t i = 0; !face_degenerate(m->index + 3 * f) && i < 3; i++) {
            uint64_t k = ref_edge(l->e, l->n, m->index[3 * f + i], m->index[3 * f + (i + 1) % 3]);

            l->uses[k]++;
            for (uint64_t a = 0; a < 3; a++)
                l->apex[k][a] += (double)m->xyz[3 * (uint64_t)m->index[3 * f + (i + 2) % 3] + a];
        }
    for (uint64_t k = 0; k < l->n; k++) {
        uint64_t end[2] = { l->e[k] >> 32, l->e[k] & UINT32_MAX };

        for (int s = 0; s < 2; s++) {
            l->degree[end[s]]++;
            l->sharp[end[s]] += l->uses[k] != 2;
            for (uint64_t a = 0; a < 3; a++) {
                l->around[end[s]][a] += (double)m->xyz[3 * end[!s] + a];
                l->along[end[s]][a] += l->uses[k] != 2 ? (double)m->xyz[3 * end[!s] + a] : 0;
            }
        }
    }
}

static double old_place(const struct level *l, uint64_t v, uint64_t a)
{
    double x = (double)l->m->xyz[3 * v + a], beta;

    if (l->degree[v] == 0 || (l->sharp[v] && l->sharp[v] != 2))
        return x;
    if (l->sharp[v])
        return 0.75 * x + 0.125 * l->along[v][a];
    beta = loop_beta(l->degree[v]);
    return (1 - (double)l->degree[v] * beta) * x + beta * l->around[v][a];
}

static void place(const struct level *l, bool loop, struct recon_mesh *r)
{
    const struct recon_mesh *m = l->m;
    uint64_t to = 0;

    for (uint64_t i = 0; i < 3 * m->vertices; i++) {
        r->xyz[i] = loop ? (float)old_place(l, i / 3, i % 3) : m->xyz[i];
        if (m->rgb)
            r->rgb[i] = m->rgb[i];
    }
    for (uint64_t k = 0; k < l->n; k++)
        for (uint64_t a = 0; a < 3; a++) {
            uint64_t i = 3 * (l->e[k] >> 32) + a, j = 3 * (l->e[k] & UINT32_MAX) + a, v = 3 * (m->vertices + k) + a;
            double ends = (double)m->xyz[i] + (double)m->xyz[j];

            r->xyz[v] = (float)(loop && l->uses[k] == 2 ? ends * 0.375 + l->apex[k][a] * 0.125 : ends * 0.5);
            if (m->rgb)
                r->rgb[v] = (uint8_t)((m->rgb[i] + m->rgb[j] + 1) / 2);
        }
    for (uint64_t f = 0; f < m->faces; f++) {
        const uint32_t *v = m->index + 3 * f;
        uint32_t x[3];

        if (face_degenerate(v))
            continue;
        for (int i = 0; i < 3; i++)
            x[i] = (uint32_t)(m->vertices + ref_edge(l->e, l->n, v[i], v[(i + 1) % 3]));
        memcpy(r->index + 3 * to, (uint32_t[]){ v[0], x[0], x[2], v[1], x[1], x[0], v[2], x[2], x[1], x[0], x[1], x[2] }, 48);
        to += 4;
    }
    r->faces = to;
}

static void *zeroed(struct recon_ctx *ctx, uint64_t bytes)
{
    void *p = ctx->host->alloc(ctx, bytes + 1);

    if (p)
        memset(p, 0, bytes);
    return p;
}

static int subdivide(struct recon_ctx *ctx, const struct recon_mesh *m, bool loop, struct recon_mesh *ret)
{
    struct recon_mesh r = { .place = RECON_HOST };
    struct level l = { .m = m };
    int rc = -1;

    if (subdivide_fits(ctx, m->vertices, m->faces) || !(l.e = ref_edges(ctx, m, &l.n)))
        return -1;
    r.vertices = m->vertices + l.n;
    l.uses = zeroed(ctx, 4 * l.n);
    l.apex = zeroed(ctx, 24 * l.n);
    l.around = zeroed(ctx, 24 * m->vertices);
    l.along = zeroed(ctx, 24 * m->vertices);
    l.degree = zeroed(ctx, 4 * m->vertices);
    l.sharp = zeroed(ctx, 4 * m->vertices);
    r.xyz = zeroed(ctx, 12 * r.vertices);
    r.index = zeroed(ctx, 48 * m->faces);
    r.rgb = m->rgb ? zeroed(ctx, 3 * r.vertices) : NULL;
    if (l.uses && l.apex && l.around && l.along && l.degree && l.sharp && r.xyz && r.index && (r.rgb || !m->rgb)) {
        gather(&l);
        place(&l, loop, &r);
        *ret = r;
        rc = 0;
    } else {
        mesh_free(ctx, &r);
    }
    for (void **x = (void *[]){ l.e, l.uses, l.apex, l.around, l.along, l.degree, l.sharp, ctx }; *x != ctx; x++)
        ctx->host->free(ctx, *x);
    return rc;
}

static int subdivide_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct recon_mesh now = *(const struct recon_mesh *)in[0], next;

    for (int64_t i = 0; i < p[MESH_SUBDIVIDE_LEVELS].i; i++) {
        int rc = i > 0 && ctx->host->cancelled(ctx) ? subdivide_stopped(ctx, p[MESH_SUBDIVIDE_LEVELS].i - i)
                                                    : subdivide(ctx, &now, p[MESH_SUBDIVIDE_METHOD].i == MESH_SUBDIVIDE_LOOP, &next);

        if (i > 0)
            mesh_free(ctx, &now);
        if (rc)
            return -1;
        now = next;
    }
    subdivide_bound(ctx, in, p, cost);
    cost->items = now.faces;
    *(struct recon_mesh *)out[0] = now;
    return 0;
}

static int subdivide_selftest(struct recon_ctx *ctx)
{
    return golden_subdivide(ctx, &ref_mesh_subdivide, NULL);
}

const struct recon_kernel ref_mesh_subdivide = { RECON_KERNEL_ABI,      MESH_SUBDIVIDE_NAME, MESH_SUBDIVIDE_DOC, mesh_one_in,        mesh_one_out,
                                                 mesh_subdivide_params, subdivide_bound,     subdivide_run,      subdivide_selftest, subdivide_shape };
