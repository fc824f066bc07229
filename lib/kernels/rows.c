#include "kernels/rows.h"

#define END_PORT { 0, 0, 0, 0 }
#define END_PARAM { 0, 0, 0, 0, 0, 0, 0, 0 }
#define FRAMES_PORT(doc) { "frames", RECON_FRAMES, 0, doc }

/* ---- frames ---- */
const struct recon_port frames_read_in[] = { END_PORT };
const struct recon_port frames_read_out[] = {FRAMES_PORT("decoded ahead of use, in order of their names"),
                                             END_PORT};
const struct recon_param frames_read_params[] = {
    {"depth_scale", "m", "metres in one unit of the depth picture; 0: the layout's, 0.001, or 0.0002 for tum", "0", RECON_FLOAT, 0, 1, 0},
    {"depth_max", "m", "depth beyond this is dropped; 0: none is", "0", RECON_FLOAT, 0, 1000, 0},
    {"invalid", "", "value of the depth picture that means none, besides 0", "65535", RECON_INT, 0, 65535, 0},
    {"bad_frames", "",
     "a frame whose pose is absent, not finite or not rigid: left out with a warning, or the end; "
     "a damaged file always ends the step",
     "skip", RECON_CHOICE, 0, 0, "skip|stop"},
    {"every", "", "take one frame of so many", "1", RECON_INT, 1, 1000000, 0},
    {"limit", "", "take at most so many frames; 0: all", "0", RECON_INT, 0, 1000000000, 0},
    {"color", "", "read the colour pictures", "true", RECON_BOOL, 0, 0, 0},
    {"layout", "", "of the folder; auto: tum where depth.txt or groundtruth.txt is, colmap where a model is", "auto", RECON_CHOICE, 0, 0,
     "auto|7-scenes|tum|colmap"},
    {"axes", "", "of the poses: opencv as they are here; opengl: cameras with y up and z backward; openni: camera and world left-handed, "
     "y up", "opencv", RECON_CHOICE, 0, 0, "opencv|opengl|openni"},
    {"pose_scale", "m", "metres in one unit of the poses' translations", "1", RECON_FLOAT, 1e-9, 1e9, 0},
    {"association", "s", "tum: pictures and poses belong together that are no farther apart", "0.02", RECON_FLOAT, 1e-6, 10, 0},
    {"transform", "", "of the world, after all: 16 numbers by rows, a rotation and a translation; empty: none", "", RECON_VEC, -1e9, 1e9, 0},
    {"intrinsics", "px", "fx, fy, cx, cy; empty: the folder's", "", RECON_VEC, -1e6, 1e6, 0},
    END_PARAM,
};
const struct recon_port frames_write_in[] = { FRAMES_PORT("all are written"), END_PORT };
const struct recon_port frames_write_out[] = { END_PORT };
const struct recon_param frames_write_params[] = {
    { "color", "", "form of the colour pictures", "jpg", RECON_CHOICE, 0, 0, "jpg|png|none" },
    { "quality", "", "of the JPEG pictures", "92", RECON_INT, 1, 100, 0 },
    END_PARAM,
};

/* ---- volume ---- */
const struct recon_port fuse_in[] = {FRAMES_PORT("with depth and pose, colour where there is some"),
                                     END_PORT};
const struct recon_port fuse_out[] = {{"volume", RECON_VOLUME, 0, "normalised by the truncation"}, END_PORT};
const struct recon_param fuse_params[] = {
    {"voxel", "m", "distance of two samples", "0.02", RECON_FLOAT, 1e-5, 100, 0},
    {"truncation", "voxels", "half width of the band around the surface; 0: what compat says", "0",
     RECON_FLOAT, 0, 1000, 0},
    {"bounds", "m", "box as x0, x1, y0, y1, z0, z1; empty: what the frames show", "", RECON_VEC, -1e6, 1e6,
     0},
    {"weight_max", "", "the mean forgets beyond this weight; 0: what compat says, never or (nvblox) 5", "0", RECON_FLOAT, 0, 1e9, 0},
    {"compat", "",
     "whose meaning; recon: samples at voxel centres, truncation 4; tsdf-fusion: at voxel corners, truncation 5; open3d "
     "(VoxelBlockGrid): at whole multiples of voxel, pixels cut off, truncation 8; nvblox: at half multiples, pixels cut off, "
     "weight 1 / z^2, truncation 4",
     "recon", RECON_CHOICE, 0, 0, "recon|tsdf-fusion|open3d|nvblox"},
    {"color", "", "fuse colours too, where the frames have them", "true", RECON_BOOL, 0, 0, 0},
    {"layout", "",
     "dense: every sample of the bounds; blocks: those of 16^3 blocks near a surface alone, the same surface; auto: dense up to "
     "a gigabyte that fits, else the smaller", "dense", RECON_CHOICE, 0, 0, "dense|blocks|auto"},
    END_PARAM,
};
const struct recon_port volume_read_in[] = { END_PORT };
const struct recon_port volume_read_out[] = { { "volume", RECON_VOLUME, 0, "on the host" }, END_PORT };
const struct recon_param volume_read_params[] = {
    {"file", "", "in the dataset's folder; empty: the dataset is the file, or has a volume.npz", "",
     RECON_TEXT, 0, 0, 0},
    {"truncation", "voxels", "when the file does not say it", "5", RECON_FLOAT, 0.01, 1000, 0},
    END_PARAM,
};
const struct recon_port volume_write_in[] = { { "volume", RECON_VOLUME, RECON_PORT_HOST, "" }, END_PORT };
const struct recon_port volume_write_out[] = { END_PORT };
const struct recon_param volume_write_params[] = {
    { "file", "", "name below the output folder", "volume.npz", RECON_TEXT, 0, 0, 0 },
    { "compress", "", "deflate the arrays", "true", RECON_BOOL, 0, 0, 0 },
    END_PARAM,
};

/* ---- mesh ---- */
const struct recon_port mc_in[] = { { "volume", RECON_VOLUME, 0, "" }, END_PORT };
const struct recon_port mc_out[] = {
    {"mesh", RECON_MESH, 0, "vertices shared, counter-clockwise from outside"}, END_PORT};
const struct recon_param mc_params[] = {
    {"iso", "", "value on the surface", "0", RECON_FLOAT, 0, 0, 0},
    {"inside", "", "inside is where the value is lower than iso (a distance), or iso and more (an occupancy)",
     "lt", RECON_CHOICE, 0, 0, "lt|ge"},
    {"min_weight", "", "cells with a corner of this weight or less are left out; -1: none is", "0",
     RECON_FLOAT, -1, 1e9, 0},
    {"pad", "", "close the surface at the border of the volume", "false", RECON_BOOL, 0, 0, 0},
    END_PARAM,
};
const struct recon_port mesh_write_in[] = { { "mesh", RECON_MESH, RECON_PORT_HOST, "" }, END_PORT };
const struct recon_port mesh_write_out[] = { END_PORT };
const struct recon_param mesh_write_params[] = {
    { "file", "", "name below the output folder, ending in .ply, .obj or .glb", "mesh.ply", RECON_TEXT, 0, 0, 0 },
    END_PARAM,
};

/* ---- pictures ---- */
const struct recon_port scene_in[] = { END_PORT };
const struct recon_port scene_out[] = { FRAMES_PORT("rendered when asked for"), END_PORT };
const struct recon_param scene_params[] = {
    {"scene", "", "what stands there", "room", RECON_CHOICE, 0, 0, "room|office|objects|columns"},
    {"seed", "", "varies sizes, places and colours", "1", RECON_INT, 0, 1e9, 0},
    {"frames", "", "views along the camera's path", "40", RECON_INT, 1, 100000, 0},
    {"width", "px", "", "640", RECON_INT, 16, 16384, 0},
    {"height", "px", "", "480", RECON_INT, 16, 16384, 0},
    {"fx", "px", "focal length; 0: 585 at a width of 640", "0", RECON_FLOAT, 0, 1e6, 0},
    {"noise", "", "1: a Kinect's noise, steps and holes; 0: exact to a millimetre", "1", RECON_FLOAT, 0, 10,
     0},
    {"depth_max", "m", "the sensor sees no farther", "5", RECON_FLOAT, 0.1, 60, 0},
    END_PARAM,
};
const struct recon_port preview_in[] = { { "volume", RECON_VOLUME, 0, "" }, END_PORT };
const struct recon_port preview_out[] = { { "image", RECON_IMAGE, RECON_PORT_OPTIONAL, "RGB" }, END_PORT };
const struct recon_param preview_params[] = {
    { "file", "", "name below the output folder", "preview.png", RECON_TEXT, 0, 0, 0 },
    { "width", "px", "", "960", RECON_INT, 16, 16384, 0 },
    { "height", "px", "", "720", RECON_INT, 16, 16384, 0 },
    { "view", "", "from where; surfaces seen from behind are left out", "iso", RECON_CHOICE, 0, 0,
      "iso|top|front|back|left|right|inside" },
    { "up", "", "axis that points up", "-y", RECON_CHOICE, 0, 0, "-y|+y|-z|+z" },
    { "samples", "", "rays a pixel along each side", "2", RECON_INT, 1, 8, 0 },
    END_PARAM,
};
