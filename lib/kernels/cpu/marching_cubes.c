/* Marching cubes in three passes over rows along z, by bits, 64 samples a word; each row is the work of one thread, so
 * that the order of vertices and faces does not depend on the number of threads:
 *   sides    a bit a sample: inside or not; with weights a bit a cell: all of its corners observed or not
 *   count    which of a sample's three edges, and the centre of its cell, carry a vertex, a bit each; vertices and
 *            faces of each row, summed up to where the row's begin. Words whose cells are all alike are passed over
 *   emit     vertices and faces to their exact places (mc_emit.c)
 * Of a volume in blocks the rows are put together from those of its blocks, slab after slab of planes, so that the bits of a slab
 * alone are held: the result is that of the dense volume, byte for byte. */
#include "config.h"
#include "kernels/cpu/mc_cpu.h"

#include <math.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- sides ---- */

/* least float that is not below x, so that f < x and f < least_float(x) are the same for every float f */
static float least_float(double x)
{
    float f = (float)x;

    return f < x ? nextafterf(f, INFINITY) : f;
}

enum { SLAB = 61 };    /* planes of a volume in blocks whose bits are held, and three besides */
enum { FETCH = 1024 }; /* how many samples ahead the volume is asked for */
enum test { BELOW, NOT_BELOW, ABOVE };

static uint64_t few_bits(const float *f, int n, float than, enum test test, unsigned *nans)
{
    uint64_t bits = 0;

    for (int k = 0; k < n; k++) {
        bits |= (uint64_t)(test == BELOW ? f[k] < than : test == ABOVE ? f[k] > than : f[k] >= than) << k;
        *nans |= f[k] != f[k];
    }
    return bits;
}

#ifdef __SSE2__
/* bits of 64 floats */
static inline __attribute__((always_inline)) uint64_t many_bits(const float *f, float than, enum test test, unsigned *nans)
{
    __m128 t = _mm_set1_ps(than), bad = _mm_setzero_ps();
    uint64_t bits = 0;

#pragma GCC unroll 4
    for (int k = 0; k < 64; k += 16) {
        __m128i c[4];

        __builtin_prefetch(f + k + FETCH);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            __m128 v = _mm_loadu_ps(f + k + 4 * i);

            bad = _mm_or_ps(bad, _mm_cmpunord_ps(v, v));
            c[i] = _mm_castps_si128(test == BELOW ? _mm_cmplt_ps(v, t) : test == ABOVE ? _mm_cmpgt_ps(v, t) : _mm_cmpge_ps(v, t));
        }
        c[0] = _mm_packs_epi16(_mm_packs_epi32(c[0], c[1]), _mm_packs_epi32(c[2], c[3]));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(c[0]) << k;
    }
    *nans |= (unsigned)_mm_movemask_ps(bad);
    return bits;
}
#else
static uint64_t many_bits(const float *f, float than, enum test test, unsigned *nans)
{
    return few_bits(f, 64, than, test, nans);
}
#endif

/* Bits of a row of n floats, behind `pad` that are `fill`, with `fill` after them up to words * 64. Gives whether any is not
 * a number. */
static inline __attribute__((always_inline)) unsigned row_bits(const float *f, int64_t n, float than, enum test test, int pad, uint64_t fill,
                                                               int64_t words, uint64_t *to)
{
    uint64_t carry = fill & 1;
    unsigned nans = 0;

    for (int64_t w = 0; w < words; w++) {
        int64_t left = n - 64 * w;
        uint64_t bits = left >= 64 ? many_bits(f + 64 * w, than, test, &nans) : fill;

        if (left > 0 && left < 64)
            bits = few_bits(f + 64 * w, (int)left, than, test, &nans) | fill << left;
        to[w] = pad ? bits << 1 | carry : bits;
        carry = bits >> 63;
    }
    return nans;
}

KERN_CLONES
static unsigned sides_row(const struct mc_job *j, const float *f, uint64_t *inside)
{
    float iso = least_float(j->rule.iso);

    return j->rule.ge ? row_bits(f, j->v->dim[2], iso, NOT_BELOW, j->rule.pad, 0, j->words, inside)
                      : row_bits(f, j->v->dim[2], iso, BELOW, j->rule.pad, 0, j->words, inside);
}

KERN_CLONES
static void seen_row(const struct mc_job *j, const float *weight, uint64_t *seen)
{
    row_bits(weight, j->v->dim[2], (float)j->rule.min_weight, ABOVE, j->rule.pad, ~0ull, j->words, seen);
}

/* bits of a row from bit `at` on: n of them become `bits` */
static void put_bits(uint64_t *row, int64_t at, int n, uint64_t bits)
{
    uint64_t mask = n == 64 ? ~0ull : (1ull << n) - 1;
    int shift = (int)(at & 63);

    row[at >> 6] = (row[at >> 6] & ~(mask << shift)) | bits << shift;
    if (shift + n > 64) {
        uint64_t *next = row + (at >> 6) + 1;

        *next = (*next & ~(mask >> (64 - shift))) | bits >> (64 - shift);
    }
}

static void fill_row(const struct mc_job *j, uint64_t *row, int outside_too, int within)
{
    memset(row, outside_too ? 0xff : 0, (size_t)j->words * 8);
    if (within == outside_too)
        return;
    for (int64_t k = 0; k < j->v->dim[2]; k += 64) {
        int n = j->v->dim[2] - k < 64 ? (int)(j->v->dim[2] - k) : 64;

        put_bits(row, k + j->rule.pad, n, within ? ~0ull >> (64 - n) : 0);
    }
}

/* A row of a volume in blocks: what stands in none, then block after block. */
static uint64_t block_row(const struct mc_job *j, uint32_t x, uint32_t y, uint64_t *inside, uint64_t *seen)
{
    const struct recon_volume *v = j->v;
    const struct blocks *g = &j->grid;
    float iso = least_float(j->rule.iso), least = (float)j->rule.min_weight;
    uint64_t nans = 0, side = v->side;

    fill_row(j, inside, 0, mc_inside(&j->rule, mc_value(&j->rule, v->beyond)));
    if (seen)
        fill_row(j, seen, 1, 0);
    for (uint32_t z = 0; z < g->n[2]; z++) {
        uint64_t at = blocks_sample(g, x, y, z * v->side), left = v->dim[2] - z * side;
        int n = left < side ? (int)left : (int)side;
        unsigned bad = 0, unused = 0;

        if (at == BLOCKS_NONE)
            continue;
        put_bits(inside, (int64_t)(z * side) + j->rule.pad, n, few_bits(v->tsdf + at, n, iso, j->rule.ge ? NOT_BELOW : BELOW, &bad));
        if (seen)
            put_bits(seen, (int64_t)(z * side) + j->rule.pad, n, few_bits(v->weight + at, n, least, ABOVE, &unused));
        for (int k = 0; bad && k < n; k++)
            nans += v->tsdf[at + (uint64_t)k] != v->tsdf[at + (uint64_t)k];
    }
    return nans;
}

/* A row of samples; seen NULL: weights do not count. Gives how many are not a number. */
static uint64_t make_row(const struct mc_job *j, int64_t x, int64_t y, uint64_t *inside, uint64_t *seen)
{
    const struct recon_volume *v = j->v;
    uint64_t at, nans = 0;

    x -= j->rule.pad;
    y -= j->rule.pad;
    if (x < 0 || y < 0 || x >= v->dim[0] || y >= v->dim[1]) {
        memset(inside, 0, (size_t)j->words * 8);
        if (seen)
            memset(seen, 0xff, (size_t)j->words * 8);
        return 0;
    }
    if (v->side)
        return block_row(j, (uint32_t)x, (uint32_t)y, inside, seen);
    at = ((uint64_t)x * v->dim[1] + (uint64_t)y) * v->dim[2];
    if (sides_row(j, v->tsdf + at, inside))
        for (uint64_t k = at; k < at + v->dim[2]; k++)
            nans += v->tsdf[k] != v->tsdf[k];
    if (seen)
        seen_row(j, v->weight + at, seen);
    return nans;
}

/* Bits of the window's samples; padding is observed. Gives how many samples of the planes first <= x < end are not a number. */
static uint64_t make_sides(struct mc_job *j, int64_t first, int64_t end)
{
    uint64_t nans = 0;

#pragma omp parallel for num_threads(j->ctx->threads) schedule(static) reduction(+ : nans)
    for (int64_t strip = 0; strip < (j->to - j->from) * mc_strips(j); strip++) {
        struct mc_strip s = mc_strip_of(j, j->from, strip);

        for (int64_t y = s.y; y < s.end; y++) {
            int64_t at = mc_held(j, s.x, y);
            uint64_t n = make_row(j, s.x, y, j->inside + at, j->seen ? j->seen + at : NULL);

            nans += s.x >= first && s.x < end ? n : 0;
        }
    }
    return nans;
}

/* which cells are observed, from which samples are; of the window's last plane only where it is the volume's */
static void make_cells(struct mc_job *j)
{
    int64_t planes = j->to - j->from - (j->to < j->n[0]);

#pragma omp parallel for num_threads(j->ctx->threads) schedule(static)
    for (int64_t i = 0; i < planes * j->n[1]; i++) {
        const uint64_t *rows[4];

        mc_around(j, j->seen, j->from + i / j->n[1], i % j->n[1], rows);
        for (int64_t w = 0; w < j->words; w++) {
            uint64_t all = j->whole[w];

            for (int r = 0; r < 4; r++)
                all &= rows[r][w] & mc_up(rows[r], w);
            j->cells[i * j->words + w] = all;
        }
    }
}

/* ---- count ---- */

/* Of the crossed cells of a word: their faces; *centre: those with a vertex at their centre. */
KERN_HD uint64_t count_cells(const struct mc_job *j, int64_t x, int64_t y, int64_t w, const struct mc_four *four, uint64_t *centre)
{
    uint64_t faces = 0;

    *centre = 0;
    for (uint64_t left = four->crossed; left; left &= left - 1) {
        int z = __builtin_ctzll(left), entry = mc_entry_at(j, (int64_t[3]){ x, y, 64 * w + z }, mc_case(four, z));

        faces += (uint64_t)(mc_offset[entry + 1] - mc_offset[entry]);
        *centre |= (uint64_t)(mc_centre[entry] != 0) << z;
    }
    return faces;
}

/* 0 where all samples of four rows are alike */
KERN_HD uint64_t row_differs(const struct mc_job *j, const uint64_t *const rows[4])
{
    const uint64_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    uint64_t any = 0;

    for (int64_t w = 0; w < j->words; w++)
        any |= (a[w] ^ b[w]) | (a[w] ^ c[w]) | (a[w] ^ d[w]) | ((a[w] ^ mc_up(a, w)) & j->whole[w]);
    return any;
}

/* An edge carries a vertex when its ends lie on different sides and one of the four cells around it counts. The row's marks;
 * ret: how many vertices and faces. */
KERN_CLONES
static void mark_row(struct mc_job *j, int64_t x, int64_t y, uint64_t ret[2])
{
    const uint64_t *own = mc_cells(j, x, y), *left = mc_cells(j, x - 1, y), *below = mc_cells(j, x, y - 1),
                   *both = mc_cells(j, x - 1, y - 1), *rows[4];
    uint64_t vertices = 0, faces = 0, carry_x = 0, carry_y = 0, *m = j->marks + mc_held(j, x, y) * MC_MARKS;
    struct mc_four f;

    mc_around(j, j->inside, x, y, rows);
    ret[0] = ret[1] = 0;
    if (!row_differs(j, rows))
        return;
    for (int64_t w = 0; w < j->words; w++, m += MC_MARKS) {
        uint64_t cells_x = own[w] | below[w], cells_y = own[w] | left[w];

        m[0] = m[1] = m[2] = m[3] = 0;
        if (mc_four_of(rows, w, own[w], &f)) {
            m[0] = (f.at[0] ^ f.at[1]) & (cells_x | cells_x << 1 | carry_x);
            m[1] = (f.at[0] ^ f.at[2]) & (cells_y | cells_y << 1 | carry_y);
            m[2] = (f.at[0] ^ f.up[0]) & (own[w] | left[w] | below[w] | both[w]);
            faces += count_cells(j, x, y, w, &f, &m[3]);
            for (int i = 0; i < MC_MARKS; i++)
                vertices += (uint64_t)__builtin_popcountll(m[i]);
        }
        carry_x = cells_x >> 63;
        carry_y = cells_y >> 63;
    }
    ret[0] = vertices;
    ret[1] = faces;
}

/* Marks of the rows from <= x < to; known: their counts are, and stand summed up. */
static void mark_rows(struct mc_job *j, int64_t from, int64_t to, bool known)
{
#pragma omp parallel for num_threads(j->ctx->threads) schedule(dynamic, 4)
    for (int64_t strip = 0; strip < (to - from) * mc_strips(j); strip++) {
        struct mc_strip s = mc_strip_of(j, from, strip);

        for (int64_t y = s.y; y < s.end; y++) {
            int64_t row = s.x * j->n[1] + y;
            uint64_t n[2];

            mark_row(j, s.x, y, n);
            if (!known) {
                j->vertex[row + 1] = n[0];
                j->face[row + 1] = n[1];
            }
        }
    }
}

static void sum_up(struct mc_job *j)
{
    j->vertex[0] = j->face[0] = 0;
    for (int64_t row = 0; row < j->rows; row++) {
        j->vertex[row + 1] += j->vertex[row];
        j->face[row + 1] += j->face[row];
    }
}

/* ---- the kernel ---- */

static struct mc_job job_of(const struct recon_volume *v, const struct recon_value *params)
{
    struct mc_job j = { .v = v };

    j.rule = mc_rule_of(params[MC_ISO].f, params[MC_INSIDE].i == MC_INSIDE_GE, params[MC_MIN_WEIGHT].f,
                        params[MC_PAD].i != 0);
    for (int a = 0; a < 3; a++)
        j.n[a] = (int64_t)v->dim[a] + 2 * j.rule.pad;
    j.rows = j.n[0] * j.n[1];
    j.words = (j.n[2] + 63) / 64;
    j.room = v->side && j.n[0] > SLAB + 3 ? SLAB + 3 : j.n[0];
    return j;
}

/* words of the bits, with weights or without, and of the two rows of cells */
static uint64_t scratch_words(const struct mc_job *j, bool weights)
{
    uint64_t n = (uint64_t)j->room * (uint64_t)j->n[1] * (uint64_t)j->words;

    return (weights ? 3 : 1) * (n + 1) + n * MC_MARKS + (MC_MARKS + 1) * (uint64_t)j->words;
}

/* One block for all bits, which the caller frees. */
static uint64_t *take(struct mc_job *j)
{
    bool weights = j->v->weight && j->rule.min_weight >= 0;
    uint64_t n = (uint64_t)j->room * (uint64_t)j->n[1] * (uint64_t)j->words, *block = cpu_take_large(j->ctx, scratch_words(j, weights) * 8), *p = block;

    j->vertex = block ? j->ctx->host->alloc(j->ctx, ((uint64_t)j->rows + 1) * 16) : NULL;
    if (!j->vertex)
        return block;
    j->face = j->vertex + j->rows + 1;
    j->inside = p;
    p += n;
    *p++ = 0;
    if (weights) {
        j->seen = p;
        p += n;
        *p++ = 0;
        j->cells = p;
        p += n + 1;
    }
    j->marks = p;
    p += n * MC_MARKS;
    j->none = memset(p, 0, MC_MARKS * (size_t)j->words * 8);
    p += MC_MARKS * j->words;
    j->whole = p;
    for (int64_t w = 0; w < j->words; w++)
        p[w] = j->n[2] - 1 - 64 * w >= 64 ? ~0ull : (1ull << (j->n[2] - 1 - 64 * w)) - 1;
    return block;
}

static int take_mesh(struct mc_job *j)
{
    struct recon_ctx *ctx = j->ctx;
    struct recon_mesh *m = j->mesh;

    m->vertices = j->vertex[j->rows];
    m->faces = j->face[j->rows];
    if (!m->faces)
        return mc_refuse_empty(ctx, j->v, &j->rule);
    if (m->vertices > UINT32_MAX)
        return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "mesh",
                               "%llu vertices are more than 32-bit indices hold",
                               (unsigned long long)m->vertices);
    if (!(m->xyz = cpu_take_large(ctx, m->vertices * 12)) || !(m->index = cpu_take_large(ctx, m->faces * 12)))
        return -1;
    return j->v->rgb && !(m->rgb = ctx->host->alloc(ctx, m->vertices * 3)) ? -1 : 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_volume *v = in ? in[0] : NULL;

    (void)ctx;
    if (v) {
        struct mc_job j = job_of(v, params);
        uint64_t bytes = scratch_words(&j, j.rule.min_weight >= 0) * 8;

        mc_bound(v, 0, cost);
        cost->host_bytes += bytes + blocks_bytes(v->dim, v->side);
        cost->moved_bytes += 2 * bytes;
    }
    return 0;
}

/* All rows in one go; or of a volume in blocks slab after slab, once to count and once to emit. */
static int each_slab(struct mc_job *j, uint64_t *nans)
{
    bool whole = j->room == j->n[0];
    int64_t slab = whole ? j->n[0] : SLAB;

    for (int turn = 0; turn < 2; turn++) {
        for (int64_t x = 0; x < j->n[0]; x += slab) {
            int64_t end = x + slab < j->n[0] ? x + slab : j->n[0];

            if (!whole || turn == 0) { /* a plane before; two after, since faces need the marks of the plane ahead */
                j->from = x ? x - 1 : 0;
                j->to = end + 2 < j->n[0] ? end + 2 : j->n[0];
                *nans += make_sides(j, turn ? 0 : x, turn ? 0 : end);
                if (j->seen)
                    make_cells(j);
            }
            if (turn == 0)
                mark_rows(j, x, end, false);
            else if (!whole)
                mark_rows(j, x, end < j->n[0] ? end + 1 : end, true);
            if (turn)
                mc_emit(j, x, end);
        }
        if (turn == 0) {
            sum_up(j);
            if (take_mesh(j))
                return -1;
        }
    }
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct mc_job j = job_of(in[0], params);
    uint64_t *block, nans = 0;
    int rc = -1;

    j.ctx = ctx;
    j.mesh = out[0];
    if (blocks_of_volume(ctx, j.v, &j.grid))
        return -1;
    block = take(&j);
    if (j.vertex)
        rc = each_slab(&j, &nans);
    if (rc == 0 && nans)
        ctx->host->log(ctx, RECON_WARN, NULL, "volume", "%llu samples are not a number and count as outside",
                       (unsigned long long)nans);
    if (rc == 0) {
        mc_cost(j.v, j.mesh, 0, cost);
        cost->host_bytes += scratch_words(&j, j.seen) * 8 + ((uint64_t)j.rows + 1) * 16 + blocks_bytes(j.v->dim, j.v->side);
    }
    ctx->host->free(ctx, block);
    ctx->host->free(ctx, j.vertex);
    blocks_release(ctx, &j.grid);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_marching_cubes(ctx, &cpu_marching_cubes, NULL);
}

const struct recon_kernel cpu_marching_cubes = { RECON_KERNEL_ABI, MC_NAME, MC_DOC, mc_in, mc_out, mc_params,
    bound, run, selftest, mc_shape };
