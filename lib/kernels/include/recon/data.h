/* recon/data.h - what flows between the steps of a pipeline. C11 and C++.
 *
 * Conventions
 *   World and camera axes are right-handed; cameras are OpenCV's: x right, y down, z forward; poses are
 *   camera-to-world, row-major 4x4 (first 12 numbers: rotation and translation by rows). Metres.
 *   A pixel (u, v) has integer coordinates at its centre: x = (u - cx) / fx * z.
 *   Volumes are [x][y][z], z fastest; sample (i, j, k) stands at origin + voxel * (i, j, k).
 *   TSDF values are divided by the truncation: 1 far outside, negative inside; weight 0 is unobserved.
 *   Triangles are counter-clockwise seen from outside.
 *
 * Every array of a slot lives in one place: the host's memory or a device's. Arrays come from the context's
 * allocator (recon_ctx.host->alloc or the module's device->alloc) and are released by the runner. A device's module may
 * let slots hold one array together; its device->free then counts. No kernel writes to an array of its inputs.
 */
#ifndef RECON_DATA_H
#define RECON_DATA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum recon_slot { RECON_FRAMES = 1, RECON_POINTS, RECON_VOLUME, RECON_MESH, RECON_IMAGE };
enum recon_place { RECON_HOST = 0, RECON_DEVICE = 1 };

struct recon_camera {
    uint32_t width, height;
    double fx, fy, cx, cy;
};

/* One RGB-D frame. depth in metres, 0 where there is none; colour is RGB, 3 bytes a pixel, or NULL. */
struct recon_frame {
    const float *depth;   /* height * width, rows from the top */
    const uint8_t *color; /* height * width * 3, or NULL */
    double pose[16];      /* camera-to-world */
    const char *name;     /* for messages, e.g. "frame-000017" */
    uint64_t index;       /* place in the source before anything was skipped */
};

/* A source of frames, always on the host: a step pulls them one after the other while the source decodes ahead. */
struct recon_frames {
    struct recon_camera camera;
    uint64_t count;   /* frames that next() will give, if nothing fails */
    uint64_t skipped; /* frames left out, each told by a warning */
    uint64_t lasting; /* 1: the arrays of the frames last as long as the source, not only until the next call */
    double bounds[6]; /* world box of what the depth shows, x0 x1 y0 y1 z0 z1, from a sample; NaN: unknown */
    /* 1: *ret is valid until the next call; 0: no more; -1: failed, told through fail() of the context that the source was
     * made with, which must live as long as the source. Not reentrant. */
    int (*next)(struct recon_frames *self, struct recon_frame *ret);
    int (*rewind)(struct recon_frames *self); /* from the first again; 0 or -1 */
    void (*close)(struct recon_frames *self); /* ends decoding threads, frees everything but *self */
    void *impl;
};

struct recon_points {
    uint64_t n;
    enum recon_place place;
    float *xyz;     /* n * 3 */
    float *normals; /* n * 3 or NULL */
    uint8_t *rgb;   /* n * 3 or NULL */
};

/* A volume is dense, or in blocks: then only some of its samples are held. Block b holds samples side * block[3 b + a] to
 * side * block[3 b + a] + side - 1 of each axis a, in the order [x][y][z], and the arrays hold block after block. The list
 * ascends by x, then y, then z. A sample in no block has the value beyond, weight 0, colour 0; so have those of a block
 * that stand beyond dim. */
struct recon_volume {
    uint32_t dim[3]; /* nx, ny, nz; nz is fastest in memory */
    enum recon_place place;
    double origin[3];  /* world position of sample (0, 0, 0) */
    double voxel;      /* metres between samples */
    double truncation; /* metres; tsdf = distance / truncation */
    float *tsdf;       /* nx * ny * nz; in blocks: blocks * side^3 */
    float *weight;     /* the same count, or NULL: all are observed */
    uint8_t *rgb;      /* * 3, or NULL */
    uint32_t side;     /* 0: dense; 8, 16 or 32 */
    float beyond;
    uint64_t blocks;
    uint32_t *block; /* blocks * 3 */
};

#define RECON_NONE UINT32_MAX /* of a corner: no texture coordinate, no normal */

/* From uvs on: what files say of corners and faces. A kernel that keeps the faces and their order passes it on (corner_normals
 * only where they still hold), one that makes other faces leaves it 0, which the runner tells. */
struct recon_mesh {
    uint64_t vertices, faces;
    enum recon_place place;
    float *xyz;      /* vertices * 3 */
    float *normals;  /* vertices * 3 or NULL */
    uint8_t *rgb;    /* vertices * 3 or NULL */
    uint32_t *index; /* faces * 3 */

    uint64_t uvs, corner_normals; /* how many of each */
    float *uv;                    /* uvs * 2 or NULL; u to the right, v by uv_down */
    uint32_t uv_down;             /* v runs 0: up from the picture's lower edge (OBJ, PLY), 1: down from its upper one (glTF) */
    uint32_t *uv_index;           /* faces * 3: a corner's of uv, or RECON_NONE; NULL with uv: that of its vertex's number */
    float *corner_normal;         /* corner_normals * 3 or NULL */
    uint32_t *normal_index;       /* faces * 3: a corner's of corner_normal, or RECON_NONE; NULL without */
    uint8_t *joined;              /* faces, or NULL: 1 where a face and the one before it are of one polygon, cut as a fan */
    uint64_t extra_bytes;
    uint8_t *extra; /* names, materials, pictures, further properties, packed by the reader for the writer; or NULL */
};

struct recon_image {
    uint32_t width, height, channels; /* 1, 3 or 4; 8 bits each */
    enum recon_place place;
    uint8_t *pixels; /* height * width * channels, rows from the top */
};

/* The arrays of a slot, so that a runner can copy and release any of them without knowing what it is. */
struct recon_array {
    void **at;      /* the slot's pointer */
    uint64_t bytes; /* 0 when the pointer is NULL */
};
#define RECON_ARRAYS_MAX 10
/* Fills out[]; gives how many; 0 for RECON_FRAMES. */
int recon_slot_arrays(enum recon_slot type, void *slot, struct recon_array out[RECON_ARRAYS_MAX]);
enum recon_place *recon_slot_place(enum recon_slot type, void *slot); /* NULL for RECON_FRAMES */
size_t recon_slot_size(enum recon_slot type);                        /* sizeof the struct, 0 if unknown */
uint64_t recon_volume_samples(const struct recon_volume *v);         /* how many tsdf holds */

#ifdef __cplusplus
}
#endif
#endif
