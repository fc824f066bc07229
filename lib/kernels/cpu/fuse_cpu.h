/* kernels/cpu/fuse_cpu.h - TSDF fusion on the CPU: frames are taken in batches, and each block of voxels goes through all
 * frames of a batch while it lies in the first cache. */
#ifndef KERNELS_CPU_FUSE_CPU_H
#define KERNELS_CPU_FUSE_CPU_H

#include "kernels/cpu/cpu.h"

#include <stdbool.h>

/* A block is FUSE_SIDE samples along x and y and FUSE_ALONG along z; a bar is up to FUSE_BAR blocks beside each other in z. */
enum { FUSE_SIDE = 8, FUSE_ALONG = 16, FUSE_BAR = 16, FUSE_BATCH = 16, FUSE_LEVELS = 12, FUSE_TILE = 8 };

/* Depths of a picture's squares: the least (0 where a pixel has none) and the most of FUSE_TILE << level pixels a side. */
struct fuse_tiles {
    uint32_t width[FUSE_LEVELS], height[FUSE_LEVELS];
    float *least[FUSE_LEVELS], *most[FUSE_LEVELS];
    int levels;
};

/* A frame of the batch: copies in the batch's memory. */
struct fuse_frame {
    struct fuse_view v;
    float *depth;   /* metres */
    uint8_t *color; /* rgb; not read without has_color */
    bool has_color;
    float farthest;
    uint64_t depths; /* pixels that have one */
    struct fuse_tiles tiles;
};

struct fuse_target {
    const struct fuse_plan *plan;
    float *tsdf, *weight;
    uint16_t *color; /* running mean in 1/256, 3 a voxel, or NULL */
    bool fresh;      /* nothing is written yet: the first batch fills every sample */
};

uint64_t fuse_frame_bytes(uint64_t width, uint64_t height, bool color); /* of a frame's copies */
/* Arrays within memory of fuse_frame_bytes(). */
void fuse_frame_place(struct fuse_frame *f, void *memory, uint32_t width, uint32_t height, bool color);
/* Copies the depths and finds tiles, farthest, depths. */
void fuse_frame_take(struct fuse_frame *f, const float *depth, uint32_t width, uint32_t height);

/* What a frame has to say of a block. FREE: every sample stands a truncation or more before a surface. */
struct fuse_sight {
    enum { FUSE_NOTHING, FUSE_LOOK, FUSE_FREE } what;
    int u[2], v[2]; /* first and last pixel that its samples may fall into, where that is known; else none: u[1] < u[0] */
};

/* Of the n blocks of a bar that begins at sample at[3]: what the frame has to say. */
void fuse_sights(const struct fuse_plan *p, const struct fuse_frame *f, const int64_t at[3], int n, struct fuse_sight sight[FUSE_BAR]);

/* Fuses n frames into every block of a bar. Gives the number of updates. */
uint64_t fuse_bar(const struct fuse_target *t, const struct fuse_frame *frames, int n, const int64_t at[3], int blocks);

#endif
