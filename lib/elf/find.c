/* Where the loader looks for one name. Order and odd cases: ld.so(8) and glibc 2.36 elf/dl-load.c, told in doc/elf.md. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "elf/elf_priv.h"

enum outcome { TAKEN, PASSED, STOPPED }; /* STOPPED: the loader gives up this list of directories */

static void attempt(struct search *s, enum why why, const char *path, const char *why_not)
{
    *VEC_ADD(&s->attempts) = (struct attempt){ why, xstrdup(path), why_not };
}

static void forget_attempts(struct search *s)
{
    for (size_t i = 0; i < s->attempts.n; i++)
        free(s->attempts.v[i].path);
    s->attempts.n = 0;
    s->missed.n = 0;
    s->searches++;
}

/* ---- one candidate ---- */

static uint16_t half(const uint8_t *p, bool big)
{
    return big ? (uint16_t)(p[0] << 8 | p[1]) : get16(p);
}

/* What the loader has against an ELF header; NULL nothing. *ret_skip: it looks further, else it dies. */
static const char *header_fault(const uint8_t *h, const struct search *s, bool *ret_skip)
{
    bool wide = s->elfclass == 2, big = h[5] == 2;
    uint16_t type;

    *ret_skip = true;
    if (h[4] != s->elfclass)
        return "wrong class";
    *ret_skip = false;
    if (h[5] != s->data)
        return "an ELF file of the other byte order";
    if (h[6] != 1)
        return "an ELF file of an unknown version";
    if (h[7] != 0 && h[7] != 3)
        return "an ELF file for another operating system";
    if (half(h + 18, big) != s->machine) {
        *ret_skip = true;
        return "wrong machine";
    }
    type = half(h + 16, big);
    if (type != 2 && type != 3)
        return "an ELF file that is neither a shared object nor a program";
    if (half(h + (wide ? 54 : 42), big) != (wide ? 56 : 32))
        return "an ELF file with program headers of an unknown size";
    return NULL;
}

static const char *absent(const char *host, int e)
{
    char c;

    switch (e) {
    case ENOENT: return readlink(host, &c, 1) > 0 ? "dangling symlink" : "no such file";
    case EACCES: return "permission denied";
    case ENAMETOOLONG: return "path too long";
    case ELOOP: return "symlink loop";
    case ENOTDIR: return "no such directory";
    default: return "cannot be opened";
    }
}

/* The open regular file: NULL, or why it is passed over (*ret_skip) or kills the loader (*ret_corrupt, owned). */
static void look_inside(struct search *s, int fd, const struct stat *st, const char **ret_skip, char **ret_corrupt)
{
    const uint8_t *h;
    const char *fault;
    bool skip;

    reader_init(&s->r, fd, (uint64_t)st->st_size);
    s->r.window = HEAD_WINDOW;
    h = reader_at(&s->r, 0, s->elfclass == 2 ? 64 : 52);
    if (!h || memcmp(h, "\177ELF", 4)) {
        *ret_corrupt = file_kind(&s->r);
        return;
    }
    fault = header_fault(h, s, &skip);
    if (fault && skip && !s->l->musl) /* musl does not look at class and machine, and dies later */
        *ret_skip = fault;
    else if (fault)
        *ret_corrupt = xstrdup(fault);
}

static enum outcome try_file(struct search *s, enum why why, const char *path, struct hit *ret)
{
    char *host = search_host_path(s, path), *corrupt = NULL;
    const char *what = NULL, *skip = NULL;
    enum outcome out = PASSED;
    struct stat st;
    int fd = open_calmly(host, &st, &what);

    if (fd < 0) {
        int e = errno;

        attempt(s, why, path, absent(host, e));
        free(host);
        return e == ENOENT || e == EACCES || (s->l->musl && (e == ENOTDIR || e == ENAMETOOLONG)) ? PASSED : STOPPED;
    }
    if (what)
        corrupt = xstrdup(what);
    else
        look_inside(s, fd, &st, &skip, &corrupt);
    if (skip) {
        attempt(s, why, path, skip);
        close(fd);
    } else {
        *ret = (struct hit){ .why = why, .path = xstrdup(path), .fd = fd, .st = st, .found_in = SIZE_MAX,
                             .corrupt = corrupt };
        if (corrupt) {
            close(fd);
            ret->fd = -1;
        }
        out = TAKEN;
    }
    free(host);
    return out;
}

/* ---- the steps ---- */

static void miss(struct search *s, struct place *p)
{
    if (p->missed == s->searches)
        return;
    p->missed = s->searches;
    *VEC_ADD(&s->missed) = p->index;
}

static enum outcome try_dir(struct search *s, enum why why, struct dir *d, const char *name, struct hit *ret)
{
    for (size_t i = 0; i < d->places.n; i++) {
        struct place *p = &d->places.v[i];
        enum outcome out = PASSED;

        if (!p->exists) {
            attempt(s, why, s->c->dirs.v[p->index].path, "no such directory");
        } else if (p->holds) {
            size_t n = strlen(p->prefix), m = strlen(name) + 1;
            char *path = xmalloc(n + m);

            memcpy(path, p->prefix, n);
            memcpy(path + n, name, m);

            out = try_file(s, why, path, ret);
            free(path);
        }
        if (out == TAKEN)
            ret->found_in = p->index;
        if (out == TAKEN || (out == STOPPED && i + 1 == d->places.n)) /* of a directory the last error counts */
            return out;
        miss(s, p);
    }
    return PASSED;
}

static enum outcome walk_list(struct search *s, enum why why, const struct list *l, const char *name, struct hit *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        enum outcome out = try_dir(s, why, &s->dirs.v[l->v[i]], name, ret);

        if (out != PASSED)
            return out;
    }
    return PASSED;
}

static bool try_list(struct search *s, enum why why, const struct list *l, const char *name, struct hit *ret)
{
    return walk_list(s, why, l, name, ret) == TAKEN;
}

/* The paths of object i, expanded when first asked for. */
static struct paths *paths_of(struct search *s, size_t i)
{
    const struct library *lib = &s->c->libs.v[i];
    struct paths *p;
    bool program = i == s->c->main && !s->scope;
    char *dir;

    while (s->paths.n <= i)
        VEC_ADD(&s->paths);
    p = &s->paths.v[i];
    if (p->rpath.known)
        return p;
    dir = program ? xstrdup(s->origin) : path_dir(lib->path);
    search_list(s, &p->rpath, lib->object.rpath, ":", dir, program);
    search_list(s, &p->runpath, lib->object.runpath, ":", dir, program);
    free(dir);
    return p;
}

/* DT_RPATH of the object, of what pulled it in, and so on up to the program. */
static bool try_rpaths(struct search *s, size_t from, const char *name, struct hit *ret)
{
    const struct library *libs = s->c->libs.v;

    for (size_t i = from;; i = libs[i].needed_by) {
        if (try_list(s, WHY_RPATH, &paths_of(s, i)->rpath, name, ret))
            return true;
        if (i == s->c->main || libs[i].needed_by == i)
            break;
    }
    return s->scope && try_list(s, WHY_RPATH, &s->main_rpath, name, ret);
}

static bool try_cache(struct search *s, const struct object *from, const char *name, struct hit *ret)
{
    const char *path = cache_find(&s->cache, name, s->machine, s->elfclass, s->l);

    if (!path)
        return false;
    for (size_t i = 0; from->nodeflib && i < s->l->dirs.n; i++)
        if (str_starts(path, s->l->dirs.v[i]) && path[strlen(s->l->dirs.v[i])] == '/')
            return false;
    return try_file(s, WHY_CACHE, path, ret) == TAKEN;
}

static bool try_all(struct search *s, const char *name, size_t from, struct hit *ret)
{
    const struct object *o = &s->c->libs.v[from].object;

    return (!o->runpath && try_rpaths(s, from, name, ret)) ||
           try_list(s, WHY_LD_LIBRARY_PATH, &s->env, name, ret) ||
           try_list(s, WHY_RUNPATH, &paths_of(s, from)->runpath, name, ret) || try_cache(s, o, name, ret) ||
           (!o->nodeflib && try_list(s, WHY_DEFAULT, search_default(s), name, ret));
}

/* musl: LD_LIBRARY_PATH, the run paths of all that led here, whichever their kind, and its directories. */
static bool try_musl(struct search *s, const char *name, size_t from, struct hit *ret)
{
    enum outcome out = walk_list(s, WHY_LD_LIBRARY_PATH, &s->env, name, ret);
    bool ended = s->preloading;

    for (size_t i = from; out == PASSED && !ended; i = s->c->libs.v[i].needed_by) {
        out = walk_list(s, WHY_RPATH, &paths_of(s, i)->rpath, name, ret);
        if (out == PASSED)
            out = walk_list(s, WHY_RUNPATH, &paths_of(s, i)->runpath, name, ret);
        ended = i == s->c->main || s->c->libs.v[i].preload || s->c->libs.v[i].needed_by == i;
    }
    if (out == PASSED && s->scope)
        out = walk_list(s, WHY_RPATH, &s->main_rpath, name, ret);
    if (out == PASSED)
        out = walk_list(s, WHY_DEFAULT, search_default(s), name, ret);
    return out == TAKEN;
}

void search_find(struct search *s, const char *name, size_t from, struct hit *ret)
{
    bool found;

    forget_attempts(s);
    memset(ret, 0, sizeof(*ret));
    ret->fd = -1;
    ret->found_in = SIZE_MAX;
    if (strchr(name, '/')) {
        char *path = path_join(s->cwd, name);

        found = try_file(s, WHY_PATH, path, ret) == TAKEN;
        free(path);
    } else {
        found = (s->l->musl ? try_musl : try_all)(s, name, from, ret);
    }
    if (!found) {
        ret->why = WHY_NOT_FOUND;
        ret->missing = true;
    }
}
