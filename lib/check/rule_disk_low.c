#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    int64_t mib = c->facts->limits.tmp_mib;
    const char *dir = c->facts->limits.tmp_dir ? c->facts->limits.tmp_dir : "/tmp";

    if (mib == CONF_UNSET && !c->facts->limits.tmp_problem)
        return err_set(err, CODE_UNAVAILABLE, "the free space of TMPDIR on %s is not known", case_node(c));
    if (mib != CONF_UNSET && mib < 512)
        finding_explain(findings_add(out, "disk-low", LEVEL_WARN, SCOPE_NODE, dir, "%lld MiB are free on %s",
                                     (long long)mib, case_node(c)),
                        NULL, "earlier jobs left files, or it is memory", "export TMPDIR to a larger folder");
    return 0;
}

const struct rule rule_disk_low = {
    .name = "disk-low",
    .doc = "less than 512 MiB are free in TMPDIR",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
