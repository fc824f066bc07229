/* data/ply.h - inside lib/data: the parts of the PLY reader: the header (ply_head.c) and what stands behind it (ply_read.c). */
#ifndef DATA_PLY_H
#define DATA_PLY_H

#include "data/extra.h"
#include "data/geom.h"

enum ply_type { INT8, UINT8, INT16, UINT16, INT32, UINT32, FLOAT32, FLOAT64, PLY_TYPES };
/* What recon gives a meaning to; all other numbers of vertices and faces are columns. */
enum ply_use { USE_NONE, USE_X, USE_Y, USE_Z, USE_NX, USE_NY, USE_NZ, USE_R, USE_G, USE_B, USE_S, USE_T, USE_INDICES, USE_TEXCOORD, PLY_USES };

enum { PLY_ELEMENTS_MAX = 64, PLY_PROPERTIES_MAX = 1024 };
enum ply_kind { KIND_OTHER, KIND_VERTEX, KIND_FACE, KIND_STRIP };

struct ply_property {
    enum ply_type type, count; /* count: of a list's length */
    bool list;
    enum ply_use use;
    char name[64];
};
struct ply_element {
    enum ply_kind kind;
    char name[64];
    uint64_t n, least; /* bytes one needs at least */
    int first, end;    /* properties */
};
struct ply {
    const char *path;
    const struct load *load;
    const struct geom_options *options;
    struct text t; /* ascii: line counts; binary: only p and end */
    bool ascii, swap;
    uint64_t vertices;
    bool seen[PLY_USES];
    struct ply_element element[PLY_ELEMENTS_MAX];
    struct ply_property property[PLY_PROPERTIES_MAX];
    int elements, properties;
    struct strv textures; /* of "comment TextureFile" */
    struct extra e;
    struct fault *fault;
    const char *where; /* element being read, for messages */
    uint64_t number;
};

extern const uint8_t ply_size[PLY_TYPES];          /* bytes */
extern const char *const ply_type_name[PLY_TYPES]; /* the plain one: "uchar" */

int ply_bad(const struct ply *r, const char *rule, const char *what); /* -1 */
/* All up to end_header; r->t then stands at the body, whose least size fits the file. Uses that lack a companion (nx without
 * ny, s without t) are none. */
int ply_header(struct ply *r);

/* ply_extra.c; all but the first do nothing in the plain way */
bool ply_has_faces(const struct ply *r);
int ply_vertex_arrays(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m);
/* Once faces are counted: of more than three corners, texture coordinates of corners, faces that have triangles. */
int ply_face_arrays(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m, uint64_t polygons, uint64_t uvs, uint64_t rows);
/* Once faces are read: textures by texnumber; all into m->extra. */
int ply_textures(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m);

#endif
