#include "config.h"
#include "kernels/cpu/clean.h"

#include <stdlib.h>

/* faces name the first vertex at their place */
static int merge(struct clean *c)
{
    struct recon_mesh *m = &c->m;
    uint64_t size = 16, n = m->vertices;
    uint32_t *slot, *to;

    while (size < 2 * n)
        size *= 2;
    slot = c->ctx->host->alloc(c->ctx, 4 * size);
    to = c->ctx->host->alloc(c->ctx, 4 * n);
    if (slot && to) {
        memset(slot, 0xff, 4 * size);
        for (uint32_t v = 0; v < n; v++) {
            const float *p = m->xyz + 3 * (uint64_t)v;
            uint64_t i = clean_hash(p) & (size - 1);

            to[v] = v;
            if (!clean_same_place(p, p))
                continue; /* no number: equal to none, and many would stand behind each other */
            while (slot[i] != UINT32_MAX && !clean_same_place(p, m->xyz + 3 * (uint64_t)slot[i]))
                i = (i + 1) & (size - 1);
            if (slot[i] == UINT32_MAX)
                slot[i] = v;
            to[v] = slot[i];
            c->n.merged += slot[i] != v;
        }
        for (uint64_t i = 0; i < 3 * m->faces; i++)
            m->index[i] = to[m->index[i]];
    }
    c->ctx->host->free(c->ctx, slot);
    c->ctx->host->free(c->ctx, to);
    return slot && to ? 0 : -1;
}

/* faces whose flag is set go; gives how many */
static uint64_t drop_faces(struct recon_mesh *m, const uint8_t *gone)
{
    uint64_t k = 0, n = m->faces;

    for (uint64_t f = 0; f < n; f++)
        if (!gone[f])
            memmove(m->index + 3 * k++, m->index + 3 * f, 12);
    m->faces = k;
    return n - k;
}

/* Edge by edge in their order: the faces of least area, then of lowest number, go until two are left. A face that goes
 * only lowers the count of others, so once over all edges is enough. */
static int mark_non_manifold(struct clean *c, const struct topo *t, uint8_t *gone)
{
    uint32_t widest = 0;
    struct clean_sized *s;

    for (uint32_t e = 0; e < t->edges; e++)
        widest = topo_count(t, e) > widest ? topo_count(t, e) : widest;
    if (!(s = c->ctx->host->alloc(c->ctx, sizeof(*s) * ((uint64_t)widest + 1))))
        return -1;
    memset(gone, 0, c->m.faces);
    for (uint32_t e = 0; e < t->edges; e++) {
        uint32_t n = topo_count(t, e);

        for (uint32_t i = 0; n > 2 && i < n; i++) {
            uint32_t f = t->half[t->first[e] + i] / 3;

            s[i] = (struct clean_sized){ clean_size(&c->m, f), f, e };
        }
        if (n > 2)
            clean_thin(s, n, gone);
    }
    c->ctx->host->free(c->ctx, s);
    return 0;
}

static void turn_face(uint32_t *v)
{
    uint32_t x = v[1];

    v[1] = v[2];
    v[2] = x;
}

static int orient(struct clean *c)
{
    struct recon_host const *host = c->ctx->host;
    uint8_t *turn = host->alloc(c->ctx, c->m.faces);
    uint32_t *stack = host->alloc(c->ctx, 4 * c->m.faces);
    struct topo t = { 0 };
    int rc = turn && stack ? topo_build(c->ctx, &c->m, &t) : -1;

    if (rc == 0) {
        memset(turn, 0, c->m.faces);
        for (uint32_t f = 0; f < c->m.faces; f++)
            if (turn[f] == 0)
                clean_orient_part(&c->m, &t, f, turn, stack);
        for (uint64_t f = 0; f < c->m.faces; f++)
            if (turn[f] == 3) {
                turn_face(c->m.index + 3 * f);
                c->n.turned++;
            }
    }
    topo_release(c->ctx, &t);
    host->free(c->ctx, turn);
    host->free(c->ctx, stack);
    return rc;
}

struct part {
    uint32_t root, faces;
};

static int by_faces(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return x->faces != y->faces ? (x->faces > y->faces ? -1 : 1) : x->root < y->root ? -1 : x->root > y->root;
}

/* set: of vertices; count: faces of a root, then 0 where the part goes */
static int choose_parts(struct clean *c, uint32_t *set, uint32_t *count, const struct recon_value *p)
{
    uint64_t largest = (uint64_t)p[MESH_CLEAN_LARGEST].i, parts = 0;
    struct part *list;

    for (uint64_t v = 0; v < c->m.vertices; v++)
        parts += count[v] > 0;
    if (!(list = c->ctx->host->alloc(c->ctx, sizeof(*list) * (parts + 1))))
        return -1;
    parts = 0;
    for (uint32_t v = 0; v < c->m.vertices; v++)
        if (count[v])
            list[parts++] = (struct part){ set_root(set, v), count[v] };
    qsort(list, parts, sizeof(*list), by_faces);
    for (uint64_t i = 0; i < parts; i++)
        if (list[i].faces < (uint64_t)p[MESH_CLEAN_MIN_FACES].i || (largest && i >= largest))
            count[list[i].root] = 0;
    c->ctx->host->free(c->ctx, list);
    return 0;
}

static int drop_parts(struct clean *c, const struct recon_value *p, uint8_t *gone)
{
    struct recon_mesh *m = &c->m;
    uint32_t *set = c->ctx->host->alloc(c->ctx, 4 * m->vertices), *count = c->ctx->host->alloc(c->ctx, 4 * m->vertices);
    int rc = set && count ? 0 : -1;

    if (rc == 0) {
        for (uint32_t v = 0; v < m->vertices; v++)
            set[v] = v;
        for (uint64_t f = 0; f < m->faces; f++) {
            set_join(set, m->index[3 * f], m->index[3 * f + 1]);
            set_join(set, m->index[3 * f], m->index[3 * f + 2]);
        }
        memset(count, 0, 4 * m->vertices);
        for (uint64_t f = 0; f < m->faces; f++)
            count[set_root(set, m->index[3 * f])]++;
        rc = choose_parts(c, set, count, p);
        for (uint64_t f = 0; rc == 0 && f < m->faces; f++)
            gone[f] = count[set_root(set, m->index[3 * f])] == 0;
        c->n.small = rc == 0 ? drop_faces(m, gone) : 0;
    }
    c->ctx->host->free(c->ctx, set);
    c->ctx->host->free(c->ctx, count);
    return rc;
}

static int drop_unused(struct clean *c)
{
    struct recon_mesh *m = &c->m;
    uint32_t *to = c->ctx->host->alloc(c->ctx, 4 * m->vertices), k = 0;

    if (!to)
        return -1;
    memset(to, 0, 4 * m->vertices);
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        to[m->index[i]] = 1;
    for (uint64_t v = 0; v < m->vertices; v++) {
        if (!to[v])
            continue;
        memmove(m->xyz + 3 * (uint64_t)k, m->xyz + 3 * v, 12);
        if (m->normals)
            memmove(m->normals + 3 * (uint64_t)k, m->normals + 3 * v, 12);
        if (m->rgb)
            memmove(m->rgb + 3 * (uint64_t)k, m->rgb + 3 * v, 3);
        to[v] = k++;
    }
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        m->index[i] = to[m->index[i]];
    c->n.unused = m->vertices - k;
    m->vertices = k;
    c->ctx->host->free(c->ctx, to);
    return 0;
}

static int drop_by_edges(struct clean *c, bool repeated, uint8_t *gone)
{
    struct topo t;
    int rc = topo_build(c->ctx, &c->m, &t);

    if (rc)
        return -1;
    if (repeated)
        rc = topo_repeated(c->ctx, &t, gone);
    else
        rc = mark_non_manifold(c, &t, gone);
    topo_release(c->ctx, &t);
    if (rc == 0)
        *(repeated ? &c->n.repeated : &c->n.non_manifold) = drop_faces(&c->m, gone);
    return rc;
}

static int steps(struct clean *c, const struct recon_value *p, uint8_t *gone)
{
    if (p[MESH_CLEAN_MERGE].i && merge(c))
        return -1;
    if (p[MESH_CLEAN_DEGENERATE].i) {
        for (uint64_t f = 0; f < c->m.faces; f++)
            gone[f] = clean_degenerate(&c->m, f);
        c->n.degenerate = drop_faces(&c->m, gone);
    }
    if (p[MESH_CLEAN_REPEATED].i && drop_by_edges(c, true, gone))
        return -1;
    if (p[MESH_CLEAN_NON_MANIFOLD].i && drop_by_edges(c, false, gone))
        return -1;
    if (p[MESH_CLEAN_ORIENT].i == MESH_CLEAN_OUTWARD && orient(c))
        return -1;
    if (p[MESH_CLEAN_SPLIT].i && clean_fans(c)) /* after the faces lie as they stay: its order is that of their corners */
        return -1;
    if ((p[MESH_CLEAN_MIN_FACES].i || p[MESH_CLEAN_LARGEST].i) && drop_parts(c, p, gone))
        return -1;
    return p[MESH_CLEAN_UNUSED].i ? drop_unused(c) : 0;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* copies: of vertices, where fans are parted */
static void cost_of(const struct recon_mesh *m, const struct recon_value *p, uint64_t copies, struct recon_cost *cost)
{
    uint64_t v = m->vertices, f = m->faces, vertex = p[MESH_CLEAN_MERGE].i ? 15 : 27;
    uint64_t most = 24 * v + 64; /* components: two tables, and a list of them; or merging: slots, two to four a vertex, and a table */

    if (p[MESH_CLEAN_REPEATED].i || p[MESH_CLEAN_NON_MANIFOLD].i)
        most = greatest(most, topo_bytes(v, f) + 16 * f + 16); /* and the faces of one edge */
    if (p[MESH_CLEAN_ORIENT].i == MESH_CLEAN_OUTWARD)
        most = greatest(most, topo_bytes(v, f) + 5 * f);
    if (p[MESH_CLEAN_SPLIT].i) { /* corners and fans; then the copies beside them, then the vertices twice */
        most = greatest(most, v + 12 * f + greatest(topo_bytes(v, f), 12 * f + 4 * copies) + 64);
        most = greatest(most, 4 * copies + vertex * (v + copies));
    }
    cost->host_bytes = vertex * (v + copies) + 13 * f + most + 4096;
    cost->moved_bytes = 54 * v + 72 * f;
    cost->items = f;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    (void)ctx;
    if (m) /* at worst a vertex a corner */
        cost_of(m, p, p[MESH_CLEAN_SPLIT].i ? 3 * m->faces : 0, cost);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct clean c = { .ctx = ctx };
    uint8_t *gone = ctx->host->alloc(ctx, m->faces);
    int rc = -1;

    if (gone && topo_fits(ctx, m) == 0 && indices_fit(ctx, m) == 0 && mesh_copy(ctx, m, !p[MESH_CLEAN_MERGE].i, true, &c.m) == 0)
        rc = steps(&c, p, gone);
    ctx->host->free(ctx, gone);
    if (rc == 0)
        rc = clean_told(ctx, m->faces, c.m.faces, &c.n);
    if (rc) {
        mesh_free(ctx, &c.m);
        return -1;
    }
    cost_of(m, p, c.n.split, cost);
    *(struct recon_mesh *)out[0] = c.m;
    return 0;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_clean(ctx, &cpu_mesh_clean, NULL);
}

const struct recon_kernel cpu_mesh_clean = { RECON_KERNEL_ABI,  MESH_CLEAN_NAME, MESH_CLEAN_DOC, mesh_one_in, mesh_one_out,
                                             mesh_clean_params, bound,           run,            selftest,    NULL };
