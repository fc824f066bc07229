/* Simplification by quadric errors (Garland and Heckbert 1997): quadrics weighted by area, the cheapest collapse first, ties
 * by vertex numbers. A vertex on a border, a non-manifold edge or of several fans never moves and never goes, so borders
 * stay edge for edge. A collapse is taken when the link condition holds (no topology changes) and no face turns over. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"

#include <math.h>
#include <stdlib.h>

struct quadric {
    double a[6], b[3], c; /* x'Ax + 2b'x + c; a: xx xy xz yy yz zz */
};

struct edge {
    double cost;
    uint32_t a, b, age_a, age_b; /* ages of a and b when it was put in */
};

struct simplify {
    struct recon_ctx *ctx;
    struct recon_mesh m; /* index of a face that went: UINT32_MAX first */
    double middle[3];    /* quadrics are about it */
    struct quadric *q;
    uint32_t *head, *next; /* corners of a vertex: chain; UINT32_MAX ends */
    uint32_t *age, *mark;
    uint8_t *locked, *gone;
    /* Edges of cost up to upto are a heap from the beginning; dearer ones lie in no order at the end until the heap is
     * empty, and most are stale by then. */
    struct edge *heap;
    uint64_t n, rest, cap;
    double upto;
    uint64_t faces, vertices;
    uint32_t marks;
};

/* ---- heap of edges ---- */

static bool less(const struct edge *x, const struct edge *y)
{
    return x->cost != y->cost ? x->cost < y->cost : x->a != y->a ? x->a < y->a : x->b < y->b;
}

static void sift_down(struct edge *h, uint64_t i, uint64_t n)
{
    struct edge x = h[i];

    for (uint64_t k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && less(&h[k + 1], &h[k]);
        if (!less(&h[k], &x))
            break;
        h[i] = h[k];
    }
    h[i] = x;
}

static bool stale(const struct simplify *s, const struct edge *e)
{
    return s->age[e->a] != e->age_a || s->age[e->b] != e->age_b;
}

static void drop_stale(struct simplify *s)
{
    uint64_t k = 0, at = s->cap;

    for (uint64_t i = 0; i < s->n; i++)
        if (!stale(s, &s->heap[i]))
            s->heap[k++] = s->heap[i];
    for (uint64_t i = s->cap; i-- > s->cap - s->rest;)
        if (!stale(s, &s->heap[i]))
            s->heap[--at] = s->heap[i];
    s->n = k;
    s->rest = s->cap - at;
    for (uint64_t i = k / 2; i-- > 0;)
        sift_down(s->heap, i, k);
}

/* what is stale goes; still three quarters full: twice the room */
static int make_room(struct simplify *s)
{
    struct edge *more;

    drop_stale(s);
    if (s->n + s->rest <= s->cap / 4 * 3)
        return 0;
    if (!(more = s->ctx->host->alloc(s->ctx, 2 * s->cap * sizeof(*more))))
        return -1;
    memcpy(more, s->heap, s->n * sizeof(*more));
    memcpy(more + 2 * s->cap - s->rest, s->heap + s->cap - s->rest, s->rest * sizeof(*more));
    s->ctx->host->free(s->ctx, s->heap);
    s->heap = more;
    s->cap *= 2;
    return 0;
}

static int push(struct simplify *s, const struct edge *e)
{
    uint64_t i;

    if (s->n + s->rest == s->cap && make_room(s))
        return -1;
    if (e->cost > s->upto) {
        s->heap[s->cap - ++s->rest] = *e;
        return 0;
    }
    for (i = s->n++; i > 0 && less(e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = *e;
    return 0;
}

static int by_cost(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* the cost up to which about a sixteenth of what lies at the end goes next */
static double next_cost(const struct simplify *s)
{
    double sample[256];
    uint64_t step = s->rest / 256, from = s->cap - s->rest;

    if (step == 0)
        return INFINITY;
    for (uint64_t i = 0; i < 256; i++)
        sample[i] = s->heap[from + i * step].cost;
    qsort(sample, 256, sizeof(*sample), by_cost);
    return sample[16];
}

/* The heap is empty: the cheapest of the rest become it; false when nothing is left. */
static bool refill(struct simplify *s)
{
    uint64_t lo, hi;

    drop_stale(s);
    if (!s->rest)
        return false;
    s->upto = next_cost(s);
    lo = s->cap - s->rest;
    hi = s->cap;
    while (lo < hi) { /* the cheap ones to the front of the rest, then to the front of all */
        struct edge e = s->heap[lo];

        if (!(e.cost > s->upto)) {
            lo++;
            continue;
        }
        s->heap[lo] = s->heap[--hi];
        s->heap[hi] = e;
    }
    s->n = lo - (s->cap - s->rest);
    memmove(s->heap, s->heap + s->cap - s->rest, s->n * sizeof(*s->heap));
    s->rest -= s->n;
    for (uint64_t i = s->n / 2; i-- > 0;)
        sift_down(s->heap, i, s->n);
    return true;
}

static struct edge pop(struct simplify *s)
{
    struct edge top = s->heap[0];

    s->heap[0] = s->heap[--s->n];
    if (s->n)
        sift_down(s->heap, 0, s->n);
    return top;
}

/* ---- quadrics ---- */

static void place_of(const struct simplify *s, uint32_t v, double p[3])
{
    for (int i = 0; i < 3; i++)
        p[i] = (double)s->m.xyz[3 * (uint64_t)v + (uint64_t)i] - s->middle[i];
}

static void add_plane(struct quadric *q, const double n[3], double d, double w)
{
    q->a[0] += w * n[0] * n[0];
    q->a[1] += w * n[0] * n[1];
    q->a[2] += w * n[0] * n[2];
    q->a[3] += w * n[1] * n[1];
    q->a[4] += w * n[1] * n[2];
    q->a[5] += w * n[2] * n[2];
    for (int i = 0; i < 3; i++)
        q->b[i] += w * n[i] * d;
    q->c += w * d * d;
}

static void make_quadrics(struct simplify *s)
{
    memset(s->q, 0, s->m.vertices * sizeof(*s->q));
    for (uint64_t f = 0; f < s->m.faces; f++) {
        double n[3], p[3], length;

        face_cross(&s->m, f, n);
        length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        if (!(length > 0))
            continue;
        for (int i = 0; i < 3; i++)
            n[i] /= length;
        place_of(s, s->m.index[3 * f], p);
        for (uint64_t i = 0; i < 3; i++)
            add_plane(&s->q[s->m.index[3 * f + i]], n, -(n[0] * p[0] + n[1] * p[1] + n[2] * p[2]), length / 2);
    }
}

static void sum_of(const struct quadric *x, const struct quadric *y, struct quadric *r)
{
    for (int i = 0; i < 6; i++)
        r->a[i] = x->a[i] + y->a[i];
    for (int i = 0; i < 3; i++)
        r->b[i] = x->b[i] + y->b[i];
    r->c = x->c + y->c;
}

static double error_at(const struct quadric *q, const double p[3])
{
    double e = q->c + 2 * (q->b[0] * p[0] + q->b[1] * p[1] + q->b[2] * p[2]) + q->a[0] * p[0] * p[0] + q->a[3] * p[1] * p[1] +
               q->a[5] * p[2] * p[2] + 2 * (q->a[1] * p[0] * p[1] + q->a[2] * p[0] * p[2] + q->a[4] * p[1] * p[2]);

    return e > 0 ? e : 0;
}

/* least error by Cramer's rule; false where the planes leave a direction open */
static bool least(const struct quadric *q, double p[3])
{
    const double *a = q->a;
    double c0 = a[3] * a[5] - a[4] * a[4], c1 = a[2] * a[4] - a[1] * a[5], c2 = a[1] * a[4] - a[2] * a[3];
    double det = a[0] * c0 + a[1] * c1 + a[2] * c2, trace = a[0] + a[3] + a[5];

    if (!(fabs(det) > 1e-6 * trace * trace * trace))
        return false;
    p[0] = -(c0 * q->b[0] + c1 * q->b[1] + c2 * q->b[2]) / det;
    p[1] = -(c1 * q->b[0] + (a[0] * a[5] - a[2] * a[2]) * q->b[1] + (a[1] * a[2] - a[0] * a[4]) * q->b[2]) / det;
    p[2] = -(c2 * q->b[0] + (a[1] * a[2] - a[0] * a[4]) * q->b[1] + (a[0] * a[3] - a[1] * a[1]) * q->b[2]) / det;
    return true;
}

/* where the two become one: at the locked one, else of least error, else the best of both ends and the middle */
static double target(const struct simplify *s, uint32_t a, uint32_t b, double p[3])
{
    double at[3][3], far2 = 0, edge2 = 0, best;
    struct quadric q;

    sum_of(&s->q[a], &s->q[b], &q);
    place_of(s, a, at[0]);
    place_of(s, b, at[1]);
    if (s->locked[a] || s->locked[b]) {
        memcpy(p, at[s->locked[b]], sizeof(at[0]));
        return error_at(&q, p);
    }
    for (int i = 0; i < 3; i++)
        at[2][i] = (at[0][i] + at[1][i]) / 2;
    if (least(&q, p)) {
        for (int i = 0; i < 3; i++) {
            far2 += (p[i] - at[2][i]) * (p[i] - at[2][i]);
            edge2 += (at[1][i] - at[0][i]) * (at[1][i] - at[0][i]);
        }
        if (far2 <= 4 * edge2)
            return error_at(&q, p);
    }
    best = INFINITY;
    for (int k = 2; k >= 0; k--) {
        double e = error_at(&q, at[k]);

        if (e < best) {
            best = e;
            memcpy(p, at[k], sizeof(at[k]));
        }
    }
    return best;
}

static int push_edge(struct simplify *s, uint32_t a, uint32_t b)
{
    double p[3];
    struct edge e = { .a = a < b ? a : b, .b = a < b ? b : a };

    if (s->locked[a] && s->locked[b])
        return 0;
    e.cost = target(s, e.a, e.b, p);
    e.age_a = s->age[e.a];
    e.age_b = s->age[e.b];
    return push(s, &e);
}

/* ---- collapse ---- */

#define EACH_CORNER(s, v, h) (uint32_t h = (s)->head[v]; h != UINT32_MAX; h = (s)->next[h])

static bool alive(const struct simplify *s, uint32_t h)
{
    return !s->gone[h / 3];
}

static bool has(const uint32_t *face, uint32_t v)
{
    return face[0] == v || face[1] == v || face[2] == v;
}

/* Exactly two faces at the edge, whose third vertices are all that a and b have in common, and no face of each on the edge
 * between these two: the link of the edge is what the links of its ends share. */
static bool link_holds(struct simplify *s, uint32_t a, uint32_t b)
{
    uint32_t third[2] = { 0 }, faces = 0, common = 0, with_a = 0, with_b = 0;
    uint32_t near = ++s->marks, counted = ++s->marks;

    for EACH_CORNER (s, a, h) {
        const uint32_t *f = s->m.index + h / 3 * 3ull;

        if (!alive(s, h))
            continue;
        if (has(f, b) && ++faces <= 2)
            third[faces - 1] = f[0] ^ f[1] ^ f[2] ^ a ^ b;
        for (int i = 0; i < 3; i++)
            s->mark[f[i]] = near;
    }
    if (faces != 2 || third[0] == third[1])
        return false;
    for EACH_CORNER (s, a, h)
        with_a += alive(s, h) && has(s->m.index + h / 3 * 3ull, third[0]) && has(s->m.index + h / 3 * 3ull, third[1]);
    for EACH_CORNER (s, b, h) {
        const uint32_t *f = s->m.index + h / 3 * 3ull;

        if (!alive(s, h))
            continue;
        with_b += has(f, third[0]) && has(f, third[1]);
        for (int i = 0; i < 3; i++)
            if (f[i] != a && f[i] != b && s->mark[f[i]] == near) {
                s->mark[f[i]] = counted;
                common++;
            }
    }
    return common == 2 && !(with_a && with_b);
}

/* the faces of v without other, once v is at p: none turns by more than 80 degrees or loses its area */
static bool faces_stand(const struct simplify *s, uint32_t v, uint32_t other, const double p[3])
{
    for EACH_CORNER (s, v, h) {
        const uint32_t *f = s->m.index + h / 3 * 3ull;
        double x[3][3], was[3], is[3], u[3], w[3], dot = 0, a = 0, b = 0;

        if (!alive(s, h) || has(f, other))
            continue;
        for (int i = 0; i < 3; i++) {
            if (f[i] == v)
                memcpy(x[i], p, sizeof(x[i]));
            else
                place_of(s, f[i], x[i]);
        }
        face_cross(&s->m, h / 3, was);
        for (int i = 0; i < 3; i++) {
            u[i] = x[1][i] - x[0][i];
            w[i] = x[2][i] - x[0][i];
        }
        is[0] = u[1] * w[2] - u[2] * w[1];
        is[1] = u[2] * w[0] - u[0] * w[2];
        is[2] = u[0] * w[1] - u[1] * w[0];
        for (int i = 0; i < 3; i++) {
            dot += was[i] * is[i];
            a += was[i] * was[i];
            b += is[i] * is[i];
        }
        if (a > 0 && (!(dot > 0) || dot * dot < 0.03 * a * b || b <= 1e-12 * a))
            return false;
    }
    return true;
}

static void set_place(struct simplify *s, uint32_t keep, uint32_t drop, const double p[3])
{
    for (uint64_t i = 0; i < 3; i++) {
        if (!s->locked[keep])
            s->m.xyz[3 * (uint64_t)keep + i] = (float)(p[i] + s->middle[i]);
        if (s->m.rgb && !s->locked[keep])
            s->m.rgb[3 * (uint64_t)keep + i] = (uint8_t)((s->m.rgb[3 * (uint64_t)keep + i] + s->m.rgb[3 * (uint64_t)drop + i] + 1) / 2);
    }
}

/* drop's faces become keep's; those with both go */
static void join(struct simplify *s, uint32_t keep, uint32_t drop)
{
    uint32_t *end = &s->head[keep];

    for EACH_CORNER (s, drop, h) {
        uint32_t *f = s->m.index + h / 3 * 3ull;

        if (!alive(s, h))
            continue;
        if (has(f, keep)) {
            s->gone[h / 3] = 1;
            s->faces--;
        } else {
            s->m.index[h] = keep;
        }
    }
    while (*end != UINT32_MAX) /* corners of faces that went leave the chain */
        if (alive(s, *end))
            end = &s->next[*end];
        else
            *end = s->next[*end];
    *end = s->head[drop];
    s->head[drop] = UINT32_MAX;
    while (*end != UINT32_MAX)
        if (alive(s, *end))
            end = &s->next[*end];
        else
            *end = s->next[*end];
    s->vertices--;
}

static int push_around(struct simplify *s, uint32_t v)
{
    uint32_t seen = ++s->marks;

    for EACH_CORNER (s, v, h)
        for (uint32_t i = 1; alive(s, h) && i < 3; i++) {
            uint32_t n = s->m.index[h / 3 * 3 + (h % 3 + i) % 3];

            if (s->mark[n] == seen)
                continue;
            s->mark[n] = seen;
            if (push_edge(s, v, n))
                return -1;
        }
    return 0;
}

static int collapse(struct simplify *s, const struct edge *e)
{
    uint32_t keep = s->locked[e->b] ? e->b : e->a, drop = keep == e->a ? e->b : e->a;
    struct quadric q;
    double p[3];

    target(s, e->a, e->b, p);
    if (!link_holds(s, e->a, e->b) || !faces_stand(s, keep, drop, p) || !faces_stand(s, drop, keep, p))
        return 0;
    sum_of(&s->q[keep], &s->q[drop], &q);
    s->q[keep] = q;
    set_place(s, keep, drop, p);
    join(s, keep, drop);
    s->age[keep]++;
    s->age[drop] = UINT32_MAX;
    return push_around(s, keep);
}

/* ---- all ---- */

static int lock_vertices(struct simplify *s, struct topo *t)
{
    uint32_t *scratch = s->ctx->host->alloc(s->ctx, 12 * s->m.faces + 4);

    if (!scratch)
        return -1;
    topo_fans(t, scratch, s->locked); /* 0 none, 1 one fan, 2 more */
    s->ctx->host->free(s->ctx, scratch);
    for (uint64_t v = 0; v < s->m.vertices; v++) {
        s->vertices += s->locked[v] > 0;
        s->locked[v] = s->locked[v] > 1;
    }
    for (uint64_t i = 0; i < t->halves; i++)
        if (topo_twin(t, t->half[i]) == TOPO_NONE)
            s->locked[t->index[t->half[i]]] = s->locked[t->index[topo_next(t->half[i])]] = 1;
    return 0;
}

static int link_corners(struct simplify *s, const struct topo *t)
{
    memset(s->head, 0xff, 4 * s->m.vertices);
    memset(s->age, 0, 4 * s->m.vertices);
    memset(s->mark, 0, 4 * s->m.vertices);
    for (uint64_t f = 0; f < s->m.faces; f++) {
        s->gone[f] = t->edge_of[3 * f] == TOPO_NONE;
        s->faces += !s->gone[f];
    }
    for (uint32_t h = 3 * (uint32_t)s->m.faces; h-- > 0;) {
        s->next[h] = s->head[s->m.index[h]];
        s->head[s->m.index[h]] = h;
    }
    return 0;
}

static int prepare(struct simplify *s, const struct recon_mesh *m)
{
    const struct recon_host *host = s->ctx->host;
    struct topo t = { 0 };
    int rc = -1;

    if (topo_build(s->ctx, m, &t) || mesh_copy(s->ctx, m, false, true, &s->m))
        goto out;
    s->cap = t.edges + t.edges / 2 + 64;
    s->upto = -INFINITY;
    if (!(s->q = host->alloc(s->ctx, m->vertices * sizeof(*s->q))) || !(s->head = host->alloc(s->ctx, 4 * m->vertices)) ||
        !(s->next = host->alloc(s->ctx, 12 * m->faces)) || !(s->age = host->alloc(s->ctx, 4 * m->vertices)) ||
        !(s->mark = host->alloc(s->ctx, 4 * m->vertices)) || !(s->locked = host->alloc(s->ctx, m->vertices)) ||
        !(s->gone = host->alloc(s->ctx, m->faces)) || !(s->heap = host->alloc(s->ctx, s->cap * sizeof(*s->heap))))
        goto out;
    for (uint64_t v = 0; v < 3 * m->vertices; v++)
        s->middle[v % 3] += (double)m->xyz[v] / (double)m->vertices;
    rc = lock_vertices(s, &t);
    link_corners(s, &t);
    make_quadrics(s);
    for (uint64_t e = 0; rc == 0 && e < t.edges; e++) {
        uint32_t h = t.half[t.first[e]];

        rc = push_edge(s, m->index[h], m->index[topo_next(h)]);
    }
out:
    topo_release(s->ctx, &t);
    return rc;
}

static void compact(struct simplify *s)
{
    uint32_t *to = s->head, k = 0; /* what is not needed any more serves */
    uint64_t f = 0;

    memset(to, 0, 4 * s->m.vertices);
    for (uint64_t i = 0; i < s->m.faces; i++)
        if (!s->gone[i])
            memmove(s->m.index + 3 * f++, s->m.index + 3 * i, 12);
    s->m.faces = f;
    for (uint64_t i = 0; i < 3 * f; i++)
        to[s->m.index[i]] = 1;
    for (uint64_t v = 0; v < s->m.vertices; v++)
        if (to[v]) {
            memmove(s->m.xyz + 3 * (uint64_t)k, s->m.xyz + 3 * v, 12);
            if (s->m.rgb)
                memmove(s->m.rgb + 3 * (uint64_t)k, s->m.rgb + 3 * v, 3);
            to[v] = k++;
        }
    for (uint64_t i = 0; i < 3 * f; i++)
        s->m.index[i] = to[s->m.index[i]];
    s->m.vertices = k;
}

static bool enough(const struct simplify *s, const struct recon_value *p)
{
    return (p[MESH_SIMPLIFY_FACES].i == 0 || s->faces <= (uint64_t)p[MESH_SIMPLIFY_FACES].i) &&
           (p[MESH_SIMPLIFY_VERTICES].i == 0 || s->vertices <= (uint64_t)p[MESH_SIMPLIFY_VERTICES].i);
}

static int work(struct simplify *s, const struct recon_value *p)
{
    for (uint64_t turn = 0; !enough(s, p) && (s->n || refill(s)); turn++) {
        struct edge e = pop(s);

        if (!stale(s, &e) && collapse(s, &e))
            return -1;
        if (turn % 65536 == 65535 && s->ctx->host->cancelled(s->ctx))
            return s->ctx->host->fail(s->ctx, CODE_DEADLINE, NULL, "mesh", "stopped at %llu faces", (unsigned long long)s->faces);
    }
    return 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    (void)ctx;
    (void)p;
    if (!m)
        return 0;
    /* the heap may grow to three times what it begins with: 1.5 edges, at most 4.5 faces of them, of 24 bytes */
    cost->host_bytes = topo_bytes(m->vertices, m->faces) + 15 * m->vertices + 12 * m->faces + (sizeof(struct quadric) + 13) * m->vertices +
                       25 * m->faces + 3 * (5 * m->faces + 64) * sizeof(struct edge) + 4096;
    cost->moved_bytes = 100 * m->vertices + 100 * m->faces;
    cost->flops = 400 * m->faces;
    cost->items = m->faces;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct simplify s = { .ctx = ctx };
    int rc;

    if (p[MESH_SIMPLIFY_FACES].i == 0 && p[MESH_SIMPLIFY_VERTICES].i == 0)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "faces", "neither faces nor vertices says how far to simplify");
    rc = prepare(&s, m);
    if (rc == 0)
        rc = work(&s, p);
    if (rc == 0) {
        if (!enough(&s, p))
            ctx->host->log(ctx, RECON_WARN, "simplify-target-not-reached", "mesh",
                           "%llu faces and %llu vertices are left: no more can go without a change of borders or topology or a face turning over",
                           (unsigned long long)s.faces, (unsigned long long)s.vertices);
        compact(&s);
        bound(ctx, in, p, cost);
        *(struct recon_mesh *)out[0] = s.m;
        s.m = (struct recon_mesh){ 0 };
    }
    mesh_free(ctx, &s.m);
    for (void **x = (void *[]){ s.q, s.head, s.next, s.age, s.mark, s.locked, s.gone, s.heap, ctx }; *x != ctx; x++)
        ctx->host->free(ctx, *x);
    return rc;
}

/* a tetrahedron is the least closed surface: nothing of it goes */
static int selftest(struct recon_ctx *ctx)
{
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = OCTA_F, .xyz = xyz, .index = index }, r = { 0 };
    struct recon_value p[2] = { { .i = 1 }, { .i = 0 } };
    struct recon_cost cost = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    rc = cpu_mesh_simplify.run(ctx, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, &cost);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.euler != 2 || c.border || c.turned || c.split || c.faces < 4 || c.faces > OCTA_F))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, "mesh.simplify", "self-test of 'mesh.simplify': %llu faces of characteristic %lld",
                             (unsigned long long)c.faces, (long long)c.euler);
    mesh_free(ctx, &r);
    return rc;
}

const struct recon_kernel cpu_mesh_simplify = { RECON_KERNEL_ABI,     MESH_SIMPLIFY_NAME, MESH_SIMPLIFY_DOC, mesh_one_in, mesh_one_out,
                                                mesh_simplify_params, bound,              run,               selftest,    NULL };
