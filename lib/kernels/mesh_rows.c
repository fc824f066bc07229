#include "kernels/mesh_rows.h"

#define END_PORT { 0, 0, 0, 0 }
#define END_PARAM { 0, 0, 0, 0, 0, 0, 0, 0 }

#define OFFSET_ROW { "offset", "m", "x, y, z taken off every coordinate before it is rounded to a float; empty: none", "", RECON_VEC, -1e12, 1e12, 0 }

/* ---- files ---- */
const struct recon_port mesh_read_in[] = { END_PORT };
const struct recon_port mesh_read_out[] = { { "mesh", RECON_MESH, 0, "on the host" }, END_PORT };
const struct recon_param mesh_read_params[] = {
    { "file", "", "in the dataset's folder; empty: the dataset is the file, or has a mesh.ply, .obj, .off or .glb", "", RECON_TEXT, 0, 0, 0 },
    OFFSET_ROW,
    { "keep", "", "all: texture coordinates, normals of corners, materials, parts, polygons and further properties go along; geometry: places, "
      "normals and colours of vertices, and triangles alone", "all", RECON_CHOICE, 0, 0, "all|geometry" },
    END_PARAM,
};
const struct recon_port points_read_in[] = { END_PORT };
const struct recon_port points_read_out[] = { { "points", RECON_POINTS, 0, "on the host" }, END_PORT };
const struct recon_param points_read_params[] = {
    { "file", "", "in the dataset's folder; empty: the dataset is the file, or has a points.ply, .pcd, .xyz or .npy", "", RECON_TEXT, 0, 0, 0 },
    { "nonfinite", "", "a point with a coordinate that is not finite: left out and counted, or the end", "drop", RECON_CHOICE, 0, 0,
      "drop|stop" },
    { "zero", "", "a point whose z is exactly 0, which depth that was not seen becomes: kept and told, or left out", "keep", RECON_CHOICE, 0, 0,
      "keep|drop" },
    OFFSET_ROW,
    END_PARAM,
};
const struct recon_port points_write_in[] = { { "points", RECON_POINTS, RECON_PORT_HOST, "" }, END_PORT };
const struct recon_port points_write_out[] = { END_PORT };
const struct recon_param points_write_params[] = {
    { "file", "", "name below the output folder, ending in .ply", "points.ply", RECON_TEXT, 0, 0, 0 },
    END_PARAM,
};

/* ---- meshes ---- */
const struct recon_port mesh_check_in[] = { { "mesh", RECON_MESH, 0, "" }, END_PORT };
const struct recon_port mesh_check_out[] = { END_PORT };
const struct recon_param mesh_check_params[] = {
    { "file", "", "census as JSON below the output folder; empty: none", "mesh-check.json", RECON_TEXT, 0, 0, 0 },
    { "require", "", "what ends the step when the mesh is not: edges: at most two faces an edge; manifold: also one fan a vertex, "
      "faces turned alike; closed: also no border", "nothing", RECON_CHOICE, 0, 0, "nothing|edges|manifold|closed" },
    END_PARAM,
};
const struct recon_port mesh_one_in[] = { { "mesh", RECON_MESH, 0, "" }, END_PORT };
const struct recon_port mesh_one_out[] = { { "mesh", RECON_MESH, 0, "" }, END_PORT };
const struct recon_param mesh_clean_params[] = {
    { "merge", "", "vertices at exactly one place become one; their normals go", "true", RECON_BOOL, 0, 0, 0 },
    { "degenerate", "", "remove faces that name a vertex twice or have no area", "true", RECON_BOOL, 0, 0, 0 },
    { "repeated", "", "of faces with the same three vertices keep the first", "true", RECON_BOOL, 0, 0, 0 },
    { "non_manifold", "", "of more than two faces at an edge remove those of least area, then of lowest number", "true", RECON_BOOL, 0, 0, 0 },
    { "orient", "", "outward: faces are turned alike, and closed parts so that their volume is above zero", "keep", RECON_CHOICE, 0, 0,
      "keep|outward" },
    { "min_faces", "", "components of fewer faces go", "0", RECON_INT, 0, 4e9, 0 },
    { "largest", "", "keep so many components of most faces; 0: all", "0", RECON_INT, 0, 4e9, 0 },
    { "unused", "", "remove vertices in no face", "true", RECON_BOOL, 0, 0, 0 },
    { "split", "", "a vertex of several fans of faces becomes one a fan", "true", RECON_BOOL, 0, 0, 0 },
    END_PARAM,
};
const struct recon_param mesh_fill_params[] = {
    { "max_hole_edges", "", "longer borders stay open", "1000", RECON_INT, 3, 100000, 0 },
    END_PARAM,
};
const struct recon_param mesh_subdivide_params[] = {
    { "method", "", "loop: smooth, borders as cubic splines; midpoint: the same surface", "loop", RECON_CHOICE, 0, 0, "loop|midpoint" },
    { "levels", "", "each makes four times the faces", "1", RECON_INT, 1, 10, 0 },
    END_PARAM,
};
const struct recon_param mesh_smooth_params[] = {
    { "method", "", "", "taubin", RECON_CHOICE, 0, 0, "laplacian|taubin" },
    { "iterations", "", "", "10", RECON_INT, 1, 100000, 0 },
    { "lambda", "", "share of the way to the neighbours' mean", "0.5", RECON_FLOAT, 0, 1, 0 },
    { "mu", "", "of Taubin's second step, the way back", "-0.53", RECON_FLOAT, -2, 0, 0 },
    { "weights", "", "of the neighbours: equal, or 1 / distance", "uniform", RECON_CHOICE, 0, 0, "uniform|distance" },
    { "border", "", "whether vertices of border and non-manifold edges move", "move", RECON_CHOICE, 0, 0, "move|fix" },
    END_PARAM,
};
const struct recon_param mesh_normals_params[] = {
    { "weight", "", "of a face at its vertices: its area, or its angle there", "area", RECON_CHOICE, 0, 0, "area|angle" },
    END_PARAM,
};
const struct recon_param mesh_simplify_params[] = {
    { "faces", "", "wanted at most; 0: any number", "0", RECON_INT, 0, 4e9, 0 },
    { "vertices", "", "wanted at most, of those in faces; 0: any number", "0", RECON_INT, 0, 4e9, 0 },
    { "max_error", "m", "root mean square distance of a new vertex from the planes of the faces it stands for, weighted by area; 0: any",
      "0", RECON_FLOAT, 0, 1e9, 0 },
    { "method", "", "levels: edges of about equal error one after the other; rounds: many at once, for many threads and GPUs", "levels",
      RECON_CHOICE, 0, 0, "levels|rounds" },
    END_PARAM,
};
const struct recon_param transform_params[] = {
    { "from", "", "axes of the input: opencv: x right, y down, z forward; opengl: y up, z backward; openni: y up, z forward, left-handed",
      "opencv", RECON_CHOICE, 0, 0, "opencv|opengl|openni" },
    { "to", "", "axes of the result", "opencv", RECON_CHOICE, 0, 0, "opencv|opengl|openni" },
    { "scale", "", "times every coordinate: 0.001 from millimetres to metres", "1", RECON_FLOAT, 1e-12, 1e12, 0 },
    { "matrix", "", "16 numbers by rows, applied last; its last row is 0 0 0 1; empty: none", "", RECON_VEC, -1e12, 1e12, 0 },
    END_PARAM,
};
const struct recon_port check_sign_in[] = { { "mesh", RECON_MESH, 0, "closed for parity" },
                                            { "points", RECON_POINTS, 0, "" },
                                            END_PORT };
const struct recon_port check_sign_out[] = { { "inside", RECON_POINTS, 0, "the points inside, in their order" }, END_PORT };
const struct recon_param check_sign_params[] = {
    { "method", "", "parity: crossings of a ray, exact for closed meshes; winding: generalised winding number above 1/2", "parity",
      RECON_CHOICE, 0, 0, "parity|winding" },
    { "file", "", "one byte a point, 1 inside, as NPY below the output folder; empty: none", "", RECON_TEXT, 0, 0, 0 },
    END_PARAM,
};

/* ---- points ---- */
const struct recon_port points_one_in[] = { { "points", RECON_POINTS, 0, "" }, END_PORT };
const struct recon_port points_one_out[] = { { "points", RECON_POINTS, 0, "" }, END_PORT };
const struct recon_param points_normals_params[] = {
    { "k", "", "nearest neighbours, the point itself among them", "30", RECON_INT, 3, 256, 0 },
    { "orient", "", "propagate: neighbours agree, the topmost along z looks up; viewpoint: towards it; outward: away from the "
      "centroid; none: as the solver gives them", "propagate", RECON_CHOICE, 0, 0, "propagate|viewpoint|outward|none" },
    { "viewpoint", "m", "x, y, z; empty: the origin", "", RECON_VEC, -1e9, 1e9, 0 },
    END_PARAM,
};
const struct recon_param fps_params[] = {
    { "count", "", "points to take; all when there are fewer", "4096", RECON_INT, 1, 4e9, 0 },
    { "first", "", "index: the one of that number; centroid: the farthest from the mean of all", "index", RECON_CHOICE, 0, 0,
      "index|centroid" },
    { "index", "", "of the first point", "0", RECON_INT, 0, 4e9, 0 },
    END_PARAM,
};
const struct recon_port voxelize_in[] = { { "points", RECON_POINTS, 0, "" }, END_PORT };
const struct recon_port voxelize_out[] = { { "volume", RECON_VOLUME, RECON_PORT_OPTIONAL, "form = dense, blocks, auto" },
                                           { "voxels", RECON_POINTS, RECON_PORT_OPTIONAL, "form = sparse: centres of the occupied, by number" },
                                           END_PORT };
const struct recon_param voxelize_params[] = {
    { "meaning", "", "kaolin: round half to even of (p - low) / extent * (resolution - 1), as kaolin's pointclouds_to_voxelgrids; "
      "kaolin-0.1: cell centres within voxel of a point; grid: floor((p - origin) / voxel)", "kaolin", RECON_CHOICE, 0, 0,
      "kaolin|kaolin-0.1|grid" },
    { "resolution", "", "cells a side, for both meanings of kaolin", "64", RECON_INT, 2, 65536, 0 },
    { "voxel", "m", "side of a cell; 0: what the points' extent and resolution make", "0", RECON_FLOAT, 0, 1e6, 0 },
    { "shape", "", "cells along x, y, z, for grid; empty: what the points span", "", RECON_VEC, 1, 1048576, 0 },
    { "origin", "m", "low corner, for grid and kaolin; empty: the points' low corner", "", RECON_VEC, -1e9, 1e9, 0 },
    { "form", "", "dense: a volume; blocks: a volume that holds the 16^3 blocks with occupied cells alone; auto: dense, or blocks where that does "
      "not fit the memory; sparse: the occupied cells as points", "auto", RECON_CHOICE, 0, 0, "dense|sparse|blocks|auto" },
    END_PARAM,
};
