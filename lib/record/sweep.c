/* What killed attempts left in out/: hidden folders beside the results. */
#include "config.h"
#include "record/record_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

int run_attempt_over(const struct run *r, uint32_t sub, uint32_t slot, uint32_t attempt, bool *ret_end)
{
    char *path = run_file(r, "events/%u/%u/%u.%u.jsonl", sub, slot / 1000, slot, attempt);
    struct events_read all = { 0 };
    bool end = events_read(path, &all, NULL) == 0 && all.n && all.v[all.n - 1].type == EVENT_END;
    int over = -1, fd;

    events_read_free(&all);
    if (end) {
        over = 1;
    } else if ((fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)) >= 0) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            over = 1;
        else if (errno == EWOULDBLOCK)
            over = 0;
        close(fd);
    }
    if (ret_end)
        *ret_end = end;
    free(path);
    return over;
}

static bool ran_on(const char *path, const char *node)
{
    struct events_read all = { 0 };
    bool here = events_read(path, &all, NULL) == 0 && all.n && all.v[0].type == EVENT_ATTEMPT &&
                str_eq(all.v[0].attempt.node, node);

    events_read_free(&all);
    return here;
}

/* ".I.S.T.A", or ".I.old.PID.N" with *ret_sub -1. */
static int leftover(const char *name, uint64_t *ret_dataset, int64_t *ret_sub, uint32_t *ret_slot, uint32_t *ret_attempt)
{
    struct strv parts = { 0 };
    uint64_t v[4] = { 0 };
    bool old = false;
    int rc = -1;

    if (*name != '.')
        return -1;
    strv_split(&parts, name + 1, ".");
    if (parts.n == 4) {
        old = str_eq(parts.v[1], "old");
        rc = 0;
        for (size_t i = 0; i < 4 && rc == 0; i++)
            if ((i != 1 || !old) && (str_to_u64(parts.v[i], &v[i]) || (i && v[i] > UINT32_MAX)))
                rc = -1;
    }
    strv_release(&parts);
    *ret_dataset = v[0];
    *ret_sub = old ? -1 : (int64_t)v[1];
    *ret_slot = (uint32_t)v[2];
    *ret_attempt = (uint32_t)v[3];
    return rc;
}

/* only: one dataset, -1: all. */
static void sweep_block(const char *dir, int64_t only, run_live_f *live, void *arg, uint64_t *n)
{
    struct strv names = { 0 };
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (e->d_name[0] == '.')
            strv_add(&names, e->d_name);
    if (d)
        closedir(d);
    for (size_t i = 0; i < names.n; i++) {
        uint32_t slot, attempt;
        uint64_t dataset;
        int64_t sub;
        char *path;

        if (leftover(names.v[i], &dataset, &sub, &slot, &attempt) ||
            (only >= 0 && dataset != (uint64_t)only) || live(arg, dataset, sub, slot, attempt))
            continue;
        path = path_join(dir, names.v[i]);
        *n += dir_remove(path) == 0;
        free(path);
    }
    strv_release(&names);
}

void run_sweep(struct run *r, run_live_f *live, void *arg, uint64_t *ret_n)
{
    char *root = run_file(r, "out");
    uint32_t *blocks = NULL;
    size_t n = 0;

    *ret_n = 0;
    if (run_numbers(root, &blocks, &n, NULL))
        n = 0;
    for (size_t i = 0; i < n; i++) {
        char *dir = xasprintf("%s/%u", root, blocks[i]);

        sweep_block(dir, -1, live, arg, ret_n);
        free(dir);
    }
    free(blocks);
    free(root);
}

struct dead {
    const struct run *run;
    const char *node;
};

static bool may_live(void *arg, uint64_t dataset, int64_t sub, uint32_t slot, uint32_t attempt)
{
    const struct dead *x = arg;
    char *path = run_file(x->run, "events/%lld/%u/%u.%u.jsonl", (long long)sub, slot / 1000, slot, attempt);
    bool end = false, over = sub >= 0 && run_attempt_over(x->run, (uint32_t)sub, slot, attempt, &end) == 1;
    bool dead = end || (over && ran_on(path, x->node));

    (void)dataset;
    free(path);
    return !dead;
}

void run_sweep_dead(struct run *r, uint64_t dataset, const char *node)
{
    char *dir = run_file(r, "out/%llu", (unsigned long long)(dataset / 1000));
    struct dead x = { r, node ? node : getenv("SLURMD_NODENAME") };
    char host[256] = "unknown";
    uint64_t n = 0;

    if (!x.node || !*x.node) { /* as the launcher names it */
        gethostname(host, sizeof(host) - 1);
        x.node = host;
    }

    sweep_block(dir, (int64_t)dataset, may_live, &x, &n);
    free(dir);
}
