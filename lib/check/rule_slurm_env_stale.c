#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static void pinned(const struct check_case *c, struct findings *out)
{
    struct str names = { 0 };

    for (size_t i = 0; c->pin && i < c->pin->variables.n; i++) {
        const struct pin_variable *v = &c->pin->variables.v[i];

        if (v->how != PIN_UNSET && (str_starts(v->name, "SLURM_") || str_starts(v->name, "SBATCH_")) &&
            !str_eq(v->name, "SLURM_EXPORT_ENV"))
            str_addf(&names, "%s%s", names.len ? ", " : "", v->name);
    }
    if (names.len)
        finding_explain(findings_add(out, "slurm-env-stale", LEVEL_WARN, SCOPE_JOB, names.s,
                                     "in the pin, and replayed over what Slurm gives the job"),
                        NULL, "the pin was captured inside a job",
                        "capture the pin without --env SLURM_..., outside a job");
    str_release(&names);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    static const char *const memory[] = { "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU" };
    const char *id = env_get(c->received, "SLURM_JOB_ID"), *old = env_get(c->received, "SLURM_JOBID");
    struct str both = { 0 };
    size_t n = 0;

    (void)err;
    pinned(c, out);
    if (id && old && !str_eq(id, old))
        finding_explain(findings_add(out, "slurm-env-stale", LEVEL_WARN, SCOPE_JOB, "SLURM_JOBID",
                                     "is %s, and SLURM_JOB_ID is %s", old, id),
                        NULL, "variables of an outer job were exported into this one", "unset SLURM_JOBID");
    for (size_t i = 0; i < COUNT(memory); i++)
        if (env_get(c->received, memory[i]))
            str_addf(&both, "%s%s", n++ ? ", " : "", memory[i]);
    if (n > 1)
        finding_explain(findings_add(out, "slurm-env-stale", LEVEL_WARN, SCOPE_JOB, both.s,
                                     "are set together, and srun takes one of them only"),
                        NULL, "sbatch was called inside another job, whose variables came along",
                        "unset ${!SLURM_@} before sbatch");
    str_release(&both);
    return 0;
}

const struct rule rule_slurm_env_stale = {
    .name = "slurm-env-stale",
    .doc = "variables of another Slurm job are in the environment, by a pin that captured them or a "
           "shell inside a job",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_ENV,
    .eval = eval,
};
