#include "config.h"
#include "record/record_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct events {
    int fd; /* -1: nowhere */
    char *name;
    double start;
    int sys; /* errno of the first failure */
    pthread_mutex_t one;
};

static struct events *events_new(int fd, const char *name, double start)
{
    struct events *e = xcalloc(1, sizeof(*e));

    e->fd = fd;
    e->name = xstrdup(name);
    e->start = start;
    pthread_mutex_init(&e->one, NULL);
    return e;
}

struct events *events_create(const char *path, struct err *err)
{
    int fd = -1;

    if (path) {
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0) {
            err_sys(err, CODE_CREATE, "cannot create '%s'", path);
            return NULL;
        }
        if (flock(fd, LOCK_SH | LOCK_NB)) /* held until the last process of the attempt has closed it: run_attempt_over */
            errno = 0;
    }
    return events_new(fd, path ? path : "nowhere", clock_ms());
}

struct events *events_from_fd(int fd, double at_ms0)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return events_new(fd, "the events file", at_ms0);
}

int events_fd(const struct events *e)
{
    if (e->fd >= 0)
        fcntl(e->fd, F_SETFD, 0);
    return e->fd;
}

double events_now(const struct events *e)
{
    return clock_ms() - e->start;
}

int events_close(struct events *e, struct err *err)
{
    int rc = 0;

    if (!e)
        return 0;
    if (e->fd >= 0) {
        if (fsync(e->fd) && errno != EINVAL && errno != EROFS && !e->sys)
            e->sys = errno;
        if (close(e->fd) && !e->sys)
            e->sys = errno;
    }
    if (e->sys) {
        errno = e->sys;
        rc = err_sys(err, CODE_IO, "cannot write events to '%s'", e->name);
    }
    pthread_mutex_destroy(&e->one);
    free(e->name);
    free(e);
    return rc;
}

/* ---- one line each ---- */

static json_t *event_new(const struct events *e, const char *type)
{
    json_t *o;

    if (!e || e->fd < 0)
        return NULL;
    o = line_new(type);
    put_ms(o, "at_ms", events_now(e));
    return o;
}

static void emit(struct events *e, json_t *o)
{
    struct str line = { 0 };
    int sys;

    line_end(o, &line);
    pthread_mutex_lock(&e->one);
    cut_torn(e->fd);
    sys = write_line(e->fd, line.s, line.len);
    if (sys && !e->sys)
        e->sys = sys;
    pthread_mutex_unlock(&e->one);
    str_release(&line);
}

void events_attempt(struct events *e, const struct event_attempt *a)
{
    json_t *o = event_new(e, "attempt"), *gpus;
    char now[32];

    if (!o)
        return;
    clock_iso(now);
    put_text(o, "time", now);
    put_u64(o, "sub", a->sub);
    put_u64(o, "slot", a->slot);
    put_u64(o, "attempt", a->attempt);
    put_text(o, "job", a->job);
    put_text(o, "node", a->node);
    gpus = json_array();
    for (size_t i = 0; a->gpus && i < a->gpus->n; i++)
        json_array_append_new(gpus, json_string(a->gpus->v[i]));
    json_object_set_new(o, "gpus", gpus);
    put_text(o, "pin", a->pin);
    put_text(o, "pipeline", a->pipeline);
    emit(e, o);
}

void events_finding(struct events *e, const struct finding *f)
{
    json_t *o = event_new(e, "finding");

    if (!o)
        return;
    finding_keys(o, f);
    emit(e, o);
}

void events_dataset(struct events *e, const struct event_dataset *d)
{
    json_t *o = event_new(e, "dataset");

    if (!o)
        return;
    put_u64(o, "dataset", d->dataset);
    put_text(o, "status", d->status);
    put_int(o, "exit", d->exit);
    put_ms(o, "wall_ms", d->wall_ms);
    put_u64(o, "vertices", d->vertices);
    put_u64(o, "faces", d->faces);
    put_text(o, "reason", d->reason);
    emit(e, o);
}

void events_step(struct events *e, const struct event_step *s)
{
    json_t *o = event_new(e, "step");

    if (!o)
        return;
    put_u64(o, "dataset", s->dataset);
    put_text(o, "name", s->name);
    put_text(o, "kernel", s->kernel);
    put_text(o, "device", s->device);
    put_ms(o, "wall_ms", s->wall_ms);
    put_ms(o, "busy_ms", s->busy_ms);
    put_ms(o, "wait_ms", s->wait_ms);
    put_ms(o, "device_ms", s->device_ms);
    put_ms(o, "copy_ms", s->copy_ms);
    put_u64(o, "bytes", s->bytes);
    put_u64(o, "flops", s->flops);
    put_u64(o, "items", s->items);
    put_u64(o, "peak_host", s->peak_host);
    put_u64(o, "peak_device", s->peak_device);
    put_real(o, "share_of_peak", s->share_of_peak, 1000000);
    emit(e, o);
}

void events_alarm(struct events *e, uint64_t dataset, const char *rule, const char *text)
{
    json_t *o = event_new(e, "alarm");

    if (!o)
        return;
    put_u64(o, "dataset", dataset);
    put_text(o, "rule", rule);
    put_text(o, "text", text);
    emit(e, o);
}

void events_output(struct events *e, const struct event_output *x)
{
    json_t *o = event_new(e, "output");

    if (!o)
        return;
    put_u64(o, "dataset", x->dataset);
    put_bytes(o, "path", x->path);
    put_u64(o, "bytes", x->bytes);
    put_text(o, "digest", x->digest);
    emit(e, o);
}

void events_end(struct events *e, const struct event_end *x)
{
    json_t *o = event_new(e, "end");

    if (!o)
        return;
    put_text(o, "status", x->status);
    put_int(o, "exit", x->exit);
    put_int(o, "signal", x->signal);
    put_u64(o, "done", x->done);
    put_u64(o, "failed", x->failed);
    put_ms(o, "user_ms", x->user_ms);
    put_ms(o, "sys_ms", x->sys_ms);
    put_u64(o, "max_rss", x->max_rss);
    emit(e, o);
}
