/* kernels/ref/ref.h - the same kernels in plain serial C, for finding out whose fault a wrong result is. They
 * share the rows, the plans and the marching-cubes table with the others, and no loop. */
#ifndef KERNELS_REF_REF_H
#define KERNELS_REF_REF_H

#include "base/base.h"
#include "kernels/plan.h"
#include "kernels/rows.h"

extern const struct recon_kernel ref_tsdf_fuse, ref_marching_cubes, ref_scene_render, ref_render_preview;

#endif
