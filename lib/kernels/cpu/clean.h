/* kernels/cpu/clean.h - what the parts of mesh.clean share. */
#ifndef KERNELS_CPU_CLEAN_H
#define KERNELS_CPU_CLEAN_H

#include "kernels/clean_plan.h"
#include "kernels/cpu/mesh_cpu.h"

struct clean {
    struct recon_ctx *ctx;
    struct recon_mesh m;
    struct clean_counts n;
};

/* A vertex whose faces form several fans becomes one a fan. */
int clean_fans(struct clean *c);

#endif
