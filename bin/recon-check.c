/* recon-check - judge programs and pins without running them: facts, resolve, check, report. Static-pie, loads nothing:
 * no LD_LIBRARY_PATH, LD_PRELOAD or foreign libc can stop it from reporting. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "check.h"
#include "check_host.h"
#include "check_images.h"
#include "check_node.h"
#include "check_root.h"
#include "cli.h"
#include "cli_rules.h"
#include "cli_watch.h"
#include "variants.h"

enum { KEY_FACTS = 256, KEY_ENV_FILE, KEY_FORMAT, KEY_LIBS, KEY_SAVE, KEY_ROOT, KEY_SKIP, KEY_LIST, KEY_IMAGES, KEY_HOST, KEY_PACKAGE,
       KEY_TOOLKIT, KEY_ARCH, KEY_COMPILER, KEY_WHERE, KEY_ARCH_LIST,
       KEY_NODE, KEY_CONFIG, KEY_SOURCE, KEY_TOOL };

static const struct argp_option option_rows[] = {
    { "pin", 'p', "PIN", 0, "Judge the programs, modules and variables of a pin", 0 },
    { "facts", KEY_FACTS, "FILE", 0, "Judge for the node that these facts are of, instead of this one", 0 },
    { "assume", 'a', "FILE|KEY=VALUE", 0,
      "Replace a part of the facts: gpu=9.0, driver.kernel_module=570.211.01, or a file with some facts; may be repeated", 0 },
    { "env-file", KEY_ENV_FILE, "FILE", 0,
      "The environment that the program gets, as NAME=VALUE lines or NUL-separated pairs (default: this one)", 0 },
    { "format", KEY_FORMAT, "text|jsonl", 0, "Text for people, or one JSON object a line", 0 },
    { "libs", KEY_LIBS, NULL, 0, "Print how each library resolves: SONAME => PATH; with -v also what may be opened later", 0 },
    { "save-facts", KEY_SAVE, "FILE", 0, "Write the facts to FILE, to be judged by elsewhere", 0 },
    { "root", KEY_ROOT, "DIR", 0, "Read libraries below DIR, as if it were /", 0 },
    { "skip", KEY_SKIP, "RULE", 0, "Leave a rule out; may be repeated", 0 },
    { "list-rules", KEY_LIST, NULL, 0, "Print the rules with level, scope and meaning", 0 },
    { "images", KEY_IMAGES, "FILE", 0, "Print the GPU code that a file holds; with -v each container", 0 },
    { "host", KEY_HOST, "PROGRAM", 0, "The program that opens the libraries named, one after another (dlopen)", 0 },
    { "package", KEY_PACKAGE, "PY", 0,
      "Judge the compiled modules of a Python package, in the scope of --host (default: python3); may be repeated", 0 },
    { "toolkit", KEY_TOOLKIT, "VERSION|DIR", 0, "Judge whether this CUDA toolkit can compile for --arch, or this node's GPUs", 0 },
    { "arch", KEY_ARCH, "LIST", 0, "Architectures to compile for: 8.6,9.0a or sm_86 or compute_90", 0 },
    { "host-compiler", KEY_COMPILER, "gcc-N", 0, "The host compiler that --toolkit is to work with", 0 },
    { "source", KEY_SOURCE, "DIR", 0, "Hold --tool against what this source asks for (cmake_minimum_required)", 0 },
    { "tool", KEY_TOOL, "NAME-N", 0, "A tool of the build and its release, as cmake-3.16; may be repeated", 0 },
    { "arch-list", KEY_ARCH_LIST, NULL, 0, "Print what to compile for: the GPUs of this node, or of --facts FILE|DIR", 0 },
    { "where", KEY_WHERE, NULL, 0, "Judge for every node whose facts are in the folder --facts DIR: partition, GPU, verdict", 0 },
    { "node", KEY_NODE, "prolog|health", 0,
      "What Slurm's Prolog or HealthCheckProgram runs, as root: judge the node by the site's configuration", 0 },
    { "config", KEY_CONFIG, "FILE", 0, "With --node, the site's configuration (default: /etc/recon/node.conf)", 0 },
    { "verbose", 'v', NULL, 0, "Show notes, and what was not checked", 0 },
    { 0 },
};

static error_t set_format(struct argp_state *state, const char *arg)
{
    struct options *o = state->input;

    if (!str_eq(arg, "text") && !str_eq(arg, "jsonl") && !str_eq(arg, "nagios"))
        return cli_error(EINVAL, "--format '%s': wanted text or jsonl (or nagios, with --node)", arg);
    o->jsonl = str_eq(arg, "jsonl");
    o->nagios = str_eq(arg, "nagios");
    return 0;
}

static error_t set_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'p': o->pin = arg; return 0;
    case KEY_FACTS: o->facts = arg; return 0;
    case 'a': strv_add(&o->assume, arg); return 0;
    case KEY_ENV_FILE: o->env_file = arg; return 0;
    case KEY_FORMAT: return set_format(state, arg);
    case KEY_LIBS: o->libs = true; return 0;
    case KEY_SAVE: o->save = arg; return 0;
    case KEY_ROOT: o->root = arg; return 0;
    case KEY_SKIP: strv_add(&o->skip, arg); return 0;
    case KEY_LIST: o->list = true; return 0;
    case KEY_IMAGES: o->images = arg; return 0;
    case KEY_HOST: o->host = arg; return 0;
    case KEY_PACKAGE: strv_add(&o->packages, arg); return 0;
    case KEY_TOOLKIT: o->toolkit = arg; return 0;
    case KEY_ARCH: o->archs = arg; return 0;
    case KEY_COMPILER: o->compiler = arg; return 0;
    case KEY_SOURCE: o->source = arg; return 0;
    case KEY_TOOL: strv_add(&o->tools, arg); return 0;
    case KEY_ARCH_LIST: o->arch_list = true; return 0;
    case KEY_WHERE: o->where = true; return 0;
    case KEY_NODE: o->node = arg; return 0;
    case KEY_CONFIG: o->config = arg; return 0;
    case 'v': o->verbose = true; return 0;
    case ARGP_KEY_ARG: strv_add(&o->programs, arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    option_rows, set_option, "[PROGRAM|LIBRARY ...]",
    "Judge whether programs, or what a pin promises, will run on this node or another, without running anything."
    "\vExit status: 0 nothing in the way, 75 another node may do, 78 no node will, 64 bad usage, 126 and 127 no such "
    "program.", NULL, NULL, NULL,
};

/* ---- inputs ---- */

/* NAME=VALUE lines, or pairs that NUL ends (/proc/PID/environ). */
static int read_env(const char *path, struct strv *ret, struct err *err)
{
    struct str t = { 0 };
    char end = '\n';
    size_t line = 0;
    int rc = file_read(path, FILE_MAX_DEFAULT, &t, err);

    if (rc == 0 && t.len && memchr(t.s, 0, t.len))
        end = 0;
    for (size_t at = 0; rc == 0 && at < t.len;) {
        char *stop = memchr(t.s + at, end, t.len - at), *pair;

        pair = xstrndup(t.s + at, stop ? (size_t)(stop - t.s) - at : t.len - at);
        at = stop ? (size_t)(stop - t.s) + 1 : t.len;
        line++;
        if (*pair && (*pair == '=' || !strchr(pair, '=')))
            rc = err_set(err, CODE_USAGE, "%s:%zu: '%s' is no NAME=VALUE", path, line, pair);
        else if (*pair)
            strv_add(ret, pair);
        free(pair);
    }
    str_release(&t);
    return rc;
}

static int known_rules(const struct strv *skip)
{
    for (size_t i = 0; i < skip->n; i++) {
        struct strv names = { 0 };
        const char *near;
        bool known = false;
        int rc = 0;

        for (size_t r = 0; check_rules[r]; r++) {
            known = known || str_eq(check_rules[r]->name, skip->v[i]);
            strv_add(&names, check_rules[r]->name);
        }
        near = known ? NULL : str_nearest(skip->v[i], names.v, sizeof(*names.v), names.n);
        if (!known)
            rc = cli_error(CODE_USAGE, "no rule is named '%s'%s%s%s", skip->v[i], near ? ", the nearest is '" : "",
                           near ? near : "; see --list-rules", near ? "'" : "");
        strv_release(&names);
        if (rc)
            return rc;
    }
    return 0;
}

/* The facts: saved ones, those of a root (nothing but what its files say), or this node's own by recon-probe. */
static int get_facts(const struct options *o, const struct pin *pin, char *const *env, struct facts *ret, struct err *err)
{
    struct facts_request q = { 0 };
    struct strv toolkits = { 0 };
    char *stale;

    if (o->facts) {
        if (facts_read(o->facts, ret, err))
            return -1;
        stale = facts_stale(ret);
        if (stale)
            cli_warn("facts-stale: %s", stale);
        free(stale);
    } else if (o->root) {
        check_root_facts(o->root, ret);
    } else {
        facts_toolkits_of(env, &toolkits);
        for (size_t i = 0; pin && i < pin->variables.n; i++)
            if (pin->variables.v[i].how == PIN_SET && str_eq(pin->variables.v[i].name, "CUDA_HOME"))
                strv_add(&toolkits, pin->variables.v[i].value);
        q.toolkits = &toolkits;
        q.tmpdir = env_get(env, "TMPDIR") ? env_get(env, "TMPDIR") : "/tmp";
        facts_probe_for(&q, ret, NULL);
        strv_release(&toolkits);
        if (env_get(environ, "SLURM_JOB_PARTITION"))
            strv_add(&ret->partitions, env_get(environ, "SLURM_JOB_PARTITION"));
    }
    for (size_t i = 0; i < o->assume.n; i++)
        if (facts_assume(ret, o->assume.v[i], err)) {
            facts_release(ret);
            return -1;
        }
    return 0;
}

/* A name without a slash that is no file here is looked up in PATH, as a shell would. Owned. */
static char *find_program(const char *name, char *const *env)
{
    const char *path = env_get(env, "PATH");
    struct strv dirs = { 0 };
    char *found = NULL;

    if (!strchr(name, '/') && access(name, F_OK) && path)
        strv_split(&dirs, path, ":");
    for (size_t i = 0; i < dirs.n && !found; i++) {
        found = path_join(*dirs.v[i] ? dirs.v[i] : ".", name);
        if (access(found, X_OK)) {
            free(found);
            found = NULL;
        }
    }
    strv_release(&dirs);
    while (str_starts(name, "./") && name[2] != '/' && name[2])
        name += 2; /* findings name it without */
    return found ? found : xstrdup(name);
}

/* What the facts say of the loader counts where its files can be read: here, or below the root. Given ones are mostly another
 * node's. */
static const struct facts *of_loader(const struct options *o, const struct facts *f)
{
    return o->facts && !o->root && (o->assume.n || !resolve_loader_known(f)) ? NULL : f;
}

/* The pin's closures and those of each program named, one after another in one resolution. node: facts of the loader, or NULL. */
static int get_resolution(const struct options *o, const struct pin *pin, char *const *programs, const struct facts *node,
                          char *const *env, bool symbols, struct resolution *ret, struct err *err)
{
    const char *root = o->root ? o->root : "";
    int rc = 0;

    *ret = (struct resolution){ 0 };
    if (o->host || o->packages.n) {
        char *host = find_program(o->host ? o->host : "python3", env);

        rc = check_host(host, &o->packages, programs, node, env, ret, err);
        free(host);
        return rc;
    }
    if (pin)
        rc = resolve(pin, node, root, env, ret, err);
    for (char *const *p = programs; rc == 0 && *p; p++) {
        char *program = o->root ? xstrdup(*p) : find_program(*p, env);
        struct resolution one;

        if (symbols && !ret->tables)
            ret->tables = symbols_new();
        rc = resolve_program(program, node, root, env, ret->tables, &one, err);
        free(program);
        if (rc) {
            if (err->code == CODE_DATA)
                err->code = CODE_NOEXEC;
            break;
        }
        for (size_t i = 0; i < one.closures.n; i++)
            *VEC_ADD(&ret->closures) = one.closures.v[i];
        one.closures.n = 0;
        if (!ret->env.n)
            strv_copy(&ret->env, &one.env);
        if (!ret->driver_file) {
            ret->driver_file = one.driver_file;
            ret->drivers = one.drivers;
            one.driver_file = NULL;
            one.drivers = (struct strv){ 0 };
        }
        resolution_release(&one);
    }
    return rc;
}

/* ---- the steps ---- */

static void look_up(struct resolution *r, const struct pin *body, const char *root, const struct strv *places)
{
    (void)body;
    resolution_symbols(r, root, places);
}

/* Fills r and found. */
static int judge_case(const struct options *o, const struct pin *pin, char *const *programs, char *const *env,
                      const struct facts *f, const struct check_scripts *scripts, struct resolution *r, struct findings *found,
                      struct err *err)
{
    const char *root = o->root ? o->root : "";
    struct check_case c = { .facts = f, .received = env, .elsewhere = o->facts && !o->root, .scripts = scripts,
                            .levels = &o->levels };
    struct variants v = { .pin = pin, .root = root, .env = env, .given = of_loader(o, f), .c = c, .skip = &o->skip,
                          .symbols = strv_has(&o->skip, "symbol-missing") ? NULL : look_up };

    if (pin && !*programs) {
        variants_judge(&v, r, found);
        return 0;
    }
    if (get_resolution(o, pin, programs, v.given, env, v.symbols, r, err))
        return -1;
    if (v.symbols) /* most of the work for a program of many libraries */
        resolution_symbols(r, root, &f->toolkits);
    c.pin = pin;
    c.resolution = r;
    check(&c, &o->skip, found);
    return 0;
}

static int judge(const struct options *o, const struct pin *pin, char *const *programs, char *const *env)
{
    double start = clock_ms();
    struct facts facts;
    struct resolution r = { 0 };
    struct findings found = { 0 };
    struct check_scripts scripts = { 0 };
    struct err err = { 0 };
    int status;

    if (get_facts(o, pin, env, &facts, &err))
        return cli_fail(&err);
    if (o->save && facts_write(o->save, &facts, &err)) {
        status = cli_fail(&err);
        goto out;
    }
    if (!pin && !*programs && !o->host && !o->packages.n) { /* facts were all that was wanted */
        status = 0;
        goto out;
    }
    for (char *const *p = programs; *p; p++)
        check_scripts_add(&scripts, *p);
    if (judge_case(o, pin, programs, env, &facts, &scripts, &r, &found, &err)) {
        status = cli_fail(&err);
        goto out;
    }
    if (o->libs && o->verbose)
        resolution_maybe(&r, of_loader(o, &facts), o->root ? o->root : "");
    found.ms = clock_ms() - start;
    report(o, &r, &found);
    status = findings_status(&found);
out:
    findings_release(&found);
    check_scripts_release(&scripts);
    resolution_release(&r);
    facts_release(&facts);
    return status;
}

/* Facts of many nodes, one resolution for each body of the pin: --where and --arch-list. */
static int over_nodes(const struct options *o, const struct pin *pin, char *const *programs, char *const *env)
{
    size_t n = pin && !*programs ? pin_bodies(pin) : 1;
    struct resolution *r = xcalloc(n, sizeof(*r));
    struct nodes nodes = { 0 };
    struct err err = { 0 };
    int status = 0;

    if (o->facts ? nodes_read(o->facts, &nodes, &err) : get_facts(o, NULL, env, &VEC_ADD(&nodes)->facts, &err)) {
        nodes.n = o->facts ? nodes.n : 0;
        status = cli_fail(&err);
    } else if (o->arch_list) {
        status = print_arch_list(o, &nodes);
    } else {
        for (size_t i = 0; i < n && !status; i++)
            if (get_resolution(o, pin ? pin_body(pin, i) : NULL, programs, of_loader(o, &nodes.v[0].facts), env, false,
                               &r[i], &err))
                status = cli_fail(&err);
        if (!status)
            status = check_where(o, pin, r, n, env, &nodes);
    }
    for (size_t i = 0; i < n; i++)
        resolution_release(&r[i]);
    free(r);
    nodes_release(&nodes);
    return status;
}

static int build(const struct options *o, char *const *env)
{
    struct facts f;
    struct err err = { 0 };
    int status;

    if ((o->archs || !o->toolkit) && !o->facts)
        facts_minimal(&f); /* the node does not matter */
    else if (get_facts(o, NULL, env, &f, &err))
        return cli_fail(&err);
    status = check_build(o, &f);
    facts_release(&f);
    return status;
}

static int wrong_combination(const struct options *o)
{
    if ((o->archs || o->compiler) && !o->toolkit)
        return cli_error(CODE_USAGE, "--arch and --host-compiler go with --toolkit VERSION|DIR");
    if (o->tools.n && !o->source)
        return cli_error(CODE_USAGE, "--tool goes with --source DIR, whose CMakeLists.txt says what it wants");
    if (o->where && !o->facts)
        return cli_error(CODE_USAGE, "--where wants a folder of facts: --facts DIR; recon-check --save-facts writes them");
    if (o->where && !o->pin && !o->programs.n)
        return cli_error(CODE_USAGE, "--where wants a PROGRAM or --pin");
    return 0;
}

static int run_node(const struct options *o)
{
    bool prolog = str_eq(o->node, "prolog");

    if (!prolog && !str_eq(o->node, "health"))
        return cli_error(CODE_USAGE, "--node is '%s', wanted prolog or health", o->node);
    return check_node(prolog ? NODE_PROLOG : NODE_HEALTH, o->config,
                      o->jsonl ? NODE_JSONL : o->nagios ? NODE_NAGIOS : NODE_TEXT, o->verbose);
}

static int run(const struct options *o)
{
    static char *const nothing[] = { NULL };
    char *const *programs = o->programs.n ? o->programs.v : nothing;
    struct strv env = { 0 };
    struct pin pin = { 0 };
    struct err err = { 0 };
    bool pinned = false;
    int status;

    if (o->node)
        return run_node(o);
    if (o->nagios || o->config)
        return cli_error(CODE_USAGE, "--config and --format nagios go with --node");
    if (o->list)
        return list_rules(o);
    if (o->images)
        return check_images(o->images, o->verbose, o->jsonl);
    status = known_rules(&o->skip);
    if (!status)
        status = wrong_combination(o);
    if (status)
        return status;
    if ((o->host || o->packages.n) && (o->pin || o->root))
        return cli_error(CODE_USAGE, "--host and --package go with neither --pin nor --root");
    if (o->toolkit || o->source)
        return build(o, environ);
    if (!o->pin && !*programs && !o->save && !o->arch_list && !o->host && !o->packages.n)
        return cli_error(CODE_USAGE, "nothing to judge: wanted a PROGRAM, a LIBRARY, --pin or --save-facts; see --help");
    if ((o->env_file && read_env(o->env_file, &env, &err)) || (o->pin && (file_trusted(o->pin, NULL, &err) || pin_read(o->pin, &pin, &err))))
        status = cli_fail(&err);
    else
        pinned = o->pin;
    if (!status)
        status = (o->where || o->arch_list ? over_nodes : judge)(o, pinned ? &pin : NULL, programs, o->env_file ? env.n ? env.v : nothing : environ);
    if (pinned)
        pin_release(&pin);
    strv_release(&env);
    return status;
}

/* What the parent tells in place of the child that hangs. */
static int not_answering(const struct options *o, const char *path)
{
    struct findings found = { .ms = WATCH_MS };
    struct resolution none = { 0 };
    struct facts here;
    struct check_case c = { .facts = &here, .levels = &o->levels };
    int status;

    facts_minimal(&here);
    if (check_not_answering(&c, &o->skip, path, WATCH_MS, &found)) {
        report(o, &none, &found);
        status = findings_status(&found);
    } else {
        status = cli_error(CODE_DEADLINE, "'%s' gave no answer within %.0f ms, so nothing was judged", path, WATCH_MS);
    }
    findings_release(&found);
    facts_release(&here);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = { 0 };
    struct watched w = { 0 };
    int rest, status = cli_parse(&argp, argc, argv, &rest, &o);

    if (!status && !o.node)
        cli_levels(getenv("RECON_RULES"), &o.levels);
    if (!status && !o.node && cli_watch(WATCH_MS, &w))
        status = w.place ? not_answering(&o, w.place) : w.status;
    else if (!status)
        status = run(&o);
    free(w.place);
    conf_map_release(&o.levels);
    strv_release(&o.tools);
    strv_release(&o.assume);
    strv_release(&o.skip);
    strv_release(&o.programs);
    strv_release(&o.packages);
    return cli_end(status);
}
