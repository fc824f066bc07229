/* The state of a search: names of what is loaded, directories with their subdirectories, search paths. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include "elf/elf_priv.h"

/* ---- names of loaded objects ---- */

static uint64_t hash_of(const char *s)
{
    uint64_t h = 14695981039346656037u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h | 1;
}

static struct slot *slot_of(const struct names *t, const char *name, uint64_t hash)
{
    for (size_t i = hash & (t->cap - 1);; i = (i + 1) & (t->cap - 1))
        if (!t->v[i].hash || (t->v[i].hash == hash && str_eq(t->v[i].name, name)))
            return &t->v[i];
}

static size_t names_find(const struct names *t, const char *name)
{
    struct slot *slot = t->cap ? slot_of(t, name, hash_of(name)) : NULL;

    return slot && slot->hash ? slot->value : SIZE_MAX;
}

/* A name that is there keeps its number. */
static void names_add(struct names *t, const char *name, size_t value)
{
    uint64_t hash = hash_of(name);
    struct slot *slot;

    if (t->n * 2 >= t->cap) {
        struct names old = *t;

        t->cap = old.cap ? old.cap * 2 : 256;
        t->v = xcalloc(t->cap, sizeof(*t->v));
        for (size_t i = 0; i < old.cap; i++)
            if (old.v[i].hash)
                *slot_of(t, old.v[i].name, old.v[i].hash) = old.v[i];
        free(old.v);
    }
    slot = slot_of(t, name, hash);
    if (slot->hash)
        return;
    *slot = (struct slot){ hash, name, value };
    t->n++;
}

size_t search_known(const struct search *s, const char *name)
{
    return names_find(&s->names, name);
}

char *search_own(struct search *s, char *text)
{
    return *VEC_ADD(&s->owned) = text;
}

void search_name(struct search *s, const char *name, size_t lib)
{
    if (name)
        names_add(&s->names, name, lib);
}

/* ---- directories ---- */

char *search_host_path(const struct search *s, const char *path)
{
    return root_path(s->l->root, path);
}

/* prefix: absolute, with its slash. Notes the directory and its time; mtime 0: it is not there. */
static void add_place(struct search *s, struct dir *d, const char *prefix, bool holds)
{
    struct place *p = VEC_ADD(&d->places);
    struct searched_dir *seen = VEC_ADD(&s->c->dirs);
    size_t n = strlen(prefix);
    struct stat st;
    char *host;

    seen->path = xstrndup(prefix, n > 1 ? n - 1 : n);
    host = search_host_path(s, seen->path);
    p->prefix = xstrdup(prefix);
    p->index = s->c->dirs.n - 1;
    p->holds = holds;
    place_at(host);
    p->exists = stat(host, &st) == 0 && S_ISDIR(st.st_mode);
    if (p->exists)
        seen->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    free(host);
}

static bool last_exists(const struct dir *d)
{
    return d->places.v[d->places.n - 1].exists;
}

/* A subdirectory that is not there is covered by its parent's time. */
static void forget_last(struct search *s, struct dir *d)
{
    free(s->c->dirs.v[--s->c->dirs.n].path);
    free(d->places.v[--d->places.n].prefix);
}

static void add_subdir(struct search *s, struct dir *d, const char *prefix, const char *sub, bool holds)
{
    char *path = xasprintf("%s%s/", prefix, sub);

    add_place(s, d, path, holds);
    free(path);
}

static void add_hwcaps(struct search *s, struct dir *d, const char *prefix)
{
    char *inner;

    if (!s->l->hwcaps.n)
        return;
    add_subdir(s, d, prefix, "glibc-hwcaps", false);
    if (!last_exists(d)) {
        forget_last(s, d);
        return;
    }
    inner = xasprintf("%sglibc-hwcaps/", prefix);
    for (size_t i = 0; i < s->l->hwcaps.n; i++) {
        add_subdir(s, d, inner, s->l->hwcaps.v[i], true);
        if (!last_exists(d))
            forget_last(s, d);
    }
    free(inner);
}

/* "tls/x86_64", "tls", ...: whether the first part exists is asked once. */
static void add_legacy(struct search *s, struct dir *d, const char *prefix)
{
    char *first = NULL, *asked = NULL;
    bool there = false;

    for (size_t i = 0; i < s->l->legacy.n; i++) {
        const char *sub = s->l->legacy.v[i];

        free(first);
        first = xstrndup(sub, strcspn(sub, "/"));
        if (!str_eq(first, asked)) {
            free(asked);
            asked = xstrdup(first);
            add_subdir(s, d, prefix, first, false);
            there = last_exists(d);
            if (!there)
                forget_last(s, d);
        }
        if (!there)
            continue;
        add_subdir(s, d, prefix, sub, true);
        if (!last_exists(d))
            forget_last(s, d);
    }
    free(first);
    free(asked);
}

/* Index of the directory `path`, as a search path has it ("": the working directory). */
static size_t dir_of(struct search *s, const char *path)
{
    size_t n = strlen(path), known;
    char *key, *prefix;
    struct dir *d;

    while (n > 1 && path[n - 1] == '/')
        n--;
    key = xstrndup(path, n);
    n = strlen(key);
    known = names_find(&s->keys, key);
    if (known != SIZE_MAX) {
        free(key);
        return known;
    }
    d = VEC_ADD(&s->dirs);
    d->key = key;
    names_add(&s->keys, key, s->dirs.n - 1);
    if (*key == '/')
        prefix = xasprintf("%s%s", key, n > 1 ? "/" : "");
    else
        prefix = xasprintf("%s%s%s%s", s->cwd, str_eq(s->cwd, "/") ? "" : "/", key, n ? "/" : "");
    add_place(s, d, prefix, true);
    if (d->places.v[0].exists) {
        struct place self = d->places.v[0]; /* the directory itself comes last */

        add_hwcaps(s, d, prefix);
        add_legacy(s, d, prefix);
        memmove(d->places.v, d->places.v + 1, (d->places.n - 1) * sizeof(self));
        d->places.v[d->places.n - 1] = self;
    }
    free(prefix);
    return s->dirs.n - 1;
}

/* One list is made at a time; s->lists is its number. */
static void list_add(struct search *s, struct list *l, size_t dir)
{
    if (s->dirs.v[dir].listed == s->lists)
        return;
    s->dirs.v[dir].listed = s->lists;
    *VEC_ADD(l) = dir;
}

const struct list *search_default(struct search *s)
{
    s->lists += !s->def.known;
    if (!s->def.known)
        for (size_t i = 0; i < s->l->dirs.n; i++)
            list_add(s, &s->def, dir_of(s, s->l->dirs.v[i]));
    s->def.known = true;
    return &s->def;
}

/* In secure mode a program's $ORIGIN must lead below a default directory. */
static bool trusted(const struct search *s, const char *dir)
{
    char *clean = path_absolute(dir);
    bool ok = false;

    for (size_t i = 0; i < s->l->dirs.n && !ok; i++) {
        size_t n = strlen(s->l->dirs.v[i]);

        ok = str_starts(clean, s->l->dirs.v[i]) && (clean[n] == '/' || !clean[n]);
    }
    free(clean);
    return ok;
}

static char *expand(const struct search *s, const char *part, const char *origin, bool program)
{
    int uses = s->secure ? token_origin(part) : 0;
    char *dir = uses < 0 ? NULL : token_expand(part, origin, s->l);

    if (dir && uses && program && !trusted(s, dir)) {
        free(dir);
        dir = NULL;
    }
    return dir;
}

/* A path of the loader's: elements that expand to nothing are dropped, an empty one is the working directory. */
void search_list(struct search *s, struct list *l, const char *path, const char *separators, const char *origin,
                 bool program)
{
    bool musl = s->l->musl;
    struct strv parts = { 0 };
    char *whole = NULL;

    l->known = true;
    s->lists++;
    if (path && *path)
        whole = musl && origin ? musl_run_path(path, origin, program && s->secure) : xstrdup(path);
    if (whole)
        strv_split(&parts, whole, musl ? ":\n" : separators);
    free(whole);
    for (size_t i = 0; i < parts.n; i++) {
        char *dir = !*parts.v[i] ? NULL : musl ? xstrdup(parts.v[i]) : expand(s, parts.v[i], origin, program);

        if (!*parts.v[i] && !musl)
            list_add(s, l, dir_of(s, ""));
        else if (dir && *dir)
            list_add(s, l, dir_of(s, dir));
        free(dir);
    }
    strv_release(&parts);
}

/* ---- set-up ---- */

void search_init(struct search *s, struct closure *c, const struct loader *l, const char *cwd, bool images,
                 struct symbols *symbols)
{
    memset(s, 0, offsetof(struct search, r));
    s->c = c;
    s->l = l;
    s->cwd = cwd;
    s->images = images;
    s->symbols = symbols;
    s->secure = l->secure;
}

void search_environment(struct search *s, char *const *env)
{
    const char *path = s->secure || !env ? NULL : env_get(env, "LD_LIBRARY_PATH");
    bool musl = s->l->musl;
    char *whole = !path || !*path ? NULL : musl ? xstrdup(path) : token_expand(path, s->origin, s->l), *host;

    search_list(s, &s->env, whole, ":;", musl ? NULL : s->origin, false);
    free(whole);
    if (s->l->cache_path) {
        host = search_host_path(s, s->l->cache_path);
        cache_open(&s->cache, host, NULL); /* without one the loader goes on, too */
        free(host);
    }
}

void search_release(struct search *s)
{
    for (size_t i = 0; i < s->dirs.n; i++) {
        struct dir *d = &s->dirs.v[i];

        for (size_t j = 0; j < d->places.n; j++)
            free(d->places.v[j].prefix);
        free(d->places.v);
        free(d->key);
    }
    for (size_t i = 0; i < s->paths.n; i++) {
        free(s->paths.v[i].rpath.v);
        free(s->paths.v[i].runpath.v);
    }
    for (size_t i = 0; i < s->owned.n; i++)
        free(s->owned.v[i]);
    for (size_t i = 0; i < s->attempts.n; i++)
        free(s->attempts.v[i].path);
    free(s->attempts.v);
    free(s->missed.v);
    free(s->owned.v);
    free(s->names.v);
    free(s->keys.v);
    free(s->paths.v);
    free(s->dirs.v);
    free(s->env.v);
    free(s->def.v);
    free(s->main_rpath.v);
    free(s->order.v);
    free(s->files.v);
    free(s->origin);
    loader_release(&s->own);
    free(s->interp);
    cache_close(&s->cache);
    memset(s, 0, offsetof(struct search, r));
}
