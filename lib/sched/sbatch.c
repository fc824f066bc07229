/* The commands: sbatch, squeue, scancel, scontrol. Serves where libslurm is not the cluster's or cannot say it all. */
#include "config.h"
#include "sched/sched_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define COMMAND_MS 60000 /* Slurm's own time-outs are shorter */

extern char **environ;

/* The last line that a command says, without its name. Owned. */
static char *last_words(const struct child *c)
{
    const char *text = c->errout.len ? c->errout.s : c->out.len ? c->out.s : "";
    struct strv lines = { 0 };
    char *last;
    size_t i;

    strv_split(&lines, text, "\n");
    for (i = lines.n; i > 0 && !*lines.v[i - 1];)
        i--;
    last = xstrdup(i ? lines.v[i - 1] : "it said nothing");
    for (const char *const *w = (const char *const[]){ ": error: ", ": fatal: ", NULL }; *w; w++)
        if (strstr(last, *w))
            memmove(last, strstr(last, *w) + strlen(*w), strlen(strstr(last, *w)) - strlen(*w) + 1);
    if (str_starts(last, "Batch job submission failed: "))
        memmove(last, last + 29, strlen(last) - 28);
    strv_release(&lines);
    return last;
}

static bool away(const char *words)
{
    static const char *const signs[] = { "Unable to contact slurm controller", "Connection refused", "Connection timed out",
                                         "configuration source", "authentication", "munge" };

    for (size_t i = 0; i < COUNT(signs); i++)
        if (strcasestr(words, signs[i]))
            return true;
    return false;
}

/* It was sent, and no answer came: it may have been taken. */
static bool unanswered(const char *words)
{
    return strcasestr(words, "timed out") || strcasestr(words, "Zero Bytes") || strcasestr(words, "receive failure") ||
           strcasestr(words, "Connection reset");
}

/* Runs one; 0 when it ended well. The output is the caller's, also after a failure. */
static int command(struct child *c, const char *what, struct err *err)
{
    struct err why = { 0 };
    char *words, *where;
    int code;

    c->search = true;
    c->deadline_ms = COMMAND_MS;
    if (!c->env)
        c->env = environ;
    if (child_run(c, &why)) {
        if (why.code == CODE_NOTFOUND)
            return err_set(err, CODE_UNAVAILABLE, "'%s' is not in PATH: no Slurm here? --local runs the tasks on this host",
                           c->argv[0]);
        return err_set(err, why.code == CODE_DEADLINE ? CODE_DEADLINE : CODE_UNAVAILABLE, "%s", why.text);
    }
    if (c->status == 0)
        return 0;
    words = last_words(c);
    where = sched_endpoint(c->env);
    code = away(words) ? CODE_UNAVAILABLE : unanswered(words) ? CODE_DEADLINE : CODE_USAGE;
    if (code == CODE_USAGE)
        err_set(err, code, "%s: Slurm says: %s", what, words);
    else
        err_set(err, code, "%s: the controller does not answer (%s): %s", what, where, words);
    free(words);
    free(where);
    return -1;
}

/* A job that the controller knows no more has ended: no error. */
static bool forgotten(const struct child *c, struct err *err)
{
    if (!c->errout.len || !strstr(c->errout.s, "Invalid job id"))
        return false;
    if (err)
        *err = (struct err){ 0 };
    return true;
}

static void child_release(struct child *c)
{
    str_release(&c->out);
    str_release(&c->errout);
}

static int sbatch_submit(const struct sched_request *r, char **ret_job_id, struct err *err)
{
    const char *argv[] = { "sbatch", "--parsable", r->script_path, NULL };
    struct child c = { .argv = argv, .env = r->env, .cwd = r->cwd };
    int rc = command(&c, "the job is refused", err);
    size_t n = 0;

    if (rc == 0) {
        n = strspn(c.out.len ? c.out.s : "", "0123456789");
        if (!n)
            rc = err_set(err, CODE_UNAVAILABLE, "sbatch gave no job id, but '%.100s'", c.out.len ? c.out.s : "");
    }
    if (rc == 0)
        *ret_job_id = xstrndup(c.out.s, n);
    child_release(&c);
    return rc;
}

static int sbatch_test(const struct sched_request *r, char **ret_text, struct err *err)
{
    const char *argv[] = { "sbatch", "--test-only", r->script_path, NULL };
    struct child c = { .argv = argv, .env = r->env, .cwd = r->cwd };
    int rc = command(&c, "the job would be refused", err);
    char *words;

    if (rc == 0) {
        words = last_words(&c);
        *ret_text = xstrdup(str_starts(words, "sbatch: ") ? words + 8 : words);
        free(words);
    }
    child_release(&c);
    return rc;
}

/* ---- tasks ---- */

struct slot_state {
    struct sched_tasks *tasks;
    const char *state, *node, *reason;
};

static void add_slot(void *arg, uint32_t slot)
{
    static const char *const ended[] = { "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
                                         "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY" };
    struct slot_state *s = arg;
    struct sched_task *t = sched_task_of(s->tasks, slot);

    t->state = str_eq(s->state, "PENDING") ? TASK_WAITING : TASK_RUNNING;
    for (size_t i = 0; i < COUNT(ended); i++)
        if (str_eq(s->state, ended[i]))
            t->state = TASK_ENDED;
    free(t->node);
    free(t->reason);
    t->node = *s->node ? xstrdup(s->node) : NULL;
    t->reason = xstrdup(s->reason);
    t->withdrawn = str_eq(s->state, "CANCELLED") && !t->node;
}

/* "68_[3-9%2]|PENDING||Resources|NAME|COMMAND", "68_1|RUNNING|n1|None|NAME|COMMAND"; the last may hold anything. */
static void add_line(const struct sched_job *job, char *line, struct sched_tasks *ret)
{
    char *command = line;

    struct strv f = { 0 };
    struct slot_state s = { .tasks = ret };
    char *slots;

    for (unsigned i = 0; i < 5 && command; i++)
        command = strchr(command + (i > 0), '|');
    strv_split(&f, line, "|");
    if (f.n >= 6 && command && sched_is(job, f.v[4], command + 1)) {
        slots = strchr(f.v[0], '_');
        slots = slots ? slots + 1 + (slots[1] == '[') : (char *)(uintptr_t)"0"; /* a job that is no array */
        if (strchr(slots, ']'))
            *strchr(slots, ']') = 0;
        s.state = f.v[1];
        s.node = f.v[2];
        s.reason = f.v[3];
        sched_slots(slots, add_slot, &s);
    }
    strv_release(&f);
}

static int sbatch_tasks(const struct sched_job *job, struct sched_tasks *ret, struct err *err)
{
    const char *argv[] = { "squeue", "-h", "-t", "all", "-o", "%i|%T|%N|%r|%j|%o", "-j", job->id, NULL };
    struct child c = { .argv = argv };
    struct strv env = { 0 };
    int rc;

    for (char **e = environ; *e; e++)
        strv_add(&env, *e);
    env_set(&env, "SLURM_BITSTR_LEN", "0"); /* whole lists of slots, not cut at 64 characters */
    c.env = env.v;
    rc = command(&c, "cannot ask for the tasks", err);
    if (rc && forgotten(&c, err)) {
        rc = 0;
    } else if (rc == 0 && c.out.len) {
        struct strv lines = { 0 };

        strv_split(&lines, c.out.s, "\n");
        for (size_t i = 0; i < lines.n; i++)
            add_line(job, lines.v[i], ret);
        strv_release(&lines);
    }
    strv_release(&env);
    child_release(&c);
    return rc;
}

static int sbatch_cancel(const char *job_id, struct err *err)
{
    const char *argv[] = { "scancel", job_id, NULL };
    struct child c = { .argv = argv };
    int rc = command(&c, "cannot cancel", err);

    if (rc && forgotten(&c, err))
        rc = 0;
    child_release(&c);
    return rc;
}

static int sbatch_hold(const char *job_id, struct err *err)
{
    const char *argv[] = { "scontrol", "uhold", job_id, NULL };
    struct child c = { .argv = argv };
    int rc = command(&c, "cannot hold", err);

    if (rc && forgotten(&c, err))
        rc = 0;
    child_release(&c);
    return rc;
}

static int sbatch_find(const char *name, char **ret_job_id, struct err *err)
{
    const char *argv[] = { "squeue", "-h", "-t", "all", "-o", "%F", "-n", name, NULL };
    struct child c = { .argv = argv };
    int rc = command(&c, "cannot look for the job", err);
    size_t n = rc == 0 && c.out.len ? strspn(c.out.s, "0123456789") : 0;

    if (n)
        *ret_job_id = xstrndup(c.out.s, n);
    else if (rc == 0)
        rc = err_set(err, CODE_NOTFOUND, "no job is named '%s'", name);
    child_release(&c);
    return rc;
}

static uint32_t config_number(const char *text, const char *key)
{
    const char *p = text ? strstr(text, key) : NULL;
    unsigned long v;

    if (!p)
        return 0;
    p += strlen(key);
    p += strspn(p, " =");
    v = strtoul(p, NULL, 10);
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static int sbatch_limits(struct sched_limits *ret, struct err *err)
{
    const char *argv[] = { "scontrol", "show", "config", NULL };
    struct child c = { .argv = argv };
    int rc = command(&c, "cannot ask for the limits", err);

    if (rc == 0) {
        ret->array_size = config_number(c.out.s, "\nMaxArraySize");
        ret->job_count = config_number(c.out.s, "\nMaxJobCount");
    }
    child_release(&c);
    return rc;
}

static int take_words(struct cluster *c, const char *const *argv, struct err *err)
{
    struct child child = { .argv = argv };
    int rc = command(&child, "cannot ask for the cluster", err);

    if (rc == 0)
        cluster_take(c, child.out.len ? child.out.s : "");
    child_release(&child);
    return rc;
}

static int sbatch_cluster(struct cluster *ret, struct err *err)
{
    static const char *const asked[][6] = {
        { "scontrol", "show", "config", NULL },
        { "scontrol", "-o", "show", "partition", NULL },
        { "scontrol", "-o", "show", "node", NULL },
    };
    int rc = 0;

    *ret = (struct cluster){ .source = xstrdup("scontrol") };
    for (size_t i = 0; i < COUNT(asked) && rc == 0; i++)
        rc = take_words(ret, asked[i], err);
    if (rc)
        cluster_release(ret);
    return rc;
}

/* A line a job and task. */
static int sbatch_held(uint64_t *ret, struct err *err)
{
    const char *argv[] = { "squeue", "-h", "-r", "-t", "all", "-o", "x", NULL };
    struct child c = { .argv = argv };
    int rc = command(&c, "cannot ask for the jobs", err);

    *ret = 0;
    for (size_t i = 0; i < c.out.len; i++)
        *ret += c.out.s[i] == '\n';
    child_release(&c);
    return rc;
}

const struct sched_backend recon_backend = {
    .abi = RECON_BACKEND_ABI,
    .name = "sbatch",
    .doc = "Slurm's commands",
    .submit = sbatch_submit,
    .tasks = sbatch_tasks,
    .cancel = sbatch_cancel,
    .test = sbatch_test,
    .find = sbatch_find,
    .limits = sbatch_limits,
    .hold = sbatch_hold,
    .cluster = sbatch_cluster,
    .held = sbatch_held,
};
