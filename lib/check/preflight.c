/* The rules of the preflight: one function each, by the names of the catalogue. */
#include "config.h"
#include "check/preflight_priv.h"

#include <ctype.h>
#include <stdlib.h>

#define add(out, rule, level, object, ...) findings_add(out, rule, level, SCOPE_JOB, object, __VA_ARGS__)

/* ---- rules ---- */

static void partition_unknown(const struct preflight *p, struct findings *out)
{
    const char *names = asked(p, "partition");
    struct strv list = { 0 };
    struct str all = { 0 };

    for (size_t i = 0; i < p->cluster->partitions.n; i++)
        str_addf(&all, "%s%s", i ? ", " : "", p->cluster->partitions.v[i].name);
    if (names)
        strv_split(&list, names, ",");
    for (size_t i = 0; i < list.n && all.len; i++)
        if (!cluster_partition(p->cluster, list.v[i]))
            finding_explain(add(out, "partition-unknown", LEVEL_ERROR, list.v[i],
                                "partition '%s' is not among the cluster's: %s", list.v[i], all.s),
                            NULL, NULL, "--partition with one of them");
    str_release(&all);
    strv_release(&list);
}

static void time_limit(const struct preflight *p, struct findings *out)
{
    const char *names = asked(p, "partition"), *time = asked(p, "time");
    struct strv list = { 0 };
    const struct cluster_partition *longest = NULL;
    int64_t seconds;

    if (!time || slurm_time(time, &seconds))
        return;
    if (names)
        strv_split(&list, names, ",");
    for (size_t i = 0; i < (list.n ? list.n : 1); i++) {
        const struct cluster_partition *x = cluster_partition(p->cluster, list.n ? list.v[i] : NULL);

        if (!x || x->max_seconds <= 0) { /* no bound, or none known */
            strv_release(&list);
            return;
        }
        if (!longest || x->max_seconds > longest->max_seconds)
            longest = x;
    }
    if (longest && (seconds < 0 || seconds > longest->max_seconds))
        finding_explain(add(out, "time-limit", LEVEL_ERROR, time,
                            "a task's time is %s, partition '%s' gives at most %lld min", time, longest->name,
                            (long long)longest->max_seconds / 60),
                        NULL, "a task that asks for more than its partition gives waits for ever or is refused",
                        "a smaller --time: a run makes more tasks of fewer datasets with --set datasets_per_task=N");
    strv_release(&list);
}

static void add_types(const struct cluster_node *n, const char *gres, struct strv *types)
{
    struct strv items = { 0 };

    if (n->gres)
        strv_split(&items, n->gres, ",");
    for (size_t i = 0; i < items.n; i++) {
        struct strv f = { 0 };

        items.v[i][strcspn(items.v[i], "(")] = 0;
        strv_split(&f, items.v[i], ":");
        if (f.n > 1 && str_eq(f.v[0], gres) && !isdigit((unsigned char)f.v[1][0]) && !strv_has(types, f.v[1]))
            strv_add(types, f.v[1]);
        strv_release(&f);
    }
    strv_release(&items);
}

static void judge_gres(const struct preflight *p, const struct gres_item *g, const struct strv *names,
                       struct findings *out)
{
    const struct cluster *c = p->cluster;
    uint64_t any = 0, typed = 0;
    struct strv types = { 0 };
    struct str text = { 0 };
    char *place = partition_words(p);

    for (size_t i = 0; i < names->n; i++) {
        const struct cluster_node *n = cluster_node(c, names->v[i]);

        if (!n)
            continue;
        any += cluster_gres(n, g->name, NULL);
        typed += g->type ? cluster_gres(n, g->name, g->type) : 0;
        add_types(n, g->name, &types);
    }
    for (size_t i = 0; i < types.n; i++)
        str_addf(&text, "%s%s", i ? ", " : "", types.v[i]);
    if (!any)
        finding_explain(add(out, "gres-not-configured", LEVEL_ERROR, g->name,
                            "no node of %s has a GRES '%s' (GresTypes is %s)", place, g->name,
                            c->gres_types ? c->gres_types : "not set"),
                        NULL, "Slurm hands out only what GresTypes in slurm.conf and Gres of a node name",
                        c->gres_types ? "another --partition; sinfo -o '%P %G' lists them"
                                      : "no --gres and no --gpus on this cluster, or ask the site to configure GRES");
    else if (g->type && types.n && !typed)
        finding_explain(add(out, "gres-type-unknown", LEVEL_ERROR, g->type,
                            "no node of %s has a '%s' of type '%s'; there are: %s", place, g->name, g->type, text.s),
                        NULL, NULL, "--gres with one of them, or without a type");
    str_release(&text);
    strv_release(&types);
    free(place);
}

static void gres(const struct preflight *p, struct findings *out)
{
    struct gres_items l = { 0 };
    struct strv names = { 0 };

    partition_nodes(p, &names);
    gres_asked(p, &l);
    for (size_t i = 0; i < l.n && names.n; i++)
        judge_gres(p, &l.v[i], &names, out);
    if (p->cluster->select_type && str_eq(p->cluster->select_type, "select/linear") && asked(p, "gpus"))
        finding_explain(add(out, "gres-not-configured", LEVEL_ERROR, "gpus",
                            "SelectType is select/linear, which takes no --gpus"),
                        NULL, "the --gpus options belong to select/cons_tres", "--gres=gpu:N");
    gres_release(&l);
    strv_release(&names);
}

static void memory(const struct preflight *p, struct findings *out)
{
    const char *mem = asked(p, "mem");
    struct strv names = { 0 };
    uint64_t wanted, most = 0;

    if (!mem || slurm_mib(mem, &wanted))
        return;
    partition_nodes(p, &names);
    for (size_t i = 0; i < names.n; i++) {
        const struct cluster_node *n = cluster_node(p->cluster, names.v[i]);

        most = n && n->memory_mib > most ? n->memory_mib : most;
    }
    if (most && wanted > most) {
        char *place = partition_words(p);

        finding_explain(add(out, "mem-too-big", LEVEL_ERROR, mem, "--mem is %llu MiB, the largest node of %s has %llu MiB",
                            (unsigned long long)wanted, place, (unsigned long long)most),
                        NULL, NULL, "a smaller --mem, or another --partition");
        free(place);
    }
    strv_release(&names);
}

static bool known_feature(const struct cluster *c, const char *word)
{
    for (size_t i = 0; i < c->nodes.n; i++) {
        struct strv have = { 0 };
        bool found;

        strv_split(&have, c->nodes.v[i].features ? c->nodes.v[i].features : "", ",");
        found = strv_has(&have, word);
        strv_release(&have);
        if (found)
            return true;
    }
    return false;
}

/* Slurm refuses a word that no node of the cluster has, even where another would do. */
static void features(const struct preflight *p, struct findings *out)
{
    const char *constraint = asked(p, "constraint");
    struct strv words = { 0 }, none = { 0 };

    if (!constraint || !p->cluster->nodes.n)
        return;
    constraint_words(constraint, &words);
    for (size_t i = 0; i < words.n; i++)
        if (!known_feature(p->cluster, words.v[i]))
            finding_explain(add(out, "feature-unknown", LEVEL_ERROR, words.v[i], "no node has the feature '%s'", words.v[i]),
                            NULL, NULL, "another --constraint; sinfo -o '%P %f' lists them");
    if (constraint_fits(constraint, &none) < 0) {
        finding_explain(add(out, "not-checked", LEVEL_NOTE, "constraint",
                            "--constraint=%s is not understood and left to Slurm", constraint), NULL, NULL, NULL);
        out->not_checked++;
    }
    strv_release(&words);
}

static void script_size(const struct preflight *p, struct findings *out)
{
    uint64_t most = p->cluster && p->cluster->script_bytes ? p->cluster->script_bytes : 4u << 20;

    if (p->script_bytes > most)
        finding_explain(add(out, "script-too-big", LEVEL_ERROR, "script", "the script has %zu bytes, Slurm takes %llu",
                            p->script_bytes, (unsigned long long)most),
                        NULL, "datasets or data stand in the template or in pinned variables",
                        "keep them in files; the list of datasets needs no place in the script");
}

static void array_size(const struct preflight *p, struct findings *out)
{
    const char *array = asked(p, "array"), *last = array ? array + strcspn(array, "%") : NULL;
    uint64_t top;

    while (last && last > array && isdigit((unsigned char)last[-1]))
        last--;
    if (!last || !p->cluster->array_size)
        return;
    top = strtoull(last, NULL, 10);
    if (top >= p->cluster->array_size)
        finding_explain(add(out, "array-too-big", LEVEL_ERROR, array,
                            "the highest index is %llu, MaxArraySize %u allows %u", (unsigned long long)top,
                            p->cluster->array_size, p->cluster->array_size - 1),
                        NULL, NULL, "leave --array to recon-submit, which makes as many submissions as are needed");
}

static void mem_unit(const struct preflight *p, struct findings *out)
{
    static const char *const options[] = { "mem", "mem-per-cpu", "mem-per-gpu", "tmp" };

    for (size_t i = 0; i < COUNT(options); i++) {
        const char *v = conf_map_get(p->asked, options[i]);

        if (v && *v && strspn(v, "0123456789") == strlen(v) && !str_eq(v, "0"))
            finding_explain(add(out, "mem-unit", LEVEL_WARN, options[i], "--%s=%s has no unit and is taken as %sM, megabytes",
                                options[i], v, v),
                            NULL, NULL, "write the unit: K, M, G or T");
    }
}

static void time_hhmm(const struct preflight *p, struct findings *out)
{
    static const char *const options[] = { "time", "time-min" };

    for (size_t i = 0; i < COUNT(options); i++) {
        const char *v = conf_map_get(p->asked, options[i]), *colon = v ? strchr(v, ':') : NULL;

        if (!colon || strchr(v, '-') || strchr(colon + 1, ':'))
            continue;
        finding_explain(add(out, "time-hhmm", LEVEL_WARN, options[i],
                            "--%s=%s is %.*s minutes and %s seconds; did you mean %.*s hours?", options[i], v,
                            (int)(colon - v), v, colon + 1, (int)(colon - v), v),
                        NULL, "two numbers are minutes and seconds to Slurm", "write H:M:S, or minutes alone");
    }
}

static void not_expanded(const struct preflight *p, struct findings *out)
{
    for (size_t i = 0; i < p->directives->n; i++) {
        const struct directive *d = &p->directives->v[i];

        if (d->value && (strchr(d->value, '$') || d->value[0] == '~'))
            finding_explain(add(out, "directive-not-expanded", LEVEL_WARN, d->option->name,
                                "--%s=%s: no shell reads a directive, so it stays as it is written", d->option->name,
                                d->value),
                            NULL, NULL, "write the value out, or give it on the command line");
    }
}

static void log_collision(const struct preflight *p, struct findings *out)
{
    const char *o = asked(p, "output"), *e = asked(p, "error");

    if (o && e && str_eq(o, e) && !str_eq(o, "/dev/null"))
        finding_explain(add(out, "log-collision", LEVEL_WARN, "error", "--output and --error are both %s", o), NULL,
                        "two writers of one file may overwrite each other's lines", "leave --error out");
}

static void env_stale(const struct preflight *p, struct findings *out)
{
    const char *job = p->env ? env_get(p->env, "SLURM_JOB_ID") : NULL;

    if (job)
        finding_explain(add(out, "slurm-env-stale", LEVEL_WARN, "SLURM_JOB_ID",
                            "this shell is inside job %s; its SLURM_* variables do not go into the new job", job),
                        NULL, "sbatch would hand them on (SLURM_CPU_BIND, SLURM_MEM_PER_NODE ...)", NULL);
}

/* Names that look as if sbatch read them. */
static void sbatch_env(const struct preflight *p, struct findings *out)
{
    static const struct { const char *seen, *meant; } names[] = {
        { "SBATCH_MEM", "SBATCH_MEM_PER_NODE" },        { "SBATCH_TIME", "SBATCH_TIMELIMIT" },
        { "SBATCH_ARRAY", "SBATCH_ARRAY_INX" },         { "SBATCH_CPUS_PER_TASK", NULL },
        { "SBATCH_NTASKS", NULL },                      { "SBATCH_NODES", NULL },
    };

    for (size_t i = 0; p->env && i < COUNT(names); i++) {
        const char *v = env_get(p->env, names[i].seen);

        if (v)
            finding_explain(add(out, "sbatch-env-override", LEVEL_WARN, names[i].seen,
                                "%s=%s is read by nobody%s%s", names[i].seen, v, names[i].meant ? "; sbatch reads " : "",
                                names[i].meant ? names[i].meant : ""),
                            NULL, NULL, "unset it, and say it in job.conf or on the command line");
    }
}

/* Source: Slurm's own advice that UnkillableStepTimeout is at least five times MessageTimeout (slurm.conf(5)). */
static void unkillable(const struct preflight *p, struct findings *out)
{
    const struct cluster *c = p->cluster;

    if (p->site && c->unkillable_timeout && c->message_timeout && c->unkillable_timeout < 5 * c->message_timeout)
        finding_explain(add(out, "unkillable-timeout-low", LEVEL_WARN, "UnkillableStepTimeout",
                            "UnkillableStepTimeout is %u s, at least %u are wanted (5 times MessageTimeout %u)",
                            c->unkillable_timeout, 5 * c->message_timeout, c->message_timeout),
                        NULL, "nodes are drained with 'Kill task failed' while a task is still writing its core or output",
                        "the site raises UnkillableStepTimeout in slurm.conf");
}

void preflight(const struct preflight *p, struct findings *ret)
{
    static void (*const of_request[])(const struct preflight *, struct findings *) = {
        script_size, mem_unit, time_hhmm, not_expanded, log_collision, env_stale, sbatch_env,
    };
    static void (*const of_cluster[])(const struct preflight *, struct findings *) = {
        partition_unknown, gres, features, memory, time_limit, array_size, unkillable,
    };

    for (size_t i = 0; p->cluster && i < COUNT(of_cluster); i++)
        of_cluster[i](p, ret);
    if (p->cluster && !findings_count(ret, LEVEL_ERROR)) /* else that is the reason */
        no_node_fits(p, ret);
    accounting_limits(p, ret);
    for (size_t i = 0; i < COUNT(of_request); i++)
        of_request[i](p, ret);
    if (!p->cluster) {
        finding_explain(findings_add(ret, "not-checked", LEVEL_NOTE, SCOPE_JOB, "cluster",
                                     "nobody could be asked for partitions, time, memory, GRES, features, MaxArraySize"),
                        NULL, "no controller and no slurm.conf here", NULL);
        ret->not_checked++;
    }
}
