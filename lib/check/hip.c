/* HIP code against AMD's GPUs. Rules: check_priv.h. */
#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Generic targets and the processors that run them. */
static const struct {
    const char *target, *processors;
} generic[] = {
    { "gfx9-generic", "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c" },
    { "gfx9-4-generic", "gfx940 gfx941 gfx942 gfx950" },
    { "gfx10-1-generic", "gfx1010 gfx1011 gfx1012 gfx1013" },
    { "gfx10-3-generic", "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036" },
    { "gfx11-generic", "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153" },
    { "gfx12-generic", "gfx1200 gfx1201" },
};

static bool same_processor(const char *target, size_t n, const char *gpu, size_t m)
{
    struct strv list = { 0 };
    bool found = n == m && strncmp(target, gpu, n) == 0;

    for (size_t i = 0; i < COUNT(generic) && !found; i++) {
        if (strlen(generic[i].target) != n || strncmp(generic[i].target, target, n))
            continue;
        strv_split(&list, generic[i].processors, " ");
        for (size_t k = 0; k < list.n && !found; k++)
            found = strlen(list.v[k]) == m && strncmp(list.v[k], gpu, m) == 0;
    }
    strv_release(&list);
    return found;
}

/* '+', '-' or 0 for ":NAME+" in a target ID. */
static char feature(const char *id, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = id; (p = strchr(p, ':')); p++)
        if (strncmp(p + 1, name, n) == 0 && (p[1 + n] == '+' || p[1 + n] == '-'))
            return p[1 + n];
    return 0;
}

int hip_runs(const char *target, const char *gpu)
{
    static const char *const features[] = { "xnack", "sramecc" };
    int runs = 1;

    if (!gpu || !same_processor(target, strcspn(target, ":"), gpu, strcspn(gpu, ":")))
        return 0;
    for (size_t i = 0; i < COUNT(features); i++) {
        char code = feature(target, features[i]), device = feature(gpu, features[i]);

        if (code && device && code != device)
            return 0;
        if (code && !device)
            runs = -1;
    }
    return runs;
}

int hip_fit(const struct strv *targets, const char *gpu)
{
    int best = 0;

    for (size_t i = 0; i < targets->n; i++) {
        int runs = hip_runs(targets->v[i], gpu);

        if (runs > 0)
            return 1;
        best = runs ? runs : best;
    }
    return best;
}

static char *joined(const struct strv *l)
{
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++)
        str_addf(&t, "%s%s", i ? " " : "", l->v[i]);
    return str_take(&t);
}

static void tell(const char *path, const struct strv *targets, const struct facts_gpu *g, int fit, struct findings *out)
{
    char *list = joined(targets), *remedy;
    const char *gpu = g->compute_capability;

    if (fit < 0) {
        remedy = xasprintf("rocminfo | grep -m1 amdgcn tells the node's features; else add --offload-arch=%s to the build", gpu);
        finding_explain(findings_add(out, "arch-no-image", LEVEL_NOTE, SCOPE_NODE, path,
                                     "'%s' has code for %s with features that may be off or on there; it holds %s", path_base(path),
                                     gpu, list),
                        "hip-feature", "code built for xnack or sramecc on (+) or off (-) runs on a GPU in that mode only", remedy);
    } else {
        remedy = xasprintf("add --offload-arch=%.*s to the build of '%s', or take a node with one of the GPUs that it holds code for",
                           (int)strcspn(gpu, ":"), gpu, path_base(path));
        finding_explain(findings_add(out, "arch-no-image", LEVEL_ERROR, SCOPE_NODE, path,
                                     "'%s' has no code for AMD GPU %s; it holds %s", path_base(path), gpu, list),
                        "hip", "AMD code runs on the very processor that it was built for, a generic target on its list only; a launch "
                               "would fail with hipErrorNoBinaryForGpu (209)",
                        remedy);
    }
    free(list);
    free(remedy);
}

static void each_gpu(const struct check_case *c, const char *path, const struct strv *targets, struct findings *out)
{
    struct strv seen = { 0 };

    for (size_t i = 0; i < c->facts->gpus.n; i++) {
        const struct facts_gpu *g = &c->facts->gpus.v[i];
        int fit = g->compute_capability ? hip_fit(targets, g->compute_capability) : 1;

        if (fit > 0 || !str_eq(g->vendor, "amd") || strv_has(&seen, g->compute_capability))
            continue;
        strv_add(&seen, g->compute_capability);
        tell(path, targets, g, fit, out);
    }
    strv_release(&seen);
}

int hip_each(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };
    int rc = 0;

    while (rc == 0 && walk_next(c, &w)) {
        struct gpu_images scratch = { 0 };
        const struct gpu_images *images = library_images(c, w.lib, &scratch);

        if (images->hip.n && !c->facts->gpus_known)
            rc = err_set(err, CODE_UNAVAILABLE, "'%s' has HIP code, but the GPUs of the node are not known", library_name(w.lib));
        else if (images->hip.n && !images->hip_unread)
            each_gpu(c, library_name(w.lib), &images->hip, out);
        images_release(&scratch);
    }
    return rc;
}
