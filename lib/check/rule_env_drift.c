#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Does the list value begin (or end) with the pinned elements? */
static bool holds(const struct pin_variable *v, const char *has)
{
    size_t n = strlen(v->value), m = strlen(has);

    if (v->how == PIN_PREPEND)
        return str_starts(has, v->value) && (!has[n] || has[n] == ':');
    if (v->how == PIN_APPEND)
        return str_ends(has, v->value) && (m == n || has[m - n - 1] == ':');
    return str_eq(v->value, has);
}

static void report(const struct check_case *c, const struct pin_variable *v, const char *has, struct findings *out)
{
    enum level level = c->restored ? LEVEL_WARN : LEVEL_ERROR;
    const char *done = c->restored ? "; restored from the pin" : "";
    char *quoted = v->how == PIN_UNSET ? NULL : esc_shell(v->value), *remedy;
    struct finding *f;

    if (v->how == PIN_UNSET) {
        remedy = xasprintf("unset %s", v->name);
        f = findings_add(out, "env-drift", level, SCOPE_JOB, v->name, "is '%s' as received, pinned as unset%s", has, done);
    } else {
        remedy = v->how == PIN_SET       ? xasprintf("export %s=%s", v->name, quoted)
                 : v->how == PIN_PREPEND ? xasprintf("export %s=%s\"${%s:+:$%s}\"", v->name, quoted, v->name, v->name)
                                         : xasprintf("export %s=\"${%s:+$%s:}\"%s", v->name, v->name, v->name, quoted);
        f = findings_add(out, "env-drift", level, SCOPE_JOB, v->name, "is '%s' as received, pinned as '%s'%s", has,
                         v->value, done);
    }
    finding_explain(f, NULL, "the shell, a module or a start-up file of the node set it after the capture", remedy);
    free(remedy);
    free(quoted);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < c->pin->variables.n; i++) {
        const struct pin_variable *v = &c->pin->variables.v[i];
        const char *has = env_get(c->received, v->name);

        if (!has)
            continue; /* env-not-exported */
        if (v->how == PIN_UNSET ? *has != 0 : v->value && !holds(v, has))
            report(c, v, has, out);
    }
    return 0;
}

const struct rule rule_env_drift = {
    .name = "env-drift",
    .doc = "a pinned variable has another value as received, or is set though pinned as unset; the launcher restores it and "
           "says so; an error where nobody restores",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_PIN | CHECK_ENV,
    .eval = eval,
};
