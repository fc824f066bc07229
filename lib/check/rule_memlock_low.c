#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

#define LOW ((int64_t)65536)

static char *words(int64_t bytes)
{
    char buf[24];

    return bytes < 0 ? xstrdup("unlimited") : xstrdup(human_bytes((uint64_t)bytes, buf));
}

static bool less(int64_t a, int64_t b)
{
    return a >= 0 && (b < 0 || a < b);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    int64_t soft = c->facts->limits.memlock, hard = c->facts->limits.memlock_hard;
    int64_t had = c->pin && c->pin->limits.memlock != CONF_UNSET ? c->pin->limits.memlock : soft;
    char *now, *then, *most;

    if (soft == CONF_UNSET)
        return err_set(err, CODE_UNAVAILABLE, "the limit of locked memory on %s is not known", case_node(c));
    if (soft < 0 || (soft > LOW && !(less(soft, had) && case_uses_gpu(c))))
        return 0;
    now = words(soft);
    then = words(had);
    most = words(hard);
    finding_explain(
        findings_add(out, "memlock-low", LEVEL_WARN, SCOPE_NODE, case_node(c),
                     "%s of memory may be locked%s%s%s%s", now, less(soft, had) ? ", at capture it was " : "",
                     less(soft, had) ? then : "", hard != CONF_UNSET ? "; the hard limit is " : "",
                     hard != CONF_UNSET ? most : ""),
        NULL, "slurmd's own limits reach its jobs, and limits.conf does not count there",
        hard == CONF_UNSET
            ? "ulimit -l unlimited in the script; where that is refused, the administrator sets "
              "LimitMEMLOCK=infinity in slurmd's unit"
        : less(soft, hard) ? "ulimit -l unlimited in the script (or the hard limit)"
                           : "the administrator sets LimitMEMLOCK=infinity in slurmd's unit; the job cannot");
    free(now);
    free(then);
    free(most);
    return 0;
}

const struct rule rule_memlock_low = {
    .name = "memlock-low",
    .doc = "no more than 64 KiB of memory may be locked, or less than at capture; pinned buffers and "
           "RDMA fail",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
