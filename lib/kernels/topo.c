/* Edges of a mesh: half-edges are counted and dealt out by their lower vertex, then each vertex's few are sorted. */
#include "config.h"
#include "base/base.h"
#include "kernels/mesh_plan.h"

#include <stdlib.h>

uint64_t topo_bytes(uint64_t vertices, uint64_t faces)
{
    return 4 * (vertices + 2) + 36 * faces + 64;
}

void topo_release(struct recon_ctx *ctx, struct topo *t)
{
    ctx->host->free(ctx, t->half); /* first stands behind it */
    ctx->host->free(ctx, t->edge_of);
    *t = (struct topo){ 0 };
}

/* A half-edge at its lower vertex: higher vertex << 32 | half-edge. */
static uint64_t key_of(uint32_t a, uint32_t b, uint32_t h)
{
    return (uint64_t)(a < b ? b : a) << 32 | h;
}

static void sift(uint64_t *k, uint64_t i, uint64_t n)
{
    uint64_t x = k[i];

    for (uint64_t c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && k[c + 1] > k[c];
        if (k[c] <= x)
            break;
        k[i] = k[c];
    }
    k[i] = x;
}

/* ascending; heap sort beyond a few, so that a vertex of many edges stays cheap */
static void sort_keys(uint64_t *k, uint64_t n)
{
    if (n > 32) {
        for (uint64_t i = n / 2; i-- > 0;)
            sift(k, i, n);
        for (uint64_t i = n - 1; i > 0; i--) {
            uint64_t swap = k[0];

            k[0] = k[i];
            k[i] = swap;
            sift(k, 0, i);
        }
        return;
    }
    for (uint64_t i = 1; i < n; i++) {
        uint64_t x = k[i], j = i;

        for (; j > 0 && x < k[j - 1]; j--)
            k[j] = k[j - 1];
        k[j] = x;
    }
}

/* at[v]: where the keys of vertex v end, those of the one before it are in front; the keys by their vertices */
static void deal(struct topo *t, uint32_t *at, uint64_t *key)
{
    uint32_t sum = 0;

    for (uint32_t f = 0; f < t->faces; f++) {
        const uint32_t *v = t->index + 3 * (uint64_t)f;

        if (face_degenerate(v))
            continue;
        at[(v[0] < v[1] ? v[0] : v[1]) + 1]++;
        at[(v[1] < v[2] ? v[1] : v[2]) + 1]++;
        at[(v[2] < v[0] ? v[2] : v[0]) + 1]++;
    }
    for (uint64_t v = 0; v <= t->vertices; v++)
        sum = at[v] += sum;
    t->halves = sum;
    for (uint32_t f = 0; f < t->faces; f++) {
        const uint32_t *v = t->index + 3 * (uint64_t)f;

        if (face_degenerate(v))
            continue;
        key[at[v[0] < v[1] ? v[0] : v[1]]++] = key_of(v[0], v[1], 3 * f); /* at[v], the begin of v's, becomes their end */
        key[at[v[1] < v[2] ? v[1] : v[2]]++] = key_of(v[1], v[2], 3 * f + 1);
        key[at[v[2] < v[0] ? v[2] : v[0]]++] = key_of(v[2], v[0], 3 * f + 2);
    }
}

/* The keys, sorted, become the half-edges in the same memory: each is read before its half of the room is written. */
static void number(struct topo *t, const uint32_t *at, const uint64_t *key)
{
    uint64_t from = 0;
    uint32_t e = 0;

    for (uint64_t v = 0; v < t->vertices; from = at[v++]) {
        uint32_t high = UINT32_MAX; /* is no vertex */

        for (uint64_t i = from; i < at[v]; i++) {
            uint32_t h = (uint32_t)key[i], other = (uint32_t)(key[i] >> 32);

            e += other != high;
            high = other;
            memcpy(t->half + i, &h, 4);
            t->edge_of[h] = e - 1;
        }
    }
    t->edges = e;
    for (uint64_t i = t->halves; i-- > 0;)
        t->first[t->edge_of[t->half[i]]] = (uint32_t)i;
    t->first[t->edges] = (uint32_t)t->halves;
}

int topo_fits(struct recon_ctx *ctx, const struct recon_mesh *m)
{
    if (m->faces <= UINT32_MAX / 3 - 1 && m->vertices < UINT32_MAX)
        return 0;
    if (m->vertices >= UINT32_MAX)
        return ctx->host->fail(ctx, CODE_DATA, NULL, "mesh", "the mesh has %llu vertices, at most %u are taken",
                               (unsigned long long)m->vertices, UINT32_MAX - 1);
    return ctx->host->fail(ctx, CODE_DATA, NULL, "mesh", "the mesh has %llu faces, at most %u are taken", (unsigned long long)m->faces,
                           UINT32_MAX / 3 - 1);
}

int topo_build(struct recon_ctx *ctx, const struct recon_mesh *m, struct topo *ret)
{
    struct topo t = { .index = m->index, .vertices = m->vertices, .faces = m->faces };
    uint32_t *at = NULL, from = 0;
    uint64_t *key = NULL;

    if (topo_fits(ctx, m) || indices_fit(ctx, m))
        return -1;
    if (!(at = ctx->host->alloc(ctx, 4 * (m->vertices + 2))) || !(key = ctx->host->alloc(ctx, 24 * m->faces + 4)) ||
        !(t.edge_of = ctx->host->alloc(ctx, 12 * m->faces)))
        goto fail;
    memset(at, 0, 4 * (m->vertices + 2));
    deal(&t, at, key);
    for (uint64_t v = 0; v < m->vertices; from = at[v++])
        sort_keys(key + from, at[v] - from);
    memset(t.edge_of, 0xff, 12 * m->faces);
    t.half = (uint32_t *)key;
    t.first = t.half + 3 * m->faces;
    number(&t, at, key);
    ctx->host->free(ctx, at);
    *ret = t;
    return 0;
fail:
    ctx->host->free(ctx, at);
    ctx->host->free(ctx, key);
    ctx->host->free(ctx, t.edge_of);
    return -1;
}

struct apex {
    uint32_t vertex, face;
};

static int by_apex(const void *a, const void *b)
{
    const struct apex *x = a, *y = b;

    return x->vertex != y->vertex ? (x->vertex < y->vertex ? -1 : 1) : x->face < y->face ? -1 : x->face > y->face;
}

/* faces with the same three vertices share each edge and the vertex opposite; repeated[f]: an earlier one is there */
static void mark_repeated(const struct topo *t, uint32_t e, struct apex *a, uint8_t *repeated)
{
    uint32_t n = topo_count(t, e);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t h = t->half[t->first[e] + i];

        a[i] = (struct apex){ t->index[topo_prev(h)], h / 3 };
    }
    if (n > 1)
        qsort(a, n, sizeof(*a), by_apex);
    for (uint32_t i = 1; i < n; i++)
        if (a[i].vertex == a[i - 1].vertex)
            repeated[a[i].face] = 1;
}

int topo_repeated(struct recon_ctx *ctx, const struct topo *t, uint8_t *repeated)
{
    uint32_t widest = 0;
    struct apex *a;

    for (uint32_t e = 0; e < t->edges; e++)
        widest = topo_count(t, e) > widest ? topo_count(t, e) : widest;
    if (!(a = ctx->host->alloc(ctx, sizeof(*a) * ((uint64_t)widest + 1))))
        return -1;
    memset(repeated, 0, t->faces);
    for (uint32_t e = 0; e < t->edges; e++)
        mark_repeated(t, e, a, repeated);
    ctx->host->free(ctx, a);
    return 0;
}

void topo_fans(const struct topo *t, uint32_t *corner, uint8_t *fans)
{
    for (uint32_t h = 0; h < 3 * t->faces; h++)
        corner[h] = h;
    for (uint32_t e = 0; e < t->edges; e++) {
        uint32_t n = topo_count(t, e), g = t->half[t->first[e]];

        for (uint32_t i = 1; i < n; i++) {
            uint32_t h = t->half[t->first[e] + i];
            bool same = t->index[h] == t->index[g];

            set_join(corner, h, same ? g : topo_next(g));
            set_join(corner, topo_next(h), same ? topo_next(g) : g);
        }
    }
    memset(fans, 0, t->vertices);
    for (uint32_t h = 0; h < 3 * t->faces; h++)
        if (t->edge_of[h] != TOPO_NONE && corner[h] == h && fans[t->index[h]] < 2)
            fans[t->index[h]]++;
}

int indices_fit(struct recon_ctx *ctx, const struct recon_mesh *m)
{
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        if (m->index[i] >= m->vertices)
            return ctx->host->fail(ctx, CODE_DATA, "face-index-out-of-range", "mesh", "face %llu names vertex %u, %llu are there",
                                   (unsigned long long)(i / 3), m->index[i], (unsigned long long)m->vertices);
    return 0;
}

void golden_octahedron(float xyz[3 * OCTA_V], uint32_t index[3 * OCTA_F])
{
    static const float v[3 * OCTA_V] = { 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1 };
    static const uint32_t f[3 * OCTA_F] = { 0, 2, 4, 2, 1, 4, 1, 3, 4, 3, 0, 4, 2, 0, 5, 1, 2, 5, 3, 1, 5, 0, 3, 5 };

    memcpy(xyz, v, sizeof(v));
    memcpy(index, f, sizeof(f));
}
