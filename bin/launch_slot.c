#include "config.h"
#include "cli.h"
#include "launch.h"

#include <stdlib.h>
#include <time.h>

/* ---- placeholders ---------------------------------------------------------------------------------------------- */

/* The value of {name} for a dataset: its path, the folder of its outputs, or one of its columns; NULL: none. */
static const char *hole(const struct dataset *d, const char *out, const char *name)
{
    if (str_eq(name, "dataset"))
        return d->path;
    if (str_eq(name, "out"))
        return out;
    return dataset_column(d, name);
}

/* One argument with its holes filled. The values are data: they are not looked into again. */
static char *fill(const char *arg, const struct dataset *d, const char *out)
{
    struct str t = { 0 };
    const char *place;
    char *name;

    while ((place = next_hole(arg, &name))) {
        const char *value = hole(d, out, name);

        str_addn(&t, arg, (size_t)(place - arg));
        if (value)
            str_add(&t, value);
        else
            str_addf(&t, "{%s}", name);
        arg = place + strlen(name) + 2;
        free(name);
    }
    str_add(&t, arg);
    return str_take(&t);
}

static bool holds(char *const *argv, const char *name)
{
    for (; *argv; argv++) {
        const char *s = *argv, *place;
        bool same = false;
        char *n;

        while (!same && (place = next_hole(s, &n))) {
            same = str_eq(n, name);
            s = place + strlen(n) + 2;
            free(n);
        }
        if (same)
            return true;
    }
    return false;
}

static void want(struct launch *l, const char *column)
{
    if (!strv_has(&l->columns, column) && holds(l->argv + 1, column))
        strv_add(&l->columns, column);
}

int slot_wanted(struct launch *l, struct err *err)
{
    char *const *args = l->argv + 1;
    bool braces = false;

    for (char *const *a = args; *a; a++)
        braces |= strchr(*a, '{') != NULL;
    if ((braces || l->each) && run_columns(l->run, &l->all_columns, err))
        return -1;
    for (size_t i = 0; i < l->all_columns.n; i++)
        want(l, l->all_columns.v[i]);
    for (uint32_t i = 0; i < l->n_datasets && braces; i++) { /* a run without that list */
        struct dataset d = { 0 };

        if (run_dataset(l->run, l->datasets[i], &d, err))
            return -1;
        for (size_t c = 0; c < d.n_columns; c++)
            want(l, d.columns[c].key);
        dataset_release(&d);
    }
    l->each = l->each || (braces && (l->columns.n || holds(args, "dataset") || holds(args, "out")));
    return 0;
}

/* A column that other datasets have and this one lacks would reach the program as "{name}". */
static int check_columns(const struct launch *l, const struct dataset *d, struct err *err)
{
    for (size_t i = 0; i < l->columns.n; i++)
        if (!dataset_column(d, l->columns.v[i]))
            return err_set(err, CODE_DATA, "dataset '%s' has no column '%s', which an argument asks for", d->name,
                           l->columns.v[i]);
    return 0;
}

/* ---- one dataset ----------------------------------------------------------------------------------------------- */

static void record_outputs(struct launch *l, const struct result *r)
{
    for (size_t i = 0; i < r->files.n; i++)
        events_output(l->events, &(struct event_output){ .dataset = r->dataset,
                                                         .path = r->files.v[i].path,
                                                         .bytes = r->files.v[i].bytes,
                                                         .digest = r->files.v[i].digest });
}

static int publish(struct launch *l, const char *work, const struct dataset *d, uint32_t index, struct err *err)
{
    struct result r = { .dataset = index, .pin = xstrdup(l->pin.digest), .sub = l->sub, .slot = l->slot,
                        .attempt = l->attempt };
    bool taken = false;
    int rc = run_publish(l->run, work, d, &r, &taken, err);

    if (rc == 0 && !taken)
        record_outputs(l, &r);
    result_release(&r);
    return rc;
}

/* What a program that is run once a dataset finds in its environment; a column that this dataset lacks is unset. */
static void dataset_environment(struct launch *l, const struct dataset *d, uint32_t index, const char *work)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", index);
    env_set(&l->env, "RECON_DATASET", number);
    env_set(&l->env, "RECON_DATASET_NAME", d->name);
    env_set(&l->env, "RECON_DATASET_PATH", d->path);
    env_set(&l->env, "RECON_OUT", work);
    for (size_t i = 0; i < l->all_columns.n; i++) {
        char *name = dataset_variable(l->all_columns.v[i]);

        env_set(&l->env, name, dataset_column(d, l->all_columns.v[i]));
        free(name);
    }
}

/* The program in its folder; what it made is published when it ends well. ret: exit and reason of the dataset event. */
static int run_one(struct launch *l, const char *path, const struct dataset *d, uint32_t index,
                   struct event_dataset *ret, char **ret_reason, struct err *err)
{
    char *work = run_work_dir(l->run, index, l->sub, l->slot, l->attempt, err);
    struct strv argv = { 0 };
    struct ended e = { 0 };
    int rc = -1;

    if (!work)
        return -1;
    if (l->sub || l->attempt)
        run_sweep_dead(l->run, index, l->node);
    for (char **a = l->argv; *a; a++) {
        char *filled = a == l->argv ? xstrdup(*a) : fill(*a, d, work);

        strv_add(&argv, filled);
        free(filled);
    }
    dataset_environment(l, d, index, work);
    if (keeper_run(&l->keeper, path, argv.v, l->env.v, &e, err))
        goto out;
    launch_account(l, &e);
    ret->exit = e.status;
    if (e.status)
        *ret_reason = ended_words(&e);
    rc = e.status ? 0 : publish(l, work, d, index, err);
out:
    if (rc || e.status)
        dir_remove(work);
    ended_release(&e);
    strv_release(&argv);
    free(work);
    return rc;
}

/* ---- the slot -------------------------------------------------------------------------------------------------- */

/* Why no further dataset is taken: told to end, or the task's time would not suffice; NULL: go on. Owned. */
static char *why_stop(struct launch *l, double slowest_ms)
{
    const char *end = env_get(l->env.v, "SLURM_JOB_END_TIME");
    int told = keeper_told(&l->keeper);
    int64_t at;

    if (told)
        return xasprintf("the task was told to end by signal %d", told);
    if (slowest_ms > 0 && end && str_to_i64(end, &at) == 0) {
        double left = (double)(at - (int64_t)time(NULL));

        if (left < 1.5 * slowest_ms / 1e3)
            return xasprintf("%.0f s of the task's time are left, the slowest dataset took %.1f s", left < 0 ? 0 : left,
                             slowest_ms / 1e3);
    }
    return NULL;
}

static void take_one(struct launch *l, const char *path, uint32_t index, struct event_dataset *ev, char **reason)
{
    double began = clock_ms();
    struct dataset d = { 0 };
    struct err err = { 0 };
    int rc = run_dataset(l->run, index, &d, &err);

    ev->status = "done";
    if (rc == 0 && !run_done(l->run, index, l->pin.digest, NULL, false)) {
        rc = check_columns(l, &d, &err);
        if (rc == 0)
            rc = run_one(l, path, &d, index, ev, reason, &err);
    }
    if (rc) {
        ev->exit = err.code ? err.code : CODE_INTERNAL;
        *reason = xstrdup(err.text);
    }
    if (ev->exit) {
        ev->status = "failed";
        cli_error(ev->exit, "dataset %u '%s': %s", index, d.name ? d.name : "?", *reason);
    }
    ev->wall_ms = clock_ms() - began;
    dataset_release(&d);
}

void slot_run(struct launch *l, const char *path, struct slot_sum *ret)
{
    double slowest = 0;

    *ret = (struct slot_sum){ 0 };
    for (uint32_t i = 0; i < l->n_datasets; i++) {
        char *reason = why_stop(l, slowest);
        struct event_dataset ev = { .dataset = l->datasets[i], .status = "skipped" };

        if (!reason)
            take_one(l, path, l->datasets[i], &ev, &reason);
        slowest = ev.wall_ms > slowest ? ev.wall_ms : slowest;
        ev.reason = reason;
        events_dataset(l->events, &ev);
        if (str_eq(ev.status, "failed") && !ret->status)
            ret->status = ev.exit;
        ret->done += str_eq(ev.status, "done");
        ret->failed += str_eq(ev.status, "failed");
        ret->skipped += str_eq(ev.status, "skipped");
        free(reason);
    }
    if (!ret->status && ret->skipped)
        ret->status = l->keeper.told ? 128 + l->keeper.told : CODE_DEADLINE;
}
