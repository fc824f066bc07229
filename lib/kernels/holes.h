/* kernels/holes.h - holes of a mesh, filled: what mesh.fill_holes looks at once the border is known. Host memory, taken through
 * ctx->host; functions give 0, or -1 after fail(). C and C++. */
#ifndef KERNELS_HOLES_H
#define KERNELS_HOLES_H

#include "kernels/mesh_plan.h"

KERN_BEGIN

/* The border of a mesh: half-edges of edges of one face, but for faces with three of those, which have a back and no hole. Its
 * arrays are one block of memory. A vertex of the border is its place among them, by ascending number. */
struct border {
    uint64_t halves, vertices, edges, lone; /* edges: of the mesh, between vertices of the border; lone: faces left out */
    float *xyz;       /* vertices * 3, in the order of their numbers */
    uint32_t *row;    /* vertices + 1: edges from vertex v to a higher one are row[v] .. row[v + 1] - 1 */
    uint32_t *half;   /* halves: number, ascending */
    uint32_t *start;  /* halves: vertex */
    uint32_t *next;   /* halves: the one that follows around the fan at its end, or TOPO_NONE where that is not to be followed */
    uint32_t *higher; /* edges: the other vertex, ascending in a row */
};
uint64_t border_bytes(const struct border *b);   /* of the block, by the four sizes */
void border_lay(struct border *b, void *block);  /* sets the arrays' places in it */
/* The most that a mesh of so many vertices and faces has. */
struct border border_worst(uint64_t vertices, uint64_t faces);

struct holes {
    struct mesh_more more; /* a new corner is like the border's half-edge that begins there; a hole is a run, like the face at its first half-edge */
    uint64_t most;
    uint64_t widest; /* of those that a triangulation was sought for */
    uint64_t filled, too_long, cut, blocked, broken;
};
/* Fills the holes of at most `most` edges of a mesh of so many faces; ends after fail() when the run is cancelled. */
int holes_fill(struct recon_ctx *ctx, const struct border *b, uint64_t mesh_faces, uint64_t most, struct holes *ret);
void holes_tell(struct recon_ctx *ctx, const struct holes *h);
void holes_release(struct recon_ctx *ctx, struct holes *h);
/* Memory that holes_fill takes at most, of which `kept` stays for the result; widest: edges of the longest that is tried. */
uint64_t holes_bytes(const struct border *b, uint64_t mesh_faces, uint64_t widest, uint64_t *kept);
uint64_t holes_most(const struct border *b); /* runs, at most */
/* recon_kernel.selftest on the host or a device */
int golden_fill(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

KERN_END
#endif
