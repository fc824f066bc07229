#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static void judge(const struct check_case *c, const char *path, const struct gpu_images *images,
                  const struct facts_gpu *gpu, const struct arch_verdict *v, struct findings *out)
{
    int device = compat_capability(gpu->compute_capability);
    char *words, *list, *remedy;

    (void)c;
    if (v->fit != FIT_PTX)
        return;
    words = gpu_words(gpu);
    list = arch_list(images);
    remedy = v->variable ? arch_unset(v) : xasprintf("add -gencode arch=compute_%d,code=sm_%d to the build of '%s'", device, device, path_base(path));
    finding_explain(findings_add(out, "arch-jit-only", LEVEL_WARN, SCOPE_NODE, path,
                                 "'%s' has %s PTX for %s%s%s; it holds %s", path_base(path), v->variable ? "SASS and" : "only",
                                 words, v->variable ? ", of which the driver takes the PTX by " : "",
                                 v->variable ? v->variable : "", list),
                    v->variable ? "jit-variable" : NULL,
                    "the driver compiles the PTX at the first launch, which can take minutes, and keeps the result "
                          "in ~/.nv/ComputeCache", remedy);
    free(words);
    free(list);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    return arch_each(c, judge, out, err);
}

const struct rule rule_arch_jit_only = {
    .name = "arch-jit-only",
    .doc = "only PTX fits the GPU: the first launch compiles it",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
