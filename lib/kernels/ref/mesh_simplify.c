/* mesh.simplify, plain: every question is answered by a walk over all faces or all edges. The rule is that of quadric.h and of
 * doc/kernels-mesh.md; a mesh of some thousand faces takes a while. */
#include "config.h"
#include "kernels/ref/simplify_ref.h"

/* ---- what never moves ---- */

/* exactly two faces at the edge, which run along it in turn */
static bool inner(const struct plain *s, const struct edge *e)
{
    int along = 0, against = 0;

    for (uint64_t f = 0; f < s->faces; f++)
        for (uint64_t i = 0; !s->gone[f] && i < 3; i++) {
            uint32_t x = s->order.index[3 * f + i], y = s->order.index[3 * f + (i + 1) % 3];

            along += x == e->a && y == e->b;
            against += x == e->b && y == e->a;
        }
    return along == 1 && against == 1;
}

static bool share_edge_at(const struct plain *s, uint64_t f, uint64_t g, uint32_t v)
{
    for (int i = 0; i < 3; i++) {
        uint32_t x = s->order.index[3 * f + (uint64_t)i];

        if (x != v && in_face(s, g, x))
            return true;
    }
    return false;
}

/* whether all faces at v are reached from one of them over edges at v; reached: of a face */
static bool one_fan(const struct plain *s, uint32_t v, uint8_t *reached)
{
    uint64_t all = 0, found = 0;
    bool more = true;

    for (uint64_t f = 0; f < s->faces; f++) {
        reached[f] = in_face(s, f, v) && all == 0;
        all += in_face(s, f, v);
    }
    while (more) {
        more = false;
        for (uint64_t f = 0; f < s->faces; f++)
            for (uint64_t g = 0; in_face(s, f, v) && !reached[f] && g < s->faces; g++)
                if (reached[g] && share_edge_at(s, f, g, v))
                    reached[f] = more = true;
    }
    for (uint64_t f = 0; f < s->faces; f++)
        found += reached[f];
    return found == all;
}

static int lock(struct plain *s)
{
    uint8_t *reached = s->ctx->host->alloc(s->ctx, s->faces);

    if (!reached)
        return -1;
    for (uint64_t e = 0; e < s->edges; e++)
        if (!inner(s, &s->edge[e]))
            s->locked[s->edge[e].a] = s->locked[s->edge[e].b] = 1;
    for (uint32_t v = 0; v < s->n; v++)
        if (!one_fan(s, v, reached))
            s->locked[v] = 1;
    s->ctx->host->free(s->ctx, reached);
    return 0;
}

/* ---- all ---- */

static int take(struct plain *s, const struct recon_mesh *m)
{
    const struct recon_host *host = s->ctx->host;

    if (simplify_sort(s->ctx, m, &s->order) || !(s->at = host->alloc(s->ctx, 12 * s->n)) ||
        !(s->q = host->alloc(s->ctx, s->n * sizeof(*s->q))) || !(s->locked = host->alloc(s->ctx, s->n)) ||
        !(s->moved = host->alloc(s->ctx, s->n)) || !(s->near = host->alloc(s->ctx, s->n)) || !(s->gone = host->alloc(s->ctx, s->faces)) ||
        (m->rgb && !(s->rgb = host->alloc(s->ctx, 3 * s->n))))
        return -1;
    memset(s->locked, 0, s->n);
    memset(s->moved, 0, s->n);
    for (uint64_t v = 0; v < s->n; v++) {
        s->q[v] = (struct quadric){ .area = 0 };
        for (uint64_t i = 0; i < 3; i++) {
            s->at[v][i] = m->xyz[3 * (uint64_t)s->order.was[v] + i] * s->order.scale;
            if (m->rgb)
                s->rgb[3 * v + i] = m->rgb[3 * (uint64_t)s->order.was[v] + i];
        }
    }
    return 0;
}

static void add_face(struct plain *s, const uint32_t *v)
{
    struct quadric q;
    double n[3];

    cross_of(s->at[v[0]], s->at[v[1]], s->at[v[2]], n);
    quadric_face(n, &q);
    for (int i = 0; i < 3; i++) {
        struct quadric *to = &s->q[v[i]];

        for (int k = 0; k < 3; k++) {
            to->d[k] += q.d[k];
            to->o[k] += q.o[k];
        }
        to->area += q.area;
    }
}

static int prepare(struct plain *s, const struct recon_mesh *m)
{
    struct recon_mesh sorted = { .vertices = s->n, .faces = s->faces };
    uint64_t *pairs;

    if (take(s, m))
        return -1;
    sorted.index = s->order.index;
    if (!(pairs = ref_edges(s->ctx, &sorted, &s->edges)) || !(s->edge = s->ctx->host->alloc(s->ctx, s->edges * sizeof(*s->edge)))) {
        s->ctx->host->free(s->ctx, pairs);
        return -1;
    }
    for (uint64_t e = 0; e < s->edges; e++)
        s->edge[e] = (struct edge){ .a = (uint32_t)(pairs[e] >> 32), .b = (uint32_t)pairs[e] };
    s->ctx->host->free(s->ctx, pairs);
    for (uint64_t f = 0; f < s->faces; f++) {
        s->gone[f] = face_degenerate(s->order.index + 3 * f);
        s->left += !s->gone[f];
        if (!s->gone[f])
            add_face(s, s->order.index + 3 * f);
    }
    for (uint32_t v = 0; v < s->n; v++) {
        bool used = false;

        for (uint64_t f = 0; f < s->faces; f++)
            used = used || in_face(s, f, v);
        s->used += used;
    }
    return lock(s);
}

static int by_levels(struct plain *s, const struct recon_value *p)
{
    struct plain_collapse c;
    bool more = true;

    for (int level = 0; level <= QUADRIC_LAST; level += level < QUADRIC_LAST || !more) {
        more = false;
        for (struct edge *e = s->edge; e < s->edge + s->edges; e++) {
            if (e->state || e->level > level)
                continue;
            if (simplify_enough(p, s->left, s->used))
                return 0;
            if (s->ctx->host->cancelled(s->ctx))
                return s->ctx->host->fail(s->ctx, CODE_DEADLINE, NULL, "mesh", "stopped at %llu faces", (unsigned long long)s->left);
            more = true;
            if (s->locked[e->a] && s->locked[e->b]) {
                e->state = NEVER;
                continue;
            }
            plain_look(s, e, &c);
            e->level = quadric_level(c.order);
            if (e->level > level)
                continue;
            if (plain_may(s, &c))
                plain_go(s, e, &c);
            else
                e->state = WAITS;
        }
    }
    return 0;
}

static int result(const struct plain *s, const struct recon_mesh *m, struct recon_mesh *r)
{
    uint32_t *to = s->ctx->host->alloc(s->ctx, 4 * s->n);
    uint64_t k = 0;

    *r = (struct recon_mesh){ .vertices = s->used, .faces = s->left, .place = RECON_HOST };
    r->xyz = s->ctx->host->alloc(s->ctx, 12 * s->used);
    r->index = s->ctx->host->alloc(s->ctx, 12 * s->left);
    r->rgb = s->rgb ? s->ctx->host->alloc(s->ctx, 3 * s->used) : NULL;
    for (uint32_t v = 0; to && r->xyz && r->index && v < s->n; v++) {
        bool used = false;

        for (uint64_t f = 0; f < s->faces; f++)
            used = used || in_face(s, f, v);
        for (uint64_t i = 0; used && i < 3; i++) {
            r->xyz[3 * k + i] = s->moved[v] ? s->at[v][i] / s->order.scale : m->xyz[3 * (uint64_t)s->order.was[v] + i];
            if (r->rgb)
                r->rgb[3 * k + i] = s->rgb[3 * (uint64_t)v + i];
        }
        to[v] = (uint32_t)k;
        k += used;
    }
    k = 0;
    for (uint64_t f = 0; to && r->xyz && r->index && f < s->faces; f++)
        for (uint64_t i = 0; !s->gone[f] && i < 3; i++)
            r->index[k++] = to[s->order.index[3 * f + i]];
    s->ctx->host->free(s->ctx, to);
    if (to && r->xyz && r->index && (r->rgb || !s->rgb))
        return 0;
    mesh_free(s->ctx, r);
    return -1;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct plain s = { .ctx = ctx, .n = m->vertices, .faces = m->faces };
    int rc = simplify_check(ctx, p);

    if (rc == 0)
        rc = prepare(&s, m);
    if (rc == 0) {
        s.most = simplify_most(p, s.order.scale);
        for (uint64_t e = 0; e < s.edges; e++)
            plain_level(&s, &s.edge[e]);
        rc = p[MESH_SIMPLIFY_METHOD].i == MESH_SIMPLIFY_ROUNDS ? plain_rounds(&s, p) : by_levels(&s, p);
    }
    if (rc == 0)
        rc = result(&s, m, out[0]);
    if (rc == 0) {
        simplify_tell(ctx, p, s.left, s.used);
        simplify_cost(m, p, s.edges, cost);
    }
    for (void **x = (void *[]){ s.order.was, s.order.index, s.at, s.q, s.locked, s.moved, s.near, s.gone, s.rgb, s.edge, ctx }; *x != ctx; x++)
        ctx->host->free(ctx, *x);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_simplify(ctx, &ref_mesh_simplify, NULL);
}

const struct recon_kernel ref_mesh_simplify = { RECON_KERNEL_ABI,     MESH_SIMPLIFY_NAME, MESH_SIMPLIFY_DOC, mesh_one_in, mesh_one_out,
                                                mesh_simplify_params, simplify_bound,     run,               selftest,    NULL };
