/* The local backend: the environment and the share of the cores that a task gets. */
#include "config.h"
#include "sched/local_priv.h"

#include <pwd.h>
#include <sched.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static int cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

const char *local_user(char *const *env)
{
    const char *user = env_get(env, "USER");
    struct passwd *p = user ? NULL : getpwuid(getuid());

    return user ? user : p ? p->pw_name : "user";
}

/* How many at once and with how many threads each: about as many threads as tasks when nobody said. */
void local_share_cores(struct job *j)
{
    const char *asked = directives_get(&j->d, "cpus-per-task"), *array = directives_get(&j->d, "array");
    const char *most = array ? strchr(array, '%') : NULL;
    int all = cores(), threads = 1;
    uint64_t v = 0;

    if (asked && str_to_u64(asked, &v) == 0 && v > 0)
        threads = v < (uint64_t)all ? (int)v : all;
    else if (j->r.at_a_time)
        threads = all / (int)(j->r.at_a_time < (uint32_t)all ? j->r.at_a_time : (uint32_t)all);
    else
        while (threads * threads < all)
            threads++;
    j->threads = (uint32_t)threads;
    j->at_a_time = j->r.at_a_time ? j->r.at_a_time : (uint32_t)(all / threads);
    if (most && str_to_u64(most + 1, &v) == 0 && v > 0 && v < j->at_a_time)
        j->at_a_time = (uint32_t)v;
}

/* What --export lets through. Without it the variables that a login gives. */
static void base_environment(struct job *j, char *const *env)
{
    static const char *const login[] = { "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR" };
    const char *export = directives_get(&j->d, "export");

    if (!export || strcasecmp(export, "ALL") == 0 || strncasecmp(export, "ALL,", 4) == 0) {
        for (; *env; env++)
            strv_add(&j->env, *env);
    } else {
        for (size_t i = 0; i < COUNT(login); i++)
            if (env_get(env, login[i]))
                strv_addf(&j->env, "%s=%s", login[i], env_get(env, login[i]));
        strv_add(&j->env, "PATH=/usr/local/bin:/usr/bin:/bin");
    }
    if (export) {
        struct strv items = { 0 };

        strv_split(&items, export, ",");
        for (size_t i = 0; i < items.n; i++) {
            const char *equals = strchr(items.v[i], '=');
            char *name = xstrndup(items.v[i], strcspn(items.v[i], "="));

            if (equals)
                env_set(&j->env, name, equals + 1);
            else if (env_get(env, name))
                env_set(&j->env, name, env_get(env, name));
            free(name);
        }
        strv_release(&items);
    }
}

void local_number(struct strv *env, const char *name, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    env_set(env, name, text);
}

void local_environment(struct job *j, char *const *env)
{
    struct strv clean = { 0 };
    char host[256] = "localhost";

    sched_environment(env, &clean);
    base_environment(j, clean.v ? clean.v : (char *[]){ NULL });
    strv_release(&clean);
    gethostname(host, sizeof(host) - 1);
    local_number(&j->env, "SLURM_ARRAY_JOB_ID", j->number);
    local_number(&j->env, "SLURM_ARRAY_TASK_COUNT", j->r.tasks);
    local_number(&j->env, "SLURM_ARRAY_TASK_MIN", 0);
    local_number(&j->env, "SLURM_ARRAY_TASK_MAX", j->r.tasks - 1);
    local_number(&j->env, "SLURM_ARRAY_TASK_STEP", 1);
    local_number(&j->env, "SLURM_CPUS_ON_NODE", j->threads);
    local_number(&j->env, "SLURM_JOB_CPUS_PER_NODE", j->threads);
    if (directives_get(&j->d, "cpus-per-task"))
        local_number(&j->env, "SLURM_CPUS_PER_TASK", j->threads);
    if (!env_get(j->env.v, "OMP_NUM_THREADS"))
        local_number(&j->env, "OMP_NUM_THREADS", j->threads);
    env_set(&j->env, "SLURM_JOB_NAME", j->r.name);
    env_set(&j->env, "SLURM_SUBMIT_DIR", j->r.cwd);
    env_set(&j->env, "SLURM_SUBMIT_HOST", host);
    env_set(&j->env, "SLURMD_NODENAME", host);
    env_set(&j->env, "SLURM_JOB_NODELIST", host);
    env_set(&j->env, "SLURM_NODELIST", host);
    env_set(&j->env, "SLURM_JOB_NUM_NODES", "1");
    env_set(&j->env, "SLURM_NNODES", "1");
    env_set(&j->env, "SLURM_NODEID", "0");
    env_set(&j->env, "SLURM_PROCID", "0");
    env_set(&j->env, "SLURM_LOCALID", "0");
    env_set(&j->env, "SLURM_JOB_USER", local_user(env));
    local_number(&j->env, "SLURM_JOB_UID", getuid());
}
