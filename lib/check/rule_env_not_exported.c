#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* A variable that the launcher, the shell or Slurm sets anew anyway tells nothing. */
static bool wanted(const struct pin_variable *v)
{
    return v->how != PIN_UNSET && v->value && *v->value;
}

static char *remedy(const struct check_case *c, const struct strv *lost)
{
    struct str t = { 0 };

    if (env_get(c->received, "SLURM_JOB_ID")) {
        str_add(&t, "srun --export=ALL,NAME=VALUE instead of --export=NAME=VALUE (or export SLURM_EXPORT_ENV=ALL)");
        return str_take(&t);
    }
    str_add(&t, "export");
    for (size_t i = 0; i < lost->n; i++)
        for (size_t j = 0; j < c->pin->variables.n; j++)
            if (str_eq(c->pin->variables.v[j].name, lost->v[i])) {
                char *q = esc_shell(c->pin->variables.v[j].value);

                str_addf(&t, " %s=%s", lost->v[i], q);
                free(q);
            }
    return str_take(&t);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    bool step = env_get(c->received, "SLURM_STEP_ID"), job = env_get(c->received, "SLURM_JOB_ID");
    struct strv lost = { 0 };
    struct str names = { 0 };
    char *what;

    (void)err;
    for (size_t i = 0; i < c->pin->variables.n; i++) {
        const struct pin_variable *v = &c->pin->variables.v[i];

        if (wanted(v) && !env_get(c->received, v->name)) {
            strv_add(&lost, v->name);
            str_addf(&names, "%s%s", lost.n > 1 ? ", " : "", v->name);
        }
    }
    if (lost.n) {
        what = remedy(c, &lost);
        finding_explain(findings_add(out, "env-not-exported", c->restored ? LEVEL_WARN : LEVEL_ERROR, SCOPE_JOB, names.s,
                                     "%s pinned, but not in the environment %s%s",
                                     lost.n > 1 ? "these variables are" : "the variable is",
                                     step ? "of this Slurm step" : job ? "of this Slurm job" : "as received",
                                     c->restored ? "; restored from the pin" : ""),
                        lost.n > 1 ? "export-none" : NULL,
                        step || job ? "an --export list without ALL, or --export=NONE, leaves everything else behind"
                                    : "the shell that starts the program does not have what was there at capture",
                        what);
        free(what);
    }
    strv_release(&lost);
    str_release(&names);
    return 0;
}

const struct rule rule_env_not_exported = {
    .name = "env-not-exported",
    .doc = "a pinned variable is absent as received; the launcher restores it and says so; an error where nobody restores",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_PIN | CHECK_ENV,
    .eval = eval,
};
