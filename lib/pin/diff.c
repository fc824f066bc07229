/* Two pins side by side: an environment and the one that is to follow it. */
#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

static void differ(struct pin_differences *l, const char *rule, const char *object, const char *a, const char *b)
{
    struct pin_difference *d;

    if (str_eq(a, b) || ((!a || !*a) && (!b || !*b)))
        return;
    d = VEC_ADD(l);
    d->rule = rule;
    d->object = xstrdup(object);
    if (!a || !*a)
        d->text = xasprintf("only in the second: '%s'", b);
    else if (!b || !*b)
        d->text = xasprintf("only in the first: '%s'", a);
    else
        d->text = xasprintf("'%s' became '%s'", a, b);
}

/* ---- variables ---- */

static const struct pin_variable *variable(const struct pin *p, const char *name)
{
    for (size_t i = 0; i < p->variables.n; i++)
        if (str_eq(p->variables.v[i].name, name))
            return &p->variables.v[i];
    return NULL;
}

static char *words(const struct pin_variable *v)
{
    if (!v)
        return NULL;
    if (v->how == PIN_UNSET)
        return xstrdup("(unset)");
    return v->how == PIN_SET ? xstrdup(*v->value ? v->value : "(empty)")
                             : xasprintf("%s %s", name_of(pin_how_names, v->how), v->value);
}

static void one_variable(const char *name, const struct pin_variable *a, const struct pin_variable *b,
                         struct pin_differences *ret)
{
    char *x = words(a), *y = words(b);

    differ(ret, "variable", name, x, y);
    free(x);
    free(y);
}

static void variables(const struct pin *a, const struct pin *b, struct pin_differences *ret)
{
    for (size_t i = 0; i < a->variables.n; i++)
        one_variable(a->variables.v[i].name, &a->variables.v[i], variable(b, a->variables.v[i].name), ret);
    for (size_t i = 0; i < b->variables.n; i++)
        if (!variable(a, b->variables.v[i].name))
            one_variable(b->variables.v[i].name, NULL, &b->variables.v[i], ret);
}

/* ---- lists and single values ---- */

static void texts(const char *rule, const struct strv *a, const struct strv *b, struct pin_differences *ret)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strv_has(b, a->v[i]))
            differ(ret, rule, a->v[i], a->v[i], NULL);
    for (size_t i = 0; i < b->n; i++)
        if (!strv_has(a, b->v[i]))
            differ(ret, rule, b->v[i], NULL, b->v[i]);
}

static void number(const char *object, int64_t a, int64_t b, struct pin_differences *ret)
{
    char x[32], y[32];

    snprintf(x, sizeof(x), "%lld", (long long)a);
    snprintf(y, sizeof(y), "%lld", (long long)b);
    differ(ret, "limit", object, a == CONF_UNSET ? NULL : x, b == CONF_UNSET ? NULL : y);
}

static void values(const struct pin *a, const struct pin *b, struct pin_differences *ret)
{
    differ(ret, "prefix", "prefix", a->prefix, b->prefix);
    differ(ret, "requires", "glibc", a->requires.glibc, b->requires.glibc);
    differ(ret, "requires", "glibcxx", a->requires.glibcxx, b->requires.glibcxx);
    differ(ret, "requires", "cuda_runtime", a->requires.cuda_runtime, b->requires.cuda_runtime);
    differ(ret, "requires", "driver", a->requires.driver, b->requires.driver);
    differ(ret, "requires", "cpu_isa", a->requires.cpu_isa, b->requires.cpu_isa);
    differ(ret, "loader", "path", a->loader.path, b->loader.path);
    differ(ret, "loader", "build_id", a->loader.build_id, b->loader.build_id);
    number("memlock", a->limits.memlock, b->limits.memlock, ret);
    number("open_files", a->limits.open_files, b->limits.open_files, ret);
}

/* ---- objects ---- */

/* By SONAME for libraries; programs by their place, modules by file name. */
static const struct pin_object *object(const struct pin *p, const struct pin_object *o, size_t i)
{
    if (i == 0)
        return &p->objects.v[0];
    for (size_t k = 1; k < p->objects.n; k++) {
        const struct pin_object *x = &p->objects.v[k];

        if (x->role == o->role && (o->role == PIN_LIBRARY ? str_eq(x->soname, o->soname)
                                                          : x->path && o->path && str_eq(path_base(x->path), path_base(o->path))))
            return x;
    }
    return NULL;
}

static void add_targets(struct str *t, const char *what, const struct strv *l)
{
    if (l->n)
        str_addf(t, "%s%s", t->len ? "; " : "", what);
    for (size_t i = 0; i < l->n; i++)
        str_addf(t, " %s", l->v[i]);
}

static char *code(const struct pin_object *o)
{
    struct str t = { 0 };

    for (size_t i = 0; i < o->gpu.n; i++) {
        const struct pin_gpu *g = &o->gpu.v[i];

        str_addf(&t, "%s%lld x", i ? "; " : "", (long long)g->containers);
        for (size_t k = 0; k < g->sass.n; k++)
            str_addf(&t, " %s", g->sass.v[k]);
        for (size_t k = 0; k < g->ptx.n; k++)
            str_addf(&t, " %s", g->ptx.v[k]);
        if (g->toolkit)
            str_addf(&t, " (toolkit %s)", g->toolkit);
    }
    add_targets(&t, "HIP", &o->hip);
    add_targets(&t, "OpenMP", &o->openmp);
    return str_take(&t);
}

static const char *build(const struct pin_object *o)
{
    return o->digest ? o->digest : o->build_id;
}

static void one_object(const struct pin_object *a, const struct pin_object *b, struct pin_differences *ret)
{
    const char *name = a->soname ? a->soname : a->path;
    char *x = code(a), *y = code(b);

    differ(ret, "file", name, a->path ? a->path : "(not found)", b->path ? b->path : "(not found)");
    if (a->path && b->path)
        differ(ret, "content", name, build(a), build(b));
    differ(ret, "gpu", name, x, y);
    free(x);
    free(y);
}

static void objects(const struct pin *a, const struct pin *b, struct pin_differences *ret)
{
    for (size_t i = 0; i < a->objects.n; i++) {
        const struct pin_object *o = &a->objects.v[i], *other = object(b, o, i);

        if (other)
            one_object(o, other, ret);
        else
            differ(ret, "file", o->soname ? o->soname : o->path, o->path ? o->path : "(not found)", NULL);
    }
    for (size_t i = 1; i < b->objects.n; i++) {
        const struct pin_object *o = &b->objects.v[i];

        if (!object(a, o, i))
            differ(ret, "file", o->soname ? o->soname : o->path, NULL, o->path ? o->path : "(not found)");
    }
}

void pin_diff(const struct pin *a, const struct pin *b, struct pin_differences *ret)
{
    values(a, b, ret);
    texts("module", &a->modules, &b->modules, ret);
    variables(a, b, ret);
    objects(a, b, ret);
}
