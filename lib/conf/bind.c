#include "config.h"

#include <math.h>
#include <stdlib.h>
#include "conf/conf_priv.h"

static const char *const type_words[] = {
    [CONF_TEXT] = "a text in quotes",   [CONF_INT] = "an integer",     [CONF_FLOAT] = "a number",
    [CONF_BOOL] = "true or false",      [CONF_CHOICE] = "a choice",    [CONF_TEXTS] = "a list of texts",
    [CONF_INTS] = "a list of integers", [CONF_FLOATS] = "a list of numbers", [CONF_GROUP] = "a group { ... }",
    [CONF_LIST] = "a list of groups ( { ... } )", [CONF_MAP] = "a group { ... }", [CONF_LINE] = "nothing",
    [CONF_ANY] = "anything",
};

/* ---- scalars out of settings ---- */

static int get_int(const config_setting_t *s, int64_t *ret)
{
    int type = config_setting_type(s);

    if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
        return -1;
    *ret = type == CONFIG_TYPE_INT ? config_setting_get_int(s) : config_setting_get_int64(s);
    return 0;
}

static int get_float(const config_setting_t *s, double *ret)
{
    int64_t i;

    if (config_setting_type(s) == CONFIG_TYPE_FLOAT)
        *ret = config_setting_get_float(s);
    else if (get_int(s, &i) == 0)
        *ret = (double)i;
    else
        return -1;
    return 0;
}

static bool is_sequence(const config_setting_t *s)
{
    int type = config_setting_type(s);

    return type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST;
}

static int get_texts(const config_setting_t *s, struct strv *ret)
{
    if (config_setting_type(s) == CONFIG_TYPE_STRING) {
        strv_add(ret, config_setting_get_string(s));
        return 0;
    }
    if (!is_sequence(s))
        return -1;
    for (int i = 0; i < config_setting_length(s); i++) {
        const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);

        if (config_setting_type(e) != CONFIG_TYPE_STRING)
            return -1;
        strv_add(ret, config_setting_get_string(e));
    }
    return 0;
}

static int get_ints(const config_setting_t *s, struct conf_ints *ret)
{
    if (!is_sequence(s))
        return -1;
    for (int i = 0; i < config_setting_length(s); i++)
        if (get_int(config_setting_get_elem(s, (unsigned)i), VEC_ADD(ret)))
            return -1;
    return 0;
}

static int get_floats(const config_setting_t *s, struct conf_floats *ret)
{
    if (!is_sequence(s))
        return -1;
    for (int i = 0; i < config_setting_length(s); i++)
        if (get_float(config_setting_get_elem(s, (unsigned)i), VEC_ADD(ret)))
            return -1;
    return 0;
}

/* The text of a scalar as a map keeps it. */
static char *scalar_text(const config_setting_t *s, enum conf_kind *ret_kind)
{
    char text[CONF_FLOAT_TEXT];
    int64_t i;

    if (config_setting_type(s) == CONFIG_TYPE_STRING) {
        *ret_kind = CONF_KIND_TEXT;
        return xstrdup(config_setting_get_string(s));
    }
    if (config_setting_type(s) == CONFIG_TYPE_BOOL) {
        *ret_kind = CONF_KIND_BOOL;
        return xstrdup(config_setting_get_bool(s) ? "true" : "false");
    }
    if (get_int(s, &i) == 0) {
        *ret_kind = CONF_KIND_INT;
        return xasprintf("%lld", (long long)i);
    }
    *ret_kind = CONF_KIND_FLOAT;
    conf_float_text(config_setting_get_float(s), text);
    return xstrdup(text);
}

static int get_map(const config_setting_t *s, const char *prefix, struct conf_map *ret)
{
    if (config_setting_type(s) != CONFIG_TYPE_GROUP)
        return -1;
    for (int i = 0; i < config_setting_length(s); i++) {
        const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
        char *name = xasprintf("%s%s%s", prefix, *prefix ? "." : "", config_setting_name(e)), *text = NULL;
        enum conf_kind kind = CONF_KIND_LIST;
        int rc = 0;

        if (config_setting_type(e) == CONFIG_TYPE_GROUP) {
            rc = get_map(e, name, ret);
        } else if (is_sequence(e)) {
            struct str t = { 0 };

            for (int j = 0; j < config_setting_length(e); j++) {
                const config_setting_t *item = config_setting_get_elem(e, (unsigned)j);
                enum conf_kind ignored;
                char *one;

                if (is_sequence(item) || config_setting_type(item) == CONFIG_TYPE_GROUP) {
                    rc = -1;
                    break;
                }
                one = scalar_text(item, &ignored);
                str_addf(&t, "%s%s", j ? ", " : "", one);
                free(one);
            }
            text = str_take(&t);
        } else {
            text = scalar_text(e, &kind);
        }
        if (rc == 0 && text) {
            conf_map_set(ret, name, text, kind);
            ret->v[ret->n - 1].line = (int)config_setting_source_line(e);
        }
        free(text);
        free(name);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- one value by its row ---- */

static int bind_group(const char *file, const config_setting_t *s, const struct conf_row *rows, void *dst,
                      struct err *err);

static int wrong_type(const char *file, const config_setting_t *s, const struct conf_row *row, struct err *err)
{
    struct str choices = { 0 };

    if (row->type == CONF_CHOICE) {
        for (const struct name *n = row->names; n->name; n++)
            str_addf(&choices, "%s%s", n == row->names ? "" : ", ", n->name);
        err_set(err, CODE_USAGE, "%s:%d: '%s' wants one of: %s", file, (int)config_setting_source_line(s), row->name,
                choices.s);
        str_release(&choices);
        return -1;
    }
    return err_set(err, CODE_USAGE, "%s:%d: '%s' wants %s", file, (int)config_setting_source_line(s), row->name,
                   type_words[row->type]);
}

static int bind_list(const char *file, const config_setting_t *s, const struct conf_row *row, struct conf_list *list,
                     struct err *err)
{
    if (!is_sequence(s))
        return wrong_type(file, s, row, err);
    for (int i = 0; i < config_setting_length(s); i++) {
        const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
        char *item;

        if (config_setting_type(e) != CONFIG_TYPE_GROUP)
            return wrong_type(file, e, row, err);
        if (list->n == list->cap)
            vec_grow((void **)&list->v, &list->cap, row->size);
        item = list->v + row->size * list->n++;
        memset(item, 0, row->size);
        conf_defaults(row->sub, item);
        if (bind_group(file, e, row->sub, item, err))
            return -1;
    }
    return 0;
}

static int bind_value(const char *file, const config_setting_t *s, const struct conf_row *row, void *at,
                      struct err *err)
{
    int rc = 0;

    switch (row->type) {
    case CONF_TEXT:
        if (config_setting_type(s) != CONFIG_TYPE_STRING)
            return wrong_type(file, s, row, err);
        free(*(char **)at);
        *(char **)at = xstrdup(config_setting_get_string(s));
        return 0;
    case CONF_INT: rc = get_int(s, at); break;
    case CONF_FLOAT: rc = get_float(s, at); break;
    case CONF_BOOL:
        if (config_setting_type(s) != CONFIG_TYPE_BOOL)
            return wrong_type(file, s, row, err);
        *(bool *)at = config_setting_get_bool(s);
        return 0;
    case CONF_CHOICE:
        rc = config_setting_type(s) == CONFIG_TYPE_STRING ? name_value(row->names, config_setting_get_string(s), at)
                                                          : -1;
        break;
    case CONF_TEXTS:
        strv_release(at);
        rc = get_texts(s, at);
        break;
    case CONF_INTS: rc = get_ints(s, at); break;
    case CONF_FLOATS: rc = get_floats(s, at); break;
    case CONF_MAP: rc = get_map(s, "", at); break;
    case CONF_GROUP:
        if (config_setting_type(s) != CONFIG_TYPE_GROUP)
            return wrong_type(file, s, row, err);
        return bind_group(file, s, row->sub, at, err);
    case CONF_LIST: return bind_list(file, s, row, at, err);
    case CONF_LINE: case CONF_ANY: return 0;
    }
    return rc ? wrong_type(file, s, row, err) : 0;
}

static int unknown_key(const char *file, const config_setting_t *s, const struct conf_row *rows, struct err *err)
{
    const char *name = config_setting_name(s), *near;
    size_t n = 0;

    while (rows[n].name)
        n++;
    near = str_nearest(name, &rows->name, sizeof(*rows), n);
    return err_set(err, CODE_USAGE, "%s:%d: unknown key '%s'%s%s%s", file, (int)config_setting_source_line(s), name,
                   near ? ", the nearest is '" : "", near ? near : "", near ? "'" : "");
}

static int bind_group(const char *file, const config_setting_t *s, const struct conf_row *rows, void *dst,
                      struct err *err)
{
    for (int i = 0; i < config_setting_length(s); i++) {
        const config_setting_t *e = config_setting_get_elem(s, (unsigned)i);
        const struct conf_row *row = rows;

        while (row->name && !str_eq(row->name, config_setting_name(e)))
            row++;
        if (!row->name)
            return unknown_key(file, e, rows, err);
        if (bind_value(file, e, row, conf_at(dst, row), err))
            return -1;
    }
    for (const struct conf_row *row = rows; row->name; row++)
        if (row->type == CONF_LINE)
            *(int *)conf_at(dst, row) = (int)config_setting_source_line(s);
    for (const struct conf_row *row = rows; row->name; row++)
        if ((row->flags & CONF_REQUIRED) && !config_setting_get_member(s, row->name))
            return err_set(err, CODE_USAGE, "%s:%d: '%s' is missing: %s", file, (int)config_setting_source_line(s),
                           row->name, row->doc);
    return 0;
}

int conf_bind(const struct conf *c, const struct conf_row *rows, void *dst, struct err *err)
{
    conf_defaults(rows, dst);
    return bind_group(c->name, config_root_setting(&c->cfg), rows, dst, err);
}

static size_t rows_size(const struct conf_row *rows)
{
    size_t size = 0;

    for (; rows->name; rows++) { /* the largest member that a row can have is a map or list header, or a group */
        size_t end = rows->offset + (rows->type == CONF_GROUP ? rows_size(rows->sub) : sizeof(struct conf_map));

        size = end > size ? end : size;
    }
    return size;
}

int conf_check(const struct conf *c, const struct conf_row *rows, struct err *err)
{
    void *scratch = xcalloc(1, rows_size(rows));
    struct err why = { 0 };
    int rc = conf_bind(c, rows, scratch, &why);

    conf_release(rows, scratch);
    free(scratch);
    if (rc && strstr(why.text, " is missing: ")) /* a layer need not hold every key */
        return 0;
    if (rc && err)
        *err = why;
    return rc;
}

/* ---- defaults and release ---- */

static void default_value(const struct conf_row *row, void *at)
{
    switch (row->type) {
    case CONF_TEXT: *(char **)at = xstrdup(row->def); break;
    case CONF_INT:
        if (!row->def || str_to_i64(row->def, at))
            *(int64_t *)at = CONF_UNSET;
        break;
    case CONF_FLOAT:
        if (!row->def || str_to_double(row->def, at))
            *(double *)at = NAN;
        break;
    case CONF_BOOL: *(bool *)at = str_eq(row->def, "true"); break;
    case CONF_CHOICE:
        if (!row->def || name_value(row->names, row->def, at))
            *(int *)at = -1;
        break;
    case CONF_TEXTS: *(struct strv *)at = (struct strv){ 0 }; break;
    case CONF_INTS:
    case CONF_FLOATS:
    case CONF_LIST:
    case CONF_MAP: memset(at, 0, sizeof(struct conf_list)); break;
    case CONF_GROUP: conf_defaults(row->sub, at); break;
    case CONF_LINE: *(int *)at = 0; break;
    case CONF_ANY: break;
    }
}

void conf_defaults(const struct conf_row *rows, void *dst)
{
    for (; rows->name; rows++)
        default_value(rows, conf_at(dst, rows));
}

void conf_release(const struct conf_row *rows, void *dst)
{
    for (; rows->name; rows++) {
        void *at = conf_at(dst, rows);
        struct conf_list *list = at;

        switch (rows->type) {
        case CONF_TEXT: free(*(char **)at); *(char **)at = NULL; break;
        case CONF_TEXTS: strv_release(at); break;
        case CONF_MAP: conf_map_release(at); break;
        case CONF_GROUP: conf_release(rows->sub, at); break;
        case CONF_LIST:
            for (size_t i = 0; i < list->n; i++)
                conf_release(rows->sub, list->v + i * rows->size);
            /* fall through */
        case CONF_INTS:
        case CONF_FLOATS:
            free(list->v);
            *list = (struct conf_list){ 0 };
            break;
        case CONF_INT: case CONF_FLOAT: case CONF_BOOL: case CONF_CHOICE: case CONF_LINE: case CONF_ANY: break;
        }
    }
}
