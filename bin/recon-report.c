/* recon-report: what a run came to, from its run directory alone. */
#include "config.h"
#include "cli.h"

#include "report/report.h"

struct options {
    const char *format, *path;
    int arguments;
    bool verify;
};

enum { K_VERIFY = 256 };

static const struct argp_option option_rows[] = {
    { "format", 'f', "text|json|csv", 0, "The form (default: text)", 0 },
    { "verify", K_VERIFY, NULL, 0, "read every result again: its digests, its pin and its pipeline count", 0 },
    { 0 },
};

static error_t option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'f':
        o->format = arg;
        return 0;
    case K_VERIFY:
        o->verify = true;
        return 0;
    case ARGP_KEY_ARG:
        o->path = arg;
        o->arguments++;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct report_format *find_format(const char *name)
{
    static const char *const later[] = { "html", "trace", "openmetrics" };
    const struct report_format *f = report_formats;
    size_t n = 0;
    const char *near;

    for (; f->name; f++, n++)
        if (str_eq(f->name, name))
            return f;
    for (size_t i = 0; i < COUNT(later); i++)
        if (str_eq(later[i], name)) {
            cli_error(CODE_USAGE, "format '%s' is not available in this version; text, json and csv are", name);
            return NULL;
        }
    near = str_nearest(name, &report_formats->name, sizeof(*report_formats), n);
    cli_error(CODE_USAGE, "unknown format '%s', %s%s%s", name, near ? "the nearest is '" : "wanted text, json or csv",
              near ? near : "", near ? "'" : "");
    return NULL;
}

static void tell_read(void *arg, uint64_t done, uint64_t total)
{
    progress_set(arg, done, total, "results read");
}

static struct report *load(const struct options *o, struct err *err)
{
    struct progress *bar = o->verify && term_fancy(stderr) ? progress_new(stderr, "verify") : NULL;
    struct report *r = o->verify ? report_load_verified(o->path, bar ? tell_read : NULL, bar, err)
                                 : report_load(o->path, err);

    progress_free(bar);
    return r;
}

static int report_run(const struct options *o, const struct report_format *format)
{
    struct err err = { 0 };
    struct report *r = load(o, &err);
    int rc = r ? report_write(r, format, stdout, &err) : -1;

    for (size_t i = 0; r && i < r->damaged.n; i++)
        cli_warn("%s", r->damaged.v[i]);
    report_free(r);
    return rc ? cli_fail(&err) : 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        option_rows, option, "RUN",
        "Reports on the run directory RUN: each dataset, each step's time, findings. Reads a run that is still going on.",
        NULL, NULL, NULL,
    };
    struct options o = { .format = "text" };
    const struct report_format *format;
    int rest;

    if (cli_parse(&argp, argc, argv, &rest, &o))
        return CODE_USAGE;
    format = find_format(o.format);
    if (!format)
        return CODE_USAGE;
    if (o.arguments != 1)
        return cli_error(CODE_USAGE, "%d arguments, one run directory is wanted; see --help", o.arguments);
    return cli_end(report_run(&o, format));
}
