#include "config.h"

#include <stdlib.h>
#include <elf.h>
#include "elf/symbols_priv.h"

enum found { MISSING, FOUND, UNVERSIONED };
struct provider { const struct symtab *t; const struct library *lib; };
struct hint { /* of a version that an object asks for */
    bool ordered; /* it counts which of several definitions comes first */
    size_t place; /* in scope, of the library that should have it; SIZE_MAX unknown */
};
struct lookup {
    struct symbols *s;
    const struct closure *c;
    struct { struct provider *v; size_t n, cap; } scope;
    struct { size_t *v; size_t n, cap; } plain; /* places in scope of what has no versions at all */
    size_t *place;                              /* of c's objects in scope; SIZE_MAX: not there */
    size_t *edges;                              /* the first edge of each of c's objects */
    struct { size_t *v; size_t n, cap; } near;  /* places of what the object in turn needs, the last one that served first */
    struct { struct hint *v; size_t n, cap; } hints; /* of its versions */
    struct symbol_misses *out;
};

/* check_match takes any symbol of an object without DT_VERSYM, unless the version is expected of this very object */
static bool is_unversioned(const struct provider *p, const char *file)
{
    return p->t->readable && !p->lib->object.has_versym &&
           (str_eq(p->lib->soname, file) || str_eq(p->lib->object.soname, file));
}

static bool offers(const struct lookup *l, size_t place, const struct wanted *w, size_t skip)
{
    return place != SIZE_MAX && place >= skip && symtab_offers(l->scope.v[place].t, w);
}

/* Where the version leads, or else in what the object itself needs most symbols are found; the one that served last is asked
 * first. */
static bool search_near(struct lookup *l, const struct wanted *w, size_t skip, size_t likely)
{
    if (offers(l, likely, w, skip))
        return true;
    for (size_t i = 0; i < l->near.n; i++) {
        size_t place = l->near.v[i];

        if (place == likely || !offers(l, place, w, skip))
            continue;
        l->near.v[i] = l->near.v[0];
        l->near.v[0] = place;
        return true;
    }
    return false;
}

/* skip: 1 for a copy relocation, which looks for what it copies from, beyond the program. */
static enum found search_scope(struct lookup *l, const struct wanted *w, size_t skip, struct hint h)
{
    if (!h.ordered && search_near(l, w, skip, h.place))
        return FOUND;
    for (size_t i = skip; i < l->scope.n; i++)
        if (symtab_offers(l->scope.v[i].t, w))
            return h.ordered && is_unversioned(&l->scope.v[i], w->version->file) ? UNVERSIONED : FOUND;
    return MISSING;
}

static void miss(struct lookup *l, size_t object, const struct wanted *w, enum found how, bool lazy)
{
    const char *file = w->version ? w->version->file : NULL;

    *VEC_ADD(l->out) = (struct symbol_miss){
        .object = object, .name = xstrdup(w->name), .version = w->version ? xstrdup(w->version->name) : NULL,
        .file = xstrdup(file), .provider = file ? closure_provider(l->c, object, file) : SIZE_MAX, .lazy = lazy,
        .unversioned = how == UNVERSIONED };
}

/* One symbol that relocations of the object refer to, in the ways of `how`. */
static void look_up(struct lookup *l, size_t object, const struct symtab *t, size_t i, uint8_t how)
{
    bool copy = (how & REF_COPY) != 0, hidden;
    struct hint h = { false, SIZE_MAX };
    enum found found;
    struct wanted w = { 0 };
    struct symbol x;

    if (!symtab_symbol(t, i, &x) || x.bind == STB_LOCAL || x.bind == STB_WEAK || (x.section != SHN_UNDEF && !copy) ||
        x.visibility != STV_DEFAULT)
        return;
    w.name = symtab_name(t, x.name);
    w.version = l->c->musl ? NULL : symtab_version(t, i, &hidden);
    l->out->references++;
    w.gnu_hash = symbol_gnu_hash(w.name);
    if (w.version)
        h = l->hints.v[w.version - t->versions.v];
    if (how & (REF_DATA | REF_COPY)) {
        found = search_scope(l, &w, copy, h);
        if (found != FOUND) {
            miss(l, object, &w, found, false);
            return;
        }
    }
    w.call = true;
    if (how & REF_CALL && (found = search_scope(l, &w, 0, h)) != FOUND)
        miss(l, object, &w, found, !t->bind_now && !l->c->musl);
}

static void add_scope(struct lookup *l, const struct closure *c)
{
    for (size_t i = c->main; i < c->libs.n; i++) {
        const struct library *lib = &c->libs.v[i];

        if (!lib->object.path || lib->corrupt)
            continue;
        if (c == l->c)
            l->place[i] = l->scope.n;
        if (!lib->object.has_versym)
            *VEC_ADD(&l->plain) = l->scope.n;
        *VEC_ADD(&l->scope) = (struct provider){ symtab_of(l->s, &lib->object), lib };
    }
}

static void note_edges(struct lookup *l)
{
    const struct closure *c = l->c;

    l->place = xcalloc(c->libs.n + 1, sizeof(*l->place));
    l->edges = xcalloc(c->libs.n + 1, sizeof(*l->edges));
    for (size_t i = 0; i < c->libs.n; i++)
        l->place[i] = SIZE_MAX;
    for (size_t i = c->edges.n; i-- > 0;)
        if (c->edges.v[i].from < c->libs.n)
            l->edges[c->edges.v[i].from] = i;
}

/* Edges of one object stand together; were one left out, its library would be met in the scope all the same. */
static void note_near(struct lookup *l, size_t object)
{
    const struct closure *c = l->c;

    l->near.n = 0;
    for (size_t i = l->edges[object]; i < c->edges.n && c->edges.v[i].from == object; i++)
        if (l->place[c->edges.v[i].to] != SIZE_MAX)
            *VEC_ADD(&l->near) = l->place[c->edges.v[i].to];
}

/* A version that is asked of an object without any: that object must not come first. */
static struct hint hint_of(const struct lookup *l, size_t object, const char *file)
{
    const struct closure *c = l->c;
    struct hint h = { false, SIZE_MAX };

    for (size_t k = 0; !h.ordered && k < l->plain.n; k++)
        h.ordered = is_unversioned(&l->scope.v[l->plain.v[k]], file);
    for (size_t i = l->edges[object]; h.place == SIZE_MAX && i < c->edges.n && c->edges.v[i].from == object; i++)
        if (str_eq(c->edges.v[i].name, file))
            h.place = l->place[c->edges.v[i].to];
    return h;
}

static void note_versions(struct lookup *l, size_t object, const struct symtab *t)
{
    const char *before = NULL;

    l->hints.n = 0;
    for (size_t i = 0; i < t->versions.n; i++) {
        const char *file = t->versions.v[i].file;
        struct hint *h = VEC_ADD(&l->hints);

        if (!file)
            h->place = SIZE_MAX;
        else if (str_eq(file, before))
            *h = h[-1];
        else
            *h = hint_of(l, object, file);
        before = file;
    }
}

void closure_symbols(struct symbols *s, const struct closure *c, const struct closure *const *scope,
                     struct symbol_misses *ret)
{
    struct lookup l = { .s = s, .c = c, .out = ret };

    note_edges(&l);
    for (; scope && *scope; scope++)
        add_scope(&l, *scope);
    add_scope(&l, c);
    for (size_t i = c->main; i < c->libs.n; i++) {
        const struct library *lib = &c->libs.v[i];
        const struct symtab *t;

        if (!lib->object.path || lib->corrupt || lib->why == WHY_LOADED)
            continue;
        t = symtab_of(s, &lib->object);
        if (!t->readable)
            ret->unread++;
        note_near(&l, i);
        note_versions(&l, i, t);
        for (size_t k = 0; k < t->n_refs; k++)
            if (t->refs[k])
                look_up(&l, i, t, k, t->refs[k]);
    }
    free(l.scope.v);
    free(l.plain.v);
    free(l.near.v);
    free(l.hints.v);
    free(l.place);
    free(l.edges);
}

bool symbols_defines(struct symbols *s, const struct object *o, const char *name)
{
    struct wanted w = { .name = name, .gnu_hash = symbol_gnu_hash(name) };

    return symtab_offers(symtab_of(s, o), &w);
}

void symbol_misses_release(struct symbol_misses *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].name);
        free(l->v[i].version);
        free(l->v[i].file);
    }
    free(l->v);
    memset(l, 0, sizeof(*l));
}
