#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct visible v;

    (void)err;
    if (visible_devices(c, &v) != 1)
        return 0; /* device-not-visible tells that the GPUs are not known */
    if (v.bad && v.good)
        finding_explain(
            findings_add(out, "visible-devices-cut", LEVEL_WARN, SCOPE_JOB, "CUDA_VISIBLE_DEVICES",
                         "entry '%s' names no further GPU of %s, which has %zu: %zu of %zu entries are seen",
                         v.bad, case_node(c), v.gpus, v.good, v.entries.n),
            NULL, "CUDA ends the list at the first entry that it does not know",
            "unset CUDA_VISIBLE_DEVICES, and let Slurm set it");
    visible_release(&v);
    return 0;
}

const struct rule rule_visible_devices_cut = {
    .name = "visible-devices-cut",
    .doc = "an entry of CUDA_VISIBLE_DEVICES names no GPU or is there twice: it and all after it are "
           "not seen",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
