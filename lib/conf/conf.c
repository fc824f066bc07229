#include "config.h"

#include <stdlib.h>
#include "conf/conf_priv.h"

struct conf *conf_new(const char *name)
{
    struct conf *c = xcalloc(1, sizeof(*c));

    config_init(&c->cfg);
    c->name = xstrdup(name);
    return c;
}

void conf_free(struct conf *c)
{
    if (!c)
        return;
    config_destroy(&c->cfg);
    free(c->name);
    free(c);
}

struct conf *conf_parse(const char *text, size_t len, const char *name, struct err *err)
{
    struct conf *c;

    if (conf_scan(text, len, name, err))
        return NULL;
    c = conf_new(name);
    if (!config_read_string(&c->cfg, text)) {
        err_set(err, CODE_USAGE, "%s:%d: %s", name, config_error_line(&c->cfg), config_error_text(&c->cfg));
        conf_free(c);
        return NULL;
    }
    return c;
}

struct conf *conf_load(const char *path, struct err *err)
{
    struct str text = { 0 };
    struct conf *c = NULL;

    if (file_read(path, FILE_MAX_DEFAULT, &text, err) == 0)
        c = conf_parse(text.s, text.len, path, err);
    str_release(&text);
    return c;
}

/* ---- merging ---- */

static void copy_value(config_setting_t *to, const config_setting_t *from);

static void copy_children(config_setting_t *to, const config_setting_t *from)
{
    for (int i = 0; i < config_setting_length(from); i++) {
        const config_setting_t *child = config_setting_get_elem(from, (unsigned)i);
        const char *name = config_setting_name(child);
        int type = config_setting_type(child);
        config_setting_t *old = name ? config_setting_get_member(to, name) : NULL;

        if (old && type == CONFIG_TYPE_GROUP && config_setting_type(old) == CONFIG_TYPE_GROUP) {
            copy_children(old, child);
            continue;
        }
        if (old)
            config_setting_remove(to, name);
        copy_value(config_setting_add(to, name, type), child);
    }
}

static void copy_value(config_setting_t *to, const config_setting_t *from)
{
    if (!to)
        return;
    config_setting_set_format(to, config_setting_get_format(from));
    switch (config_setting_type(from)) {
    case CONFIG_TYPE_INT: config_setting_set_int(to, config_setting_get_int(from)); break;
    case CONFIG_TYPE_INT64: config_setting_set_int64(to, config_setting_get_int64(from)); break;
    case CONFIG_TYPE_FLOAT: config_setting_set_float(to, config_setting_get_float(from)); break;
    case CONFIG_TYPE_BOOL: config_setting_set_bool(to, config_setting_get_bool(from)); break;
    case CONFIG_TYPE_STRING: config_setting_set_string(to, config_setting_get_string(from)); break;
    default: copy_children(to, from);
    }
}

void conf_merge(struct conf *c, const struct conf *over)
{
    copy_children(config_root_setting(&c->cfg), config_root_setting(&over->cfg));
}

/* "a.b" = value as the text of a file: a = { b = value; }; */
static struct conf *assignment_text(const struct strv *path, const char *value, const char *name, struct err *err)
{
    struct str t = { 0 };
    struct conf *c;

    for (size_t i = 0; i < path->n; i++)
        str_addf(&t, "%s = %s", path->v[i], i + 1 < path->n ? "{ " : "");
    str_addf(&t, "%s;", value);
    for (size_t i = 1; i < path->n; i++)
        str_add(&t, " };");
    c = conf_parse(t.s, t.len, name, err);
    str_release(&t);
    return c;
}

static char *quoted(const char *s)
{
    struct str t = { 0 };

    str_add(&t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            str_add(&t, "\\");
        str_addn(&t, s, 1);
    }
    str_add(&t, "\"");
    return str_take(&t);
}

int conf_assign(struct conf *c, const char *assignment, struct err *err)
{
    const char *equals = strchr(assignment, '=');
    struct strv path = { 0 };
    struct conf *part;
    char *key, *text;

    if (!equals || equals == assignment)
        return err_set(err, CODE_USAGE, "'%s' is no assignment, wanted key=value", assignment);
    key = xstrndup(assignment, (size_t)(equals - assignment));
    strv_split(&path, key, ".");
    part = assignment_text(&path, equals + 1, c->name, NULL);
    if (!part) {
        text = quoted(equals + 1);
        part = assignment_text(&path, text, c->name, NULL);
        free(text);
    }
    if (part)
        conf_merge(c, part);
    else
        err_set(err, CODE_USAGE, "'%s' is no key, wanted letters, digits, '-' and '_' joined by '.'", key);
    strv_release(&path);
    free(key);
    if (!part)
        return -1;
    conf_free(part);
    return 0;
}
