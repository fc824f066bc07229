/* recon-run on one dataset: into a folder that appears whole, with events when asked; and the estimate before it. */
#include "config.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "recon-run.h"

static void begin_events(struct events *e, const struct setup *s)
{
    char node[256] = "", digest[DIGEST_SIZE];
    bool known = digest_file(s->pipeline.path, digest, NULL) == 0;

    gethostname(node, sizeof(node) - 1);
    events_attempt(e, &(struct event_attempt){ .node = node, .pipeline = known ? digest : NULL });
}

static double ms_of(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static void end_events(struct events *e, const struct run_report *r, const struct err *err)
{
    struct event_dataset d = { .status = err->code ? "failed" : "done", .exit = err->code, .wall_ms = r->wall_ms,
                               .vertices = r->vertices, .faces = r->faces, .reason = err->code ? err->text : NULL };
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    events_dataset(e, &d);
    events_end(e, &(struct event_end){ .status = err->code > 128 ? "killed" : err->code ? "failed" : "ok",
                                       .exit = err->code, .signal = err->code > 128 ? err->code - 128 : 0,
                                       .done = !err->code, .failed = err->code != 0, .user_ms = ms_of(use.ru_utime),
                                       .sys_ms = ms_of(use.ru_stime), .max_rss = (uint64_t)use.ru_maxrss * 1024 });
}

/* The files of the last run, with their places in the folder that is about to appear. */
static void tell_outputs(struct events *e, const struct outdir *out, struct run_report *r)
{
    for (size_t i = 0; i < r->outputs.n; i++) {
        const char *path = r->outputs.v[i], *inside = path + strlen(out->work) + 1;
        char digest[DIGEST_SIZE], *final;
        struct stat st;

        if (!str_starts(path, out->work))
            continue;
        if (e && stat(path, &st) == 0 && digest_file(path, digest, NULL) == 0)
            events_output(e, &(struct event_output){ .path = inside, .bytes = (uint64_t)st.st_size,
                                                     .digest = digest });
        final = path_join(out->path, inside);
        free(r->outputs.v[i]);
        r->outputs.v[i] = final;
    }
}

/* All repeats; gives how many reports stand in r. */
static int repeat(const struct options *o, struct setup *s, struct runner *runner, const struct run_args *args,
                  struct run_report *r, size_t *ret_n, struct err *err)
{
    int rc = 0;

    for (*ret_n = 0; *ret_n < (size_t)o->repeat && rc == 0; ++*ret_n) {
        rc = runner_run(runner, &s->plan, args, &r[*ret_n], err);
        if (r[*ret_n].leaked_host && rc == 0)
            cli_warn("kernels kept %llu bytes of host memory", (unsigned long long)r[*ret_n].leaked_host);
    }
    return rc;
}

int run_one(const struct options *o, struct setup *s)
{
    size_t many = o->repeat > 0 ? (size_t)o->repeat : 1, n = 0;
    struct run_report *r = xcalloc(many + 1, sizeof(*r));
    struct run_args args = { .dataset = o->dataset, .deadline_ms = o->deadline * 1e3, .tell = say,
                             .arg = (void *)(uintptr_t)&o->verbose };
    struct runner *runner = NULL;
    struct outdir out = { 0 };
    struct err err = { 0 };
    int rc = outdir_begin(o->out, &out, &err);

    if (rc == 0 && o->events && !(args.events = events_create(o->events, &err)))
        rc = -1;
    if (args.events)
        begin_events(args.events, s);
    if (rc == 0 && !(runner = runner_new(&s->device, (int)o->threads, &err)))
        rc = -1;
    args.out = out.work;
    if (rc == 0)
        rc = repeat(o, s, runner, &args, r, &n, &err);
    if (rc == 0) {
        tell_outputs(args.events, &out, &r[n - 1]);
        rc = outdir_publish(&out, &err);
    }
    outdir_abort(&out);
    if (args.events)
        end_events(args.events, &r[n ? n - 1 : 0], &err);
    if (args.events && events_close(args.events, rc ? NULL : &err))
        rc = -1;
    if (rc == 0 && !o->json)
        tell_report(r, n, stderr);
    if (rc == 0 && o->json) {
        char *text = report_json(&s->pipeline, &s->device, r, n);

        puts(text);
        free(text);
    }
    runner_free(runner);
    for (size_t i = 0; i < many; i++)
        run_report_release(&r[i]);
    free(r);
    return rc ? cli_fail(&err) : 0;
}

int run_estimate(const struct options *o, struct setup *s)
{
    struct run_args args = { .dataset = o->dataset, .out = o->out, .tell = say,
                             .arg = (void *)(uintptr_t)&o->verbose };
    struct err err = { 0 };
    struct runner *runner = runner_new(&s->device, (int)o->threads, &err);
    struct estimate e = { 0 };
    int rc = runner ? runner_estimate(runner, &s->plan, &args, &e, &err) : -1;

    if (rc == 0 && o->json) {
        char *text = estimate_json(&s->pipeline, &s->device, &e);

        puts(text);
        free(text);
    } else if (rc == 0) {
        tell_estimate(&e, stdout);
    }
    estimate_release(&e);
    runner_free(runner);
    return rc ? cli_fail(&err) : 0;
}
