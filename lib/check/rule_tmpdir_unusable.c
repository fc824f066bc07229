#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *dir = c->facts->limits.tmp_dir, *problem = c->facts->limits.tmp_problem;

    (void)err;
    if (dir && problem)
        finding_explain(findings_add(out, "tmpdir-unusable", LEVEL_WARN, SCOPE_NODE, dir, "TMPDIR on %s: %s",
                                     case_node(c), problem),
                        NULL, "TMPDIR was set on the login node and came along",
                        "unset TMPDIR, or export TMPDIR=/tmp");
    return 0;
}

const struct rule rule_tmpdir_unusable = {
    .name = "tmpdir-unusable",
    .doc = "TMPDIR does not exist on the node or may not be written to",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
