#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    int64_t soft = c->facts->limits.open_files, hard = c->facts->limits.open_files_hard;
    int64_t had = c->pin && c->pin->limits.open_files != CONF_UNSET ? c->pin->limits.open_files : soft;
    bool fewer = had < 0 || had > soft;

    if (soft == CONF_UNSET)
        return err_set(err, CODE_UNAVAILABLE, "the limit of open files on %s is not known", case_node(c));
    if (soft >= 0 && (soft < 1024 || (fewer && soft < 4096 && had != soft)))
        finding_explain(findings_add(out, "open-files-low", LEVEL_WARN, SCOPE_NODE, case_node(c),
                                     fewer && had >= 0 ? "%lld files may be open, at capture it was %lld"
                                                       : "%lld files may be open",
                                     (long long)soft, (long long)had),
                        NULL, "slurmd's own limits reach its jobs",
                        hard == CONF_UNSET || (hard >= 0 && hard <= soft)
                            ? "the administrator sets LimitNOFILE in slurmd's unit"
                            : "ulimit -n $(ulimit -H -n) in the script");
    return 0;
}

const struct rule rule_open_files_low = {
    .name = "open-files-low",
    .doc = "fewer than 1024 files may be open, or fewer than 4096 and than at capture",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
