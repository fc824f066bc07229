#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "conf/conf_priv.h"

static void text_out(struct str *t, const char *s)
{
    str_add(t, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\')
            str_addf(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            str_addf(t, "\\x%02x", c);
        else
            str_addn(t, s, 1);
    }
    str_add(t, "\"");
}

static void int_out(struct str *t, int64_t v)
{
    str_addf(t, "%lld%s", (long long)v, v > INT_MAX || v < INT_MIN ? "L" : "");
}

void conf_float_text(double v, char ret[CONF_FLOAT_TEXT])
{
    double back = 0;

    for (int digits = 6; digits <= 17; digits++) {
        snprintf(ret, CONF_FLOAT_TEXT - 2, "%.*g", digits, v);
        if (str_to_double(ret, &back) == 0 && back == v)
            break;
    }
    if (!strpbrk(ret, ".ein"))
        strcat(ret, ".0");
}

static void float_out(struct str *t, double v)
{
    char text[CONF_FLOAT_TEXT];

    conf_float_text(v, text);
    str_add(t, text);
}

static bool absent(const struct conf_row *row, const void *at)
{
    switch (row->type) {
    case CONF_TEXT: return !*(char *const *)at;
    case CONF_INT: return *(const int64_t *)at == CONF_UNSET;
    case CONF_FLOAT: return isnan(*(const double *)at);
    case CONF_BOOL: return *(const bool *)at == str_eq(row->def, "true");
    case CONF_CHOICE: return !name_of(row->names, *(const int *)at);
    case CONF_TEXTS: return ((const struct strv *)at)->n == 0;
    case CONF_INTS: case CONF_FLOATS: case CONF_LIST: case CONF_MAP: return ((const struct conf_list *)at)->n == 0;
    case CONF_GROUP:
        for (const struct conf_row *r = row->sub; r->name; r++)
            if (!absent(r, conf_at(at, r)))
                return false;
        return true;
    case CONF_LINE: case CONF_ANY: return true;
    }
    return true;
}

static void pair_out(struct str *t, const struct conf_pair *p)
{
    if (p->kind == CONF_KIND_TEXT)
        text_out(t, p->value);
    else
        str_addf(t, p->kind == CONF_KIND_LIST ? "( %s )" : "%s", p->value);
}

/* The entries below prefix ("" or "a.b."): dotted names came from nested groups and become those again. */
static void map_out(struct str *t, const struct conf_map *m, const char *prefix)
{
    struct strv done = { 0 };

    str_add(t, "{ ");
    for (size_t i = 0; i < m->n; i++) {
        const char *rest = m->v[i].name + strlen(prefix), *dot;
        char *first, *deeper;

        if (!str_starts(m->v[i].name, prefix))
            continue;
        dot = strchr(rest, '.');
        first = xstrndup(rest, strcspn(rest, "."));
        if (!strv_has(&done, first)) {
            strv_add(&done, first);
            str_addf(t, "%s = ", first);
            if (dot) {
                deeper = xasprintf("%s%s.", prefix, first);
                map_out(t, m, deeper);
                free(deeper);
            } else {
                pair_out(t, &m->v[i]);
            }
            str_add(t, "; ");
        }
        free(first);
    }
    str_add(t, "}");
    strv_release(&done);
}

static void group_out(struct str *t, const struct conf_row *rows, const void *src);

static void value_out(struct str *t, const struct conf_row *row, const void *at)
{
    const struct conf_list *list = at;
    const struct strv *texts = at;

    switch (row->type) {
    case CONF_TEXT: text_out(t, *(char *const *)at); break;
    case CONF_INT: int_out(t, *(const int64_t *)at); break;
    case CONF_FLOAT: float_out(t, *(const double *)at); break;
    case CONF_BOOL: str_add(t, *(const bool *)at ? "true" : "false"); break;
    case CONF_CHOICE: text_out(t, name_of(row->names, *(const int *)at)); break;
    case CONF_MAP: map_out(t, at, ""); break;
    case CONF_GROUP: group_out(t, row->sub, at); break;
    case CONF_TEXTS:
        for (size_t i = 0; i < texts->n; i++) {
            str_add(t, i ? ", " : "[ ");
            text_out(t, texts->v[i]);
        }
        str_add(t, " ]");
        break;
    case CONF_INTS:
        for (size_t i = 0; i < list->n; i++) {
            str_add(t, i ? ", " : "( ");
            int_out(t, ((const int64_t *)(const void *)list->v)[i]);
        }
        str_add(t, " )");
        break;
    case CONF_FLOATS:
        for (size_t i = 0; i < list->n; i++) {
            str_add(t, i ? ", " : "( ");
            float_out(t, ((const double *)(const void *)list->v)[i]);
        }
        str_add(t, " )");
        break;
    case CONF_LIST:
        for (size_t i = 0; i < list->n; i++) {
            str_add(t, i ? ",\n  " : "(\n  ");
            group_out(t, row->sub, list->v + i * row->size);
        }
        str_add(t, "\n)");
        break;
    case CONF_LINE: case CONF_ANY: break;
    }
}

static void group_out(struct str *t, const struct conf_row *rows, const void *src)
{
    str_add(t, "{ ");
    for (; rows->name; rows++) {
        const void *at = conf_at(src, rows);

        if (absent(rows, at))
            continue;
        str_addf(t, "%s = ", rows->name);
        value_out(t, rows, at);
        str_add(t, "; ");
    }
    str_add(t, "}");
}

void conf_write(const struct conf_row *rows, const void *src, struct str *ret)
{
    for (; rows->name; rows++) {
        const void *at = conf_at(src, rows);

        if (absent(rows, at))
            continue;
        str_addf(ret, "%s = ", rows->name);
        value_out(ret, rows, at);
        str_add(ret, ";\n");
    }
}

static const char *const type_names[] = {
    [CONF_TEXT] = "text",       [CONF_INT] = "integer",   [CONF_FLOAT] = "number",        [CONF_BOOL] = "true or false",
    [CONF_CHOICE] = "choice",   [CONF_TEXTS] = "texts",   [CONF_INTS] = "integers",       [CONF_FLOATS] = "numbers",
    [CONF_GROUP] = "group",     [CONF_LIST] = "list of groups", [CONF_MAP] = "group, free keys", [CONF_LINE] = "line",
    [CONF_ANY] = "any",
};

static void document(const struct conf_row *rows, const char *prefix, struct str *ret)
{
    for (; rows->name; rows++) {
        char *name = xasprintf("%s%s", prefix, rows->name), *inner;

        if (!(rows->flags & CONF_HIDDEN)) {
            str_addf(ret, "| `%s` | ", name);
            if (rows->type == CONF_CHOICE)
                for (const struct name *n = rows->names; n->name; n++)
                    str_addf(ret, "%s`%s`", n == rows->names ? "" : " ", n->name);
            else
                str_add(ret, type_names[rows->type]);
            str_addf(ret, " | %s%s%s | %s |\n", rows->def ? "`" : "", rows->def ? rows->def : "",
                     rows->def ? "`" : "", rows->doc ? rows->doc : "");
            if (rows->sub) {
                inner = xasprintf(rows->type == CONF_LIST ? "%s[]." : "%s.", name);
                document(rows->sub, inner, ret);
                free(inner);
            }
        }
        free(name);
    }
}

void conf_document(const struct conf_row *rows, struct str *ret)
{
    str_add(ret, "| key | type | default | meaning |\n|---|---|---|---|\n");
    document(rows, "", ret);
}
