/* One collapse: whether it may be, and the mesh afterwards. Corners of faces that went are taken out of a vertex's chain when it is
 * walked next. */
#include "config.h"
#include "kernels/cpu/simplify.h"

/* The two faces at the edge: their third vertices, and their edges there with the vertex that stays and with the other. */
struct sides {
    uint32_t n, third[2], keep[2], drop[2];
};

static void side_of(const struct corner_face *f, uint32_t i, uint32_t keep, struct sides *r)
{
    uint32_t j = CORNER_NEXT(i), k = CORNER_PREV(i);
    bool ahead = f->v[j] == keep;

    r->third[r->n] = f->v[ahead ? k : j];
    r->keep[r->n] = f->e[j];
    r->drop[r->n++] = f->e[ahead ? k : i];
}

static inline uint32_t live(const struct simplify *s, uint32_t *at)
{
    while (*at != NO_CORNER && s->face[*at >> 2].v[0] == NO_CORNER)
        *at = s->face[*at >> 2].next[*at & 3];
    return *at;
}

/* corners of v: those of faces that went are taken out on the way; then again without a look */
#define EACH_LIVE(s, v, h) \
    (uint32_t h = live(s, &(s)->vertex[v].head); h != NO_CORNER; h = live(s, &(s)->face[h >> 2].next[h & 3]))
#define EACH_CORNER(s, v, h) (uint32_t h = (s)->vertex[v].head; h != NO_CORNER; h = (s)->face[h >> 2].next[h & 3])

/* Faces at one vertex, of which their other two, x and y; lanes from n on hold numbers, too. */
enum { RING = 8 };
typedef float lanes __attribute__((vector_size(4 * RING), may_alias));
typedef int32_t lanes_i __attribute__((vector_size(4 * RING), may_alias));
struct ring {
    float x[3][RING], y[3][RING];
    uint32_t n;
} __attribute__((aligned(4 * RING)));

/* whether they stand when v goes to p: face_stands for all lanes */
KERN_CLONES static bool ring_stands(const struct ring *r, const float *v, const float *p)
{
    lanes d[3], u[3], w[3], was[3], is[3], dd, uu, ww, dot, a, b;
    lanes_i turned;
    uint64_t any[RING / 2];

    for (int i = 0; i < 3; i++) {
        lanes x = *(const lanes *)r->x[i], y = *(const lanes *)r->y[i];

        d[i] = y - x;
        u[i] = v[i] - x;
        w[i] = p[i] - x;
    }
    was[0] = d[1] * u[2] - d[2] * u[1];
    was[1] = d[2] * u[0] - d[0] * u[2];
    was[2] = d[0] * u[1] - d[1] * u[0];
    is[0] = d[1] * w[2] - d[2] * w[1];
    is[1] = d[2] * w[0] - d[0] * w[2];
    is[2] = d[0] * w[1] - d[1] * w[0];
    dd = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    uu = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    ww = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
    dot = was[0] * is[0] + was[1] * is[1] + was[2] * is[2];
    a = was[0] * was[0] + was[1] * was[1] + was[2] * was[2];
    b = is[0] * is[0] + is[1] * is[1] + is[2] * is[2];
    turned = (a > 1e-12f * dd * uu) & ~((dot > 0) & (dot / a * dot >= 0.03f * b) & (b > 1e-12f * dd * ww)) &
             ((lanes_i){ 0, 1, 2, 3, 4, 5, 6, 7 } < (int32_t)r->n);
    memcpy(any, &turned, sizeof(any));
    return !(any[0] | any[1] | any[2] | any[3]);
}

static inline void into_ring(const struct simplify *s, struct ring *r, uint32_t a, uint32_t b)
{
    for (int i = 0; i < 3; i++) {
        r->x[i][r->n] = s->vertex[a].xyz[i];
        r->y[i][r->n] = s->vertex[b].xyz[i];
    }
    r->n++;
}

static bool face_of(const struct simplify *s, uint32_t v, uint32_t x, uint32_t y)
{
    for EACH_CORNER (s, v, h) {
        const struct corner_face *f = &s->face[h >> 2];
        uint32_t a = f->v[CORNER_NEXT(h & 3)], b = f->v[CORNER_PREV(h & 3)];

        if ((a == x && b == y) || (a == y && b == x))
            return true;
    }
    return false;
}

static uint32_t next_mark(struct simplify *s)
{
    if (s->marks == UINT32_MAX)
        for (uint64_t v = s->marks = 0; v < s->in->vertices; v++)
            s->vertex[v].mark = 0;
    return ++s->marks;
}

/* A collapse to p may be: exactly two faces at the edge, whose third vertices are all that its ends have in common, and not both
 * ends in a face with these two: the link of the edge is what the links of its ends share. The other faces stand. */
static bool may_collapse(struct simplify *s, uint32_t keep, uint32_t drop, bool moves, const float p[3], struct sides *r)
{
    uint32_t near = next_mark(s), common = 0, faces = 0;
    struct ring ring = { .n = 0 };

    r->n = 0;
    for EACH_LIVE (s, drop, h) {
        const struct corner_face *f = &s->face[h >> 2];
        uint32_t a = f->v[CORNER_NEXT(h & 3)], b = f->v[CORNER_PREV(h & 3)];

        s->vertex[a].mark = s->vertex[b].mark = near;
        faces++;
        if ((a == keep) | (b == keep)) {
            if (r->n == 2)
                return false;
            side_of(f, h & 3, keep, r);
            continue;
        }
        into_ring(s, &ring, a, b);
        if (ring.n == RING && !ring_stands(&ring, s->vertex[drop].xyz, p))
            return false;
        ring.n %= RING;
    }
    if (r->n != 2 || r->third[0] == r->third[1] || !ring_stands(&ring, s->vertex[drop].xyz, p))
        return false;
    ring.n = 0;
    s->vertex[keep].mark = s->vertex[drop].mark = 0;
    for EACH_LIVE (s, keep, h) {
        const struct corner_face *f = &s->face[h >> 2];
        uint32_t a = f->v[CORNER_NEXT(h & 3)], b = f->v[CORNER_PREV(h & 3)];

        common += (s->vertex[a].mark == near) + (s->vertex[b].mark == near);
        s->vertex[a].mark = s->vertex[b].mark = 0;
        if (!moves | (a == drop) | (b == drop))
            continue;
        into_ring(s, &ring, a, b);
        if (ring.n == RING && !ring_stands(&ring, s->vertex[keep].xyz, p))
            return false;
        ring.n %= RING;
    }
    return common == 2 && !(faces == 3 && face_of(s, keep, r->third[0], r->third[1])) && ring_stands(&ring, s->vertex[keep].xyz, p);
}

static inline void touch(struct simplify *s, uint32_t edge)
{
    if (s->level[edge] >= EDGE_OUT && s->level[edge] != EDGE_NEVER)
        set_level(s, edge, s->level[edge] & 127);
}

/* an edge with each end and a third vertex become one: that of the higher level, which is nearer to what it costs now */
static uint32_t merge(struct simplify *s, uint32_t x, uint32_t y)
{
    uint32_t of_x = s->level[x], of_y = s->level[y];
    bool first;

    of_x = of_x == EDGE_NEVER ? of_x : of_x & 127;
    of_y = of_y == EDGE_NEVER ? of_y : of_y & 127;
    first = of_x != of_y ? of_x > of_y : x < y;
    set_level(s, first ? y : x, EDGE_NEVER);
    return first ? x : y;
}

/* the edge of corner i of a face that was one of these becomes the one that they are now */
static inline void rename_edge(struct simplify *s, uint32_t h, uint32_t i, const uint32_t was[2], const uint32_t is[2])
{
    struct corner_face *f = &s->face[h >> 2];

    for (int k = 0; k < 2; k++)
        if (f->e[i] == was[k]) {
            f->e[i] = is[k];
            s->corner[is[k]] = (h & ~3u) | i;
        }
}

/* drop's faces become keep's, those with both go */
static void join(struct simplify *s, uint32_t keep, uint32_t drop, const struct sides *r)
{
    bool locked = s->state[keep] == VERTEX_LOCKED;
    uint32_t edge[2], *end = &s->vertex[keep].head;

    for (int k = 0; k < 2; k++)
        edge[k] = merge(s, r->keep[k], r->drop[k]);
    for EACH_CORNER (s, drop, h) {
        struct corner_face *f = &s->face[h >> 2];
        uint32_t i = h & 3, j = CORNER_NEXT(i), k = CORNER_PREV(i);

        if (f->v[j] == keep || f->v[k] == keep) {
            f->v[0] = NO_CORNER;
            s->faces--;
            continue;
        }
        f->v[i] = keep;
        rename_edge(s, h, i, r->drop, edge);
        rename_edge(s, h, k, r->drop, edge);
        touch(s, f->e[i]); /* its fan is closed: each edge begins once */
    }
    for EACH_LIVE (s, keep, h) {
        struct corner_face *f = &s->face[h >> 2];
        uint32_t i = h & 3, k = CORNER_PREV(i);

        rename_edge(s, h, i, r->keep, edge);
        rename_edge(s, h, k, r->keep, edge);
        touch(s, f->e[i]);
        if (locked)
            touch(s, f->e[k]);
        end = &f->next[i];
    }
    touch(s, edge[0]);
    touch(s, edge[1]);
    *end = s->vertex[drop].head;
    s->vertex[drop].head = NO_CORNER;
    s->vertices--;
}

bool simplify_collapse(struct simplify *s, uint32_t edge, const struct candidate *c)
{
    struct corner_vertex *to = &s->vertex[c->keep];
    const float *low = s->vertex[c->low].xyz;
    bool moves = s->state[c->keep] != VERTEX_LOCKED;
    float p[3], from_middle[3];
    struct sides r;

    for (int i = 0; i < 3; i++) {
        p[i] = moves ? low[i] + (c->h[i] + c->p[i]) : to->xyz[i];
        from_middle[i] = moves ? p[i] - low[i] - c->h[i] : c->p[i];
    }
    if ((s->most > 0 && c->error > s->most * c->q.o[3]) || !may_collapse(s, c->keep, c->drop, moves, p, &r))
        return false;
    for (int i = 0; i < 3; i++) {
        to->q.d[i] = c->q.d[i];
        to->q.o[i] = c->q.o[i];
        to->q.b[i] = c->q.b[i];
    }
    to->q.c = c->q.d[3];
    to->q.area = c->q.o[3];
    quadric_move(&to->q, from_middle);
    memcpy(to->xyz, p, sizeof(p));
    for (uint64_t i = 0; s->rgb && moves && i < 3; i++)
        s->rgb[3 * (uint64_t)c->keep + i] = (uint8_t)((s->rgb[3 * (uint64_t)c->keep + i] + s->rgb[3 * (uint64_t)c->drop + i] + 1) / 2);
    if (moves)
        s->state[c->keep] = VERTEX_MOVED;
    set_level(s, edge, EDGE_NEVER);
    join(s, c->keep, c->drop, &r);
    return true;
}
