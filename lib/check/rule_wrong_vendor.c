#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };
    struct strv told = { 0 };

    if (!c->facts->gpus_known && case_uses_gpu(c))
        return err_set(err, CODE_UNAVAILABLE, "the GPUs of %s are not known", case_node(c));
    while (walk_next(c, &w)) {
        const char *soname = w.lib->soname ? path_base(w.lib->soname) : NULL,
                   *have = vendor_instead(c, soname);
        const char *vendor = have ? vendor_of(c, soname) : NULL;
        char *remedy;

        if (!have || strv_has(&told, vendor ? vendor : soname))
            continue;
        strv_add(&told, vendor ? vendor : soname);
        remedy = xasprintf("take a build of '%s' for %s, or a partition with GPUs of %s", needer(w.in, w.lib),
                           have, vendor ? vendor : "the vendor that it was built for");
        finding_explain(
            findings_add(out, "wrong-vendor", LEVEL_ERROR, SCOPE_JOB, soname,
                         "needed by '%s', is %s%s runtime, and the GPUs of %s are %s's", needer(w.in, w.lib),
                         vendor ? vendor : "another vendor", "'s", case_node(c), have),
            NULL,
            "a program is compiled for one vendor's GPUs; a link to the other runtime does not change that",
            remedy);
        free(remedy);
    }
    strv_release(&told);
    return 0;
}

const struct rule rule_wrong_vendor = {
    .name = "wrong-vendor",
    .doc = "a library of one vendor's GPU runtime is needed, and the node's GPUs are another's",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
