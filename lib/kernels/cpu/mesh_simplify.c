/* Simplification by quadric errors, see quadric.h. Errors are taken in levels, the lowest first, and the edges of a level in the order
 * of their numbers, pass after pass: memory is walked from one end to the other. An edge whose ends changed is looked at again when
 * its old level comes, which is no higher than its new one: quadrics only grow. A vertex on a border, a non-manifold edge or of
 * several fans never moves and never goes, so borders stay edge for edge. A collapse is taken when the link condition holds (no
 * topology changes) and no face turns over. */
#include "config.h"
#include "kernels/cpu/simplify.h"

/* ---- preparation ---- */

static uint32_t corner_of(uint32_t half)
{
    return half / 3 * 4 + half % 3;
}

static void give_back(struct recon_ctx *ctx, uint32_t **array)
{
    ctx->host->free(ctx, *array);
    *array = NULL;
}

/* vertices and edges of the faces; what they were read from goes */
static int take_faces(struct simplify *s, struct topo *t)
{
    if (!(s->face = s->ctx->host->alloc(s->ctx, s->in->faces * sizeof(*s->face))))
        return -1;
    for (uint64_t f = 0; f < s->in->faces; f++) {
        memcpy(s->face[f].v, s->order.index + 3 * f, 12);
        memcpy(s->face[f].e, t->edge_of + 3 * f, 12);
        s->faces += t->edge_of[3 * f] != TOPO_NONE;
        if (t->edge_of[3 * f] == TOPO_NONE)
            s->face[f].v[0] = NO_CORNER;
    }
    give_back(s->ctx, &t->edge_of);
    give_back(s->ctx, &s->order.index);
    return 0;
}

/* next[i] of a face becomes the corner where the half-edge on the other side begins; vertices without one are locked */
static int pair_corners(struct simplify *s, const struct topo *t)
{
    s->edges = t->edges;
    if (!(s->corner = s->ctx->host->alloc(s->ctx, 4 * t->edges)) || !(s->state = s->ctx->host->alloc(s->ctx, s->in->vertices)))
        return -1;
    memset(s->state, VERTEX_FREE, s->in->vertices);
    for (uint64_t e = 0; e < t->edges; e++) {
        const uint32_t *h = t->half + t->first[e];
        uint32_t n = topo_count(t, (uint32_t)e), a = corner_of(h[0]), b = corner_of(h[n > 1]);
        struct corner_face *f = &s->face[a >> 2], *g = &s->face[b >> 2];

        s->corner[e] = a;
        if (n == 2 && f->v[a & 3] != g->v[b & 3]) {
            f->next[a & 3] = b;
            g->next[b & 3] = a;
        } else {
            s->state[f->v[a & 3]] = s->state[f->v[CORNER_NEXT(a & 3)]] = VERTEX_LOCKED;
        }
    }
    return 0;
}

static int take_vertices(struct simplify *s)
{
    const struct recon_host *host = s->ctx->host;
    const struct recon_mesh *m = s->in;

    if (!(s->vertex = host->alloc(s->ctx, m->vertices * sizeof(*s->vertex))) || !(s->level = host->alloc(s->ctx, s->edges + 8)) ||
        (m->rgb && !(s->rgb = host->alloc(s->ctx, 3 * m->vertices))))
        return -1;
    for (uint64_t v = 0; v < m->vertices; v++) {
        uint64_t was = s->order.was[v];

        s->vertex[v] = (struct corner_vertex){ .head = NO_CORNER };
        for (uint64_t i = 0; i < 3; i++)
            s->vertex[v].xyz[i] = m->xyz[3 * was + i] * s->order.scale;
        if (m->rgb)
            memcpy(s->rgb + 3 * v, m->rgb + 3 * was, 3);
    }
    return 0;
}

/* how many corners the fan around a vertex has, from one of its corners on; each edge there has another side */
static uint32_t fan_of(const struct simplify *s, uint32_t h)
{
    uint32_t n = 0, g = h;

    do {
        uint32_t k = s->face[g >> 2].next[g & 3]; /* the other side ends at the vertex: its next corner lies there */

        g = (k & ~3u) | CORNER_NEXT(k & 3);
        n++;
    } while (g != h);
    return n;
}

/* A vertex whose first fan does not have all of its corners, which mark counts, has several. */
static void lock_fans(struct simplify *s)
{
    for (uint64_t f = 0; f < s->in->faces; f++)
        for (int i = 0; s->face[f].v[0] != NO_CORNER && i < 3; i++)
            s->vertex[s->face[f].v[i]].mark++;
    for (uint64_t f = 0; f < s->in->faces; f++)
        for (uint32_t i = 0; s->face[f].v[0] != NO_CORNER && i < 3; i++) {
            uint32_t v = s->face[f].v[i], left = s->vertex[v].mark;

            s->vertex[v].mark = 0;
            s->vertices += left > 0;
            if (left > 0 && s->state[v] == VERTEX_FREE && fan_of(s, (uint32_t)(4 * f + i)) != left)
                s->state[v] = VERTEX_LOCKED;
        }
}

static void link_corners(struct simplify *s)
{
    for (uint64_t f = s->in->faces; f-- > 0;)
        for (uint32_t i = 3; s->face[f].v[0] != NO_CORNER && i-- > 0;) {
            s->face[f].next[i] = s->vertex[s->face[f].v[i]].head;
            s->vertex[s->face[f].v[i]].head = (uint32_t)(4 * f + i);
        }
}

static void make_quadrics(struct simplify *s)
{
    for (uint64_t f = 0; f < s->in->faces; f++) {
        const uint32_t *v = s->face[f].v;
        struct quadric q;
        double n[3];

        if (v[0] == NO_CORNER)
            continue;
        cross_of(s->vertex[v[0]].xyz, s->vertex[v[1]].xyz, s->vertex[v[2]].xyz, n);
        quadric_face(n, &q);
        for (int i = 0; i < 3; i++) {
            struct quadric *to = &s->vertex[v[i]].q;

            for (int k = 0; k < 3; k++) {
                to->d[k] += q.d[k];
                to->o[k] += q.o[k];
            }
            to->area += q.area;
        }
    }
}

static void fill_levels(struct simplify *s)
{
    memset(s->level, EDGE_NEVER, s->edges + 8);
    for (uint32_t e = 0; e < s->edges; e++) {
        struct candidate c;

        simplify_look(s, e, &c);
        if (!c.never)
            set_level(s, e, quadric_level(c.order));
    }
}

static int prepare(struct simplify *s)
{
    struct recon_mesh sorted = *s->in;
    struct topo t = { 0 };
    int rc;

    if (simplify_fits(s->ctx, s->in) || simplify_sort(s->ctx, s->in, &s->order))
        return -1;
    sorted.index = s->order.index;
    if (topo_build(s->ctx, &sorted, &t))
        return -1;
    rc = take_faces(s, &t);
    if (rc == 0)
        rc = pair_corners(s, &t);
    topo_release(s->ctx, &t);
    if (rc || take_vertices(s))
        return -1;
    lock_fans(s);
    link_corners(s);
    make_quadrics(s);
    fill_levels(s);
    return 0;
}

/* ---- all ---- */

static void turn(struct simplify *s, uint32_t e, uint8_t level)
{
    struct candidate c;
    uint8_t now;

    simplify_look(s, e, &c);
    now = quadric_level(c.order);
    if (c.never || now > level)
        set_level(s, e, c.never ? EDGE_NEVER : now);
    else if (!simplify_collapse(s, e, &c))
        set_level(s, e, now | EDGE_OUT);
}

static int pass(struct simplify *s, const struct recon_value *p, uint8_t level)
{
    for (uint64_t at = 0; at < s->edges; at += 8) {
        uint64_t now = simplify_due(s->level + at, level), rest = UINT64_MAX;

        if (at % 65536 == 0 && s->ctx->host->cancelled(s->ctx))
            return s->ctx->host->fail(s->ctx, CODE_DEADLINE, NULL, "mesh", "stopped at %llu faces", (unsigned long long)s->faces);
        for (; now; now = simplify_due(s->level + at, level) & rest) {
            if (simplify_enough(p, s->faces, s->vertices))
                return 0;
            turn(s, (uint32_t)at + (uint32_t)__builtin_ctzll(now) / 8, level);
            rest = ~(now ^ (now - 1)); /* above this one */
        }
    }
    return 0;
}

static int work(struct simplify *s, const struct recon_value *p)
{
    uint64_t wait = 0;

    for (uint8_t level = 0; level <= QUADRIC_LAST; level++) {
        wait = 0;
        for (int i = 0; i <= level; i++)
            wait += s->in_level[i];
        if (simplify_enough(p, s->faces, s->vertices))
            return 0;
        if (wait && pass(s, p, level))
            return -1;
        if (level == QUADRIC_LAST && wait)
            level--;
    }
    return 0;
}

/* what is left, without the rest; mark serves again */
static int result(struct simplify *s, struct recon_mesh *ret)
{
    const struct recon_host *host = s->ctx->host;
    struct recon_mesh r = { .faces = s->faces, .place = RECON_HOST };
    const struct recon_mesh *m = s->in;
    uint64_t k = 0;

    host->free(s->ctx, s->level);
    s->level = NULL;
    for (uint64_t v = 0; v < m->vertices; v++)
        r.vertices += s->vertex[v].head != NO_CORNER;
    r.xyz = host->alloc(s->ctx, 12 * r.vertices);
    r.index = r.xyz ? host->alloc(s->ctx, 12 * r.faces) : NULL;
    r.rgb = r.index && s->rgb ? host->alloc(s->ctx, 3 * r.vertices) : NULL;
    if (!r.index || (s->rgb && !r.rgb)) {
        mesh_free(s->ctx, &r);
        return -1;
    }
    for (uint64_t v = 0; v < m->vertices; v++) {
        if (s->vertex[v].head == NO_CORNER)
            continue;
        for (uint64_t i = 0; i < 3; i++)
            r.xyz[3 * k + i] = s->state[v] == VERTEX_MOVED ? s->vertex[v].xyz[i] / s->order.scale : m->xyz[3 * (uint64_t)s->order.was[v] + i];
        if (s->rgb)
            memcpy(r.rgb + 3 * k, s->rgb + 3 * v, 3);
        s->vertex[v].mark = (uint32_t)k++;
    }
    k = 0;
    for (uint64_t f = 0; f < m->faces; f++)
        for (int i = 0; s->face[f].v[0] != NO_CORNER && i < 3; i++)
            r.index[k++] = s->vertex[s->face[f].v[i]].mark;
    *ret = r;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct simplify s = { .ctx = ctx, .in = in[0] };
    int rc = simplify_check(ctx, p);

    if (rc == 0)
        rc = prepare(&s);
    if (rc == 0) {
        s.most = simplify_most(p, s.order.scale);
        rc = p[MESH_SIMPLIFY_METHOD].i == MESH_SIMPLIFY_ROUNDS ? simplify_rounds(&s, p) : work(&s, p);
    }
    if (rc == 0)
        rc = result(&s, out[0]);
    if (rc == 0) {
        simplify_tell(ctx, p, s.faces, s.vertices);
        simplify_cost(s.in, p, s.edges, cost);
    }
    for (void **x = (void *[]){ s.order.was, s.order.index, s.face, s.vertex, s.state, s.rgb, s.corner, s.level, ctx }; *x != ctx; x++)
        ctx->host->free(ctx, *x);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_simplify(ctx, &cpu_mesh_simplify, NULL);
}

const struct recon_kernel cpu_mesh_simplify = { RECON_KERNEL_ABI,     MESH_SIMPLIFY_NAME, MESH_SIMPLIFY_DOC, mesh_one_in, mesh_one_out,
                                                mesh_simplify_params, simplify_bound,     run,               selftest,    NULL };
