#include "config.h"

#include <stdlib.h>
#include "check_host.h"
#include "cli.h"

static int find_modules(const char *host, const struct strv *packages, char *const *env, struct python_modules *ret,
                        struct strv *libraries, struct err *err)
{
    char *whole = path_absolute(host);
    struct strv bare = { 0 };
    struct python python;
    int rc = python_find(whole, env, &python, err);

    free(whole);
    if (rc)
        return rc;
    rc = python_modules(&python, packages, ret, &bare, err);
    for (size_t i = 0; rc == 0 && i < bare.n; i++)
        cli_warn("package '%s' has no compiled modules of its own", bare.v[i]);
    python_libraries(&python, libraries);
    python_release(&python);
    strv_release(&bare);
    return rc;
}

int check_host(const char *host, const struct strv *packages, char *const *modules, const struct facts *f,
               char *const *env, struct resolution *ret, struct err *err)
{
    struct python_modules all = { 0 };
    struct strv libraries = { 0 };
    int rc = packages->n ? find_modules(host, packages, env, &all, &libraries, err) : 0;

    for (; *modules; modules++)
        VEC_ADD(&all)->path = xstrdup(*modules);
    if (rc == 0)
        rc = resolve_host(host, &all, &libraries, f, env, f ? &f->toolkits : NULL, ret, err);
    python_modules_release(&all);
    strv_release(&libraries);
    return rc;
}
