#include "config.h"
#include "cli_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 500
#define STEP_MS 2000.0 /* more between two looks: whoever looks was stopped itself, as most likely the child was */

/* Clock ticks that the process used so far, itself and what it waited for, and whether it is stopped, by job control or a
 * debugger; 0 and false unknown. Not by file_read, which would put this path in the place of the child's. */
static uint64_t cpu_used(pid_t pid, bool *ret_stopped)
{
    unsigned long long t[4] = { 0 };
    char path[64], text[4096], state = 0;
    const char *at;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (f && fgets(text, sizeof(text), f) && (at = strrchr(text, ')')) != NULL &&
        sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &state, &t[0], &t[1], &t[2], &t[3]) != 5)
        t[0] = 0;
    if (f)
        fclose(f);
    *ret_stopped = state == 'T' || state == 't';
    return t[0] + t[1] + t[2] + t[3];
}

double still_ms(struct still *s, pid_t pid, char **ret_place)
{
    bool stopped;
    uint64_t steps, cpu = cpu_used(pid, &stopped);
    char *place = place_now(&steps);
    double now = clock_ms(), step = s->last > 0 ? now - s->last : 0;

    step = step < STEP_MS ? step : STEP_MS;
    s->watched += step;
    s->idle = steps != s->steps || cpu != s->cpu || !place || stopped ? 0 : s->idle + step;
    s->last = now;
    s->steps = steps;
    s->cpu = cpu;
    if (ret_place)
        *ret_place = place;
    else
        free(place);
    return s->idle;
}

/* Until the pipe's other end is closed. false: the child has stood still for idle_ms, in front of *ret_place. */
static bool wait_for(pid_t pid, int fd, double idle_ms, char **ret_place)
{
    struct pollfd p = { .fd = fd };
    struct still s = { 0 };
    double ms;

    while (poll(&p, 1, TICK_MS) <= 0) {
        ms = still_ms(&s, pid, ret_place);
        if (ms >= idle_ms)
            return false;
        free(*ret_place);
        *ret_place = NULL;
    }
    return true;
}

static int status_of(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_error(CODE_INTERNAL, "cannot wait for the work's end: %s", strerror(errno));
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status)); /* as if there were one process */
    return 128 + WTERMSIG(status);
}

bool cli_watch(double idle_ms, struct watched *ret)
{
    pid_t parent = getpid(), pid;
    int p[2];

    *ret = (struct watched){ 0 };
    if (pipe2(p, O_CLOEXEC))
        return false;
    place_share();
    pid = fork();
    if (pid < 0) {
        close(p[0]);
        close(p[1]);
        return false;
    }
    if (pid == 0) {
        close(p[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(CODE_INTERNAL);
        return false;
    }
    close(p[1]);
    if (wait_for(pid, p[0], idle_ms, &ret->place))
        ret->status = status_of(pid);
    else
        kill(pid, SIGKILL); /* one that sleeps in the kernel is not waited for */
    close(p[0]);
    return true;
}
