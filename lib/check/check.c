#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static const struct {
    unsigned input;
    const char *words;
} inputs[] = {
    { CHECK_SPEC, "the job's description" },   { CHECK_PIN, "a pin" },     { CHECK_FACTS, "facts of the node" },
    { CHECK_RESOLUTION, "resolved libraries" }, { CHECK_CLUSTER, "the cluster" }, { CHECK_ENV, "the environment as received" },
};

static unsigned present(const struct check_case *c)
{
    return (c->spec ? CHECK_SPEC : 0u) | (c->pin ? CHECK_PIN : 0u) | (c->facts ? CHECK_FACTS : 0u) |
           (c->resolution ? CHECK_RESOLUTION : 0u) | (c->cluster ? CHECK_CLUSTER : 0u) | (c->received ? CHECK_ENV : 0u);
}

static void not_checked(struct findings *l, const struct rule *r, const char *why)
{
    findings_add(l, "not-checked", LEVEL_NOTE, SCOPE_NODE, r->name, "%s", why);
    l->not_checked++;
}

static void run_rule(const struct rule *r, const struct check_case *c, struct findings *l)
{
    unsigned lacks = r->inputs & ~present(c);
    struct str words = { 0 };
    struct err err = { 0 };

    if (lacks) {
        str_add(&words, "it wants ");
        for (size_t i = 0; i < COUNT(inputs); i++)
            if (lacks & inputs[i].input)
                str_addf(&words, "%s%s", words.len > 9 ? " and " : "", inputs[i].words);
        not_checked(l, r, words.s);
    } else if (r->eval(c, l, &err)) {
        not_checked(l, r, err.code ? err.text : "the rule failed without a reason");
    }
    str_release(&words);
}

static size_t rank(const char *rule)
{
    size_t i = 0;

    while (check_rules[i] && !str_eq(check_rules[i]->name, rule))
        i++;
    return i;
}

static bool before(const struct finding *a, const struct finding *b)
{
    return a->level != b->level ? a->level > b->level : rank(a->rule) < rank(b->rule);
}

/* Insertion sort: stable, and the lists are short. */
static void order(struct findings *l)
{
    for (size_t i = 1; i < l->n; i++) {
        struct finding f = l->v[i];
        size_t j = i;

        for (; j > 0 && before(&f, &l->v[j - 1]); j--)
            l->v[j] = l->v[j - 1];
        l->v[j] = f;
    }
}

/* One root cause once: a rule speaks of an object once, though several closures hold it. */
static void unique(struct findings *l)
{
    struct findings once = { .not_checked = l->not_checked, .ms = l->ms };

    for (size_t i = 0; i < l->n; i++) {
        bool known = false;

        for (size_t j = 0; j < once.n && !known; j++)
            known = str_eq(once.v[j].rule, l->v[i].rule) && str_eq(once.v[j].object, l->v[i].object) &&
                    str_eq(once.v[j].text, l->v[i].text);
        if (!known) {
            *VEC_ADD(&once) = l->v[i];
            memset(&l->v[i], 0, sizeof(l->v[i]));
        }
    }
    findings_release(l);
    *l = once;
}

/* Is this object in closures of optional modules alone? One that no closure has is not. */
static bool of_optional(const struct resolution *r, const char *object)
{
    bool found = false;

    for (size_t i = 0; i < r->closures.n; i++) {
        const struct closure *c = &r->closures.v[i];
        bool optional = c->libs.n && strv_has(&r->optional, library_name(&c->libs.v[0]));

        for (size_t j = 0; j < c->libs.n; j++) {
            const struct library *l = &c->libs.v[j];

            if (l->why == WHY_LOADED || !object || (!str_eq(l->path, object) && !str_eq(l->soname, object)))
                continue;
            if (!optional)
                return false;
            found = true;
        }
    }
    return found;
}

/* A package may do without modules that its import was not seen to need. */
static void relent(const struct check_case *c, struct findings *l)
{
    for (size_t i = 0; c->resolution && c->resolution->optional.n && i < l->n; i++) {
        struct finding *f = &l->v[i];
        char *cause;

        if (f->level != LEVEL_ERROR || !of_optional(c->resolution, f->object))
            continue;
        cause = xasprintf("%s%sonly modules need it that the package's import was not seen to load: an error once one is imported",
                          f->cause ? f->cause : "", f->cause ? "; " : "");
        f->level = LEVEL_WARN;
        free(f->cause);
        f->cause = cause;
    }
}

/* What recon itself could not find out: never an error. */
static void admit(const struct check_case *c, struct findings *l)
{
    for (size_t i = 0; c->facts && i < c->facts->unknown.n; i++) {
        const char *text = c->facts->unknown.v[i];
        char *part = xstrndup(text, strcspn(text, ":"));

        findings_add(l, "node-unknown", LEVEL_NOTE, SCOPE_NODE, part, "%s", text);
        free(part);
    }
    for (size_t i = 0; c->resolution && i < c->resolution->failed.n; i++) {
        findings_add(l, "not-checked", LEVEL_NOTE, SCOPE_NODE, "resolution", "%s", c->resolution->failed.v[i]);
        l->not_checked++;
    }
}

static const char *level_of(const struct check_case *c, const char *rule)
{
    return c->levels ? conf_map_get(c->levels, rule) : NULL;
}

/* Notes say that something was saved, or is another's to tell: no level makes more of them. */
static void move_levels(const struct check_case *c, struct findings *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *text = level_of(c, l->v[i].rule);
        int level;

        if (text && l->v[i].level != LEVEL_NOTE && name_value(level_names, text, &level) == 0)
            l->v[i].level = (enum level)level;
    }
}

void check(const struct check_case *c, const struct strv *skip, struct findings *ret)
{
    struct check_case with = *c;
    struct walks walks = { 0 };

    *ret = (struct findings){ 0 };
    if (c->resolution && c->resolution->closures.n > 1) {
        walks_make(c, &walks);
        with.walks = &walks;
    }
    admit(c, ret);
    for (size_t i = 0; check_rules[i]; i++)
        if ((!skip || !strv_has(skip, check_rules[i]->name)) && !str_eq(level_of(c, check_rules[i]->name), "off"))
            run_rule(check_rules[i], &with, ret);
    free(walks.v);
    move_levels(c, ret);
    relent(c, ret);
    unique(ret);
    order(ret);
}

bool check_not_answering(const struct check_case *c, const struct strv *skip, const char *path, double ms, struct findings *ret)
{
    static const char rule[] = "path-not-answering";
    char *remedy;

    if ((skip && strv_has(skip, rule)) || str_eq(level_of(c, rule), "off"))
        return false;
    remedy = xasprintf("sbatch --exclude=%s, or do without it: see LD_LIBRARY_PATH and the pin", case_node(c));
    finding_explain(findings_add(ret, rule, LEVEL_ERROR, SCOPE_NODE, path, "gave no answer within %.0f ms on %s", ms, case_node(c)),
                    NULL, "a network file system whose server does not answer; the program's loader would wait there, too",
                    remedy);
    free(remedy);
    move_levels(c, ret);
    return true;
}
