/* kernels/cpu/winding.h - the generalised winding number of a mesh about many points, from a tree of its faces (Barill and others 2018,
 * "Fast Winding Numbers for Soups and Clouds"). */
#ifndef KERNELS_CPU_WINDING_H
#define KERNELS_CPU_WINDING_H

#include "kernels/cpu/mesh_cpu.h"

struct winding;
/* Indices are in range. NULL after fail(). */
struct winding *winding_build(struct recon_ctx *ctx, const struct recon_mesh *m);
void winding_free(struct recon_ctx *ctx, struct winding *w);
/* Whether the sum of triangle_winding over all faces, in their order, is above 1/2: the same answer. Far groups of faces count as
 * dipoles; where the bound of the error leaves a doubt groups are made smaller, and at last each face is looked at. */
bool winding_inside(const struct winding *w, const float p[3]);

#endif
