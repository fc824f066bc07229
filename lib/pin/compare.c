#include "config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include "pin/pin_priv.h"

static void differ(struct pin_differences *l, const char *rule, bool missing, const char *object, const char *fmt, ...)
    PRINTF(5, 6);
static void differ(struct pin_differences *l, const char *rule, bool missing, const char *object, const char *fmt, ...)
{
    struct pin_difference *d = VEC_ADD(l);
    va_list ap;

    d->rule = rule;
    d->missing = missing;
    d->job = str_starts(rule, "env-");
    d->object = xstrdup(object);
    va_start(ap, fmt);
    if (vasprintf(&d->text, fmt, ap) < 0)
        d->text = xstrdup(fmt);
    va_end(ap);
}

/* ---- variables ---- */

static void compare_variables(const struct pin *p, char *const *env, struct pin_differences *ret)
{
    for (size_t i = 0; i < p->variables.n; i++) {
        const struct pin_variable *v = &p->variables.v[i];
        const char *now = env ? env_get(env, v->name) : NULL;

        if (v->how == PIN_UNSET && now)
            differ(ret, "env-drift", false, v->name, "is '%s' here, the pin unsets it", now);
        else if (v->how == PIN_SET && !now)
            differ(ret, "env-not-exported", false, v->name, "is not set here, the pin has '%s'", v->value);
        else if (v->how == PIN_SET && !str_eq(now, v->value))
            differ(ret, "env-drift", false, v->name, "is '%s' here, the pin has '%s'", now, v->value);
    }
}

/* ---- objects ---- */

static const struct library *find(const struct resolution *r, const struct pin_object *o)
{
    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++) {
            const struct library *lib = &r->closures.v[i].libs.v[j];

            if (o->role == PIN_LIBRARY ? str_eq(lib->soname, o->soname) && lib->why != WHY_LOADED
                                       : j == 0 && (str_eq(lib->path, o->path) || str_eq(lib->soname, o->path)))
                return lib;
        }
    for (size_t i = 0; i < r->closures.n; i++) /* the loader itself, and what a module finds loaded */
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++)
            if (str_eq(r->closures.v[i].libs.v[j].soname, o->soname))
                return &r->closures.v[i].libs.v[j];
    return NULL;
}

static void compare_file(const struct pin_object *o, const struct library *lib, const char *name, bool digests,
                         struct pin_differences *ret)
{
    char digest[DIGEST_SIZE];
    struct err err = { 0 };
    struct stat st;
    int64_t size = lib->object.path ? lib->object.size : stat(lib->path, &st) == 0 ? st.st_size : CONF_UNSET;

    if (o->path && !str_eq(lib->path, o->path))
        differ(ret, "lib-changed", false, name, "resolves to '%s' here, the pin has '%s'", lib->path, o->path);
    if (o->build_id && lib->object.path && !str_eq(lib->object.build_id, o->build_id))
        differ(ret, "lib-changed", false, name, "'%s' has build-id %s, the pin has %s", lib->path,
               lib->object.build_id ? lib->object.build_id : "none", o->build_id);
    else if (o->size != CONF_UNSET && size != o->size)
        differ(ret, "lib-changed", false, name, "'%s' has %lld bytes, the pin has %lld", lib->path, (long long)size,
               (long long)o->size);
    else if (digests && o->digest && digest_file(lib->path, digest, &err))
        differ(ret, "lib-changed", false, name, "%s", err.text);
    else if (digests && o->digest && !str_eq(digest, o->digest))
        differ(ret, "lib-changed", false, name, "'%s' has digest %s, the pin has %s", lib->path, digest, o->digest);
}

static char *where(const struct library *lib)
{
    struct str t = { 0 };

    for (size_t i = 0; i < lib->tried.n; i++)
        str_addf(&t, "%s%s (%s)", i ? ", " : "; looked at ", lib->tried.v[i].path, lib->tried.v[i].why_not);
    return str_take(&t);
}

static void compare_object(const struct pin_object *o, const struct resolution *r, bool digests,
                           struct pin_differences *ret)
{
    const struct library *lib = find(r, o);
    const char *name = o->soname ? o->soname : o->path;
    bool preload = o->why == WHY_PRELOAD;
    char *looked;

    if (!lib) {
        if (o->path)
            differ(ret, "lib-changed", false, name, "is not loaded here, the pin has '%s'", o->path);
    } else if (!lib->path) {
        looked = where(lib);
        if (o->path)
            differ(ret, preload ? "preload-missing" : "lib-not-found", !preload, name,
                   "was not found, the pin has '%s'%s", o->path, looked);
        free(looked);
    } else if (lib->corrupt) {
        differ(ret, "lib-corrupt", true, name, "'%s' is %s", lib->path, lib->corrupt);
    } else {
        compare_file(o, lib, name, digests, ret);
    }
}

static bool pinned(const struct pin *p, const char *soname)
{
    for (size_t i = 0; i < p->objects.n; i++)
        if (str_eq(p->objects.v[i].soname, soname))
            return true;
    return false;
}

/* What is loaded here and not in the pin: a changed library needs others. */
static void compare_added(const struct pin *p, const struct resolution *r, struct pin_differences *ret)
{
    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 1; j < r->closures.v[i].libs.n; j++) {
            const struct library *lib = &r->closures.v[i].libs.v[j];

            if (lib->why == WHY_LOADED || pinned(p, lib->soname))
                continue;
            if (lib->path)
                differ(ret, "lib-changed", false, lib->soname, "is loaded here from '%s', the pin has it not", lib->path);
            else {
                differ(ret, "lib-not-found", true, lib->soname, "was not found and is needed here, the pin has it not");
                ret->v[ret->n - 1].job = true;
            }
        }
}

static void compare_versions(const struct resolution *r, struct pin_differences *ret)
{
    for (size_t i = 0; i < r->closures.n; i++) {
        const struct closure *c = &r->closures.v[i];
        struct version_misses m = { 0 };

        closure_versions(c, &m);
        for (size_t j = 0; j < m.n; j++) {
            const char *provider = m.v[j].provider == SIZE_MAX ? NULL : c->libs.v[m.v[j].provider].path;
            bool libc = str_starts(m.v[j].version, "GLIBC_");

            if (!m.v[j].weak)
                differ(ret, libc ? "glibc-too-old" : "symver-missing", false, c->libs.v[m.v[j].object].path,
                       "needs version '%s'%s%s%s", m.v[j].version, provider ? ", which '" : "",
                       provider ? provider : ", which nothing offers", provider ? "' does not offer" : "");
        }
        free(m.v);
    }
}

void pin_compare(const struct pin *p, const struct resolution *r, char *const *env, bool digests,
                 struct pin_differences *ret)
{
    compare_variables(p, env, ret);
    for (size_t i = 0; i < p->objects.n; i++)
        compare_object(&p->objects.v[i], r, digests, ret);
    compare_added(p, r, ret);
    compare_versions(r, ret);
}

void pin_differences_release(struct pin_differences *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].object);
        free(l->v[i].text);
    }
    free(l->v);
    memset(l, 0, sizeof(*l));
}
