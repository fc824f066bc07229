/* Wavefront OBJ (appendix B1 of the Advanced Visualizer's manual): two passes over pieces of the text, see obj.h. */
#include "config.h"
#include "data/obj.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static bool count_chunk(struct obj_piece *c)
{
    for (const char *p = c->p; p < c->end;) {
        c->obj->quick->count(c, &p);
        if (p < c->end)
            p = obj_count_line(c, p) + 1;
    }
    return true;
}

static void *count_piece(void *piece)
{
    obj_chunks(piece, count_chunk);
    return NULL;
}

static bool read_chunk(struct obj_piece *c)
{
    for (const char *p = c->p; p < c->end;) {
        c->obj->quick->read(c, &p);
        if (p < c->end && !(p = obj_read_line(c, p)))
            return false;
        p++;
    }
    return true;
}

static void *read_piece(void *arg)
{
    struct obj_piece *c = arg;

    obj_chunks(c, read_chunk);
    if (!c->fault.err.code && (c->at.tri != c->stop.tri || c->at.v != c->stop.v || c->at.vt != c->stop.vt || c->at.vn != c->stop.vn))
        /* both passes must see the same: nothing is left unwritten */
        fault_set(&c->fault, CODE_DATA, NULL, "'%s' changed while it was read: %llu vertices were counted and %llu read, %llu triangles and %llu",
                  c->obj->path, (unsigned long long)c->stop.v, (unsigned long long)c->at.v, (unsigned long long)c->stop.tri,
                  (unsigned long long)c->at.tri);
    return NULL;
}

static void all_pieces(struct obj *o, void *(*work)(void *))
{
    pthread_t thread[OBJ_PIECES_MAX];
    bool started[OBJ_PIECES_MAX] = { false };

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

/* the counts of each piece become where it begins and stops */
static void add_up(struct obj *o)
{
    struct obj_counts *a = &o->all;

    a->lines = 1;
    for (int i = 0; i < o->pieces; i++) {
        struct obj_piece *c = &o->piece[i];

        c->at = *a;
        a->v += c->n.v;
        a->vt += c->n.vt;
        a->vn += c->n.vn;
        a->f += c->n.f;
        a->tri += c->n.tri;
        a->lines += c->n.lines;
        c->stop = *a;
    }
}

/* what the first vertex and the first face of all say */
static bool first_colored(const struct obj *o)
{
    for (int i = 0; i < o->pieces; i++)
        if (o->piece[i].seen_v)
            return o->piece[i].colored;
    return false;
}

static bool first_paired(const struct obj *o)
{
    for (int i = 0; i < o->pieces; i++)
        if (o->piece[i].seen_f)
            return o->piece[i].paired;
    return false;
}

static void *take(const struct data_alloc *alloc, uint64_t n, uint64_t size, bool *failed)
{
    void *p = *failed ? NULL : mesh_array(alloc, n, size);

    *failed = *failed || !p;
    return p;
}

/* paired: as many normals as vertices, and corners name those of their vertices, as the first face does */
static int make_arrays(struct obj *o, bool paired, bool colored, const struct data_alloc *alloc, struct fault *fault)
{
    struct recon_mesh *m = &o->mesh;
    const struct obj_counts *a = &o->all;
    bool failed = false;

    if (mesh_arrays(m, a->v, paired, colored, alloc, fault) || mesh_indices(m, a->tri, alloc, fault))
        return -1;
    if (o->plain)
        return 0;
    if (a->vt) {
        m->uvs = a->vt;
        m->uv = take(alloc, a->vt, 8, &failed);
        m->uv_index = take(alloc, a->tri, 12, &failed);
    }
    if (a->vn && !paired) {
        m->corner_normals = a->vn;
        m->corner_normal = take(alloc, a->vn, 12, &failed);
        m->normal_index = take(alloc, a->tri, 12, &failed);
    }
    if (a->tri != a->f)
        m->joined = take(alloc, a->tri, 1, &failed);
    if (!failed)
        return 0;
    mesh_drop(m, alloc);
    return fault_set(fault, CODE_MEMORY, NULL, "no memory for texture coordinates and normals of %llu triangles", (unsigned long long)a->tri);
}

static void free_words(struct obj_piece *c)
{
    for (size_t i = 0; i < c->words.n; i++)
        free(c->words.v[i].text);
    c->words.n = 0;
}

/* the first fault in the file's order */
static int first_fault(const struct obj *o, struct fault *fault)
{
    for (int i = 0; i < o->pieces; i++)
        if (o->piece[i].fault.err.code) {
            *fault = o->piece[i].fault;
            return -1;
        }
    return 0;
}

static int read_pieces(struct obj *o, struct fault *fault)
{
    for (int i = 0; i < o->pieces; i++) { /* as counted, also when it is done again */
        struct obj_piece *c = &o->piece[i];

        c->at = c->stop;
        c->at.v -= c->n.v;
        c->at.vt -= c->n.vt;
        c->at.vn -= c->n.vn;
        c->at.tri -= c->n.tri;
        c->at.lines -= c->n.lines;
        free_words(c);
        c->other = c->uv_bad = c->polygons = 0;
        c->same_normals = true;
    }
    all_pieces(o, read_piece);
    return first_fault(o, fault);
}

/* Normals of corners that turn out not to be those of vertices: they move over, and corners are read again. In the plain way
 * they go. */
static int unpair(struct obj *o, const struct data_alloc *alloc, struct fault *fault)
{
    struct recon_mesh *m = &o->mesh;

    if (o->plain) {
        alloc->free(alloc->self, m->normals);
        m->normals = NULL;
        return 0;
    }
    m->corner_normal = m->normals;
    m->corner_normals = o->all.vn;
    m->normals = NULL;
    if (!(m->normal_index = mesh_array(alloc, m->faces, 12)))
        return fault_set(fault, CODE_MEMORY, NULL, "no memory for the normals of %llu triangles", (unsigned long long)m->faces);
    return read_pieces(o, fault);
}

static int second_pass(struct obj *o, const struct data_alloc *alloc, struct fault *fault)
{
    bool same = true;

    if (read_pieces(o, fault))
        return -1;
    for (int i = 0; i < o->pieces; i++)
        same = same && o->piece[i].same_normals;
    return o->mesh.normals && !same ? unpair(o, alloc, fault) : 0;
}

/* polygons with a texture coordinate outside 0 to 1 */
static uint64_t count_uv_out(const struct recon_mesh *m)
{
    uint64_t n = 0;
    bool out = false;

    for (uint64_t f = 0; f < m->faces; f++) {
        out = out && m->joined && m->joined[f];
        for (int k = 0; k < 3 && !out; k++) {
            const float *uv = m->uv_index[3 * f + (uint64_t)k] == RECON_NONE ? NULL : m->uv + 2 * (uint64_t)m->uv_index[3 * f + (uint64_t)k];

            out = uv && !(uv[0] >= 0 && uv[0] <= 1 && uv[1] >= 0 && uv[1] <= 1);
            n += out;
        }
    }
    return n;
}

static void take_notes(const struct obj *o, struct mesh_notes *notes)
{
    uint64_t uv_bad = 0;

    notes->polygons = 0;
    for (int i = 0; i < o->pieces; i++) {
        const struct obj_piece *c = &o->piece[i];

        notes->polygons += c->polygons;
        uv_bad += c->uv_bad;
        notes->other_line = notes->other || !c->other ? notes->other_line : c->other_line;
        notes->other += c->other;
    }
    if (uv_bad && o->mesh.uv)
        notes->uv_out = count_uv_out(&o->mesh);
}

/* -1: refused; 1: in the second pass, for what stands in a line */
static int read_all(struct obj *o, const struct geom_options *options, const struct data_alloc *alloc, struct mesh_notes *notes, struct fault *fault)
{
    struct extra e = { 0 };
    int rc;

    if (o->all.v > UINT32_MAX - 1 || o->all.vt > UINT32_MAX - 1 || o->all.vn > UINT32_MAX - 1)
        return fault_set(fault, CODE_DATA, NULL, "'%s' has %llu vertices, %llu texture coordinates and %llu normals, at most %u are taken", o->path,
                         (unsigned long long)o->all.v, (unsigned long long)o->all.vt, (unsigned long long)o->all.vn, UINT32_MAX - 1);
    if (make_arrays(o, o->all.vn && o->all.vn == o->all.v && first_paired(o), first_colored(o), alloc, fault))
        return -1;
    if (second_pass(o, alloc, fault))
        return 1;
    rc = obj_take_words(o, options, &e, notes, fault);
    if (rc == 0)
        rc = extra_pack(&e, alloc, &o->mesh, fault);
    take_notes(o, notes);
    extra_free(&e);
    return rc;
}

/* false: a face of fewer than three corners is among them, see count_lines of obj_wide.c */
static bool counted(const struct obj *o)
{
    for (int i = 0; i < o->pieces; i++)
        if (o->piece[i].n.tri < o->piece[i].n.f || o->piece[i].n.tri > INT64_MAX)
            return false;
    return true;
}

/* 0, -1, or 1: by the general way once more, which counts each line and finds the right words for what is wrong */
static int passes(struct obj *o, const struct geom_options *options, const struct data_alloc *alloc, struct mesh_notes *notes, struct fault *fault)
{
    int rc;

    if (obj_cut(o, options->threads, fault))
        return -1;
    all_pieces(o, count_piece);
    if (first_fault(o, fault))
        return -1;
    add_up(o);
    if (o->quick != &obj_plain && !counted(o))
        return 1;
    rc = read_all(o, options, alloc, notes, fault);
    if (rc)
        mesh_drop(&o->mesh, alloc);
    return rc == 1 && (o->quick == &obj_plain || fault->err.code != CODE_DATA) ? -1 : rc;
}

int obj_parse_by(const struct obj_quick *quick, const char *path, const struct geom_options *options, const struct data_alloc *alloc,
                 struct recon_mesh *ret, struct mesh_notes *notes, struct fault *fault)
{
    struct obj *o = xcalloc(1, sizeof(*o));
    struct fault local = { 0 };
    int rc = -1;

    o->path = path;
    o->offset = options->offset;
    o->quick = quick;
    o->plain = options->plain;
    o->fd = data_open(path, &o->size, &local);
    if (o->fd >= 0) {
        rc = passes(o, options, alloc, notes, &local);
        close(o->fd);
    }
    if (rc == 0)
        *ret = o->mesh;
    for (int i = 0; i < o->pieces; i++) {
        free_words(&o->piece[i]);
        free(o->piece[i].words.v);
    }
    free(o);
    if (rc == 1)
        return obj_parse_by(&obj_plain, path, options, alloc, ret, notes, fault);
    if (rc && fault)
        *fault = local;
    return rc;
}

int obj_parse(const char *path, const struct geom_options *options, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    const struct obj_quick *wide = obj_wide();

    return obj_parse_by(wide ? wide : &obj_plain, path, options, alloc, ret, notes, fault);
}
