#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static void judge(const struct check_case *c, const char *path, const struct gpu_images *images,
                  const struct facts_gpu *gpu, const struct arch_verdict *v, struct findings *out)
{
    const char *cuda = driver_cuda(c->facts);
    int device = compat_capability(gpu->compute_capability);
    char *words, *remedy;

    (void)images;
    if (v->fit != FIT_PTX_TOO_NEW)
        return;
    words = gpu_words(gpu);
    remedy = v->variable ? arch_unset(v) : xasprintf("build '%s' with the toolkit of CUDA %s or older, or add -gencode arch=compute_%d,code=sm_%d; "
                       "else take a node with a newer driver", path_base(path), cuda, device, device);
    finding_explain(findings_add(out, "ptx-newer-than-driver", LEVEL_ERROR, SCOPE_NODE, path,
                                 "'%s' has %s PTX for %s, and its ISA %s is newer than ISA %s, which the driver%s%s "
                                 "(CUDA %s) takes", path_base(path),
                                 v->variable ? "SASS, which a variable forbids, and" : "only", words, v->isa, compat_ptx_isa_of_cuda(cuda),
                                 c->facts->driver.kernel_module ? " " : "",
                                 c->facts->driver.kernel_module ? c->facts->driver.kernel_module : "", cuda),
                    v->variable, "the driver would have to compile the PTX and cannot read it (error 222); minor-version "
                          "compatibility does not cover PTX", remedy);
    free(words);
    free(remedy);
}

/* PTX would be compiled, and whether the driver can is not known. */
static void note_unknown(const struct check_case *c, const char *path, const struct gpu_images *images,
                         const struct facts_gpu *gpu, const struct arch_verdict *v, struct findings *out)
{
    (void)c; (void)images; (void)gpu;
    if (v->fit == FIT_PTX && out->n == 0)
        findings_add(out, "", LEVEL_NOTE, SCOPE_NODE, path, "%s", v->isa);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct findings jit = { 0 };
    int rc;

    if (driver_cuda(c->facts))
        return arch_each(c, judge, out, err);
    rc = arch_each(c, note_unknown, &jit, err);
    if (rc == 0 && jit.n)
        rc = err_set(err, CODE_UNAVAILABLE, "'%s' has only PTX (ISA %s) for the node's GPU, but the driver is not known",
                     jit.v[0].object, jit.v[0].text);
    findings_release(&jit);
    return rc;
}

const struct rule rule_ptx_newer_than_driver = {
    .name = "ptx-newer-than-driver",
    .doc = "only PTX fits the GPU, and its ISA version is above what the node's driver compiles",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
