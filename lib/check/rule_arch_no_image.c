#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* By one variable of the environment alone. */
static void judge_variable(const char *path, const char *list, const char *words, const struct arch_verdict *v,
                           struct findings *out)
{
    bool forced = strstr(v->variable, "FORCE") != NULL;
    char *remedy = arch_unset(v);

    finding_explain(findings_add(out, "arch-no-image", LEVEL_ERROR, SCOPE_JOB, path,
                                 "%s makes the driver %s, and '%s' has no %s for %s; it holds %s", v->variable,
                                 forced ? "pass over SASS" : "compile no PTX", path_base(path), forced ? "PTX" : "SASS", words,
                                 list),
                    "jit-variable",
                    forced ? "a launch would fail with error 209, no kernel image"
                           : "a launch would fail with error 223, JIT compilation disabled, unless ~/.nv/ComputeCache has the result "
                             "of an earlier one",
                    remedy);
    free(remedy);
}

/* What to add to the build, and where the file runs as it is. */
static char *remedy_of(const char *path, const char *soname, const struct gpu_images *images, int device)
{
    const char *first = NULL, *dropped = NULL;
    char *where = arch_runs_on(images, soname), *remedy;

    compat_arch_toolkits(device, 0, &first, &dropped);
    remedy = xasprintf("add -gencode arch=compute_%d,code=sm_%d%s%s%s%s%s to the build of '%s'%s%s", device, device,
                       first ? " (CUDA " : "", first ? first : "", first ? dropped ? " or newer, before " : " or newer)" : "",
                       dropped ? dropped : "", dropped ? ")" : "", path_base(path),
                       where ? "; as it is it runs on compute capability " : "", where ? where : "");
    free(where);
    return remedy;
}

static void judge(const struct check_case *c, const char *path, const struct gpu_images *images,
                  const struct facts_gpu *gpu, const struct arch_verdict *v, struct findings *out)
{
    char *list, *words, *remedy;
    struct finding *f;

    (void)c;
    if (v->fit != FIT_NONE)
        return;
    list = arch_list(images);
    words = gpu_words(gpu);
    remedy = remedy_of(path, path_base(path), images, compat_capability(gpu->compute_capability));
    if (v->variable) {
        judge_variable(path, list, words, v, out);
    } else {
        if (v->unfit < v->containers)
            f = findings_add(out, "arch-no-image", LEVEL_ERROR, SCOPE_NODE, path,
                             "%u of %u parts of '%s' have no code for %s; the file holds %s", v->unfit, v->containers,
                             path_base(path), words, list);
        else
            f = findings_add(out, "arch-no-image", LEVEL_ERROR, SCOPE_NODE, path, "'%s' has no code for %s; it holds %s",
                             path_base(path), words, list);
        finding_explain(f, v->unfit < v->containers ? "per-container" : v->specific ? "arch-specific" : NULL,
                        v->specific ? "code for sm_XYa runs on exactly that GPU, for sm_XYf within its family only"
                                    : "SASS runs on GPUs of the same major version and an equal or higher minor, PTX on "
                                      "equal and newer ones; a launch would fail with error 209",
                        remedy);
    }
    free(list);
    free(words);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    return hip_each(c, out, err) || openmp_each(c, out, err) || arch_each(c, judge, out, err) ? -1 : 0;
}

const struct rule rule_arch_no_image = {
    .name = "arch-no-image",
    .doc = "a binary holds no code that a GPU of the node runs: neither SASS nor PTX, judged by container (translation unit), "
           "libraries that choose by themselves (cuBLAS, cuDNN, NCCL, ...) as a whole; for AMD's GPUs no HIP target; code of OpenMP "
           "for no GPU of the node is a warning",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
