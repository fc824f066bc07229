#include "config.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "pipe/pipe.h"

/* A task takes no further dataset when less than this times its slowest is left. */
#define TIME_MARGIN 1.5

struct tasking {
    struct task *t;
    struct run *run;
    struct runner *runner;
    char *pipeline_file;
    char *pin, *pipeline;     /* digests; pin may be NULL */
    double slowest_ms;
};

static char *digest_of(const char *dir, const char *name)
{
    char *path = path_join(dir, name), digest[DIGEST_SIZE];
    bool there = access(path, R_OK) == 0 && digest_file(path, digest, NULL) == 0;

    free(path);
    return there ? xstrdup(digest) : NULL;
}

static int task_open(struct tasking *x, struct err *err)
{
    struct task *t = x->t;
    struct pipeline p;

    x->run = run_open(t->run, err);
    if (!x->run)
        return -1;
    x->pipeline_file = path_join(t->run, "pipeline.conf");
    if (pipeline_load(x->pipeline_file, &p, err))
        return -1;
    pipeline_release(&p);
    x->pipeline = digest_of(t->run, "pipeline.conf");
    x->pin = digest_of(t->run, "env.pin");
    x->runner = runner_new(t->device, t->threads, err);
    return x->runner ? 0 : -1;
}

static void task_close(struct tasking *x)
{
    runner_free(x->runner);
    run_free(x->run);
    free(x->pipeline_file);
    free(x->pipeline);
    free(x->pin);
}

/* The pipeline with what the command line and this dataset's columns say about its parameters. */
static int dataset_plan(struct tasking *x, const struct dataset *d, struct pipeline *p, struct plan *plan,
                        struct err *err)
{
    if (pipeline_load(x->pipeline_file, p, err) || (x->t->set && pipeline_set_all(p, x->t->set, "--set", err)))
        return -1;
    for (size_t i = 0; i < d->n_columns; i++)
        if (strchr(d->columns[i].key, '.') &&
            pipeline_set_as(p, d->columns[i].key, d->columns[i].value, "column", err))
            return -1;
    return plan_make(p, x->t->modules, x->t->device, plan, err);
}

static void tell_outputs(const struct tasking *x, uint64_t index, const struct result *r)
{
    for (size_t i = 0; i < r->files.n && x->t->events; i++)
        events_output(x->t->events, &(struct event_output){ .dataset = index, .path = r->files.v[i].path,
                                                            .bytes = r->files.v[i].bytes,
                                                            .digest = r->files.v[i].digest });
}

/* Steps into a private folder, then one rename. */
static int dataset_run(struct tasking *x, uint64_t index, const struct dataset *d, struct run_report *report,
                       struct err *err)
{
    struct task *t = x->t;
    struct result result = { .dataset = index, .pin = xstrdup(x->pin), .pipeline = xstrdup(x->pipeline),
                             .sub = t->sub, .slot = t->slot, .attempt = t->attempt };
    struct run_args args = { .dataset = d->path, .index = index, .events = t->events, .deadline_ms = t->deadline_ms,
                             .tell = t->tell, .arg = t->arg };
    struct pipeline p = { 0 };
    struct plan plan = { 0 };
    char *work = NULL;
    bool taken = false;
    int rc = -1;

    if (dataset_plan(x, d, &p, &plan, err))
        goto out;
    if (t->sub || t->attempt)
        run_sweep_dead(x->run, index, NULL);
    work = run_work_dir(x->run, index, t->sub, t->slot, t->attempt, err);
    if (!work)
        goto out;
    args.out = work;
    rc = runner_run(x->runner, &plan, &args, report, err);
    if (rc == 0)
        rc = run_publish(x->run, work, d, &result, &taken, err);
    if (rc == 0 && !taken)
        tell_outputs(x, index, &result);
    if (rc)
        dir_remove(work);
out:
    free(work);
    plan_release(&plan);
    pipeline_release(&p);
    result_release(&result);
    return rc;
}

static void tell_dataset(struct tasking *x, struct event_dataset *e)
{
    struct task *t = x->t;

    t->done += str_eq(e->status, "done");
    t->failed += str_eq(e->status, "failed");
    t->skipped += str_eq(e->status, "skipped");
    if (t->events)
        events_dataset(t->events, e);
}

static bool time_is_short(const struct tasking *x)
{
    struct timespec now;

    if (x->t->ends_at <= 0 || x->slowest_ms <= 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((double)now.tv_sec + x->slowest_ms / 1e3 * TIME_MARGIN) > x->t->ends_at;
}

/* One dataset and its event. 0 or -1 with the reason that it is not there. */
static int one_dataset(struct tasking *x, uint64_t index, struct err *err)
{
    struct event_dataset e = { .dataset = index, .status = "done" };
    struct run_report report = { 0 };
    struct dataset d = { 0 };
    double start = clock_ms();
    int rc = 0;

    if (run_done(x->run, index, x->pin, x->pipeline, false)) {
        e.reason = "published already";
        tell_dataset(x, &e);
        return 0;
    }
    if (time_is_short(x)) {
        e.status = "skipped";
        e.reason = "too little of the task's time is left";
        tell_dataset(x, &e);
        return err_set(err, CODE_DEADLINE, "dataset %llu: %s", (unsigned long long)index, e.reason);
    }
    rc = run_dataset(x->run, index, &d, err);
    if (rc == 0) {
        rc = dataset_run(x, index, &d, &report, err);
        if (rc)
            err_prefix(err, "dataset '%s'", d.name);
    }
    e.wall_ms = clock_ms() - start;
    x->slowest_ms = e.wall_ms > x->slowest_ms ? e.wall_ms : x->slowest_ms;
    e.vertices = report.vertices;
    e.faces = report.faces;
    if (rc) {
        e.status = "failed";
        e.exit = err->code;
        e.reason = err->text;
    }
    tell_dataset(x, &e);
    if (rc && x->t->tell)
        x->t->tell(x->t->arg, LEVEL_ERROR, err->text);
    run_report_release(&report);
    dataset_release(&d);
    return rc;
}

/* After these nothing further can be expected of this process. */
static bool ends_task(int code)
{
    return code == CODE_NODE || code == CODE_JOB || code > 128 || code == CODE_DEADLINE;
}

int task_run(struct task *t, struct err *err)
{
    struct tasking x = { .t = t };
    struct submap map = { 0 };
    const uint32_t *list = NULL;
    struct err first = { 0 };
    uint32_t n = 0;
    int rc;

    t->done = t->failed = t->skipped = 0;
    rc = task_open(&x, err);
    if (rc == 0)
        rc = run_read_map(x.run, t->sub, &map, err);
    if (rc == 0)
        rc = submap_slot(&map, t->slot, &list, &n, err);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct err why = { 0 };

        if (one_dataset(&x, list[i], &why)) {
            if (!first.code || ends_task(why.code))
                first = why;
            if (ends_task(why.code) && why.code != CODE_DEADLINE)
                break;
        }
    }
    submap_release(&map);
    task_close(&x);
    if (rc == 0 && first.code) {
        if (err)
            *err = first;
        rc = -1;
    }
    return rc;
}
