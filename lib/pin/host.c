/* A program and what it opens later. */
#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

struct host {
    const struct loader *l;
    struct resolution *r;
    struct closure loaded; /* the program's objects and those of the modules so far */
};

static bool whole(const struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++)
        if (!c->libs.v[i].path || c->libs.v[i].corrupt)
            return false;
    return true;
}

static void open_module(struct host *h, const char *path, bool global, bool last, struct strv *later)
{
    struct closure c = { 0 };
    struct err why = { 0 };

    if (closure_extend(&h->loaded, path, h->r->env.v, NULL, h->l, true, &c, &why)) {
        strv_addf(&h->r->failed, "module: %s", why.text);
        return;
    }
    if (!last && !whole(&c)) {
        strv_add(later, path);
        closure_release(&c);
        return;
    }
    c.global = global;
    closure_add_loaded(&h->loaded, &c);
    *VEC_ADD(&h->r->closures) = c;
}

int resolve_host(const char *program, const struct strv *modules, size_t n_global, const struct facts *f,
                 char *const *env, const struct strv *places, struct resolution *ret, struct err *err)
{
    struct strv later = { 0 }, none = { 0 };
    struct host h = { .r = ret };
    struct loader l, other = { 0 };
    int rc = resolve_program(program, f, "", env, ret, err);

    if (rc)
        return rc;
    loader_of(f, "", &l);
    h.l = loader_for(&l, program, &other);
    closure_resolve(program, env, NULL, h.l, false, &h.loaded, NULL);
    for (size_t i = 0; i < modules->n; i++)
        open_module(&h, modules->v[i], i < n_global, false, &later);
    for (size_t i = 0; i < later.n; i++)
        open_module(&h, later.v[i], false, true, &none);
    for (size_t i = 1; i < ret->closures.n; i++)
        closure_candidates(&ret->closures.v[i], env, "", places);
    resolve_driver(ret, NULL, "");
    resolve_shadows(ret, "");
    strv_release(&later);
    closure_release(&h.loaded);
    loader_release(&l);
    loader_release(&other);
    return 0;
}
