#include "config.h"
#include "data/jsn.h"

#include <stdlib.h>

enum type { NONE, OBJECT, ARRAY, STRING, NUMBER, TRUE, FALSE, NUL };
enum { DEPTH_MAX = 128 };

struct value {
    enum type type;
    uint32_t first, count; /* OBJECT, ARRAY: in kids; an object's are names and values in turn */
    const char *s, *end;   /* its text; of a STRING what is between the quotes */
};
struct list {
    uint32_t *v;
    size_t n, cap;
};
struct jsn {
    struct {
        struct value *v;
        size_t n, cap;
    } values;
    struct list kids, open; /* open: of containers being read, innermost last */
    const char *p, *end;
    int depth;
};

static const char *skip(struct jsn *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r'))
        j->p++;
    return j->p;
}

static bool take(struct jsn *j, char c)
{
    if (skip(j) >= j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

static jsn_at add(struct jsn *j, struct value v)
{
    if (j->values.n >= UINT32_MAX / 2)
        return 0;
    *VEC_ADD(&j->values) = v;
    return (jsn_at)(j->values.n - 1);
}

static jsn_at read_string(struct jsn *j)
{
    const char *from = ++j->p;

    for (; j->p < j->end && *j->p != '"'; j->p++) {
        if ((unsigned char)*j->p < ' ')
            return 0;
        if (*j->p == '\\' && ++j->p >= j->end)
            return 0;
    }
    if (j->p >= j->end)
        return 0;
    return add(j, (struct value){ .type = STRING, .s = from, .end = j->p++ });
}

static jsn_at read_number(struct jsn *j)
{
    const char *from = j->p;
    double v;

    if ((*from != '-' && (*from < '0' || *from > '9')) || !number_read(&j->p, j->end, &v) || v != v)
        return 0;
    return add(j, (struct value){ .type = NUMBER, .s = from, .end = j->p });
}

static jsn_at read_word(struct jsn *j)
{
    static const struct name words[] = { { "true", TRUE }, { "false", FALSE }, { "null", NUL }, { NULL, 0 } };

    for (const struct name *w = words; w->name; w++) {
        size_t n = strlen(w->name);

        if ((size_t)(j->end - j->p) >= n && memcmp(j->p, w->name, n) == 0) {
            j->p += n;
            return add(j, (struct value){ .type = (enum type)w->value, .s = j->p - n, .end = j->p });
        }
    }
    return 0;
}

static jsn_at read_value(struct jsn *j);

static bool read_member(struct jsn *j, bool object)
{
    jsn_at v;

    if (object) {
        if (skip(j) >= j->end || *j->p != '"' || !(v = read_string(j)) || !take(j, ':'))
            return false;
        *VEC_ADD(&j->open) = v;
    }
    if (!(v = read_value(j)))
        return false;
    *VEC_ADD(&j->open) = v;
    return true;
}

/* what stands between brackets; the container itself is number `at` already */
static bool read_inside(struct jsn *j, jsn_at at, bool object)
{
    size_t mark = j->open.n;
    bool more = !take(j, object ? '}' : ']');

    while (more) {
        if (!read_member(j, object))
            return false;
        more = !take(j, object ? '}' : ']');
        if (more && !take(j, ','))
            return false;
    }
    j->values.v[at].first = (uint32_t)j->kids.n;
    j->values.v[at].count = (uint32_t)(j->open.n - mark);
    for (size_t i = mark; i < j->open.n; i++)
        *VEC_ADD(&j->kids) = j->open.v[i];
    j->open.n = mark;
    return true;
}

static jsn_at read_value(struct jsn *j)
{
    jsn_at at;
    bool fine;

    if (skip(j) >= j->end)
        return 0;
    switch (*j->p) {
    case '{':
    case '[':
        fine = *j->p == '{';
        if (++j->depth > DEPTH_MAX || !(at = add(j, (struct value){ .type = fine ? OBJECT : ARRAY, .s = j->p })))
            return 0;
        j->p++;
        fine = read_inside(j, at, fine);
        j->values.v[at].end = j->p;
        j->depth--;
        return fine ? at : 0;
    case '"':
        return read_string(j);
    case 't':
    case 'f':
    case 'n':
        return read_word(j);
    default:
        return read_number(j);
    }
}

struct jsn *jsn_parse(const char *text, uint64_t n, uint64_t *ret_where)
{
    struct jsn *j = xcalloc(1, sizeof(*j));
    bool fine;

    j->p = text;
    j->end = text + n;
    add(j, (struct value){ .type = NONE });
    fine = read_value(j) != 0;
    while (fine && j->p < j->end && (*j->p == 0 || *j->p == ' ' || *j->p == '\n' || *j->p == '\r' || *j->p == '\t'))
        j->p++; /* padding */
    if (fine && j->p == j->end)
        return j;
    *ret_where = (uint64_t)(j->p - text);
    jsn_free(j);
    return NULL;
}

void jsn_free(struct jsn *j)
{
    if (!j)
        return;
    free(j->values.v);
    free(j->kids.v);
    free(j->open.v);
    free(j);
}

static const struct value *of(const struct jsn *j, jsn_at v)
{
    return &j->values.v[v];
}

static bool is(const struct value *v, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(v->end - v->s) == n && memcmp(v->s, text, n) == 0;
}

jsn_at jsn_key(const struct jsn *j, jsn_at object, const char *key)
{
    const struct value *o = of(j, object);

    for (uint32_t i = 0; o->type == OBJECT && i + 1 < o->count; i += 2)
        if (is(of(j, j->kids.v[o->first + i]), key))
            return j->kids.v[o->first + i + 1];
    return 0;
}

jsn_at jsn_item(const struct jsn *j, jsn_at array, uint64_t i)
{
    const struct value *a = of(j, array);

    return a->type == ARRAY && i < a->count ? j->kids.v[a->first + i] : 0;
}

uint64_t jsn_items(const struct jsn *j, jsn_at array)
{
    return of(j, array)->type == ARRAY ? of(j, array)->count : 0;
}

bool jsn_object(const struct jsn *j, jsn_at v)
{
    return of(j, v)->type == OBJECT;
}

bool jsn_array(const struct jsn *j, jsn_at v)
{
    return of(j, v)->type == ARRAY;
}

bool jsn_true(const struct jsn *j, jsn_at v)
{
    return of(j, v)->type == TRUE;
}

bool jsn_number(const struct jsn *j, jsn_at at, double *ret)
{
    const struct value *v = of(j, at);
    const char *p = v->s;

    return v->type == NUMBER && number_read(&p, v->end, ret);
}

bool jsn_whole(const struct jsn *j, jsn_at at, uint64_t *ret)
{
    const struct value *v = of(j, at);
    const char *p = v->s;
    int64_t i;

    if (v->type != NUMBER || !integer_read(&p, v->end, &i) || p != v->end || i < 0)
        return false;
    *ret = (uint64_t)i;
    return true;
}

char *jsn_text(const struct jsn *j, jsn_at at)
{
    const struct value *v = of(j, at);

    return v->type == STRING ? xstrndup(v->s, (size_t)(v->end - v->s)) : NULL;
}

const char *jsn_raw(const struct jsn *j, jsn_at at, size_t *ret_n)
{
    const struct value *v = of(j, at);
    int quotes = v->type == STRING;

    *ret_n = v->type == NONE ? 0 : (size_t)(v->end - v->s) + 2 * (size_t)quotes;
    return v->type == NONE ? "" : v->s - quotes;
}

const char *jsn_name(const struct jsn *j, jsn_at object, uint64_t i, size_t *ret_n)
{
    const struct value *o = of(j, object), *name;

    if (o->type != OBJECT || i >= o->count / 2)
        return NULL;
    name = of(j, j->kids.v[o->first + 2 * i]);
    *ret_n = (size_t)(name->end - name->s);
    return name->s;
}

/* four hexadecimal digits; -1: none */
static int hex4(const char *p, const char *end)
{
    int v = 0;

    for (int i = 0; i < 4; i++) {
        char c = p + i < end ? p[i] : 0;
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static void add_utf8(struct str *t, uint32_t c)
{
    char b[4] = { (char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63)) };

    if (c < 0x80)
        b[3] = (char)c;
    else if (c < 0x800)
        b[2] = (char)(0xc0 | c >> 6);
    else if (c < 0x10000)
        b[1] = (char)(0xe0 | c >> 12);
    str_addn(t, b + (c < 0x80 ? 3 : c < 0x800 ? 2 : c < 0x10000 ? 1 : 0), c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
}

char *jsn_line(const struct jsn *j, jsn_at at)
{
    const struct value *v = of(j, at);
    struct str t = { 0 };

    if (v->type != STRING)
        return NULL;
    for (const char *p = v->s; p < v->end; p++) {
        int c = (unsigned char)*p, low;

        if (c == '\\' && p + 1 < v->end) {
            c = (unsigned char)*++p;
            if (c == 'u' && (c = hex4(p + 1, v->end)) >= 0) {
                p += 4;
                if (c >= 0xd800 && c < 0xdc00 && v->end - p > 6 && p[1] == '\\' && p[2] == 'u' && (low = hex4(p + 3, v->end)) >= 0xdc00 && low < 0xe000) {
                    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                    p += 6;
                }
                add_utf8(&t, c < ' ' || c == 127 || (c >= 0xd800 && c < 0xe000) ? '_' : (uint32_t)c);
                continue;
            }
            c = c == '"' || c == '\\' || c == '/' ? c : '_';
        }
        str_addn(&t, &(char){ (char)c }, 1);
    }
    return str_take(&t);
}

void jsn_add_text(struct str *t, const char *s)
{
    bool fine = utf8_valid(s, strlen(s));

    str_add(t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            str_addf(t, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            str_addf(t, "\\u%04x", (unsigned)*s);
        else
            str_addn(t, (unsigned char)*s < 128 || fine ? s : "?", 1);
    }
    str_add(t, "\"");
}
