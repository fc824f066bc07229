/* usemtl, o, g, s and mtllib of an OBJ, once all of it is read. */
#include "config.h"
#include "data/mtl.h"
#include "data/obj.h"

#include <stdlib.h>

static const enum mark_kind mark_of[] = { MARK_MATERIAL, MARK_OBJECT, MARK_GROUP, MARK_SMOOTH };

/* a copy in which blanks stand for the joints of lines */
static char *one_line(const struct obj_word *w)
{
    char *s = xstrdup(w->text);

    for (char *p = s; (p = strchr(p, '\n')); *p++ = ' ')
        for (char *q = p - 1; q > s && (*q == '\\' || *q == '\r'); q--)
            *q = ' ';
    return s;
}

static int take_word(struct obj *o, const struct mtl_place *at, const struct obj_word *w, struct extra *e, struct fault *fault)
{
    uint32_t value;
    char *name;
    size_t n;
    int rc = 0;

    if (strlen(w->text) < w->n)
        return fault_set(fault, CODE_DATA, NULL, "'%s' line %llu: a name with a NUL in it", o->path, (unsigned long long)w->line);
    name = one_line(w);
    n = strlen(name);
    if (w->kind == WORDS_LIBRARY) {
        rc = mtl_libraries(at, name, e, fault);
    } else {
        value = w->kind != WORDS_MATERIAL ? extra_name(e, name, n) : n ? extra_material(e, name, n) : RECON_NONE;
        extra_mark(e, w->face, mark_of[w->kind], value);
    }
    free(name);
    return rc;
}

int obj_take_words(struct obj *o, const struct geom_options *options, struct extra *e, struct mesh_notes *notes, struct fault *fault)
{
    char *folder = path_dir(o->path);
    struct mtl_place at = { options->root ? options->root : folder, folder, options->warn, options->warn_self };
    int rc = 0;

    for (int i = 0; rc == 0 && i < o->pieces; i++)
        for (size_t k = 0; rc == 0 && k < o->piece[i].words.n; k++)
            rc = take_word(o, &at, &o->piece[i].words.v[k], e, fault);
    if (rc == 0)
        mtl_find_images(&at, e);
    for (size_t i = 0; i < e->materials.n; i++)
        notes->unknown_materials += !e->materials.v[i].known;
    free(folder);
    return rc;
}
