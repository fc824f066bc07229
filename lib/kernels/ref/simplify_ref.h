/* kernels/ref/simplify_ref.h - what the parts of mesh.simplify, plain, share. */
#ifndef KERNELS_REF_SIMPLIFY_REF_H
#define KERNELS_REF_SIMPLIFY_REF_H

#include "kernels/quadric.h"
#include "kernels/ref/mesh_ref.h"

enum { WAITS = 1, NEVER = 2 };

struct edge {
    uint32_t a, b; /* a < b */
    int level, state; /* state: WAITS until one of its ends changes; NEVER: between locked vertices, or gone */
};

struct plain {
    struct recon_ctx *ctx;
    struct simplify_order order;
    uint64_t n, faces, edges; /* n: vertices; faces, edges: at the beginning */
    float (*at)[3];
    struct quadric *q;
    uint8_t *locked, *moved, *near, *gone, *rgb; /* near: scratch; gone: of a face */
    struct edge *edge;
    uint64_t left, used; /* faces and vertices in them */
    float most;
};

struct plain_collapse {
    uint32_t keep, drop, third[2]; /* third: of the two faces at the edge, once it is known that it may go */
    struct quadric q;              /* about the middle */
    float h[3], p[3], at[3], error, order; /* p: about the middle; at: in the mesh */
};
static inline bool in_face(const struct plain *s, uint64_t f, uint32_t v)
{
    const uint32_t *i = s->order.index + 3 * f;

    return !s->gone[f] && (i[0] == v || i[1] == v || i[2] == v);
}
void plain_look(const struct plain *s, const struct edge *e, struct plain_collapse *ret);
/* Finds the level of an edge; it waits no more. */
void plain_level(const struct plain *s, struct edge *e);
bool plain_may(const struct plain *s, struct plain_collapse *c);
void plain_go(struct plain *s, const struct edge *e, const struct plain_collapse *c);
/* Until nothing more may go or enough went. 0, or -1 after fail(). */
int plain_rounds(struct plain *s, const struct recon_value *params);

#endif
