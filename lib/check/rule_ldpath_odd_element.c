#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* The loader itself knows these. */
static bool is_token(const char *s)
{
    static const char *const tokens[] = {
        "$ORIGIN", "${ORIGIN}", "$LIB", "${LIB}", "$PLATFORM", "${PLATFORM}"
    };

    for (size_t i = 0; i < COUNT(tokens); i++)
        if (str_starts(s, tokens[i]))
            return true;
    return false;
}

static const char *odd(const char *element)
{
    for (const char *p = strchr(element, '$'); p; p = strchr(p + 1, '$'))
        if (!is_token(p))
            return "a variable, which the loader does not expand";
    if (*element == '~')
        return "a ~, which the loader does not expand";
    if (strchr("\"'", *element) && *element)
        return "a quote that is part of the name";
    if (*element && *element != '/' && *element != '$' && !str_eq(element, ".") && !str_eq(element, "./"))
        return "relative, so that it depends on the working directory";
    return NULL;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *list = case_var(c, "LD_LIBRARY_PATH");
    struct strv elements = { 0 };

    (void)err;
    if (list)
        strv_split(&elements, list, ":;");
    for (size_t i = 0; i < elements.n; i++) {
        const char *what = odd(elements.v[i]);

        if (what)
            finding_explain(findings_add(out, "ldpath-odd-element", LEVEL_WARN, SCOPE_JOB, "LD_LIBRARY_PATH",
                                         "element '%s' is %s", elements.v[i], what),
                            NULL, "the value was quoted against the shell, or written for another tool",
                            "export LD_LIBRARY_PATH with absolute folders");
    }
    strv_release(&elements);
    return 0;
}

const struct rule rule_ldpath_odd_element = {
    .name = "ldpath-odd-element",
    .doc = "an element of LD_LIBRARY_PATH that the loader does not take as it was meant: relative, "
           "~, or $VAR",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
