/* A result: built in a private folder, digested, published by one rename. */
#include "config.h"
#include "record/record_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char *run_work_dir(struct run *r, uint64_t dataset, uint32_t sub, uint32_t slot, uint32_t attempt, struct err *err)
{
    char *block = run_file(r, "out/%llu", (unsigned long long)(dataset / 1000));
    char *work = xasprintf("%s/.%llu.%u.%u.%u", block, (unsigned long long)dataset, sub, slot, attempt);
    int rc = dir_make(block, 0777, err);

    if (rc == 0 && dir_remove(work))
        rc = err_sys(err, CODE_CREATE, "cannot remove what is left of '%s'", work);
    if (rc == 0 && mkdir(work, 0777))
        rc = err_sys(err, CODE_CREATE, "cannot create '%s'", work);
    if (rc) {
        free(work);
        work = NULL;
    }
    free(block);
    return work;
}

/* ---- what is in it ---- */

static int sync_path(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc = 0;

    if (fd < 0)
        return err_sys(err, CODE_IO, "cannot open '%s'", path);
    if (fsync(fd) && errno != EINVAL && errno != EROFS)
        rc = err_sys(err, CODE_IO, "cannot write '%s'", path);
    close(fd);
    return rc;
}

static int add_file(struct result *x, const char *path, const char *rel, const struct stat *st, struct err *err)
{
    struct result_file *f;

    if (str_eq(rel, RESULT_FILE))
        return err_set(err, CODE_DATA, "'%s' is the name of recon's own file in a result: write another", path);
    f = VEC_ADD(&x->files);
    f->path = xstrdup(rel);
    f->bytes = (uint64_t)st->st_size;
    return sync_path(path, err) || digest_file(path, f->digest, err) ? -1 : 0;
}

/* Regular files below dir; links and special files stay as they are and are not judged. */
static int walk(struct result *x, const char *dir, const char *rel, struct err *err)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    struct stat st;
    int rc = 0;

    if (!d)
        return err_sys(err, CODE_IO, "cannot read folder '%s'", dir);
    while (rc == 0 && (e = readdir(d))) {
        char *path, *below;

        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            continue;
        path = path_join(dir, e->d_name);
        below = *rel ? path_join(rel, e->d_name) : xstrdup(e->d_name);
        if (lstat(path, &st))
            rc = err_sys(err, CODE_IO, "cannot stat '%s'", path);
        else if (S_ISDIR(st.st_mode))
            rc = walk(x, path, below, err);
        else if (S_ISREG(st.st_mode))
            rc = add_file(x, path, below, &st, err);
        free(path);
        free(below);
    }
    closedir(d);
    return rc ? rc : sync_path(dir, err);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct result_file *)a)->path, ((const struct result_file *)b)->path);
}

static void result_text(const struct dataset *d, const struct result *x, struct str *ret)
{
    json_t *o = line_new("result"), *files = json_array();
    char now[32];

    clock_iso(now);
    put_text(o, "time", now);
    put_text(o, "recon", PACKAGE_VERSION);
    put_u64(o, "dataset", x->dataset);
    put_bytes(o, "name", d->name);
    put_text(o, "pin", x->pin);
    put_text(o, "pipeline", x->pipeline);
    put_u64(o, "sub", x->sub);
    put_u64(o, "slot", x->slot);
    put_u64(o, "attempt", x->attempt);
    for (size_t i = 0; i < x->files.n; i++) {
        json_t *f = json_object();

        put_bytes(f, "path", x->files.v[i].path);
        put_u64(f, "bytes", x->files.v[i].bytes);
        put_text(f, "digest", x->files.v[i].digest);
        json_array_append_new(files, f);
    }
    json_object_set_new(o, "files", files);
    line_end(o, ret);
}

static int write_about(const char *work, mode_t mode, const struct dataset *d, const struct result *x, struct err *err)
{
    char *path = path_join(work, RESULT_FILE);
    struct str text = { 0 };
    int rc;

    result_text(d, x, &text);
    rc = file_write(path, text.s, text.len, mode, err);
    str_release(&text);
    free(path);
    return rc;
}

/* ---- published ---- */

static void link_name(const struct run *r, const struct dataset *d, uint64_t dataset)
{
    size_t n = strlen(d->name);
    char *link, *to;

    if (!n || n > 255 || strchr(d->name, '/') || str_eq(d->name, ".") || str_eq(d->name, ".."))
        return;
    link = run_file(r, "out/by-name/%s", d->name);
    to = xasprintf("../%llu/%llu", (unsigned long long)(dataset / 1000), (unsigned long long)dataset);
    if (symlink(to, link)) /* a convenience: there already, or a file system without links */
        errno = 0;
    free(link);
    free(to);
}

/* Renames target to a hidden name beside it, ".I.old.PID.N". 1: there was nothing. *ret: the name, owned. */
static int set_aside(const char *target, uint64_t dataset, char **ret, struct err *err)
{
    char *block = path_dir(target), *aside = NULL;
    int rc = 0;

    for (unsigned i = 0;; i++) {
        free(aside);
        aside = xasprintf("%s/.%llu.old.%ld.%u", block, (unsigned long long)dataset, (long)getpid(), i);
        if (rename(target, aside) == 0)
            break;
        if (errno == ENOENT)
            rc = 1;
        else if (errno != ENOTEMPTY && errno != EEXIST)
            rc = err_sys(err, CODE_IO, "cannot rename '%s'", target);
        if (rc)
            break;
    }
    if (rc == 0) {
        *ret = aside;
        aside = NULL;
    }
    free(aside);
    free(block);
    return rc;
}

static bool in_the_way(int sys)
{
    return sys == ENOTEMPTY || sys == EEXIST || sys == ENOTDIR;
}

/* What stands at target is no whole result: aside with it. Another attempt may have put a whole one there in between: that
 * one goes back. Anything but a folder is not recon's and stays. */
static int clear_way(const char *target, uint64_t dataset, struct err *err)
{
    char *aside = NULL;
    struct stat st;
    int rc;

    if (lstat(target, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(err, CODE_IO, "'%s' is in the way of a result and is no folder; remove it", target);
    rc = set_aside(target, dataset, &aside, err);
    if (rc == 0 && (result_judge(aside, dataset, NULL, NULL, false, NULL) != RESULT_GOOD || rename(aside, target)))
        dir_remove(aside); /* what cannot be removed now is hidden, and goes with the next --resume */
    free(aside);
    return rc < 0 ? -1 : 0;
}

static int move(const char *work, const char *target, uint64_t dataset, bool *ret_taken, struct err *err)
{
    enum { TRIES = 100 };
    char *block = path_dir(target);
    int rc = 0;

    *ret_taken = false;
    for (int i = 0; rename(work, target); i++) {
        if (!in_the_way(errno) || i == TRIES) {
            rc = err_sys(err, CODE_IO, "cannot publish '%s' as '%s'", work, target);
            break;
        }
        if (result_judge(target, dataset, NULL, NULL, false, NULL) == RESULT_GOOD) {
            *ret_taken = true;
            dir_remove(work);
            break;
        }
        rc = clear_way(target, dataset, err);
        if (rc)
            break;
    }
    if (rc == 0 && !*ret_taken && sync_path(block, NULL))
        errno = 0; /* a file system that cannot sync folders has renamed all the same */
    free(block);
    return rc;
}

int run_publish(struct run *r, const char *work, const struct dataset *d, struct result *result, bool *ret_taken,
                struct err *err)
{
    char *target = result_dir(r, result->dataset), *text = path_join(work, RESULT_FILE);
    bool taken = false, written = false;
    struct stat st;
    int rc = -1;

    result_files_release(result);
    if (stat(work, &st)) {
        err_sys(err, CODE_IO, "no folder to publish '%s'", work);
        goto out;
    }
    if (walk(result, work, "", err))
        goto out;
    if (result->files.n)
        qsort(result->files.v, result->files.n, sizeof(*result->files.v), by_path);
    if (write_about(work, st.st_mode & 0666, d, result, err))
        goto out;
    written = true;
    rc = sync_path(work, err) || move(work, target, result->dataset, &taken, err) ? -1 : 0;
    if (rc == 0) {
        link_name(r, d, result->dataset);
        *ret_taken = taken;
    }
out:
    if (rc && written)
        unlink(text); /* so that a second try finds the folder as the program left it */
    free(target);
    free(text);
    return rc;
}

int run_unpublish(struct run *r, uint64_t dataset, struct err *err)
{
    char *target = result_dir(r, dataset), *aside = NULL;
    int rc = set_aside(target, dataset, &aside, err);

    if (rc == 0 && dir_remove(aside))
        rc = err_sys(err, CODE_IO, "cannot remove '%s'", aside);
    free(target);
    free(aside);
    return rc < 0 ? -1 : 0;
}
