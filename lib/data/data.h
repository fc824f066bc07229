/* data/data.h - readers and writers of what reconstruction takes and gives. The structs are recon/data.h's.
 *
 * Everything here works on host memory. Readers trust nothing: a file that is absent, no regular file,
 * truncated, garbage or larger in words than in bytes gives one line that names it and CODE_DATA; nothing
 * blocks on a FIFO. Writers write whole or not at all (CODE_CREATE, CODE_IO). Arrays whose size comes from
 * input are taken with the caller's allocator. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"
#include "recon/data.h"

/* Why a reader refused: the error, and the name of the catalogue's rule (doc/checks) that it broke, or NULL.
 */
struct fault {
    struct err err;
    const char *rule; /* "file-truncated", "depth-8bit", "pose-invalid", ... static text */
};

/* Memory that grows with the input. alloc gives NULL when there is none (and may have told why elsewhere). */
struct data_alloc {
    void *(*alloc)(void *self, uint64_t bytes);
    void (*free)(void *self, void *p);
    void *self;
};
extern const struct data_alloc data_malloc; /* malloc and free */

/* ---- pictures -------------------------------------------------------------------------------------- */

struct picture {
    uint32_t width, height, channels, bits; /* 1, 3 or 4 channels of 8 or 16 bits (16: host byte order) */
    void *pixels;                           /* rows from the top; free with picture_release */
};
void picture_release(struct picture *p);

#define PICTURE_SIDE_MAX 32768u
/* Any PNG: palettes, 1, 2, 4 bits and grey with alpha become RGB(A) or grey of 8 bits; 16-bit grey stays. */
int png_read(const char *path, struct picture *ret, struct fault *fault);
int png_read_bytes(const void *data, size_t n, const char *name, struct picture *ret, struct fault *fault);
/* Width, height, channels and bits as the file says them, from its first bytes; pixels NULL. */
int png_probe(const char *path, struct picture *ret, struct fault *fault);
/* level: 0 (stored) to 9. 1, 3 or 4 channels of 8 bits, or 1 of 16. */
int png_write(const char *path, const struct picture *p, int level, struct err *err);
/* Always 3 channels of 8 bits. */
int jpeg_read(const char *path, struct picture *ret, struct fault *fault);
int jpeg_read_bytes(const void *data, size_t n, const char *name, struct picture *ret, struct fault *fault);
int jpeg_write(const char *path, const struct picture *p, int quality, struct err *err);

/* ---- poses and cameras ----------------------------------------------------------------------------- */

/* Sixteen numbers in text, row by row; "nan", "inf" are read (and then not rigid). */
int pose_parse(const char *text, size_t n, const char *name, double ret[16], struct fault *fault);
/* 0, or -1 with why: not finite, not a rotation within 1e-2, a reflection, last row not 0 0 0 1. Rule
 * pose-invalid. */
int pose_check(const double pose[16], const char *name, struct fault *fault);
/* Nine numbers, row by row, as camera-intrinsics.txt: fx 0 cx, 0 fy cy, 0 0 1. */
int camera_parse(const char *text, size_t n, const char *name, struct recon_camera *ret, struct fault *fault);

/* ---- folders of frames (doc/format-frames.md) --------------------------------------------------------- */

enum frames_layout { FRAMES_AUTO, FRAMES_7SCENES, FRAMES_TUM, FRAMES_COLMAP };
/* Axes in which poses are given: recon's own (x right, y down, z forward); OpenGL's cameras (x right, y up, z backward) in an
 * unchanged world; OpenNI's real world, left-handed, for camera and world (x right, y up, z forward). */
enum frames_axes { FRAMES_OPENCV, FRAMES_OPENGL, FRAMES_OPENNI };

struct frames_options {
    double depth_scale;   /* metres of one unit; 0: the layout's, 0.001 or TUM's 0.0002 */
    enum frames_layout layout;
    enum frames_axes axes;
    double pose_scale;    /* metres of one unit of the poses' translations; 0: 1 */
    double association;   /* TUM: seconds between what belongs together, at most; 0: 0.02 */
    const double *transform;  /* 4x4, a rotation and a translation, applied to the world of the poses last; NULL: none */
    const double *intrinsics; /* fx, fy, cx, cy instead of the folder's; NULL: none */
    double depth_max;     /* 0: none */
    uint32_t invalid;     /* depth value that means none, besides 0 */
    bool stop_on_bad;     /* a bad pose ends it instead of being left out */
    bool no_color;
    uint64_t every, limit; /* 0: 1, all */
    int threads;          /* decoders; 0: 1 */
    /* told of each frame left out and of doubtful data, in order; called from frames_open only; may be NULL
     */
    void (*warn)(void *self, const char *rule, const char *object, const char *text);
    void *warn_self;
};
struct frames_source;
/* Reads all poses and all picture headers; decodes nothing but a sample for the bounds. */
int frames_open(const char *folder, const struct frames_options *o, struct frames_source **ret,
                struct fault *fault);
const struct recon_camera *frames_camera(const struct frames_source *s);
uint64_t frames_count(const struct frames_source *s);
uint64_t frames_skipped(const struct frames_source *s);
bool frames_colored(const struct frames_source *s);
const double *frames_bounds(const struct frames_source *s); /* 6 numbers, NaN when no depth was seen */
uint64_t frames_bytes(const struct frames_source *s);       /* host memory of the frames decoded ahead */
/* 1, 0 at the end, -1 with fault. *ret is valid until the next call. */
int frames_next(struct frames_source *s, struct recon_frame *ret, struct fault *fault);
void frames_rewind(struct frames_source *s);
void frames_free(struct frames_source *s); /* ends the decoders; NULL is fine */

enum frames_color { FRAMES_JPG, FRAMES_PNG, FRAMES_NONE };
/* One frame into folder: depth as whole millimetres (beyond 65.534 m: none), colour, pose. */
int frames_write_one(const char *folder, const struct recon_frame *frame, const struct recon_camera *camera,
                     enum frames_color color, int quality, struct err *err);
/* camera-intrinsics.txt: written last, since a folder without it is not read. */
int frames_write_camera(const char *folder, const struct recon_camera *camera, struct err *err);

/* ---- volumes (NPZ, doc/format-volume.md) -------------------------------------------------------------- */

/* Dense or in blocks, as the file is. truncation stays 0 when the file does not say it; weight and rgb are NULL when absent. */
int volume_read(const char *path, const struct data_alloc *alloc, struct recon_volume *ret,
                struct fault *fault);
/* Shape alone, nothing allocated. */
int volume_probe(const char *path, struct recon_volume *ret, struct fault *fault);
int volume_write(const char *path, const struct recon_volume *v, bool compress, struct err *err);

/* ---- meshes and points (doc/format-mesh.md) ------------------------------------------------------------ */

/* What a reader did besides. */
struct mesh_notes {
    uint64_t polygons; /* faces of more than three corners, cut into triangles from their first corner */
    uint64_t uv_out;   /* faces with a texture coordinate outside [0, 1] (OBJ) */
    uint64_t other, other_line; /* lines of an OBJ that say nothing of meshes (points, lines, curves): how many, the first */
    uint64_t unknown_materials; /* that faces name and no library defines */
    uint64_t dropped;  /* points that are not finite, left out */
    uint64_t zeros;    /* points whose z is 0, left out */
};

struct geom_options {
    int threads;      /* OBJ; the same result for any number; 0: 1 */
    bool drop;        /* points that are not finite are left out and counted, else refused */
    bool drop_zero;   /* points whose z is exactly 0 too */
    double offset[3]; /* taken off every coordinate before it becomes a float */
    bool plain;       /* vertices, their normals and colours, and faces alone: nothing of recon_mesh from uvs on */
    const char *root; /* folder outside which no library or texture is looked for; NULL: the file's own */
    void (*warn)(void *self, const char *rule, const char *object, const char *text); /* doubts about them; NULL: none */
    void *warn_self;
};

/* A mesh in a file: PLY (ascii, little and big endian, any type of property and list, tristrips), OBJ, OFF, GLB, by the first
 * bytes and the suffix. Vertices keep their numbers. Refused: file-truncated, face-index-out-of-range, vertex-nan,
 * empty-result (no vertices, no faces); the line in a text, the element in a binary file is named. */
int mesh_read(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault);
/* Points: PCD (ascii, binary, binary_compressed), XYZ (.xyz .txt; .xyzn .npts: with normals; .xyzrgb: with colours), NPY
 * (n x 3, n x 6), and the vertices of the above. */
int points_read(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_points *ret,
                struct mesh_notes *notes, struct fault *fault);
/* Tells what is doubtful in coordinates: far from the origin for their extent (coord-offset); of points also z = 0
 * (depth-range) and a few far from all others (bounds-outlier). */
void geom_doubts(const float *xyz, uint64_t n, bool points, void (*warn)(void *self, const char *rule, const char *object, const char *text),
                 void *self);
/* Faces that come behind those of a mesh: so many that take after one of its own. */
struct mesh_run {
    uint32_t faces, like; /* like: a number below m->faces */
};
/* ret->extra and ->extra_bytes, of m with runs of faces more: each is of the material, object, group and smoothing group that its like is
 * of, and has its further numbers. Those of all faces are left out, *ret_left, where more come than there were polygons or the rows are
 * not one a polygon. m->extra and m->joined on the host; ret->extra is of alloc, the caller's; both are written on success only.
 * CODE_INTERNAL when extra is nothing that a reader packed, CODE_MEMORY when alloc gave none. */
int mesh_extra_grow(const struct recon_mesh *m, const struct mesh_run *run, uint64_t runs, const struct data_alloc *alloc, struct recon_mesh *ret,
                    bool *ret_left, struct fault *fault);
/* At most, for extra of so many bytes: of ret->extra; *ret_meanwhile: of what else is taken during the call. */
uint64_t mesh_extra_bytes(uint64_t bytes, uint64_t faces, uint64_t runs, uint64_t *ret_meanwhile);
/* What a writer wrote and what it left out. */
struct mesh_written {
    struct strv files;    /* all, the mesh's own first */
    struct strv left_out; /* one line each: what the form has no place for, textures that are gone */
};
void mesh_written_release(struct mesh_written *w);
/* By the suffix: .ply, .obj (with NAME.mtl and NAME-textures/ where the mesh has materials), .glb. ret may be NULL. */
int mesh_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err);
/* Binary little-endian PLY: x y z [nx ny nz] [red green blue] [s t], faces as list uchar int vertex_indices [list texcoord], and the
 * columns that a PLY was read with. ret may be NULL. */
int ply_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err);

#endif
