#include "config.h"

#include <stdlib.h>
#include "check.h"
#include "cli.h"

int list_rules(const struct options *o)
{
    struct table *t;

    if (o->jsonl) {
        for (size_t i = 0; check_rules[i]; i++)
            printf("{\"v\":1,\"type\":\"rule\",\"rule\":\"%s\",\"level\":\"%s\",\"scope\":\"%s\"}\n", check_rules[i]->name,
                   name_of(level_names, (int)check_rules[i]->level), name_of(scope_names, (int)check_rules[i]->scope));
        return 0;
    }
    t = table_new();
    table_columns(t, "rule|level|scope|meaning");
    for (size_t i = 0; check_rules[i]; i++) {
        table_row(t);
        table_cell(t, "%s", check_rules[i]->name);
        table_cell(t, "%s", name_of(level_names, (int)check_rules[i]->level));
        table_cell(t, "%s", name_of(scope_names, (int)check_rules[i]->scope));
        table_cell(t, "%s", check_rules[i]->doc);
    }
    table_print(t, stdout);
    table_free(t);
    return 0;
}

static void join(const struct strv *l, const char *quote, const char *separator, struct str *t)
{
    str_clear(t);
    for (size_t i = 0; i < l->n; i++)
        str_addf(t, "%s%s%s%s", i ? separator : "", quote, l->v[i], quote);
}

static void print_set(const struct options *o, const struct pin_gpu *g, struct table *table)
{
    const char *quote = o->jsonl ? "\"" : "", *comma = o->jsonl ? "," : " ";
    struct str sass = { 0 }, ptx = { 0 };

    join(&g->sass, quote, comma, &sass);
    join(&g->ptx, quote, comma, &ptx);
    if (o->jsonl) {
        printf("{\"v\":1,\"type\":\"images\",\"containers\":%lld,\"sass\":[%s],\"ptx\":[%s],\"ptx_isa\":\"%s\",\"toolkit\":\"%s\"}\n",
               (long long)g->containers, sass.len ? sass.s : "", ptx.len ? ptx.s : "", g->ptx_isa ? g->ptx_isa : "",
               g->toolkit ? g->toolkit : "");
    } else {
        table_row(table);
        table_cell(table, "%lld", (long long)g->containers);
        table_cell(table, "%s", sass.len ? sass.s : "-");
        table_cell(table, "%s", ptx.len ? ptx.s : "-");
        table_cell(table, "%s", g->ptx_isa ? g->ptx_isa : "-");
        table_cell(table, "%s", g->toolkit ? g->toolkit : "-");
    }
    str_release(&sass);
    str_release(&ptx);
}

int print_images(const struct options *o)
{
    struct gpu_images images = { 0 };
    struct pin_gpus sets = { 0 };
    struct err err = { 0 };
    struct table *t;

    if (images_read(o->images, &images, &err))
        return cli_fail(&err);
    pin_gpu_sets(&images, &sets);
    t = table_new();
    table_columns(t, ">containers|SASS|PTX|PTX ISA|toolkit");
    for (size_t i = 0; i < sets.n; i++)
        print_set(o, &sets.v[i], t);
    if (!o->jsonl && sets.n)
        table_print(t, stdout);
    if (!sets.n)
        fprintf(stderr, "'%s' holds no GPU code\n", o->images);
    table_free(t);
    pin_gpus_release(&sets);
    images_release(&images);
    return 0;
}

static void print_libraries(const struct options *o, const struct resolution *r)
{
    struct str t = { 0 };

    for (size_t i = 0; i < r->closures.n; i++) {
        const struct closure *c = &r->closures.v[i];

        if (!o->jsonl && r->closures.n > 1)
            str_addf(&t, "%s:\n", c->libs.v[0].path ? c->libs.v[0].path : c->libs.v[0].soname);
        for (size_t j = o->jsonl ? 0 : 1; j < c->libs.n; j++) {
            const struct library *l = &c->libs.v[j];
            const struct library *by = &c->libs.v[l->needed_by < c->libs.n ? l->needed_by : 0];

            if (o->jsonl)
                library_json(l->soname, l->path, name_of(why_names, (int)l->why), j ? by->path : NULL, &t);
            else
                str_addf(&t, "%s => %s%s%s%s\n", l->soname, l->path ? l->path : "not found", l->corrupt ? " (" : "",
                         l->corrupt ? l->corrupt : "", l->corrupt ? ")" : "");
        }
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
                 errors, errors == 1 ? "" : "s", warnings,
                 warnings == 1 ? "" : "s", l->not_checked, l->not_checked && !o->verbose ? " (-v tells)" : "",
                 human_ms(l->ms, ms));
    }
    if (t.len)
        fwrite(t.s, 1, t.len, out);
    str_release(&t);
}
