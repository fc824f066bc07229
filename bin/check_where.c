#include "config.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "check.h"
#include "cli.h"

/* ---- a folder of facts ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct node_facts *)a)->path, ((const struct node_facts *)b)->path);
}

static int add(const char *path, const char *partition, struct nodes *ret, struct err *err)
{
    struct facts f;

    if (facts_read(path, &f, err))
        return -1;
    if (partition && !f.partitions.n)
        strv_add(&f.partitions, partition);
    *VEC_ADD(ret) = (struct node_facts){ xstrdup(path), f };
    return 0;
}

static int read_folder(const char *dir, const char *partition, struct nodes *ret, struct err *err)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int rc = 0;

    if (!d)
        return err_sys(err, CODE_NOTFOUND, "cannot read the facts in '%s'", dir);
    while (rc == 0 && (e = readdir(d))) {
        char *path = path_join(dir, e->d_name);
        struct stat st;

        if (e->d_name[0] != '.' && str_ends(e->d_name, ".facts"))
            rc = add(path, partition, ret, err);
        else if (e->d_name[0] != '.' && !partition && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            rc = read_folder(path, e->d_name, ret, err);
        free(path);
    }
    closedir(d);
    return rc;
}

int nodes_read(const char *path, struct nodes *ret, struct err *err)
{
    struct stat st;
    int rc;

    if (stat(path, &st))
        return err_sys(err, CODE_NOTFOUND, "cannot read the facts '%s'", path);
    rc = S_ISDIR(st.st_mode) ? read_folder(path, NULL, ret, err) : add(path, NULL, ret, err);
    if (rc == 0 && !ret->n)
        rc = err_set(err, CODE_NOTFOUND, "'%s' holds no NODE.facts; recon-check --save-facts writes them",
                     path);
    if (rc == 0)
        qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
    return rc;
}

void nodes_release(struct nodes *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].path);
        facts_release(&l->v[i].facts);
    }
    free(l->v);
    memset(l, 0, sizeof(*l));
}

/* ---- verdicts ---- */

struct group { /* nodes that get one answer */
    char *partition, *gpu, *verdict, *rule, *text;
    struct strv nodes;
};
struct groups {
    struct group *v;
    size_t n, cap;
};

/* "4 x NVIDIA H100 (9.0)" */
static char *gpu_type(const struct facts *f)
{
    const struct facts_gpu *g = f->gpus.v;
    const char *name = f->gpus.n ? g->name ? g->name : g->vendor : NULL;

    if (!f->gpus.n)
        return xstrdup(f->gpus_known ? "none" : "not known");
    return xasprintf("%zu x %s%s%s%s", f->gpus.n, name ? name : "GPU", g->compute_capability ? " (" : "",
                     g->compute_capability ? g->compute_capability : "", g->compute_capability ? ")" : "");
}

static struct group *group_of(struct groups *l, const char *partition, const char *gpu, const char *verdict,
                              const char *rule, const char *text)
{
    struct group *g;

    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].partition, partition) && str_eq(l->v[i].gpu, gpu) &&
            str_eq(l->v[i].verdict, verdict) && str_eq(l->v[i].rule, rule) &&
            (!str_eq(rule, "variant") || str_eq(l->v[i].text, text)))
            return &l->v[i];
    g = VEC_ADD(l);
    *g = (struct group){ xstrdup(partition), xstrdup(gpu),  xstrdup(verdict),
                         xstrdup(rule),      xstrdup(text), { 0 } };
    return g;
}

/* The body that the node would take; without any that has no error the first that it tries. NULL: the pin has one alone. */
static const char *judge_bodies(const struct options *o, const struct pin *pin, const struct resolution *r, size_t bodies,
                                char *const *env, const struct facts *f, struct findings *ret)
{
    struct check_case c = { .pin = pin, .facts = f, .resolution = r, .received = env, .elsewhere = true, .restored = bodies > 1,
                            .levels = &o->levels };
    size_t *order = xcalloc(bodies, sizeof(*order)), i = 0;

    if (bodies > 1)
        variants_order(pin, f, order);
    for (; i <= bodies; i++) { /* the first once more when all are in vain */
        size_t body = order[i % bodies];

        c.pin = pin ? pin_body(pin, body) : NULL;
        c.resolution = &r[body];
        check(&c, &o->skip, ret);
        if (bodies == 1 || i == bodies || !findings_count(ret, LEVEL_ERROR))
            break;
        findings_release(ret);
    }
    free(order);
    return bodies > 1 && c.pin->name ? c.pin->name : NULL;
}

static void judge_node(const struct options *o, const struct pin *pin, const struct resolution *r, size_t bodies,
                       char *const *env, const struct node_facts *n, struct groups *ret)
{
    size_t errors, warnings;
    struct findings found;
    char *gpu = gpu_type(&n->facts), *text;
    const struct finding *first;
    const char *variant = judge_bodies(o, pin, r, bodies, env, &n->facts, &found);

    errors = findings_count(&found, LEVEL_ERROR);
    warnings = findings_count(&found, LEVEL_WARN);
    first = errors || warnings ? &found.v[0] : NULL;
    text = variant && !errors ? xasprintf("takes '%s'%s%s", variant, first ? "; " : "", first ? first->text : "")
                              : xstrdup(first ? first->text : NULL);
    for (size_t i = 0; i == 0 || i < n->facts.partitions.n; i++) {
        struct group *g = group_of(ret, n->facts.partitions.n ? n->facts.partitions.v[i] : "-", gpu,
                                   errors     ? "error"
                                   : warnings ? "warn"
                                              : "ok",
                                   first ? first->rule : variant ? "variant" : NULL, text);

        strv_add(&g->nodes, n->facts.node ? n->facts.node : n->path);
    }
    findings_release(&found);
    free(text);
    free(gpu);
}

static void json_text(const char *key, const char *s)
{
    printf(",\"%s\":", key);
    if (!s) {
        printf("null");
        return;
    }
    putchar('"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if ((unsigned char)*s < ' ')
            printf("\\u%04x", (unsigned)(unsigned char)*s);
        else
            putchar(*s);
    putchar('"');
}

static void print_json(const struct groups *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct group *g = &l->v[i];

        printf("{\"v\":1,\"type\":\"where\"");
        json_text("partition", str_eq(g->partition, "-") ? NULL : g->partition);
        json_text("gpu", g->gpu);
        json_text("status", g->verdict);
        json_text("rule", g->rule);
        json_text("text", g->text);
        printf(",\"nodes\":[");
        for (size_t n = 0; n < g->nodes.n; n++)
            printf("%s\"%s\"", n ? "," : "", g->nodes.v[n]);
        printf("]}\n");
    }
}

static void print_table(const struct groups *l)
{
    struct table *t = table_new();

    table_columns(t, "partition|GPU|nodes|verdict|reason");
    for (size_t i = 0; i < l->n; i++) {
        const struct group *g = &l->v[i];

        table_row(t);
        table_cell(t, "%s", g->partition);
        table_cell(t, "%s", g->gpu);
        if (g->nodes.n > 1)
            table_cell(t, "%s and %zu more", g->nodes.v[0], g->nodes.n - 1);
        else
            table_cell(t, "%s", g->nodes.v[0]);
        table_cell(t, "%s", g->verdict);
        table_cell(t, "%s%s%s", g->rule ? g->rule : "", g->rule ? ": " : "", g->text ? g->text : "");
    }
    table_print(t, stdout);
    table_free(t);
}

int check_where(const struct options *o, const struct pin *pin, const struct resolution *r, size_t n, char *const *env,
                const struct nodes *l)
{
    struct groups groups = { 0 };
    bool fit = false;

    for (size_t i = 0; i < l->n; i++)
        judge_node(o, pin, r, n, env, &l->v[i], &groups);
    if (o->jsonl)
        print_json(&groups);
    else
        print_table(&groups);
    for (size_t i = 0; i < groups.n; i++) {
        fit |= !str_eq(groups.v[i].verdict, "error");
        free(groups.v[i].partition);
        free(groups.v[i].gpu);
        free(groups.v[i].verdict);
        free(groups.v[i].rule);
        free(groups.v[i].text);
        strv_release(&groups.v[i].nodes);
    }
    free(groups.v);
    return fit ? 0 : CODE_JOB;
}
