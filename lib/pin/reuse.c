/* Nothing changed since the pin was taken: one stat for each file and directory instead of the search. */
#include "config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include "pin/pin_priv.h"

static int64_t time_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* A variable that bends the search, of which the pin knows nothing. */
static bool bent(const struct pin *p, char *const *env)
{
    static const char *const names[] = { "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "LD_HWCAP_MASK",
                                         "LD_ORIGIN_PATH", "GLIBC_TUNABLES" };

    for (size_t i = 0; i < COUNT(names); i++) {
        bool pinned = false;

        for (size_t j = 0; j < p->variables.n; j++)
            pinned |= str_eq(p->variables.v[j].name, names[i]) &&
                      (p->variables.v[j].how == PIN_SET || p->variables.v[j].how == PIN_UNSET);
        if (!pinned && env && env_get(env, names[i]))
            return true;
    }
    return false;
}

/* Elements that depend on the working directory. */
static bool wanders(char *const *env)
{
    const char *path = env ? env_get(env, "LD_LIBRARY_PATH") : NULL;
    struct strv parts = { 0 };
    bool found = false;

    if (!path || !*path)
        return false;
    strv_split(&parts, path, ":;");
    for (size_t i = 0; i < parts.n; i++)
        found |= *parts.v[i] != '/';
    strv_release(&parts);
    return found;
}

static bool same_texts(const struct strv *a, const struct strv *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i], b->v[i]))
            return false;
    return true;
}

static bool same_input(const struct pin *p, const char *file)
{
    struct stat st;

    if (!file)
        return false;
    if (stat(file, &st))
        return p->loader.cache_size == CONF_UNSET;
    return st.st_size == p->loader.cache_size && time_of(&st) == p->loader.cache_mtime_ns;
}

static bool same_loader(const struct pin *p, const struct facts *f, const struct loader *l)
{
    static const struct strv none;
    struct object o;
    bool same;
    char *file;

    if (!p->loader.build_id || !same_texts(&p->loader.hwcaps, loader_is_musl(p->loader.path) ? &none : &l->hwcaps))
        return false;
    if (f && f->loader.build_id && str_eq(p->loader.path, f->loader.path)) {
        same = str_eq(f->loader.build_id, p->loader.build_id);
    } else {
        if (!p->loader.path || object_read(p->loader.path, false, &o, NULL))
            return false;
        same = str_eq(o.build_id, p->loader.build_id);
        object_release(&o);
    }
    if (!same)
        return false;
    file = pin_loader_file(p->loader.path, l);
    same = same_input(p, file);
    free(file);
    return same;
}

static bool same_files(const struct pin *p)
{
    struct stat st;

    for (size_t i = 0; i < p->objects.n; i++) {
        const struct pin_object *o = &p->objects.v[i];

        place_at(o->path);
        if (!o->path || o->size == CONF_UNSET || o->mtime_ns == CONF_UNSET || stat(o->path, &st) ||
            st.st_size != o->size || time_of(&st) != o->mtime_ns)
            return false;
    }
    for (size_t i = 0; i < p->dirs.n; i++) {
        bool there;

        place_at(p->dirs.v[i].path);
        there = stat(p->dirs.v[i].path, &st) == 0 && S_ISDIR(st.st_mode);
        if (p->dirs.v[i].mtime_ns != (there ? time_of(&st) : 0))
            return false;
    }
    return true;
}

/* ---- closures out of the pin ---- */

static void add_library(struct closure *c, const struct pin *p, size_t i, size_t needed_by, bool loaded)
{
    const struct pin_object *o = &p->objects.v[i];
    struct library *lib = VEC_ADD(&c->libs);

    lib->soname = xstrdup(o->soname ? o->soname : o->path);
    lib->path = xstrdup(o->path);
    lib->why = loaded ? WHY_LOADED : (enum why)o->why;
    lib->preload = o->why == WHY_PRELOAD;
    lib->needed_by = needed_by;
    lib->found_in = o->found_in == CONF_UNSET || loaded ? SIZE_MAX : (size_t)o->found_in;
    for (size_t j = 0; j < o->missed.n && !loaded; j++)
        *VEC_ADD(&lib->missed) = (size_t)o->missed.v[j];
    lib->object.path = xstrdup(o->path);
    lib->object.soname = xstrdup(o->soname);
    lib->object.build_id = xstrdup(o->build_id);
    lib->object.size = o->size;
    lib->object.mtime_ns = o->mtime_ns;
}

static bool needed_by_any(const struct pin *p, size_t i, const size_t *at, size_t *ret_first)
{
    const struct conf_ints *l = &p->objects.v[i].needed_by;

    for (size_t j = 0; j < l->n; j++)
        if (at[l->v[j]] != SIZE_MAX) {
            *ret_first = at[l->v[j]];
            return true;
        }
    return false;
}

/* Everything that object `first` needs, in the pin's order. loaded[i]: object i was there before; those here are marked. */
static void gather(const struct pin *p, size_t first, bool *loaded, struct closure *ret)
{
    size_t *at = xmalloc(p->objects.n * sizeof(*at)), by = 0;
    bool grew = true;

    for (size_t i = 0; i < p->objects.n; i++)
        at[i] = SIZE_MAX;
    add_library(ret, p, first, 0, false);
    at[first] = 0;
    while (grew) {
        grew = false;
        for (size_t i = 0; i < p->objects.n; i++) {
            const struct pin_object *o = &p->objects.v[i];

            if (at[i] != SIZE_MAX || (o->role != PIN_LIBRARY && !loaded[i]))
                continue;
            if (!needed_by_any(p, i, at, &by) && !(first == 0 && o->why == WHY_PRELOAD))
                continue;
            at[i] = ret->libs.n;
            add_library(ret, p, i, by, loaded[i]);
            grew = true;
        }
    }
    for (size_t i = 0; i < p->objects.n; i++)
        for (size_t j = 0; at[i] != SIZE_MAX && j < p->objects.v[i].needed_by.n; j++) {
            size_t from = at[p->objects.v[i].needed_by.v[j]];

            if (from != SIZE_MAX)
                *VEC_ADD(&ret->edges) = (struct edge){ from, at[i], xstrdup(ret->libs.v[at[i]].soname) };
        }
    for (size_t i = 0; i < p->dirs.n; i++)
        *VEC_ADD(&ret->dirs) = (struct searched_dir){ xstrdup(p->dirs.v[i].path), p->dirs.v[i].mtime_ns };
    for (size_t i = 0; i < p->objects.n; i++)
        loaded[i] = loaded[i] || at[i] != SIZE_MAX;
    free(at);
}

bool resolution_reuse(const struct pin *p, const struct facts *f, const struct loader *l, struct resolution *ret)
{
    bool *loaded;

    if (*l->root || (l->preload && *l->preload) || bent(p, ret->env.v) || wanders(ret->env.v) ||
        !same_loader(p, f, l) || !same_files(p))
        return false;
    loaded = xcalloc(p->objects.n, sizeof(*loaded));
    gather(p, 0, loaded, VEC_ADD(&ret->closures));
    if (p->objects.n > 1 && p->objects.v[1].role == PIN_LIBRARY && p->objects.v[1].why == WHY_PATH &&
        str_eq(p->objects.v[1].path, p->objects.v[1].soname)) /* the interpreter of a script */
        ret->closures.v[0].main = 1;
    for (size_t i = 1; i < p->objects.n; i++)
        if (p->objects.v[i].role == PIN_MODULE) {
            struct closure *c = VEC_ADD(&ret->closures);

            gather(p, i, loaded, c);
            c->module = true;
            c->global = p->objects.v[i].global;
        }
    for (size_t i = 0; i < ret->closures.n; i++)
        ret->closures.v[i].musl = loader_is_musl(p->loader.path);
    free(loaded);
    return true;
}
