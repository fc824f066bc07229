/* The reader: results that are there, then every events file in order. */
#include "config.h"
#include "report/report_priv.h"

#include <dirent.h>
#include <stdlib.h>

enum { DAMAGED_SHOWN = 20 };

/* What is kept for a dataset while files are read. */
struct mark {
    bool published, bad; /* bad: it did not pass when it was verified */
    uint32_t file; /* the last events file that spoke of it, from 1 */
    bool killed;   /* that attempt was ended from without, in submission sub */
    uint32_t sub;
};

struct loading {
    struct report *r;
    struct mark *marks;
    uint32_t file;
    struct submap map; /* of submission map_sub */
    int64_t map_sub;
    bool verified;
};

static void add_damage(struct report *r, const char *text)
{
    if (r->damaged.n < DAMAGED_SHOWN)
        strv_add(&r->damaged, text);
}

static char *digest_of(const struct report *r, const char *name)
{
    char *path = path_join(run_path(r->run), name), digest[DIGEST_SIZE];
    int rc = digest_file(path, digest, NULL);

    free(path);
    return rc ? NULL : xstrdup(digest);
}

static void verify(struct loading *l, run_verify_f *tell, void *arg)
{
    char *pin = digest_of(l->r, "env.pin"), *pipeline = digest_of(l->r, "pipeline.conf");
    unsigned char *states = xcalloc(l->r->n + 1, 1);

    run_verify(l->r->run, pin, pipeline, NULL, tell, arg, states);
    for (uint64_t i = 0; i < l->r->n; i++) {
        l->marks[i].published = states[i] == RESULT_GOOD;
        l->marks[i].bad = states[i] == RESULT_DAMAGED || states[i] == RESULT_OTHER;
    }
    free(states);
    free(pin);
    free(pipeline);
}

/* Folders are listed, since asking for each of a million datasets costs a parallel file system a minute. */
static void find_published(struct loading *l)
{
    for (uint64_t block = 0; block * 1000 < l->r->n; block++) {
        char *dir = xasprintf("%s/%llu", l->r->outputs, (unsigned long long)block);
        DIR *d = opendir(dir);
        struct dirent *e;
        uint64_t i;

        while (d && (e = readdir(d)))
            if (str_to_u64(e->d_name, &i) == 0 && i < l->r->n && i / 1000 == block)
                l->marks[i].published = run_done(l->r->run, i, NULL, NULL, false);
        if (d)
            closedir(d);
        free(dir);
    }
}

/* ---- one events file ---- */

struct file {
    struct loading *l;
    const char *node;
    struct finding stop; /* the last error since the last dataset's end; texts of the events */
    const struct event_end *end;
    uint64_t datasets; /* events of that type */
    uint32_t sub;
};

static void outcome(struct file *f, uint64_t i, const struct report_dataset *o)
{
    struct report *r = f->l->r;
    struct report_dataset *d = &r->datasets[i];
    uint32_t attempts = d->attempts + (f->l->marks[i].file != f->l->file);

    f->l->marks[i].file = f->l->file;
    f->l->marks[i].sub = f->sub;
    f->l->marks[i].killed = false;
    if (d->state == STATE_DONE && (o->state != STATE_DONE || o->reason)) { /* a reason: another had published it */
        d->attempts = attempts;
        return;
    }
    *d = *o;
    d->attempts = attempts;
    d->reason = report_text_of(r, o->state == STATE_DONE ? NULL : o->reason);
    d->rule = report_text_of(r, o->rule);
    d->node = report_text_of(r, f->node);
}

static void see_dataset(struct file *f, const struct event_dataset *e)
{
    struct loading *l = f->l;
    struct report_dataset o = { .state = STATE_FAILED, .exit = e->exit, .wall_ms = e->wall_ms, .vertices = e->vertices,
                                .faces = e->faces, .reason = e->reason };

    f->datasets++;
    if (e->dataset >= l->r->n)
        return;
    if (str_eq(e->status, "done")) {
        struct mark *m = &l->marks[e->dataset];

        m->published = m->published || (!m->bad && run_done(l->r->run, e->dataset, NULL, NULL, false));
        if (m->published)
            o.state = STATE_DONE;
        else
            o.reason = "it was reported done, but its published result is missing or damaged";
    } else if (str_eq(e->status, "skipped")) {
        o.state = STATE_SKIPPED;
    } else if (f->stop.rule) {
        o.rule = f->stop.rule;
        o.reason = o.reason ? o.reason : f->stop.text;
    }
    f->stop = (struct finding){ 0 };
    outcome(f, e->dataset, &o);
}

static void see(struct file *f, const struct event *e)
{
    struct report *r = f->l->r;

    switch (e->type) {
    case EVENT_ATTEMPT:
        f->node = e->attempt.node;
        break;
    case EVENT_FINDING:
        tally_finding(r, &e->finding, f->node);
        if (e->finding.level == LEVEL_ERROR)
            f->stop = e->finding;
        break;
    case EVENT_DATASET:
        see_dataset(f, &e->dataset);
        break;
    case EVENT_STEP:
        tally_step(r, &e->step);
        break;
    case EVENT_ALARM:
        tally_alarm(r, e->alarm.rule, e->alarm.text, f->node);
        break;
    case EVENT_OUTPUT:
        break;
    case EVENT_END:
        f->end = &e->end;
        break;
    }
}

/* Not one that failed by itself before the attempt was ended. */
static bool by_signal(const struct report_dataset *d)
{
    return d->state == STATE_FAILED && d->exit > 128;
}

/* What the end of an attempt says about the datasets of its slot that no event spoke of. */
static void settle_slot(struct file *f, const uint32_t *list, uint32_t n)
{
    const struct event_end *end = f->end;
    struct report_dataset o = { .state = STATE_FAILED, .exit = end ? end->exit : 0, .rule = f->stop.rule };
    char reason[96] = "", *stop = NULL;

    if (!end) {
        o = (struct report_dataset){ .state = STATE_LOST, .reason = "no end recorded" };
    } else if (str_eq(end->status, "refused")) {
        o.state = STATE_REFUSED;
        stop = f->stop.rule ? xasprintf("%s: %s: %s", f->stop.rule, f->stop.object, f->stop.text) : NULL;
        o.reason = stop ? stop : "the launcher refused it";
    } else if (str_eq(end->status, "ok") && !f->datasets && end->done == n) {
        o.state = STATE_DONE; /* a program that was started once per task: its end is all there is */
    } else {
        if (end->signal)
            snprintf(reason, sizeof(reason), "the attempt was ended by signal %d before this dataset was done", end->signal);
        else
            snprintf(reason, sizeof(reason), "the attempt ended with status %d before this dataset was done", end->exit);
        o.reason = f->stop.rule ? f->stop.text : reason;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (f->l->marks[list[i]].file != f->l->file)
            outcome(f, list[i], &o);
        f->l->marks[list[i]].killed = end && str_eq(end->status, "killed") && by_signal(&f->l->r->datasets[list[i]]);
    }
    free(stop);
}

static const struct submap *map_of(struct loading *l, uint32_t sub)
{
    struct err err = { 0 };

    if (l->map_sub != sub) {
        submap_release(&l->map);
        l->map_sub = sub;
        if (run_read_map(l->r->run, sub, &l->map, &err))
            add_damage(l->r, err.text);
    }
    return &l->map;
}

static int see_file(void *arg, uint32_t sub, uint32_t slot, uint32_t attempt, const char *path, struct err *err)
{
    struct loading *l = arg;
    struct file f = { .l = l, .sub = sub };
    struct events_read events = { 0 };
    const uint32_t *list;
    struct err why = { 0 };
    uint32_t n;

    (void)attempt;
    (void)err;
    l->file++;
    l->r->attempts++;
    if (events_read(path, &events, &why))
        add_damage(l->r, why.text);
    for (size_t i = 0; i < events.n; i++)
        see(&f, &events.v[i]);
    if (submap_slot(map_of(l, sub), slot, &list, &n, NULL) == 0)
        settle_slot(&f, list, n);
    events_read_free(&events);
    return 0;
}

/* ---- the whole ---- */

/* What did not pass, with its reason, whatever its events say. */
static void see_bad(struct loading *l, uint64_t i)
{
    struct report_dataset *d = &l->r->datasets[i];
    struct err why = { 0 };

    d->rule = "result-damaged";
    if (run_judge(l->r->run, i, NULL, NULL, true, &why) == RESULT_GOOD) {
        err_set(&why, CODE_IO, "its result is of another env.pin or pipeline.conf than the run has now");
        d->rule = "result-outdated";
    }
    d->state = STATE_FAILED;
    d->reason = report_text_of(l->r, why.text);
}

/* What was running when its submission was called off, and was tried in none after it. */
static void see_cut_off(struct loading *l)
{
    for (uint64_t i = 0; i < l->r->n; i++)
        for (size_t k = 0; l->marks[i].killed && k < l->r->submissions.n; k++)
            if (l->r->submissions.v[k].sub == l->marks[i].sub && l->r->submissions.v[k].cancelled) {
                l->r->datasets[i].state = STATE_CANCELLED;
                l->r->datasets[i].reason = report_text_of(l->r, "it was cancelled while it ran");
            }
}

/* What waits in a submission that was called off, and in none after it. */
static void see_cancelled(struct loading *l)
{
    struct report *r = l->r;
    bool any = false;

    for (size_t i = 0; i < r->submissions.n; i++) {
        const struct submission *s = &r->submissions.v[i];
        const struct submap *m;

        any = any || s->cancelled;
        if (!any || !s->tasks || s->error)
            continue;
        m = map_of(l, s->sub);
        for (uint64_t k = 0; k < m->n; k++) {
            struct report_dataset *d = &r->datasets[m->datasets[k]];

            if (d->state != STATE_WAITING && d->state != STATE_CANCELLED)
                continue;
            d->state = s->cancelled ? STATE_CANCELLED : STATE_WAITING;
            d->reason = report_text_of(r, s->cancelled ? "it was cancelled before it began" : NULL);
        }
    }
}

static int load(struct loading *l, struct err *err)
{
    struct report *r = l->r;
    struct strv nodes = { 0 };
    struct err why = { 0 };

    if (!l->verified)
        find_published(l);
    if (run_each_events(r->run, see_file, l, err))
        return -1;
    for (uint64_t i = 0; i < r->n; i++)
        if (l->marks[i].bad)
            see_bad(l, i);
        else if (l->marks[i].published && r->datasets[i].state != STATE_DONE)
            r->datasets[i] = (struct report_dataset){ .state = STATE_DONE, .attempts = r->datasets[i].attempts };
    if (run_submissions(r->run, &r->submissions, &why))
        add_damage(r, why.text);
    see_cancelled(l);
    see_cut_off(l);
    if (run_bad_nodes(r->run, &nodes, &why))
        add_damage(r, why.text);
    r->bad_nodes = nodes.n;
    strv_release(&nodes);
    tally_finish(r);
    return 0;
}

static struct report *load_run(const char *path, bool deep, run_verify_f *tell, void *arg, struct err *err)
{
    struct report *r = xcalloc(1, sizeof(*r));
    struct loading l = { .r = r, .map_sub = -1, .verified = deep };
    int rc = -1;

    clock_iso(r->time);
    r->run = run_open(path, err);
    if (r->run) {
        r->n = run_count(r->run);
        r->outputs = path_join(run_path(r->run), "out");
        r->datasets = xcalloc(r->n, sizeof(*r->datasets));
        l.marks = xcalloc(r->n, sizeof(*l.marks));
        if (deep)
            verify(&l, tell, arg);
        rc = load(&l, err);
    }
    submap_release(&l.map);
    free(l.marks);
    if (rc == 0)
        return r;
    report_free(r);
    return NULL;
}

struct report *report_load(const char *path, struct err *err)
{
    return load_run(path, false, NULL, NULL, err);
}

struct report *report_load_verified(const char *path, run_verify_f *tell, void *arg, struct err *err)
{
    return load_run(path, true, tell, arg, err);
}

void report_free(struct report *r)
{
    if (!r)
        return;
    tally_free(r);
    run_free(r->run);
    submissions_release(&r->submissions);
    strv_release(&r->damaged);
    free(r->datasets);
    free(r->outputs);
    free(r);
}
