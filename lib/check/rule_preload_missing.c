#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    char *const *env = case_env(c);
    const char *list = env ? env_get(env, "LD_PRELOAD") : NULL;
    struct walk w = { 0 };

    (void)err;
    while (walk_next(c, &w)) {
        const struct library *l = w.lib;
        bool ours;
        char *what;

        if (!l->preload || (l->path && !l->corrupt))
            continue;
        ours = list && strstr(list, l->soname);
        what = ours ? xstrdup("unset LD_PRELOAD") : xasprintf("take '%s' out of /etc/ld.so.preload", l->soname);
        finding_explain(findings_add(out, "preload-missing", LEVEL_WARN, SCOPE_JOB, l->soname,
                                     "%s names it, and %s; the loader warns and goes on without it",
                                     ours ? "LD_PRELOAD" : "ld.so.preload", l->corrupt ? l->corrupt : "it is not there"),
                        NULL, ours ? "the variable was inherited from a node that has the file" : NULL, what);
        free(what);
    }
    return 0;
}

const struct rule rule_preload_missing = {
    .name = "preload-missing",
    .doc = "an entry of LD_PRELOAD or ld.so.preload does not load; the program starts without it",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
