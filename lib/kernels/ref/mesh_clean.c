/* mesh.clean by sorting and by looking at everything: the same rules, none of the kernel's loops. */
#include "config.h"
#include "kernels/ref/mesh_ref.h"

#include <math.h>
#include <stdlib.h>

struct edge_face { /* one a half-edge */
    uint32_t a, b, face; /* a < b */
    bool up;             /* the face goes from a to b */
};

static int by_edge(const void *x, const void *y)
{
    const struct edge_face *p = x, *q = y;

    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    if (p->b != q->b)
        return p->b < q->b ? -1 : 1;
    return p->face < q->face ? -1 : p->face > q->face;
}

/* all half-edges of faces that name no vertex twice, by edge, then by face */
static struct edge_face *edges_of(struct recon_ctx *ctx, const struct recon_mesh *m, uint64_t *n)
{
    struct edge_face *e = ctx->host->alloc(ctx, sizeof(*e) * 3 * m->faces + 1);

    *n = 0;
    for (uint32_t f = 0; e && f < m->faces; f++)
        for (int i = 0; i < 3; i++) {
            uint32_t a = m->index[3 * f + i], b = m->index[3 * f + (i + 1) % 3];

            if (!face_degenerate(m->index + 3 * f))
                e[(*n)++] = (struct edge_face){ a < b ? a : b, a < b ? b : a, f, a < b };
        }
    if (e)
        qsort(e, *n, sizeof(*e), by_edge);
    return e;
}

static uint64_t group(const struct edge_face *e, uint64_t n, uint64_t from)
{
    uint64_t to = from;

    while (to < n && e[to].a == e[from].a && e[to].b == e[from].b)
        to++;
    return to;
}

static int by_place(const void *x, const void *y, void *xyz)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    for (int i = 0; i < 3; i++) {
        float p = ((const float *)xyz)[3 * (uint64_t)a + (uint64_t)i], q = ((const float *)xyz)[3 * (uint64_t)b + (uint64_t)i];

        if (p != q)
            return p < q ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static int merge(struct recon_ctx *ctx, struct recon_mesh *m)
{
    uint32_t *order = ctx->host->alloc(ctx, 4 * m->vertices + 4), *to = ctx->host->alloc(ctx, 4 * m->vertices + 4);

    if (order && to) {
        for (uint32_t v = 0; v < m->vertices; v++)
            order[v] = v;
        qsort_r(order, m->vertices, 4, by_place, m->xyz);
        for (uint64_t i = 0, first = 0; i < m->vertices; i++) {
            const float *p = m->xyz + 3 * (uint64_t)order[first], *q = m->xyz + 3 * (uint64_t)order[i];

            if (p[0] != q[0] || p[1] != q[1] || p[2] != q[2])
                first = i;
            to[order[i]] = order[first];
        }
        for (uint64_t i = 0; i < 3 * m->faces; i++)
            m->index[i] = to[m->index[i]];
    }
    ctx->host->free(ctx, order);
    ctx->host->free(ctx, to);
    return order && to ? 0 : -1;
}

static void drop(struct recon_mesh *m, const uint8_t *gone)
{
    uint64_t k = 0;

    for (uint64_t f = 0; f < m->faces; f++)
        if (!gone[f]) {
            for (int i = 0; i < 3; i++)
                m->index[3 * k + (uint64_t)i] = m->index[3 * f + (uint64_t)i];
            k++;
        }
    m->faces = k;
}

static double size_of(const struct recon_mesh *m, uint32_t f)
{
    double n[3], size;

    face_cross(m, f, n);
    size = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    return isnan(size) ? -1 : size; /* what is no number goes first */
}

static void degenerate(struct recon_mesh *m, uint8_t *gone)
{
    for (uint32_t f = 0; f < m->faces; f++)
        gone[f] = face_degenerate(m->index + 3 * f) || size_of(m, f) == 0;
    drop(m, gone);
}

static bool same_three(const uint32_t *f, const uint32_t *g)
{
    int found = 0;

    for (int i = 0; i < 3; i++)
        found += f[i] == g[0] || f[i] == g[1] || f[i] == g[2];
    return found == 3;
}

/* a face goes when an earlier one at its first edge has the same vertices */
static void repeated(struct recon_mesh *m, const struct edge_face *e, uint64_t n, uint8_t *gone)
{
    memset(gone, 0, m->faces);
    for (uint64_t i = 0, to; i < n; i = to) {
        to = group(e, n, i);
        for (uint64_t a = i; a < to; a++)
            for (uint64_t b = i; b < a; b++)
                gone[e[a].face] |= same_three(m->index + 3ull * e[a].face, m->index + 3ull * e[b].face);
    }
    drop(m, gone);
}

/* at each edge in turn: while more than two faces stand, the least goes */
static void non_manifold(struct recon_mesh *m, const struct edge_face *e, uint64_t n, uint8_t *gone)
{
    memset(gone, 0, m->faces);
    for (uint64_t i = 0, to; i < n; i = to) {
        uint64_t left;

        to = group(e, n, i);
        do {
            uint32_t least = UINT32_MAX;

            left = 0;
            for (uint64_t k = i; k < to; k++) {
                if (gone[e[k].face])
                    continue;
                left++;
                if (least == UINT32_MAX || size_of(m, e[k].face) < size_of(m, least))
                    least = e[k].face;
            }
            if (left > 2)
                gone[least] = 1;
        } while (left > 2);
    }
    drop(m, gone);
}

/* ---- fans ---- */

/* label[corner]: the lowest corner of its fan, spread over shared edges until nothing changes */
static void label_fans(const struct recon_mesh *m, const struct edge_face *e, uint64_t n, uint32_t *label)
{
    bool changed = true;

    for (uint32_t h = 0; h < 3 * m->faces; h++)
        label[h] = h;
    while (changed) {
        changed = false;
        for (uint64_t i = 0, to; i < n; i = to) {
            to = group(e, n, i);
            for (int end = 0; end < 2; end++) {
                uint32_t v = end ? e[i].b : e[i].a, least = UINT32_MAX;

                for (int pass = 0; pass < 2; pass++)
                    for (uint64_t k = i; k < to; k++)
                        for (uint32_t h = 3 * e[k].face; h < 3 * e[k].face + 3; h++) {
                            if (m->index[h] != v)
                                continue;
                            if (pass == 0)
                                least = label[h] < least ? label[h] : least;
                            changed = changed || (pass == 1 && label[h] != least);
                            label[h] = pass ? least : label[h];
                        }
            }
        }
    }
}

static int split(struct recon_ctx *ctx, struct recon_mesh *m, const struct edge_face *e, uint64_t n)
{
    uint32_t *label = ctx->host->alloc(ctx, 12 * m->faces + 4), *old = ctx->host->alloc(ctx, 12 * m->faces + 4), *to = ctx->host->alloc(ctx, 12 * m->faces + 4);
    uint64_t most = m->vertices + 3 * m->faces;
    struct recon_mesh g = { .faces = m->faces, .index = m->index };
    uint8_t *taken = ctx->host->alloc(ctx, m->vertices + 1);
    int rc = -1;

    g.xyz = ctx->host->alloc(ctx, 12 * most + 1);
    g.normals = m->normals ? ctx->host->alloc(ctx, 12 * most + 1) : NULL;
    g.rgb = m->rgb ? ctx->host->alloc(ctx, 3 * most + 1) : NULL;
    if (label && old && to && taken && g.xyz && (g.normals || !m->normals) && (g.rgb || !m->rgb)) {
        label_fans(m, e, n, label);
        memset(taken, 0, m->vertices);
        memcpy(old, m->index, 12 * m->faces);
        for (g.vertices = 0; g.vertices < m->vertices; g.vertices++) {
            memcpy(g.xyz + 3 * g.vertices, m->xyz + 3 * g.vertices, 12);
            if (g.normals)
                memcpy(g.normals + 3 * g.vertices, m->normals + 3 * g.vertices, 12);
            if (g.rgb)
                memcpy(g.rgb + 3 * g.vertices, m->rgb + 3 * g.vertices, 3);
        }
        for (uint32_t h = 0; h < 3 * m->faces; h++) {
            uint32_t v = old[h];

            if (face_degenerate(old + h / 3 * 3))
                continue;
            if (label[h] == h && taken[v]) {
                memcpy(g.xyz + 3 * g.vertices, m->xyz + 3 * (uint64_t)v, 12);
                if (g.normals)
                    memcpy(g.normals + 3 * g.vertices, m->normals + 3 * (uint64_t)v, 12);
                if (g.rgb)
                    memcpy(g.rgb + 3 * g.vertices, m->rgb + 3 * (uint64_t)v, 3);
                to[h] = (uint32_t)g.vertices++;
            } else if (label[h] == h) {
                to[h] = v;
                taken[v] = 1;
            }
            g.index[h] = to[label[h]];
        }
        m->index = NULL;
        mesh_free(ctx, m);
        *m = g;
        rc = 0;
    }
    if (rc) {
        g.index = NULL;
        mesh_free(ctx, &g);
    }
    ctx->host->free(ctx, label);
    ctx->host->free(ctx, old);
    ctx->host->free(ctx, to);
    ctx->host->free(ctx, taken);
    return rc;
}

/* ---- components ---- */

/* label[v]: the lowest vertex of its component */
static void label_parts(const struct recon_mesh *m, uint32_t *label)
{
    bool changed = true;

    for (uint32_t v = 0; v < m->vertices; v++)
        label[v] = v;
    while (changed) {
        changed = false;
        for (uint64_t f = 0; f < m->faces; f++) {
            const uint32_t *v = m->index + 3 * f;
            uint32_t least = label[v[0]];

            for (int i = 1; i < 3; i++)
                least = label[v[i]] < least ? label[v[i]] : least;
            for (int i = 0; i < 3; i++) {
                changed = changed || label[v[i]] != least;
                label[v[i]] = least;
            }
        }
    }
}

/* a part goes when it has too few faces, or when as many others as are to stay come before it: more faces, or a lower vertex */
static int drop_parts(struct recon_ctx *ctx, struct recon_mesh *m, uint64_t least, uint64_t largest, uint8_t *gone)
{
    uint32_t *label = ctx->host->alloc(ctx, 4 * m->vertices + 4), *faces = ctx->host->alloc(ctx, 4 * m->vertices + 4);
    uint8_t *stays = ctx->host->alloc(ctx, m->vertices + 1);

    if (label && faces && stays) {
        label_parts(m, label);
        memset(faces, 0, 4 * m->vertices);
        for (uint64_t f = 0; f < m->faces; f++)
            faces[label[m->index[3 * f]]]++;
        for (uint32_t own = 0; own < m->vertices; own++) {
            uint64_t ahead = 0;

            for (uint32_t v = 0; largest && faces[own] && v < m->vertices; v++)
                ahead += faces[v] > faces[own] || (faces[v] == faces[own] && v < own);
            stays[own] = faces[own] >= least && (!largest || ahead < largest);
        }
        for (uint64_t f = 0; f < m->faces; f++)
            gone[f] = !stays[label[m->index[3 * f]]];
        drop(m, gone);
    }
    ctx->host->free(ctx, label);
    ctx->host->free(ctx, faces);
    ctx->host->free(ctx, stays);
    return label && faces && stays ? 0 : -1;
}

/* ---- orientation ---- */

/* the other face of an edge of exactly two, UINT32_MAX: none; *same: both go one way along it; *open: it has one face */
static uint32_t beyond(const struct edge_face *e, uint64_t n, uint32_t a, uint32_t b, uint32_t face, bool *same, bool *open)
{
    uint64_t low = 0, high = n, to;

    while (low < high) { /* the first of the edge */
        uint64_t mid = low + (high - low) / 2;

        if (e[mid].a < a || (e[mid].a == a && e[mid].b < b))
            low = mid + 1;
        else
            high = mid;
    }
    to = group(e, n, low);
    *open = to - low == 1;
    if (to - low != 2)
        return UINT32_MAX;
    *same = e[low].up == e[low + 1].up;
    return e[low].face == face ? e[low + 1].face : e[low].face;
}

static void three_edges(const uint32_t *v, uint32_t edge[3][2])
{
    for (int i = 0; i < 3; i++) {
        uint32_t a = v[i], b = v[(i + 1) % 3];

        edge[i][0] = a < b ? a : b;
        edge[i][1] = a < b ? b : a;
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2 - i; k++)
            if (edge[k][0] > edge[k + 1][0] || (edge[k][0] == edge[k + 1][0] && edge[k][1] > edge[k + 1][1]))
                for (int j = 0; j < 2; j++) {
                    uint32_t x = edge[k][j];

                    edge[k][j] = edge[k + 1][j];
                    edge[k + 1][j] = x;
                }
}

/* turn: 0 not seen, 2 stays, 3 turns; parts from their lowest face on, faces in the order they are met, edges ascending */
static void orient(struct recon_mesh *m, const struct edge_face *e, uint64_t n, uint8_t *turn, uint32_t *queue)
{
    memset(turn, 0, m->faces);
    for (uint32_t seed = 0; seed < m->faces; seed++) {
        uint64_t from = 0, to = 0;
        double volume = 0, x[3];
        bool closed = true;

        if (turn[seed])
            continue;
        turn[queue[to++] = seed] = 2;
        for (; from < to; from++) {
            uint32_t f = queue[from], edge[3][2];
            const float *a = m->xyz + 3ull * m->index[3ull * f];

            face_cross(m, f, x);
            volume += (turn[f] == 3 ? -1 : 1) * ((double)a[0] * x[0] + (double)a[1] * x[1] + (double)a[2] * x[2]);
            if (face_degenerate(m->index + 3ull * f)) {
                closed = false;
                continue;
            }
            three_edges(m->index + 3ull * f, edge);
            for (int i = 0; i < 3; i++) {
                bool same = false, open;
                uint32_t g = beyond(e, n, edge[i][0], edge[i][1], f, &same, &open);

                closed = closed && !open;
                if (g != UINT32_MAX && !turn[g])
                    turn[queue[to++] = g] = same ? (uint8_t)(5 - turn[f]) : turn[f];
            }
        }
        for (uint64_t i = 0; closed && volume < 0 && i < to; i++)
            turn[queue[i]] = (uint8_t)(5 - turn[queue[i]]);
    }
    for (uint64_t f = 0; f < m->faces; f++)
        if (turn[f] == 3) {
            uint32_t v = m->index[3 * f + 1];

            m->index[3 * f + 1] = m->index[3 * f + 2];
            m->index[3 * f + 2] = v;
        }
}

static int unused(struct recon_ctx *ctx, struct recon_mesh *m)
{
    uint32_t *to = ctx->host->alloc(ctx, 4 * m->vertices + 4);
    uint64_t k = 0;

    if (!to)
        return -1;
    for (uint64_t v = 0; v < m->vertices; v++)
        to[v] = UINT32_MAX;
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        to[m->index[i]] = 0;
    for (uint64_t v = 0; v < m->vertices; v++)
        if (to[v] == 0) {
            for (uint64_t i = 0; i < 3; i++) {
                m->xyz[3 * k + i] = m->xyz[3 * v + i];
                if (m->normals)
                    m->normals[3 * k + i] = m->normals[3 * v + i];
                if (m->rgb)
                    m->rgb[3 * k + i] = m->rgb[3 * v + i];
            }
            to[v] = (uint32_t)k++;
        }
    m->vertices = k;
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        m->index[i] = to[m->index[i]];
    ctx->host->free(ctx, to);
    return 0;
}

enum by_edges { REPEATED, NON_MANIFOLD, SPLIT, ORIENT };

static int with_edges(struct recon_ctx *ctx, struct recon_mesh *m, enum by_edges what, uint8_t *scratch)
{
    uint64_t n;
    struct edge_face *e = edges_of(ctx, m, &n);
    uint32_t *queue = ctx->host->alloc(ctx, 4 * m->faces + 4);
    int rc = e && queue ? 0 : -1;

    if (rc == 0 && what == REPEATED)
        repeated(m, e, n, scratch);
    if (rc == 0 && what == NON_MANIFOLD)
        non_manifold(m, e, n, scratch);
    if (rc == 0 && what == SPLIT)
        rc = split(ctx, m, e, n);
    if (rc == 0 && what == ORIENT)
        orient(m, e, n, scratch, queue);
    ctx->host->free(ctx, e);
    ctx->host->free(ctx, queue);
    return rc;
}

static int steps(struct recon_ctx *ctx, struct recon_mesh *m, const struct recon_value *p, uint8_t *scratch)
{
    if (p[MESH_CLEAN_MERGE].i && merge(ctx, m))
        return -1;
    if (p[MESH_CLEAN_DEGENERATE].i)
        degenerate(m, scratch);
    if ((p[MESH_CLEAN_REPEATED].i && with_edges(ctx, m, REPEATED, scratch)) || (p[MESH_CLEAN_NON_MANIFOLD].i && with_edges(ctx, m, NON_MANIFOLD, scratch)) ||
        (p[MESH_CLEAN_ORIENT].i == MESH_CLEAN_OUTWARD && with_edges(ctx, m, ORIENT, scratch)) ||
        (p[MESH_CLEAN_SPLIT].i && with_edges(ctx, m, SPLIT, scratch)))
        return -1;
    if ((p[MESH_CLEAN_MIN_FACES].i || p[MESH_CLEAN_LARGEST].i) &&
        drop_parts(ctx, m, (uint64_t)p[MESH_CLEAN_MIN_FACES].i, (uint64_t)p[MESH_CLEAN_LARGEST].i, scratch))
        return -1;
    return p[MESH_CLEAN_UNUSED].i ? unused(ctx, m) : 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    (void)ctx;
    (void)p;
    if (m) /* tables of half-edges and corners, every corner a vertex of its own at worst */
        cost->host_bytes = 80 * m->vertices + (13 + 4 + 48 + 36 + 27 * 3) * m->faces + 4096;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct recon_mesh c = { 0 };
    uint8_t *scratch = ctx->host->alloc(ctx, m->faces + 1);
    int rc = scratch ? 0 : -1;

    for (uint64_t i = 0; rc == 0 && i < 3 * m->faces; i++)
        if (m->index[i] >= m->vertices)
            rc = ctx->host->fail(ctx, CODE_DATA, "face-index-out-of-range", "mesh", "face %llu names vertex %u, %llu are there",
                                 (unsigned long long)(i / 3), m->index[i], (unsigned long long)m->vertices);
    if (rc == 0 && (rc = mesh_copy(ctx, m, !p[MESH_CLEAN_MERGE].i, true, &c)) == 0)
        rc = steps(ctx, &c, p, scratch);
    ctx->host->free(ctx, scratch);
    if (rc == 0 && c.faces == 0)
        rc = ctx->host->fail(ctx, CODE_DATA, "empty-result", "mesh", "none of the %llu faces is left", (unsigned long long)m->faces);
    if (rc) {
        mesh_free(ctx, &c);
        return -1;
    }
    bound(ctx, in, p, cost);
    cost->items = m->faces;
    *(struct recon_mesh *)out[0] = c;
    return 0;
}

/* two tetrahedra that touch at a point become two */
static int selftest(struct recon_ctx *ctx)
{
    static const struct recon_value p[] = { { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 0 }, { .i = 0 }, { .i = 1 }, { .i = 1 } };
    float xyz[21] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, -1, 0, 0, 0, -1, 0, 0, 0, -1 };
    uint32_t index[24] = { 0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3, 0, 4, 5, 0, 5, 6, 0, 6, 4, 4, 6, 5 };
    struct recon_mesh m = { .vertices = 7, .faces = 8, .xyz = xyz, .index = index }, r = { 0 };
    struct recon_cost cost = { 0 };
    struct census c;
    int rc = run(ctx, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, &cost);

    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.vertices != 8 || c.split || c.components != 2 || c.border || c.euler != 4))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, "mesh.clean", "self-test of 'mesh.clean': %llu vertices in %llu parts, 8 in 2 are wanted",
                             (unsigned long long)c.vertices, (unsigned long long)c.components);
    mesh_free(ctx, &r);
    return rc;
}

const struct recon_kernel ref_mesh_clean = { RECON_KERNEL_ABI,  MESH_CLEAN_NAME, MESH_CLEAN_DOC, mesh_one_in, mesh_one_out,
                                             mesh_clean_params, bound,           run,            selftest,    NULL };
