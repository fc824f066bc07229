#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Was this file (or missing name) seen in an earlier closure? Within one the loader has each once. */
static bool seen(const struct resolution *r, const struct walk *w)
{
    const char *name = library_name(w->lib);

    for (size_t c = 0; c < w->closure; c++)
        for (size_t i = 0; i < r->closures.v[c].libs.n; i++)
            if (str_eq(library_name(&r->closures.v[c].libs.v[i]), name))
                return true;
    return false;
}

bool walk_next(const struct check_case *c, struct walk *w)
{
    const struct resolution *r = c->resolution;

    if (w->lib)
        w->index++;
    for (; r && w->closure < r->closures.n; w->closure++, w->index = 0) {
        w->in = &r->closures.v[w->closure];
        for (; w->index < w->in->libs.n; w->index++) {
            w->lib = &w->in->libs.v[w->index];
            if (w->lib->why != WHY_LOADED && !seen(r, w))
                return true;
        }
    }
    w->lib = NULL;
    return false;
}

const char *library_name(const struct library *l)
{
    return l->path ? l->path : l->soname ? l->soname : "";
}

const char *needer(const struct closure *c, const struct library *l)
{
    return l->needed_by < c->libs.n ? library_name(&c->libs.v[l->needed_by]) : "the program";
}

bool library_of_system(const struct library *l)
{
    return l->why == WHY_CACHE || l->why == WHY_DEFAULT;
}

bool library_of_driver(const char *soname)
{
    static const char *const prefixes[] = { "libcuda.so.", "libnvidia-", "libnvcuvid.so.", "libnvoptix.so.",
                                            "libcudadebugger.so." };

    for (size_t i = 0; soname && i < COUNT(prefixes); i++)
        if (str_starts(soname, prefixes[i]))
            return true;
    return false;
}

const struct tried *library_wrong_class(const struct library *l)
{
    for (size_t i = 0; l->why == WHY_NOT_FOUND && i < l->tried.n; i++)
        if (str_starts(l->tried.v[i].why_not, "wrong class") || str_starts(l->tried.v[i].why_not, "wrong machine"))
            return &l->tried.v[i];
    return NULL;
}

char *const *case_env(const struct check_case *c)
{
    if (c->resolution && c->resolution->env.n)
        return c->resolution->env.v;
    return c->received;
}

const char *case_node(const struct check_case *c)
{
    return c->facts && c->facts->node ? c->facts->node : "this node";
}

const char *driver_cuda(const struct facts *f)
{
    return f->driver.cuda ? f->driver.cuda : compat_cuda_of_driver(f->driver.kernel_module);
}

char *remedy_library_path(const char *file)
{
    char *dir = path_dir(file), *quoted = esc_shell(dir), *text;

    text = xasprintf("export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", quoted);
    free(quoted);
    free(dir);
    return text;
}
