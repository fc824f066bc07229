#include "config.h"
#include "sched/sched_priv.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

const struct sched_backend *sched_load(const char *name, struct err *err)
{
    char *relative = xasprintf("lib/recon/sched/%s.so", name), *path = path_part(relative);
    const struct sched_backend *b = NULL;
    struct err why = { 0 };
    void *handle = object_check(path, &why) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (handle)
        b = dlsym(handle, "recon_backend");
    if (why.code)
        err_set(err, CODE_UNAVAILABLE, "backend '%s' cannot be loaded: %s", name, why.text);
    else if (!b)
        err_set(err, CODE_UNAVAILABLE, "backend '%s' cannot be loaded: %s", name, dlerror());
    else if (b->abi != RECON_BACKEND_ABI)
        err_set(err, CODE_UNAVAILABLE, "backend '%s' has ABI %u, wanted %u", path, b->abi, RECON_BACKEND_ABI);
    if (b && b->abi != RECON_BACKEND_ABI)
        b = NULL;
    if (!b && handle)
        dlclose(handle);
    free(relative);
    free(path);
    return b;
}

void sched_tasks_release(struct sched_tasks *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].reason);
        free(t->v[i].node);
    }
    free(t->v);
    *t = (struct sched_tasks){ 0 };
}

void sched_environment(char *const *env, struct strv *ret)
{
    static const char *const kept[] = { "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_TIME_FORMAT",
                                        "SLURM_DEBUG_FLAGS" };
    static const char *const dropped[] = { "RECON_PIN", "RECON_RUN", "RECON_SUB", "RECON_TASK" };

    for (; *env; env++) {
        size_t n = strcspn(*env, "=");
        bool drop = str_starts(*env, "SLURM") || str_starts(*env, "SBATCH_") || str_starts(*env, "RECON_EVENTS_");

        for (size_t i = 0; i < COUNT(kept); i++)
            drop = drop && !(strlen(kept[i]) == n && memcmp(*env, kept[i], n) == 0);
        for (size_t i = 0; i < COUNT(dropped); i++)
            drop = drop || (strlen(dropped[i]) == n && memcmp(*env, dropped[i], n) == 0);
        if (!drop)
            strv_add(ret, *env);
    }
}
