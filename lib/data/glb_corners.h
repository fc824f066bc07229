/* data/glb_corners.h - inside lib/data: corners as glTF wants them, where a vertex has one texture coordinate and one normal. */
#ifndef DATA_GLB_CORNERS_H
#define DATA_GLB_CORNERS_H

#include "data/data_priv.h"

/* Vertices of the mesh keep their numbers and have what their first corner has; further combinations stand behind. */
struct corners {
    uint64_t n;                     /* vertices in all */
    uint32_t *vertex, *uv, *normal; /* of each: where it comes from, RECON_NONE: none */
    uint32_t *index;                /* faces * 3; NULL: the mesh's own serves, and vertex, uv and normal, too, are NULL: all by number */
};
/* CODE_MEMORY, CODE_DATA (more than 2^32 - 2 of them). */
int corners_split(const struct recon_mesh *m, struct corners *ret, struct err *err);
void corners_release(struct corners *c);

#endif
