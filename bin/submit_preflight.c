/* Before anything is queued: the request against the cluster, and the pin against what is saved of its nodes. */
#include "config.h"
#include "recon-submit.h"
#include "cli_rules.h"
#include "check/check.h"
#include "check/preflight.h"
#include "node/node.h"

#include <stdlib.h>
#include <unistd.h>

extern char **environ;

/* ---- the cluster ---- */

const char *preflight_conf_path(void)
{
    static const char *const places[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf" };
    const char *named = getenv("SLURM_CONF");

    if (named && *named)
        return access(named, R_OK) == 0 ? named : NULL;
    for (size_t i = 0; i < COUNT(places); i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

/* From the controller, else from slurm.conf; false: from nowhere. What fails here stops nothing. */
static bool ask_cluster(struct order *x, struct cluster *c)
{
    struct err why = { 0 };
    const char *conf;

    if (x->backend && x->backend->cluster && !x->offline) {
        if (x->backend->cluster(c, &why) == 0)
            return true;
        cli_warn("the preflight could not ask: %s", why.text);
    }
    conf = preflight_conf_path();
    if (!conf || cluster_read_conf(conf, c, NULL))
        return false;
    cli_warn("not asked: the controller; partitions, GRES and limits are those of '%s', QOS limits are not known", conf);
    return true;
}

/* ---- folders of logs ---- */

/* The folder before the first part with a pattern in it, owned; NULL: none to look after. */
static char *log_dir(const struct order *x, const char *pattern)
{
    struct str t = { 0 };
    const char *p = pattern;
    char *cut;

    if (!pattern || *pattern != '/' || str_starts(pattern, "/dev/"))
        return NULL;
    for (; *p && (*p != '%' || p[1] == '%'); p++) {
        str_addn(&t, p, 1);
        p += *p == '%';
    }
    cut = t.len ? strrchr(t.s, '/') : NULL;
    if (!cut || cut == t.s || str_starts(t.s, x->path)) {
        str_release(&t);
        return NULL;
    }
    *cut = 0;
    return str_take(&t);
}

static void check_log_dir(const struct order *x, const char *option, const char *pattern, struct findings *out)
{
    char *dir = log_dir(x, pattern);
    struct err why = { 0 };
    bool asked_only = x->o->dry_run || x->o->test_only;

    if (!dir || access(dir, W_OK | X_OK) == 0) {
        free(dir);
        return;
    }
    if (access(dir, F_OK) == 0)
        finding_explain(findings_add(out, "log-dir-missing", LEVEL_ERROR, SCOPE_JOB, dir,
                                     "--%s leads to folder '%s', which cannot be written", option, dir),
                        NULL, "Slurm fails a task silently when it cannot open its output", "another --output");
    else if (asked_only || dir_make(dir, 0777, &why) == 0)
        finding_explain(findings_add(out, "log-dir-missing", LEVEL_WARN, SCOPE_JOB, dir,
                                     "--%s leads to folder '%s', which %s", option, dir,
                                     asked_only ? "would be made" : "was not there and is made"),
                        NULL, "Slurm makes no folders, and fails a task silently when it cannot open its output", NULL);
    else
        finding_explain(findings_add(out, "log-dir-missing", LEVEL_ERROR, SCOPE_JOB, dir, "--%s: %s", option, why.text),
                        NULL, "Slurm fails a task silently when it cannot open its output", "another --output");
    free(dir);
}

/* ---- saved facts ---- */

/* The first error of these facts against a body of the pin, owned; NULL: none known. */
static char *judge_body(const struct order *x, const struct pin *pin, const struct facts *facts, const struct strv *skip)
{
    struct findings list = { 0 };
    struct resolution r = { 0 };
    struct strv env = { 0 };
    struct conf_map levels;
    struct check_case c = { .spec = &x->spec, .pin = pin, .facts = facts, .elsewhere = true, .levels = &levels };
    bool resolved;
    char *why = NULL;

    cli_levels(getenv("RECON_RULES"), &levels);
    pin_environment(pin, environ, &env);
    resolved = resolve(pin, facts, "", env.v, &r, NULL) == 0;
    c.resolution = resolved ? &r : NULL;
    check(&c, skip, &list);
    for (size_t i = 0; i < list.n && !why; i++)
        if (list.v[i].level == LEVEL_ERROR && list.v[i].scope != SCOPE_DATA)
            why = xasprintf("%s: %s", list.v[i].rule, list.v[i].text);
    findings_release(&list);
    conf_map_release(&levels);
    if (resolved)
        resolution_release(&r);
    strv_release(&env);
    return why;
}

/* The node can run one of the pin's bodies (NULL), or the error of the first. */
static char *judge(const struct order *x, const struct facts *facts, const struct strv *skip)
{
    char *first = judge_body(x, &x->pin, facts, skip);
    bool fits = !first;

    for (size_t i = 1; i < pin_bodies(&x->pin) && !fits; i++) {
        char *why = judge_body(x, pin_body(&x->pin, i), facts, skip);

        fits = !why;
        free(why);
    }
    if (fits) {
        free(first);
        first = NULL;
    }
    return first;
}

/* By the facts that are saved of the node. */
static char *unfit_by_facts(const struct order *x, const char *dir, const char *node, bool *ret_known)
{
    char *path = xasprintf("%s/%s.facts", dir, node), *why = NULL;
    struct facts facts = { 0 };
    struct err err = { 0 };

    *ret_known = access(path, R_OK) == 0 && facts_read(path, &facts, &err) == 0;
    if (*ret_known) {
        why = judge(x, &facts, NULL);
        facts_release(&facts);
    } else if (err.code) {
        cli_warn("%s", err.text);
    }
    free(path);
    return why;
}

struct judged { /* by the GPUs alone: asked once for all nodes that have the same */
    struct judged_one { char *gpus, *why; } *v;
    size_t n, cap;
};

/* By the site's map of GRES types and features, which knows no more than the architecture of the GPUs. */
static const char *unfit_by_map(const struct order *x, const struct preflight *p, const char *node, struct judged *l,
                                bool *ret_known)
{
    char *gpus = preflight_gpus(p, node, &x->spec.architectures), *assumed;
    struct facts facts = { 0 };
    struct strv skip = { 0 };
    struct judged_one *one;

    *ret_known = gpus != NULL;
    for (size_t i = 0; gpus && i < l->n; i++)
        if (str_eq(l->v[i].gpus, gpus)) {
            free(gpus);
            return l->v[i].why;
        }
    if (!gpus)
        return NULL;
    for (const struct rule *const *r = check_rules; *r; r++)
        if (!str_starts((*r)->name, "arch-"))
            strv_add(&skip, (*r)->name);
    assumed = xasprintf("gpu=%s", gpus);
    one = VEC_ADD(l);
    one->gpus = gpus;
    if (facts_assume(&facts, assumed, NULL) == 0)
        one->why = judge(x, &facts, &skip);
    facts_release(&facts);
    strv_release(&skip);
    free(assumed);
    return one->why;
}

static void keep_away(struct order *x, const struct strv *nodes)
{
    struct str t = { 0 };

    if (x->exclude)
        str_add(&t, x->exclude);
    for (size_t i = 0; i < nodes->n; i++)
        str_addf(&t, "%s%s", t.len ? "," : "", nodes->v[i]);
    free(x->exclude);
    x->exclude = str_take(&t);
}

/* Why a node cannot run it, owned; NULL: nothing known against it. */
static char *unfit(const struct order *x, const struct preflight *p, const char *dir, const char *node, struct judged *l,
                   bool *ret_known)
{
    char *why = dir ? unfit_by_facts(x, dir, node, ret_known) : NULL;

    return dir && *ret_known ? why : xstrdup(unfit_by_map(x, p, node, l, ret_known));
}

static void judged_release(struct judged *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].gpus);
        free(l->v[i].why);
    }
    free(l->v);
}

static int check_nodes(struct order *x, const struct preflight *p, struct err *err)
{
    char *dir = x->spec.facts ? path_absolute(x->spec.facts) : NULL, *first = NULL;
    const char *by = dir ? dir : "architectures";
    struct strv nodes = { 0 }, bad = { 0 };
    struct judged judged = { 0 };
    size_t known = 0;
    int rc = 0;

    if (dir || x->spec.architectures.n)
        preflight_nodes(p, &nodes);
    for (size_t i = 0; i < nodes.n; i++) {
        bool there = false;
        char *why = unfit(x, p, dir, nodes.v[i], &judged, &there);

        known += there;
        if (why)
            strv_add(&bad, nodes.v[i]);
        if (why && !first)
            first = xasprintf("%s: %s", nodes.v[i], why);
        free(why);
    }
    if (nodes.n && bad.n == nodes.n) {
        rc = err_set(err, CODE_JOB, "none of the %zu nodes that the job may go to can run it, by '%s': %s", nodes.n, by,
                     first);
    } else if (bad.n) {
        cli_warn("preflight: %zu of %zu nodes cannot run it by '%s' and are excluded (%s)", bad.n, nodes.n, by, first);
        keep_away(x, &bad);
    }
    if (dir && known < nodes.n)
        cli_warn("preflight: of %zu nodes that the job may go to, '%s' has facts of %zu", nodes.n, dir, known);
    judged_release(&judged);
    strv_release(&nodes);
    strv_release(&bad);
    free(first);
    free(dir);
    return rc;
}

/* ---- all ---- */

static int show(const struct findings *list, struct err *err)
{
    struct str t = { 0 };
    int rc = 0;

    findings_text(list, false, term_fancy(stderr), &t);
    if (t.len)
        fputs(t.s, stderr);
    str_release(&t);
    for (size_t i = 0; i < list->n && rc == 0; i++)
        if (list->v[i].level == LEVEL_ERROR)
            rc = err_set(err, CODE_JOB, "not submitted: %s: %s", list->v[i].rule, list->v[i].text);
    return rc;
}

/* --test-only: how many tasks accounting lets be there, or why that is not known. */
static void tell_accounting(const struct order *x)
{
    const char *account = conf_map_get(&x->spec.sbatch, "account"), *qos = conf_map_get(&x->spec.sbatch, "qos");
    const struct account_limit *l;

    if (x->accounting.why)
        cli_warn("not asked: limits of QOS and associations: %s", x->accounting.why);
    for (size_t i = 0; i < x->accounting.limits.n; i++) {
        l = &x->accounting.limits.v[i];
        if (!accounting_holds(&x->accounting, l, account, qos))
            continue;
        fprintf(stderr, "recon-submit: %s%s%s of %s is %llu", l->what, l->tres ? "=" : "", l->tres ? l->tres : "", l->whose,
                (unsigned long long)l->most);
        fprintf(stderr, l->used ? ", and %llu are there\n" : "\n", (unsigned long long)l->used);
    }
}

int preflight_run(struct order *x, struct err *err)
{
    struct cluster cluster = { 0 };
    struct directives d = { 0 };
    struct findings list = { 0 };
    struct part part = { 0 };
    struct preflight p = { .asked = &x->spec.sbatch, .directives = &d, .env = environ, .site = x->o->test_only };
    int rc = part_make(x, &part, 0, 0, NULL, err);

    if (rc == 0)
        rc = directives_parse(part.script.s, x->template_path, &d, err);
    if (rc == 0) {
        p.cluster = !x->o->local && ask_cluster(x, &cluster) ? &cluster : NULL;
        p.accounting = x->o->local ? NULL : &x->accounting;
        p.script_bytes = part.script.len;
        if (!x->o->local || p.cluster)
            preflight(&p, &list);
        check_log_dir(x, "output", directives_get(&d, "output"), &list);
        check_log_dir(x, "error", directives_get(&d, "error"), &list);
        if (!p.cluster && (x->o->dry_run || x->o->test_only))
            cli_warn("not asked: partitions, time, memory, GRES, features, MaxArraySize, MaxJobCount (no controller and no "
                     "slurm.conf here)");
        if (x->o->test_only)
            tell_accounting(x);
        rc = show(&list, err);
    }
    if (rc == 0)
        rc = check_nodes(x, &p, err);
    findings_release(&list);
    directives_release(&d);
    cluster_release(&cluster);
    part_release(&part);
    return rc;
}
