/* Holes: border half-edges are followed around their fans to loops; one that meets a vertex twice is cut there into loops that
 * do not. Such a loop gets the triangulation of least area (dynamic programming; Barequet and Sharir 1995, Liepa 2003), a long one the shortest diagonal after the
 * other. No diagonal is taken that is an edge already, so that no edge gets a third face. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"

#include <math.h>
#include <stdlib.h>

enum { DP_MAX = 200 }; /* vertices of a loop: n^3 / 6 triangles are weighed */

struct fill {
    struct recon_ctx *ctx;
    const struct recon_mesh *m;
    struct topo t;
    uint64_t border, longest, room, most; /* edges of borders; of one loop at most; new faces at most */
    uint8_t *walked;    /* a half-edge */
    uint32_t *place;    /* of a vertex: where the path has it, if it has */
    uint32_t *border_h; /* half-edges of the whole loop */
    uint32_t *path;     /* those of them that are not cut off yet, no vertex twice */
    uint32_t *loop;     /* vertices of the loop to fill, in the order of the new faces */
    uint64_t *added;    /* diagonals, open addressing, 0: free; half of it at most is full */
    uint64_t slots;
    uint32_t *face;     /* new faces */
    uint64_t faces, widest, filled, too_long, cut, blocked, broken;
};

static bool is_border(const struct topo *t, uint32_t h)
{
    return t->edge_of[h] != TOPO_NONE && topo_count(t, t->edge_of[h]) == 1;
}

/* the border half-edge that follows h around the fan at its end, or TOPO_NONE where the fan is not to be followed */
static uint32_t follow(const struct topo *t, uint32_t h)
{
    uint32_t g = topo_next(h);

    while (!is_border(t, g)) {
        uint32_t k = topo_twin(t, g);

        if (k == TOPO_NONE)
            return TOPO_NONE;
        g = topo_next(k);
    }
    return g;
}

static uint64_t key_of(uint32_t a, uint32_t b)
{
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

static uint64_t edge_key(const struct topo *t, uint64_t e)
{
    uint32_t h = t->half[t->first[e]];

    return key_of(t->index[h], t->index[topo_next(h)]);
}

static uint64_t slot_of(const struct fill *f, uint64_t key)
{
    uint64_t i = (key * 0x9e3779b97f4a7c15ull >> 32) * f->slots >> 32;

    while (f->added[i] && f->added[i] != key)
        i = i + 1 < f->slots ? i + 1 : 0;
    return i;
}

static bool is_edge(const struct fill *f, uint32_t a, uint32_t b)
{
    uint64_t key = key_of(a, b), low = 0, high = f->t.edges;

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;

        if (edge_key(&f->t, mid) < key)
            low = mid + 1;
        else
            high = mid;
    }
    return (low < f->t.edges && edge_key(&f->t, low) == key) || f->added[slot_of(f, key)] == key;
}

static double distance2(const struct recon_mesh *m, uint32_t a, uint32_t b)
{
    double s = 0;

    for (int i = 0; i < 3; i++) {
        double d = (double)m->xyz[3 * (uint64_t)a + (uint64_t)i] - (double)m->xyz[3 * (uint64_t)b + (uint64_t)i];

        s += d * d;
    }
    return s;
}

static double area(const struct recon_mesh *m, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t index[3] = { a, b, c };
    struct recon_mesh one = { .xyz = m->xyz, .index = index };
    double n[3];

    face_cross(&one, 0, n);
    return sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
}

static void add_face(struct fill *f, uint32_t a, uint32_t b, uint32_t c)
{
    memcpy(f->face + 3 * f->faces++, (uint32_t[]){ a, b, c }, 12);
}

static void add_diagonal(struct fill *f, uint32_t a, uint32_t b)
{
    f->added[slot_of(f, key_of(a, b))] = key_of(a, b);
}

/* ---- least area ---- */

struct table { /* n x n */
    double *weight;
    uint16_t *by;
};

static void weigh(const struct fill *f, const uint32_t *v, uint32_t n, const struct table *t)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        t->weight[i * n + i + 1] = 0;
    for (uint32_t span = 2; span < n; span++)
        for (uint32_t i = 0, j; (j = i + span) < n; i++) {
            double best = INFINITY;
            bool diagonal = !(i == 0 && j == n - 1);

            t->by[i * n + j] = 0;
            for (uint32_t k = i + 1; (!diagonal || !is_edge(f, v[i], v[j])) && k < j; k++) {
                double w = t->weight[i * n + k] + t->weight[k * n + j];

                if (w < best && (w += area(f->m, v[i], v[k], v[j])) < best) {
                    best = w;
                    t->by[i * n + j] = (uint16_t)k;
                }
                diagonal = false; /* asked once */
            }
            t->weight[i * n + j] = best;
        }
}

static void take(struct fill *f, const uint32_t *v, const struct table *t, uint32_t n)
{
    uint16_t stack[2 * DP_MAX];
    int top = 0;

    stack[top++] = 0;
    stack[top++] = (uint16_t)(n - 1);
    while (top) {
        uint32_t j = stack[--top], i = stack[--top], k = t->by[i * n + j];

        add_face(f, v[i], v[k], v[j]);
        if (!(i == 0 && j == n - 1))
            add_diagonal(f, v[i], v[j]);
        if (k > i + 1) {
            stack[top++] = (uint16_t)i;
            stack[top++] = (uint16_t)k;
        }
        if (j > k + 1) {
            stack[top++] = (uint16_t)k;
            stack[top++] = (uint16_t)j;
        }
    }
}

/* ---- shortest diagonals ---- */

static double diagonal(const struct fill *f, uint32_t a, uint32_t b)
{
    return is_edge(f, a, b) ? INFINITY : distance2(f->m, a, b);
}

/* next, before: of the places still there; cost[i]: of cutting off place i. Gives whether it went to the end. */
static bool cut_ears(struct fill *f, const uint32_t *v, uint32_t n, uint32_t *next, uint32_t *before, double *cost)
{
    uint32_t left = n, start = 0;

    for (uint32_t i = 0; i < n; i++) {
        next[i] = (i + 1) % n;
        before[i] = (i + n - 1) % n;
    }
    for (uint32_t i = 0; i < n; i++)
        cost[i] = diagonal(f, v[before[i]], v[next[i]]);
    for (; left > 3; left--) {
        uint32_t ear = start, i = start;

        do {
            if (cost[i] < cost[ear] || (cost[i] == cost[ear] && i < ear))
                ear = i;
            i = next[i];
        } while (i != start);
        if (isinf(cost[ear]) || (left % 256 == 0 && f->ctx->host->cancelled(f->ctx)))
            return false;
        add_face(f, v[before[ear]], v[ear], v[next[ear]]);
        add_diagonal(f, v[before[ear]], v[next[ear]]);
        next[before[ear]] = next[ear];
        before[next[ear]] = before[ear];
        start = next[ear];
        for (int k = 0; k < 2; k++) {
            i = k ? next[ear] : before[ear];
            cost[i] = left > 4 ? diagonal(f, v[before[i]], v[next[i]]) : 0;
        }
    }
    add_face(f, v[before[start]], v[start], v[next[start]]);
    return true;
}

static int triangulate_long(struct fill *f, uint32_t n, bool *done)
{
    uint32_t *places = f->ctx->host->alloc(f->ctx, 8 * (uint64_t)n);
    double *cost = f->ctx->host->alloc(f->ctx, 8 * (uint64_t)n);
    uint64_t faces = f->faces;

    if (places && cost) {
        *done = cut_ears(f, f->loop, n, places, places + n, cost);
        if (!*done)
            f->faces = faces; /* its diagonals stay barred: one hole less at worst */
    }
    f->ctx->host->free(f->ctx, places);
    f->ctx->host->free(f->ctx, cost);
    return places && cost ? 0 : -1;
}

static int triangulate(struct fill *f, uint32_t n, bool *done)
{
    struct table t;

    f->widest = n > f->widest ? n : f->widest;
    if (n > DP_MAX)
        return triangulate_long(f, n, done);
    t.weight = f->ctx->host->alloc(f->ctx, 8 * (uint64_t)n * n);
    t.by = t.weight ? f->ctx->host->alloc(f->ctx, 2 * (uint64_t)n * n) : NULL;
    if (t.by) {
        weigh(f, f->loop, n, &t);
        *done = isfinite(t.weight[n - 1]);
        if (*done)
            take(f, f->loop, &t, n);
    }
    f->ctx->host->free(f->ctx, t.weight);
    f->ctx->host->free(f->ctx, t.by);
    return t.by ? 0 : -1;
}

/* ---- loops ---- */

/* the n half-edges of a loop without a vertex twice */
static int fill_loop(struct fill *f, const uint32_t *h, uint64_t n)
{
    bool done = false;

    if (n > f->most) {
        f->too_long++;
        return 0;
    }
    for (uint64_t i = 0; i < n; i++) /* the hole's faces go the other way along the border */
        f->loop[i] = f->t.index[h[n - 1 - i]];
    /* a triangle on its own has a back, no hole */
    if (n < 3 || (n == 3 && f->t.index[topo_prev(h[0])] == f->t.index[h[2]])) {
        f->blocked++;
        return 0;
    }
    if (triangulate(f, (uint32_t)n, &done))
        return -1;
    f->filled += done;
    f->blocked += !done;
    return f->ctx->host->cancelled(f->ctx) ? f->ctx->host->fail(f->ctx, CODE_DEADLINE, NULL, "mesh", "stopped after %llu holes",
                                                                (unsigned long long)f->filled)
                                           : 0;
}

/* The half-edges of the loop of `from` into border_h; 0: it breaks at a non-manifold place. */
static uint64_t trace(struct fill *f, uint32_t from)
{
    uint32_t h = from;
    uint64_t n = 0;

    do {
        if (f->walked[h]) { /* into a chain that broke before */
            f->broken += n;
            return 0;
        }
        f->walked[h] = 1;
        f->border_h[n++] = h;
        h = follow(&f->t, h);
        if (h == TOPO_NONE) {
            f->broken += n;
            return 0;
        }
    } while (h != from);
    return n;
}

/* What lies between two visits of a vertex is a loop of its own; what is left at the end is the last. */
static int fill_parts(struct fill *f, uint64_t n)
{
    uint64_t top = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t v = f->t.index[f->border_h[i]], at = f->place[v];

        if (at < top && f->t.index[f->path[at]] == v) {
            f->cut++;
            if (fill_loop(f, f->path + at, top - at))
                return -1;
            top = at;
        }
        f->place[v] = (uint32_t)top;
        f->path[top++] = f->border_h[i];
    }
    return fill_loop(f, f->path, top);
}

static int fill_all(struct fill *f)
{
    for (uint32_t h = 0; h < 3 * f->m->faces; h++) {
        uint64_t n = f->walked[h] || !is_border(&f->t, h) ? 0 : trace(f, h);

        if (n && fill_parts(f, n))
            return -1;
    }
    return 0;
}

/* n faces joined by edges have n + 2 border edges at most, and so no longer loop; a face on its own is no hole, so that no more
 * faces come in than are there, and no more diagonals */
static void set_room(struct fill *f, uint64_t border)
{
    f->longest = (border < f->m->faces ? border : f->m->faces) + 2;
    f->room = (border < f->m->faces ? border : f->m->faces) + 1;
    f->slots = 2 * f->room + 14;
}

static int prepare(struct fill *f)
{
    const struct recon_host *host = f->ctx->host;

    if (topo_build(f->ctx, f->m, &f->t))
        return -1;
    for (uint32_t e = 0; e < f->t.edges; e++)
        f->border += topo_count(&f->t, e) == 1;
    set_room(f, f->border);
    if (!(f->walked = host->alloc(f->ctx, 3 * f->m->faces)) || !(f->place = host->alloc(f->ctx, 4 * f->m->vertices)) ||
        !(f->border_h = host->alloc(f->ctx, 4 * f->longest)) || !(f->path = host->alloc(f->ctx, 4 * f->longest)) ||
        !(f->loop = host->alloc(f->ctx, 4 * f->longest)) || !(f->added = host->alloc(f->ctx, 8 * f->slots)) ||
        !(f->face = host->alloc(f->ctx, 12 * f->room)))
        return -1;
    memset(f->walked, 0, 3 * f->m->faces);
    memset(f->place, 0, 4 * f->m->vertices);
    memset(f->added, 0, 8 * f->slots);
    return 0;
}

/* what the search took goes before the result comes */
static void give_back(struct fill *f)
{
    topo_release(f->ctx, &f->t);
    for (void **x = (void *[]){ f->walked, f->place, f->border_h, f->path, f->loop, f->added, f }; *x != f; x++)
        f->ctx->host->free(f->ctx, *x);
    f->walked = NULL;
    f->place = f->border_h = f->path = f->loop = NULL;
    f->added = NULL;
}

static int give(struct fill *f, struct recon_mesh *ret)
{
    struct recon_mesh c;
    uint32_t *index;

    give_back(f);
    if (mesh_copy(f->ctx, f->m, true, true, &c))
        return -1;
    if (!(index = f->ctx->host->alloc(f->ctx, 12 * (c.faces + f->faces)))) {
        mesh_free(f->ctx, &c);
        return -1;
    }
    memcpy(index, c.index, 12 * c.faces);
    memcpy(index + 3 * c.faces, f->face, 12 * f->faces);
    f->ctx->host->free(f->ctx, c.index);
    c.index = index;
    c.faces += f->faces;
    *ret = c;
    return 0;
}

static void tell(const struct fill *f)
{
    uint64_t left = f->too_long + f->blocked;

    f->ctx->host->log(f->ctx, RECON_NOTE, NULL, "mesh", "%llu holes filled with %llu faces; borders that met a vertex twice were cut there %llu times",
                      (unsigned long long)f->filled, (unsigned long long)f->faces, (unsigned long long)f->cut);
    if (left || f->broken)
        f->ctx->host->log(f->ctx, RECON_WARN, NULL, "mesh",
                          "%llu holes are left: %llu longer than %llu edges, %llu without a triangulation that repeats no edge; %llu border "
                          "edges at non-manifold places: mesh.clean helps",
                          (unsigned long long)left, (unsigned long long)f->too_long, (unsigned long long)f->most,
                          (unsigned long long)f->blocked, (unsigned long long)f->broken);
}

/* border: edges; faces: new ones; loop: edges of the longest that is filled */
static void cost_of(struct fill *f, uint64_t border, uint64_t faces, uint64_t loop, struct recon_cost *cost)
{
    uint64_t v = f->m->vertices, n = f->m->faces, searching, giving, few = loop < DP_MAX ? loop : DP_MAX;

    set_room(f, border);
    loop = loop > DP_MAX && 16 * loop > 10 * few * few ? 16 * loop : 10 * few * few;
    searching = topo_bytes(v, n) + 3 * n + 4 * v + 12 * f->longest + 8 * f->slots + 12 * f->room + loop;
    giving = 12 * f->room + 27 * v + 24 * n + 12 * faces;
    cost->host_bytes = (searching > giving ? searching : giving) + 4096;
    cost->moved_bytes = 12 * v + 72 * n;
    cost->items = n;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    struct fill f = { .m = in[0], .most = (uint64_t)p[MESH_FILL_MAX].i };

    (void)ctx;
    if (f.m) /* borders everywhere at worst */
        cost_of(&f, 3 * f.m->faces, f.m->faces, f.most < f.m->faces + 2 ? f.most : f.m->faces + 2, cost);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct fill f = { .ctx = ctx, .m = in[0], .most = (uint64_t)p[MESH_FILL_MAX].i };
    int rc = prepare(&f);

    if (rc == 0)
        rc = fill_all(&f);
    if (rc == 0)
        rc = give(&f, out[0]);
    if (rc == 0)
        tell(&f);
    give_back(&f);
    ctx->host->free(ctx, f.face);
    cost_of(&f, f.border, f.faces, f.widest, cost);
    cost->items = f.faces;
    return rc;
}

/* an octahedron without its faces around a vertex, but for that vertex: four border edges, closed by two faces */
static int selftest(struct recon_ctx *ctx)
{
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = 4, .xyz = xyz, .index = index }, r = { 0 };
    struct recon_value p[1] = { { .i = 100 } };
    struct recon_cost cost = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    rc = cpu_mesh_fill.run(ctx, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, &cost);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.euler != 2 || c.border || c.turned || r.faces != 6 || fabs(c.volume - 2.0 / 3) > 1e-6))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, "mesh.fill_holes", "self-test of 'mesh.fill_holes': volume %.6g, 0.666667 is wanted", c.volume);
    mesh_free(ctx, &r);
    return rc;
}

const struct recon_kernel cpu_mesh_fill = { RECON_KERNEL_ABI, MESH_FILL_NAME, MESH_FILL_DOC, mesh_one_in, mesh_one_out,
                                            mesh_fill_params, bound,          run,           selftest,    NULL };
