#include "config.h"
#include "node/node_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* The row of "driver.kernel_module", or NULL. */
static const struct conf_row *row_of(const struct conf_row *rows, const char *key)
{
    size_t n = strcspn(key, ".");

    for (; rows && rows->name; rows++) {
        if (strlen(rows->name) != n || strncmp(rows->name, key, n) != 0)
            continue;
        if (!key[n])
            return rows;
        return rows->type == CONF_GROUP ? row_of(rows->sub, key + n + 1) : NULL;
    }
    return NULL;
}

static char *quoted(const char *s)
{
    struct str t = { 0 };

    str_add(&t, "\"");
    for (; *s; s++)
        str_addf(&t, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
    str_add(&t, "\"");
    return str_take(&t);
}

static bool capability_ok(const char *s)
{
    size_t major = strspn(s, "0123456789");

    if (str_starts(s, "gfx"))
        return strlen(s) > 4;
    return major && s[major] == '.' && strspn(s + major + 1, "0123456789") == 1 && !s[major + 2];
}

/* "9.0,8.0" as the text of a fragment; "none" and "" are no GPU. */
static int gpus_text(const char *list, struct str *ret, struct err *err)
{
    struct strv each = { 0 };
    int rc = 0, n = 0;

    str_add(ret, "version = 1; gpus_known = true; gpus = (");
    if (*list && !str_eq(list, "none"))
        strv_split(&each, list, ",");
    for (size_t i = 0; i < each.n && rc == 0; i++) {
        if (!capability_ok(each.v[i]))
            rc = err_set(err, CODE_USAGE, "gpu '%s' is no compute capability, wanted 9.0, gfx90a, or none", each.v[i]);
        str_addf(ret, "%s { vendor = \"%s\"; name = \"assumed\"; compute_capability = \"%s\"; }", n++ ? "," : "",
                 str_starts(each.v[i], "gfx") ? "amd" : "nvidia", each.v[i]);
    }
    str_add(ret, " );");
    strv_release(&each);
    return rc;
}

/* key=value with texts quoted and big integers marked, so that 12.8 stays a text where a text is wanted. */
static struct conf *assigned(const char *what, struct err *err)
{
    const char *equals = strchr(what, '=');
    char *key = xstrndup(what, (size_t)(equals - what)), *value = NULL, *text = NULL;
    const struct conf_row *row = row_of(facts_rows, key);
    struct conf *c = conf_new("--assume");
    int64_t number;
    int rc = -1;

    if (!row) {
        size_t n = 0;
        const char *near;

        while (facts_rows[n].name)
            n++;
        near = str_nearest(key, &facts_rows->name, sizeof(*facts_rows), n);
        err_set(err, CODE_USAGE, "no fact is named '%s'%s%s%s", key, near ? ", the nearest is '" : "", near ? near : "",
                near ? "'" : "; see doc/format-facts.md");
        goto out;
    }
    if ((row->type == CONF_TEXT || row->type == CONF_TEXTS) && !strchr("\"[(", equals[1]))
        value = quoted(equals + 1);
    else if (row->type == CONF_INT && str_to_i64(equals + 1, &number) == 0)
        value = xasprintf("%lldL", (long long)number);
    text = xasprintf("%s=%s", key, value ? value : equals + 1);
    rc = conf_assign(c, text, err);
out:
    free(text);
    free(value);
    free(key);
    if (rc == 0)
        return c;
    conf_free(c);
    return NULL;
}

static struct conf *fragment(const char *what, struct err *err)
{
    size_t n = strspn(what, "abcdefghijklmnopqrstuvwxyz_.");
    struct str text = { 0 };
    struct conf *c = NULL;

    if (n == 0 || what[n] != '=')
        return conf_load(what, err);
    if (!str_starts(what, "gpu="))
        return assigned(what, err);
    if (gpus_text(what + strlen("gpu="), &text, err) == 0)
        c = conf_parse(text.s, text.len, "--assume", err);
    str_release(&text);
    return c;
}

/* What was probed of a driver says nothing beside an assumed one. */
static int drop_probed_driver(struct facts *f, const struct conf *over, struct err *err)
{
    struct facts part;
    int rc = conf_bind(over, facts_rows, &part, err);

    if (rc == 0 && (part.driver.kernel_module || part.driver.cuda || part.driver.library) &&
        !str_eq(f->driver.source, "assumed")) {
        free(f->driver.kernel_module);
        free(f->driver.cuda);
        free(f->driver.library);
        free(f->driver.source);
        memset(&f->driver, 0, sizeof(f->driver));
        f->driver.source = xstrdup("assumed");
    }
    facts_release(&part);
    return rc;
}

int facts_assume(struct facts *f, const char *what, struct err *err)
{
    struct conf *base = NULL, *over;
    struct facts new;
    struct err why = { 0 };
    struct str text = { 0 };
    int rc = -1;

    over = fragment(what, &why);
    if (!over || drop_probed_driver(f, over, &why))
        goto out;
    conf_write(facts_rows, f, &text);
    base = conf_parse(text.s ? text.s : "", text.len, "facts", &why);
    if (!base)
        goto out;
    conf_merge(base, over);
    rc = facts_bind(base, what, &new, &why);
    if (rc == 0) {
        facts_release(f);
        *f = new;
    }
out:
    if (rc)
        err_set(err, why.code, "%s", why.text);
    conf_free(base);
    conf_free(over);
    str_release(&text);
    return rc;
}
