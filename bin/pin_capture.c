/* recon-pin capture and merge: pins that are written. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "recon-pin.h"

#define MODULE_MS 60000.0 /* for `module load`, which may ask a slow file system */

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

int command_capture(const struct options *o)
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

/* ---- merge ---- */

/* "NAME=PIN": a pin whose path begins with "NAME=" is named with "./". */
static int read_named(const char *arg, struct pin *ret, char **ret_name, struct err *err)
{
    const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');
    bool named = eq && (!slash || eq < slash);

    *ret_name = named ? xstrndup(arg, (size_t)(eq - arg)) : NULL;
    return pin_read(named ? eq + 1 : arg, ret, err);
}

int command_merge(const struct options *o)
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
