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

/* glibc's argp names an unknown option but no near one; ours is asked first. */
static int check_names(const struct argp *argp, int argc, char **argv)
{
    size_t n = 0;

    while (argp->options[n].name || argp->options[n].key || argp->options[n].doc)
        n++;
    for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++) {
        char *name;
        const char *near;
        bool known = false;

        if (!str_starts(argv[i], "--"))
            continue;
        name = xstrndup(argv[i] + 2, strcspn(argv[i] + 2, "="));
        known = str_starts("help", name) || str_starts("usage", name) || str_starts("version", name);
        for (size_t o = 0; o < n && !known; o++)
            known = argp->options[o].name && str_starts(argp->options[o].name, name);
        if (!known) {
            near = str_nearest(name, &argp->options->name, sizeof(*argp->options), n);
            cli_error(CODE_USAGE, "unknown option '--%s'%s%s%s", name, near ? ", the nearest is '--" : "",
                      near ? near : "; see --help", near ? "'" : "");
            free(name);
            return CODE_USAGE;
        }
        free(name);
    }
    return 0;
}

int cli_parse(const struct argp *argp, int argc, char **argv, int *ret_rest, void *input)
{
    argp_program_version_hook = print_version;
    argp_err_exit_status = CODE_USAGE;
    if (argp->options && check_names(argp, argc, argv))
        return CODE_USAGE;
    return argp_parse(argp, argc, argv, ARGP_IN_ORDER, ret_rest, input) ? CODE_USAGE : 0;
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
