/* The libslurm backend: the script's directives as a job description, sent, held, cancelled. */
#include "config.h"
#include "sched/slurm_priv.h"

#include <glob.h>
#include <signal.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern void slurm_free_will_run_response_msg(will_run_response_msg_t *); /* declared by no header of libslurm */

/* ---- submit ---- */

struct request {
    struct slurm_map map;
    struct strv env;
    char *argv[2];
};

static void request_release(struct request *q)
{
    slurm_map_release(&q->map);
    strv_release(&q->env);
}

static int request_make(const struct sched_request *r, struct request *q, struct err *err)
{
    struct submit_env how = { 0 };
    struct directives d = { 0 };
    const slurm_conf_t *conf = NULL;
    int rc = -1;

    *q = (struct request){ 0 };
    if (slurm_config(&conf, err))
        return -1;
    how.umask = umask(0);
    umask(how.umask);
    how.nice = getpriority(PRIO_PROCESS, 0);
    how.propagate = conf->propagate_rlimits;
    how.propagate_except = conf->propagate_rlimits_except;
    if (directives_parse(r->script, r->script_path, &d, err) || slurm_map_directives(&d, r, &q->map, err) ||
        submit_environment(r, &d, &how, &q->env, err))
        goto out;
    q->argv[0] = (char *)(uintptr_t)r->script_path;
    q->map.desc.argv = q->argv;
    q->map.desc.argc = 1;
    q->map.desc.script = (char *)(uintptr_t)r->script;
    q->map.desc.environment = q->env.v;
    q->map.desc.env_size = (uint32_t)q->env.n;
    rc = 0;
out:
    directives_release(&d);
    return rc;
}

/* The errors after which sbatch itself tries again. */
static bool busy(int e)
{
    return e == ESLURM_ERROR_ON_DESC_TO_RECORD_COPY || e == ESLURM_NODES_BUSY || e == EAGAIN;
}

static int slurm_submit(const struct sched_request *r, char **ret_job_id, struct err *err)
{
    submit_response_msg_t *answer = NULL;
    struct request q;
    struct hush h;
    int rc;

    if (request_make(r, &q, err)) {
        request_release(&q);
        return -1;
    }
    hush_begin(&h);
    for (unsigned tries = 1; (rc = slurm_submit_batch_job(&q.map.desc, &answer)) && busy(slurm_get_errno()) && !r->once &&
                             tries < 6; tries++)
        sleep(tries);
    free(hush_end(&h));
    if (rc || !answer)
        rc = slurm_failed("the job is refused", err);
    else
        *ret_job_id = xasprintf("%u", ANSWER_JOB(answer));
    if (answer)
        slurm_free_submit_response_response_msg(answer);
    request_release(&q);
    return rc;
}

static int slurm_test(const struct sched_request *r, char **ret_text, struct err *err)
{
    will_run_response_msg_t *answer = NULL;
    struct request q;
    struct hush h;
    char when[40];
    struct tm tm;
    int rc;

    if (request_make(r, &q, err)) {
        request_release(&q);
        return -1;
    }
    hush_begin(&h);
    rc = slurm_job_will_run2(&q.map.desc, &answer);
    free(hush_end(&h));
    request_release(&q);
    if (rc || !answer)
        return slurm_failed("the job would be refused", err);
    localtime_r(&answer->start_time, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
    *ret_text = xasprintf("the first task can start at %s on %s in partition %s with %u processors", when,
                          answer->node_list ? answer->node_list : "?", answer->part_name ? answer->part_name : "?",
                          answer->proc_cnt);
    slurm_free_will_run_response_msg(answer);
    return 0;
}

/* A plugin stack file that loads something adds options and environment that only sbatch gives. */
static bool has_spank(const char *path, int depth)
{
    struct str t = { 0 };
    bool found = false;

    if (path && depth < 5 && file_read(path, FILE_MAX_DEFAULT, &t, NULL) == 0)
        for (const char *p = t.s; *p && !found; p += strcspn(p, "\n"), p += *p == '\n') {
            p += strspn(p, " \t");
            if (strncasecmp(p, "include", 7) == 0 && strchr(" \t", p[7])) {
                char *pattern = xstrndup(p + 8 + strspn(p + 8, " \t"), strcspn(p + 8 + strspn(p + 8, " \t"), " \t\r\n"));
                glob_t g = { 0 };

                if (glob(pattern, 0, NULL, &g) == 0)
                    for (size_t i = 0; i < g.gl_pathc && !found; i++)
                        found = has_spank(g.gl_pathv[i], depth + 1);
                globfree(&g);
                free(pattern);
            } else {
                found = *p && !strchr("#\r\n", *p);
            }
        }
    str_release(&t);
    return found;
}

static int slurm_accepts(const struct sched_request *r, struct err *err)
{
    struct directives d = { 0 };
    const slurm_conf_t *conf = NULL;
    struct slurm_map map;
    struct strv env = { 0 };
    int rc = -1;

    if (slurm_config(&conf, err))
        return -1;
    if (conf->cli_filter_plugins && *conf->cli_filter_plugins)
        err_set(err, CODE_USAGE, "cli_filter '%s' is configured, which only Slurm's commands run",
                conf->cli_filter_plugins);
    else if (has_spank(conf->plugstack, 0))
        err_set(err, CODE_USAGE, "'%s' loads SPANK plugins, which only Slurm's commands run", conf->plugstack);
    else
        rc = directives_parse(r->script, r->script_path, &d, err);
    if (rc == 0) {
        rc = slurm_map_directives(&d, r, &map, err);
        slurm_map_release(&map);
    }
    if (rc == 0)
        rc = submit_environment(r, &d, &(struct submit_env){ 0 }, &env, err);
    strv_release(&env);
    directives_release(&d);
    return rc;
}

static int slurm_cancel(const char *job_id, struct err *err)
{
    struct hush h;
    int rc;

    if (slurm_start(err))
        return -1;
    hush_begin(&h);
    rc = slurm_kill_job2(job_id, SIGKILL, 0, NULL); /* as scancel: TERM first, KILL after KillWait */
    free(hush_end(&h));
    if (rc && (slurm_get_errno() == ESLURM_ALREADY_DONE || slurm_get_errno() == ESLURM_INVALID_JOB_ID))
        rc = 0;
    return rc ? slurm_failed("cannot cancel", err) : 0;
}

/* What scontrol uhold does: priority 0 by the user's own hand. */
static int slurm_hold(const char *job_id, struct err *err)
{
    job_array_resp_msg_t *answer = NULL;
    job_desc_msg_t d;
    struct hush h;
    int rc;

    if (slurm_start(err))
        return -1;
    slurm_init_job_desc_msg(&d);
    d.job_id_str = (char *)(uintptr_t)job_id;
    d.priority = 0;
    d.alloc_sid = ALLOC_SID_USER_HOLD;
    hush_begin(&h);
    rc = slurm_update_job2(&d, &answer);
    free(hush_end(&h));
    if (answer) /* tasks that run or have ended cannot be held: no error */
        slurm_free_job_array_resp(answer);
    if (rc && (slurm_get_errno() == ESLURM_ALREADY_DONE || slurm_get_errno() == ESLURM_INVALID_JOB_ID ||
               slurm_get_errno() == ESLURM_JOB_NOT_PENDING || slurm_get_errno() == ESLURM_JOB_FINISHED))
        rc = 0;
    return rc ? slurm_failed("cannot hold", err) : 0;
}

const struct sched_backend recon_backend = {
    .abi = RECON_BACKEND_ABI,
    .name = "slurm",
    .doc = "libslurm",
    .submit = slurm_submit,
    .tasks = slurm_ask_tasks,
    .cancel = slurm_cancel,
    .accepts = slurm_accepts,
    .test = slurm_test,
    .find = slurm_ask_find,
    .limits = slurm_ask_limits,
    .hold = slurm_hold,
    .cluster = slurm_ask_cluster,
    .accounting = slurm_ask_accounting,
    .held = slurm_ask_held,
};
