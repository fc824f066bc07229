/* Which nodes can take a task of the request, and what the others lack. */
#include "config.h"
#include "check/preflight_priv.h"

#include <ctype.h>
#include <stdlib.h>

const char *asked(const struct preflight *p, const char *name)
{
    return directives_get(p->directives, name);
}

/* ---- what is asked of a node ---- */

static void gres_add(struct gres_items *l, const char *item, const char *name, bool per_node)
{
    struct strv f = { 0 };
    struct gres_item *g;
    size_t i = 0;

    strv_split(&f, str_starts(item, "gres:") ? item + 5 : item, ":=");
    g = VEC_ADD(l);
    g->name = xstrdup(name ? name : f.n ? f.v[i++] : "");
    if (i < f.n && !isdigit((unsigned char)f.v[i][0]))
        g->type = xstrdup(f.v[i++]);
    g->count = i < f.n ? strtoull(f.v[i], NULL, 10) : 1;
    g->per_node = per_node;
    strv_release(&f);
}

void gres_asked(const struct preflight *p, struct gres_items *l)
{
    static const struct { const char *option, *name; bool per_node; } options[] = {
        { "gpus", "gpu", false },           { "gpus-per-node", "gpu", true }, { "gpus-per-task", "gpu", true },
        { "gpus-per-socket", "gpu", false }, { "gres", NULL, true },
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        struct strv items = { 0 };
        const char *v = asked(p, options[i].option);

        if (v && !str_eq(v, "none"))
            strv_split(&items, v, ",");
        for (size_t k = 0; k < items.n; k++)
            if (*items.v[k] && !str_eq(items.v[k], "0"))
                gres_add(l, items.v[k], options[i].name, options[i].per_node);
        strv_release(&items);
    }
}

void gres_release(struct gres_items *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].name);
        free(l->v[i].type);
    }
    free(l->v);
    *l = (struct gres_items){ 0 };
}

static uint64_t number(const struct preflight *p, const char *name)
{
    const char *v = asked(p, name);

    return v && isdigit((unsigned char)*v) ? strtoull(v, NULL, 10) : 0;
}

struct demand {
    struct gres_items gres;
    const char *constraint;
    struct strv only, not; /* --nodelist, --exclude */
    uint64_t cpus, mib, nodes;
};

static void demand_of(const struct preflight *p, struct demand *d)
{
    const char *mem = asked(p, "mem"), *per_cpu = asked(p, "mem-per-cpu");
    uint64_t cpus = number(p, "cpus-per-task"), tasks = number(p, "ntasks-per-node"), least = number(p, "mincpus");

    *d = (struct demand){ .constraint = asked(p, "constraint"), .nodes = number(p, "nodes") };
    gres_asked(p, &d->gres);
    d->cpus = (cpus ? cpus : 1) * (tasks ? tasks : 1);
    if (least > d->cpus)
        d->cpus = least;
    if (mem)
        slurm_mib(mem, &d->mib);
    else if (per_cpu && slurm_mib(per_cpu, &d->mib) == 0)
        d->mib *= d->cpus;
    if (asked(p, "overcommit"))
        d->cpus = 1;
    hostlist_expand(asked(p, "nodelist") ? asked(p, "nodelist") : "", &d->only, NULL);
    hostlist_expand(asked(p, "exclude") ? asked(p, "exclude") : "", &d->not, NULL);
}

static void demand_release(struct demand *d)
{
    gres_release(&d->gres);
    strv_release(&d->only);
    strv_release(&d->not);
}

/* Its GRES of that name have no type: slurm.conf may leave that to gres.conf. */
static bool untyped(const struct cluster_node *n, const char *name)
{
    struct strv items = { 0 };
    bool found = false;
    size_t len = strlen(name);

    if (n->gres)
        strv_split(&items, n->gres, ",");
    for (size_t i = 0; i < items.n && !found; i++)
        found = strncmp(items.v[i], name, len) == 0 &&
                (!items.v[i][len] || (items.v[i][len] == ':' && isdigit((unsigned char)items.v[i][len + 1])));
    strv_release(&items);
    return found;
}

/* What the node lacks for a task, in words, owned; NULL: nothing that is known. */
static char *lacks(const struct demand *d, const struct cluster_node *n)
{
    struct strv have = { 0 };
    char *why = NULL;

    if (strv_has(&d->not, n->name))
        return xstrdup("is excluded");
    if (d->only.n && !strv_has(&d->only, n->name))
        return xstrdup("is not in --nodelist");
    for (size_t i = 0; i < d->gres.n && !why; i++) {
        const struct gres_item *g = &d->gres.v[i];
        uint64_t wanted = g->per_node ? g->count : 1, held = cluster_gres(n, g->name, g->type && untyped(n, g->name) ? NULL : g->type);

        if (held < wanted)
            why = xasprintf("has %llu of %llu GRES %s%s%s", (unsigned long long)held, (unsigned long long)wanted, g->name,
                            g->type ? ":" : "", g->type ? g->type : "");
    }
    if (!why && d->mib && n->memory_mib && d->mib > n->memory_mib)
        why = xasprintf("has %llu of %llu MiB", (unsigned long long)n->memory_mib, (unsigned long long)d->mib);
    if (!why && n->cpus && d->cpus > n->cpus)
        why = xasprintf("has %u of %llu CPUs", n->cpus, (unsigned long long)d->cpus);
    if (!why && d->constraint) {
        strv_split(&have, n->features ? n->features : "", ",");
        if (constraint_fits(d->constraint, &have) == 0)
            why = xasprintf("has features '%s', not '%s'", n->features ? n->features : "", d->constraint);
        strv_release(&have);
    }
    return why;
}

/* ---- where ---- */

static void add_once(struct strv *l, const char *name)
{
    if (!strv_has(l, name))
        strv_add(l, name);
}

void partition_nodes(const struct preflight *p, struct strv *ret)
{
    const char *names = asked(p, "partition");
    struct strv list = { 0 };

    if (names)
        strv_split(&list, names, ",");
    for (size_t i = 0; i < (list.n ? list.n : 1); i++) {
        const struct cluster_partition *x = cluster_partition(p->cluster, list.n ? list.v[i] : NULL);

        for (size_t k = 0; x && k < x->nodes.n; k++) {
            bool all = str_eq(x->nodes.v[k], "ALL");

            if (!all && list.n > 1)
                add_once(ret, x->nodes.v[k]);
            else if (!all)
                strv_add(ret, x->nodes.v[k]);
            for (size_t n = 0; all && n < p->cluster->nodes.n; n++)
                strv_add(ret, p->cluster->nodes.v[n].name);
        }
    }
    strv_release(&list);
}

char *partition_words(const struct preflight *p)
{
    const char *name = asked(p, "partition");
    const struct cluster_partition *def = cluster_partition(p->cluster, NULL);

    return xasprintf("partition '%s'", name ? name : def ? def->name : "?");
}

void preflight_nodes(const struct preflight *p, struct strv *ret)
{
    struct strv names = { 0 };
    struct demand d;

    if (!p->cluster)
        return;
    demand_of(p, &d);
    partition_nodes(p, &names);
    for (size_t i = 0; i < names.n; i++) {
        const struct cluster_node *n = cluster_node(p->cluster, names.v[i]);
        char *why = n ? lacks(&d, n) : NULL;

        if (n && !why && !strv_has(ret, n->name))
            strv_add(ret, n->name);
        free(why);
    }
    demand_release(&d);
    strv_release(&names);
}

/* ---- architectures ---- */

static void add_capability(const struct conf_map *m, const char *name, struct str *ret)
{
    const char *v = name ? conf_map_get(m, name) : NULL;

    if (v && !(ret->len && strstr(ret->s, v)))
        str_addf(ret, "%s%s", ret->len ? "," : "", v);
}

/* The types of a node's GPUs, "gpu:a100:2,gpu:h100:4", by the map. */
static void add_types(const struct conf_map *m, const char *gres, struct str *ret)
{
    struct strv items = { 0 };

    strv_split(&items, gres ? gres : "", ",");
    for (size_t i = 0; i < items.n; i++) {
        struct strv f = { 0 };

        strv_split(&f, items.v[i], ":(");
        if (f.n > 1 && str_eq(f.v[0], "gpu"))
            add_capability(m, f.v[1], ret);
        strv_release(&f);
    }
    strv_release(&items);
}

char *preflight_gpus(const struct preflight *p, const char *node, const struct conf_map *m)
{
    const struct cluster_node *n = cluster_node(p->cluster, node);
    struct gres_items l = { 0 };
    struct strv words = { 0 };
    struct str t = { 0 };
    bool gpu = false;

    gres_asked(p, &l);
    for (size_t i = 0; i < l.n && m->n; i++)
        if (str_eq(l.v[i].name, "gpu")) {
            gpu = true;
            add_capability(m, l.v[i].type, &t);
        }
    if (gpu && !t.len && n) {
        add_types(m, n->gres, &t);
        strv_split(&words, n->features ? n->features : "", ",");
        for (size_t i = 0; i < words.n; i++)
            add_capability(m, words.v[i], &t);
    }
    gres_release(&l);
    strv_release(&words);
    return t.len ? str_take(&t) : NULL;
}

/* ---- the rule ---- */

struct reasons { /* each once, with the number of nodes and the first of them */
    struct reason { char *why; const char *first; size_t n; } *v;
    size_t n, cap;
};

static void reason_add(struct reasons *l, char *why, const char *node)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].why, why)) {
            l->v[i].n++;
            free(why);
            return;
        }
    *VEC_ADD(l) = (struct reason){ why, node, 1 };
}

static char *reason_words(const struct reasons *l)
{
    struct str t = { 0 };

    for (size_t i = 0; i < l->n && i < 4; i++) {
        if (l->v[i].n > 1)
            str_addf(&t, "%s%s and %zu more: each %s", i ? "; " : "", l->v[i].first, l->v[i].n - 1, l->v[i].why);
        else
            str_addf(&t, "%s%s %s", i ? "; " : "", l->v[i].first, l->v[i].why);
    }
    if (l->n > 4)
        str_addf(&t, "; and %zu other reasons", l->n - 4);
    return str_take(&t);
}

void no_node_fits(const struct preflight *p, struct findings *out)
{
    struct strv names = { 0 };
    struct reasons l = { 0 };
    struct demand d;
    size_t fit = 0;
    uint64_t wanted;
    char *place = partition_words(p), *words;

    demand_of(p, &d);
    partition_nodes(p, &names);
    for (size_t i = 0; i < names.n; i++) {
        const struct cluster_node *n = cluster_node(p->cluster, names.v[i]);
        char *why = n ? lacks(&d, n) : NULL;

        if (why)
            reason_add(&l, why, n->name);
        else
            fit++; /* one that is not known, too */
    }
    words = reason_words(&l);
    wanted = d.nodes ? d.nodes : 1;
    if (l.n && fit < wanted)
        finding_explain(findings_add(out, "no-node-fits", LEVEL_ERROR, SCOPE_JOB, place,
                                     "%zu of %zu nodes of %s can take a task, %llu %s wanted: %s", fit, names.n, place,
                                     (unsigned long long)wanted, wanted > 1 ? "are" : "is", words),
                        NULL, "Slurm would refuse the job, or let it wait for ever",
                        "ask for less, for another --partition, or leave a node of --exclude in");
    for (size_t i = 0; i < l.n; i++)
        free(l.v[i].why);
    free(l.v);
    free(words);
    free(place);
    demand_release(&d);
    strv_release(&names);
}
