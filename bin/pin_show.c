/* recon-pin show: a pin for people. */
#include "config.h"

#include <stdlib.h>
#include "recon-pin.h"

static void line(const char *name, const char *value)
{
    char *safe = value ? esc_terminal(value) : NULL;

    if (safe && *safe)
        printf("%-10s %s\n", name, safe);
    free(safe);
}

static void show_texts(const char *name, const struct strv *l)
{
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++)
        str_addf(&t, "%s%s", i ? " " : "", l->v[i]);
    line(name, t.s);
    str_release(&t);
}

void show_requires(const struct pin *p)
{
    const struct { const char *name, *value; } rows_of[] = {
        { "glibc", p->requires.glibc }, { "libstdc++", p->requires.glibcxx }, { "CUDA runtime", p->requires.cuda_runtime },
        { "driver", p->requires.driver }, { "CPU", p->requires.cpu_isa },
    };
    struct str t = { 0 };

    for (size_t i = 0; i < COUNT(rows_of); i++)
        if (rows_of[i].value)
            str_addf(&t, "%s%s %s", t.len ? ", " : "", rows_of[i].name, rows_of[i].value);
    line("requires", t.s);
    str_release(&t);
}

static void show_targets(const struct pin_object *o, const char *what, const struct strv *l)
{
    struct str t = { 0 };

    if (!l->n)
        return;
    str_addf(&t, "%s: %s", path_base(o->path), what);
    for (size_t i = 0; i < l->n; i++)
        str_addf(&t, " %s", l->v[i]);
    line("gpu", t.s);
    str_release(&t);
}

static void show_gpu(const struct pin_object *o)
{
    for (size_t i = 0; i < o->gpu.n; i++) {
        const struct pin_gpu *g = &o->gpu.v[i];
        struct str t = { 0 };

        str_addf(&t, "%s: %lld x", path_base(o->path), (long long)g->containers);
        for (size_t j = 0; j < g->sass.n; j++)
            str_addf(&t, " %s", g->sass.v[j]);
        for (size_t j = 0; j < g->ptx.n; j++)
            str_addf(&t, " %s", g->ptx.v[j]);
        if (g->ptx_isa)
            str_addf(&t, ", PTX ISA %s", g->ptx_isa);
        if (g->toolkit)
            str_addf(&t, ", toolkit %s", g->toolkit);
        line("gpu", t.s);
        str_release(&t);
    }
    show_targets(o, "HIP", &o->hip);
    show_targets(o, "OpenMP", &o->openmp);
}

static void show_summary(const struct pin *p)
{
    size_t count[3] = { 0 };
    char *taken = xasprintf("%s on %s by recon %s, umask %s", p->captured.time ? p->captured.time : "?",
                            p->captured.node ? p->captured.node : "?", p->captured.recon ? p->captured.recon : "?",
                            p->captured.umask ? p->captured.umask : "?");
    struct str files = { 0 };

    line("program", p->objects.v[0].path);
    for (size_t i = 0; i < p->objects.n; i++) {
        if (p->objects.v[i].role >= 0 && (size_t)p->objects.v[i].role < COUNT(count))
            count[p->objects.v[i].role]++;
        if (p->objects.v[i].role == PIN_MODULE)
            line("module", p->objects.v[i].path);
    }
    line("captured", taken);
    show_requires(p);
    show_texts("loaded", &p->modules);
    line("prefix", p->prefix);
    str_addf(&files, "%zu: %zu program, %zu module%s, %zu librar%s", p->objects.n, count[PIN_PROGRAM],
             count[PIN_MODULE], plural(count[PIN_MODULE]), count[PIN_LIBRARY],
             count[PIN_LIBRARY] == 1 ? "y" : "ies");
    line("files", files.s);
    for (size_t i = 0; i < p->objects.n; i++)
        if (p->objects.v[i].path)
            show_gpu(&p->objects.v[i]);
    for (size_t i = 0; i < p->variables.n; i++) {
        const struct pin_variable *v = &p->variables.v[i];
        char *t = v->how == PIN_UNSET ? xasprintf("%s is unset", v->name)
                                      : xasprintf("%s%s%s", v->name,
                                                  v->how == PIN_PREPEND  ? " begins with "
                                                  : v->how == PIN_APPEND ? " ends with "
                                                                         : "=",
                                                  v->value);

        line("variable", t);
        free(t);
    }
    line("digest", p->digest);
    str_release(&files);
    free(taken);
}

static void show_libs(const struct pin *p)
{
    for (size_t i = 0; i < p->objects.n; i++) {
        const struct pin_object *o = &p->objects.v[i];
        char *name = esc_terminal(o->soname ? o->soname : path_base(o->path));
        char *path = esc_terminal(o->path ? o->path : "not found");

        printf("%s => %s (%s)\n", name, path, name_of(why_names, o->why));
        free(name);
        free(path);
    }
}

static void show_variants(const struct pin *whole, const struct pin *p)
{
    for (size_t i = 0; i < pin_bodies(whole) && whole->variants.n; i++) {
        const struct pin *b = pin_body(whole, i);
        char *t = xasprintf("%s%s: %s, %zu files", b->name ? b->name : "(no name)", b == p ? " (this one)" : "",
                            b->objects.v[0].path, b->objects.n);

        line("variant", t);
        free(t);
    }
}

int command_show(const struct options *o)
{
    const struct pin *p;
    struct pin whole;
    int status;

    if (o->args.n != 2)
        return cli_error(CODE_USAGE, "show: name one pin");
    if ((status = read_body(o, o->args.v[1], &whole, &p)))
        return status;
    if (o->libs) {
        show_libs(p);
    } else {
        show_summary(p);
        show_variants(&whole, p);
    }
    pin_release(&whole);
    return 0;
}
