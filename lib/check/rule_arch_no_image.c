#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static void judge(const struct check_case *c, const char *path, const struct gpu_images *images,
                  const struct facts_gpu *gpu, const struct arch_verdict *v, struct findings *out)
{
    int device = compat_capability(gpu->compute_capability);
    char *list, *words, *remedy;
    struct finding *f;

    (void)c;
    if (v->fit != FIT_NONE)
        return;
    list = arch_list(images);
    words = gpu_words(gpu);
    remedy = xasprintf("rebuild '%s' with -gencode arch=compute_%d,code=sm_%d, or take a GPU that its code fits: "
                       "recon-check --assume gpu=X.Y '%s'", path_base(path), device, device, path);
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
    free(list);
    free(words);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    return arch_each(c, judge, out, err);
}

const struct rule rule_arch_no_image = {
    .name = "arch-no-image",
    .doc = "a binary holds neither SASS nor PTX that a GPU of the node runs, judged by container (translation unit); "
           "libraries that choose by themselves (cuBLAS, cuDNN, NCCL, ...) are judged as a whole",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
