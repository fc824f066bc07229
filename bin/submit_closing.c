/* All parts of a submission, and the job that closes it: it waits for them and sends again, around the bad nodes, what
 * another node or more time may do. So a run ends by itself. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the closing job ---- */

static char *umask_text(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return xasprintf("%04o", (unsigned)mask & 0777);
}

static char *joined(const struct strv *ids)
{
    struct str t = { 0 };

    for (size_t i = 0; i < ids->n; i++)
        str_addf(&t, "%s%s", i ? ":" : "", ids->v[i]);
    return str_take(&t);
}

/* A submission of no slots: its script, no map. */
static int closing_send(struct order *x, const struct strv *ids, struct err *err)
{
    int sub = run_next_sub(x->run), rc;
    char *mask = umask_text(), *program = path_part("bin/recon-submit"), *after = joined(ids);
    const char *chdir = conf_map_get(&x->spec.sbatch, "chdir");
    struct part p = { .sub = (uint32_t)sub };
    struct script s = { .spec = &x->spec, .run = x->path, .sub = p.sub, .chdir = chdir ? chdir : x->path,
                        .exclude = x->exclude, .umask = mask };

    p.name = xasprintf("%s-%s.%u", x->spec.name, x->hex, p.sub);
    p.script_path = xasprintf("%s/sub/%u.sbatch", x->path, p.sub);
    s.job_name = p.name;
    rc = sub < 0 ? err_set(err, CODE_IO, "cannot number it") : script_closing(&s, after, program, &p.script, err);
    if (rc == 0)
        rc = file_write(p.script_path, p.script.s, p.script.len, 0666, err);
    if (rc == 0)
        rc = send_part(x, &p, err);
    part_release(&p);
    free(mask);
    free(program);
    free(after);
    return rc;
}

/* A run whose closing job is refused is still a run: --watch and --resume do the same. */
static bool send_closing(struct order *x, const struct strv *ids)
{
    struct err why = { 0 };

    if (!ids->n || x->o->local || !x->spec.retry.closing || (!x->spec.retry.node_unfit && x->n_sent == x->n_todo && !x->spec.on_end.mail && !x->spec.on_end.command.n))
        return false;
    if (closing_send(x, ids, &why) == 0)
        return true;
    cli_warn("no closing job, so what meets an unfit node waits for recon-submit --watch or --resume: %s", why.text);
    return false;
}

/* ---- the parts ---- */

/* The next part: no more than the cluster takes now. 1: it takes none. */
static int next_part(struct order *x, uint64_t slots, const char *after, struct part *p, struct err *err)
{
    bool bounded = x->slots_total && !x->o->local;
    uint64_t room = x->slots_total - (bounded ? slots : 0);
    int sub = run_next_sub(x->run);

    if (bounded && slots >= x->slots_total)
        return 1;
    x->slots_now = bounded && room < x->slots_max ? (uint32_t)room : 0;
    if (sub < 0)
        return err_set(err, CODE_IO, "cannot number the next submission of '%s'", x->path);
    return part_make(x, p, (uint32_t)sub, x->n_sent, after, err) || part_write(x, p, err) || send_part(x, p, err) ? -1 : 0;
}

/* One submission, or as many as keep k datasets a task within the cluster's bounds. What is more than the cluster takes
 * at once is left to the closing job, which finds it never sent. */
static int send_parts(struct order *x, struct strv *ids, struct part *last, struct err *err)
{
    uint64_t slots = 0;
    int rc = 0;

    while (rc == 0 && x->n_sent < x->n_todo) {
        part_release(last);
        rc = next_part(x, slots, ids->n ? ids->v[ids->n - 1] : NULL, last, err);
        if (rc)
            break;
        x->made = false; /* from here on the run is kept */
        strv_add(ids, last->job_id);
        slots += last->slots;
        x->n_sent += last->n;
    }
    return rc < 0 ? -1 : 0;
}

int submit_parts(struct order *x, struct strv *ids, struct part *last, struct err *err)
{
    int rc = send_parts(x, ids, last, err);
    bool closed = send_closing(x, ids);

    if ((rc == 0 && x->n_sent < x->n_todo) || (rc && closed && err->code == CODE_UNAVAILABLE)) { /* full, but not away */
        cli_warn("%llu of %llu datasets are sent for now, %s the rest: %s", (unsigned long long)x->n_sent,
                 (unsigned long long)x->n_todo, closed ? "the closing job sends" : "--watch or --resume sends",
                 rc ? err->text : x->bound);
        *err = (struct err){ 0 };
        rc = 0;
    }
    return rc;
}

/* ---- the same from the login node ---- */

int closing_again(const char *run, uint64_t *ret_sent, struct err *err)
{
    struct options o = { .resume = run, .closing = true };
    struct order x = { .o = &o, .lock = -1 };
    struct strv ids = { 0 };
    struct part last = { 0 };
    int rc = order_resume(&x, err);

    *ret_sent = 0;
    if (rc == 0 && x.n_todo)
        rc = send_choose(&x, err) || submit_parts(&x, &ids, &last, err) ? -1 : 0;
    if (rc == 0)
        *ret_sent = x.n_sent;
    part_release(&last);
    strv_release(&ids);
    order_release(&x);
    return rc;
}

/* ---- held ---- */

static int hold_all(const struct run *run, struct err *err)
{
    struct submissions l = { 0 };
    int rc = run_submissions(run, &l, err);

    for (size_t i = 0; i < l.n && rc == 0; i++) {
        const struct sched_backend *b = l.v[i].tasks && l.v[i].job_id ? sched_load(l.v[i].backend, err) : NULL;

        if (b && b->hold)
            rc = b->hold(l.v[i].job_id, err);
    }
    submissions_release(&l);
    return rc;
}

int hold_agreed(const char *path, struct err *err)
{
    struct run *run = run_open(path, err);
    char *agreed = run ? run_agreed(run) : NULL, *safe = agreed ? esc_terminal(agreed) : NULL;
    int rc = run ? 0 : -1;

    if (agreed && run_first(run, "held")) {
        rc = hold_all(run, err);
        if (rc == 0)
            cli_warn("held: two nodes agree on %s, which no node can do; mend it and recon-submit --resume after "
                     "--cancel, or let the tasks go on with scontrol release", safe);
    }
    free(safe);
    free(agreed);
    run_free(run);
    return rc;
}
