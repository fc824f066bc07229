/* What the controller is asked: tasks, jobs by name, limits, what the cluster offers. */
#include "config.h"
#include "sched/slurm_priv.h"

#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char *slurm_job_reason_string(int); /* exported by libslurm, declared by no header of it */

/* ---- tasks ---- */

struct slot_of {
    struct sched_tasks *tasks;
    const slurm_job_info_t *job;
};

static void add_slot(void *arg, uint32_t slot)
{
    struct slot_of *s = arg;
    struct sched_task *t = sched_task_of(s->tasks, slot);
    uint32_t base = s->job->job_state & JOB_STATE_BASE;
    const char *reason = slurm_job_reason_string((int)s->job->state_reason);

    t->state = base == JOB_PENDING ? TASK_WAITING
               : base == JOB_RUNNING || base == JOB_SUSPENDED || (s->job->job_state & JOB_COMPLETING) ? TASK_RUNNING
                                                                                                      : TASK_ENDED;
    if (s->job->job_state & (JOB_REQUEUE | JOB_SPECIAL_EXIT))
        t->state = TASK_WAITING;
    if (t->state == TASK_ENDED) {
        t->exit = WIFEXITED(s->job->exit_code) ? WEXITSTATUS(s->job->exit_code) : 0;
        t->signal = WIFSIGNALED(s->job->exit_code) ? WTERMSIG(s->job->exit_code) : 0;
    }
    free(t->reason);
    free(t->node);
    t->reason = xstrdup(reason);
    t->node = s->job->nodes && *s->job->nodes ? xstrdup(s->job->nodes) : NULL;
    t->withdrawn = t->state == TASK_ENDED && base == JOB_CANCELLED && !t->node;
}

int slurm_ask_tasks(const struct sched_job *job, struct sched_tasks *ret, struct err *err)
{
    job_info_msg_t *all = NULL;
    struct hush h;
    uint64_t id;
    int rc;

    if (str_to_u64(job->id, &id) || id > UINT32_MAX)
        return err_set(err, CODE_USAGE, "'%s' is no job id of Slurm", job->id);
    if (slurm_start(err))
        return -1;
    hush_begin(&h);
    #ifdef HAVE_SLURM_LOAD_JOB_BY_STEP /* 26.05 on */
    rc = slurm_load_job(&all, (slurm_step_id_t){ .job_id = (uint32_t)id, .step_id = NO_VAL, .step_het_comp = NO_VAL }, SHOW_ALL);
#else
    rc = slurm_load_job(&all, (uint32_t)id, SHOW_ALL);
#endif
    free(hush_end(&h));
    if (rc) /* a job that the controller knows no more has ended */
        return slurm_get_errno() == ESLURM_INVALID_JOB_ID || rc == ESLURM_INVALID_JOB_ID
                   ? 0
                   : slurm_failed("cannot ask for the tasks", err);
    for (uint32_t i = 0; i < all->record_count; i++) {
        struct slot_of s = { ret, &all->job_array[i] };

        if (!sched_is(job, s.job->name, s.job->command))
            continue;
        if (s.job->array_task_str && *s.job->array_task_str)
            sched_slots(s.job->array_task_str, add_slot, &s);
        else
            add_slot(&s, s.job->array_task_id == NO_VAL ? 0 : s.job->array_task_id);
    }
    slurm_free_job_info_msg(all);
    return 0;
}

int slurm_ask_find(const char *name, char **ret_job_id, struct err *err)
{
    job_info_msg_t *all = NULL;
    uint32_t found = 0;
    struct hush h;
    int rc;

    if (slurm_start(err))
        return -1;
    hush_begin(&h);
    rc = slurm_load_job_user(&all, getuid(), SHOW_ALL);
    free(hush_end(&h));
    if (rc)
        return slurm_failed("cannot look for the job", err);
    for (uint32_t i = 0; i < all->record_count && !found; i++)
        if (str_eq(all->job_array[i].name, name))
            found = all->job_array[i].array_job_id ? all->job_array[i].array_job_id : all->job_array[i].job_id;
    slurm_free_job_info_msg(all);
    if (!found)
        return err_set(err, CODE_NOTFOUND, "no job is named '%s'", name);
    *ret_job_id = xasprintf("%u", found);
    return 0;
}

int slurm_ask_limits(struct sched_limits *ret, struct err *err)
{
    const slurm_conf_t *conf = NULL;

    if (slurm_config(&conf, err))
        return -1;
    ret->array_size = conf->max_array_sz;
    ret->job_count = conf->max_job_cnt;
    return 0;
}

int slurm_ask_cluster(struct cluster *ret, struct err *err)
{
    const slurm_conf_t *conf = NULL;
    struct hush h;
    int rc;

    if (slurm_config(&conf, err))
        return -1;
    *ret = (struct cluster){ 0 };
    hush_begin(&h);
    rc = slurm_cluster_load(conf, ret);
    free(hush_end(&h));
    if (rc)
        cluster_release(ret);
    return rc ? slurm_failed("cannot ask for partitions and nodes", err) : 0;
}

int slurm_ask_accounting(struct accounting *ret, struct err *err)
{
    const slurm_conf_t *conf = NULL;
    struct hush h;
    int rc;

    if (slurm_config(&conf, err))
        return -1;
    hush_begin(&h);
    rc = slurm_accounting_load(conf, ret);
    free(hush_end(&h));
    return rc ? slurm_failed("cannot ask for associations and QOS", err) : 0;
}

static void count_slot(void *arg, uint32_t slot)
{
    (void)slot;
    ++*(uint64_t *)arg;
}

int slurm_ask_held(uint64_t *ret, struct err *err)
{
    job_info_msg_t *all = NULL;
    struct hush h;
    uint64_t n = 0;
    int rc;

    if (slurm_start(err))
        return -1;
    hush_begin(&h);
    rc = slurm_load_jobs(0, &all, SHOW_ALL);
    free(hush_end(&h));
    if (rc)
        return slurm_failed("cannot ask for the jobs", err);
    for (uint32_t i = 0; i < all->record_count; i++) {
        const char *slots = all->job_array[i].array_task_str;

        if (!slots || !*slots || sched_slots(slots, count_slot, &n))
            n++;
    }
    slurm_free_job_info_msg(all);
    *ret = n;
    return 0;
}
