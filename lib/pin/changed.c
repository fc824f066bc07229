/* Symbols where something is otherwise than pinned: what was proved at capture is not proved again. */
#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

/* The build that was pinned: by build-id, where there is none by size and time. */
static bool same_build(const struct pin_object *o, const struct object *now)
{
    if (o->build_id || now->build_id)
        return str_eq(o->build_id, now->build_id);
    return o->size == now->size && o->mtime_ns == now->mtime_ns;
}

static bool changed(const struct pin *p, const struct library *l)
{
    if (!l->path || l->corrupt || !l->object.path)
        return false; /* a finding of its own */
    for (size_t i = 0; i < p->objects.n; i++) {
        const struct pin_object *o = &p->objects.v[i];

        if ((str_eq(o->soname, l->soname) || str_eq(o->path, l->path)) && same_build(o, &l->object))
            return false;
    }
    return true;
}

/* The system's libraries with versions keep what a version promised: their version nodes are judged by themselves. */
static bool proved_by_versions(const struct library *l)
{
    return (l->why == WHY_CACHE || l->why == WHY_DEFAULT) && l->object.versions.n > 1;
}

static bool any_changed(const struct resolution *r, const struct pin *p)
{
    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++) {
            const struct library *l = &r->closures.v[i].libs.v[j];

            if (l->why != WHY_LOADED && !proved_by_versions(l) && changed(p, l))
                return true;
        }
    return false;
}

static bool needs_changed(const struct closure *c, const struct pin *p, size_t object)
{
    for (size_t i = 0; i < c->edges.n; i++)
        if (c->edges.v[i].from == object && changed(p, &c->libs.v[c->edges.v[i].to]))
            return true;
    return false;
}

/* Neither who needs it nor who should have it is otherwise: it was so at capture, too. Where it is unknown who should have
 * it, any library that is needed might. */
static bool old_news(const struct resolution *r, const struct pin *p, const struct resolution_symbol *x)
{
    const struct closure *c = &r->closures.v[x->closure];

    if (changed(p, &c->libs.v[x->object]))
        return false;
    return x->provider == SIZE_MAX ? x->lazy && !needs_changed(c, p, x->object) : !changed(p, &c->libs.v[x->provider]);
}

void resolution_symbols_changed(struct resolution *r, const struct pin *p, const char *root, const struct strv *places)
{
    size_t n = 0;

    if (r->reused || !any_changed(r, p))
        return;
    resolution_symbols(r, root, places);
    for (size_t i = 0; i < r->symbols.n; i++) {
        if (old_news(r, p, &r->symbols.v[i]))
            resolution_symbol_release(&r->symbols.v[i]);
        else
            r->symbols.v[n++] = r->symbols.v[i];
    }
    r->symbols.n = n;
}
