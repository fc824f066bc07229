/* TSDF fusion of a block with one frame, by AVX-512: sixteen samples of a row at a time, depths and colours by gathers, nothing
 * kept between the steps but registers. The results are those of fuse_block.c bit for bit: what is told by bounds is told by
 * bounds here, too, and what rounds rounds alike. */
#include "config.h"
#include "kernels/cpu/fuse_look.h"

/* as the clones of hd.h: not under the sanitizers, whose tests go the other way */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(KERN_NO_CLONES)

#include <immintrin.h>

_Static_assert(FUSE_ALONG == 16, "a row is one register of floats");

#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define WIDE_IN WIDE static inline __attribute__((always_inline))

/* What is the same for all rows of a block. */
struct wide {
    const struct fuse_view *v;
    const float *depth;
    const uint8_t *rgb; /* or NULL */
    int32_t k, last;    /* first sample along z; the last offset in rgb from which four bytes can be read */
    double xs, ys, zs, trunc, inv;
    float off_u, off_v, most;
};

bool fuse_has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

/* a / b rounded as a division rounds, from r = 1 / b rounded: two remainders, exact by fma (Markstein) */
WIDE_IN __m512 quotient(__m512 a, __m512 b, __m512 r)
{
    __m512 q = _mm512_mul_ps(a, r);

    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, b, a), r, q);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, b, a), r, q);
}

/* Of all rows, step after step, so that none waits for another's branches: rows are told by bits. */
struct rows {
    int32_t pixel[ROWS][N];
    float share[ROWS][N];
    float x[ROWS], y[ROWS]; /* numerators of the rows' first samples */
    __mmask16 in[ROWS], hit[ROWS];
};

WIDE_IN void depths_of(const struct wide *w, const struct starts *s, int row, __m512d z[2])
{
    __m512d step = _mm512_set_pd(7, 6, 5, 4, 3, 2, 1, 0);

    for (int h = 0; h < 2; h++)
        z[h] = _mm512_add_pd(_mm512_set1_pd(s->z[row]),
                             _mm512_mul_pd(_mm512_add_pd(_mm512_set1_pd(w->k + 8 * h), step), _mm512_set1_pd(w->zs)));
}

/* As project() of fuse_block.c. */
WIDE_IN void place_exactly(const struct wide *w, const struct starts *s, int row, struct rows *o)
{
    const struct fuse_view *v = w->v;
    __m512d half = _mm512_set1_pd(0.5), low = _mm512_set1_pd(-0.5), step = _mm512_set_pd(7, 6, 5, 4, 3, 2, 1, 0), z[2];
    unsigned in = 0;

    depths_of(w, s, row, z);
    for (int h = 0; h < 2; h++) {
        __m512d at = _mm512_add_pd(_mm512_set1_pd(w->k + 8 * h), step);
        __m512d x = _mm512_add_pd(_mm512_set1_pd(s->x[row]), _mm512_mul_pd(at, _mm512_set1_pd(w->xs)));
        __m512d y = _mm512_add_pd(_mm512_set1_pd(s->y[row]), _mm512_mul_pd(at, _mm512_set1_pd(w->ys)));
        __m512d a = _mm512_add_pd(_mm512_div_pd(_mm512_mul_pd(_mm512_set1_pd(v->fx), x), z[h]), _mm512_set1_pd(v->cx));
        __m512d b = _mm512_add_pd(_mm512_div_pd(_mm512_mul_pd(_mm512_set1_pd(v->fy), y), z[h]), _mm512_set1_pd(v->cy));
        __mmask8 ok = _mm512_cmp_pd_mask(z[h], _mm512_setzero_pd(), _CMP_GT_OQ) & _mm512_cmp_pd_mask(a, low, _CMP_GT_OQ) &
                      _mm512_cmp_pd_mask(b, low, _CMP_GT_OQ) & _mm512_cmp_pd_mask(a, _mm512_set1_pd(v->width - 0.5), _CMP_LT_OQ) &
                      _mm512_cmp_pd_mask(b, _mm512_set1_pd(v->height - 0.5), _CMP_LT_OQ);
        __m256i u = _mm512_maskz_cvttpd_epi32(ok, _mm512_add_pd(a, half)), t = _mm512_maskz_cvttpd_epi32(ok, _mm512_add_pd(b, half));

        _mm256_storeu_si256((__m256i *)(o->pixel[row] + 8 * h), _mm256_add_epi32(_mm256_mullo_epi32(t, _mm256_set1_epi32((int32_t)v->stride)), u));
        in |= (unsigned)ok << 8 * h;
    }
    o->in[row] = (__mmask16)in;
}

/* which numbers of pixels are nearer than off to the border of two */
WIDE_IN __mmask16 near_border(__m512 u, float off)
{
    __m512 f = _mm512_sub_ps(u, _mm512_roundscale_ps(u, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));

    return _mm512_cmp_ps_mask(f, _mm512_set1_ps(off), _CMP_LT_OQ) | _mm512_cmp_ps_mask(f, _mm512_set1_ps(1 - off), _CMP_GT_OQ);
}

/* Pixels by float; the rows of which one must be told by double, a bit each. */
WIDE_IN uint64_t place_rows(const struct wide *w, const struct starts *s, struct rows *o)
{
    const struct fuse_view *v = w->v;
    __m512 index = _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), zero = _mm512_setzero_ps();
    __m512 wide = _mm512_set1_ps((float)v->width), high = _mm512_set1_ps((float)v->height), two = _mm512_set1_ps(2);
    __m512 xs = _mm512_set1_ps((float)(v->fx * w->xs)), ys = _mm512_set1_ps((float)(v->fy * w->ys));
    __m512 cx = _mm512_set1_ps((float)v->cx + 0.5f), cy = _mm512_set1_ps((float)v->cy + 0.5f);
    __m512i stride = _mm512_set1_epi32((int32_t)v->stride);
    uint64_t unsure = 0;

    for (int row = 0; row < ROWS; row++) {
        o->x[row] = (float)(v->fx * (s->x[row] + w->k * w->xs));
        o->y[row] = (float)(v->fy * (s->y[row] + w->k * w->ys));
    }
    for (int row = 0; row < ROWS; row++) {
        __m512 z, r, x, y;
        __m512d d[2];
        unsigned off;

        depths_of(w, s, row, d);
        z = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(d[0])), _mm512_cvtpd_ps(d[1]), 1);
        r = _mm512_rcp14_ps(z);
        r = _mm512_mul_ps(r, _mm512_fnmadd_ps(z, r, two));
        x = _mm512_fmadd_ps(index, xs, _mm512_set1_ps(o->x[row]));
        y = _mm512_fmadd_ps(index, ys, _mm512_set1_ps(o->y[row]));
        x = _mm512_fmadd_ps(x, r, cx);
        y = _mm512_fmadd_ps(y, r, cy);
        o->in[row] = _mm512_cmp_ps_mask(x, zero, _CMP_GT_OQ) & _mm512_cmp_ps_mask(y, zero, _CMP_GT_OQ) &
                     _mm512_cmp_ps_mask(x, wide, _CMP_LT_OQ) & _mm512_cmp_ps_mask(y, high, _CMP_LT_OQ);
        off = near_border(x, w->off_u) | near_border(y, w->off_v);
        unsure |= (uint64_t)(off != 0) << row;
        _mm512_storeu_si512(o->pixel[row], _mm512_add_epi32(_mm512_mullo_epi32(_mm512_cvttps_epi32(y), stride), _mm512_cvttps_epi32(x)));
    }
    return unsure;
}

/* Distances over the truncation, at most 1, and which samples have one. */
WIDE_IN void distance_of(const struct wide *w, const struct starts *s, int row, struct rows *o)
{
    __m512 d = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), o->in[row], _mm512_loadu_si512(o->pixel[row]), w->depth, 4);
    __mmask16 hit = _mm512_mask_cmp_ps_mask(o->in[row], d, _mm512_setzero_ps(), _CMP_GT_OQ);
    __m512d one = _mm512_set1_pd(1), back = _mm512_set1_pd(-w->trunc), inv = _mm512_set1_pd(w->inv), z[2], far[2];
    unsigned behind;

    depths_of(w, s, row, z);
    far[0] = _mm512_sub_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(d)), z[0]);
    far[1] = _mm512_sub_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(d, 1)), z[1]);
    behind = _mm512_cmp_pd_mask(far[0], back, _CMP_LT_OQ) | (unsigned)_mm512_cmp_pd_mask(far[1], back, _CMP_LT_OQ) << 8;
    _mm256_storeu_ps(o->share[row], _mm512_cvtpd_ps(_mm512_min_pd(_mm512_mul_pd(far[0], inv), one)));
    _mm256_storeu_ps(o->share[row] + 8, _mm512_cvtpd_ps(_mm512_min_pd(_mm512_mul_pd(far[1], inv), one)));
    o->hit[row] = hit & (__mmask16)~behind;
}

WIDE_IN void mix_colors(const struct wide *w, const struct rows *o, int row, __m512 weight, __m512 sum, __m512 r, uint16_t *to)
{
    __m512i pixel = _mm512_loadu_si512(o->pixel[row]), offset = _mm512_add_epi32(pixel, _mm512_add_epi32(pixel, pixel));
    __m512i at = _mm512_min_epi32(offset, _mm512_set1_epi32(w->last)), byte = _mm512_set1_epi32(255);
    __m512i rgb = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), o->hit[row], at, w->rgb, 1);

    rgb = _mm512_srlv_epi32(rgb, _mm512_slli_epi32(_mm512_sub_epi32(offset, at), 3));
    for (int c = 0; c < 3; c++) {
        __m512 old = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(to + N * c))));
        __m512 own = _mm512_cvtepi32_ps(_mm512_slli_epi32(_mm512_and_si512(rgb, byte), 8));
        __m512 mean = quotient(_mm512_add_ps(_mm512_mul_ps(old, weight), own), sum, r);

        _mm512_mask_cvtepi32_storeu_epi16(to + N * c, o->hit[row], _mm512_cvttps_epi32(_mm512_add_ps(mean, _mm512_set1_ps(0.5f))));
        rgb = _mm512_srli_epi32(rgb, 8);
    }
}

WIDE_IN void mix(struct block *b, const struct wide *w, const struct rows *o, int row)
{
    float *tsdf = b->tsdf + block_at(b, row), *held = b->weight + block_at(b, row);
    __m512 one = _mm512_set1_ps(1), weight = _mm512_loadu_ps(held), sum = _mm512_add_ps(weight, one), r = _mm512_div_ps(one, sum);
    __m512 all = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(tsdf), weight), _mm512_loadu_ps(o->share[row]));

    if (w->rgb)
        mix_colors(w, o, row, weight, sum, r, b->color + 3 * N * row);
    _mm512_mask_storeu_ps(tsdf, o->hit[row], quotient(all, sum, r));
    _mm512_mask_storeu_ps(held, o->hit[row], _mm512_min_ps(sum, _mm512_set1_ps(w->most)));
}

WIDE static uint64_t look_rows(struct block *b, const struct wide *w, const struct starts *s)
{
    uint64_t in = 0, hit = 0, updates = 0;
    struct rows o;

    for (uint64_t left = place_rows(w, s, &o); left; left &= left - 1)
        place_exactly(w, s, __builtin_ctzll(left), &o);
    for (int row = 0; row < ROWS; row++) {
        o.in[row] &= (__mmask16)((1u << block_row(b, row)) - 1);
        in |= (uint64_t)(o.in[row] != 0) << row;
    }
    for (uint64_t left = in; left; left &= left - 1) {
        int row = __builtin_ctzll(left);

        distance_of(w, s, row, &o);
        hit |= (uint64_t)(o.hit[row] != 0) << row;
        updates += (uint64_t)__builtin_popcount(o.hit[row]);
    }
    for (uint64_t left = hit; left; left &= left - 1)
        mix(b, w, &o, __builtin_ctzll(left));
    return updates;
}

/* Least depth of the block's samples along the axis, and the most of |x| and |y|: at the ends of rows. */
static double reach_of_rows(const struct starts *s, int32_t k, double most[2])
{
    double z = INFINITY;

    most[0] = most[1] = 0;
    for (int row = 0; row < ROWS; row += row % FUSE_SIDE ? 1 : FUSE_SIDE - 1)
        for (int end = 0; end < N; end += N - 1) {
            double at = k + end, x = fabs(s->x[row] + at * s->xs), y = fabs(s->y[row] + at * s->ys), zc = s->z[row] + at * s->zs;

            z = zc < z ? zc : z;
            most[0] = x > most[0] ? x : most[0];
            most[1] = y > most[1] ? y : most[1];
        }
    return z;
}

uint64_t fuse_look_wide(struct block *b, const struct fuse_frame *f, const struct starts *s)
{
    const struct fuse_plan *p = b->t->plan;
    const struct fuse_view *v = &f->v;
    struct wide w = { .v = v, .depth = f->depth, .rgb = b->color && f->has_color ? f->color : NULL, .k = (int32_t)b->at[2],
                      .last = (int32_t)(3 * v->stride * f->height) - 4, .xs = s->xs, .ys = s->ys, .zs = s->zs, .trunc = p->truncation,
                      .inv = 1 / p->truncation, .most = most_weight(p) };
    double most[2], z = reach_of_rows(s, w.k, most);
    uint64_t updates;

    /* A pixel is off by less than 4 roundings (6e-8) of the largest numerator over the least depth, from the numerator, 3.3 from
     * the quotient (the depth's, two and a bit of its reciprocal), and 2 of the centre, one of the sum. A block at the camera's
     * plane has no bound: every row is told by double. */
    w.off_u = z > 1e-3 ? (float)(6e-7 * fabs(v->fx) * most[0] / z + 1.5e-7 * (v->width + fabs(v->cx) + 1)) : 1;
    w.off_v = z > 1e-3 ? (float)(6e-7 * fabs(v->fy) * most[1] / z + 1.5e-7 * (v->height + fabs(v->cy) + 1)) : 1;
    updates = look_rows(b, &w, s);
    b->changed |= updates > 0;
    b->ones &= !updates;
    return updates;
}

#else

bool fuse_has_wide(void)
{
    return false;
}

uint64_t fuse_look_wide(struct block *b, const struct fuse_frame *f, const struct starts *s)
{
    (void)b;
    (void)f;
    (void)s;
    return 0;
}

#endif
