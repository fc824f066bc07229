#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static bool is_stub(const char *path)
{
    return path_in(path, "stubs");
}

static void report(const struct check_case *c, const char *path, const char *real, const char *soname,
                   struct findings *out)
{
    char *dir = path_dir(path), *where = real ? xasprintf("; the driver's own is '%s'", real) : xstrdup("");
    char *remedy = xasprintf("take '%s' out of LD_LIBRARY_PATH", dir);

    (void)c;
    finding_explain(
        findings_add(out, "libcuda-stub", LEVEL_ERROR, SCOPE_JOB, path,
                     "the loader takes this stub for '%s'%s", soname, where),
        NULL, "the stubs folder of a toolkit is for linking; every call into it fails with error 34", remedy);
    free(remedy);
    free(where);
    free(dir);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const struct resolution *r = c->resolution;
    bool first =
        r->drivers.n && (is_stub(r->drivers.v[0]) || is_stub(r->driver_file)); /* by name or behind a link */
    const char *real = NULL;
    struct walk w = { 0 };
    bool told = false;

    (void)err;
    for (size_t i = first; i < r->drivers.n && !real; i++)
        if (!is_stub(r->drivers.v[i]))
            real = r->drivers.v[i];
    while (walk_next(c, &w))
        if (w.lib->path && is_stub(w.lib->path) &&
            (library_of_driver(w.lib->soname) || str_starts(w.lib->soname, "libnvidia-"))) {
            report(c, w.lib->path, str_eq(w.lib->soname, "libcuda.so.1") ? real : NULL, w.lib->soname, out);
            told |= str_eq(w.lib->soname, "libcuda.so.1");
        }
    if (!told && first)
        report(c, r->drivers.v[0], real, "libcuda.so.1", out);
    return 0;
}

const struct rule rule_libcuda_stub = {
    .name = "libcuda-stub",
    .doc = "what the loader takes for the driver's library is the toolkit's stub, made for linking "
           "only",
    .level = LEVEL_ERROR,
    .scope = SCOPE_JOB,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
