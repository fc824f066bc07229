/* The files of a pin in a folder of their own, for a machine that has not got them. What belongs to each system (files in the
 * loader's default directories, glibc, the GPU's driver) stays out.
 *
 *   DIR/run           starts the program with the bundle's libraries and the pinned variables
 *   DIR/environment   what run sets, for `here=DIR; . DIR/environment`
 *   DIR/tree/...      program, modules and what lies below their common folder, at their places there ($ORIGIN goes on to work)
 *   DIR/lib/SONAME    every other library, and a link to each that is in tree
 *   DIR/env.pin       the pin, as a record of where all this comes from
 *   DIR/files.txt     "DIGEST SIZE FILE-IN-DIR PATH-AT-CAPTURE" a line
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pin/pin_priv.h"

struct item {
    const struct pin_object *o;
    char *place;              /* in the bundle, "tree/bin/fuse" */
};

struct bundle {
    const struct pin *p;
    const char *dir;          /* where it grows */
    char *top;                /* the folder that tree stands for */
    struct loader l;
    struct { struct item *v; size_t n, cap; } items;
    struct pin_bundle *ret;
};

/* ---- what goes in ---- */

static bool of_libc(const char *soname)
{
    static const char *const names[] = { "libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "libutil.so.",
                                         "libresolv.so.", "libmvec.so.", "libanl.so.", "libnss_", "ld-linux", "ld64.so" };

    for (size_t i = 0; i < COUNT(names); i++)
        if (str_starts(path_base(soname), names[i]))
            return true;
    return false;
}

/* The part of `path` that it shares with `top` as whole folders. */
static void narrow(char *top, const char *path)
{
    size_t i = 0, last = 0;

    for (; top[i] && top[i] == path[i]; i++)
        if (top[i] == '/')
            last = i;
    if (!top[i] && path[i] == '/')
        last = i;
    top[last] = '\0';
}

static char *top_of(const struct pin *p)
{
    char *first = path_absolute(p->objects.v[0].path), *top = path_dir(first);

    for (size_t i = 1; i < p->objects.n; i++)
        if (p->objects.v[i].role == PIN_MODULE && p->objects.v[i].path) {
            char *whole = path_absolute(p->objects.v[i].path), *dir = path_dir(whole);

            narrow(top, dir);
            free(whole);
            free(dir);
        }
    free(first);
    return top;
}

static int refuse(const struct bundle *b, struct err *err)
{
    const struct pin *p = b->p;
    char *asked = p->loader.path ? realpath(p->loader.path, NULL) : NULL, *own = b->l.path ? realpath(b->l.path, NULL) : NULL;
    int rc = 0;

    if (asked && own && !str_eq(asked, own))
        rc = err_set(err, CODE_USAGE, "the program's loader '%s' is not the system's: such a program belongs to its prefix as a whole",
                     p->loader.path);
    for (size_t i = 0; i < p->objects.n && rc == 0; i++) {
        const struct pin_object *o = &p->objects.v[i];

        if (o->role == PIN_MODULE && (strstr(o->path, "/site-packages/") || strstr(o->path, "/dist-packages/")))
            rc = err_set(err, CODE_USAGE, "'%s' belongs to a Python package, which is more than its libraries: recon-pin export "
                                          "--format requirements (or conda-explicit) makes the prefix again", o->path);
    }
    free(asked);
    free(own);
    return rc;
}

static bool left_out(const struct bundle *b, const struct pin_object *o)
{
    const char *name = o->soname ? o->soname : o->path, *why = NULL;

    if (o->role != PIN_LIBRARY)
        return false;
    if (o->soname && *o->soname == '/' && str_eq(o->soname, o->path))
        why = "interpreter";
    else if (driver_library(name))
        why = "driver";
    else if (!o->path)
        why = "not found at capture";
    else if (of_libc(name) || o->why == WHY_LOADED || in_default_dirs(&b->l, o->path))
        why = "system";
    if (why)
        strv_addf(&b->ret->left, "%s (%s)", o->soname && *o->soname != '/' ? o->soname : name, why);
    return why != NULL;
}

static int add_item(struct bundle *b, const struct pin_object *o, struct err *err)
{
    char *whole = path_absolute(o->path), *place;
    size_t n = strlen(b->top);

    if (strncmp(whole, b->top, n) == 0 && whole[n] == '/')
        place = xasprintf("tree%s", whole + n);
    else
        place = xasprintf("lib/%s", path_base(o->soname ? o->soname : o->path));
    free(whole);
    for (size_t i = 0; i < b->items.n; i++)
        if (str_eq(b->items.v[i].place, place)) {
            bool same = str_eq(b->items.v[i].o->digest, o->digest);
            int rc = same ? 0 : err_set(err, CODE_DATA, "'%s' and '%s' would both be '%s' in the bundle", b->items.v[i].o->path,
                                        o->path, place);

            free(place);
            return rc;
        }
    *VEC_ADD(&b->items) = (struct item){ o, place };
    return 0;
}

/* ---- writing ---- */

static int copy_bytes(int from, int to, const char *name, struct err *err)
{
    enum { BLOCK = 1 << 20 };
    char *block = NULL;
    ssize_t n;

    while ((n = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
        block = xmalloc(BLOCK);
        while ((n = read(from, block, BLOCK)) > 0)
            for (ssize_t done = 0, k; done < n; done += k)
                if ((k = write(to, block + done, (size_t)(n - done))) < 0) {
                    free(block);
                    return err_sys(err, CODE_IO, "cannot write the copy of '%s'", name);
                }
        free(block);
    }
    return n < 0 ? err_sys(err, CODE_IO, "cannot copy '%s'", name) : 0;
}

static int copy_item(const struct bundle *b, const struct item *it, struct err *err)
{
    char *to = path_join(b->dir, it->place), *dir = path_dir(to);
    int in = open(it->o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), out = -1, rc = 0;
    struct stat st;

    if (in < 0 || fstat(in, &st))
        rc = err_sys(err, CODE_IO, "cannot open '%s'", it->o->path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, CODE_IO, "'%s' is not a regular file", it->o->path);
    else
        rc = dir_make(dir, 0777, err);
    if (rc == 0 && (out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777)) < 0)
        rc = err_sys(err, CODE_CREATE, "cannot create '%s'", to);
    if (rc == 0)
        rc = copy_bytes(in, out, it->o->path, err);
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) && rc == 0)
        rc = err_sys(err, CODE_IO, "cannot write '%s'", to);
    free(to);
    free(dir);
    return rc;
}

/* What was copied is what was pinned. */
static int prove(struct bundle *b, struct err *err)
{
    struct digest_job *jobs = xcalloc(b->items.n, sizeof(*jobs));
    int rc = 0;

    for (size_t i = 0; i < b->items.n; i++)
        jobs[i].path = path_join(b->dir, b->items.v[i].place);
    digests_of(jobs, b->items.n, NULL);
    for (size_t i = 0; i < b->items.n; i++) {
        const struct pin_object *o = b->items.v[i].o;

        if (rc == 0 && jobs[i].err.code) {
            rc = -1;
            if (err)
                *err = jobs[i].err;
        } else if (rc == 0 && o->digest && !str_eq(o->digest, jobs[i].digest)) {
            rc = err_set(err, CODE_NODE, "'%s' has digest %s, the pin has %s: recon-pin verify tells what changed", o->path,
                         jobs[i].digest, o->digest);
        }
        b->ret->bytes += o->size == CONF_UNSET ? 0 : (uint64_t)o->size;
        free((char *)jobs[i].path);
    }
    free(jobs);
    return rc;
}

/* lib/SONAME for what lies in tree, so that one folder serves all. */
static int link_items(const struct bundle *b, struct err *err)
{
    char *lib = path_join(b->dir, "lib");
    int rc = dir_make(lib, 0777, err);

    for (size_t i = 0; i < b->items.n && rc == 0; i++) {
        const struct item *it = &b->items.v[i];
        char *to, *at;

        if (it->o->role != PIN_LIBRARY || !it->o->soname || !str_starts(it->place, "tree/"))
            continue;
        to = xasprintf("../%s", it->place);
        at = path_join(lib, path_base(it->o->soname));
        if (symlink(to, at) && errno != EEXIST)
            rc = err_sys(err, CODE_CREATE, "cannot create '%s'", at);
        free(to);
        free(at);
    }
    free(lib);
    return rc;
}

/* Values that name places of this machine would lead nowhere on another. */
static bool names_place(const char *value)
{
    return value && (*value == '/' || strstr(value, ":/"));
}

static void write_variables(struct bundle *b, struct str *t)
{
    str_add(t, "# sourced by run; here is the folder of the bundle\n");
    for (size_t i = 0; i < b->p->variables.n; i++) {
        const struct pin_variable *v = &b->p->variables.v[i];

        if (str_eq(v->name, "LD_LIBRARY_PATH") || str_eq(v->name, "LD_PRELOAD"))
            continue;
        if (names_place(v->value) || !pin_shell_line(v, t))
            strv_add(&b->ret->variables_left, v->name);
    }
    str_add(t, "export LD_LIBRARY_PATH=\"$here/lib\"\nunset LD_PRELOAD\n");
    for (size_t i = 0; i < b->items.n; i++)
        if (b->items.v[i].o->why == WHY_PRELOAD) {
            char *q = esc_shell(b->items.v[i].place);

            str_addf(t, "export LD_PRELOAD=\"${LD_PRELOAD:+$LD_PRELOAD:}$here/\"%s\n", q);
            free(q);
        }
}

static int write_texts(struct bundle *b, struct err *err)
{
    static const char run[] = "#!/bin/sh\n# made by recon-pin bundle: the pinned program with the libraries beside this file\n"
                              "here=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 1\n. \"$here/environment\"\n"
                              "exec \"$here/\"%s \"$@\"\n";
    const struct { const char *name; mode_t mode; } files[] = { { "run", 0777 }, { "environment", 0666 }, { "files.txt", 0666 } };
    char *program = esc_shell(b->items.v[0].place);
    struct str t[COUNT(files)] = { { 0 } };
    int rc = 0;

    str_addf(&t[0], run, program);
    write_variables(b, &t[1]);
    for (size_t i = 0; i < b->items.n; i++) {
        char *place = esc_terminal(b->items.v[i].place), *path = esc_terminal(b->items.v[i].o->path);

        str_addf(&t[2], "%s %lld %s %s\n", b->items.v[i].o->digest ? b->items.v[i].o->digest : "-",
                 (long long)b->items.v[i].o->size, place, path);
        free(place);
        free(path);
    }
    for (size_t i = 0; i < COUNT(files); i++) {
        char *path = path_join(b->dir, files[i].name);

        if (rc == 0)
            rc = file_write(path, t[i].s, t[i].len, files[i].mode, err);
        free(path);
        str_release(&t[i]);
    }
    free(program);
    return rc;
}

static int write_pin(const struct bundle *b, struct err *err)
{
    char *path = path_join(b->dir, "env.pin");
    struct str t = { 0 };
    int rc;

    conf_write(pin_rows, b->p, &t);
    rc = file_write(path, t.s, t.len, 0666, err);
    str_release(&t);
    free(path);
    return rc;
}

static int fill(struct bundle *b, struct err *err)
{
    int rc = refuse(b, err);

    for (size_t i = 0; i < b->p->objects.n && rc == 0; i++)
        if (!left_out(b, &b->p->objects.v[i]))
            rc = add_item(b, &b->p->objects.v[i], err);
    for (size_t i = 0; i < b->items.n && rc == 0; i++)
        rc = copy_item(b, &b->items.v[i], err);
    if (rc == 0)
        rc = prove(b, err) || link_items(b, err) || write_texts(b, err) || write_pin(b, err) ? -1 : 0;
    b->ret->files = b->items.n;
    return rc;
}

/* All on the disk, then its name: a folder of that name is whole. */
static int publish(const char *tmp, const char *dir, struct err *err)
{
    int fd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

    if (fd < 0 || syncfs(fd))
        rc = err_sys(err, CODE_IO, "cannot write '%s'", tmp);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && renameat2(AT_FDCWD, tmp, AT_FDCWD, dir, RENAME_NOREPLACE) && (errno != EINVAL || rename(tmp, dir)))
        rc = err_sys(err, CODE_CREATE, "cannot create '%s'", dir);
    return rc;
}

int pin_bundle(const struct pin *p, const char *dir, struct pin_bundle *ret, struct err *err)
{
    char *tmp = xasprintf("%s.%ld.tmp", dir, (long)getpid());
    struct bundle b = { .p = p, .dir = tmp, .ret = ret };
    struct stat st;
    int rc;

    *ret = (struct pin_bundle){ 0 };
    loader_of(NULL, "", &b.l);
    b.top = top_of(p);
    if (lstat(dir, &st) == 0)
        rc = err_set(err, CODE_CREATE, "'%s' is there already, and nothing is overwritten", dir);
    else if (mkdir(tmp, 0777))
        rc = err_sys(err, CODE_CREATE, "cannot create '%s'", tmp);
    else if ((rc = fill(&b, err) || publish(tmp, dir, err) ? -1 : 0))
        dir_remove(tmp);
    for (size_t i = 0; i < b.items.n; i++)
        free(b.items.v[i].place);
    free(b.items.v);
    loader_release(&b.l);
    free(b.top);
    free(tmp);
    return rc;
}

void pin_bundle_release(struct pin_bundle *b)
{
    strv_release(&b->left);
    strv_release(&b->variables_left);
}
