#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    char *const *env = c->restored ? case_env(c) : c->received;
    const char *prefix = c->pin->prefix, *conda = env_get(env, "CONDA_PREFIX"),
               *venv = env_get(env, "VIRTUAL_ENV");
    char *quoted, *remedy;

    (void)err;
    if (!prefix || !*prefix || str_eq(prefix, conda) || str_eq(prefix, venv))
        return 0;
    quoted = esc_shell(prefix);
    remedy = xasprintf("run it by recon-launch, which restores the environment, or: export PATH=%s/bin:$PATH",
                       quoted);
    finding_explain(
        findings_add(out, "env-prefix-missing", LEVEL_ERROR, SCOPE_JOB, prefix,
                     "was active at capture, and %s%s%s", conda || venv ? "'" : "no prefix",
                     venv    ? venv
                     : conda ? conda
                             : "",
                     conda || venv ? "' is now" : " is now"),
        NULL, "a batch shell reads no start-up file, so that `conda activate` fails or does nothing", remedy);
    free(remedy);
    free(quoted);
    return 0;
}

const struct rule rule_env_prefix_missing = {
    .name = "env-prefix-missing",
    .doc = "the conda or venv prefix that was active at capture is not active; nothing is said where "
           "the launcher restores it",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_PIN | CHECK_ENV,
    .eval = eval,
};
