/* Usual lines of an OBJ for any processor: three plain numbers, three plain indices; those counted that join no others. */
#include "config.h"
#include "data/obj.h"

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
static inline const char *read_number(const char *p, double offset, float *ret)
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

static inline const char *line_behind(const char *p)
{
    p += *p == '\r';
    return *p == '\n' ? p + 1 : NULL;
}

static const char *read_three(const char *p, const double offset[3], float *to)
{
    for (int i = 0; i < 3; i++) {
        p = read_number(p, offset[i], &to[i]);
        if (!p || (i < 2 && *p++ != ' '))
            return NULL;
    }
    return line_behind(p);
}

static const char *read_triangle(const char *p, uint64_t there, uint32_t to[3])
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
    return line_behind(p);
}

/* the line behind, or NULL */
static const char *one_line(struct obj_piece *c, const char *p)
{
    static const uint32_t none[3] = { RECON_NONE, RECON_NONE, RECON_NONE };
    const struct recon_mesh *m = &c->obj->mesh;
    uint32_t v[3];

    if (p[0] == 'f' && p[1] == ' ') {
        p = read_triangle(p + 2, c->obj->all.v, v);
        if (!p || p > c->end || !obj_put_triangle(c, v, none, none, false))
            return NULL;
        c->same_normals = false;
    } else if (p[0] == 'v' && p[1] == ' ') {
        if (m->rgb || c->at.v == c->stop.v || !(p = read_three(p + 2, c->obj->offset, m->xyz + 3 * c->at.v)) || p > c->end)
            return NULL;
        c->at.v++;
    } else {
        return NULL;
    }
    c->at.lines++;
    return p;
}

static void read_lines(struct obj_piece *c, const char **at)
{
    for (const char *p = *at, *e; p < c->end && (e = one_line(c, p)); p = e)
        *at = e;
}

/* the words behind the first byte of a face's line; false: something in it is not usual */
static bool count_words(const char *p, const char *e, uint64_t *ret)
{
    uint64_t n = 0;
    bool blank = false;

    for (p++; p < e; p++) {
        bool now = is_blank(*p);

        if (*p == '#' || *p == '\\')
            return false;
        n += blank && !now;
        blank = now;
    }
    *ret = n;
    return true;
}

static bool count_line(struct obj_piece *c, const char *p, const char *e)
{
    uint64_t n;

    if (p[0] == 'v' && is_blank(p[1])) {
        obj_see_vertex(c, p);
        c->n.v++;
    } else if (p[0] == 'v' && (p[1] == 't' || p[1] == 'n') && is_blank(p[2])) {
        c->n.vt += p[1] == 't';
        c->n.vn += p[1] == 'n';
    } else if (p[0] == 'f' && is_blank(p[1]) && count_words(p, e, &n)) {
        obj_see_face(c, p);
        c->n.f++;
        c->n.tri += n > 2 ? n - 2 : 0;
    } else {
        return false;
    }
    c->n.lines++;
    return true;
}

static void count_lines(struct obj_piece *c, const char **at)
{
    for (const char *p = *at, *e; p < c->end; p = *at = e + 1)
        if (!(e = memchr(p, '\n', (size_t)(c->end - p))) || obj_joined(p, e) || !count_line(c, p, e))
            return;
}

const struct obj_quick obj_plain = { count_lines, read_lines };
