/* Smoothing by gathering neighbours in ascending order, double buffered: the same bits for any number of threads.
 * Laplacian: v += lambda * (mean of neighbours - v); Taubin (1995): lambda, then mu. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"

#include <math.h>

struct step {
    const struct rows *near;
    const uint8_t *fixed;
    double share;
    int distance;
};

KERN_CLONES
static void move_range(const struct step *s, const float *from, float *to, uint64_t first, uint64_t end)
{
    for (uint64_t v = first; v < end; v++) {
        uint64_t a = s->near->first[v], b = s->near->first[v + 1];
        const float *p = from + 3 * v;
        double x = 0, y = 0, z = 0, sum = 0;

        if (a == b || s->fixed[v]) {
            to[3 * v] = p[0];
            to[3 * v + 1] = p[1];
            to[3 * v + 2] = p[2];
            continue;
        }
        for (uint64_t i = a; i < b; i++) {
            const float *q = from + 3 * (uint64_t)s->near->item[i];
            double dx = (double)q[0] - (double)p[0], dy = (double)q[1] - (double)p[1], dz = (double)q[2] - (double)p[2];
            double w = s->distance ? 1 / (sqrt(dx * dx + dy * dy + dz * dz) + 1e-12) : 1;

            x += w * dx;
            y += w * dy;
            z += w * dz;
            sum += w;
        }
        to[3 * v] = (float)((double)p[0] + s->share * (x / sum));
        to[3 * v + 1] = (float)((double)p[1] + s->share * (y / sum));
        to[3 * v + 2] = (float)((double)p[2] + s->share * (z / sum));
    }
}

static void move_all(const struct recon_ctx *ctx, const struct step *s, const float *from, float *to, uint64_t n)
{
    uint64_t blocks = (n + 4095) / 4096;

#pragma omp parallel for num_threads(ctx->threads) schedule(static) if (n > 20000)
    for (uint64_t b = 0; b < blocks; b++)
        move_range(s, from, to, b * 4096, (b + 1) * 4096 < n ? (b + 1) * 4096 : n);
}

static void mark_fixed(const struct topo *t, bool border, uint8_t *fixed)
{
    memset(fixed, 0, t->vertices);
    for (uint64_t i = 0; border && i < t->halves; i++) {
        uint32_t h = t->half[i];

        if (topo_count(t, t->edge_of[h]) != 2)
            fixed[t->index[h]] = fixed[t->index[topo_next(h)]] = 1;
    }
}

/* Either edges and neighbours, or neighbours, the copy and the other places; an edge a half-edge at worst. */
static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    uint64_t edges, places;

    smooth_bound(ctx, in, p, cost);
    if (!m)
        return 0;
    edges = 60 * m->faces + 13 * m->vertices;
    places = 36 * m->faces + (m->rgb ? 36 : 33) * m->vertices;
    cost->host_bytes = (edges > places ? edges : places) + mesh_beyond(m) + 512;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    bool taubin = p[MESH_SMOOTH_METHOD].i == MESH_SMOOTH_TAUBIN;
    int64_t turns = p[MESH_SMOOTH_ITERATIONS].i * (taubin ? 2 : 1);
    struct recon_mesh c = { 0 };
    struct topo t = { 0 };
    struct rows near = { 0 };
    float *other = NULL, *from, *to;
    uint8_t *fixed = NULL;
    uint64_t alone = 0;
    int rc = -1;

    if (topo_build(ctx, m, &t) || rows_neighbours(ctx, &t, &near) || !(fixed = ctx->host->alloc(ctx, m->vertices)))
        goto out;
    mark_fixed(&t, p[MESH_SMOOTH_BORDER].i == MESH_SMOOTH_FIX, fixed);
    topo_release(ctx, &t);
    if (mesh_copy(ctx, m, false, true, &c) || mesh_keep(ctx, m, false, &c) || !(other = ctx->host->alloc(ctx, 12 * m->vertices)))
        goto out;
    for (from = c.xyz, to = other; turns > 0; turns--) {
        struct step s = { &near, fixed, taubin && turns % 2 ? p[MESH_SMOOTH_MU].f : p[MESH_SMOOTH_LAMBDA].f,
                          p[MESH_SMOOTH_WEIGHTS].i == MESH_SMOOTH_DISTANCE };
        float *x = from;

        move_all(ctx, &s, from, to, m->vertices);
        from = to;
        to = x;
        if (turns % 64 == 0 && ctx->host->cancelled(ctx)) {
            ctx->host->fail(ctx, CODE_DEADLINE, NULL, "mesh", "stopped with %lld turns to go", (long long)turns);
            goto out;
        }
    }
    other = from == c.xyz ? other : c.xyz;
    c.xyz = from;
    for (uint64_t v = 0; v < m->vertices; v++)
        alone += near.first[v] == near.first[v + 1];
    if (alone)
        ctx->host->log(ctx, RECON_NOTE, NULL, "mesh", "%llu vertices are in no face and stay where they are", (unsigned long long)alone);
    bound(ctx, in, p, cost);
    *(struct recon_mesh *)out[0] = c;
    c = (struct recon_mesh){ 0 };
    rc = 0;
out:
    mesh_free(ctx, &c);
    ctx->host->free(ctx, other);
    ctx->host->free(ctx, fixed);
    rows_release(ctx, &near);
    topo_release(ctx, &t);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_smooth(ctx, &cpu_mesh_smooth, NULL);
}

const struct recon_kernel cpu_mesh_smooth = { RECON_KERNEL_ABI,   MESH_SMOOTH_NAME, MESH_SMOOTH_DOC, mesh_one_in, mesh_one_out,
                                              mesh_smooth_params, bound,            run,             selftest,    same_shape };
