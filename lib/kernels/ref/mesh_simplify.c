/* mesh.simplify, plain: every question is answered by a walk over all faces or all edges. The rule is that of quadric.h and of
 * doc/kernels-mesh.md; a mesh of some thousand faces takes a while. */
#include "config.h"
#include "kernels/quadric.h"
#include "kernels/ref/mesh_ref.h"

enum { WAITS = 1, NEVER = 2 };

struct edge {
    uint32_t a, b; /* a < b */
    int level, state; /* state: WAITS until one of its ends changes; NEVER: between locked vertices, or gone */
};

struct plain {
    struct recon_ctx *ctx;
    struct simplify_order order;
    uint64_t n, faces, edges; /* n: vertices; faces, edges: at the beginning */
    float (*at)[3];
    struct quadric *q;
    uint8_t *locked, *moved, *gone, *rgb; /* gone: of a face */
    struct edge *edge;
    uint64_t left, used; /* faces and vertices in them */
    float most;
};

static bool in_face(const struct plain *s, uint64_t f, uint32_t v)
{
    const uint32_t *i = s->order.index + 3 * f;

    return !s->gone[f] && (i[0] == v || i[1] == v || i[2] == v);
}

static bool neighbours(const struct plain *s, uint32_t a, uint32_t b)
{
    bool yes = false;

    for (uint64_t f = 0; a != b && f < s->faces; f++)
        yes = yes || (in_face(s, f, a) && in_face(s, f, b));
    return yes;
}

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

/* ---- a collapse ---- */

struct found {
    uint32_t keep, drop;
    struct quadric q; /* about the middle */
    float h[3], p[3], error, order;
};

static void look(const struct plain *s, const struct edge *e, struct found *r)
{
    for (int i = 0; i < 3; i++)
        r->h[i] = (s->at[e->b][i] - s->at[e->a][i]) * 0.5f;
    quadric_sum(&s->q[e->a], &s->q[e->b], r->h, &r->q);
    r->keep = s->locked[e->b] ? e->b : e->a;
    r->drop = s->locked[e->b] ? e->a : e->b;
    if (!s->locked[r->keep])
        quadric_least(&r->q, r->p);
    else
        for (int i = 0; i < 3; i++)
            r->p[i] = r->keep == e->b ? r->h[i] : -r->h[i];
    r->error = quadric_at(&r->q, r->p);
    r->order = quadric_order(&r->q, r->h, r->error);
}

/* the third vertices of the faces at the edge; false unless there are two, in two faces */
static bool thirds_of(const struct plain *s, uint32_t a, uint32_t b, uint32_t third[2])
{
    int n = 0;

    for (uint64_t f = 0; f < s->faces; f++)
        if (in_face(s, f, a) && in_face(s, f, b)) {
            const uint32_t *v = s->order.index + 3 * f;

            if (n < 2)
                third[n] = v[0] ^ v[1] ^ v[2] ^ a ^ b;
            n++;
        }
    return n == 2 && third[0] != third[1];
}

static bool link_holds(const struct plain *s, uint32_t a, uint32_t b, const uint32_t third[2])
{
    bool with_a = false, with_b = false;

    for (uint32_t v = 0; v < s->n; v++)
        if (v != a && v != b && v != third[0] && v != third[1] && neighbours(s, v, a) && neighbours(s, v, b))
            return false;
    for (uint64_t f = 0; f < s->faces; f++)
        if (in_face(s, f, third[0]) && in_face(s, f, third[1])) {
            with_a = with_a || in_face(s, f, a);
            with_b = with_b || in_face(s, f, b);
        }
    return !(with_a && with_b);
}

/* the faces of v without other, once it is at p */
static bool stand(const struct plain *s, uint32_t v, uint32_t other, const float p[3])
{
    for (uint64_t f = 0; f < s->faces; f++) {
        const uint32_t *i = s->order.index + 3 * f;
        int k = i[1] == v ? 1 : i[2] == v ? 2 : 0;

        if (in_face(s, f, v) && !in_face(s, f, other) && !face_stands(s->at[v], s->at[i[(k + 1) % 3]], s->at[i[(k + 2) % 3]], p))
            return false;
    }
    return true;
}

static struct edge *edge_between(const struct plain *s, uint32_t a, uint32_t b)
{
    for (uint64_t e = 0; e < s->edges; e++)
        if ((s->edge[e].a == a && s->edge[e].b == b) || (s->edge[e].a == b && s->edge[e].b == a))
            return &s->edge[e];
    return NULL;
}

/* of the edges of both ends to a third vertex the one of the higher level stays, then the first; it is keep's */
static void merge(struct edge *x, struct edge *y)
{
    struct edge *lower, *higher;

    if (y < x) {
        lower = x;
        x = y;
        y = lower;
    }
    higher = x->state == NEVER || (y->state != NEVER && x->level >= y->level) ? x : y;
    lower = higher == x ? y : x;
    *lower = (struct edge){ .a = UINT32_MAX, .b = UINT32_MAX, .state = NEVER };
}

static void join(struct plain *s, uint32_t keep, uint32_t drop, const uint32_t third[2])
{
    *edge_between(s, keep, drop) = (struct edge){ .a = UINT32_MAX, .b = UINT32_MAX, .state = NEVER };
    for (int k = 0; k < 2; k++)
        merge(edge_between(s, keep, third[k]), edge_between(s, drop, third[k]));
    for (uint64_t f = 0; f < s->faces; f++) {
        if (in_face(s, f, keep) && in_face(s, f, drop)) {
            s->gone[f] = 1;
            s->left--;
        }
        for (uint64_t i = 0; i < 3; i++)
            if (s->order.index[3 * f + i] == drop)
                s->order.index[3 * f + i] = keep;
    }
    for (struct edge *e = s->edge; e < s->edge + s->edges; e++) {
        uint32_t x = e->a == drop ? keep : e->a, y = e->b == drop ? keep : e->b;

        e->a = x < y ? x : y;
        e->b = x < y ? y : x;
        if ((x == keep || y == keep) && e->state == WAITS)
            e->state = 0;
    }
    s->used--;
}

static bool collapse(struct plain *s, const struct edge *e, const struct found *c)
{
    float p[3], from_middle[3];
    uint32_t third[2];

    for (int i = 0; i < 3; i++) {
        p[i] = s->locked[c->keep] ? s->at[c->keep][i] : s->at[e->a][i] + (c->h[i] + c->p[i]);
        from_middle[i] = s->locked[c->keep] ? c->p[i] : p[i] - s->at[e->a][i] - c->h[i];
    }
    if ((s->most > 0 && c->error > s->most * c->q.area) || !thirds_of(s, c->keep, c->drop, third) ||
        !link_holds(s, c->keep, c->drop, third) || !stand(s, c->drop, c->keep, p) ||
        (!s->locked[c->keep] && !stand(s, c->keep, c->drop, p)))
        return false;
    s->q[c->keep] = c->q;
    quadric_move(&s->q[c->keep], from_middle);
    memcpy(s->at[c->keep], p, sizeof(p));
    for (uint64_t i = 0; s->rgb && !s->locked[c->keep] && i < 3; i++)
        s->rgb[3 * (uint64_t)c->keep + i] = (uint8_t)((s->rgb[3 * (uint64_t)c->keep + i] + s->rgb[3 * (uint64_t)c->drop + i] + 1) / 2);
    s->moved[c->keep] = !s->locked[c->keep];
    join(s, c->keep, c->drop, third);
    return true;
}

/* ---- all ---- */

static int take(struct plain *s, const struct recon_mesh *m)
{
    const struct recon_host *host = s->ctx->host;

    if (simplify_sort(s->ctx, m, &s->order) || !(s->at = host->alloc(s->ctx, 12 * s->n)) ||
        !(s->q = host->alloc(s->ctx, s->n * sizeof(*s->q))) || !(s->locked = host->alloc(s->ctx, s->n)) ||
        !(s->moved = host->alloc(s->ctx, s->n)) || !(s->gone = host->alloc(s->ctx, s->faces)) ||
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

static int work(struct plain *s, const struct recon_value *p)
{
    struct found c;
    bool more = true;

    for (uint64_t e = 0; e < s->edges; e++) {
        look(s, &s->edge[e], &c);
        s->edge[e].level = quadric_level(c.order);
        s->edge[e].state = s->locked[s->edge[e].a] && s->locked[s->edge[e].b] ? NEVER : 0;
    }
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
            look(s, e, &c);
            e->level = quadric_level(c.order);
            if (e->level <= level && !collapse(s, e, &c))
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
        rc = work(&s, p);
    }
    if (rc == 0)
        rc = result(&s, m, out[0]);
    if (rc == 0) {
        simplify_tell(ctx, p, s.left, s.used);
        simplify_cost(m, s.edges, cost);
    }
    for (void **x = (void *[]){ s.order.was, s.order.index, s.at, s.q, s.locked, s.moved, s.gone, s.rgb, s.edge, ctx }; *x != ctx; x++)
        ctx->host->free(ctx, *x);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_simplify(ctx, &ref_mesh_simplify);
}

const struct recon_kernel ref_mesh_simplify = { RECON_KERNEL_ABI,     MESH_SIMPLIFY_NAME, MESH_SIMPLIFY_DOC, mesh_one_in, mesh_one_out,
                                                mesh_simplify_params, simplify_bound,     run,               selftest,    NULL };
