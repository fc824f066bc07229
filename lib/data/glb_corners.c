#include "config.h"
#include "data/glb_corners.h"
#include "data/polygon.h"

#include <stdlib.h>

enum { UNSEEN = 0xfffffffe };

void corners_release(struct corners *c)
{
    free(c->vertex);
    free(c->uv);
    free(c->normal);
    free(c->index);
    *c = (struct corners){ 0 };
}

/* combinations beyond a vertex's first, by open addressing: number of the vertex that has it, or RECON_NONE */
struct table {
    uint32_t *slot;
    uint64_t mask;
};

static uint64_t hash(uint32_t v, uint32_t vt, uint32_t vn)
{
    uint64_t h = v * 0x9e3779b97f4a7c15u ^ vt * 0xc2b2ae3d27d4eb4fu ^ vn * 0x165667b19e3779f9u;

    return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u >> 20;
}

static uint32_t add(struct corners *c, struct table *t, uint32_t v, uint32_t vt, uint32_t vn)
{
    uint64_t k;

    if (c->uv[v] == UNSEEN) {
        c->uv[v] = vt;
        c->normal[v] = vn;
    }
    if (c->uv[v] == vt && c->normal[v] == vn)
        return v;
    for (k = hash(v, vt, vn) & t->mask; t->slot[k] != RECON_NONE; k = (k + 1) & t->mask) {
        uint32_t i = t->slot[k];

        if (c->vertex[i] == v && c->uv[i] == vt && c->normal[i] == vn)
            return i;
    }
    t->slot[k] = (uint32_t)c->n;
    c->vertex[c->n] = v;
    c->uv[c->n] = vt;
    c->normal[c->n] = vn;
    return (uint32_t)c->n++;
}

static void split(const struct recon_mesh *m, struct corners *c, struct table *t)
{
    for (uint64_t v = 0; v < m->vertices; v++) {
        c->vertex[v] = (uint32_t)v;
        c->uv[v] = UNSEEN;
        c->normal[v] = RECON_NONE;
    }
    c->n = m->vertices;
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        c->index[i] = add(c, t, m->index[i], corner_uv(m, i), corner_normal(m, i));
    for (uint64_t v = 0; v < m->vertices; v++)
        c->uv[v] = c->uv[v] == UNSEEN ? RECON_NONE : c->uv[v];
}

int corners_split(const struct recon_mesh *m, struct corners *ret, struct err *err)
{
    struct corners c = { .n = m->vertices };
    uint64_t most = m->vertices + 3 * m->faces, slots = 64;
    struct table t = { 0 };

    *ret = c;
    if (!m->uv_index && !m->normal_index)
        return 0;
    if (most > UINT32_MAX - 2)
        return err_set(err, CODE_DATA, "%llu vertices and %llu faces may have more than 4294967293 corners that differ, which glTF does not take",
                       (unsigned long long)m->vertices, (unsigned long long)m->faces);
    while (slots < 6 * m->faces)
        slots *= 2;
    t = (struct table){ malloc(4 * slots), slots - 1 };
    c.vertex = malloc(4 * most);
    c.uv = malloc(4 * most);
    c.normal = malloc(4 * most);
    c.index = malloc(12 * m->faces);
    if (!t.slot || !c.vertex || !c.uv || !c.normal || !c.index) {
        free(t.slot);
        corners_release(&c);
        return err_set(err, CODE_MEMORY, "no memory for the corners of %llu faces", (unsigned long long)m->faces);
    }
    memset(t.slot, 0xff, 4 * slots);
    split(m, &c, &t);
    free(t.slot);
    *ret = c;
    return 0;
}
