/* kernels/cpu/simplify.h - what the parts of mesh.simplify share. */
#ifndef KERNELS_CPU_SIMPLIFY_H
#define KERNELS_CPU_SIMPLIFY_H

#include "kernels/cpu/mesh_cpu.h"
#include "kernels/cpu/quadric4.h"
#include "kernels/rounds.h"

struct simplify {
    struct recon_ctx *ctx;
    const struct recon_mesh *in;
    struct simplify_order order;
    float most; /* most: square of the greatest root mean square distance, scaled; 0: any */
    struct corner_face *face;
    struct corner_vertex *vertex;
    uint8_t *state, *rgb;             /* of a vertex; rgb: or NULL */
    uint32_t *corner;                 /* of an edge: a corner where it begins */
    uint8_t *level;                   /* of an edge */
    uint64_t faces, vertices, edges;  /* that are left; edges: at the beginning */
    uint64_t in_level[128];           /* edges that are not out */
    uint32_t marks;
};

/* An edge that becomes one vertex at p, about its middle; h: half of it, from the lower vertex. */
struct candidate {
    uint32_t low, high, keep, drop; /* vertices */
    struct quadric4 q;
    four h, p;
    float error, order;
    bool never; /* both ends are locked */
};
/* Whether it went. */
bool simplify_collapse(struct simplify *s, uint32_t edge, const struct candidate *c);
int simplify_rounds(struct simplify *s, const struct recon_value *params); /* all of it, by rounds */

/* round_due of eight edges' levels */
static inline uint64_t simplify_due(const uint8_t *of, uint8_t level)
{
    uint64_t x;

    memcpy(&x, of, 8);
    return round_due(x, level);
}

static inline void simplify_look(const struct simplify *s, uint32_t edge, struct candidate *ret)
{
    const struct corner_face *f = &s->face[s->corner[edge] >> 2];
    uint32_t i = s->corner[edge] & 3, a = f->v[i], b = f->v[CORNER_NEXT(i)], low = a < b ? a : b, high = a < b ? b : a;
    const struct corner_vertex *x = &s->vertex[low], *y = &s->vertex[high];
    bool to_low = s->state[low] == VERTEX_LOCKED, to_high = s->state[high] == VERTEX_LOCKED;

    ret->low = low;
    ret->high = high;
    ret->keep = to_high ? high : low;
    ret->drop = to_high ? low : high;
    ret->h = (three_at(y->xyz) - three_at(x->xyz)) * 0.5f;
    ret->q = quadric4_sum(&x->q, &y->q, ret->h);
    ret->p = to_high ? ret->h : to_low ? -ret->h : quadric4_least(&ret->q);
    ret->error = quadric4_at(&ret->q, ret->p);
    ret->order = quadric4_order(&ret->q, ret->h, ret->error);
    ret->never = to_high & to_low;
}

static inline void set_level(struct simplify *s, uint32_t edge, uint8_t level)
{
    s->in_level[s->level[edge] & 127] -= s->level[edge] < EDGE_OUT;
    s->in_level[level & 127] += level < EDGE_OUT;
    s->level[edge] = level;
}

#endif
