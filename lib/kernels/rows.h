/* kernels/rows.h - names, ports and parameters of every kernel, the same for each device that has it. C and
 * C++.
 *
 * A kernel is put together as
 *     const struct recon_kernel cpu_tsdf_fuse = { RECON_KERNEL_ABI, FUSE_NAME, FUSE_DOC, fuse_in, fuse_out,
 * fuse_params, bound, run, selftest }; and reads its values as params[FUSE_VOXEL].f. rows.c is linked into
 * every module. */
#ifndef KERNELS_ROWS_H
#define KERNELS_ROWS_H

#include "recon/kernel.h"
#include "kernels/hd.h"

KERN_BEGIN

#define FRAMES_READ_NAME "frames.read"
#define FRAMES_READ_DOC                                                                                      \
    "Read RGB-D frames: folders as 7-Scenes, TUM's RGB-D benchmark, or poses of a COLMAP model"
enum {
    FRAMES_READ_SCALE,
    FRAMES_READ_MAX,
    FRAMES_READ_INVALID,
    FRAMES_READ_BAD,
    FRAMES_READ_EVERY,
    FRAMES_READ_LIMIT,
    FRAMES_READ_COLOR,
    FRAMES_READ_LAYOUT,
    FRAMES_READ_AXES,
    FRAMES_READ_POSE_SCALE,
    FRAMES_READ_ASSOCIATION,
    FRAMES_READ_TRANSFORM,
    FRAMES_READ_INTRINSICS
};
extern const struct recon_port frames_read_in[], frames_read_out[];
extern const struct recon_param frames_read_params[];

#define FRAMES_WRITE_NAME "frames.write"
#define FRAMES_WRITE_DOC "Write RGB-D frames in the 7-Scenes layout, depth in millimetres"
enum { FRAMES_WRITE_COLOR, FRAMES_WRITE_QUALITY };
enum { FRAMES_WRITE_JPG, FRAMES_WRITE_PNG, FRAMES_WRITE_NONE };
extern const struct recon_port frames_write_in[], frames_write_out[];
extern const struct recon_param frames_write_params[];

#define FUSE_NAME "tsdf.fuse"
#define FUSE_DOC "Fuse RGB-D frames into a truncated signed distance volume"
enum { FUSE_VOXEL, FUSE_TRUNCATION, FUSE_BOUNDS, FUSE_WEIGHT_MAX, FUSE_COMPAT, FUSE_COLOR, FUSE_LAYOUT };
enum { FUSE_COMPAT_RECON, FUSE_COMPAT_TSDF_FUSION, FUSE_COMPAT_OPEN3D, FUSE_COMPAT_NVBLOX };
enum { FUSE_DENSE, FUSE_BLOCKS, FUSE_AUTO };
extern const struct recon_port fuse_in[], fuse_out[];
extern const struct recon_param fuse_params[];

#define MC_NAME "mesh.marching_cubes"
#define MC_DOC "Surface of a volume as triangles, closed wherever the volume is observed"
enum { MC_ISO, MC_INSIDE, MC_MIN_WEIGHT, MC_PAD };
enum { MC_INSIDE_LT, MC_INSIDE_GE };
extern const struct recon_port mc_in[], mc_out[];
extern const struct recon_param mc_params[];

#define VOLUME_READ_NAME "volume.read"
#define VOLUME_READ_DOC "Read a volume from an NPZ file: tsdf, weight, origin, voxel, colour"
enum { VOLUME_READ_FILE, VOLUME_READ_TRUNCATION };
extern const struct recon_port volume_read_in[], volume_read_out[];
extern const struct recon_param volume_read_params[];

#define VOLUME_WRITE_NAME "volume.write"
#define VOLUME_WRITE_DOC "Write a volume as an NPZ file that numpy loads"
enum { VOLUME_WRITE_FILE, VOLUME_WRITE_COMPRESS };
extern const struct recon_port volume_write_in[], volume_write_out[];
extern const struct recon_param volume_write_params[];

#define MESH_WRITE_NAME "mesh.write"
#define MESH_WRITE_DOC "Write a mesh as binary PLY, OBJ or GLB, by the name's ending"
enum { MESH_WRITE_FILE };
extern const struct recon_port mesh_write_in[], mesh_write_out[];
extern const struct recon_param mesh_write_params[];

#define SCENE_NAME "scene.render_rgbd"
#define SCENE_DOC "RGB-D frames of an analytic scene with the noise of a Kinect"
enum {
    SCENE_SCENE,
    SCENE_SEED,
    SCENE_FRAMES,
    SCENE_WIDTH,
    SCENE_HEIGHT,
    SCENE_FX,
    SCENE_NOISE,
    SCENE_DEPTH_MAX
};
enum { SCENE_ROOM, SCENE_OFFICE, SCENE_OBJECTS, SCENE_COLUMNS };
extern const struct recon_port scene_in[], scene_out[];
extern const struct recon_param scene_params[];

#define PREVIEW_NAME "render.preview"
#define PREVIEW_DOC "Picture of a volume by ray marching, written as PNG"
enum { PREVIEW_FILE, PREVIEW_WIDTH, PREVIEW_HEIGHT, PREVIEW_VIEW, PREVIEW_UP, PREVIEW_SAMPLES };
enum { PREVIEW_VIEW_ISO, PREVIEW_VIEW_TOP, PREVIEW_VIEW_FRONT, PREVIEW_VIEW_BACK, PREVIEW_VIEW_LEFT,
       PREVIEW_VIEW_RIGHT, PREVIEW_VIEW_INSIDE };
enum { PREVIEW_UP_MY, PREVIEW_UP_PY, PREVIEW_UP_MZ, PREVIEW_UP_PZ };
extern const struct recon_port preview_in[], preview_out[];
extern const struct recon_param preview_params[];

KERN_END
#endif
