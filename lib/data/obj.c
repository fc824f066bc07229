/* Wavefront OBJ: v, vt, vn and f are read, all else is passed over. The text is cut at line ends into one piece a thread;
 * the first pass counts, so that the second knows where its numbers go and what a negative index means. */
#include "config.h"
#include "data/geom.h"
#include "data/obj_quick.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { HEAD = 65536 }; /* bytes in which a library of materials is looked for */
enum { PIECES_MAX = 64 };

struct piece {
    struct obj *obj;
    const char *p, *end;
    uint64_t line, v, vt, vn, tri; /* first of this piece: how many stand before it; line from 1 */
    uint64_t tri_end;
    uint64_t polygons, uv_bad, uv_out;
    bool same_normals; /* every corner names the normal of its vertex's number */
    struct fault fault;
};

struct obj {
    const char *path;
    const double *offset; /* off x, y, z */
    struct recon_mesh mesh;
    uint64_t vertices, uvs, normals, tris;
    bool rgb;
    uint8_t *uv_bad; /* texture coordinates outside [0, 1]; NULL in the pass that finds whether there are any */
    struct piece piece[PIECES_MAX];
    int pieces;
};

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

static bool joined(const char *from, const char *newline)
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
        if (!joined(p, at))
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

static enum { LINE_NONE, LINE_V, LINE_VT, LINE_VN, LINE_F } kind_of(const char **at, const char *end)
{
    const char *p = skip_blank(*at, end);

    *at = p + 2;
    if (p + 1 >= end)
        return LINE_NONE;
    if (*p == 'f' && is_blank(p[1]))
        return LINE_F;
    if (*p != 'v')
        return LINE_NONE;
    if (is_blank(p[1]))
        return LINE_V;
    *at = p + 3;
    if (p + 2 < end && is_blank(p[2]))
        return p[1] == 't' ? LINE_VT : p[1] == 'n' ? LINE_VN : LINE_NONE;
    return LINE_NONE;
}

static void *count_piece(void *arg)
{
    struct piece *c = arg;
    uint64_t lines = 0;

    for (const char *p = c->p, *e; p < c->end; p = e + 1) {
        const char *q = p;
        uint64_t words = 0;
        bool quick = c->end - p >= QUICK_ROOM && (e = quick_line(p, &words));

        if (quick)
            lines++;
        else
            e = line_end(p, c->end, &lines);
        switch (kind_of(&q, e)) {
        case LINE_V:
            c->v++;
            break;
        case LINE_VT:
            c->vt++;
            break;
        case LINE_VN:
            c->vn++;
            break;
        case LINE_F: {
            uint64_t n = quick && *p == 'f' ? words : count_tokens(q, e);

            c->tri += n > 2 ? n - 2 : 0;
            c->polygons += n > 3;
            break;
        }
        default:
            break;
        }
    }
    c->line = lines;
    return NULL;
}

static int bad(struct piece *c, const char *rule, const char *what)
{
    return fault_set(&c->fault, CODE_DATA, rule, "'%s' line %llu: %s", c->obj->path, (unsigned long long)c->line, what);
}

static int read_floats(struct piece *c, const char **p, const char *end, float *to, int n, const double *offset, const char *what)
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

static int read_vertex(struct piece *c, const char *p, const char *end, uint64_t v)
{
    struct recon_mesh *m = &c->obj->mesh;
    double x[4];
    int n = 0;

    if (read_floats(c, &p, end, m->xyz + 3 * v, 3, c->obj->offset, "a vertex needs three numbers"))
        return -1;
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

static int read_uv(struct piece *c, const char *p, const char *end, uint64_t vt)
{
    double u = 0, v = 0;

    p = skip(p, end);
    if (!number_read(&p, end, &u))
        return bad(c, at_end(p, end) && end == c->end ? "file-truncated" : NULL, "a texture coordinate needs a number");
    p = skip(p, end);
    number_read(&p, end, &v); /* one is allowed */
    if (!(u >= 0 && u <= 1 && v >= 0 && v <= 1)) {
        c->uv_bad++;
        if (c->obj->uv_bad)
            c->obj->uv_bad[vt] = 1;
    }
    return 0;
}

static int out_of_range(struct piece *c, int64_t i, uint64_t there, const char *what)
{
    return fault_set(&c->fault, CODE_DATA, "face-index-out-of-range", "'%s' line %llu: index %lld of a %s is out of range, %llu are there",
                     c->obj->path, (unsigned long long)c->line, (long long)i, what, (unsigned long long)there);
}

/* from 1, or back from what stands before this line; *ret from 0 */
static int resolve(struct piece *c, int64_t i, uint64_t before, uint64_t all, const char *what, uint64_t *ret)
{
    if (i > 0 && (uint64_t)i <= all)
        *ret = (uint64_t)i - 1;
    else if (i < 0 && (uint64_t)-i <= before)
        *ret = before - (uint64_t)-i;
    else
        return out_of_range(c, i, i < 0 ? before : all, what);
    return 0;
}

struct corner {
    uint64_t v, vt, vn;
    bool has_vt, has_vn;
};

static int read_corner(struct piece *c, const char **p, const char *end, const uint64_t before[3], struct corner *ret)
{
    static const char wrong[] = "a corner of a face is no index";
    const struct obj *o = c->obj;
    int64_t i;

    ret->has_vt = ret->has_vn = false;
    if (!integer_read(p, end, &i))
        return bad(c, NULL, wrong);
    if (resolve(c, i, before[0], o->vertices, "vertex", &ret->v))
        return -1;
    if (*p < end && **p == '/') {
        ++*p;
        if (*p < end && **p != '/' && !is_blank(**p)) {
            if (!integer_read(p, end, &i))
                return bad(c, NULL, wrong);
            if (resolve(c, i, before[1], o->uvs, "texture coordinate", &ret->vt))
                return -1;
            ret->has_vt = true;
        }
        if (*p < end && **p == '/') {
            ++*p;
            if (!integer_read(p, end, &i))
                return bad(c, NULL, wrong);
            if (resolve(c, i, before[2], o->normals, "normal", &ret->vn))
                return -1;
            ret->has_vn = true;
        }
    }
    return *p >= end || is_blank(**p) || **p == '#' || **p == '\\' ? 0 : bad(c, NULL, wrong);
}

static int read_face(struct piece *c, const char *p, const char *end, const uint64_t before[3], uint32_t **to)
{
    uint32_t first = 0, last = 0;
    bool uv_out = false;
    uint64_t n = 0;

    for (p = skip(p, end); !at_end(p, end); p = skip(p, end), n++) {
        struct corner k;

        if (read_corner(c, &p, end, before, &k))
            return -1;
        c->same_normals = c->same_normals && k.has_vn && k.vn == k.v;
        uv_out = uv_out || (k.has_vt && c->obj->uv_bad && c->obj->uv_bad[k.vt]);
        if (n >= 2) {
            if (*to == c->obj->mesh.index + 3 * c->tri_end)
                return bad(c, NULL, "more corners than were counted");
            (*to)[0] = first;
            (*to)[1] = last;
            (*to)[2] = (uint32_t)k.v;
            *to += 3;
        }
        if (n == 0)
            first = (uint32_t)k.v;
        last = (uint32_t)k.v;
    }
    c->uv_out += uv_out;
    return n >= 3 ? 0 : bad(c, end == c->end ? "file-truncated" : NULL, "a face needs three corners");
}

/* A line that needs no more than numbers or the corners of a triangle: its end, or NULL. at: what stands before the line. */
static const char *read_quick(struct piece *c, const char *p, uint64_t at[3], uint32_t **to)
{
    static const double none[3];
    struct recon_mesh *m = &c->obj->mesh;
    const char *e = NULL;

    if (p[0] == 'f' && p[1] == ' ') {
        if (*to == m->index + 3 * c->tri_end || !(e = quick_triangle(p + 2, c->obj->vertices, *to)))
            return NULL;
        *to += 3;
        c->same_normals = false;
    } else if (p[0] == 'v' && p[1] == ' ') {
        if (!m->rgb && (e = quick_three(p + 2, c->obj->offset, m->xyz + 3 * at[0])))
            at[0]++;
    } else if (p[0] == 'v' && p[1] == 'n' && p[2] == ' ') {
        if (m->normals && (e = quick_three(p + 3, none, m->normals + 3 * at[2])))
            at[2]++;
    }
    c->line += e != NULL;
    return e;
}

static void *read_piece(void *arg)
{
    struct piece *c = arg;
    struct recon_mesh *m = &c->obj->mesh;
    uint64_t at[3] = { c->v, c->vt, c->vn };
    uint32_t *to = m->index + 3 * c->tri;
    int rc = 0;

    for (const char *p = c->p, *e; rc == 0 && p < c->end; p = e + 1) {
        const char *q = p;
        uint64_t lines = 0;

        if (c->end - p >= QUICK_ROOM && (e = read_quick(c, p, at, &to)))
            continue;
        e = line_end(p, c->end, &lines);
        switch (kind_of(&q, e)) {
        case LINE_V:
            rc = read_vertex(c, q, e, at[0]++);
            break;
        case LINE_VT:
            rc = read_uv(c, q, e, at[1]++);
            break;
        case LINE_VN:
            rc = m->normals ? read_floats(c, &q, e, m->normals + 3 * at[2], 3, NULL, "a normal needs three numbers") : 0;
            at[2]++;
            break;
        case LINE_F:
            rc = read_face(c, q, e, at, &to);
            break;
        default:
            break;
        }
        c->line += lines;
    }
    if (rc == 0 && to != m->index + 3 * c->tri_end) /* both passes must see the same faces: nothing is left unwritten */
        fault_set(&c->fault, CODE_INTERNAL, NULL, "'%s': %llu triangles were counted, %llu were read", c->obj->path,
                  (unsigned long long)(c->tri_end - c->tri), (unsigned long long)((uint64_t)(to - m->index) / 3 - c->tri));
    return NULL;
}

static void all_pieces(struct obj *o, void *(*work)(void *))
{
    pthread_t thread[PIECES_MAX];
    bool started[PIECES_MAX] = { false };

    for (int i = 1; i < o->pieces; i++)
        started[i] = pthread_create(&thread[i], NULL, work, &o->piece[i]) == 0;
    work(&o->piece[0]);
    for (int i = 1; i < o->pieces; i++) {
        if (started[i])
            pthread_join(thread[i], NULL);
        else
            work(&o->piece[i]);
    }
}

static void cut(struct obj *o, const struct load *t, int threads)
{
    const char *end = t->s + t->n, *p = t->s;
    uint64_t want = t->n / 65536 + 1;

    o->pieces = (int)(want < (uint64_t)threads ? want : (uint64_t)threads);
    o->pieces = o->pieces < 1 ? 1 : o->pieces > PIECES_MAX ? PIECES_MAX : o->pieces;
    for (int i = 0; i < o->pieces; i++) {
        const char *e = i + 1 < o->pieces ? t->s + t->n / (uint64_t)o->pieces * (uint64_t)(i + 1) : end;

        e = e < p ? p : e;
        while (e < end && (e == p || e[-1] != '\n' || joined(p, e - 1)))
            e++;
        o->piece[i] = (struct piece){ .obj = o, .p = p, .end = e, .same_normals = true };
        p = e;
    }
}

/* the counts of each piece become what stands before it */
static void add_up(struct obj *o, struct mesh_notes *notes)
{
    uint64_t line = 1;

    for (int i = 0; i < o->pieces; i++) {
        struct piece *c = &o->piece[i], n = *c;

        c->v = o->vertices;
        c->vt = o->uvs;
        c->vn = o->normals;
        c->tri = o->tris;
        c->line = line;
        o->vertices += n.v;
        o->uvs += n.vt;
        o->normals += n.vn;
        o->tris += n.tri;
        c->tri_end = o->tris;
        line += n.line;
        notes->polygons += n.polygons;
    }
}

static bool colored(const struct load *t)
{
    uint64_t lines = 0;

    for (const char *p = t->s, *end = t->s + t->n, *e; p < end; p = e + 1) {
        const char *q = p;

        e = line_end(p, end, &lines);
        if (kind_of(&q, e) == LINE_V)
            return count_tokens(q, e) >= 6;
    }
    return false;
}

static int second_pass(struct obj *o, struct mesh_notes *notes, struct fault *fault)
{
    struct piece before[PIECES_MAX];
    uint64_t uv_bad = 0;

    memcpy(before, o->piece, sizeof(before));
    all_pieces(o, read_piece);
    for (int i = 0; i < o->pieces; i++) { /* the first fault in the file's order */
        if (o->piece[i].fault.err.code) {
            *fault = o->piece[i].fault;
            return -1;
        }
        uv_bad += o->piece[i].uv_bad;
        notes->uv_out += o->piece[i].uv_out;
    }
    if (uv_bad && !o->uv_bad) { /* seldom: once more, since a face may stand before its coordinates */
        o->uv_bad = xcalloc(o->uvs, 1);
        memcpy(o->piece, before, sizeof(before));
        for (int turn = 0; turn < 2; turn++) {
            memcpy(o->piece, before, sizeof(before));
            all_pieces(o, read_piece);
        }
        for (int i = 0; i < o->pieces; i++)
            notes->uv_out += o->piece[i].uv_out;
    }
    return 0;
}

int obj_parse(const char *path, const struct load *text, int threads, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    struct obj *o = xcalloc(1, sizeof(*o));
    struct fault local = { 0 };
    bool same = true;
    int rc;

    o->path = path;
    o->offset = text->offset;
    cut(o, text, threads);
    all_pieces(o, count_piece);
    add_up(o, notes);
    if (o->vertices > UINT32_MAX)
        rc = fault_set(&local, CODE_DATA, NULL, "'%s' has %llu vertices, at most %u are taken", path, (unsigned long long)o->vertices, UINT32_MAX);
    else
        rc = mesh_arrays(&o->mesh, o->vertices, o->normals && o->normals == o->vertices, colored(text), alloc, &local) ||
             mesh_indices(&o->mesh, o->tris, alloc, &local);
    if (rc == 0)
        rc = second_pass(o, notes, &local);
    for (int i = 0; i < o->pieces; i++)
        same = same && o->piece[i].same_normals;
    notes->uvs = o->uvs;
    notes->materials = memmem(text->s, text->n < HEAD ? text->n : HEAD, "mtllib", 6) != NULL;
    notes->corner_normals = o->normals && (!o->mesh.normals || !same);
    if (rc == 0 && !same) { /* normals of corners: the slot has one a vertex */
        alloc->free(alloc->self, o->mesh.normals);
        o->mesh.normals = NULL;
    }
    if (rc == 0) {
        *ret = o->mesh;
    } else {
        mesh_drop(&o->mesh, alloc);
        if (fault)
            *fault = local;
    }
    free(o->uv_bad);
    free(o);
    return rc ? -1 : 0;
}
