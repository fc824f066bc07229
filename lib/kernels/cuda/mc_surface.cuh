/* cuda/mc_surface.cuh - samples, cells and points of marching cubes on the device: values, cases of a cell, crossings.
 * Arithmetic and order are cpu/marching_cubes.c's.
 *
 * Samples are held as bits, 32 along z in a word; rows of words follow each other along y, then x. */
#ifndef KERNELS_CUDA_MC_SURFACE_CUH
#define KERNELS_CUDA_MC_SURFACE_CUH

#include <cmath>
#include <cstring>
#include "cuda.cuh"
#include "kernels/blocks.h"
#include "kernels/mc.h"

namespace {

#define ALL_LANES 0xffffffffu

/* A word with a surface: the numbers of its first face and vertex; its place as block and thread of one. */
struct entry {
    uint64_t face;
    uint32_t first, block, thread;
};
struct job {
    const float *tsdf, *weight; /* weight NULL: all observed */
    const uint8_t *rgb;
    uint32_t dim[3];
    double origin[3], voxel;
    struct mc_rule rule;
    float least;             /* the least float not below iso */
    uint32_t n[3];           /* samples with padding */
    uint32_t words, plane;   /* of a row; of the rows of one x */
    uint32_t blocks;         /* of words of a plane */
    uint32_t *inside, *seen; /* by word; seen NULL: all observed */
    uint4 *owned;            /* by word: samples that own a vertex along x, y, z and at the centre of their cell */
    uint32_t *cell;          /* by word: cells that the surface passes */
    uint32_t *count;         /* by word: vertices, faces << 15, LISTED */
    uint32_t *first;         /* by word: number of its first vertex */
    uint64_t *totals;        /* by block: vertices, then faces, then words listed; exclusive sums of the whole after */
    uint64_t all_blocks;
    entry *list;
    uint64_t listed;
    float *xyz;
    uint8_t *out_rgb;
    uint32_t *index;
};

/* Of a volume in blocks. */
struct block_job : job {
    struct blocks grid;
    float beyond;
};

job job_of(const struct recon_volume *v, const struct recon_value *params)
{
    job j = {};

    j.rule = mc_rule_of(params[MC_ISO].f, params[MC_INSIDE].i == MC_INSIDE_GE, params[MC_MIN_WEIGHT].f,
                        params[MC_PAD].i != 0);
    j.least = (float)j.rule.iso;
    if ((double)j.least < j.rule.iso)
        j.least = nextafterf(j.least, INFINITY);
    j.tsdf = v->tsdf;
    j.weight = j.rule.min_weight >= 0 ? v->weight : nullptr;
    j.rgb = v->rgb;
    j.voxel = v->voxel;
    memcpy(j.dim, v->dim, sizeof(j.dim));
    memcpy(j.origin, v->origin, sizeof(j.origin));
    for (int a = 0; a < 3; a++)
        j.n[a] = v->dim[a] + 2 * (uint32_t)j.rule.pad;
    j.words = (j.n[2] + 31) / 32;
    return j;
}

void write_to(job &j, const struct recon_mesh *m)
{
    j.xyz = m->xyz;
    j.index = m->index;
    j.out_rgb = m->rgb;
}

/* A word's place: row (x, y), w along z. */
struct place {
    uint32_t x, y, w;
    uint64_t at;
};
struct spot {
    uint32_t x, y, z;
};

__device__ bool source_of(const job &j, int64_t x, int64_t y, int64_t z, uint64_t *at)
{
    x -= j.rule.pad;
    y -= j.rule.pad;
    z -= j.rule.pad;
    if (x < 0 || y < 0 || z < 0 || x >= j.dim[0] || y >= j.dim[1] || z >= j.dim[2])
        return false;
    *at = ((uint64_t)x * j.dim[1] + (uint64_t)y) * j.dim[2] + (uint64_t)z;
    return true;
}

__device__ double value_at(const job &j, int64_t x, int64_t y, int64_t z)
{
    uint64_t at;

    return source_of(j, x, y, z, &at) ? mc_value(&j.rule, j.tsdf[at]) : j.rule.pad_value;
}

__device__ double value_at(const block_job &j, int64_t x, int64_t y, int64_t z)
{
    uint64_t at;

    x -= j.rule.pad;
    y -= j.rule.pad;
    z -= j.rule.pad;
    if (x < 0 || y < 0 || z < 0 || x >= j.dim[0] || y >= j.dim[1] || z >= j.dim[2])
        return j.rule.pad_value;
    at = blocks_sample(&j.grid, (uint32_t)x, (uint32_t)y, (uint32_t)z);
    return mc_value(&j.rule, at == BLOCKS_NONE ? j.beyond : j.tsdf[at]);
}

/* Entry of the table for the cell at p. */
template <typename J> __device__ int entry_of(const J &j, const spot &p, int code)
{
    double v[8];

    if (!mc_ambiguous[code])
        return mc_first[code];
    for (int c = 0; c < 8; c++)
        v[c] = value_at(j, (int64_t)p.x + (c & 1), (int64_t)p.y + (c >> 1 & 1), (int64_t)p.z + (c >> 2));
    return mc_entry(code, v);
}

/* ---- words ---- */

/* Samples of word w that are there. */
__device__ uint32_t there(const job &j, uint32_t w)
{
    uint32_t left = w < j.words ? j.n[2] - 32 * w : 0;

    return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}
__device__ uint32_t next_of(uint32_t word, uint32_t after) /* bit b: that of the sample above */
{
    return word >> 1 | after << 31;
}

/* The eight corners of the cells of a word: bit b of corner[c] is corner c of the cell at sample b. */
struct cells {
    uint32_t corner[8];
};
__device__ cells cells_of(const job &j, const place &p)
{
    bool right = p.x + 1 < j.n[0], down = p.y + 1 < j.n[1], more = p.w + 1 < j.words;
    uint64_t row[4] = { p.at, p.at + (right ? j.plane : 0), p.at + (down ? j.words : 0),
                        p.at + (right ? j.plane : 0) + (down ? j.words : 0) };
    cells c;

    for (int i = 0; i < 4; i++) {
        c.corner[i] = j.inside[row[i]];
        c.corner[i + 4] = next_of(c.corner[i], more ? j.inside[row[i] + 1] : 0);
    }
    return c;
}
__device__ int code_of(const cells &c, uint32_t bit)
{
    int code = 0;

    for (int i = 0; i < 8; i++)
        code |= (int)(c.corner[i] >> bit & 1) << i;
    return code;
}

/* Samples of word w at which the four rows from (x, y) are all observed; none where there are no four rows. */
__device__ uint32_t four_seen(const job &j, int64_t x, int64_t y, int64_t w)
{
    uint64_t at;
    uint32_t all;

    if (x < 0 || y < 0 || w < 0 || x + 1 >= j.n[0] || y + 1 >= j.n[1] || w >= j.words)
        return 0;
    all = there(j, (uint32_t)w);
    if (!j.seen)
        return all;
    at = (uint64_t)x * j.plane + (uint64_t)y * j.words + (uint64_t)w;
    return all & j.seen[at] & j.seen[at + j.plane] & j.seen[at + j.words] & j.seen[at + j.plane + j.words];
}

/* Cells of the column (x, y) whose corners are all observed: those of the word, and those one below each. */
struct column {
    uint32_t here, below;
};
template <typename J> __device__ column column_of(const J &j, const place &p, int dx, int dy)
{
    int64_t x = (int64_t)p.x - dx, y = (int64_t)p.y - dy;
    uint32_t at = four_seen(j, x, y, p.w), after = four_seen(j, x, y, (int64_t)p.w + 1),
             before = four_seen(j, x, y, (int64_t)p.w - 1);
    column c;

    c.here = at & next_of(at, after);
    c.below = at & (at << 1 | before >> 31);
    return c;
}

/* Edges that carry a vertex (a cell whose corners are all observed crosses them), by their lower sample, and cells that
 * the surface passes. */
struct marks {
    uint32_t edge[3], cell;
};
template <typename J> __device__ marks marks_of(const J &j, const place &p)
{
    cells c = cells_of(j, p);
    uint32_t any = 0, all = ~0u;
    marks m = { { 0, 0, 0 }, 0 };

    for (int i = 0; i < 8; i++) {
        any |= c.corner[i];
        all &= c.corner[i];
    }
    if (!(any & ~all)) /* the usual case */
        return m;
    column a = column_of(j, p, 0, 0), l = column_of(j, p, 1, 0), u = column_of(j, p, 0, 1), d = column_of(j, p, 1, 1);

    m.cell = any & ~all & a.here;
    m.edge[0] = (c.corner[0] ^ c.corner[1]) & (a.here | a.below | u.here | u.below);
    m.edge[1] = (c.corner[0] ^ c.corner[2]) & (a.here | a.below | l.here | l.below);
    m.edge[2] = (c.corner[0] ^ c.corner[4]) & (a.here | l.here | u.here | d.here);
    return m;
}

/* Vertices of a word before the one of sample `bit` on `axis` (3: the centre). */
__device__ uint32_t rank_of(const uint4 &o, uint32_t bit, int axis)
{
    uint32_t below = (1u << bit) - 1;

    return (uint32_t)(__popc(o.x & below) + __popc(o.y & below) + __popc(o.z & below) + __popc(o.w & below)) +
           (axis > 0 ? o.x >> bit & 1 : 0) + (axis > 1 ? o.y >> bit & 1 : 0) + (axis > 2 ? o.z >> bit & 1 : 0);
}

/* ---- points ---- */

struct point {
    double p[3];
    uint8_t rgb[3];
};

/* The sample at s or the nearest within the volume, along axis a. */
__device__ uint32_t nearest_along(const job &j, const int64_t s[3], int a)
{
    int64_t i = s[a] - j.rule.pad;

    return (uint32_t)(i < 0 ? 0 : i >= j.dim[a] ? (int64_t)j.dim[a] - 1 : i);
}
__device__ uint64_t nearest_source(const job &j, const int64_t s[3])
{
    return ((uint64_t)nearest_along(j, s, 0) * j.dim[1] + nearest_along(j, s, 1)) * j.dim[2] + nearest_along(j, s, 2);
}
__device__ uint64_t nearest_source(const block_job &j, const int64_t s[3])
{
    return blocks_sample(&j.grid, nearest_along(j, s, 0), nearest_along(j, s, 1), nearest_along(j, s, 2));
}
__device__ bool unseen(const job &j, uint64_t at)
{
    return j.weight && !(j.weight[at] > 0);
}
__device__ bool unseen(const block_job &j, uint64_t at)
{
    return j.weight && (at == BLOCKS_NONE || !(j.weight[at] > 0));
}
__device__ double color_of(const job &j, uint64_t at, int c)
{
    return j.rgb[3 * at + c];
}
__device__ double color_of(const block_job &j, uint64_t at, int c)
{
    return at == BLOCKS_NONE ? 0 : j.rgb[3 * at + c];
}

template <typename J> __device__ void mix(const J &j, const int64_t s[3], int axis, double t, uint8_t rgb[3])
{
    int64_t e[3] = { s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2) };
    uint64_t a = nearest_source(j, s), b = nearest_source(j, e);

    if (unseen(j, a))
        a = b;
    else if (unseen(j, b))
        b = a;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)(color_of(j, a, c) * (1 - t) + color_of(j, b, c) * t + 0.5);
}

template <typename J> __device__ point edge_point(const J &j, const int64_t s[3], int axis)
{
    point o = { { (double)s[0], (double)s[1], (double)s[2] }, { 0, 0, 0 } };
    double t = mc_cross(value_at(j, s[0], s[1], s[2]),
                        value_at(j, s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2)));

    for (int a = 0; a < 3; a++)
        o.p[a] += a == axis ? t : 0;
    if (j.rgb)
        mix(j, s, axis, t, o.rgb);
    return o;
}

template <typename J> __device__ point centre_point(const J &j, const spot &at, int bits)
{
    point o = { { 0, 0, 0 }, { 0, 0, 0 } };
    int n = 0, rgb[3] = { 0, 0, 0 };

    for (int e = 0; e < 12; e++) {
        int corner = mc_edge_corner(e);
        int64_t q[3] = { (int64_t)at.x + (corner & 1), (int64_t)at.y + (corner >> 1 & 1), (int64_t)at.z + (corner >> 2) };

        if (!(bits >> e & 1))
            continue;
        point p = edge_point(j, q, e >> 2);

        n++;
        for (int a = 0; a < 3; a++) {
            o.p[a] += p.p[a];
            rgb[a] += p.rgb[a];
        }
    }
    for (int a = 0; a < 3; a++) {
        o.p[a] /= n;
        o.rgb[a] = (uint8_t)((rgb[a] + n / 2) / n);
    }
    return o;
}

__device__ void put(const job &j, uint64_t at, const point &p)
{
    for (int a = 0; a < 3; a++)
        j.xyz[3 * at + a] = (float)(j.origin[a] + j.voxel * (p.p[a] - j.rule.pad));
    for (int a = 0; a < 3 && j.out_rgb; a++)
        j.out_rgb[3 * at + a] = p.rgb[a];
}

} // namespace

#endif
