/* data/extra.h - inside lib/data: what a mesh file says beyond places, corners and faces: which material and part a face is of,
 * materials, their pictures, further properties of a PLY. Readers fill a struct extra and pack it into struct recon_mesh's
 * `extra`, kernels carry that along, writers unpack it. Everything in a struct extra is its own. */
#ifndef DATA_EXTRA_H
#define DATA_EXTRA_H

#include "data/data_priv.h"

/* From face `face` on: a material by its number (or RECON_NONE), or words of the file (a number of names). In the order of faces. */
enum mark_kind { MARK_MATERIAL, MARK_OBJECT, MARK_GROUP, MARK_SMOOTH, MARK_KINDS };
struct mark {
    uint64_t face;
    uint32_t kind, value;
};

/* A picture: bytes that stood in the mesh's file, or a path of a file that was there when the mesh was read, or neither. */
struct image {
    char *name; /* as the mesh's file has it; "" is fine */
    char *path; /* NULL: bytes, or not there */
    void *bytes;
    uint64_t n;
};

/* A statement of a material. text: "Kd 1 0 0"; of a picture: all before its name, "map_Kd -s 2 2 1". */
struct statement {
    char *text;
    uint32_t image; /* number, or RECON_NONE */
};
struct material {
    char *name;
    bool known; /* false: named by faces, defined nowhere */
    struct {
        struct statement *v;
        size_t n, cap;
    } lines;
};

/* Properties of a PLY's vertices or faces that recon gives no meaning: one row each, the values in the order of names, packed,
 * little-endian, of their own types. */
struct columns {
    struct strv types, names; /* "float" "quality" */
    uint64_t row;             /* bytes */
    void *rows;
    uint64_t n;               /* bytes of rows in all */
};

/* Numbers by name, so that a file of a hundred thousand names takes no longer than its length. */
struct lookup {
    uint32_t *slot; /* number + 1, 0: free */
    size_t n, used;
};

struct extra {
    struct {
        struct mark *v;
        size_t n, cap;
    } marks;
    struct strv names;
    struct {
        struct material *v;
        size_t n, cap;
    } materials;
    struct {
        struct image *v;
        size_t n, cap;
    } images;
    char *gltf; /* members of a glTF's outermost object about materials and pictures, as they stood; NULL: from elsewhere */
    struct lookup by_material, by_image;
    struct columns vertex, face; /* face: one row a polygon, triangles that are joined */
};

void extra_free(struct extra *e); /* what it holds, not itself; {0} afterwards */
bool extra_empty(const struct extra *e);
uint32_t extra_name(struct extra *e, const char *name, size_t n);     /* its number, a new one unless it is the last */
uint32_t extra_material(struct extra *e, const char *name, size_t n); /* of that name, or a new one that is not known */
uint32_t extra_image(struct extra *e, const char *name, size_t n);    /* likewise */
void extra_mark(struct extra *e, uint64_t face, enum mark_kind kind, uint32_t value); /* over one of its kind at the same face */

#define EXTRA_MAGIC "reconX1" /* with its NUL, in front of what is packed */
/* Into m->extra, NULL when there is nothing. CODE_MEMORY. */
int extra_pack(const struct extra *e, const struct data_alloc *alloc, struct recon_mesh *m, struct fault *fault);
/* {0} when m has none; CODE_INTERNAL when it is none that extra_pack made. */
int extra_unpack(const struct recon_mesh *m, struct extra *ret, struct err *err);

#endif
