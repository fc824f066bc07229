/* Wavefront OBJ (appendix B1 of the Advanced Visualizer's manual): two passes over pieces of the text, see obj.h. */
#include "config.h"
#include "data/obj.h"

#include <pthread.h>
#include <stdlib.h>

static void *count_piece(void *arg)
{
    struct obj_piece *c = arg;

    for (const char *p = c->p; p < c->end;) {
        c->obj->quick->count(c, &p);
        if (p < c->end)
            p = obj_count_line(c, p) + 1;
    }
    return NULL;
}

static void *read_piece(void *arg)
{
    struct obj_piece *c = arg;

    for (const char *p = c->p; p && p < c->end;) {
        c->obj->quick->read(c, &p);
        if (p < c->end && (p = obj_read_line(c, p)))
            p++;
    }
    if (!c->fault.err.code && (c->at.tri != c->stop.tri || c->at.v != c->stop.v)) /* both passes must see the same: nothing is left unwritten */
        fault_set(&c->fault, CODE_INTERNAL, NULL, "'%s': the passes found other numbers: vertices up to %llu and %llu, triangles up to %llu and %llu",
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

static void cut(struct obj *o, const struct load *t, int threads)
{
    const char *end = t->s + t->n, *p = t->s;
    uint64_t want = t->n / 65536 + 1;

    o->pieces = (int)(want < (uint64_t)threads ? want : (uint64_t)threads);
    o->pieces = o->pieces < 1 ? 1 : o->pieces > OBJ_PIECES_MAX ? OBJ_PIECES_MAX : o->pieces;
    for (int i = 0; i < o->pieces; i++) {
        const char *e = i + 1 < o->pieces ? t->s + t->n / (uint64_t)o->pieces * (uint64_t)(i + 1) : end;

        e = e < p ? p : e;
        while (e < end && (e == p || e[-1] != '\n' || obj_joined(p, e - 1)))
            e++;
        o->piece[i] = (struct obj_piece){ .obj = o, .p = p, .end = e, .same_normals = true };
        p = e;
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
        a->tri += c->n.tri;
        a->lines += c->n.lines;
        a->polygons += c->n.polygons;
        c->stop = *a;
    }
}

/* what the first lines of their kind say; a file of no vertices or faces: false */
static bool first_line(const struct obj *o, bool of_faces, bool (*says)(const char *line, const char *end))
{
    for (int i = 0; i < o->pieces; i++) {
        const char *line = of_faces ? o->piece[i].first_f : o->piece[i].first_v;

        if (line)
            return says(line, o->piece[i].end);
    }
    return false;
}

static void *take(const struct data_alloc *alloc, uint64_t n, uint64_t size, bool *failed)
{
    void *p = *failed ? NULL : alloc->alloc(alloc->self, n * size);

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
    if (a->polygons)
        m->joined = take(alloc, a->tri, 1, &failed);
    if (!failed)
        return 0;
    mesh_drop(m, alloc);
    return fault_set(fault, CODE_MEMORY, NULL, "no memory for texture coordinates and normals of %llu triangles", (unsigned long long)a->tri);
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
        c->words.n = 0;
        c->other = c->uv_bad = 0;
        c->same_normals = true;
    }
    all_pieces(o, read_piece);
    for (int i = 0; i < o->pieces; i++) /* the first fault in the file's order */
        if (o->piece[i].fault.err.code) {
            *fault = o->piece[i].fault;
            return -1;
        }
    return 0;
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
    if (!(m->normal_index = alloc->alloc(alloc->self, m->faces * 12)))
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

    notes->polygons = o->all.polygons;
    for (int i = 0; i < o->pieces; i++) {
        const struct obj_piece *c = &o->piece[i];

        uv_bad += c->uv_bad;
        notes->other_line = notes->other || !c->other ? notes->other_line : c->other_line;
        notes->other += c->other;
    }
    if (uv_bad && o->mesh.uv)
        notes->uv_out = count_uv_out(&o->mesh);
}

static int read_all(struct obj *o, const struct geom_options *options, const struct data_alloc *alloc, struct mesh_notes *notes, struct fault *fault)
{
    struct extra e = { 0 };
    int rc;

    if (o->all.v > UINT32_MAX - 1 || o->all.vt > UINT32_MAX - 1 || o->all.vn > UINT32_MAX - 1)
        return fault_set(fault, CODE_DATA, NULL, "'%s' has %llu vertices, %llu texture coordinates and %llu normals, at most %u are taken", o->path,
                         (unsigned long long)o->all.v, (unsigned long long)o->all.vt, (unsigned long long)o->all.vn, UINT32_MAX - 1);
    if (make_arrays(o, o->all.vn && o->all.vn == o->all.v && first_line(o, true, obj_paired), first_line(o, false, obj_colored), alloc, fault))
        return -1;
    rc = second_pass(o, alloc, fault);
    if (rc == 0)
        rc = obj_take_words(o, options, &e, notes, fault);
    if (rc == 0)
        rc = extra_pack(&e, alloc, &o->mesh, fault);
    take_notes(o, notes);
    extra_free(&e);
    return rc;
}

int obj_parse_by(const struct obj_quick *quick, const char *path, const struct load *text, const struct geom_options *options,
                 const struct data_alloc *alloc, struct recon_mesh *ret, struct mesh_notes *notes, struct fault *fault)
{
    struct obj *o = xcalloc(1, sizeof(*o));
    struct fault local = { 0 };
    int rc;

    o->path = path;
    o->offset = text->offset;
    o->quick = quick;
    o->plain = options->plain;
    cut(o, text, options->threads);
    all_pieces(o, count_piece);
    add_up(o);
    rc = read_all(o, options, alloc, notes, &local);
    if (rc == 0) {
        *ret = o->mesh;
    } else {
        mesh_drop(&o->mesh, alloc);
        if (fault)
            *fault = local;
    }
    for (int i = 0; i < o->pieces; i++)
        free(o->piece[i].words.v);
    free(o);
    return rc ? -1 : 0;
}

int obj_parse(const char *path, const struct load *text, const struct geom_options *options, const struct data_alloc *alloc,
              struct recon_mesh *ret, struct mesh_notes *notes, struct fault *fault)
{
    const struct obj_quick *wide = obj_wide();

    return obj_parse_by(wide ? wide : &obj_plain, path, text, options, alloc, ret, notes, fault);
}
