#include "config.h"
#include "kernels/cpu/clean.h"

#include <math.h>
#include <stdlib.h>

static uint32_t hash_place(const float *p)
{
    uint64_t h = 0;

    for (int i = 0; i < 3; i++) {
        float x = p[i] + 0.0f; /* -0 is 0 */
        uint32_t bits;

        memcpy(&bits, &x, 4);
        h = (h ^ bits) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ h >> 32);
}

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
            uint64_t i = hash_place(p) & (size - 1);

            for (; slot[i] != UINT32_MAX; i = (i + 1) & (size - 1)) {
                const float *q = m->xyz + 3 * (uint64_t)slot[i];

                if (p[0] == q[0] && p[1] == q[1] && p[2] == q[2])
                    break;
            }
            if (slot[i] == UINT32_MAX)
                slot[i] = v;
            to[v] = slot[i];
            c->merged += slot[i] != v;
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

static void mark_degenerate(const struct recon_mesh *m, uint8_t *gone)
{
    double n[3];

    for (uint64_t f = 0; f < m->faces; f++) {
        gone[f] = face_degenerate(m->index + 3 * f);
        if (!gone[f]) {
            face_cross(m, f, n);
            gone[f] = n[0] == 0 && n[1] == 0 && n[2] == 0;
        }
    }
}

static double area_of(const struct recon_mesh *m, uint32_t f)
{
    double n[3];

    face_cross(m, f, n);
    return n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
}

struct sized {
    double area;
    uint32_t face;
};

static int by_area(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;

    return x->area != y->area ? (x->area < y->area ? -1 : 1) : x->face < y->face ? -1 : x->face > y->face;
}

/* Edge by edge in their order: the faces of least area, then of lowest number, go until two are left. A face that goes
 * only lowers the count of others, so once over all edges is enough. */
static int mark_non_manifold(struct clean *c, const struct topo *t, uint8_t *gone)
{
    uint32_t widest = 0;
    struct sized *s;

    for (uint32_t e = 0; e < t->edges; e++)
        widest = topo_count(t, e) > widest ? topo_count(t, e) : widest;
    if (!(s = c->ctx->host->alloc(c->ctx, sizeof(*s) * ((uint64_t)widest + 1))))
        return -1;
    memset(gone, 0, c->m.faces);
    for (uint32_t e = 0; e < t->edges; e++) {
        uint32_t left = 0;

        for (uint32_t i = t->first[e]; topo_count(t, e) > 2 && i < t->first[e + 1]; i++) {
            uint32_t f = t->half[i] / 3;

            if (!gone[f])
                s[left++] = (struct sized){ area_of(&c->m, f), f };
        }
        if (left > 2)
            qsort(s, left, sizeof(*s), by_area);
        for (uint32_t i = 0; i + 2 < left; i++)
            gone[s[i].face] = 1;
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

/* A face's half-edges by the numbers of their edges, whichever way the face is turned: of the lowest, then up and around. */
static uint32_t first_edge(const struct topo *t, uint32_t f)
{
    uint32_t best = 3 * f;

    for (uint32_t h = 3 * f + 1; h < 3 * f + 3; h++)
        best = t->edge_of[h] < t->edge_of[best] ? h : best;
    return best;
}

static uint32_t next_edge(const struct topo *t, uint32_t h)
{
    uint32_t a = topo_next(h), b = topo_prev(h);

    if (t->edge_of[a] > t->edge_of[h] && t->edge_of[b] > t->edge_of[h])
        return t->edge_of[a] < t->edge_of[b] ? a : b;
    return t->edge_of[a] > t->edge_of[b] ? a : b;
}

/* One part that is joined by edges of two faces: turned as its first face, then outward if it is closed. */
static void orient_part(struct clean *c, const struct topo *t, uint32_t seed, uint8_t *turn, uint32_t *stack)
{
    uint32_t n = 0, top = 0;
    double volume = 0;
    bool closed = true, flip;

    stack[top++] = seed;
    turn[seed] = 2;
    while (n < top) { /* the stack keeps what was taken: the part's faces */
        uint32_t f = stack[n++];
        const float *a = c->m.xyz + 3 * (uint64_t)t->index[3 * f];
        double x[3];

        face_cross(&c->m, f, x);
        volume += (turn[f] == 3 ? -1 : 1) * ((double)a[0] * x[0] + (double)a[1] * x[1] + (double)a[2] * x[2]);
        for (uint32_t i = 0, h = first_edge(t, f); i < 3; i++, h = next_edge(t, h)) {
            uint32_t e = t->edge_of[h], k, same;

            if (e == TOPO_NONE || topo_count(t, e) != 2) {
                closed = closed && e != TOPO_NONE && topo_count(t, e) != 1;
                continue;
            }
            k = t->half[t->first[e]] == h ? t->half[t->first[e] + 1] : t->half[t->first[e]];
            same = t->index[k] == t->index[h];
            if (turn[k / 3] == 0) {
                turn[k / 3] = (uint8_t)(2 + ((turn[f] & 1) ^ same));
                stack[top++] = k / 3;
            }
        }
    }
    flip = closed && volume < 0;
    for (uint32_t i = 0; i < top; i++)
        turn[stack[i]] = (uint8_t)(turn[stack[i]] ^ flip);
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
                orient_part(c, &t, f, turn, stack);
        for (uint64_t f = 0; f < c->m.faces; f++)
            if (turn[f] == 3) {
                turn_face(c->m.index + 3 * f);
                c->turned++;
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
        c->small = rc == 0 ? drop_faces(m, gone) : 0;
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
    c->unused = m->vertices - k;
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
        *(repeated ? &c->repeated : &c->non_manifold) = drop_faces(&c->m, gone);
    return rc;
}

static int steps(struct clean *c, const struct recon_value *p, uint8_t *gone)
{
    if (p[MESH_CLEAN_MERGE].i && merge(c))
        return -1;
    if (p[MESH_CLEAN_DEGENERATE].i) {
        mark_degenerate(&c->m, gone);
        c->degenerate = drop_faces(&c->m, gone);
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

    if (gone && indices_fit(ctx, m) == 0 && mesh_copy(ctx, m, !p[MESH_CLEAN_MERGE].i, true, &c.m) == 0)
        rc = steps(&c, p, gone);
    ctx->host->free(ctx, gone);
    if (rc == 0 && c.m.faces == 0)
        rc = ctx->host->fail(ctx, CODE_DATA, "empty-result", "mesh", "none of the %llu faces is left", (unsigned long long)m->faces);
    if (rc) {
        mesh_free(ctx, &c.m);
        return -1;
    }
    ctx->host->log(ctx, RECON_NOTE, NULL, "mesh",
                   "%llu vertices merged; faces removed: %llu degenerate, %llu repeated, %llu at non-manifold edges, %llu in small "
                   "components; %llu vertices added where fans met; %llu faces turned; %llu unused vertices removed",
                   (unsigned long long)c.merged, (unsigned long long)c.degenerate, (unsigned long long)c.repeated,
                   (unsigned long long)c.non_manifold, (unsigned long long)c.small, (unsigned long long)c.split, (unsigned long long)c.turned, (unsigned long long)c.unused);
    cost_of(m, p, c.split, cost);
    *(struct recon_mesh *)out[0] = c.m;
    return 0;
}

/* an octahedron with a wing at one edge, a repeated and a degenerate face, turned inward: all is mended */
static int selftest(struct recon_ctx *ctx)
{
    float xyz[3 * (OCTA_V + 2)] = { 0 };
    uint32_t index[3 * (OCTA_F + 3)];
    struct recon_value p[9] = { { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 0 }, { .i = 0 }, { .i = 1 }, { .i = 1 } };
    struct recon_mesh m = { .vertices = OCTA_V + 2, .faces = OCTA_F + 3, .xyz = xyz, .index = index }, r = { 0 };
    struct recon_cost cost = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    for (uint64_t f = 0; f < OCTA_F; f++)
        turn_face(index + 3 * f);
    xyz[3 * OCTA_V] = xyz[3 * OCTA_V + 1] = 0.6f; /* the wing's tip */
    memcpy(index + 3 * OCTA_F, (uint32_t[]){ 0, 2, OCTA_V, 0, 2, 4, 3, 3, 5 }, 36);
    rc = cpu_mesh_clean.run(ctx, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, &cost);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.used != OCTA_V || c.vertices != OCTA_V || c.euler != 2 || c.border || c.non_manifold || c.turned ||
                    fabs(c.volume - 4.0 / 3) > 1e-6))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, "mesh.clean", "self-test of 'mesh.clean': Euler characteristic %lld and volume %.6g, "
                             "2 and 1.33333 are wanted", (long long)c.euler, c.volume);
    mesh_free(ctx, &r);
    return rc;
}

const struct recon_kernel cpu_mesh_clean = { RECON_KERNEL_ABI,  MESH_CLEAN_NAME, MESH_CLEAN_DOC, mesh_one_in, mesh_one_out,
                                             mesh_clean_params, bound,           run,            selftest,    NULL };
