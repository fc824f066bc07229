#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static void judge(const struct check_case *c, const char *text, struct findings *out)
{
    const char *version = c->build->toolkit.version, *first, *dropped;
    char suffix = 0, *remedy;
    bool gone;
    int arch;

    if (compat_arch(text, &arch, &suffix) || compat_arch_toolkits(arch, suffix, &first, &dropped)) {
        findings_add(out, "not-checked", LEVEL_NOTE, SCOPE_NODE, "toolkit-too-old",
                     "no toolkit is known for '%s'", text);
        out->not_checked++;
        return;
    }
    gone = dropped && version_cmp(version, dropped) >= 0;
    if (!gone && version_cmp(version, first) >= 0)
        return;
    remedy = gone ? xasprintf("a toolkit older than CUDA %s, or leave sm_%d out", dropped, arch)
                  : xasprintf("module load cuda/%s or newer, or leave sm_%d%.1s out (PTX of an older "
                              "architecture is compiled "
                              "by the driver)",
                              first, arch, suffix ? &suffix : "");
    finding_explain(findings_add(out, "toolkit-too-old", LEVEL_ERROR, SCOPE_JOB,
                                 c->build->toolkit.path ? c->build->toolkit.path : version,
                                 gone ? "CUDA %s no longer compiles for sm_%d%.1s: dropped in CUDA %s"
                                      : "CUDA %s cannot compile for sm_%d%.1s, which needs CUDA %s or newer",
                                 version, arch, suffix ? &suffix : "", gone ? dropped : first),
                    gone ? "dropped" : NULL,
                    gone ? "newer toolkits leave old architectures out"
                         : "nvcc would end with: unsupported gpu architecture; the CUDA version that "
                           "nvidia-smi prints is the "
                           "driver's, not the toolkit's",
                    remedy);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    if (!c->build)
        return 0;
    if (!c->build->toolkit.version)
        return err_set(err, CODE_UNAVAILABLE, "the version of the toolkit is not known");
    for (size_t i = 0; i < c->build->archs.n; i++)
        judge(c, c->build->archs.v[i], out);
    for (size_t i = 0; !c->build->archs.n && i < c->facts->gpus.n; i++)
        if (compat_capability(c->facts->gpus.v[i].compute_capability))
            judge(c, c->facts->gpus.v[i].compute_capability, out);
    return 0;
}

const struct rule rule_toolkit_too_old = {
    .name = "toolkit-too-old",
    .doc = "the toolkit that is to build cannot compile for an architecture that is asked for: it is "
           "too old, or dropped it",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
