/* Marching cubes, the last pass: vertices and faces of each row to their exact places. The number of a vertex is that of
 * its row's first, and the marks that stand before it in the row. */
#include "config.h"
#include "kernels/cpu/mc_cpu.h"

#include <math.h>

enum { AHEAD = 8 };

KERN_HD float block_value(const struct mc_job *j, uint32_t x, uint32_t y, uint32_t z)
{
    uint64_t at = blocks_sample(&j->grid, x, y, z);

    return at == BLOCKS_NONE ? j->v->beyond : j->v->tsdf[at];
}

KERN_HD double value_at(const struct mc_job *j, int64_t x, int64_t y, int64_t z)
{
    const struct recon_volume *v = j->v;

    if (j->rule.pad) {
        x--, y--, z--;
        if (x < 0 || y < 0 || z < 0 || x >= v->dim[0] || y >= v->dim[1] || z >= v->dim[2])
            return j->rule.pad_value;
    }
    if (v->side)
        return mc_value(&j->rule, block_value(j, (uint32_t)x, (uint32_t)y, (uint32_t)z));
    return mc_value(&j->rule, v->tsdf[((uint64_t)x * v->dim[1] + (uint64_t)y) * v->dim[2] + (uint64_t)z]);
}

int mc_entry_decided(const struct mc_job *j, const int64_t s[3], int code)
{
    double v[8];

    for (int c = 0; c < 8; c++)
        v[c] = value_at(j, s[0] + (c & 1), s[1] + (c >> 1 & 1), s[2] + (c >> 2));
    return mc_entry(code, v);
}

/* ---- vertices ---- */

struct point {
    double p[3];
    uint8_t rgb[3];
};

static uint64_t sample_at(const struct mc_job *j, const int64_t s[3])
{
    uint32_t at[3];

    for (int a = 0; a < 3; a++) {
        int64_t i = s[a] - j->rule.pad;

        at[a] = (uint32_t)(i < 0 ? 0 : i >= j->v->dim[a] ? j->v->dim[a] - 1 : i);
    }
    return volume_sample(j->v, &j->grid, at[0], at[1], at[2]);
}

static bool unseen(const struct mc_job *j, uint64_t at)
{
    return j->v->weight && (at == BLOCKS_NONE || !(j->v->weight[at] > 0));
}

static void mix(const struct mc_job *j, const int64_t s[3], int axis, double t, uint8_t rgb[3])
{
    int64_t e[3] = { s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2) };
    uint64_t a = sample_at(j, s), b = sample_at(j, e);

    if (unseen(j, a))
        a = b;
    else if (unseen(j, b))
        b = a;
    for (uint64_t c = 0; c < 3; c++) {
        double from = a == BLOCKS_NONE ? 0 : j->v->rgb[3 * a + c], to = b == BLOCKS_NONE ? 0 : j->v->rgb[3 * b + c];

        rgb[c] = (uint8_t)(from * (1 - t) + to * t + 0.5);
    }
}

/* the vertex on the edge from a sample along axis: in samples, padding included */
KERN_HD struct point edge_point(const struct mc_job *j, int64_t x, int64_t y, int64_t z, int axis)
{
    double t = mc_cross(value_at(j, x, y, z), value_at(j, x + (axis == 0), y + (axis == 1), z + (axis == 2)));
    struct point o = { .p = { axis == 0 ? (double)x + t : (double)x, axis == 1 ? (double)y + t : (double)y,
                              axis == 2 ? (double)z + t : (double)z } };

    if (j->mesh->rgb)
        mix(j, (int64_t[3]){ x, y, z }, axis, t, o.rgb);
    return o;
}

static struct point centre_point(const struct mc_job *j, const int64_t s[3], int bits)
{
    struct point o = { .p = { 0 } };
    int n = 0, rgb[3] = { 0 };

    for (int e = 0; e < 12; e++) {
        int corner = mc_edge_corner(e);
        int64_t q[3] = { s[0] + (corner & 1), s[1] + (corner >> 1 & 1), s[2] + (corner >> 2) };
        struct point p;

        if (!(bits >> e & 1))
            continue;
        p = edge_point(j, q[0], q[1], q[2], e >> 2);
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

KERN_HD void put(const struct mc_job *j, uint64_t at, struct point p)
{
    float *to = j->mesh->xyz + 3 * at;

    to[0] = (float)(j->v->origin[0] + j->v->voxel * (p.p[0] - j->rule.pad));
    to[1] = (float)(j->v->origin[1] + j->v->voxel * (p.p[1] - j->rule.pad));
    to[2] = (float)(j->v->origin[2] + j->v->voxel * (p.p[2] - j->rule.pad));
    if (j->mesh->rgb)
        memcpy(j->mesh->rgb + 3 * at, p.rgb, 3);
}

static void put_centre(const struct mc_job *j, uint64_t at, const int64_t s[3])
{
    const uint64_t *rows[4];
    struct mc_four four;

    mc_around(j, j->inside, s[0], s[1], rows);
    mc_four_of(rows, s[2] / 64, ~0ull, &four);
    put(j, at, centre_point(j, s, mc_centre[mc_entry_at(j, s, mc_case(&four, (int)(s[2] % 64)))]));
}

/* The samples that the vertices of a row need were read long ago: they are asked for some rows ahead. */
KERN_HD void fetch_row(const struct mc_job *j, int64_t x, int64_t y)
{
    int64_t row = x * j->n[1] + y, pad = j->rule.pad;
    const uint64_t *m = j->marks + mc_held(j, x, y) * MC_MARKS;
    const struct recon_volume *v = j->v;
    const float *f;

    x -= pad;
    y -= pad;
    if (v->side || j->vertex[row] == j->vertex[row + 1] || x < 0 || y < 0 || x >= v->dim[0] || y >= v->dim[1])
        return;
    f = v->tsdf + ((uint64_t)x * v->dim[1] + (uint64_t)y) * v->dim[2] - pad;
    for (int64_t w = 0; w < j->words; w++, m += MC_MARKS, f += 64) {
        for (uint64_t left = m[0] | m[1] | m[2]; left; left &= left - 1)
            __builtin_prefetch(f + __builtin_ctzll(left));
        for (uint64_t left = m[0]; left; left &= left - 1)
            __builtin_prefetch(f + (uint64_t)v->dim[1] * v->dim[2] + __builtin_ctzll(left));
    }
}

KERN_CLONES
static void emit_vertices(const struct mc_job *j, int64_t x, int64_t y)
{
    int64_t row = x * j->n[1] + y;
    const uint64_t *m = j->marks + mc_held(j, x, y) * MC_MARKS;
    uint64_t at = j->vertex[row];

    for (int64_t w = 0; w < j->words; w++, m += MC_MARKS)
        for (uint64_t left = m[0] | m[1] | m[2] | m[3]; left; left &= left - 1) {
            int bit = __builtin_ctzll(left);
            int64_t z = 64 * w + bit;

            if (m[0] >> bit & 1)
                put(j, at++, edge_point(j, x, y, z, 0));
            if (m[1] >> bit & 1)
                put(j, at++, edge_point(j, x, y, z, 1));
            if (m[2] >> bit & 1)
                put(j, at++, edge_point(j, x, y, z, 2));
            if (m[3] >> bit & 1)
                put_centre(j, at++, (int64_t[3]){ x, y, z });
        }
}

/* ---- faces ---- */

KERN_HD uint32_t count_below(const uint64_t m[MC_MARKS], uint64_t below)
{
    return (uint32_t)(__builtin_popcountll(m[0] & below) + __builtin_popcountll(m[1] & below) +
                      __builtin_popcountll(m[2] & below) + __builtin_popcountll(m[3] & below));
}

/* A row's marks, going along with the word; up: its marks of x a sample ahead; first: number of the word's first vertex */
struct marked {
    const uint64_t *m;
    uint64_t up;
    uint32_t first;
};

/* Numbers of the vertices that the cell at bit z has on row r = dx + 2 dy around it. Edge 4 axis + q: q counts the corner's other
 * coordinates, the lower axis first. */
KERN_HD void number_row(const struct marked *row, int r, int z, uint32_t id[13])
{
    const uint64_t *m = row->m;
    uint32_t at = row->first + count_below(m, (1ull << z) - 1), x = (uint32_t)(m[0] >> z & 1), y = (uint32_t)(m[1] >> z & 1),
             next = at + x + y + (uint32_t)(m[2] >> z & 1) + (uint32_t)(m[3] >> z & 1);
    int dx = r & 1, dy = r >> 1;

    if (!dx) {
        id[dy] = at;
        id[2 + dy] = next;
    }
    if (!dy) {
        id[4 + dx] = at + x;
        id[6 + dx] = next + (uint32_t)(row->up >> z & 1);
    }
    id[8 + r] = at + x + y;
    if (!r)
        id[MC_CENTRE] = next - 1;
}

KERN_HD uint32_t *put_cell(const struct marked row[4], int entry, int z, uint32_t *to)
{
    uint32_t id[13];

    number_row(&row[0], 0, z, id);
    number_row(&row[1], 1, z, id);
    number_row(&row[2], 2, z, id);
    number_row(&row[3], 3, z, id);
    for (int t = 3 * mc_offset[entry]; t < 3 * mc_offset[entry + 1]; t += 3, to += 3) {
        to[0] = id[mc_triangle[t]];
        to[1] = id[mc_triangle[t + 1]];
        to[2] = id[mc_triangle[t + 2]];
    }
    return to;
}

KERN_HD void next_word(struct marked *row, int64_t ahead)
{
    row->first += count_below(row->m, ~0ull);
    row->m += ahead;
}

KERN_CLONES
static void emit_faces(const struct mc_job *j, int64_t x, int64_t y)
{
    const uint64_t *seen = mc_cells(j, x, y), *rows[4];
    uint32_t *to = j->mesh->index + 3 * j->face[x * j->n[1] + y];
    struct mc_ahead a = mc_ahead_of(j, x, y);
    struct marked row[4];
    struct mc_four four;

    mc_around(j, j->inside, x, y, rows);
    for (int r = 0; r < 4; r++) {
        int64_t at = x * j->n[1] + y + (r & 1 ? a.x : 0) + (r & 2 ? a.y : 0);

        row[r].m = j->vertex[at] < j->vertex[at + 1] ? j->marks + (at - j->from * j->n[1]) * j->words * MC_MARKS : j->none;
        row[r].first = (uint32_t)j->vertex[at];
    }
    for (int64_t w = 0; w < j->words; w++) {
        int64_t ahead = w + 1 < j->words ? MC_MARKS : 0;

        mc_four_of(rows, w, seen[w], &four);
        row[0].up = row[0].m[0] >> 1 | row[0].m[ahead] << 63;
        row[1].up = row[1].m[0] >> 1 | row[1].m[ahead] << 63;
        for (uint64_t left = four.crossed; left; left &= left - 1) {
            int z = __builtin_ctzll(left);

            to = put_cell(row, mc_entry_at(j, (int64_t[3]){ x, y, 64 * w + z }, mc_case(&four, z)), z, to);
        }
        next_word(&row[0], ahead);
        next_word(&row[1], ahead);
        next_word(&row[2], ahead);
        next_word(&row[3], ahead);
    }
}

void mc_emit(const struct mc_job *j, int64_t from, int64_t to)
{
#pragma omp parallel for num_threads(j->ctx->threads) schedule(dynamic, 4)
    for (int64_t strip = 0; strip < (to - from) * mc_strips(j); strip++) {
        struct mc_strip s = mc_strip_of(j, from, strip);

        for (int64_t y = s.y; y < s.end; y++) {
            uint64_t row = (uint64_t)(s.x * j->n[1] + y);

            if (y + AHEAD < j->n[1])
                fetch_row(j, s.x, y + AHEAD);
            if (j->vertex[row] < j->vertex[row + 1])
                emit_vertices(j, s.x, y);
            if (j->face[row] < j->face[row + 1])
                emit_faces(j, s.x, y);
        }
    }
}
