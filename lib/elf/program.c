/* Where a closure starts: a program, a script with its interpreter, or a module in the scope of a program. */
#include "config.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <elf.h>
#include "elf/elf_priv.h"

/* The interpreter of a script, from its first line; NULL if it is none. Owned. */
static char *interpreter(const char *host)
{
    struct str t = { 0 };
    const char *what;
    struct reader r;
    struct stat st;
    int fd = open_calmly(host, &st, &what);
    const uint8_t *p;
    size_t n;

    if (fd < 0)
        return NULL;
    reader_init(&r, fd, what ? 0 : (uint64_t)st.st_size);
    n = r.size < 256 ? (size_t)r.size : 256;
    p = reader_at(&r, 0, n);
    close(fd);
    if (!p || n < 3 || p[0] != '#' || p[1] != '!')
        return NULL;
    str_addn(&t, p + 2, n - 2);
    t.s[strcspn(t.s, "\n")] = '\0';
    n = strspn(t.s, " \t");
    memmove(t.s, t.s + n, strlen(t.s + n) + 1);
    t.s[strcspn(t.s, " \t\r")] = '\0';
    return str_take(&t);
}

static char *origin_of(const struct search *s, const char *path)
{
    char *host = search_host_path(s, path), *real, *dir;
    size_t n = strlen(s->l->root);

    place_at(host);
    real = realpath(host, NULL);
    dir = path_dir(real ? (strncmp(real, s->l->root, n) ? path : real + n) : path);
    free(real);
    free(host);
    return dir;
}

/* Does execve set AT_SECURE for this user? By the bits for another owner or group, or, but for root, by file capabilities;
 * not on a mount with nosuid, nor under no_new_privs. */
static bool gains_privileges(const char *host)
{
    struct statvfs fs;
    struct stat st;

    if (stat(host, &st) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0 ||
        (statvfs(host, &fs) == 0 && fs.f_flag & ST_NOSUID))
        return false;
    if (st.st_mode & S_ISUID && st.st_uid != getuid())
        return true;
    if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid())
        return true;
    return getuid() && getxattr(host, "security.capability", NULL, 0) > 0;
}

/* Adds the program, after its script if it is one. */
static int add_program(struct search *s, const char *program, struct err *err)
{
    char *path = path_join(s->cwd, program), *host = search_host_path(s, path), *script = interpreter(host);
    struct library *lib = search_add_library(s, program, WHY_PATH, 0);
    int rc;

    lib->path = path;
    if (script && *script) {
        s->c->main = 1;
        lib = search_add_library(s, script, WHY_PATH, 0);
        lib->path = path_join(s->cwd, script);
        search_add_edge(s, 0, 1, xstrdup(script));
        free(host);
        host = search_host_path(s, lib->path);
    }
    rc = object_read(host, s->images, &lib->object, err);
    if (rc && script)
        err_prefix(err, "'%s' is a script", path);
    if (rc == 0) {
        s->origin = origin_of(s, lib->path);
        s->secure = s->c->secure = s->l->secure || gains_privileges(host);
    }
    free(script);
    free(host);
    return rc;
}

static int byte_order(const struct object *o)
{
    return o->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
}

static void start(struct search *s)
{
    const struct library *lib = &s->c->libs.v[s->c->main];

    s->elfclass = lib->object.elfclass;
    s->machine = lib->object.machine;
    s->data = byte_order(&lib->object);
    s->interp = xstrdup(lib->object.interp ? lib->object.interp : s->l->path);
    search_know(s, s->c->main);
}

static void check_interp(struct search *s)
{
    const char *interp = s->c->libs.v[s->c->main].object.interp;
    char *host = interp ? search_host_path(s, interp) : NULL;

    if (host && access(host, F_OK)) {
        struct library *lib = search_add_library(s, interp, WHY_NOT_FOUND, s->c->main);

        *VEC_ADD(&lib->tried) = (struct tried){ xstrdup(interp), xstrdup("no such file"), WHY_PATH };
    }
    free(host);
}

int closure_resolve(const char *program, char *const *env, const char *cwd, const struct loader *l, bool images,
                    struct symbols *symbols, struct closure *ret, struct err *err)
{
    char *here = cwd ? xstrdup(cwd) : getcwd(NULL, 0);
    struct closure c = { 0 };
    struct search s;
    int rc;

    search_init(&s, &c, l, here ? here : "/", images, symbols);
    rc = add_program(&s, program, err);
    if (rc == 0) {
        const struct object *o = &c.libs.v[c.main].object;

        search_adopt(&s, o->interp);
        start(&s);
        if (o->dynamic && (o->interp || o->needed.n)) {
            search_environment(&s, env);
            search_preloads(&s, env);
            search_walk(&s);
            check_interp(&s);
        }
        *ret = c;
    } else {
        closure_release(&c);
    }
    search_release(&s);
    free(here);
    return rc;
}

int closure_extend(const struct closure *scope, const char *module, char *const *env, const char *cwd,
                   const struct loader *l, bool images, struct symbols *symbols, struct closure *ret, struct err *err)
{
    const struct library *main = &scope->libs.v[scope->main];
    char *here = cwd ? xstrdup(cwd) : getcwd(NULL, 0), *path = path_join(here ? here : "/", module), *host;
    struct closure c = { .module = true };
    struct library *lib;
    struct search s;
    int rc;

    search_init(&s, &c, l, here ? here : "/", images, symbols);
    s.scope = scope;
    s.secure = c.secure = scope->secure;
    search_adopt(&s, main->object.interp);
    lib = search_add_library(&s, module, WHY_PATH, 0);
    lib->path = path;
    host = search_host_path(&s, path);
    rc = object_read(host, images, &lib->object, err);
    if (rc == 0) {
        s.origin = origin_of(&s, main->path);
        start(&s);
        free(s.interp);
        s.interp = xstrdup(main->object.interp ? main->object.interp : l->path);
        search_list(&s, &s.main_rpath, s.l->musl && main->object.runpath ? main->object.runpath : main->object.rpath, ":",
                    s.origin, true);
        search_environment(&s, env);
        search_walk(&s);
        *ret = c;
    } else {
        closure_release(&c);
    }
    search_release(&s);
    free(host);
    free(here);
    return rc;
}

void search_for_maybes(const struct closure *c, const struct closure *scope, char *const *env, const char *cwd,
                       const struct loader *l, struct maybes *ret, size_t first)
{
    const struct closure *program = scope ? scope : c;
    const struct library *main = &program->libs.v[program->main];
    char *here = cwd ? xstrdup(cwd) : getcwd(NULL, 0);
    struct closure c2 = *c; /* its list of directories grows while one searches */
    struct search s;

    memset(&c2.dirs, 0, sizeof(c2.dirs));
    search_init(&s, &c2, l, here ? here : "/", false, NULL);
    s.scope = scope;
    s.secure = program->secure;
    search_adopt(&s, main->object.interp);
    s.origin = origin_of(&s, main->path);
    start(&s);
    s.elfclass = main->object.elfclass;
    s.machine = main->object.machine;
    s.data = byte_order(&main->object);
    if (scope)
        search_list(&s, &s.main_rpath, s.l->musl && main->object.runpath ? main->object.runpath : main->object.rpath, ":",
                    s.origin, true);
    search_environment(&s, env);
    for (size_t i = first; i < ret->n; i++)
        for (size_t k = 0; k < ret->v[i].names.n && !ret->v[i].path; k++) {
            struct hit h;

            search_find(&s, ret->v[i].names.v[k], ret->v[i].object, &h);
            if (h.fd >= 0)
                close(h.fd);
            if (!h.corrupt)
                ret->v[i].path = h.path;
            else
                free(h.path);
            free(h.corrupt);
        }
    search_release(&s);
    for (size_t i = 0; i < c2.dirs.n; i++)
        free(c2.dirs.v[i].path);
    free(c2.dirs.v);
    free(here);
}
