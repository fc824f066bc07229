#include "config.h"
#include "data/polygon.h"

#include <stdlib.h>

void polygon_release(struct polygon *p)
{
    free(p->corner);
    *p = (struct polygon){ 0 };
}

static void add(struct polygon *p, uint64_t corner)
{
    if (p->n == p->cap)
        vec_grow((void **)&p->corner, &p->cap, sizeof(*p->corner));
    p->corner[p->n++] = corner;
}

static bool same(const struct recon_mesh *m, uint64_t a, uint64_t b)
{
    return m->index[a] == m->index[b] && corner_uv(m, a) == corner_uv(m, b) && corner_normal(m, a) == corner_normal(m, b);
}

/* how face g goes on with the fan of face f: 1 forth, -1 back (the fan was turned), 0 not at all */
static int goes_on(const struct recon_mesh *m, uint64_t f, uint64_t g)
{
    if (!same(m, 3 * g, 3 * f))
        return 0;
    return same(m, 3 * g + 1, 3 * g - 1) ? 1 : same(m, 3 * g + 2, 3 * g - 2) ? -1 : 0;
}

void polygon_at(const struct recon_mesh *m, uint64_t f, uint64_t end, struct polygon *p)
{
    uint64_t g = f + 1;
    int way = 0;

    for (; m->joined && g < end && m->joined[g]; g++) {
        int now = goes_on(m, f, g);

        if (!now || (way && now != way))
            break;
        way = now;
    }
    p->n = 0;
    p->faces = g - f;
    add(p, 3 * f);
    if (way >= 0) {
        add(p, 3 * f + 1);
        for (uint64_t i = f; i < g; i++)
            add(p, 3 * i + 2);
    } else {
        for (uint64_t i = g; i-- > f;)
            add(p, 3 * i + 1);
        add(p, 3 * f + 2);
    }
}
