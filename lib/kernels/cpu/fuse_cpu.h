/* kernels/cpu/fuse_cpu.h - TSDF fusion on the CPU: frames are taken in batches, and each block of voxels goes through all
 * frames of a batch while it lies in the first cache. */
#ifndef KERNELS_CPU_FUSE_CPU_H
#define KERNELS_CPU_FUSE_CPU_H

#include "kernels/blocks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/fuse_near.h"

#include <stdbool.h>

/* A block is FUSE_SIDE samples along x and y and FUSE_ALONG along z; a bar is two blocks in x and in y and up to FUSE_BAR in z. */
enum { FUSE_SIDE = 8, FUSE_ALONG = 16, FUSE_BAR = 16, FUSE_BATCH = 16, FUSE_LEVELS = 12 };

/* Depths of a picture's squares of FUSE_TILE << level pixels a side: the most, and the least of the pixels that have one, its sign
 * turned where one has none; of the coarser ones below zero then, whatever it is. */
struct fuse_tiles {
    uint32_t width[FUSE_LEVELS], height[FUSE_LEVELS];
    float *least[FUSE_LEVELS], *most[FUSE_LEVELS];
    int levels;
};

/* A frame of the batch: copies in the batch's memory, or the source's own arrays where they last. */
struct fuse_frame {
    struct fuse_view v;
    const float *depth;   /* metres */
    const uint8_t *color; /* rgb; not read without has_color */
    float *own_depth;     /* room for the copies, or NULL */
    uint8_t *own_color;
    bool has_color;
    float farthest;
    uint32_t height; /* of the picture; its width is v.stride */
    uint64_t depths; /* pixels that have one */
    struct fuse_tiles tiles;
};

struct fuse_target {
    const struct fuse_plan *plan;
    float *tsdf, *weight;
    uint16_t *color; /* running mean in 1/256, or NULL: of each block of FUSE_SIDE x FUSE_SIDE x FUSE_ALONG samples FUSE_COLORS
                        numbers, row after row and in a row channel after channel; the blocks in the volume's order, or four to
                        each of its blocks */
    uint64_t samples; /* that the arrays hold */
    bool fresh;       /* nothing is written yet: the first batch fills every sample */
    const struct blocks *blocks; /* which samples the arrays hold; NULL: all */
};
enum { FUSE_COLORS = 3 * FUSE_SIDE * FUSE_SIDE * FUSE_ALONG };
KERN_HD uint64_t fuse_parts(uint32_t n, uint32_t size)
{
    return ((uint64_t)n + size - 1) / size;
}

/* Of a frame's tiles, and with copy of its pictures. */
uint64_t fuse_frame_bytes(uint64_t width, uint64_t height, bool copy, bool color);
/* Arrays within memory of fuse_frame_bytes(). */
void fuse_frame_place(struct fuse_frame *f, void *memory, uint32_t width, uint32_t height, bool copy, bool color);
/* Copies the pictures, or keeps them as they are where there is no room; finds tiles, farthest, depths. color NULL: none. */
void fuse_frame_take(struct fuse_frame *f, const float *depth, const uint8_t *color, uint32_t width, uint32_t height);

/* What a frame has to say of a block. FREE: every sample stands a truncation or more before a surface. */
struct fuse_sight {
    enum { FUSE_NOTHING, FUSE_LOOK, FUSE_FREE } what;
    int u[2], v[2]; /* first and last pixel that its samples may fall into, where that is known; else none: u[1] < u[0] */
};

/* Of the n blocks of a bar that begins at sample at[3]: what the frame has to say. */
void fuse_sights(const struct fuse_plan *p, const struct fuse_frame *f, const int64_t at[3], int n, struct fuse_sight sight[FUSE_BAR]);

/* Sets the bits of the blocks that hold a sample which rows 2 row and 2 row + 1 of the frame's tiles place within the band, or a neighbour of
 * one, and of a few more; several threads may at once. */
void fuse_near(const struct fuse_plan *p, const struct fuse_frame *f, uint32_t row, const struct blocks *g);

/* Fuses n frames into every block of a bar; scratch: fuse_bar_bytes() of a thread's own. Gives the number of updates. */
uint64_t fuse_bar_bytes(void);
uint64_t fuse_bar(const struct fuse_target *t, const struct fuse_frame *frames, int n, const int64_t at[3], int blocks, void *scratch);

#endif
