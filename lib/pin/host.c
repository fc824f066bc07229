/* A program and what it opens later. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include "pin/pin_priv.h"

bool host_whole(const struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++)
        if (!c->libs.v[i].path || c->libs.v[i].corrupt)
            return false;
    return true;
}

void host_start(struct host *h, const struct closure *program, const struct loader *l, char *const *env, const char *cwd)
{
    *h = (struct host){ .l = l, .env = env, .cwd = cwd };
    for (size_t i = program->main; i < program->libs.n; i++) {
        const struct library *from = &program->libs.v[i];
        struct library *lib = VEC_ADD(&h->loaded.libs);

        lib->soname = xstrdup(from->soname);
        lib->path = xstrdup(from->path);
        lib->corrupt = xstrdup(from->corrupt);
        lib->why = from->why;
        lib->found_in = SIZE_MAX;
        object_copy(&lib->object, &from->object);
    }
    h->loaded.secure = program->secure;
    h->loaded.musl = program->musl;
}

int host_open(struct host *h, const char *path, bool global, struct closure *ret, struct err *err)
{
    struct closure c = { 0 };

    if (closure_extend(&h->loaded, path, h->env, h->cwd, h->l, true, NULL, &c, err))
        return -1;
    c.global = global;
    if (host_whole(&c)) /* a dlopen that fails leaves nothing behind */
        closure_add_loaded(&h->loaded, &c);
    *ret = c;
    return 0;
}

void host_end(struct host *h)
{
    closure_release(&h->loaded);
}

/* ---- the modules of packages ---- */

struct opening {
    struct host h;
    struct resolution *r;
    const struct strv *libraries;
};

/* False: something is not found, nothing was added. */
static bool open_module(struct opening *o, const struct python_module *m, bool last)
{
    struct closure c = { 0 };
    struct err why = { 0 };

    if (host_open(&o->h, m->path, m->global, &c, &why)) {
        strv_addf(&o->r->failed, "module: %s", why.text);
        return true;
    }
    if (!last && !host_whole(&c)) {
        closure_release(&c);
        return false;
    }
    if (m->optional)
        strv_add(&o->r->optional, c.libs.v[0].path ? c.libs.v[0].path : c.libs.v[0].soname);
    *VEC_ADD(&o->r->closures) = c;
    return true;
}

/* A file of that name in the packages' folders; owned, NULL none. */
static char *in_packages(const struct opening *o, const char *name)
{
    for (size_t i = 0; o->libraries && i < o->libraries->n; i++) {
        char *path = path_join(o->libraries->v[i], name);

        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static bool open_libraries(struct opening *o, const struct python_module *m, int depth);

/* A library of a package with what it needs itself; true: it is open. */
static bool open_library(struct opening *o, const struct python_module *file, int depth)
{
    if (open_module(o, file, false))
        return true;
    return depth < 8 && open_libraries(o, file, depth + 1) && open_module(o, file, false);
}

/* What the module lacks and a package's folder has is opened before it; true: some was. */
static bool open_libraries(struct opening *o, const struct python_module *m, int depth)
{
    struct closure c = { 0 };
    bool some = false;

    if (closure_extend(&o->h.loaded, m->path, o->h.env, o->h.cwd, o->h.l, false, NULL, &c, NULL))
        return false;
    for (size_t i = 0; i < c.libs.n; i++) {
        const struct library *lib = &c.libs.v[i];
        char *path = lib->path || strchr(lib->soname, '/') ? NULL : in_packages(o, lib->soname);
        struct python_module file = { .path = path, .optional = m->optional };

        if (path && open_library(o, &file, depth)) {
            strv_addf(&o->r->opened, "%s=%s (for %s)", lib->soname, path, m->path);
            some = true;
        }
        free(path);
    }
    closure_release(&c);
    return some;
}

/* First those that all goes well with, in their order; then the others. */
static void open_modules(struct opening *o, const struct python_modules *l, bool optional)
{
    struct { const struct python_module **v; size_t n, cap; } later = { 0 };

    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].optional == optional && !open_module(o, &l->v[i], false))
            *VEC_ADD(&later) = &l->v[i];
    for (size_t i = 0; i < later.n; i++) {
        if (open_module(o, later.v[i], false))
            continue;
        for (int round = 0; round < 8 && open_libraries(o, later.v[i], 0); round++)
            ;
        open_module(o, later.v[i], true);
    }
    free(later.v);
}

void host_modules(struct resolution *r, const struct python_modules *modules, const struct strv *libraries,
                  const struct loader *l, const char *cwd)
{
    struct opening o = { .r = r, .libraries = libraries };

    host_start(&o.h, &r->closures.v[0], l, r->env.v, cwd);
    open_modules(&o, modules, false);
    open_modules(&o, modules, true);
    host_end(&o.h);
}

int resolve_host(const char *program, const struct python_modules *modules, const struct strv *libraries, const struct facts *f,
                 char *const *env, const struct strv *places, struct resolution *ret, struct err *err)
{
    struct loader l, other = { 0 };
    int rc = resolve_program(program, f, "", env, NULL, ret, err);

    if (rc)
        return rc;
    loader_of(f, "", &l);
    host_modules(ret, modules, libraries, loader_for(&l, program, &other), NULL);
    for (size_t i = 1; i < ret->closures.n; i++)
        closure_candidates(&ret->closures.v[i], env, "", places);
    resolve_driver(ret, NULL, "");
    resolve_shadows(ret, "");
    loader_release(&l);
    loader_release(&other);
    return 0;
}
