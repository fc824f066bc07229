/* The libslurm backend: the script's directives as a job description, and the RPCs. */
#include "config.h"
#include "sched/slurm_map_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
/* exported by libslurm, declared by no header of it */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *);
extern char *slurm_job_reason_string(int);

/* ---- libslurm writes to stderr: kept for the error's text -------------------------------------------- */

struct hush {
    int saved, kept;
};

static void hush_begin(struct hush *h)
{
    fflush(stderr);
    h->kept = memfd_create("recon-slurm", MFD_CLOEXEC);
    h->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (h->kept >= 0 && h->saved >= 0)
        dup2(h->kept, STDERR_FILENO);
}

/* The last line that was said, without "PROGRAM: error: "; owned, "" for nothing. */
static char *hush_end(struct hush *h)
{
    struct str t = { 0 };
    char *last, *mark;

    fflush(stderr);
    if (h->kept >= 0 && h->saved >= 0) {
        dup2(h->saved, STDERR_FILENO);
        lseek(h->kept, 0, SEEK_SET);
        file_read_fd(h->kept, "libslurm", 65536, &t, NULL);
    }
    if (h->kept >= 0)
        close(h->kept);
    if (h->saved >= 0)
        close(h->saved);
    while (t.len && strchr(" \n\r", t.s[t.len - 1]))
        t.s[--t.len] = 0;
    last = t.len && strrchr(t.s, '\n') ? strrchr(t.s, '\n') + 1 : t.len ? t.s : (char *)(uintptr_t)"";
    mark = strstr(last, ": fatal: ") ? strstr(last, ": fatal: ") : strstr(last, ": error: ");
    last = xstrdup(mark ? mark + 9 : last);
    str_release(&t);
    return last;
}

/* ---- errors ---- */

static int failed(const char *what, struct err *err)
{
    int e = slurm_get_errno();
    const char *text = slurm_strerror(e);
    char *where = sched_endpoint(environ);
    int code = CODE_NOEXEC; /* a protocol or a plugin that is not this library's */

    if (e == ECONNRESET || e == SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT || e == SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT ||
        e == SLURM_COMMUNICATIONS_RECEIVE_ERROR || e == SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR)
        code = CODE_DEADLINE; /* it was sent, and no answer came: it may have been taken */
    else if (e == EAGAIN || e == ECONNREFUSED || e == ETIMEDOUT || e == SLURM_COMMUNICATIONS_CONNECTION_ERROR ||
        e == SLURM_COMMUNICATIONS_SEND_ERROR ||
        (e >= SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR && e < 1900) || e == ESLURM_IN_STANDBY_MODE ||
        e == ESLURM_IN_STANDBY_USE_BACKUP || e == ESLURM_ERROR_ON_DESC_TO_RECORD_COPY || e == ESLURM_NODES_BUSY)
        code = CODE_UNAVAILABLE;
    else if (e == ESLURM_ACCESS_DENIED || e == ESLURM_USER_ID_MISSING)
        code = CODE_PERM;
    else if (e >= ESLURM_INVALID_PARTITION_NAME && e < 3000)
        code = CODE_USAGE;
    if (code == CODE_USAGE || code == CODE_PERM)
        err_set(err, code, "%s: Slurm says: %s (%d)", what, text, e);
    else
        err_set(err, code, "%s: the controller does not answer (%s): %s (%d)", what, where, text, e);
    free(where);
    return -1;
}

/* libslurm ends the process when it finds no configuration, so a child tries first. */
static int try_init(struct err *err)
{
    struct hush h;
    char *said, *where;
    int status = 0;
    pid_t pid;

    hush_begin(&h);
    pid = fork();
    if (pid == 0) {
        slurm_init(NULL);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    said = hush_end(&h);
    if (pid > 0 && status == 0) {
        free(said);
        return 0;
    }
    where = sched_endpoint(environ);
    err_set(err, CODE_NOEXEC, "libslurm finds no cluster (controller %s): %s", where,
            *said ? said : "it said nothing");
    free(where);
    free(said);
    return -1;
}

/* libslurm's own plugins expect its symbols in the global scope; this module is loaded into its own. */
static void make_global(void)
{
    Dl_info info;

    if (dladdr((void *)(uintptr_t)slurm_init, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/* Once a process. */
static int start(struct err *err)
{
    static bool ready;

    if (ready)
        return 0;
    make_global();
    if (try_init(err))
        return -1;
    slurm_init(NULL);
    setenv("SLURM_BITSTR_LEN", "0", 0); /* lists of slots whole, not cut at 64 characters */
    ready = true;
    return 0;
}

/* Asked once a process; libslurm's own. */
static int load_config(const slurm_conf_t **ret, struct err *err)
{
    static slurm_conf_t *kept;
    struct hush h;
    int rc;

    if (start(err))
        return -1;
    hush_begin(&h);
    rc = kept ? 0 : slurm_load_ctl_conf(0, &kept);
    free(hush_end(&h));
    *ret = kept;
    return rc ? failed("cannot ask for the configuration", err) : 0;
}

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
    if (load_config(&conf, err))
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
    for (unsigned tries = 1; (rc = slurm_submit_batch_job(&q.map.desc, &answer)) && busy(slurm_get_errno()) && tries < 6;
         tries++)
        sleep(tries);
    free(hush_end(&h));
    if (rc || !answer)
        rc = failed("the job is refused", err);
    else
        *ret_job_id = xasprintf("%u", answer->job_id);
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
        return failed("the job would be refused", err);
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

    if (load_config(&conf, err))
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

static int slurm_tasks(const struct sched_job *job, struct sched_tasks *ret, struct err *err)
{
    job_info_msg_t *all = NULL;
    struct hush h;
    uint64_t id;
    int rc;

    if (str_to_u64(job->id, &id) || id > UINT32_MAX)
        return err_set(err, CODE_USAGE, "'%s' is no job id of Slurm", job->id);
    if (start(err))
        return -1;
    hush_begin(&h);
    rc = slurm_load_job(&all, (uint32_t)id, SHOW_ALL);
    free(hush_end(&h));
    if (rc) /* a job that the controller knows no more has ended */
        return slurm_get_errno() == ESLURM_INVALID_JOB_ID || rc == ESLURM_INVALID_JOB_ID
                   ? 0
                   : failed("cannot ask for the tasks", err);
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

static int slurm_cancel(const char *job_id, struct err *err)
{
    struct hush h;
    int rc;

    if (start(err))
        return -1;
    hush_begin(&h);
    rc = slurm_kill_job2(job_id, SIGKILL, 0, NULL); /* as scancel: TERM first, KILL after KillWait */
    free(hush_end(&h));
    if (rc && (slurm_get_errno() == ESLURM_ALREADY_DONE || slurm_get_errno() == ESLURM_INVALID_JOB_ID))
        rc = 0;
    return rc ? failed("cannot cancel", err) : 0;
}

/* What scontrol uhold does: priority 0 by the user's own hand. */
static int slurm_hold(const char *job_id, struct err *err)
{
    job_array_resp_msg_t *answer = NULL;
    job_desc_msg_t d;
    struct hush h;
    int rc;

    if (start(err))
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
    return rc ? failed("cannot hold", err) : 0;
}

static int slurm_find(const char *name, char **ret_job_id, struct err *err)
{
    job_info_msg_t *all = NULL;
    uint32_t found = 0;
    struct hush h;
    int rc;

    if (start(err))
        return -1;
    hush_begin(&h);
    rc = slurm_load_job_user(&all, getuid(), SHOW_ALL);
    free(hush_end(&h));
    if (rc)
        return failed("cannot look for the job", err);
    for (uint32_t i = 0; i < all->record_count && !found; i++)
        if (str_eq(all->job_array[i].name, name))
            found = all->job_array[i].array_job_id ? all->job_array[i].array_job_id : all->job_array[i].job_id;
    slurm_free_job_info_msg(all);
    if (!found)
        return err_set(err, CODE_NOTFOUND, "no job is named '%s'", name);
    *ret_job_id = xasprintf("%u", found);
    return 0;
}

static int slurm_limits(struct sched_limits *ret, struct err *err)
{
    const slurm_conf_t *conf = NULL;

    if (load_config(&conf, err))
        return -1;
    ret->array_size = conf->max_array_sz;
    ret->job_count = conf->max_job_cnt;
    return 0;
}

static int slurm_cluster(struct cluster *ret, struct err *err)
{
    const slurm_conf_t *conf = NULL;
    struct hush h;
    int rc;

    if (load_config(&conf, err))
        return -1;
    *ret = (struct cluster){ 0 };
    hush_begin(&h);
    rc = slurm_cluster_load(conf, ret);
    free(hush_end(&h));
    if (rc)
        cluster_release(ret);
    return rc ? failed("cannot ask for partitions and nodes", err) : 0;
}

const struct sched_backend recon_backend = {
    .abi = RECON_BACKEND_ABI,
    .name = "slurm",
    .doc = "libslurm",
    .submit = slurm_submit,
    .tasks = slurm_tasks,
    .cancel = slurm_cancel,
    .accepts = slurm_accepts,
    .test = slurm_test,
    .find = slurm_find,
    .limits = slurm_limits,
    .hold = slurm_hold,
    .cluster = slurm_cluster,
};
