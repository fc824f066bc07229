/* The list as the user wrote it. */
#include "config.h"
#include "record/record_priv.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

struct list {
    const char *name, *dir; /* the list's own name, the folder that its relative paths mean */
    struct strv heads;      /* of a .tsv */
    struct names names;
    struct datasets out;
};

typedef int list_line_f(struct list *l, const char *s, size_t n, struct err *err);

void datasets_release(struct datasets *l)
{
    for (size_t i = 0; i < l->n; i++)
        dataset_release(&l->v[i]);
    free(l->v);
    *l = (struct datasets){ 0 };
}

/* ---- names ---- */

/* The last part of the path that says something; owned. */
static char *name_of_path(const char *path)
{
    size_t n = strlen(path), start;
    char *name, *whole;

    while (n > 1 && path[n - 1] == '/')
        n--;
    for (start = n; start > 0 && path[start - 1] != '/'; start--)
        ;
    name = xstrndup(path + start, n - start);
    if (*name && !str_eq(name, ".") && !str_eq(name, ".."))
        return name;
    free(name);
    whole = path_absolute(path);
    name = xstrdup(*path_base(whole) ? path_base(whole) : "dataset");
    free(whole);
    return name;
}

static char *unique_name(struct names *l, char *name)
{
    struct names_slot *first;

    names_room(l);
    first = names_find(l, name);
    if (!first->name) {
        names_put(l, first, name);
        return name;
    }
    for (;;) { /* first->next only grows: a list of equal names costs one step each */
        char *copy = xasprintf("%s-%u", name, first->next++);
        struct names_slot *at = names_find(l, copy);

        if (!at->name) {
            names_put(l, at, copy);
            free(name);
            return copy;
        }
        free(copy);
    }
}

static int list_add(struct list *l, struct dataset *d, struct err *err)
{
    const char *rest = d->path;
    char *whole;

    if (l->out.n == UINT32_MAX) {
        dataset_release(d);
        return err_set(err, CODE_USAGE, "more than %u datasets", UINT32_MAX);
    }
    while (str_starts(rest, "./") && rest[2] && rest[2] != '/')
        rest += 2;
    whole = path_join(l->dir, rest);
    free(d->path);
    d->path = whole;
    d->name = unique_name(&l->names, d->name ? d->name : name_of_path(whole));
    *VEC_ADD(&l->out) = *d;
    return 0;
}

/* ---- the three forms, a line at a time ---- */

static int line_plain(struct list *l, const char *s, size_t n, struct err *err)
{
    struct dataset d = { .path = xstrndup(s, n) };

    return list_add(l, &d, err);
}

static int line_json(struct list *l, const char *s, size_t n, struct err *err)
{
    json_error_t why;
    json_t *o = json_loadb(s, n, JSON_REJECT_DUPLICATES, &why);
    struct dataset d;
    int rc = -1;

    if (!o)
        err_set(err, CODE_USAGE, "no JSON: %s", why.text);
    else if (!json_is_object(o))
        err_set(err, CODE_USAGE, "no JSON object, {\"path\": ...} is wanted");
    else if (dataset_from(o, &d, err) == 0)
        rc = list_add(l, &d, err);
    json_decref(o);
    return rc;
}

static int tsv_heads(struct list *l, const char *s, size_t n, struct err *err)
{
    char *line = xstrndup(s, n);
    int rc = 0;

    strv_split(&l->heads, line, "\t");
    free(line);
    for (size_t i = 0; i < l->heads.n && rc == 0; i++) {
        const char *h = l->heads.v[i];

        if (!*h || !utf8_valid(h, strlen(h)))
            rc = err_set(err, CODE_USAGE, "head of column %zu is empty or no UTF-8", i + 1);
        for (size_t k = 0; k < i && rc == 0; k++)
            if (str_eq(l->heads.v[k], h))
                rc = err_set(err, CODE_USAGE, "column '%s' stands twice", h);
    }
    if (rc == 0 && !strv_has(&l->heads, "path") && !strv_has(&l->heads, "path_b64"))
        rc = err_set(err, CODE_USAGE, "the head line has no column 'path' (columns are separated by tabs)");
    return rc;
}

static int tsv_cell(struct dataset *d, const char *head, char *cell, struct err *err)
{
    bool b64 = str_ends(head, "_b64");
    char *text = b64 ? base64_decode(cell) : cell;

    if (b64)
        free(cell);
    if (!text)
        return err_set(err, CODE_USAGE, "'%s' is no base64 of a text without NUL", head);
    if (str_starts(head, "name") && strlen(head) == (b64 ? 8 : 4) && !*text) { /* empty: from the path */
        free(text);
        return 0;
    }
    return dataset_put(d, xstrndup(head, strlen(head) - (b64 ? 4 : 0)), text, err);
}

static int line_tsv(struct list *l, const char *s, size_t n, struct err *err)
{
    struct dataset d = { 0 };
    const char *end = s + n;
    size_t cells = 1;
    int rc = 0;

    if (!l->heads.n)
        return tsv_heads(l, s, n, err);
    for (const char *p = s; p < end && (p = memchr(p, '\t', (size_t)(end - p))); p++)
        cells++;
    if (cells != l->heads.n)
        return err_set(err, CODE_USAGE, "%zu columns, the head line has %zu", cells, l->heads.n);
    for (size_t i = 0; i < cells && rc == 0; i++) {
        const char *tab = memchr(s, '\t', (size_t)(end - s));
        size_t len = (size_t)((tab ? tab : end) - s);

        rc = tsv_cell(&d, l->heads.v[i], xstrndup(s, len), err);
        s += len + 1;
    }
    if (rc == 0)
        return list_add(l, &d, err);
    dataset_release(&d);
    return -1;
}

/* ---- the whole ---- */

/* A list that was written on Windows ends every line in CR LF; a single CR is part of a name. */
static bool all_crlf(const char *s, size_t n)
{
    const char *end = s + n, *newline;
    size_t lines = 0;

    for (; s < end; s = newline + 1, lines++) {
        newline = memchr(s, '\n', (size_t)(end - s));
        if (!newline)
            newline = end;
        if (newline == s || newline[-1] != '\r')
            return false;
    }
    return lines > 0;
}

static int each_line(struct list *l, const char *s, size_t n, list_line_f *call, struct err *err)
{
    const char *end = s + n, *newline;
    size_t cr = all_crlf(s, n) ? 1 : 0;

    for (size_t no = 1; s < end; s = newline + 1, no++) {
        struct err why = { 0 };
        size_t len;
        int rc = 0;

        newline = memchr(s, '\n', (size_t)(end - s));
        if (!newline)
            newline = end;
        len = (size_t)(newline - s) - cr;
        if (len && memchr(s, 0, len))
            rc = err_set(&why, CODE_USAGE, "a NUL byte");
        else if (len)
            rc = call(l, s, len, &why);
        if (rc) {
            if (err)
                *err = why;
            return err_prefix(err, "list of datasets '%s' line %zu", l->name, no);
        }
    }
    return 0;
}

int datasets_parse(const char *s, size_t n, const char *name, const char *dir, struct datasets *ret, struct err *err)
{
    struct list l = { .name = name, .dir = dir };
    bool tsv = str_ends(name, ".tsv");
    int rc;

    if (n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0) {
        s += 3;
        n -= 3;
    }
    rc = each_line(&l, s, n, tsv ? line_tsv : str_ends(name, ".jsonl") ? line_json : line_plain, err);
    if (rc == 0 && l.out.n == 0)
        rc = err_set(err, CODE_USAGE, "list of datasets '%s' is empty: %s", name,
                     tsv ? "a head line and one line a dataset are wanted" : "one dataset a line is wanted");
    if (rc == 0) {
        *ret = l.out;
        l.out = (struct datasets){ 0 };
    }
    datasets_release(&l.out);
    names_release(&l.names);
    strv_release(&l.heads);
    return rc;
}

int datasets_load(const char *list, struct datasets *ret, struct err *err)
{
    struct str text = { 0 };
    struct err why = { 0 };
    char *cwd = NULL, *dir = path_dir(list), *whole = NULL;
    int rc = file_read(list, RECORD_FILE_MAX, &text, &why);

    if (rc) { /* what is missing or no regular file is a mistake of the command line */
        err_set(err, why.sys && why.code != CODE_NOTFOUND ? why.code : CODE_USAGE, "list of datasets: %s", why.text);
        goto out;
    }
    if (*dir != '/' && !(cwd = getcwd(NULL, 0))) {
        rc = err_sys(err, CODE_IO, "cannot tell the working directory");
        goto out;
    }
    whole = *dir == '/' ? xstrdup(dir) : str_eq(dir, ".") ? xstrdup(cwd) : path_join(cwd, dir);
    rc = datasets_parse(text.s, text.len, list, whole, ret, err);
out:
    str_release(&text);
    free(whole);
    free(cwd);
    free(dir);
    return rc;
}
