/* kernels/plan.h - what a kernel decides before it runs, the same for every device: sizes from parameters,
 * refusals, golden inputs. Failures are told through the context (host->fail) and give -1. C and C++. */
#ifndef KERNELS_PLAN_H
#define KERNELS_PLAN_H

#include "recon/kernel.h"
#include "kernels/hd.h"

KERN_BEGIN

/* ---- memory ---- */

/* Host memory that this process may still take: the least of MemAvailable and what its control groups
 * and its limit of address space leave. */
uint64_t plan_memory_free(void);
/* Whether so many bytes may be taken of those that are free: nine tenths may. */
int plan_fits(uint64_t need, uint64_t free_bytes);
/* Refuses (65, volume-too-big) what does not fit; dim and where are for the message. */
int plan_volume_fits(struct recon_ctx *ctx, const uint32_t dim[3], uint64_t need, uint64_t free_bytes,
                     const char *where);

/* Host memory of a step for readers (data/data.h). */
struct data_alloc;
struct data_alloc ctx_alloc(struct recon_ctx *ctx);

/* ---- tsdf.fuse ---- */

struct fuse_plan {
    uint32_t dim[3];
    uint64_t voxels;
    double origin[3], voxel, truncation; /* metres */
    double weight_max;                   /* 0: none */
    int color;                           /* wanted; the frames may have none */
    int layout;                          /* FUSE_DENSE, FUSE_BLOCKS, FUSE_AUTO */
    int compat;
    double shift;   /* pixels; a sample belongs to pixel round(u - shift): 0.5 where pixels are cut off */
    uint32_t spare; /* last columns and rows of a picture that no sample falls into */
    double reach;   /* metres; samples farther along the optical axis are left alone; INFINITY: none is */
};
enum { FUSE_BLOCK = 16 };            /* samples along a block's side */
#define FUSE_NEAR 1e-2 /* metres; nvblox's weight is 1 up to there */
#define FUSE_SMALL ((uint64_t)1 << 30) /* bytes up to which layout 'auto' takes the dense form, where it fits */
/* frames may be NULL when bounds are given. dim = ceil((top - low) / voxel - 1e-9), low as compat has it.
 * Refused: a box without volume, unknown bounds, more than 2^40 voxels, an axis above 2^20 samples. */
int fuse_plan(struct recon_ctx *ctx, const struct recon_frames *frames, const struct recon_value *params,
              struct fuse_plan *ret);
/* Whether the bounds can be known yet: given, or told by the frames. */
int fuse_known(const struct recon_frames *frames, const struct recon_value *params);
/* recon_kernel.shape of tsdf.fuse; leaves a zeroed volume when the bounds are not known yet. */
int fuse_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out);
/* Bytes of the dense volume and of what the fusion holds besides: 8 a voxel, and with colour 3 + 6. */
uint64_t fuse_bytes(const struct fuse_plan *plan);
/* The same of n blocks, with their list and the grid. */
uint64_t fuse_block_bytes(const struct fuse_plan *plan, uint64_t n);
/* Whether the frames are gone through to find the blocks before they are fused. besides: bytes that the run holds beside the volume. */
int fuse_wants_survey(const struct fuse_plan *plan, uint64_t besides, uint64_t free_bytes);
/* What a fusion does once n blocks are found. blocks: it takes them, unless 'auto' may take the dense form and that is not larger; keep:
 * frames that were kept stay, unless the volume would not fit beside them. besides: bytes beside the volume without them and with them. */
struct fuse_form {
    int blocks, keep;
};
struct fuse_form fuse_choose(const struct fuse_plan *plan, uint64_t n, const uint64_t besides[2], uint64_t free_bytes);
/* Refuses (65, volume-too-big) when n blocks do not fit. */
int fuse_blocks_fit(struct recon_ctx *ctx, uint64_t n, uint64_t need, uint64_t free_bytes, const char *where);
/* plan_volume_fits() for the dense form, with the other as a remedy. */
int fuse_fits(struct recon_ctx *ctx, const struct fuse_plan *plan, uint64_t need, uint64_t free_bytes, const char *where);

/* A frame's camera. */
struct fuse_view {
    double r[9], t[3]; /* camera = r * (world - t), r rows: camera axes in world coordinates */
    double fx, fy, cx, cy; /* cx and cy less the plan's shift */
    uint32_t width, height; /* pixels that samples may fall into */
    uint32_t stride;        /* of a row of the picture */
    double zmax;  /* farthest depth of the frame + truncation, at most reach */
    double reach; /* the plan's */
};
void fuse_view(const struct fuse_plan *plan, const struct recon_camera *camera, const double pose[16],
               double farthest, struct fuse_view *ret);

struct fuse_counts {
    uint64_t frames, depth_pixels, updates;
};
/* 0, or refuses with empty-result when nothing was fused, with the likely cause. */
int fuse_verdict(struct recon_ctx *ctx, const struct recon_frames *frames, const struct fuse_counts *counts);
/* samples: that the volume holds */
void fuse_cost(const struct fuse_plan *plan, uint64_t samples, const struct fuse_counts *counts, struct recon_cost *cost);
/* The same before a run: a frame updates one voxel in sixteen (7-Scenes kitchen: one in nineteen). */
void fuse_guess(const struct fuse_plan *plan, const struct recon_frames *frames, struct recon_cost *cost);

/* ---- golden inputs ---- */

/* sqrt(x^2 + y^2 + z^2) - 0.7 on linspace(-1, 1, n)^3; marching cubes gives exactly these counts for 64, 128,
 * 256. */
void golden_sphere(float *tsdf, uint32_t n);
struct golden_count {
    uint32_t n;
    uint64_t vertices, faces;
};
/* Ends with n 0; the first, n = 16, is for self-tests. */
extern const struct golden_count golden_sphere_counts[];

/* A slot's arrays to the host or to the device (NULL: nothing to do), and freed wherever they are. */
int golden_move(struct recon_ctx *ctx, const struct recon_device *device, enum recon_slot type, void *slot,
                enum recon_place to);
void golden_free(struct recon_ctx *ctx, const struct recon_device *device, enum recon_slot type, void *slot);
/* Runs a kernel on slots of the host wherever it works: device NULL as they are; else copies of the inputs (points, meshes,
 * volumes; frames stay) go to the device and what comes out comes back. ret_cost: what the kernel says that it took, or NULL. */
int golden_run(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device, const void *const *in,
               const struct recon_value *params, void *const *out, struct recon_cost *ret_cost);
/* Self-tests of a device's kernel on tiny inputs; device NULL: the host. 0, or -1 after fail(). */
int golden_fuse(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);
int golden_marching_cubes(struct recon_ctx *ctx, const struct recon_kernel *kernel,
                          const struct recon_device *device);
int golden_scene(struct recon_ctx *ctx, const struct recon_kernel *kernel);
int golden_preview(struct recon_ctx *ctx, const struct recon_kernel *kernel,
                   const struct recon_device *device);

/* ---- mesh.marching_cubes ---- */

struct mc_rule;
/* Refuses with empty-result and the range of the values; v on the host. Gives -1. */
int mc_refuse_empty(struct recon_ctx *ctx, const struct recon_volume *v, const struct mc_rule *rule);
int mc_refuse_range(struct recon_ctx *ctx, double low, double high, uint64_t observed,
                    const struct mc_rule *rule);
/* Memory: bytes_a_sample of scratch, 16 a row, and a mesh of 32 * samples^(2/3) vertices, five times what
 * scanned rooms give, or of blocks four for each sample of a side, whichever is less; the mesh is asked for once it is counted, so a larger one (noise) fails cleanly if at
 * all. */
void mc_bound(const struct recon_volume *v, int bytes_a_sample, struct recon_cost *cost);
/* recon_kernel.shape of mesh.marching_cubes: the same guess of the mesh. */
int mc_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
             void *const *out);
void mc_cost(const struct recon_volume *v, const struct recon_mesh *m, int bytes_a_sample,
             struct recon_cost *cost);

/* ---- scene.render_rgbd ---- */

struct scene;
struct scene_view;
struct scene_plan {
    struct recon_camera camera;
    uint64_t frames;
    uint32_t seed;
    int which;
    float noise, depth_max;
};
void scene_plan(const struct recon_value *params, struct scene_plan *ret);
/* The camera of frame i. */
void scene_view_of(const struct scene_plan *p, const struct scene *s, uint64_t i, double pose[16],
                   struct scene_view *ret);
/* A recon_frames over a renderer: render() fills depth (metres) and rgb of frame i, 0 or -1 after fail();
 * done() frees self. The source allocates its buffers through ctx->host and gives out 0..frames-1. */
struct scene_render {
    int (*render)(void *self, const struct scene_plan *p, const struct scene *s, const struct scene_view *v,
                  float *depth, uint8_t *rgb);
    void (*done)(void *self);
    void *self;
};
int scene_source(struct recon_ctx *ctx, const struct recon_value *params, const struct scene_render *how,
                 struct recon_frames *ret);
/* Depth in metres from millimetres with the losses at edges; mm and depth have width * height each. */
void scene_depth(const struct scene_view *v, const uint16_t *mm, float *depth);

/* ---- render.preview ---- */

/* A ray's direction is forward + x * right + y * down, x and y in pixels from the centre. */
struct view {
    struct vec3 eye, right, down, forward;
    struct vec3 world_down;
    float tmax;
    uint32_t width, height;
};
/* recon_kernel.bound and .shape of render.preview; and its file: RGB pixels on the host to ctx->out. */
int preview_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                  struct recon_cost *cost);
int preview_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                  void *const *out);
int preview_write(struct recon_ctx *ctx, const struct recon_value *params, uint8_t *pixels);
/* box: what to frame, x0 x1 y0 y1 z0 z1 in metres; NULL: the whole volume. */
void preview_view_box(const struct recon_volume *volume, const struct recon_value *params, const double *box,
                      struct view *ret);
void preview_view(const struct recon_volume *volume, const struct recon_value *params, struct view *ret);
/* The box of the samples near a surface, from how many there are at each index: dim[0] counts along x, then
 * y, then z; a hundredth is cut off at each end. A sample counts when it is observed and |tsdf| < 0.5. */
void preview_box(const struct recon_volume *volume, const uint64_t *counts, double box[6]);

/* ---- files below ctx->out ---- */

/* ctx->out joined with file into path; refuses (64) an absolute name, "..", an empty one. Owned by the
 * caller. */
char *plan_output(struct recon_ctx *ctx, const char *file);

KERN_END
#endif
