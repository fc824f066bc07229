/* data/glb.h - inside lib/data: the parts of the reader and writer of glTF 2.0 in its binary form (Khronos, The glTF 2.0
 * Specification). */
#ifndef DATA_GLB_H
#define DATA_GLB_H

#include "data/extra.h"
#include "data/jsn.h"

enum { GLB_ROOT = 1 };
enum { GLB_BYTE = 5121, GLB_SHORT = 5123, GLB_INT = 5125, GLB_FLOAT = 5126 };

/* ---- reading ---- */

struct glb {
    const char *path;
    const struct load *load;
    const struct geom_options *options;
    const struct jsn *j;
    const char *bin;
    uint64_t bin_n;
    struct recon_mesh *m; /* NULL in the pass that counts */
    struct extra e;
    uint64_t vertices, faces;
    bool all_normals, any_normals, all_uvs, any_uvs, any_rgb;
    struct {
        struct glb_shared *v;
        size_t n, cap;
    } shared;
    struct strv lost; /* attributes and the like that are not kept, each once */
    struct fault *fault;
};

/* count vectors of n numbers, step bytes apart */
struct glb_view {
    const char *p;
    uint64_t count, step;
    int type, n;
    bool normalized;
};

int glb_bad(const struct glb *g, const char *fmt, ...) PRINTF(2, 3); /* -1 */
/* A whole number of the key, or def; false: there and none. */
bool glb_whole(const struct glb *g, jsn_at o, const char *key, uint64_t def, uint64_t *ret);
jsn_at glb_item(const struct glb *g, const char *list, uint64_t i);
/* Bytes of a buffer's view. */
int glb_bytes(const struct glb *g, uint64_t view, const char **ret, uint64_t *ret_n, uint64_t *ret_step);
int glb_accessor(const struct glb *g, uint64_t number, struct glb_view *ret);
double glb_component(const struct glb_view *v, uint64_t i, int k);
void glb_lose(struct glb *g, const char *what, size_t n);

/* Materials, textures and images of the file into g->e. glb_materials.c */
int glb_materials(struct glb *g);

/* ---- writing: glb.c has the geometry ---- */

/* What goes into the buffer behind the geometry. */
struct glb_image {
    const char *mime;
    struct str bytes;
};
struct glb_materials {
    struct str json; /* members with a comma before each: ,"materials":[...],"textures":[...] */
    struct {
        struct glb_image *v;
        size_t n, cap;
    } images; /* as bufferViews from first_view on, in this order */
};
const char *glb_mime(const void *bytes, uint64_t n); /* "image/png", "image/jpeg"; NULL: what else */
/* glb_json.c; what glTF has no place for goes to w->left_out. */
int glb_write_materials(const struct extra *e, int first_view, struct glb_materials *ret, struct mesh_written *w, struct err *err);
void glb_materials_release(struct glb_materials *m);

#endif
