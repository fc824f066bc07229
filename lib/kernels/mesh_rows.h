/* kernels/mesh_rows.h - names, ports and parameters of the kernels of meshes and points; see rows.h. C and C++. */
#ifndef KERNELS_MESH_ROWS_H
#define KERNELS_MESH_ROWS_H

#include "recon/kernel.h"
#include "kernels/hd.h"

KERN_BEGIN

#define MESH_READ_NAME "mesh.read"
#define MESH_READ_DOC "Read a mesh: PLY, OBJ, OFF or GLB; polygons become triangles, vertices keep their numbers"
enum { MESH_READ_FILE, MESH_READ_OFFSET, MESH_READ_KEEP };
enum { MESH_READ_ALL, MESH_READ_GEOMETRY };
extern const struct recon_port mesh_read_in[], mesh_read_out[];
extern const struct recon_param mesh_read_params[];

#define POINTS_READ_NAME "points.read"
#define POINTS_READ_DOC "Read points: PLY, PCD, XYZ, NPY, or the vertices of OBJ, OFF and GLB"
enum { POINTS_READ_FILE, POINTS_READ_NONFINITE, POINTS_READ_ZERO, POINTS_READ_OFFSET };
extern const struct recon_port points_read_in[], points_read_out[];
extern const struct recon_param points_read_params[];

#define POINTS_WRITE_NAME "points.write"
#define POINTS_WRITE_DOC "Write points as binary PLY"
enum { POINTS_WRITE_FILE };
extern const struct recon_port points_write_in[], points_write_out[];
extern const struct recon_param points_write_params[];

#define MESH_CHECK_NAME "mesh.check"
#define MESH_CHECK_DOC "Census of a mesh: Euler characteristic, manifoldness of edges and vertices, orientation, borders, components"
enum { MESH_CHECK_FILE, MESH_CHECK_REQUIRE };
enum { MESH_CHECK_NOTHING, MESH_CHECK_EDGES, MESH_CHECK_MANIFOLD, MESH_CHECK_CLOSED };
extern const struct recon_port mesh_check_in[], mesh_check_out[];
extern const struct recon_param mesh_check_params[];

#define MESH_CLEAN_NAME "mesh.clean"
#define MESH_CLEAN_DOC "Merge equal vertices, remove degenerate, repeated and non-manifold faces, part fans, remove small components, unused vertices"
enum { MESH_CLEAN_MERGE, MESH_CLEAN_DEGENERATE, MESH_CLEAN_REPEATED, MESH_CLEAN_NON_MANIFOLD, MESH_CLEAN_ORIENT, MESH_CLEAN_MIN_FACES,
       MESH_CLEAN_LARGEST, MESH_CLEAN_UNUSED, MESH_CLEAN_SPLIT };
enum { MESH_CLEAN_KEEP, MESH_CLEAN_OUTWARD };
extern const struct recon_port mesh_one_in[], mesh_one_out[]; /* mesh to mesh */
extern const struct recon_param mesh_clean_params[];

#define MESH_FILL_NAME "mesh.fill_holes"
#define MESH_FILL_DOC "Close holes by triangles between their border vertices, of least area"
enum { MESH_FILL_MAX };
extern const struct recon_param mesh_fill_params[];

#define MESH_SUBDIVIDE_NAME "mesh.subdivide"
#define MESH_SUBDIVIDE_DOC "Each triangle becomes four: Loop's scheme or midpoints"
enum { MESH_SUBDIVIDE_METHOD, MESH_SUBDIVIDE_LEVELS };
enum { MESH_SUBDIVIDE_LOOP, MESH_SUBDIVIDE_MIDPOINT };
extern const struct recon_param mesh_subdivide_params[];

#define MESH_SMOOTH_NAME "mesh.smooth"
#define MESH_SMOOTH_DOC "Smooth a mesh: Laplacian, or Taubin's two steps that keep its volume"
enum { MESH_SMOOTH_METHOD, MESH_SMOOTH_ITERATIONS, MESH_SMOOTH_LAMBDA, MESH_SMOOTH_MU, MESH_SMOOTH_WEIGHTS, MESH_SMOOTH_BORDER };
enum { MESH_SMOOTH_LAPLACIAN, MESH_SMOOTH_TAUBIN };
enum { MESH_SMOOTH_UNIFORM, MESH_SMOOTH_DISTANCE };
enum { MESH_SMOOTH_MOVE, MESH_SMOOTH_FIX };
extern const struct recon_param mesh_smooth_params[];

#define MESH_NORMALS_NAME "mesh.normals"
#define MESH_NORMALS_DOC "Normals of vertices: the sum of their faces' normals by area or by angle"
enum { MESH_NORMALS_WEIGHT };
enum { MESH_NORMALS_AREA, MESH_NORMALS_ANGLE };
extern const struct recon_param mesh_normals_params[];

#define MESH_SIMPLIFY_NAME "mesh.simplify"
#define MESH_SIMPLIFY_DOC "Fewer triangles by collapsing edges of least quadric error; borders stay exactly"
enum { MESH_SIMPLIFY_FACES, MESH_SIMPLIFY_VERTICES, MESH_SIMPLIFY_ERROR, MESH_SIMPLIFY_METHOD };
enum { MESH_SIMPLIFY_LEVELS, MESH_SIMPLIFY_ROUNDS };
extern const struct recon_param mesh_simplify_params[];

#define MESH_TRANSFORM_NAME "mesh.transform"
#define MESH_TRANSFORM_DOC "Another system of axes, unit or place for a mesh; a reflection reverses the winding of its faces"
#define POINTS_TRANSFORM_NAME "points.transform"
#define POINTS_TRANSFORM_DOC "Another system of axes, unit or place for points and their normals"
enum { TRANSFORM_FROM, TRANSFORM_TO, TRANSFORM_SCALE, TRANSFORM_MATRIX };
enum { AXES_OPENCV, AXES_OPENGL, AXES_OPENNI };
extern const struct recon_param transform_params[];

#define CHECK_SIGN_NAME "mesh.check_sign"
#define CHECK_SIGN_DOC "Which points lie inside a mesh: parity with an exact rule for ties, or winding number for open meshes"
enum { CHECK_SIGN_METHOD, CHECK_SIGN_FILE };
enum { CHECK_SIGN_PARITY, CHECK_SIGN_WINDING };
extern const struct recon_port check_sign_in[], check_sign_out[];
extern const struct recon_param check_sign_params[];

#define POINTS_NORMALS_NAME "points.normals"
#define POINTS_NORMALS_DOC "Normals of points from their nearest neighbours, with an orientation"
enum { POINTS_NORMALS_K, POINTS_NORMALS_ORIENT, POINTS_NORMALS_VIEWPOINT };
enum { POINTS_NORMALS_PROPAGATE, POINTS_NORMALS_TO_VIEWPOINT, POINTS_NORMALS_OUTWARD, POINTS_NORMALS_NONE };
extern const struct recon_port points_one_in[], points_one_out[]; /* points to points */
extern const struct recon_param points_normals_params[];

#define FPS_NAME "points.farthest"
#define FPS_DOC "Farthest point sampling: each point is the farthest from those before it, ties to the lowest number"
enum { FPS_COUNT, FPS_FIRST, FPS_INDEX };
enum { FPS_FIRST_INDEX, FPS_FIRST_CENTROID };
extern const struct recon_param fps_params[];

#define VOXELIZE_NAME "points.voxelize"
#define VOXELIZE_DOC "Occupancy of a grid by points: 1 where occupied, weight is the number of points"
enum { VOXELIZE_MEANING, VOXELIZE_RESOLUTION, VOXELIZE_VOXEL, VOXELIZE_SHAPE, VOXELIZE_ORIGIN, VOXELIZE_FORM };
enum { VOXELIZE_KAOLIN, VOXELIZE_KAOLIN_01, VOXELIZE_GRID };
enum { VOXELIZE_DENSE, VOXELIZE_SPARSE, VOXELIZE_BLOCKS, VOXELIZE_AUTO };
extern const struct recon_port voxelize_in[], voxelize_out[];
extern const struct recon_param voxelize_params[];

KERN_END
#endif
