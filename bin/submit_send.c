/* The backend: chosen, asked, given the script. */
#include "config.h"
#include "recon-submit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

#define OFFLINE_SLOTS 1000 /* MaxArraySize is 1001 where nobody set it */
#define LOCAL_SLOTS 1000000

static struct sched_request request_of(const struct order *x, const struct part *p)
{
    static char *none[] = { NULL };
    int64_t at_a_time = x->o->at_a_time;

    if (!at_a_time && x->spec.device == DEVICE_CUDA) /* tasks on one GPU would only queue up */
        at_a_time = 1;
    return (struct sched_request){ .run = x->path, .sub = p->sub, .name = p->name, .script = p->script.s,
                                   .script_path = p->script_path, .cwd = x->cwd, .env = x->env.v ? x->env.v : none,
                                   .tasks = p->slots, .at_a_time = (uint32_t)at_a_time, .exclude = x->exclude, .once = p->from > 0 };
}

/* ---- how many slots ---- */

static uint32_t lesser(uint32_t a, uint64_t b)
{
    return b < a ? (uint32_t)b : a;
}

/* What one job more, the closing one, takes of a bound. */
static uint64_t less_closing(const struct order *x, uint64_t room)
{
    return room && x->spec.retry.closing ? room - 1 : room;
}

static const struct account_limit *submit_limit(const struct order *x)
{
    return accounting_submit(&x->accounting, conf_map_get(&x->spec.sbatch, "account"), conf_map_get(&x->spec.sbatch, "qos"));
}

/* So many datasets a task that all tasks may be queued at once, by what holds for ever; what holds now only bounds how
 * many of them are sent. */
static void share(struct order *x, uint32_t slots)
{
    int64_t asked = x->spec.datasets_per_task;
    const struct account_limit *l = submit_limit(x);

    if (x->spec.max_tasks > 0)
        slots = lesser(slots, (uint64_t)x->spec.max_tasks);
    if (l && less_closing(x, l->most))
        slots = lesser(slots, less_closing(x, l->most));
    x->slots_max = slots;
    x->per_task = asked > 0 ? (uint32_t)asked : (uint32_t)((x->n_todo + slots - 1) / slots);
    if (!x->per_task)
        x->per_task = 1;
}

static void bound(struct order *x, uint64_t room, char *words)
{
    if (!x->bound || room < x->slots_total) {
        free(x->bound);
        x->bound = words;
        x->slots_total = room;
    } else {
        free(words);
    }
}

/* How many tasks are taken now. The controller is asked for the jobs that it holds where a run might meet MaxJobCount. */
static void find_room(struct order *x, const struct sched_backend *b, uint32_t job_count)
{
    uint64_t wanted = (x->n_todo + x->per_task - 1) / x->per_task, held = 0;
    const struct account_limit *l = submit_limit(x);

    if (job_count > 2) {
        if (wanted > job_count / 2 && b->held)
            b->held(&held, NULL);
        held = held < job_count - 1 ? held : job_count - 1;
        bound(x, less_closing(x, job_count - 1 - held),
              xasprintf("MaxJobCount is %u, and %llu jobs are there", job_count, (unsigned long long)held));
    }
    if (l)
        bound(x, less_closing(x, limit_left(l)),
              xasprintf("%s of %s is %llu, and %llu are there", l->what, l->whose, (unsigned long long)l->most,
                        (unsigned long long)l->used));
    if (x->slots_total)
        x->slots_max = lesser(x->slots_max, x->slots_total);
}

/* Is there a cluster to ask without waiting for a name service? */
static bool configured(void)
{
    return getenv("SLURM_CONF") || getenv("SLURM_CONF_SERVER") || access("/etc/slurm/slurm.conf", R_OK) == 0 ||
           access("/run/slurm/conf/slurm.conf", R_OK) == 0;
}

static void ask_accounting(struct order *x, const struct sched_backend *b)
{
    struct err why = { 0 };

    accounting_release(&x->accounting);
    if (!b->accounting)
        x->accounting.why = xstrdup("Slurm's commands are not asked for them");
    else if (b->accounting(&x->accounting, &why))
        x->accounting.why = xstrdup(why.text);
}

static int ask_limits(struct order *x, const struct sched_backend *b, struct err *err)
{
    struct sched_limits l = { 0 };
    uint32_t slots = UINT32_MAX;

    free(x->bound);
    x->bound = NULL;
    x->slots_total = 0;
    if (b->limits(&l, err))
        return -1;
    if (l.array_size > 1)
        slots = l.array_size; /* indices are 0 to MaxArraySize - 1 */
    if (l.job_count > 1 && l.job_count - 1 < slots)
        slots = l.job_count - 1;
    ask_accounting(x, b);
    share(x, slots == UINT32_MAX ? OFFLINE_SLOTS : slots);
    find_room(x, b, l.job_count);
    if (x->bound && !x->slots_total && !x->o->dry_run && !x->o->test_only)
        return err_set(err, CODE_USAGE, "no task can be submitted now: %s; submit again when some have ended", x->bound);
    return 0;
}

/* ---- which backend ---- */

/* What backends tell apart is one thing to the user: the service is not there. */
static int no_answer(struct err *err)
{
    if (err->code == CODE_NOEXEC || err->code == CODE_DEADLINE)
        err->code = CODE_UNAVAILABLE;
    return -1;
}

static bool built_with_libslurm(void)
{
    char *path = path_part("lib/recon/sched/slurm.so");
    bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

/* auto: libslurm where it loads, reaches the cluster and can say every directive; else the commands. */
static int choose_auto(struct order *x, struct err *err)
{
    struct err loading = { 0 };
    const struct sched_backend *api = sched_load("slurm", &loading), *commands = sched_load("sbatch", err);
    struct sched_request r;
    struct err why = { 0 };
    struct part p = { 0 };
    int rc;

    if (!commands)
        return -1;
    x->backend = commands;
    if (!api) {
        if (built_with_libslurm())
            cli_warn("libslurm is not the one that recon was built for, so Slurm's commands serve: %s", loading.text);
        return ask_limits(x, commands, err);
    }
    if (ask_limits(x, api, &why)) { /* where it is not this libslurm's cluster the commands have the last word */
        if (why.code == CODE_NOEXEC && ask_limits(x, commands, NULL) == 0)
            return 0;
        *err = why;
        return no_answer(err);
    }
    rc = part_make(x, &p, 0, 0, NULL, err);
    if (rc == 0) {
        r = request_of(x, &p);
        if (api->accepts(&r, &why) == 0)
            x->backend = api;
    }
    part_release(&p);
    return rc;
}

static int choose_named(struct order *x, const char *name, struct err *err)
{
    x->backend = sched_load(name, err);
    if (!x->backend)
        return -1;
    return ask_limits(x, x->backend, err) ? no_answer(err) : 0;
}

/* What a slurm.conf says, else what Slurm takes where nobody set anything. */
static int go_offline(struct order *x)
{
    const char *conf = preflight_conf_path();
    struct cluster c = { 0 };
    uint32_t slots = OFFLINE_SLOTS;

    x->offline = true;
    x->backend = NULL;
    if (conf && cluster_read_conf(conf, &c, NULL) == 0)
        slots = c.job_count > 1 && c.job_count - 1 < c.array_size ? c.job_count - 1 : c.array_size;
    cluster_release(&c);
    share(x, slots ? slots : OFFLINE_SLOTS);
    return 0;
}

int send_choose(struct order *x, struct err *err)
{
    static const char *const named[] = { [VIA_API] = "slurm", [VIA_SBATCH] = "sbatch" };
    int rc;

    order_name(x);
    sched_environment(environ, &x->env);
    if (x->o->local) {
        x->backend = sched_load("local", err);
        share(x, LOCAL_SLOTS);
        return x->backend ? 0 : -1;
    }
    if ((x->o->dry_run || x->o->test_only) && (!configured() || x->spec.submit.via == VIA_NOBODY))
        return go_offline(x);
    if (x->spec.submit.via == VIA_NOBODY)
        return err_set(err, CODE_USAGE, "submit.via is 'nobody', which goes with --dry-run and --test-only");
    rc = x->spec.submit.via == VIA_AUTO ? choose_auto(x, err) : choose_named(x, named[x->spec.submit.via], err);
    if (rc && (x->o->dry_run || x->o->test_only) && err->code == CODE_UNAVAILABLE) {
        cli_warn("%s", err->text);
        *err = (struct err){ 0 };
        return go_offline(x);
    }
    return rc;
}

/* ---- the talk ---- */

/* After a time-out the job may be there, and may come to be there while the controller works through what it was sent:
 * its name tells. That it is not there (yet) proves nothing, so the run is kept and --resume asks again. */
static int look_for(struct order *x, struct part *p, struct err *err)
{
    for (unsigned tries = 0; tries < 4; tries++) {
        if (x->backend->find && x->backend->find(p->name, &p->job_id, NULL) == 0)
            return 0;
        sleep(1u << tries);
    }
    x->made = false;
    return err_set(err, CODE_UNAVAILABLE,
                   "no answer, and whether job '%s' was taken is not known: recon-submit --resume '%s' looks for it first",
                   p->name, x->path);
}

int send_part(struct order *x, struct part *p, struct err *err)
{
    struct sched_request r = request_of(x, p);
    int rc;

    if (run_submit_intent(x->run, p->sub, x->backend->name, p->name, p->slots, err))
        return -1;
    rc = x->backend->submit(&r, &p->job_id, err);
    if (rc && err->code == CODE_DEADLINE && look_for(x, p, err))
        return -1; /* without a result: an intent alone is looked for */
    if (rc && p->job_id)
        rc = 0;
    if (rc)
        no_answer(err);
    if (run_submit_result(x->run, p->sub, p->job_id, rc ? err->text : NULL, rc ? NULL : err) && rc == 0)
        cli_warn("job %s runs, but '%s/submit.jsonl' could not be written: %s", p->job_id, x->path, err->text);
    return rc;
}

static int print_plan(const struct order *x, const struct part *p)
{
    fprintf(stderr, "recon-submit: would make run directory %s: %llu dataset%s in %u task%s of up to %u\n", x->path,
            (unsigned long long)p->n, plural(p->n), p->slots, plural(p->slots), x->per_task);
    fprintf(stderr, "recon-submit: device %s, %zu variables pinned, template %s, by %s\n",
            name_of(device_names, x->spec.device), x->pin.variables.n, x->template_path,
            x->backend ? x->backend->doc : "no cluster asked: none is configured here");
    if (p->n < x->n_todo)
        fprintf(stderr, "recon-submit: this is the first of %llu submissions\n",
                (unsigned long long)((x->n_todo + p->n - 1) / p->n));
    return 0;
}

/* sbatch --test-only reads a file. */
static int test_part(struct order *x, struct part *p, struct err *err)
{
    char path[] = "/tmp/recon-submit.XXXXXX", *text = NULL;
    int fd = mkostemp(path, O_CLOEXEC), rc;
    struct sched_request r = request_of(x, p);

    if (fd < 0 || write(fd, p->script.s, p->script.len) != (ssize_t)p->script.len)
        rc = err_sys(err, CODE_CREATE, "cannot write '%s'", path);
    else if (!x->backend || !x->backend->test)
        rc = err_set(err, CODE_UNAVAILABLE, "no cluster is configured here that could be asked");
    else {
        r.script_path = path;
        rc = x->backend->test(&r, &text, err) ? no_answer(err) : 0;
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    if (rc == 0)
        printf("%s\n", text);
    free(text);
    return rc;
}

int send_dry_run(struct order *x, struct err *err)
{
    struct part p = { 0 };
    int sub = x->run ? run_next_sub(x->run) : 0;
    int rc = part_make(x, &p, sub < 0 ? 0 : (uint32_t)sub, 0, NULL, err);

    if (rc == 0 && x->o->dry_run) {
        rc = print_plan(x, &p);
        fwrite(p.script.s, 1, p.script.len, stdout);
    }
    if (rc == 0 && x->o->test_only)
        rc = test_part(x, &p, err);
    part_release(&p);
    return rc;
}

int send_tasks(const struct run *run, const struct submission *s, const char *job_id, struct sched_tasks *ret, struct err *err)
{
    const struct sched_backend *b = sched_load(s->backend, err);
    char *script = xasprintf("%s/sub/%u.sbatch", run_path(run), s->sub);
    int rc = b ? b->tasks(&(struct sched_job){ job_id, s->name, script }, ret, err) : -1;

    free(script);
    return rc;
}

/* ---- cancel ---- */

/* The job, if it is known still, and ours; local ones have no numbers that others may get. */
static int cancel_known(const struct run *run, const struct submission *s, const char *id, struct err *err)
{
    const struct sched_backend *b = sched_load(s->backend, err);
    struct sched_tasks t = { 0 };
    int rc = b ? send_tasks(run, s, id, &t, err) : -1;

    if (rc == 0 && (t.n || !b->find))
        rc = b->cancel(id, err);
    sched_tasks_release(&t);
    return rc ? no_answer(err) : 0;
}

int cancel_run(const struct options *o, struct err *err)
{
    struct submissions l = { 0 };
    struct run *run = run_open(o->cancel, err);
    int rc = run ? run_submissions(run, &l, err) : -1;

    for (size_t k = 0; k < 2 * l.n && rc == 0; k++) {
        size_t i = k % l.n;
        bool closing = k < l.n; /* those first: they begin when the others end */
        const struct sched_backend *b;
        char *id;

        if (closing != (l.v[i].tasks == 0))
            continue;
        b = sched_load(l.v[i].backend, err);
        id = xstrdup(l.v[i].job_id);
        rc = b ? 0 : -1;
        if (b && !id && b->find) /* an intent without a result: it may have been taken */
            b->find(l.v[i].name, &id, NULL);
        if (b && id)
            rc = cancel_known(run, &l.v[i], id, err);
        if (rc == 0 && id && l.v[i].tasks)
            rc = run_submit_cancelled(run, l.v[i].sub, err);
        if (rc == 0 && id)
            fprintf(stderr, "recon-submit: job %s is cancelled or has ended\n", id);
        free(id);
    }
    submissions_release(&l);
    run_free(run);
    return rc;
}
