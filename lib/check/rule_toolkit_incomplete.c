#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static const struct facts_toolkit *find(const struct check_case *c)
{
    const char *home = case_var(c, "CUDA_HOME");

    if (c->build)
        return c->build->toolkit.path ? &c->build->toolkit : NULL;
    if (!home || (!case_var(c, "TORCH_CUDA_ARCH_LIST") && !case_var(c, "CUDAARCHS")))
        return NULL;
    for (size_t i = 0; i < c->facts->toolkit_parts.n; i++)
        if (str_eq(c->facts->toolkit_parts.v[i].path, home))
            return &c->facts->toolkit_parts.v[i];
    return NULL;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const struct facts_toolkit *t = find(c);

    (void)err;
    if (t && (!t->nvcc || !t->headers))
        finding_explain(findings_add(out, "toolkit-incomplete", LEVEL_WARN, SCOPE_JOB, t->path, "has %s",
                                     !t->nvcc && !t->headers ? "neither nvcc nor headers"
                                     : t->nvcc               ? "no headers"
                                                             : "no nvcc"),
                        NULL, "conda's cudatoolkit and runtime images bring the libraries alone",
                        "module load cuda, or conda install cuda-nvcc cuda-cudart-dev");
    return 0;
}

const struct rule rule_toolkit_incomplete = {
    .name = "toolkit-incomplete",
    .doc = "CUDA_HOME lacks nvcc or the headers where something is to be built "
           "(TORCH_CUDA_ARCH_LIST, CUDAARCHS, or --toolkit)",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
