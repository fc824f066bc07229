#include "config.h"
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* /proc/PID/stat: "pid (name) state ppid ...", where name may hold anything, also ")". */
static int read_stat(const char *pid, struct process *ret)
{
    char path[64], text[512], *name, *end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return -1;
    text[n] = 0;
    name = strchr(text, '(');
    end = strrchr(text, ')');
    if (!name || !end || end < name || end[1] != ' ' || !end[2])
        return -1;
    *end = 0;
    ret->pid = (pid_t)atol(text);
    ret->state = end[2];
    ret->parent = (pid_t)atol(end + 3);
    snprintf(ret->name, sizeof(ret->name), "%s", name + 1);
    return 0;
}

static bool listed(const pid_t *list, pid_t pid)
{
    for (; list && *list; list++)
        if (*list == pid)
            return true;
    return false;
}

static bool found(const struct processes *p, pid_t pid)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].pid == pid)
            return true;
    return false;
}

/* Whoever has descendants has a child: an orphan is ours, since we are its subreaper. Spares the look at all of /proc. */
static bool childless(void)
{
    siginfo_t info = { 0 };

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

/* Parents first: passes over all until nothing is added, since numbers wrap and say nothing of who came first. */
void descendants(const pid_t *others, struct processes *ret)
{
    struct processes all = { 0 };
    struct process p;
    struct dirent *e;
    size_t before;
    DIR *d = childless() ? NULL : opendir("/proc");

    *ret = (struct processes){ 0 };
    while (d && (e = readdir(d)))
        if (*e->d_name >= '1' && *e->d_name <= '9' && read_stat(e->d_name, &p) == 0 && !listed(others, p.pid))
            *VEC_ADD(&all) = p;
    if (d)
        closedir(d);
    do {
        before = ret->n;
        for (size_t i = 0; i < all.n; i++)
            if (all.v[i].state != 'Z' && all.v[i].state != 'X' && !found(ret, all.v[i].pid) &&
                (all.v[i].parent == getpid() || found(ret, all.v[i].parent)))
                *VEC_ADD(ret) = all.v[i];
    } while (ret->n > before);
    processes_release(&all);
}

void processes_release(struct processes *p)
{
    free(p->v);
    *p = (struct processes){ 0 };
}
