/* Usual lines of an OBJ by AVX2: a line of up to 64 bytes is cut into words by masks of its bytes, a number is turned from text
 * to binary in one register. Whatever is unusual (longer, an exponent, a comment, a negative index) is left to the general way. */
#include "config.h"
#include "data/obj.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define WIDE __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define WIDE_INLINE WIDE static inline __attribute__((always_inline))

/* ---- masks of 64 bytes ---- */

struct bytes {
    __m256i a, b;
};

WIDE_INLINE struct bytes load_bytes(const char *p)
{
    return (struct bytes){ _mm256_loadu_si256((const __m256i *)(const void *)p), _mm256_loadu_si256((const __m256i *)(const void *)(p + 32)) };
}

WIDE_INLINE uint64_t mask_of(struct bytes x)
{
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(x.a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(x.b) << 32;
}

WIDE_INLINE struct bytes same(struct bytes x, char c)
{
    const __m256i v = _mm256_set1_epi8(c);

    return (struct bytes){ _mm256_cmpeq_epi8(x.a, v), _mm256_cmpeq_epi8(x.b, v) };
}

/* c or less */
WIDE_INLINE struct bytes below(struct bytes x, char c)
{
    const __m256i v = _mm256_set1_epi8(c);

    return (struct bytes){ _mm256_cmpeq_epi8(_mm256_min_epu8(x.a, v), x.a), _mm256_cmpeq_epi8(_mm256_min_epu8(x.b, v), x.b) };
}

WIDE_INLINE struct bytes either(struct bytes x, struct bytes y)
{
    return (struct bytes){ _mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b) };
}

/* ---- numbers ---- */

/* Where a dot at byte k of 16 is taken out, what is before it moves up by one; 16: no dot. And by what that divides. */
static const uint8_t without_dot[17][16] = {
#define U 0x80
    { U, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },  { U, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { U, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },  { U, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { U, 0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },  { U, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { U, 0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15 },  { U, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15 },
    { U, 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15 },  { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15 },
    { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15 },   { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15 },
    { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15 },   { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15 },
    { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15 },   { U, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 },
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
#undef U
};
static const double divisor[17] = { 1e15, 1e14, 1e13, 1e12, 1e11, 1e10, 1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1, 1 };
static const uint8_t last_bytes[32] = { 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
                                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/* sixteen digits, 0 to 9, the first counts most */
WIDE_INLINE uint64_t digits_value(__m128i d)
{
    uint64_t halves;

    d = _mm_maddubs_epi16(d, _mm_set1_epi16(1 << 8 | 10)); /* pairs */
    d = _mm_madd_epi16(d, _mm_set1_epi32(1 << 16 | 100));
    d = _mm_packus_epi32(d, d);
    d = _mm_madd_epi16(d, _mm_set1_epi32(1 << 16 | 10000));
    halves = (uint64_t)_mm_cvtsi128_si64(d);
    return (halves & UINT32_MAX) * 100000000u + (halves >> 32);
}

/* What is wrong in a line's numbers, as bits that may be anywhere. */
struct wrong {
    uint64_t bits;
    __m128i digits; /* bytes above 9 where a digit is wanted */
};

WIDE_INLINE bool any_wrong(const struct wrong *w)
{
    __m128i above = _mm_subs_epu8(w->digits, _mm_set1_epi8(9));

    return (w->bits != 0) | !_mm_testz_si128(above, above);
}

/* The word from p to e: a sign, up to 16 digits with a dot among them. Exact: the digits and the power of ten are doubles, so that
 * the quotient is rounded once. */
WIDE_INLINE double number(const char *p, const char *e, struct wrong *wrong)
{
    uint64_t minus = *p == '-', n = (uint64_t)(e - p) - minus, value;
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(e - 16)), mine, d;
    unsigned dot, at;
    union {
        double f;
        uint64_t u;
    } v;

    wrong->bits |= (n - 1) & ~(uint64_t)15; /* none, or too many */
    mine = _mm_loadu_si128((const __m128i *)(const void *)(last_bytes + (n > 16 ? 0 : n)));
    dot = (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('.')), mine));
    at = (unsigned)__builtin_ctz(dot | 0x10000u);
    wrong->bits |= n == 1 && dot; /* a dot alone */
    d = _mm_and_si128(_mm_sub_epi8(x, _mm_set1_epi8('0')), mine);
    d = _mm_shuffle_epi8(d, _mm_loadu_si128((const __m128i *)(const void *)without_dot[at])); /* a second dot is no digit */
    wrong->digits = _mm_max_epu8(wrong->digits, d);
    value = digits_value(d);
    wrong->bits |= value >> 53;
    v.f = (double)(int64_t)value / divisor[at];
    v.u |= minus << 63;
    return v.f;
}

/* The word from p to e: an index of one to eight digits. */
WIDE_INLINE uint64_t whole(const char *p, const char *e, uint64_t *bad)
{
    uint64_t n = (uint64_t)(e - p), w;

    *bad |= n - 1 > 7;
    memcpy(&w, e - 8, 8);
    w ^= 0x3030303030303030u;
    w &= ~(uint64_t)0 << ((64 - 8 * n) & 63);
    *bad |= ((w + 0x7676767676767676u) | w) & 0x8080808080808080u;
    w = w * 10 + (w >> 8);
    return (((w & 0x000000ff000000ffu) * 0x000f424000000064u) + ((w >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u)) >> 32;
}

/* ---- lines ---- */

/* A line's words by their places in it: starts and, one behind each, ends; the first word is cut off. */
struct words {
    uint64_t start, end;
    unsigned n, newline;
};

/* false: no newline within 64 bytes */
WIDE_INLINE bool cut_line(const char *p, struct words *ret)
{
    struct bytes x = load_bytes(p);
    uint64_t newline = mask_of(same(x, '\n')), line, blank, ink;

    if (!newline)
        return false;
    line = newline ^ (newline - 1); /* up to the newline */
    blank = mask_of(below(x, ' ')); /* others than blanks are in no piece that is read here */
    ink = ~blank & line >> 1;
    ret->newline = (unsigned)__builtin_ctzll(newline);
    ret->start = ink & ~(ink << 1);
    ret->end = ~ink & ink << 1;
    ret->start &= ret->start - 1;
    ret->end &= ret->end - 1;
    ret->n = (unsigned)__builtin_popcountll(ret->start);
    return true;
}

/* the next word; false values when none is left, which callers have counted */
WIDE_INLINE void next_word(const char *p, struct words *w, const char **ret, const char **ret_end)
{
    *ret = p + __builtin_ctzll(w->start);
    *ret_end = p + __builtin_ctzll(w->end);
    w->start &= w->start - 1;
    w->end &= w->end - 1;
}

WIDE_INLINE bool three(const char *p, struct words *w, const double *offset, float to[3])
{
    struct wrong wrong = { 0, _mm_setzero_si128() };

    for (int i = 0; i < 3; i++) {
        const char *a, *e;
        double v;

        next_word(p, w, &a, &e);
        v = number(a, e, &wrong);
        to[i] = (float)(offset ? v - offset[i] : v);
    }
    return !any_wrong(&wrong);
}

WIDE_INLINE uint8_t color_byte(double v)
{
    double k = v * 255;

    return (uint8_t)(k > 0 ? (k < 255 ? k + 0.5 : 255) : 0);
}

WIDE_INLINE bool take_vertex(struct obj_piece *c, const char *p, struct words *w)
{
    struct recon_mesh *m = &c->obj->mesh;
    struct wrong wrong = { 0, _mm_setzero_si128() };

    if (w->n != (m->rgb ? 6 : 3) || c->at.v == c->stop.v || !three(p, w, c->obj->offset, m->xyz + 3 * c->at.v))
        return false;
    for (int i = 0; m->rgb && i < 3; i++) {
        const char *a, *e;

        next_word(p, w, &a, &e);
        m->rgb[3 * c->at.v + (uint64_t)i] = color_byte(number(a, e, &wrong));
    }
    if (any_wrong(&wrong))
        return false;
    c->at.v++;
    return true;
}

WIDE_INLINE bool take_uv(struct obj_piece *c, const char *p, struct words *w)
{
    struct wrong wrong = { 0, _mm_setzero_si128() };
    double uv[3];

    if (w->n < 2 || w->n > 3 || c->at.vt == c->stop.vt)
        return false;
    for (unsigned i = 0, n = w->n; i < n; i++) { /* a third must be a number, too: it may be what joins lines */
        const char *a, *e;

        next_word(p, w, &a, &e);
        uv[i] = number(a, e, &wrong);
    }
    if (any_wrong(&wrong))
        return false;
    if (c->obj->mesh.uv) {
        c->obj->mesh.uv[2 * c->at.vt] = (float)uv[0];
        c->obj->mesh.uv[2 * c->at.vt + 1] = (float)uv[1];
    }
    c->uv_bad += !(uv[0] >= 0 && uv[0] <= 1 && uv[1] >= 0 && uv[1] <= 1);
    c->at.vt++;
    return true;
}

WIDE_INLINE bool take_normal(struct obj_piece *c, const char *p, struct words *w)
{
    struct recon_mesh *m = &c->obj->mesh;
    float *to = m->corner_normal ? m->corner_normal : m->normals;

    if (w->n != 3 || c->at.vn == c->stop.vn || (to && !three(p, w, NULL, to + 3 * c->at.vn)))
        return false;
    c->at.vn++;
    return true;
}

WIDE_INLINE uint32_t index_of(const char *p, const char *e, uint64_t there, uint64_t *bad)
{
    uint64_t v = whole(p, e, bad) - 1; /* 0 becomes more than there can be */

    *bad |= v >= there;
    return (uint32_t)v;
}

/* v, v/vt, v//vn or v/vt/vn */
WIDE_INLINE void take_corner(const struct obj *o, const char *p, const char *a, const char *e, uint64_t slash, uint32_t *v, uint32_t *vt,
                             uint32_t *vn, uint64_t *bad)
{
    uint64_t mine = slash & (~(uint64_t)0 << (a - p)) & ~(~(uint64_t)0 << (e - p) % 64);
    const char *s, *t;

    *vt = *vn = RECON_NONE;
    if (!mine) {
        *v = index_of(a, e, o->all.v, bad);
        return;
    }
    s = p + __builtin_ctzll(mine);
    mine &= mine - 1;
    t = mine ? p + __builtin_ctzll(mine) : e;
    *bad |= mine & (mine - 1);
    *v = index_of(a, s, o->all.v, bad);
    if (t != s + 1)
        *vt = index_of(s + 1, t, o->all.vt, bad);
    if (mine)
        *vn = index_of(t + 1, e, o->all.vn, bad);
    else
        *bad |= t == s + 1; /* "1/" */
}

/* Four words of up to eight digits at once, less 1; *ret_fine: they are such words, from 1 up to there. */
WIDE_INLINE __m128i four_indices(const char *const a[4], const uint64_t length[4], uint64_t there, bool *ret_fine)
{
    uint64_t w[4];
    __m256i x, above;
    __m128i v, most = _mm_set1_epi32((int)(uint32_t)(there - 1));

    for (int i = 0; i < 4; i++)
        memcpy(&w[i], a[i], 8);
    x = _mm256_sub_epi8(_mm256_set_epi64x((long long)w[3], (long long)w[2], (long long)w[1], (long long)w[0]), _mm256_set1_epi8('0'));
    /* what is behind a word goes out at the top, zeros come in before it */
    x = _mm256_sllv_epi64(x, _mm256_set_epi64x((long long)(64 - 8 * length[3]), (long long)(64 - 8 * length[2]), (long long)(64 - 8 * length[1]),
                                               (long long)(64 - 8 * length[0])));
    above = _mm256_subs_epu8(x, _mm256_set1_epi8(9));
    *ret_fine = ((length[0] - 1) | (length[1] - 1) | (length[2] - 1) | (length[3] - 1)) >> 3 == 0 && _mm256_testz_si256(above, above);
    x = _mm256_maddubs_epi16(x, _mm256_set1_epi16(1 << 8 | 10)); /* pairs */
    x = _mm256_madd_epi16(x, _mm256_set1_epi32(1 << 16 | 100));
    x = _mm256_packus_epi32(x, x);
    x = _mm256_madd_epi16(x, _mm256_set1_epi32(1 << 16 | 10000));
    v = _mm_sub_epi32(_mm256_castsi256_si128(_mm256_permute4x64_epi64(x, 8)), _mm_set1_epi32(1));
    *ret_fine = *ret_fine && there && _mm_movemask_epi8(_mm_cmpeq_epi32(_mm_max_epu32(v, most), most)) == 0xffff;
    return v;
}

/* three or four corners without slashes */
WIDE_INLINE bool take_plain(struct obj_piece *c, const char *p, struct words w)
{
    static const uint32_t none[3] = { RECON_NONE, RECON_NONE, RECON_NONE };
    const struct recon_mesh *m = &c->obj->mesh;
    const char *a[4], *e;
    uint64_t length[4];
    uint32_t v[4];
    bool fine;
    __m128i x;

    for (unsigned i = 0; i < 4; i++) {
        if (i == 3 && w.n == 3) {
            a[3] = a[2];
            length[3] = length[2];
            break;
        }
        next_word(p, &w, &a[i], &e);
        length[i] = (uint64_t)(e - a[i]);
    }
    x = four_indices(a, length, c->obj->all.v, &fine);
    if (!fine)
        return false;
    c->same_normals = false;
    if (w.n == 3 && !m->uv_index && !m->normal_index && !m->joined) {
        _mm_storel_epi64((__m128i *)(void *)(m->index + 3 * c->at.tri), x);
        m->index[3 * c->at.tri++ + 2] = (uint32_t)_mm_extract_epi32(x, 2);
        return true;
    }
    _mm_storeu_si128((__m128i *)(void *)v, x);
    obj_put_triangle(c, v, none, none, false);
    if (w.n == 4) {
        obj_put_triangle(c, (uint32_t[]){ v[0], v[2], v[3] }, none, none, true);
        c->polygons++;
    }
    return true;
}

WIDE_INLINE bool take_face(struct obj_piece *c, const char *p, struct words *w)
{
    const struct obj *o = c->obj;
    uint32_t v[4], vt[4], vn[4];
    unsigned n = w->n;
    uint64_t bad = 0, slash;
    bool same_normals = c->same_normals;

    if (n < 3 || n > 4 || c->at.tri + n - 2 > c->stop.tri)
        return false;
    if (!c->slashes && take_plain(c, p, *w))
        return true;
    slash = mask_of(same(load_bytes(p), '/'));
    for (unsigned i = 0; i < n; i++) {
        const char *a, *e;

        next_word(p, w, &a, &e);
        take_corner(o, p, a, e, slash, &v[i], &vt[i], &vn[i], &bad);
        same_normals = same_normals && vn[i] == v[i];
    }
    if (bad)
        return false;
    c->slashes = true; /* most likely the next face has some, too */
    c->same_normals = same_normals;
    obj_put_triangle(c, v, vt, vn, false);
    if (n == 4) {
        v[1] = v[2], v[2] = v[3];
        vt[1] = vt[2], vt[2] = vt[3];
        vn[1] = vn[2], vn[2] = vn[3];
        obj_put_triangle(c, v, vt, vn, true);
        c->polygons++;
    }
    return true;
}

/* the two bytes with which a line begins, and a blank behind them */
WIDE_INLINE bool one_line(struct obj_piece *c, const char *p, struct words *w)
{
    if (p[0] == 'f')
        return p[1] == ' ' && take_face(c, p, w);
    if (p[0] != 'v')
        return false;
    if (p[1] == ' ')
        return take_vertex(c, p, w);
    if (p[2] != ' ')
        return false;
    return p[1] == 't' ? take_uv(c, p, w) : p[1] == 'n' && take_normal(c, p, w);
}

WIDE static void read_lines(struct obj_piece *c, const char **at)
{
    const char *p = *at;
    struct words w;

    while (!c->controls && p < c->end && (*p == 'v' || *p == 'f') && cut_line(p, &w) && p + w.newline < c->end && one_line(c, p, &w)) {
        p += w.newline + 1;
        c->at.lines++;
    }
    *at = p;
}

/* ---- counting ---- */

/* The line that begins at `line` was counted up to p: takes that back, so that the general way can have it. */
static void uncount(struct obj_piece *c, const char *line, const char *p)
{
    uint64_t n = (uint64_t)(p - line), words = 0;

    if (n >= 2 && line[0] == 'v' && (unsigned char)line[1] <= ' ')
        c->n.v--;
    else if (n >= 3 && line[0] == 'v' && (unsigned char)line[2] <= ' ') {
        c->n.vt -= line[1] == 't';
        c->n.vn -= line[1] == 'n';
    } else if (n >= 2 && line[0] == 'f' && (unsigned char)line[1] <= ' ') {
        for (const char *q = line + 2; q < p; q++)
            words += (unsigned char)*q > ' ' && (unsigned char)q[-1] <= ' ';
        c->n.f--;
        c->n.tri -= words - 2;
    }
}

/* bits move up to the next byte, over the border of blocks */
WIDE_INLINE uint64_t shift_in(uint64_t bits, uint64_t *carry)
{
    uint64_t moved = bits << 1 | *carry;

    *carry = bits >> 63;
    return moved;
}

/* Blocks of 64 bytes, without a branch for lines. What begins a line is found by the newline before; the bytes of faces by an
 * addition that carries from behind their 'f' to the newline (as in simdjson); words of faces by their first bytes. A face of n
 * corners has n - 2 triangles; one of fewer than three makes the sum wrong: it is refused in the second pass. */
WIDE static void count_lines(struct obj_piece *c, const char **at)
{
    const char *line = *at, *p = *at;
    uint64_t first = 1, v = 0, f = 0, t = 0, n = 0, ink = 0, open = 0; /* carried from one block to the next */
    struct obj_counts sum = { 0 };

    for (; p + 64 <= c->end; p += 64) {
        struct bytes x = load_bytes(p), odd = either(either(same(x, '#'), same(x, '\\')), below(x, 0x1f));
        uint64_t newline = mask_of(same(x, '\n')), blank = mask_of(below(x, ' ')), unusual = mask_of(odd) & ~newline;
        uint64_t starts = shift_in(newline, &first), second, from, ends, words;

        if (unusual)
            unusual &= ~mask_of(either(same(x, '\t'), same(x, '\r')));
        if (unusual | (starts & blank & ~newline)) { /* a comment, a joined line, a control character, a line that begins with a blank */
            first = starts & 1;
            break;
        }
        second = shift_in(starts & mask_of(same(x, 'v')), &v);
        from = shift_in(starts & mask_of(same(x, 'f')), &f) & blank;
        if (!c->seen_v && (second & blank))
            obj_see_vertex(c, p + __builtin_ctzll(second & blank) - 1);
        if (!c->seen_f && from)
            obj_see_face(c, p + __builtin_ctzll(from) - 1);
        sum.v += (uint64_t)__builtin_popcountll(second & blank);
        if ((second & ~blank) | t | n) {
            sum.vt += (uint64_t)__builtin_popcountll(shift_in(second & mask_of(same(x, 't')), &t) & blank);
            sum.vn += (uint64_t)__builtin_popcountll(shift_in(second & mask_of(same(x, 'n')), &n) & blank);
        }
        sum.f += (uint64_t)__builtin_popcountll(from);
        words = ~blank & ~shift_in(~blank, &ink);
        from |= open;
        ends = (~newline + from) & newline;
        open = ends < from; /* the last one is not over */
        sum.tri += (uint64_t)__builtin_popcountll(words & (ends - from));
        sum.lines += (uint64_t)__builtin_popcountll(newline);
        line = starts ? p + 63 - __builtin_clzll(starts) : line;
    }
    c->n.v += sum.v;
    c->n.vt += sum.vt;
    c->n.vn += sum.vn;
    c->n.f += sum.f;
    c->n.tri += sum.tri - 2 * sum.f;
    c->n.lines += sum.lines;
    line = first ? p : line;
    uncount(c, line, p);
    *at = line;
}

static const struct obj_quick wide = { count_lines, read_lines };

const struct obj_quick *obj_wide(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")
               ? &wide
               : NULL;
}
#else
const struct obj_quick *obj_wide(void)
{
    return NULL;
}
#endif
