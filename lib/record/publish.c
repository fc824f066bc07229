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

static const char about[] = "recon.json";

static char *result_dir(const struct run *r, uint64_t dataset)
{
    return run_file(r, "out/%llu/%llu", (unsigned long long)(dataset / 1000), (unsigned long long)dataset);
}

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

    if (str_eq(rel, about))
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
    char *path = path_join(work, about);
    struct str text = { 0 };
    int rc;

    result_text(d, x, &text);
    rc = file_write(path, text.s, text.len, mode, err);
    str_release(&text);
    free(path);
    return rc;
}

static void files_release(struct result *x)
{
    for (size_t i = 0; i < x->files.n; i++)
        free(x->files.v[i].path);
    free(x->files.v);
    memset(&x->files, 0, sizeof(x->files));
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

static int move(const char *work, const char *target, bool *ret_taken, struct err *err)
{
    char *block = path_dir(target);
    int rc = 0;

    *ret_taken = false;
    if (rename(work, target) == 0) {
        if (sync_path(block, NULL))
            errno = 0; /* a file system that cannot sync folders has renamed all the same */
    } else if (errno == ENOTEMPTY || errno == EEXIST) {
        *ret_taken = true;
        dir_remove(work);
    } else {
        rc = err_sys(err, CODE_IO, "cannot publish '%s' as '%s'", work, target);
    }
    free(block);
    return rc;
}

int run_publish(struct run *r, const char *work, const struct dataset *d, struct result *result, bool *ret_taken,
                struct err *err)
{
    char *target = result_dir(r, result->dataset), *text = path_join(work, about);
    bool taken = false, written = false;
    struct stat st;
    int rc = -1;

    files_release(result);
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
    rc = sync_path(work, err) || move(work, target, &taken, err) ? -1 : 0;
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
    char *target = result_dir(r, dataset), *block = path_dir(target), *aside = NULL;
    int rc = 0;

    for (unsigned i = 0;; i++) {
        free(aside);
        aside = xasprintf("%s/.%llu.old.%ld.%u", block, (unsigned long long)dataset, (long)getpid(), i);
        if (rename(target, aside) == 0) {
            if (dir_remove(aside))
                rc = err_sys(err, CODE_IO, "cannot remove '%s'", aside);
            break;
        }
        if (errno == ENOENT)
            break;
        if (errno != ENOTEMPTY && errno != EEXIST) {
            rc = err_sys(err, CODE_IO, "cannot rename '%s'", target);
            break;
        }
    }
    free(target);
    free(block);
    free(aside);
    return rc;
}

/* ---- read ---- */

static bool path_inside(const char *path)
{
    struct strv parts = { 0 };
    bool inside = *path && *path != '/';

    strv_split(&parts, path, "/");
    inside = inside && !strv_has(&parts, "..");
    strv_release(&parts);
    return inside;
}

static int result_files(const json_t *o, struct result *x)
{
    const json_t *files = json_object_get(o, "files");

    if (!json_is_array(files))
        return -1;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *f = json_array_get(files, i);
        const char *digest = get_text(f, "digest");
        struct result_file *to = VEC_ADD(&x->files);

        to->path = get_bytes(f, "path");
        to->bytes = get_u64(f, "bytes");
        if (!to->path || !path_inside(to->path) || !digest || strlen(digest) >= DIGEST_SIZE)
            return -1;
        strcpy(to->digest, digest);
    }
    return 0;
}

static int result_from(const json_t *o, uint64_t dataset, struct result *x)
{
    if (!json_is_object(o) || json_integer_value(json_object_get(o, "v")) != RECORD_VERSION ||
        !json_is_integer(json_object_get(o, "dataset")) || get_u64(o, "dataset") != dataset)
        return -1;
    x->dataset = dataset;
    x->pin = xstrdup(get_text(o, "pin"));
    x->pipeline = xstrdup(get_text(o, "pipeline"));
    x->sub = (uint32_t)get_u64(o, "sub");
    x->slot = (uint32_t)get_u64(o, "slot");
    x->attempt = (uint32_t)get_u64(o, "attempt");
    return result_files(o, x);
}

int run_result(const struct run *r, uint64_t dataset, struct result *ret, struct err *err)
{
    char *dir = result_dir(r, dataset), *path = path_join(dir, about);
    struct result x = { 0 };
    struct str text = { 0 };
    json_t *o = NULL;
    int rc = file_read(path, RECORD_FILE_MAX, &text, err);

    if (rc == 0) {
        o = json_loadb(text.s, text.len, JSON_REJECT_DUPLICATES, NULL);
        if (!o || result_from(o, dataset, &x)) {
            rc = err_set(err, CODE_IO, "'%s' is damaged or of another version", path);
            result_release(&x);
        } else {
            *ret = x;
        }
        json_decref(o);
    }
    str_release(&text);
    free(path);
    free(dir);
    return rc;
}

void result_release(struct result *x)
{
    files_release(x);
    free(x->pin);
    free(x->pipeline);
    *x = (struct result){ 0 };
}

bool run_done(const struct run *r, uint64_t dataset, const char *pin, const char *pipeline, bool deep)
{
    char *dir = result_dir(r, dataset);
    struct result x = { 0 };
    bool done = run_result(r, dataset, &x, NULL) == 0 && (!pin || str_eq(pin, x.pin)) &&
                (!pipeline || str_eq(pipeline, x.pipeline));

    for (size_t i = 0; done && i < x.files.n; i++) {
        const struct result_file *f = &x.files.v[i];
        char *path = path_join(dir, f->path), digest[DIGEST_SIZE];
        struct stat st;

        done = lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->bytes &&
               (!deep || (digest_file(path, digest, NULL) == 0 && str_eq(digest, f->digest)));
        free(path);
    }
    result_release(&x);
    free(dir);
    return done;
}
