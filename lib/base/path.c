#include "config.h"
#include "base/base.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

char *path_join(const char *a, const char *b)
{
    size_t n = strlen(a);

    if (*b == '/' || n == 0)
        return xstrdup(b);
    return xasprintf("%s%s%s", a, a[n - 1] == '/' ? "" : "/", b);
}

char *path_absolute(const char *path)
{
    char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
    char *whole = path_join(cwd ? cwd : "/", path);
    struct strv parts = { 0 }, kept = { 0 };
    struct str t = { 0 };

    strv_split(&parts, whole, "/");
    for (size_t i = 0; i < parts.n; i++) {
        const char *p = parts.v[i];

        if (!*p || str_eq(p, "."))
            continue;
        if (!str_eq(p, ".."))
            strv_add(&kept, p);
        else if (kept.n)
            free(kept.v[--kept.n]);
    }
    for (size_t i = 0; i < kept.n; i++)
        str_addf(&t, "/%s", kept.v[i]);
    if (!t.len)
        str_add(&t, "/");
    strv_release(&parts);
    strv_release(&kept);
    free(whole);
    free(cwd);
    return str_take(&t);
}

char *path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *path_self(void)
{
    char buf[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", buf, sizeof(buf));

    return n > 0 && n < (ssize_t)sizeof(buf) ? xstrndup(buf, (size_t)n) : NULL;
}

char *path_part(const char *relative)
{
    char *self = path_self(), *dir, *prefix, *part;

    if (!self)
        return path_join("/usr", relative);
    dir = path_dir(self);
    prefix = path_dir(dir);
    if (str_ends(dir, "/libexec/recon")) {
        free(dir);
        dir = prefix;
        prefix = path_dir(dir);
    }
    part = path_join(prefix, relative);
    free(self);
    free(dir);
    free(prefix);
    return part;
}
