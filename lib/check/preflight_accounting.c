/* A job against the limits of accounting: what one task may never have. How many tasks there may be is the splitting's. */
#include "config.h"
#include "check/preflight_priv.h"

#include <ctype.h>
#include <stdlib.h>

static uint64_t number(const struct preflight *p, const char *name, uint64_t least)
{
    const char *v = asked(p, name);
    uint64_t n = v && isdigit((unsigned char)*v) ? strtoull(v, NULL, 10) : 0;

    return n > least ? n : least;
}

/* What one task asks of a TRES; 0: nothing, or it is not known. */
static uint64_t task_tres(const struct preflight *p, const char *tres)
{
    const char *mem = asked(p, "mem"), *type = NULL;
    uint64_t nodes = number(p, "nodes", 1), tasks = number(p, "ntasks", nodes * number(p, "ntasks-per-node", 1)), mib, sum = 0;
    struct gres_items l = { 0 };
    char *name;

    if (str_eq(tres, "cpu"))
        return tasks * number(p, "cpus-per-task", 1);
    if (str_eq(tres, "node"))
        return nodes;
    if (str_eq(tres, "mem"))
        return mem && slurm_mib(mem, &mib) == 0 ? nodes * mib : 0;
    if (!str_starts(tres, "gres/"))
        return 0;
    name = xstrndup(tres + 5, strcspn(tres + 5, ":"));
    type = tres[5 + strlen(name)] ? tres + 6 + strlen(name) : NULL;
    gres_asked(p, &l);
    for (size_t i = 0; i < l.n; i++)
        if (str_eq(l.v[i].name, name) && (!type || str_eq(l.v[i].type, type)))
            sum += l.v[i].count * (l.v[i].per_node ? nodes : 1);
    gres_release(&l);
    free(name);
    return sum;
}

static void judge(const struct preflight *p, const struct account_limit *l, struct findings *out)
{
    const char *time = asked(p, "time");
    int64_t seconds = 0;
    uint64_t wanted = 0;
    char count[24];
    const char *what = l->tres ? l->tres : l->kind == LIMIT_WALL ? "minutes" : "job";

    if (l->kind == LIMIT_WALL && time && slurm_time(time, &seconds) == 0)
        wanted = seconds < 0 ? UINT64_MAX : (uint64_t)(seconds + 59) / 60;
    else if (l->kind == LIMIT_TRES_JOB || l->kind == LIMIT_TRES_ALL)
        wanted = task_tres(p, l->tres);
    else if (l->kind == LIMIT_JOBS || l->kind == LIMIT_SUBMIT)
        wanted = 1;
    if (wanted <= l->most)
        return;
    snprintf(count, sizeof(count), wanted == UINT64_MAX ? "unlimited" : "%llu", (unsigned long long)wanted);
    finding_explain(findings_add(out, "accounting-limit", LEVEL_ERROR, SCOPE_JOB, l->whose,
                                 "a task asks for %s %s, %s allows %llu (%s)", count, what, l->whose,
                                 (unsigned long long)l->most, l->what),
                    NULL, "Slurm would refuse the job, or let it wait for ever",
                    "ask for less, or for another --qos or --account: sacctmgr show qos, sacctmgr show assoc user=$USER");
}

void accounting_limits(const struct preflight *p, struct findings *out)
{
    const struct accounting *a = p->accounting;

    for (size_t i = 0; a && a->known && i < a->limits.n; i++)
        if (accounting_holds(a, &a->limits.v[i], asked(p, "account"), asked(p, "qos")))
            judge(p, &a->limits.v[i], out);
}
