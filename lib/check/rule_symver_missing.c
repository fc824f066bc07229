#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* glibc's nodes are glibc-too-old's. */
static bool of_glibc(const char *node)
{
    return str_eq(node, "GLIBC_ABI_DT_RELR") || (str_starts(node, "GLIBC_") && node[6] >= '0' && node[6] <= '9');
}

/* The highest node of the same family among those offered: GLIBCXX_3.4.21 for GLIBCXX_3.4.30; NULL if none. */
static const char *highest(const struct strv *offered, const char *node)
{
    size_t family = (size_t)(strrchr(node, '_') ? strrchr(node, '_') - node + 1 : 0);
    const char *best = NULL;

    for (size_t i = 0; family && i < offered->n; i++) {
        const char *v = offered->v[i];

        if (strncmp(v, node, family) == 0 && v[family] >= '0' && v[family] <= '9' &&
            (!best || version_cmp(v + family, best + family) > 0))
            best = v;
    }
    return best;
}

/* What is missing of one provider: the highest node stands for those below it. */
struct miss {
    const struct library *needer, *provider;
    const char *path; /* of the provider, on the node */
    const struct strv *offered;
    const char *node;
    size_t more;
};
struct misses {
    struct miss *v;
    size_t n, cap;
};

static void add(struct misses *l, const struct miss *m)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].path, m->path)) {
            l->v[i].more++;
            if (version_cmp(m->node, l->v[i].node) > 0) {
                l->v[i].node = m->node;
                l->v[i].needer = m->needer;
            }
            return;
        }
    *VEC_ADD(l) = *m;
}

static char *remedy(const struct check_case *c, const struct miss *m)
{
    int gcc = compat_gcc_of_node(m->node);

    if (m->provider && m->provider->candidates.n)
        return remedy_library_path(c, m->provider->candidates.v[0]);
    if (gcc)
        return xasprintf("module load gcc/%d (or newer; its libstdc++ has %s), or build '%s' with the node's compiler", gcc,
                         m->node, path_base(library_name(m->needer)));
    return xasprintf("load the release of '%s' that '%s' was built with, or sbatch --exclude=%s", path_base(m->path),
                     path_base(library_name(m->needer)), case_node(c));
}

static void report(const struct check_case *c, const struct miss *m, struct findings *out)
{
    const char *top = highest(m->offered, m->node);
    char *what = remedy(c, m), *more = m->more ? xasprintf(" and %zu more", m->more) : xstrdup("");
    const char *why = m->provider && m->provider->path ? name_of(why_names, m->provider->why) : NULL;
    const char *other = m->provider && m->provider->candidates.n ? m->provider->candidates.v[0] : NULL;
    char *cause = xasprintf("'%s' is the first '%s' that the loader meets%s%s%s%s%s", m->path,
                            m->provider && m->provider->soname ? m->provider->soname : path_base(m->path),
                            why ? ", by " : "", why ? why : "", other ? "; '" : "", other ? other : "",
                            other ? "' has what is needed" : "");

    finding_explain(findings_add(out, "symver-missing", LEVEL_ERROR, SCOPE_NODE, m->path,
                                 "'%s' needs %s%s, and '%s' %s%s", library_name(m->needer), m->node, more, m->path,
                                 top ? "ends at " : "has none of that kind", top ? top : ""),
                    NULL, cause, what);
    free(what);
    free(more);
    free(cause);
}

static void by_closure(const struct check_case *c, struct misses *ret)
{
    for (size_t k = 0; k < c->resolution->closures.n; k++) {
        const struct closure *in = &c->resolution->closures.v[k];
        struct version_misses m = { 0 };

        closure_versions(in, &m);
        for (size_t i = 0; i < m.n; i++) {
            const struct library *p = m.v[i].provider == SIZE_MAX ? NULL : &in->libs.v[m.v[i].provider];
            const struct library *l = &in->libs.v[m.v[i].object];

            if (m.v[i].weak || of_glibc(m.v[i].version) || !p || !p->path || p->corrupt)
                continue;
            if (c->elsewhere && (library_of_system(p) || library_of_system(l)))
                continue; /* that node's own files would be taken: by_facts */
            add(ret, &(struct miss){ l, p, p->path, &p->object.versions, m.v[i].version, 0 });
        }
        free(m.v);
    }
}

static const struct facts_library *of_node(const struct facts *f, const char *soname)
{
    for (size_t i = 0; f && i < f->libraries.n; i++)
        if (str_eq(f->libraries.v[i].soname, soname) && f->libraries.v[i].versions.n)
            return &f->libraries.v[i];
    return NULL;
}

static bool brought_along(const struct closure *in, const char *soname)
{
    for (size_t i = 0; i < in->libs.n; i++)
        if (str_eq(in->libs.v[i].soname, soname))
            return !library_of_system(&in->libs.v[i]) && in->libs.v[i].path;
    return false;
}

/* Another node's system libraries, by the version nodes that its facts hold. */
static void by_facts(const struct check_case *c, struct misses *ret)
{
    struct walk w = { 0 };

    while (walk_next(c, &w)) {
        const struct object *o = &w.lib->object;

        for (size_t i = 0; i < o->needs.n && !library_of_system(w.lib); i++) {
            const struct version_need *n = &o->needs.v[i];
            const struct facts_library *f = of_node(c->facts, n->file);

            if (n->weak || of_glibc(n->version) || !f || brought_along(w.in, n->file) || strv_has(&f->versions, n->version))
                continue;
            add(ret, &(struct miss){ w.lib, NULL, f->path ? f->path : f->soname, &f->versions, n->version, 0 });
        }
    }
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct misses l = { 0 };

    (void)err;
    by_closure(c, &l);
    if (c->elsewhere)
        by_facts(c, &l);
    for (size_t i = 0; i < l.n; i++)
        report(c, &l.v[i], out);
    free(l.v);
    return 0;
}

const struct rule rule_symver_missing = {
    .name = "symver-missing",
    .doc = "the library that the loader takes lacks a version node (GLIBCXX, CXXABI, a library's own); names the library, "
           "the node, who wants it and how far it goes",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_RESOLUTION,
    .eval = eval,
};
