#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; c->build && i < c->build->tools.n; i++) {
        const struct build_tool *t = &c->build->tools.v[i];
        char *remedy;

        if (version_cmp(t->have, t->want) >= 0)
            continue;
        remedy = xasprintf("module load %s/%s, or pip install '%s>=%s'", t->name, t->want, t->name, t->want);
        finding_explain(findings_add(out, "tool-too-old", LEVEL_ERROR, SCOPE_JOB, t->name, "%s %s is older than %s, which %s needs",
                                     t->name, t->have, t->want, t->who),
                        NULL, "the build would end while it is configured", remedy);
        free(remedy);
    }
    return 0;
}

const struct rule rule_tool_too_old = {
    .name = "tool-too-old",
    .doc = "a tool of the build (CMake, ninja, GCC) is older than the source asks for",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
