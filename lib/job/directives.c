/* #SBATCH lines: made from a spec, and read back as sbatch reads them. */
#include "config.h"
#include "job/job_priv.h"

#include <ctype.h>
#include <stdlib.h>

const struct directive *directives_find(const struct directives *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        if (str_eq(d->v[i].option->name, name))
            return &d->v[i];
    return NULL;
}

const char *directives_get(const struct directives *d, const char *name)
{
    const struct directive *x = directives_find(d, name);

    return x ? x->value : NULL;
}

void directives_release(struct directives *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->v[i].value);
    free(d->v);
    *d = (struct directives){ 0 };
}

/* ---- reading --------------------------------------------------------------------------------------- */

/* One argument of a line by sbatch's rules (slurm 22.05, src/sbatch/opt.c, get_argument): quotes group and may stand
 * anywhere, a backslash takes the next character as it is, '#' outside of quotes begins a comment.
 * 1: *ret is the argument, owned; 0: no more; -1: a quote is left open. */
static int next_argument(const char **at, char **ret)
{
    const char *p = *at;
    struct str t = { 0 };
    char quote = 0;

    while (isspace((unsigned char)*p))
        p++;
    if (!*p || *p == '#')
        return 0;
    str_add(&t, "");
    for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
        if (*p == '\\' && p[1]) {
            str_addn(&t, ++p, 1);
        } else if (quote ? *p == quote : *p == '"' || *p == '\'') {
            quote = quote ? 0 : *p;
        } else if (*p == '#' && !quote) {
            p += strlen(p);
            break;
        } else {
            str_addn(&t, p, 1);
        }
    }
    *at = p;
    *ret = str_take(&t);
    if (quote)
        free(*ret);
    return quote ? -1 : 1;
}

static const struct sbatch_option *by_letter(char letter)
{
    for (const struct sbatch_option *o = sbatch_options; o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static struct directive *put(struct directives *d, const struct sbatch_option *o, const char *value)
{
    struct directive *x = NULL;

    for (size_t i = 0; i < d->n; i++)
        if (d->v[i].option == o)
            x = &d->v[i];
    if (!x)
        x = VEC_ADD(d);
    free(x->value);
    x->option = o;
    x->value = xstrdup(value);
    return x;
}

/* arg: "--name=value", "--name", "-x", "-xvalue"; a value may be the next argument. */
static int take(struct directives *d, char *arg, const char **at, int line, struct err *err)
{
    const struct sbatch_option *o;
    char *value = NULL, *next = NULL;
    int rc = 0;

    if (arg[0] != '-' || !arg[1])
        return err_set(err, CODE_USAGE, "'%s' is no option", arg);
    if (arg[1] == '-') {
        value = strchr(arg, '=');
        if (value)
            *value++ = 0;
        o = sbatch_option_find(arg + 2);
    } else {
        o = by_letter(arg[1]);
        value = arg[2] ? arg + 2 : NULL;
    }
    if (!o)
        return err_set(err, CODE_USAGE, "sbatch has no option '%s'", arg);
    if (o->arg == ARG_NEEDED && !value) {
        if (next_argument(at, &next) != 1)
            return err_set(err, CODE_USAGE, "'%s' wants a value", arg);
        value = next;
    }
    if (o->flags & OPTION_REFUSED)
        rc = err_set(err, CODE_USAGE, "sbatch's option '%s' is not taken: %s", o->name, o->why);
    else if (o->arg == ARG_NONE && value)
        rc = err_set(err, CODE_USAGE, "'--%s' takes no value", o->name);
    else if (value && o->check && o->check(value))
        rc = err_set(err, CODE_USAGE, "'--%s' wants %s, found '%s'", o->name, o->form, value);
    else
        put(d, o, value)->line = line;
    free(next);
    return rc;
}

static int parse_line(const char *line, int number, struct directives *d, struct err *err)
{
    char *arg;
    int got;

    while ((got = next_argument(&line, &arg)) == 1) {
        int rc = take(d, arg, &line, number, err);

        free(arg);
        if (rc)
            return rc;
    }
    return got < 0 ? err_set(err, CODE_USAGE, "a quote is left open") : 0;
}

int directives_parse(const char *script, const char *name, struct directives *ret, struct err *err)
{
    struct directives d = { 0 };
    bool commands = false;
    int number = 0;

    for (const char *p = script; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        char *line = xstrndup(p, strcspn(p, "\n"));
        size_t blank = strspn(line, " \t\r\f\v");
        int rc = 0;

        number++;
        if (str_starts(line, "#SBATCH") && commands)
            rc = err_set(err, CODE_USAGE, "a directive after the first command, which sbatch would ignore");
        else if (str_starts(line, "#SBATCH"))
            rc = parse_line(line + 7, number, &d, err);
        else if (line[blank] && line[blank] != '#')
            commands = true;
        free(line);
        if (rc) {
            directives_release(&d);
            return err_prefix(err, "%s:%d", name, number);
        }
    }
    *ret = d;
    return 0;
}

/* ---- making ---------------------------------------------------------------------------------------- */

/* The value in one spelling: times as D-HH:MM:SS, so that "02:00" is seen to be two minutes. */
static char *spelled(const struct sbatch_option *o, const char *value)
{
    int64_t s;

    if (str_eq(o->form, "minutes, H:M:S or D-H:M:S") && slurm_time(value, &s) == 0)
        return s < 0 ? xstrdup("UNLIMITED")
                     : xasprintf("%lld-%02d:%02d:%02d", (long long)(s / 86400), (int)(s / 3600 % 24),
                                 (int)(s / 60 % 60), (int)(s % 60));
    if (str_eq(o->form, "a number with K, M, G or T") && *value && strspn(value, "0123456789") == strlen(value) &&
        !str_eq(value, "0"))
        return xasprintf("%sM", value); /* what Slurm takes a bare number for */
    return xstrdup(value);
}

/* A path within a pattern of sbatch: % is doubled. */
void script_add_pattern(struct str *t, const char *path)
{
    for (; *path; path++)
        str_addn(t, *path == '%' ? "%%" : path, *path == '%' ? 2 : 1);
}

static int plain_path(const char *what, const char *path, struct err *err)
{
    char *safe;

    if (!strpbrk(path, "\r\n"))
        return 0;
    safe = esc_terminal(path);
    err_set(err, CODE_USAGE, "%s '%s' holds a line break, which no #SBATCH line can say; choose another path", what,
            safe);
    free(safe);
    return -1;
}

/* What recon itself says of an option, owned; NULL: nothing. */
static char *ours(const struct script *s, const char *name, const struct conf_map *asked)
{
    struct str t = { 0 };

    if (str_eq(name, "job-name"))
        return xstrdup(s->job_name);
    if (str_eq(name, "array") && s->slots > 0) {
        if (s->slots > 1)
            str_addf(&t, "0-%u", s->slots - 1);
        else
            str_add(&t, "0");
        if (s->spec->max_running > 0 && s->spec->max_running < (int64_t)s->slots)
            str_addf(&t, "%%%lld", (long long)s->spec->max_running);
        return str_take(&t);
    }
    if (str_eq(name, "chdir"))
        return xstrdup(s->chdir);
    if (str_eq(name, "output") && !conf_map_get(asked, "output")) {
        script_add_pattern(&t, s->run);
        str_add(&t, "/logs/%A_%a.log");
        return str_take(&t);
    }
    if (str_eq(name, "open-mode") && !conf_map_get(asked, "open-mode"))
        return xstrdup("append");
    if (str_eq(name, "exclude") && s->exclude) {
        const char *more = conf_map_get(asked, "exclude");

        return more ? xasprintf("%s,%s", more, s->exclude) : xstrdup(s->exclude);
    }
    return NULL;
}

static char *absolute_value(const struct script *s, const struct sbatch_option *o, const char *value)
{
    if (!(o->flags & OPTION_PATH) || *value == '/' || str_eq(value, "none"))
        return xstrdup(value);
    return path_join(s->chdir, value);
}

int script_directives(const struct script *s, struct directives *ret, struct err *err)
{
    const struct conf_map *asked = &s->spec->sbatch;
    struct directives d = { 0 };

    if (plain_path("run directory", s->run, err) || plain_path("folder", s->chdir, err))
        return -1;
    if (strchr(s->run, '\\') && !conf_map_get(asked, "output"))
        return err_set(err, CODE_USAGE,
                       "run directory '%s' holds a backslash, with which Slurm expands no pattern; choose another path",
                       s->run);
    for (const struct sbatch_option *o = sbatch_options; o->name; o++) {
        const struct conf_pair *p = NULL;
        char *value = ours(s, o->name, asked), *whole;

        for (size_t i = 0; i < asked->n; i++)
            if (sbatch_option_find(asked->v[i].name) == o)
                p = &asked->v[i];
        if (value) {
            put(&d, o, value);
        } else if (p && p->kind == CONF_KIND_BOOL) {
            put(&d, o, NULL);
        } else if (p) {
            whole = absolute_value(s, o, p->value);
            value = spelled(o, whole);
            free(whole);
            put(&d, o, value);
        }
        free(value);
    }
    *ret = d;
    return 0;
}
