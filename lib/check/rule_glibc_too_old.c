#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* The glibc release that a version node asks for: "GLIBC_2.34" -> "2.34"; NULL: none of glibc's. */
static const char *wanted_release(const char *node)
{
    if (str_eq(node, "GLIBC_ABI_DT_RELR"))
        return "2.36";
    if (!str_starts(node, "GLIBC_") || node[6] < '0' || node[6] > '9')
        return NULL;
    return node + 6;
}

struct worst {
    const struct library *lib;
    const char *node;
    size_t objects; /* that need more than the node has */
};

static void consider(struct worst *w, const struct library *l, const char *node)
{
    if (!w->lib || version_cmp(wanted_release(node), wanted_release(w->node)) > 0) {
        w->lib = l;
        w->node = node;
    }
}

/* By the facts: each object that would be the same file on the node. */
static void by_release(const struct check_case *c, const char *glibc, struct worst *ret)
{
    struct walk w = { 0 };

    while (walk_next(c, &w)) {
        const struct object *o = &w.lib->object;
        bool over = false;

        if (library_of_system(w.lib))
            continue;
        for (size_t i = 0; i < o->needs.n; i++) {
            const char *release = o->needs.v[i].weak ? NULL : wanted_release(o->needs.v[i].version);

            if (!release || version_cmp(release, glibc) <= 0)
                continue;
            consider(ret, w.lib, o->needs.v[i].version);
            over = true;
        }
        ret->objects += over;
    }
}

/* By the version nodes that are really there. */
static void by_nodes(const struct check_case *c, struct worst *ret)
{
    for (size_t k = 0; k < c->resolution->closures.n; k++) {
        const struct closure *in = &c->resolution->closures.v[k];
        struct version_misses m = { 0 };
        size_t last = SIZE_MAX;

        closure_versions(in, &m);
        for (size_t i = 0; i < m.n; i++) {
            if (m.v[i].weak || !wanted_release(m.v[i].version) || m.v[i].provider == SIZE_MAX)
                continue;
            consider(ret, &in->libs.v[m.v[i].object], m.v[i].version);
            ret->objects += m.v[i].object != last;
            last = m.v[i].object;
        }
        free(m.v);
    }
}

static void report(const struct check_case *c, const struct worst *w, const char *glibc, struct findings *out)
{
    char *remedy = xasprintf("sbatch --exclude=%s, or build on a system with glibc %s or older, or run in a container: "
                             "apptainer exec IMAGE '%s'", case_node(c), glibc, library_name(w->lib));
    char *more = w->objects > 1 ? xasprintf("; %zu objects need more than %s", w->objects, glibc) : xstrdup("");

    finding_explain(findings_add(out, "glibc-too-old", LEVEL_ERROR, SCOPE_NODE, library_name(w->lib),
                                 "'%s' needs glibc %s (%s), and %s has %s%s", path_base(library_name(w->lib)),
                                 wanted_release(w->node), w->node, case_node(c), glibc, more),
                    NULL, "it was built on a newer system; the C library belongs to the node and cannot be brought along",
                    remedy);
    free(remedy);
    free(more);
}

/* As the facts have it, else the highest node of the C library that the loader takes. */
static const char *glibc_of(const struct check_case *c)
{
    const char *best = c->facts->os.glibc;
    struct walk w = { 0 };

    while (!c->facts->os.glibc && !c->elsewhere && walk_next(c, &w))
        for (size_t i = 0; str_eq(w.lib->soname, "libc.so.6") && i < w.lib->object.versions.n; i++) {
            const char *v = w.lib->object.versions.v[i];

            if (str_starts(v, "GLIBC_") && wanted_release(v) && (!best || version_cmp(wanted_release(v), best) > 0))
                best = str_starts(v, "GLIBC_ABI") ? best : wanted_release(v);
        }
    return best;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *glibc = glibc_of(c);
    struct worst w = { 0 };

    if (!glibc)
        return err_set(err, CODE_UNAVAILABLE, "the glibc of %s is not known", case_node(c));
    by_release(c, glibc, &w);
    if (!w.lib && !c->elsewhere)
        by_nodes(c, &w);
    if (w.lib)
        report(c, &w, glibc, out);
    return 0;
}

const struct rule rule_glibc_too_old = {
    .name = "glibc-too-old",
    .doc = "an object needs version nodes above the node's glibc; said once, for the object that needs most",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
