/* The layers of a spec: each is held against the rows by itself, so that an error names its own file and line. */
#include "config.h"
#include "job/job.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct load {
    const struct spec_source *source;
    struct conf *all;            /* the merged files */
    char *base_datasets, *base_pipeline, *base_program, *base_script, *base_hook, *base_image, *base_pin, *base_template; /* folders of the layers that said so */
    struct strv over;            /* sbatch options that a layer above SBATCH_* names */
    struct conf_map params_from; /* for the spec */
};

/* ---- one layer ---- */

static int check_sbatch(const struct conf_map *m, const char *file, struct err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct conf_pair *p = &m->v[i];
        bool flag = p->kind == CONF_KIND_BOOL;
        int rc;

        if (flag && str_eq(p->value, "false") && sbatch_option_find(p->name))
            continue;
        if (p->kind == CONF_KIND_LIST)
            rc = err_set(err, CODE_USAGE, "'%s' is a list; write sbatch's own text in quotes", p->name);
        else
            rc = sbatch_option_check(p->name, flag ? NULL : p->value, err);
        if (rc && file && p->line > 0)
            return err_prefix(err, "%s:%d", file, p->line);
        if (rc)
            return err_prefix(err, "%s", file ? file : "sbatch");
    }
    return 0;
}

static void base_of(char **base, const char *dir, bool said)
{
    if (said) {
        free(*base);
        *base = xstrdup(dir);
    }
}

static void note_params(struct load *l, const struct conf_map *params, const char *file, bool over)
{
    for (size_t i = 0; i < params->n; i++) {
        char *from = over ? xstrdup(file) : xasprintf("%s:%d", file, params->v[i].line);

        conf_map_set(&l->params_from, params->v[i].name, from, CONF_KIND_TEXT);
        free(from);
    }
}

/* KEY="VALUE" for conf_assign; owned. */
static char *text_assignment(const char *key, const char *value)
{
    struct str t = { 0 };

    str_addf(&t, "%s=\"", key);
    for (const char *p = value; *p; p++) {
        if (*p == '"' || *p == '\\')
            str_add(&t, "\\");
        str_addn(&t, p, 1);
    }
    str_add(&t, "\"");
    return str_take(&t);
}

/* ---- a script of the user's own ---- */

static int assign(struct conf *c, const char *key, const char *value, struct err *err)
{
    char *text = value ? text_assignment(key, value) : xasprintf("%s=true", key);
    int rc = conf_assign(c, text, err);

    free(text);
    return rc;
}

/* Its directives, as a layer of their own. */
static int add_script(struct load *l, const char *path, struct err *err)
{
    struct conf *c = conf_new(path);
    struct wrapped w = { 0 };
    char *base = xstrdup(path_base(path)), *name;
    int rc = wrapped_load(path, &w, err);

    if (strrchr(base, '.') && strrchr(base, '.') != base)
        *strrchr(base, '.') = 0;
    name = spec_name_of(w.job_name ? w.job_name : base);
    if (rc == 0)
        rc = assign(c, "name", name, err);
    for (size_t i = 0; i < w.directives.n && rc == 0; i++) {
        char *key = xasprintf("sbatch.%s", w.directives.v[i].option->name);

        rc = assign(c, key, w.directives.v[i].value, err);
        free(key);
    }
    if (rc == 0)
        conf_merge(l->all, c);
    conf_free(c);
    wrapped_release(&w);
    free(base);
    free(name);
    return rc;
}

static int add_script_of(struct load *l, const struct spec *s, const char *dir, struct err *err)
{
    char *path;
    int rc;

    if (!s->script.n || l->source->alone || l->source->script)
        return 0;
    path = path_join(dir, s->script.v[0]);
    rc = add_script(l, path, err);
    free(path);
    return rc;
}

/* file: for messages; dir: what its relative paths are relative to. */
static int add_layer(struct load *l, const struct conf *c, const char *file, const char *dir, bool over,
                     struct err *err)
{
    struct spec s = { 0 };
    int rc = conf_bind(c, spec_rows, &s, err);

    if (rc == 0)
        rc = check_sbatch(&s.sbatch, file, err);
    if (rc == 0)
        rc = add_script_of(l, &s, dir, err);
    if (rc == 0) {
        base_of(&l->base_script, dir, s.script.n);
        base_of(&l->base_hook, dir, s.on_end.command.n);
        base_of(&l->base_image, dir, s.container.image);
        base_of(&l->base_datasets, dir, s.datasets);
        base_of(&l->base_pipeline, dir, s.pipeline);
        base_of(&l->base_program, dir, s.program.n);
        base_of(&l->base_pin, dir, s.pin);
        base_of(&l->base_template, dir, s.template);
        for (size_t i = 0; over && i < s.sbatch.n; i++)
            strv_add(&l->over, s.sbatch.v[i].name);
        note_params(l, &s.params, file, over);
        conf_merge(l->all, c);
    }
    spec_release(&s);
    return rc;
}

static int add_file(struct load *l, const char *path, bool must, struct err *err)
{
    struct conf *c;
    char *whole, *dir;
    int rc;

    if (!must && access(path, F_OK))
        return 0;
    c = conf_load(path, err);
    if (!c) {
        if (err && err->code != CODE_USAGE && must)
            err->code = CODE_USAGE;
        return -1;
    }
    whole = path_absolute(path);
    dir = path_dir(whole);
    rc = add_layer(l, c, path, dir, false, err);
    free(whole);
    free(dir);
    conf_free(c);
    return rc;
}

/* ---- assignments ---- */

static const struct conf_row *row_of(const struct conf_row *rows, const char *key)
{
    size_t n = strcspn(key, ".");

    for (; rows->name; rows++)
        if (strlen(rows->name) == n && memcmp(rows->name, key, n) == 0)
            return key[n] && rows->sub ? row_of(rows->sub, key + n + 1) : rows;
    return NULL;
}

/* Texts need no quotes in an assignment: they are put in. */
static char *typed(const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    const struct conf_row *row;
    char *key, *text = NULL;

    if (!equals || equals[1] == '"')
        return xstrdup(assignment);
    key = xstrndup(assignment, (size_t)(equals - assignment));
    row = row_of(spec_rows, key);
    if (row && (row->type == CONF_TEXT || row->type == CONF_CHOICE))
        text = text_assignment(key, equals + 1);
    free(key);
    return text ? text : xstrdup(assignment);
}

/* "NAME:1: text" of a layer that is no file becomes "NAME: text". */
static void cut_line(const char *name, struct err *err)
{
    size_t n = strlen(name), digits;

    if (!err || !str_starts(err->text, name) || err->text[n] != ':')
        return;
    digits = strspn(err->text + n + 1, "0123456789");
    if (digits && err->text[n + 1 + digits] == ':')
        memmove(err->text + n, err->text + n + 1 + digits, strlen(err->text + n + 1 + digits) + 1);
}

static int add_assignment(struct load *l, const char *assignment, const char *name, struct err *err)
{
    struct conf *c = conf_new(name);
    char *text = typed(assignment), *dir = path_absolute(".");
    int rc = conf_assign(c, text, err);

    if (rc)
        err_prefix(err, "%s", name);
    else
        rc = add_layer(l, c, name, dir, true, err);
    if (rc)
        cut_line(name, err);
    conf_free(c);
    free(text);
    free(dir);
    return rc;
}

/* Keys that RECON_* sets: the key in capitals, '.' and '-' as '_'. RECON_PIN is none: a running job has it. */
static const char *const env_keys[] = {
    "name", "datasets", "pipeline", "program", "device", "max_running", "max_tasks", "datasets_per_task",
    "retry.node_unfit", "submit.via", "template", "env",
};

static void env_name(const char *prefix, const char *key, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "%s%s", prefix, key);

    for (size_t i = 0; i < n && i + 1 < size; i++)
        ret[i] = strchr(".-", ret[i]) ? '_' : (char)toupper((unsigned char)ret[i]);
}

static int add_one_env(struct load *l, const char *prefix, const char *key, struct err *err)
{
    char name[80], label[100], *text;
    const char *value;
    int rc;

    env_name(prefix, key, name, sizeof(name));
    value = env_get(l->source->env, name);
    if (!value)
        return 0;
    snprintf(label, sizeof(label), "environment %s", name);
    text = xasprintf("%s%s=%s", str_eq(prefix, "recon_") ? "" : "sbatch.", key, value);
    rc = add_assignment(l, text, label, err);
    free(text);
    return rc;
}

static int add_env(struct load *l, struct err *err)
{
    for (size_t i = 0; i < COUNT(env_keys); i++)
        if (add_one_env(l, "recon_", env_keys[i], err))
            return -1;
    for (const struct sbatch_option *o = sbatch_options; o->name; o++)
        if (add_one_env(l, "recon_sbatch_", o->name, err))
            return -1;
    return 0;
}

static int add_set(struct load *l, struct err *err)
{
    for (size_t i = 0; l->source->set && i < l->source->set->n; i++) {
        const char *a = l->source->set->v[i];
        char *name = xasprintf("--set '%s'", a);
        int rc = add_assignment(l, a, name, err);

        free(name);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- sbatch's own variables and options ---- */

/* A flag's variable counts when it is empty, "yes" or a number but 0 (slurm's own rule). */
static bool flag_on(const char *value)
{
    char *end;

    return !*value || strcasecmp(value, "yes") == 0 || (strtol(value, &end, 10) && !*end);
}

static void add_sbatch_env(const struct load *l, struct spec *s, struct strv *ignored)
{
    for (const struct sbatch_option *o = sbatch_options; o->name; o++) {
        const char *value = o->env ? env_get(l->source->env, o->env) : NULL;
        struct err why = { 0 };

        if (!value || strv_has(&l->over, o->name))
            continue;
        if (o->arg == ARG_NONE) {
            conf_map_set(&s->sbatch, o->name, flag_on(value) ? "true" : "false", CONF_KIND_BOOL);
        } else if (o->arg == ARG_MAYBE && !*value) {
            conf_map_set(&s->sbatch, o->name, "true", CONF_KIND_BOOL);
        } else if (sbatch_option_check(o->name, value, &why) == 0) {
            conf_map_set(&s->sbatch, o->name, value, CONF_KIND_TEXT);
        } else if (ignored) {
            strv_addf(ignored, "%s is set to '%s' and not taken: %s", o->env, value, why.text);
        }
    }
}

static int add_options(const struct conf_map *options, struct spec *s, struct err *err)
{
    for (size_t i = 0; options && i < options->n; i++) {
        const struct conf_pair *p = &options->v[i];

        if (sbatch_option_check(p->name, p->kind == CONF_KIND_BOOL ? NULL : p->value, err))
            return -1;
        conf_map_set(&s->sbatch, p->name, p->value, p->kind);
    }
    return 0;
}

/* ---- all ---- */

static void make_absolute(char **path, const char *base)
{
    char *joined, *whole;

    if (!*path || !base)
        return;
    joined = path_join(base, *path);
    whole = path_absolute(joined);
    free(*path);
    free(joined);
    *path = whole;
}

static void make_absolute_named(char **path, const char *base) /* a name without a slash stays a name if no file has it */
{
    char *joined;

    if (!*path || !base)
        return;
    joined = path_join(base, *path);
    if (strchr(*path, '/') || access(joined, F_OK) == 0)
        make_absolute(path, base);
    free(joined);
}

static void make_paths(struct load *l, struct spec *s)
{
    make_absolute(&s->datasets, l->base_datasets);
    make_absolute(&s->pin, l->base_pin);
    make_absolute_named(&s->pipeline, l->base_pipeline);
    make_absolute_named(&s->template, l->base_template);
    if (s->program.n && strchr(s->program.v[0], '/'))
        make_absolute(&s->program.v[0], l->base_program);
    if (s->script.n)
        make_absolute(&s->script.v[0], l->base_script);
    if (s->on_end.command.n && strchr(s->on_end.command.v[0], '/'))
        make_absolute(&s->on_end.command.v[0], l->base_hook);
    if (container_is_file(&s->container))
        make_absolute(&s->container.image, l->base_image);
}

static int add_layers(struct load *l, struct err *err)
{
    const struct spec_source *s = l->source;
    const char *home = env_get(s->env, "HOME");
    char *path = xasprintf("%s/etc/recon/recon.conf", s->root ? s->root : "");
    int rc = s->alone ? 0 : add_file(l, path, false, err);

    free(path);
    if (rc == 0 && !s->alone && home && *home) {
        path = xasprintf("%s/.config/recon/recon.conf", home);
        rc = add_file(l, path, false, err);
        free(path);
    }
    if (rc == 0 && !s->alone)
        rc = add_file(l, "recon.conf", false, err);
    if (rc == 0 && s->file)
        rc = add_file(l, s->file, true, err);
    if (rc == 0 && s->script)
        rc = add_script(l, s->script->v[0], err);
    if (rc == 0 && !s->alone)
        rc = add_env(l, err);
    return rc ? rc : add_set(l, err);
}

static void drop_false(struct conf_map *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->n; i++) {
        if (m->v[i].kind == CONF_KIND_BOOL && str_eq(m->v[i].value, "false")) {
            free(m->v[i].name);
            free(m->v[i].value);
        } else {
            m->v[kept++] = m->v[i];
        }
    }
    m->n = kept;
}

int spec_load(const struct spec_source *source, struct spec *ret, struct strv *ignored, struct err *err)
{
    struct load l = { .source = source, .all = conf_new("the layers of the spec") };
    struct spec s = { 0 };
    int rc = add_layers(&l, err);

    conf_defaults(spec_rows, &s);
    if (rc == 0) {
        spec_release(&s);
        rc = conf_bind(l.all, spec_rows, &s, err);
    }
    if (rc == 0) {
        if (!source->alone)
            add_sbatch_env(&l, &s, ignored);
        rc = add_options(source->options, &s, err);
    }
    if (rc == 0) {
        drop_false(&s.sbatch);
        if (source->script) {
            strv_release(&s.script);
            strv_copy(&s.script, source->script);
            base_of(&l.base_script, ".", true);
        }
        make_paths(&l, &s);
        s.params_from = l.params_from;
        *ret = s;
    } else {
        spec_release(&s);
        conf_map_release(&l.params_from);
    }
    conf_free(l.all);
    strv_release(&l.over);
    free(l.base_datasets);
    free(l.base_pipeline);
    free(l.base_program);
    free(l.base_script);
    free(l.base_hook);
    free(l.base_image);
    free(l.base_pin);
    free(l.base_template);
    return rc;
}
