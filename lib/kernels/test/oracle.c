/* oracle MODULE DATASET REF.npz VOXEL x0 x1 y0 y1 z0 z1: fuses a dataset as tsdf-fusion does and holds the
 * volume against a reference of float64. A voxel agrees when its weight is the same and its value within
 * 1e-4. For each that does not, the projections are done again in double: it must stand on a rounding tie in
 * some frame (a pixel coordinate within TIE of a half, or a depth within TIE of the truncation), where one
 * rounding more or less takes another pixel. Status 0 when at least 99.95 % of the observed voxels agree and
 * all others are ties. */
#include "config.h"
#include "data/data.h"
#include "kernels/test/ctx.h"

#include <math.h>
#include <stdlib.h>

#define AGREE 1e-4
#define TIE 1e-6

struct suspect {
    uint64_t at;
    double closest; /* to a tie, over all frames */
};
struct suspects {
    struct suspect *v;
    size_t n, cap;
};

static int die(const char *what)
{
    printf("oracle: %s\n", what);
    return 1;
}

static double to_half(double u)
{
    return fabs(u - floor(u) - 0.5);
}

static void look(struct suspect *s, const struct recon_volume *v, const struct recon_camera *c,
                 const struct recon_frame *f)
{
    uint64_t k = s->at % v->dim[2], j = s->at / v->dim[2] % v->dim[1], i = s->at / v->dim[2] / v->dim[1];
    double d[3] = {v->origin[0] + v->voxel * (double)i - f->pose[3],
                   v->origin[1] + v->voxel * (double)j - f->pose[7],
                   v->origin[2] + v->voxel * (double)k - f->pose[11]},
           q[3], u, w;

    for (int a = 0; a < 3; a++)
        q[a] = f->pose[a] * d[0] + f->pose[4 + a] * d[1] + f->pose[8 + a] * d[2];
    if (q[2] <= 0)
        return;
    u = c->fx * q[0] / q[2] + c->cx;
    w = c->fy * q[1] / q[2] + c->cy;
    if (u < -1 || w < -1 || u > c->width || w > c->height)
        return;
    s->closest = fmin(s->closest, fmin(to_half(u), to_half(w)));
    for (int y = (int)floor(w); y <= (int)floor(w) + 1; y++)
        for (int x = (int)floor(u); x <= (int)floor(u) + 1; x++)
            if (x >= 0 && y >= 0 && x < (int)c->width && y < (int)c->height)
                s->closest =
                    fmin(s->closest, fabs(f->depth[(size_t)y * c->width + (size_t)x] - q[2] + v->truncation));
}

struct result {
    uint64_t observed, inside, ties;
    double worst; /* difference of those that agree */
};

static void compare(const struct recon_volume *v, const struct recon_volume *ref, struct suspects *list,
                    struct result *r)
{
    uint64_t n = (uint64_t)v->dim[0] * v->dim[1] * v->dim[2];

    for (uint64_t i = 0; i < n; i++) {
        double d = fabs((double)v->tsdf[i] - ref->tsdf[i]);

        if (v->weight[i] > 0) {
            r->observed++;
            r->inside += v->tsdf[i] < 0;
        }
        if (v->weight[i] != ref->weight[i] || !(d <= AGREE))
            *VEC_ADD(list) = (struct suspect){ i, INFINITY };
        else
            r->worst = fmax(r->worst, d);
    }
}

static void find_ties(const struct recon_volume *v, struct recon_frames *frames, struct suspects *list,
                      struct result *r)
{
    struct recon_frame f;

    frames->rewind(frames);
    while (list->n && frames->next(frames, &f) == 1)
        for (size_t i = 0; i < list->n; i++)
            look(&list->v[i], v, &frames->camera, &f);
    for (size_t i = 0; i < list->n; i++)
        r->ties += list->v[i].closest < TIE;
}

/* argv: VOXEL x0 x1 y0 y1 z0 z1 */
static int fuse_as_oracle(struct test_ctx *t, const char *module, char **argv, struct recon_frames *frames,
                          struct recon_volume *v)
{
    const struct recon_kernel *read = test_kernel(test_module("cpu"), FRAMES_READ_NAME);
    const struct recon_kernel *fuse = test_kernel(test_module(module), FUSE_NAME);
    struct recon_value *rp = test_params(read), *fp = test_params(fuse);
    struct recon_cost cost = { 0 };
    double bounds[6], t0;
    int rc;

    for (int i = 0; i < 6; i++)
        bounds[i] = atof(argv[1 + i]);
    fp[FUSE_VOXEL].f = atof(argv[0]);
    fp[FUSE_BOUNDS].v = bounds;
    fp[FUSE_BOUNDS].n = 6;
    fp[FUSE_COMPAT].i = FUSE_COMPAT_TSDF_FUSION;
    rc = read->run(&t->ctx, NULL, rp, (void *[]){ frames }, &cost);
    t0 = clock_ms();
    if (rc == 0)
        rc = fuse->run(&t->ctx, (const void *[]){ frames }, fp, (void *[]){ v }, &cost);
    if (rc == 0)
        printf("%s: %u x %u x %u voxels, %.1f ms (%.1f ms waiting for frames), %.0f updates a frame\n",
               module, v->dim[0], v->dim[1], v->dim[2], clock_ms() - t0, cost.wait_ms,
               (double)cost.items / (double)frames->count);
    free(rp);
    free(fp);
    return rc;
}

int main(int argc, char **argv)
{
    struct recon_volume v = { 0 }, ref = { 0 };
    struct recon_frames frames = { 0 };
    struct suspects list = { 0 };
    struct result r = { 0 };
    struct fault fault = { 0 };
    struct test_ctx t;
    double share, inside;

    if (argc != 11)
        return die("oracle MODULE DATASET REF.npz VOXEL x0 x1 y0 y1 z0 z1");
    test_ctx_init(&t, argv[2], NULL, 2);
    if (volume_read(argv[3], &data_malloc, &ref, &fault))
        return die(fault.err.text);
    if (fuse_as_oracle(&t, argv[1], argv + 4, &frames, &v))
        return die(t.text);
    if (memcmp(v.dim, ref.dim, sizeof(v.dim)))
        return die("other dimensions than the reference's");
    compare(&v, &ref, &list, &r);
    find_ties(&v, &frames, &list, &r);
    share = 1 - (double)list.n / (double)r.observed;
    inside = (double)r.inside / (double)r.observed;
    printf("%llu observed, %.5f %% agree within %g (worst %.3g), %zu do not, %llu of them are rounding ties; "
           "inside fraction %.6f\n",
           (unsigned long long)r.observed, 100 * share, AGREE, r.worst, list.n, (unsigned long long)r.ties,
           inside);
    test_slot_free(&t, RECON_FRAMES, &frames);
    test_slot_free(&t, RECON_VOLUME, &v);
    test_slot_free(&t, RECON_VOLUME, &ref);
    free(list.v);
    return share >= 0.9995 && r.ties == list.n && fabs(inside - 0.255991) <= 1e-4 ? 0 : 1;
}
