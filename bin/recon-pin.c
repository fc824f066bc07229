/* recon-pin: what a job was promised, taken on the login node, and held against this one. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli.h"
#include "pin/pin.h"
#include "record/record.h"

#define MODULE_MS 60000.0 /* for `module load`, which may ask a slow file system */

enum { K_ENV = 256, K_MISSING, K_PACKAGE, K_PREFIX, K_MODULE, K_VARIANT, K_FORMAT, K_LIBS, K_QUICK };

static const struct argp_option rows[] = {
    { "output", 'o', "FILE", 0, "capture, merge, export: write there (default: standard output); bundle: the folder to make", 1 },
    { "env", K_ENV, "VARIABLE", 0, "capture: this variable too; NAME* takes all that begin so; may be given again", 1 },
    { "allow-missing", K_MISSING, NULL, 0, "capture: record libraries that are not found instead of refusing", 1 },
    { "package", K_PACKAGE, "PY", 0,
      "capture: the compiled modules of a Python package, which PROGRAM (default: python3) opens; may be given again", 1 },
    { "prefix", K_PREFIX, "DIR", 0, "capture: as if this conda environment or venv were active", 1 },
    { "module", K_MODULE, "NAME", 0, "capture: as if this environment module were loaded (Lmod, Modules); may be given again", 1 },
    { "quick", K_QUICK, NULL, 0, "verify: compare sizes and build-ids, read no file whole", 2 },
    { "format", K_FORMAT, "FORM", 0,
      "verify, diff: text or jsonl; export: sh (default), sbatch, lmod, tcl, dotenv, conda-explicit or requirements", 2 },
    { "variant", K_VARIANT, "NAME", 0, "verify, show, diff, export, bundle: this body of a pin with variants (default: its first)", 2 },
    { "libs", K_LIBS, NULL, 0, "show: the libraries, one a line", 3 },
    { 0 },
};

struct options {
    const char *output, *format, *prefix, *variant;
    bool allow_missing, quick, libs;
    struct strv env, packages, modules, args;
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'o': o->output = value; break;
    case K_ENV: strv_add(&o->env, value); break;
    case K_MISSING: o->allow_missing = true; break;
    case K_PACKAGE: strv_add(&o->packages, value); break;
    case K_PREFIX: o->prefix = value; break;
    case K_MODULE: strv_add(&o->modules, value); break;
    case K_VARIANT: o->variant = value; break;
    case K_FORMAT: o->format = value; break;
    case K_QUICK: o->quick = true; break;
    case K_LIBS: o->libs = true; break;
    case ARGP_KEY_ARG: strv_add(&o->args, value); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* ---- capture ---- */

static char *from_here(const char *path)
{
    char *cwd = getcwd(NULL, 0), *whole;

    while (str_starts(path, "./"))
        path += 2;
    whole = path_join(cwd ? cwd : "/", path);
    free(cwd);
    return whole;
}

static int print_pin(const struct pin *p)
{
    struct str t = { 0 };

    conf_write(pin_rows, p, &t);
    fwrite(t.s, 1, t.len, stdout);
    str_release(&t);
    return 0;
}

/* DIR/bin first in PATH, and what `activate` sets. */
static int activate(const char *prefix, struct strv *env, struct err *err)
{
    char *venv = path_join(prefix, "pyvenv.cfg"), *conda = path_join(prefix, "conda-meta"), *path;
    bool is_venv = access(venv, F_OK) == 0, is_conda = access(conda, F_OK) == 0;
    const char *old = env->n ? env_get(env->v, "PATH") : NULL;

    free(venv);
    free(conda);
    if (!is_venv && !is_conda)
        return err_set(err, CODE_NOTFOUND, "--prefix '%s' is no venv (pyvenv.cfg) and no conda environment (conda-meta)", prefix);
    path = xasprintf("%s/bin%s%s", prefix, old ? ":" : "", old ? old : "");
    env_set(env, "PATH", path);
    env_set(env, "VIRTUAL_ENV", is_venv ? prefix : NULL);
    if (is_conda)
        env_set(env, "CONDA_PREFIX", prefix);
    free(path);
    return 0;
}

/* The environment after `module load`, by the shell code that the module command prints. */
static int load_modules(const struct strv *names, struct strv *env, struct err *err)
{
    static const char script[] = "code=$(\"${LMOD_CMD:-$MODULES_CMD}\" bash load \"$@\") && eval \"$code\" && exec env -0";
    struct strv argv = { 0 };
    struct child c = { .env = env->v, .deadline_ms = MODULE_MS };
    int rc = 0;

    if (!getenv("LMOD_CMD") && !getenv("MODULES_CMD"))
        return err_set(err, CODE_NOTFOUND, "--module: neither LMOD_CMD nor MODULES_CMD tells where the module command is");
    strv_add(&argv, "/bin/bash");
    strv_add(&argv, "-c");
    strv_add(&argv, script);
    strv_add(&argv, "module");
    strv_copy(&argv, names);
    c.argv = (const char *const *)argv.v;
    if (child_run(&c, err)) {
        rc = -1;
    } else if (c.status || !c.out.len) {
        if (c.errout.s)
            c.errout.s[strcspn(c.errout.s, "\n")] = '\0';
        rc = err_set(err, CODE_NOTFOUND, "--module: '%s' cannot be loaded (status %d): %s", names->v[0], WIFEXITED(c.status) ? WEXITSTATUS(c.status) : 128 + WTERMSIG(c.status),
                     c.errout.s ? c.errout.s : "");
    } else {
        strv_release(env);
        for (size_t at = 0; at < c.out.len; at += strlen(c.out.s + at) + 1)
            strv_add(env, c.out.s + at);
    }
    strv_release(&argv);
    str_release(&c.out);
    str_release(&c.errout);
    return rc;
}

static int capture_environment(const struct options *o, struct strv *env, struct err *err)
{
    char *prefix = o->prefix ? path_absolute(o->prefix) : NULL;
    int rc = 0;

    for (char **e = environ; *e; e++)
        strv_add(env, *e);
    if (o->modules.n)
        rc = load_modules(&o->modules, env, err);
    if (rc == 0 && prefix)
        rc = activate(prefix, env, err);
    free(prefix);
    return rc;
}

/* The program by PATH of the environment it gets, the modules by their paths. */
static int capture_programs(const struct options *o, const struct strv *env, struct strv *ret)
{
    const char *name = o->args.n > 1 ? o->args.v[1] : o->packages.n ? "python3" : NULL;
    char *path = name ? cli_search(name, env_get(env->v, "PATH")) : NULL, *whole;

    if (!name)
        return cli_error(CODE_USAGE, "capture: name a program, and the modules that it loads");
    whole = from_here(path ? path : name);
    strv_add(ret, whole);
    free(path);
    free(whole);
    for (size_t i = 2; i < o->args.n; i++) {
        whole = from_here(o->args.v[i]);
        strv_add(ret, whole);
        free(whole);
    }
    return 0;
}

static int capture(const struct options *o)
{
    struct strv env = { 0 }, left = { 0 };
    struct pin_request r = { .allow_missing = o->allow_missing };
    char *memory = cli_cache("digests"), *prefix = o->prefix ? path_absolute(o->prefix) : NULL;
    struct pin p = { 0 };
    struct err err = { 0 };
    int rc = capture_environment(o, &env, &err) ? cli_fail(&err) : 0;

    if (rc == 0)
        rc = capture_programs(o, &env, &r.programs);
    if (rc)
        goto out;
    r.env = env.v;
    r.memory = memory;
    r.prefix = prefix;
    strv_copy(&r.variables, &o->env);
    strv_copy(&r.packages, &o->packages);
    rc = pin_capture(&r, &p, &left, &err);
    for (size_t i = 0; i < left.n; i++)
        cli_warn("%s", left.v[i]);
    if (rc == 0)
        rc = o->output && !str_eq(o->output, "-") ? pin_write(o->output, &p, &err) : print_pin(&p);
    if (rc)
        rc = cli_fail(&err);
out:
    strv_release(&r.programs);
    strv_release(&r.variables);
    strv_release(&r.packages);
    strv_release(&left);
    strv_release(&env);
    pin_release(&p);
    free(memory);
    free(prefix);
    return rc;
}

/* ---- a pin that is read ---- */

/* The body that was asked for, in *ret (its own bytes); *whole is released by pin_release. */
static int read_body(const struct options *o, const char *path, struct pin *whole, const struct pin **ret)
{
    struct err err = { 0 };
    struct str names = { 0 };

    if (pin_read(path, whole, &err))
        return cli_fail(&err);
    *ret = o->variant ? pin_named(whole, o->variant) : whole;
    if (*ret)
        return 0;
    for (size_t i = 0; i < pin_bodies(whole); i++)
        str_addf(&names, "%s%s", i ? ", " : "", pin_body(whole, i)->name ? pin_body(whole, i)->name : "(no name)");
    cli_error(CODE_USAGE, "'%s' has no variant '%s'; it has %s", path, o->variant, names.s);
    str_release(&names);
    pin_release(whole);
    return CODE_USAGE;
}

/* ---- merge ---- */

/* "NAME=PIN": a pin whose path begins with "NAME=" is named with "./". */
static int read_named(const char *arg, struct pin *ret, char **ret_name, struct err *err)
{
    const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');
    bool named = eq && (!slash || eq < slash);

    *ret_name = named ? xstrndup(arg, (size_t)(eq - arg)) : NULL;
    return pin_read(named ? eq + 1 : arg, ret, err);
}

static int merge(const struct options *o)
{
    struct pin all = { 0 }, one;
    struct err err = { 0 };
    char *name = NULL;
    int rc = 0;

    if (o->args.n < 3)
        return cli_error(CODE_USAGE, "merge: name two pins or more, as NAME=PIN; the first is the one for who knows no variants");
    rc = read_named(o->args.v[1], &all, &name, &err);
    if (rc == 0 && name) {
        free(all.name);
        all.name = xstrdup(name);
    }
    if (rc == 0 && !all.name)
        rc = err_set(&err, CODE_USAGE, "a variant needs a name: NAME=%s", o->args.v[1]);
    free(name);
    for (size_t i = 2; i < o->args.n && rc == 0; i++) {
        name = NULL;
        rc = read_named(o->args.v[i], &one, &name, &err);
        if (rc == 0 && (rc = pin_merge(&all, &one, name, &err)))
            pin_release(&one);
        free(name);
    }
    if (rc == 0)
        rc = o->output && !str_eq(o->output, "-") ? pin_write(o->output, &all, &err) : print_pin(&all);
    pin_release(&all);
    return rc ? cli_fail(&err) : 0;
}

/* ---- verify ---- */

static void print_difference(const struct pin_difference *d)
{
    char *object = esc_terminal(d->object), *words = esc_terminal(d->text);

    printf("%s: %s: %s\n", d->rule, object, words);
    free(object);
    free(words);
}

/* "export NAME='value'", "unset NAME": as the pin has it. Owned. */
static char *as_pinned(const struct pin *p, const char *name)
{
    for (size_t i = 0; i < p->variables.n; i++) {
        const struct pin_variable *v = &p->variables.v[i];
        char *value, *text;

        if (!str_eq(v->name, name))
            continue;
        value = esc_shell(v->value ? v->value : "");
        text = v->how == PIN_UNSET ? xasprintf("unset %s", name) : xasprintf("export %s=%s", name, value);
        free(value);
        return text;
    }
    return xasprintf("unset %s", name);
}

static const struct cause {
    const char *rule, *cause;
    bool again; /* the pin may be what is old */
} whys[] = {
    { "env-drift", "this shell has another value than the one at capture; recon-launch restores it", false },
    { "env-not-exported", "this shell does not have what was there at capture; recon-launch restores it", false },
    { "lib-not-found", "the node lacks what the pin promised", false },
    { "lib-changed", "the file was installed anew since the capture, or another one is found before it", true },
    { "lib-corrupt", "the loader takes the first file of that name and ends there", false },
    { "preload-missing", "the node lacks a library that LD_PRELOAD names", false },
    { "symver-missing", "a library here is older than the one at capture", false },
    { "glibc-too-old", "the node's system is older than the one at capture", false },
};

static void explain(struct finding *f, const struct pin *p, const struct pin_difference *d)
{
    char host[256] = "this-node", *program = esc_shell(p->objects.n && p->objects.v[0].path ? p->objects.v[0].path : "PROGRAM");
    const char *cause = NULL;
    bool again = false;
    char *remedy;

    gethostname(host, sizeof(host) - 1);
    for (size_t i = 0; i < COUNT(whys); i++)
        if (str_eq(whys[i].rule, d->rule)) {
            cause = whys[i].cause;
            again = whys[i].again;
        }
    if (str_starts(d->rule, "env-"))
        remedy = as_pinned(p, d->object);
    else if (d->job || again)
        remedy = xasprintf("recon-pin capture -o PIN %s%s%s", program, d->job ? "" : ", or sbatch --exclude=", d->job ? "" : host);
    else
        remedy = xasprintf("sbatch --exclude=%s", host);
    finding_explain(f, NULL, d->job && d->missing ? "a changed library needs others than at capture" : cause, remedy);
    free(remedy);
    free(program);
}

static void print_findings(const struct pin *p, const struct pin_differences *l, double ms)
{
    struct findings f = { .ms = ms };
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++) {
        const struct pin_difference *d = &l->v[i];
        bool error = d->missing || str_eq(d->rule, "symver-missing") || str_eq(d->rule, "glibc-too-old");

        explain(findings_add(&f, d->rule, error ? LEVEL_ERROR : LEVEL_WARN, d->job ? SCOPE_JOB : SCOPE_NODE, d->object, "%s",
                             d->text), p, d);
    }
    findings_json(&f, &t);
    fwrite(t.s, 1, t.len, stdout);
    str_release(&t);
    findings_release(&f);
}

/* As findings_status: the node first. A variable alone is told as a difference of this node, since the launcher restores it. */
static int verify_status(const struct pin_differences *l)
{
    bool job = false, node = false;

    for (size_t i = 0; i < l->n; i++) {
        job = job || (l->v[i].job && l->v[i].missing);
        node = node || (!l->v[i].job && l->v[i].missing);
    }
    return !l->n ? 0 : job && !node ? CODE_JOB : CODE_NODE;
}

static int verify(const struct options *o)
{
    bool jsonl = str_eq(o->format, "jsonl");
    struct pin_differences l = { 0 };
    struct resolution r = { 0 };
    double t0 = clock_ms();
    struct err err = { 0 };
    struct pin whole;
    const struct pin *p;
    int status;

    if (o->args.n != 2)
        return cli_error(CODE_USAGE, "verify: name one pin");
    if (file_trusted(o->args.v[1], NULL, &err))
        return cli_fail(&err);
    if ((status = read_body(o, o->args.v[1], &whole, &p)))
        return status;
    if (resolve(p, NULL, "", environ, &r, &err)) {
        pin_release(&whole);
        return cli_fail(&err);
    }
    pin_compare(p, &r, environ, !o->quick, &l);
    status = verify_status(&l);
    for (size_t i = 0; i < l.n && !jsonl; i++)
        print_difference(&l.v[i]);
    if (jsonl)
        print_findings(p, &l, clock_ms() - t0);
    else if (!l.n)
        printf("no difference: %zu files, %zu variables\n", p->objects.n, p->variables.n);
    pin_differences_release(&l);
    resolution_release(&r);
    pin_release(&whole);
    return status;
}

/* ---- show ---- */

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

static void show_requires(const struct pin *p)
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
             count[PIN_MODULE], count[PIN_MODULE] == 1 ? "" : "s", count[PIN_LIBRARY],
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

static int show(const struct options *o)
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

/* ---- diff ---- */

static void print_kind_json(const struct pin_difference *d, struct str *t)
{
    const struct { const char *name, *value; } keys[] = { { "kind", d->rule }, { "object", d->object }, { "text", d->text } };

    str_add(t, "{\"v\":1,\"type\":\"difference\"");
    for (size_t i = 0; i < COUNT(keys); i++) {
        str_addf(t, ",\"%s\":\"", keys[i].name);
        for (const char *s = keys[i].value; *s; s++) {
            unsigned char c = (unsigned char)*s;

            if (c == '"' || c == '\\')
                str_addf(t, "\\%c", c);
            else if (c < 0x20)
                str_addf(t, "\\u%04x", c);
            else
                str_addn(t, s, 1);
        }
        str_add(t, "\"");
    }
    str_add(t, "}\n");
}

static int diff(const struct options *o)
{
    struct pin_differences l = { 0 };
    struct pin first = { 0 }, second = { 0 };
    const struct pin *a, *b;
    struct str t = { 0 };
    int status;

    if (o->args.n != 3)
        return cli_error(CODE_USAGE, "diff: name two pins");
    if ((status = read_body(o, o->args.v[1], &first, &a)))
        return status;
    if ((status = read_body(o, o->args.v[2], &second, &b))) {
        pin_release(&first);
        return status;
    }
    pin_diff(a, b, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (str_eq(o->format, "jsonl"))
            print_kind_json(&l.v[i], &t);
        else
            print_difference(&l.v[i]);
    }
    if (t.len)
        fwrite(t.s, 1, t.len, stdout);
    status = l.n ? 1 : 0;
    str_release(&t);
    pin_differences_release(&l);
    pin_release(&first);
    pin_release(&second);
    return status;
}

/* ---- export ---- */

static bool of_prefix(const char *format)
{
    return str_eq(format, "conda-explicit") || str_eq(format, "requirements");
}

static int export(const struct options *o)
{
    const char *format = o->format ? o->format : "sh";
    struct strv left = { 0 };
    struct str t = { 0 };
    struct err err = { 0 };
    const struct pin *p;
    struct pin whole;
    int rc;

    if (o->args.n != 2)
        return cli_error(CODE_USAGE, "export: name one pin");
    if ((rc = read_body(o, o->args.v[1], &whole, &p)))
        return rc;
    rc = of_prefix(format) ? pin_packages(p, format, &t, &left, &err) : pin_export(p, format, &t, &left, &err);
    for (size_t i = 0; i < left.n; i++)
        cli_warn(of_prefix(format) ? "%s" : "variable '%s' is left out: no shell takes such a name", left.v[i]);
    if (rc == 0 && o->output && !str_eq(o->output, "-"))
        rc = file_write(o->output, t.s, t.len, 0666, &err);
    else if (rc == 0)
        fwrite(t.s, 1, t.len, stdout);
    strv_release(&left);
    str_release(&t);
    pin_release(&whole);
    return rc ? cli_fail(&err) : 0;
}

/* ---- bundle ---- */

static void tell_list(const char *what, const struct strv *l)
{
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++) {
        char *safe = esc_terminal(l->v[i]);

        str_addf(&t, "%s%s", i ? ", " : "", safe);
        free(safe);
    }
    if (t.len)
        printf("%s: %s\n", what, t.s);
    str_release(&t);
}

static int bundle(const struct options *o)
{
    struct pin_bundle made = { 0 };
    const struct pin *p;
    struct pin whole;
    struct err err = { 0 };
    char *safe;
    int rc;

    if (o->args.n != 2 || !o->output)
        return cli_error(CODE_USAGE, "bundle: name one pin, and the folder that is to be made: -o DIR");
    if (file_trusted(o->args.v[1], NULL, &err))
        return cli_fail(&err);
    if ((rc = read_body(o, o->args.v[1], &whole, &p)))
        return rc;
    rc = pin_bundle(p, o->output, &made, &err);
    if (rc == 0) {
        safe = esc_terminal(o->output);
        printf("%s: %zu files, %.1f MiB; run it by %s/run\n", safe, made.files, (double)made.bytes / 1048576.0, safe);
        free(safe);
        show_requires(p);
        tell_list("left to the other machine", &made.left);
        tell_list("variables left out", &made.variables_left);
    }
    pin_bundle_release(&made);
    pin_release(&whole);
    return rc ? cli_fail(&err) : 0;
}

/* ---- the whole ---- */

static const struct verb { const char *name; int (*run)(const struct options *); } verbs[] = {
    { "capture", capture }, { "merge", merge }, { "verify", verify }, { "show", show }, { "diff", diff }, { "export", export }, { "bundle", bundle },
};

static int run(const struct options *o)
{
    const char *near;

    if (!o->args.n)
        return cli_error(CODE_USAGE, "wanted capture, merge, verify, show, diff, export or bundle; see --help");
    if (o->format && !str_eq(o->args.v[0], "export") && !str_eq(o->format, "text") && !str_eq(o->format, "jsonl"))
        return cli_error(CODE_USAGE, "--format '%s': wanted text or jsonl", o->format);
    for (size_t i = 0; i < COUNT(verbs); i++)
        if (str_eq(o->args.v[0], verbs[i].name))
            return verbs[i].run(o);
    near = str_nearest(o->args.v[0], &verbs[0].name, sizeof(verbs[0]), COUNT(verbs));
    return cli_error(CODE_USAGE, "unknown command '%s'%s%s%s", o->args.v[0], near ? ", the nearest is '" : "",
                     near ? near : ": wanted capture, merge, verify, show, diff, export or bundle", near ? "'" : "");
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = rows,
        .parser = parse,
        .args_doc = "capture PROGRAM [MODULE...]\ncapture --package PY [PYTHON]\nmerge NAME=PIN...\nverify PIN\nshow PIN\ndiff PIN PIN\nexport PIN\nbundle -o DIR PIN",
        .doc = "Writes down what a program needs here (variables, libraries, GPU images, toolkit, limits), and tells what of "
               "it is otherwise on this node.\vExit status of verify: 0 no difference, 75 this node differs, 77 the pin "
               "is not to be trusted, 78 a library is needed that the pin knows no place of; of diff: 0 no difference, 1 they "
               "differ.",
    };
    struct options o = { 0 };
    int rest = argc, status = cli_parse(&argp, argc, argv, &rest, &o);

    for (; status == 0 && rest < argc; rest++)
        strv_add(&o.args, argv[rest]);
    if (status == 0)
        status = run(&o);
    strv_release(&o.args);
    strv_release(&o.env);
    strv_release(&o.packages);
    strv_release(&o.modules);
    return cli_end(status);
}
