/* recon-launch - runs a task on the allocated node: looks at the node, judges it against the pin, restores the pinned
 * environment, runs the program as a child and records how it ended. */
#include "config.h"
#include "cli.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PROBE_MS 5000.0
#define GRACE_MS 20000.0 /* within Slurm's default KillWait of 30 s, so that the end is still written */

/* ---- command line ---------------------------------------------------------------------------------------------- */

enum { OPT_RUN = 256, OPT_SUB, OPT_TASK, OPT_CHECK, OPT_EXEC, OPT_SKIP, OPT_FORMAT, OPT_GRACE, OPT_NO_BIND, OPT_TASK_PROLOG, OPT_EACH, OPT_SAVE, OPT_FACTS };

static const struct argp_option options[] = {
    { "pin", 'p', "PIN", 0, "what was promised: libraries and environment (default: RECON_PIN)", 0 },
    { "run", OPT_RUN, "RUN", 0, "run directory that the task is recorded in", 0 },
    { "sub", OPT_SUB, "N", 0, "number of the submission in RUN", 0 },
    { "task", OPT_TASK, "SLOT", 0, "array slot of this task", 0 },
    { "each", OPT_EACH, NULL, 0, "run PROGRAM once for each dataset of the task even if no argument asks for one", 0 },
    { "save-facts", OPT_SAVE, "DIR", 0, "save this node's facts as DIR/NODE.facts and become PROGRAM, which starts a container", 0 },
    { "facts", OPT_FACTS, "FILE", 0, "in a container: what the node is, as saved outside (default: RECON_HOST_FACTS)", 0 },
    { "check-only", OPT_CHECK, NULL, 0, "judge, print the findings and end", 0 },
    { "exec", OPT_EXEC, NULL, 0, "judge, then become PROGRAM: no watching, no record", 0 },
    { "skip", OPT_SKIP, "RULE", 0, "leave a rule out; may be repeated", 0 },
    { "format", OPT_FORMAT, "text|jsonl", 0, "findings as text (default) or JSON lines", 0 },
    { "grace", OPT_GRACE, "SECONDS", 0, "from TERM or INT until the program is killed (default 20)", 0 },
    { "no-bind", OPT_NO_BIND, NULL, 0, "do not confine PROGRAM to the CPUs near its GPUs", 0 },
    { "task-prolog", OPT_TASK_PROLOG, NULL, 0, "be Slurm's TaskProlog: print the pinned variables that are not as pinned", 0 },
    { "verbose", 'v', NULL, 0, "show notes too", 0 },
    { 0 },
};

static int parse_u32(const char *option, const char *s, uint32_t *ret)
{
    uint64_t n;

    if (str_to_u64(s, &n) || n > UINT32_MAX)
        return cli_error(CODE_USAGE, "--%s: '%s' is no number from 0 to %u", option, s, UINT32_MAX);
    *ret = (uint32_t)n;
    return 0;
}

struct asked {
    struct launch *l;
    bool sub, task, prolog;
    int bad;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct asked *a = state->input;
    struct launch *l = a->l;
    double s;

    switch (key) {
    case 'p': l->pin_path = arg; break;
    case 'v': l->verbose = true; break;
    case OPT_RUN: l->run_path = arg; break;
    case OPT_SUB: a->bad |= parse_u32("sub", arg, &l->sub); a->sub = true; break;
    case OPT_TASK: a->bad |= parse_u32("task", arg, &l->slot); a->task = true; break;
    case OPT_SAVE: l->save_facts = arg; break;
    case OPT_FACTS: l->host_facts = arg; break;
    case OPT_EACH: l->each = true; break;
    case OPT_CHECK: l->check_only = true; break;
    case OPT_EXEC: l->exec = true; break;
    case OPT_TASK_PROLOG: a->prolog = true; break;
    case OPT_NO_BIND: l->no_bind = true; break;
    case OPT_SKIP: strv_add(&l->skip, arg); break;
    case OPT_FORMAT:
        l->jsonl = str_eq(arg, "jsonl");
        if (!l->jsonl && !str_eq(arg, "text"))
            a->bad = cli_error(CODE_USAGE, "--format: '%s' is neither text nor jsonl", arg);
        break;
    case OPT_GRACE:
        if (str_to_double(arg, &s) || s < 0 || s > 1e6)
            a->bad = cli_error(CODE_USAGE, "--grace: '%s' is no number of seconds", arg);
        else
            l->grace_ms = s * 1e3;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int check_usage(const struct launch *l, const struct asked *a)
{
    if (a->bad)
        return CODE_USAGE;
    if (l->save_facts)
        return l->argv[0] && !l->run_path && !l->check_only
                   ? 0
                   : cli_error(CODE_USAGE, "--save-facts DIR -- PROGRAM ARG...: it goes with a program, not with --run or --check-only");
    if (!l->pin_path || !*l->pin_path)
        return cli_error(CODE_USAGE, "no pin: give --pin PIN (recon-pin capture makes one) or set RECON_PIN");
    if (!l->argv[0] && !l->check_only)
        return cli_error(CODE_USAGE, "no program: recon-launch --pin PIN -- PROGRAM ARG...");
    if (!l->run_path != !a->sub || !l->run_path != !a->task)
        return cli_error(CODE_USAGE, "--run, --sub and --task go together");
    if (l->each && !l->run_path)
        return cli_error(CODE_USAGE, "--each goes with --run, whose datasets it means");
    if (l->exec && l->run_path)
        return cli_error(CODE_USAGE, "--exec leaves nobody to record how the task ends: not with --run");
    for (size_t i = 0; i < l->skip.n; i++) {
        bool known = false;

        for (const struct rule *const *r = check_rules; *r && !known; r++)
            known = str_eq((*r)->name, l->skip.v[i]);
        if (!known)
            cli_warn("--skip: no rule is called '%s'; see recon-check --list-rules", l->skip.v[i]);
    }
    return 0;
}

static int parse(int argc, char **argv, struct launch *l, bool *ret_prolog)
{
    static const struct argp argp = {
        options, parse_option, "--pin PIN [--run RUN --sub N --task SLOT] -- PROGRAM [ARG...]",
        "Judges this node against a pin, restores the pinned environment and runs a program.", NULL, NULL, NULL
    };
    struct asked a = { .l = l };
    int rest = argc, rc;

    l->pin_path = getenv("RECON_PIN");
    l->host_facts = getenv("RECON_HOST_FACTS");
    l->grace_ms = GRACE_MS;
    rc = cli_parse(&argp, argc, argv, &rest, &a);
    if (rc)
        return rc;
    l->argv = argv + rest;
    *ret_prolog = a.prolog;
    return a.prolog ? a.bad ? CODE_USAGE : 0 : check_usage(l, &a);
}

/* The task ends before the program was started. */
static int refuse(struct launch *l, int status)
{
    return record_end(l, &(struct event_end){ .status = "refused", .exit = status });
}

/* ---- what was promised, what is here --------------------------------------------------------------------------- */

static int read_pin(struct launch *l, struct err *err)
{
    if (file_trusted(l->pin_path, NULL, err) || pin_read(l->pin_path, &l->pin, err)) {
        if (err->code == CODE_NOTFOUND) /* which would read as "program not found" */
            err->code = CODE_IO;
        return err_prefix(err, "pin");
    }
    return 0;
}

/* In a container the loader, libraries and toolkits are the image's; hardware and driver are the node's, as seen outside. */
static void take_host(struct launch *l)
{
    struct facts host = { 0 };
    struct err err = { 0 };

    if (facts_read(l->host_facts, &host, &err) == 0)
        facts_take_host(&l->facts, &host);
    else
        strv_addf(&l->facts.unknown, "host: %s", err.text);
    facts_release(&host);
}

static void probe(struct launch *l)
{
    struct strv toolkits = { 0 };
    struct facts_request q = { .toolkits = &toolkits, .deadline_ms = PROBE_MS, .kept = true };

    facts_toolkits_of(l->env.v, &toolkits);
    facts_probe_for(&q, &l->facts, NULL); /* what fails is told in facts.unknown */
    if (l->host_facts && *l->host_facts)
        take_host(l);
    strv_release(&toolkits);
}

/* A descriptor for the program, far from those that scripts use by number. A program that is run for each dataset gets
 * none: the record is then ours alone. */
static bool pass_events(struct launch *l)
{
    int fd = l->run && !l->each ? events_fd(l->events) : -1;

    if (fd < 0)
        return false;
    if (l->events_fd >= 0)
        return true;
    l->events_fd = fcntl(fd, F_DUPFD, 100);
    if (l->events_fd < 0)
        l->events_fd = fd;
    else
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return true;
}

/* The pinned variables over the received ones, and recon's own. */
static void make_environment(struct launch *l)
{
    char *run = l->run ? xstrdup(run_path(l->run)) : NULL, number[32];
    char *pin = path_absolute(l->pin_path);

    strv_release(&l->env);
    pin_environment(l->body, environ, &l->env);
    env_set(&l->env, "RECON_PIN", pin);
    env_set(&l->env, "RECON_EVENTS_FD", NULL); /* an outer launcher's are not for this program */
    env_set(&l->env, "RECON_EVENTS_START", NULL);
    if (run) {
        env_set(&l->env, "RECON_RUN", run);
        snprintf(number, sizeof(number), "%u", l->sub);
        env_set(&l->env, "RECON_SUB", number);
        snprintf(number, sizeof(number), "%u", l->slot);
        env_set(&l->env, "RECON_TASK", number);
        snprintf(number, sizeof(number), "%u", l->attempt);
        env_set(&l->env, "RECON_ATTEMPT", number);
    }
    if (pass_events(l)) {
        snprintf(number, sizeof(number), "%d", l->events_fd);
        env_set(&l->env, "RECON_EVENTS_FD", number);
        snprintf(number, sizeof(number), "%.3f", clock_ms() - events_now(l->events));
        env_set(&l->env, "RECON_EVENTS_START", number);
    }
    free(run);
    free(pin);
}

static bool same_program(const char *a, const char *b)
{
    char *x = realpath(a, NULL), *y = realpath(b, NULL);
    bool same = str_eq(a, b) || (x && str_eq(x, y));

    free(x);
    free(y);
    return same;
}

void launch_take(struct launch *l, size_t body)
{
    const struct pin *taken = pin_body(&l->pin, body);
    char *path = l->argv[0] ? launch_program(l, NULL) : NULL;

    for (size_t i = 0; path && i < pin_bodies(&l->pin); i++)
        if (same_program(path, pin_body(&l->pin, i)->objects.v[0].path)) {
            l->argv[0] = taken->objects.v[0].path;
            break;
        }
    free(path);
    l->body = taken;
    make_environment(l);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

char *launch_program(const struct launch *l, struct err *err)
{
    const char *name = l->argv[0], *list = env_get(l->env.v, "PATH");
    struct strv dirs = { 0 };
    char *found = NULL;

    if (strchr(name, '/'))
        return cli_executable(name, err) ? NULL : xstrdup(name);
    if (list)
        strv_split(&dirs, list, ":");
    err_set(err, CODE_NOTFOUND, "program '%s' is in no folder of PATH", name);
    for (size_t i = 0; i < dirs.n && !found; i++) {
        found = *dirs.v[i] == '/' ? path_join(dirs.v[i], name) : NULL; /* "" and relative ones are where we stand */
        if (found && access(found, X_OK)) {
            free(found);
            found = NULL;
        }
    }
    strv_release(&dirs);
    return found;
}

static void bind_cpus(struct launch *l)
{
    const char *s = getenv("SLURM_CPUS_PER_TASK");
    struct gpu_list gpus;
    int64_t wanted = 0;
    int n;

    if (l->no_bind)
        return;
    if (s && str_to_i64(s, &wanted))
        wanted = 0;
    gpus_of_task(&l->facts, environ, &gpus);
    n = bind_near(&l->facts, &gpus, wanted > 65536 ? 65536 : (int)wanted);
    if (n && l->verbose)
        fprintf(stderr, "recon-launch: confined to the %d CPUs near %zu GPU%s\n", n, gpus.n, plural(gpus.n));
    free(gpus.v);
}

void launch_account(struct launch *l, const struct ended *e)
{
    struct findings list = { 0 };

    l->user_ms += e->user_ms;
    l->sys_ms += e->sys_ms;
    l->max_rss = e->max_rss > l->max_rss ? e->max_rss : l->max_rss;
    for (size_t i = 0; i < e->left.n; i++) {
        finding_explain(findings_add(&list, "processes-left", LEVEL_WARN, SCOPE_NODE, e->left.v[i],
                                     "'%s' was alive after '%s' had ended, and was killed", e->left.v[i], l->argv[0]),
                        NULL, "the program started it and did not wait for it",
                        "let the program end its children (in a script: wait), or give them a task of their own");
        events_finding(l->events, &list.v[i]);
        cli_warn("processes-left: %s", list.v[i].text);
    }
    findings_release(&list);
}

static int run_once(struct launch *l, const char *path, struct slot_sum *ret, int *ret_signal, struct err *err)
{
    struct ended e;
    int rc = keeper_run(&l->keeper, path, l->argv, l->env.v, &e, err);

    if (rc == 0) {
        launch_account(l, &e);
        record_count(l, e.status, ret);
        *ret_signal = e.signal;
    }
    ended_release(&e);
    return rc;
}

static const char *end_status(const struct launch *l, int status)
{
    if (status == 0)
        return "ok";
    return l->keeper.told || status == 128 + SIGKILL ? "killed" : "failed";
}

static int run_program(struct launch *l, struct err *err)
{
    char *path = launch_program(l, err);
    struct slot_sum sum = { 0 };
    int sig = 0, rc = path ? 0 : -1;

    if (path && l->exec)
        rc = keeper_exec(&l->keeper, path, l->argv, l->env.v, err);
    else if (path && l->each)
        slot_run(l, path, &sum);
    else if (path)
        rc = run_once(l, path, &sum, &sig, err);
    free(path);
    if (rc) {
        cli_fail(err);
        return record_end(l, &(struct event_end){ .status = "failed", .exit = err->code, .failed = l->n_datasets });
    }
    return record_end(l, &(struct event_end){ .status = end_status(l, sum.status),
                                             .exit = sum.status,
                                             .signal = sig,
                                             .done = sum.done,
                                             .failed = sum.failed,
                                             .user_ms = l->user_ms,
                                             .sys_ms = l->sys_ms,
                                             .max_rss = l->max_rss });
}

/* ---- the steps ------------------------------------------------------------------------------------------------- */

/* Outside of a container: the node's facts are saved for the launcher inside. A probe that fails stops nothing. */
static int save_and_exec(struct launch *l)
{
    char *path, *program;
    struct err err = { 0 };

    keeper_init(&l->keeper, l->grace_ms);
    record_place(l);
    probe(l);
    path = xasprintf("%s/%s.facts", l->save_facts, l->node);
    for (char **e = environ; *e; e++)
        strv_add(&l->env, *e);
    if (dir_make(l->save_facts, 0777, &err) || facts_write(path, &l->facts, &err)) {
        cli_warn("the node's facts are not known inside: %s", err.text);
        env_set(&l->env, "RECON_HOST_FACTS", NULL);
    } else {
        env_set(&l->env, "RECON_HOST_FACTS", path);
    }
    program = launch_program(l, &err);
    if (program)
        keeper_exec(&l->keeper, program, l->argv, l->env.v, &err);
    free(program);
    free(path);
    return cli_fail(&err);
}

void launch_choose(struct launch *l)
{
    make_environment(l);
    probe(l);
    launch_judge(l);
}

static int launch(struct launch *l)
{
    struct err err = { 0 };
    int status;

    keeper_init(&l->keeper, l->grace_ms);
    record_place(l);
    if (record_open(l, &err))
        return cli_fail(&err);
    if (read_pin(l, &err)) {
        record_attempt(l);
        return refuse(l, cli_fail(&err));
    }
    l->body = &l->pin;
    make_environment(l);
    probe(l);
    record_attempt(l);
    status = launch_verdict(l);
    if (status || l->check_only)
        return refuse(l, status);
    if (keeper_told(&l->keeper))
        return record_end(l, &(struct event_end){ .status = "killed", .exit = 128 + l->keeper.told,
                                                 .signal = l->keeper.told });
    bind_cpus(l);
    return run_program(l, &err);
}

static void launch_release(struct launch *l)
{
    if (l->events)
        events_close(l->events, NULL);
    keeper_release(&l->keeper);
    findings_release(&l->findings);
    strv_release(&l->env);
    strv_release(&l->columns);
    strv_release(&l->all_columns);
    strv_release(&l->skip);
    facts_release(&l->facts);
    pin_release(&l->pin);
    submap_release(&l->map);
    run_free(l->run);
    free(l->node);
    free(l->job);
}

int main(int argc, char **argv)
{
    struct launch l = { .events_fd = -1 };
    bool prolog = false;
    int status = parse(argc, argv, &l, &prolog);

    if (status == 0)
        status = prolog ? task_prolog(&l) : l.save_facts ? save_and_exec(&l) : launch(&l);
    launch_release(&l);
    return cli_end(status);
}
