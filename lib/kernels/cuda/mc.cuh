/* cuda/mc.cuh - marching cubes on the device: what its two ways share on the host. 0, or -1 after fail(). */
#ifndef KERNELS_CUDA_MC_CUH
#define KERNELS_CUDA_MC_CUH

#include "cuda.cuh"

struct mc_rule;
/* The mesh's arrays once it is counted; refuses one without faces, told from the volume, and one with too many vertices. */
int cuda_mc_take_mesh(struct recon_ctx *ctx, const struct recon_volume *v, const struct mc_rule *rule, uint64_t vertices, uint64_t faces,
                      struct recon_mesh *m);
/* The kernel's run on a volume in blocks, and its scratch memory at most. */
int cuda_mc_blocks(struct recon_ctx *ctx, const struct recon_volume *v, const struct recon_value *params, struct recon_mesh *m,
                   struct recon_cost *cost);
uint64_t cuda_mc_blocks_bytes(const struct recon_volume *v, const struct recon_value *params);

#endif
