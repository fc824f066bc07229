/* Binary little-endian PLY. */
#include "config.h"
#include "data/geom.h"
#include "data/mtl.h"
#include "data/polygon.h"

#include <stdlib.h>

/* the machine is little-endian wherever CUDA and Slurm run; refused elsewhere at compile time */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary files are written in the machine's order");

struct out {
    FILE *f;
    const struct recon_mesh *m;
    struct extra e;
    struct strv textures;  /* names of files, in the order of texnumber */
    int32_t *texture_of;   /* of a material: its number, or -1 */
    bool numbered;         /* faces say their texture, and no column does */
    uint64_t polygons, most; /* most: corners of one */
};

/* ---- textures ---- */

static bool has_column(const struct columns *c, const char *name)
{
    for (size_t i = 0; i < c->names.n; i++)
        if (str_eq(c->names.v[i], name))
            return true;
    return false;
}

/* the images of map_Kd alone are copied */
static void drop_images(struct out *o, const bool *wanted)
{
    for (size_t i = 0; i < o->e.images.n; i++)
        if (!wanted[i]) {
            struct image *p = &o->e.images.v[i];

            free(p->path);
            free(p->bytes);
            p->path = NULL;
            p->bytes = NULL;
            p->n = 0;
        }
}

static int write_textures(struct out *o, const char *path, struct mesh_written *w, struct err *err)
{
    const struct extra *e = &o->e;
    bool *wanted = xcalloc(e->images.n + 1, sizeof(*wanted));
    struct strv names = { 0 };
    uint64_t more = 0;
    int rc;

    o->texture_of = xmalloc((e->materials.n + 1) * sizeof(*o->texture_of));
    for (size_t i = 0; i < e->materials.n; i++) {
        uint32_t image = mtl_image(&e->materials.v[i], "map_Kd");

        more += e->materials.v[i].lines.n != 1 || image == RECON_NONE;
        wanted[image == RECON_NONE ? e->images.n : image] = true;
    }
    drop_images(o, wanted);
    rc = mtl_write_images(path, e, &names, w, err);
    for (size_t i = 0; rc == 0 && i < e->materials.n; i++) {
        uint32_t image = mtl_image(&e->materials.v[i], "map_Kd");

        o->texture_of[i] = image == RECON_NONE || !*names.v[image] ? -1 : (int32_t)o->textures.n;
        if (o->texture_of[i] >= 0)
            strv_add(&o->textures, names.v[image]);
    }
    if (more)
        strv_add(&w->left_out, "PLY names textures alone: names and other properties of materials are left out");
    strv_release(&names);
    free(wanted);
    return rc;
}

static void leave_out(struct out *o, struct mesh_written *w)
{
    bool parts = false, materials = false;

    for (size_t i = 0; i < o->e.marks.n; i++) {
        parts = parts || o->e.marks.v[i].kind != MARK_MATERIAL;
        materials = materials || o->e.marks.v[i].kind == MARK_MATERIAL;
    }
    if (parts)
        strv_add(&w->left_out, "PLY has no place for objects and groups");
    if (o->m->corner_normal)
        strv_add(&w->left_out, "PLY has no place for normals of corners");
    o->numbered = materials && o->textures.n && o->e.marks.n && !has_column(&o->e.face, "texnumber");
}

/* ---- header ---- */

static void put_columns(FILE *f, const struct columns *c)
{
    for (size_t i = 0; i < c->names.n; i++)
        fprintf(f, "property %s %s\n", c->types.v[i], c->names.v[i]);
}

static void put_head(struct out *o)
{
    const struct recon_mesh *m = o->m;

    fputs("ply\nformat binary_little_endian 1.0\ncomment recon\n", o->f);
    for (size_t i = 0; i < o->textures.n; i++)
        fprintf(o->f, "comment TextureFile %s\n", o->textures.v[i]);
    fprintf(o->f, "element vertex %llu\nproperty float x\nproperty float y\nproperty float z\n", (unsigned long long)m->vertices);
    if (m->normals)
        fputs("property float nx\nproperty float ny\nproperty float nz\n", o->f);
    if (m->rgb)
        fputs("property uchar red\nproperty uchar green\nproperty uchar blue\n", o->f);
    if (m->uv && !m->uv_index)
        fputs("property float s\nproperty float t\n", o->f);
    put_columns(o->f, &o->e.vertex);
    fprintf(o->f, "element face %llu\nproperty list %s int vertex_indices\n", (unsigned long long)o->polygons, o->most > 255 ? "uint" : "uchar");
    if (m->uv_index)
        fprintf(o->f, "property list %s float texcoord\n", 2 * o->most > 255 ? "uint" : "uchar");
    put_columns(o->f, &o->e.face);
    if (o->numbered)
        fputs("property int texnumber\n", o->f);
    fputs("end_header\n", o->f);
}

/* ---- body ---- */

static void put_uv(FILE *f, const struct recon_mesh *m, uint32_t k)
{
    float uv[2] = { 0, 0 };

    if (k != RECON_NONE) {
        uv[0] = m->uv[2 * (uint64_t)k];
        uv[1] = uv_v(m, k, 0);
    }
    fwrite(uv, 4, 2, f);
}

static void put_vertices(const struct out *o)
{
    const struct recon_mesh *m = o->m;
    const struct columns *c = &o->e.vertex;

    for (uint64_t i = 0; i < m->vertices; i++) {
        fwrite_unlocked(m->xyz + 3 * i, 12, 1, o->f);
        if (m->normals)
            fwrite_unlocked(m->normals + 3 * i, 12, 1, o->f);
        if (m->rgb)
            fwrite_unlocked(m->rgb + 3 * i, 3, 1, o->f);
        if (m->uv && !m->uv_index)
            put_uv(o->f, m, (uint32_t)i);
        if (c->row)
            fwrite_unlocked((const uint8_t *)c->rows + c->row * i, c->row, 1, o->f);
    }
}

static void put_length(const struct out *o, uint64_t n, uint64_t most)
{
    uint32_t length = (uint32_t)n;

    fwrite_unlocked(&length, most > 255 ? 4 : 1, 1, o->f);
}

static void put_polygon(const struct out *o, const struct polygon *p)
{
    const struct recon_mesh *m = o->m;
    bool any = false;

    put_length(o, p->n, o->most);
    for (size_t k = 0; k < p->n; k++) {
        fwrite_unlocked(&m->index[p->corner[k]], 4, 1, o->f);
        any = any || (m->uv_index && m->uv_index[p->corner[k]] != RECON_NONE);
    }
    if (m->uv_index)
        put_length(o, any ? 2 * p->n : 0, 2 * o->most);
    for (size_t k = 0; any && k < p->n; k++)
        put_uv(o->f, m, m->uv_index[p->corner[k]]);
}

/* the polygons in their order; counting: only how many, and the most corners */
static void faces(struct out *o, bool counting)
{
    const struct columns *c = &o->e.face;
    struct polygon p = { 0 };
    int32_t texture = -1;
    uint64_t row = 0;
    size_t k = 0;

    for (uint64_t f = 0; f < o->m->faces; f += p.faces) {
        polygon_at(o->m, f, o->m->faces, &p);
        if (counting) {
            o->polygons++;
            o->most = p.n > o->most ? p.n : o->most;
            continue;
        }
        for (; k < o->e.marks.n && o->e.marks.v[k].face <= f; k++)
            if (o->e.marks.v[k].kind == MARK_MATERIAL)
                texture = o->e.marks.v[k].value == RECON_NONE ? -1 : o->texture_of[o->e.marks.v[k].value];
        put_polygon(o, &p);
        row += f && !(o->m->joined && o->m->joined[f]); /* a fan that does not come out whole has its row for each part */
        if (c->row)
            fwrite_unlocked((const uint8_t *)c->rows + c->row * row, c->row, 1, o->f);
        if (o->numbered)
            fwrite_unlocked(&texture, 4, 1, o->f);
    }
    polygon_release(&p);
}

static int put_all(struct out *o, const char *path, struct mesh_written *w, struct err *err)
{
    struct file_out file;

    strv_add(&w->files, path);
    if (o->e.materials.n && write_textures(o, path, w, err))
        return -1;
    leave_out(o, w);
    faces(o, true);
    if (file_open_out(&file, path, 0644, err))
        return -1;
    o->f = file.f;
    put_head(o);
    put_vertices(o);
    faces(o, false);
    return file_commit(&file, err); /* a failed write sticks to the stream and shows here */
}

int ply_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err)
{
    struct mesh_written none = { 0 };
    struct out o = { .m = m };
    int rc;

    if (m->vertices > INT32_MAX)
        return err_set(err, CODE_DATA, "mesh of %llu vertices does not fit PLY's int indices, at most %d",
                       (unsigned long long)m->vertices, INT32_MAX);
    if (extra_unpack(m, &o.e, err))
        return -1;
    rc = put_all(&o, path, ret ? ret : &none, err);
    mesh_written_release(&none);
    strv_release(&o.textures);
    free(o.texture_of);
    extra_free(&o.e);
    return rc;
}
