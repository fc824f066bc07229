#include "config.h"

#include <stdlib.h>
#include <elf.h>
#include "elf/symbols_priv.h"

/* Answers that were given before: most names are asked for by many objects. Open addressing. */
struct answer {
    const char *name, *version; /* name NULL: free */
    uint32_t hash;
    bool call;
    enum found { MISSING, FOUND, UNVERSIONED } found;
};
struct provider { const struct symtab *t; const struct library *lib; };
struct lookup {
    struct symbols *s;
    const struct closure *c;
    struct { struct provider *v; size_t n, cap; } scope;
    struct { struct answer *v; size_t n, cap; } answers;
    struct symbol_misses *out;
};

static struct answer *answer_of(struct lookup *l, const struct wanted *w)
{
    const char *version = w->version ? w->version->name : NULL;
    size_t i;

    if (l->answers.n * 2 >= l->answers.cap) {
        struct answer *old = l->answers.v;
        size_t cap = l->answers.cap;

        l->answers.cap = cap ? cap * 2 : 4096;
        l->answers.v = xcalloc(l->answers.cap, sizeof(*old));
        for (size_t k = 0; k < cap; k++) {
            if (!old[k].name)
                continue;
            for (i = old[k].hash & (l->answers.cap - 1); l->answers.v[i].name; i = (i + 1) & (l->answers.cap - 1))
                ;
            l->answers.v[i] = old[k];
        }
        free(old);
    }
    for (i = w->gnu_hash & (l->answers.cap - 1); l->answers.v[i].name; i = (i + 1) & (l->answers.cap - 1)) {
        const struct answer *a = &l->answers.v[i];

        if (a->hash == w->gnu_hash && a->call == w->call && str_eq(a->name, w->name) &&
            (a->version == version || (a->version && version && str_eq(a->version, version))))
            break;
    }
    return &l->answers.v[i];
}

/* skip: the program, for a copy relocation, which looks for what it copies from. */
static enum found search_scope(const struct lookup *l, const struct wanted *w, size_t skip)
{
    for (size_t i = skip; i < l->scope.n; i++) {
        const struct provider *p = &l->scope.v[i];
        const char *file = w->version ? w->version->file : NULL;

        if (!symtab_offers(p->t, w))
            continue;
        /* check_match takes any symbol of an object without DT_VERSYM, unless the version is expected of this very object */
        if (file && p->t->readable && !p->lib->object.has_versym &&
            (str_eq(p->lib->soname, file) || str_eq(p->lib->object.soname, file)))
            return UNVERSIONED;
        return FOUND;
    }
    return MISSING;
}

static enum found find(struct lookup *l, struct wanted *w, bool copy)
{
    struct answer *a;

    w->gnu_hash = symbol_gnu_hash(w->name);
    if (copy)
        return search_scope(l, w, 1);
    a = answer_of(l, w);
    if (!a->name) {
        *a = (struct answer){ w->name, w->version ? w->version->name : NULL, w->gnu_hash, w->call,
                              search_scope(l, w, 0) };
        l->answers.n++;
    }
    return a->found;
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
    enum found found;
    struct wanted w = { 0 };
    struct symbol x;

    if (!symtab_symbol(t, i, &x) || x.bind == STB_LOCAL || x.bind == STB_WEAK || (x.section != SHN_UNDEF && !copy) ||
        x.visibility != STV_DEFAULT)
        return;
    w.name = symtab_name(t, x.name);
    w.version = l->c->musl ? NULL : symtab_version(t, i, &hidden);
    l->out->references++;
    if (how & (REF_DATA | REF_COPY)) {
        found = find(l, &w, copy);
        if (found != FOUND) {
            miss(l, object, &w, found, false);
            return;
        }
    }
    w.call = true;
    if (how & REF_CALL && (found = find(l, &w, false)) != FOUND)
        miss(l, object, &w, found, !t->bind_now && !l->c->musl);
}

static void add_scope(struct lookup *l, const struct closure *c)
{
    for (size_t i = c->main; i < c->libs.n; i++)
        if (c->libs.v[i].object.path && !c->libs.v[i].corrupt)
            *VEC_ADD(&l->scope) = (struct provider){ symtab_of(l->s, &c->libs.v[i].object), &c->libs.v[i] };
}

void closure_symbols(struct symbols *s, const struct closure *c, const struct closure *const *scope,
                     struct symbol_misses *ret)
{
    struct lookup l = { .s = s, .c = c, .out = ret };

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
        for (size_t k = 0; k < t->n_refs; k++)
            if (t->refs[k])
                look_up(&l, i, t, k, t->refs[k]);
    }
    free(l.scope.v);
    free(l.answers.v);
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
