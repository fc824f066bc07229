#include "config.h"
#include "report/report_priv.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>

enum { NODES_SHOWN = 100 };

/* Search trees: texts that are kept once, groups by their key. */
struct texts {
    void *words, *findings, *alarms;
};

static struct texts *texts_of(struct report *r)
{
    if (!r->texts)
        r->texts = xcalloc(1, sizeof(struct texts));
    return r->texts;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *report_text_of(struct report *r, const char *s)
{
    char *copy, **at;

    if (!s)
        return NULL;
    copy = xstrdup(s);
    at = tsearch(copy, &texts_of(r)->words, by_text);
    if (!at)
        xmalloc(SIZE_MAX); /* ends the process as memory does everywhere */
    if (*at != copy)
        free(copy);
    return *at;
}

/* ---- steps ---- */

static struct report_step *step_of(struct report *r, const struct event_step *s)
{
    size_t device = strcspn(s->device, ":");
    struct report_step *to;

    for (size_t i = 0; i < r->steps.n; i++) {
        to = &r->steps.v[i];
        if (str_eq(to->name, s->name) && str_eq(to->kernel, s->kernel) && strlen(to->device) == device &&
            str_starts(s->device, to->device))
            return to;
    }
    to = VEC_ADD(&r->steps);
    to->name = xstrdup(s->name);
    to->kernel = xstrdup(s->kernel);
    to->device = xstrndup(s->device, device);
    to->share_of_peak = NAN;
    return to;
}

void tally_step(struct report *r, const struct event_step *s)
{
    struct report_step *to = step_of(r, s);

    *VEC_ADD(&to->wall) = s->wall_ms;
    to->total_ms += s->wall_ms;
    to->device_ms += s->device_ms;
    to->copy_ms += s->copy_ms;
    if (!isnan(s->share_of_peak) && !(to->share_of_peak >= s->share_of_peak))
        to->share_of_peak = s->share_of_peak;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double report_median(const struct report_step *s)
{
    size_t n = s->wall.n;

    return n == 0 ? 0 : n % 2 ? s->wall.v[n / 2] : (s->wall.v[n / 2 - 1] + s->wall.v[n / 2]) / 2;
}

/* ---- groups ---- */

static int by_key(const void *a, const void *b)
{
    const struct report_group *x = a, *y = b;
    int d = strcmp(x->rule, y->rule);

    if (!d)
        d = strcmp(x->object, y->object);
    if (!d)
        d = (int)x->level - (int)y->level;
    return d ? d : (int)x->scope - (int)y->scope;
}

static void tally(struct report_groups *l, void **tree, const struct finding *f, const char *node)
{
    struct report_group key = { .rule = f->rule, .object = f->object, .level = f->level, .scope = f->scope }, *g, **at;

    at = tfind(&key, tree, by_key);
    if (!at) {
        g = xcalloc(1, sizeof(*g));
        *g = (struct report_group){ .rule = xstrdup(f->rule), .object = xstrdup(f->object), .text = xstrdup(f->text),
                                    .remedy = xstrdup(f->remedy), .level = f->level, .scope = f->scope };
        *VEC_ADD(l) = g;
        at = tsearch(g, tree, by_key);
        if (!at)
            xmalloc(SIZE_MAX);
    }
    g = *at;
    g->count++;
    if (node && *node && g->nodes.n < NODES_SHOWN && !strv_has(&g->nodes, node))
        strv_add(&g->nodes, node);
}

void tally_finding(struct report *r, const struct finding *f, const char *node)
{
    tally(&r->findings, &texts_of(r)->findings, f, node);
}

void tally_alarm(struct report *r, const char *rule, const char *text, const char *node)
{
    struct finding f = { .rule = (char *)rule, .level = LEVEL_WARN, .scope = SCOPE_DATA, .object = (char *)"",
                         .text = (char *)text };

    tally(&r->alarms, &texts_of(r)->alarms, &f, node);
}

static int by_weight(const void *a, const void *b)
{
    const struct report_group *x = *(struct report_group *const *)a, *y = *(struct report_group *const *)b;

    if (x->level != y->level)
        return x->level > y->level ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return by_key(x, y);
}

static void count_failed(struct report *r, const char *rule)
{
    for (size_t i = 0; i < r->failed_by.n; i++)
        if (str_eq(r->failed_by.v[i].rule, rule)) {
            r->failed_by.v[i].count++;
            return;
        }
    VEC_ADD(&r->failed_by);
    r->failed_by.v[r->failed_by.n - 1].rule = rule;
    r->failed_by.v[r->failed_by.n - 1].count = 1;
}

void tally_finish(struct report *r)
{
    double all = 0;

    for (size_t i = 0; i < r->steps.n; i++) {
        qsort(r->steps.v[i].wall.v, r->steps.v[i].wall.n, sizeof(double), by_value);
        all += r->steps.v[i].total_ms;
    }
    for (size_t i = 0; i < r->steps.n; i++)
        r->steps.v[i].share = all > 0 ? r->steps.v[i].total_ms / all : 0;
    if (r->findings.n)
        qsort(r->findings.v, r->findings.n, sizeof(*r->findings.v), by_weight);
    if (r->alarms.n)
        qsort(r->alarms.v, r->alarms.n, sizeof(*r->alarms.v), by_weight);
    for (uint64_t i = 0; i < r->n; i++) {
        const struct report_dataset *d = &r->datasets[i];

        r->totals[d->state]++;
        if (d->state == STATE_FAILED || d->state == STATE_REFUSED)
            count_failed(r, d->rule ? d->rule : "other");
    }
}

static void keep(void *p)
{
    (void)p;
}

static void groups_release(struct report_groups *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i]->rule);
        free(l->v[i]->object);
        free(l->v[i]->text);
        free(l->v[i]->remedy);
        strv_release(&l->v[i]->nodes);
        free(l->v[i]);
    }
    free(l->v);
}

void tally_free(struct report *r)
{
    struct texts *t = texts_of(r);

    tdestroy(t->words, free);
    tdestroy(t->findings, keep);
    tdestroy(t->alarms, keep);
    free(t);
    groups_release(&r->findings);
    groups_release(&r->alarms);
    for (size_t i = 0; i < r->steps.n; i++) {
        free(r->steps.v[i].name);
        free(r->steps.v[i].kernel);
        free(r->steps.v[i].device);
        free(r->steps.v[i].wall.v);
    }
    free(r->steps.v);
    free(r->failed_by.v);
}
