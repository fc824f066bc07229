#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* by: who names the libraries of the list. In secure mode those with a slash are not taken. */
static void tell(const char *list, const char *by, const char *remedy, bool secure, struct findings *out)
{
    struct strv names = { 0 };

    strv_split(&names, list, ":");
    for (size_t i = 0; i < names.n; i++)
        if (*names.v[i] && !(secure && strchr(names.v[i], '/')))
            finding_explain(findings_add(out, "audit-library", LEVEL_WARN, SCOPE_JOB, names.v[i],
                                         "%s names it; such a library may send the loader elsewhere for any library, and the "
                                         "libraries here are judged without it", by),
                            NULL, "an audit library is asked for every file that the loader looks for (rtld-audit(7)); what it "
                                  "answers is known only when it runs", remedy);
    strv_release(&names);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    char *const *env = case_env(c);
    const char *list = env ? env_get(env, "LD_AUDIT") : NULL;
    const struct closure *program = c->resolution->closures.n ? &c->resolution->closures.v[0] : NULL;
    const struct object *o = program && program->main < program->libs.n ? &program->libs.v[program->main].object : NULL;

    (void)err;
    if (!o || program->musl || program->libs.n < 2) /* a static program has no loader */
        return 0;
    if (list)
        tell(list, "LD_AUDIT", "unset LD_AUDIT", program->secure, out);
    for (size_t i = 0; i < o->audit.n; i++) {
        char *by = xasprintf("'%s'", o->path);

        tell(o->audit.v[i], by, "link the program without --audit and --depaudit", program->secure, out);
        free(by);
    }
    return 0;
}

const struct rule rule_audit_library = {
    .name = "audit-library",
    .doc = "LD_AUDIT or the program names an audit library, which may change what the loader finds",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
