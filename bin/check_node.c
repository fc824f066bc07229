#include "config.h"
#include "check_node.h"
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW(key, type_, def_, doc_)                                                                          \
    { .name = #key, .type = type_, .offset = offsetof(struct node_conf, key), .def = def_, .doc = doc_ }
const struct conf_row node_conf_rows[] = {
    ROW(enabled, CONF_BOOL, "true", "false: nothing is done and all is well"),
    ROW(pins, CONF_TEXT, "/etc/recon/pins.d", "folder with the site's pins"),
    ROW(facts, CONF_TEXT, NULL, "folder into which health writes NODE.facts"),
    ROW(state, CONF_TEXT, "/run/recon", "folder in which the prolog leaves its reason for health"),
    ROW(deadline, CONF_FLOAT, "5.0", "seconds in total"),
    ROW(drain_on, CONF_TEXTS, NULL, "rules that drain the node; all others are only told"),
    ROW(prefix, CONF_TEXT, "recon:", "begins the reason of a drain; only such drains are lifted"),
    ROW(gpus, CONF_INT, "-1", "GPUs that the node has; -1: not looked at"),
    ROW(driver, CONF_TEXT, NULL, "release that the driver has to have at least"),
    ROW(nvidia_smi, CONF_TEXT, NULL, "absolute path; absent: not asked"),
    ROW(smi_args, CONF_TEXTS, NULL, "its arguments; absent: none"),
    ROW(kernel_log, CONF_TEXT, NULL, "/dev/kmsg, or a file; absent: not read"),
    ROW(xid_age, CONF_INT, "0", "seconds after which a line of the log counts no more; 0: never"),
    ROW(mounts, CONF_TEXTS, NULL, "folders at which a file system has to be mounted"),
    ROW(scontrol, CONF_TEXT, NULL, "absolute path; absent: the node is neither drained nor resumed"),
    ROW(slurm_conf, CONF_TEXT, NULL, "SLURM_CONF for scontrol"),
    { 0 },
};

/* ---- the configuration ---- */

static int read_conf(const char *path, struct node_conf *c, struct err *err)
{
    struct conf *file;
    int rc;

    conf_defaults(node_conf_rows, c);
    if (file_trusted(path, NULL, err))
        return -1;
    file = conf_load(path, err);
    if (!file)
        return -1;
    conf_release(node_conf_rows, c);
    rc = conf_bind(file, node_conf_rows, c, err);
    conf_free(file);
    if (rc == 0 && !(c->deadline > 0 && c->deadline <= 50))
        rc = err_set(err, CODE_USAGE, "'%s': deadline is %g, wanted more than 0 and at most 50 s", path, c->deadline);
    return rc;
}

/* Of the environment nothing but the node's name, which goes to scontrol and into a file's name. */
static char *node_name(void)
{
    const char *given = getenv("SLURMD_NODENAME");
    char host[256] = "", *name;

    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = 0;
    name = xstrdup(given && *given ? given : host);
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p)) {
            free(name);
            return xstrdup("unknown");
        }
    clearenv();
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    return name;
}

/* ---- the verdict ---- */

/* The first error that the site lets drain, as a reason: one line, owned; NULL: none. */
static char *drain_reason(const struct node_conf *c, const struct findings *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct finding *f = &l->v[i];
        char *line, *safe;

        if (f->level != LEVEL_ERROR || f->scope != SCOPE_NODE || !strv_has(&c->drain_on, f->rule))
            continue;
        line = xasprintf("%s: %.120s", f->rule, f->text);
        safe = esc_terminal(line);
        for (char *p = safe; *p; p++) /* scontrol takes no quotes, and a log line has no brackets to lose */
            if (strchr("\"'[]\n\r=", *p))
                *p = ' ';
        free(line);
        return safe;
    }
    return NULL;
}

static int show(enum node_format format, const struct findings *l, const char *node, const char *done, const char *drain,
                bool verbose)
{
    static const char *const words[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };
    size_t errors = findings_count(l, LEVEL_ERROR), warnings = findings_count(l, LEVEL_WARN);
    int nagios = errors ? 2 : warnings ? 1 : l->not_checked ? 3 : 0;
    struct str t = { 0 };

    (void)drain;
    if (format == NODE_JSONL) {
        findings_json(l, &t);
    } else if (format == NODE_NAGIOS) {
        str_addf(&t, "RECON %s - %s: %zu errors, %zu warnings, %zu not checked", words[nagios], node, errors, warnings,
                 l->not_checked);
        for (size_t i = 0; i < l->n; i++)
            if (l->v[i].level != LEVEL_NOTE || l->v[i].rule[0] == 'n') {
                char *safe = esc_terminal(l->v[i].text);

                str_addf(&t, "; %s %s", l->v[i].rule, safe);
                free(safe);
            }
        str_add(&t, "\n");
    } else {
        findings_text(l, true, false, &t);
        if (verbose || errors || warnings || done)
            str_addf(&t, "%s: %zu errors, %zu warnings, %zu not checked%s%s\n", node, errors, warnings, l->not_checked,
                     done ? "; " : "", done ? done : "");
    }
    if (t.len)
        fwrite(t.s, 1, t.len, stdout);
    str_release(&t);
    return nagios;
}

/* ---- what the prolog leaves for health ---- */

static char *reason_path(const struct node_conf *c, const char *node)
{
    return xasprintf("%s/prolog-reason.%s", c->state, node);
}

static void leave_reason(const struct node_conf *c, const char *node, const char *why)
{
    char *path = reason_path(c, node);
    struct err err = { 0 };

    if (dir_make(c->state, 0755, &err) || file_write(path, why, strlen(why), 0600, &err))
        cli_warn("the reason is left nowhere: %s", err.text);
    free(path);
}

static char *left_reason(const struct node_conf *c, const char *node)
{
    char *path = reason_path(c, node), *why = NULL;
    struct str t = { 0 };

    if (file_trusted(path, NULL, NULL) == 0 && file_read(path, 4096, &t, NULL) == 0 && t.len)
        why = xstrdup(t.s);
    str_release(&t);
    free(path);
    return why;
}

/* ---- the steps ---- */

static int nothing_checked(enum node_format format, const char *why)
{
    if (format == NODE_NAGIOS)
        printf("RECON UNKNOWN - nothing was checked: %s\n", why);
    else
        cli_warn("nothing was checked: %s", why);
    return format == NODE_NAGIOS ? 3 : 0;
}

static int run_mode(enum node_mode mode, const struct node_conf *c, const char *node, enum node_format format, bool verbose)
{
    struct findings list = { 0 };
    struct err err = { 0 };
    char *why, *prolog = NULL, *done = NULL;
    double start = clock_ms();
    int nagios;

    node_probe(mode, c, node, &list);
    list.ms = clock_ms() - start;
    why = drain_reason(c, &list);
    if (mode == NODE_PROLOG && why)
        leave_reason(c, node, why);
    if (mode == NODE_HEALTH) {
        prolog = left_reason(c, node);
        done = node_tell_slurm(c, node, why, prolog, &err);
        if (err.code)
            cli_warn("Slurm was not told: %s", err.text);
        else if (prolog) { /* told once: from here on the state of the node decides */
            char *path = reason_path(c, node);

            unlink(path);
            free(path);
        }
    }
    nagios = show(format, &list, node, done, why, verbose);
    findings_release(&list);
    free(prolog);
    free(done);
    if (format == NODE_NAGIOS) {
        free(why);
        return nagios;
    }
    nagios = mode == NODE_PROLOG && why;
    free(why);
    return nagios;
}

int check_node(enum node_mode mode, const char *config, enum node_format format, bool verbose)
{
    char *path = path_absolute(config ? config : "/etc/recon/node.conf");
    struct node_conf c = { 0 };
    struct err err = { 0 };
    char *node = node_name();
    int status;

    if (chdir("/")) /* whoever started us: nothing is looked for in, or run in, a folder of a user */
        status = nothing_checked(format, "cannot go to '/'");
    else if (access("/etc/recon/node.off", F_OK) == 0)
        status = nothing_checked(format, "'/etc/recon/node.off' is there");
    else if (read_conf(path, &c, &err))
        status = nothing_checked(format, err.text);
    else if (!c.enabled)
        status = nothing_checked(format, "enabled is false");
    else
        status = run_mode(mode, &c, node, format, verbose);
    conf_release(node_conf_rows, &c);
    free(node);
    free(path);
    return status;
}
