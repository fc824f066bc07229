/* A template and its placeholders to a script. Everything is quoted where it is put in. */
#include "config.h"
#include "job/job_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* A value for a #SBATCH line, see next_argument in directives.c for what sbatch undoes. */
void script_add_value(struct str *t, const char *value, bool quoted)
{
    for (const char *p = value; *p && !quoted; p++)
        quoted = !isalnum((unsigned char)*p) && !strchr("_./:,=@%+-~[]*", *p);
    if (!quoted && *value) {
        str_add(t, value);
        return;
    }
    str_add(t, "\"");
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            str_add(t, "\\");
        str_addn(t, value, 1);
    }
    str_add(t, "\"");
}

static int add_directives(const struct script *s, struct str *t, struct err *err)
{
    struct directives d;

    if (script_directives(s, &d, err))
        return -1;
    for (size_t i = 0; i < d.n; i++) {
        str_addf(t, "%s#SBATCH --%s", i ? "\n" : "", d.v[i].option->name);
        if (d.v[i].value) {
            str_add(t, "=");
            script_add_value(t, d.v[i].value, d.v[i].option->flags & OPTION_PATH);
        }
    }
    directives_release(&d);
    return 0;
}

/* ---- environment ---- */

static bool shell_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

static void add_export(struct str *t, const char *name, int how, const char *value)
{
    char *quoted = esc_shell(value ? value : "");

    if (how == PIN_UNSET)
        str_addf(t, "\nunset %s", name);
    else if (how == PIN_PREPEND)
        str_addf(t, "\nexport %s=%s\"${%s:+:$%s}\"", name, quoted, name, name);
    else if (how == PIN_APPEND)
        str_addf(t, "\nexport %s=\"${%s:+$%s:}\"%s", name, name, name, quoted);
    else
        str_addf(t, "\nexport %s=%s", name, quoted);
    free(quoted);
}

static int add_environment(const struct script *s, struct str *t, struct err *err)
{
    char *pin, *quoted;

    if (strlen(s->umask) > 4 || strspn(s->umask, "01234567") != strlen(s->umask) || !*s->umask)
        return err_set(err, CODE_USAGE, "umask '%s' is no octal number", s->umask);
    str_addf(t, "umask %s\nexport SLURM_EXPORT_ENV=ALL", s->umask);
    for (size_t i = 0; i < s->pin->variables.n; i++) {
        const struct pin_variable *v = &s->pin->variables.v[i];

        if (!shell_name(v->name))
            return err_set(err, CODE_USAGE, "pinned variable '%s' has no name that a shell takes", v->name);
        add_export(t, v->name, v->how, v->value);
    }
    pin = xasprintf("%s/env.pin", s->run);
    quoted = esc_shell(pin);
    str_addf(t, "\nexport RECON_PIN=%s", quoted);
    free(quoted);
    free(pin);
    return 0;
}

/* The launcher outside saves the node's facts and becomes the runtime, which starts the launcher inside. */
static void add_container(const struct script *s, const char *launcher, const char *run, struct str *t)
{
    struct strv argv = { 0 };

    str_addf(t, "%s --save-facts %s/facts --", launcher, run);
    container_argv(&s->spec->container, s->binds, &argv);
    for (size_t i = 0; i < argv.n; i++) {
        char *arg = esc_shell(argv.v[i]);

        str_addf(t, " %s", arg);
        free(arg);
    }
    str_add(t, " ");
    strv_release(&argv);
}

static void add_launch(const struct script *s, struct str *t)
{
    char *launcher = esc_shell(s->launcher), *run = esc_shell(s->run);

    if (s->spec->container.kind > CONTAINER_NONE)
        add_container(s, launcher, run, t);
    str_addf(t, "%s --pin \"$RECON_PIN\" --run %s --sub %u --task \"${RECON_TASK:-${SLURM_ARRAY_TASK_ID:?}}\"%s --",
             launcher, run, s->sub, s->each ? " --each" : "");
    for (size_t i = 0; i < s->argv->n; i++) {
        char *arg = esc_shell(s->argv->v[i]);
        bool option = arg[1] == '-' && strspn(arg + 1, "abcdefghijklmnopqrstuvwxyz0123456789_-./=:") + 2 == strlen(arg);
        bool word = strspn(arg + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") + 2 ==
                    strlen(arg);

        if (i && (option || (word && arg[2]))) /* plain words read better bare */
            str_addf(t, " %s", s->argv->v[i]);
        else
            str_addf(t, " %s", arg);
        free(arg);
    }
    free(launcher);
    free(run);
}

/* ---- placeholders ---- */

enum place { PLACE_DIRECTIVES, PLACE_ENVIRONMENT, PLACE_LAUNCH, PLACE_VERSION, PLACE_TEMPLATE, PLACE_AT };
static const struct name places[] = {
    { "DIRECTIVES", PLACE_DIRECTIVES }, { "ENVIRONMENT", PLACE_ENVIRONMENT }, { "LAUNCH", PLACE_LAUNCH },
    { "VERSION", PLACE_VERSION },       { "TEMPLATE", PLACE_TEMPLATE },       { "", PLACE_AT },
    { NULL, 0 },
};

static int add_place(const struct script *s, int place, struct str *t, struct err *err)
{
    char *safe;

    switch (place) {
    case PLACE_DIRECTIVES: return add_directives(s, t, err);
    case PLACE_ENVIRONMENT: return add_environment(s, t, err);
    case PLACE_LAUNCH: add_launch(s, t); return 0;
    case PLACE_VERSION: str_add(t, PACKAGE_VERSION); return 0;
    case PLACE_TEMPLATE: /* stands in a comment: one line, no control characters */
        safe = esc_terminal(s->template_name);
        str_add(t, safe);
        free(safe);
        return 0;
    default: str_add(t, "@"); return 0;
    }
}

static int fill(const struct script *s, struct str *t, unsigned *seen, struct err *err)
{
    const char *p = s->template_text;
    int line = 1;

    while (*p) {
        size_t n = strcspn(p, "@");
        const char *end;
        char *name;
        int place, rc;

        for (size_t i = 0; i < n; i++)
            line += p[i] == '\n';
        str_addn(t, p, n);
        p += n;
        if (!*p)
            break;
        end = p + 1 + strspn(p + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        name = xstrndup(p + 1, (size_t)(end - p) - 1);
        if (*end != '@')
            rc = err_set(err, CODE_USAGE, "%s:%d: '@' begins no placeholder; a literal one is written @@",
                         s->template_name, line);
        else if (name_value(places, name, &place))
            rc = err_set(err, CODE_USAGE, "%s:%d: unknown placeholder '@%s@', known are @DIRECTIVES@ @ENVIRONMENT@ "
                         "@LAUNCH@ @VERSION@ @TEMPLATE@ @@", s->template_name, line, name);
        else
            rc = add_place(s, place, t, err);
        if (rc == 0)
            *seen |= 1u << place;
        free(name);
        if (rc)
            return rc;
        p = end + 1;
    }
    return 0;
}

/* What stands in the script at last has to be what was asked, whatever the template adds. */
static int verify(const struct script *s, const char *text, struct err *err)
{
    struct directives wanted, found;
    int rc = 0;

    if (!str_starts(text, "#!"))
        return err_set(err, CODE_USAGE, "%s: a script has to begin with #!", s->template_name);
    if (strstr(text, "\r\n"))
        return err_set(err, CODE_USAGE, "the script would hold DOS line ends, which sbatch refuses");
    if (directives_parse(text, s->template_name, &found, err))
        return -1;
    if (script_directives(s, &wanted, err)) {
        directives_release(&found);
        return -1;
    }
    for (size_t i = 0; i < wanted.n && rc == 0; i++) {
        const struct directive *f = directives_find(&found, wanted.v[i].option->name);

        if (!f || !str_eq(f->value, wanted.v[i].value))
            rc = err_set(err, CODE_USAGE, "%s: the script would say --%s=%s where '%s' is wanted", s->template_name,
                         wanted.v[i].option->name, f && f->value ? f->value : "",
                         wanted.v[i].value ? wanted.v[i].value : "");
    }
    directives_release(&wanted);
    directives_release(&found);
    return rc;
}

int script_render(const struct script *s, struct str *ret, struct err *err)
{
    static const unsigned needed = 1u << PLACE_DIRECTIVES | 1u << PLACE_ENVIRONMENT | 1u << PLACE_LAUNCH;
    struct str t = { 0 };
    unsigned seen = 0;
    int rc = fill(s, &t, &seen, err);

    for (const struct name *n = places; rc == 0 && n->name; n++)
        if ((needed & 1u << n->value) && !(seen & 1u << n->value))
            rc = err_set(err, CODE_USAGE, "%s: the placeholder @%s@ is missing", s->template_name, n->name);
    if (rc == 0)
        rc = verify(s, t.s, err);
    if (rc == 0)
        str_addn(ret, t.s, t.len);
    str_release(&t);
    return rc;
}
