/* The run directory: made, opened, its datasets, its submissions' maps, its events files. */
#include "config.h"
#include "record/record_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = { "sub", "events", "out", "out/by-name", "logs" };

char *run_file(const struct run *r, const char *fmt, ...)
{
    struct str t = { 0 };
    char *rest = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&rest, fmt, ap) < 0)
        rest = xstrdup("");
    va_end(ap);
    str_addf(&t, "%s/%s", r->path, rest);
    free(rest);
    return str_take(&t);
}

static char *absolute(const char *path)
{
    char *cwd = *path == '/' ? NULL : getcwd(NULL, 0), *whole;
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    whole = xasprintf("%s%s%.*s", cwd ? cwd : "", cwd ? "/" : "", (int)n, path);
    free(cwd);
    return whole;
}

/* ---- made ---- */

static int write_datasets(const struct run *r, const struct datasets *l, struct err *err)
{
    char *lines = run_file(r, "datasets.jsonl"), *index = run_file(r, "datasets.idx");
    struct file_out to = { 0 }, at = { 0 };
    struct str line = { 0 };
    uint64_t offset = 0;
    int rc = -1;

    if (file_open_out(&to, lines, r->mode, err) || file_open_out(&at, index, r->mode, err))
        goto out;
    for (size_t i = 0; i <= l->n; i++) {
        uint64_t le = htole64(offset);

        fwrite(&le, sizeof(le), 1, at.f); /* failures stick to the streams and show in file_commit */
        if (i == l->n)
            break;
        str_clear(&line);
        dataset_line(&l->v[i], &line);
        fwrite(line.s, 1, line.len, to.f);
        offset += line.len;
    }
    rc = file_commit(&to, err) || file_commit(&at, err) ? -1 : 0; /* the index last: it makes a run of a folder */
out:
    file_abort(&to);
    file_abort(&at);
    str_release(&line);
    free(lines);
    free(index);
    return rc;
}

static int make_root(const char *path, struct err *err)
{
    char *parent = path_dir(path);
    int rc = dir_make(parent, 0777, err);

    if (rc == 0 && mkdir(path, 0777))
        rc = errno == EEXIST ? err_set(err, CODE_CREATE, "run directory '%s' exists already; name another", path)
                             : err_sys(err, CODE_CREATE, "cannot create run directory '%s'", path);
    free(parent);
    return rc;
}

struct run *run_create(const char *path, const struct datasets *l, struct err *err)
{
    struct run r = { .path = absolute(path) }, *opened = NULL;
    struct stat st;
    int rc;

    if (make_root(r.path, err)) {
        free(r.path);
        return NULL;
    }
    r.mode = stat(r.path, &st) ? 0600 : st.st_mode & 0666;
    rc = l->n ? 0 : err_set(err, CODE_USAGE, "no datasets for run directory '%s'", path);
    for (size_t i = 0; i < COUNT(folders) && rc == 0; i++) {
        char *folder = run_file(&r, "%s", folders[i]);

        rc = dir_make(folder, 0777, err);
        free(folder);
    }
    if (rc == 0 && columns_write(&r, l, err) == 0 && write_datasets(&r, l, err) == 0)
        opened = run_open(r.path, err);
    if (!opened)
        dir_remove(r.path);
    free(r.path);
    return opened;
}

/* ---- opened ---- */

static int open_part(const struct run *r, const char *name, struct stat *st, struct err *err)
{
    char *path = run_file(r, "%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        err_set(err, CODE_USAGE, "'%s' is no run directory: it lacks '%s'", r->path, name);
    else if (fd < 0)
        err_sys(err, errno == EACCES ? CODE_PERM : CODE_IO, "cannot open '%s'", path);
    else if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
        err_set(err, CODE_USAGE, "'%s' is no run directory: '%s' is no regular file", r->path, name);
        close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

static int offset_at(const struct run *r, uint64_t i, uint64_t ret[2], struct err *err)
{
    uint64_t le[2];

    if (pread(r->index, le, sizeof(le), (off_t)(i * 8)) != (ssize_t)sizeof(le))
        return err_set(err, CODE_IO, "'%s/datasets.idx' is damaged: no entry %llu", r->path, (unsigned long long)i);
    ret[0] = le64toh(le[0]);
    ret[1] = le64toh(le[1]);
    return 0;
}

struct run *run_open(const char *path, struct err *err)
{
    struct run *r = xcalloc(1, sizeof(*r));
    struct stat st, lines, index;
    uint64_t last[2] = { 0 };

    r->lines = r->index = -1;
    r->path = absolute(path);
    if (stat(r->path, &st)) {
        err_sys(err, errno == EACCES ? CODE_PERM : CODE_USAGE, "no run directory '%s'", path);
        goto bad;
    }
    if (!S_ISDIR(st.st_mode)) {
        err_set(err, CODE_USAGE, "'%s' is no run directory: it is no folder", path);
        goto bad;
    }
    r->mode = st.st_mode & 0666;
    if ((r->lines = open_part(r, "datasets.jsonl", &lines, err)) < 0 ||
        (r->index = open_part(r, "datasets.idx", &index, err)) < 0)
        goto bad;
    if (index.st_size < 16 || index.st_size % 8) {
        err_set(err, CODE_IO, "'%s/datasets.idx' is damaged: %lld bytes", path, (long long)index.st_size);
        goto bad;
    }
    r->n = (uint64_t)index.st_size / 8 - 1;
    if (offset_at(r, r->n - 1, last, err))
        goto bad;
    if (last[1] != (uint64_t)lines.st_size) {
        err_set(err, CODE_IO, "'%s/datasets.jsonl' is damaged: %lld bytes, its index says %llu", path,
                (long long)lines.st_size, (unsigned long long)last[1]);
        goto bad;
    }
    return r;
bad:
    run_free(r);
    return NULL;
}

void run_free(struct run *r)
{
    if (!r)
        return;
    if (r->lines >= 0)
        close(r->lines);
    if (r->index >= 0)
        close(r->index);
    free(r->path);
    free(r);
}

const char *run_path(const struct run *r)
{
    return r->path;
}

uint64_t run_count(const struct run *r)
{
    return r->n;
}

int run_dataset(const struct run *r, uint64_t i, struct dataset *ret, struct err *err)
{
    enum { LINE_MAX_BYTES = 64 << 20 };
    struct dataset d = { 0 };
    json_t *o = NULL;
    uint64_t at[2] = { 0 };
    size_t n;
    char *s;
    int rc = -1;

    if (i >= r->n)
        return err_set(err, CODE_USAGE, "dataset %llu is outside: '%s' has %llu", (unsigned long long)i, r->path,
                       (unsigned long long)r->n);
    if (offset_at(r, i, at, err))
        return -1;
    n = at[1] > at[0] && at[1] - at[0] <= LINE_MAX_BYTES ? (size_t)(at[1] - at[0]) : 0;
    s = xmalloc(n + 1);
    if (n && pread(r->lines, s, n, (off_t)at[0]) == (ssize_t)n && s[n - 1] == '\n')
        o = json_loadb(s, n, JSON_REJECT_DUPLICATES, NULL);
    if (o && json_is_object(o) && dataset_from(o, &d, NULL) == 0 && d.name) {
        *ret = d;
        rc = 0;
    } else {
        dataset_release(&d);
        err_set(err, CODE_IO, "'%s/datasets.jsonl' or its index is damaged at dataset %llu", r->path, (unsigned long long)i);
    }
    json_decref(o);
    free(s);
    return rc;
}

/* ---- events files ---- */

struct events *run_events(struct run *r, uint32_t sub, uint32_t slot, uint32_t attempt, uint32_t *ret_attempt,
                          struct err *err)
{
    char *dir = run_file(r, "events/%u/%u", sub, slot / 1000);
    struct events *e = NULL;
    struct err why = { 0 };

    if (dir_make(dir, 0777, err) == 0) {
        for (;; attempt++) {
            char *path = xasprintf("%s/%u.%u.jsonl", dir, slot, attempt);

            e = events_create(path, &why);
            free(path);
            if (e || why.sys != EEXIST || attempt == UINT32_MAX)
                break;
        }
        if (e)
            *ret_attempt = attempt;
        else if (err)
            *err = why;
    }
    free(dir);
    return e;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static int number_of(const char *s, const char *suffix, uint32_t *ret)
{
    size_t n = strspn(s, "0123456789");
    char *digits;
    uint64_t v;
    int rc;

    if (!n || (s[0] == '0' && n > 1) || !str_eq(s + n, suffix))
        return -1;
    digits = xstrndup(s, n);
    rc = str_to_u64(digits, &v);
    free(digits);
    if (rc || v > UINT32_MAX)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

int run_numbers(const char *dir, uint32_t **ret, size_t *ret_n, struct err *err)
{
    struct {
        uint32_t *v;
        size_t n, cap;
    } l = { 0 };
    DIR *d = opendir(dir);
    struct dirent *e;
    uint32_t v;

    if (!d && errno != ENOENT)
        return err_sys(err, CODE_IO, "cannot read folder '%s'", dir);
    while (d && (e = readdir(d)))
        if (number_of(e->d_name, "", &v) == 0)
            *VEC_ADD(&l) = v;
    if (d)
        closedir(d);
    if (l.n)
        qsort(l.v, l.n, sizeof(*l.v), by_number);
    *ret = l.v;
    *ret_n = l.n;
    return 0;
}

struct place {
    uint32_t slot, attempt;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return x->slot != y->slot ? (x->slot < y->slot ? -1 : 1) : x->attempt < y->attempt ? -1 : x->attempt > y->attempt;
}

static int each_file(const char *dir, uint32_t sub, run_event_f *call, void *arg, struct err *err)
{
    struct {
        struct place *v;
        size_t n, cap;
    } l = { 0 };
    DIR *d = opendir(dir);
    struct dirent *e;
    int rc = 0;

    if (!d)
        return err_sys(err, CODE_IO, "cannot read folder '%s'", dir);
    while ((e = readdir(d))) {
        char *slot = xstrndup(e->d_name, strcspn(e->d_name, "."));
        struct place p;

        if (number_of(slot, "", &p.slot) == 0 && e->d_name[strlen(slot)] == '.' &&
            number_of(e->d_name + strlen(slot) + 1, ".jsonl", &p.attempt) == 0)
            *VEC_ADD(&l) = p;
        free(slot);
    }
    closedir(d);
    if (l.n)
        qsort(l.v, l.n, sizeof(*l.v), by_place);
    for (size_t i = 0; i < l.n && rc == 0; i++) {
        char *path = xasprintf("%s/%u.%u.jsonl", dir, l.v[i].slot, l.v[i].attempt);

        rc = call(arg, sub, l.v[i].slot, l.v[i].attempt, path, err);
        free(path);
    }
    free(l.v);
    return rc ? -1 : 0;
}

int run_each_events(const struct run *r, run_event_f *call, void *arg, struct err *err)
{
    char *root = run_file(r, "events");
    uint32_t *subs = NULL;
    size_t n = 0;
    int rc = run_numbers(root, &subs, &n, err);

    for (size_t i = 0; i < n && rc == 0; i++) {
        char *sub = xasprintf("%s/%u", root, subs[i]);
        uint32_t *blocks = NULL;
        size_t n_blocks = 0;

        rc = run_numbers(sub, &blocks, &n_blocks, err);
        for (size_t k = 0; k < n_blocks && rc == 0; k++) {
            char *dir = xasprintf("%s/%u", sub, blocks[k]);

            rc = each_file(dir, subs[i], call, arg, err);
            free(dir);
        }
        free(blocks);
        free(sub);
    }
    free(subs);
    free(root);
    return rc;
}
