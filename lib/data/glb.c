/* glTF 2.0 in its binary form: one buffer, a node and a mesh for each object, a primitive for each of its materials; all share the
 * vertices. Coordinates as they are (glTF: right-handed, +Y up, metres). */
#include "config.h"
#include "data/geom.h"
#include "data/glb.h"
#include "data/glb_corners.h"
#include "data/polygon.h"

#include <math.h>
#include <stdlib.h>

/* faces of one object and one material that follow each other */
struct part {
    uint64_t from, to;
    uint32_t material, object; /* RECON_NONE: none */
    bool uv, normal;
};

struct glb_out {
    const struct recon_mesh *m;
    struct extra e;
    struct corners c;
    struct {
        struct part *v;
        size_t n, cap;
    } parts;
    bool uv, normal;     /* any has */
    int accessor[4];     /* POSITION, NORMAL, TEXCOORD_0, COLOR_0; -1: none */
    struct str views, accessors;
    uint64_t at;         /* bytes of the buffer so far */
    int views_n, accessors_n;
    struct glb_materials materials;
};

/* ---- parts ---- */

static void end_part(struct glb_out *g, struct part *p, uint64_t to)
{
    p->to = to;
    p->uv = p->normal = false;
    for (uint64_t i = 3 * p->from; i < 3 * p->to && !(p->uv && p->normal); i++) {
        p->uv = p->uv || corner_uv(g->m, i) != RECON_NONE;
        p->normal = p->normal || corner_normal(g->m, i) != RECON_NONE;
    }
    if (p->from < p->to)
        *VEC_ADD(&g->parts) = *p;
    g->uv = g->uv || p->uv;
    g->normal = g->normal || p->normal;
    p->from = to;
}

static void cut_parts(struct glb_out *g, struct mesh_written *w)
{
    struct part p = { .material = RECON_NONE, .object = RECON_NONE };
    bool groups = false;

    for (size_t i = 0; i < g->e.marks.n; i++) {
        const struct mark *k = &g->e.marks.v[i];

        groups = groups || k->kind == MARK_GROUP || k->kind == MARK_SMOOTH;
        if (k->kind != MARK_MATERIAL && k->kind != MARK_OBJECT)
            continue;
        if (k->face > p.from)
            end_part(g, &p, k->face < g->m->faces ? k->face : g->m->faces);
        *(k->kind == MARK_MATERIAL ? &p.material : &p.object) = k->value;
    }
    end_part(g, &p, g->m->faces);
    if (groups)
        strv_add(&w->left_out, "glTF has no place for groups and smoothing groups");
    if (g->m->joined)
        strv_add(&w->left_out, "glTF has triangles alone: polygons stay cut");
    if (g->e.vertex.names.n || g->e.face.names.n)
        strv_add(&w->left_out, "glTF has no place for further properties of vertices and faces");
}

/* ---- JSON ---- */

static int add_view(struct glb_out *g, uint64_t stride, uint64_t bytes, int target)
{
    str_addf(&g->views, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu", g->views_n ? "," : "", (unsigned long long)g->at, (unsigned long long)bytes);
    if (stride)
        str_addf(&g->views, ",\"byteStride\":%llu", (unsigned long long)stride);
    if (target)
        str_addf(&g->views, ",\"target\":%d", target);
    str_add(&g->views, "}");
    g->at += (bytes + 3) & ~(uint64_t)3;
    return g->views_n++;
}

static int add_accessor(struct glb_out *g, int view, uint64_t offset, uint64_t count, int component, const char *type, const char *more)
{
    str_addf(&g->accessors, "%s{\"bufferView\":%d", g->accessors_n ? "," : "", view);
    if (offset)
        str_addf(&g->accessors, ",\"byteOffset\":%llu", (unsigned long long)offset);
    str_addf(&g->accessors, ",\"componentType\":%d,\"count\":%llu,\"type\":\"%s\"%s}", component, (unsigned long long)count, type, more);
    return g->accessors_n++;
}

static void add_attributes(struct glb_out *g)
{
    double lo[3] = { INFINITY, INFINITY, INFINITY }, hi[3] = { -INFINITY, -INFINITY, -INFINITY };
    const struct recon_mesh *m = g->m;
    char box[200];

    for (uint64_t i = 0; i < 3 * m->vertices; i++) {
        lo[i % 3] = fmin(lo[i % 3], (double)m->xyz[i]);
        hi[i % 3] = fmax(hi[i % 3], (double)m->xyz[i]);
    }
    snprintf(box, sizeof(box), ",\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]", lo[0], lo[1], lo[2], hi[0], hi[1], hi[2]);
    g->accessor[0] = add_accessor(g, add_view(g, 12, 12 * g->c.n, 34962), 0, g->c.n, GLB_FLOAT, "VEC3", box);
    g->accessor[1] = g->normal ? add_accessor(g, add_view(g, 12, 12 * g->c.n, 34962), 0, g->c.n, GLB_FLOAT, "VEC3", "") : -1;
    g->accessor[2] = g->uv ? add_accessor(g, add_view(g, 8, 8 * g->c.n, 34962), 0, g->c.n, GLB_FLOAT, "VEC2", "") : -1;
    g->accessor[3] = m->rgb ? add_accessor(g, add_view(g, 4, 4 * g->c.n, 34962), 0, g->c.n, GLB_BYTE, "VEC4", ",\"normalized\":true") : -1;
}

static void add_primitive(struct glb_out *g, struct str *t, const struct part *p, int view)
{
    static const char *const names[] = { "POSITION", "NORMAL", "TEXCOORD_0", "COLOR_0" };
    const bool has[] = { true, p->normal, p->uv, true };

    str_add(t, "{\"attributes\":{");
    for (int i = 0; i < 4; i++)
        if (g->accessor[i] >= 0 && has[i])
            str_addf(t, "%s\"%s\":%d", i ? "," : "", names[i], g->accessor[i]);
    str_addf(t, "},\"indices\":%d", add_accessor(g, view, 12 * p->from, 3 * (p->to - p->from), GLB_INT, "SCALAR", ""));
    if (p->material != RECON_NONE)
        str_addf(t, ",\"material\":%u", p->material);
    str_add(t, "}");
}

/* nodes and meshes, one an object */
static void add_objects(struct glb_out *g, struct str *nodes, struct str *meshes, struct str *scene)
{
    int view = add_view(g, 0, 12 * g->m->faces, 34963);
    size_t n = 0;

    for (size_t i = 0; i < g->parts.n; i++) {
        const struct part *p = &g->parts.v[i];

        if (i && p->object == p[-1].object) {
            str_add(meshes, ",");
        } else {
            str_addf(meshes, "%s{\"primitives\":[", i ? "]}," : "");
            str_addf(nodes, "%s{\"mesh\":%zu", i ? "," : "", n);
            if (p->object != RECON_NONE) {
                str_add(nodes, ",\"name\":");
                jsn_add_text(nodes, g->e.names.v[p->object]);
            }
            str_add(nodes, "}");
            str_addf(scene, "%s%zu", i ? "," : "", n++);
        }
        add_primitive(g, meshes, p, view);
    }
    str_add(meshes, "]}");
}

static int head(struct glb_out *g, struct str *t, struct mesh_written *w, struct err *err)
{
    struct str nodes = { 0 }, meshes = { 0 }, scene = { 0 };
    int rc;

    add_attributes(g);
    add_objects(g, &nodes, &meshes, &scene);
    rc = glb_write_materials(&g->e, g->views_n, &g->materials, w, err);
    for (size_t i = 0; i < g->materials.images.n; i++)
        add_view(g, 0, g->materials.images.v[i].bytes.len, 0);
    str_addf(t, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"recon\"},\"scene\":0,\"scenes\":[{\"nodes\":[%s]}],\"nodes\":[%s],\"meshes\":[%s],"
                "\"accessors\":[%s],\"bufferViews\":[%s],\"buffers\":[{\"byteLength\":%llu}]%s}",
             scene.s, nodes.s, meshes.s, g->accessors.s, g->views.s, (unsigned long long)g->at, g->materials.json.s ? g->materials.json.s : "");
    while (t->len % 4)
        str_add(t, " ");
    str_release(&nodes);
    str_release(&meshes);
    str_release(&scene);
    return rc;
}

/* ---- bytes ---- */

static void put32(FILE *f, uint64_t v)
{
    uint32_t x = (uint32_t)v;

    fwrite(&x, 4, 1, f);
}

/* n vectors of three; which: their numbers, NULL: from 0 on */
static void put_floats(FILE *f, const float *from, const uint32_t *which, uint64_t n)
{
    static const float zero[3];

    if (!which)
        fwrite(from, 12, n, f);
    for (uint64_t i = 0; which && i < n; i++)
        fwrite(which[i] == RECON_NONE ? zero : from + 3 * (uint64_t)which[i], 12, 1, f);
}

static void put_uv(FILE *f, const struct recon_mesh *m, const uint32_t *which, uint64_t i)
{
    uint64_t k = which ? which[i] : i;
    float uv[2] = { 0, 0 };

    if (k != RECON_NONE && k < m->uvs) {
        uv[0] = m->uv[2 * k];
        uv[1] = uv_v(m, k, 1);
    }
    fwrite(uv, 4, 2, f);
}

static void put_body(FILE *f, const struct glb_out *g)
{
    const struct recon_mesh *m = g->m;
    const struct corners *c = &g->c;

    put_floats(f, m->xyz, c->vertex, c->n);
    if (g->normal)
        put_floats(f, m->corner_normal ? m->corner_normal : m->normals, c->normal, c->n);
    for (uint64_t i = 0; g->uv && i < c->n; i++)
        put_uv(f, m, c->uv, i);
    for (uint64_t i = 0; m->rgb && i < c->n; i++) {
        const uint8_t *p = m->rgb + 3 * (c->vertex ? c->vertex[i] : i);

        fwrite((uint8_t[]){ p[0], p[1], p[2], 255 }, 1, 4, f);
    }
    fwrite(c->index ? c->index : m->index, 12, m->faces, f);
    for (size_t i = 0; i < g->materials.images.n; i++) {
        const struct str *b = &g->materials.images.v[i].bytes;

        fwrite(b->s, 1, b->len, f);
        fwrite("\0\0\0", 1, -b->len % 4, f);
    }
}

static int put_file(const char *path, const struct glb_out *g, const struct str *json, struct err *err)
{
    struct file_out o;

    if (28 + json->len + g->at > UINT32_MAX)
        return err_set(err, CODE_DATA, "'%s' would have %llu bytes, GLB holds at most 4294967295", path, (unsigned long long)(28 + json->len + g->at));
    if (file_open_out(&o, path, 0644, err))
        return -1;
    fwrite("glTF", 1, 4, o.f);
    put32(o.f, 2);
    put32(o.f, 28 + json->len + g->at);
    put32(o.f, json->len);
    put32(o.f, 0x4e4f534a); /* JSON */
    fwrite(json->s, 1, json->len, o.f);
    put32(o.f, g->at);
    put32(o.f, 0x004e4942); /* BIN */
    put_body(o.f, g);
    return file_commit(&o, err);
}

int glb_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err)
{
    struct glb_out g = { .m = m };
    struct str json = { 0 };
    int rc;

    if (m->vertices == 0 || m->faces == 0)
        return err_set(err, CODE_DATA, "'%s': glTF has no empty meshes, %llu vertices and %llu faces are there", path,
                       (unsigned long long)m->vertices, (unsigned long long)m->faces);
    if (extra_unpack(m, &g.e, err))
        return -1;
    strv_add(&ret->files, path);
    cut_parts(&g, ret);
    rc = corners_split(m, &g.c, err);
    if (rc == 0)
        rc = head(&g, &json, ret, err);
    if (rc == 0)
        rc = put_file(path, &g, &json, err);
    corners_release(&g.c);
    glb_materials_release(&g.materials);
    extra_free(&g.e);
    str_release(&json);
    str_release(&g.views);
    str_release(&g.accessors);
    free(g.parts.v);
    return rc;
}
