/* mesh.simplify by rounds, see rounds.h. Passes over the edges' levels, shared by threads in pieces: claims, what they choose, and
 * collapses. */
#include "config.h"
#include <stdlib.h>
#include "kernels/cpu/simplify.h"

enum { PIECE = 4096, MANY = 4096 }; /* edges of a piece, and that are worth the threads; of eight levels at a time */

struct running {
    struct simplify *s;
    struct rounds r;
    uint32_t *goes;
    uint64_t pieces;
    uint32_t round;
    uint8_t level;
};

#define EACH_DUE(x, piece, e) \
    (uint64_t e##_at = (piece) * PIECE, e##_now, e = 0; e##_at < ((piece) + 1) * PIECE && e##_at < (x)->s->edges; e##_at += 8) \
        for (e##_now = simplify_due((x)->r.level + e##_at, (x)->level); \
             e##_now && (e = e##_at + (uint64_t)__builtin_ctzll(e##_now) / 8, true); e##_now &= e##_now - 1)

static void claim(uint64_t *at, uint64_t key)
{
    uint64_t was = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (key < was && !__atomic_compare_exchange_n(at, &was, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* each due edge at both its ends */
static uint64_t claim_all(struct running *x)
{
    uint64_t n = 0;

#pragma omp parallel for num_threads(x->s->ctx->threads) schedule(dynamic, 1) reduction(+ : n) if (x->pieces > 2)
    for (uint64_t piece = 0; piece < x->pieces; piece++)
        for EACH_DUE (x, piece, e) {
            uint64_t key = round_key(x->round, (uint32_t)e);
            uint32_t low, high;

            round_ends(&x->r, (uint32_t)e, &low, &high);
            claim(&x->r.claim[low], key);
            claim(&x->r.claim[high], key);
            n++;
        }
    return n;
}

/* Of as many due edges how many are chosen, and those of them that go. */
static uint64_t choose(struct running *x, uint64_t due, uint64_t *ret_go)
{
    uint64_t n = 0, chosen = 0;

#pragma omp parallel for num_threads(x->s->ctx->threads) schedule(dynamic, 1) reduction(+ : chosen) if (due > MANY)
    for (uint64_t piece = 0; piece < x->pieces; piece++)
        for EACH_DUE (x, piece, e)
            if (round_chosen(&x->r, (uint32_t)e, x->round)) {
                chosen++;
                if (round_goes(&x->r, (uint32_t)e))
                    x->goes[__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED)] = (uint32_t)e;
            }
    *ret_go = n;
    return chosen;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void collapse(struct running *x, uint64_t n)
{
#pragma omp parallel for num_threads(x->s->ctx->threads) schedule(static) if (n > MANY / 8)
    for (uint64_t i = 0; i < n; i++)
        round_collapse(&x->r, x->goes[i]);
    x->s->faces -= 2 * n;
    x->s->vertices -= n;
}

/* the lowest level above this one of an edge that does not wait; EDGE_OUT when there is none */
static uint8_t next_level(const struct running *x, int above)
{
    uint8_t least = EDGE_OUT;

    for (uint64_t e = 0; e < x->s->edges; e++)
        if (x->r.level[e] > above && x->r.level[e] < least)
            least = x->r.level[e];
    return least;
}

/* One round; ret_next: whether the level is done. */
static void turn(struct running *x, const struct recon_value *p, bool *ret_next)
{
    uint64_t wanted = simplify_wanted(p, x->s->faces, x->s->vertices), n;

    if ((++x->round & (ROUND_WRAP - 1)) == 0)
        memset(x->r.claim, 0xff, 8 * x->s->in->vertices);
    *ret_next = round_few(choose(x, claim_all(x), &n), x->s->vertices);
    if (n > wanted) {
        qsort(x->goes, n, sizeof(*x->goes), by_number);
        n = wanted;
    }
    collapse(x, n);
}

static int go(struct running *x, const struct recon_value *p)
{
    int above = -1;

    for (uint8_t next; (next = next_level(x, above)) < EDGE_OUT || (next = next_level(x, -1)) < EDGE_OUT; above = x->level) {
        bool done = false;

        x->level = next > x->level ? next : x->level;
        while (!done) {
            if (simplify_enough(p, x->s->faces, x->s->vertices))
                return 0;
            if (x->s->ctx->host->cancelled(x->s->ctx))
                return x->s->ctx->host->fail(x->s->ctx, CODE_DEADLINE, NULL, "mesh", "stopped at %llu faces", (unsigned long long)x->s->faces);
            turn(x, p, &done);
        }
    }
    return 0;
}

int simplify_rounds(struct simplify *s, const struct recon_value *p)
{
    const struct recon_host *host = s->ctx->host;
    uint64_t v = s->in->vertices;
    struct running x = { .s = s, .pieces = (s->edges + PIECE - 1) / PIECE,
                         .r = { .face = s->face, .vertex = s->vertex, .state = s->state, .rgb = s->rgb, .corner = s->corner, .level = s->level,
                                .most = s->most } };
    int rc = -1;

    if ((x.r.claim = host->alloc(s->ctx, 8 * v)) && (x.goes = host->alloc(s->ctx, 4 * v))) {
        memset(x.r.claim, 0xff, 8 * v);
        rc = go(&x, p);
    }
    host->free(s->ctx, x.r.claim);
    host->free(s->ctx, x.goes);
    return rc;
}
