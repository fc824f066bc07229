/* Which libcuda.so.1 the program gets: by its own need of it, or by dlopen from the CUDA runtime. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include "pin/pin_priv.h"

static const struct library *linked(const struct resolution *r)
{
    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++)
            if (str_eq(r->closures.v[i].libs.v[j].soname, "libcuda.so.1"))
                return &r->closures.v[i].libs.v[j];
    return NULL;
}

/* Only what may ask for a driver is worth a look. */
static bool has_gpu_code(const struct resolution *r, const struct pin *p)
{
    for (size_t i = 0; p && i < p->objects.n; i++)
        if (p->objects.v[i].gpu.n)
            return true;
    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++)
            if (r->closures.v[i].libs.v[j].object.images.n ||
                str_starts(r->closures.v[i].libs.v[j].soname, "libcudart"))
                return true;
    return false;
}

void resolve_driver(struct resolution *r, const struct pin *p, const char *root)
{
    const char *list = env_get(r->env.v, "LD_LIBRARY_PATH");
    const struct library *l = linked(r);
    struct strv dirs = { 0 };

    if (*root || !r->env.n || r->driver_file || (!l && !has_gpu_code(r, p)))
        return;
    if (list && *list)
        strv_split(&dirs, list, ":;");
    for (size_t i = 0; i < dirs.n; i++) {
        char *path = path_join(dirs.v[i], "libcuda.so.1");

        place_at(path);
        if (*dirs.v[i] == '/' && access(path, F_OK) == 0)
            strv_add(&r->drivers, path);
        free(path);
    }
    if (r->drivers.n)
        r->driver_file = realpath(r->drivers.v[0], NULL);
    else if (l && l->path)
        r->driver_file = realpath(l->path, NULL);
    strv_release(&dirs);
}
