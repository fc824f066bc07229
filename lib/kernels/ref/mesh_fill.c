/* mesh.fill_holes by its rules alone: tables of edges by bisection, loops cut by looking back, triangulations by recursion and by
 * weighing every corner again for each one that goes. */
#include "config.h"
#include "data/data.h"
#include "kernels/ref/mesh_ref.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_AREA_MAX = 200 }; /* vertices of a loop; longer ones lose one corner after the other */

struct fill {
    struct recon_ctx *ctx;
    const struct recon_mesh *m;
    uint64_t *edge, edges;
    uint32_t *uses, *half; /* of an edge: how many faces, and two of their half-edges */
    uint8_t *walked;
    uint32_t *chain, *path, *loop; /* half-edges; those of the loop, from the last to the first */
    uint64_t *diagonal, diagonals, border, most;
    struct mesh_more more; /* new faces */
    uint64_t left;
};

static uint32_t start_of(const struct fill *f, uint32_t h)
{
    return f->m->index[h];
}

static uint32_t end_of(const struct fill *f, uint32_t h)
{
    return f->m->index[h / 3 * 3 + (h + 1) % 3];
}

static uint64_t edge_of(const struct fill *f, uint32_t h)
{
    return ref_edge(f->edge, f->edges, start_of(f, h), end_of(f, h));
}

static bool counts(const struct fill *f, uint32_t h)
{
    return !face_degenerate(f->m->index + h / 3 * 3ull);
}

static bool on_border(const struct fill *f, uint32_t h)
{
    return counts(f, h) && f->uses[edge_of(f, h)] == 1;
}

/* around the vertex where h ends, from face to face, to the border half-edge that leaves it; UINT32_MAX: not to be had */
static uint32_t after(const struct fill *f, uint32_t h)
{
    uint32_t g = h / 3 * 3 + (h + 1) % 3;

    while (!on_border(f, g)) {
        uint64_t e = edge_of(f, g);
        uint32_t other = f->half[2 * e] == g ? f->half[2 * e + 1] : f->half[2 * e];

        if (f->uses[e] != 2 || start_of(f, other) == start_of(f, g))
            return UINT32_MAX;
        g = other / 3 * 3 + (other + 1) % 3;
    }
    return g;
}

static bool joined(const struct fill *f, uint32_t a, uint32_t b)
{
    uint64_t key = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;

    for (uint64_t i = 0; i < f->diagonals; i++)
        if (f->diagonal[i] == key)
            return true;
    return ref_edge(f->edge, f->edges, a, b) < f->edges;
}

static void join(struct fill *f, uint32_t a, uint32_t b)
{
    f->diagonal[f->diagonals++] = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

/* where the half-edge at place i of the loop begins */
static uint32_t vertex(const struct fill *f, uint32_t i)
{
    return start_of(f, f->loop[i]);
}

/* a face between three places of the loop, each like the corner there */
static void add(struct fill *f, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t *to = f->more.corner + 3 * f->more.faces++;

    to[0] = f->loop[a];
    to[1] = f->loop[b];
    to[2] = f->loop[c];
}

/* ---- least area ---- */

struct best {
    double area;
    uint32_t by;
    bool known;
};

static double area_of(const struct fill *f, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t index[3] = { a, b, c };
    struct recon_mesh one = { .xyz = f->m->xyz, .index = index };
    double n[3];

    face_cross(&one, 0, n);
    return sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
}

/* of the part from i to j of a loop of n; the first apex of the least area counts */
static double least(const struct fill *f, struct best *t, uint32_t n, uint32_t i, uint32_t j)
{
    struct best *b = &t[i * n + j];

    if (j == i + 1)
        return 0;
    if (b->known)
        return b->area;
    b->known = true;
    b->area = INFINITY;
    if (!(i == 0 && j == n - 1) && joined(f, vertex(f, i), vertex(f, j)))
        return b->area;
    for (uint32_t k = i + 1; k < j; k++) {
        double area = least(f, t, n, i, k) + least(f, t, n, k, j);

        if (area < INFINITY)
            area += area_of(f, vertex(f, i), vertex(f, k), vertex(f, j));
        if (area < b->area) {
            b->area = area;
            b->by = k;
        }
    }
    return b->area;
}

static void lay(struct fill *f, const struct best *t, uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t k = t[i * n + j].by;

    if (j == i + 1)
        return;
    add(f, i, k, j);
    if (!(i == 0 && j == n - 1))
        join(f, vertex(f, i), vertex(f, j));
    lay(f, t, n, k, j);
    lay(f, t, n, i, k);
}

static int by_area(struct fill *f, uint32_t n, bool *done)
{
    struct best *t = f->ctx->host->alloc(f->ctx, sizeof(*t) * n * n);

    if (!t)
        return -1;
    memset(t, 0, sizeof(*t) * n * n);
    *done = least(f, t, n, 0, n - 1) < INFINITY;
    if (*done)
        lay(f, t, n, 0, n - 1);
    f->ctx->host->free(f->ctx, t);
    return 0;
}

/* ---- shortest diagonals ---- */

static double length2(const struct fill *f, uint32_t a, uint32_t b)
{
    double s = 0;

    for (uint64_t i = 0; i < 3; i++) {
        double d = (double)f->m->xyz[3 * (uint64_t)a + i] - (double)f->m->xyz[3 * (uint64_t)b + i];

        s += d * d;
    }
    return s;
}

/* the loop loses its corner of the shortest diagonal, the first of equals, until three are left */
static bool by_corners(struct fill *f, uint32_t n)
{
    uint64_t faces = f->more.faces;
    uint32_t at = 0;

    for (; n > 3; n--) {
        double best = INFINITY;
        uint32_t a, b;

        for (uint32_t i = 0; i < n; i++) {
            a = vertex(f, (i + n - 1) % n);
            b = vertex(f, (i + 1) % n);
            if (length2(f, a, b) < best && !joined(f, a, b)) {
                best = length2(f, a, b);
                at = i;
            }
        }
        if (best == INFINITY) {
            f->more.faces = faces; /* its diagonals stay barred */
            return false;
        }
        a = (at + n - 1) % n;
        b = (at + 1) % n;
        add(f, a, at, b);
        join(f, vertex(f, a), vertex(f, b));
        memmove(f->loop + at, f->loop + at + 1, 4 * (uint64_t)(n - at - 1));
    }
    at %= 3; /* what followed the last corner is in the middle */
    add(f, (at + 2) % 3, at, (at + 1) % 3);
    return true;
}

/* ---- loops ---- */

static int fill_one(struct fill *f, const uint32_t *h, uint64_t n)
{
    bool done = false;

    for (uint64_t i = 0; i < n; i++)
        f->loop[n - 1 - i] = h[i];
    if (n > f->most || n < 3 || (n == 3 && f->m->index[h[0] / 3 * 3 + (h[0] + 2) % 3] == start_of(f, h[2]))) {
        f->left++;
        return 0;
    }
    if (n <= LEAST_AREA_MAX) {
        if (by_area(f, (uint32_t)n, &done))
            return -1;
    } else {
        done = by_corners(f, (uint32_t)n);
    }
    if (done)
        f->more.run[f->more.runs++] = (struct mesh_run){ (uint32_t)n - 2, h[0] / 3 };
    f->left += !done;
    return 0;
}

static int fill_chain(struct fill *f, uint64_t n)
{
    uint64_t top = 0;

    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < top; k++)
            if (start_of(f, f->path[k]) == start_of(f, f->chain[i])) {
                if (fill_one(f, f->path + k, top - k))
                    return -1;
                top = k;
            }
        f->path[top++] = f->chain[i];
    }
    return fill_one(f, f->path, top);
}

static int fill_all(struct fill *f)
{
    for (uint32_t h = 0; h < 3 * f->m->faces; h++) {
        uint64_t n = 0;
        uint32_t g = h;

        if (f->walked[h] || !on_border(f, h))
            continue;
        do {
            f->walked[g] = 1;
            f->chain[n++] = g;
            g = after(f, g);
        } while (g != UINT32_MAX && !f->walked[g]);
        if (g != h)
            f->left++; /* a non-manifold place, or a chain that met one */
        else if (fill_chain(f, n))
            return -1;
    }
    return 0;
}

static int prepare(struct fill *f)
{
    const struct recon_host *host = f->ctx->host;
    const struct recon_mesh *m = f->m;

    for (uint64_t i = 0; i < 3 * m->faces; i++)
        if (m->index[i] >= m->vertices)
            return host->fail(f->ctx, CODE_DATA, "face-index-out-of-range", "mesh", "face %llu names vertex %u, %llu are there",
                              (unsigned long long)(i / 3), m->index[i], (unsigned long long)m->vertices);
    if (!(f->edge = ref_edges(f->ctx, m, &f->edges)) || !(f->uses = host->alloc(f->ctx, 4 * f->edges + 4)) ||
        !(f->half = host->alloc(f->ctx, 8 * f->edges + 8)) || !(f->walked = host->alloc(f->ctx, 3 * m->faces + 1)))
        return -1;
    memset(f->uses, 0, 4 * f->edges);
    memset(f->walked, 0, 3 * m->faces);
    for (uint32_t h = 0; h < 3 * m->faces; h++)
        if (counts(f, h)) {
            uint64_t e = edge_of(f, h);

            if (f->uses[e] < 2)
                f->half[2 * e + f->uses[e]] = h;
            f->uses[e]++;
        }
    for (uint64_t e = 0; e < f->edges; e++)
        f->border += f->uses[e] == 1;
    f->chain = host->alloc(f->ctx, 4 * f->border + 4);
    f->path = host->alloc(f->ctx, 4 * f->border + 4);
    f->loop = host->alloc(f->ctx, 4 * f->border + 4);
    f->diagonal = host->alloc(f->ctx, 8 * f->border + 8);
    f->more.corner = host->alloc(f->ctx, 12 * f->border + 12);
    f->more.run = host->alloc(f->ctx, 8 * f->border + 8);
    return f->chain && f->path && f->loop && f->diagonal && f->more.corner && f->more.run ? 0 : -1;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    uint64_t meanwhile;

    (void)ctx;
    (void)p;
    if (m)
        cost->host_bytes = mesh_grow_bytes(m, m->faces, m->faces, &meanwhile) + meanwhile + (24 + 36 + 3 + 24 + 3 * 32 + 48) * m->faces + 16ull * LEAST_AREA_MAX * LEAST_AREA_MAX + 4096;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct fill f = { .ctx = ctx, .m = in[0], .most = (uint64_t)p[MESH_FILL_MAX].i };
    int rc = prepare(&f);

    if (rc == 0)
        rc = fill_all(&f);
    if (rc == 0)
        rc = mesh_grow(ctx, f.m, &f.more, out[0]);
    if (rc == 0 && f.left)
        ctx->host->log(ctx, RECON_WARN, NULL, "mesh", "%llu holes or parts of borders are left", (unsigned long long)f.left);
    bound(ctx, in, p, cost);
    cost->items = f.more.faces;
    for (void **x = (void *[]){ f.edge, f.uses, f.half, f.walked, f.chain, f.path, f.loop, f.diagonal, f.more.corner, f.more.run, ctx }; *x != ctx; x++)
        ctx->host->free(ctx, *x);
    return rc;
}

/* an octahedron without its four faces around a vertex: closed by two */
static int selftest(struct recon_ctx *ctx)
{
    static const struct recon_value p[] = { { .i = 100 } };
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = 4, .xyz = xyz, .index = index }, r = { 0 };
    struct recon_cost cost = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    rc = run(ctx, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, &cost);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.euler != 2 || c.border || c.turned || r.faces != 6))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, "mesh.fill_holes", "self-test of 'mesh.fill_holes': %llu faces, 6 are wanted", (unsigned long long)r.faces);
    mesh_free(ctx, &r);
    return rc;
}

const struct recon_kernel ref_mesh_fill = { RECON_KERNEL_ABI, MESH_FILL_NAME, MESH_FILL_DOC, mesh_one_in, mesh_one_out,
                                            mesh_fill_params, bound,          run,           selftest,    NULL };
