/* Progress: of the tasks that run here, and of a run on the cluster. */
#include "config.h"
#include "recon-submit.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct shown {
    struct order *x;
    struct progress *bar;
    uint64_t done, failed, total;
    double next; /* clock_ms() of the next look at the events */
};

static void look(struct shown *s, uint64_t running)
{
    double start = clock_ms();
    struct state state;

    if (start >= s->next && state_read(s->x->run, s->x->done_by, NULL, NULL, false, &state, NULL) == 0) {
        s->done = state.done;
        s->failed = state.failed;
        s->total = state.n;
        state_release(&state);
        s->next = clock_ms() + 500 + 20 * (clock_ms() - start); /* a twentieth of the time at most */
    }
    progress_set(s->bar, s->done + s->failed, s->total, "%llu running, %llu failed", (unsigned long long)running,
                 (unsigned long long)s->failed);
}

static char *digest_here(const struct order *x, const char *name)
{
    return run_digest(run_path(x->run), name);
}

/* The status of the first dataset of the part that has no good result; 0 when all have. */
static int first_failure(const struct part *p, const struct order *x, const struct state *state,
                         const struct sched_tasks *tasks)
{
    for (uint64_t i = 0; i < p->n; i++) {
        uint32_t d = x->todo[p->from + i], slot = (uint32_t)(i / x->per_task);

        if (state->status[d] == STATE_DONE)
            continue;
        if (state->exit[d])
            return state->exit[d];
        for (size_t k = 0; tasks && k < tasks->n; k++)
            if (tasks->v[k].slot == slot && (tasks->v[k].exit || tasks->v[k].signal))
                return tasks->v[k].signal ? 128 + tasks->v[k].signal : tasks->v[k].exit;
        return CODE_INTERNAL;
    }
    return 0;
}

static void tell_end(const struct order *x, const struct state *s, double ms)
{
    char time[24] = "", again[80] = "", *path = esc_shell(run_path(x->run)), *safe = esc_terminal(path);
    uint64_t remade = 0;

    if (ms > 0)
        human_ms(ms, time);
    for (uint64_t i = 0; x->n_damaged && i < s->n; i++)
        remade += x->damaged[i] && s->status[i] == STATE_DONE;
    if (x->n_damaged)
        snprintf(again, sizeof(again), ", %llu of %llu damaged made again", (unsigned long long)remade,
                 (unsigned long long)x->n_damaged);
    fprintf(stderr, "recon-submit: %llu of %llu datasets done, %llu failed, %llu skipped%s%s%s; see recon-report %s\n",
            (unsigned long long)s->done, (unsigned long long)s->n, (unsigned long long)s->failed,
            (unsigned long long)s->skipped, again, *time ? " in " : "", time, safe);
    free(safe);
    free(path);
}

/* The state at the end, deep, told in one line. */
int end_state(const struct order *x, double ms, struct state *ret, struct err *err)
{
    char *pin = digest_here(x, "env.pin"), *pipeline = digest_here(x, "pipeline.conf");
    int rc = state_read(x->run, x->done_by, pin, pipeline, true, ret, err);

    free(pin);
    free(pipeline);
    if (rc == 0)
        tell_end(x, ret, ms);
    return rc;
}

/* ---- local ---- */

static void on_local(void *arg, const struct sched_tasks *t)
{
    uint64_t running = 0;

    for (size_t i = 0; i < t->n; i++)
        running += t->v[i].state == TASK_RUNNING;
    look(arg, running);
}

int wait_local(struct order *x, const struct part *p, struct err *err)
{
    struct shown s = { .x = x, .bar = progress_new(stderr, x->spec.name), .total = run_count(x->run) };
    double start = clock_ms();
    struct sched_tasks tasks = { 0 };
    struct state state = { 0 };
    struct err why = { 0 };
    int rc = x->backend->wait(p->job_id, on_local, &s, &why);

    progress_free(s.bar);
    if (end_state(x, clock_ms() - start, &state, err))
        return -1;
    if (rc) {
        state_release(&state);
        *err = why;
        return -1;
    }
    x->backend->tasks(&(struct sched_job){ .id = p->job_id }, &tasks, NULL);
    rc = first_failure(p, x, &state, &tasks);
    if (run_ended(x, &state, &why) < 0)
        cli_warn("%s", why.text);
    sched_tasks_release(&tasks);
    state_release(&state);
    return rc;
}

/* ---- watch ---- */

static volatile sig_atomic_t detached;

static void on_interrupt(int sig)
{
    (void)sig;
    detached = 1;
}

/* Live tasks of all submissions; -1 when a backend does not answer. */
static int64_t count_live(const struct run *run, uint64_t *ret_running, struct err *err)
{
    struct submissions l = { 0 };
    int64_t live = 0;
    int rc = run_submissions(run, &l, err);

    *ret_running = 0;
    for (size_t i = 0; i < l.n && rc == 0; i++) {
        struct sched_tasks t = { 0 };

        if (!l.v[i].job_id)
            continue;
        rc = send_tasks(run, &l.v[i], l.v[i].job_id, &t, err);
        for (size_t k = 0; k < t.n; k++) {
            live += t.v[k].state != TASK_ENDED;
            *ret_running += t.v[k].state == TASK_RUNNING && l.v[i].tasks;
        }
        sched_tasks_release(&t);
    }
    submissions_release(&l);
    return rc ? -1 : live;
}

/* Nothing lives any more: is there something to send elsewhere? Without a closing job it is done from here. */
static bool sent_again(struct shown *s)
{
    struct err why = { 0 };
    uint64_t sent = 0;

    if (closing_again(run_path(s->x->run), &sent, &why))
        cli_warn("nothing was sent again: %s", why.text);
    else if (sent)
        cli_warn("%llu dataset%s sent again, around the bad nodes", (unsigned long long)sent, plural(sent));
    return sent > 0;
}

/* Held, and nothing runs: waiting would be for ever. */
static int check_held(const struct run *run, struct err *err)
{
    char *agreed = run_agreed(run);

    if (agreed && hold_agreed(run_path(run), err) == 0)
        err_set(err, CODE_JOB, "two nodes agree on %s: what waits is held; mend it, then --cancel and --resume", agreed);
    free(agreed);
    return err->code ? -1 : 0;
}

static int watch_loop(struct shown *s, struct err *err)
{
    double start = clock_ms();
    unsigned silent = 0;

    while (!detached) {
        struct err why = { 0 };
        uint64_t running;
        int64_t live = count_live(s->x->run, &running, &why);

        silent = live < 0 ? silent + 1 : 0;
        if (silent > 20) { /* each of them a time-out of Slurm's */
            *err = why;
            return -1;
        }
        look(s, running);
        if (live > 0 && running == 0 && check_held(s->x->run, err))
            return -1;
        if (live == 0 && !sent_again(s))
            return 0;
        nanosleep(&(struct timespec){ clock_ms() - start > 60000 ? 2 : 0, 500000000 }, NULL);
    }
    return 0;
}

/* Of datasets that no launcher wrote a line of only Slurm can say why. Their number. */
static uint64_t tell_unstarted(struct order *x, const struct state *s)
{
    struct submissions l = { 0 };
    struct under_way u = { 0 };
    const char *reason = NULL, *node = NULL;
    uint64_t n = 0;

    for (uint64_t i = 0; i < s->n; i++)
        n += s->status[i] == STATE_OPEN && s->unseen[i];
    if (n && run_submissions(x->run, &l, NULL) == 0 && under_way_ask(x, &l, &u, NULL) == 0)
        for (uint64_t i = 0; i < s->n && !reason; i++)
            if (s->status[i] == STATE_OPEN && s->unseen[i] && u.over[i] && u.node[i]) {
                reason = u.reason[i];
                node = u.node[i];
            }
    if (n && reason)
        cli_warn("%llu dataset%s: the task ended before the launcher wrote anything (Slurm: %s, on %s): is '%s' there, with room, "
                 "and writable from the nodes?", (unsigned long long)n, plural(n), reason, node, run_path(x->run));
    else if (n)
        cli_warn("%llu dataset%s: the task never started, and Slurm knows it no more (cancelled while it waited?); "
                 "--resume sends what is left", (unsigned long long)n, plural(n));
    submissions_release(&l);
    under_way_release(&u);
    return n;
}

/* An old run is read as its own job.conf tells. */
static int open_watched(struct order *x, struct err *err)
{
    char *file;
    struct spec_source source = { .env = (char *[]){ NULL }, .alone = true };
    struct strv columns = { 0 };
    int rc;

    x->run = run_open(x->o->watch_run, err);
    if (!x->run)
        return -1;
    file = path_join(run_path(x->run), "job.conf");
    source.file = file;
    rc = spec_load(&source, &x->spec, NULL, err);
    free(file);
    if (rc == 0)
        rc = run_columns(x->run, &columns, err) || order_find_done_by(x, &columns, err) ? -1 : 0;
    strv_release(&columns);
    return rc;
}

int wait_watch(struct order *x, struct err *err)
{
    struct shown s = { .x = x };
    struct sigaction act = { .sa_handler = on_interrupt };
    struct state state = { 0 };
    uint64_t i = 0, unstarted;
    int rc;

    if (!x->run && open_watched(x, err))
        return -1;
    if (x->lock >= 0) /* the run may go on by itself meanwhile */
        close(x->lock);
    x->lock = -1;
    s.bar = progress_new(stderr, x->spec.name);
    sigaction(SIGINT, &act, NULL);
    rc = watch_loop(&s, err);
    progress_free(s.bar);
    if (rc)
        return rc;
    if (detached) {
        char *path = esc_shell(run_path(x->run));

        fprintf(stderr, "recon-submit: detached, the job goes on; look again with recon-submit --watch=%s\n", path);
        free(path);
        return 0;
    }
    if (end_state(x, 0, &state, err))
        return -1;
    unstarted = tell_unstarted(x, &state);
    while (i < state.n && state.status[i] == STATE_DONE)
        i++;
    rc = i == state.n ? 0 : state.exit[i] ? state.exit[i] : unstarted ? CODE_NODE : CODE_INTERNAL;
    state_release(&state);
    return rc;
}
