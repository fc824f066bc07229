#include "config.h"
#include "base/base.h"
#include "kernels/curve.h"
#include "kernels/mesh_plan.h"
#include "kernels/plan.h"
#include "kernels/rounds.h"

int simplify_check(struct recon_ctx *ctx, const struct recon_value *p)
{
    if (p[MESH_SIMPLIFY_FACES].i || p[MESH_SIMPLIFY_VERTICES].i || p[MESH_SIMPLIFY_ERROR].f > 0)
        return 0;
    return ctx->host->fail(ctx, CODE_USAGE, NULL, "faces", "neither faces nor vertices nor max_error says how far to simplify");
}

float simplify_most(const struct recon_value *p, float scale)
{
    double most = p[MESH_SIMPLIFY_ERROR].f * (double)scale;

    return (float)(most * most);
}

bool simplify_enough(const struct recon_value *p, uint64_t faces, uint64_t vertices)
{
    uint64_t f = (uint64_t)p[MESH_SIMPLIFY_FACES].i, v = (uint64_t)p[MESH_SIMPLIFY_VERTICES].i;

    return (f || v) && (f == 0 || faces <= f) && (v == 0 || vertices <= v);
}

void simplify_tell(struct recon_ctx *ctx, const struct recon_value *p, uint64_t faces, uint64_t vertices)
{
    bool bounded = p[MESH_SIMPLIFY_ERROR].f > 0;

    if ((p[MESH_SIMPLIFY_FACES].i || p[MESH_SIMPLIFY_VERTICES].i) && !simplify_enough(p, faces, vertices))
        ctx->host->log(ctx, RECON_WARN, "simplify-target-not-reached", "mesh",
                       "%llu faces and %llu vertices are left: no more can go without %sa change of borders or topology or a face turning over",
                       (unsigned long long)faces, (unsigned long long)vertices, bounded ? "an error above max_error, " : "");
}

uint64_t simplify_wanted(const struct recon_value *p, uint64_t faces, uint64_t vertices)
{
    uint64_t f = (uint64_t)p[MESH_SIMPLIFY_FACES].i, v = (uint64_t)p[MESH_SIMPLIFY_VERTICES].i;
    uint64_t of_faces = f && faces > f ? (faces - f + 1) / 2 : 0, of_vertices = v && vertices > v ? vertices - v : 0;

    if (f == 0 && v == 0)
        return UINT64_MAX;
    return of_faces > of_vertices ? of_faces : of_vertices;
}

float simplify_scale(float side)
{
    int exponent;

    if (!(side > 0) || !isfinite(side))
        return 1;
    frexpf(side, &exponent);
    return ldexpf(1, exponent > 126 ? -126 : exponent < -126 ? 126 : -exponent);
}

static int sort_vertices(struct recon_ctx *ctx, const struct recon_mesh *m, struct simplify_order *r)
{
    float side;

    if (!(r->was = curve_sort(ctx, m->xyz, m->vertices, &side)))
        return -1;
    r->scale = simplify_scale(side);
    return 0;
}

static uint32_t least_of(const uint32_t *v, const uint32_t *is)
{
    uint32_t a = is[v[0]], b = is[v[1]], c = is[v[2]];

    b = b < c ? b : c;
    return a < b ? a : b;
}

static int sort_faces(struct recon_ctx *ctx, const struct recon_mesh *m, struct simplify_order *r)
{
    uint32_t *is = ctx->host->alloc(ctx, 4 * m->vertices), *at = is ? ctx->host->alloc(ctx, 4 * m->vertices + 4) : NULL, sum = 0;
    int rc = at && (r->index = ctx->host->alloc(ctx, 12 * m->faces)) ? 0 : -1;

    for (uint64_t v = 0; rc == 0 && v < m->vertices; v++)
        is[r->was[v]] = (uint32_t)v;
    if (rc == 0)
        memset(at, 0, 4 * m->vertices + 4);
    for (uint64_t f = 0; rc == 0 && f < m->faces; f++)
        at[least_of(m->index + 3 * f, is) + 1]++;
    for (uint64_t v = 0; rc == 0 && v < m->vertices; v++)
        sum = at[v] += sum;
    for (uint64_t f = 0; rc == 0 && f < m->faces; f++) {
        uint64_t to = at[least_of(m->index + 3 * f, is)]++;

        for (uint64_t i = 0; i < 3; i++)
            r->index[3 * to + i] = is[m->index[3 * f + i]];
    }
    ctx->host->free(ctx, is);
    ctx->host->free(ctx, at);
    return rc;
}

int simplify_sort(struct recon_ctx *ctx, const struct recon_mesh *m, struct simplify_order *ret)
{
    *ret = (struct simplify_order){ .scale = 1 };
    return indices_fit(ctx, m) || sort_vertices(ctx, m, ret) || sort_faces(ctx, m, ret) ? -1 : 0;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void simplify_cost(const struct recon_mesh *m, const struct recon_value *p, uint64_t edges, struct recon_cost *cost)
{
    uint64_t v = m->vertices, f = m->faces, face = 36 * f + 4 * v;       /* and the vertices' numbers */
    uint64_t sorting = greatest(20 * v, 12 * v + 12 * f);
    uint64_t finding = greatest(4 * v + 12 * f + topo_bytes(v, f), face + 48 * f + 64);
    uint64_t pairing = face + 24 * f + 4 * edges + v + 64;
    uint64_t working = face + 4 * edges + (1 + 64 + 3) * v;              /* a line of the cache, a state, a colour a vertex */
    uint64_t rounds = p[MESH_SIMPLIFY_METHOD].i == MESH_SIMPLIFY_ROUNDS ? 12 * v + 128 : 0;

    cost->host_bytes = greatest(greatest(sorting, finding), greatest(pairing, working + greatest(edges + 64 + rounds, 15 * v + 12 * f))) + 4096;
    cost->moved_bytes = 100 * v + 100 * f;
    cost->flops = 400 * f;
    cost->items = f;
}

int simplify_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    (void)ctx;
    if (in[0])
        simplify_cost(in[0], p, 3 * ((const struct recon_mesh *)in[0])->faces, cost);
    return 0;
}

int simplify_fits(struct recon_ctx *ctx, const struct recon_mesh *m)
{
    if (m->faces < NO_CORNER / 4)
        return 0;
    return ctx->host->fail(ctx, CODE_DATA, NULL, "mesh", "the mesh has %llu faces, fewer than %u are taken", (unsigned long long)m->faces,
                           NO_CORNER / 4);
}

int simplify_elsewhere(const struct recon_value *p, char *why, size_t size)
{
    if (p[MESH_SIMPLIFY_METHOD].i == MESH_SIMPLIFY_ROUNDS)
        return 0;
    snprintf(why, size, "method 'levels' takes edges one after the other; 'rounds' runs here");
    return 1;
}

/* a tetrahedron is the least closed surface: nothing of it goes */
static int golden_one(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device, int64_t method)
{
    struct recon_value p[] = { [MESH_SIMPLIFY_FACES] = { .i = 1 }, [MESH_SIMPLIFY_METHOD] = { .i = method } };
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = OCTA_F, .xyz = xyz, .index = index }, r = { 0 };
    struct census c;
    int rc;

    golden_octahedron(xyz, index);
    rc = golden_run(ctx, k, device, (const void *[]){ &m, NULL }, p, (void *[]){ &r, NULL }, NULL);
    if (rc == 0)
        rc = mesh_census(ctx, &r, &c);
    if (rc == 0 && (c.euler != 2 || c.border || c.turned || c.split || c.faces < 4 || c.faces > OCTA_F))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': %llu faces of characteristic %lld", k->name,
                             (unsigned long long)c.faces, (long long)c.euler);
    mesh_free(ctx, &r);
    return rc;
}

int golden_simplify(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    int rc = device ? 0 : golden_one(ctx, k, device, MESH_SIMPLIFY_LEVELS);

    return rc ? rc : golden_one(ctx, k, device, MESH_SIMPLIFY_ROUNDS);
}
