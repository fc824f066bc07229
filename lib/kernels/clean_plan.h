/* kernels/clean_plan.h - what the forms of mesh.clean share. C and C++. */
#ifndef KERNELS_CLEAN_PLAN_H
#define KERNELS_CLEAN_PLAN_H

#include <string.h>
#include "kernels/mesh_plan.h"

KERN_BEGIN

struct clean_counts {
    uint64_t merged, degenerate, repeated, non_manifold, split, turned, small, unused;
};
/* What was done to a mesh of so many faces, as a note; refuses that none is left. */
int clean_told(struct recon_ctx *ctx, uint64_t faces, uint64_t left, const struct clean_counts *n);

/* Of a place, for tables: equal for places that are equal. */
KERN_HD uint32_t clean_hash(const float *p)
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

KERN_HD bool clean_same_place(const float *p, const float *q)
{
    return p[0] == q[0] && p[1] == q[1] && p[2] == q[2];
}

/* Grows with a face's area; 0 where it has none, -1 where it is no number, so that of faces at one edge these go first. */
KERN_HD double clean_size(const struct recon_mesh *m, uint64_t f)
{
    double n[3], size;

    face_cross(m, f, n);
    size = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    return size >= 0 ? size : -1;
}

KERN_HD bool clean_degenerate(const struct recon_mesh *m, uint64_t f)
{
    double n[3];

    if (face_degenerate(m->index + 3 * f))
        return true;
    face_cross(m, f, n);
    return n[0] == 0 && n[1] == 0 && n[2] == 0;
}

/* What a face adds to six times the volume. */
KERN_HD double clean_volume(const struct recon_mesh *m, uint64_t f)
{
    const float *a = m->xyz + 3 * (uint64_t)m->index[3 * f];
    double x[3];

    face_cross(m, f, x);
    return (double)a[0] * x[0] + (double)a[1] * x[1] + (double)a[2] * x[2];
}

/* A face at an edge of more than two. */
struct clean_sized {
    double size;
    uint32_t face, edge;
};
/* Of an edge's n faces, in ascending order, those that are gone are left out; of the others the least, then of lowest number, go
 * until two are left. Gives how many went: they are the first of s. */
uint32_t clean_thin(struct clean_sized *s, uint32_t n, uint8_t *gone);

/* The part of face seed, joined by edges of two faces: turned as seed, then outward if it is closed. turn: 0 of faces not seen,
 * then 2, or 3 where the face is to be turned. stack: a number a face. */
void clean_orient_part(const struct recon_mesh *m, const struct topo *t, uint32_t seed, uint8_t *turn, uint32_t *stack);

/* Refuses more copies of vertices than 32-bit numbers hold; fans: of vertices that have several. */
int clean_copies_fit(struct recon_ctx *ctx, uint64_t vertices, uint64_t fans);

/* Self-test: an octahedron with a wing at one edge, a repeated and a degenerate face, turned inward: all is mended. */
int golden_clean(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

KERN_END
#endif
