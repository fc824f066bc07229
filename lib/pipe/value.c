#include "config.h"

#include <stdlib.h>
#include "pipe/pipe.h"

uint32_t params_count(const struct recon_param *p)
{
    uint32_t n = 0;

    while (p && p[n].name)
        n++;
    return n;
}

uint32_t ports_count(const struct recon_port *p)
{
    uint32_t n = 0;

    while (p && p[n].name)
        n++;
    return n;
}

static bool within(const struct recon_param *row, double v)
{
    return (row->min == 0 && row->max == 0) || (v >= row->min && v <= row->max);
}

static int out_of_range(const struct recon_param *row, const char *text, struct err *why)
{
    const char *unit = row->unit ? row->unit : "";

    return err_set(why, CODE_USAGE, "%s is outside %g .. %g%s%s", text, row->min, row->max, *unit ? " " : "", unit);
}

static int parse_int(const struct recon_param *row, const char *text, struct recon_value *ret, struct err *why)
{
    if (str_to_i64(text, &ret->i))
        return err_set(why, CODE_USAGE, "'%s' is no integer", text);
    ret->f = (double)ret->i;
    return within(row, ret->f) ? 0 : out_of_range(row, text, why);
}

static int parse_float(const struct recon_param *row, const char *text, struct recon_value *ret, struct err *why)
{
    if (str_to_double(text, &ret->f))
        return err_set(why, CODE_USAGE, "'%s' is no number", text);
    return within(row, ret->f) ? 0 : out_of_range(row, text, why);
}

static int parse_bool(const char *text, struct recon_value *ret, struct err *why)
{
    static const struct name words[] = { { "true", 1 },  { "yes", 1 }, { "1", 1 }, { "false", 0 },
                                         { "no", 0 },    { "0", 0 },   { NULL, 0 } };
    int v = 0;

    if (name_value(words, text, &v))
        return err_set(why, CODE_USAGE, "'%s' is neither true nor false", text);
    ret->i = v;
    return 0;
}

static int parse_choice(const struct recon_param *row, const char *text, struct recon_value *ret, struct err *why)
{
    struct strv choices = { 0 };
    struct str list = { 0 };
    const char *near;
    int rc = -1;

    strv_split(&choices, row->choices ? row->choices : "", "|");
    for (size_t i = 0; i < choices.n; i++) {
        str_addf(&list, "%s%s", i ? ", " : "", choices.v[i]);
        if (str_eq(choices.v[i], text)) {
            ret->i = (int64_t)i;
            ret->s = xstrdup(text);
            rc = 0;
        }
    }
    if (rc) {
        near = str_nearest(text, choices.v, sizeof(*choices.v), choices.n);
        err_set(why, CODE_USAGE, "'%s' is none of: %s%s%s%s", text, list.s ? list.s : "",
                near ? "; the nearest is '" : "", near ? near : "", near ? "'" : "");
    }
    str_release(&list);
    strv_release(&choices);
    return rc;
}

/* "1, 2.5 3": commas and blanks part; brackets of a list, as on a command line, are let pass. */
static int parse_vec(const struct recon_param *row, const char *text, struct recon_value *ret, struct err *why)
{
    struct strv parts = { 0 };
    struct { double *v; size_t n, cap; } vec = { 0 };
    int rc = 0;

    strv_split(&parts, text, ", ()[]");
    for (size_t i = 0; i < parts.n && rc == 0; i++) {
        double *d;

        if (!*parts.v[i])
            continue;
        d = VEC_ADD(&vec);
        if (str_to_double(parts.v[i], d))
            rc = err_set(why, CODE_USAGE, "'%s' is no number", parts.v[i]);
        else if (!within(row, *d))
            rc = out_of_range(row, parts.v[i], why);
    }
    strv_release(&parts);
    if (rc) {
        free(vec.v);
        return rc;
    }
    ret->v = vec.v;
    ret->n = (uint32_t)vec.n;
    return 0;
}

static const char *const wanted[] = {
    [RECON_INT] = "an integer",     [RECON_FLOAT] = "a number",
    [RECON_BOOL] = "true or false", [RECON_TEXT] = "a text in quotes",
    [RECON_CHOICE] = "a text in quotes", [RECON_VEC] = "a list of numbers ( ... )",
};

static bool kind_fits(uint32_t type, enum conf_kind kind)
{
    switch (type) {
    case RECON_INT: return kind == CONF_KIND_INT;
    case RECON_FLOAT: return kind == CONF_KIND_INT || kind == CONF_KIND_FLOAT;
    case RECON_BOOL: return kind == CONF_KIND_BOOL;
    case RECON_VEC: return kind == CONF_KIND_LIST;
    default: return kind == CONF_KIND_TEXT;
    }
}

int value_parse(const struct recon_param *row, const char *text, enum conf_kind kind, bool loose,
                struct recon_value *ret, struct err *why)
{
    *ret = (struct recon_value){ 0 };
    if (row->type < RECON_INT || row->type > RECON_VEC)
        return err_set(why, CODE_JOB, "its module gives it the unknown type %u", (unsigned)row->type);
    if (!loose && !kind_fits(row->type, kind))
        return err_set(why, CODE_USAGE, "'%s' is not %s", text, wanted[row->type]);
    switch (row->type) {
    case RECON_INT: return parse_int(row, text, ret, why);
    case RECON_FLOAT: return parse_float(row, text, ret, why);
    case RECON_BOOL: return parse_bool(text, ret, why);
    case RECON_CHOICE: return parse_choice(row, text, ret, why);
    case RECON_VEC: return parse_vec(row, text, ret, why);
    }
    ret->s = xstrdup(text);
    return 0;
}

void value_release(const struct recon_param *row, struct recon_value *v)
{
    if (row->type == RECON_TEXT || row->type == RECON_CHOICE)
        free((char *)(uintptr_t)v->s);
    if (row->type == RECON_VEC)
        free((double *)(uintptr_t)v->v);
    *v = (struct recon_value){ 0 };
}
