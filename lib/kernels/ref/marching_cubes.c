/* Marching cubes, cell after cell, with a number a sample edge: the order of vertices and faces that mc.h
 * states. */
#include "config.h"
#include "kernels/blocks.h"
#include "kernels/mc.h"
#include "kernels/ref/ref.h"

#include <math.h>
#include <stdlib.h>

enum { SLOTS = 4 }; /* a sample's three edges and the centre of its cell */

struct job {
    const struct recon_volume *v;
    struct mc_rule rule;
    int64_t n[3];
    uint8_t *used;    /* SLOTS a sample */
    uint64_t *number; /* SLOTS a sample */
    uint64_t vertices, faces;
    struct recon_mesh *mesh;
};

static int64_t at(const struct job *j, const int64_t s[3])
{
    return (s[0] * j->n[1] + s[1]) * j->n[2] + s[2];
}

/* the volume's index of a sample, -1 for padding */
static int64_t sample(const struct job *j, const int64_t s[3])
{
    int64_t p[3];

    for (int a = 0; a < 3; a++) {
        p[a] = s[a] - j->rule.pad;
        if (p[a] < 0 || p[a] >= j->v->dim[a])
            return -1;
    }
    return (p[0] * j->v->dim[1] + p[1]) * j->v->dim[2] + p[2];
}

static double value(const struct job *j, const int64_t s[3])
{
    int64_t i = sample(j, s);

    return i < 0 ? j->rule.pad_value : mc_value(&j->rule, j->v->tsdf[i]);
}

static bool observed(const struct job *j, const int64_t s[3])
{
    int64_t i = sample(j, s);

    return i < 0 || !j->v->weight || j->rule.min_weight < 0 || j->v->weight[i] > (float)j->rule.min_weight;
}

/* entry of the table for the cell at s, or -1 when it has no surface */
static int entry_of(const struct job *j, const int64_t s[3])
{
    double v[8];
    int code = 0;

    for (int c = 0; c < 8; c++) {
        int64_t q[3] = { s[0] + (c & 1), s[1] + (c >> 1 & 1), s[2] + (c >> 2) };

        if (!observed(j, q))
            return -1;
        v[c] = value(j, q);
        code |= mc_inside(&j->rule, v[c]) << c;
    }
    return code == 0 || code == 255 ? -1 : mc_entry(code, v);
}

static int64_t edge_slot(const struct job *j, const int64_t s[3], int e)
{
    int corner = mc_edge_corner(e);
    int64_t q[3] = { s[0] + (corner & 1), s[1] + (corner >> 1 & 1), s[2] + (corner >> 2) };

    return e == MC_CENTRE ? SLOTS * at(j, s) + 3 : SLOTS * at(j, q) + e / 4;
}

static void each_cell(struct job *j, void (*what)(struct job *, const int64_t s[3], int entry))
{
    int64_t s[3];

    for (s[0] = 0; s[0] + 1 < j->n[0]; s[0]++)
        for (s[1] = 0; s[1] + 1 < j->n[1]; s[1]++)
            for (s[2] = 0; s[2] + 1 < j->n[2]; s[2]++) {
                int entry = entry_of(j, s);

                if (entry >= 0)
                    what(j, s, entry);
            }
}

static void mark(struct job *j, const int64_t s[3], int entry)
{
    for (int i = 3 * mc_offset[entry]; i < 3 * mc_offset[entry + 1]; i++)
        j->used[edge_slot(j, s, mc_triangle[i])] = 1;
    j->faces += (uint64_t)(mc_offset[entry + 1] - mc_offset[entry]);
}

static void place(struct job *j, uint64_t number, const double p[3], const double rgb[3])
{
    for (int a = 0; a < 3; a++) {
        j->mesh->xyz[3 * number + (uint64_t)a] =
            (float)(j->v->origin[a] + j->v->voxel * (p[a] - j->rule.pad));
        if (j->mesh->rgb)
            j->mesh->rgb[3 * number + (uint64_t)a] = (uint8_t)rgb[a];
    }
}

static void color_of(const struct job *j, const int64_t s[3], const int64_t e[3], double t, double rgb[3])
{
    int64_t a = sample(j, s), b = sample(j, e);

    a = a < 0 ? b : a;
    b = b < 0 ? a : b;
    if (j->v->weight && !(j->v->weight[a] > 0))
        a = b;
    else if (j->v->weight && !(j->v->weight[b] > 0))
        b = a;
    for (int c = 0; c < 3; c++)
        rgb[c] = floor(j->v->rgb[3 * a + c] * (1 - t) + j->v->rgb[3 * b + c] * t + 0.5);
}

static void edge_vertex(const struct job *j, const int64_t s[3], int e, double p[3], double rgb[3])
{
    int corner = mc_edge_corner(e);
    int64_t q[3] = {s[0] + (corner & 1), s[1] + (corner >> 1 & 1), s[2] + (corner >> 2)},
            r[3] = {q[0], q[1], q[2]};
    double t;

    r[e / 4]++;
    t = mc_cross(value(j, q), value(j, r));
    for (int a = 0; a < 3; a++)
        p[a] = (double)q[a];
    p[e / 4] += t;
    if (j->mesh->rgb)
        color_of(j, q, r, t, rgb);
}

static void emit(struct job *j, const int64_t s[3], int entry)
{
    double p[3], rgb[3] = { 0 }, sum[3] = { 0 }, tint[3] = { 0 };
    int n = 0, edges = 0;

    for (int i = 3 * mc_offset[entry]; i < 3 * mc_offset[entry + 1]; i++) {
        edges |= 1 << mc_triangle[i];
        j->mesh->index[j->faces++] = (uint32_t)j->number[edge_slot(j, s, mc_triangle[i])];
    }
    for (int e = 0; e < 12; e++) {
        if (!(edges >> e & 1))
            continue;
        edge_vertex(j, s, e, p, rgb);
        place(j, j->number[edge_slot(j, s, e)], p, rgb);
        if (!(mc_centre[entry] >> e & 1))
            continue;
        n++;
        for (int a = 0; a < 3; a++) {
            sum[a] += p[a];
            tint[a] += rgb[a];
        }
    }
    for (int a = 0; n && a < 3; a++) {
        sum[a] /= n;
        tint[a] = floor((tint[a] + n / 2) / n);
    }
    if (n)
        place(j, j->number[edge_slot(j, s, MC_CENTRE)], sum, tint);
}

static int run_job(struct recon_ctx *ctx, struct job *j)
{
    struct recon_mesh *m = j->mesh;
    uint64_t slots = (uint64_t)j->n[0] * (uint64_t)j->n[1] * (uint64_t)j->n[2] * SLOTS;

    if (!(j->used = ctx->host->alloc(ctx, slots)) || !(j->number = ctx->host->alloc(ctx, slots * 8)))
        return -1;
    memset(j->used, 0, slots);
    each_cell(j, mark);
    for (uint64_t i = 0; i < slots; i++)
        if (j->used[i])
            j->number[i] = j->vertices++;
    if (!j->faces)
        return mc_refuse_empty(ctx, j->v, &j->rule);
    if (j->vertices > UINT32_MAX)
        return ctx->host->fail(ctx, CODE_DATA, "volume-too-big", "mesh",
                               "%llu vertices are more than 32-bit indices hold",
                               (unsigned long long)j->vertices);
    m->vertices = j->vertices;
    m->faces = j->faces;
    if (!(m->xyz = ctx->host->alloc(ctx, m->vertices * 12)) ||
        !(m->index = ctx->host->alloc(ctx, m->faces * 12)) ||
        (j->v->rgb && !(m->rgb = ctx->host->alloc(ctx, m->vertices * 3))))
        return -1;
    j->faces = 0; /* indices from here on */
    each_cell(j, emit);
    return 0;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                 struct recon_cost *cost)
{
    const struct recon_volume *v = in ? in[0] : NULL;

    (void)ctx;
    (void)params;
    if (v)
        mc_bound(v, SLOTS * 9 + (v->side ? 11 : 0), cost);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
               void *const *out, struct recon_cost *cost)
{
    const struct recon_volume *given = in[0];
    struct job j = { .v = given, .mesh = out[0] };
    struct recon_volume dense = { .side = 0 };
    int rc;

    if (given->side) {
        if (volume_spread(ctx, given, &dense))
            return -1;
        j.v = &dense;
    }
    j.rule = mc_rule_of(params[MC_ISO].f, params[MC_INSIDE].i == MC_INSIDE_GE, params[MC_MIN_WEIGHT].f,
                        params[MC_PAD].i != 0);
    for (int a = 0; a < 3; a++)
        j.n[a] = (int64_t)j.v->dim[a] + 2 * j.rule.pad;
    rc = run_job(ctx, &j);
    if (rc == 0)
        mc_cost(j.v, j.mesh, SLOTS * 9, cost);
    ctx->host->free(ctx, j.used);
    ctx->host->free(ctx, j.number);
    golden_free(ctx, NULL, RECON_VOLUME, &dense);
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_marching_cubes(ctx, &ref_marching_cubes, NULL);
}

const struct recon_kernel ref_marching_cubes = { RECON_KERNEL_ABI, MC_NAME, MC_DOC, mc_in, mc_out, mc_params,
    bound, run, selftest, mc_shape };
