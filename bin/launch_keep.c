#include "config.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_MS 200.0  /* what ends by itself this soon after the program was not left behind */
#define TERM_MS 500.0    /* from TERM to KILL for what was left behind */
#define GIVE_UP_MS 10000 /* a process in uninterruptible sleep is left to the kernel */

static const int taken_signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGQUIT };

/* ---- signals --------------------------------------------------------------------------------------------------- */

void keeper_init(struct keeper *k, double grace_ms)
{
    *k = (struct keeper){ .grace_ms = grace_ms };
    signal(SIGCHLD, SIG_DFL); /* whoever ignored it for us would have had our children reaped by the kernel */
    sigemptyset(&k->taken);
    for (size_t i = 0; i < COUNT(taken_signals); i++)
        sigaddset(&k->taken, taken_signals[i]);
    sigprocmask(SIG_BLOCK, &k->taken, &k->received);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void keeper_release(struct keeper *k)
{
    free(k->others);
    k->others = NULL;
}

/* A probe that sleeps in the kernel, say: no program's own. */
static void note_others(struct keeper *k)
{
    struct processes p;

    keeper_release(k);
    descendants(NULL, &p);
    k->others = xcalloc(p.n + 1, sizeof(*k->others));
    for (size_t i = 0; i < p.n; i++)
        k->others[i] = p.v[i].pid;
    processes_release(&p);
}

static void tell(struct keeper *k, int sig)
{
    if (k->told)
        return;
    k->told = sig;
    k->kill_at = clock_ms() + k->grace_ms;
}

int keeper_told(struct keeper *k)
{
    static const struct timespec now = { 0 };
    sigset_t ends;
    int sig;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    while ((sig = sigtimedwait(&ends, NULL, &now)) > 0)
        tell(k, sig);
    return k->told;
}

/* Waits for a signal at most ms (negative: for ever). False: none came. */
static bool next_signal(const struct keeper *k, double ms, siginfo_t *ret)
{
    struct timespec t = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms * 1e6) % 1000000000 };

    return (ms < 0 ? sigwaitinfo(&k->taken, ret) : sigtimedwait(&k->taken, ret, &t)) > 0;
}

/* In the foreground of a terminal: a group of its own could not read there, nor the others of a pipeline. */
static bool in_foreground(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (isatty(fd) && tcgetpgrp(fd) == getpgrp())
            return true;
    return false;
}

/* ---- the child's side ------------------------------------------------------------------------------------------ */

int keeper_exec(struct keeper *k, const char *path, char *const *argv, char *const *env, struct err *err)
{
    sigprocmask(SIG_SETMASK, &k->received, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); /* survives exec */
    execve(path, argv, env);
    if (errno == ENOENT && access(path, F_OK) == 0)
        err_set(err, CODE_NOEXEC, "cannot execute '%s': its interpreter or loader does not exist", path);
    else
        err_sys(err, errno == ENOENT ? CODE_NOTFOUND : CODE_NOEXEC, "cannot execute '%s'", path);
    sigprocmask(SIG_BLOCK, &k->taken, NULL);
    return -1;
}

static void be_program(struct keeper *k, pid_t parent, const char *path, char *const *argv, char *const *env,
                       int report)
{
    struct err err = { 0 };
    ssize_t ignored;

    if (!k->shared)
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the launcher killed: nothing runs on unwatched */
    if (getppid() != parent)
        _exit(128 + SIGKILL);
    keeper_exec(k, path, argv, env, &err);
    ignored = write(report, &err, sizeof(err));
    (void)ignored;
    _exit(err.code);
}

static pid_t start(struct keeper *k, const char *path, char *const *argv, char *const *env, struct err *err)
{
    struct err why = { 0 };
    int report[2];
    pid_t parent = getpid(), pid;
    ssize_t n;

    if (pipe2(report, O_CLOEXEC))
        return err_sys(err, CODE_INTERNAL, "cannot start '%s'", path);
    pid = fork();
    if (pid == 0)
        be_program(k, parent, path, argv, env, report[1]);
    if (pid < 0)
        err_sys(err, CODE_INTERNAL, "cannot start '%s'", path);
    else if (!k->shared)
        setpgid(pid, pid);
    close(report[1]);
    do
        n = read(report[0], &why, sizeof(why));
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (pid > 0 && n == (ssize_t)sizeof(why)) {
        waitpid(pid, NULL, 0);
        if (err)
            *err = why;
        return -1;
    }
    return pid;
}

/* ---- watching -------------------------------------------------------------------------------------------------- */

/* Reaps whatever ended. True once the child itself has. */
static bool reap(pid_t child, int *status, struct rusage *used)
{
    struct rusage u;
    bool ended = false;
    pid_t pid;
    int st;

    while ((pid = wait4(-1, &st, WNOHANG, &u)) > 0)
        if (pid == child) {
            *status = st;
            *used = u;
            ended = true;
        }
    return ended;
}

static void kill_all(const struct keeper *k, int sig)
{
    struct processes p;

    descendants(k->others, &p);
    for (size_t i = 0; i < p.n; i++)
        kill(p.v[i].pid, sig);
    processes_release(&p);
}

static void hand_on(const struct keeper *k, pid_t child, int sig)
{
    if (k->shared)
        kill_all(k, sig);
    else if (kill(-child, sig) && errno == ESRCH)
        kill(child, sig);
}

static void forward(struct keeper *k, pid_t child, const siginfo_t *s)
{
    int sig = s->si_signo;

    if (sig == SIGCHLD)
        return;
    if (!k->shared || s->si_code != SI_KERNEL) /* from the terminal the program's group, then ours, has got it */
        hand_on(k, child, sig);
    if (sig != SIGTERM && sig != SIGINT)
        return;
    tell(k, sig);
    hand_on(k, child, SIGCONT); /* so that a stopped one sees it */
}

/* Until the child has ended, by itself or by KILL when the grace is over. -1: not even then. */
static int watch(struct keeper *k, pid_t child, int *status, struct rusage *used)
{
    bool killed = false;
    siginfo_t s = { .si_signo = keeper_told(k) };
    double ms;

    if (s.si_signo)
        forward(k, child, &s);
    while (!reap(child, status, used)) {
        ms = !k->kill_at ? -1 : k->kill_at - clock_ms();
        if (killed && ms < -GIVE_UP_MS)
            return -1;
        if (k->kill_at && ms <= 0) {
            if (!k->shared)
                kill(-child, SIGKILL);
            kill_all(k, SIGKILL);
            killed = true;
            ms = 50;
        }
        if (next_signal(k, ms, &s))
            forward(k, child, &s);
    }
    return 0;
}

/* ---- what the program leaves behind ---------------------------------------------------------------------------- */

/* Is anything left after at most ms? */
static bool left_after(struct keeper *k, double ms)
{
    double end = clock_ms() + ms;
    struct processes p;
    size_t n;

    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0)
            return false; /* no child at all */
        descendants(k->others, &p);
        n = p.n;
        processes_release(&p);
        if (n == 0 || clock_ms() >= end)
            return n > 0;
        usleep(5000);
    }
}

static void clear_left(struct keeper *k, struct strv *left)
{
    double end = clock_ms() + GIVE_UP_MS;
    struct processes p;

    if (!left_after(k, k->told ? 0 : SETTLE_MS))
        return;
    descendants(k->others, &p);
    for (size_t i = 0; i < p.n; i++)
        strv_addf(left, "%s (%d)", p.v[i].name, (int)p.v[i].pid);
    processes_release(&p);
    if (!k->kill_at || clock_ms() < k->kill_at) {
        kill_all(k, SIGTERM);
        kill_all(k, SIGCONT);
        if (!left_after(k, TERM_MS))
            return;
    }
    do
        kill_all(k, SIGKILL);
    while (left_after(k, 20) && clock_ms() < end);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static double tv_ms(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec * 1e-3;
}

int keeper_run(struct keeper *k, const char *path, char *const *argv, char *const *env, struct ended *ret,
               struct err *err)
{
    struct rusage before, after, used = { 0 };
    double began = clock_ms();
    int status = SIGKILL;
    pid_t child;

    *ret = (struct ended){ 0 };
    note_others(k);
    k->shared = in_foreground();
    getrusage(RUSAGE_CHILDREN, &before);
    child = start(k, path, argv, env, err);
    if (child < 0)
        return -1;
    if (watch(k, child, &status, &used))
        strv_addf(&ret->left, "%s (%d)", path_base(path), (int)child);
    ret->wall_ms = clock_ms() - began;
    clear_left(k, &ret->left);
    getrusage(RUSAGE_CHILDREN, &after);
    ret->user_ms = tv_ms(after.ru_utime) - tv_ms(before.ru_utime);
    ret->sys_ms = tv_ms(after.ru_stime) - tv_ms(before.ru_stime);
    ret->max_rss = (uint64_t)used.ru_maxrss * 1024;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ret->status = ret->signal ? 128 + ret->signal : WEXITSTATUS(status);
    return 0;
}

void ended_release(struct ended *e)
{
    strv_release(&e->left);
}

char *ended_words(const struct ended *e)
{
    if (e->signal)
        return xasprintf("signal %d (%s)", e->signal, strsignal(e->signal));
    return xasprintf("exit status %d", e->status);
}
