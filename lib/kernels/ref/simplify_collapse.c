/* One collapse, plain: what it costs, whether it may be, and the mesh afterwards. */
#include "config.h"
#include "kernels/ref/simplify_ref.h"

void plain_look(const struct plain *s, const struct edge *e, struct plain_collapse *r)
{
    for (int i = 0; i < 3; i++)
        r->h[i] = (s->at[e->b][i] - s->at[e->a][i]) * 0.5f;
    quadric_sum(&s->q[e->a], &s->q[e->b], r->h, &r->q);
    r->keep = s->locked[e->b] ? e->b : e->a;
    r->drop = s->locked[e->b] ? e->a : e->b;
    if (!s->locked[r->keep])
        quadric_least(&r->q, r->p);
    else
        for (int i = 0; i < 3; i++)
            r->p[i] = r->keep == e->b ? r->h[i] : -r->h[i];
    for (int i = 0; i < 3; i++)
        r->at[i] = s->locked[r->keep] ? s->at[r->keep][i] : s->at[e->a][i] + (r->h[i] + r->p[i]);
    r->error = quadric_at(&r->q, r->p);
    r->order = quadric_order(&r->q, r->h, r->error);
}

void plain_level(const struct plain *s, struct edge *e)
{
    struct plain_collapse c;

    plain_look(s, e, &c);
    e->level = quadric_level(c.order);
    e->state = s->locked[e->a] && s->locked[e->b] ? NEVER : 0;
}

/* the third vertices of the faces at the edge; false unless there are two, in two faces */
static bool thirds_of(const struct plain *s, uint32_t a, uint32_t b, uint32_t third[2])
{
    int n = 0;

    for (uint64_t f = 0; f < s->faces; f++)
        if (in_face(s, f, a) && in_face(s, f, b)) {
            const uint32_t *v = s->order.index + 3 * f;

            if (n < 2)
                third[n] = v[0] ^ v[1] ^ v[2] ^ a ^ b;
            n++;
        }
    return n == 2 && third[0] != third[1];
}

static bool link_holds(const struct plain *s, uint32_t a, uint32_t b, const uint32_t third[2])
{
    bool with_a = false, with_b = false;

    memset(s->near, 0, s->n);
    for (uint64_t f = 0; f < s->faces; f++)
        for (uint64_t i = 0; i < 3; i++)
            s->near[s->order.index[3 * f + i]] |= (uint8_t)(in_face(s, f, a) | in_face(s, f, b) << 1);
    for (uint32_t v = 0; v < s->n; v++)
        if (v != a && v != b && v != third[0] && v != third[1] && s->near[v] == 3)
            return false;
    for (uint64_t f = 0; f < s->faces; f++)
        if (in_face(s, f, third[0]) && in_face(s, f, third[1])) {
            with_a = with_a || in_face(s, f, a);
            with_b = with_b || in_face(s, f, b);
        }
    return !(with_a && with_b);
}

/* the faces of v without other, once it is at p */
static bool stand(const struct plain *s, uint32_t v, uint32_t other, const float p[3])
{
    for (uint64_t f = 0; f < s->faces; f++) {
        const uint32_t *i = s->order.index + 3 * f;
        int k = i[1] == v ? 1 : i[2] == v ? 2 : 0;

        if (in_face(s, f, v) && !in_face(s, f, other) && !face_stands(s->at[v], s->at[i[(k + 1) % 3]], s->at[i[(k + 2) % 3]], p))
            return false;
    }
    return true;
}

static struct edge *edge_between(const struct plain *s, uint32_t a, uint32_t b)
{
    for (uint64_t e = 0; e < s->edges; e++)
        if ((s->edge[e].a == a && s->edge[e].b == b) || (s->edge[e].a == b && s->edge[e].b == a))
            return &s->edge[e];
    return NULL;
}

/* of the edges of both ends to a third vertex the one of the higher level stays, then the first; it is keep's */
static void merge(struct edge *x, struct edge *y)
{
    struct edge *lower, *higher;

    if (y < x) {
        lower = x;
        x = y;
        y = lower;
    }
    higher = x->state == NEVER || (y->state != NEVER && x->level >= y->level) ? x : y;
    lower = higher == x ? y : x;
    *lower = (struct edge){ .a = UINT32_MAX, .b = UINT32_MAX, .state = NEVER };
}

static void join(struct plain *s, uint32_t keep, uint32_t drop, const uint32_t third[2])
{
    *edge_between(s, keep, drop) = (struct edge){ .a = UINT32_MAX, .b = UINT32_MAX, .state = NEVER };
    for (int k = 0; k < 2; k++)
        merge(edge_between(s, keep, third[k]), edge_between(s, drop, third[k]));
    for (uint64_t f = 0; f < s->faces; f++) {
        if (in_face(s, f, keep) && in_face(s, f, drop)) {
            s->gone[f] = 1;
            s->left--;
        }
        for (uint64_t i = 0; i < 3; i++)
            if (s->order.index[3 * f + i] == drop)
                s->order.index[3 * f + i] = keep;
    }
    for (struct edge *e = s->edge; e < s->edge + s->edges; e++) {
        uint32_t x = e->a == drop ? keep : e->a, y = e->b == drop ? keep : e->b;

        e->a = x < y ? x : y;
        e->b = x < y ? y : x;
        if ((x == keep || y == keep) && e->state == WAITS)
            e->state = 0;
    }
    s->used--;
}

bool plain_may(const struct plain *s, struct plain_collapse *c)
{
    return !(s->most > 0 && c->error > s->most * c->q.area) && thirds_of(s, c->keep, c->drop, c->third) &&
           link_holds(s, c->keep, c->drop, c->third) && stand(s, c->drop, c->keep, c->at) &&
           (s->locked[c->keep] || stand(s, c->keep, c->drop, c->at));
}

void plain_go(struct plain *s, const struct edge *e, const struct plain_collapse *c)
{
    float from_middle[3];

    for (int i = 0; i < 3; i++)
        from_middle[i] = s->locked[c->keep] ? c->p[i] : c->at[i] - s->at[e->a][i] - c->h[i];
    s->q[c->keep] = c->q;
    quadric_move(&s->q[c->keep], from_middle);
    memcpy(s->at[c->keep], c->at, sizeof(c->at));
    for (uint64_t i = 0; s->rgb && !s->locked[c->keep] && i < 3; i++)
        s->rgb[3 * (uint64_t)c->keep + i] = (uint8_t)((s->rgb[3 * (uint64_t)c->keep + i] + s->rgb[3 * (uint64_t)c->drop + i] + 1) / 2);
    s->moved[c->keep] = !s->locked[c->keep];
    join(s, c->keep, c->drop, c->third);
}
