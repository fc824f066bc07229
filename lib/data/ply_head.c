/* A PLY's header. */
#include "config.h"
#include "data/ply.h"

#include <stdlib.h>

const uint8_t ply_size[PLY_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 8 };
static const struct name type_names[] = {
    { "char", INT8 },     { "int8", INT8 },     { "uchar", UINT8 }, { "uint8", UINT8 },   { "short", INT16 },     { "int16", INT16 },
    { "ushort", UINT16 }, { "uint16", UINT16 }, { "int", INT32 },   { "int32", INT32 },   { "uint", UINT32 },     { "uint32", UINT32 },
    { "float", FLOAT32 }, { "float32", FLOAT32 }, { "double", FLOAT64 }, { "float64", FLOAT64 }, { NULL, 0 },
};
const char *const ply_type_name[PLY_TYPES] = { "char", "uchar", "short", "ushort", "int", "uint", "float", "double" };

static const struct name use_names[] = {
    { "x", USE_X },   { "y", USE_Y },     { "z", USE_Z },    { "nx", USE_NX },       { "ny", USE_NY },        { "nz", USE_NZ },
    { "red", USE_R }, { "green", USE_G }, { "blue", USE_B }, { "diffuse_red", USE_R }, { "diffuse_green", USE_G }, { "diffuse_blue", USE_B },
    { "r", USE_R },   { "g", USE_G },     { "b", USE_B },    { "s", USE_S },         { "t", USE_T },         { "u", USE_S },
    { "v", USE_T },   { "texture_u", USE_S }, { "texture_v", USE_T }, { NULL, 0 },
};

int ply_bad(const struct ply *r, const char *rule, const char *what)
{
    if (!r->where)
        return fault_set(r->fault, CODE_DATA, rule, "'%s' line %llu: %s", r->path, (unsigned long long)r->t.line, what);
    if (r->ascii)
        return fault_set(r->fault, CODE_DATA, rule, "'%s' line %llu, %s %llu: %s", r->path, (unsigned long long)r->t.line, r->where,
                         (unsigned long long)r->number, what);
    return fault_set(r->fault, CODE_DATA, rule, "'%s', %s %llu: %s", r->path, r->where, (unsigned long long)r->number, what);
}

static int add_element(struct ply *r, char *const *w, size_t n)
{
    struct ply_element *e = r->element + r->elements;

    if (n != 3 || r->elements == PLY_ELEMENTS_MAX || str_to_u64(w[2], &e->n) || e->n > UINT64_MAX / 4096)
        return ply_bad(r, NULL, "an element has a name and a count");
    snprintf(e->name, sizeof(e->name), "%s", w[1]);
    e->kind = str_eq(w[1], "vertex") ? KIND_VERTEX : str_eq(w[1], "face") ? KIND_FACE : str_eq(w[1], "tristrips") ? KIND_STRIP : KIND_OTHER;
    for (int i = 0; i < r->elements; i++)
        if (e->kind != KIND_OTHER && r->element[i].kind == e->kind)
            return ply_bad(r, NULL, "this element is there twice");
    if (e->kind == KIND_VERTEX)
        r->vertices = e->n;
    e->first = e->end = r->properties;
    r->elements++;
    return 0;
}

static int add_property(struct ply *r, char *const *w, size_t n)
{
    struct ply_property *p = r->property + r->properties;
    struct ply_element *e;
    int type, count = UINT8, use = USE_NONE;

    if (r->elements == 0 || r->properties == PLY_PROPERTIES_MAX)
        return ply_bad(r, NULL, r->elements ? "more than 1024 properties" : "a property before any element");
    e = &r->element[r->elements - 1];
    p->list = n > 1 && str_eq(w[1], "list");
    if (n != (p->list ? 5u : 3u) || name_value(type_names, w[p->list ? 3 : 1], &type) ||
        (p->list && name_value(type_names, w[2], &count)))
        return ply_bad(r, NULL, "a property has a known type and a name");
    if (count >= FLOAT32)
        return ply_bad(r, NULL, "the length of a list must be of a whole type");
    p->type = (enum ply_type)type;
    p->count = (enum ply_type)count;
    if (e->kind == KIND_VERTEX && !p->list && name_value(use_names, w[2], &use) == 0) {
        if (r->seen[use])
            use = USE_NONE; /* the first of its meaning counts */
        r->seen[use] = use != USE_NONE;
    }
    if ((e->kind == KIND_FACE || e->kind == KIND_STRIP) && p->list && (str_eq(w[4], "vertex_indices") || str_eq(w[4], "vertex_index")))
        use = USE_INDICES;
    if (e->kind == KIND_FACE && p->list && str_eq(w[4], "texcoord") && !r->seen[USE_TEXCOORD]) {
        use = USE_TEXCOORD;
        r->seen[use] = true;
    }
    snprintf(p->name, sizeof(p->name), "%s", w[p->list ? 4 : 2]);
    p->use = (enum ply_use)use;
    e->least += r->ascii ? 2 : p->list ? ply_size[p->count] : ply_size[p->type];
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
    return ply_bad(r, NULL, "format ascii, binary_little_endian or binary_big_endian, and 1.0 are wanted");
}

/* MeshLab's "comment TextureFile NAME", in the order of texnumber */
static void take_comment(struct ply *r, const char *line)
{
    static const char head[] = "comment TextureFile ";
    size_t n;

    if (!str_starts(line, head) || r->textures.n >= PLY_PROPERTIES_MAX)
        return;
    line += sizeof(head) - 1;
    line += strspn(line, " \t");
    n = strlen(line);
    while (n && is_blank(line[n - 1]))
        n--;
    if (n)
        strv_addf(&r->textures, "%.*s", (int)n, line);
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
        take_comment(r, copy);
    else if (str_eq(full.v[0], "format") && !*formatted)
        rc = add_format(r, full.v, full.n), *formatted = true;
    else if (!*formatted)
        rc = ply_bad(r, NULL, "the format is wanted first");
    else if (str_eq(full.v[0], "element"))
        rc = add_element(r, full.v, full.n);
    else if (str_eq(full.v[0], "property"))
        rc = add_property(r, full.v, full.n);
    else if (str_eq(full.v[0], "end_header"))
        rc = 1;
    else
        rc = ply_bad(r, NULL, "a header has format, element, property, comment and end_header");
    strv_release(&w);
    strv_release(&full);
    free(copy);
    return rc;
}

/* meanings that need each other */
static void drop_lone(struct ply *r)
{
    static const enum ply_use groups[][3] = { { USE_NX, USE_NY, USE_NZ }, { USE_R, USE_G, USE_B }, { USE_S, USE_T, USE_T } };

    for (size_t i = 0; i < COUNT(groups); i++) {
        bool whole = r->seen[groups[i][0]] && r->seen[groups[i][1]] && r->seen[groups[i][2]];

        for (int k = 0; k < r->properties && !whole; k++)
            for (int j = 0; j < 3; j++)
                if (r->property[k].use == groups[i][j])
                    r->property[k].use = USE_NONE;
        for (int j = 0; j < 3; j++)
            r->seen[groups[i][j]] = whole;
    }
}

static int read_lines(struct ply *r)
{
    bool formatted = false;

    for (int rc = 0; rc == 0;) {
        const char *e = text_line_end(&r->t);
        size_t n = (size_t)(e - r->t.p);

        if (e >= r->t.end)
            return ply_bad(r, "file-truncated", "the header does not end");
        if (n > 4096)
            return ply_bad(r, NULL, "a line of the header is longer than 4096 bytes");
        if (n && r->t.p[n - 1] == '\r')
            n--;
        if (r->t.line > 1 && (rc = header_line(r, r->t.p, n, &formatted)) < 0)
            return -1;
        r->t.p = e + 1;
        r->t.line++;
    }
    if (!r->seen[USE_X] || !r->seen[USE_Y] || !r->seen[USE_Z])
        return ply_bad(r, NULL, "vertices need the properties x, y and z");
    return r->vertices < UINT32_MAX ? 0 : ply_bad(r, NULL, "at most 4294967294 vertices are taken");
}

/* what the header says must fit the bytes that follow */
static int check_size(struct ply *r)
{
    uint64_t left = (uint64_t)(r->t.end - r->t.p) + 1, need = 0;

    for (int i = 0; i < r->elements; i++) {
        const struct ply_element *e = &r->element[i];

        if (e->n && (e->least == 0 || e->n > (left - need) / e->least))
            return fault_set(r->fault, CODE_DATA, "file-truncated", "'%s' says %llu of element %s, at least %llu bytes each: %llu are left",
                             r->path, (unsigned long long)e->n, e->name, (unsigned long long)e->least, (unsigned long long)(left - need - 1));
        need += e->n * e->least;
    }
    return 0;
}

int ply_header(struct ply *r)
{
    if (read_lines(r) || check_size(r))
        return -1;
    drop_lone(r);
    return 0;
}
