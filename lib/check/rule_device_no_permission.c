#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < c->facts->devices.n; i++) {
        const struct facts_device *d = &c->facts->devices.v[i];
        char *remedy;

        if (!str_eq(d->problem, "permission denied") || !case_uses_gpu(c))
            continue;
        remedy = xasprintf(
            "ls -l %s; the administrator adds the user to its group, or sets NVreg_DeviceFileMode", d->path);
        finding_explain(findings_add(out, "device-no-permission", LEVEL_ERROR, SCOPE_NODE, d->path,
                                     "permission denied on %s", case_node(c)),
                        NULL, "the file's mode or group keeps this user out", remedy);
        free(remedy);
    }
    return 0;
}

const struct rule rule_device_no_permission = {
    .name = "device-no-permission",
    .doc = "a GPU's device file may not be opened by this user",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
