/* OpenMP's device code (clang) against the node's GPUs: where none of them runs it, the target regions run on the host. Rules of
 * LLVM's offload plugins: SASS as for CUDA, AMD's code by target ID, IR is compiled for any GPU of its vendor. */
#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>
#include <strings.h>

static bool sass_runs(const char *target, const char *capability)
{
    struct gpu_image image = { .kind = IMAGE_SASS };
    unsigned arch;
    char suffix = 0;

    if (sscanf(target, "sm_%4u%c", &arch, &suffix) < 1)
        return false;
    image.arch = (uint16_t)arch;
    image.suffix = suffix;
    return compat_image_runs(&image, capability, NULL) == 1;
}

/* True also where it is not known. */
static bool may_run(const struct offload_image *o, const struct facts_gpu *g)
{
    bool nvidia = str_eq(g->vendor, "nvidia"), amd = str_eq(g->vendor, "amd");

    if (!nvidia && !amd)
        return true;
    if (!str_starts(o->target, nvidia ? "sm_" : "gfx"))
        return false;
    if (o->form != OFFLOAD_CODE || !g->compute_capability)
        return true;
    return nvidia ? sass_runs(o->target, g->compute_capability) : hip_runs(o->target, g->compute_capability) != 0;
}

static bool any_runs(const struct offload_images *l, const struct facts *f)
{
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; l->v[i].producer == OFFLOAD_OPENMP && k < f->gpus.n; k++)
            if (may_run(&l->v[i], &f->gpus.v[k]))
                return true;
    return false;
}

/* "sm_80 gfx90a"; owned, NULL: there is no code of OpenMP. */
static char *targets_of(const struct offload_images *l)
{
    struct str t = { 0 };

    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].producer == OFFLOAD_OPENMP)
            str_addf(&t, "%s%s", t.len ? " " : "", l->v[i].target);
    return t.len ? str_take(&t) : NULL;
}

static void tell(const struct check_case *c, const char *path, const char *list, struct findings *out)
{
    const struct facts_gpu *g = &c->facts->gpus.v[0];
    const char *offload = case_var(c, "OMP_TARGET_OFFLOAD");
    bool mandatory = offload && strcasecmp(offload, "MANDATORY") == 0;
    int arch = compat_capability(g->compute_capability);
    const char *gpu = g->compute_capability ? g->compute_capability : "native";
    char *words = arch ? gpu_words(g) : xasprintf("%s GPU%s%s", str_eq(g->vendor, "amd") ? "AMD" : "NVIDIA",
                                                  g->compute_capability ? " " : "s", g->compute_capability ? gpu : "");
    char *target = arch ? xasprintf("sm_%d", arch) : xasprintf("%.*s", (int)strcspn(gpu, ":"), gpu);
    char *remedy = xasprintf("add --offload-arch=%s to the build of '%s'", target, path_base(path));

    finding_explain(findings_add(out, "arch-no-image", mandatory ? LEVEL_ERROR : LEVEL_WARN, SCOPE_NODE, path,
                                 "'%s' has OpenMP device code for %s, none for %s%s", path_base(path), list, words,
                                 mandatory ? ", and OMP_TARGET_OFFLOAD is MANDATORY" : ""),
                    "openmp",
                    mandatory ? "the program ends at its first target region"
                              : "its target regions run on the host instead, without a word",
                    remedy);
    free(remedy);
    free(target);
    free(words);
}

int openmp_each(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *offload = case_var(c, "OMP_TARGET_OFFLOAD");
    struct walk w = { 0 };
    int rc = 0;

    if (offload && strcasecmp(offload, "DISABLED") == 0)
        return 0;
    while (rc == 0 && walk_next(c, &w)) {
        struct gpu_images scratch = { 0 };
        const struct offload_images *code = &library_images(c, w.lib, &scratch)->offload;
        char *list = targets_of(code);

        if (list && !c->facts->gpus.n)
            rc = err_set(err, CODE_UNAVAILABLE, "'%s' has OpenMP device code, but %s", library_name(w.lib),
                         c->facts->gpus_known ? "the node has no GPU" : "the GPUs of the node are not known");
        else if (list && !any_runs(code, c->facts))
            tell(c, library_name(w.lib), list, out);
        free(list);
        images_release(&scratch);
    }
    return rc;
}
