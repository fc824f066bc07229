/* mesh.simplify by rounds, plain: each due edge claims every face at its ends, and those that hold all their claims are chosen, one
 * after the other: they go, or wait. rounds.h says why the same edges are found there by claims on vertices. */
#include "config.h"
#include "kernels/ref/simplify_ref.h"
#include "kernels/rounds.h"

/* The numbers of the due edges of the level. */
static uint64_t find_due(const struct plain *s, int level, uint32_t *to)
{
    uint64_t n = 0;

    for (uint32_t e = 0; e < s->edges; e++)
        if (s->edge[e].state == 0 && s->edge[e].level <= level)
            to[n++] = e;
    return n;
}

static bool at_ends(const struct plain *s, uint64_t f, uint32_t e)
{
    return in_face(s, f, s->edge[e].a) || in_face(s, f, s->edge[e].b);
}

/* Those of n that hold all their claims, in front, in their order. */
static uint64_t choose(const struct plain *s, uint32_t *x, uint64_t n, uint32_t round, uint64_t *claim)
{
    uint64_t chosen = 0;

    memset(claim, 0xff, 8 * s->faces);
    for (uint64_t k = 0; k < n; k++)
        for (uint64_t f = 0; f < s->faces; f++)
            if (at_ends(s, f, x[k]) && round_key(round, x[k]) < claim[f])
                claim[f] = round_key(round, x[k]);
    for (uint64_t k = 0; k < n; k++) {
        bool holds = true;

        for (uint64_t f = 0; f < s->faces; f++)
            holds = holds && (!at_ends(s, f, x[k]) || claim[f] == round_key(round, x[k]));
        if (holds)
            x[chosen++] = x[k];
    }
    return chosen;
}

/* Whether a chosen edge goes; then the edges of its new vertex, none of which waits, have new levels. */
static bool go(struct plain *s, uint32_t e)
{
    struct plain_collapse c;

    plain_look(s, &s->edge[e], &c);
    if (!plain_may(s, &c)) {
        s->edge[e].state = WAITS;
        return false;
    }
    plain_go(s, &s->edge[e], &c);
    for (uint64_t i = 0; i < s->edges; i++)
        if (s->edge[i].state != NEVER && (s->edge[i].a == c.keep || s->edge[i].b == c.keep))
            plain_level(s, &s->edge[i]);
    return true;
}

/* the lowest level above this one of an edge that does not wait, or above */
static int next_level(const struct plain *s, int above)
{
    int least = QUADRIC_LAST + 1;

    for (uint64_t e = 0; e < s->edges; e++)
        if (s->edge[e].state == 0 && s->edge[e].level > above && s->edge[e].level < least)
            least = s->edge[e].level;
    return least > QUADRIC_LAST ? above : least;
}

static bool any_left(const struct plain *s)
{
    bool any = false;

    for (uint64_t e = 0; e < s->edges; e++)
        any = any || s->edge[e].state == 0;
    return any;
}

static int turns(struct plain *s, const struct recon_value *p, uint32_t *x, uint64_t *claim)
{
    int level = next_level(s, -1);
    uint32_t round = 0;

    while (any_left(s) && !simplify_enough(p, s->left, s->used)) {
        uint64_t wanted = simplify_wanted(p, s->left, s->used), n;
        bool few;

        if (s->ctx->host->cancelled(s->ctx))
            return s->ctx->host->fail(s->ctx, CODE_DEADLINE, NULL, "mesh", "stopped at %llu faces", (unsigned long long)s->left);
        n = choose(s, x, find_due(s, level, x), ++round, claim);
        few = round_few(n, s->used);
        for (uint64_t k = 0; k < n && wanted > 0; k++)
            wanted -= go(s, x[k]);
        if (few)
            level = next_level(s, level);
    }
    return 0;
}

int plain_rounds(struct plain *s, const struct recon_value *p)
{
    uint32_t *x = s->ctx->host->alloc(s->ctx, 4 * s->edges);
    uint64_t *claim = x ? s->ctx->host->alloc(s->ctx, 8 * s->faces) : NULL;
    int rc = claim ? turns(s, p, x, claim) : -1;

    s->ctx->host->free(s->ctx, x);
    s->ctx->host->free(s->ctx, claim);
    return rc;
}
