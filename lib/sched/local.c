/* The local backend: the tasks of a script on this host, N at a time, each as Slurm would start it. */
#include "config.h"
#include "sched/local_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_WAIT_MS                                                                                         \
    30000 /* from TERM to KILL, Slurm's default KillWait; longer than the launcher's own grace */

/* A job id is all that the face hands on, so the jobs of this process are kept here. */
static struct {
    struct job **v;
    size_t n, cap;
} jobs;

/* ---- submit ---- */

static void job_free(struct job *j)
{
    free(j->id);
    free(j->interpreter);
    free(j->interpreter_arg);
    free((char *)(uintptr_t)j->r.name);
    free((char *)(uintptr_t)j->r.script_path);
    free((char *)(uintptr_t)j->r.cwd);
    strv_release(&j->env);
    directives_release(&j->d);
    sched_tasks_release(&j->tasks);
    free(j->pids);
    free(j);
}

/* "#!/bin/bash -e" as the kernel reads it: a path and at most one argument. */
static int read_interpreter(struct job *j, const char *script, struct err *err)
{
    const char *p = script + 2, *arg;
    size_t n, line;

    if (!str_starts(script, "#!"))
        return err_set(err, CODE_USAGE, "'%s' does not begin with #!", j->r.script_path);
    p += strspn(p, " \t");
    n = strcspn(p, " \t\n");
    j->interpreter = xstrndup(p, n);
    arg = p + n + strspn(p + n, " \t");
    line = strcspn(arg, "\n");
    while (line && strchr(" \t", arg[line - 1]))
        line--;
    j->interpreter_arg = line ? xstrndup(arg, line) : NULL;
    return access(j->interpreter, X_OK) ? err_sys(err, CODE_NOEXEC, "cannot run '%s', which '%s' names",
                                                  j->interpreter, j->r.script_path)
                                        : 0;
}

static int local_submit(const struct sched_request *r, char **ret_job_id, struct err *err)
{
    struct job *j = xcalloc(1, sizeof(*j));

    j->r = *r;
    j->r.name = xstrdup(r->name);
    j->r.script_path = xstrdup(r->script_path);
    j->r.cwd = xstrdup(r->cwd);
    if (directives_parse(r->script, r->script_path, &j->d, err) || read_interpreter(j, r->script, err)) {
        job_free(j);
        return -1;
    }
    j->number = (uint64_t)getpid() + jobs.n;
    j->id = xasprintf("local-%llu", (unsigned long long)j->number);
    local_share_cores(j);
    local_environment(j, r->env);
    j->pids = xcalloc(r->tasks ? r->tasks : 1, sizeof(*j->pids));
    for (uint32_t i = 0; i < r->tasks; i++) {
        struct sched_task *t = VEC_ADD(&j->tasks);

        t->slot = i;
        t->state = TASK_WAITING;
    }
    *VEC_ADD(&jobs) = j;
    *ret_job_id = xstrdup(j->id);
    return 0;
}

/* ---- one task ---- */

/* The task's files, opened in the child; relative ones are the working folder's. */
static int open_output(const struct job *j, const char *option, const struct sched_names *n, const char *cwd)
{
    const char *pattern = directives_get(&j->d, option), *mode = directives_get(&j->d, "open-mode");
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (mode && *mode == 'a' ? O_APPEND : O_TRUNC), fd;
    char *name, *path;

    if (!pattern)
        pattern = "slurm-%A_%a.out";
    if (str_eq(pattern, "none"))
        pattern = "/dev/null";
    name = sched_pattern(pattern, n);
    path = path_join(cwd, name);
    fd = open(path, flags, 0666);
    free(name);
    free(path);
    return fd;
}

static void child_say(const char *what, const char *object)
{
    char text[600];
    int n = snprintf(text, sizeof(text), "recon: %s '%s': %s\n", what, object, strerror(errno)), ignored;

    ignored = (int)write(STDERR_FILENO, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
    (void)ignored;
}

static void child_signals(void)
{
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void task_child(struct job *j, uint32_t slot, pid_t parent)
{
    const char *cwd = directives_get(&j->d, "chdir") ? directives_get(&j->d, "chdir") : j->r.cwd;
    const char *error = directives_get(&j->d, "error");
    struct sched_names n = { .array = j->number, .job = j->number + slot, .slot = slot, .name = j->r.name,
                             .node = env_get(j->env.v, "SLURMD_NODENAME"), .user = local_user(j->env.v) };
    const char *argv[4] = { j->interpreter, NULL, NULL, NULL };
    int out, errout, null;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(128 + SIGTERM);
    child_signals();
    local_number(&j->env, "SLURM_ARRAY_TASK_ID", slot);
    local_number(&j->env, "SLURM_JOB_ID", n.job);
    local_number(&j->env, "SLURM_JOBID", n.job);
    null = open("/dev/null", O_RDONLY);
    out = open_output(j, "output", &n, cwd);
    errout = out >= 0 && error ? open_output(j, "error", &n, cwd) : out;
    if (out < 0 || errout < 0) {
        child_say("cannot open the log of a task in", cwd);
        _exit(CODE_CREATE);
    }
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(errout, STDERR_FILENO);
    if (chdir(cwd)) {
        child_say("cannot enter", cwd);
        _exit(CODE_NOTFOUND);
    }
    argv[1] = j->interpreter_arg ? j->interpreter_arg : j->r.script_path;
    argv[2] = j->interpreter_arg ? j->r.script_path : NULL;
    execve(j->interpreter, (char *const *)(uintptr_t)argv, j->env.v);
    child_say("cannot run", j->interpreter);
    _exit(errno == ENOENT ? CODE_NOTFOUND : CODE_NOEXEC);
}

static void start_task(struct job *j)
{
    uint32_t slot = j->next++;
    struct sched_task *t = &j->tasks.v[slot];
    pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        task_child(j, slot, parent);
    if (pid < 0) {
        t->state = TASK_ENDED;
        t->exit = CODE_MEMORY;
        t->reason = xasprintf("cannot start: %s", strerror(errno));
        return;
    }
    setpgid(pid, pid);
    j->pids[slot] = pid;
    j->running++;
    t->state = TASK_RUNNING;
}

static void reap(struct job *j)
{
    for (uint32_t slot = 0; slot < j->next; slot++) {
        struct sched_task *t = &j->tasks.v[slot];
        int status;

        if (!j->pids[slot] || waitpid(j->pids[slot], &status, WNOHANG) != j->pids[slot])
            continue;
        kill(-j->pids[slot], SIGKILL); /* whatever stayed behind in its group */
        j->pids[slot] = 0;
        j->running--;
        t->state = TASK_ENDED;
        t->exit = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        t->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
}

/* ---- wait ---- */

static void signal_all(const struct job *j, int sig)
{
    for (uint32_t slot = 0; slot < j->next; slot++)
        if (j->pids[slot])
            kill(-j->pids[slot], sig);
}

/* One event: a child's end, a signal to us (given back), or a quarter of a second. */
static int next_signal(const sigset_t *set)
{
    struct timespec nap = { 0, 250 * 1000000L };
    int got = sigtimedwait(set, NULL, &nap);

    return got > 0 && got != SIGCHLD ? got : 0;
}

/* Kills what became a child of this process because its own parents are gone; false when there is none. */
static bool kill_orphans(const struct job *j)
{
    char path[64];
    struct str t = { 0 };
    bool found = false;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && file_read_fd(fd, path, 1 << 20, &t, NULL) == 0)
        for (char *p = t.len ? t.s : NULL; p && *p; p += strspn(p, " \n")) {
            pid_t pid = (pid_t)strtol(p, &p, 10);
            bool task = false;

            for (uint32_t slot = 0; slot < j->next; slot++)
                task = task || j->pids[slot] == pid;
            if (pid <= 1 || task)
                continue;
            found = true;
            kill(pid, SIGKILL);
            waitpid(pid, NULL, WNOHANG);
        }
    if (fd >= 0)
        close(fd);
    str_release(&t);
    return found;
}

/* TERM, and KILL after the wait or at a second signal. */
static void stop_all(struct job *j, const sigset_t *set)
{
    double end = clock_ms() + KILL_WAIT_MS;
    bool hard = false;

    signal_all(j, SIGTERM);
    for (; j->running; reap(j)) {
        int again = next_signal(set);

        if (!hard && (clock_ms() > end || again)) {
            signal_all(j, SIGKILL);
            hard = true;
        }
    }
    for (int tries = 0; tries < 200 && kill_orphans(j); tries++)
        usleep(5000);
}

static struct job *find_job(const char *id)
{
    for (size_t i = 0; i < jobs.n; i++)
        if (str_eq(jobs.v[i]->id, id))
            return jobs.v[i];
    return NULL;
}

static int local_wait(const char *job_id, void (*progress)(void *, const struct sched_tasks *), void *arg,
                      struct err *err)
{
    struct job *j = find_job(job_id);
    sigset_t set, before;
    int got = 0;

    if (!j)
        return err_set(err, CODE_INTERNAL, "'%s' is no job of this process", job_id);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a killed launcher leaves comes to us */
    while (!got && (j->running || j->next < j->r.tasks)) {
        while (j->running < j->at_a_time && j->next < j->r.tasks)
            start_task(j);
        got = next_signal(&set);
        reap(j);
        if (progress)
            progress(arg, &j->tasks);
    }
    if (got)
        stop_all(j, &set);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return got ? err_set(err, 128 + got, "stopped by signal %d; every task is ended", got) : 0;
}

static int local_tasks(const struct sched_job *job, struct sched_tasks *ret, struct err *err)
{
    struct job *j = find_job(job->id);

    (void)err;
    for (size_t i = 0; j && i < j->tasks.n; i++) {
        *VEC_ADD(ret) = j->tasks.v[i];
        ret->v[i].reason = xstrdup(j->tasks.v[i].reason);
        ret->v[i].node = xstrdup(j->tasks.v[i].node);
    }
    return 0;
}

/* The tasks die with the process that started them, whose number is in the id. */
static int local_cancel(const char *job_id, struct err *err)
{
    uint64_t pid;
    char exe[64], to[4096];
    ssize_t n;

    if (!str_starts(job_id, "local-") || str_to_u64(job_id + 6, &pid) || pid < 2 || pid > INT32_MAX)
        return err_set(err, CODE_USAGE, "'%s' is no local job", job_id);
    snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
    n = readlink(exe, to, sizeof(to) - 1);
    to[n > 0 ? n : 0] = 0;
    if (!str_starts(path_base(to), "recon-submit"))
        return 0; /* it has ended */
    return kill((pid_t)pid, SIGTERM) && errno != ESRCH
               ? err_sys(err, CODE_PERM, "cannot stop process %d", (int)pid)
               : 0;
}

const struct sched_backend recon_backend = {
    .abi = RECON_BACKEND_ABI,
    .name = "local",
    .doc = "the tasks on this host, N at a time",
    .submit = local_submit,
    .wait = local_wait,
    .tasks = local_tasks,
    .cancel = local_cancel,
};
