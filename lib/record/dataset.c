#include "config.h"
#include "record/record_priv.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>

char *dataset_variable(const char *column)
{
    char *name = xasprintf("RECON_COLUMN_%s", column);

    for (char *p = name; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return name;
}

const char *dataset_column(const struct dataset *d, const char *key)
{
    for (size_t i = 0; i < d->n_columns; i++)
        if (str_eq(d->columns[i].key, key))
            return d->columns[i].value;
    return NULL;
}

void dataset_release(struct dataset *d)
{
    free(d->name);
    free(d->path);
    for (size_t i = 0; i < d->n_columns; i++) {
        free(d->columns[i].key);
        free(d->columns[i].value);
    }
    free(d->columns);
    *d = (struct dataset){ 0 };
}

const char *next_hole(const char *s, char **ret_name)
{
    const char *open, *end;

    for (open = strchr(s, '{'); open; open = strchr(open + 1, '{')) {
        end = open + 1 + strcspn(open + 1, "{}");
        if (*end == '}' && end > open + 1) {
            *ret_name = xstrndup(open + 1, (size_t)(end - open - 1));
            return open;
        }
    }
    return NULL;
}

/* ---- one line of datasets.jsonl, or of a list that a user wrote as .jsonl ---- */

static int bad_text(const char *what, const char *s, struct err *err)
{
    if (!*s)
        return err_set(err, CODE_USAGE, "'%s' is empty", what);
    if (strchr(s, '\n'))
        return err_set(err, CODE_USAGE, "'%s' holds a newline", what);
    return 0;
}

int dataset_put(struct dataset *d, char *key, char *value, struct err *err)
{
    char **at = str_eq(key, "name") ? &d->name : str_eq(key, "path") ? &d->path : NULL;
    int rc = at ? bad_text(key, value, err) : 0;

    if (rc == 0 && (at ? *at != NULL : dataset_column(d, key) != NULL))
        rc = err_set(err, CODE_USAGE, "'%s' stands twice", key);
    if (rc) {
        free(key);
        free(value);
        return -1;
    }
    if (at) {
        *at = value;
        free(key);
    } else {
        d->columns = xrealloc(d->columns, (d->n_columns + 1) * sizeof(*d->columns));
        d->columns[d->n_columns].key = key;
        d->columns[d->n_columns].value = value;
        d->n_columns++;
    }
    return 0;
}

int dataset_from(const json_t *o, struct dataset *ret, struct err *err)
{
    struct dataset d = { 0 };
    struct err why = { 0 };
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)o, key, value) {
        bool plain = str_eq(key, "name") || str_eq(key, "path"), b64 = str_ends(key, "_b64");
        char *text;

        if ((plain || b64) && !json_is_string(value)) {
            err_set(&why, CODE_USAGE, "'%s' is no text", key);
            goto bad;
        }
        text = b64 ? base64_decode(json_string_value(value)) : value_text(value);
        if (b64 && !text) {
            err_set(&why, CODE_USAGE, "'%s' is no base64 of a text without NUL", key);
            goto bad;
        }
        if (text && dataset_put(&d, xstrndup(key, strlen(key) - (b64 ? 4 : 0)), text, &why))
            goto bad;
    }
    if (!d.path) {
        err_set(&why, CODE_USAGE, "no key 'path'");
        goto bad;
    }
    *ret = d;
    return 0;
bad:
    dataset_release(&d);
    if (err)
        *err = why;
    return -1;
}

static void add_member(struct str *t, const char *key, const char *value, bool plain)
{
    size_t n = strlen(value);
    bool utf8 = utf8_valid(value, n) && !str_ends(key, "_b64"); /* a key that looks encoded is encoded */
    char *whole = utf8 ? NULL : xasprintf("%s_b64", key), *b64;

    str_add(t, t->len && t->s[t->len - 1] != '{' ? "," : "");
    str_quoted(t, whole ? whole : key, strlen(whole ? whole : key));
    str_add(t, ":");
    free(whole);
    if (!utf8) {
        b64 = base64_encode(value, n);
        str_quoted(t, b64, strlen(b64));
        free(b64);
    } else if (!plain && (str_eq(value, "true") || str_eq(value, "false") || value_is_number(value))) {
        str_addn(t, value, n);
    } else {
        str_quoted(t, value, n);
    }
}

void dataset_line(const struct dataset *d, struct str *ret)
{
    str_add(ret, "{");
    add_member(ret, "name", d->name, true);
    add_member(ret, "path", d->path, true);
    for (size_t i = 0; i < d->n_columns; i++)
        add_member(ret, d->columns[i].key, d->columns[i].value, false);
    str_add(ret, "}\n");
}
