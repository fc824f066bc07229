#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const struct compat_toolkit *t;
    char *remedy;

    if (!c->build || !c->build->gcc)
        return 0;
    t = compat_toolkit(c->build->toolkit.version);
    if (!t)
        return err_set(err, CODE_UNAVAILABLE, "what GCC CUDA %s takes is not known",
                       c->build->toolkit.version ? c->build->toolkit.version : "of this toolkit");
    if (c->build->gcc < t->min_gcc) {
        remedy = xasprintf("nvcc -ccbin g++-%d, or module load gcc/%d", t->min_gcc, t->min_gcc);
        finding_explain(findings_add(out, "host-compiler-too-old", LEVEL_ERROR, SCOPE_JOB, "gcc",
                                     "GCC %d is older than GCC %d, the first that CUDA %s takes",
                                     c->build->gcc, t->min_gcc, t->cuda),
                        NULL, "nvcc would end with: unsupported GNU version", remedy);
        free(remedy);
    }
    return 0;
}

const struct rule rule_host_compiler_too_old = {
    .name = "host-compiler-too-old",
    .doc = "the host GCC is older than the toolkit takes",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
