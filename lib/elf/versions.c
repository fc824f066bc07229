#include "config.h"

#include <stdlib.h>
#include "elf/elf_priv.h"

#define MANY 256 /* versions of a library that are worth sorting */

/* Who offers `file` to object `from`: by its own edge, else any object of that name. The edges before the first'th are known to
 * be others'. */
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

static int by_hash(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

struct offers { uint32_t *v; size_t n; }; /* sorted hashes of the versions of a library that has many */

/* Does it define the version? Its name and its hash count, as they do for the loader. */
static bool defines(const struct object *o, struct offers *many, const struct version_need *need)
{
    size_t n = o->version_defs.n < o->versions.n ? o->version_defs.n : o->versions.n;

    if (n > MANY && !many->v) {
        many->v = xcalloc(n, sizeof(*many->v));
        for (many->n = 0; many->n < n; many->n++)
            many->v[many->n] = o->version_defs.v[many->n].hash;
        qsort(many->v, n, sizeof(*many->v), by_hash);
    }
    if (n > MANY && !bsearch(&need->hash, many->v, n, sizeof(*many->v), by_hash))
        return false;
    for (size_t i = 0; i < n; i++)
        if (o->version_defs.v[i].hash == need->hash && str_eq(o->versions.v[i], need->version))
            return true;
    return false;
}

/* A provider that is not there, or offers no versions at all, is another finding's (the loader only warns). */
static bool lacks(const struct closure *c, struct offers *all, size_t provider, const struct version_need *need)
{
    const struct object *o = provider == SIZE_MAX ? NULL : &c->libs.v[provider].object;

    return !o || (o->path && o->versions.n && !defines(o, &all[provider], need));
}

static void look_for_all(const struct closure *c, struct version_misses *ret)
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
            if (lacks(c, all, provider, &o->needs.v[j]))
                *VEC_ADD(ret) = (struct version_miss){ i, provider, o->needs.v[j].version, o->needs.v[j].weak };
        }
    }
    for (size_t i = 0; i < c->libs.n; i++)
        free(all[i].v);
    free(first);
    free(all);
}

void closure_versions(const struct closure *c, struct version_misses *ret)
{
    if (!c->lacking) {
        look_for_all(c, ret);
        return;
    }
    for (size_t i = 0; i < c->lacking->n; i++)
        *VEC_ADD(ret) = c->lacking->v[i];
}

void closure_note_versions(struct closure *c)
{
    struct version_misses *l = c->lacking ? NULL : xcalloc(1, sizeof(*l));

    if (l) {
        look_for_all(c, l);
        c->lacking = l;
    }
}
