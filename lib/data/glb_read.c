/* glTF 2.0 in its binary form: the triangles of all nodes of the default scene, moved by the nodes' matrices, one primitive after
 * the other; primitives of the same attributes and place have their vertices once. Coordinates stay glTF's: right-handed, +Y up,
 * metres. Buffers outside the file, sparse accessors and required extensions of more than materials are refused. */
#include "config.h"
#include "data/glb.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH_MAX = 64, JSON_MAX = 64 << 20, GROWTH_MAX = 40, SHARED_MAX = 64 };
enum { PLACES, NORMALS, UVS, COLORS, ATTRIBUTES };
static const char *const attribute_names[ATTRIBUTES] = { "POSITION", "NORMAL", "TEXCOORD_0", "COLOR_0" };

/* vertices that are there already: by which accessors, and how moved */
struct glb_shared {
    uint64_t number[ATTRIBUTES];
    double t[12];
    uint64_t first;
};

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

static void put_places(struct glb *g, const struct glb_view *v, const double t[12], uint64_t first)
{
    bool same = identity(t);

    for (uint64_t i = 0; i < v->count; i++) {
        double x[3], y;

        for (int k = 0; k < 3; k++)
            x[k] = glb_component(v, i, k);
        for (int k = 0; k < 3; k++) {
            y = same ? x[k] : t[4 * k] * x[0] + t[4 * k + 1] * x[1] + t[4 * k + 2] * x[2] + t[4 * k + 3];
            g->m->xyz[3 * (first + i) + (uint64_t)k] = place(g->load, k, y);
        }
    }
}

/* by the cofactors, which is the inverse transpose up to its length; det < 0 turns them */
static void put_normals(struct glb *g, const struct glb_view *v, const double t[12], uint64_t first)
{
    double c[9] = { t[5] * t[10] - t[6] * t[9], t[6] * t[8] - t[4] * t[10], t[4] * t[9] - t[5] * t[8],
                    t[2] * t[9] - t[1] * t[10], t[0] * t[10] - t[2] * t[8], t[1] * t[8] - t[0] * t[9],
                    t[1] * t[6] - t[2] * t[5],  t[2] * t[4] - t[0] * t[6],  t[0] * t[5] - t[1] * t[4] };
    bool same = identity(t);
    double sign = determinant(t) < 0 ? -1 : 1;

    for (uint64_t i = 0; i < v->count; i++) {
        float *to = (g->m->corner_normal ? g->m->corner_normal : g->m->normals) + 3 * (first + i);
        double x[3], y[3], length = 0;

        for (int k = 0; k < 3; k++)
            x[k] = glb_component(v, i, k);
        for (int k = 0; k < 3; k++) {
            y[k] = sign * (c[3 * k] * x[0] + c[3 * k + 1] * x[1] + c[3 * k + 2] * x[2]);
            length += y[k] * y[k];
        }
        for (int k = 0; k < 3; k++)
            to[k] = (float)(same ? x[k] : length > 0 ? y[k] / sqrt(length) : 0);
    }
}

static void put_colors(struct glb *g, const struct glb_view *v, uint64_t count, uint64_t first)
{
    double scale = v->type == GLB_FLOAT ? 255 : v->type == GLB_SHORT ? 1 / 257.0 : 1;

    for (uint64_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            double c = v->p ? glb_component(v, i, k) * scale : 255;

            g->m->rgb[3 * (first + i) + (uint64_t)k] = (uint8_t)(c > 0 ? (c < 255 ? c + 0.5 : 255) : 0);
        }
}

static int put_uvs(struct glb *g, const struct glb_view *v, uint64_t count, uint64_t first)
{
    double scale = v->type == GLB_FLOAT ? 1 : v->type == GLB_SHORT ? 65535 : 255;

    for (uint64_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            float uv = v->p ? (float)(glb_component(v, i, k) / scale) : 0;

            g->m->uv[2 * (first + i) + (uint64_t)k] = uv;
            if (!isfinite(uv))
                return fault_set(g->fault, CODE_DATA, "uv-nan", "'%s': texture coordinate %llu of a primitive is not finite; keep = geometry reads "
                                 "the mesh without", g->path, (unsigned long long)i);
        }
    return 0;
}

/* first: of the primitive's vertices */
static int put_faces(struct glb *g, const struct glb_view *index, const struct glb_view v[ATTRIBUTES], uint64_t first, bool flip)
{
    uint64_t count = v[PLACES].count, corners = index->p ? index->count : count;

    for (uint64_t i = 0; i + 2 < corners; i += 3)
        for (int k = 0; k < 3; k++) {
            uint64_t to = 3 * g->faces + i + (uint64_t)(flip && k ? 3 - k : k);
            double n = index->p ? glb_component(index, i + (uint64_t)k, 0) : (double)(i + (uint64_t)k);

            if (!(n < (double)count))
                return fault_set(g->fault, CODE_DATA, "face-index-out-of-range", "'%s', face %llu: index %.0f of a vertex is out of range, %llu are there",
                                 g->path, (unsigned long long)(g->faces + i / 3), n, (unsigned long long)count);
            g->m->index[to] = (uint32_t)(first + (uint64_t)n);
            if (g->m->uv_index)
                g->m->uv_index[to] = v[UVS].p ? g->m->index[to] : RECON_NONE;
            if (g->m->normal_index)
                g->m->normal_index[to] = v[NORMALS].p ? g->m->index[to] : RECON_NONE;
        }
    return 0;
}

/* all that a primitive names; *number: of accessors, UINT64_MAX: none */
static int attributes(struct glb *g, jsn_at p, struct glb_view v[ATTRIBUTES], uint64_t number[ATTRIBUTES])
{
    jsn_at list = jsn_key(g->j, p, "attributes");
    const char *name;
    size_t n;

    for (int i = 0; i < ATTRIBUTES; i++) {
        v[i] = (struct glb_view){ 0 };
        if (!glb_whole(g, list, attribute_names[i], UINT64_MAX, &number[i]))
            return glb_bad(g, "attribute %s names no accessor", attribute_names[i]);
        if (i == UVS && g->options->plain)
            number[i] = UINT64_MAX;
        if (number[i] != UINT64_MAX && glb_accessor(g, number[i], &v[i]))
            return -1;
    }
    for (uint64_t i = 0; (name = jsn_name(g->j, list, i, &n)); i++) {
        bool known = false;

        for (int k = 0; k < ATTRIBUTES; k++)
            known = known || (n == strlen(attribute_names[k]) && memcmp(name, attribute_names[k], n) == 0);
        if (!known)
            glb_lose(g, name, n);
    }
    if (jsn_key(g->j, p, "targets"))
        glb_lose(g, "morph targets", 13);
    return 0;
}

static int check_types(const struct glb *g, const struct glb_view v[ATTRIBUTES], const struct glb_view *index)
{
    const struct glb_view *a = &v[PLACES], *n = &v[NORMALS], *t = &v[UVS], *c = &v[COLORS];

    if (!a->p || a->n != 3 || a->type != GLB_FLOAT)
        return glb_bad(g, "a primitive has no POSITION of three floats");
    if ((n->p && (n->n != 3 || n->type != GLB_FLOAT || n->count != a->count)) || (c->p && (c->n < 3 || c->type == GLB_INT || c->count != a->count)) ||
        (t->p && (t->n != 2 || t->type == GLB_INT || t->count != a->count)) || (index->p && (index->n != 1 || index->type == GLB_FLOAT)))
        return glb_bad(g, "the attributes or indices of a primitive have other types or counts than glTF's");
    return 0;
}

/* Vertices from first on get what the primitive has and have not got; now: whether they are new. */
static int put_vertices(struct glb *g, const struct glb_view v[ATTRIBUTES], const bool wanted[ATTRIBUTES], const double t[12], uint64_t first, bool now)
{
    uint64_t count = v[PLACES].count;

    if (!g->m)
        return 0;
    if (now)
        put_places(g, &v[PLACES], t, first);
    if (now && g->m->corner_normal)
        memset(g->m->corner_normal + 3 * first, 0, 12 * count);
    if (wanted[NORMALS] && (g->m->normals || g->m->corner_normal))
        put_normals(g, &v[NORMALS], t, first);
    if (g->m->rgb && (now || wanted[COLORS]))
        put_colors(g, &v[COLORS], count, first);
    return g->m->uv && (now || wanted[UVS]) ? put_uvs(g, &v[UVS], count, first) : 0;
}

/* Vertices of the same places, moved alike, whose other attributes are the same or not on both sides; NULL: none. */
static struct glb_shared *find_shared(const struct glb *g, const uint64_t number[ATTRIBUTES], const double t[12])
{
    for (size_t i = g->shared.n; i-- > 0 && g->shared.n - i <= SHARED_MAX;) {
        struct glb_shared *s = &g->shared.v[i];
        bool fits = s->number[PLACES] == number[PLACES] && memcmp(s->t, t, sizeof(s->t)) == 0;

        for (int k = NORMALS; fits && k < ATTRIBUTES; k++)
            fits = s->number[k] == number[k] || s->number[k] == UINT64_MAX || number[k] == UINT64_MAX;
        if (fits)
            return s;
    }
    return NULL;
}

/* *ret: the first of the primitive's vertices, which are added unless they are there already */
static int add_vertices(struct glb *g, const struct glb_view v[ATTRIBUTES], const uint64_t number[ATTRIBUTES], const double t[12], uint64_t *ret)
{
    struct glb_shared *s = find_shared(g, number, t);
    bool wanted[ATTRIBUTES], now = !s;

    if (now) {
        s = VEC_ADD(&g->shared);
        *s = (struct glb_shared){ .number = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX }, .first = g->vertices };
        memcpy(s->t, t, sizeof(s->t));
        g->vertices += v[PLACES].count;
    }
    for (int k = 0; k < ATTRIBUTES; k++) {
        wanted[k] = s->number[k] == UINT64_MAX && number[k] != UINT64_MAX;
        s->number[k] = wanted[k] ? number[k] : s->number[k];
    }
    *ret = s->first;
    return put_vertices(g, v, wanted, t, s->first, now);
}

static bool too_much(const struct glb *g)
{
    uint64_t vertex = 12u + (g->any_normals ? 12 : 0) + (g->any_rgb ? 3 : 0) + (g->any_uvs ? 8 : 0);
    uint64_t face = 12u + (g->any_normals && !g->all_normals ? 12 : 0) + (g->any_uvs && !g->all_uvs ? 12 : 0);

    return g->vertices * vertex + g->faces * face > GROWTH_MAX * g->load->n;
}

static int primitive(struct glb *g, jsn_at p, const double t[12])
{
    struct glb_view v[ATTRIBUTES], index = { 0 };
    uint64_t mode, indices, corners, first, material, number[ATTRIBUTES];

    if (!jsn_object(g->j, p) || !glb_whole(g, p, "mode", 4, &mode) || !glb_whole(g, p, "indices", UINT64_MAX, &indices) ||
        !glb_whole(g, p, "material", UINT64_MAX, &material))
        return glb_bad(g, "a primitive is none");
    if (mode < 4) {
        glb_lose(g, "points and lines", 16);
        return 0;
    }
    if (mode > 4)
        return glb_bad(g, "a primitive is a strip or a fan, lists of triangles are read");
    if (attributes(g, p, v, number) || (indices != UINT64_MAX && glb_accessor(g, indices, &index)) || check_types(g, v, &index) ||
        add_vertices(g, v, number, t, &first))
        return -1;
    corners = index.p ? index.count : v[PLACES].count;
    g->all_normals = g->all_normals && v[NORMALS].p;
    g->any_normals = g->any_normals || v[NORMALS].p;
    g->all_uvs = g->all_uvs && v[UVS].p;
    g->any_uvs = g->any_uvs || v[UVS].p;
    g->any_rgb = g->any_rgb || v[COLORS].p;
    if (g->m && put_faces(g, &index, v, first, determinant(t) < 0))
        return -1;
    if (g->m && g->e.materials.n)
        extra_mark(&g->e, g->faces, MARK_MATERIAL, material < g->e.materials.n ? (uint32_t)material : RECON_NONE);
    g->faces += corners / 3;
    return too_much(g) ? glb_bad(g, "instances make more than %d times the file's bytes", GROWTH_MAX) : 0;
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

/* the node's name, else its mesh's */
static void mark_object(struct glb *g, jsn_at node, jsn_at mesh)
{
    char *name = jsn_line(g->j, jsn_key(g->j, node, "name"));

    name = name ? name : jsn_line(g->j, jsn_key(g->j, mesh, "name"));
    if (name)
        extra_mark(&g->e, g->faces, MARK_OBJECT, extra_name(&g->e, name, strlen(name)));
    free(name);
}

static int node(struct glb *g, uint64_t number, const double above[12], int depth, uint64_t *visits)
{
    jsn_at n = glb_item(g, "nodes", number), children = jsn_key(g->j, n, "children"), mesh;
    double l[12], t[12];
    uint64_t which;
    int rc = 0;

    if (!jsn_object(g->j, n) || depth > DEPTH_MAX || ++*visits > 1000000 || !glb_whole(g, n, "mesh", UINT64_MAX, &which))
        return glb_bad(g, "node %llu is none, or the nodes are deeper than %d or more than a million", (unsigned long long)number, DEPTH_MAX);
    local(g, n, l);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            t[4 * i + k] = above[4 * i] * l[k] + above[4 * i + 1] * l[4 + k] + above[4 * i + 2] * l[8 + k] + (k == 3 ? above[4 * i + 3] : 0);
    mesh = which == UINT64_MAX ? 0 : jsn_key(g->j, glb_item(g, "meshes", which), "primitives");
    if (which != UINT64_MAX && !jsn_array(g->j, mesh))
        return glb_bad(g, "node %llu names no mesh", (unsigned long long)number);
    if (mesh && g->m && !g->options->plain)
        mark_object(g, n, glb_item(g, "meshes", which));
    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, mesh); i++)
        rc = primitive(g, jsn_item(g->j, mesh, i), t);
    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, children); i++) {
        uint64_t c;

        rc = jsn_whole(g->j, jsn_item(g->j, children, i), &c) ? node(g, c, t, depth + 1, visits)
                                                                : glb_bad(g, "a child of node %llu is none", (unsigned long long)number);
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
    g->shared.n = 0;
    if (!glb_whole(g, GLB_ROOT, "scene", 0, &which))
        return glb_bad(g, "the default scene is none");
    nodes = jsn_key(g->j, glb_item(g, "scenes", which), "nodes");
    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, nodes); i++) {
        uint64_t n;

        rc = jsn_whole(g->j, jsn_item(g->j, nodes, i), &n) ? node(g, n, one, 0, &visits) : glb_bad(g, "a node of the scene is none");
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
        return glb_bad(g, "version %u is no glTF 2.0", word(t, 4));
    if (n > JSON_MAX)
        return glb_bad(g, "its JSON has %llu bytes, at most %d are read", (unsigned long long)n, JSON_MAX);
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

/* what concerns materials alone goes along with them */
static bool extension_fine(const char *name)
{
    return str_starts(name, "KHR_materials_") || str_eq(name, "KHR_texture_transform") || str_eq(name, "KHR_texture_basisu") || str_eq(name, "EXT_texture_webp");
}

static int check_extensions(const struct glb *g)
{
    jsn_at required = jsn_key(g->j, GLB_ROOT, "extensionsRequired");
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < jsn_items(g->j, required); i++) {
        char *name = jsn_text(g->j, jsn_item(g->j, required, i)), *fine = esc_terminal(name ? name : "?");

        if (!name || !extension_fine(name))
            rc = glb_bad(g, "extension '%.100s' is required and not known", fine);
        free(fine);
        free(name);
    }
    return rc;
}

static int make_arrays(struct glb *g, const struct data_alloc *alloc, struct recon_mesh *m)
{
    bool mixed = g->any_normals && !g->all_normals && !g->options->plain;

    if (mesh_arrays(m, g->vertices, g->all_normals && g->vertices, g->any_rgb, alloc, g->fault) || mesh_indices(m, g->faces, alloc, g->fault))
        return -1;
    m->uvs = g->any_uvs ? g->vertices : 0;
    m->uv_down = g->any_uvs;
    m->corner_normals = mixed ? g->vertices : 0;
    if ((g->any_uvs && !(m->uv = mesh_array(alloc, m->uvs, 8))) || (g->any_uvs && !g->all_uvs && !(m->uv_index = mesh_array(alloc, m->faces, 12))) ||
        (mixed && (!(m->corner_normal = mesh_array(alloc, m->corner_normals, 12)) || !(m->normal_index = mesh_array(alloc, m->faces, 12))))) {
        mesh_drop(m, alloc);
        return fault_set(g->fault, CODE_MEMORY, NULL, "no memory for texture coordinates and normals of %llu vertices", (unsigned long long)g->vertices);
    }
    return 0;
}

static void tell_lost(struct glb *g)
{
    static const char *const lists[] = { "animations", "skins", "cameras" };
    struct str t = { 0 };

    for (size_t i = 0; i < COUNT(lists); i++)
        if (jsn_items(g->j, jsn_key(g->j, GLB_ROOT, lists[i])))
            glb_lose(g, lists[i], strlen(lists[i]));
    for (size_t i = 0; i < g->lost.n; i++)
        str_addf(&t, "%s%s", i ? ", " : "", g->lost.v[i]);
    if (t.len && g->options->warn && !g->options->plain) {
        char *fine = esc_terminal(t.s), *text = xasprintf("'%s': of what it has, %s are not kept", g->path, fine);

        g->options->warn(g->options->warn_self, NULL, g->path, text);
        free(text);
        free(fine);
    }
    str_release(&t);
}

static int read_all(struct glb *g, const struct data_alloc *alloc, struct recon_mesh *m)
{
    if (check_extensions(g))
        return -1;
    g->all_normals = g->all_uvs = true;
    if (scene(g))
        return -1;
    if (g->vertices > UINT32_MAX - 1)
        return glb_bad(g, "at most 4294967294 vertices are taken");
    if ((!g->options->plain && glb_materials(g)) || make_arrays(g, alloc, m))
        return -1;
    g->m = m;
    if (scene(g) == 0 && extra_pack(&g->e, alloc, m, g->fault) == 0) {
        tell_lost(g);
        return 0;
    }
    mesh_drop(m, alloc);
    return -1;
}

int glb_parse(const char *path, const struct load *text, const struct geom_options *options, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct fault *fault)
{
    struct glb g = { .path = path, .load = text, .options = options, .fault = fault };
    struct recon_mesh m = { 0 };
    const char *text_json = NULL;
    struct jsn *j;
    uint64_t n = 0, where = 0;
    int rc;

    if (text->n < 4 || memcmp(text->s, "glTF", 4))
        return glb_bad(&g, "a GLB begins with 'glTF'");
    if (chunks(&g, &text_json, &n))
        return -1;
    if (!(j = jsn_parse(text_json, n, &where)))
        return glb_bad(&g, "its JSON is none from byte %llu", (unsigned long long)where);
    g.j = j;
    rc = jsn_object(j, GLB_ROOT) ? read_all(&g, alloc, &m) : glb_bad(&g, "its JSON is no object");
    jsn_free(j);
    extra_free(&g.e);
    strv_release(&g.lost);
    free(g.shared.v);
    if (rc == 0)
        *ret = m;
    return rc;
}
