#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    int64_t mib = c->facts->limits.shm_mib;

    if (mib == CONF_UNSET)
        return err_set(err, CODE_UNAVAILABLE, "the free space of /dev/shm on %s is not known", case_node(c));
    if (mib <= 64)
        finding_explain(
            findings_add(out, "shm-low", LEVEL_WARN, SCOPE_NODE, "/dev/shm", "%lld MiB are free on %s",
                         (long long)mib, case_node(c)),
            NULL, "a container's default, or files that ended jobs left; a full one ends in a bus error",
            "docker run --shm-size=8g, or the administrator clears /dev/shm and mounts it larger");
    return 0;
}

const struct rule rule_shm_low = {
    .name = "shm-low",
    .doc = "64 MiB or less are free in /dev/shm, as in a container without --shm-size",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
