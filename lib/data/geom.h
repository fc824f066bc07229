/* data/geom.h - inside lib/data: text of numbers, buffers and cursors of the mesh and point readers. */
#ifndef DATA_GEOM_H
#define DATA_GEOM_H

#include "data/data_priv.h"

/* A whole file in memory of the caller's allocator, with a NUL after it, and what is taken off its coordinates. */
struct load {
    char *s;
    uint64_t n;
    double offset[3];
};
/* A coordinate as it is kept: in double until the offset is off. */
static inline float place(const struct load *t, int axis, double v)
{
    return (float)(v - t->offset[axis]);
}
int load_file(const char *path, const struct data_alloc *alloc, struct load *ret, struct fault *fault);

/* One number at *p, not beyond end; *p moves behind it. Decimal with or without an exponent, correctly rounded; "nan" and
 * "inf" in any case and sign give NaN. false: no number stands there. */
bool number_read(const char **p, const char *end, double *ret);
/* The same for a whole number that fits 64 bits. */
bool integer_read(const char **p, const char *end, int64_t *ret);

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static inline const char *skip_blank(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* A cursor over text by lines. */
struct text {
    const char *p, *end;
    uint64_t line; /* of p, from 1 */
};
/* Past blanks, line ends and comments from '#'; false at the end. */
bool text_next(struct text *t);
bool text_number(struct text *t, double *ret);     /* the next number on any line */
const char *text_line_end(const struct text *t);   /* the '\n' or end */

/* Arrays of a mesh in the allocator; rgb and normals on wish. CODE_MEMORY. Released on failure. */
int mesh_arrays(struct recon_mesh *m, uint64_t vertices, bool normals, bool rgb, const struct data_alloc *alloc, struct fault *fault);
void *mesh_array(const struct data_alloc *alloc, uint64_t n, uint64_t size); /* n of so many bytes, below 64; NULL: no memory */
int mesh_indices(struct recon_mesh *m, uint64_t faces, const struct data_alloc *alloc, struct fault *fault);
void mesh_drop(struct recon_mesh *m, const struct data_alloc *alloc);

/* One reader a format: obj.c, off.c, ply_read.c; text holds the whole file, but for an OBJ, which is read piece by piece. A mesh
 * without faces is fine here. */
int obj_parse(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret, struct mesh_notes *notes,
              struct fault *fault);
struct obj_quick; /* obj.h: how usual lines are read */
int obj_parse_by(const struct obj_quick *quick, const char *path, const struct geom_options *o, const struct data_alloc *alloc,
                 struct recon_mesh *ret, struct mesh_notes *notes, struct fault *fault);
int off_parse(const char *path, const struct load *text, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault);
int ply_parse(const char *path, const struct load *text, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault);
/* xyz.c, pcd.c: faces stay 0. */
int xyz_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret, struct fault *fault);
int pcd_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret, struct fault *fault);

/* glb_read.c */
int glb_parse(const char *path, const struct load *text, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct fault *fault);

/* obj_out.c, glb.c; ply.c has ply_write. */
int obj_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err);
int glb_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err);

#endif
