/* A pin that is captured at submission is of the shell that submits: what is wrong there would be promised to every node. */
#include "config.h"
#include "recon-submit.h"
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
                           "not submitted, since this shell's environment would be pinned: %s: %s (RECON_CHECK=warn submits "
                           "all the same)", list->v[i].rule, list->v[i].text);
    return 0;
}

int judge_captured(const struct order *x, struct err *err)
{
    const char *mode = getenv("RECON_CHECK");
    struct resolution r = { 0 };
    struct findings list = { 0 };
    struct check_case c = { .pin = &x->pin, .resolution = &r, .received = environ, .restored = true };
    int rc = 0;

    if (str_eq(mode, "off") || resolve(&x->pin, NULL, "", environ, &r, NULL))
        return 0;
    resolution_symbols(&r, "", NULL);
    check(&c, NULL, &list); /* no facts: this node is not the one that will run it */
    show(&list);
    if (!str_eq(mode, "warn"))
        rc = refuse(&list, err);
    findings_release(&list);
    resolution_release(&r);
    return rc;
}
