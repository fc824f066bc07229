#include "config.h"

#include <stdlib.h>
#include "elf/elf_priv.h"

/* Who offers `file` to object `from`: by its own edge, else any object of that name. */
/* The same, where the edges before the first'th are known to be others'. */
static size_t provider_since(const struct closure *c, size_t first, size_t from, const char *file)
{
    for (size_t i = first; i < c->edges.n; i++)
        if (c->edges.v[i].from == from && str_eq(c->edges.v[i].name, file))
            return c->edges.v[i].to;
    for (size_t i = 0; i < c->libs.n; i++)
        if (str_eq(c->libs.v[i].soname, file) || str_eq(c->libs.v[i].object.soname, file))
            return i;
    return SIZE_MAX;
}

size_t closure_provider(const struct closure *c, size_t from, const char *file)
{
    return provider_since(c, 0, from, file);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct offers { const char **v; size_t n; }; /* sorted */

static const struct offers *offers_of(const struct closure *c, struct offers *all, size_t i)
{
    const struct strv *have = &c->libs.v[i].object.versions;

    if (!all[i].v && have->n) {
        all[i].v = xcalloc(have->n, sizeof(*all[i].v));
        all[i].n = have->n;
        memcpy(all[i].v, have->v, have->n * sizeof(*all[i].v));
        qsort(all[i].v, have->n, sizeof(*all[i].v), by_text);
    }
    return &all[i];
}

/* A provider that is not there, or offers no versions at all, is another finding's (the loader only warns). */
static bool lacks(const struct closure *c, struct offers *all, size_t provider, const char *version)
{
    const struct offers *o;

    if (provider == SIZE_MAX)
        return true;
    if (!c->libs.v[provider].object.path || !c->libs.v[provider].object.versions.n)
        return false;
    o = offers_of(c, all, provider);
    return !bsearch(&version, o->v, o->n, sizeof(*o->v), by_text);
}

void closure_versions(const struct closure *c, struct version_misses *ret)
{
    struct offers *all = xcalloc(c->libs.n + 1, sizeof(*all));
    size_t *first = xcalloc(c->libs.n + 1, sizeof(*first)); /* the first edge of each */

    for (size_t i = c->edges.n; i-- > 0;)
        if (c->edges.v[i].from < c->libs.n)
            first[c->edges.v[i].from] = i;

    for (size_t i = 0; !c->musl && i < c->libs.n; i++) {
        const struct object *o = &c->libs.v[i].object;
        const char *file = NULL;
        size_t provider = SIZE_MAX;

        for (size_t j = 0; j < o->needs.n; j++) {
            if (!str_eq(file, o->needs.v[j].file))
                provider = provider_since(c, first[i], i, o->needs.v[j].file);
            file = o->needs.v[j].file;
            if (lacks(c, all, provider, o->needs.v[j].version))
                *VEC_ADD(ret) = (struct version_miss){ i, provider, o->needs.v[j].version, o->needs.v[j].weak };
        }
    }
    for (size_t i = 0; i < c->libs.n; i++)
        free(all[i].v);
    free(first);
    free(all);
}
