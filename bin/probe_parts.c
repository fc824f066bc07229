#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

/* In the child: one part's facts as text into fd. stdout and stderr are not held, so that nobody waits for them. */
static void run_part(const struct part *p, const struct probe *q, int fd)
{
    struct str text = { 0 };
    struct facts f;
    int null = open("/dev/null", O_RDWR);
    size_t done = 0;

    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    conf_defaults(facts_rows, &f);
    f.version = 1;
    p->run(q, &f);
    facts_text(&f, &text);
    while (done < text.len) {
        ssize_t n = write(fd, text.s + done, text.len - done);

        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    _exit(done == text.len ? 0 : 1);
}

void parts_start(struct part *parts, size_t n, const struct probe *q)
{
    for (size_t i = 0; i < n; i++) {
        int pipes[2];

        parts[i].end = clock_ms() + q->deadline_ms;
        if (pipe2(pipes, O_CLOEXEC))
            continue;
        parts[i].pid = fork();
        if (parts[i].pid == 0) {
            close(pipes[0]);
            run_part(&parts[i], q, pipes[1]);
        }
        close(pipes[1]);
        parts[i].fd = pipes[0];
    }
}

/* Everything that fd gives until `end`. false: no answer in time. */
static bool read_until(int fd, double end, struct str *ret)
{
    char block[16384];

    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        double left = end - clock_ms();
        ssize_t n;

        if (left <= 0)
            return false;
        if (poll(&p, 1, (int)left + 1) <= 0)
            continue;
        n = read(fd, block, sizeof(block));
        if (n == 0)
            return true;
        if (n > 0)
            str_addn(ret, block, (size_t)n);
        else if (errno != EINTR)
            return true;
    }
}

static void move_texts(struct strv *to, struct strv *from)
{
    for (size_t i = 0; i < from->n; i++)
        strv_add(to, from->v[i]);
}

#define MOVE(to, from, list)                                                                                 \
    do {                                                                                                     \
        for (size_t i_ = 0; i_ < (from)->list.n; i_++) {                                                     \
            *VEC_ADD(&(to)->list) = (from)->list.v[i_];                                                      \
            memset(&(from)->list.v[i_], 0, sizeof((from)->list.v[i_]));                                      \
        }                                                                                                    \
    } while (0)

/* What one part saw, laid beside what is there. What moves is taken out of `from`. */
static void lay(struct facts *to, struct facts *from)
{
    if (from->driver.kernel_module || from->driver.library) {
        to->driver = from->driver;
        memset(&from->driver, 0, sizeof(from->driver));
    }
    MOVE(to, from, gpus);
    if (from->limits.tmp_dir) {
        to->limits.tmp_mib = from->limits.tmp_mib;
        to->limits.tmp_dir = xstrdup(from->limits.tmp_dir);
        to->limits.tmp_problem = xstrdup(from->limits.tmp_problem);
    }
    MOVE(to, from, devices);
    MOVE(to, from, vendors);
    MOVE(to, from, toolkit_parts);
    move_texts(&to->toolkits, &from->toolkits);
    move_texts(&to->toolkit_places, &from->toolkit_places);
    move_texts(&to->unknown, &from->unknown);
}

/* The part's text as facts; -1: nothing usable, err says why. */
static int take(const struct part *p, const struct probe *q, struct facts *ret, struct err *err)
{
    struct str text = { 0 };
    struct conf *c = NULL;
    int rc = -1;

    if (p->fd < 0 || p->pid < 0)
        return err_set(err, CODE_INTERNAL, "%s: could not be started", p->name);
    if (!read_until(p->fd, p->end, &text)) {
        err_set(err, CODE_DEADLINE, "%s: gave no answer within %.0f ms", p->name, q->deadline_ms);
        goto out;
    }
    if (!text.len) {
        err_set(err, CODE_INTERNAL, "%s: ended without an answer", p->name);
        goto out;
    }
    c = conf_parse(text.s, text.len, p->name, err);
    if (!c)
        goto out;
    rc = conf_bind(c, facts_rows, ret, err);
    if (rc)
        facts_release(ret);
out:
    conf_free(c);
    str_release(&text);
    return rc;
}

void parts_collect(struct part *parts, size_t n, const struct probe *q, struct facts *f)
{
    bool known = true;

    for (size_t i = 0; i < n; i++) {
        struct err err = { 0 };
        struct facts one;

        if (take(&parts[i], q, &one, &err)) {
            strv_add(&f->unknown, err.text);
            known = known && !parts[i].gpus;
            if (parts[i].pid > 0)
                kill(parts[i].pid, SIGKILL); /* one in uninterruptible sleep is left to init, not waited for */
        } else {
            known = known && (!parts[i].gpus || one.gpus_known);
            lay(f, &one);
            facts_release(&one);
        }
        if (parts[i].fd >= 0)
            close(parts[i].fd);
        if (parts[i].pid > 0)
            waitpid(parts[i].pid, NULL, WNOHANG);
    }
    f->gpus_known = known || f->gpus.n > 0;
}
