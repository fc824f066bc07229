/* The environment of a pin in other tools' languages. Every value is quoted for the language that it goes into. */
#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

/* ---- quoting ---- */

/* Double quotes; what has a meaning in them stands behind a backslash, control characters as an escape of `newline`. */
static void quoted(struct str *t, const char *s, const char *special)
{
    str_add(t, "\"");
    for (; *s; s++) {
        if (*s == '\n') {
            str_add(t, "\\n");
            continue;
        }
        if (strchr(special, *s))
            str_add(t, "\\");
        str_addn(t, s, 1);
    }
    str_add(t, "\"");
}

static void shell(struct str *t, const char *s)
{
    char *q = esc_shell(s);

    str_add(t, q);
    free(q);
}

static bool identifier(const char *s)
{
    bool ok = *s && !(*s >= '0' && *s <= '9');

    for (; *s; s++)
        ok &= (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_';
    return ok;
}

/* ---- one variable ---- */

static void in_shell(struct str *t, const struct pin_variable *v)
{
    if (v->how == PIN_UNSET) {
        str_addf(t, "unset %s\n", v->name);
        return;
    }
    str_addf(t, "export %s=", v->name);
    if (v->how == PIN_APPEND)
        str_addf(t, "\"${%s:+$%s:}\"", v->name, v->name);
    shell(t, v->value);
    if (v->how == PIN_PREPEND)
        str_addf(t, "\"${%s:+:$%s}\"", v->name, v->name);
    str_add(t, "\n");
}

bool pin_shell_line(const struct pin_variable *v, struct str *ret)
{
    if (!identifier(v->name))
        return false;
    in_shell(ret, v);
    return true;
}

static void in_lua(struct str *t, const struct pin_variable *v)
{
    static const char *const calls[] = { [PIN_SET] = "setenv", [PIN_PREPEND] = "prepend_path", [PIN_APPEND] = "append_path",
                                         [PIN_UNSET] = "unsetenv" };

    str_addf(t, "%s(\"%s\"", calls[v->how], v->name);
    if (v->how != PIN_UNSET) {
        str_add(t, ", ");
        quoted(t, v->value, "\\\"");
    }
    str_add(t, ")\n");
}

static void in_tcl(struct str *t, const struct pin_variable *v)
{
    static const char *const calls[] = { [PIN_SET] = "setenv", [PIN_PREPEND] = "prepend-path", [PIN_APPEND] = "append-path",
                                         [PIN_UNSET] = "unsetenv" };

    str_addf(t, "%s %s", calls[v->how], v->name);
    if (v->how != PIN_UNSET) {
        str_add(t, " ");
        quoted(t, v->value, "\\\"$[]{}");
    }
    str_add(t, "\n");
}

static void in_dotenv(struct str *t, const struct pin_variable *v)
{
    if (v->how == PIN_UNSET) {
        str_addf(t, "# %s is unset\n", v->name);
        return;
    }
    str_addf(t, "%s=", v->name);
    if (v->how == PIN_APPEND)
        str_addf(t, "${%s}:", v->name);
    if (!strpbrk(v->value, "'\n\\") && v->how == PIN_SET)
        str_addf(t, "'%s'", v->value);
    else
        quoted(t, v->value, "\\\"$`");
    if (v->how == PIN_PREPEND)
        str_addf(t, ":${%s}", v->name);
    str_add(t, "\n");
}

/* ---- heads ---- */

static void origin(struct str *t, const char *mark, const struct pin *p)
{
    char *node = esc_terminal(p->captured.node ? p->captured.node : "?");

    str_addf(t, "%s the environment of a pin taken on %s, %s\n", mark, node, p->captured.time ? p->captured.time : "?");
    for (size_t i = 0; i < p->modules.n; i++) {
        char *safe = esc_terminal(p->modules.v[i]);

        str_addf(t, "%s%s%s", i ? " " : mark, i ? "" : " modules loaded there: ", safe);
        free(safe);
    }
    str_add(t, p->modules.n ? "\n" : "");
    free(node);
}

static void head_shell(struct str *t, const struct pin *p)
{
    origin(t, "#", p);
}

static void head_sbatch(struct str *t, const struct pin *p)
{
    str_add(t, "#!/bin/bash\n");
    origin(t, "#", p);
    str_add(t, "# steps get what is set below\nexport SLURM_EXPORT_ENV=ALL\n");
}

static void head_lua(struct str *t, const struct pin *p)
{
    origin(t, "--", p);
    str_add(t, "whatis(\"environment captured by recon-pin\")\n");
}

static void head_tcl(struct str *t, const struct pin *p)
{
    str_add(t, "#%Module1.0\n");
    origin(t, "#", p);
    str_add(t, "module-whatis \"environment captured by recon-pin\"\n");
}

static const struct form {
    const char *name;
    void (*head)(struct str *t, const struct pin *p);
    void (*variable)(struct str *t, const struct pin_variable *v);
} forms[] = {
    { "sh", head_shell, in_shell },  { "sbatch", head_sbatch, in_shell }, { "lmod", head_lua, in_lua },
    { "tcl", head_tcl, in_tcl },     { "dotenv", head_shell, in_dotenv },
};

int pin_export(const struct pin *p, const char *format, struct str *ret, struct strv *ret_left, struct err *err)
{
    const struct form *f = NULL;

    for (size_t i = 0; i < COUNT(forms); i++)
        if (str_eq(forms[i].name, format))
            f = &forms[i];
    if (!f)
        return err_set(err, CODE_USAGE, "--format '%s': wanted sh, sbatch, lmod, tcl, dotenv, conda-explicit or requirements", format);
    f->head(ret, p);
    for (size_t i = 0; i < p->variables.n; i++) {
        if (identifier(p->variables.v[i].name))
            f->variable(ret, &p->variables.v[i]);
        else
            strv_add(ret_left, p->variables.v[i].name);
    }
    return 0;
}
