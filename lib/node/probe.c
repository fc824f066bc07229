#include "config.h"
#include "node/node_priv.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *const toolkit_variables[] = { "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT" };

static char *boot_id(void)
{
    struct str t = { 0 };
    char *s = NULL;

    if (file_read("/proc/sys/kernel/random/boot_id", 256, &t, NULL) == 0)
        s = xstrndup(t.s, strcspn(t.s, "\n"));
    str_release(&t);
    return s;
}

void facts_minimal(struct facts *ret)
{
    struct utsname u;
    char now[32];

    conf_defaults(facts_rows, ret);
    clock_iso(now);
    ret->version = 1;
    ret->taken = xstrdup(now);
    ret->boot_id = boot_id();
    if (uname(&u))
        return;
    ret->node = xstrdup(u.nodename);
    ret->os.kernel = xstrdup(u.release);
    ret->os.machine = xstrdup(u.machine);
}

void facts_toolkits_of(char *const *env, struct strv *ret)
{
    for (size_t i = 0; env && i < COUNT(toolkit_variables); i++) {
        const char *v = env_get(env, toolkit_variables[i]);

        if (v && *v == '/' && !strv_has(ret, v))
            strv_add(ret, v);
    }
}

/* The text that the probe printed, as facts. */
static int take(const struct child *c, struct facts *ret, struct err *err)
{
    struct conf *conf;
    int rc;

    if (c->status != 0)
        return err_set(err, CODE_INTERNAL, "'%s' ended with %s %d%s%.*s", c->argv[0],
                       c->status & 0x7F ? "signal" : "status", c->status & 0x7F ? c->status & 0x7F : c->status >> 8,
                       c->errout.len ? ": " : "", c->errout.len ? (int)strcspn(c->errout.s, "\n") : 0,
                       c->errout.len ? c->errout.s : "");
    conf = conf_parse(c->out.s ? c->out.s : "", c->out.len, c->argv[0], err);
    if (!conf)
        return -1;
    rc = facts_bind(conf, c->argv[0], ret, err);
    conf_free(conf);
    return rc;
}

int facts_probe_for(const struct facts_request *q, struct facts *ret, struct err *err)
{
    static char *const clean[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                   (char *)(uintptr_t) "LC_ALL=C", NULL };
    char *probe = q->probe ? xstrdup(q->probe) : path_part("libexec/recon/recon-probe");
    const char *tmp = q->tmpdir ? q->tmpdir : getenv("TMPDIR");
    const char *cache = getenv("RECON_CACHE");
    double deadline = q->deadline_ms > 0 ? q->deadline_ms : 5000;
    struct child c = { .env = clean, .deadline_ms = deadline };
    struct strv argv = { 0 };
    struct err why = { 0 };

    (void)err;
    strv_add(&argv, probe);
    strv_addf(&argv, "--deadline=%.0f", deadline * 0.75); /* of each vendor's part; the rest is for the others */
    if (q->profiles)
        strv_addf(&argv, "--profiles=%s", q->profiles);
    if (tmp && *tmp)
        strv_addf(&argv, "--tmpdir=%s", tmp);
    if (q->kept && cache && *cache == '/')
        strv_addf(&argv, "--cache=%s", cache);
    else if (q->kept && !str_eq(cache, "off"))
        strv_add(&argv, "--cache");
    for (size_t i = 0; q->toolkits && i < q->toolkits->n; i++)
        strv_addf(&argv, "--toolkit=%s", q->toolkits->v[i]);
    c.argv = (const char *const *)argv.v;
    if (child_run(&c, &why) || take(&c, ret, &why)) {
        facts_minimal(ret);
        strv_addf(&ret->unknown, "probe: %s", why.text);
    }
    str_release(&c.out);
    str_release(&c.errout);
    strv_release(&argv);
    free(probe);
    return 0;
}

int facts_probe(struct facts *ret, double deadline_ms, struct err *err)
{
    struct strv toolkits = { 0 };
    struct facts_request q = { .toolkits = &toolkits, .deadline_ms = deadline_ms };
    int rc;

    facts_toolkits_of(environ, &toolkits);
    rc = facts_probe_for(&q, ret, err);
    strv_release(&toolkits);
    return rc;
}

bool facts_of_this_boot(const struct facts *f)
{
    struct utsname u;
    char *now = boot_id();
    bool same = now && f->node && str_eq(now, f->boot_id) && uname(&u) == 0 && str_eq(u.nodename, f->node);

    free(now);
    return same;
}

char *facts_stale(const struct facts *f)
{
    int64_t taken = f->taken ? clock_parse_iso(f->taken) : -1;
    const char *node = f->node ? f->node : "this node";
    struct utsname u;
    char *now = boot_id(), *text = NULL;

    if (f->boot_id && now && f->node && uname(&u) == 0 && str_eq(u.nodename, f->node) && !str_eq(now, f->boot_id))
        text = xasprintf("the facts of '%s' are of an earlier boot", node);
    else if (taken >= 0 && time(NULL) - taken > 24 * 3600)
        text = xasprintf("the facts of '%s' were taken %s, more than a day ago", node, f->taken);
    free(now);
    return text;
}
