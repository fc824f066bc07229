/* PCD 0.6 and 0.7 (Point Cloud Library): ascii, binary, binary_compressed (LZF, fields one after the other). Of the fields
 * x y z, normal_x normal_y normal_z and rgb or rgba (blue green red in one word's low bytes) are taken. */
#include "config.h"
#include "data/geom.h"

#include <math.h>
#include <stdlib.h>

enum use { USE_NONE, USE_X, USE_Y, USE_Z, USE_NX, USE_NY, USE_NZ, USE_RGB };
static const struct name use_names[] = {
    { "x", USE_X },         { "y", USE_Y },         { "z", USE_Z },     { "normal_x", USE_NX },
    { "normal_y", USE_NY }, { "normal_z", USE_NZ }, { "rgb", USE_RGB }, { "rgba", USE_RGB },
    { NULL, 0 },
};
enum { FIELDS_MAX = 256 };
enum mode { ASCII, BINARY, COMPRESSED };
static const struct name mode_names[] = { { "ascii", ASCII }, { "binary", BINARY }, { "binary_compressed", COMPRESSED }, { NULL, 0 } };

struct field {
    uint32_t size, count;
    char type; /* I U F */
    int use;
    uint64_t at; /* in a point, or of the field's block when compressed */
};
struct pcd {
    const char *path;
    const struct load *load;
    struct text t;
    struct field field[FIELDS_MAX];
    size_t fields;
    uint64_t points, width, height, stride;
    bool has_points, has[USE_RGB + 1];
    int mode;
    struct fault *fault;
};

static int bad(const struct pcd *r, const char *rule, const char *what)
{
    return fault_set(r->fault, CODE_DATA, rule, "'%s' line %llu: %s", r->path, (unsigned long long)r->t.line, what);
}

/* ---- header ---- */

static int set_fields(struct pcd *r, const struct strv *w)
{
    if (r->fields || w->n - 1 > FIELDS_MAX)
        return bad(r, NULL, "FIELDS is there once, with at most 256 names");
    r->fields = w->n - 1;
    for (size_t i = 0; i < r->fields; i++) {
        r->field[i] = (struct field){ .size = 4, .count = 1, .type = 'F', .use = USE_NONE };
        if (name_value(use_names, w->v[i + 1], &r->field[i].use) == 0 && r->has[r->field[i].use])
            r->field[i].use = USE_NONE;
        r->has[r->field[i].use] = true;
    }
    return 0;
}

static int set_each(struct pcd *r, const struct strv *w)
{
    if (w->n - 1 != r->fields)
        return bad(r, NULL, "SIZE, TYPE and COUNT have one value for each of FIELDS");
    for (size_t i = 0; i < r->fields; i++) {
        struct field *f = &r->field[i];
        const char *s = w->v[i + 1];
        uint64_t v = 0;

        if (str_eq(w->v[0], "TYPE") && strlen(s) == 1 && strchr("IUF", *s)) {
            f->type = *s;
            continue;
        }
        if (str_eq(w->v[0], "TYPE") || str_to_u64(s, &v))
            return bad(r, NULL, "TYPE is I, U or F; SIZE and COUNT are whole numbers");
        if (str_eq(w->v[0], "SIZE") ? v != 1 && v != 2 && v != 4 && v != 8 : v > 65536)
            return bad(r, NULL, "SIZE is 1, 2, 4 or 8, COUNT at most 65536");
        *(str_eq(w->v[0], "SIZE") ? &f->size : &f->count) = (uint32_t)v;
    }
    return 0;
}

/* 1: DATA, the last */
static int header_line(struct pcd *r, const struct strv *w)
{
    const char *k = w->v[0];

    if (str_eq(k, "VERSION") || str_eq(k, "VIEWPOINT"))
        return 0;
    if (str_eq(k, "FIELDS") || str_eq(k, "COLUMNS"))
        return set_fields(r, w);
    if (str_eq(k, "SIZE") || str_eq(k, "TYPE") || str_eq(k, "COUNT"))
        return set_each(r, w);
    if (str_eq(k, "WIDTH") || str_eq(k, "HEIGHT") || str_eq(k, "POINTS")) {
        r->has_points = r->has_points || *k == 'P';
        return w->n == 2 && str_to_u64(w->v[1], *k == 'W' ? &r->width : *k == 'H' ? &r->height : &r->points) == 0
                   ? 0
                   : bad(r, NULL, "a whole number is wanted");
    }
    if (str_eq(k, "DATA"))
        return w->n == 2 && name_value(mode_names, w->v[1], &r->mode) == 0 ? 1 : bad(r, NULL, "DATA is ascii, binary or binary_compressed");
    return bad(r, NULL, "no line of a PCD header");
}

static int read_line(struct pcd *r)
{
    const char *e = text_line_end(&r->t);
    struct strv w = { 0 }, full = { 0 };
    char *copy;
    int rc;

    if (e >= r->t.end || e - r->t.p > 65536)
        return bad(r, "file-truncated", "the header does not end");
    copy = xstrndup(r->t.p, (size_t)(e - r->t.p));
    strv_split(&w, copy, " \t\r");
    for (size_t i = 0; i < w.n; i++)
        if (*w.v[i])
            strv_add(&full, w.v[i]);
    rc = full.n == 0 || full.v[0][0] == '#' ? 0 : header_line(r, &full);
    strv_release(&w);
    strv_release(&full);
    free(copy);
    if (rc >= 0) {
        r->t.p = e + 1;
        r->t.line++;
    }
    return rc;
}

static int read_header(struct pcd *r)
{
    int rc;

    r->height = 1;
    while ((rc = read_line(r)) == 0)
        ;
    if (rc < 0)
        return -1;
    if (r->width > UINT32_MAX || r->height > UINT32_MAX)
        return bad(r, NULL, "WIDTH and HEIGHT are at most 4294967295");
    if (!r->has_points)
        r->points = r->width * r->height;
    if (!r->has[USE_X] || !r->has[USE_Y] || !r->has[USE_Z])
        return bad(r, NULL, "FIELDS must have x, y and z");
    if (r->points > UINT32_MAX)
        return bad(r, NULL, "at most 4294967295 points are taken");
    for (size_t i = 0; i < r->fields; i++) {
        r->field[i].at = r->mode == COMPRESSED ? r->stride * r->points : r->stride;
        r->stride += (uint64_t)r->field[i].size * r->field[i].count;
        if (r->field[i].use && (r->field[i].count != 1 || r->field[i].size < 4 || (r->field[i].use == USE_RGB && r->field[i].size != 4)))
            return bad(r, NULL, "x y z, normals and colours are single fields of 4 or 8 bytes");
    }
    return 0;
}

/* ---- points ---- */

static void put(const struct pcd *r, struct recon_mesh *m, uint64_t i, int use, double v, uint32_t word)
{
    if (use >= USE_X && use <= USE_Z)
        m->xyz[3 * i + (uint64_t)(use - USE_X)] = place(r->load, use - USE_X, v);
    else if (use >= USE_NX && use <= USE_NZ && m->normals)
        m->normals[3 * i + (uint64_t)(use - USE_NX)] = (float)v;
    else if (use == USE_RGB)
        for (int k = 0; k < 3; k++)
            m->rgb[3 * i + (uint64_t)k] = (uint8_t)(word >> (16 - 8 * k));
}

static void put_bytes(const struct pcd *r, struct recon_mesh *m, uint64_t i, const struct field *f, const char *from)
{
    uint32_t word = 0;
    int32_t whole;
    float single;
    double v;

    memcpy(&word, from, 4);
    if (f->size == 8 && f->type == 'F') {
        memcpy(&v, from, 8);
    } else if (f->type == 'F') {
        memcpy(&single, from, 4);
        v = (double)single;
    } else {
        memcpy(&whole, from, 4);
        v = f->type == 'I' ? (double)whole : (double)word;
    }
    put(r, m, i, f->use, v, word);
}

static int read_ascii(struct pcd *r, struct recon_mesh *m)
{
    for (uint64_t i = 0; i < r->points; i++)
        for (size_t k = 0; k < r->fields; k++)
            for (uint32_t c = 0; c < r->field[k].count; c++) {
                const struct field *f = &r->field[k];
                uint32_t word = 0;
                double v;
                float single;

                if (!text_number(&r->t, &v))
                    return bad(r, r->t.p >= r->t.end ? "file-truncated" : NULL, "a number is wanted");
                if (f->use == USE_RGB && f->type == 'F') {
                    single = (float)v;
                    memcpy(&word, &single, 4);
                } else if (f->use == USE_RGB) {
                    word = v >= 0 && v <= 4294967295.0 ? (uint32_t)v : 0;
                }
                put(r, m, i, f->use, v, word);
            }
    return 0;
}

/* LZF (Marc Lehmann): false when it does not give exactly n bytes */
static bool unpack(const uint8_t *p, uint64_t packed, uint8_t *to, uint64_t n)
{
    const uint8_t *end = p + packed;
    uint64_t at = 0;

    while (p < end) {
        uint64_t control = *p++, len, back;

        if (control < 32) {
            len = control + 1;
            if (len > (uint64_t)(end - p) || len > n - at)
                return false;
            memcpy(to + at, p, len);
            at += len;
            p += len;
            continue;
        }
        len = control >> 5;
        if (len == 7) {
            if (p >= end)
                return false;
            len += *p++;
        }
        len += 2;
        if (p >= end)
            return false;
        back = ((control & 31) << 8 | *p++) + 1;
        if (back > at || len > n - at)
            return false;
        for (; len; len--, at++)
            to[at] = to[at - back];
    }
    return at == n;
}

static int read_compressed(struct pcd *r, const struct data_alloc *alloc, struct recon_mesh *m)
{
    uint64_t left = (uint64_t)(r->t.end - r->t.p);
    uint32_t size[2] = { 0 };
    uint8_t *raw;

    if (left >= 8)
        memcpy(size, r->t.p, 8);
    if (left < 8 || size[0] > left - 8)
        return bad(r, "file-truncated", "the compressed data are cut");
    if (size[1] != r->stride * r->points || size[1] / 264 > size[0])
        return bad(r, NULL, "the size of the compressed data is not that of the points");
    if (!(raw = alloc->alloc(alloc->self, size[1] + 8)))
        return fault_set(r->fault, CODE_MEMORY, NULL, "no memory for %u bytes of '%s'", size[1], r->path);
    if (!unpack((const uint8_t *)r->t.p + 8, size[0], raw, size[1])) {
        alloc->free(alloc->self, raw);
        return bad(r, NULL, "the compressed data are damaged");
    }
    for (size_t k = 0; k < r->fields; k++)
        for (uint64_t i = 0; r->field[k].use && i < r->points; i++)
            put_bytes(r, m, i, &r->field[k], (const char *)raw + r->field[k].at + i * r->field[k].size);
    alloc->free(alloc->self, raw);
    return 0;
}

static int read_binary(struct pcd *r, struct recon_mesh *m)
{
    for (uint64_t i = 0; i < r->points; i++)
        for (size_t k = 0; k < r->fields; k++)
            if (r->field[k].use)
                put_bytes(r, m, i, &r->field[k], r->t.p + i * r->stride + r->field[k].at);
    return 0;
}

static int check_size(const struct pcd *r)
{
    uint64_t left = (uint64_t)(r->t.end - r->t.p), each = r->mode == ASCII ? 2 * r->fields : r->stride;

    /* LZF makes at most 264 bytes of 3 */
    if (r->points <= (r->mode == COMPRESSED ? left * 88 : left + 1) / each)
        return 0;
    return fault_set(r->fault, CODE_DATA, "file-truncated", "'%s' says %llu points of %llu bytes, %llu are left", r->path,
                     (unsigned long long)r->points, (unsigned long long)each, (unsigned long long)left);
}

int pcd_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret, struct fault *fault)
{
    struct pcd *r = xcalloc(1, sizeof(*r));
    struct recon_mesh m = { 0 };
    int rc;

    r->path = path;
    r->load = text;
    r->fault = fault;
    r->t = (struct text){ text->s, text->s + text->n, 1 };
    rc = read_header(r);
    if (rc == 0)
        rc = check_size(r);
    if (rc == 0 && r->mode == BINARY && r->points * r->stride > (uint64_t)(r->t.end - r->t.p))
        rc = bad(r, "file-truncated", "the points are cut");
    if (rc == 0)
        rc = mesh_arrays(&m, r->points, r->has[USE_NX] && r->has[USE_NY] && r->has[USE_NZ], r->has[USE_RGB], alloc, fault);
    if (rc == 0) {
        rc = r->mode == ASCII ? read_ascii(r, &m) : r->mode == BINARY ? read_binary(r, &m) : read_compressed(r, alloc, &m);
        if (rc)
            mesh_drop(&m, alloc);
    }
    if (rc == 0)
        *ret = m;
    free(r);
    return rc;
}
