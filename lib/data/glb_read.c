/* glTF 2.0 in its binary form (Khronos, The glTF 2.0 Specification): the triangles of all nodes of the default scene, moved
 * by the nodes' matrices, one primitive after the other. Coordinates stay glTF's: right-handed, +Y up, metres. Buffers outside
 * the file, sparse accessors and required extensions are refused; materials and texture coordinates are passed over. */
#include "config.h"
#include "data/jsn.h"

#include <math.h>
#include <stdlib.h>

enum { ROOT = 1 };
enum { DEPTH_MAX = 64, JSON_MAX = 64 << 20, GROWTH_MAX = 40 };
enum { BYTE = 5121, SHORT = 5123, INT = 5125, FLOAT = 5126 };

struct glb {
    const char *path;
    const struct load *load;
    const struct jsn *j;
    const char *bin;
    uint64_t bin_n;
    struct recon_mesh *m; /* NULL in the pass that counts */
    uint64_t vertices, faces, uvs;
    bool all_normals, any_rgb;
    struct fault *fault;
};

/* count vectors of n numbers, step bytes apart */
struct view {
    const char *p;
    uint64_t count, step;
    int type, n;
    bool normalized;
};

static int bad(const struct glb *g, const char *fmt, ...) PRINTF(2, 3);
static int bad(const struct glb *g, const char *fmt, ...)
{
    char what[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return fault_set(g->fault, CODE_DATA, NULL, "'%s': %s", g->path, what);
}

/* a whole number of the key, or def; false: there and none */
static bool whole(const struct glb *g, jsn_at o, const char *key, uint64_t def, uint64_t *ret)
{
    jsn_at v = jsn_key(g->j, o, key);

    *ret = def;
    return !v || jsn_whole(g->j, v, ret);
}

static jsn_at item(const struct glb *g, const char *list, uint64_t i)
{
    return jsn_item(g->j, jsn_key(g->j, ROOT, list), i);
}

static int components(const struct glb *g, jsn_at type)
{
    static const struct name names[] = { { "SCALAR", 1 }, { "VEC2", 2 }, { "VEC3", 3 }, { "VEC4", 4 }, { NULL, 0 } };
    char *text = jsn_text(g->j, type);
    int n = 0;

    if (!text || name_value(names, text, &n))
        n = 0;
    free(text);
    return n;
}

static int size_of(int type)
{
    return type == BYTE ? 1 : type == SHORT ? 2 : type == INT || type == FLOAT ? 4 : 0;
}

static int accessor(const struct glb *g, uint64_t number, struct view *ret)
{
    jsn_at a = item(g, "accessors", number), b;
    uint64_t at, from, bytes, step, type, view, buffer, each;
    struct view v;

    if (!jsn_object(g->j, a) || !whole(g, a, "bufferView", UINT64_MAX, &view) || !whole(g, a, "byteOffset", 0, &at) ||
        !whole(g, a, "componentType", 0, &type) || !whole(g, a, "count", 0, &v.count))
        return bad(g, "accessor %llu is none", (unsigned long long)number);
    if (jsn_key(g->j, a, "sparse") || view == UINT64_MAX)
        return bad(g, "accessor %llu is sparse, which is not read", (unsigned long long)number);
    v.type = type <= FLOAT ? (int)type : 0;
    v.n = components(g, jsn_key(g->j, a, "type"));
    v.normalized = jsn_true(g->j, jsn_key(g->j, a, "normalized"));
    b = item(g, "bufferViews", view);
    if (!jsn_object(g->j, b) || !whole(g, b, "buffer", 0, &buffer) || !whole(g, b, "byteOffset", 0, &from) || !whole(g, b, "byteLength", 0, &bytes) ||
        !whole(g, b, "byteStride", 0, &step) || !size_of(v.type) || !v.n)
        return bad(g, "accessor %llu is none", (unsigned long long)number);
    if (buffer != 0 || jsn_key(g->j, item(g, "buffers", 0), "uri"))
        return bad(g, "accessor %llu lies in another file, one GLB is wanted", (unsigned long long)number);
    each = (uint64_t)size_of(v.type) * (uint64_t)v.n;
    v.step = step ? step : each;
    if (from > g->bin_n || bytes > g->bin_n - from || at > bytes || v.step < each || v.step > 65536 ||
        (v.count && (v.count - 1 > bytes / v.step || (v.count - 1) * v.step + each > bytes - at)))
        return fault_set(g->fault, CODE_DATA, "file-truncated", "'%s': accessor %llu of %llu vectors does not fit the %llu bytes of its buffer", g->path,
                         (unsigned long long)number, (unsigned long long)v.count, (unsigned long long)g->bin_n);
    v.p = g->bin ? g->bin + from + at : NULL; /* no chunk: no bytes and no vectors, as checked above */
    *ret = v;
    return 0;
}

static double component(const struct view *v, uint64_t i, int k)
{
    const char *p = v->p + i * v->step + (uint64_t)(k * size_of(v->type));
    uint16_t s;
    uint32_t u;
    float f;

    switch (v->type) {
    case BYTE:
        return (uint8_t)*p;
    case SHORT:
        memcpy(&s, p, 2);
        return s;
    case INT:
        memcpy(&u, p, 4);
        return u;
    default:
        memcpy(&f, p, 4);
        return (double)f;
    }
}

/* ---- one primitive ---- */

static double determinant(const double t[12])
{
    return t[0] * (t[5] * t[10] - t[6] * t[9]) - t[1] * (t[4] * t[10] - t[6] * t[8]) + t[2] * (t[4] * t[9] - t[5] * t[8]);
}

static bool identity(const double t[12])
{
    for (int i = 0; i < 12; i++)
        if (t[i] != (i % 5 == 0))
            return false;
    return true;
}

static void put_places(struct glb *g, const struct view *v, const double t[12])
{
    bool same = identity(t);

    for (uint64_t i = 0; i < v->count; i++) {
        double x[3], y;

        for (int k = 0; k < 3; k++)
            x[k] = component(v, i, k);
        for (int k = 0; k < 3; k++) {
            y = same ? x[k] : t[4 * k] * x[0] + t[4 * k + 1] * x[1] + t[4 * k + 2] * x[2] + t[4 * k + 3];
            g->m->xyz[3 * (g->vertices + i) + (uint64_t)k] = place(g->load, k, y);
        }
    }
}

/* by the cofactors, which is the inverse transpose up to its length; det < 0 turns them */
static void put_normals(struct glb *g, const struct view *v, const double t[12])
{
    double c[9] = { t[5] * t[10] - t[6] * t[9], t[6] * t[8] - t[4] * t[10], t[4] * t[9] - t[5] * t[8],
                    t[2] * t[9] - t[1] * t[10], t[0] * t[10] - t[2] * t[8], t[1] * t[8] - t[0] * t[9],
                    t[1] * t[6] - t[2] * t[5],  t[2] * t[4] - t[0] * t[6],  t[0] * t[5] - t[1] * t[4] };
    bool same = identity(t);
    double sign = determinant(t) < 0 ? -1 : 1;

    for (uint64_t i = 0; i < v->count; i++) {
        float *to = g->m->normals + 3 * (g->vertices + i);
        double x[3], y[3], length = 0;

        for (int k = 0; k < 3; k++)
            x[k] = component(v, i, k);
        for (int k = 0; k < 3; k++) {
            y[k] = sign * (c[3 * k] * x[0] + c[3 * k + 1] * x[1] + c[3 * k + 2] * x[2]);
            length += y[k] * y[k];
        }
        for (int k = 0; k < 3; k++)
            to[k] = (float)(same ? x[k] : length > 0 ? y[k] / sqrt(length) : 0);
    }
}

static void put_colors(struct glb *g, const struct view *v, uint64_t count)
{
    double scale = v->type == FLOAT ? 255 : v->type == SHORT ? 1 / 257.0 : 1;

    for (uint64_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            double c = v->p ? component(v, i, k) * scale : 255;

            g->m->rgb[3 * (g->vertices + i) + (uint64_t)k] = (uint8_t)(c > 0 ? (c < 255 ? c + 0.5 : 255) : 0);
        }
}

static int put_faces(struct glb *g, const struct view *index, const struct view *places, bool flip)
{
    uint64_t corners = index->p ? index->count : places->count;

    for (uint64_t i = 0; i + 2 < corners; i += 3) {
        uint32_t *to = g->m->index + 3 * (g->faces + i / 3);

        for (int k = 0; k < 3; k++) {
            double v = index->p ? component(index, i + (uint64_t)k, 0) : (double)(i + (uint64_t)k);

            if (!(v < (double)places->count))
                return fault_set(g->fault, CODE_DATA, "face-index-out-of-range", "'%s', face %llu: index %.0f of a vertex is out of range, %llu are there",
                                 g->path, (unsigned long long)(g->faces + i / 3), v, (unsigned long long)places->count);
            to[flip && k ? 3 - k : k] = (uint32_t)(g->vertices + (uint64_t)v);
        }
    }
    return 0;
}

static int attribute(const struct glb *g, jsn_at p, const char *name, struct view *ret)
{
    uint64_t number;

    *ret = (struct view){ 0 };
    if (!whole(g, jsn_key(g->j, p, "attributes"), name, UINT64_MAX, &number))
        return bad(g, "attribute %s names no accessor", name);
    return number == UINT64_MAX ? 0 : accessor(g, number, ret);
}

static int primitive(struct glb *g, jsn_at p, const double t[12])
{
    struct view places, normals, colors, index = { 0 };
    uint64_t mode, number, corners;

    if (!jsn_object(g->j, p) || !whole(g, p, "mode", 4, &mode) || !whole(g, p, "indices", UINT64_MAX, &number))
        return bad(g, "a primitive is none");
    if (mode < 4)
        return 0; /* points and lines */
    if (mode > 4)
        return bad(g, "a primitive is a strip or a fan, lists of triangles are read");
    if (attribute(g, p, "POSITION", &places) || attribute(g, p, "NORMAL", &normals) || attribute(g, p, "COLOR_0", &colors) ||
        (number != UINT64_MAX && accessor(g, number, &index)))
        return -1;
    if (!places.p || places.n != 3 || places.type != FLOAT)
        return bad(g, "a primitive has no POSITION of three floats");
    if ((normals.p && (normals.n != 3 || normals.type != FLOAT || normals.count != places.count)) ||
        (colors.p && (colors.n < 3 || colors.type == INT || colors.count != places.count)) || (index.p && (index.n != 1 || index.type == FLOAT)))
        return bad(g, "the attributes or indices of a primitive have other types or counts than glTF's");
    corners = index.p ? index.count : places.count;
    if (g->m) {
        put_places(g, &places, t);
        if (g->m->normals)
            put_normals(g, &normals, t);
        if (g->m->rgb)
            put_colors(g, &colors, places.count);
        if (put_faces(g, &index, &places, determinant(t) < 0))
            return -1;
    }
    g->all_normals = g->all_normals && normals.p;
    g->any_rgb = g->any_rgb || colors.p;
    g->uvs += g->m && jsn_key(g->j, jsn_key(g->j, p, "attributes"), "TEXCOORD_0") ? places.count : 0;
    g->vertices += places.count;
    g->faces += corners / 3;
    return g->vertices * 27 + g->faces * 12 <= GROWTH_MAX * g->load->n ? 0 : bad(g, "instances make more than %d times the file's bytes", GROWTH_MAX);
}

/* ---- nodes ---- */

static bool floats(const struct glb *g, jsn_at o, const char *key, double *v, size_t n)
{
    jsn_at a = jsn_key(g->j, o, key);

    for (size_t i = 0; a && i < n; i++)
        if (!jsn_number(g->j, jsn_item(g->j, a, i), &v[i]) || !isfinite(v[i]))
            v[i] = NAN; /* the vertices are refused for it */
    return a != 0;
}

/* the node's own matrix, 3 x 4 by rows; glTF writes columns */
static void local(const struct glb *g, jsn_at node, double t[12])
{
    double m[16], q[4] = { 0, 0, 0, 1 }, s[3] = { 1, 1, 1 }, x[3] = { 0, 0, 0 };

    if (floats(g, node, "matrix", m, 16)) {
        for (int i = 0; i < 12; i++)
            t[i] = m[i % 4 * 4 + i / 4];
        return;
    }
    floats(g, node, "rotation", q, 4);
    floats(g, node, "scale", s, 3);
    floats(g, node, "translation", x, 3);
    if (!pose_from((double[]){ q[3], q[0], q[1], q[2] }, x, m))
        m[0] = NAN, memset(m + 1, 0, 15 * sizeof(double));
    for (int i = 0; i < 12; i++)
        t[i] = i % 4 < 3 ? m[i] * s[i % 4] : m[i];
}

static int node(struct glb *g, uint64_t number, const double above[12], int depth, uint64_t *visits)
{
    jsn_at n = item(g, "nodes", number), children = jsn_key(g->j, n, "children"), mesh;
    double l[12], t[12];
    uint64_t which;
    int rc = 0;

    if (!jsn_object(g->j, n) || depth > DEPTH_MAX || ++*visits > 1000000 || !whole(g, n, "mesh", UINT64_MAX, &which))
        return bad(g, "node %llu is none, or the nodes are deeper than %d or more than a million", (unsigned long long)number, DEPTH_MAX);
    local(g, n, l);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            t[4 * i + k] = above[4 * i] * l[k] + above[4 * i + 1] * l[4 + k] + above[4 * i + 2] * l[8 + k] + (k == 3 ? above[4 * i + 3] : 0);
    mesh = which == UINT64_MAX ? 0 : jsn_key(g->j, item(g, "meshes", which), "primitives");
    if (which != UINT64_MAX && !jsn_array(g->j, mesh))
        return bad(g, "node %llu names no mesh", (unsigned long long)number);
    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, mesh); i++)
        rc = primitive(g, jsn_item(g->j, mesh, i), t);
    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, children); i++) {
        uint64_t c;

        rc = jsn_whole(g->j, jsn_item(g->j, children, i), &c) ? node(g, c, t, depth + 1, visits)
                                                                : bad(g, "a child of node %llu is none", (unsigned long long)number);
    }
    return rc;
}

static int scene(struct glb *g)
{
    static const double one[12] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 };
    jsn_at nodes;
    uint64_t which, visits = 0;
    int rc = 0;

    g->vertices = g->faces = 0;
    if (!whole(g, ROOT, "scene", 0, &which))
        return bad(g, "the default scene is none");
    nodes = jsn_key(g->j, item(g, "scenes", which), "nodes");
    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, nodes); i++) {
        uint64_t n;

        rc = jsn_whole(g->j, jsn_item(g->j, nodes, i), &n) ? node(g, n, one, 0, &visits) : bad(g, "a node of the scene is none");
    }
    return rc;
}

/* ---- the file ---- */

static uint32_t word(const struct load *t, uint64_t at)
{
    uint32_t v;

    memcpy(&v, t->s + at, 4);
    return v;
}

/* *ret_json: the text of the first chunk; g->bin the bytes of the second, if there is one */
static int chunks(struct glb *g, const char **ret_json, uint64_t *ret_n)
{
    const struct load *t = g->load;
    uint64_t n, bin;

    if (t->n < 20 || word(t, 8) > t->n || (n = word(t, 12)) > t->n - 20)
        return fault_set(g->fault, CODE_DATA, "file-truncated", "'%s' is truncated: a GLB of %llu bytes says more", g->path, (unsigned long long)t->n);
    if (word(t, 4) != 2 || word(t, 16) != 0x4e4f534a)
        return bad(g, "version %u is no glTF 2.0", word(t, 4));
    if (n > JSON_MAX)
        return bad(g, "its JSON has %llu bytes, at most %d are read", (unsigned long long)n, JSON_MAX);
    *ret_json = t->s + 20;
    *ret_n = n;
    if (t->n - 20 - n < 8)
        return 0;
    bin = word(t, 20 + n);
    if (word(t, 24 + n) != 0x004e4942)
        return 0;
    if (bin > t->n - 28 - n)
        return fault_set(g->fault, CODE_DATA, "file-truncated", "'%s' is truncated: its buffer of %llu bytes is cut", g->path, (unsigned long long)bin);
    g->bin = t->s + 28 + n;
    g->bin_n = bin;
    return 0;
}

static int read_all(struct glb *g, const struct data_alloc *alloc, struct recon_mesh *m)
{
    jsn_at required = jsn_key(g->j, ROOT, "extensionsRequired");

    if (jsn_items(g->j, required)) {
        char *name = jsn_text(g->j, jsn_item(g->j, required, 0)), *fine = esc_terminal(name ? name : "?");

        bad(g, "extension '%.100s' is required and not known", fine);
        free(fine);
        free(name);
        return -1;
    }
    g->all_normals = true;
    if (scene(g))
        return -1;
    if (g->vertices > UINT32_MAX)
        return bad(g, "at most 4294967295 vertices are taken");
    if (mesh_arrays(m, g->vertices, g->all_normals && g->vertices, g->any_rgb, alloc, g->fault) || mesh_indices(m, g->faces, alloc, g->fault))
        return -1;
    g->m = m;
    if (scene(g) == 0)
        return 0;
    mesh_drop(m, alloc);
    return -1;
}

int glb_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret, struct mesh_notes *notes,
              struct fault *fault)
{
    struct glb g = { .path = path, .load = text, .fault = fault };
    struct recon_mesh m = { 0 };
    const char *text_json = NULL;
    struct jsn *j;
    uint64_t n = 0, where = 0;
    int rc;

    if (text->n < 4 || memcmp(text->s, "glTF", 4))
        return bad(&g, "a GLB begins with 'glTF'");
    if (chunks(&g, &text_json, &n))
        return -1;
    if (!(j = jsn_parse(text_json, n, &where)))
        return bad(&g, "its JSON is none from byte %llu", (unsigned long long)where);
    g.j = j;
    rc = jsn_object(j, ROOT) ? read_all(&g, alloc, &m) : bad(&g, "its JSON is no object");
    notes->materials = jsn_items(j, jsn_key(j, ROOT, "materials")) > 0;
    notes->uvs = g.uvs;
    jsn_free(j);
    if (rc == 0)
        *ret = m;
    return rc;
}
