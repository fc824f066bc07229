/* A pin that is captured at submission is of the shell that submits: what is wrong there would be promised to every node.
 * A script is read whatever pin there is. */
#include "config.h"
#include "recon-submit.h"
#include "cli_rules.h"
#include "check/check.h"

#include <stdlib.h>

extern char **environ;

static void show(const struct findings *list)
{
    struct str t = { 0 };

    findings_text(list, false, term_fancy(stderr), &t);
    if (t.len)
        fputs(t.s, stderr);
    str_release(&t);
}

/* The first error that no node can make good. A node's own (a version that this system lacks) is told and no more. */
static int refuse(const struct findings *list, struct err *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].level == LEVEL_ERROR && list->v[i].scope == SCOPE_JOB)
            return err_set(err, CODE_JOB,
                           "not submitted: %s: %s (RECON_CHECK=warn submits all the same)", list->v[i].rule, list->v[i].text);
    return 0;
}

int judge_here(const struct order *x, bool captured, struct err *err)
{
    const char *mode = getenv("RECON_CHECK");
    struct resolution r = { 0 };
    struct findings list = { 0 };
    struct check_scripts scripts = { 0 };
    struct conf_map levels;
    struct check_case c = { .received = environ, .restored = true, .scripts = &scripts, .levels = &levels };
    int rc = 0;

    if (str_eq(mode, "off"))
        return 0;
    cli_levels(getenv("RECON_RULES"), &levels);
    check_scripts_add(&scripts, x->spec.script.n ? x->spec.script.v[0] : x->argv.v[0]);
    if (captured && resolve(&x->pin, NULL, "", environ, &r, NULL) == 0) {
        resolution_symbols(&r, "", NULL);
        c.pin = &x->pin;
        c.resolution = &r;
    }
    check(&c, NULL, &list); /* no facts: this node is not the one that will run it */
    show(&list);
    if (!str_eq(mode, "warn"))
        rc = refuse(&list, err);
    findings_release(&list);
    check_scripts_release(&scripts);
    conf_map_release(&levels);
    resolution_release(&r);
    return rc;
}
