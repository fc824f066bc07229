/* kernels/cpu/clean.h - what the parts of mesh.clean share. */
#ifndef KERNELS_CPU_CLEAN_H
#define KERNELS_CPU_CLEAN_H

#include "kernels/cpu/mesh_cpu.h"

struct clean {
    struct recon_ctx *ctx;
    struct recon_mesh m;
    uint64_t merged, degenerate, repeated, non_manifold, split, turned, small, unused;
};

/* A vertex whose faces form several fans becomes one a fan. */
int clean_fans(struct clean *c);

#endif
