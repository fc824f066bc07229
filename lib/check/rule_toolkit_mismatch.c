#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* NVIDIA's own libraries bring what they need. */
static bool is_vendors(const struct library *l)
{
    static const char *const begins[] = { "libcu", "libnv", "libnccl", "libnpp" };

    for (size_t i = 0; l->soname && i < COUNT(begins); i++)
        if (str_starts(path_base(l->soname), begins[i]))
            return true;
    return false;
}

/* "13" of libcudart.so.13, which it was linked with; NULL none. */
static const char *runtime_needed(const struct closure *in, size_t i)
{
    for (size_t e = 0; e < in->edges.n; e++)
        if (in->edges.v[e].from == i && str_starts(path_base(in->edges.v[e].name), "libcudart.so."))
            return path_base(in->edges.v[e].name) + strlen("libcudart.so.");
    return NULL;
}

/* The toolkit that an object was built with or, for libcudart, is of; owned, NULL not known. What its images tell is the least
 * that it can be: compressed ones show their architecture alone. */
static char *toolkit_of(const struct check_case *c, const struct closure *in, size_t i)
{
    const struct library *l = &in->libs.v[i];
    const char *runtime;
    struct gpu_images scratch = { 0 };
    const struct gpu_images *images = library_images(c, l, &scratch);
    char *version = NULL;

    if (l->soname && str_starts(path_base(l->soname), "libcudart.so."))
        version = xstrdup(path_base(l->soname) + strlen("libcudart.so."));
    else if (images->toolkit && !is_vendors(l)) {
        runtime = runtime_needed(in, i);
        version = xstrdup(runtime && atoi(runtime) > atoi(images->toolkit) ? runtime : images->toolkit);
    }
    images_release(&scratch);
    return version;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < c->resolution->closures.n; i++) {
        const struct closure *in = &c->resolution->closures.v[i];
        const struct library *first = NULL;
        char *had = NULL, *has = NULL;

        for (size_t j = 0; j < in->libs.n; j++, free(has), has = NULL) {
            const struct library *l = &in->libs.v[j];

            has = l->path && !l->corrupt ? toolkit_of(c, in, j) : NULL;
            if (has && !had) {
                first = l;
                had = xstrdup(has);
            } else if (has && atoi(has) != atoi(had)) {
                finding_explain(
                    findings_add(out, "toolkit-mismatch", LEVEL_WARN, SCOPE_JOB, library_name(l),
                                 "is of CUDA %s, and '%s' in the same process of CUDA %s", has,
                                 library_name(first), had),
                    NULL, "each CUDA runtime keeps its own state; memory and streams are not shared",
                    "build all parts with one toolkit, the one that PyTorch was built with if it takes part");
            }
        }
        free(had);
    }
    return 0;
}

const struct rule rule_toolkit_mismatch = {
    .name = "toolkit-mismatch",
    .doc = "parts of one process were built with CUDA toolkits of different major versions, or two "
           "CUDA runtimes meet",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
