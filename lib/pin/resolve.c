#include "config.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include "pin/pin_priv.h"

/* ---- which loader ---- */

static void text(char **field, const char *value)
{
    if (value && *value) {
        free(*field);
        *field = xstrdup(value);
    }
}

void loader_of(const struct facts *f, const char *root, struct loader *ret)
{
    struct utsname u = { 0 };

    uname(&u);
    if (*root || (f && f->loader.dirs.n))
        loader_default(root, f && f->os.machine ? f->os.machine : u.machine, ret);
    else
        loader_probe(ret, NULL); /* falls back on the table itself */
    if (!f || !f->loader.dirs.n)
        return;
    strv_release(&ret->dirs);
    strv_release(&ret->hwcaps);
    strv_copy(&ret->dirs, &f->loader.dirs);
    strv_copy(&ret->hwcaps, &f->loader.hwcaps);
    text(&ret->platform, f->loader.platform);
    text(&ret->lib, f->loader.lib);
    text(&ret->cache_path, f->loader.cache);
    text(&ret->path, f->loader.path);
    loader_legacy(ret, f->os.glibc);
}

bool resolve_loader_known(const struct facts *f)
{
    struct object o;
    bool same;

    if (!f->loader.path || !f->loader.build_id || !f->loader.dirs.n || !facts_of_this_boot(f) ||
        object_read(f->loader.path, false, &o, NULL))
        return false;
    same = str_eq(o.build_id, f->loader.build_id);
    object_release(&o);
    return same;
}

const struct loader *loader_for(const struct loader *l, const char *program, struct loader *scratch)
{
    struct object o;
    const struct loader *chosen = l;

    if (*l->root || object_read(program, false, &o, NULL))
        return l;
    if (o.interp && !str_eq(o.interp, l->path) && !loader_is_musl(o.interp)) {
        char *a = realpath(o.interp, NULL), *b = l->path ? realpath(l->path, NULL) : NULL;

        /* a loader from elsewhere (a prefix installation) is asked only when it is as trusted as the user's own files */
        if (a && b && !str_eq(a, b) && file_trusted(a, NULL, NULL) == 0 &&
            loader_probe_path(o.interp, scratch, NULL) == 0)
            chosen = scratch;
        free(a);
        free(b);
    }
    object_release(&o);
    return chosen;
}

/* ---- what is not there is part of the result ---- */

/* A closure of one object that could not be read. */
static void absent(const char *path, const struct err *why, struct closure *ret)
{
    struct library *lib = VEC_ADD(&ret->libs);

    lib->soname = xstrdup(path);
    lib->found_in = SIZE_MAX;
    lib->why = WHY_NOT_FOUND;
    if (why->code == CODE_DATA) {
        lib->path = xstrdup(path);
        lib->why = WHY_PATH;
        lib->corrupt = xstrdup(why->text);
        return;
    }
    *VEC_ADD(&lib->tried) = (struct tried){
        xstrdup(path),
        xstrdup(why->code == CODE_NOTFOUND ? "no such file" : why->code == CODE_PERM ? "permission denied" : why->text),
        WHY_PATH };
}

static void add_closure(struct resolution *r, struct closure *c)
{
    *VEC_ADD(&r->closures) = *c;
}

/* In the order of the pin, each after those before it. */
static void resolve_modules(const struct pin *p, const struct loader *l, struct resolution *r)
{
    struct host h;

    host_start(&h, &r->closures.v[0], l, r->env.v, NULL);
    for (size_t i = 1; i < p->objects.n; i++) {
        const struct pin_object *o = &p->objects.v[i];
        struct closure c = { 0 };
        struct err why = { 0 };

        if (o->role != PIN_MODULE || !o->path)
            continue;
        if (!h.loaded.libs.n || !h.loaded.libs.v[0].object.path) {
            strv_addf(&r->failed, "module '%s': its program could not be read", o->path);
            continue;
        }
        if (host_open(&h, o->path, o->global, &c, &why))
            absent(o->path, &why, &c);
        add_closure(r, &c);
    }
    host_end(&h);
}

/* For the words of findings: where else a fit file lies. Only what went wrong costs anything. */
static void candidates(struct resolution *r, const struct facts *f, const char *root)
{
    for (size_t i = 0; i < r->closures.n; i++)
        closure_candidates(&r->closures.v[i], r->env.v, root, f ? &f->toolkits : NULL);
}

int resolve(const struct pin *p, const struct facts *f, const char *root, char *const *env, struct resolution *ret,
            struct err *err)
{
    struct resolution r = { 0 };
    struct loader l, other = { 0 };
    const struct loader *use;
    struct closure c = { 0 };
    struct err why = { 0 };

    (void)err; /* what cannot be resolved is told in the result: recon fails open */
    pin_environment(p, env, &r.env);
    loader_of(f, root, &l);
    use = loader_for(&l, p->objects.v[0].path, &other);
    if (use == &l && resolution_reuse(p, f, &l, &r)) {
        r.reused = true;
    } else {
        if (closure_resolve(p->objects.v[0].path, r.env.v, NULL, use, true, NULL, &c, &why))
            absent(p->objects.v[0].path, &why, &c);
        add_closure(&r, &c);
        resolve_modules(p, use, &r);
        candidates(&r, f, root);
    }
    resolve_driver(&r, p, root);
    resolve_shadows(&r, root);
    loader_release(&l);
    loader_release(&other);
    *ret = r;
    return 0;
}

int resolve_program(const char *program, const struct facts *f, const char *root, char *const *env, struct symbols *symbols,
                    struct resolution *ret, struct err *err)
{
    struct resolution r = { 0 };
    struct loader l, other = { 0 };
    struct closure c = { 0 };
    int rc;

    for (char *const *e = env; e && *e; e++)
        strv_add(&r.env, *e);
    loader_of(f, root, &l);
    rc = closure_resolve(program, r.env.v, NULL, loader_for(&l, program, &other), true, symbols, &c, err);
    loader_release(&l);
    loader_release(&other);
    if (rc) {
        resolution_release(&r);
        return -1;
    }
    add_closure(&r, &c);
    candidates(&r, f, root);
    resolve_driver(&r, NULL, root);
    *ret = r;
    return 0;
}

void resolution_release(struct resolution *r)
{
    for (size_t i = 0; i < r->closures.n; i++)
        closure_release(&r->closures.v[i]);
    free(r->closures.v);
    for (size_t i = 0; i < r->symbols.n; i++)
        resolution_symbol_release(&r->symbols.v[i]);
    free(r->symbols.v);
    for (size_t i = 0; i < r->maybes.n; i++)
        maybes_release(&r->maybes.v[i]);
    free(r->maybes.v);
    symbols_free(r->tables);
    strv_release(&r->env);
    strv_release(&r->optional);
    strv_release(&r->opened);
    strv_release(&r->failed);
    strv_release(&r->drivers);
    strv_release(&r->shadows);
    free(r->driver_file);
    memset(r, 0, sizeof(*r));
}
