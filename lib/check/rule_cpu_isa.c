#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* x86-64-v3 -> 3; x86-64 -> 1; 0 unknown */
static int level_of(const char *isa)
{
    if (!isa || !str_starts(isa, "x86-64"))
        return 0;
    return str_starts(isa, "x86-64-v") ? atoi(isa + 8) : 1;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    int have = level_of(c->facts->cpu.isa);
    struct walk w = { 0 };

    while (walk_next(c, &w)) {
        int wants = level_of(w.lib->object.isa);
        char *remedy;

        if (wants < 2 || (c->elsewhere && library_of_system(w.lib)))
            continue;
        if (!have)
            return err_set(err, CODE_UNAVAILABLE, "'%s' needs %s, and the CPU of %s is not known",
                           library_name(w.lib), w.lib->object.isa, case_node(c));
        if (wants <= have)
            continue;
        remedy = xasprintf("sbatch --exclude=%s, or --constraint for a newer CPU, or build with -march=%s",
                           case_node(c), c->facts->cpu.isa);
        finding_explain(
            findings_add(out, "cpu-isa", LEVEL_ERROR, SCOPE_NODE, library_name(w.lib),
                         "needs %s, and the CPU of %s is %s", w.lib->object.isa, case_node(c),
                         c->facts->cpu.isa),
            NULL,
            "it was built for the CPU of another node; the loader refuses it, or it ends with an illegal "
            "instruction",
            remedy);
        free(remedy);
    }
    return 0;
}

const struct rule rule_cpu_isa = {
    .name = "cpu-isa",
    .doc = "an object needs an x86-64 level above this node's CPU",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
