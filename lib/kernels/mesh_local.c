/* Neighbours of vertices as rows of numbers; and the bounds and self-tests of the kernels that only move or add vertices. */
#include "config.h"
#include "base/base.h"
#include "kernels/mesh_plan.h"
#include "kernels/plan.h"

#include <math.h>

void rows_release(struct recon_ctx *ctx, struct rows *r)
{
    ctx->host->free(ctx, r->first);
    ctx->host->free(ctx, r->item);
    *r = (struct rows){ 0 };
}

static int rows_alloc(struct recon_ctx *ctx, uint64_t n, uint64_t items, struct rows *r)
{
    *r = (struct rows){ .n = n };
    r->first = ctx->host->alloc(ctx, 8 * (n + 2));
    r->item = r->first ? ctx->host->alloc(ctx, 4 * items + 4) : NULL;
    if (r->item) {
        memset(r->first, 0, 8 * (n + 2));
        return 0;
    }
    rows_release(ctx, r);
    return -1;
}

/* counts stand one place on; after the second pass each row's end has become the next one's start */
static void sum_up(struct rows *r)
{
    for (uint64_t i = 1; i <= r->n; i++)
        r->first[i + 1] += r->first[i];
}

int rows_neighbours(struct recon_ctx *ctx, const struct topo *t, struct rows *ret)
{
    struct rows r;

    if (rows_alloc(ctx, t->vertices, 2 * t->edges, &r))
        return -1;
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t e = 0; e < t->edges; e++) {
            uint32_t h = t->half[t->first[e]], a = t->index[h], b = t->index[topo_next(h)];

            if (a > b) {
                uint32_t x = a;

                a = b;
                b = x;
            }
            if (pass == 0) {
                r.first[a + 2ull]++;
                r.first[b + 2ull]++;
            } else {
                r.item[r.first[a + 1ull]++] = b;
                r.item[r.first[b + 1ull]++] = a;
            }
        }
        if (pass == 0)
            sum_up(&r);
    }
    *ret = r;
    return 0;
}

int rows_corners(struct recon_ctx *ctx, const struct recon_mesh *m, struct rows *ret)
{
    struct rows r;

    if (m->faces > UINT32_MAX / 3 - 1)
        return ctx->host->fail(ctx, CODE_DATA, NULL, "mesh", "the mesh has %llu faces, at most %u are taken", (unsigned long long)m->faces,
                               UINT32_MAX / 3 - 1);
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        if (m->index[i] >= m->vertices)
            return ctx->host->fail(ctx, CODE_DATA, "face-index-out-of-range", "mesh", "face %llu names vertex %u, %llu are there",
                                   (unsigned long long)(i / 3), m->index[i], (unsigned long long)m->vertices);
    if (rows_alloc(ctx, m->vertices, 3 * m->faces, &r))
        return -1;
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        r.first[m->index[i] + 2ull]++;
    sum_up(&r);
    for (uint32_t h = 0; h < 3 * m->faces; h++)
        r.item[r.first[m->index[h] + 1ull]++] = h;
    *ret = r;
    return 0;
}

int smooth_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    uint64_t turns = (uint64_t)p[MESH_SMOOTH_ITERATIONS].i * (p[MESH_SMOOTH_METHOD].i == MESH_SMOOTH_TAUBIN ? 2 : 1);

    (void)ctx;
    if (!m)
        return 0;
    cost->host_bytes = 27 * m->vertices + 12 * m->faces + topo_bytes(m->vertices, m->faces) + 21 * m->vertices + 24 * m->faces + mesh_beyond(m) + 256;
    cost->moved_bytes = turns * (28 * m->vertices + 12 * m->faces); /* six neighbours a vertex, each place read and written once */
    cost->flops = turns * (24 * m->vertices);
    cost->items = m->vertices * turns;
    return 0;
}

int normals_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    (void)ctx;
    (void)p;
    if (!m)
        return 0;
    cost->host_bytes = 27 * m->vertices + 12 * m->faces + 8 * m->vertices + 12 * m->faces + 24 * m->faces + mesh_beyond(m) + 256;
    cost->moved_bytes = 24 * m->vertices + 12 * m->faces;
    cost->flops = 20 * m->faces + 10 * m->vertices;
    cost->items = m->vertices;
    return 0;
}

void subdivide_cost(uint64_t v, uint64_t f, uint64_t edges, bool first, struct recon_cost *cost)
{
    uint64_t input = first ? 0 : 15 * v + 12 * f; /* the caller's */
    uint64_t bytes = input + topo_bytes(v, f) + 12 * v + 8 * edges + 15 * (v + edges) + 48 * f + 4096;

    cost->host_bytes = bytes > cost->host_bytes ? bytes : cost->host_bytes;
    cost->moved_bytes = 12 * (v + f) + 18 * f + 48 * f;
    cost->flops = 40 * f;
    cost->items = 4 * f;
}

void subdivide_last(const struct recon_mesh *m, int64_t levels, uint64_t *v, uint64_t *f, uint64_t *edges)
{
    *v = m->vertices;
    *f = m->faces;
    for (int64_t i = 1; i < levels && *f < UINT64_MAX / 1024; i++) {
        *v += 3 * *f;
        *f *= 4;
    }
    *edges = 3 * *f;
}

int subdivide_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    uint64_t v, f, edges;

    (void)ctx;
    if (!m)
        return 0;
    subdivide_last(m, p[MESH_SUBDIVIDE_LEVELS].i, &v, &f, &edges);
    subdivide_cost(v, f, edges, p[MESH_SUBDIVIDE_LEVELS].i < 2, cost);
    return 0;
}

int subdivide_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    const struct recon_mesh *m = in[0];
    struct recon_mesh *r = out[0];

    (void)ctx;
    if (!m || !r)
        return 0;
    r->vertices = m->vertices;
    r->faces = m->faces;
    for (int64_t i = 0; i < p[MESH_SUBDIVIDE_LEVELS].i && r->faces < UINT64_MAX / 1024; i++) {
        r->vertices += r->faces / 2 * 3; /* a closed mesh's edges */
        r->faces *= 4;
    }
    return 0;
}

int same_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    const struct recon_mesh *m = in[0];
    struct recon_mesh *r = out[0];

    (void)ctx;
    (void)p;
    if (m && r) {
        r->vertices = m->vertices;
        r->faces = m->faces;
    }
    return 0;
}

int subdivide_fits(struct recon_ctx *ctx, uint64_t vertices, uint64_t faces)
{
    if (faces <= UINT32_MAX / 3 / 4 - 1 && vertices + faces * 3 < UINT32_MAX)
        return 0;
    return ctx->host->fail(ctx, CODE_DATA, NULL, "mesh", "a level more of %llu faces makes more than %u: ask for fewer levels",
                           (unsigned long long)faces, UINT32_MAX / 3 - 1);
}

int subdivide_stopped(struct recon_ctx *ctx, int64_t left)
{
    return ctx->host->fail(ctx, CODE_DEADLINE, NULL, "mesh", "stopped with %lld levels to go", (long long)left);
}

/* ---- self-tests on the octahedron ---- */

static int wrong(struct recon_ctx *ctx, const struct recon_kernel *k, const char *what, double got, double want)
{
    return ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': %s is %.9g, %.9g wanted", k->name, what, got, want);
}

static int run_octahedron(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device, const struct recon_value *p,
                          struct recon_mesh *r)
{
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = OCTA_F, .xyz = xyz, .index = index };

    golden_octahedron(xyz, index);
    return golden_run(ctx, k, device, (const void *[]){ &m, NULL }, p, (void *[]){ r, NULL }, NULL);
}

/* each vertex's four neighbours have their mean in the middle: one step of lambda 1/2 halves the octahedron */
int golden_smooth(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const struct recon_value p[] = { [MESH_SMOOTH_METHOD] = { .i = MESH_SMOOTH_LAPLACIAN }, [MESH_SMOOTH_ITERATIONS] = { .i = 1 },
                                            [MESH_SMOOTH_LAMBDA] = { .f = 0.5 }, [MESH_SMOOTH_MU] = { .f = -0.53 },
                                            [MESH_SMOOTH_WEIGHTS] = { .i = MESH_SMOOTH_UNIFORM }, [MESH_SMOOTH_BORDER] = { .i = MESH_SMOOTH_MOVE } };
    struct recon_mesh r = { 0 };
    int rc = run_octahedron(ctx, k, device, p, &r);

    if (rc == 0 && r.xyz[0] != 0.5f)
        rc = wrong(ctx, k, "a coordinate", (double)r.xyz[0], 0.5);
    mesh_free(ctx, &r);
    return rc;
}

int golden_normals(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const struct recon_value p[] = { [MESH_NORMALS_WEIGHT] = { .i = MESH_NORMALS_AREA } };
    struct recon_mesh r = { 0 };
    int rc = run_octahedron(ctx, k, device, p, &r);

    for (int i = 0; rc == 0 && i < 3 * OCTA_V; i++)
        if (r.normals[i] != r.xyz[i])
            rc = wrong(ctx, k, "a normal's coordinate", (double)r.normals[i], (double)r.xyz[i]);
    mesh_free(ctx, &r);
    return rc;
}

/* Loop: an old vertex of four neighbours goes to 1 - 4 beta of itself, beta = (5/8 - (3/8)^2) / 4 */
int golden_subdivide(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const struct recon_value p[] = { [MESH_SUBDIVIDE_METHOD] = { .i = MESH_SUBDIVIDE_LOOP }, [MESH_SUBDIVIDE_LEVELS] = { .i = 1 } };
    double beta = (0.625 - 0.375 * 0.375) / 4;
    struct recon_mesh r = { 0 };
    int rc = run_octahedron(ctx, k, device, p, &r);

    if (rc == 0 && (r.vertices != 18 || r.faces != 32))
        rc = wrong(ctx, k, "the number of vertices", (double)r.vertices, 18);
    if (rc == 0 && fabs((double)r.xyz[0] - (1 - 4 * beta)) > 1e-6)
        rc = wrong(ctx, k, "a coordinate", (double)r.xyz[0], 1 - 4 * beta);
    mesh_free(ctx, &r);
    return rc;
}
