/* Marching cubes in three passes over rows along z, each row the work of one thread, so that the order of
 * vertices and faces does not depend on the number of threads: sides   a byte a sample: inside or not,
 * observed or not cells   a byte a cell: its case, 0 where a corner is unobserved count   a byte a sample:
 * which of its three edges (and the centre of its cell) carry a vertex; vertices and faces of each row,
 * summed up to where the row's begin emit    vertices and faces to their exact places; the number of a vertex
 * is found by counting along with the four rows around a cell. */
#include "config.h"
#include "kernels/cpu/cpu.h"
#include "kernels/mc.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { OBSERVED = 2 };

struct job {
    struct recon_ctx *ctx;
    const struct recon_volume *v;
    struct mc_rule rule;
    int64_t n[3], rows;       /* samples with padding; rows = n[0] * n[1] */
    uint8_t *side, *code;     /* side becomes flags after the cells are known */
    uint64_t *vertex, *face;  /* rows + 1: where each row's begin */
    uint64_t nans;
    struct recon_mesh *mesh;
};

static inline double value_at(const struct job *j, int64_t x, int64_t y, int64_t z)
{
    const struct recon_volume *v = j->v;

    if (!j->rule.pad)
        return mc_value(&j->rule, v->tsdf[((uint64_t)x * v->dim[1] + (uint64_t)y) * v->dim[2] + (uint64_t)z]);
    x -= j->rule.pad;
    y -= j->rule.pad;
    z -= j->rule.pad;
    if (x < 0 || y < 0 || z < 0 || x >= v->dim[0] || y >= v->dim[1] || z >= v->dim[2])
        return j->rule.pad_value;
    return mc_value(&j->rule, v->tsdf[((uint64_t)x * v->dim[1] + (uint64_t)y) * v->dim[2] + (uint64_t)z]);
}

/* ---- sides ---- */

/* least float that is not below x, so that f < x and f < least_float(x) are the same for every float f */
static float least_float(double x)
{
    float f = (float)x;

    return f < x ? nextafterf(f, INFINITY) : f;
}

KERN_CLONES
static uint64_t sides_row(const struct mc_rule *r, const float *f, const float *w, int64_t n, uint8_t *side)
{
    float iso = least_float(r->iso), least = (float)r->min_weight;
    uint64_t nans = 0;
    unsigned bad = 0;

    if (r->ge)
        for (int64_t k = 0; k < n; k++) {
            side[k] = (uint8_t)((f[k] >= iso) | OBSERVED);
            bad |= f[k] != f[k];
        }
    else
        for (int64_t k = 0; k < n; k++) {
            side[k] = (uint8_t)((f[k] < iso) | OBSERVED);
            bad |= f[k] != f[k];
        }
    for (int64_t k = 0; bad && k < n; k++)
        nans += f[k] != f[k];
    if (w && r->min_weight >= 0)
        for (int64_t k = 0; k < n; k++)
            side[k] &= (uint8_t)(w[k] > least ? 3 : 1);
    return nans;
}

static void make_sides(struct job *j)
{
    const struct recon_volume *v = j->v;
    int pad = j->rule.pad;
    uint64_t nans = 0;

#pragma omp parallel for num_threads(j->ctx->threads) schedule(static) reduction(+ : nans)
    for (int64_t row = 0; row < j->rows; row++) {
        int64_t x = row / j->n[1] - pad, y = row % j->n[1] - pad;
        uint8_t *s = j->side + row * j->n[2];

        if (pad)
            memset(s, OBSERVED, (size_t)j->n[2]);
        if (x >= 0 && y >= 0 && x < v->dim[0] && y < v->dim[1]) {
            uint64_t at = ((uint64_t)x * v->dim[1] + (uint64_t)y) * v->dim[2];

            nans += sides_row(&j->rule, v->tsdf + at, v->weight ? v->weight + at : NULL, v->dim[2], s + pad);
        }
    }
    j->nans = nans;
}

/* ---- cells ---- */

/* Bytes are taken 32 at a time as words: a shift moves bits across bytes, but only bits that stay in theirs are kept. */
typedef uint64_t wide __attribute__((vector_size(32)));
enum { WIDE = 32 };
#define ONES 0x0101010101010101ull
/* from one group of the n bytes to the next; the last may begin inside the one before it */
static inline int64_t step(int64_t k, int64_t n)
{
    return n - k >= 2 * WIDE || n - k == WIDE ? WIDE : n - k - WIDE;
}
#define TAKE(v, from) memcpy(&(v), from, WIDE)

static uint8_t cell_code(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    unsigned all = a[0] & a[1] & b[0] & b[1] & c[0] & c[1] & d[0] & d[1];
    unsigned bits = (a[0] & 1u) | (b[0] & 1u) << 1 | (c[0] & 1u) << 2 | (d[0] & 1u) << 3 | (a[1] & 1u) << 4 |
                    (b[1] & 1u) << 5 | (c[1] & 1u) << 6 | (d[1] & 1u) << 7;

    return (uint8_t)(all & OBSERVED ? bits : 0);
}

KERN_CLONES
static void cells_row(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, int64_t n,
                      uint8_t *code)
{
    int64_t k = 0;

    for (; k + WIDE <= n; k += step(k, n)) { /* a: x, y; b: x + 1, y; c: x, y + 1; d: x + 1, y + 1 */
        wide a0, b0, c0, d0, a1, b1, c1, d1, seen, bits;

        TAKE(a0, a + k), TAKE(b0, b + k), TAKE(c0, c + k), TAKE(d0, d + k);
        TAKE(a1, a + k + 1), TAKE(b1, b + k + 1), TAKE(c1, c + k + 1), TAKE(d1, d + k + 1);
        seen = (a0 & b0 & c0 & d0 & a1 & b1 & c1 & d1) >> 1 & ONES;
        bits = (a0 & ONES) | (b0 & ONES) << 1 | (c0 & ONES) << 2 | (d0 & ONES) << 3 | (a1 & ONES) << 4 |
               (b1 & ONES) << 5 | (c1 & ONES) << 6 | (d1 & ONES) << 7;
        bits &= (seen << 8) - seen; /* 255 where seen */
        memcpy(code + k, &bits, WIDE);
    }
    for (; k < n; k++)
        code[k] = cell_code(a + k, b + k, c + k, d + k);
}

static void make_cells(struct job *j)
{
    int64_t nz = j->n[2], down = j->n[1] * nz;

#pragma omp parallel for num_threads(j->ctx->threads) schedule(static)
    for (int64_t row = 0; row < j->rows; row++) {
        const uint8_t *s = j->side + row * nz;
        uint8_t *code = j->code + row * nz;

        if (row / j->n[1] + 1 < j->n[0] && row % j->n[1] + 1 < j->n[1]) {
            cells_row(s, s + down, s + nz, s + down + nz, nz - 1, code);
            code[nz - 1] = 0;
        } else {
            memset(code, 0, (size_t)nz);
        }
    }
}

/* ---- count ---- */

/* Flags of a row of samples from the codes of the four rows of cells around it: a its own, b below in y, c
 * below in x, d below in both. An edge carries a vertex when a cell whose corners are all observed crosses
 * it. */
static uint8_t sample_flags(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, int64_t k)
{
    unsigned za = k ? a[k - 1] : 0, zb = k ? b[k - 1] : 0, zc = k ? c[k - 1] : 0;
    unsigned x = (a[k] ^ a[k] >> 1) | (b[k] >> 2 ^ b[k] >> 3) | (za >> 4 ^ za >> 5) | (zb >> 6 ^ zb >> 7);
    unsigned y = (a[k] ^ a[k] >> 2) | (c[k] >> 1 ^ c[k] >> 3) | (za >> 4 ^ za >> 6) | (zc >> 5 ^ zc >> 7);
    unsigned z = (a[k] ^ a[k] >> 4) | (c[k] >> 1 ^ c[k] >> 5) | (b[k] >> 2 ^ b[k] >> 6) | (d[k] >> 3 ^ d[k] >> 7);

    return (uint8_t)((x & 1) | (y & 1) << 1 | (z & 1) << 2);
}

/* Gives whether any is set, or a cell of a has a face: two of its bits beside each other differ. */
KERN_CLONES
static int flags_row(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, int64_t n,
                     uint8_t *flags)
{
    wide any = { 0 };
    int64_t k = 1;
    uint8_t some = flags[0] = sample_flags(a, b, c, d, 0);

    some |= (uint8_t)(a[0] + 1) > 1;

    for (; k + WIDE <= n; k += step(k, n)) {
        wide a0, b0, c0, d0, za, zb, zc, x, y, z;

        TAKE(a0, a + k), TAKE(b0, b + k), TAKE(c0, c + k), TAKE(d0, d + k);
        TAKE(za, a + k - 1), TAKE(zb, b + k - 1), TAKE(zc, c + k - 1);
        x = (a0 ^ a0 >> 1) | (b0 >> 2 ^ b0 >> 3) | (za >> 4 ^ za >> 5) | (zb >> 6 ^ zb >> 7);
        y = (a0 ^ a0 >> 2) | (c0 >> 1 ^ c0 >> 3) | (za >> 4 ^ za >> 6) | (zc >> 5 ^ zc >> 7);
        z = (a0 ^ a0 >> 4) | (c0 >> 1 ^ c0 >> 5) | (b0 >> 2 ^ b0 >> 6) | (d0 >> 3 ^ d0 >> 7);
        x = (x & ONES) | (y & ONES) << 1 | (z & ONES) << 2;
        any |= x | ((a0 ^ a0 >> 1) & 0x7f * ONES);
        memcpy(flags + k, &x, WIDE);
    }
    for (; k < n; k++) {
        flags[k] = sample_flags(a, b, c, d, k);
        some |= flags[k] | ((uint8_t)(a[k] + 1) > 1);
    }
    return some || any[0] || any[1] || any[2] || any[3];
}

static void corner_values(const struct job *j, int64_t row, int64_t k, double v[8])
{
    int64_t x = row / j->n[1], y = row % j->n[1];

    for (int c = 0; c < 8; c++)
        v[c] = value_at(j, x + (c & 1), y + (c >> 1 & 1), k + (c >> 2));
}

static int entry_of(const struct job *j, int64_t row, int64_t k, int code)
{
    double v[8];

    if (!mc_ambiguous[code])
        return mc_first[code];
    corner_values(j, row, k, v);
    return mc_entry(code, v);
}

/* eight bytes of p from k on, 0 beyond n */
static uint64_t eight(const uint8_t *p, int64_t k, int64_t n)
{
    uint64_t v = 0;

    memcpy(&v, p + k, n - k < 8 ? (size_t)(n - k) : 8);
    return v;
}

KERN_CLONES
static void count_row(struct job *j, int64_t row, const uint8_t *zeros)
{
    int64_t nz = j->n[2], down = j->n[1] * nz;
    const uint8_t *a = j->code + row * nz, *b = row % j->n[1] ? a - nz : zeros,
                  *c = row >= j->n[1] ? a - down : zeros;
    const uint8_t *d = row % j->n[1] && row >= j->n[1] ? a - down - nz : zeros;
    uint8_t *flags = j->side + row * nz;
    uint64_t vertices = 0, faces = 0;

    j->vertex[row + 1] = j->face[row + 1] = 0;
    if (!flags_row(a, b, c, d, nz, flags))
        return;
    for (int64_t k = 0; k < nz; k++) {
        if (!(k & 7) && !eight(a, k, nz)) {
            k += 7;
            continue;
        }
        if (a[k] && a[k] != 255) {
            int entry = entry_of(j, row, k, a[k]);

            faces += (uint64_t)(mc_offset[entry + 1] - mc_offset[entry]);
            flags[k] |= (uint8_t)(mc_centre[entry] ? 8 : 0);
        }
    }
    for (int64_t k = 0; k < nz; k += 8)
        vertices += (uint64_t)__builtin_popcountll(eight(flags, k, nz));
    j->vertex[row + 1] = vertices;
    j->face[row + 1] = faces;
}

static void count(struct job *j, const uint8_t *zeros)
{
#pragma omp parallel for num_threads(j->ctx->threads) schedule(dynamic, 256)
    for (int64_t row = 0; row < j->rows; row++)
        count_row(j, row, zeros);
    j->vertex[0] = j->face[0] = 0;
    for (int64_t row = 0; row < j->rows; row++) {
        j->vertex[row + 1] += j->vertex[row];
        j->face[row + 1] += j->face[row];
    }
}

/* ---- emit ---- */

struct point {
    double p[3];
    uint8_t rgb[3];
};

static uint64_t sample_at(const struct job *j, const int64_t s[3])
{
    uint64_t at = 0;

    for (int a = 0; a < 3; a++) {
        int64_t i = s[a] - j->rule.pad;

        i = i < 0 ? 0 : i >= j->v->dim[a] ? j->v->dim[a] - 1 : i;
        at = at * j->v->dim[a] + (uint64_t)i;
    }
    return at;
}

static void mix(const struct job *j, const int64_t s[3], int axis, double t, uint8_t rgb[3])
{
    int64_t e[3] = { s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2) };
    uint64_t a = sample_at(j, s), b = sample_at(j, e);

    if (j->v->weight && !(j->v->weight[a] > 0))
        a = b;
    else if (j->v->weight && !(j->v->weight[b] > 0))
        b = a;
    for (int c = 0; c < 3; c++)
        rgb[c] =
            (uint8_t)(j->v->rgb[3 * a + (uint64_t)c] * (1 - t) + j->v->rgb[3 * b + (uint64_t)c] * t + 0.5);
}

/* the vertex on the edge from sample s along axis: in samples, padding included */
static struct point edge_point(const struct job *j, const int64_t s[3], int axis)
{
    struct point o = { .p = { (double)s[0], (double)s[1], (double)s[2] } };
    double t = mc_cross(value_at(j, s[0], s[1], s[2]),
                        value_at(j, s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2)));

    o.p[axis] += t;
    if (j->mesh->rgb)
        mix(j, s, axis, t, o.rgb);
    return o;
}

static struct point centre_point(const struct job *j, const int64_t s[3], int bits)
{
    struct point o = { .p = { 0 } };
    int n = 0, rgb[3] = { 0 };

    for (int e = 0; e < 12; e++) {
        int corner = mc_edge_corner(e);
        int64_t q[3] = { s[0] + (corner & 1), s[1] + (corner >> 1 & 1), s[2] + (corner >> 2) };
        struct point p;

        if (!(bits >> e & 1))
            continue;
        p = edge_point(j, q, e >> 2);
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

static void put(const struct job *j, uint64_t at, const struct point *p)
{
    for (int a = 0; a < 3; a++)
        j->mesh->xyz[3 * at + (uint64_t)a] = (float)(j->v->origin[a] + j->v->voxel * (p->p[a] - j->rule.pad));
    if (j->mesh->rgb)
        memcpy(j->mesh->rgb + 3 * at, p->rgb, 3);
}

KERN_CLONES
static void emit_vertices(const struct job *j, int64_t row)
{
    const uint8_t *flags = j->side + row * j->n[2];
    uint64_t at = j->vertex[row];

    if (at == j->vertex[row + 1])
        return;
    for (int64_t k = 0; k < j->n[2]; k++) {
        int64_t s[3] = { row / j->n[1], row % j->n[1], k };
        struct point p;

        if (!(k & 7) && !eight(flags, k, j->n[2])) {
            k += 7;
            continue;
        }
        for (int axis = 0; axis < 3; axis++)
            if (flags[k] >> axis & 1) {
                p = edge_point(j, s, axis);
                put(j, at++, &p);
            }
        if (flags[k] & 8) {
            p = centre_point(j, s, mc_centre[entry_of(j, row, k, j->code[row * j->n[2] + k])]);
            put(j, at++, &p);
        }
    }
}

static void cell_faces(const struct job *j, const uint8_t *const flags[4], const uint64_t base[4], int64_t k,
                       int entry, uint32_t *to)
{
    uint32_t id[13];

    for (int e = 0; e < 12; e++) {
        int corner = mc_edge_corner(e), r = corner & 3, ahead = corner >> 2, axis = e >> 2;
        uint64_t v = base[r] + (ahead ? (uint64_t)__builtin_popcount(flags[r][k]) : 0);

        id[e] = (uint32_t)(v + (uint64_t)__builtin_popcount(flags[r][k + ahead] & ((1u << axis) - 1)));
    }
    id[MC_CENTRE] = (uint32_t)(base[0] + (uint64_t)__builtin_popcount(flags[0][k] & 7u));
    for (int t = 3 * mc_offset[entry]; t < 3 * mc_offset[entry + 1]; t++)
        *to++ = id[mc_triangle[t]];
    (void)j;
}

KERN_CLONES
static void emit_faces(const struct job *j, int64_t row)
{
    int64_t nz = j->n[2], at[4] = { row, row + j->n[1], row + 1, row + j->n[1] + 1 };
    const uint8_t *code = j->code + row * nz, *flags[4];
    uint32_t *to = j->mesh->index + 3 * j->face[row];
    uint64_t base[4];

    if (j->face[row] == j->face[row + 1])
        return;
    for (int r = 0; r < 4; r++) {
        flags[r] = j->side + at[r] * nz;
        base[r] = j->vertex[at[r]];
    }
    for (int64_t k = 0; k < nz; k++) {
        if (!(k & 7) && nz - k >= 8 && !eight(code, k, nz)) {
            for (int r = 0; r < 4; r++)
                base[r] += (uint64_t)__builtin_popcountll(eight(flags[r], k, nz));
            k += 7;
            continue;
        }
        if (code[k] && code[k] != 255) {
            int entry = entry_of(j, row, k, code[k]);

            cell_faces(j, flags, base, k, entry, to);
            to += 3 * (mc_offset[entry + 1] - mc_offset[entry]);
        }
        for (int r = 0; r < 4; r++)
            base[r] += (uint64_t)__builtin_popcount(flags[r][k]);
    }
}

static void emit(const struct job *j)
{
#pragma omp parallel for num_threads(j->ctx->threads) schedule(dynamic, 256)
    for (int64_t row = 0; row < j->rows; row++) {
        emit_vertices(j, row);
        emit_faces(j, row);
    }
}

/* ---- the kernel ---- */

/* Pages of two megabytes where the system gives them: each page of four kilobytes costs a fault at its first use. */
static void large_pages(void *p, uint64_t n)
{
    uintptr_t page = 4096, at = ((uintptr_t)p + page - 1) & ~(page - 1);

    if (n >= 8u << 20)
        (void)madvise((void *)at, n - page, MADV_HUGEPAGE);
}

static int take(struct job *j, uint8_t **zeros)
{
    struct recon_ctx *ctx = j->ctx;
    uint64_t n = (uint64_t)j->rows * (uint64_t)j->n[2];

    if (!(j->side = ctx->host->alloc(ctx, n)) || !(j->code = ctx->host->alloc(ctx, n)) ||
        !(j->vertex = ctx->host->alloc(ctx, ((uint64_t)j->rows + 1) * 16)) ||
        !(*zeros = ctx->host->alloc(ctx, (uint64_t)j->n[2])))
        return -1;
    large_pages(j->side, n);
    large_pages(j->code, n);
    j->face = j->vertex + j->rows + 1;
    memset(*zeros, 0, (size_t)j->n[2]);
    return 0;
}

static int take_mesh(struct job *j)
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
    if (!(m->xyz = ctx->host->alloc(ctx, m->vertices * 12)) ||
        !(m->index = ctx->host->alloc(ctx, m->faces * 12)))
        return -1;
    return j->v->rgb && !(m->rgb = ctx->host->alloc(ctx, m->vertices * 3)) ? -1 : 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_volume *v = in ? in[0] : NULL;

    (void)ctx;
    (void)params;
    if (v)
        mc_bound(v, 2, cost);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    struct job j = { .ctx = ctx, .v = in[0], .mesh = out[0] };
    uint8_t *zeros = NULL;
    int rc;

    j.rule = mc_rule_of(params[MC_ISO].f, params[MC_INSIDE].i == MC_INSIDE_GE, params[MC_MIN_WEIGHT].f,
                        params[MC_PAD].i != 0);
    for (int a = 0; a < 3; a++)
        j.n[a] = (int64_t)j.v->dim[a] + 2 * j.rule.pad;
    j.rows = j.n[0] * j.n[1];
    rc = take(&j, &zeros);
    if (rc == 0) {
        make_sides(&j);
        make_cells(&j);
        count(&j, zeros);
        rc = take_mesh(&j);
    }
    if (rc == 0 && j.nans)
        ctx->host->log(ctx, RECON_WARN, NULL, "volume", "%llu samples are not a number and count as outside",
                       (unsigned long long)j.nans);
    if (rc == 0) {
        emit(&j);
        mc_cost(j.v, j.mesh, 2, cost);
    }
    ctx->host->free(ctx, j.side);
    ctx->host->free(ctx, j.code);
    ctx->host->free(ctx, j.vertex);
    ctx->host->free(ctx, zeros);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_marching_cubes(ctx, &cpu_marching_cubes, NULL);
}

const struct recon_kernel cpu_marching_cubes = { RECON_KERNEL_ABI, MC_NAME, MC_DOC, mc_in, mc_out, mc_params,
    bound, run, selftest, mc_shape };
