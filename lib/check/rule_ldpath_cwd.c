#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Empty and "." are the working directory. */
static bool is_cwd(const char *element)
{
    return !*element || str_eq(element, ".") || str_eq(element, "./");
}

/* Found by LD_LIBRARY_PATH and below none of its absolute elements: the working directory had it. */
static bool from_cwd(const struct library *l, const struct strv *elements)
{
    if (l->why != WHY_LD_LIBRARY_PATH || !l->path)
        return false;
    for (size_t i = 0; i < elements->n; i++)
        if (*elements->v[i] == '/' && str_starts(l->path, elements->v[i]))
            return false;
    return true;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *list = case_var(c, "LD_LIBRARY_PATH");
    struct strv elements = { 0 };
    struct str kept = { 0 }, taken = { 0 };
    struct walk w = { 0 };
    size_t odd = 0;
    char *quoted, *remedy;

    (void)err;
    if (!list || !*list)
        return 0;
    strv_split(&elements, list, ":;");
    for (size_t i = 0; i < elements.n; i++) {
        odd += is_cwd(elements.v[i]);
        if (!is_cwd(elements.v[i]))
            str_addf(&kept, "%s%s", kept.len ? ":" : "", elements.v[i]);
    }
    while (odd && walk_next(c, &w))
        if (from_cwd(w.lib, &elements))
            str_addf(&taken, "%s'%s'", taken.len ? ", " : "; from there comes ", w.lib->path);
    if (odd) {
        quoted = esc_shell(kept.len ? kept.s : "");
        remedy = kept.len ? xasprintf("export LD_LIBRARY_PATH=%s", quoted) : xstrdup("unset LD_LIBRARY_PATH");
        finding_explain(findings_add(out, "ldpath-cwd", LEVEL_WARN, SCOPE_JOB, "LD_LIBRARY_PATH",
                                     "'%s' has an element that means the working directory%s", list,
                                     taken.len ? taken.s : ""),
                        NULL, "LD_LIBRARY_PATH=DIR:$LD_LIBRARY_PATH with an empty old value ends in a colon",
                        remedy);
        free(remedy);
        free(quoted);
    }
    strv_release(&elements);
    str_release(&kept);
    str_release(&taken);
    return 0;
}

const struct rule rule_ldpath_cwd = {
    .name = "ldpath-cwd",
    .doc = "an empty element of LD_LIBRARY_PATH (a colon too many) or '.' means the working "
           "directory, often a folder of data",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
