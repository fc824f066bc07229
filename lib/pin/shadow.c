/* Which Python packages of the resolution are hidden by a file or folder of their name that comes first in
 * sys.path. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "pin/pin_priv.h"

#define PACKAGES_MAX 32

/* "/p/lib/python3.11/site-packages/torch/_C.so": site "/p/lib/python3.11/site-packages" and "torch". */
static bool package_of(const char *path, char **ret_site, char **ret_name)
{
    static const char *const folders[] = { "/site-packages/", "/dist-packages/" };

    for (size_t i = 0; path && i < COUNT(folders); i++) {
        const char *at = strstr(path, folders[i]), *name = at ? at + strlen(folders[i]) : NULL;
        size_t n = name ? strcspn(name, "/.") : 0;

        if (!n)
            continue;
        *ret_site = xstrndup(path, (size_t)(name - 1 - path));
        *ret_name = xstrndup(name, n);
        return true;
    }
    return false;
}

static bool same_folder(const char *a, const char *b)
{
    char *x = realpath(a, NULL), *y = realpath(b, NULL);
    bool same = x && str_eq(x, y);

    free(x);
    free(y);
    return same;
}

/* A folder without __init__.py hides no package. */
static char *hidden_by(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s/__init__.py", dir, name);

    if (access(path, F_OK) == 0)
        return path;
    free(path);
    path = xasprintf("%s/%s.py", dir, name);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static void look(struct resolution *r, const struct strv *dirs, const char *site, const char *name)
{
    for (size_t i = 0; i < dirs->n; i++) {
        char *path = same_folder(dirs->v[i], site) ? NULL : hidden_by(dirs->v[i], name);

        if (path) {
            strv_addf(&r->shadows, "%s=%s", name, path);
            free(path);
            return;
        }
        if (same_folder(dirs->v[i], site))
            return; /* from here on the package itself is found */
    }
}

void resolve_shadows(struct resolution *r, const char *root)
{
    const char *list = r->env.n ? env_get(r->env.v, "PYTHONPATH") : NULL;
    struct strv dirs = { 0 }, known = { 0 };
    char here[PATH_MAX];

    if (*root)
        return;
    if (getcwd(here, sizeof(here)))
        strv_add(&dirs, here);
    if (list && *list)
        strv_split(&dirs, list, ":");
    for (size_t i = 0; i < r->closures.n && known.n < PACKAGES_MAX; i++) {
        char *site, *name;

        if (!r->closures.v[i].libs.n || !package_of(r->closures.v[i].libs.v[0].path, &site, &name))
            continue;
        if (!strv_has(&known, name)) {
            strv_add(&known, name);
            look(r, &dirs, site, name);
        }
        free(site);
        free(name);
    }
    strv_release(&dirs);
    strv_release(&known);
}
