/* OFF: [C][N]OFF, counts, vertices with normals and colours, polygons. Geomview's manual, section OFF. */
#include "config.h"
#include "data/geom.h"

#include <math.h>

struct off {
    const char *path;
    const struct load *load;
    struct text t;
    bool color, normal;
    uint64_t vertices, faces;
    struct fault *fault;
};

static int bad(const struct off *o, const char *what)
{
    bool ended = o->t.p >= o->t.end;

    return fault_set(o->fault, CODE_DATA, ended ? "file-truncated" : NULL, "'%s' line %llu: %s%s", o->path,
                     (unsigned long long)o->t.line, what, ended ? ", but the file ends" : "");
}

static int read_head(struct off *o)
{
    const char *const flags = "CN";
    double n[3];

    if (!text_next(&o->t))
        return bad(o, "OFF is wanted");
    for (; o->t.p < o->t.end && strchr(flags, *o->t.p); o->t.p++) {
        o->color = o->color || *o->t.p == 'C';
        o->normal = o->normal || *o->t.p == 'N';
    }
    if (o->t.end - o->t.p < 3 || memcmp(o->t.p, "OFF", 3))
        return bad(o, "OFF, COFF or NOFF of three dimensions is wanted");
    o->t.p += 3;
    for (int i = 0; i < 3; i++)
        if (!text_number(&o->t, &n[i]) || !(n[i] >= 0 && n[i] <= 1e15) || n[i] != floor(n[i]))
            return bad(o, "the numbers of vertices, faces and edges are wanted");
    o->vertices = (uint64_t)n[0];
    o->faces = (uint64_t)n[1];
    if (o->vertices > (uint64_t)(o->t.end - o->t.p) / 6 + 1 || o->faces > (uint64_t)(o->t.end - o->t.p) / 6 + 1)
        return fault_set(o->fault, CODE_DATA, "file-truncated", "'%s' says %llu vertices and %llu faces, which do not fit its %llu bytes",
                         o->path, (unsigned long long)o->vertices, (unsigned long long)o->faces, (unsigned long long)(o->t.end - o->t.p));
    return o->vertices <= UINT32_MAX ? 0 : bad(o, "at most 4294967295 vertices are taken");
}

/* colours: whole numbers to 255, or fractions to 1, as many as the line has */
static void read_color(struct off *o, uint8_t *rgb)
{
    const char *end = text_line_end(&o->t), *from = skip_blank(o->t.p, end), *p = from;
    double v[3] = { 255, 255, 255 };
    bool whole;

    for (int i = 0; i < 3; i++) {
        p = skip_blank(p, end);
        if (p >= end || !number_read(&p, end, &v[i]))
            break;
    }
    whole = !memchr(from, '.', (size_t)(p - from));
    for (int i = 0; i < 3; i++) {
        double k = whole ? v[i] : v[i] * 255;

        rgb[i] = (uint8_t)(k > 0 ? (k < 255 ? k + 0.5 : 255) : 0);
    }
    o->t.p = end;
}

static int read_vertices(struct off *o, struct recon_mesh *m)
{
    double v;

    for (uint64_t i = 0; i < o->vertices; i++) {
        for (int k = 0; k < 3; k++) {
            if (!text_number(&o->t, &v))
                return bad(o, "a vertex needs three numbers");
            m->xyz[3 * i + (uint64_t)k] = place(o->load, k, v);
        }
        for (int k = 0; m->normals && k < 3; k++) {
            if (!text_number(&o->t, &v))
                return bad(o, "a normal needs three numbers");
            m->normals[3 * i + (uint64_t)k] = (float)v;
        }
        if (m->rgb)
            read_color(o, m->rgb + 3 * i);
    }
    return 0;
}

/* m NULL: counts the triangles */
static int read_faces(struct off *o, struct recon_mesh *m, uint64_t *triangles, uint64_t *polygons)
{
    *triangles = *polygons = 0;
    for (uint64_t f = 0; f < o->faces; f++) {
        uint32_t first = 0, last = 0;
        double n, v;

        if (!text_number(&o->t, &n) || !(n >= 1 && n <= 1e9) || n != floor(n))
            return bad(o, "a face begins with the number of its corners");
        for (double i = 0; i < n; i++) {
            if (!text_number(&o->t, &v))
                return bad(o, "a corner of a face is wanted");
            if (!(v >= 0 && v < (double)o->vertices) || v != floor(v))
                return fault_set(o->fault, CODE_DATA, "face-index-out-of-range",
                                 "'%s' line %llu: index %.0f of a vertex is out of range, %llu are there", o->path,
                                 (unsigned long long)o->t.line, v, (unsigned long long)o->vertices);
            if (i >= 2) {
                if (m)
                    memcpy(m->index + 3 * *triangles, (uint32_t[]){ first, last, (uint32_t)v }, 12);
                if (m && m->joined)
                    m->joined[*triangles] = i > 2;
                ++*triangles;
            }
            first = i == 0 ? (uint32_t)v : first;
            last = (uint32_t)v;
        }
        *polygons += n > 3;
        o->t.p = text_line_end(&o->t); /* colours of faces */
    }
    return 0;
}

int off_parse(const char *path, const struct load *text, const struct geom_options *options, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    struct off o = { .path = path, .load = text, .t = { text->s, text->s + text->n, 1 }, .fault = fault };
    struct recon_mesh m = { 0 };
    struct text at;
    uint64_t triangles;
    int rc;

    if (read_head(&o) || mesh_arrays(&m, o.vertices, o.normal, o.color, alloc, fault))
        return -1;
    rc = read_vertices(&o, &m);
    at = o.t;
    if (rc == 0)
        rc = read_faces(&o, NULL, &triangles, &notes->polygons);
    if (rc == 0)
        rc = mesh_indices(&m, triangles, alloc, fault);
    if (rc == 0 && notes->polygons && !options->plain && !(m.joined = mesh_array(alloc, triangles, 1)))
        rc = fault_set(fault, CODE_MEMORY, NULL, "no memory for %llu triangles", (unsigned long long)triangles);
    o.t = at;
    if (rc == 0)
        rc = read_faces(&o, &m, &triangles, &notes->polygons);
    if (rc) {
        mesh_drop(&m, alloc);
        return -1;
    }
    *ret = m;
    return 0;
}
