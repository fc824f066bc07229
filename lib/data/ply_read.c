/* PLY (Turk, 1994): ascii and both byte orders, elements in any order, properties and lists of any type. Of vertices x y z,
 * nx ny nz and red green blue are taken, of faces the list vertex_indices or vertex_index, of tristrips theirs. */
#include "config.h"
#include "data/geom.h"

#include <math.h>
#include <stdlib.h>

enum type { INT8, UINT8, INT16, UINT16, INT32, UINT32, FLOAT32, FLOAT64, TYPES };
static const uint8_t type_size[TYPES] = { 1, 1, 2, 2, 4, 4, 4, 8 };
static const struct name type_names[] = {
    { "char", INT8 },     { "int8", INT8 },     { "uchar", UINT8 }, { "uint8", UINT8 },   { "short", INT16 },     { "int16", INT16 },
    { "ushort", UINT16 }, { "uint16", UINT16 }, { "int", INT32 },   { "int32", INT32 },   { "uint", UINT32 },     { "uint32", UINT32 },
    { "float", FLOAT32 }, { "float32", FLOAT32 }, { "double", FLOAT64 }, { "float64", FLOAT64 }, { NULL, 0 },
};

enum use { USE_NONE, USE_X, USE_Y, USE_Z, USE_NX, USE_NY, USE_NZ, USE_R, USE_G, USE_B, USE_INDICES };
static const struct name use_names[] = {
    { "x", USE_X },   { "y", USE_Y },     { "z", USE_Z },    { "nx", USE_NX },       { "ny", USE_NY },        { "nz", USE_NZ },
    { "red", USE_R }, { "green", USE_G }, { "blue", USE_B }, { "diffuse_red", USE_R }, { "diffuse_green", USE_G }, { "diffuse_blue", USE_B },
    { "r", USE_R },   { "g", USE_G },     { "b", USE_B },    { NULL, 0 },
};

enum { ELEMENTS_MAX = 64, PROPERTIES_MAX = 1024 };
enum kind { KIND_OTHER, KIND_VERTEX, KIND_FACE, KIND_STRIP };

struct property {
    enum type type, count; /* count: of a list's length */
    bool list;
    enum use use;
};
struct element {
    enum kind kind;
    char name[64];
    uint64_t n, least; /* bytes one needs at least */
    int first, end;    /* properties */
};
struct ply {
    const char *path;
    const struct load *load;
    struct text t; /* ascii: line counts; binary: only p and end */
    bool ascii, swap;
    uint64_t vertices;
    bool seen[USE_INDICES + 1];
    struct element element[ELEMENTS_MAX];
    struct property property[PROPERTIES_MAX];
    int elements, properties;
    struct fault *fault;
    const char *where; /* element being read, for messages */
    uint64_t number;
};

static int bad(const struct ply *r, const char *rule, const char *what)
{
    if (!r->where)
        return fault_set(r->fault, CODE_DATA, rule, "'%s' line %llu: %s", r->path, (unsigned long long)r->t.line, what);
    if (r->ascii)
        return fault_set(r->fault, CODE_DATA, rule, "'%s' line %llu, %s %llu: %s", r->path, (unsigned long long)r->t.line, r->where,
                         (unsigned long long)r->number, what);
    return fault_set(r->fault, CODE_DATA, rule, "'%s', %s %llu: %s", r->path, r->where, (unsigned long long)r->number, what);
}

/* ---- header ---- */

static int add_element(struct ply *r, char *const *w, size_t n)
{
    struct element *e = r->element + r->elements;

    if (n != 3 || r->elements == ELEMENTS_MAX || str_to_u64(w[2], &e->n) || e->n > UINT64_MAX / 4096)
        return bad(r, NULL, "an element has a name and a count");
    snprintf(e->name, sizeof(e->name), "%s", w[1]);
    e->kind = str_eq(w[1], "vertex") ? KIND_VERTEX : str_eq(w[1], "face") ? KIND_FACE : str_eq(w[1], "tristrips") ? KIND_STRIP : KIND_OTHER;
    for (int i = 0; i < r->elements; i++)
        if (e->kind != KIND_OTHER && r->element[i].kind == e->kind)
            return bad(r, NULL, "this element is there twice");
    if (e->kind == KIND_VERTEX)
        r->vertices = e->n;
    e->first = e->end = r->properties;
    r->elements++;
    return 0;
}

static int add_property(struct ply *r, char *const *w, size_t n)
{
    struct property *p = r->property + r->properties;
    struct element *e;
    int type, count = UINT8, use = USE_NONE;

    if (r->elements == 0 || r->properties == PROPERTIES_MAX)
        return bad(r, NULL, r->elements ? "more than 1024 properties" : "a property before any element");
    e = &r->element[r->elements - 1];
    p->list = n > 1 && str_eq(w[1], "list");
    if (n != (p->list ? 5u : 3u) || name_value(type_names, w[p->list ? 3 : 1], &type) ||
        (p->list && name_value(type_names, w[2], &count)))
        return bad(r, NULL, "a property has a known type and a name");
    if (count >= FLOAT32)
        return bad(r, NULL, "the length of a list must be of a whole type");
    p->type = (enum type)type;
    p->count = (enum type)count;
    if (e->kind == KIND_VERTEX && !p->list && name_value(use_names, w[2], &use) == 0) {
        if (r->seen[use])
            use = USE_NONE; /* the first of its meaning counts */
        r->seen[use] = use != USE_NONE;
    }
    if ((e->kind == KIND_FACE || e->kind == KIND_STRIP) && p->list && (str_eq(w[4], "vertex_indices") || str_eq(w[4], "vertex_index")))
        use = USE_INDICES;
    p->use = (enum use)use;
    e->least += r->ascii ? 2 : p->list ? type_size[p->count] : type_size[p->type];
    e->end = ++r->properties;
    return 0;
}

static int add_format(struct ply *r, char *const *w, size_t n)
{
    if (n == 3 && str_eq(w[2], "1.0")) {
        r->ascii = str_eq(w[1], "ascii");
        r->swap = str_eq(w[1], "binary_big_endian");
        if (r->ascii || r->swap || str_eq(w[1], "binary_little_endian"))
            return 0;
    }
    return bad(r, NULL, "format ascii, binary_little_endian or binary_big_endian, and 1.0 are wanted");
}

/* One line of the header, without its end. 1: the last. */
static int header_line(struct ply *r, const char *line, size_t n, bool *formatted)
{
    struct strv w = { 0 }, full = { 0 };
    char *copy = xstrndup(line, n);
    int rc = 0;

    strv_split(&w, copy, " \t");
    for (size_t i = 0; i < w.n; i++)
        if (*w.v[i])
            strv_add(&full, w.v[i]);
    if (full.n == 0 || str_eq(full.v[0], "comment") || str_eq(full.v[0], "obj_info"))
        rc = 0;
    else if (str_eq(full.v[0], "format") && !*formatted)
        rc = add_format(r, full.v, full.n), *formatted = true;
    else if (!*formatted)
        rc = bad(r, NULL, "the format is wanted first");
    else if (str_eq(full.v[0], "element"))
        rc = add_element(r, full.v, full.n);
    else if (str_eq(full.v[0], "property"))
        rc = add_property(r, full.v, full.n);
    else if (str_eq(full.v[0], "end_header"))
        rc = 1;
    else
        rc = bad(r, NULL, "a header has format, element, property, comment and end_header");
    strv_release(&w);
    strv_release(&full);
    free(copy);
    return rc;
}

static int read_header(struct ply *r)
{
    bool formatted = false;

    for (int rc = 0; rc == 0;) {
        const char *e = text_line_end(&r->t);
        size_t n = (size_t)(e - r->t.p);

        if (e >= r->t.end)
            return bad(r, "file-truncated", "the header does not end");
        if (n > 4096)
            return bad(r, NULL, "a line of the header is longer than 4096 bytes");
        if (n && r->t.p[n - 1] == '\r')
            n--;
        if (r->t.line > 1 && (rc = header_line(r, r->t.p, n, &formatted)) < 0)
            return -1;
        r->t.p = e + 1;
        r->t.line++;
    }
    if (!r->seen[USE_X] || !r->seen[USE_Y] || !r->seen[USE_Z])
        return bad(r, NULL, "vertices need the properties x, y and z");
    return r->vertices <= UINT32_MAX ? 0 : bad(r, NULL, "at most 4294967295 vertices are taken");
}

/* what the header says must fit the bytes that follow */
static int check_size(struct ply *r)
{
    uint64_t left = (uint64_t)(r->t.end - r->t.p) + 1, need = 0;

    for (int i = 0; i < r->elements; i++) {
        const struct element *e = &r->element[i];

        if (e->n && (e->least == 0 || e->n > (left - need) / e->least))
            return fault_set(r->fault, CODE_DATA, "file-truncated", "'%s' says %llu of element %s, at least %llu bytes each: %llu are left",
                             r->path, (unsigned long long)e->n, e->name, (unsigned long long)e->least, (unsigned long long)(left - need - 1));
        need += e->n * e->least;
    }
    return 0;
}

/* ---- body ---- */

static int value(struct ply *r, enum type type, double *ret)
{
    union {
        uint8_t b[8];
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f;
        double d;
    } u;
    size_t n = type_size[type];

    if (r->ascii)
        return text_number(&r->t, ret) ? 0
                                       : bad(r, r->t.p >= r->t.end ? "file-truncated" : NULL,
                                             r->t.p >= r->t.end ? "the file ends here" : "a number is wanted");
    if ((size_t)(r->t.end - r->t.p) < n)
        return bad(r, "file-truncated", "the file ends here");
    for (size_t i = 0; i < n; i++)
        u.b[r->swap ? n - 1 - i : i] = (uint8_t)r->t.p[i];
    r->t.p += n;
    switch (type) {
    case INT8:
        *ret = u.i8;
        break;
    case UINT8:
        *ret = u.b[0];
        break;
    case INT16:
        *ret = u.i16;
        break;
    case UINT16:
        *ret = u.u16;
        break;
    case INT32:
        *ret = u.i32;
        break;
    case UINT32:
        *ret = u.u32;
        break;
    case FLOAT32:
        *ret = (double)u.f;
        break;
    default:
        *ret = u.d;
        break;
    }
    return 0;
}

static int list_length(struct ply *r, const struct property *p, uint64_t *ret)
{
    uint64_t left = (uint64_t)(r->t.end - r->t.p) + 1;
    double n;

    if (value(r, p->count, &n))
        return -1;
    if (!(n >= 0 && n <= 4294967295.0) || n != floor(n))
        return bad(r, NULL, "a list has a length below zero or no whole one");
    if (n > (double)(left / (r->ascii ? 2 : type_size[p->type])))
        return bad(r, "file-truncated", "a list is longer than the file");
    *ret = (uint64_t)n;
    return 0;
}

static int skip_property(struct ply *r, const struct property *p)
{
    uint64_t n = 1;
    double v;

    if (p->list && list_length(r, p, &n))
        return -1;
    while (n--)
        if (value(r, p->type, &v))
            return -1;
    return 0;
}

static uint8_t byte_of(const struct property *p, double v)
{
    double k = p->type >= FLOAT32 ? v * 255 : p->type == UINT16 ? v / 257 : v;

    return (uint8_t)(k > 0 ? (k < 255 ? k + 0.5 : 255) : 0);
}

static int read_vertex(struct ply *r, const struct element *e, struct recon_mesh *m, uint64_t i)
{
    for (int k = e->first; k < e->end; k++) {
        const struct property *p = &r->property[k];
        double v;

        if (p->list || p->use == USE_NONE) {
            if (skip_property(r, p))
                return -1;
            continue;
        }
        if (value(r, p->type, &v))
            return -1;
        if (p->use <= USE_Z)
            m->xyz[3 * i + (p->use - USE_X)] = place(r->load, (int)(p->use - USE_X), v);
        else if (p->use <= USE_NZ && m->normals)
            m->normals[3 * i + (p->use - USE_NX)] = (float)v;
        else if (p->use >= USE_R && m->rgb)
            m->rgb[3 * i + (p->use - USE_R)] = byte_of(p, v);
    }
    return 0;
}

struct faces {
    uint32_t *to; /* NULL: counts only */
    uint64_t n, polygons;
};

static void put_triangle(struct faces *f, uint32_t a, uint32_t b, uint32_t c)
{
    if (f->to) {
        f->to[3 * f->n] = a;
        f->to[3 * f->n + 1] = b;
        f->to[3 * f->n + 2] = c;
    }
    f->n++;
}

/* a strip: -1 begins a new one; each second triangle is turned; what has a corner twice joins strips and is no face */
static int read_indices(struct ply *r, const struct property *p, bool strip, struct faces *f)
{
    uint32_t a = 0, b = 0;
    uint64_t n, k = 0;
    double v;

    if (list_length(r, p, &n))
        return -1;
    f->polygons += !strip && n > 3;
    if (!strip && n < 3 && n > 0)
        return bad(r, NULL, "a face needs three corners");
    for (uint64_t i = 0; i < n; i++) {
        if (value(r, p->type, &v))
            return -1;
        if (strip && v == -1) {
            k = 0;
            continue;
        }
        if (!(v >= 0 && v < (double)r->vertices) || v != floor(v)) {
            char what[120];

            snprintf(what, sizeof(what), "index %.0f of a vertex is out of range, %llu are there", v, (unsigned long long)r->vertices);
            return bad(r, "face-index-out-of-range", what);
        }
        if (k >= 2 && (!strip || (a != b && b != (uint32_t)v && a != (uint32_t)v)))
            put_triangle(f, strip && k % 2 ? b : a, strip && k % 2 ? a : b, (uint32_t)v);
        if (strip || k < 1)
            a = strip && k >= 1 ? b : (uint32_t)v;
        b = (uint32_t)v;
        k++;
    }
    return 0;
}

static int read_face(struct ply *r, const struct element *e, struct faces *f)
{
    for (int k = e->first; k < e->end; k++) {
        const struct property *p = &r->property[k];

        if (p->use == USE_INDICES ? read_indices(r, p, e->kind == KIND_STRIP, f) : skip_property(r, p))
            return -1;
    }
    return 0;
}

/* all elements in their order; m NULL: passes over vertices; faces are counted or written */
static int read_body(struct ply *r, struct recon_mesh *m, struct faces *f)
{
    for (int i = 0; i < r->elements; i++) {
        const struct element *e = &r->element[i];

        r->where = e->name;
        for (r->number = 0; r->number < e->n; r->number++) {
            int rc = 0;

            if (e->kind == KIND_VERTEX && m)
                rc = read_vertex(r, e, m, r->number);
            else if (e->kind == KIND_FACE || e->kind == KIND_STRIP)
                rc = read_face(r, e, f);
            else
                for (int k = e->first; rc == 0 && k < e->end; k++)
                    rc = skip_property(r, &r->property[k]);
            if (rc)
                return -1;
        }
    }
    return 0;
}

static bool has_faces(const struct ply *r)
{
    for (int i = 0; i < r->elements; i++)
        if ((r->element[i].kind == KIND_FACE || r->element[i].kind == KIND_STRIP) && r->element[i].n)
            return true;
    return false;
}

static int read_all(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m, struct mesh_notes *notes)
{
    bool normals = r->seen[USE_NX] && r->seen[USE_NY] && r->seen[USE_NZ], rgb = r->seen[USE_R] && r->seen[USE_G] && r->seen[USE_B];
    struct faces f = { 0 };
    struct text body = r->t;

    if (check_size(r) || mesh_arrays(m, r->vertices, normals, rgb, alloc, r->fault))
        return -1;
    if (read_body(r, m, &f))
        goto fail;
    notes->polygons = f.polygons;
    if (!has_faces(r))
        return 0;
    if (mesh_indices(m, f.n, alloc, r->fault))
        return -1;
    r->t = body;
    f = (struct faces){ .to = m->index };
    if (read_body(r, NULL, &f) == 0)
        return 0;
fail:
    mesh_drop(m, alloc);
    return -1;
}

int ply_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    struct ply *r = xcalloc(1, sizeof(*r));
    struct recon_mesh m = { 0 };
    int rc;

    r->path = path;
    r->load = text;
    r->fault = fault;
    r->t = (struct text){ text->s, text->s + text->n, 1 };
    rc = text->n >= 3 && memcmp(text->s, "ply", 3) == 0 ? read_header(r) : bad(r, NULL, "a PLY file begins with 'ply'");
    if (rc == 0)
        rc = read_all(r, alloc, &m, notes);
    if (rc == 0)
        *ret = m;
    free(r);
    return rc;
}
