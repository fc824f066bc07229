/* What became of the datasets: the events of all attempts, and the published results. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>

struct reading {
    const struct run *run;
    enum done_by by;
    struct state *s;
    struct submap map; /* of submission `sub` */
    int64_t sub;
    uint32_t *sent, *seen; /* by dataset: 1 + the last submission that holds it, that wrote something of it */
};

static void set(struct state *s, uint64_t dataset, unsigned char status, int exit)
{
    if (dataset >= s->n || s->status[dataset] == STATE_DONE)
        return;
    s->status[dataset] = status;
    s->exit[dataset] = exit;
}

static void take_dataset(struct reading *x, const struct event_dataset *d)
{
    if (d->dataset < x->s->n)
        x->s->again[d->dataset] = str_eq(d->status, "skipped"); /* its task's time was short */
    if (x->by == DONE_BY_TASK)
        return;
    set(x->s, d->dataset,
        str_eq(d->status, "done") ? STATE_DONE : str_eq(d->status, "skipped") ? STATE_SKIPPED : STATE_FAILED, d->exit);
}

/* The end speaks for the datasets of its slot of which no event spoke. */
static void take_end(struct reading *x, uint32_t slot, const struct event_end *e, const struct events_read *all)
{
    bool ok = str_eq(e->status, "ok") && e->exit == 0;
    const uint32_t *d;
    uint32_t n;

    if (submap_slot(&x->map, slot, &d, &n, NULL))
        return;
    for (uint32_t i = 0; i < n; i++) {
        bool spoken = false;

        for (size_t k = 0; k < all->n && x->by != DONE_BY_TASK; k++)
            spoken = spoken || (all->v[k].type == EVENT_DATASET && all->v[k].dataset.dataset == d[i]);
        if (d[i] >= x->s->n)
            continue;
        if (str_eq(e->status, "refused") && e->exit == CODE_NODE) {
            x->s->unfit[d[i]]++;
            x->s->again[d[i]] = true;
        } else if (!spoken || str_eq(e->status, "killed")) { /* the program failed, or somebody ended the task */
            x->s->again[d[i]] = false;
        }
        if (!spoken && (!ok || x->by == DONE_BY_TASK))
            set(x->s, d[i], ok ? STATE_DONE : STATE_FAILED, e->signal ? 128 + e->signal : e->exit);
    }
}

/* An attempt without an end is lost, or lives still: the resuming tells which. */
static void take_lost(struct reading *x, uint32_t slot, const struct events_read *all)
{
    const uint32_t *d;
    uint32_t n;

    if ((all->n && all->v[all->n - 1].type == EVENT_END) || submap_slot(&x->map, slot, &d, &n, NULL))
        return;
    for (uint32_t i = 0; i < n; i++) {
        bool spoken = false;

        for (size_t k = 0; k < all->n; k++)
            spoken = spoken || (all->v[k].type == EVENT_DATASET && all->v[k].dataset.dataset == d[i]);
        if (!spoken && d[i] < x->s->n)
            x->s->again[d[i]] = true;
    }
}

/* How many submissions hold each dataset; which was the last, unless somebody called that off. */
static int count_tries(const struct run *r, struct state *s, uint32_t *sent, struct err *err)
{
    struct submissions l = { 0 };
    int rc = run_submissions(r, &l, err);

    for (size_t i = 0; i < l.n; i++) {
        struct submap m = { 0 };

        if (!l.v[i].tasks || l.v[i].error || run_read_map(r, l.v[i].sub, &m, NULL))
            continue;
        for (uint64_t k = 0; k < m.n; k++) {
            s->tries[m.datasets[k]]++;
            sent[m.datasets[k]] = l.v[i].cancelled ? 0 : l.v[i].sub + 1;
        }
        submap_release(&m);
    }
    submissions_release(&l);
    return rc;
}

/* Its launcher wrote something: of these datasets, on that node. */
static void take_seen(struct reading *x, uint32_t slot, const struct events_read *all)
{
    const uint32_t *d;
    uint32_t n;

    if (!all->n || submap_slot(&x->map, slot, &d, &n, NULL)) /* an empty file: no room for a line */
        return;
    for (uint32_t i = 0; i < n; i++)
        if (d[i] < x->s->n)
            x->seen[d[i]] = (uint32_t)x->sub + 1;
    for (size_t k = 0; k < all->n; k++)
        if (all->v[k].type == EVENT_ATTEMPT && all->v[k].attempt.node && !strv_has(&x->s->nodes, all->v[k].attempt.node))
            strv_add(&x->s->nodes, all->v[k].attempt.node);
}

static int take_file(void *arg, uint32_t sub, uint32_t slot, uint32_t attempt, const char *path, struct err *err)
{
    struct reading *x = arg;
    struct events_read all = { 0 };

    (void)attempt;
    if (x->sub != (int64_t)sub) {
        submap_release(&x->map);
        x->sub = sub;
        if (run_read_map(x->run, sub, &x->map, err))
            return -1;
    }
    if (events_read(path, &all, NULL)) /* being written, or damaged: its datasets stay open */
        return 0;
    for (size_t i = 0; i < all.n; i++) {
        if (all.v[i].type == EVENT_DATASET)
            take_dataset(x, &all.v[i].dataset);
        else if (all.v[i].type == EVENT_END)
            take_end(x, slot, &all.v[i].end, &all);
    }
    take_lost(x, slot, &all);
    take_seen(x, slot, &all);
    events_read_free(&all);
    return 0;
}

int state_read(const struct run *r, enum done_by by, const char *pin, const char *pipeline, bool deep,
               struct state *ret, struct err *err)
{
    struct state s = { .n = run_count(r) };
    struct reading x = { .run = r, .by = by, .s = &s, .sub = -1 };
    int rc;

    s.status = xcalloc(s.n + 1, 1);
    s.exit = xcalloc(s.n + 1, sizeof(int));
    s.unfit = xcalloc(s.n + 1, sizeof(uint32_t));
    s.again = xcalloc(s.n + 1, sizeof(bool));
    s.tries = xcalloc(s.n + 1, sizeof(uint32_t));
    s.unseen = xcalloc(s.n + 1, sizeof(bool));
    x.sent = xcalloc(s.n + 1, sizeof(uint32_t));
    x.seen = xcalloc(s.n + 1, sizeof(uint32_t));
    rc = deep ? count_tries(r, &s, x.sent, err) : 0;
    if (rc == 0)
        rc = run_each_events(r, take_file, &x, err);
    submap_release(&x.map);
    for (uint64_t i = 0; i < s.n && rc == 0; i++) {
        s.unseen[i] = x.sent[i] > x.seen[i];
        if (by == DONE_BY_RESULT && deep) {
            bool done = run_done(r, i, pin, pipeline, false);

            s.status[i] = done ? STATE_DONE : s.status[i] == STATE_DONE ? STATE_OPEN : s.status[i];
        }
        s.done += s.status[i] == STATE_DONE;
        s.failed += s.status[i] == STATE_FAILED;
        s.skipped += s.status[i] == STATE_SKIPPED;
    }
    free(x.sent);
    free(x.seen);
    if (rc)
        state_release(&s);
    else
        *ret = s;
    return rc;
}

void state_release(struct state *s)
{
    free(s->status);
    free(s->exit);
    free(s->unfit);
    free(s->again);
    free(s->tries);
    free(s->unseen);
    strv_release(&s->nodes);
    *s = (struct state){ 0 };
}
