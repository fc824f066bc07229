#include "config.h"
#include "sched/slurm_map_priv.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

struct row {
    const char *name;
    int (*put)(struct slurm_map *m, const struct row *row, const char *value); /* -1: only sbatch can say it */
    size_t offset;                                                            /* within job_desc_msg_t */
    long value;
};

static void *field(struct slurm_map *m, const struct row *row)
{
    return (char *)&m->desc + row->offset;
}

static char *own(struct slurm_map *m, const char *text)
{
    strv_add(&m->owned, text);
    return m->owned.v[m->owned.n - 1];
}

static int number(const char *value, long least, long most, long *ret)
{
    int64_t v;

    if (str_to_i64(value, &v) || v < least || v > most)
        return -1;
    *ret = (long)v;
    return 0;
}

/* ---- kinds of fields ---- */

static int text(struct slurm_map *m, const struct row *row, const char *value)
{
    *(char **)field(m, row) = own(m, value);
    return 0;
}

static int file(struct slurm_map *m, const struct row *row, const char *value)
{
    return text(m, row, strcasecmp(value, "none") ? value : "/dev/null");
}

static int u16(struct slurm_map *m, const struct row *row, const char *value)
{
    long v;

    if (number(value, 0, 65000, &v))
        return -1;
    *(uint16_t *)field(m, row) = (uint16_t)v;
    return 0;
}

static int u16_is(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)value;
    *(uint16_t *)field(m, row) = (uint16_t)row->value;
    return 0;
}

static int minutes(struct slurm_map *m, const struct row *row, const char *value)
{
    int64_t s;

    if (slurm_time(value, &s))
        return -1;
    *(uint32_t *)field(m, row) = s <= 0 ? INFINITE : (uint32_t)((s + 59) / 60);
    return 0;
}

static int gpus(struct slurm_map *m, const struct row *row, const char *value)
{
    char *whole;

    if (strpbrk(value, ",")) /* several types: sbatch builds the list */
        return -1;
    whole = xasprintf("gres:gpu:%s", value);
    text(m, row, whole);
    free(whole);
    return 0;
}

/* ---- single options ---- */

static int gres(struct slurm_map *m, const struct row *row, const char *value)
{
    struct strv items = { 0 };
    struct str t = { 0 };

    if (strcasecmp(value, "none") == 0)
        return 0;
    if (m->desc.tres_per_node) /* after gpus-per-node */
        str_addf(&t, "%s,", m->desc.tres_per_node);
    strv_split(&items, value, ",");
    for (size_t i = 0; i < items.n; i++)
        str_addf(&t, "%s%s%s", i ? "," : "", str_starts(items.v[i], "gres:") ? "" : "gres:", items.v[i]);
    text(m, row, t.s);
    strv_release(&items);
    str_release(&t);
    return 0;
}

static int mem(struct slurm_map *m, const struct row *row, const char *value)
{
    uint64_t mib;

    if (slurm_mib(value, &mib))
        return -1;
    m->desc.pn_min_memory = mib | (row->value ? MEM_PER_CPU : 0);
    return 0;
}

static int mem_per_gpu(struct slurm_map *m, const struct row *row, const char *value)
{
    uint64_t mib;
    char *whole;

    if (slurm_mib(value, &mib))
        return -1;
    whole = xasprintf("gres:gpu:%llu", (unsigned long long)mib);
    text(m, row, whole);
    free(whole);
    return 0;
}

static int tmp(struct slurm_map *m, const struct row *row, const char *value)
{
    uint64_t mib;

    (void)row;
    if (slurm_mib(value, &mib) || mib > UINT32_MAX - 10)
        return -1;
    m->desc.pn_min_tmp_disk = (uint32_t)mib;
    return 0;
}

static int nodes(struct slurm_map *m, const struct row *row, const char *value)
{
    char *end;

    (void)row;
    m->min_nodes = m->max_nodes = strtol(value, &end, 10);
    if (*end == '-')
        m->max_nodes = strtol(end + 1, &end, 10);
    return *end || m->min_nodes < 1 || m->max_nodes < m->min_nodes ? -1 : 0;
}

static int ntasks(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)row;
    return number(value, 1, INT32_MAX, &m->ntasks);
}

static int ntasks_per_node(struct slurm_map *m, const struct row *row, const char *value)
{
    return u16(m, row, value) || number(value, 1, 65000, &m->ntasks_per_node) ? -1 : 0;
}

static int cpus_per_task(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)row;
    return number(value, 1, 65000, &m->cpus_per_task);
}

static int exclusive(struct slurm_map *m, const struct row *row, const char *value)
{
    static const struct name kinds[] = { { "exclusive", JOB_SHARED_NONE }, { "oversubscribe", JOB_SHARED_OK },
                                         { "user", JOB_SHARED_USER },      { "mcs", JOB_SHARED_MCS },
                                         { NULL, 0 } };
    int kind = JOB_SHARED_NONE;

    (void)row;
    if (value && name_value(kinds, value, &kind))
        return -1;
    m->desc.shared = (uint16_t)kind;
    return 0;
}

static int no_kill(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)row;
    if (value && strcasecmp(value, "set"))
        return -1;
    m->desc.kill_on_node_fail = 0;
    return 0;
}

static int nice_value(struct slurm_map *m, const struct row *row, const char *value)
{
    long v = 100;

    (void)row;
    if (value && number(value, -1000000000, 1000000000, &v))
        return -1;
    m->desc.nice = (uint32_t)(NICE_OFFSET + v);
    return 0;
}

static int priority(struct slurm_map *m, const struct row *row, const char *value)
{
    long v;

    (void)row;
    if (number(value, 1, (long)NO_VAL - 2, &v))
        return -1;
    m->desc.priority = (uint32_t)v;
    return 0;
}

static int hold(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)row;
    (void)value;
    m->desc.priority = 0;
    return 0;
}

static int invalid_dep(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)row;
    if (strcasecmp(value, "yes") && strcasecmp(value, "no"))
        return -1;
    m->desc.bitflags |= strcasecmp(value, "yes") ? NO_KILL_INV_DEP : KILL_INV_DEP;
    return 0;
}

static int open_mode(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)row;
    m->desc.open_mode = *value == 'a' ? OPEN_MODE_APPEND : OPEN_MODE_TRUNCATE;
    return 0;
}

static int mail_type(struct slurm_map *m, const struct row *row, const char *value)
{
    static const struct name types[] = {
        { "NONE", 0 }, { "ARRAY_TASKS", MAIL_ARRAY_TASKS }, { "BEGIN", MAIL_JOB_BEGIN }, { "END", MAIL_JOB_END },
        { "FAIL", MAIL_JOB_FAIL }, { "INVALID_DEPEND", MAIL_INVALID_DEPEND }, { "REQUEUE", MAIL_JOB_REQUEUE },
        { "STAGE_OUT", MAIL_JOB_STAGE_OUT }, { "TIME_LIMIT", MAIL_JOB_TIME100 }, { "TIME_LIMIT_90", MAIL_JOB_TIME90 },
        { "TIME_LIMIT_80", MAIL_JOB_TIME80 }, { "TIME_LIMIT_50", MAIL_JOB_TIME50 },
        { "ALL", MAIL_INVALID_DEPEND | MAIL_JOB_BEGIN | MAIL_JOB_END | MAIL_JOB_FAIL | MAIL_JOB_REQUEUE |
                     MAIL_JOB_STAGE_OUT },
        { NULL, 0 },
    };
    struct strv items = { 0 };
    int rc = 0;

    (void)row;
    strv_split(&items, value, ",");
    for (size_t i = 0; i < items.n; i++) {
        const struct name *n = types;

        while (n->name && strcasecmp(n->name, items.v[i]))
            n++;
        if (!n->name)
            rc = -1;
        else
            m->desc.mail_type |= (uint16_t)n->value;
    }
    strv_release(&items);
    return rc;
}

/* "[R][B][:]NAME[@SECONDS]" */
static int warn_signal(struct slurm_map *m, const struct row *row, const char *value)
{
    long v = 60;
    size_t n;

    (void)row;
    for (; *value && strchr("RB", toupper((unsigned char)*value)) && strchr("RrBb:", value[1]); value++)
        m->desc.warn_flags |= toupper((unsigned char)*value) == 'R' ? KILL_JOB_RESV : KILL_JOB_BATCH;
    value += *value == ':';
    n = strcspn(value, "@");
    if (value[n] && number(value + n + 1, 0, 65535, &v))
        return -1;
    m->desc.warn_time = (uint16_t)v;
    if (strncasecmp(value, "SIG", 3) == 0) {
        value += 3;
        n -= 3;
    }
    for (int s = 1; s < NSIG; s++) {
        const char *name = sigabbrev_np(s);

        if (name && strlen(name) == n && strncasecmp(name, value, n) == 0)
            m->desc.warn_signal = (uint16_t)s;
    }
    if (isdigit((unsigned char)*value))
        m->desc.warn_signal = (uint16_t)atoi(value);
    return m->desc.warn_signal ? 0 : -1;
}

/* In the environment alone, see submit_env.c. */
static int elsewhere(struct slurm_map *m, const struct row *row, const char *value)
{
    (void)m;
    (void)row;
    (void)value;
    return 0;
}

#define F(member) offsetof(job_desc_msg_t, member)
static const struct row rows[] = {
    { "job-name", text, F(name), 0 },
    { "account", text, F(account), 0 },
    { "partition", text, F(partition), 0 },
    { "qos", text, F(qos), 0 },
    { "reservation", text, F(reservation), 0 },
    { "constraint", text, F(features), 0 },
    { "prefer", text, F(prefer), 0 },
    { "batch", text, F(batch_features), 0 },
    { "cluster-constraint", text, F(cluster_features), 0 },
    { "nodes", nodes, 0, 0 },
    { "nodelist", text, F(req_nodes), 0 },
    { "exclude", text, F(exc_nodes), 0 },
    { "contiguous", u16_is, F(contiguous), 1 },
    { "exclusive", exclusive, 0, 0 },
    { "oversubscribe", u16_is, F(shared), JOB_SHARED_OK },
    { "ntasks", ntasks, 0, 0 },
    { "ntasks-per-node", ntasks_per_node, F(ntasks_per_node), 0 },
    { "ntasks-per-core", u16, F(ntasks_per_core), 0 },
    { "ntasks-per-socket", u16, F(ntasks_per_socket), 0 },
    { "gpus", gpus, F(tres_per_job), 0 },
    { "gpus-per-node", gpus, F(tres_per_node), 0 },
    { "gres", gres, F(tres_per_node), 0 },
    { "cpus-per-gpu", gpus, F(cpus_per_tres), 0 },
    { "cpus-per-task", cpus_per_task, 0, 0 },
    { "mincpus", u16, F(pn_min_cpus), 0 },
    { "sockets-per-node", u16, F(sockets_per_node), 0 },
    { "cores-per-socket", u16, F(cores_per_socket), 0 },
    { "threads-per-core", u16, F(threads_per_core), 0 },
    { "mem", mem, 0, 0 },
    { "mem-per-cpu", mem, 0, 1 },
    { "mem-per-gpu", mem_per_gpu, F(mem_per_tres), 0 },
    { "tmp", tmp, 0, 0 },
    { "time", minutes, F(time_limit), 0 },
    { "time-min", minutes, F(time_min), 0 },
    { "dependency", text, F(dependency), 0 },
    { "kill-on-invalid-dep", invalid_dep, 0, 0 },
    { "requeue", u16_is, F(requeue), 1 },
    { "no-requeue", u16_is, F(requeue), 0 },
    { "no-kill", no_kill, 0, 0 },
    { "nice", nice_value, 0, 0 },
    { "priority", priority, 0, 0 },
    { "hold", hold, 0, 0 },
    { "signal", warn_signal, 0, 0 },
    { "licenses", text, F(licenses), 0 },
    { "network", text, F(network), 0 },
    { "wckey", text, F(wckey), 0 },
    { "mcs-label", text, F(mcs_label), 0 },
    { "comment", text, F(comment), 0 },
    { "mail-type", mail_type, 0, 0 },
    { "mail-user", text, F(mail_user), 0 },
    { "reboot", u16_is, F(reboot), 1 },
    { "wait-all-nodes", u16, F(wait_all_nodes), 0 },
    { "export", elsewhere, 0, 0 },
    { "array", text, F(array_inx), 0 },
    { "chdir", text, F(work_dir), 0 },
    { "input", file, F(std_in), 0 },
    { "output", file, F(std_out), 0 },
    { "error", file, F(std_err), 0 },
    { "open-mode", open_mode, 0, 0 },
};

/* ---- what follows from several ---- */

static void defaults(struct slurm_map *m, const struct sched_request *r)
{
    job_desc_msg_t *d = &m->desc;

    slurm_init_job_desc_msg(d);
    d->user_id = getuid();
    d->group_id = getgid();
    d->contiguous = 0;
    d->mail_type = 0;
    d->mem_bind_type = 0;
    d->task_dist = SLURM_DIST_UNKNOWN;
    d->std_in = own(m, "/dev/null");
    d->work_dir = own(m, r->cwd);
}

static int count_nodes(struct slurm_map *m)
{
    __typeof__(slurm_hostlist_create(NULL)) list; /* a pointer by name until 23.02, in its type since */
    int n;

    if (!m->desc.req_nodes)
        return 0;
    list = slurm_hostlist_create(m->desc.req_nodes);
    if (!list)
        return -1;
    n = slurm_hostlist_count(list);
    slurm_hostlist_destroy(list);
    if (m->min_nodes < n)
        m->min_nodes = n;
    return 0;
}

static void totals(struct slurm_map *m)
{
    job_desc_msg_t *d = &m->desc;
    bool tasks_asked = m->ntasks > 0;
    long tasks = m->ntasks;

    if (m->ntasks_per_node && !tasks_asked && (m->max_nodes == 0 || m->min_nodes == m->max_nodes)) {
        tasks = (m->min_nodes ? m->min_nodes : 1) * m->ntasks_per_node;
        tasks_asked = true;
    }
    if (!tasks_asked) {
        tasks = m->min_nodes && (m->max_nodes == 0 || m->max_nodes == m->min_nodes) ? m->min_nodes : 1;
    } else if (m->min_nodes) {
        if (tasks < m->max_nodes)
            m->max_nodes = tasks;
        if (tasks < m->min_nodes)
            m->min_nodes = m->max_nodes = tasks;
    }
    if (tasks_asked) {
        d->bitflags |= JOB_NTASKS_SET;
        d->num_tasks = (uint32_t)tasks;
    }
    d->min_cpus = (uint32_t)(tasks * (m->cpus_per_task ? m->cpus_per_task : 1));
    if (m->cpus_per_task) {
        d->bitflags |= JOB_CPUS_SET;
        d->cpus_per_task = (uint16_t)m->cpus_per_task;
        if (d->pn_min_cpus == NO_VAL16 || d->pn_min_cpus < m->cpus_per_task)
            d->pn_min_cpus = (uint16_t)m->cpus_per_task;
    }
    if (m->min_nodes) {
        d->min_nodes = (uint32_t)m->min_nodes;
        if (m->max_nodes)
            d->max_nodes = (uint32_t)m->max_nodes;
    }
}

int slurm_map_directives(const struct directives *d, const struct sched_request *r, struct slurm_map *m, struct err *err)
{
    *m = (struct slurm_map){ 0 };
    defaults(m, r);
    /* in the order of the rows: gres goes after gpus-per-node, hold over priority */
    for (const struct row *row = rows; row < rows + COUNT(rows); row++) {
        const struct directive *x = directives_find(d, row->name);

        if (x && row->put(m, row, x->value))
            return err_set(err, CODE_USAGE, "--%s=%s is for sbatch to read", row->name, x->value ? x->value : "");
    }
    for (size_t i = 0; i < d->n; i++) {
        const struct row *row = rows;

        while (row < rows + COUNT(rows) && !str_eq(row->name, d->v[i].option->name))
            row++;
        if (row == rows + COUNT(rows))
            return err_set(err, CODE_USAGE, "--%s is for sbatch to read", d->v[i].option->name);
    }
    if (count_nodes(m))
        return err_set(err, CODE_USAGE, "--nodelist=%s is for sbatch to read", m->desc.req_nodes);
    totals(m);
    return 0;
}

void slurm_map_release(struct slurm_map *m)
{
    strv_release(&m->owned);
}
