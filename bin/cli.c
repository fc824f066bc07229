#include "config.h"
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void say(const char *kind, const char *text)
{
    char *safe = esc_terminal(text);

    fflush(stdout);
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, kind, safe);
    free(safe);
}

int cli_fail(const struct err *err)
{
    say("", err->code ? err->text : "failed without a reason; this is a defect of recon");
    return err->code ? err->code : CODE_INTERNAL;
}

int cli_error(int code, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    say("", text ? text : fmt);
    free(text);
    return code;
}

void cli_warn(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    say("warning: ", text ? text : fmt);
    free(text);
}

static void print_version(FILE *f, struct argp_state *state)
{
    (void)state;
    fprintf(f, "%s (recon) %s\n", program_invocation_short_name, PACKAGE_VERSION);
}

/* ---- the command line, before argp: it names no near option and answers in two lines ---- */

static const struct argp_option usual[] = {
    { .name = "help", .key = '?' }, { .name = "usage", .key = 1 }, { .name = "version", .key = 'V' }, { 0 },
};

static bool row_ends(const struct argp_option *row)
{
    return !row->name && !row->key && !row->doc && !row->group;
}

/* Rows whose name begins so; one of just this name comes alone. */
static size_t rows_named(const struct argp_option *row, const char *name, const struct argp_option **ret)
{
    size_t n = 0;

    for (; !row_ends(row); row++) {
        if (!row->name || !str_starts(row->name, name))
            continue;
        *ret = row;
        if (str_eq(row->name, name))
            return 1;
        n++;
    }
    return n;
}

static int unknown_name(const struct argp *argp, const char *name, char *(*hint)(const char *))
{
    char *better = hint ? hint(name) : NULL;
    const char *near;
    size_t n = 0;

    while (!row_ends(&argp->options[n]))
        n++;
    near = str_nearest(name, &argp->options->name, sizeof(*argp->options), n);
    if (better)
        cli_error(CODE_USAGE, "unknown option '--%s', write %s", name, better);
    else
        cli_error(CODE_USAGE, "unknown option '--%s'%s%s%s", name, near ? ", the nearest is '--" : "",
                  near ? near : "; see --help", near ? "'" : "");
    free(better);
    return -1;
}

/* 0, 1 when the next argument is its value, or -1. */
static int check_long(const struct argp *argp, const char *arg, bool last, char *(*hint)(const char *))
{
    const char *equals = strchr(arg, '=');
    char *name = xstrndup(arg, strcspn(arg, "="));
    const struct argp_option *row = NULL;
    size_t n = rows_named(argp->options, name, &row);
    int rc = 0;

    if (!n || (n > 1 && !str_eq(row->name, name)))
        n += rows_named(usual, name, &row);
    if (!n)
        rc = unknown_name(argp, name, hint);
    else if (n > 1)
        rc = cli_error(-1, "option '--%s' may be more than one; see --help", name);
    else if (!row->arg && equals)
        rc = cli_error(-1, "option '--%s' takes no value, found '%s'", row->name, equals + 1);
    else if (row->arg && !(row->flags & OPTION_ARG_OPTIONAL) && !equals)
        rc = last ? cli_error(-1, "option '--%s' wants a value: --%s=%s", row->name, row->name, row->arg) : 1;
    free(name);
    return rc;
}

static const struct argp_option *row_of_letter(const struct argp_option *row, int letter)
{
    for (; !row_ends(row); row++)
        if (row->key == letter)
            return row;
    return NULL;
}

/* "-abVALUE"; gives as check_long. */
static int check_letters(const struct argp *argp, const char *arg, bool last)
{
    for (; *arg; arg++) {
        const struct argp_option *row = row_of_letter(argp->options, *arg);

        row = row ? row : row_of_letter(usual, *arg);
        if (!row)
            return cli_error(-1, "unknown option '-%c'; see --help", *arg);
        if (!row->arg)
            continue;
        if (arg[1] || (row->flags & OPTION_ARG_OPTIONAL))
            return 0;
        return last ? cli_error(-1, "option '-%c' wants a value: -%c %s", *arg, *arg, row->arg) : 1;
    }
    return 0;
}

static int check_options(const struct argp *argp, int argc, char **argv, char *(*hint)(const char *))
{
    for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++) {
        int rc = 0;

        if (str_starts(argv[i], "--"))
            rc = check_long(argp, argv[i] + 2, i + 1 == argc, hint);
        else if (argv[i][0] == '-' && argv[i][1])
            rc = check_letters(argp, argv[i] + 1, i + 1 == argc);
        if (rc < 0)
            return CODE_USAGE;
        i += rc;
    }
    return 0;
}

int cli_parse_hinted(const struct argp *argp, int argc, char **argv, int *ret_rest, void *input,
                     char *(*hint)(const char *name))
{
    argp_program_version_hook = print_version;
    argp_err_exit_status = CODE_USAGE;
    if (argp->options && check_options(argp, argc, argv, hint))
        return CODE_USAGE;
    return argp_parse(argp, argc, argv, ARGP_IN_ORDER, ret_rest, input) ? CODE_USAGE : 0;
}

int cli_parse(const struct argp *argp, int argc, char **argv, int *ret_rest, void *input)
{
    return cli_parse_hinted(argp, argc, argv, ret_rest, input, NULL);
}

char *cli_cache(const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && *cache == '/')
        return xasprintf("%s/recon/%s", cache, name);
    return home && *home == '/' ? xasprintf("%s/.cache/recon/%s", home, name) : NULL;
}

int cli_end(int status)
{
    if (fflush(stdout) || ferror(stdout) || close(STDOUT_FILENO)) {
        struct err err = { 0 };

        err_sys(&err, CODE_IO, "cannot write the output");
        return status ? status : cli_fail(&err);
    }
    return status;
}
