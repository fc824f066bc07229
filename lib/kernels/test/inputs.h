/* kernels/test/inputs.h - what tests, agree and the benchmarks make their inputs from: numbers that are the same everywhere, bare meshes. */
#ifndef KERNELS_TEST_INPUTS_H
#define KERNELS_TEST_INPUTS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "kernels/rows.h"

/* 24 bits; the seed goes on. */
static inline uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* -1 to 1 */
static inline float uniform(uint32_t *seed)
{
    return (float)next_random(seed) / (1 << 23) - 1;
}

/* Zeroes; the caller's, free_mesh() ends it. */
static inline struct recon_mesh mesh_of(uint64_t vertices, uint64_t faces)
{
    return (struct recon_mesh){ .vertices = vertices, .faces = faces, .xyz = xcalloc(3 * vertices + 1, 4), .index = xcalloc(3 * faces + 1, 4) };
}

/* Two tips and a rim of n: vertices of many faces. */
static inline struct recon_mesh spindle(uint32_t n)
{
    struct recon_mesh m = mesh_of(n + 2, 2ull * n);

    for (uint32_t i = 0; i < n; i++) {
        double a = 6.283185307179586 * i / n;
        uint32_t k = (i + 1) % n;

        m.xyz[3 * i] = (float)cos(a);
        m.xyz[3 * i + 1] = (float)sin(a);
        m.xyz[3 * i + 2] = 0.01f * (float)(i % 3);
        memcpy(m.index + 6 * (uint64_t)i, (uint32_t[]){ n, i, k, n + 1, k, i }, 24);
    }
    m.xyz[3 * n + 2] = 1;
    m.xyz[3 * n + 5] = -1;
    return m;
}

/* Each array by free(). */
static inline void free_mesh(struct recon_mesh *m)
{
    struct recon_array a[RECON_ARRAYS_MAX];

    for (int n = recon_slot_arrays(RECON_MESH, m, a); n > 0; n--)
        free(*a[n - 1].at);
    *m = (struct recon_mesh){ 0 };
}

#endif
