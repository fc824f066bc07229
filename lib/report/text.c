#include "config.h"
#include "report/report_priv.h"

#include <math.h>
#include <stdlib.h>

enum { TABLE_ALL = 200, TABLE_NOT_DONE = 200, SLOWEST = 5, GROUPS_SHOWN = 30 };

static const char *word_of(enum state s)
{
    return s == STATE_LOST ? "lost or running" : name_of(state_names, (int)s);
}

static void put_safe(FILE *f, const char *before, const char *s, const char *after)
{
    char *safe = esc_terminal(s);

    fprintf(f, "%s%s%s", before, safe, after);
    free(safe);
}

static void put_head(const struct report *r, FILE *f)
{
    const char *between = "\nfailed by ";
    const uint64_t *n = r->totals;

    put_safe(f, "run       ", run_path(r->run), "\n");
    for (size_t i = 0; i < r->submissions.n; i++) {
        const struct submission *s = &r->submissions.v[i];

        fprintf(f, "submitted %u: ", s->sub);
        if (s->tasks)
            fprintf(f, "%llu task%s", (unsigned long long)s->tasks, plural(s->tasks));
        else
            fputs("the closing job", f);
        put_safe(f, ", ", s->backend ? s->backend : "unknown backend", "");
        if (s->job_id)
            put_safe(f, ", job ", s->job_id, "");
        if (s->error)
            put_safe(f, ", failed: ", s->error, "");
        fputs(s->job_id || s->error ? "\n" : ", no result recorded\n", f);
    }
    fprintf(f, "datasets  %llu: %llu done", (unsigned long long)r->n, (unsigned long long)n[STATE_DONE]);
    for (int s = STATE_FAILED; s < STATES; s++)
        if (n[s])
            fprintf(f, ", %llu %s", (unsigned long long)n[s], word_of((enum state)s));
    if (n[STATE_WAITING])
        fprintf(f, ", %llu waiting", (unsigned long long)n[STATE_WAITING]);
    fprintf(f, "; %llu attempt%s", (unsigned long long)r->attempts, plural(r->attempts));
    if (r->bad_nodes)
        fprintf(f, "; %llu node%s found unfit", (unsigned long long)r->bad_nodes, plural(r->bad_nodes));
    for (size_t i = 0; i < r->failed_by.n; i++) {
        if (str_eq(r->failed_by.v[i].rule, "other"))
            continue; /* their reasons stand in the table */
        put_safe(f, between, r->failed_by.v[i].rule, "");
        fprintf(f, " %llu", (unsigned long long)r->failed_by.v[i].count);
        between = ", ";
    }
    fputc('\n', f);
}

/* ---- datasets ---- */

static struct table *dataset_table(void)
{
    struct table *t = table_new();

    table_columns(t, "dataset|status|>vertices|>faces|>time|reason");
    return t;
}

static int dataset_row(const struct report *r, uint64_t i, struct table *t, struct err *err)
{
    const struct report_dataset *d = &r->datasets[i];
    struct dataset about;
    char time[24];

    if (run_dataset(r->run, i, &about, err))
        return -1;
    table_row(t);
    table_cell(t, "%s", about.name);
    table_cell(t, "%s", word_of(d->state));
    if (d->vertices || d->faces) {
        table_cell(t, "%llu", (unsigned long long)d->vertices);
        table_cell(t, "%llu", (unsigned long long)d->faces);
    } else {
        table_cell(t, "-");
        table_cell(t, "-");
    }
    table_cell(t, "%s", d->wall_ms > 0 ? human_ms(d->wall_ms, time) : "-");
    table_cell(t, "%s%s%s", d->reason ? d->reason : "", d->reason && d->node && *d->node ? ", on " : "",
               d->reason && d->node ? d->node : "");
    dataset_release(&about);
    return 0;
}

static int put_all(const struct report *r, FILE *f, struct err *err)
{
    struct table *t = dataset_table();
    int rc = 0;

    for (uint64_t i = 0; i < r->n && rc == 0; i++)
        rc = dataset_row(r, i, t, err);
    if (rc == 0)
        table_print(t, f);
    table_free(t);
    return rc;
}

/* The done ones that took longest, longest first; how many. */
static size_t slowest(const struct report *r, uint64_t ret[SLOWEST])
{
    size_t n = 0;

    for (uint64_t i = 0; i < r->n; i++) {
        size_t at = n;

        if (r->datasets[i].state != STATE_DONE)
            continue;
        while (at > 0 && r->datasets[ret[at - 1]].wall_ms < r->datasets[i].wall_ms)
            at--;
        if (at == SLOWEST)
            continue;
        n += n < SLOWEST;
        memmove(ret + at + 1, ret + at, (n - at - 1) * sizeof(*ret));
        ret[at] = i;
    }
    return n;
}

/* A long table helps nobody: what is not done, but for what only waits, and the slowest. */
static int put_some(const struct report *r, FILE *f, struct err *err)
{
    uint64_t open = r->n - r->totals[STATE_DONE] - r->totals[STATE_WAITING] - r->totals[STATE_CANCELLED], shown = 0, slow[SLOWEST];
    struct table *t = dataset_table();
    size_t n;
    int rc = 0;

    for (uint64_t i = 0; i < r->n && shown < TABLE_NOT_DONE && rc == 0; i++)
        if (r->datasets[i].state != STATE_DONE && r->datasets[i].state != STATE_WAITING &&
            r->datasets[i].state != STATE_CANCELLED) {
            rc = dataset_row(r, i, t, err);
            shown++;
        }
    n = slowest(r, slow);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = dataset_row(r, slow[i], t, err);
    if (rc == 0) {
        fprintf(f, "more than %d datasets: %llu of %llu not done (waiting and cancelled ones left out) and the %zu slowest done; "
                   "--format csv has all\n\n",
                TABLE_ALL, (unsigned long long)shown, (unsigned long long)open, n);
        if (shown || n)
            table_print(t, f);
    }
    table_free(t);
    return rc;
}

/* ---- steps, findings ---- */

static void put_steps(const struct report *r, FILE *f)
{
    struct table *t = table_new();

    table_columns(t, "step|kernel|device|>runs|>median|>min|>max|>share|>of peak");
    for (size_t i = 0; i < r->steps.n; i++) {
        const struct report_step *s = &r->steps.v[i];
        char text[24];

        table_row(t);
        table_cell(t, "%s", s->name);
        table_cell(t, "%s", s->kernel);
        table_cell(t, "%s", s->device);
        table_cell(t, "%zu", s->wall.n);
        table_cell(t, "%s", human_ms(report_median(s), text));
        table_cell(t, "%s", human_ms(s->wall.v[0], text));
        table_cell(t, "%s", human_ms(s->wall.v[s->wall.n - 1], text));
        table_cell(t, "%.1f %%", 100 * s->share);
        if (isnan(s->share_of_peak))
            table_cell(t, "-");
        else
            table_cell(t, "%.1f %%", 100 * s->share_of_peak);
    }
    fputc('\n', f);
    table_print(t, f);
    table_free(t);
}

static void put_groups(const char *head, const struct report_groups *l, FILE *f)
{
    if (l->n)
        fprintf(f, "\n%s\n", head);
    for (size_t i = 0; i < l->n && i < GROUPS_SHOWN; i++) {
        const struct report_group *g = l->v[i];

        fprintf(f, "%6llux %s ", (unsigned long long)g->count, name_of(level_names, (int)g->level));
        put_safe(f, "", g->rule, ": ");
        if (*g->object)
            put_safe(f, "", g->object, ": ");
        put_safe(f, "", g->text, "");
        if (g->nodes.n == 1)
            put_safe(f, " (on ", g->nodes.v[0], ")");
        else if (g->nodes.n)
            fprintf(f, " (on %zu%s nodes)", g->nodes.n, g->nodes.n == 100 ? " or more" : "");
        if (g->remedy)
            put_safe(f, "\n        remedy: ", g->remedy, "");
        fputc('\n', f);
    }
    if (l->n > GROUPS_SHOWN)
        fprintf(f, "        and %zu more kinds; --format json has all\n", l->n - GROUPS_SHOWN);
}

int write_text(const struct report *r, FILE *f, struct err *err)
{
    put_head(r, f);
    fputc('\n', f);
    if (r->n > TABLE_ALL ? put_some(r, f, err) : put_all(r, f, err))
        return -1;
    if (r->steps.n)
        put_steps(r, f);
    put_groups("findings", &r->findings, f);
    put_groups("alarms", &r->alarms, f);
    if (r->damaged.n)
        fputs("\nnot readable\n", f);
    for (size_t i = 0; i < r->damaged.n; i++)
        put_safe(f, "        ", r->damaged.v[i], "\n");
    put_safe(f, "\noutputs   ", r->outputs, ", by name in by-name/\n");
    return 0;
}
