/* Holes: border half-edges are followed around their fans to loops; one that meets a vertex twice is cut there into loops that
 * do not. Such a loop gets the triangulation of least area (dynamic programming; Barequet and Sharir 1995, Liepa 2003), a long one the
 * shortest diagonal after the other. No diagonal is taken that is an edge already, so that no edge gets a third face. */
#include "config.h"
#include "base/base.h"
#include "data/data.h"
#include "kernels/holes.h"
#include "kernels/plan.h"

#include <stdlib.h>

enum { DP_MAX = 200 }; /* vertices of a loop: n^3 / 6 triangles are weighed */

struct fill {
    struct recon_ctx *ctx;
    const struct border *b;
    struct holes h;
    uint64_t longest, room; /* edges of a loop at most; new faces at most */
    uint8_t *walked;        /* a half-edge */
    uint32_t *place;        /* of a vertex: where the chain's front has it, if it has */
    uint32_t *chain;        /* half-edges of the whole loop; in front, those that are not cut off yet, no vertex twice */
    const uint32_t *hole;   /* in chain: half-edges of the loop to fill, so many edges */
    uint64_t edges;
    uint64_t *added;        /* diagonals, open addressing, 0: free; half of it at most is full */
    uint64_t slots;
};

/* ---- the border ---- */

uint64_t border_bytes(const struct border *b)
{
    return 4 * (4 * b->vertices + 1 + 3 * b->halves + b->edges);
}

void border_lay(struct border *b, void *block)
{
    b->xyz = (float *)block;
    b->row = (uint32_t *)block + 3 * b->vertices;
    b->half = b->row + b->vertices + 1;
    b->start = b->half + b->halves;
    b->next = b->start + b->halves;
    b->higher = b->next + b->halves;
}

/* Faces with two half-edges of the border have five edges for two at most; one left out has three and no half-edge, which is less. */
struct border border_worst(uint64_t vertices, uint64_t faces)
{
    return (struct border){ .halves = 2 * faces, .vertices = vertices < 2 * faces ? vertices : 2 * faces, .edges = 5 * faces / 2 };
}

static bool is_edge(const struct border *b, uint32_t low, uint32_t high)
{
    uint32_t from = b->row[low], to = b->row[low + 1];

    while (from < to) {
        uint32_t mid = from + (to - from) / 2;

        if (b->higher[mid] < high)
            from = mid + 1;
        else
            to = mid;
    }
    return from < b->row[low + 1] && b->higher[from] == high;
}

/* ---- diagonals ---- */

static uint64_t key_of(uint32_t a, uint32_t b)
{
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

static uint64_t slot_of(const struct fill *f, uint64_t key)
{
    uint64_t i = (key * 0x9e3779b97f4a7c15ull >> 32) * f->slots >> 32;

    while (f->added[i] && f->added[i] != key)
        i = i + 1 < f->slots ? i + 1 : 0;
    return i;
}

static bool joined(const struct fill *f, uint32_t a, uint32_t b)
{
    uint64_t key = key_of(a, b);

    return is_edge(f->b, a < b ? a : b, a < b ? b : a) || f->added[slot_of(f, key)] == key;
}

static void add_diagonal(struct fill *f, uint32_t a, uint32_t b)
{
    f->added[slot_of(f, key_of(a, b))] = key_of(a, b);
}

/* ---- the loop to fill: places from the last half-edge to the first, since its faces go the other way along the border ---- */

static void take_loop(const struct fill *f, uint32_t *v)
{
    for (uint64_t i = 0; i < f->edges; i++)
        v[i] = f->b->start[f->hole[f->edges - 1 - i]];
}

/* i, j, k: places */
static void add_face(struct fill *f, uint32_t i, uint32_t j, uint32_t k)
{
    const uint32_t *half = f->b->half, *last = f->hole + f->edges - 1;

    memcpy(f->h.more.corner + 3 * f->h.more.faces++, (uint32_t[]){ half[*(last - i)], half[*(last - j)], half[*(last - k)] }, 12);
}

static double distance2(const struct fill *f, uint32_t a, uint32_t b)
{
    const float *p = f->b->xyz + 3 * (uint64_t)a, *q = f->b->xyz + 3 * (uint64_t)b;
    double s = 0;

    for (int i = 0; i < 3; i++) {
        double d = (double)p[i] - (double)q[i];

        s += d * d;
    }
    return s;
}

/* ---- least area ---- */

struct table { /* n x n */
    double *weight; /* of the part from i to j: at (i, j) and at (j, i), so that both rows of an apex are walked from end to end */
    uint16_t *by;
    double x[DP_MAX], y[DP_MAX], z[DP_MAX]; /* places of the loop */
};

/* ret[k]: both parts of apex k and twice the area of its triangle with i and j */
KERN_CLONES static void weigh_apexes(const struct table *t, uint32_t n, uint32_t i, uint32_t j, double *restrict ret)
{
    const double *left = t->weight + (uint64_t)i * n, *right = t->weight + (uint64_t)j * n;
    double x = t->x[i], y = t->y[i], z = t->z[i], v[3] = { t->x[j] - x, t->y[j] - y, t->z[j] - z };

    for (uint32_t k = i + 1; k < j; k++) { /* cross_of */
        double u[3] = { t->x[k] - x, t->y[k] - y, t->z[k] - z };
        double c[3] = { u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0] };

        ret[k] = left[k] + right[k] + sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
    }
}

/* The first apex of the least sum counts; what is no number never does. */
static void weigh_part(const struct fill *f, const uint32_t *v, uint32_t n, struct table *t, uint32_t i, uint32_t j)
{
    double sum[DP_MAX], best = INFINITY;
    uint16_t by = 0;

    if ((i == 0 && j == n - 1) || !joined(f, v[i], v[j])) {
        weigh_apexes(t, n, i, j, sum);
        for (uint32_t k = i + 1; k < j; k++)
            if (sum[k] < best) {
                best = sum[k];
                by = (uint16_t)k;
            }
    }
    t->weight[i * n + j] = t->weight[j * n + i] = best;
    t->by[i * n + j] = by;
}

static void weigh(const struct fill *f, const uint32_t *v, uint32_t n, struct table *t)
{
    for (uint32_t i = 0; i < n; i++) {
        const float *p = f->b->xyz + 3 * (uint64_t)v[i];

        t->x[i] = (double)p[0];
        t->y[i] = (double)p[1];
        t->z[i] = (double)p[2];
        if (i)
            t->weight[(i - 1) * n + i] = t->weight[i * n + i - 1] = 0;
    }
    for (uint32_t span = 2; span < n; span++)
        for (uint32_t i = 0; i + span < n; i++)
            weigh_part(f, v, n, t, i, i + span);
}

static void take(struct fill *f, const uint32_t *v, const struct table *t, uint32_t n)
{
    uint16_t stack[2 * DP_MAX];
    int top = 0;

    stack[top++] = 0;
    stack[top++] = (uint16_t)(n - 1);
    while (top) {
        uint32_t j = stack[--top], i = stack[--top], k = t->by[i * n + j];

        add_face(f, i, k, j);
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
    return joined(f, a, b) ? INFINITY : distance2(f, a, b);
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
        add_face(f, before[ear], ear, next[ear]);
        add_diagonal(f, v[before[ear]], v[next[ear]]);
        next[before[ear]] = next[ear];
        before[next[ear]] = before[ear];
        start = next[ear];
        for (int k = 0; k < 2; k++) {
            i = k ? next[ear] : before[ear];
            cost[i] = left > 4 ? diagonal(f, v[before[i]], v[next[i]]) : 0;
        }
    }
    add_face(f, before[start], start, next[start]);
    return true;
}

static int triangulate_long(struct fill *f, uint32_t n, bool *done)
{
    uint32_t *places = f->ctx->host->alloc(f->ctx, 12 * (uint64_t)n);
    double *cost = f->ctx->host->alloc(f->ctx, 8 * (uint64_t)n);
    uint64_t faces = f->h.more.faces;

    if (places && cost) {
        take_loop(f, places);
        *done = cut_ears(f, places, n, places + n, places + 2 * (uint64_t)n, cost);
        if (!*done)
            f->h.more.faces = faces; /* its diagonals stay barred: one hole less at worst */
    }
    f->ctx->host->free(f->ctx, places);
    f->ctx->host->free(f->ctx, cost);
    return places && cost ? 0 : -1;
}

static int triangulate(struct fill *f, uint32_t n, bool *done)
{
    uint32_t v[DP_MAX];
    struct table t;

    f->h.widest = n > f->h.widest ? n : f->h.widest;
    if (n > DP_MAX)
        return triangulate_long(f, n, done);
    t.weight = f->ctx->host->alloc(f->ctx, 8 * (uint64_t)n * n);
    t.by = t.weight ? f->ctx->host->alloc(f->ctx, 2 * (uint64_t)n * n) : NULL;
    if (t.by) {
        take_loop(f, v);
        weigh(f, v, n, &t);
        *done = isfinite(t.weight[n - 1]);
        if (*done)
            take(f, v, &t, n);
    }
    f->ctx->host->free(f->ctx, t.weight);
    f->ctx->host->free(f->ctx, t.by);
    return t.by ? 0 : -1;
}

/* ---- loops ---- */

/* the n half-edges of a loop without a vertex twice */
static int fill_loop(struct fill *f, const uint32_t *h, uint64_t n)
{
    const struct recon_host *host = f->ctx->host;
    bool done = false;

    if (n > f->h.most) {
        f->h.too_long++;
        return 0;
    }
    if (n < 3) {
        f->h.blocked++;
        return 0;
    }
    f->hole = h;
    f->edges = n;
    if (triangulate(f, (uint32_t)n, &done))
        return -1;
    if (done)
        f->h.more.run[f->h.more.runs++] = (struct mesh_run){ (uint32_t)n - 2, f->b->half[h[0]] / 3 };
    f->h.filled += done;
    f->h.blocked += !done;
    return host->cancelled(f->ctx) ? host->fail(f->ctx, CODE_DEADLINE, NULL, "mesh", "stopped after %llu holes", (unsigned long long)f->h.filled) : 0;
}

/* The half-edges of the loop of `from` into chain; 0: it breaks at a non-manifold place. */
static uint64_t trace(struct fill *f, uint32_t from)
{
    uint32_t h = from;
    uint64_t n = 0;

    do {
        if (f->walked[h]) { /* into a chain that broke before */
            f->h.broken += n;
            return 0;
        }
        f->walked[h] = 1;
        f->chain[n++] = h;
        h = f->b->next[h];
        if (h == TOPO_NONE) {
            f->h.broken += n;
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
        uint32_t v = f->b->start[f->chain[i]], at = f->place[v];

        if (at < top && f->b->start[f->chain[at]] == v) {
            f->h.cut++;
            if (fill_loop(f, f->chain + at, top - at))
                return -1;
            top = at;
        }
        f->place[v] = (uint32_t)top;
        f->chain[top++] = f->chain[i]; /* top <= i */
    }
    return fill_loop(f, f->chain, top);
}

static int fill_all(struct fill *f)
{
    for (uint32_t h = 0; h < f->b->halves; h++) {
        uint64_t n = f->walked[h] ? 0 : trace(f, h);

        if (n && fill_parts(f, n))
            return -1;
    }
    return 0;
}

/* ---- the whole ---- */

/* n faces joined by edges have n + 2 border edges at most, and so no longer loop; no more faces come in than are there, and no
 * more diagonals */
static void set_room(struct fill *f, uint64_t mesh_faces)
{
    uint64_t few = f->b->halves < mesh_faces ? f->b->halves : mesh_faces;

    f->longest = few + 2;
    f->room = few + 1;
    f->slots = 2 * f->room + 14;
}

static int prepare(struct fill *f)
{
    const struct recon_host *host = f->ctx->host;
    const struct border *b = f->b;

    if (!(f->walked = host->alloc(f->ctx, b->halves)) || !(f->place = host->alloc(f->ctx, 4 * b->vertices)) ||
        !(f->chain = host->alloc(f->ctx, 4 * f->longest)) || !(f->added = host->alloc(f->ctx, 8 * f->slots)) ||
        !(f->h.more.corner = host->alloc(f->ctx, 12 * f->room)) || !(f->h.more.run = host->alloc(f->ctx, sizeof(struct mesh_run) * holes_most(b))))
        return -1;
    memset(f->walked, 0, b->halves);
    memset(f->place, 0, 4 * b->vertices);
    memset(f->added, 0, 8 * f->slots);
    return 0;
}

int holes_fill(struct recon_ctx *ctx, const struct border *b, uint64_t mesh_faces, uint64_t most, struct holes *ret)
{
    struct fill f = { .ctx = ctx, .b = b, .h = { .most = most, .blocked = b->lone } };
    int rc = 0;

    if (b->halves) {
        set_room(&f, mesh_faces);
        rc = prepare(&f);
        rc = rc ? rc : fill_all(&f);
    }
    for (void **x = (void *[]){ f.walked, f.place, f.chain, f.added, &f }; *x != &f; x++)
        ctx->host->free(ctx, *x);
    if (rc)
        holes_release(ctx, &f.h);
    else
        *ret = f.h;
    return rc;
}

void holes_release(struct recon_ctx *ctx, struct holes *h)
{
    ctx->host->free(ctx, h->more.corner);
    ctx->host->free(ctx, h->more.run);
    h->more.corner = NULL;
    h->more.run = NULL;
}

uint64_t holes_most(const struct border *b)
{
    return b->halves / 3 + 1;
}

uint64_t holes_bytes(const struct border *b, uint64_t mesh_faces, uint64_t widest, uint64_t *kept)
{
    struct fill f = { .b = b };
    uint64_t few = widest < DP_MAX ? widest : DP_MAX, table = 10 * few * few;

    set_room(&f, mesh_faces);
    *kept = b->halves ? 12 * f.room + sizeof(struct mesh_run) * holes_most(b) : 0;
    if (widest > DP_MAX && 20 * widest > table)
        table = 20 * widest;
    return b->halves ? b->halves + 4 * b->vertices + 4 * f.longest + 8 * f.slots + *kept + table : 0;
}

void holes_tell(struct recon_ctx *ctx, const struct holes *h)
{
    uint64_t left = h->too_long + h->blocked;

    ctx->host->log(ctx, RECON_NOTE, NULL, "mesh", "%llu holes filled with %llu faces; borders that met a vertex twice were cut there %llu times",
                   (unsigned long long)h->filled, (unsigned long long)h->more.faces, (unsigned long long)h->cut);
    if (left || h->broken)
        ctx->host->log(ctx, RECON_WARN, NULL, "mesh",
                       "%llu holes are left: %llu longer than %llu edges, %llu without a triangulation that repeats no edge; %llu border "
                       "edges at non-manifold places: mesh.clean helps",
                       (unsigned long long)left, (unsigned long long)h->too_long, (unsigned long long)h->most, (unsigned long long)h->blocked,
                       (unsigned long long)h->broken);
}

/* an octahedron without its faces around a vertex, but for that vertex: four border edges, closed by two faces */
int golden_fill(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const struct recon_value p[] = { [MESH_FILL_MAX] = { .i = 100 } };
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = 4, .xyz = xyz, .index = index }, r = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    rc = golden_run(ctx, k, device, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, NULL);
    if (rc)
        return rc;
    rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.euler != 2 || c.border || c.turned || r.faces != 6 || fabs(c.volume - 2.0 / 3) > 1e-6))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': volume %.6g, 0.666667 is wanted", k->name, c.volume);
    mesh_free(ctx, &r);
    return rc;
}
