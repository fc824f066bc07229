#include "config.h"
#include "kernels/blocks.h"
#include "kernels/plan.h"
#include "kernels/rows.h"
#include "base/base.h"

#include <math.h>
#include <stdlib.h>

/* 64, 128 and 256 are also the counts of VTK and scikit-image; 16 is for self-tests */
const struct golden_count golden_sphere_counts[] = {
    { 16, 528, 1052 }, { 64, 9168, 18332 }, { 128, 37080, 74156 }, { 256, 150264, 300524 }, { 0, 0, 0 },
};

void golden_sphere(float *tsdf, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < n; k++) {
                double x = -1 + 2.0 * i / (n - 1), y = -1 + 2.0 * j / (n - 1), z = -1 + 2.0 * k / (n - 1);

                tsdf[((uint64_t)i * n + j) * n + k] = (float)(sqrt(x * x + y * y + z * z) - 0.7);
            }
}

/* ---- slots of a self-test, wherever they are ---- */

void golden_free(struct recon_ctx *ctx, const struct recon_device *device, enum recon_slot type, void *slot)
{
    struct recon_array a[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(type, slot, a);
    bool away = device && *recon_slot_place(type, slot) == RECON_DEVICE;

    for (int i = 0; i < n; i++) {
        if (away)
            device->free(ctx, *a[i].at);
        else
            ctx->host->free(ctx, *a[i].at);
        *a[i].at = NULL;
    }
}

/* to: the place wanted; nothing is done when the slot is there */
int golden_move(struct recon_ctx *ctx, const struct recon_device *device, enum recon_slot type, void *slot,
                     enum recon_place to)
{
    enum recon_place *place = recon_slot_place(type, slot);
    struct recon_array a[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(type, slot, a), rc = 0;

    if (!device || *place == to)
        return 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        void *from = *a[i].at, *p;

        if (!a[i].bytes) {
            if (to == RECON_DEVICE)
                ctx->host->free(ctx, from);
            else
                device->free(ctx, from);
            *a[i].at = NULL;
            continue;
        }
        p = to == RECON_DEVICE ? device->alloc(ctx, a[i].bytes) : ctx->host->alloc(ctx, a[i].bytes);
        if (!p)
            return -1;
        rc = to == RECON_DEVICE ? device->upload(ctx, p, from, a[i].bytes)
                                : device->download(ctx, p, from, a[i].bytes);
        if (rc == 0)
            rc = device->sync(ctx);
        if (to == RECON_DEVICE)
            ctx->host->free(ctx, from);
        else
            device->free(ctx, from);
        *a[i].at = p;
    }
    *place = to;
    return rc;
}

/* A copy of a slot on the device; the host's stays. As the runner has it. */
static int golden_upload(struct recon_ctx *ctx, const struct recon_device *device, enum recon_slot type, void *slot)
{
    struct recon_array a[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(type, slot, a), rc = 0;

    for (int i = 0; i < n; i++) {
        const void *from = *a[i].at;

        *a[i].at = from && rc == 0 ? device->alloc(ctx, a[i].bytes) : NULL; /* an array of nothing is not none */
        if (from && rc == 0)
            rc = *a[i].at ? device->upload(ctx, *a[i].at, from, a[i].bytes) : -1;
    }
    *recon_slot_place(type, slot) = RECON_DEVICE;
    return rc || device->sync(ctx) ? -1 : 0;
}

int golden_run(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device, const void *const *in,
               const struct recon_value *params, void *const *out, struct recon_cost *ret_cost)
{
    union slot {
        struct recon_points points;
        struct recon_mesh mesh;
        struct recon_volume volume;
    } copy[3];
    const void *there[4] = { NULL };
    struct recon_cost cost = { 0 };
    int n = 0, rc = 0;

    ret_cost = ret_cost ? ret_cost : &cost;
    if (!device)
        return k->run(ctx, in, params, out, ret_cost);
    for (; rc == 0 && k->in[n].name; n++) {
        there[n] = in[n];
        if (k->in[n].type == RECON_FRAMES)
            continue;
        memcpy(&copy[n], in[n], recon_slot_size((enum recon_slot)k->in[n].type));
        there[n] = &copy[n];
        rc = golden_upload(ctx, device, (enum recon_slot)k->in[n].type, &copy[n]);
    }
    rc = rc ? rc : k->run(ctx, there, params, out, ret_cost);
    for (int i = 0; rc == 0 && k->out[i].name; i++)
        if (out[i])
            rc = golden_move(ctx, device, (enum recon_slot)k->out[i].type, out[i], RECON_HOST);
    for (int i = 0; rc && k->out[i].name; i++)
        if (out[i])
            golden_free(ctx, device, (enum recon_slot)k->out[i].type, out[i]);
    while (n-- > 0)
        if (k->in[n].type != RECON_FRAMES)
            golden_free(ctx, device, (enum recon_slot)k->in[n].type, &copy[n]);
    return rc;
}

static int wrong(struct recon_ctx *ctx, const struct recon_kernel *k, const char *what, double got,
                 double want)
{
    return ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': %s is %.9g, %.9g wanted",
                           k->name, what, got, want);
}

/* ---- tsdf.fuse: two views of a wall at z = 1 ---- */

enum { WALL_W = 32, WALL_H = 24, WALL_N = 16 };

struct wall {
    float depth[WALL_W * WALL_H];
    uint8_t rgb[WALL_W * WALL_H * 3];
    int given;
};

static int wall_next(struct recon_frames *self, struct recon_frame *ret)
{
    struct wall *w = self->impl;

    if (w->given == 2)
        return 0;
    *ret = (struct recon_frame){.depth = w->depth,
                                .color = w->rgb,
                                .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1},
                                .name = "wall",
                                .index = (uint64_t)w->given++};
    return 1;
}

static int wall_rewind(struct recon_frames *self)
{
    ((struct wall *)self->impl)->given = 0;
    return 0;
}

static int wall_check(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_volume *v)
{
    if (v->dim[0] != WALL_N || v->dim[1] != WALL_N || v->dim[2] != WALL_N || !v->rgb)
        return wrong(ctx, k, "a side of the volume", v->dim[0], WALL_N);
    for (uint32_t i = 0; i < WALL_N * WALL_N * WALL_N; i++) {
        double x = -0.375 + 0.05 * (i / WALL_N / WALL_N), y = -0.375 + 0.05 * (i / WALL_N % WALL_N),
               z = 0.625 + 0.05 * (i % WALL_N);
        double u = 30 * x / z + 15.5, w = 30 * y / z + 11.5, s = (1 - z) / 0.25;
        bool seen = u > -0.5 && u < WALL_W - 0.5 && w > -0.5 && w < WALL_H - 0.5 && s >= -1;
        double want = seen ? fmin(s, 1) : 1, color = seen ? 200 : 0;

        if (v->weight[i] != (seen ? 2 : 0))
            return wrong(ctx, k, "a weight", v->weight[i], seen ? 2 : 0);
        if (!(fabs(v->tsdf[i] - want) < 1e-5))
            return wrong(ctx, k, "a value", v->tsdf[i], want);
        if (v->rgb[3 * i + 1] != color)
            return wrong(ctx, k, "a colour", v->rgb[3 * i + 1], color);
    }
    return 0;
}

static int wall_fuse(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device, struct recon_frames *frames,
                     const struct recon_value *p)
{
    struct recon_volume v = { 0 }, dense = { 0 };
    struct recon_cost cost = { 0 };
    int rc = k->run(ctx, (const void *[]){ frames, NULL }, p, (void *[]){ &v, NULL }, &cost);

    if (rc == 0)
        rc = golden_move(ctx, device, RECON_VOLUME, &v, RECON_HOST);
    if (rc == 0 && v.side)
        rc = volume_spread(ctx, &v, &dense);
    if (rc == 0)
        rc = wall_check(ctx, k, v.side ? &dense : &v);
    golden_free(ctx, device, RECON_VOLUME, &v);
    golden_free(ctx, NULL, RECON_VOLUME, &dense);
    return rc;
}

int golden_fuse(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const double bounds[6] = { -0.4, 0.4, -0.4, 0.4, 0.6, 1.4 };
    struct wall wall = { .given = 0 };
    struct recon_frames frames = {.camera = {WALL_W, WALL_H, 30, 30, 15.5, 11.5},
                                  .count = 2,
                                  .bounds = {NAN},
                                  .next = wall_next,
                                  .rewind = wall_rewind,
                                  .impl = &wall};
    struct recon_value p[] = {[FUSE_VOXEL] = {.f = 0.05},
                              [FUSE_TRUNCATION] = {.f = 5},
                              [FUSE_BOUNDS] = {.v = bounds, .n = 6},
                              [FUSE_WEIGHT_MAX] = {.f = 0},
                              [FUSE_COMPAT] = {.i = FUSE_COMPAT_RECON},
                              [FUSE_COLOR] = {.i = 1},
                              [FUSE_LAYOUT] = {.i = FUSE_DENSE}};
    int rc;

    for (int i = 0; i < WALL_W * WALL_H; i++)
        wall.depth[i] = 1;
    memset(wall.rgb, 200, sizeof(wall.rgb));
    rc = wall_fuse(ctx, k, device, &frames, p);
    p[FUSE_LAYOUT].i = FUSE_BLOCKS;
    if (rc == 0) {
        wall.given = 0;
        rc = wall_fuse(ctx, k, device, &frames, p);
    }
    return rc;
}

/* ---- mesh.marching_cubes: the sphere ---- */

static int mesh_check(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_mesh *m)
{
    const struct golden_count *want = golden_sphere_counts;
    double volume = 0;

    if (m->vertices != want->vertices || m->faces != want->faces)
        return wrong(ctx, k, "the number of vertices", (double)m->vertices, (double)want->vertices);
    for (uint64_t f = 0; f < m->faces; f++) {
        const float *p[3];

        for (int i = 0; i < 3; i++) {
            if (m->index[3 * f + (uint64_t)i] >= m->vertices)
                return wrong(ctx, k, "an index", m->index[3 * f + (uint64_t)i], (double)m->vertices - 1);
            p[i] = m->xyz + 3 * (uint64_t)m->index[3 * f + (uint64_t)i];
        }
        volume += (double)p[0][0] * ((double)p[1][1] * p[2][2] - (double)p[1][2] * p[2][1]) -
                  (double)p[0][1] * ((double)p[1][0] * p[2][2] - (double)p[1][2] * p[2][0]) +
                  (double)p[0][2] * ((double)p[1][0] * p[2][1] - (double)p[1][1] * p[2][0]);
    }
    return fabs(volume / 6 - 1.4368) < 0.05 ? 0 : wrong(ctx, k, "the volume", volume / 6, 1.4368);
}

int golden_marching_cubes(struct recon_ctx *ctx, const struct recon_kernel *k,
                          const struct recon_device *device)
{
    struct recon_value p[] = {[MC_ISO] = {.f = 0},
                              [MC_INSIDE] = {.i = MC_INSIDE_LT},
                              [MC_MIN_WEIGHT] = {.f = 0},
                              [MC_PAD] = {.i = 0}};
    uint32_t n = golden_sphere_counts[0].n;
    struct recon_volume v = {
        .dim = {n, n, n}, .origin = {-1, -1, -1}, .voxel = 2.0 / (n - 1), .truncation = 1};
    const void *in[] = { &v, NULL };
    struct recon_mesh m = { 0 };
    void *out[] = { &m, NULL };
    struct recon_cost cost = { 0 };
    int rc;

    if (!(v.tsdf = ctx->host->alloc(ctx, (uint64_t)n * n * n * 4)))
        return -1;
    golden_sphere(v.tsdf, n);
    rc = golden_move(ctx, device, RECON_VOLUME, &v, RECON_DEVICE);
    if (rc == 0)
        rc = k->run(ctx, in, p, out, &cost);
    if (rc == 0)
        rc = golden_move(ctx, device, RECON_MESH, &m, RECON_HOST);
    if (rc == 0)
        rc = mesh_check(ctx, k, &m);
    golden_free(ctx, device, RECON_MESH, &m);
    golden_free(ctx, device, RECON_VOLUME, &v);
    return rc;
}
