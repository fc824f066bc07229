/* A published result: read and judged. */
#include "config.h"
#include "record/record_priv.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

char *result_dir(const struct run *r, uint64_t dataset)
{
    return run_file(r, "out/%llu/%llu", (unsigned long long)(dataset / 1000), (unsigned long long)dataset);
}

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

int result_read(const char *dir, uint64_t dataset, struct result *ret, struct err *err)
{
    char *path = path_join(dir, RESULT_FILE);
    struct result x = { 0 };
    struct str text = { 0 };
    json_t *o = NULL;
    int rc = file_read(path, RECORD_FILE_MAX, &text, err);

    if (rc == 0) {
        o = json_loadb(text.s ? text.s : "", text.len, JSON_REJECT_DUPLICATES, NULL);
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
    return rc;
}

int run_result(const struct run *r, uint64_t dataset, struct result *ret, struct err *err)
{
    char *dir = result_dir(r, dataset);
    int rc = result_read(dir, dataset, ret, err);

    free(dir);
    return rc;
}

/* ---- judged ---- */

static int file_good(const char *dir, const struct result_file *f, bool deep, struct err *err)
{
    char *path = path_join(dir, f->path), digest[DIGEST_SIZE];
    struct stat st;
    int rc = 0;

    if (lstat(path, &st))
        rc = err_sys(err, CODE_IO, "'%s'", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, CODE_IO, "'%s' is no regular file", path);
    else if ((uint64_t)st.st_size != f->bytes)
        rc = err_set(err, CODE_IO, "'%s' has %lld bytes, %llu were published", path, (long long)st.st_size,
                     (unsigned long long)f->bytes);
    else if (deep && digest_file(path, digest, err))
        rc = -1;
    else if (deep && !str_eq(digest, f->digest))
        rc = err_set(err, CODE_IO, "'%s' has digest %s, published was %s", path, digest, f->digest);
    free(path);
    return rc;
}

enum result_state result_judge(const char *dir, uint64_t dataset, const char *pin, const char *pipeline, bool deep,
                               struct err *err)
{
    struct result x = { 0 };
    enum result_state state = RESULT_GOOD;
    struct stat st;

    if (lstat(dir, &st))
        return errno == ENOENT ? RESULT_NONE : (err_sys(err, CODE_IO, "'%s'", dir), RESULT_DAMAGED);
    if (result_read(dir, dataset, &x, err))
        return RESULT_DAMAGED;
    for (size_t i = 0; i < x.files.n && state == RESULT_GOOD; i++)
        if (file_good(dir, &x.files.v[i], deep, err))
            state = RESULT_DAMAGED;
    if (state == RESULT_GOOD && ((pin && !str_eq(pin, x.pin)) || (pipeline && !str_eq(pipeline, x.pipeline))))
        state = RESULT_OTHER;
    result_release(&x);
    return state;
}

enum result_state run_judge(const struct run *r, uint64_t dataset, const char *pin, const char *pipeline, bool deep,
                            struct err *err)
{
    char *dir = result_dir(r, dataset);
    enum result_state state = result_judge(dir, dataset, pin, pipeline, deep, err);

    free(dir);
    return state;
}

bool run_done(const struct run *r, uint64_t dataset, const char *pin, const char *pipeline, bool deep)
{
    return run_judge(r, dataset, pin, pipeline, deep, NULL) == RESULT_GOOD;
}

void result_files_release(struct result *x)
{
    for (size_t i = 0; i < x->files.n; i++)
        free(x->files.v[i].path);
    free(x->files.v);
    memset(&x->files, 0, sizeof(x->files));
}

void result_release(struct result *x)
{
    result_files_release(x);
    free(x->pin);
    free(x->pipeline);
    *x = (struct result){ 0 };
}
