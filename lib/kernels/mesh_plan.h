/* kernels/mesh_plan.h - what the kernels of meshes share: edges of a mesh, its census, sets that join. Host memory, taken
 * through ctx->host; every function gives 0, or -1 after fail(). C and C++. */
#ifndef KERNELS_MESH_PLAN_H
#define KERNELS_MESH_PLAN_H

#include <math.h>
#include <stdbool.h>
#include "kernels/mesh_rows.h"

KERN_BEGIN

/* ---- sets that join: parent[i] == i is a root; the lowest number is the root ---- */

static inline uint32_t set_root(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static inline void set_join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = set_root(parent, a);
    b = set_root(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* ---- edges ---- */

#define TOPO_NONE UINT32_MAX
/* Half-edge h = 3 * face + i goes from index[h] to index[topo_next(h)]. Faces that name a vertex twice have no edges. */
struct topo {
    const uint32_t *index;
    uint64_t vertices, faces, edges, halves;
    uint32_t *half;    /* half-edges by edge; an edge's in ascending order; edges by (lower vertex, higher vertex) */
    uint32_t *first;   /* in half's memory; edges + 1: of edge e they are half[first[e]] .. half[first[e + 1] - 1] */
    uint32_t *edge_of; /* 3 * faces: edge of a half-edge, or TOPO_NONE */
};
int topo_fits(struct recon_ctx *ctx, const struct recon_mesh *m); /* refuses more than 1431655764 faces */
/* Refuses that and indices out of range (a defect of the step before). */
int topo_build(struct recon_ctx *ctx, const struct recon_mesh *m, struct topo *ret);
void topo_release(struct recon_ctx *ctx, struct topo *t);
uint64_t topo_bytes(uint64_t vertices, uint64_t faces); /* at most, while it is built */

/* fans[v]: of how many fans of faces joined by edges a vertex is, 2 for more. corner: 3 * faces numbers of scratch. */
void topo_fans(const struct topo *t, uint32_t *corner, uint8_t *fans);
/* repeated[f] becomes 1 where an earlier face has the same three vertices, else 0. */
int topo_repeated(struct recon_ctx *ctx, const struct topo *t, uint8_t *repeated);

KERN_HD uint32_t topo_next(uint32_t h)
{
    return h % 3 == 2 ? h - 2 : h + 1;
}

KERN_HD uint32_t topo_prev(uint32_t h)
{
    return h % 3 == 0 ? h + 2 : h - 1;
}

static inline uint32_t topo_count(const struct topo *t, uint32_t edge)
{
    return t->first[edge + 1] - t->first[edge];
}

/* The half-edge on the other side: TOPO_NONE on a border, where more than two meet, or where both go the same way. */
static inline uint32_t topo_twin(const struct topo *t, uint32_t h)
{
    uint32_t e = t->edge_of[h], k;

    if (e == TOPO_NONE || topo_count(t, e) != 2)
        return TOPO_NONE;
    k = t->half[t->first[e]] == h ? t->half[t->first[e] + 1] : t->half[t->first[e]];
    return t->index[k] == t->index[h] ? TOPO_NONE : k;
}

/* ---- faces ---- */

/* Twice the area's vector, in double from floats. */
KERN_HD void cross_of(const float *a, const float *b, const float *c, double n[3])
{
    double u[3], v[3];

    for (int i = 0; i < 3; i++) {
        u[i] = (double)b[i] - (double)a[i];
        v[i] = (double)c[i] - (double)a[i];
    }
    n[0] = u[1] * v[2] - u[2] * v[1];
    n[1] = u[2] * v[0] - u[0] * v[2];
    n[2] = u[0] * v[1] - u[1] * v[0];
}

KERN_HD void face_cross(const struct recon_mesh *m, uint64_t f, double n[3])
{
    const uint32_t *v = m->index + 3 * f;

    cross_of(m->xyz + 3 * (uint64_t)v[0], m->xyz + 3 * (uint64_t)v[1], m->xyz + 3 * (uint64_t)v[2], n);
}

KERN_HD bool face_degenerate(const uint32_t *v)
{
    return v[0] == v[1] || v[1] == v[2] || v[2] == v[0];
}

/* ---- census ---- */

struct census {
    uint64_t vertices, faces;
    uint64_t used;            /* vertices in faces; faces that name a vertex twice count for nothing below */
    uint64_t degenerate;      /* faces that name a vertex twice */
    uint64_t zero_area;       /* others of no area */
    uint64_t repeated;        /* faces with the vertices of an earlier one */
    uint64_t edges, border;   /* border: of one face */
    uint64_t non_manifold;    /* edges of more than two faces */
    uint64_t turned;          /* edges whose two faces go the same way along them */
    uint64_t split;           /* vertices whose faces are more than one fan */
    uint64_t components;      /* joined by vertices */
    uint64_t borders;         /* joined parts of the border */
    int64_t euler;            /* used - edges + (faces - degenerate) */
    double area, volume;      /* volume: signed, of what is closed; both summed as tree_sum.h says */
};
/* A face's share; nothing of one that names a vertex twice. */
struct face_size {
    double area, volume;
    bool degenerate, none; /* none: of no area */
};
KERN_HD struct face_size face_size(const struct recon_mesh *m, uint64_t f)
{
    const float *a = m->xyz + 3 * (uint64_t)m->index[3 * f];
    struct face_size z = { 0, 0, face_degenerate(m->index + 3 * f), false };
    double n[3], twice;

    if (z.degenerate)
        return z;
    face_cross(m, f, n);
    twice = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    z.none = !(twice > 0);
    z.area = twice / 2;
    z.volume = ((double)a[0] * n[0] + (double)a[1] * n[1] + (double)a[2] * n[2]) / 6;
    return z;
}
int mesh_census(struct recon_ctx *ctx, const struct recon_mesh *m, struct census *ret);
/* Tells it: JSON file, notes and warnings; refuses what params require. */
int census_report(struct recon_ctx *ctx, const struct recon_value *params, const struct census *c);
int census_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int census_selftest(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

int indices_fit(struct recon_ctx *ctx, const struct recon_mesh *m); /* refuses one out of range */
/* A copy of a mesh: arrays as they are, normals and colours only when asked. */
int mesh_copy(struct recon_ctx *ctx, const struct recon_mesh *m, bool normals, bool rgb, struct recon_mesh *ret);
/* Into a copy with the same faces: what m has from uvs on, normals of corners when asked. On failure ret holds a part. */
int mesh_keep(struct recon_ctx *ctx, const struct recon_mesh *m, bool corner_normals, struct recon_mesh *ret);
/* Faces to come behind a mesh's own: corner i of them is at the vertex of the mesh's corner[i] and has its texture coordinate and normal.
 * Those of a run are of the material and part that one face of the mesh is of (mesh_extra_grow of data.h). */
struct mesh_more {
    uint64_t faces, runs;
    uint32_t *corner;     /* faces * 3 */
    struct mesh_run *run; /* runs: how many faces, like which */
};
/* All of m and those. */
int mesh_grow(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *ret);
/* ret->extra alone, of the host's memory; m->extra and m->joined are on the host. */
int mesh_grow_extra(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *ret);
/* At most, by the two numbers: of ret->extra, of memory besides; of the whole. */
uint64_t mesh_grow_extra_bytes(const struct recon_mesh *m, uint64_t runs, uint64_t *ret_meanwhile);
uint64_t mesh_grow_bytes(const struct recon_mesh *m, uint64_t faces, uint64_t runs, uint64_t *ret_meanwhile);
/* Turns each face: its second and third corner change places with all that they have. */
void mesh_flip(struct recon_mesh *m);
uint64_t mesh_beyond(const struct recon_mesh *m); /* bytes of that */
void mesh_free(struct recon_ctx *ctx, struct recon_mesh *m);

/* ---- rows of numbers ---- */

/* Row i is item[first[i]] .. item[first[i + 1] - 1]. */
struct rows {
    uint64_t n;
    uint64_t *first;
    uint32_t *item;
};
int rows_neighbours(struct recon_ctx *ctx, const struct topo *t, struct rows *ret);          /* of a vertex, ascending */
int rows_corners(struct recon_ctx *ctx, const struct recon_mesh *m, struct rows *ret);       /* corners of a vertex, ascending */
void rows_release(struct recon_ctx *ctx, struct rows *r);

/* cos(2 pi / n), n > 0, by operations that round alike everywhere; the cosines of libraries and devices differ in their last bit. */
KERN_HD double cos_of_turn(uint64_t n)
{
    const double few[8] = { 1, 1, -1, -0.5, 0, 0.30901699437494742, 0.5, 0.62348980185873353 };
    double x = 2 * 3.14159265358979323846 / (double)n, y = x * x; /* up to pi / 4: what is left out is below 3e-18 */

    if (n < 8)
        return few[n];
    return 1 - y * (1 / 2.0 - y * (1 / 24.0 - y * (1 / 720.0 - y * (1 / 40320.0 - y * (1 / 3628800.0 -
               y * (1 / 479001600.0 - y * (1 / 87178291200.0 - y / 20922789888000.0)))))));
}

/* Loop's weight of each of n neighbours (C. Loop, 1987). */
KERN_HD double loop_beta(uint64_t n)
{
    double c = 0.375 + 0.25 * cos_of_turn(n);

    return (0.625 - c * c) / (double)n;
}

/* recon_kernel.bound and .shape; a level more than 32-bit numbers hold is refused; self-tests on the octahedron. */
int smooth_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int normals_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
/* A level: vertices, faces and edges before it; first: its input is the caller's. host_bytes grows to it where it is less. */
void subdivide_cost(uint64_t vertices, uint64_t faces, uint64_t edges, bool first, struct recon_cost *cost);
/* Vertices, faces and edges, at most, before the last level. */
void subdivide_last(const struct recon_mesh *m, int64_t levels, uint64_t *vertices, uint64_t *faces, uint64_t *edges);
int subdivide_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int subdivide_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out);
int same_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out);
int subdivide_stopped(struct recon_ctx *ctx, int64_t left); /* the deadline, levels to go; -1 */
int subdivide_fits(struct recon_ctx *ctx, uint64_t vertices, uint64_t faces);
int golden_smooth(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);
int golden_normals(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);
int golden_subdivide(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

/* ---- transforms ---- */

struct transform {
    double t[12]; /* 3 x 4 by rows */
    double n[9];  /* of normals, up to their length: the inverse transpose */
    bool flip;    /* a reflection: faces are turned */
};
/* CODE_USAGE: a matrix of another length, a last row that is not 0 0 0 1, no inverse. */
int transform_plan(struct recon_ctx *ctx, const struct recon_value *params, struct transform *ret);
int golden_transform(struct recon_ctx *ctx, const struct recon_kernel *kernel); /* of a mesh */
int transform_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
int points_transform_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);

/* ---- tiny closed inputs for self-tests ---- */

/* The octahedron of radius 1, outward: 6 vertices, 8 faces; arrays of the caller. */
#define OCTA_V 6
#define OCTA_F 8
void golden_octahedron(float xyz[3 * OCTA_V], uint32_t index[3 * OCTA_F]);

KERN_END
#endif
