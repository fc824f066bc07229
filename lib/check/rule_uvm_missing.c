#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < c->facts->devices.n; i++) {
        const struct facts_device *d = &c->facts->devices.v[i];

        if (str_eq(d->path, "/dev/nvidia-uvm") && str_eq(d->problem, "missing") && case_uses_gpu(c))
            finding_explain(findings_add(out, "uvm-missing", LEVEL_ERROR, SCOPE_NODE, d->path,
                                         "is not there on %s", case_node(c)),
                            NULL,
                            "the nvidia-uvm module was not loaded at boot, or the container lacks the device",
                            "the administrator: nvidia-modprobe -u -c=0; in a container: --device "
                            "/dev/nvidia-uvm, or --nv");
    }
    return 0;
}

const struct rule rule_uvm_missing = {
    .name = "uvm-missing",
    .doc = "the NVIDIA driver is loaded and /dev/nvidia-uvm is not there, so that cuInit fails with "
           "error 999",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
