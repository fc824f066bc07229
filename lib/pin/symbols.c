#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

#define TWINS_MAX 16 /* of one closure: each costs a walk over all tables */

/* A closure out of a pin knows paths only. */
static void read_objects(struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++) {
        struct library *l = &c->libs.v[i];
        struct object o;

        if (!l->path || l->corrupt || l->object.machine || object_read(l->path, false, &o, NULL))
            continue;
        object_release(&l->object);
        l->object = o;
    }
}

static void add(struct resolution *r, size_t closure, const struct symbol_miss *m)
{
    *VEC_ADD(&r->symbols) = (struct resolution_symbol){
        .closure = closure, .object = m->object, .name = xstrdup(m->name), .shown = symbol_demangled(m->name),
        .version = xstrdup(m->version), .file = xstrdup(m->file), .lazy = m->lazy, .unversioned = m->unversioned,
        .provider = m->provider };
}

static void add_twin(struct symbols *s, const struct closure *c, const struct closure *const *scope,
                     struct resolution_symbol *x)
{
    const char *lib = NULL;

    x->twin = x->shown ? symbols_twin(s, c, scope, x->name, &lib) : NULL;
    x->twin_shown = x->twin ? symbol_demangled(x->twin) : NULL;
    x->twin_lib = x->twin ? xstrdup(lib) : NULL;
}

static void look_up(struct resolution *r, size_t i, struct symbols *s, const struct closure *const *scope, const char *root,
                    const struct strv *places)
{
    struct closure *c = &r->closures.v[i];
    struct symbol_misses m = { 0 };

    if (r->reused)
        read_objects(c);
    closure_symbols(s, c, scope, &m);
    r->references += m.references;
    if (m.unread)
        strv_addf(&r->failed, "symbols of %zu object%s of '%s' could not be read", m.unread, plural(m.unread),
                  c->libs.v[c->main].path ? c->libs.v[c->main].path : c->libs.v[c->main].soname);
    symbols_guess(s, c, &m);
    for (size_t k = 0; k < m.n; k++) {
        add(r, i, &m.v[k]);
        if (k < TWINS_MAX && !m.v[k].unversioned)
            add_twin(s, c, scope, &r->symbols.v[r->symbols.n - 1]);
    }
    if (m.n)
        closure_candidates_symbols(c, s, &m, r->env.v, root, places);
    symbol_misses_release(&m);
}

void resolution_symbol_release(struct resolution_symbol *x)
{
    free(x->name);
    free(x->shown);
    free(x->version);
    free(x->file);
    free(x->twin);
    free(x->twin_shown);
    free(x->twin_lib);
}

void resolution_symbols(struct resolution *r, const char *root, const struct strv *places)
{
    const struct closure **scope = xcalloc(r->closures.n + 1, sizeof(const struct closure *));
    struct symbols *s = r->tables ? r->tables : symbols_new();
    size_t n = 0;

    for (size_t i = 0; i < r->closures.n; i++) {
        const struct closure *c = &r->closures.v[i];

        look_up(r, i, s, c->module ? scope : NULL, root, places);
        n = c->module ? n : 0;
        if (!c->module || c->global)
            scope[n++] = c;
        scope[n] = NULL;
    }
    r->symbols_known = true;
    r->tables = NULL;
    symbols_free(s);
    free(scope);
}

void resolution_maybe(struct resolution *r, const struct facts *f, const char *root)
{
    const struct closure *program = NULL;
    struct symbols *s = symbols_new();
    struct loader l;

    loader_of(f, root, &l);
    for (size_t i = 0; i < r->closures.n; i++) {
        struct closure *c = &r->closures.v[i];
        struct maybes *out = VEC_ADD(&r->maybes);
        struct loader other = { 0 };

        if (r->reused)
            read_objects(c);
        program = c->module ? program : c;
        if (!program || program->main >= program->libs.n || !program->libs.v[program->main].object.path)
            continue;
        closure_maybe(s, c, c->module ? program : NULL, r->env.v, NULL,
                      loader_for(&l, program->libs.v[program->main].path, &other), out);
        loader_release(&other);
    }
    loader_release(&l);
    symbols_free(s);
}
