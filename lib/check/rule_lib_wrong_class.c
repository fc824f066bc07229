#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct walk w = { 0 };

    (void)err;
    while (walk_next(c, &w)) {
        const struct tried *t = library_wrong_class(w.lib);
        const char *other = w.lib->candidates.n ? w.lib->candidates.v[0] : NULL;
        char *what;

        if (!t || w.lib->preload)
            continue;
        what = other ? remedy_library_path(c, other)
                     : xasprintf("file %s; install the 64-bit build, or name its folder (lib64) in LD_LIBRARY_PATH", t->path);
        finding_explain(findings_add(out, "lib-wrong-class", LEVEL_ERROR, SCOPE_JOB, w.lib->soname,
                                     "needed by '%s', and only '%s' has the name (%s)%s%s", needer(w.in, w.lib), t->path,
                                     t->why_not, other ? "; a fit one is " : "", other ? other : ""),
                        NULL, "the loader passes over files of another class or machine; often lib stands where lib64 "
                              "should", what);
        free(what);
    }
    return 0;
}

const struct rule rule_lib_wrong_class = {
    .name = "lib-wrong-class",
    .doc = "only a 32-bit file, or one for another machine, has the name of a needed library",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
