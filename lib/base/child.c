#include "config.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void exec_child(const struct child *c, int out, int errout, int report)
{
    static char *const empty[] = { NULL };
    char *const *argv = (char *const *)(uintptr_t)c->argv;
    char *const *env = c->env ? c->env : empty;
    int null = open("/dev/null", O_RDONLY), failed;
    sigset_t none;
    ssize_t ignored;

    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, 0);
    dup2(out, 1);
    dup2(errout, 2);
    if (!c->cwd || chdir(c->cwd) == 0) {
        if (c->search)
            execvpe(argv[0], argv, env);
        else
            execve(argv[0], argv, env);
    }
    failed = errno;
    ignored = write(report, &failed, sizeof(failed));
    (void)ignored;
    _exit(CODE_NOTFOUND);
}

/* Moves what fd has into t; false at its end. */
static bool drain(int fd, struct str *t, size_t max)
{
    char block[16384];
    ssize_t n = read(fd, block, sizeof(block));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (n > 0 && t->len + (size_t)n <= max)
        str_addn(t, block, (size_t)n);
    return n > 0;
}

static void collect(struct child *c, int out, int errout, double end)
{
    struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = errout, .events = POLLIN } };
    struct str *to[2] = { &c->out, &c->errout };
    size_t max = c->max_output ? c->max_output : (size_t)16 << 20;

    while (p[0].fd >= 0 || p[1].fd >= 0) {
        double left = end ? end - clock_ms() : 1e9;

        if (left <= 0) {
            c->timed_out = true;
            return;
        }
        if (poll(p, 2, left > 1e6 ? 1000000 : (int)left + 1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++)
            if (p[i].revents && !drain(p[i].fd, to[i], max))
                p[i].fd = -1;
    }
}

/* Waits for pid until end; kills its group at the deadline. */
static void reap(struct child *c, pid_t pid, double end)
{
    double nap = 0.2;

    while (!c->timed_out) {
        pid_t got = waitpid(pid, &c->status, end ? WNOHANG : 0);

        if (got == pid || (got < 0 && errno != EINTR))
            return;
        if (end && clock_ms() >= end) {
            c->timed_out = true;
            break;
        }
        usleep((useconds_t)(nap * 1000));
        nap = nap < 10 ? nap * 1.5 : nap;
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    /* a child in uninterruptible sleep is left to init rather than waited for */
    for (int i = 0; i < 50 && waitpid(pid, &c->status, WNOHANG) == 0; i++)
        usleep(2000);
}

static int start(struct child *c, int out[2], int errout[2], pid_t *ret_pid, struct err *err)
{
    int report[2] = { -1, -1 }, failed = 0;
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) || pipe2(errout, O_CLOEXEC) || pipe2(report, O_CLOEXEC) || (pid = fork()) < 0)
        return err_sys(err, CODE_INTERNAL, "cannot start '%s'", c->argv[0]);
    if (pid == 0)
        exec_child(c, out[1], errout[1], report[1]);
    setpgid(pid, pid);
    close(out[1]);
    close(errout[1]);
    out[1] = errout[1] = -1;
    close(report[1]);
    if (read(report[0], &failed, sizeof(failed)) == (ssize_t)sizeof(failed)) {
        close(report[0]);
        waitpid(pid, NULL, 0);
        errno = failed;
        return err_sys(err, failed == ENOENT ? CODE_NOTFOUND : CODE_NOEXEC, "cannot run '%s'", c->argv[0]);
    }
    close(report[0]);
    *ret_pid = pid;
    return 0;
}

int child_run(struct child *c, struct err *err)
{
    double end = c->deadline_ms > 0 ? clock_ms() + c->deadline_ms : 0;
    int out[2] = { -1, -1 }, errout[2] = { -1, -1 }, rc;
    pid_t pid = -1;

    c->timed_out = false;
    rc = start(c, out, errout, &pid, err);
    if (rc == 0) {
        collect(c, out[0], errout[0], end);
        reap(c, pid, end);
        if (c->timed_out)
            rc = err_set(err, CODE_DEADLINE, "'%s' gave no answer within %.0f ms", c->argv[0], c->deadline_ms);
    }
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0)
            close(out[i]);
        if (errout[i] >= 0)
            close(errout[i]);
    }
    return rc;
}
