#include "config.h"

#include "check_host.h"
#include "cli.h"

static int find_modules(const char *host, const struct strv *packages, char *const *env, struct strv *global,
                        struct strv *modules, struct err *err)
{
    struct python python;
    int rc = python_find(host, env, &python, err);

    if (rc)
        return rc;
    for (size_t i = 0; rc == 0 && i < packages->n; i++) {
        size_t before = modules->n;

        rc = python_modules(&python, packages->v[i], global, modules, err);
        if (rc == 0 && modules->n == before)
            cli_warn("package '%s' has no compiled modules", packages->v[i]);
    }
    python_release(&python);
    return rc;
}

int check_host(const char *host, const struct strv *packages, char *const *modules, const struct facts *f,
               char *const *env, struct resolution *ret, struct err *err)
{
    struct strv global = { 0 }, all = { 0 }, found = { 0 };
    size_t n_global;
    int rc = packages->n ? find_modules(host, packages, env, &global, &found, err) : 0;

    n_global = global.n;
    strv_copy(&all, &global);
    strv_copy(&all, &found);
    for (; *modules; modules++)
        strv_add(&all, *modules);
    if (rc == 0)
        rc = resolve_host(host, &all, n_global, f, env, f ? &f->toolkits : NULL, ret, err);
    strv_release(&global);
    strv_release(&found);
    strv_release(&all);
    return rc;
}
