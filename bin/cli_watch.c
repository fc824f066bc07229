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

/* Clock ticks that the process used so far, itself and what it waited for; 0 unknown. Not by file_read, which would put
 * this path in the place of the child's. */
static uint64_t cpu_used(pid_t pid)
{
    unsigned long long t[4] = { 0 };
    char path[64], text[4096];
    const char *at;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (f && fgets(text, sizeof(text), f) && (at = strrchr(text, ')')) != NULL &&
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3]) != 4)
        t[0] = 0;
    if (f)
        fclose(f);
    return t[0] + t[1] + t[2] + t[3];
}

double still_ms(struct still *s, pid_t pid, char **ret_place)
{
    uint64_t steps, cpu = cpu_used(pid);
    char *place = place_now(&steps);

    if (steps != s->steps || cpu != s->cpu || !place || !s->since)
        s->since = clock_ms();
    s->steps = steps;
    s->cpu = cpu;
    if (ret_place)
        *ret_place = place;
    else
        free(place);
    return clock_ms() - s->since;
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
