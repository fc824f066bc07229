#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };

    (void)err;
    while (walk_next(c, &w)) {
        char *quoted, *remedy;

        if (!library_is_special(w.lib) || w.lib->preload)
            continue;
        quoted = esc_shell(w.lib->path);
        remedy = xasprintf("rm %s, and install the library again", quoted);
        finding_explain(findings_add(out, "not-a-regular-file", LEVEL_ERROR, SCOPE_NODE, w.lib->path,
                                     "%s, where '%s' needs a library; opening it may hang the program",
                                     w.lib->corrupt, needer(w.in, w.lib)),
                        NULL, "the loader opens the first file of the name, whatever it is", remedy);
        free(remedy);
        free(quoted);
    }
    return 0;
}

const struct rule rule_not_a_regular_file = {
    .name = "not-a-regular-file",
    .doc = "a FIFO, socket or device stands where a library should be; the loader would hang or end",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
