/* recon-submit: a list of datasets and what to do with each, as an array of tasks. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>

static int show_config(struct order *x)
{
    struct str t = { 0 };

    spec_show(&x->spec, &t);
    fputs(t.len ? t.s : "", stdout);
    str_release(&t);
    return 0;
}

static void tell_submitted(const struct order *x, const struct strv *ids)
{
    struct str t = { 0 };

    for (size_t i = 0; i < ids->n; i++)
        str_addf(&t, "%s%s", i ? "," : "", ids->v[i]);
    if (x->o->parsable) {
        printf("%s\t%s\n", x->path, t.len ? t.s : "");
    } else {
        char *path = esc_terminal(x->path);

        printf("%s %s\n", path, t.len ? t.s : "");
        free(path);
    }
    fflush(stdout);
    str_release(&t);
}

static int submit(struct order *x, struct err *err)
{
    struct strv ids = { 0 };
    struct part last = { 0 };
    int status = -1;

    if (submit_parts(x, &ids, &last, err) == 0) {
        tell_submitted(x, &ids);
        status = x->o->local ? wait_local(x, &last, err) : x->o->watch ? wait_watch(x, err) : 0;
    } else if (ids.n) {
        tell_submitted(x, &ids);
        err_prefix(err, "only %zu of the run's submissions were made; recon-submit --resume '%s' makes the rest", ids.n,
                   x->path);
    } else {
        run_undo(x, err->text);
    }
    part_release(&last);
    strv_release(&ids);
    return status;
}

static int new_run(struct order *x, struct err *err)
{
    if (order_read(x, err))
        return -1;
    if (x->o->show_config)
        return show_config(x);
    if (order_settle(x, err) || send_choose(x, err) || preflight_run(x, err))
        return -1;
    if (x->o->dry_run || x->o->test_only)
        return send_dry_run(x, err);
    return run_begin(x, err) ? -1 : submit(x, err);
}

/* The closing job finds nothing more to send: its exit status is the run's. */
static int close_run(struct order *x, struct err *err)
{
    struct state s = { 0 };
    int rc;

    if (x->n_under_way) { /* another closing job waits for those */
        fprintf(stderr, "recon-submit: nothing to send for now\n");
        return 0;
    }
    fprintf(stderr, "recon-submit: nothing to do any more\n");
    if (end_state(x, 0, &s, err))
        return -1;
    rc = run_ended(x, &s, err);
    state_release(&s);
    return rc;
}

static int old_run(struct order *x, struct err *err)
{
    if (order_resume(x, err))
        return -1;
    if (!x->n_todo && x->o->closing && !x->o->dry_run && !x->o->test_only)
        return close_run(x, err);
    if (!x->n_todo) {
        fprintf(stderr, "recon-submit: nothing to do: every dataset of '%s' has a good result or is under way\n", x->path);
        return x->o->watch && !x->o->dry_run && !x->o->test_only ? wait_watch(x, err) : 0;
    }
    if (send_choose(x, err) || (!x->o->closing && preflight_run(x, err)))
        return -1;
    return x->o->dry_run || x->o->test_only ? send_dry_run(x, err) : submit(x, err);
}

int main(int argc, char **argv)
{
    struct options o = { 0 };
    struct order x = { .o = &o, .lock = -1 };
    struct err err = { 0 };
    int status = options_parse(argc, argv, &o);

    if (status == 0) {
        if (o.cancel)
            status = cancel_run(&o, &err);
        else if (o.hold_run)
            status = hold_agreed(o.hold_run, &err);
        else if (o.watch_run)
            status = wait_watch(&x, &err);
        else
            status = o.resume ? old_run(&x, &err) : new_run(&x, &err);
        if (status < 0)
            status = cli_fail(&err);
    }
    order_release(&x);
    options_release(&o);
    return cli_end(status);
}
