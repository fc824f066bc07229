/* A line of an OBJ in general: any blanks, comments, joined lines, all four forms of corners, negative indices. */
#include "config.h"
#include "data/obj.h"

#include <math.h>

/* blanks and the backslash that joins lines */
static const char *skip(const char *p, const char *end)
{
    for (;;) {
        p = skip_blank(p, end);
        if (p + 1 < end && *p == '\\' && p[1] == '\n')
            p += 2;
        else if (p + 2 < end && *p == '\\' && p[1] == '\r' && p[2] == '\n')
            p += 3;
        else
            return p;
    }
}

bool obj_joined(const char *from, const char *newline)
{
    return newline > from && (newline[-1] == '\\' || (newline[-1] == '\r' && newline - 1 > from && newline[-2] == '\\'));
}

/* the end of a line with those joined to it; *lines grows by what it spans */
static const char *line_end(const char *p, const char *end, uint64_t *lines)
{
    for (const char *at = p;; at++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (!at) {
            ++*lines;
            return end;
        }
        ++*lines;
        if (!obj_joined(p, at))
            return at;
    }
}

static bool at_end(const char *p, const char *end)
{
    return p >= end || *p == '#';
}

static uint64_t count_tokens(const char *p, const char *end)
{
    uint64_t n = 0;

    for (p = skip(p, end); !at_end(p, end); p = skip(p, end), n++) {
        const char *q = p;

        while (q < end && !is_blank(*q) && *q != '\\' && *q != '#') /* what ends a corner for read_corner */
            q++;
        p = q > p ? q : p + 1;
    }
    return n;
}

enum kind { LINE_NONE, LINE_OTHER, LINE_V, LINE_VT, LINE_VN, LINE_F, LINE_WORDS };

static const struct {
    const char *word;
    enum kind kind;
    enum obj_words words;
} kinds[] = {
    { "v", LINE_V, 0 },
    { "vt", LINE_VT, 0 },
    { "vn", LINE_VN, 0 },
    { "f", LINE_F, 0 },
    { "usemtl", LINE_WORDS, WORDS_MATERIAL },
    { "o", LINE_WORDS, WORDS_OBJECT },
    { "g", LINE_WORDS, WORDS_GROUP },
    { "s", LINE_WORDS, WORDS_SMOOTH },
    { "mtllib", LINE_WORDS, WORDS_LIBRARY },
};

/* *at moves behind the first word, which a blank or the line's end follows */
static enum kind kind_of(const char **at, const char *end, enum obj_words *ret_words)
{
    const char *p = skip_blank(*at, end), *q = p;

    while (q < end && !is_blank(*q) && *q != '#')
        q++;
    *at = q;
    if (q == p)
        return LINE_NONE;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if ((size_t)(q - p) == strlen(kinds[i].word) && memcmp(p, kinds[i].word, (size_t)(q - p)) == 0) {
            *ret_words = kinds[i].words;
            return kinds[i].kind;
        }
    return LINE_OTHER;
}

const char *obj_count_line(struct obj_piece *c, const char *p)
{
    const char *e = line_end(p, c->end, &c->n.lines), *line = p;
    enum obj_words words;

    for (const char *q = p; q < e; q++)
        c->controls = c->controls || ((unsigned char)*q < ' ' && !is_blank(*q) && *q != '\n');
    switch (kind_of(&p, e, &words)) {
    case LINE_V:
        obj_see_vertex(c, line);
        c->n.v++;
        break;
    case LINE_VT:
        c->n.vt++;
        break;
    case LINE_VN:
        c->n.vn++;
        break;
    case LINE_F: {
        uint64_t n = count_tokens(p, e);

        obj_see_face(c, line);
        c->n.f++;
        c->n.tri += n > 2 ? n - 2 : 0;
        break;
    }
    default:
        break;
    }
    return e;
}

static int bad(struct obj_piece *c, const char *rule, const char *what)
{
    return fault_set(&c->fault, CODE_DATA, rule, "'%s' line %llu: %s", c->obj->path, (unsigned long long)c->at.lines, what);
}

static int read_floats(struct obj_piece *c, const char **p, const char *end, float *to, int n, const double *offset, const char *what)
{
    double v;

    for (int i = 0; i < n; i++) {
        *p = skip(*p, end);
        if (!number_read(p, end, &v))
            return bad(c, at_end(*p, end) && end == c->end ? "file-truncated" : NULL, what);
        to[i] = (float)(offset ? v - offset[i] : v);
        if (!isfinite(to[i]))
            return bad(c, "vertex-nan", "a coordinate is not finite");
    }
    return 0;
}

static int read_vertex(struct obj_piece *c, const char *p, const char *end)
{
    struct recon_mesh *m = &c->obj->mesh;
    uint64_t v = c->at.v;
    double x[4];
    int n = 0;

    if (read_floats(c, &p, end, m->xyz + 3 * v, 3, c->obj->offset, "a vertex needs three numbers"))
        return -1;
    c->at.v++;
    if (!m->rgb)
        return 0;
    for (p = skip(p, end); n < 4 && !at_end(p, end) && number_read(&p, end, &x[n]); p = skip(p, end))
        n++;
    for (int i = 0; i < 3; i++) { /* "x y z r g b"; four more: "x y z w r g b" */
        double k = n >= 3 ? x[n - 3 + i] * 255 : 255;

        m->rgb[3 * v + (uint64_t)i] = (uint8_t)(k > 0 ? (k < 255 ? k + 0.5 : 255) : 0);
    }
    return 0;
}

static int read_uv(struct obj_piece *c, const char *p, const char *end)
{
    double u = 0, v = 0;
    float *to;

    p = skip(p, end);
    if (!number_read(&p, end, &u))
        return bad(c, at_end(p, end) && end == c->end ? "file-truncated" : NULL, "a texture coordinate needs a number");
    p = skip(p, end);
    number_read(&p, end, &v); /* one is allowed */
    if (c->obj->mesh.uv) {
        to = c->obj->mesh.uv + 2 * c->at.vt;
        to[0] = (float)u;
        to[1] = (float)v;
        if (!isfinite(to[0]) || !isfinite(to[1]))
            return bad(c, "uv-nan", "a texture coordinate is not finite; keep = geometry reads the mesh without");
    }
    c->uv_bad += !(u >= 0 && u <= 1 && v >= 0 && v <= 1);
    c->at.vt++;
    return 0;
}

static int read_normal(struct obj_piece *c, const char *p, const char *end)
{
    struct recon_mesh *m = &c->obj->mesh;
    float *to = m->corner_normal ? m->corner_normal : m->normals;

    if (to && read_floats(c, &p, end, to + 3 * c->at.vn, 3, NULL, "a normal needs three numbers"))
        return -1;
    c->at.vn++;
    return 0;
}

static int out_of_range(struct obj_piece *c, int64_t i, uint64_t there, const char *what)
{
    return fault_set(&c->fault, CODE_DATA, "face-index-out-of-range", "'%s' line %llu: index %lld of a %s is out of range, %llu are there",
                     c->obj->path, (unsigned long long)c->at.lines, (long long)i, what, (unsigned long long)there);
}

/* from 1, or back from what stands before this line; *ret from 0 */
static int resolve(struct obj_piece *c, int64_t i, uint64_t before, uint64_t all, const char *what, uint32_t *ret)
{
    if (i > 0 && (uint64_t)i <= all)
        *ret = (uint32_t)(i - 1);
    else if (i < 0 && (uint64_t)-i <= before)
        *ret = (uint32_t)(before - (uint64_t)-i);
    else
        return out_of_range(c, i, i < 0 ? before : all, what);
    return 0;
}

struct corner {
    uint32_t v, vt, vn; /* RECON_NONE: none */
};

static int read_corner(struct obj_piece *c, const char **p, const char *end, struct corner *ret)
{
    static const char wrong[] = "a corner of a face is no index";
    const struct obj *o = c->obj;
    int64_t i;

    ret->vt = ret->vn = RECON_NONE;
    if (!integer_read(p, end, &i))
        return bad(c, NULL, wrong);
    if (resolve(c, i, c->at.v, o->all.v, "vertex", &ret->v))
        return -1;
    if (*p < end && **p == '/') {
        ++*p;
        if (*p < end && **p != '/' && !is_blank(**p)) {
            if (!integer_read(p, end, &i))
                return bad(c, NULL, wrong);
            if (resolve(c, i, c->at.vt, o->all.vt, "texture coordinate", &ret->vt))
                return -1;
        }
        if (*p < end && **p == '/') {
            ++*p;
            if (!integer_read(p, end, &i))
                return bad(c, NULL, wrong);
            if (resolve(c, i, c->at.vn, o->all.vn, "normal", &ret->vn))
                return -1;
        }
    }
    return *p >= end || is_blank(**p) || **p == '#' || **p == '\\' ? 0 : bad(c, NULL, wrong);
}

static int read_face(struct obj_piece *c, const char *p, const char *end)
{
    struct corner first = { 0 }, last = { 0 }, k;
    uint64_t n = 0;

    for (p = skip(p, end); !at_end(p, end); p = skip(p, end), n++) {
        if (read_corner(c, &p, end, &k))
            return -1;
        c->same_normals = c->same_normals && k.vn == k.v;
        if (n >= 2 && !obj_put_triangle(c, (uint32_t[]){ first.v, last.v, k.v }, (uint32_t[]){ first.vt, last.vt, k.vt },
                                        (uint32_t[]){ first.vn, last.vn, k.vn }, n > 2))
            return bad(c, NULL, "more corners than were counted");
        if (n == 0)
            first = k;
        last = k;
    }
    c->polygons += n > 3;
    return n >= 3 ? 0 : bad(c, end == c->end ? "file-truncated" : NULL, "a face needs three corners");
}

enum { WORD_MOST = 4096 };

static struct obj_word word_of(const struct obj_piece *c, const char *p, size_t n, enum obj_words kind)
{
    struct obj_word w = { c->at.tri, c->at.lines, xmalloc(n + 1), (uint32_t)n, (uint32_t)kind };

    memcpy(w.text, p, n);
    w.text[n] = 0;
    return w;
}

/* words as they stand, without blanks and a '\r' around them; '#' belongs to names */
static void take_words(struct obj_piece *c, const char *p, const char *end, enum obj_words kind)
{
    p = skip(p, end);
    while (end > p && is_blank(end[-1]))
        end--;
    if (!c->obj->plain)
        *VEC_ADD(&c->words) = word_of(c, p, (size_t)(end - p < WORD_MOST ? end - p : WORD_MOST), kind);
}

const char *obj_read_line(struct obj_piece *c, const char *p)
{
    uint64_t lines = 0;
    const char *e = line_end(p, c->end, &lines);
    enum obj_words words = 0;
    int rc = 0;

    switch (kind_of(&p, e, &words)) {
    case LINE_V:
        rc = c->at.v < c->stop.v ? read_vertex(c, p, e) : bad(c, NULL, "more vertices than were counted");
        break;
    case LINE_VT:
        rc = c->at.vt < c->stop.vt ? read_uv(c, p, e) : bad(c, NULL, "more texture coordinates than were counted");
        break;
    case LINE_VN:
        rc = c->at.vn < c->stop.vn ? read_normal(c, p, e) : bad(c, NULL, "more normals than were counted");
        break;
    case LINE_F:
        rc = read_face(c, p, e);
        break;
    case LINE_WORDS:
        take_words(c, p, e, words);
        break;
    case LINE_OTHER:
        c->other_line = c->other++ ? c->other_line : c->at.lines;
        break;
    default:
        break;
    }
    c->at.lines += lines;
    return rc ? NULL : e;
}

void obj_see_vertex(struct obj_piece *c, const char *line)
{
    uint64_t lines = 0;

    if (!c->seen_v)
        c->colored = count_tokens(line, line_end(line, c->end, &lines)) >= 7;
    c->seen_v = true;
}

static bool is_paired(const char *p, const char *e)
{
    int64_t v, vn;

    for (p = skip(p, e); !at_end(p, e); p = skip(p, e)) {
        if (!integer_read(&p, e, &v) || p >= e || *p++ != '/')
            return false;
        while (p < e && *p != '/' && !is_blank(*p))
            p++;
        if (p >= e || *p++ != '/' || !integer_read(&p, e, &vn) || v != vn)
            return false;
        if (p < e && !is_blank(*p) && *p != '\\' && *p != '#')
            return false;
    }
    return true;
}

void obj_see_face(struct obj_piece *c, const char *line)
{
    uint64_t lines = 0;
    const char *e = line_end(line, c->end, &lines), *p = skip_blank(line, e);

    if (!c->seen_f)
        c->paired = p < e && is_paired(p + 1, e);
    c->seen_f = true;
}
