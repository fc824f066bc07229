/* kernels/cpu/mc_cpu.h - marching cubes on the CPU: what its passes share. Samples are [x][y][z], padding included; a row
 * is the samples of one x and y, row number x * n[1] + y, and a word 64 of them along z, bit k sample 64 w + k. Bits are held
 * for the rows of a window of x: all there are, or of a volume in blocks some after the other. */
#ifndef KERNELS_CPU_MC_CPU_H
#define KERNELS_CPU_MC_CPU_H

#include "kernels/blocks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/mc.h"

enum { MC_STRIP = 64 };
enum { MC_MARKS = 4 }; /* words of marks for a word of samples: vertices on the x, y, z edge, at the centre of the cell */

struct mc_job {
    struct recon_ctx *ctx;
    const struct recon_volume *v;
    struct mc_rule rule;
    struct blocks grid;           /* of a volume in blocks */
    int64_t n[3], rows, words;    /* samples with padding; rows = n[0] * n[1]; words of a row */
    int64_t from, to, room;       /* the window: planes of samples from <= x < to; at most room */
    uint64_t *inside, *cells;     /* room * n[1] * words + 1: samples inside; cells that are wholly observed, NULL: all are */
    uint64_t *seen;               /* as many: samples that are observed, NULL where weights do not count */
    uint64_t *marks;              /* room * n[1] * words * MC_MARKS; of rows without a vertex not written */
    const uint64_t *none, *whole; /* a row: no cell; every cell; none is MC_MARKS * words long */
    uint64_t *vertex, *face;      /* rows + 1: where each row's begin */
    struct recon_mesh *mesh;
};

/* Four rows around a row of cells, r = dx + 2 dy, their samples at z and at z + 1, and which of the cells a surface crosses;
 * garbage in the samples beyond the row is masked out by `seen`, the cells that count. */
struct mc_four {
    uint64_t at[4], up[4], crossed;
};

/* The next word's lowest bit moves in at the top. rows have one word behind the last of all. */
KERN_HD uint64_t mc_up(const uint64_t *row, int64_t w)
{
    return row[w] >> 1 | row[w + 1] << 63;
}

/* 0 where all samples of the word's cells are alike, without a look at which cells count. */
KERN_HD int mc_four_of(const uint64_t *const row[4], int64_t w, uint64_t seen, struct mc_four *ret)
{
    uint64_t any = 0, all = ~0ull;

#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        ret->at[r] = row[r][w];
        ret->up[r] = mc_up(row[r], w);
        any |= ret->at[r] | ret->up[r];
        all &= ret->at[r] & ret->up[r];
    }
    ret->crossed = any & ~all & seen;
    return any != all;
}

/* Case of the cell at bit z: corner c = dx + 2 dy + 4 dz is bit c. */
KERN_HD int mc_case(const struct mc_four *f, int z)
{
    unsigned code = 0;

#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        code |= (unsigned)(f->at[r] >> z & 1) << r | (unsigned)(f->up[r] >> z & 1) << (4 + r);
    return (int)code;
}

/* How many rows of samples around row (x, y) of cells are ahead in x and in y; the last ones of an axis stand for the next,
 * whose cells do not count. */
struct mc_ahead {
    int64_t x, y;
};
KERN_HD struct mc_ahead mc_ahead_of(const struct mc_job *j, int64_t x, int64_t y)
{
    struct mc_ahead a = { x + 1 < j->n[0] ? j->n[1] : 0, y + 1 < j->n[1] };

    return a;
}
/* Place of a row's bits in the window. */
KERN_HD int64_t mc_held(const struct mc_job *j, int64_t x, int64_t y)
{
    return ((x - j->from) * j->n[1] + y) * j->words;
}
/* Bits of the four rows around row (x, y): r = dx + 2 dy. */
KERN_HD void mc_around(const struct mc_job *j, const uint64_t *bits, int64_t x, int64_t y, const uint64_t *ret[4])
{
    struct mc_ahead a = mc_ahead_of(j, x, y);
    const uint64_t *own = bits + mc_held(j, x, y);

    ret[0] = own;
    ret[1] = own + a.x * j->words;
    ret[2] = own + a.y * j->words;
    ret[3] = own + (a.x + a.y) * j->words;
}

/* Threads take strips, up to MC_STRIP rows of one x, so that a row costs no division. */
struct mc_strip {
    int64_t x, y, end;
};
KERN_HD int64_t mc_strips(const struct mc_job *j) /* of a plane */
{
    return (j->n[1] + MC_STRIP - 1) / MC_STRIP;
}
/* of a run of planes that begins at x */
KERN_HD struct mc_strip mc_strip_of(const struct mc_job *j, int64_t x, int64_t strip)
{
    int64_t each = mc_strips(j), y = strip % each * MC_STRIP;
    struct mc_strip s = { x + strip / each, y, y + MC_STRIP < j->n[1] ? y + MC_STRIP : j->n[1] };

    return s;
}

/* Cells of row (x, y) that count: within the volume and observed. */
KERN_HD const uint64_t *mc_cells(const struct mc_job *j, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x + 1 >= j->n[0] || y + 1 >= j->n[1])
        return j->none;
    return j->cells ? j->cells + mc_held(j, x, y) : j->whole;
}

/* Entry of the table for the cell at s. */
int mc_entry_decided(const struct mc_job *j, const int64_t s[3], int code); /* of an ambiguous case */
KERN_HD int mc_entry_at(const struct mc_job *j, const int64_t s[3], int code)
{
    return mc_ambiguous[code] ? mc_entry_decided(j, s, code) : mc_first[code];
}
void mc_emit(const struct mc_job *j, int64_t from, int64_t to); /* vertices and faces of rows from <= x < to to their places */

#endif
