/* data/polygon.h - inside lib/data: faces as the polygons that a file had, for writers. */
#ifndef DATA_POLYGON_H
#define DATA_POLYGON_H

#include "data/data_priv.h"

struct polygon {
    uint64_t *corner; /* 3 * face + k: where to look in index, uv_index, normal_index */
    size_t n, cap;
    uint64_t faces; /* triangles in it */
};
/* The polygon that begins with face f, before face end: a fan that ran either way, or the triangle alone where it is none. */
void polygon_at(const struct recon_mesh *m, uint64_t f, uint64_t end, struct polygon *p);
void polygon_release(struct polygon *p);

/* What a corner has of texture coordinates and normals: a number from 0, RECON_NONE for none. */
static inline uint32_t corner_uv(const struct recon_mesh *m, uint64_t corner)
{
    return !m->uv ? RECON_NONE : m->uv_index ? m->uv_index[corner] : m->index[corner];
}
/* v of texture coordinate k, running down or up. */
static inline float uv_v(const struct recon_mesh *m, uint64_t k, uint32_t down)
{
    return m->uv_down == down ? m->uv[2 * k + 1] : (float)(1 - (double)m->uv[2 * k + 1]);
}
static inline uint32_t corner_normal(const struct recon_mesh *m, uint64_t corner)
{
    return m->corner_normal ? m->normal_index[corner] : m->normals ? m->index[corner] : RECON_NONE;
}

#endif
