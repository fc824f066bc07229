#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *file = c->elsewhere ? NULL : c->resolution->driver_file, *release = release_in(file);
    const char *module = c->facts->driver.kernel_module;
    bool compat = path_in(file, "compat") ||
                  (c->resolution->drivers.n && path_in(c->resolution->drivers.v[0], "compat"));
    char *dir, *remedy;

    if (!release || path_in(file, "stubs"))
        return 0;
    if (!module || str_eq(c->facts->driver.source, "assumed"))
        return module ? 0
                      : err_set(err, CODE_UNAVAILABLE, "the kernel module's release on %s is not known",
                                case_node(c));
    if (str_eq(release, module))
        return 0;
    compat = compat && version_cmp(release, module) > 0;
    dir = path_dir(c->resolution->drivers.n ? c->resolution->drivers.v[0] : file);
    remedy = xasprintf("take '%s' out of LD_LIBRARY_PATH", dir);
    finding_explain(
        findings_add(out, "libcuda-kernel-mismatch", compat ? LEVEL_WARN : LEVEL_ERROR, SCOPE_NODE, file,
                     "libcuda is of release %s, and the kernel module of %s is of %s", release, case_node(c),
                     module),
        compat ? "compat" : NULL,
        compat
            ? "a compat folder brings a newer libcuda, which works on data centre GPUs and fails elsewhere "
              "with error 804"
            : "the driver's library and its kernel module must be of one release; a copied libcuda comes "
              "first",
        remedy);
    free(remedy);
    free(dir);
    return 0;
}

const struct rule rule_libcuda_kernel_mismatch = {
    .name = "libcuda-kernel-mismatch",
    .doc = "the libcuda that the job gets is of another release than the kernel module; a warning "
           "for a compat folder's, which serves data centre GPUs only",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
