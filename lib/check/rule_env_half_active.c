#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static const char *const variables[] = { "CONDA_PREFIX", "VIRTUAL_ENV" };

static const char *state(const char *path, const char *prefix)
{
    char *bin = path_join(prefix, "bin");
    struct strv dirs = { 0 };
    const char *what = "is not in PATH";
    bool system = false;

    strv_split(&dirs, path, ":");
    for (size_t i = 0; i < dirs.n; i++) {
        system |= str_eq(dirs.v[i], "/usr/bin") || str_eq(dirs.v[i], "/bin");
        if (str_eq(dirs.v[i], bin)) {
            what = system ? "stands behind the system's own folders in PATH" : NULL;
            break;
        }
    }
    strv_release(&dirs);
    free(bin);
    return what;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *path = case_var(c, "PATH");

    (void)err;
    for (size_t i = 0; path && i < COUNT(variables); i++) {
        const char *prefix = case_var(c, variables[i]),
                   *what = prefix && *prefix ? state(path, prefix) : NULL;
        bool promised = c->pin && str_eq(c->pin->prefix, prefix);
        char *quoted, *remedy;

        if (!what || str_starts(prefix, "/usr"))
            continue;
        quoted = esc_shell(prefix);
        remedy = xasprintf("export PATH=%s/bin:$PATH", quoted);
        finding_explain(
            findings_add(out, "env-half-active", promised ? LEVEL_ERROR : LEVEL_WARN, SCOPE_JOB, variables[i],
                         "is '%s', and its bin folder %s: `python` is another one", prefix, what),
            NULL, "the variable was exported and PATH was not, or a module was loaded after the activation",
            remedy);
        free(remedy);
        free(quoted);
    }
    return 0;
}

const struct rule rule_env_half_active = {
    .name = "env-half-active",
    .doc = "CONDA_PREFIX or VIRTUAL_ENV names a prefix whose bin folder is not in PATH, or stands "
           "behind the system's; an error where the pin names the prefix",
    .level = LEVEL_WARN,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
