/* kernels/rounds.h - mesh.simplify by rounds, for every device. In a round each due edge claims both its ends by a key. An edge whose
 * key is the least among those of all edges that end at its ends or at vertices in a face with them is chosen: it goes, or waits for
 * a change at one of its ends where it may not. Two that are chosen have no face in common, and a collapse reads and changes nothing but
 * the faces at its ends, those faces' vertices and its edges there: the order in which they go, and by how many threads, changes
 * nothing, and each leaves the others as valid as they were. Each round with a due edge chooses at least one, that of the least key.
 *
 * A corner is 4 * face + 0, 1 or 2; corner i of a face lies at its vertex v[i], where its edge e[i] to the next corner begins. A
 * vertex has the list of its corners; corners of faces that went stay in it until it is the vertex of a collapse. C and C++. */
#ifndef KERNELS_ROUNDS_H
#define KERNELS_ROUNDS_H

#include "kernels/quadric.h"

KERN_BEGIN

#define NO_CORNER UINT32_MAX
#define CORNER_NEXT(i) ((9u >> 2 * (i)) & 3u) /* of 0, 1, 2: 1, 2, 0 */
#define CORNER_PREV(i) ((18u >> 2 * (i)) & 3u)

struct corner_face {
    uint32_t v[3], next[3], e[3]; /* v[0] is NO_CORNER: the face went; next: the next corner at v[i], NO_CORNER ends */
};

struct corner_vertex { /* a line of the cache */
    struct quadric q; /* mark and head stand behind three floats that are read as four */
    uint32_t mark; /* of the last link looked at */
    float xyz[3];  /* scaled */
    uint32_t head; /* first corner */
};

enum { VERTEX_FREE, VERTEX_LOCKED, VERTEX_MOVED };
/* An edge's level is that of its error when it was last looked at, by rounds always that of its error. EDGE_OUT is added while it
 * waits for a change at one of its ends, since it could not go; EDGE_NEVER: between two locked vertices, or gone. */
enum { EDGE_OUT = 128, EDGE_NEVER = 255 };

struct rounds {
    struct corner_face *face;
    struct corner_vertex *vertex;
    uint8_t *state, *rgb; /* of a vertex; rgb: or NULL */
    uint32_t *corner;     /* of an edge: a corner where it begins */
    uint8_t *level;
    uint64_t *claim;      /* of a vertex: the least key of an edge that ends there */
    float most;           /* square of max_error, scaled; 0: any */
};

/* An edge that becomes one vertex. */
struct collapse {
    uint32_t low, high, keep, drop; /* vertices */
    bool never, moves;              /* both ends are locked; none is */
    uint8_t level;
    struct quadric q;         /* about the middle */
    float h[3], p[3], at[3];  /* h: half of it, from the lower vertex; p: where it goes, about the middle, and in the mesh */
    float error;
};

/* ---- what is due, and in which order ---- */

/* Keys of a round are below those of earlier ones, so claims need no sweeping but when the count of rounds wraps. */
#define ROUND_WRAP 0x10000u

KERN_HD uint64_t round_key(uint32_t round, uint32_t edge)
{
    uint32_t x = edge * 0x9e3779b1u ^ round * 0x85ebca6bu;

    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return (uint64_t)(~round & 0xffffu) << 48 | (uint64_t)(x >> 16) << 32 | edge;
}

/* Of eight levels, the high bits of those that are this one or lower; none carries into the next. */
KERN_HD uint64_t round_due(uint64_t levels, uint8_t level)
{
    return ((0x80u + level) * 0x0101010101010101u - (levels & 0x7f7f7f7f7f7f7f7fu)) & ~levels & 0x8080808080808080u;
}

/* The levels are gone through upwards. A level ends when a round chose fewer edges than one in 64 of the vertices that are left: what
 * is due then is taken with the next. */
KERN_HD bool round_few(uint64_t chosen, uint64_t vertices)
{
    return chosen * 64 < vertices;
}


/* ---- looking ---- */

/* h, or the first corner after it of a face that is there */
KERN_HD uint32_t round_live(const struct rounds *r, uint32_t h)
{
    while (h != NO_CORNER && r->face[h >> 2].v[0] == NO_CORNER)
        h = r->face[h >> 2].next[h & 3];
    return h;
}

#define ROUND_CORNERS(r, v, h) \
    (uint32_t h = round_live(r, (r)->vertex[v].head); h != NO_CORNER; h = round_live(r, (r)->face[h >> 2].next[h & 3]))

KERN_HD void round_ends(const struct rounds *r, uint32_t e, uint32_t *low, uint32_t *high)
{
    const struct corner_face *f = &r->face[r->corner[e] >> 2];
    uint32_t i = r->corner[e] & 3, a = f->v[i], b = f->v[CORNER_NEXT(i)];

    *low = a < b ? a : b;
    *high = a < b ? b : a;
}

KERN_HD void round_look(const struct rounds *r, uint32_t e, struct collapse *c)
{
    const struct corner_vertex *x, *y;
    bool to_low, to_high;

    round_ends(r, e, &c->low, &c->high);
    x = &r->vertex[c->low];
    y = &r->vertex[c->high];
    to_low = r->state[c->low] == VERTEX_LOCKED;
    to_high = r->state[c->high] == VERTEX_LOCKED;
    c->keep = to_high ? c->high : c->low;
    c->drop = to_high ? c->low : c->high;
    c->never = to_high && to_low;
    c->moves = !to_high && !to_low;
    for (int i = 0; i < 3; i++)
        c->h[i] = (y->xyz[i] - x->xyz[i]) * 0.5f;
    quadric_sum(&x->q, &y->q, c->h, &c->q);
    if (c->moves)
        quadric_least(&c->q, c->p);
    for (int i = 0; i < 3; i++) {
        c->p[i] = c->moves ? c->p[i] : to_high ? c->h[i] : -c->h[i];
        c->at[i] = c->moves ? x->xyz[i] + (c->h[i] + c->p[i]) : r->vertex[c->keep].xyz[i];
    }
    c->error = quadric_at(&c->q, c->p);
    c->level = quadric_level(quadric_order(&c->q, c->h, c->error));
}

enum { ROUND_NEAR = 24 };

/* whether x is a neighbour of the vertex v of n faces, of whose neighbours the first are in near */
KERN_HD bool round_is_near(const struct rounds *r, uint32_t v, const uint32_t *near, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n && i < ROUND_NEAR; i++)
        if (near[i] == x)
            return true;
    if (n > ROUND_NEAR)
        for ROUND_CORNERS (r, v, h)
            if (r->face[h >> 2].v[CORNER_NEXT(h & 3)] == x)
                return true;
    return false;
}

/* The faces of drop, whose fan is closed: each neighbour comes next in one of them. Two of them are the edge's, the others stand. */
KERN_HD bool round_drop_may(const struct rounds *r, const struct collapse *c, uint32_t third[2], uint32_t near[ROUND_NEAR], uint32_t *ret_faces)
{
    uint32_t sides = 0, faces = 0;

    for ROUND_CORNERS (r, c->drop, h) {
        const struct corner_face *f = &r->face[h >> 2];
        uint32_t a = f->v[CORNER_NEXT(h & 3)], b = f->v[CORNER_PREV(h & 3)];

        if (faces < ROUND_NEAR)
            near[faces] = a;
        faces++;
        if (a == c->keep || b == c->keep) {
            if (sides == 2)
                return false;
            third[sides++] = a == c->keep ? b : a;
        } else if (!face_stands(r->vertex[c->drop].xyz, r->vertex[a].xyz, r->vertex[b].xyz, c->at)) {
            return false;
        }
    }
    *ret_faces = faces;
    return sides == 2 && third[0] != third[1];
}

/* The link of the edge is what the links of its ends share: the two third vertices, and not both ends in a face with these. */
KERN_HD bool round_may(const struct rounds *r, const struct collapse *c)
{
    uint32_t third[2], near[ROUND_NEAR], faces;

    if ((r->most > 0 && c->error > r->most * c->q.area) || !round_drop_may(r, c, third, near, &faces))
        return false;
    for ROUND_CORNERS (r, c->keep, h) {
        const struct corner_face *f = &r->face[h >> 2];
        uint32_t a = f->v[CORNER_NEXT(h & 3)], b = f->v[CORNER_PREV(h & 3)];
        bool a_third = a == third[0] || a == third[1], b_third = b == third[0] || b == third[1];

        if (a == c->drop || b == c->drop)
            continue;
        if ((faces == 3 && a_third && b_third) || (!a_third && round_is_near(r, c->drop, near, faces, a)) ||
            (!c->moves && !b_third && round_is_near(r, c->drop, near, faces, b)) ||
            (c->moves && !face_stands(r->vertex[c->keep].xyz, r->vertex[a].xyz, r->vertex[b].xyz, c->at)))
            return false;
    }
    return true;
}

/* Whether no edge of a lower key ends at v or a neighbour. */
KERN_HD bool round_least(const struct rounds *r, uint32_t v, uint64_t key)
{
    for ROUND_CORNERS (r, v, h) {
        const struct corner_face *f = &r->face[h >> 2];

        if (r->claim[f->v[CORNER_NEXT(h & 3)]] < key || r->claim[f->v[CORNER_PREV(h & 3)]] < key)
            return false;
    }
    return true;
}

KERN_HD bool round_chosen(const struct rounds *r, uint32_t e, uint32_t round)
{
    uint64_t key = round_key(round, e);
    uint32_t low, high;

    round_ends(r, e, &low, &high);
    return r->claim[low] == key && r->claim[high] == key && round_least(r, low, key) && round_least(r, high, key);
}

/* A chosen edge: whether it goes; else it waits. */
KERN_HD bool round_goes(const struct rounds *r, uint32_t e)
{
    struct collapse c;
    bool may;

    round_look(r, e, &c);
    may = round_may(r, &c);
    if (!may)
        r->level[e] = (uint8_t)(c.level | EDGE_OUT);
    return may;
}

/* The level of an edge whose ends changed; it waits no more. */
KERN_HD void round_level(const struct rounds *r, uint32_t e)
{
    struct collapse c;

    round_look(r, e, &c);
    r->level[e] = c.never ? (uint8_t)EDGE_NEVER : c.level;
}

/* ---- a collapse ---- */

/* The edges of the two faces at an edge with the vertex that stays and with the other. */
struct round_sides {
    uint32_t keep[2], drop[2];
};

KERN_HD void round_sides(const struct rounds *r, const struct collapse *c, struct round_sides *s)
{
    uint32_t n = 0;

    for ROUND_CORNERS (r, c->drop, h) {
        const struct corner_face *f = &r->face[h >> 2];
        uint32_t i = h & 3, j = CORNER_NEXT(i), k = CORNER_PREV(i);

        if (n < 2 && (f->v[j] == c->keep || f->v[k] == c->keep)) {
            s->keep[n] = f->e[j];
            s->drop[n++] = f->e[f->v[j] == c->keep ? k : i];
        }
    }
}

/* an edge with each end and a third vertex become one: that of the higher level, which is nearer to what it costs now */
KERN_HD uint32_t round_merge(const struct rounds *r, uint32_t x, uint32_t y)
{
    uint32_t of_x = r->level[x], of_y = r->level[y];
    bool first;

    of_x = of_x == EDGE_NEVER ? of_x : of_x & 127;
    of_y = of_y == EDGE_NEVER ? of_y : of_y & 127;
    first = of_x != of_y ? of_x > of_y : x < y;
    r->level[first ? y : x] = EDGE_NEVER;
    return first ? x : y;
}

/* the edge of corner i of a face that was one of these becomes the one that they are now */
KERN_HD void round_rename(const struct rounds *r, uint32_t h, uint32_t i, const uint32_t was[2], const uint32_t is[2])
{
    struct corner_face *f = &r->face[h >> 2];

    for (int k = 0; k < 2; k++)
        if (f->e[i] == was[k]) {
            f->e[i] = is[k];
            r->corner[is[k]] = (h & ~3u) | i;
        }
}

/* Faces of a vertex take the edges' new names and the number of the vertex; those with the other vertex, and those that went before,
 * leave its list, whose end is given back. */
KERN_HD uint32_t *round_take(const struct rounds *r, uint32_t v, uint32_t keep, uint32_t other, const uint32_t was[2], const uint32_t is[2])
{
    uint32_t *at = &r->vertex[v].head;

    while (*at != NO_CORNER) {
        struct corner_face *f = &r->face[*at >> 2];
        uint32_t h = *at, i = h & 3, j = CORNER_NEXT(i), k = CORNER_PREV(i);

        if (f->v[0] == NO_CORNER || f->v[j] == other || f->v[k] == other) {
            f->v[0] = NO_CORNER;
            *at = f->next[i];
            continue;
        }
        f->v[i] = keep;
        round_rename(r, h, i, was, is);
        round_rename(r, h, k, was, is);
        at = &f->next[i];
    }
    return at;
}

/* edges at v, which moved; where its fan is closed each begins there once */
KERN_HD void round_relevel(const struct rounds *r, uint32_t v)
{
    bool locked = r->state[v] == VERTEX_LOCKED;

    for ROUND_CORNERS (r, v, h) {
        round_level(r, r->face[h >> 2].e[h & 3]);
        if (locked)
            round_level(r, r->face[h >> 2].e[CORNER_PREV(h & 3)]);
    }
}

KERN_HD void round_move(const struct rounds *r, const struct collapse *c)
{
    struct corner_vertex *to = &r->vertex[c->keep];
    float from_middle[3];

    for (int i = 0; i < 3; i++)
        from_middle[i] = c->moves ? c->at[i] - r->vertex[c->low].xyz[i] - c->h[i] : c->p[i];
    to->q = c->q;
    quadric_move(&to->q, from_middle);
    if (!c->moves)
        return;
    for (int i = 0; i < 3; i++)
        to->xyz[i] = c->at[i];
    r->state[c->keep] = VERTEX_MOVED;
    if (r->rgb)
        for (int i = 0; i < 3; i++) {
            uint8_t *x = &r->rgb[3 * (uint64_t)c->keep + (uint64_t)i], y = r->rgb[3 * (uint64_t)c->drop + (uint64_t)i];

            *x = (uint8_t)((*x + y + 1) / 2);
        }
}

/* An edge that goes: two faces and a vertex go with it. */
KERN_HD void round_collapse(const struct rounds *r, uint32_t e)
{
    struct collapse c;
    struct round_sides s;
    uint32_t is[2], *end;

    round_look(r, e, &c);
    round_sides(r, &c, &s);
    round_move(r, &c);
    r->level[e] = EDGE_NEVER;
    for (int k = 0; k < 2; k++)
        is[k] = round_merge(r, s.keep[k], s.drop[k]);
    round_take(r, c.drop, c.keep, c.keep, s.drop, is);
    end = round_take(r, c.keep, c.keep, c.drop, s.keep, is);
    *end = r->vertex[c.drop].head;
    r->vertex[c.drop].head = NO_CORNER;
    round_relevel(r, c.keep);
}

KERN_END
#endif
