/* The environment that sbatch makes for a job, so that a job submitted by libslurm has the same.
 * Source: Slurm 22.05, src/sbatch/sbatch.c and opt.c; the environment of both is compared in tests/t/t0620-same-job.t. */
#include "config.h"
#include "sched/sched_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct {
    const char *name;
    int resource;
} limits[] = {
    { "CPU", RLIMIT_CPU },     { "FSIZE", RLIMIT_FSIZE },   { "DATA", RLIMIT_DATA },     { "STACK", RLIMIT_STACK },
    { "CORE", RLIMIT_CORE },   { "RSS", RLIMIT_RSS },       { "NPROC", RLIMIT_NPROC },   { "NOFILE", RLIMIT_NOFILE },
    { "MEMLOCK", RLIMIT_MEMLOCK }, { "AS", RLIMIT_AS },
};

static bool listed(const char *list, const char *name)
{
    struct strv items = { 0 };
    bool found = false;

    strv_split(&items, list, ", \t");
    for (size_t i = 0; i < items.n && !found; i++) {
        const char *item = str_starts(items.v[i], "RLIMIT_") ? items.v[i] + 7 : items.v[i];

        found = strcasecmp(item, name) == 0;
    }
    strv_release(&items);
    return found;
}

static bool propagated(const struct submit_env *how, const char *name)
{
    if (how->propagate_except)
        return strcasecmp(how->propagate_except, "ALL") && !listed(how->propagate_except, name);
    if (!how->propagate || strcasecmp(how->propagate, "ALL") == 0)
        return true;
    return strcasecmp(how->propagate, "NONE") && listed(how->propagate, name);
}

static void setf(struct strv *env, const char *name, const char *fmt, ...) PRINTF(3, 4);
static void setf(struct strv *env, const char *name, const char *fmt, ...)
{
    char text[64];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    env_set(env, name, text);
}

/* What sbatch sets in its own environment before it takes that for the job. */
static void set_first(const struct sched_request *r, const struct directives *d, const struct submit_env *how,
                      struct strv *env)
{
    const char *mode = directives_get(d, "open-mode"), *export = directives_get(d, "export");
    char host[256] = "", name[40];

    for (size_t i = 0; i < COUNT(limits); i++) {
        struct rlimit l;

        snprintf(name, sizeof(name), "SLURM_RLIMIT_%s", limits[i].name);
        if (propagated(how, limits[i].name) && getrlimit((__rlimit_resource_t)limits[i].resource, &l) == 0)
            setf(env, name, "%lu", (unsigned long)l.rlim_cur);
    }
    gethostname(host, sizeof(host) - 1);
    env_set(env, "SLURM_JOB_NAME", directives_get(d, "job-name") ? directives_get(d, "job-name") : r->name);
    env_set(env, "SLURM_SUBMIT_DIR", r->cwd);
    env_set(env, "SLURM_SUBMIT_HOST", host);
    setf(env, "SLURM_PRIO_PROCESS", "%d", how->nice);
    setf(env, "SLURM_UMASK", "0%03o", (unsigned)how->umask & 0777);
    if (mode)
        env_set(env, "SLURM_OPEN_MODE", *mode == 'a' ? "a" : "t");
    if (directives_get(d, "dependency"))
        env_set(env, "SLURM_JOB_DEPENDENCY", directives_get(d, "dependency"));
    if (export && strcasecmp(export, "ALL"))
        env_set(env, "SLURM_EXPORT_ENV", export);
}

/* And after. */
static void set_last(const struct directives *d, bool login, struct strv *env)
{
    static const struct {
        const char *option, *name;
    } plain[] = {
        { "cpus-per-task", "SLURM_CPUS_PER_TASK" },     { "ntasks-per-node", "SLURM_NTASKS_PER_NODE" },
        { "ntasks-per-core", "SLURM_NTASKS_PER_CORE" }, { "ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET" },
        { "threads-per-core", "SLURM_THREADS_PER_CORE" }, { "gpus", "SLURM_GPUS" },
        { "gpus-per-node", "SLURM_GPUS_PER_NODE" },     { "cpus-per-gpu", "SLURM_CPUS_PER_GPU" },
    };
    const char *v;
    uint64_t mib;

    if (login)
        env_set(env, "SLURM_GET_USER_ENV", "1");
    for (size_t i = 0; i < COUNT(plain); i++)
        if ((v = directives_get(d, plain[i].option)))
            env_set(env, plain[i].name, v);
    if ((v = directives_get(d, "mem-per-gpu")) && slurm_mib(v, &mib) == 0)
        setf(env, "SLURM_MEM_PER_GPU", "%llu", (unsigned long long)mib);
    if ((v = directives_get(d, "ntasks"))) {
        env_set(env, "SLURM_NTASKS", v);
        env_set(env, "SLURM_NPROCS", v);
    }
}

static int take_list(const char *export, const struct strv *all, struct strv *ret, struct err *err)
{
    struct strv items = { 0 };

    if (strpbrk(export, "'\""))
        return err_set(err, CODE_USAGE, "--export=%s holds quotes, which sbatch reads in its own way", export);
    strv_split(&items, export, ",");
    for (size_t i = 0; i < items.n; i++) {
        const char *equals = strchr(items.v[i], '=');
        char *name = xstrndup(items.v[i], strcspn(items.v[i], "="));

        if (strcasecmp(items.v[i], "ALL") == 0)
            for (size_t k = 0; k < all->n; k++)
                strv_add(ret, all->v[k]);
        else if (equals)
            env_set(ret, name, equals + 1);
        else if (env_get(all->v, name))
            env_set(ret, name, env_get(all->v, name));
        free(name);
    }
    strv_release(&items);
    return 0;
}

int submit_environment(const struct sched_request *r, const struct directives *d, const struct submit_env *how,
                       struct strv *ret, struct err *err)
{
    const char *export = directives_get(d, "export");
    bool whole = !export || strcasecmp(export, "ALL") == 0;
    struct strv all = { 0 };
    int rc = 0;

    for (char *const *e = r->env; *e; e++)
        strv_add(&all, *e);
    set_first(r, d, how, &all);
    if (whole) {
        strv_copy(ret, &all);
    } else {
        if (strcasecmp(export, "NONE"))
            rc = take_list(export, &all, ret, err);
        for (size_t i = 0; rc == 0 && i < all.n; i++) {
            char *name = xstrndup(all.v[i], strcspn(all.v[i], "="));

            if (str_starts(name, "SLURM"))
                env_set(ret, name, all.v[i] + strlen(name) + 1);
            free(name);
        }
    }
    if (rc == 0)
        set_last(d, !whole, ret);
    strv_release(&all);
    return rc;
}
