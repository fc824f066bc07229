#include "config.h"
#include "job/job.h"

#include <ctype.h>
#include <strings.h>

/* ---- forms of values ------------------------------------------------------------------------------- */

static int digits(const char *s, const char **ret_end, int64_t *ret)
{
    int64_t v = 0;

    if (!isdigit((unsigned char)*s))
        return -1;
    for (; isdigit((unsigned char)*s); s++) {
        v = v * 10 + (*s - '0');
        if (v > INT32_MAX)
            return -1;
    }
    *ret_end = s;
    *ret = v;
    return 0;
}

/* Source: sbatch(1), --time. "M", "M:S", "H:M:S", "D-H", "D-H:M", "D-H:M:S". */
int slurm_time(const char *s, int64_t *ret_seconds)
{
    int64_t part[3], days = 0, seconds;
    bool with_days = false;
    int n = 0;

    if (strcasecmp(s, "unlimited") == 0 || strcasecmp(s, "infinite") == 0 || str_eq(s, "-1")) {
        *ret_seconds = -1;
        return 0;
    }
    for (;;) {
        int64_t v;

        if (n == 3 || digits(s, &s, &v))
            return -1;
        if (*s == '-' && n == 0 && !with_days) {
            with_days = true;
            days = v;
        } else {
            part[n++] = v;
            if (!*s)
                break;
            if (*s != ':')
                return -1;
        }
        s++;
    }
    if (with_days)
        seconds = part[0] * 3600 + (n > 1 ? part[1] * 60 : 0) + (n > 2 ? part[2] : 0);
    else if (n == 3)
        seconds = part[0] * 3600 + part[1] * 60 + part[2];
    else
        seconds = part[0] * 60 + (n > 1 ? part[1] : 0);
    *ret_seconds = days * 86400 + seconds;
    return 0;
}

int slurm_mib(const char *text, uint64_t *ret)
{
    static const char units[] = "MGTP";
    const char *end, *unit;
    int64_t v;

    if (digits(text, &end, &v))
        return -1;
    *ret = (uint64_t)v;
    if (!*end)
        return 0;
    if (end[1] && strcasecmp(end + 1, "b"))
        return -1;
    if (toupper((unsigned char)*end) == 'K') {
        *ret = ((uint64_t)v + 1023) / 1024;
        return 0;
    }
    unit = strchr(units, toupper((unsigned char)*end));
    if (!unit)
        return -1;
    *ret = (uint64_t)v << (10 * (unit - units));
    return 0;
}

static int is_time(const char *v)
{
    int64_t ignored;

    return slurm_time(v, &ignored);
}

static int is_mib(const char *v)
{
    uint64_t ignored;

    return slurm_mib(v, &ignored);
}

static int is_count(const char *v)
{
    const char *end;
    int64_t n;

    return digits(v, &end, &n) || *end ? -1 : 0;
}

static int is_integer(const char *v)
{
    return is_count(v + (*v == '-' || *v == '+'));
}

static int is_range(const char *v) /* N or N-M, with the suffix k or m */
{
    for (int i = 0; i < 2; i++) {
        int64_t n;

        if (digits(v, &v, &n))
            return -1;
        v += *v == 'k' || *v == 'm';
        if (*v != '-' || i)
            break;
        v++;
    }
    return *v ? -1 : 0;
}

static int is_word(const char *v) /* names: something, no white space */
{
    if (!*v)
        return -1;
    for (; *v; v++)
        if (isspace((unsigned char)*v))
            return -1;
    return 0;
}

static int is_open_mode(const char *v)
{
    return str_eq(v, "append") || str_eq(v, "truncate") || str_eq(v, "a") || str_eq(v, "t") ? 0 : -1;
}

/* ---- the table ------------------------------------------------------------------------------------- */

#define TIME is_time, "minutes, H:M:S or D-H:M:S"
#define MEM is_mib, "a number with K, M, G or T"
#define NUM is_count, "a whole number"
#define INT is_integer, "a whole number"
#define WORD is_word, "a value without white space"
#define ANY NULL, NULL
#define NO(why) OPTION_REFUSED, ANY, NULL, why

#define SPLIT "recon splits the datasets into the array itself; max_running and datasets_per_task shape it"
#define PRINTS "recon-submit prints and waits in its own ways: --parsable, --watch"

/* Source: sbatch(1) of Slurm 22.05; src/sbatch/opt.c for the variables. */
const struct sbatch_option sbatch_options[] = {
    { "job-name", 'J', ARG_NEEDED, OPTION_OURS, ANY, "SBATCH_JOB_NAME",
      "each submission has its own name, by which it is found again; the spec's 'name' begins it" },
    { "account", 'A', ARG_NEEDED, 0, WORD, "SBATCH_ACCOUNT", NULL },
    { "partition", 'p', ARG_NEEDED, 0, WORD, "SBATCH_PARTITION", NULL },
    { "qos", 'q', ARG_NEEDED, 0, WORD, "SBATCH_QOS", NULL },
    { "reservation", 0, ARG_NEEDED, 0, WORD, "SBATCH_RESERVATION", NULL },
    { "constraint", 'C', ARG_NEEDED, 0, ANY, "SBATCH_CONSTRAINT", NULL },
    { "prefer", 0, ARG_NEEDED, 0, ANY, NULL, NULL },
    { "batch", 0, ARG_NEEDED, 0, ANY, "SBATCH_BATCH", NULL },
    { "cluster-constraint", 0, ARG_NEEDED, 0, ANY, "SBATCH_CLUSTER_CONSTRAINT", NULL },
    { "nodes", 'N', ARG_NEEDED, 0, is_range, "N or N-M", NULL, NULL },
    { "nodelist", 'w', ARG_NEEDED, 0, WORD, NULL, NULL },
    { "nodefile", 'F', ARG_NEEDED, OPTION_PATH, ANY, NULL, NULL },
    { "exclude", 'x', ARG_NEEDED, 0, WORD, NULL, NULL },
    { "contiguous", 0, ARG_NONE, 0, ANY, NULL, NULL },
    { "exclusive", 0, ARG_MAYBE, 0, ANY, "SBATCH_EXCLUSIVE", NULL },
    { "oversubscribe", 's', ARG_NONE, 0, ANY, NULL, NULL },
    { "overcommit", 'O', ARG_NONE, 0, ANY, "SBATCH_OVERCOMMIT", NULL },
    { "spread-job", 0, ARG_NONE, 0, ANY, "SBATCH_SPREAD_JOB", NULL },
    { "use-min-nodes", 0, ARG_NONE, 0, ANY, "SBATCH_USE_MIN_NODES", NULL },
    { "switches", 0, ARG_NEEDED, 0, WORD, "SBATCH_REQ_SWITCH", NULL },
    { "ntasks", 'n', ARG_NEEDED, 0, NUM, NULL, NULL },
    { "ntasks-per-node", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "ntasks-per-core", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "ntasks-per-socket", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "ntasks-per-gpu", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "distribution", 'm', ARG_NEEDED, 0, WORD, "SBATCH_DISTRIBUTION", NULL },
    { "gres", 0, ARG_NEEDED, 0, WORD, "SBATCH_GRES", NULL },
    { "gres-flags", 0, ARG_NEEDED, 0, WORD, "SBATCH_GRES_FLAGS", NULL },
    { "gpus", 'G', ARG_NEEDED, 0, WORD, "SBATCH_GPUS", NULL },
    { "gpus-per-node", 0, ARG_NEEDED, 0, WORD, "SBATCH_GPUS_PER_NODE", NULL },
    { "gpus-per-socket", 0, ARG_NEEDED, 0, WORD, "SBATCH_GPUS_PER_SOCKET", NULL },
    { "gpus-per-task", 0, ARG_NEEDED, 0, WORD, "SBATCH_GPUS_PER_TASK", NULL },
    { "gpu-bind", 0, ARG_NEEDED, 0, WORD, "SBATCH_GPU_BIND", NULL },
    { "gpu-freq", 0, ARG_NEEDED, 0, WORD, "SBATCH_GPU_FREQ", NULL },
    { "cpus-per-gpu", 0, ARG_NEEDED, 0, NUM, "SBATCH_CPUS_PER_GPU", NULL },
    { "cpus-per-task", 'c', ARG_NEEDED, 0, NUM, NULL, NULL },
    { "mincpus", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "sockets-per-node", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "cores-per-socket", 0, ARG_NEEDED, 0, NUM, NULL, NULL },
    { "threads-per-core", 0, ARG_NEEDED, 0, NUM, "SBATCH_THREADS_PER_CORE", NULL },
    { "extra-node-info", 'B', ARG_NEEDED, 0, WORD, NULL, NULL },
    { "hint", 0, ARG_NEEDED, 0, WORD, "SBATCH_HINT", NULL },
    { "core-spec", 'S', ARG_NEEDED, 0, NUM, "SBATCH_CORE_SPEC", NULL },
    { "thread-spec", 0, ARG_NEEDED, 0, NUM, "SBATCH_THREAD_SPEC", NULL },
    { "cpu-freq", 0, ARG_NEEDED, 0, WORD, "SBATCH_CPU_FREQ_REQ", NULL },
    { "mem", 0, ARG_NEEDED, 0, MEM, "SBATCH_MEM_PER_NODE", NULL },
    { "mem-per-cpu", 0, ARG_NEEDED, 0, MEM, "SBATCH_MEM_PER_CPU", NULL },
    { "mem-per-gpu", 0, ARG_NEEDED, 0, MEM, "SBATCH_MEM_PER_GPU", NULL },
    { "mem-bind", 0, ARG_NEEDED, 0, WORD, "SBATCH_MEM_BIND", NULL },
    { "tmp", 0, ARG_NEEDED, 0, MEM, NULL, NULL },
    { "time", 't', ARG_NEEDED, 0, TIME, "SBATCH_TIMELIMIT", NULL },
    { "time-min", 0, ARG_NEEDED, 0, TIME, NULL, NULL },
    { "deadline", 0, ARG_NEEDED, 0, ANY, NULL, NULL },
    { "begin", 'b', ARG_NEEDED, 0, ANY, NULL, NULL },
    { "delay-boot", 0, ARG_NEEDED, 0, ANY, "SBATCH_DELAY_BOOT", NULL },
    { "dependency", 'd', ARG_NEEDED, 0, WORD, NULL, NULL },
    { "kill-on-invalid-dep", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "hold", 'H', ARG_NONE, 0, ANY, NULL, NULL },
    { "requeue", 0, ARG_NONE, 0, ANY, "SBATCH_REQUEUE", NULL },
    { "no-requeue", 0, ARG_NONE, 0, ANY, "SBATCH_NO_REQUEUE", NULL },
    { "no-kill", 'k', ARG_MAYBE, 0, ANY, "SBATCH_NO_KILL", NULL },
    { "nice", 0, ARG_MAYBE, 0, INT, NULL, NULL },
    { "priority", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "signal", 0, ARG_NEEDED, 0, WORD, "SBATCH_SIGNAL", NULL },
    { "licenses", 'L', ARG_NEEDED, 0, WORD, NULL, NULL },
    { "network", 0, ARG_NEEDED, 0, WORD, "SBATCH_NETWORK", NULL },
    { "bb", 0, ARG_NEEDED, 0, ANY, "SBATCH_BURST_BUFFER", NULL },
    { "bbf", 0, ARG_NEEDED, OPTION_PATH, ANY, NULL, NULL },
    { "power", 0, ARG_NEEDED, 0, WORD, "SBATCH_POWER", NULL },
    { "profile", 0, ARG_NEEDED, 0, WORD, "SBATCH_PROFILE", NULL },
    { "acctg-freq", 0, ARG_NEEDED, 0, WORD, "SBATCH_ACCTG_FREQ", NULL },
    { "wckey", 0, ARG_NEEDED, 0, WORD, "SBATCH_WCKEY", NULL },
    { "mcs-label", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "comment", 0, ARG_NEEDED, 0, ANY, NULL, NULL },
    { "mail-type", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "mail-user", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "reboot", 0, ARG_NONE, 0, ANY, NULL, NULL },
    { "wait-all-nodes", 0, ARG_NEEDED, 0, NUM, "SBATCH_WAIT_ALL_NODES", NULL },
    { "propagate", 0, ARG_MAYBE, 0, WORD, NULL, NULL },
    { "export", 0, ARG_NEEDED, 0, ANY, "SBATCH_EXPORT", NULL },
    { "get-user-env", 0, ARG_MAYBE, 0, ANY, "SBATCH_GET_USER_ENV", NULL },
    { "container", 0, ARG_NEEDED, OPTION_PATH, ANY, "SBATCH_CONTAINER", NULL },
    { "uid", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "gid", 0, ARG_NEEDED, 0, WORD, NULL, NULL },
    { "array", 'a', ARG_NEEDED, OPTION_OURS, ANY, "SBATCH_ARRAY_INX", SPLIT },
    { "chdir", 'D', ARG_NEEDED, OPTION_PATH, ANY, NULL, NULL },
    { "input", 'i', ARG_NEEDED, OPTION_PATH, ANY, "SBATCH_INPUT", NULL },
    { "output", 'o', ARG_NEEDED, OPTION_PATH | OPTION_TASKFILE, ANY, "SBATCH_OUTPUT", NULL },
    { "error", 'e', ARG_NEEDED, OPTION_PATH | OPTION_TASKFILE, ANY, "SBATCH_ERROR", NULL },
    { "open-mode", 0, ARG_NEEDED, 0, is_open_mode, "append or truncate", "SBATCH_OPEN_MODE", NULL },
    { "clusters", 'M', ARG_NEEDED, NO("a run belongs to one cluster; choose it by SLURM_CONF") },
    { "wrap", 0, ARG_NEEDED, NO("the script is recon's; put the program after '--'") },
    { "export-file", 0, ARG_NEEDED, NO("the script replays the pinned environment; name more variables in 'env'") },
    { "ignore-pbs", 0, ARG_NONE, NO("recon's script holds no PBS directive") },
    { "wait", 'W', ARG_NONE, NO(PRINTS) },
    { "quiet", 'Q', ARG_NONE, NO(PRINTS) },
    { "verbose", 'v', ARG_NONE, NO(PRINTS) },
    { 0 },
};

static const struct {
    const char *alias, *name;
} aliases[] = { { "tasks-per-node", "ntasks-per-node" }, { "cluster", "clusters" } };

const struct sbatch_option *sbatch_option_find(const char *name)
{
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (str_eq(name, aliases[i].alias))
            name = aliases[i].name;
    for (const struct sbatch_option *o = sbatch_options; o->name; o++)
        if (str_eq(o->name, name))
            return o;
    return NULL;
}

static bool task_file(const char *pattern)
{
    for (const char *p = strchr(pattern, '%'); p; p = strchr(p + 1 + (p[1] == '%'), '%'))
        if (p[1 + strspn(p + 1, "0123456789")] && strchr("ajJ", p[1 + strspn(p + 1, "0123456789")]))
            return true;
    return str_eq(pattern, "/dev/null") || str_eq(pattern, "none");
}

int sbatch_option_check(const char *name, const char *value, struct err *err)
{
    const struct sbatch_option *o = sbatch_option_find(name);
    const char *near;

    if (!o) {
        near = str_nearest(name, &sbatch_options->name, sizeof(*o), COUNT(sbatch_options) - 1);
        return err_set(err, CODE_USAGE, "sbatch has no option '%s'%s%s%s", name, near ? ", the nearest is '" : "",
                       near ? near : "", near ? "'" : "");
    }
    if (o->flags & (OPTION_OURS | OPTION_REFUSED))
        return err_set(err, CODE_USAGE, "sbatch's option '%s' is not taken: %s", name, o->why);
    if (o->arg == ARG_NEEDED && !value)
        return err_set(err, CODE_USAGE, "sbatch's option '%s' wants a value", name);
    if (o->arg == ARG_NONE && value)
        return err_set(err, CODE_USAGE, "sbatch's option '%s' takes no value, found '%s'; write true or false", name,
                       value);
    if (!value)
        return 0;
    if (strpbrk(value, "\r\n"))
        return err_set(err, CODE_USAGE, "the value of sbatch's option '%s' holds a line break", name);
    if (o->check && o->check(value))
        return err_set(err, CODE_USAGE, "sbatch's option '%s' wants %s, found '%s'", name, o->form, value);
    if ((o->flags & OPTION_TASKFILE) && !task_file(value))
        return err_set(err, CODE_USAGE,
                       "sbatch's option '%s' is '%s': all tasks would write one file; put %%a or %%j into it", name,
                       value);
    return 0;
}
