/* --resume: results that are damaged or of another pin are taken away, and what killed attempts left. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>

/* ---- what lives ---- */

void under_way_init(struct under_way *u, uint64_t datasets)
{
    *u = (struct under_way){ .n_datasets = datasets };
    u->busy = xcalloc(datasets + 1, sizeof(*u->busy));
    u->over = xcalloc(datasets + 1, sizeof(*u->over));
    u->node = xcalloc(datasets + 1, sizeof(*u->node));
    u->reason = xcalloc(datasets + 1, sizeof(*u->reason));
}

void under_way_add(struct under_way *u, uint32_t sub, uint32_t slot)
{
    struct under_way_slot *s = VEC_ADD(u);

    s->sub = sub;
    s->slot = slot;
}

static int by_place(const void *a, const void *b)
{
    const struct under_way_slot *x = a, *y = b;

    return x->sub != y->sub ? (x->sub < y->sub ? -1 : 1) : x->slot < y->slot ? -1 : x->slot > y->slot;
}

void under_way_release(struct under_way *u)
{
    for (size_t i = 0; i < u->n_datasets; i++) {
        free(u->node[i]);
        free(u->reason[i]);
    }
    free(u->node);
    free(u->reason);
    free(u->over);
    free(u->busy);
    free(u->v);
    *u = (struct under_way){ 0 };
}

struct sweep {
    const struct order *x;
    const struct under_way *u;
    const struct submissions *subs;
};

/* A slot that Slurm knows as queued or running may be at any of its attempts. A local one has no queue to ask: its events
 * file tells. What is in nobody's record is left alone. */
static bool live(void *arg, uint64_t dataset, int64_t sub, uint32_t slot, uint32_t attempt)
{
    const struct sweep *s = arg;
    struct under_way_slot at = { .slot = slot };
    const struct submission *known = NULL;
    bool end;
    int over;

    if (dataset >= run_count(s->x->run))
        return true;
    if (sub < 0)
        return s->u->busy[dataset];
    at.sub = (uint32_t)sub;
    if (s->u->n && bsearch(&at, s->u->v, s->u->n, sizeof(at), by_place))
        return true;
    over = run_attempt_over(s->x->run, at.sub, slot, attempt, &end);
    if (end || over == 0)
        return !end;
    for (size_t i = 0; i < s->subs->n; i++)
        if (s->subs->v[i].sub == at.sub && s->subs->v[i].tasks)
            known = &s->subs->v[i];
    return !known || (str_eq(known->backend, "local") && over < 0);
}

void repair_sweep(struct order *x, struct under_way *u, const struct submissions *subs)
{
    struct sweep s = { .x = x, .u = u, .subs = subs };
    uint64_t n;

    if (x->o->dry_run || x->o->test_only)
        return;
    if (u->n)
        qsort(u->v, u->n, sizeof(*u->v), by_place);
    run_sweep(x->run, live, &s, &n);
    if (n)
        cli_warn("%llu work folder%s that killed attempts had left %s removed", (unsigned long long)n, n == 1 ? "" : "s",
                 n == 1 ? "was" : "were");
}

/* ---- results ---- */

static int take_away(struct order *x, uint64_t dataset, const char *what, struct err *err)
{
    if (x->o->dry_run || x->o->test_only)
        return 0;
    return run_unpublish(x->run, dataset, err)
               ? err_prefix(err, "the %s result of dataset %llu", what, (unsigned long long)dataset)
               : 0;
}

int repair_changed(struct order *x, const char *pin, const char *pipeline, struct err *err)
{
    for (uint64_t i = 0; i < run_count(x->run); i++) {
        struct result r = { 0 };
        bool other;

        if (run_result(x->run, i, &r, NULL))
            continue;
        other = (r.pin && pin && !str_eq(r.pin, pin)) || (r.pipeline && pipeline && !str_eq(r.pipeline, pipeline));
        result_release(&r);
        if (!other)
            continue;
        if (!x->o->redo)
            return err_set(err, CODE_USAGE,
                           "the result of dataset %llu was made with another env.pin or pipeline.conf than '%s' holds now; "
                           "--redo-changed makes such results again",
                           (unsigned long long)i, x->path);
        if (take_away(x, i, "old", err))
            return -1;
    }
    return 0;
}

static void tell_read(void *arg, uint64_t done, uint64_t total)
{
    progress_set(arg, done, total, "results read");
}

/* The first of them by name and with its reason. */
static void tell_damaged(const struct order *x, uint64_t first)
{
    struct dataset d = { 0 };
    struct err why = { 0 };

    run_judge(x->run, first, NULL, NULL, true, &why);
    if (run_dataset(x->run, first, &d, NULL))
        return;
    cli_warn("%llu published result%s damaged and %s again: dataset '%s'%s: %s", (unsigned long long)x->n_damaged,
             x->n_damaged == 1 ? " is" : "s are", x->o->dry_run || x->o->test_only ? "would be made" : "made", d.name,
             x->n_damaged == 1 ? "" : " first", why.text);
    dataset_release(&d);
}

int repair_damaged(struct order *x, const struct under_way *u, struct err *err)
{
    uint64_t n = run_count(x->run), first = n;
    unsigned char *states;
    struct progress *bar;

    x->damaged = xcalloc(n + 1, sizeof(*x->damaged));
    if (x->done_by != DONE_BY_RESULT || x->o->closing) /* the closing job comes right after those that published */
        return 0;
    states = xcalloc(n + 1, 1);
    bar = term_fancy(stderr) ? progress_new(stderr, x->spec.name) : NULL;
    run_verify(x->run, NULL, NULL, u->busy, bar ? tell_read : NULL, bar, states);
    progress_free(bar);
    for (uint64_t i = 0; i < n; i++) {
        x->damaged[i] = states[i] == RESULT_DAMAGED;
        x->n_damaged += x->damaged[i];
        first = x->damaged[i] && first == n ? i : first;
    }
    free(states);
    if (x->n_damaged)
        tell_damaged(x, first);
    for (uint64_t i = first; i < n; i++)
        if (x->damaged[i] && take_away(x, i, "damaged", err))
            return -1;
    return 0;
}
