/* Where else on this node a fit file of a name lies: for the words of a finding, never for the search itself. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include "elf/symbols_priv.h"

enum { DIRS_MAX = 400, FOUND_MAX = 4 };

struct lacks { /* what of the closure is to be found elsewhere */
    struct closure *c;
    const struct version_misses *versions; /* NULL: of symbols only */
    const struct symbol_misses *misses;    /* NULL: of versions only */
    struct symbols *symbols;
};

static void add_dir(struct strv *dirs, const char *base, const char *below)
{
    char *whole, *clean;

    if (!base || *base != '/' || dirs->n >= DIRS_MAX)
        return;
    whole = xasprintf("%s/%s", base, below);
    clean = path_absolute(whole);
    if (!strv_has(dirs, clean))
        strv_add(dirs, clean);
    free(whole);
    free(clean);
}

static void near_program(const struct closure *c, const char *root, struct strv *dirs)
{
    static const char *const below[] = { "", "lib", "lib64", "../lib", "../lib64" };
    const char *path = c->libs.v[c->main < c->libs.n ? c->main : 0].path;
    char *host = path ? root_path(root, path) : NULL, *real = host ? realpath(host, NULL) : NULL;
    size_t n = strlen(root);

    if (real && strncmp(real, root, n) == 0) {
        char *dir = path_dir(real + n);

        for (size_t i = 0; i < COUNT(below); i++)
            add_dir(dirs, dir, below[i]);
        free(dir);
    }
    free(real);
    free(host);
}

static void beside_environment(char *const *env, struct strv *dirs)
{
    static const struct { const char *name, *below; } prefixes[] = {
        { "CUDA_HOME", "lib64" }, { "CUDA_HOME", "targets/x86_64-linux/lib" }, { "CUDA_PATH", "lib64" },
        { "CONDA_PREFIX", "lib" }, { "VIRTUAL_ENV", "lib" },
    };
    const char *path = env ? env_get(env, "LD_LIBRARY_PATH") : NULL;
    struct strv parts = { 0 };

    if (path)
        strv_split(&parts, path, ":;");
    for (size_t i = 0; i < parts.n; i++)
        add_dir(dirs, parts.v[i], "");
    for (size_t i = 0; i < parts.n; i++) {
        add_dir(dirs, parts.v[i], "../lib64");
        add_dir(dirs, parts.v[i], "../lib");
    }
    for (size_t i = 0; env && i < COUNT(prefixes); i++)
        add_dir(dirs, env_get(env, prefixes[i].name), prefixes[i].below);
    strv_release(&parts);
}

/* Run paths of all objects, and the folders that hold what was found by them. */
static void of_objects(const struct closure *c, const struct loader *tokens, struct strv *dirs)
{
    for (size_t i = 0; i < c->libs.n; i++) {
        const struct library *l = &c->libs.v[i];
        const char *path = l->object.runpath ? l->object.runpath : l->object.rpath;
        char *origin = l->path ? path_dir(l->path) : NULL;
        struct strv parts = { 0 };

        if (path)
            strv_split(&parts, path, ":");
        for (size_t j = 0; j < parts.n; j++) {
            char *dir = token_expand(parts.v[j], origin, tokens);

            add_dir(dirs, dir, "");
            free(dir);
        }
        if (l->why == WHY_RPATH || l->why == WHY_RUNPATH || l->why == WHY_LD_LIBRARY_PATH)
            add_dir(dirs, origin, "");
        strv_release(&parts);
        free(origin);
    }
}

static void usual(const struct strv *places, struct strv *dirs)
{
    static const char *const known[] = { "/usr/local/lib", "/usr/local/lib64", "/usr/local/cuda/lib64",
                                         "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64" };

    for (size_t i = 0; places && i < places->n; i++) {
        add_dir(dirs, places->v[i], "lib64");
        add_dir(dirs, places->v[i], "lib");
    }
    for (size_t i = 0; i < COUNT(known); i++)
        add_dir(dirs, known[i], "");
}

static bool has_versions(const struct lacks *k, size_t lib, const struct object *o)
{
    for (size_t i = 0; k->versions && i < k->versions->n; i++)
        if (k->versions->v[i].provider == lib && !k->versions->v[i].weak && !strv_has(&o->versions, k->versions->v[i].version))
            return false;
    return true;
}

static bool has_symbols(const struct lacks *k, size_t lib, const struct object *o)
{
    for (size_t i = 0; k->misses && i < k->misses->n; i++) {
        const struct symbol_miss *m = &k->misses->v[i];
        struct version_name version = { m->version, NULL, false };
        struct wanted w = { .name = m->name, .version = m->version ? &version : NULL };

        if (m->provider != lib)
            continue;
        w.gnu_hash = symbol_gnu_hash(m->name);
        if (!symtab_offers(symtab_of(k->symbols, o), &w))
            return false;
    }
    return true;
}

/* Does the file serve: same class and machine, another file than the one taken, and all that is missed? */
static bool fit(const struct lacks *k, size_t lib, const struct object *o)
{
    const struct closure *c = k->c;
    const struct object *main = &c->libs.v[c->main < c->libs.n ? c->main : 0].object, *taken = &c->libs.v[lib].object;

    if (!o->dynamic || (main->path && (o->elfclass != main->elfclass || o->machine != main->machine)) ||
        (taken->path && taken->ino == o->ino && taken->dev == o->dev))
        return false;
    return has_versions(k, lib, o) && has_symbols(k, lib, o);
}

static void look(const struct lacks *k, size_t lib, const struct strv *dirs, const char *root)
{
    struct library *l = &k->c->libs.v[lib];

    for (size_t i = 0; i < dirs->n && l->candidates.n < FOUND_MAX; i++) {
        char *path = path_join(dirs->v[i], path_base(l->soname)), *host = root_path(root, path);
        struct object o;

        if (!str_eq(path, l->path) && !strv_has(&l->candidates, path) && object_read(host, false, &o, NULL) == 0) {
            if (fit(k, lib, &o))
                strv_add(&l->candidates, path);
            object_release(&o);
        }
        free(host);
        free(path);
    }
}

static bool wanted(const struct lacks *k, size_t lib)
{
    const struct library *l = &k->c->libs.v[lib];

    if (!l->soname || l->preload || l->why == WHY_LOADED || (lib == 0 && !l->path))
        return false;
    for (size_t i = 0; k->misses && i < k->misses->n; i++)
        if (k->misses->v[i].provider == lib)
            return l->path && !l->corrupt;
    if (!k->versions)
        return false;
    if (!l->path || l->corrupt)
        return true;
    for (size_t i = 0; i < k->versions->n; i++)
        if (k->versions->v[i].provider == lib && !k->versions->v[i].weak)
            return true;
    return false;
}

static void candidates(const struct lacks *k, char *const *env, const char *root, const struct strv *places)
{
    struct loader tokens = { .root = (char *)(uintptr_t)root };
    struct strv dirs = { 0 };

    for (size_t i = 0; i < k->c->libs.n; i++) {
        if (!wanted(k, i))
            continue;
        if (!dirs.n) {
            near_program(k->c, root, &dirs);
            beside_environment(env, &dirs);
            of_objects(k->c, &tokens, &dirs);
            usual(places, &dirs);
        }
        look(k, i, &dirs, root);
    }
    strv_release(&dirs);
}

void closure_candidates(struct closure *c, char *const *env, const char *root, const struct strv *places)
{
    closure_note_versions(c);
    candidates(&(struct lacks){ .c = c, .versions = c->lacking }, env, root, places);
}

void closure_candidates_symbols(struct closure *c, struct symbols *s, const struct symbol_misses *m, char *const *env,
                                const char *root, const struct strv *places)
{
    candidates(&(struct lacks){ .c = c, .misses = m, .symbols = s }, env, root, places);
}
