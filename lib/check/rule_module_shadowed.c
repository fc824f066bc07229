#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; !c->elsewhere && i < c->resolution->shadows.n; i++) {
        const char *pair = c->resolution->shadows.v[i], *by = strchr(pair, '=') + 1;
        char *name = xstrndup(pair, (size_t)(by - 1 - pair)), *dir = path_dir(by);
        char *folder = str_eq(path_base(by), "__init__.py") ? path_dir(dir) : xstrdup(dir);
        char *remedy =
            xasprintf("run it from another folder than '%s' and take that out of PYTHONPATH, or rename '%s'",
                      folder, by);

        finding_explain(
            findings_add(out, "module-shadowed", LEVEL_WARN, SCOPE_JOB, by,
                         "is what `import %s` finds, before the package that is installed", name),
            NULL,
            "Python looks into the script's folder and PYTHONPATH first; a source tree lacks the compiled "
            "modules",
            remedy);
        free(remedy);
        free(folder);
        free(dir);
        free(name);
    }
    return 0;
}

const struct rule rule_module_shadowed = {
    .name = "module-shadowed",
    .doc = "the working directory or PYTHONPATH has a file or folder that hides an installed Python package",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
