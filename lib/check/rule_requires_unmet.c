#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* A least version that a pin's `requires` states, what the node has of it, and the rule that says the same of an object. */
struct least {
    const char *key, *wants, *has, *rule;
};

static bool told(const struct findings *l, const char *rule)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].level == LEVEL_ERROR && str_eq(l->v[i].rule, rule))
            return true;
    return false;
}

/* What the capture wrote for the CUDA runtime is judged with the runtime, by driver-too-old. */
static const char *driver_beyond_runtime(const struct check_case *c, const struct pin *p)
{
    const char *runtime = p->requires.cuda_runtime, *minimum = runtime ? compat_driver_minimum(runtime) : NULL;

    if (case_forward_compatible(c))
        return NULL;
    return p->requires.driver && minimum && version_cmp(p->requires.driver, minimum) <= 0 ? NULL : p->requires.driver;
}

static bool less(const struct least *l)
{
    if (str_starts(l->wants, "x86-64") != str_starts(l->has, "x86-64"))
        return false; /* another machine: what cannot be loaded there is told as such */
    return version_cmp(l->has, l->wants) < 0;
}

static void report(const struct check_case *c, const struct least *l, struct findings *out)
{
    char *remedy = xasprintf("sbatch --exclude=%s, or correct requires.%s of the pin", case_node(c), l->key);

    finding_explain(findings_add(out, "requires-unmet", LEVEL_ERROR, SCOPE_NODE, l->key,
                                 "the pin requires %s %s, and %s has %s", l->key, l->wants, case_node(c), l->has),
                    NULL, "the pin says more than its files ask for: it was written by hand, or its files were not read here",
                    remedy);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const struct pin none = { 0 }, *p = c->pin ? c->pin : &none; /* no pin promises nothing */
    const struct least all[] = {
        { "glibc", p->requires.glibc, c->facts->os.glibc, "glibc-too-old" },
        { "driver", driver_beyond_runtime(c, p), c->facts->driver.kernel_module, "driver-too-old" },
        { "cpu_isa", p->requires.cpu_isa, c->facts->cpu.isa, "cpu-isa" },
    };

    (void)err;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].wants && all[i].has && !told(out, all[i].rule) && less(&all[i]))
            report(c, &all[i], out);
    return 0;
}

const struct rule rule_requires_unmet = {
    .name = "requires-unmet",
    .doc = "the node has less than the pin's `requires` states, and no object shows it",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS,
    .eval = eval,
};
