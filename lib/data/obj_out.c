#include "config.h"
#include "data/geom.h"
#include "data/mtl.h"
#include "data/polygon.h"

#include <stdlib.h>

/* Nine digits give every float back. Colours stand behind the coordinates, as fractions. */
static void put_vertices(FILE *f, const struct recon_mesh *m)
{
    const float *normals = m->corner_normal ? m->corner_normal : m->normals;
    uint64_t n = m->corner_normal ? m->corner_normals : m->vertices;

    for (uint64_t i = 0; i < m->vertices; i++) {
        const float *p = m->xyz + 3 * i;

        fprintf(f, "v %.9g %.9g %.9g", (double)p[0], (double)p[1], (double)p[2]);
        if (m->rgb)
            fprintf(f, " %.4f %.4f %.4f", m->rgb[3 * i] / 255.0, m->rgb[3 * i + 1] / 255.0, m->rgb[3 * i + 2] / 255.0);
        fputc('\n', f);
    }
    for (uint64_t i = 0; i < m->uvs && m->uv; i++)
        fprintf(f, "vt %.9g %.9g\n", (double)m->uv[2 * i], (double)uv_v(m, i, 0));
    for (uint64_t i = 0; normals && i < n; i++)
        fprintf(f, "vn %.9g %.9g %.9g\n", (double)normals[3 * i], (double)normals[3 * i + 1], (double)normals[3 * i + 2]);
}

static void put_corner(FILE *f, const struct recon_mesh *m, uint64_t corner)
{
    uint32_t vt = corner_uv(m, corner), vn = corner_normal(m, corner);

    fprintf(f, " %llu", m->index[corner] + 1ull);
    if (vt != RECON_NONE)
        fprintf(f, "/%llu", vt + 1ull);
    if (vn != RECON_NONE)
        fprintf(f, "%s/%llu", vt == RECON_NONE ? "/" : "", vn + 1ull);
}

static void put_mark(FILE *f, const struct extra *e, const struct mark *k, const struct strv *names)
{
    static const char *const words[MARK_KINDS] = { "usemtl", "o", "g", "s" };
    const char *name = k->kind == MARK_MATERIAL ? k->value == RECON_NONE ? "" : names->v[k->value] : e->names.v[k->value];

    fprintf(f, "%s%s%s%s\n", words[k->kind], *name ? " " : "", name, str_ends(name, "\\") ? "_" : ""); /* a backslash would join lines */
}

static void put_faces(FILE *f, const struct recon_mesh *m, const struct extra *e, const struct strv *names)
{
    struct polygon p = { 0 };
    size_t k = 0;

    for (uint64_t i = 0; i < m->faces; i += p.faces) {
        for (; k < e->marks.n && e->marks.v[k].face <= i; k++)
            put_mark(f, e, &e->marks.v[k], names);
        polygon_at(m, i, k < e->marks.n && e->marks.v[k].face < m->faces ? e->marks.v[k].face : m->faces, &p);
        fputc('f', f);
        for (size_t c = 0; c < p.n; c++)
            put_corner(f, m, p.corner[c]);
        fputc('\n', f);
    }
    for (; k < e->marks.n; k++)
        put_mark(f, e, &e->marks.v[k], names);
    polygon_release(&p);
}

static bool any_known(const struct extra *e)
{
    for (size_t i = 0; i < e->materials.n; i++)
        if (e->materials.v[i].known)
            return true;
    return false;
}

static void leave_out(const struct extra *e, struct mesh_written *w)
{
    const struct columns *c[] = { &e->vertex, &e->face };

    for (int i = 0; i < 2; i++)
        if (c[i]->names.n)
            strv_addf(&w->left_out, "OBJ has no place for the propert%s %s%s%s of %s", c[i]->names.n == 1 ? "y" : "ies", c[i]->names.v[0],
                      c[i]->names.n > 2 ? " and others" : c[i]->names.n > 1 ? " and " : "", c[i]->names.n == 2 ? c[i]->names.v[1] : "",
                      i ? "faces" : "vertices");
}

static int put_all(const char *path, const struct recon_mesh *m, const struct extra *e, struct mesh_written *w, struct err *err)
{
    struct strv names = { 0 }, images = { 0 };
    char *stem = mtl_stem(path);
    struct file_out o;
    int rc = 0;

    strv_add(&w->files, path);
    mtl_names(e, &names);
    if (any_known(e))
        rc = mtl_write_images(path, e, &images, w, err) || mtl_write(path, e, &names, &images, w, err);
    if (rc == 0)
        rc = file_open_out(&o, path, 0644, err);
    if (rc == 0) {
        fputs("# recon\n", o.f);
        if (any_known(e))
            fprintf(o.f, "mtllib %s.mtl\n", path_base(stem));
        put_vertices(o.f, m);
        put_faces(o.f, m, e, &names);
        rc = file_commit(&o, err); /* a failed write sticks to the stream and shows here */
    }
    strv_release(&names);
    strv_release(&images);
    free(stem);
    return rc ? -1 : 0;
}

int obj_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err)
{
    struct extra e;
    int rc;

    if (extra_unpack(m, &e, err))
        return -1;
    leave_out(&e, ret);
    rc = put_all(path, m, &e, ret, err);
    extra_free(&e);
    return rc;
}
