/* data/mtl.h - inside lib/data: Wavefront's material libraries (MTL format specification 4.2, 1995; with the PBR statements of
 * Exocortex, 2014) and the pictures that materials name. */
#ifndef DATA_MTL_H
#define DATA_MTL_H

#include "data/extra.h"

/* Where names in a file are looked for: below folder, and never outside root, whatever the name says. */
struct mtl_place {
    const char *root, *folder;
    void (*warn)(void *self, const char *rule, const char *object, const char *text); /* NULL: nobody listens */
    void *self;
};

enum { MTL_MAX = 64 << 20 };

/* The materials of a library's text into e; statements that are not known are kept as they stand. prefix: what leads from the
 * mesh's folder to the library's, "" or "mats/", put before names of pictures. path: for messages. A malformed statement ends
 * it (CODE_DATA, the line named). *ret_again: definitions of a name that has one already, which do not count. */
int mtl_parse(const char *path, const char *prefix, const char *text, size_t n, struct extra *e, uint64_t *ret_again, struct fault *fault);

/* What an OBJ's "mtllib" says: one name with blanks in it, or several. What is not there or outside root is warned of. */
int mtl_libraries(const struct mtl_place *at, const char *names, struct extra *e, struct fault *fault);

/* Paths for images that have neither path nor bytes; those missing or outside are warned of (texture-missing). */
void mtl_find_images(const struct mtl_place *at, struct extra *e);

/* ---- writing: mtl_out.c ---- */

/* NAME-textures beside the mesh file of that path, with a copy of each image that is there; ret_names: what a file beside the mesh
 * calls each, its old name where it was not copied. */
int mtl_write_images(const char *path, const struct extra *e, struct strv *ret_names, struct mesh_written *w, struct err *err);
/* The name of each material, made unique. */
void mtl_names(const struct extra *e, struct strv *ret);
/* NAME.mtl beside the mesh file, with the materials that are known. */
int mtl_write(const char *path, const struct extra *e, const struct strv *names, const struct strv *images, struct mesh_written *w, struct err *err);
/* dir/NAME of dir/NAME.obj. Owned by the caller. */
char *mtl_stem(const char *path);

/* ---- meanings ---- */

/* The values of a material's statement of that word ("Kd"), n numbers; false: none. For maps: the number of the image. */
bool mtl_values(const struct material *m, const char *word, double *v, int n);
uint32_t mtl_image(const struct material *m, const char *word);

#endif
