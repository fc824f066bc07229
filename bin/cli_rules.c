/* The site's say on rules. */
#include "config.h"
#include "cli.h"
#include "cli_rules.h"
#include "check/check.h"

#include <stdlib.h>
#include <unistd.h>

#define SITE_RULES "/etc/recon/rules.conf"

static const struct conf_row rows[] = {
    { .name = "rules", .type = CONF_MAP, .offset = 0, .doc = "a rule's name and off, note, warn or error" },
    { 0 },
};

static bool is_level(const char *text)
{
    int level;

    return str_eq(text, "off") || name_value(level_names, text, &level) == 0;
}

static bool is_rule(const char *name, const char **ret_near)
{
    struct strv names = { 0 };
    bool known = false;

    *ret_near = NULL;
    for (size_t r = 0; check_rules[r]; r++) {
        known |= str_eq(check_rules[r]->name, name);
        strv_add(&names, check_rules[r]->name);
    }
    for (size_t r = 0; !known && check_rules[r] && !*ret_near; r++)
        if (str_eq(check_rules[r]->name, str_nearest(name, names.v, sizeof(*names.v), names.n)))
            *ret_near = check_rules[r]->name;
    strv_release(&names);
    return known;
}

static void take(const char *path, const struct conf_map *said, struct conf_map *ret)
{
    for (size_t i = 0; i < said->n; i++) {
        const struct conf_pair *p = &said->v[i];
        const char *near;

        if (!is_rule(p->name, &near))
            cli_warn("%s:%d: no rule is named '%s'%s%s%s", path, p->line, p->name, near ? ", the nearest is '" : "",
                     near ? near : "; see recon-check --list-rules", near ? "'" : "");
        else if (!is_level(p->value))
            cli_warn("%s:%d: the level of '%s' is '%s', wanted off, note, warn or error", path, p->line, p->name, p->value);
        else
            conf_map_set(ret, p->name, p->value, CONF_KIND_TEXT);
    }
}

void cli_levels(const char *named, struct conf_map *ret)
{
    const char *path = named && *named ? named : SITE_RULES;
    struct conf_map said = { 0 };
    struct conf *c = NULL;
    struct err err = { 0 };

    *ret = (struct conf_map){ 0 };
    if (!(named && *named) && access(path, F_OK))
        return;
    if (file_trusted(path, NULL, &err) == 0)
        c = conf_load(path, &err);
    if (!c || conf_bind(c, rows, &said, &err))
        cli_warn("%s: every rule keeps its level", err.text);
    else
        take(path, &said, ret);
    conf_map_release(&said);
    conf_free(c);
}
