#include "config.h"
#include "data/obj_quick.h"

#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { DIGITS = 19, INDEX_DIGITS = 9 };

static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                               1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19 };

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Eight digits at once: whether all are, and their number (the first digit counts most). */
static inline bool eight_digits(const char *p, uint64_t *ret)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t w;

    memcpy(&w, p, 8);
    if (((w & 0xf0f0f0f0f0f0f0f0u) | ((w + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) >> 4) != 0x3333333333333333u)
        return false;
    w -= 0x3030303030303030u;
    w = w * 10 + (w >> 8); /* pairs in every other byte */
    *ret = (((w & 0x000000ff000000ffu) * 0x000f424000000064u) + ((w >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u)) >> 32;
    return true;
#else
    (void)p;
    (void)ret;
    return false;
#endif
}

/* A number of up to 19 digits that a double holds, followed by a blank or the line's end. Both it and the power of ten
 * are exact, so that the quotient is rounded once. */
static inline const char *quick_number(const char *p, double offset, float *ret)
{
    bool minus = *p == '-';
    uint64_t m = 0, more;
    int before = 0, behind = 0;
    double v;

    p += minus;
    for (; is_digit(*p) && before < DIGITS; p++, before++)
        m = m * 10 + (uint64_t)(*p - '0');
    if (*p == '.') {
        for (p++; before + behind + 8 <= DIGITS && eight_digits(p, &more); p += 8, behind += 8)
            m = m * 100000000u + more;
        for (; is_digit(*p) && before + behind < DIGITS; p++, behind++)
            m = m * 10 + (uint64_t)(*p - '0');
    }
    if (before + behind == 0 || m >= (uint64_t)1 << 53 || !(*p == ' ' || *p == '\n' || *p == '\r'))
        return NULL;
    v = (double)m / tens[behind];
    *ret = (float)((minus ? -v : v) - offset);
    return p;
}

static inline const char *quick_end(const char *p)
{
    p += *p == '\r';
    return *p == '\n' ? p : NULL;
}

const char *quick_three(const char *p, const double offset[3], float to[3])
{
    for (int i = 0; i < 3; i++) {
        p = quick_number(p, offset[i], &to[i]);
        if (!p || (i < 2 && *p++ != ' '))
            return NULL;
    }
    return quick_end(p);
}

const char *quick_triangle(const char *p, uint64_t there, uint32_t to[3])
{
    for (int i = 0; i < 3; i++) {
        uint64_t v = 0;
        int n = 0;

        for (; is_digit(*p) && n < INDEX_DIGITS; p++, n++)
            v = v * 10 + (uint64_t)(*p - '0');
        if (v == 0 || v > there || (i < 2 && *p++ != ' '))
            return NULL;
        to[i] = (uint32_t)(v - 1);
    }
    return quick_end(p);
}

#ifdef __SSE2__
const char *quick_line(const char *p, uint64_t *tokens)
{
    const __m128i newline = _mm_set1_epi8('\n'), blank = _mm_set1_epi8(' '), back = _mm_set1_epi8('\\'), hash = _mm_set1_epi8('#'),
                  control = _mm_set1_epi8(0x1f);
    uint64_t ends = 0, blanks = 0, odd = 0, line;

    for (int i = 0; i < 4 && !ends; i++) {
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        __m128i o = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(c, control), c), _mm_or_si128(_mm_cmpeq_epi8(c, back), _mm_cmpeq_epi8(c, hash)));

        ends |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(c, newline)) << 16 * i;
        blanks |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(c, blank)) << 16 * i;
        odd |= (uint64_t)(unsigned)_mm_movemask_epi8(o) << 16 * i;
    }
    if (!ends)
        return NULL;
    line = (ends & -ends) - 1; /* the bytes before the newline */
    if (odd & line)
        return NULL;
    *tokens = (uint64_t)__builtin_popcountll(~blanks & blanks << 1 & line);
    return p + __builtin_ctzll(ends);
}
#else
const char *quick_line(const char *p, uint64_t *tokens)
{
    (void)p;
    (void)tokens;
    return NULL;
}
#endif
