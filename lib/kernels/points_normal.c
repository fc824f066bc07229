/* Normals of points: the plane of the neighbours, and which side is out. */
#include "config.h"
#include "base/base.h"
#include "kernels/plan.h"
#include "kernels/points_fit.h"
#include "kernels/points_plan.h"

#include <stdlib.h>

void normal_of(const float *xyz, const uint32_t *near, int n, double normal[3])
{
    normal_fit(xyz, near, n, normal);
}

/* ---- propagation: the tree of least 1 - |dot| over the neighbours' graph (Hoppe 1992), by joining sets with signs ---- */

struct set {
    uint32_t parent;
    uint8_t flip; /* against the parent */
};

static uint32_t root_of(struct set *s, uint32_t i, uint8_t *flip)
{
    uint32_t r = i;
    uint8_t sum = 0, f;

    for (; s[r].parent != r; r = s[r].parent)
        sum ^= s[r].flip;
    *flip = sum;
    while (s[i].parent != r && i != r) { /* the path becomes short */
        uint32_t next = s[i].parent;

        f = s[i].flip;
        s[i].parent = r;
        s[i].flip = sum;
        sum ^= f;
        i = next;
    }
    return r;
}

static uint64_t *radix(uint64_t *a, uint64_t *b, uint64_t n)
{
    for (int shift = 32; shift < 64; shift += 8) {
        uint64_t at[257] = { 0 }, *x;

        for (uint64_t i = 0; i < n; i++)
            at[(a[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            at[i + 1] += at[i];
        for (uint64_t i = 0; i < n; i++)
            b[at[a[i] >> shift & 255]++] = a[i];
        x = a;
        a = b;
        b = x;
    }
    return a;
}

static double dot_of(const float *a, const float *b)
{
    return (double)a[0] * (double)b[0] + (double)a[1] * (double)b[1] + (double)a[2] * (double)b[2];
}

static void join_all(struct set *s, const uint64_t *sorted, uint64_t m, const uint32_t *near, int k, const float *normals)
{
    for (uint64_t e = 0; e < m; e++) {
        uint64_t number = sorted[e] & UINT32_MAX;
        uint32_t i = (uint32_t)(number / (uint64_t)k), j = near[number], a, b;
        uint8_t fi, fj, against = dot_of(normals + 3 * (uint64_t)i, normals + 3 * (uint64_t)j) < 0;

        a = root_of(s, i, &fi);
        b = root_of(s, j, &fj);
        if (a == b)
            continue;
        if (a > b) {
            uint32_t x = a;

            a = b;
            b = x;
        }
        s[b].parent = a;
        s[b].flip = (uint8_t)(fi ^ fj ^ against);
    }
}

/* Of each joined part the topmost point along z, the first of those, looks up. top: 4 bytes a point, rel: 1. */
static void settle(struct set *s, const struct recon_points *p, uint32_t *top, uint8_t *rel, float *normals)
{
    memset(top, 0xff, 4 * p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t r = root_of(s, i, &rel[i]);

        if (top[r] == UINT32_MAX || p->xyz[3 * (uint64_t)i + 2] > p->xyz[3 * (uint64_t)top[r] + 2])
            top[r] = i;
    }
    for (uint32_t r = 0; r < p->n; r++) /* now: whether the part's root is turned */
        if (top[r] != UINT32_MAX)
            top[r] = (uint32_t)(rel[top[r]] ^ (normals[3 * (uint64_t)top[r] + 2] < 0));
    for (uint32_t i = 0; i < p->n; i++) {
        uint8_t flip;
        uint32_t r = root_of(s, i, &flip);

        for (uint64_t k = 0; (flip ^ top[r]) && k < 3; k++)
            normals[3 * (uint64_t)i + k] = -normals[3 * (uint64_t)i + k];
    }
}

static int propagate(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *near, int k, float *normals)
{
    uint64_t n = p->n, m = 0, *a = ctx->host->alloc(ctx, 8 * n * (uint64_t)k), *b = ctx->host->alloc(ctx, 8 * n * (uint64_t)k);
    struct set *s = ctx->host->alloc(ctx, n * sizeof(*s));
    uint32_t *top = ctx->host->alloc(ctx, 4 * n);
    uint8_t *rel = ctx->host->alloc(ctx, n);
    int rc = a && b && s && top && rel ? 0 : -1;

    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        s[i] = (struct set){ i, 0 };
        for (int j = 0; j < k; j++) {
            uint64_t number = (uint64_t)i * (uint64_t)k + (uint64_t)j;
            float w = (float)(1 - fabs(dot_of(normals + 3 * (uint64_t)i, normals + 3 * (uint64_t)near[number])));
            uint32_t bits;

            w = w > 0 ? w : 0;
            memcpy(&bits, &w, 4);
            if (near[number] != i)
                a[m++] = (uint64_t)bits << 32 | number;
        }
    }
    if (rc == 0) {
        join_all(s, radix(a, b, m), m, near, k, normals);
        settle(s, p, top, rel, normals);
    }
    ctx->host->free(ctx, a);
    ctx->host->free(ctx, b);
    ctx->host->free(ctx, s);
    ctx->host->free(ctx, top);
    ctx->host->free(ctx, rel);
    return rc;
}

int normals_orient(struct recon_ctx *ctx, const struct recon_points *p, const uint32_t *near, int k, const struct recon_value *v, float *normals)
{
    double from[3] = { 0 };
    bool away = v[POINTS_NORMALS_ORIENT].i == POINTS_NORMALS_OUTWARD;

    if (v[POINTS_NORMALS_ORIENT].i == POINTS_NORMALS_NONE)
        return 0;
    if (v[POINTS_NORMALS_ORIENT].i == POINTS_NORMALS_PROPAGATE)
        return propagate(ctx, p, near, k, normals);
    for (uint64_t i = 0; away && i < 3 * p->n; i++)
        from[i % 3] += (double)p->xyz[i] / (double)p->n;
    for (uint64_t i = 0; !away && v[POINTS_NORMALS_VIEWPOINT].n == 3 && i < 3; i++)
        from[i] = v[POINTS_NORMALS_VIEWPOINT].v[i];
    for (uint64_t i = 0; i < p->n; i++) {
        double dot = 0;

        for (uint64_t a = 0; a < 3; a++)
            dot += (double)normals[3 * i + a] * ((double)p->xyz[3 * i + a] - from[a]);
        for (uint64_t a = 0; (away ? dot < 0 : dot > 0) && a < 3; a++)
            normals[3 * i + a] = -normals[3 * i + a];
    }
    return 0;
}

int points_normals_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    uint64_t k = (uint64_t)p[POINTS_NORMALS_K].i;

    (void)ctx;
    if (!r)
        return 0;
    k = k < r->n ? k : r->n;
    cost->host_bytes = r->n * (27 + 5 + 4 * k + 13) + (p[POINTS_NORMALS_ORIENT].i == POINTS_NORMALS_PROPAGATE ? 16 * k * r->n : 0) + 4096;
    cost->moved_bytes = r->n * (24 + 12 * k);
    cost->flops = r->n * (30 * k + 600);
    cost->items = r->n;
    return 0;
}

int points_same_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out)
{
    (void)ctx;
    (void)p;
    if (in[0] && out[0])
        ((struct recon_points *)out[0])->n = ((const struct recon_points *)in[0])->n;
    return 0;
}

/* a sheet z = x / 2 of 5 x 5 points: every normal is (-1, 0, 2) / sqrt 5 */
int golden_points_normals(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    float xyz[75];
    struct recon_points in = { .n = 25, .xyz = xyz }, r = { 0 };
    struct recon_value p[] = { [POINTS_NORMALS_K] = { .i = 6 }, [POINTS_NORMALS_ORIENT] = { .i = POINTS_NORMALS_PROPAGATE },
                               [POINTS_NORMALS_VIEWPOINT] = { 0 } };
    int rc;

    for (int i = 0; i < 25; i++) {
        xyz[3 * i] = (float)(i / 5);
        xyz[3 * i + 1] = (float)(i % 5);
        xyz[3 * i + 2] = (float)(i / 5) / 2;
    }
    rc = golden_run(ctx, k, device, (const void *[]){ &in, NULL }, p, (void *[]){ &r, NULL }, NULL);
    for (int i = 0; rc == 0 && i < 25; i++)
        if (!(fabs((double)r.normals[3 * i + 2] - 2 / sqrt(5)) < 1e-6) || !(fabs((double)r.normals[3 * i] + 1 / sqrt(5)) < 1e-6))
            rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': a normal's z is %.9g, %.9g wanted", k->name,
                                 (double)r.normals[3 * i + 2], 2 / sqrt(5));
    points_free(ctx, &r);
    return rc;
}
