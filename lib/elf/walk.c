/* The walk over what objects need, breadth-first, and filters, which are put before the library that names them. Order and
 * odd cases: glibc 2.36 elf/dl-deps.c, told in doc/elf.md. */
#include "config.h"

#include <stdlib.h>
#include "elf/elf_priv.h"

#define OBJECTS_MAX 20000

static size_t place_of(const struct search *s, size_t lib)
{
    size_t at = 0;

    while (s->order.v[at].lib != lib)
        at++;
    return at;
}

/* Moves the turn at `from` to `to`, which is before it. */
static void move_up(struct search *s, size_t from, size_t to)
{
    struct turn t = s->order.v[from];

    memmove(&s->order.v[to + 1], &s->order.v[to], (from - to) * sizeof(t));
    s->order.v[to] = t;
}

static size_t needed(struct search *s, const char *text, size_t from, const char *origin)
{
    char *name = s->l->musl ? xstrdup(text) : token_expand(text, origin, s->l);
    size_t to = name && *name && s->c->libs.n < OBJECTS_MAX ? search_need(s, name, from) : SIZE_MAX;

    if (to != SIZE_MAX)
        search_add_edge(s, from, to, name);
    else
        free(name);
    return to;
}

/* One filter of the object whose turn is *at: it comes just before the object, unless it stands earlier already. What an
 * auxiliary one lacks is not told; a filter that is not there is fatal like a DT_NEEDED. */
static void filter(struct search *s, const struct filter *f, size_t from, const char *origin, size_t *at)
{
    size_t before = s->c->libs.n, edges = s->c->edges.n, to = needed(s, f->name, from, origin), where;
    const struct library *lib;

    if (to == SIZE_MAX)
        return;
    lib = &s->c->libs.v[to];
    if (f->auxiliary && (!lib->path || lib->corrupt)) {
        if (to == before)
            search_drop_last(s);
        while (s->c->edges.n > edges)
            free(s->c->edges.v[--s->c->edges.n].name);
        return;
    }
    where = place_of(s, to);
    if (where > *at && from != s->c->main) { /* the first object stays the first */
        move_up(s, where, *at);
        ++*at;
    }
}

static void needs_of(struct search *s, size_t from, size_t at)
{
    const struct object o = s->c->libs.v[from].object; /* its lists stay where they are while the array of objects moves */
    char *origin = from == s->c->main && !s->scope ? xstrdup(s->origin)
                   : s->c->libs.v[from].path       ? path_dir(s->c->libs.v[from].path)
                                                   : NULL;
    size_t k = 0;

    for (size_t i = 0; i <= o.needed.n; i++) {
        for (; !s->l->musl && k < o.filters.n && o.filters.v[k].after <= i; k++)
            filter(s, &o.filters.v[k], from, origin, &at);
        if (i < o.needed.n)
            needed(s, o.needed.v[i], from, origin);
    }
    free(origin);
}

/* Puts the objects into the order of their turns, with everything that points to them by index. */
static void reorder(struct search *s)
{
    struct closure *c = s->c;
    size_t *to = xcalloc(c->libs.n, sizeof(*to));
    struct library *libs = xcalloc(c->libs.n, sizeof(*libs));

    for (size_t i = 0; i < c->libs.n; i++)
        to[s->order.v[i].lib] = i;
    for (size_t i = 0; i < c->libs.n; i++) {
        libs[to[i]] = c->libs.v[i];
        libs[to[i]].needed_by = to[c->libs.v[i].needed_by];
    }
    for (size_t i = 0; i < c->edges.n; i++) {
        c->edges.v[i].from = to[c->edges.v[i].from];
        c->edges.v[i].to = to[c->edges.v[i].to];
    }
    memcpy(c->libs.v, libs, c->libs.n * sizeof(*libs));
    free(libs);
    free(to);
}

void search_walk(struct search *s)
{
    bool moved = false;

    for (size_t at = s->c->main; at < s->order.n; at += s->order.v[at].done) {
        struct turn *t = &s->order.v[at];

        if (t->done)
            continue;
        t->done = true;
        if (s->c->libs.v[t->lib].object.dynamic)
            needs_of(s, t->lib, at);
    }
    for (size_t i = 0; i < s->order.n; i++)
        moved |= s->order.v[i].lib != i;
    if (moved)
        reorder(s);
}
