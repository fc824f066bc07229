/* glTF 2.0 in its binary form: one mesh, one buffer. Coordinates as they are (glTF: right-handed, +Y up, metres). */
#include "config.h"
#include "data/geom.h"

#include <math.h>
#include <stdlib.h>

struct glb {
    struct str views, accessors, attributes;
    uint64_t at; /* bytes of the buffer so far */
    int views_n;
};

static void add(struct glb *g, const char *attribute, uint64_t count, uint64_t stride, uint64_t bytes, int component, bool normalized,
                const char *type, const char *more)
{
    const char *comma = g->views_n ? "," : "";

    str_addf(&g->views, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu", comma, (unsigned long long)g->at, (unsigned long long)bytes);
    if (stride)
        str_addf(&g->views, ",\"byteStride\":%llu", (unsigned long long)stride);
    str_addf(&g->views, ",\"target\":%d}", attribute ? 34962 : 34963);
    str_addf(&g->accessors, "%s{\"bufferView\":%d,\"componentType\":%d,\"count\":%llu,\"type\":\"%s\"%s%s}", comma, g->views_n, component,
             (unsigned long long)count, type, normalized ? ",\"normalized\":true" : "", more);
    if (attribute)
        str_addf(&g->attributes, "%s\"%s\":%d", comma, attribute, g->views_n);
    g->views_n++;
    g->at += bytes;
}

static char *box(const struct recon_mesh *m)
{
    double lo[3] = { INFINITY, INFINITY, INFINITY }, hi[3] = { -INFINITY, -INFINITY, -INFINITY };

    for (uint64_t i = 0; i < 3 * m->vertices; i++) {
        lo[i % 3] = fmin(lo[i % 3], (double)m->xyz[i]);
        hi[i % 3] = fmax(hi[i % 3], (double)m->xyz[i]);
    }
    return xasprintf(",\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]", lo[0], lo[1], lo[2], hi[0], hi[1], hi[2]);
}

static void put32(FILE *f, uint64_t v)
{
    uint32_t x = (uint32_t)v;

    fwrite(&x, 4, 1, f);
}

static void put_body(FILE *f, const struct recon_mesh *m)
{
    fwrite(m->xyz, 12, m->vertices, f);
    if (m->normals)
        fwrite(m->normals, 12, m->vertices, f);
    for (uint64_t i = 0; m->rgb && i < m->vertices; i++) {
        uint8_t c[4] = { m->rgb[3 * i], m->rgb[3 * i + 1], m->rgb[3 * i + 2], 255 };

        fwrite(c, 1, 4, f);
    }
    fwrite(m->index, 12, m->faces, f);
}

static char *head(const struct recon_mesh *m, uint64_t *bytes)
{
    struct glb g = { 0 };
    struct str t = { 0 };
    char *range = box(m);

    add(&g, "POSITION", m->vertices, 12, m->vertices * 12, 5126, false, "VEC3", range);
    if (m->normals)
        add(&g, "NORMAL", m->vertices, 12, m->vertices * 12, 5126, false, "VEC3", "");
    if (m->rgb)
        add(&g, "COLOR_0", m->vertices, 4, m->vertices * 4, 5121, true, "VEC4", "");
    add(&g, NULL, m->faces * 3, 0, m->faces * 12, 5125, false, "SCALAR", "");
    str_addf(&t, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"recon\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0}],"
                 "\"meshes\":[{\"primitives\":[{\"attributes\":{%s},\"indices\":%d}]}],\"accessors\":[%s],\"bufferViews\":[%s],"
                 "\"buffers\":[{\"byteLength\":%llu}]}",
             g.attributes.s, g.views_n - 1, g.accessors.s, g.views.s, (unsigned long long)g.at);
    while (t.len % 4)
        str_add(&t, " ");
    *bytes = g.at;
    free(range);
    str_release(&g.views);
    str_release(&g.accessors);
    str_release(&g.attributes);
    return str_take(&t);
}

int glb_write(const char *path, const struct recon_mesh *m, struct err *err)
{
    struct file_out o;
    uint64_t bytes = 0, text;
    char *json;

    if (m->vertices == 0 || m->faces == 0)
        return err_set(err, CODE_DATA, "'%s': glTF has no empty meshes, %llu vertices and %llu faces are there", path,
                       (unsigned long long)m->vertices, (unsigned long long)m->faces);
    json = head(m, &bytes);
    text = strlen(json);
    if (28 + text + bytes > UINT32_MAX) {
        free(json);
        return err_set(err, CODE_DATA, "'%s' would have %llu bytes, GLB holds at most 4294967295", path, (unsigned long long)bytes);
    }
    if (file_open_out(&o, path, 0644, err)) {
        free(json);
        return -1;
    }
    fwrite("glTF", 1, 4, o.f);
    put32(o.f, 2);
    put32(o.f, 28 + text + bytes);
    put32(o.f, text);
    put32(o.f, 0x4e4f534a); /* JSON */
    fwrite(json, 1, text, o.f);
    put32(o.f, bytes);
    put32(o.f, 0x004e4942); /* BIN */
    put_body(o.f, m);
    free(json);
    return file_commit(&o, err);
}
