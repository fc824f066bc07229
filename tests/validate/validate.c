/* validate [--torn] SCHEMA FILE...: checks .json files whole and .jsonl files line by line against a JSON Schema.
 *
 * The part of draft 2020-12 that doc/schemas uses: type, properties, required, enum, const, items, additionalProperties,
 * minimum, oneOf, and $ref to a file beside the schema. Any other keyword is an error, so that no schema promises what is
 * not checked. --torn: a last line without its newline is left out. Exit status 0, 1 (does not fit), 64 (usage). */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include "base/base.h"

struct check {
    const char *dir; /* of the schemas, for $ref */
    char why[400];   /* first reason */
};

static bool fits(struct check *c, const json_t *schema, const json_t *v, const char *at);

static bool fails(struct check *c, const char *at, const char *fmt, ...) PRINTF(3, 4);
static bool fails(struct check *c, const char *at, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(c->why, sizeof(c->why), "%s: %s", *at ? at : "whole", text);
    return false;
}

static char *shown(const json_t *v)
{
    char *s = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));

    if (s && strlen(s) > 60)
        strcpy(s + 57, "...");
    return s ? s : xstrdup("?");
}

static json_t *load_schema(const char *path)
{
    json_error_t e;
    json_t *schema = json_load_file(path, JSON_REJECT_DUPLICATES, &e);

    if (!schema) {
        fprintf(stderr, "validate: schema '%s' line %d: %s\n", path, e.line, e.text);
        exit(CODE_USAGE);
    }
    return schema;
}

/* ---- one function a keyword ---- */

static bool is_type(const json_t *v, const char *type)
{
    static const struct name types[] = {
        { "object", JSON_OBJECT }, { "array", JSON_ARRAY }, { "string", JSON_STRING }, { "integer", JSON_INTEGER },
        { "null", JSON_NULL },     { NULL, 0 },
    };
    int want;

    if (str_eq(type, "number"))
        return json_is_number(v);
    if (str_eq(type, "boolean"))
        return json_is_boolean(v);
    if (name_value(types, type, &want)) {
        fprintf(stderr, "validate: unknown type '%s' in the schema\n", type);
        exit(CODE_USAGE);
    }
    return (int)json_typeof(v) == want;
}

static bool key_type(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    bool any = json_is_string(want) && is_type(v, json_string_value(want));
    char *is, *wanted;

    (void)schema;
    for (size_t i = 0; i < json_array_size(want) && !any; i++)
        any = is_type(v, json_string_value(json_array_get(want, i)));
    if (any)
        return true;
    is = shown(v);
    wanted = shown(want);
    fails(c, at, "%s is not of type %s", is, wanted);
    free(is);
    free(wanted);
    return false;
}

static bool key_const(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    char *is, *wanted;

    (void)schema;
    if (json_equal(want, v))
        return true;
    is = shown(v);
    wanted = shown(want);
    fails(c, at, "%s, wanted %s", is, wanted);
    free(is);
    free(wanted);
    return false;
}

static bool key_enum(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    char *is, *wanted;

    (void)schema;
    for (size_t i = 0; i < json_array_size(want); i++)
        if (json_equal(json_array_get(want, i), v))
            return true;
    is = shown(v);
    wanted = shown(want);
    fails(c, at, "%s is none of %s", is, wanted);
    free(is);
    free(wanted);
    return false;
}

static bool key_minimum(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    (void)schema;
    if (json_is_number(v) && json_number_value(v) < json_number_value(want))
        return fails(c, at, "%.15g is below %.15g", json_number_value(v), json_number_value(want));
    return true;
}

static bool key_required(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    (void)schema;
    for (size_t i = 0; json_is_object(v) && i < json_array_size(want); i++)
        if (!json_object_get(v, json_string_value(json_array_get(want, i))))
            return fails(c, at, "no key '%s'", json_string_value(json_array_get(want, i)));
    return true;
}

static bool key_properties(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    const char *key;
    json_t *sub;
    bool ok = true;

    (void)schema;
    json_object_foreach((json_t *)want, key, sub) {
        const json_t *member = json_object_get(v, key);
        char *below = xasprintf("%s/%s", at, key);

        ok = !member || fits(c, sub, member, below);
        free(below);
        if (!ok)
            break;
    }
    return ok;
}

static bool key_additional(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    const json_t *known = json_object_get(schema, "properties");
    const char *key;
    json_t *member;
    bool ok = true;

    json_object_foreach((json_t *)v, key, member) {
        char *below;

        if (json_object_get(known, key))
            continue;
        if (json_is_false(want))
            return fails(c, at, "unknown key '%s'", key);
        below = xasprintf("%s/%s", at, key);
        ok = json_is_true(want) || fits(c, want, member, below);
        free(below);
        if (!ok)
            break;
    }
    return ok;
}

static bool key_items(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    bool ok = true;

    (void)schema;
    for (size_t i = 0; ok && json_is_array(v) && i < json_array_size(v); i++) {
        char *below = xasprintf("%s/%zu", at, i);

        ok = fits(c, want, json_array_get(v, i), below);
        free(below);
    }
    return ok;
}

/* The reason told is that of the alternative that got past its type key. */
static bool key_one_of(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    char best[sizeof(c->why)] = "", of_type[64];
    size_t n = 0;

    (void)schema;
    snprintf(of_type, sizeof(of_type), "%.50s/type: ", at);
    for (size_t i = 0; i < json_array_size(want); i++) {
        if (fits(c, json_array_get(want, i), v, at))
            n++;
        else if (!*best || str_starts(best, of_type))
            strcpy(best, c->why);
    }
    if (n == 1)
        return true;
    if (n == 0 && *best) {
        strcpy(c->why, best);
        return false;
    }
    return fails(c, at, "fits %zu alternatives, wanted one", n);
}

static bool key_ref(struct check *c, const json_t *schema, const json_t *want, const json_t *v, const char *at)
{
    char *path = path_join(c->dir, json_string_value(want));
    json_t *other = load_schema(path);
    bool ok = fits(c, other, v, at);

    (void)schema;
    json_decref(other);
    free(path);
    return ok;
}

static const struct keyword {
    const char *name;
    bool (*check)(struct check *, const json_t *schema, const json_t *want, const json_t *v, const char *at);
} keywords[] = {
    { "type", key_type },         { "const", key_const },           { "enum", key_enum },
    { "minimum", key_minimum },   { "properties", key_properties }, { "required", key_required },
    { "items", key_items },       { "additionalProperties", key_additional },
    { "oneOf", key_one_of },      { "$ref", key_ref },              { "$schema", NULL },
    { "title", NULL },            { "description", NULL },
};

static bool fits(struct check *c, const json_t *schema, const json_t *v, const char *at)
{
    const char *key;
    json_t *want;

    json_object_foreach((json_t *)schema, key, want) {
        size_t i = 0;

        while (i < COUNT(keywords) && !str_eq(keywords[i].name, key))
            i++;
        if (i == COUNT(keywords)) {
            fprintf(stderr, "validate: keyword '%s' is not checked by this program\n", key);
            exit(CODE_USAGE);
        }
        if (keywords[i].check && !keywords[i].check(c, schema, want, v, at))
            return false;
    }
    return true;
}

/* ---- files ---- */

static bool check_text(struct check *c, const json_t *schema, const char *name, size_t no, const char *s, size_t n)
{
    json_error_t e;
    json_t *v = json_loadb(s, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    bool ok = v && fits(c, schema, v, "");

    if (!ok)
        fprintf(stderr, "%s:%zu: %s\n", name, no ? no : (size_t)(v || e.line < 1 ? 1 : e.line), v ? c->why : e.text);
    json_decref(v);
    return ok;
}

static bool check_file(struct check *c, const json_t *schema, const char *name, bool torn)
{
    struct str text = { 0 };
    struct err err = { 0 };
    bool ok = true;
    size_t no = 0;

    if (file_read(name, (size_t)1 << 30, &text, &err)) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        ok = false;
    } else if (!str_ends(name, ".jsonl")) {
        ok = check_text(c, schema, name, 0, text.s, text.len);
    } else {
        for (const char *s = text.s, *end = s + text.len, *newline; s < end; s = newline + 1) {
            newline = memchr(s, '\n', (size_t)(end - s));
            no++;
            if (!newline) {
                if (!torn)
                    fprintf(stderr, "%s:%zu: no newline at the end\n", name, no);
                ok = ok && torn;
                break;
            }
            ok = check_text(c, schema, name, no, s, (size_t)(newline - s)) && ok;
        }
    }
    str_release(&text);
    return ok;
}

int main(int argc, char **argv)
{
    bool torn = argc > 1 && str_eq(argv[1], "--torn"), ok = true;
    struct check c = { 0 };
    json_t *schema;
    char *dir;

    argv += 1 + torn;
    if (argc < 3 + torn) {
        fprintf(stderr, "usage: validate [--torn] SCHEMA FILE...\n");
        return CODE_USAGE;
    }
    schema = load_schema(*argv);
    dir = path_dir(*argv);
    c.dir = dir;
    while (*++argv)
        ok = check_file(&c, schema, *argv, torn) && ok;
    json_decref(schema);
    free(dir);
    return ok ? 0 : 1;
}
