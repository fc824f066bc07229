#include "config.h"
#include "kernels/clean_plan.h"
#include "base/base.h"
#include "kernels/plan.h"

#include <math.h>
#include <stdlib.h>

int clean_told(struct recon_ctx *ctx, uint64_t faces, uint64_t left, const struct clean_counts *n)
{
    if (left == 0)
        return ctx->host->fail(ctx, CODE_DATA, "empty-result", "mesh", "none of the %llu faces is left", (unsigned long long)faces);
    ctx->host->log(ctx, RECON_NOTE, NULL, "mesh",
                   "%llu vertices merged; faces removed: %llu degenerate, %llu repeated, %llu at non-manifold edges, %llu in small "
                   "components; %llu vertices added where fans met; %llu faces turned; %llu unused vertices removed",
                   (unsigned long long)n->merged, (unsigned long long)n->degenerate, (unsigned long long)n->repeated,
                   (unsigned long long)n->non_manifold, (unsigned long long)n->small, (unsigned long long)n->split,
                   (unsigned long long)n->turned, (unsigned long long)n->unused);
    return 0;
}

int clean_copies_fit(struct recon_ctx *ctx, uint64_t vertices, uint64_t fans)
{
    if (vertices + fans < UINT32_MAX)
        return 0;
    return ctx->host->fail(ctx, CODE_DATA, NULL, "mesh", "%llu vertices and a copy for each of %llu fans are more than %u",
                           (unsigned long long)vertices, (unsigned long long)fans, UINT32_MAX);
}

/* ---- edges of more than two faces ---- */

static int by_size(const void *a, const void *b)
{
    const struct clean_sized *x = a, *y = b;

    return x->size != y->size ? (x->size < y->size ? -1 : 1) : x->face < y->face ? -1 : x->face > y->face;
}

uint32_t clean_thin(struct clean_sized *s, uint32_t n, uint8_t *gone)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < n; i++)
        if (!gone[s[i].face])
            s[left++] = s[i];
    if (left <= 2)
        return 0;
    qsort(s, left, sizeof(*s), by_size);
    for (uint32_t i = 0; i + 2 < left; i++)
        gone[s[i].face] = 1;
    return left - 2;
}

/* ---- orientation ---- */

/* A face's half-edges by the numbers of their edges, whichever way the face is turned: of the lowest, then up and around. */
static uint32_t first_edge(const struct topo *t, uint32_t f)
{
    uint32_t best = 3 * f;

    for (uint32_t h = 3 * f + 1; h < 3 * f + 3; h++)
        best = t->edge_of[h] < t->edge_of[best] ? h : best;
    return best;
}

static uint32_t next_edge(const struct topo *t, uint32_t h)
{
    uint32_t a = topo_next(h), b = topo_prev(h);

    if (t->edge_of[a] > t->edge_of[h] && t->edge_of[b] > t->edge_of[h])
        return t->edge_of[a] < t->edge_of[b] ? a : b;
    return t->edge_of[a] > t->edge_of[b] ? a : b;
}

void clean_orient_part(const struct recon_mesh *m, const struct topo *t, uint32_t seed, uint8_t *turn, uint32_t *stack)
{
    uint32_t n = 0, top = 0;
    double volume = 0;
    bool closed = true, flip;

    stack[top++] = seed;
    turn[seed] = 2;
    while (n < top) { /* the stack keeps what was taken: the part's faces */
        uint32_t f = stack[n++];

        volume += (turn[f] == 3 ? -1 : 1) * clean_volume(m, f);
        for (uint32_t i = 0, h = first_edge(t, f); i < 3; i++, h = next_edge(t, h)) {
            uint32_t e = t->edge_of[h], k, same;

            if (e == TOPO_NONE || topo_count(t, e) != 2) {
                closed = closed && e != TOPO_NONE && topo_count(t, e) != 1;
                continue;
            }
            k = t->half[t->first[e]] == h ? t->half[t->first[e] + 1] : t->half[t->first[e]];
            same = t->index[k] == t->index[h];
            if (turn[k / 3] == 0) {
                turn[k / 3] = (uint8_t)(2 + ((turn[f] & 1) ^ same));
                stack[top++] = k / 3;
            }
        }
    }
    flip = closed && volume < 0;
    for (uint32_t i = 0; i < top; i++)
        turn[stack[i]] = (uint8_t)(turn[stack[i]] ^ flip);
}

/* ---- self-test ---- */

static void wrong_octahedron(float *xyz, uint32_t *index)
{
    golden_octahedron(xyz, index);
    for (uint64_t f = 0; f < OCTA_F; f++) {
        uint32_t x = index[3 * f + 1];

        index[3 * f + 1] = index[3 * f + 2];
        index[3 * f + 2] = x;
    }
    xyz[3 * OCTA_V] = xyz[3 * OCTA_V + 1] = 0.6f; /* the wing's tip */
    memcpy(index + 3 * OCTA_F, (uint32_t[]){ 0, 2, OCTA_V, 0, 2, 4, 3, 3, 5 }, 36);
}

int golden_clean(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device)
{
    float xyz[3 * (OCTA_V + 2)] = { 0 };
    uint32_t index[3 * (OCTA_F + 3)];
    struct recon_value p[9] = { { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 1 }, { .i = 0 }, { .i = 0 }, { .i = 1 }, { .i = 1 } };
    struct recon_mesh m = { .vertices = OCTA_V + 2, .faces = OCTA_F + 3, .xyz = xyz, .index = index }, r = { 0 };
    struct census c;
    int rc;

    wrong_octahedron(xyz, index);
    rc = golden_run(ctx, kernel, device, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, NULL);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.used != OCTA_V || c.vertices != OCTA_V || c.euler != 2 || c.border || c.non_manifold || c.turned ||
                    fabs(c.volume - 4.0 / 3) > 1e-6))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, "mesh.clean", "self-test of 'mesh.clean': Euler characteristic %lld and volume %.6g, "
                             "2 and 1.33333 are wanted", (long long)c.euler, c.volume);
    mesh_free(ctx, &r);
    return rc;
}
