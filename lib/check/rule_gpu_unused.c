#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static size_t listed(const char *list)
{
    struct strv l = { 0 };
    size_t n;

    if (!list || !*list || str_eq(list, "NoDevFiles") || str_eq(list, "-1"))
        return 0;
    strv_split(&l, list, ",");
    n = l.n;
    strv_release(&l);
    return n;
}

static size_t number(char *const *env, const char *name)
{
    const char *s = env_get(env, name);
    long n = s ? strtol(s, NULL, 10) : 0;

    return n > 0 ? (size_t)n : 0;
}

static bool is_runner(const struct check_case *c)
{
    return c->resolution->closures.n && c->resolution->closures.v[0].libs.n &&
           str_eq(path_base(library_name(&c->resolution->closures.v[0].libs.v[0])), "recon-run");
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    size_t gpus = number(c->received, "SLURM_GPUS_ON_NODE"),
           tasks = number(c->received, "SLURM_STEP_TASKS_PER_NODE");
    size_t seen = listed(case_var(c, "CUDA_VISIBLE_DEVICES"));

    (void)err;
    if (!gpus)
        gpus = listed(env_get(c->received, "SLURM_JOB_GPUS"));
    if (!tasks)
        tasks = number(c->received, "SLURM_TASKS_PER_NODE");
    if (!env_get(c->received, "SLURM_JOB_ID") || gpus < 2 || !seen || !case_uses_gpu(c))
        return 0;
    if (is_runner(c))
        seen = 1; /* a runner works on one GPU; datasets are spread over tasks */
    if ((tasks ? tasks : 1) * seen < gpus)
        finding_explain(findings_add(out, "gpu-unused", LEVEL_WARN, SCOPE_JOB, case_node(c),
                                     "%zu GPUs are allocated, and %zu task%s of this node use%s %zu", gpus,
                                     tasks ? tasks : 1, tasks > 1 ? "s" : "", tasks > 1 ? "" : "s",
                                     (tasks ? tasks : 1) * seen),
                        NULL, "GPUs are asked for by job and used by task",
                        "gres = \"gpu:1\" with an array of tasks, or --ntasks-per-node as many as GPUs with "
                        "--gpus-per-task=1");
    return 0;
}

const struct rule rule_gpu_unused = {
    .name = "gpu-unused",
    .doc = "more GPUs are allocated on the node than its tasks use",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION | CHECK_ENV,
    .eval = eval,
};
