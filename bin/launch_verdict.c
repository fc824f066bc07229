#include "config.h"
#include "cli.h"
#include "launch.h"

#include <stdlib.h>

#define HOLD_MS 30000.0 /* twice what Slurm's commands wait for a controller */

enum mode { MODE_OFF, MODE_WARN, MODE_ERROR };

static enum mode asked_mode(void)
{
    static const struct name modes[] = { { "off", MODE_OFF }, { "warn", MODE_WARN }, { "error", MODE_ERROR }, { 0 } };
    const char *s = getenv("RECON_CHECK");
    int mode = MODE_ERROR;

    if (!s || !*s)
        return MODE_ERROR;
    if (name_value(modes, s, &mode))
        cli_warn("RECON_CHECK='%s' is none of off, warn, error: taken as error", s);
    return (enum mode)mode;
}

/* RECON_CHECK is recorded whenever it is set. */
static void note_mode(struct launch *l, enum mode mode)
{
    static const char *const words[] = { "nothing was judged", "errors do not stop the program",
                                         "errors stop the program" };
    const char *s = getenv("RECON_CHECK");

    if (s && *s)
        findings_add(&l->findings, mode == MODE_OFF ? "not-checked" : "check-override", LEVEL_NOTE, SCOPE_JOB,
                     "RECON_CHECK", "RECON_CHECK=%s: %s", s, words[mode]);
    s = getenv("RECON_RULES");
    if (s && *s)
        findings_add(&l->findings, "check-override", LEVEL_NOTE, SCOPE_JOB, "RECON_RULES", "levels of rules are those of '%s'", s);
}

static void show_variant(const struct launch *l)
{
    for (size_t i = 0; i < l->findings.n && !l->jsonl && !l->verbose; i++)
        if (str_eq(l->findings.v[i].rule, "variant"))
            cli_warn("%s", l->findings.v[i].text);
}

static void show_findings(const struct launch *l)
{
    FILE *to = l->check_only ? stdout : stderr;
    struct str t = { 0 };

    if (l->jsonl)
        findings_json(&l->findings, &t);
    else
        findings_text(&l->findings, l->verbose, term_fancy(to), &t);
    if (t.len)
        fwrite(t.s, 1, t.len, to);
    fflush(to);
    str_release(&t);
}

/* The node is told once, by the finding that settles it. */
static void record_node(struct launch *l, enum scope scope)
{
    struct err err = { 0 };

    for (size_t i = 0; i < l->findings.n && l->run; i++) {
        const struct finding *f = &l->findings.v[i];

        if (f->level != LEVEL_ERROR || f->scope != scope)
            continue;
        if ((scope == SCOPE_NODE ? run_bad_node : run_job_finding)(l->run, l->node, f, &err))
            cli_fail(&err);
        return;
    }
}

/* Two nodes agree that no node can do it: what still waits is held. recon-submit does it, which may talk to the cluster;
 * where this node may not, --watch or a person does it. */
static void hold_run(struct launch *l)
{
    char *agreed = l->run && l->job ? run_agreed(l->run) : NULL, *submit;
    struct child c = { .env = environ, .deadline_ms = HOLD_MS };
    struct err err = { 0 };

    if (!agreed)
        return;
    submit = path_part("bin/recon-submit");
    c.argv = (const char *const[]){ submit, "--hold-agreed", run_path(l->run), NULL };
    if (child_run(&c, &err))
        cli_warn("the run could not be held: %s", err.text);
    if (c.errout.len)
        fputs(c.errout.s, stderr);
    str_release(&c.out);
    str_release(&c.errout);
    free(submit);
    free(agreed);
}

int launch_verdict(struct launch *l)
{
    enum mode mode = asked_mode();
    int status = 0;

    if (mode != MODE_OFF)
        launch_judge(l);
    note_mode(l, mode);
    for (size_t i = 0; i < l->findings.n; i++)
        events_finding(l->events, &l->findings.v[i]);
    show_variant(l);
    show_findings(l);
    if (mode == MODE_ERROR)
        status = findings_status(&l->findings);
    if (status == 0 || l->check_only)
        return status;
    record_node(l, status == CODE_NODE ? SCOPE_NODE : SCOPE_JOB);
    if (status == CODE_JOB)
        hold_run(l);
    cli_error(status, "'%s' is not started on %s: %zu error%s%s", l->argv[0], l->node,
              findings_count(&l->findings, LEVEL_ERROR), plural(findings_count(&l->findings, LEVEL_ERROR)),
              status == CODE_NODE ? ", another node may do" : "");
    return status;
}
