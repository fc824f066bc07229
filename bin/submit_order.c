/* What is wanted, settled before anything is written: spec, datasets, template, device, program or pipeline, pin. */
#include "config.h"
#include "recon-submit.h"
#include "pipe/pipe.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* ---- spec ---- */

static void take_program(struct order *x)
{
    const struct strv *p = &x->o->program;

    if (!p->n || x->o->wrap_script)
        return;
    strv_release(&x->spec.program);
    strv_copy(&x->spec.program, p);
    if (strchr(p->v[0], '/')) {
        free(x->spec.program.v[0]);
        x->spec.program.v[0] = path_absolute(p->v[0]);
    }
    if (!x->spec.name)
        x->spec.name = spec_name_of(p->v[0]);
}

int order_read(struct order *x, struct err *err)
{
    struct strv set = { 0 }, ignored = { 0 }, script = { 0 };
    struct spec_source source = { .file = x->o->job_conf, .env = environ, .set = &set, .options = &x->o->sbatch };
    int rc;

    strv_copy(&set, &x->o->set);
    if (x->o->datasets)
        strv_addf(&set, "datasets=%s", x->o->datasets);
    if (x->o->wrap_script) {
        strv_add(&script, x->o->wrap_script);
        for (size_t i = 0; i < x->o->program.n; i++)
            strv_add(&script, x->o->program.v[i]);
        source.script = &script;
    }
    rc = spec_load(&source, &x->spec, &ignored, err);
    for (size_t i = 0; rc == 0 && i < ignored.n; i++)
        cli_warn("%s", ignored.v[i]);
    if (rc == 0) {
        take_program(x);
        if (!x->spec.name && x->spec.pipeline)
            x->spec.name = spec_name_of(x->spec.pipeline);
        if (x->o->datasets && !x->o->job_conf && !x->spec.program.n && !x->spec.pipeline && !x->spec.script.n)
            rc = err_set(err, CODE_USAGE, "no program after --: recon-submit --datasets '%s' -- PROGRAM ARG...", x->o->datasets);
        else
            rc = spec_check(&x->spec, err);
    } else {
        conf_defaults(spec_rows, &x->spec);
    }
    strv_release(&ignored);
    strv_release(&script);
    strv_release(&set);
    return rc;
}

/* ---- template and pipeline ---- */

/* A file that decides what runs: trusted, read whole. */
static int read_trusted(const struct order *x, const char *path, struct str *ret, struct err *err)
{
    uid_t *trusted = spec_trusted(&x->spec);
    int rc = file_trusted(path, trusted, err);

    free(trusted);
    return rc ? rc : file_read(path, FILE_MAX_DEFAULT, ret, err);
}

static int find_template(struct order *x, struct err *err)
{
    struct spec_place place = { x->cwd, getenv("HOME"), NULL };
    char *shipped;

    x->template_path = spec_find(&place, "templates", x->spec.template ? x->spec.template : "default", ".sbatch", err);
    if (!x->template_path || read_trusted(x, x->template_path, &x->template_text, err))
        return -1;
    if (text_drop_returns(&x->template_text))
        cli_warn("template '%s' has DOS line ends, which are left out of the script", x->template_path);
    shipped = path_part("share/recon/templates/");
    if (!str_starts(x->template_path, shipped)) { /* --resume may be called from another folder */
        free(x->spec.template);
        x->spec.template = xstrdup(x->template_path);
    }
    free(shipped);
    return 0;
}

/* Kernels and parameters are held against the modules of the host: what is wrong there is known before it is queued. */
static int check_plan(const struct pipeline *p, struct err *err)
{
    struct modules m = { 0 };
    struct device d = { 0 };
    struct plan plan = { 0 };
    int rc = modules_load(NULL, &m, err);

    if (rc == 0 && modules_named(&m, "cpu") && modules_named(&m, "cpu")->m) {
        rc = device_choose(&m, "cpu", &d, err) || plan_make(p, &m, &d, &plan, err) ? -1 : 0;
        plan_release(&plan);
    }
    modules_release(&m);
    return rc;
}

/* The value in the type that job.conf gave it, so that the run's copy reads as the user wrote. */
static void keep_kind(struct pipeline *p, const struct conf_pair *pair)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        size_t n = strlen(p->steps.v[i].name);
        struct conf_map *params = &p->steps.v[i].params;

        if (strncmp(pair->name, p->steps.v[i].name, n) || pair->name[n] != '.')
            continue;
        for (size_t k = 0; k < params->n; k++)
            if (str_eq(params->v[k].name, pair->name + n + 1))
                params->v[k].kind = pair->kind;
    }
}

/* Each column that names a parameter, with its first value: a wrong name is known before it is queued. */
static int check_columns(const struct order *x, struct pipeline *p, struct err *err)
{
    struct strv seen = { 0 };
    int rc = 0;

    for (size_t i = 0; i < x->datasets.n && rc == 0; i++) {
        const struct dataset *d = &x->datasets.v[i];

        for (size_t k = 0; k < d->n_columns && rc == 0; k++) {
            const char *key = d->columns[k].key;

            if (!strchr(key, '.') || strv_has(&seen, key))
                continue;
            strv_add(&seen, key);
            rc = pipeline_set_as(p, key, d->columns[k].value, "column", err);
        }
    }
    if (rc == 0 && seen.n)
        rc = check_plan(p, err);
    strv_release(&seen);
    return rc ? err_prefix(err, "%s", x->spec.datasets) : 0;
}

static int find_pipeline(struct order *x, struct err *err)
{
    struct spec_place place = { x->cwd, getenv("HOME"), NULL };
    struct pipeline p;
    int rc = 0;

    x->pipeline = spec_find(&place, "pipelines", x->spec.pipeline, ".conf", err);
    if (!x->pipeline || read_trusted(x, x->pipeline, &x->pipeline_text, err) || pipeline_load(x->pipeline, &p, err))
        return -1;
    for (size_t i = 0; i < x->spec.params.n && rc == 0; i++) {
        const struct conf_pair *pair = &x->spec.params.v[i];
        const char *from = conf_map_get(&x->spec.params_from, pair->name);

        rc = pipeline_set(&p, pair->name, pair->value, from ? from : "params", err);
        keep_kind(&p, pair);
    }
    if (rc == 0)
        rc = check_plan(&p, err);
    if (rc == 0 && x->spec.params.n) { /* the run's copy says all that the steps get */
        str_clear(&x->pipeline_text);
        conf_write(pipeline_rows, &p, &x->pipeline_text);
    }
    if (rc == 0)
        rc = check_columns(x, &p, err);
    pipeline_release(&p);
    return rc;
}

/* ---- program ---- */

static int find_program(struct order *x, struct err *err)
{
    struct strv *argv = &x->spec.program;
    char *path;

    if (x->spec.container.kind > CONTAINER_NONE) { /* it is looked for inside */
        strv_copy(&x->argv, argv);
        return 0;
    }
    if (strchr(argv->v[0], '/') && cli_executable(argv->v[0], err))
        return -1;
    path = cli_search(argv->v[0], getenv("PATH"));
    if (!path)
        return err_set(err, CODE_NOTFOUND, "program '%s' is nowhere in PATH", argv->v[0]);
    free(argv->v[0]);
    argv->v[0] = path;
    strv_copy(&x->argv, argv);
    return 0;
}

/* ---- a script of the user's own ---- */

/* Each column becomes a variable: two of one name would be one. */
static int check_variables(const struct strv *columns, struct err *err)
{
    struct strv names = { 0 };
    int rc = 0;

    for (size_t i = 0; i < columns->n && rc == 0; i++) {
        char *name = dataset_variable(columns->v[i]);

        if (strv_has(&names, name))
            rc = err_set(err, CODE_USAGE, "column '%s' and another both become variable %s; rename one", columns->v[i], name);
        strv_add(&names, name);
        free(name);
    }
    strv_release(&names);
    return rc;
}

/* What the launcher starts: the interpreter, and the run's own copy. */
int order_script(struct order *x, const char *path, struct err *err)
{
    char *copy = path_join(x->path, WRAPPED_COPY);

    if (wrapped_load(path, &x->wrapped, err) == 0) {
        strv_copy(&x->argv, &x->wrapped.interpreter);
        strv_add(&x->argv, copy);
        for (size_t i = 1; i < x->spec.script.n; i++)
            strv_add(&x->argv, x->spec.script.v[i]);
    }
    free(copy);
    return x->argv.n ? 0 : -1;
}

static int find_script(struct order *x, struct err *err)
{
    const char *path = x->spec.script.v[0];
    uid_t *trusted = spec_trusted(&x->spec);
    struct strv columns = { 0 };
    int rc = file_trusted(path, trusted, err);

    free(trusted);
    order_name(x);
    datasets_columns(&x->datasets, &columns);
    if (rc == 0)
        rc = check_variables(&columns, err) || order_script(x, path, err) || cli_executable(x->argv.v[0], err) ? -1 : 0;
    for (size_t i = 0; i < x->wrapped.notes.n && rc == 0; i++)
        cli_warn("%s", x->wrapped.notes.v[i]);
    strv_release(&columns);
    return rc;
}

/* What a shell or a pattern writes in braces is no placeholder: "${HOME}", "{a,b}", "{ print }". */
static bool like_column(const char *arg, const char *place, const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    return !name[n] && (isalpha((unsigned char)*name) || *name == '_') && (place == arg || place[-1] != '$');
}

static int unknown_hole(const struct strv *args, const struct strv *columns, const char *name, struct err *err)
{
    struct strv known = { 0 };
    const char *near;

    strv_add(&known, "dataset");
    strv_add(&known, "out");
    for (size_t i = 0; i < columns->n; i++)
        strv_add(&known, columns->v[i]);
    near = str_nearest(name, known.v, sizeof(*known.v), known.n);
    err_set(err, CODE_USAGE, "an argument of '%s' asks for '{%s}', a column that no dataset has%s%s%s", args->v[0], name, near ? "; the nearest is '{" : "; if the program shall get those words, put its call into a script",
            near ? near : "", near ? "}'" : "");
    strv_release(&known);
    return -1;
}

int order_find_done_by(struct order *x, const struct strv *columns, struct err *err)
{
    const struct strv *args = x->spec.script.n ? &x->spec.script : &x->spec.program;
    bool each = false, out = x->spec.script.n > 0; /* a script has its folder in a variable */
    int rc = 0;

    for (size_t i = 1; i < args->n && rc == 0; i++) {
        const char *arg = args->v[i], *s = arg, *place;
        char *name;

        while (rc == 0 && (place = next_hole(s, &name))) {
            s = place + strlen(name) + 2;
            if (str_eq(name, "out"))
                out = true;
            else if (str_eq(name, "dataset") || strv_has(columns, name))
                each = true;
            else if (like_column(arg, place, name) && x->run) /* an old run was taken as it is */
                each = true;
            else if (like_column(arg, place, name))
                rc = unknown_hole(args, columns, name, err);
            free(name);
        }
    }
    x->done_by = x->spec.pipeline || out ? DONE_BY_RESULT : each ? DONE_BY_EVENT : DONE_BY_TASK;
    return rc;
}

/* ---- device ---- */

static int settle_device(struct order *x, struct err *err)
{
    char *module, *relative;
    int rc = 0;

    if (x->spec.device == DEVICE_AUTO)
        x->spec.device = spec_asks_gpu(&x->spec) ? DEVICE_CUDA : DEVICE_CPU;
    if (!x->spec.pipeline)
        return 0;
    relative = xasprintf("lib/recon/%s.so", name_of(device_names, x->spec.device));
    module = path_part(relative);
    if (access(module, R_OK))
        rc = err_sys(err, CODE_JOB, "device '%s' wants kernel module '%s', which cannot be read",
                     name_of(device_names, x->spec.device), module);
    free(module);
    free(relative);
    return rc;
}

/* ---- pin ---- */

static void add_variable(struct pin *p, const char *name, const char *value)
{
    struct pin_variable *v = NULL;

    for (size_t i = 0; i < p->variables.n; i++)
        if (str_eq(p->variables.v[i].name, name))
            v = &p->variables.v[i];
    if (!v) {
        v = VEC_ADD(&p->variables);
        v->name = xstrdup(name);
    }
    free(v->value);
    v->how = PIN_SET;
    v->value = xstrdup(value);
}

/* What the spec's env says over a pin: NAME=VALUE always, NAME where the pin does not know it. */
static void add_variables(struct order *x)
{
    for (size_t i = 0; i < x->spec.env.n; i++) {
        const char *entry = x->spec.env.v[i], *value = strchr(entry, '=');
        char *name = xstrndup(entry, strcspn(entry, "="));
        bool known = false;

        for (size_t k = 0; k < x->pin.variables.n; k++)
            known = known || str_eq(x->pin.variables.v[k].name, name);
        if (value)
            value++;
        else if (!known)
            value = getenv(name);
        if (value) {
            add_variable(&x->pin, name, value);
            x->pin_changed = true;
        }
        free(name);
    }
}

/* In a container the program is not this host's: variables are pinned with the launcher alone, which runs inside; the
 * program's libraries by a pin that was captured there. */
static int capture_variables(struct order *x, struct err *err)
{
    struct pin_request r = { .env = environ, .cwd = x->cwd };
    char *launcher = path_part("bin/recon-launch");
    int rc;

    strv_add(&r.programs, launcher);
    free(launcher);
    for (size_t i = 0; i < x->spec.env.n; i++)
        if (!strchr(x->spec.env.v[i], '='))
            strv_add(&r.variables, x->spec.env.v[i]);
    rc = pin_capture(&r, &x->pin, NULL, err);
    x->pin_changed = true;
    strv_release(&r.programs);
    strv_release(&r.variables);
    return rc ? err_prefix(err, "cannot pin the environment") : 0;
}

static int capture(struct order *x, struct err *err)
{
    struct pin_request r = { .env = environ, .cwd = x->cwd };
    char *path, *relative, *memory;
    int rc;

    if (x->spec.pipeline) {
        strv_add(&r.programs, x->argv.v[0]);
        for (int d = DEVICE_CPU; d <= DEVICE_CUDA; d++) {
            if (d != DEVICE_CPU && d != x->spec.device)
                continue;
            relative = xasprintf("lib/recon/%s.so", name_of(device_names, d));
            path = path_part(relative);
            strv_add(&r.programs, path);
            free(path);
            free(relative);
        }
    } else {
        path = cli_interpreter(x->argv.v[0], getenv("PATH"));
        strv_add(&r.programs, path ? path : x->argv.v[0]);
        free(path);
    }
    for (size_t i = 0; i < x->spec.env.n; i++)
        if (!strchr(x->spec.env.v[i], '='))
            strv_add(&r.variables, x->spec.env.v[i]);
    r.memory = memory = cli_cache("digests");
    rc = pin_capture(&r, &x->pin, NULL, err);
    free(memory);
    x->pin_changed = true;
    strv_release(&r.programs);
    strv_release(&r.variables);
    return rc ? err_prefix(err, "cannot pin the environment") : 0;
}

static int settle_pin(struct order *x, struct err *err)
{
    uid_t *trusted;
    int rc;

    if (x->spec.pin) {
        trusted = spec_trusted(&x->spec);
        rc = file_trusted(x->spec.pin, trusted, err) || pin_read(x->spec.pin, &x->pin, err) ? -1 : 0;
        free(trusted);
    } else {
        rc = x->spec.container.kind <= CONTAINER_NONE ? capture(x, err) : capture_variables(x, err);
    }
    if (rc == 0)
        rc = judge_here(x, !x->spec.pin, err);
    if (rc == 0)
        add_variables(x);
    return rc;
}

/* ---- all ---- */

static int load_datasets(struct order *x, struct err *err)
{
    struct strv columns = { 0 };
    int rc;

    if (datasets_load(x->spec.datasets, &x->datasets, err))
        return -1;
    datasets_columns(&x->datasets, &columns);
    rc = order_find_done_by(x, &columns, err);
    strv_release(&columns);
    x->n_todo = x->datasets.n;
    x->todo = xcalloc(x->n_todo, sizeof(*x->todo));
    for (uint64_t i = 0; i < x->n_todo; i++)
        x->todo[i] = (uint32_t)i;
    return rc;
}

int order_settle(struct order *x, struct err *err)
{
    char *runner;

    x->cwd = getcwd(NULL, 0);
    if (!x->cwd)
        return err_sys(err, CODE_IO, "the working directory is not there");
    if (load_datasets(x, err) || find_template(x, err) || container_settle(x, err) || settle_device(x, err))
        return -1;
    if (x->spec.pipeline) {
        if (find_pipeline(x, err))
            return -1;
        runner = path_part("bin/recon-run");
        strv_add(&x->argv, runner);
        strv_add(&x->argv, "--device");
        strv_add(&x->argv, name_of(device_names, x->spec.device));
        free(runner);
    } else if (x->spec.script.n ? find_script(x, err) : find_program(x, err)) {
        return -1;
    }
    return settle_pin(x, err);
}

void order_release(struct order *x)
{
    spec_release(&x->spec);
    datasets_release(&x->datasets);
    pin_release(&x->pin);
    strv_release(&x->argv);
    strv_release(&x->env);
    str_release(&x->pipeline_text);
    wrapped_release(&x->wrapped);
    str_release(&x->template_text);
    run_free(x->run);
    if (x->lock >= 0)
        close(x->lock);
    free(x->cwd);
    free(x->path);
    free(x->hex);
    free(x->pipeline);
    free(x->template_path);
    free(x->exclude);
    free(x->bound);
    accounting_release(&x->accounting);
    free(x->todo);
    free(x->damaged);
}
