/* Slurm's own words on a cluster: Key=Value lines of slurm.conf and of scontrol. */
#include "config.h"
#include "node/cluster.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <strings.h>

#define HOSTS_MAX 200000

void cluster_release(struct cluster *c)
{
    for (size_t i = 0; i < c->partitions.n; i++) {
        free(c->partitions.v[i].name);
        strv_release(&c->partitions.v[i].nodes);
    }
    for (size_t i = 0; i < c->nodes.n; i++) {
        free(c->nodes.v[i].name);
        free(c->nodes.v[i].gres);
        free(c->nodes.v[i].features);
    }
    free(c->partitions.v);
    free(c->nodes.v);
    free(c->source);
    free(c->gres_types);
    free(c->select_type);
    *c = (struct cluster){ 0 };
}

/* ---- host lists ---- */

static int expand(const char *head, const char *rest, struct strv *ret, struct err *err);

/* One range of a bracket, "7" or "01-12". */
static int expand_range(const char *head, const char *range, const char *tail, struct strv *ret, struct err *err)
{
    size_t width = strspn(range, "0123456789");
    char *end;
    unsigned long from = strtoul(range, &end, 10), to = from;

    if (!width)
        return err_set(err, CODE_USAGE, "'%s' is no range of numbers", range);
    if (*end == '-')
        to = strtoul(end + 1, &end, 10);
    if (*end || to < from || to - from > HOSTS_MAX || to == ULONG_MAX)
        return err_set(err, CODE_USAGE, "'%s' is no range of numbers", range);
    for (unsigned long i = from; i <= to; i++) {
        char *name = xasprintf("%s%0*lu", head, (int)width, i);
        int rc = expand(name, tail, ret, err);

        free(name);
        if (rc)
            return rc;
    }
    return 0;
}

/* head is settled, rest may hold brackets. */
static int expand(const char *head, const char *rest, struct strv *ret, struct err *err)
{
    const char *open = strchr(rest, '['), *close = open ? strchr(open, ']') : NULL;
    struct strv ranges = { 0 };
    char *before, *inside;
    int rc = 0;

    if (!open) {
        strv_addf(ret, "%s%s", head, rest);
        return ret->n > HOSTS_MAX ? err_set(err, CODE_USAGE, "a host list of more than %d names", HOSTS_MAX) : 0;
    }
    if (!close)
        return err_set(err, CODE_USAGE, "a host list with an open bracket: '%s'", rest);
    before = xasprintf("%s%.*s", head, (int)(open - rest), rest);
    inside = xstrndup(open + 1, (size_t)(close - open - 1));
    strv_split(&ranges, inside, ",");
    for (size_t i = 0; i < ranges.n && rc == 0; i++)
        rc = expand_range(before, ranges.v[i], close + 1, ret, err);
    strv_release(&ranges);
    free(before);
    free(inside);
    return rc;
}

int hostlist_expand(const char *list, struct strv *ret, struct err *err)
{
    int rc = 0;

    while (*list && rc == 0) {
        size_t n = 0;
        int depth = 0;
        char *item;

        while (list[n] && (depth || list[n] != ',')) {
            depth += list[n] == '[' ? 1 : list[n] == ']' ? -1 : 0;
            n++;
        }
        item = xstrndup(list, n);
        if (*item)
            rc = expand("", item, ret, err);
        free(item);
        list += n + (list[n] == ',');
    }
    return rc;
}

/* ---- lines ---- */

/* The value of a key in a line of Key=Value: up to the next blank; owned, NULL when absent. */
static char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = line; *p;) {
        const char *v;

        p += strspn(p, " \t");
        v = p + n;
        if (strncasecmp(p, key, n) == 0 && v[strspn(v, " \t")] == '=') {
            v += strspn(v, " \t") + 1;
            v += strspn(v, " \t");
            n = *v == '"' ? strcspn(v + 1, "\"") : strcspn(v, " \t\r");
            return xstrndup(v + (*v == '"'), n);
        }
        p += strcspn(p, " \t");
    }
    return NULL;
}

static bool nothing(const char *s)
{
    return !s || !*s || strcasecmp(s, "(null)") == 0 || strcasecmp(s, "n/a") == 0;
}

static void take_text(const char *line, const char *key, char **at)
{
    char *v = value_of(line, key);

    if (v && !nothing(v)) {
        free(*at);
        *at = v;
    } else {
        free(v);
    }
}

static void take_number(const char *line, const char *key, uint64_t *at)
{
    char *v = value_of(line, key);

    if (v && isdigit((unsigned char)*v))
        *at = strtoull(v, NULL, 10);
    free(v);
}

static void take_u32(const char *line, const char *key, uint32_t *at)
{
    uint64_t v = *at;

    take_number(line, key, &v);
    *at = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* A part of a time; Slurm's own minutes are 32 bits. */
static int64_t part_of(const char *s, char **ret_end)
{
    unsigned long long v = strtoull(s, ret_end, 10);

    return v > UINT32_MAX ? UINT32_MAX : (int64_t)v;
}

/* "UNLIMITED", minutes, or [D-]H:M:S as scontrol prints and slurm.conf takes. */
static int64_t seconds_of(const char *s)
{
    int64_t days = 0, part[3] = { 0 };
    int n = 0;
    char *end;

    if (!isdigit((unsigned char)*s))
        return -1;
    part[0] = part_of(s, &end);
    if (*end == '-') {
        days = part[0];
        part[0] = part_of(end + 1, &end);
    }
    for (n = 1; n < 3 && *end == ':'; n++)
        part[n] = part_of(end + 1, &end);
    if (days || n == 3)
        return days * 86400 + part[0] * 3600 + part[1] * 60 + part[2];
    return part[0] * 60 + part[1];
}

static void take_nodes(struct cluster *c, const char *line, const char *names, const struct cluster_node *def)
{
    struct strv list = { 0 };
    char *state = value_of(line, "State");

    hostlist_expand(names, &list, NULL);
    for (size_t i = 0; i < list.n; i++) {
        struct cluster_node *n = VEC_ADD(&c->nodes);
        char *procs = value_of(line, "CPUTot");

        n->name = xstrdup(list.v[i]);
        n->cpus = def->cpus;
        n->memory_mib = def->memory_mib;
        n->gres = xstrdup(def->gres);
        n->features = xstrdup(def->features);
        take_u32(line, procs ? "CPUTot" : "CPUs", &n->cpus);
        take_number(line, "RealMemory", &n->memory_mib);
        take_text(line, "Gres", &n->gres);
        take_text(line, "Feature", &n->features);
        take_text(line, "Features", &n->features);
        take_text(line, "AvailableFeatures", &n->features);
        n->down = state && (strcasestr(state, "DOWN") || strcasestr(state, "DRAIN") || strcasestr(state, "FAIL"));
        free(procs);
    }
    free(state);
    strv_release(&list);
}

static void take_partition(struct cluster *c, const char *line, const char *name, const struct cluster_partition *def)
{
    struct cluster_partition *p = VEC_ADD(&c->partitions);
    char *nodes = value_of(line, "Nodes"), *time = value_of(line, "MaxTime"), *isdef = value_of(line, "Default");
    char *state = value_of(line, "State");

    p->name = xstrdup(name);
    p->is_default = isdef && strcasecmp(isdef, "yes") == 0;
    p->max_seconds = time ? seconds_of(time) : def->max_seconds;
    p->down = state && strcasecmp(state, "UP");
    if (nodes && strcasecmp(nodes, "ALL") == 0)
        strv_add(&p->nodes, "ALL");
    else if (!nothing(nodes))
        hostlist_expand(nodes, &p->nodes, NULL);
    free(nodes);
    free(time);
    free(isdef);
    free(state);
}

static void take_config(struct cluster *c, const char *line)
{
    char *params = value_of(line, "SchedulerParameters"), *size = params ? strstr(params, "max_script_size=") : NULL;

    if (size)
        c->script_bytes = strtoull(size + 16, NULL, 10);
    free(params);
    take_u32(line, "MaxArraySize", &c->array_size);
    take_u32(line, "MaxJobCount", &c->job_count);
    take_u32(line, "MessageTimeout", &c->message_timeout);
    take_u32(line, "UnkillableStepTimeout", &c->unkillable_timeout);
    take_text(line, "GresTypes", &c->gres_types);
    take_text(line, "SelectType", &c->select_type);
}

void cluster_take(struct cluster *c, const char *text)
{
    struct cluster_node node = { 0 };
    struct cluster_partition partition = { 0 };

    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        char *line = xstrndup(p + strspn(p, " \t"), strcspn(p + strspn(p, " \t"), "\n")), *name;

        if (*line != '#' && (name = value_of(line, "NodeName"))) {
            if (strcasecmp(name, "DEFAULT") == 0) {
                take_u32(line, "CPUs", &node.cpus);
                take_number(line, "RealMemory", &node.memory_mib);
                take_text(line, "Gres", &node.gres);
                take_text(line, "Feature", &node.features);
            } else {
                take_nodes(c, line, name, &node);
            }
            free(name);
        } else if (*line != '#' && (name = value_of(line, "PartitionName"))) {
            char *time = value_of(line, "MaxTime");

            if (strcasecmp(name, "DEFAULT"))
                take_partition(c, line, name, &partition);
            else if (time)
                partition.max_seconds = seconds_of(time);
            free(time);
            free(name);
        } else if (*line != '#') {
            take_config(c, line);
        }
        free(line);
    }
    free(node.gres);
    free(node.features);
}

/* ---- questions ---- */

const struct cluster_partition *cluster_partition(const struct cluster *c, const char *name)
{
    for (size_t i = 0; i < c->partitions.n; i++)
        if (name ? str_eq(c->partitions.v[i].name, name) : c->partitions.v[i].is_default)
            return &c->partitions.v[i];
    return NULL;
}

const struct cluster_node *cluster_node(const struct cluster *c, const char *name)
{
    for (size_t i = 0; i < c->nodes.n; i++)
        if (str_eq(c->nodes.v[i].name, name))
            return &c->nodes.v[i];
    return NULL;
}

/* "gpu:a100:2(S:0-1),gpu:tesla:no_consume:2,shard:8,bandwidth:10G" */
uint64_t cluster_gres(const struct cluster_node *n, const char *name, const char *type)
{
    struct strv items = { 0 };
    uint64_t sum = 0;

    if (!n->gres)
        return 0;
    strv_split(&items, n->gres, ",");
    for (size_t i = 0; i < items.n; i++) {
        struct strv f = { 0 };

        items.v[i][strcspn(items.v[i], "(")] = 0;
        strv_split(&f, items.v[i], ":");
        if (f.n && str_eq(f.v[0], name)) {
            bool counted = f.n > 1 && isdigit((unsigned char)f.v[f.n - 1][0]);
            bool typed = f.n > 1 && (f.n > 2 || !counted);

            if (!type || (typed && str_eq(f.v[1], type)))
                sum += counted ? strtoull(f.v[f.n - 1], NULL, 10) : 1;
        }
        strv_release(&f);
    }
    strv_release(&items);
    return sum;
}
