#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const struct facts *f = c->facts;
    char *remedy;

    (void)err;
    if (!f->driver.library || !f->driver.kernel_module || str_eq(f->driver.source, "assumed") ||
        str_eq(f->driver.library, f->driver.kernel_module) || !case_uses_gpu(c))
        return 0;
    remedy = xasprintf("sbatch --exclude=%s; the administrator loads the module again or boots the node",
                       case_node(c));
    finding_explain(findings_add(out, "driver-lib-mismatch", LEVEL_ERROR, SCOPE_NODE, case_node(c),
                                 "the driver's libraries are of release %s, its kernel module of %s",
                                 f->driver.library, f->driver.kernel_module),
                    NULL, "the driver was updated and its kernel module was not loaded again since", remedy);
    free(remedy);
    return 0;
}

const struct rule rule_driver_lib_mismatch = {
    .name = "driver-lib-mismatch",
    .doc = "the driver's libraries and its kernel module are of different updates, so that nothing "
           "that uses the GPU starts",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
