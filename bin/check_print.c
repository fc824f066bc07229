#include "config.h"

#include <stdlib.h>
#include "check.h"
#include "cli.h"

/* As the site has it, else the rule's own. */
static const char *rule_level(const struct options *o, const struct rule *r)
{
    const char *site = conf_map_get(&o->levels, r->name);

    return site ? site : name_of(level_names, (int)r->level);
}

int list_rules(const struct options *o)
{
    struct table *t;

    if (o->jsonl) {
        for (size_t i = 0; check_rules[i]; i++)
            printf("{\"v\":1,\"type\":\"rule\",\"rule\":\"%s\",\"level\":\"%s\",\"scope\":\"%s\"}\n", check_rules[i]->name,
                   rule_level(o, check_rules[i]), name_of(scope_names, (int)check_rules[i]->scope));
        return 0;
    }
    t = table_new();
    table_columns(t, "rule|level|scope|meaning");
    for (size_t i = 0; check_rules[i]; i++) {
        table_row(t);
        table_cell(t, "%s", check_rules[i]->name);
        table_cell(t, "%s%s", rule_level(o, check_rules[i]), conf_map_get(&o->levels, check_rules[i]->name) ? " (site)" : "");
        table_cell(t, "%s", name_of(scope_names, (int)check_rules[i]->scope));
        table_cell(t, "%s", check_rules[i]->doc);
    }
    table_print(t, stdout);
    table_free(t);
    return 0;
}

static void add_maybes_json(const struct closure *c, const struct maybes *l, struct str *t)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct maybe *m = &l->v[i];

        may_dlopen_json(&(struct may_dlopen_line){ .names = &m->names, .path = m->path, .by = c->libs.v[m->object].path,
                                                   .feature = m->feature, .priority = m->priority }, t);
    }
}

/* Optional libraries: "may dlopen libX.so.1 => PATH (by LIBRARY)". They are never judged. */
static void add_maybes(const struct closure *c, const struct maybes *l, struct str *t)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct maybe *m = &l->v[i];

        str_add(t, "may dlopen ");
        for (size_t k = 0; k < m->names.n; k++) {
            char *name = esc_terminal(m->names.v[k]);

            str_addf(t, "%s%s", k ? " or " : "", name);
            free(name);
        }
        str_addf(t, " => %s (by %s", m->path ? m->path : "not found", path_base(c->libs.v[m->object].path));
        if (m->feature) {
            char *feature = esc_terminal(m->feature), *priority = esc_terminal(m->priority ? m->priority : "noted");

            str_addf(t, "; %s for %s", priority, feature);
            free(feature);
            free(priority);
        }
        str_add(t, ")\n");
    }
}

static void add_library(const struct closure *c, size_t i, struct str *t)
{
    const struct library *l = &c->libs.v[i];

    str_addf(t, "%s => %s%s%s%s\n", l->soname, l->path ? l->path : "not found", l->corrupt ? " (" : "", l->corrupt ? l->corrupt : "",
             l->corrupt ? ")" : "");
}

static void add_library_json(const struct closure *c, size_t i, const struct strv *optional, struct str *t)
{
    const struct library *l = &c->libs.v[i], *by = &c->libs.v[l->needed_by < c->libs.n ? l->needed_by : 0];
    struct library_line line = { .soname = l->soname, .path = l->path, .why = name_of(why_names, (int)l->why) };

    if (i)
        line.needed_by = by->path;
    else
        line.optional = strv_has(optional, l->path ? l->path : l->soname);
    library_json(&line, t);
}

static void print_libraries(const struct options *o, const struct resolution *r)
{
    struct str t = { 0 };

    for (size_t i = 0; i < r->closures.n; i++) {
        const struct closure *c = &r->closures.v[i];

        if (!o->jsonl && r->closures.n > 1)
            str_addf(&t, "%s:\n", c->libs.v[0].path ? c->libs.v[0].path : c->libs.v[0].soname);
        for (size_t j = 0; o->jsonl && j < c->libs.n; j++)
            add_library_json(c, j, &r->optional, &t);
        for (size_t j = 1; !o->jsonl && j < c->libs.n; j++)
            add_library(c, j, &t);
        if (i < r->maybes.n)
            (o->jsonl ? add_maybes_json : add_maybes)(c, &r->maybes.v[i], &t);
    }
    if (t.len)
        fwrite(t.s, 1, t.len, stdout);
    str_release(&t);
}

static size_t library_count(const struct resolution *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++)
            n += r->closures.v[i].libs.v[j].why != WHY_LOADED;
    return n;
}

void report(const struct options *o, const struct resolution *r, const struct findings *l)
{
    FILE *out = o->libs && !o->jsonl ? stderr : stdout; /* --libs: its lines alone on stdout */
    size_t errors = findings_count(l, LEVEL_ERROR), warnings = findings_count(l, LEVEL_WARN);
    struct str t = { 0 };
    char ms[24];

    if (o->libs)
        print_libraries(o, r);
    if (o->jsonl) {
        findings_json(l, &t);
    } else {
        findings_text(l, o->verbose, term_fancy(out), &t);
        str_addf(&t, "%s: ", errors ? "error" : warnings ? "warn" : "ok");
        if (r->closures.n)
            str_addf(&t, "%zu objects, ", library_count(r));
        str_addf(&t, "%zu error%s, %zu warning%s, %zu not checked%s, %s\n",
                 errors, plural(errors), warnings,
                 plural(warnings), l->not_checked, l->not_checked && !o->verbose ? " (-v tells)" : "",
                 human_ms(l->ms, ms));
    }
    if (t.len)
        fwrite(t.s, 1, t.len, out);
    str_release(&t);
}
