/* What goes along with the faces of a PLY: columns of numbers, texture coordinates, textures by their numbers. */
#include "config.h"
#include "data/mtl.h"
#include "data/ply.h"

#include <stdlib.h>

bool ply_has_faces(const struct ply *r)
{
    for (int i = 0; i < r->elements; i++)
        if ((r->element[i].kind == KIND_FACE || r->element[i].kind == KIND_STRIP) && r->element[i].n)
            return true;
    return false;
}

static const struct ply_element *element_of(const struct ply *r, enum ply_kind kind)
{
    for (int i = 0; i < r->elements; i++)
        if (r->element[i].kind == kind)
            return &r->element[i];
    return NULL;
}

/* The numbers of a kind of element that have no meaning here; rows for n of them. */
static int make_columns(struct ply *r, enum ply_kind kind, uint64_t n, struct columns *c)
{
    const struct ply_element *e = element_of(r, kind);

    for (int k = e ? e->first : 0; e && k < e->end; k++) {
        const struct ply_property *p = &r->property[k];

        if (p->list || p->use != USE_NONE)
            continue;
        strv_add(&c->types, ply_type_name[p->type]);
        strv_add(&c->names, p->name);
        c->row += ply_size[p->type];
    }
    if (!c->names.n)
        return 0;
    c->n = c->row * n; /* each has its bytes in the file: no overflow, and no more than it but for eight bytes where text has two */
    c->rows = malloc(c->n + c->row); /* one to spare: that of a face without corners, which the next one is written over */
    return c->rows ? 0 : fault_set(r->fault, CODE_MEMORY, NULL, "no memory for %zu further properties of %llu rows", c->names.n, (unsigned long long)n);
}

int ply_vertex_arrays(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m)
{
    if (r->options->plain)
        return 0;
    if (r->seen[USE_S]) {
        m->uvs = m->vertices;
        m->uv = mesh_array(alloc, m->uvs, 8);
        if (!m->uv)
            return fault_set(r->fault, CODE_MEMORY, NULL, "no memory for %llu texture coordinates", (unsigned long long)m->uvs);
    }
    return make_columns(r, KIND_VERTEX, m->vertices, &r->e.vertex);
}

int ply_face_arrays(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m, uint64_t polygons, uint64_t uvs, uint64_t rows)
{
    if (r->options->plain)
        return 0;
    if (uvs > UINT32_MAX - 1)
        return fault_set(r->fault, CODE_DATA, NULL, "'%s' has %llu texture coordinates, at most %u are taken", r->path, (unsigned long long)uvs, UINT32_MAX - 1);
    if (uvs) { /* of corners, before those of vertices */
        alloc->free(alloc->self, m->uv);
        m->uvs = uvs;
        m->uv = mesh_array(alloc, uvs, 8);
        m->uv_index = mesh_array(alloc, m->faces, 12);
    }
    if (polygons)
        m->joined = mesh_array(alloc, m->faces, 1);
    if ((uvs && (!m->uv || !m->uv_index)) || (polygons && !m->joined))
        return fault_set(r->fault, CODE_MEMORY, NULL, "no memory for the corners of %llu triangles", (unsigned long long)m->faces);
    return element_of(r, KIND_STRIP) ? 0 : make_columns(r, KIND_FACE, rows, &r->e.face);
}

/* where the column of texnumber stands in a row; false: there is none of whole numbers */
static bool texnumber_column(const struct columns *c, uint64_t *ret_at, int *ret_type)
{
    *ret_at = 0;
    for (size_t i = 0; i < c->names.n; i++) {
        for (*ret_type = 0; !str_eq(c->types.v[i], ply_type_name[*ret_type]);)
            ++*ret_type;
        if (str_eq(c->names.v[i], "texnumber"))
            return *ret_type < FLOAT32;
        *ret_at += ply_size[*ret_type];
    }
    return false;
}

static uint64_t texnumber(const struct columns *c, uint64_t row, uint64_t at, int type)
{
    uint64_t v = 0;

    memcpy(&v, (const uint8_t *)c->rows + row * c->row + at, ply_size[type]);
    return v; /* one below zero is large, too */
}

static void mark_faces(struct ply *r, const struct recon_mesh *m)
{
    uint64_t at, row = 0, last = UINT64_MAX - 1;
    int type;

    if (!texnumber_column(&r->e.face, &at, &type)) {
        extra_mark(&r->e, 0, MARK_MATERIAL, 0);
        return;
    }
    for (uint64_t f = 0; f < m->faces; f++) {
        uint64_t now;

        if (m->joined && m->joined[f])
            continue;
        now = texnumber(&r->e.face, row++, at, type);
        now = now < r->textures.n ? now : RECON_NONE;
        if (now != last)
            extra_mark(&r->e, f, MARK_MATERIAL, (uint32_t)now);
        last = now;
    }
}

static void take_textures(struct ply *r, const struct recon_mesh *m)
{
    char *folder = path_dir(r->path);
    const struct geom_options *o = r->options;

    for (size_t i = 0; i < r->textures.n; i++) {
        struct material *a = VEC_ADD(&r->e.materials);
        struct statement *s = VEC_ADD(&a->lines);

        a->name = xasprintf("texture%zu", i);
        a->known = true;
        s->text = xstrdup("map_Kd");
        s->image = extra_image(&r->e, r->textures.v[i], strlen(r->textures.v[i]));
    }
    mark_faces(r, m);
    mtl_find_images(&(struct mtl_place){ o->root ? o->root : folder, folder, o->warn, o->warn_self }, &r->e);
    free(folder);
}

/* elements and lists that are passed over */
static void tell_lost(const struct ply *r)
{
    struct str t = { 0 };

    for (int i = 0; i < r->elements && t.len < 200; i++) {
        const struct ply_element *e = &r->element[i];

        if (e->kind == KIND_OTHER && e->n)
            str_addf(&t, "%selement %s", t.len ? ", " : "", e->name);
        for (int k = e->first; e->kind != KIND_OTHER && e->n && k < e->end; k++)
            if (r->property[k].use == USE_NONE && (r->property[k].list || e->kind == KIND_STRIP || (e->kind == KIND_FACE && element_of(r, KIND_STRIP))))
                str_addf(&t, "%s%s of %s", t.len ? ", " : "", r->property[k].name, e->name);
    }
    if (t.len && r->options->warn) {
        char *fine = esc_terminal(t.s), *text = xasprintf("'%s': of what it has, %s are not kept", r->path, fine);

        r->options->warn(r->options->warn_self, NULL, r->path, text);
        free(text);
        free(fine);
    }
    str_release(&t);
}

int ply_textures(struct ply *r, const struct data_alloc *alloc, struct recon_mesh *m)
{
    if (r->options->plain)
        return 0;
    if (r->textures.n)
        take_textures(r, m);
    tell_lost(r);
    return extra_pack(&r->e, alloc, m, r->fault);
}
