#include "config.h"
#include "launch.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

/* ---- which GPUs ------------------------------------------------------------------------------------------------ */

static void add(struct gpu_list *l, const struct facts *f, uint64_t i)
{
    if (i < f->gpus.n)
        *VEC_ADD(l) = (size_t)i;
}

/* "3" or "0-3"; false: not numbers. */
static bool add_numbers(struct gpu_list *l, const struct facts *f, const char *s)
{
    size_t first = strspn(s, "0123456789");
    char *a = xstrndup(s, first);
    uint64_t from, to;
    bool ok = str_to_u64(a, &from) == 0;

    to = from;
    if (ok && s[first])
        ok = s[first] == '-' && str_to_u64(s + first + 1, &to) == 0;
    for (uint64_t i = from; ok && i <= to && i < f->gpus.n; i++)
        add(l, f, i);
    free(a);
    return ok;
}

/* "GPU-8932f937" (any unique start of a UUID), "MIG-..." */
static bool add_uuid(struct gpu_list *l, const struct facts *f, const char *s)
{
    for (size_t i = 0; *s && i < f->gpus.n; i++)
        if ((f->gpus.v[i].uuid && str_starts(f->gpus.v[i].uuid, s)) ||
            (f->gpus.v[i].mig && str_starts(f->gpus.v[i].mig, s))) {
            add(l, f, i);
            return true;
        }
    return false;
}

void gpus_of_task(const struct facts *f, char *const *env, struct gpu_list *ret)
{
    static const char *const names[] = { "CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS" };
    const char *list = NULL;
    struct strv parts = { 0 };

    *ret = (struct gpu_list){ 0 };
    for (size_t i = 0; i < COUNT(names) && !list; i++)
        list = env_get(env, names[i]);
    if (!list && !env_get(env, "SLURM_JOB_ID"))
        for (size_t i = 0; i < f->gpus.n; i++)
            add(ret, f, i);
    if (list)
        strv_split(&parts, list, ",");
    for (size_t i = 0; i < parts.n; i++)
        if (!add_numbers(ret, f, parts.v[i]) && !add_uuid(ret, f, parts.v[i]))
            break; /* as the driver does: the first entry that names no GPU ends the list */
    strv_release(&parts);
}

/* ---- CPUs near them -------------------------------------------------------------------------------------------- */

static bool is_near(const struct facts *f, const struct gpu_list *gpus, int cpu)
{
    for (size_t i = 0; i < gpus->n; i++) {
        const struct conf_ints *cpus = &f->gpus.v[gpus->v[i]].cpus;

        for (size_t j = 0; j < cpus->n; j++)
            if (cpus->v[j] == cpu)
                return true;
    }
    return false;
}

int bind_near(const struct facts *f, const struct gpu_list *gpus, int wanted)
{
    cpu_set_t *have = NULL, *near = NULL;
    size_t size = 0;
    int cpus, n = 0, bound = 0;

    for (cpus = 1024; cpus <= 1 << 16; cpus *= 2) { /* the kernel's own set may be larger than one cpu_set_t */
        have = CPU_ALLOC((size_t)cpus);
        size = CPU_ALLOC_SIZE((size_t)cpus);
        if (!have || sched_getaffinity(0, size, have) == 0 || errno != EINVAL)
            break;
        CPU_FREE(have);
        have = NULL;
    }
    near = have ? CPU_ALLOC((size_t)cpus) : NULL;
    if (!near)
        goto out;
    CPU_ZERO_S(size, near);
    for (int i = 0; i < cpus; i++)
        if (CPU_ISSET_S((size_t)i, size, have) && is_near(f, gpus, i)) {
            CPU_SET_S((size_t)i, size, near);
            n++;
        }
    if (n >= (wanted > 0 ? wanted : 1) && n < CPU_COUNT_S(size, have) && sched_setaffinity(0, size, near) == 0)
        bound = n;
out:
    if (have)
        CPU_FREE(have);
    if (near)
        CPU_FREE(near);
    return bound;
}
