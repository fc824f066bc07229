/* recon-run: the steps of a reconstruction, timed one by one. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "recon-run.h"

#define SELFTEST_MS 30000.0
#define MAX_REPEAT 100000

enum { K_PIPELINE = 256, K_DATASET, K_OUT, K_DEVICE, K_KERNELS, K_EVENTS, K_REPEAT, K_THREADS, K_SET, K_RUN, K_SUB,
       K_TASK, K_LIST, K_DESCRIBE, K_ESTIMATE, K_SELFTEST, K_FORMAT, K_DEADLINE, K_VERBOSE, K_SELFTEST_KERNEL,
       K_SCRATCH };

static const struct argp_option rows[] = {
    { "pipeline", K_PIPELINE, "PIPELINE", 0, "A file, or the name of a shipped one (rgbd-to-mesh)", 1 },
    { "dataset", K_DATASET, "PATH", 0, "What its first step reads", 1 },
    { "out", K_OUT, "DIR", 0, "Where results go; they appear whole or not at all", 1 },
    { "device", K_DEVICE, "auto|cpu|ref|cuda[:N]", 0, "Where steps run; ref: plain references (default: auto)", 1 },
    { "set", K_SET, "STEP.PARAM=VALUE", 0, "A parameter over what the pipeline says; may be given again", 1 },
    { "threads", K_THREADS, "N", 0, "Threads of host kernels (default: the CPUs of this process)", 1 },
    { "repeat", K_REPEAT, "N", 0, "Run the steps N times and tell medians", 1 },
    { "deadline", K_DEADLINE, "SECONDS", 0, "The longest that a step may take (default: none)", 1 },
    { "events", K_EVENTS, "FILE", 0, "Write events there; the file must not exist", 1 },
    { "format", K_FORMAT, "text|json", 0, "json: the report on stdout instead of a table on stderr", 1 },
    { "run", K_RUN, "RUN", 0, "All datasets of one array slot of a run directory; with --sub and --task", 2 },
    { "sub", K_SUB, "N", 0, "Number of the submission", 2 },
    { "task", K_TASK, "SLOT", 0, "Number of the array slot", 2 },
    { "list", K_LIST, NULL, 0, "Kernels, their modules, inputs and outputs", 3 },
    { "describe", K_DESCRIBE, "KERNEL", 0, "Its ports and parameters with unit, default and range", 3 },
    { "estimate", K_ESTIMATE, NULL, 0, "Memory and time of each step before running", 3 },
    { "selftest", K_SELFTEST, NULL, 0, "Each kernel of the pipeline (none given: all) on a tiny input, 30 s each", 3 },
    { "kernels", K_KERNELS, "DIR", 0, "Folder of kernel modules (default: lib/recon beside this program)", 4 },
    { "verbose", K_VERBOSE, NULL, 0, "Show notes of kernels too", 4 },
    { "selftest-kernel", K_SELFTEST_KERNEL, "KERNEL", OPTION_HIDDEN, NULL, 4 },
    { "scratch", K_SCRATCH, "DIR", OPTION_HIDDEN, NULL, 4 },
    { 0 },
};

static void bad_value(struct options *o, const char *option, const char *value, const char *wanted)
{
    if (!o->err.code)
        err_set(&o->err, CODE_USAGE, "--%s '%s': wanted %s", option, value, wanted);
}

static void take_int(struct options *o, const char *option, const char *value, int64_t most, int64_t *ret)
{
    if (str_to_i64(value, ret) || *ret < 0 || *ret > most)
        bad_value(o, option, value, "a whole number that is not negative and not too large");
}

static void take_set(struct options *o, const char *value)
{
    const char *equals = strchr(value, '=');
    char *key;

    if (!equals || equals == value) {
        bad_value(o, "set", value, "step.parameter=value");
        return;
    }
    key = xstrndup(value, (size_t)(equals - value));
    conf_map_set(&o->set, key, equals + 1, CONF_KIND_TEXT);
    free(key);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case K_PIPELINE: o->pipeline = value; break;
    case K_DATASET: o->dataset = value; break;
    case K_OUT: o->out = value; break;
    case K_DEVICE: o->device = value; break;
    case K_KERNELS: o->kernels = value; break;
    case K_EVENTS: o->events = value; break;
    case K_RUN: o->run = value; break;
    case K_DESCRIBE: o->describe = value; break;
    case K_SELFTEST_KERNEL: o->selftest_kernel = value; break;
    case K_SCRATCH: o->scratch = value; break;
    case K_LIST: o->list = true; break;
    case K_ESTIMATE: o->estimate = true; break;
    case K_SELFTEST: o->selftest = true; break;
    case K_VERBOSE: o->verbose = true; break;
    case K_SET: take_set(o, value); break;
    case K_REPEAT: take_int(o, "repeat", value, MAX_REPEAT, &o->repeat); break;
    case K_THREADS: take_int(o, "threads", value, 4096, &o->threads); break;
    case K_SUB: take_int(o, "sub", value, UINT32_MAX, &o->sub); break;
    case K_TASK: take_int(o, "task", value, UINT32_MAX, &o->task); break;
    case K_DEADLINE:
        if (str_to_double(value, &o->deadline) || o->deadline < 0)
            bad_value(o, "deadline", value, "a number of seconds");
        break;
    case K_FORMAT:
        o->json = str_eq(value, "json");
        if (!o->json && !str_eq(value, "text"))
            bad_value(o, "format", value, "text or json");
        break;
    case ARGP_KEY_ARG:
        if (!o->err.code)
            err_set(&o->err, CODE_USAGE, "unexpected argument '%s'; see --help", value);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void say(void *verbose, enum level level, const char *text)
{
    if (level == LEVEL_ERROR)
        cli_error(0, "%s", text);
    else if (level == LEVEL_WARN)
        cli_warn("%s", text);
    else if (verbose && *(const bool *)verbose)
        cli_error(0, "note: %s", text);
}

/* ---- what all ways need ---- */

static int set_up(const struct options *o, struct setup *s, struct err *err)
{
    char *path = NULL;
    int rc = -1;

    if (modules_load(o->kernels, &s->modules, err))
        return -1;
    if (o->list || o->describe || o->selftest_kernel || (o->selftest && !o->pipeline) || o->run)
        return 0;
    path = pipeline_path(o->pipeline);
    if (pipeline_load(path, &s->pipeline, err))
        goto out;
    if (pipeline_set_all(&s->pipeline, &o->set, "--set", err))
        goto out;
    if (device_choose(&s->modules, o->device, &s->device, err))
        goto out;
    rc = plan_make(&s->pipeline, &s->modules, &s->device, &s->plan, err);
out:
    free(path);
    return rc;
}

static void tear_down(struct setup *s)
{
    plan_release(&s->plan);
    pipeline_release(&s->pipeline);
    modules_release(&s->modules);
}

/* ---- self-tests ---- */

/* In the child: one kernel of one device. */
static int selftest_child(const struct options *o, struct setup *s, struct err *err)
{
    const struct recon_kernel *k;
    const struct module *m;
    struct runner *r;
    char *host;
    int rc;

    host = xstrndup(o->device, strcspn(o->device, ":"));
    m = modules_named(&s->modules, host);
    free(host);
    k = m ? modules_kernel(&s->modules, m, o->selftest_kernel, &m) : NULL;
    if (!k)
        return err_set(err, CODE_USAGE, "no kernel '%s' on '%s'", o->selftest_kernel, o->device);
    if (device_choose(&s->modules, o->device, &s->device, err))
        return -1;
    r = runner_new(&s->device, (int)o->threads, err);
    rc = r ? runner_selftest(r, k, m, o->scratch ? o->scratch : "/tmp", err) : -1;
    runner_free(r);
    return rc;
}

/* One kernel in a child, so that a crash or a hang is told and not shared. */
static int selftest_one(const struct options *o, const char *kernel, const char *device, const char *scratch,
                        struct table *t)
{
    char *self = path_self();
    const char *argv[] = { self ? self : "recon-run", "--selftest-kernel", kernel, "--device", device, "--scratch",
                           scratch, o->kernels ? "--kernels" : NULL, o->kernels, NULL };
    struct child c = { .argv = argv, .env = environ, .deadline_ms = SELFTEST_MS };
    struct err err = { 0 };
    double start = clock_ms();
    int code = 0;

    if (child_run(&c, &err))
        code = err.code;
    else if (WIFSIGNALED(c.status))
        code = 128 + WTERMSIG(c.status);
    else
        code = WEXITSTATUS(c.status);
    table_row(t);
    table_cell(t, "%s", code ? "failed" : "ok");
    table_cell(t, "%s", kernel);
    table_cell(t, "%s", device);
    table_cell(t, "%.0f", clock_ms() - start);
    if (code && err.code)
        table_cell(t, "%s", err.text);
    else if (code > 128)
        table_cell(t, "killed by signal %d (%s)", code - 128, strsignal(code - 128));
    else
        table_cell(t, "%.*s", (int)strcspn(c.errout.s ? c.errout.s : "", "\n"), c.errout.s ? c.errout.s : "");
    str_release(&c.out);
    str_release(&c.errout);
    free(self);
    return code;
}

static int run_selftest(const struct options *o, struct setup *s)
{
    struct table *t = table_new();
    char scratch[] = "/tmp/recon-selftest.XXXXXX";
    struct strv kernels = { 0 };
    size_t failed = 0;
    int first = 0;

    if (!s->device.module) {
        struct err err = { 0 };

        if (device_choose(&s->modules, o->device, &s->device, &err)) {
            table_free(t);
            return cli_fail(&err);
        }
    }
    for (size_t i = 0; i < s->plan.steps.n; i++)
        strv_add(&kernels, s->plan.steps.v[i].kernel->name);
    for (const struct recon_kernel *const *k = s->device.module->m->kernels; !o->pipeline && k && *k; k++)
        strv_add(&kernels, (*k)->name);
    table_columns(t, "self-test|kernel|on|>ms|reason");
    if (!mkdtemp(scratch))
        strcpy(scratch, "/tmp");
    for (size_t i = 0; i < kernels.n; i++) {
        const struct module *m;
        int code;

        modules_kernel(&s->modules, s->device.module, kernels.v[i], &m);
        code = selftest_one(o, kernels.v[i], m == s->device.module ? s->device.name : m->name, scratch, t);
        failed += code != 0;
        first = first ? first : code;
    }
    if (!str_eq(scratch, "/tmp"))
        dir_remove(scratch);
    table_print(t, stdout);
    printf("%zu passed, %zu failed\n", kernels.n - failed, failed);
    table_free(t);
    strv_release(&kernels);
    return first;
}

/* ---- a task of a run ---- */

static struct events *launcher_events(void)
{
    const char *fd = getenv("RECON_EVENTS_FD"), *start = getenv("RECON_EVENTS_START");
    double ms0 = clock_ms();
    int64_t n;

    if (!fd || str_to_i64(fd, &n) || n < 3 || n > 1 << 20)
        return NULL;
    if (start)
        str_to_double(start, &ms0);
    return events_from_fd((int)n, ms0);
}

/* Why there was no dataset to tell it by. */
static void tell_failure(struct events *e, const struct err *err)
{
    enum scope scope = err->code == CODE_NODE ? SCOPE_NODE : err->code == CODE_DATA ? SCOPE_DATA : SCOPE_JOB;
    struct findings one = { 0 };

    if (!e)
        return;
    findings_add(&one, "runner-failed", LEVEL_ERROR, scope, "recon-run", "%s", err->text);
    events_finding(e, &one.v[0]);
    findings_release(&one);
}

static int64_t number_of_env(const char *name, int64_t other)
{
    const char *s = getenv(name);
    int64_t n;

    return s && str_to_i64(s, &n) == 0 && n >= 0 ? n : other;
}

static int run_task(const struct options *o, struct setup *s)
{
    struct task t = { .run = o->run, .sub = (uint32_t)o->sub, .slot = (uint32_t)o->task, .modules = &s->modules,
                      .device = &s->device, .set = &o->set, .threads = (int)o->threads,
                      .deadline_ms = o->deadline * 1e3, .events = launcher_events(), .tell = say,
                      .arg = (void *)(uintptr_t)&o->verbose };
    struct err err = { 0 };
    int rc;

    t.attempt = (uint32_t)number_of_env("RECON_ATTEMPT", number_of_env("SLURM_RESTART_COUNT", 0));
    t.ends_at = (double)number_of_env("SLURM_JOB_END_TIME", 0);
    rc = device_choose(&s->modules, o->device, &s->device, &err);
    if (rc == 0)
        rc = task_run(&t, &err);
    if (rc && !t.failed) { /* a dataset's own failure was told when it happened */
        cli_fail(&err);
        tell_failure(t.events, &err);
    }
    if (t.events)
        events_close(t.events, NULL);
    if (t.done + t.failed + t.skipped)
        fprintf(stderr, "task %lld: %llu done, %llu failed, %llu skipped\n", (long long)o->task,
                (unsigned long long)t.done, (unsigned long long)t.failed, (unsigned long long)t.skipped);
    return rc ? err.code : 0;
}

/* ---- the program ---- */

/* Started by recon-launch without more than a device: the task stands in the environment. */
static void task_from_env(struct options *o)
{
    if (o->run || o->pipeline || o->list || o->describe || o->selftest || o->selftest_kernel || o->estimate ||
        !getenv("RECON_RUN"))
        return;
    o->run = getenv("RECON_RUN");
    if (o->sub < 0)
        o->sub = number_of_env("RECON_SUB", -1);
    if (o->task < 0)
        o->task = number_of_env("RECON_TASK", -1);
}

static void on_signal(int signal)
{
    runner_cancel(signal);
}

static void take_signals(void)
{
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGHUP, on_signal);
}

static int check_options(const struct options *o, struct err *err)
{
    if (o->err.code) {
        *err = o->err;
        return -1;
    }
    if (o->list || o->describe || o->selftest || o->selftest_kernel)
        return 0;
    if (o->run)
        return o->sub >= 0 && o->task >= 0 ? 0 : err_set(err, CODE_USAGE, "--run wants --sub N and --task SLOT");
    if (o->repeat < 1)
        return err_set(err, CODE_USAGE, "--repeat 0: wanted 1 or more");
    if (!o->pipeline)
        return err_set(err, CODE_USAGE, "--pipeline is missing: a file, or a name such as rgbd-to-mesh");
    if (!o->out && !o->estimate)
        return err_set(err, CODE_USAGE, "--out is missing: the folder for results");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = { rows, parse, NULL,
                                      "Runs the steps of a reconstruction pipeline and times each.", NULL, NULL, NULL };
    struct options o = { .device = "auto", .sub = -1, .task = -1, .repeat = 1 };
    struct setup s = { 0 };
    struct err err = { 0 };
    int rest, rc = cli_parse(&argp, argc, argv, &rest, &o);

    if (rc)
        return rc;
    task_from_env(&o);
    signal(SIGPIPE, SIG_IGN);
    rc = check_options(&o, &err) || set_up(&o, &s, &err);
    take_signals(); /* until here an end at once leaves nothing behind */
    if (rc && o.run) {
        struct events *e = launcher_events();

        tell_failure(e, &err);
        if (e)
            events_close(e, NULL);
    }
    if (rc)
        rc = cli_fail(&err);
    else if (o.list)
        tell_kernels(&s.modules, o.json, stdout);
    else if (o.describe)
        rc = tell_kernel(&s.modules, o.describe, o.json, stdout, &err) ? cli_fail(&err) : 0;
    else if (o.selftest_kernel)
        rc = selftest_child(&o, &s, &err) ? cli_fail(&err) : 0;
    else if (o.selftest)
        rc = run_selftest(&o, &s);
    else if (o.run)
        rc = run_task(&o, &s);
    else
        rc = o.estimate ? run_estimate(&o, &s) : run_one(&o, &s);
    tear_down(&s);
    conf_map_release(&o.set);
    return cli_end(rc);
}
