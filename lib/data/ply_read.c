/* PLY (Turk, 1994): ascii and both byte orders, elements in any order, properties and lists of any type. Of vertices x y z, nx ny nz,
 * red green blue and s t have a meaning, of faces the lists vertex_indices or vertex_index and texcoord, of tristrips theirs; other
 * numbers of vertices and faces go along. */
#include "config.h"
#include "data/ply.h"

#include <math.h>
#include <stdlib.h>

static int value(struct ply *r, enum ply_type type, double *ret)
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
    size_t n = ply_size[type];

    if (r->ascii)
        return text_number(&r->t, ret) ? 0
                                       : ply_bad(r, r->t.p >= r->t.end ? "file-truncated" : NULL,
                                             r->t.p >= r->t.end ? "the file ends here" : "a number is wanted");
    if ((size_t)(r->t.end - r->t.p) < n)
        return ply_bad(r, "file-truncated", "the file ends here");
    if (!r->swap && n == 4)
        memcpy(u.b, r->t.p, 4);
    else
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

static int list_length(struct ply *r, const struct ply_property *p, uint64_t *ret)
{
    uint64_t left = (uint64_t)(r->t.end - r->t.p) + 1;
    double n;

    if (value(r, p->count, &n))
        return -1;
    if (!(n >= 0 && n <= 4294967295.0) || n != floor(n))
        return ply_bad(r, NULL, "a list has a length below zero or no whole one");
    if (n > (double)(left / (r->ascii ? 2 : ply_size[p->type])))
        return ply_bad(r, "file-truncated", "a list is longer than the file");
    *ret = (uint64_t)n;
    return 0;
}

static int skip_property(struct ply *r, const struct ply_property *p)
{
    uint64_t n = 1;
    double v;

    if (p->list && list_length(r, p, &n))
        return -1;
    if (!r->ascii && n <= (uint64_t)(r->t.end - r->t.p) / ply_size[p->type]) {
        r->t.p += n * ply_size[p->type];
        return 0;
    }
    while (n--)
        if (value(r, p->type, &v))
            return -1;
    return 0;
}

static uint8_t byte_of(const struct ply_property *p, double v)
{
    double k = p->type >= FLOAT32 ? v * 255 : p->type == UINT16 ? v / 257 : v;

    return (uint8_t)(k > 0 ? (k < 255 ? k + 0.5 : 255) : 0);
}

/* a number as the bytes of its type; out of its range: the nearest */
static void put_value(enum ply_type type, double v, uint8_t *to)
{
    static const double low[] = { INT8_MIN, 0, INT16_MIN, 0, INT32_MIN, 0 }, high[] = { INT8_MAX, UINT8_MAX, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX };
    float f = (float)v;
    int64_t i = 0;

    if (type < FLOAT32)
        i = v != v ? 0 : (int64_t)(v < low[type] ? low[type] : v > high[type] ? high[type] : v);
    memcpy(to, type == FLOAT64 ? (const void *)&v : type == FLOAT32 ? (const void *)&f : (const void *)&i, ply_size[type]);
}

/* the next value of property p into its column of row */
static int read_column(struct ply *r, const struct ply_property *p, uint8_t **row)
{
    double v;

    if (!*row)
        return skip_property(r, p);
    if (value(r, p->type, &v))
        return -1;
    put_value(p->type, v, *row);
    *row += ply_size[p->type];
    return 0;
}

static int read_vertex(struct ply *r, const struct ply_element *e, struct recon_mesh *m, uint64_t i)
{
    struct columns *c = &r->e.vertex;
    uint8_t *row = c->rows ? (uint8_t *)c->rows + c->row * i : NULL;

    for (int k = e->first; k < e->end; k++) {
        const struct ply_property *p = &r->property[k];
        double v;

        if (p->list || p->use == USE_NONE) {
            if (p->list ? skip_property(r, p) : read_column(r, p, &row))
                return -1;
            continue;
        }
        if (value(r, p->type, &v))
            return -1;
        if (p->use <= USE_Z)
            m->xyz[3 * i + (p->use - USE_X)] = place(r->load, (int)(p->use - USE_X), v);
        else if (p->use <= USE_NZ)
            m->normals[3 * i + (p->use - USE_NX)] = (float)v;
        else if (p->use <= USE_B)
            m->rgb[3 * i + (p->use - USE_R)] = byte_of(p, v);
        else if (m->uv)
            m->uv[2 * i + (p->use - USE_S)] = (float)v;
        if (p->use >= USE_S && m->uv && !isfinite(m->uv[2 * i + (p->use - USE_S)]))
            return ply_bad(r, "uv-nan", "a texture coordinate is not finite; keep = geometry reads the mesh without");
    }
    return 0;
}

/* faces as they are counted, and in a second pass written */
struct faces {
    struct recon_mesh *m; /* NULL: counts only */
    uint64_t n, polygons; /* triangles; faces of more than three corners */
    uint64_t uvs;         /* texture coordinates of corners */
    uint64_t rows;        /* faces that have triangles */
    struct {              /* of the face being read */
        uint32_t *v;
        size_t n, cap;
    } corner;
    struct {
        float *v;
        size_t n, cap;
    } uv;
};

static void put_triangle(struct faces *f, uint32_t a, uint32_t b, uint32_t c, bool joined)
{
    if (f->m) {
        memcpy(f->m->index + 3 * f->n, (uint32_t[]){ a, b, c }, 12);
        if (f->m->joined)
            f->m->joined[f->n] = joined;
        if (f->m->uv_index)
            memcpy(f->m->uv_index + 3 * f->n, (uint32_t[]){ RECON_NONE, RECON_NONE, RECON_NONE }, 12);
    }
    f->n++;
}

/* Each second triangle is turned; -1 begins a new strip; what has a corner twice joins strips and is no face. */
static void put_strip(struct faces *f)
{
    uint32_t a = 0, b = 0;
    uint64_t k = 0;

    for (size_t i = 0; i < f->corner.n; i++) {
        uint32_t v = f->corner.v[i];

        if (v == RECON_NONE) {
            k = 0;
            continue;
        }
        if (k >= 2 && a != b && b != v && a != v)
            put_triangle(f, k % 2 ? b : a, k % 2 ? a : b, v, false);
        a = k >= 1 ? b : v;
        b = v;
        k++;
    }
}

static int put_polygon(struct ply *r, struct faces *f)
{
    const uint32_t *v = f->corner.v;
    size_t n = f->corner.n;

    if (n && n < 3)
        return ply_bad(r, NULL, "a face needs three corners");
    if (f->uv.n && f->uv.n != 2 * n)
        return ply_bad(r, NULL, "texcoord has not two numbers for each corner");
    for (size_t k = 2; k < n; k++) {
        put_triangle(f, v[0], v[k - 1], v[k], k > 2);
        if (f->m && f->m->uv_index && f->uv.n)
            memcpy(f->m->uv_index + 3 * (f->n - 1), (uint32_t[]){ (uint32_t)f->uvs, (uint32_t)(f->uvs + k - 1), (uint32_t)(f->uvs + k) }, 12);
    }
    if (f->m && f->m->uv_index && f->uv.n)
        memcpy(f->m->uv + 2 * f->uvs, f->uv.v, f->uv.n * sizeof(float));
    f->uvs += f->uv.n / 2;
    f->polygons += n > 3;
    return 0;
}

/* Usual ones: whole numbers of 32 bits in the machine's order, all in range. false: nothing is taken. */
static bool quick_indices(struct ply *r, const struct ply_property *p, uint64_t n, struct faces *f)
{
    const char *at = r->t.p;

    if (r->ascii || r->swap || (p->type != INT32 && p->type != UINT32) || n > (uint64_t)(r->t.end - at) / 4)
        return false;
    while (f->corner.cap < n)
        vec_grow((void **)&f->corner.v, &f->corner.cap, sizeof(*f->corner.v));
    memcpy(f->corner.v, at, 4 * n);
    for (uint64_t i = 0; i < n; i++)
        if (f->corner.v[i] >= r->vertices) /* below zero, too */
            return false;
    f->corner.n = n;
    r->t.p += 4 * n;
    return true;
}

static int read_indices(struct ply *r, const struct ply_property *p, bool strip, struct faces *f)
{
    uint64_t n;
    double v;

    if (list_length(r, p, &n))
        return -1;
    if (n && quick_indices(r, p, n, f))
        return 0;
    for (f->corner.n = 0; n; n--) {
        char what[120];

        if (value(r, p->type, &v))
            return -1;
        if ((v >= 0 && v < (double)r->vertices && v == floor(v)) || (strip && v == -1)) {
            *VEC_ADD(&f->corner) = v < 0 ? RECON_NONE : (uint32_t)v;
            continue;
        }
        snprintf(what, sizeof(what), "index %.0f of a vertex is out of range, %llu are there", v, (unsigned long long)r->vertices);
        return ply_bad(r, "face-index-out-of-range", what);
    }
    return 0;
}

static int read_texcoord(struct ply *r, const struct ply_property *p, struct faces *f)
{
    uint64_t n;
    double v;

    if (list_length(r, p, &n))
        return -1;
    for (f->uv.n = 0; n; n--) {
        if (value(r, p->type, &v))
            return -1;
        if (!isfinite((float)v))
            return ply_bad(r, "uv-nan", "a texture coordinate is not finite; keep = geometry reads the mesh without");
        *VEC_ADD(&f->uv) = (float)v;
    }
    return 0;
}

static int read_face(struct ply *r, const struct ply_element *e, struct faces *f)
{
    struct columns *c = &r->e.face;
    uint8_t *row = f->m && c->rows && e->kind == KIND_FACE ? (uint8_t *)c->rows + c->row * f->rows : NULL;
    int rc = 0;

    f->corner.n = f->uv.n = 0;
    for (int k = e->first; rc == 0 && k < e->end; k++) {
        const struct ply_property *p = &r->property[k];

        if (p->use == USE_INDICES)
            rc = read_indices(r, p, e->kind == KIND_STRIP, f);
        else if (p->use == USE_TEXCOORD && !r->options->plain)
            rc = read_texcoord(r, p, f);
        else
            rc = p->list ? skip_property(r, p) : read_column(r, p, &row);
    }
    if (rc)
        return -1;
    if (e->kind == KIND_STRIP) {
        put_strip(f);
        return 0;
    }
    f->rows += f->corner.n > 2;
    return put_polygon(r, f);
}

/* An element that is passed over, of a size that the header says: all of it at once. */
static bool skip_element(struct ply *r, const struct ply_element *e, const struct recon_mesh *vertices)
{
    if (r->ascii || e->kind == KIND_FACE || e->kind == KIND_STRIP || (e->kind == KIND_VERTEX && vertices))
        return false;
    for (int k = e->first; k < e->end; k++)
        if (r->property[k].list)
            return false;
    if (e->least && e->n > (uint64_t)(r->t.end - r->t.p) / e->least)
        return false;
    r->t.p += e->n * e->least;
    return true;
}

/* all elements in their order; vertices: whether they are taken; faces are counted or written */
static int read_body(struct ply *r, struct recon_mesh *vertices, struct faces *f)
{
    for (int i = 0; i < r->elements; i++) {
        const struct ply_element *e = &r->element[i];

        r->where = e->name;
        if (skip_element(r, e, vertices))
            continue;
        for (r->number = 0; r->number < e->n; r->number++) {
            int rc = 0;

            if (e->kind == KIND_VERTEX && vertices)
                rc = read_vertex(r, e, vertices, r->number);
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

static int read_all(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m, struct mesh_notes *notes)
{
    struct faces f = { 0 };
    struct text body = r->t;
    int rc = -1;

    if (mesh_arrays(m, r->vertices, r->seen[USE_NX], r->seen[USE_R], alloc, r->fault))
        return -1;
    if (ply_vertex_arrays(r, alloc, m) || read_body(r, m, &f))
        goto out;
    notes->polygons = f.polygons;
    rc = 0;
    if (ply_has_faces(r)) {
        rc = mesh_indices(m, f.n, alloc, r->fault) || ply_face_arrays(r, alloc, m, f.polygons, f.uvs, f.rows) ? -1 : 0;
        r->t = body;
        f.n = f.polygons = f.uvs = f.rows = 0;
        f.m = m;
        rc = rc || read_body(r, NULL, &f) || ply_textures(r, alloc, m) ? -1 : 0;
    }
out:
    free(f.corner.v);
    free(f.uv.v);
    if (rc)
        mesh_drop(m, alloc);
    return rc;
}

int ply_parse(const char *path, const struct load *text, const struct geom_options *options, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    struct ply *r = xcalloc(1, sizeof(*r));
    struct recon_mesh m = { 0 };
    int rc;

    r->path = path;
    r->load = text;
    r->options = options;
    r->fault = fault;
    r->t = (struct text){ text->s, text->s + text->n, 1 };
    rc = text->n >= 3 && memcmp(text->s, "ply", 3) == 0 ? ply_header(r) : ply_bad(r, NULL, "a PLY file begins with 'ply'");
    if (rc == 0)
        rc = read_all(r, alloc, &m, notes);
    if (rc == 0)
        *ret = m;
    strv_release(&r->textures);
    extra_free(&r->e);
    free(r);
    return rc;
}
