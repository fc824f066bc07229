/* --resume RUN: what has no good result and is not under way, as a new submission of the same run. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>
#include <unistd.h>

extern char **environ;

/* ---- the run as it was asked ---- */

/* Who held the first submission has seen it; what is sent again would wait for nobody. */
static void drop_hold(struct order *x)
{
    struct conf_map *m = &x->spec.sbatch;

    if (conf_map_get(m, "hold") && !conf_map_get(&x->o->sbatch, "hold"))
        for (size_t i = 0; i < m->n; i++)
            if (str_eq(m->v[i].name, "hold")) {
                free(m->v[i].name);
                free(m->v[i].value);
                memmove(&m->v[i], &m->v[i + 1], (m->n - i - 1) * sizeof(*m->v));
                m->n--;
            }
}

static int read_spec(struct order *x, struct err *err)
{
    char *file = path_join(x->path, "job.conf");
    struct spec_source source = { .file = file, .env = environ, .set = &x->o->set, .options = &x->o->sbatch,
                                  .alone = true };
    int rc = spec_load(&source, &x->spec, NULL, err);

    if (rc == 0)
        drop_hold(x);
    if (rc == 0)
        rc = spec_check(&x->spec, err);
    else
        conf_defaults(spec_rows, &x->spec);
    free(file);
    return rc;
}

static int read_template(struct order *x, struct err *err)
{
    struct spec_place place = { x->cwd, getenv("HOME"), NULL };
    uid_t *trusted = spec_trusted(&x->spec);
    int rc;

    x->template_path = spec_find(&place, "templates", x->spec.template ? x->spec.template : "default", ".sbatch", err);
    rc = !x->template_path || file_trusted(x->template_path, trusted, err) ||
                 file_read(x->template_path, FILE_MAX_DEFAULT, &x->template_text, err)
             ? -1
             : 0;
    free(trusted);
    return rc;
}

static int read_launch(struct order *x, struct err *err)
{
    char *pin = path_join(x->path, "env.pin"), *runner, *copy;
    struct strv columns = { 0 };
    int rc = pin_read(pin, &x->pin, err) || run_columns(x->run, &columns, err) || order_find_done_by(x, &columns, err) ? -1 : 0;

    free(pin);
    strv_release(&columns);
    if (rc)
        return -1;
    if (x->spec.pipeline) {
        runner = path_part("bin/recon-run");
        strv_add(&x->argv, runner);
        strv_add(&x->argv, "--device");
        strv_add(&x->argv, name_of(device_names, x->spec.device));
        free(runner);
    } else if (x->spec.script.n) {
        copy = path_join(x->path, WRAPPED_COPY);
        rc = order_script(x, copy, err);
        free(copy);
    } else {
        strv_copy(&x->argv, &x->spec.program);
    }
    return rc;
}

/* "kitchen-7f3a91c2.0" gives 7f3a91c2. */
static void take_hex(struct order *x, const struct submissions *l)
{
    const char *name = l->n ? l->v[0].name : NULL, *dot = name ? strrchr(name, '.') : NULL, *dash;

    if (!dot)
        return;
    for (dash = dot; dash > name && dash[-1] != '-'; dash--)
        ;
    free(x->hex);
    x->hex = xstrndup(dash, (size_t)(dot - dash));
}

/* ---- what is under way ---- */

static void mark_dataset(const struct sched_task *t, uint32_t dataset, struct under_way *u)
{
    u->busy[dataset] |= t->state != TASK_ENDED;
    u->over[dataset] = t->state == TASK_ENDED && !t->withdrawn;
    free(u->node[dataset]);
    free(u->reason[dataset]);
    u->node[dataset] = xstrdup(t->node);
    u->reason[dataset] = xstrdup(t->reason);
}

/* Submissions come in order, so that the last task that had a dataset has the last word. A slot that Slurm does not know
 * of a job that it knows was cancelled while it waited (such leave no trace), or ended long ago. */
static void mark(const struct order *x, uint32_t sub, const struct sched_tasks *t, struct under_way *u)
{
    struct submap m = { 0 };

    if (run_read_map(x->run, sub, &m, NULL))
        return;
    for (uint64_t i = 0; i < m.n; i++)
        mark_dataset(&(struct sched_task){ .state = TASK_ENDED, .withdrawn = t->n > 0 }, m.datasets[i], u);
    for (size_t k = 0; k < t->n; k++) {
        const uint32_t *d;
        uint32_t n;

        if (submap_slot(&m, t->v[k].slot, &d, &n, NULL))
            continue;
        if (t->v[k].state != TASK_ENDED)
            under_way_add(u, sub, t->v[k].slot);
        for (uint32_t i = 0; i < n; i++)
            mark_dataset(&t->v[k], d[i], u);
    }
    submap_release(&m);
}

/* A submission without a result may have been taken: its name tells. Unknown counts as running. */
static int mark_busy(struct order *x, const struct submission *s, struct under_way *u, struct err *err)
{
    const struct sched_backend *b;
    struct sched_tasks t = { 0 };
    struct err why = { 0 };
    char *id = xstrdup(s->job_id);
    int rc = 0;

    if (!s->tasks || str_eq(s->backend, "local") || (!id && s->error)) /* a local run holds the lock while it lives */
        goto out;
    b = sched_load(s->backend, err);
    rc = b ? 0 : -1;
    if (b && !id && b->find && b->find(s->name, &id, &why) && why.code != CODE_NOTFOUND) {
        *err = why;
        rc = -1;
    } else if (b && !s->job_id && id) {
        rc = run_submit_result(x->run, s->sub, id, NULL, err);
    }
    if (rc == 0 && id)
        rc = send_tasks(x->run, s, id, &t, err);
    if (rc && (err->code == CODE_NOEXEC || err->code == CODE_DEADLINE))
        err->code = CODE_UNAVAILABLE;
    if (rc)
        err_prefix(err, "whether job '%s' still runs is not known", s->name);
    else
        mark(x, s->sub, &t, u);
    sched_tasks_release(&t);
out:
    free(id);
    return rc;
}

int under_way_ask(struct order *x, const struct submissions *l, struct under_way *u, struct err *err)
{
    int rc = 0;

    under_way_init(u, run_count(x->run));
    for (size_t i = 0; i < l->n && rc == 0; i++)
        rc = mark_busy(x, &l->v[i], u, err);
    return rc;
}

/* ---- what is left ---- */

/* Is it worth another try without somebody's word? What another node or more time may do, and a launch that failed or a
 * job that the controller lost; not what failed for its own reasons, nor what somebody cancelled. */
static bool worth_again(const struct order *x, const struct state *s, const struct under_way *u, uint64_t i)
{
    if (!s->tries[i])
        return true;
    return (int64_t)s->tries[i] <= x->spec.retry.node_unfit && (s->again[i] || (s->unseen[i] && u->over[i]));
}

/* Nodes where a task ended before its launcher wrote anything are left from here on, if there are others where that did
 * not happen. */
static void blame_nodes(struct order *x, const struct state *s, const struct under_way *u)
{
    struct findings l = { 0 };
    struct strv blamed = { 0 };
    bool others = false;

    for (uint64_t i = 0; i < s->n; i++)
        if (s->unseen[i] && u->node[i] && !u->busy[i] && !strv_has(&blamed, u->node[i]))
            strv_add(&blamed, u->node[i]);
    for (size_t i = 0; i < s->nodes.n; i++)
        others |= !strv_has(&blamed, s->nodes.v[i]);
    for (size_t i = 0; i < blamed.n && others; i++)
        run_bad_node(x->run, blamed.v[i],
                     findings_add(&l, "launch-failed", LEVEL_ERROR, SCOPE_NODE, blamed.v[i],
                                  "a task ended there before its launcher wrote anything, which it does on other nodes"),
                     NULL);
    strv_release(&blamed);
    findings_release(&l);
}

static int choose_todo(struct order *x, const struct state *s, const struct under_way *u)
{
    uint64_t given_up = 0, running = 0, failed = 0;

    x->todo = xcalloc(s->n + 1, sizeof(*x->todo));
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->status[i] == STATE_DONE && !x->damaged[i])
            continue;
        if (u->busy[i])
            running++;
        else if (x->o->closing && !worth_again(x, s, u, i))
            failed++;
        else if ((int64_t)s->unfit[i] > x->spec.retry.node_unfit)
            given_up++;
        else
            x->todo[x->n_todo++] = (uint32_t)i;
    }
    x->n_under_way = running;
    if (running)
        cli_warn("%llu dataset%s left alone: queued or running", (unsigned long long)running, plural(running));
    if (failed)
        cli_warn("%llu dataset%s not tried again: failed of itself, ended by hand, or tried 1 + retry.node_unfit = %lld times; "
                 "see recon-report",
                 (unsigned long long)failed, plural(failed), (long long)x->spec.retry.node_unfit + 1);
    if (given_up)
        cli_warn("%llu dataset%s left alone: met an unfit node more than retry.node_unfit = %lld times; "
                 "--set retry.node_unfit=N raises it",
                 (unsigned long long)given_up, plural(given_up), (long long)x->spec.retry.node_unfit);
    return 0;
}

static int find_todo(struct order *x, const struct submissions *l, struct err *err)
{
    char *pin = run_digest(x->path, "env.pin"), *pipeline = run_digest(x->path, "pipeline.conf");
    struct under_way u;
    struct state s = { 0 };
    int rc = under_way_ask(x, l, &u, err);

    if (rc == 0)
        rc = repair_changed(x, pin, pipeline, err) || repair_damaged(x, &u, err) ? -1 : 0;
    if (rc == 0)
        rc = state_read(x->run, x->done_by, pin, pipeline, true, &s, err);
    if (rc == 0) {
        repair_sweep(x, &u, l);
        if (!x->o->dry_run && !x->o->test_only)
            blame_nodes(x, &s, &u);
        rc = choose_todo(x, &s, &u);
    }
    state_release(&s);
    under_way_release(&u);
    free(pin);
    free(pipeline);
    return rc;
}

static int find_bad_nodes(struct order *x, struct err *err)
{
    struct strv nodes = { 0 };
    struct str t = { 0 };
    int rc = run_bad_nodes(x->run, &nodes, err);

    for (size_t i = 0; i < nodes.n; i++)
        str_addf(&t, "%s%s", i ? "," : "", nodes.v[i]);
    x->exclude = nodes.n ? str_take(&t) : NULL;
    str_release(&t);
    strv_release(&nodes);
    return rc;
}

int order_resume(struct order *x, struct err *err)
{
    struct submissions l = { 0 };
    int rc;

    x->cwd = getcwd(NULL, 0);
    x->path = path_absolute(x->o->resume);
    if (!x->cwd) {
        err_sys(err, CODE_IO, "the working directory is not there");
        return -1;
    }
    x->run = run_open(x->path, err);
    if (!x->run || run_lock(x, err) || read_spec(x, err) || read_template(x, err) || container_settle(x, err) || read_launch(x, err) ||
        run_submissions(x->run, &l, err))
        return -1;
    take_hex(x, &l);
    if (!x->hex)
        x->hex = xstrdup("00000000");
    rc = find_todo(x, &l, err);
    if (rc == 0)
        rc = find_bad_nodes(x, err);
    submissions_release(&l);
    return rc;
}
