#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct visible v;
    const char *list = case_var(c, "CUDA_VISIBLE_DEVICES");
    int rc = visible_devices(c, &v);

    /* -1 is written on purpose; empty or NoDevFiles (Slurm, for a job without GPUs) comes about by itself */
    if (devices_hidden(c) && !str_starts(list, "-1") && node_has_vendor(c->facts, "nvidia") && case_uses_gpu(c))
        finding_explain(findings_add(out, "device-not-visible", LEVEL_WARN, SCOPE_JOB, "CUDA_VISIBLE_DEVICES",
                                     "'%s' hides the %zu GPU%s of %s: the program, which has GPU code, sees no device", list,
                                     c->facts->gpus.n, plural(c->facts->gpus.n), case_node(c)),
                        "hidden", "every CUDA call ends with error 100, no CUDA-capable device is detected; what can do without "
                                  "one runs on the CPU",
                        "unset CUDA_VISIBLE_DEVICES, and let Slurm set it");
    if (rc < 0)
        return case_uses_gpu(c) ? err_set(err, CODE_UNAVAILABLE, "the GPUs of %s are not known", case_node(c))
                                : 0;
    if (rc == 0)
        return 0;
    if (v.bad && !v.good && (v.by_uuid || case_uses_gpu(c)))
        finding_explain(
            findings_add(out, "device-not-visible", LEVEL_ERROR, SCOPE_NODE, "CUDA_VISIBLE_DEVICES",
                         "'%s' names no GPU of %s, which has %zu", v.bad, case_node(c), v.gpus),
            NULL,
            v.by_uuid ? "the UUID is of a GPU or MIG instance of another node, or of one that was made anew"
                      : "the index is beyond the GPUs that this job may see",
            "unset CUDA_VISIBLE_DEVICES, and let Slurm set it; nvidia-smi -L lists what is there");
    visible_release(&v);
    return 0;
}

const struct rule rule_device_not_visible = {
    .name = "device-not-visible",
    .doc = "the first entry of CUDA_VISIBLE_DEVICES names no GPU of the node: the program sees none; a warning where it is empty",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
