#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include <elf.h>
#include "elf/symbols_priv.h"

const struct name why_names[] = {
    { "path", WHY_PATH },       { "preload", WHY_PRELOAD }, { "loaded", WHY_LOADED },
    { "rpath", WHY_RPATH },     { "ld_library_path", WHY_LD_LIBRARY_PATH },
    { "runpath", WHY_RUNPATH }, { "cache", WHY_CACHE },     { "default", WHY_DEFAULT },
    { "not-found", WHY_NOT_FOUND }, { NULL, 0 },
};

/* ---- adding objects ---- */

struct library *search_add_library(struct search *s, const char *soname, enum why why, size_t needed_by)
{
    struct library *lib = VEC_ADD(&s->c->libs);

    lib->soname = xstrdup(soname);
    lib->why = why;
    lib->needed_by = needed_by;
    lib->found_in = SIZE_MAX;
    *VEC_ADD(&s->order) = (struct turn){ s->c->libs.n - 1, false };
    return lib;
}

static void library_release(struct library *lib)
{
    for (size_t j = 0; j < lib->tried.n; j++) {
        free(lib->tried.v[j].path);
        free(lib->tried.v[j].why_not);
    }
    free(lib->tried.v);
    free(lib->missed.v);
    free(lib->soname);
    free(lib->path);
    free(lib->corrupt);
    free(lib->beside);
    strv_release(&lib->candidates);
    object_release(&lib->object);
}

void search_drop_last(struct search *s)
{
    library_release(&s->c->libs.v[--s->c->libs.n]);
    s->order.n--;
}

void search_add_edge(struct search *s, size_t from, size_t to, char *name)
{
    *VEC_ADD(&s->c->edges) = (struct edge){ from, to, name };
}

/* The one line of a text file, when it is the name of a file that lies beside it. */
static char *named_beside(const struct search *s, const char *path)
{
    char *host = search_host_path(s, path), *dir = path_dir(host), *found = NULL, *file;
    struct str t = { 0 };

    if (file_read(host, 1024, &t, NULL) == 0 && t.len && strlen(t.s) == t.len) {
        t.s[strcspn(t.s, "\r\n")] = '\0';
        file = path_join(dir, t.s);
        if (*t.s && utf8_valid(t.s, strlen(t.s)) && access(file, F_OK) == 0 && !str_eq(file, host))
            found = xstrdup(t.s);
        free(file);
    }
    str_release(&t);
    free(dir);
    free(host);
    return found;
}

static void keep_attempts(struct search *s, struct library *lib, bool all)
{
    for (size_t i = 0; i < s->attempts.n; i++) {
        const struct attempt *a = &s->attempts.v[i];

        if (!all && (str_eq(a->why_not, "no such file") || str_eq(a->why_not, "no such directory")))
            continue;
        *VEC_ADD(&lib->tried) = (struct tried){ xstrdup(a->path), xstrdup(a->why_not), a->why };
    }
    for (size_t i = 0; i < s->missed.n; i++)
        *VEC_ADD(&lib->missed) = s->missed.v[i];
}

/* The loader refuses these after it has looked into the file. */
static const char *unloadable(const struct object *o)
{
    if (!o->dynamic)
        return "an ELF file without a dynamic section";
    if (o->type == ET_EXEC)
        return "a program, not a shared object";
    if (o->is_pie)
        return "a position-independent program, not a shared object";
    return NULL;
}

static size_t same_file(const struct search *s, const struct stat *st)
{
    for (size_t i = 0; i < s->files.n; i++)
        if (s->files.v[i].ino == st->st_ino && s->files.v[i].dev == st->st_dev)
            return i;
    return SIZE_MAX;
}

static void fill(struct search *s, struct library *lib, struct hit *h)
{
    const char *fault;
    char *host;

    lib->path = h->path;
    lib->found_in = h->found_in;
    lib->corrupt = h->corrupt;
    h->path = h->corrupt = NULL;
    if (h->fd >= 0) {
        host = search_host_path(s, lib->path);
        if (object_read_open(&s->r, &h->st, host, s->images, &lib->object, &lib->corrupt) == 0 &&
            (fault = unloadable(&lib->object))) {
            lib->corrupt = xstrdup(fault);
            object_release(&lib->object);
        } else if (!lib->corrupt && s->symbols) {
            symtab_read(s->symbols, &lib->object, h->fd, (uint64_t)h->st.st_size);
        }
        close(h->fd);
        h->fd = -1;
        free(host);
    }
    if (lib->corrupt && strstr(lib->corrupt, "text"))
        lib->beside = named_beside(s, lib->path);
}

void search_know(struct search *s, size_t i)
{
    const struct library *lib = &s->c->libs.v[i];

    while (s->files.n <= i)
        VEC_ADD(&s->files);
    s->files.v[i] = (struct file_id){ lib->object.dev, lib->object.ino };
    search_name(s, lib->soname, i);
    search_name(s, lib->path, i);
    if (!s->l->musl)
        search_name(s, lib->object.soname, i);
}

/* An object of the scope that a module finds loaded; gives its index in this closure. */
static size_t from_scope(struct search *s, size_t i, const char *name, size_t from)
{
    const struct library *have = &s->scope->libs.v[i];
    struct library *lib = search_add_library(s, name, have->path ? WHY_LOADED : WHY_NOT_FOUND, from);

    lib->path = xstrdup(have->path);
    lib->corrupt = xstrdup(have->corrupt);
    lib->beside = xstrdup(have->beside);
    object_copy(&lib->object, &have->object);
    search_know(s, s->c->libs.n - 1);
    return s->c->libs.n - 1;
}

static size_t scope_known(const struct search *s, const char *name)
{
    for (size_t i = s->scope ? s->scope->main : 0; s->scope && i < s->scope->libs.n; i++) {
        const struct library *lib = &s->scope->libs.v[i];

        if (lib->path && !lib->corrupt && (str_eq(lib->soname, name) || str_eq(lib->path, name) ||
                                           (!s->l->musl && str_eq(lib->object.soname, name))))
            return i;
    }
    return SIZE_MAX;
}

static size_t scope_file(const struct search *s, const struct stat *st)
{
    for (size_t i = 0; s->scope && i < s->scope->libs.n; i++) {
        const struct object *o = &s->scope->libs.v[i].object;

        if (o->path && o->ino == st->st_ino && o->dev == st->st_dev)
            return i;
    }
    return SIZE_MAX;
}

/* The loader itself is loaded from the start and takes its place where it is first needed. */
static size_t add_loader(struct search *s, const char *name, size_t from)
{
    char *host = search_host_path(s, s->interp);
    struct object o;
    size_t i = SIZE_MAX;

    if (object_read(host, s->images, &o, NULL) == 0) {
        if (s->l->musl || str_eq(name, s->interp) || str_eq(name, o.soname)) {
            struct library *lib = search_add_library(s, name, WHY_LOADED, from);

            lib->path = xstrdup(s->interp);
            lib->object = o;
            i = s->c->libs.n - 1;
            search_know(s, i);
        } else {
            object_release(&o);
        }
    }
    free(host);
    return i;
}

static size_t not_found_before(const struct search *s, const char *name)
{
    for (size_t i = 0; i < s->c->libs.n; i++)
        if (!s->c->libs.v[i].path && !s->c->libs.v[i].preload && str_eq(s->c->libs.v[i].soname, name))
            return i;
    return SIZE_MAX;
}

static size_t search_and_add(struct search *s, const char *name, size_t from)
{
    struct library *lib;
    struct hit h;
    size_t i;

    search_find(s, name, from, &h);
    if (h.missing && (i = not_found_before(s, name)) != SIZE_MAX)
        return i;
    i = h.fd >= 0 ? same_file(s, &h.st) : SIZE_MAX;
    if (i == SIZE_MAX && h.fd >= 0 && scope_file(s, &h.st) != SIZE_MAX)
        i = from_scope(s, scope_file(s, &h.st), name, from);
    if (i != SIZE_MAX) { /* one file by another name is one object */
        search_name(s, search_own(s, xstrdup(name)), i);
        close(h.fd);
        free(h.path);
        return i;
    }
    lib = search_add_library(s, name, h.why, from);
    i = s->c->libs.n - 1;
    keep_attempts(s, lib, h.missing);
    fill(s, lib, &h);
    if (lib->path && !lib->corrupt)
        search_know(s, i);
    return i;
}

/* The loader's own name, or one that it may have: its file is then asked. */
static bool is_loader(const struct search *s, const char *name)
{
    if (s->l->musl)
        return str_eq(name, s->interp) || musl_own_name(name);
    return s->interp && (str_eq(name, s->interp) || str_eq(name, path_base(s->interp)) ||
                         str_starts(name, "ld-linux") || str_starts(name, "ld64.so"));
}

/* musl's loader by one of its names; SIZE_MAX where it is not there, which is told of the program. */
static size_t need_musl(struct search *s, const char *name, size_t from)
{
    size_t i = search_known(s, s->interp);

    if (i == SIZE_MAX)
        return add_loader(s, name, from);
    search_name(s, search_own(s, xstrdup(name)), i);
    return i;
}

size_t search_need(struct search *s, const char *name, size_t from)
{
    size_t i = search_known(s, name);

    if (i != SIZE_MAX)
        return i;
    if (s->l->musl && is_loader(s, name))
        return need_musl(s, name, from);
    i = scope_known(s, name);
    if (i != SIZE_MAX)
        return from_scope(s, i, name, from);
    if (is_loader(s, name))
        i = add_loader(s, name, from);
    return i != SIZE_MAX ? i : search_and_add(s, name, from);
}

/* ---- preloads ---- */

static void preload(struct search *s, const char *list, const char *separators)
{
    struct strv names = { 0 };

    strv_split(&names, list, separators);
    for (size_t i = 0; i < names.n; i++) {
        char *name = !*names.v[i] ? NULL
                     : s->l->musl ? xstrdup(names.v[i])
                                  : token_expand(names.v[i], s->origin, s->l);
        size_t before = s->c->libs.n;
        size_t k = name && *name && !is_loader(s, name) ? search_need(s, name, s->c->main) : SIZE_MAX;

        if (k != SIZE_MAX && k >= before) {
            struct library *lib = &s->c->libs.v[k];

            search_own(s, lib->soname); /* the loader keeps the name as it was written */
            lib->soname = xstrdup(names.v[i]);
            lib->preload = true;
            lib->why = lib->path ? WHY_PRELOAD : WHY_NOT_FOUND;
        }
        free(name);
    }
    strv_release(&names);
}

/* Comments of ld.so.preload, as glibc 2.36 elf/rtld.c finds them: after each it looks again from the start, in as many bytes as
 * are left, so that a later comment may be seen in part or not at all; what is left of its words is then loaded. */
static void blank_comments(char *file)
{
    size_t rest = strlen(file);
    char *p;

    while (rest > 0 && (p = memchr(file, '#', rest))) {
        rest -= (size_t)(p - file);
        do
            *p++ = ' ';
        while (--rest > 0 && *p != '\n');
    }
}

void search_preloads(struct search *s, char *const *env)
{
    const char *list = s->secure || !env ? NULL : env_get(env, "LD_PRELOAD");
    char *file;

    s->preloading = true;
    if (list)
        preload(s, list, s->l->musl ? " :\t\n\v\f\r" : " :");
    s->preloading = false;
    if (!s->l->preload)
        return;
    file = xstrdup(s->l->preload);
    blank_comments(file);
    preload(s, file, " \t\n:");
    free(file);
}

void closure_add_loaded(struct closure *loaded, const struct closure *more)
{
    for (size_t i = more->main; i < more->libs.n; i++) {
        const struct library *from = &more->libs.v[i];
        struct library *lib;

        if (from->why == WHY_LOADED || !from->object.path || from->corrupt)
            continue;
        lib = VEC_ADD(&loaded->libs);
        lib->soname = xstrdup(from->soname);
        lib->path = xstrdup(from->path);
        lib->why = from->why;
        lib->needed_by = loaded->main;
        lib->found_in = SIZE_MAX;
        object_copy(&lib->object, &from->object);
    }
}

void closure_release(struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++)
        library_release(&c->libs.v[i]);
    for (size_t i = 0; i < c->dirs.n; i++)
        free(c->dirs.v[i].path);
    for (size_t i = 0; i < c->edges.n; i++)
        free(c->edges.v[i].name);
    free(c->libs.v);
    free(c->dirs.v);
    free(c->edges.v);
    if (c->lacking)
        free(c->lacking->v);
    free(c->lacking);
    memset(c, 0, sizeof(*c));
}
