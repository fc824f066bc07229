/* recon-pin: what a job was promised, taken on the login node, and held against this one. */
#include "config.h"

#include <stdlib.h>
#include "record/record.h"
#include "cli_watch.h"
#include "recon-pin.h"

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
int read_body(const struct options *o, const char *path, struct pin *whole, const struct pin **ret)
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
    { "capture", command_capture }, { "merge", command_merge }, { "verify", command_verify }, { "show", command_show }, { "diff", command_diff }, { "export", export }, { "bundle", bundle },
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
    struct watched w = { 0 };
    int rest = argc, status = cli_parse(&argp, argc, argv, &rest, &o);

    for (; status == 0 && rest < argc; rest++)
        strv_add(&o.args, argv[rest]);
    if (status == 0 && cli_watch(WATCH_MS, &w))
        status = w.place ? cli_error(CODE_DEADLINE, "'%s' gave no answer within %.0f ms: a network file system whose server does not "
                                     "answer; nothing was written", w.place, WATCH_MS) : w.status;
    else if (status == 0)
        status = run(&o);
    free(w.place);
    strv_release(&o.args);
    strv_release(&o.env);
    strv_release(&o.packages);
    strv_release(&o.modules);
    return cli_end(status);
}
