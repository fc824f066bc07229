#include "config.h"
#include "base/base.h"
#include "kernels/plan.h"
#include "kernels/rows.h"
#include "kernels/scene.h"

#include <math.h>
#include <stdlib.h>

/* A frame without noise: each depth, taken to the world, lies on a surface of the scene. */
int golden_scene(struct recon_ctx *ctx, const struct recon_kernel *k)
{
    struct recon_value p[] = {[SCENE_SCENE] = {.i = SCENE_OBJECTS},
                              [SCENE_SEED] = {.i = 3},
                              [SCENE_FRAMES] = {.i = 2},
                              [SCENE_WIDTH] = {.i = 64},
                              [SCENE_HEIGHT] = {.i = 48},
                              [SCENE_FX] = {.f = 0},
                              [SCENE_NOISE] = {.f = 0},
                              [SCENE_DEPTH_MAX] = {.f = 60}};
    struct recon_frames frames = { 0 };
    struct scene *s = xmalloc(sizeof(*s));
    struct recon_cost cost = { 0 };
    struct recon_frame f;
    int rc = k->run(ctx, NULL, p, (void *[]){ &frames, NULL }, &cost), n = 0;
    float worst = 0;

    scene_make(SCENE_OBJECTS, 3, s);
    for (int i = 0; rc == 0 && i < 2; i++) {
        if (frames.next(&frames, &f) != 1) {
            rc = -1;
            break;
        }
        for (uint32_t at = 0; at < 64 * 48; at++) {
            double z = f.depth[at], x = (at % 64 - frames.camera.cx) / frames.camera.fx * z,
                   y = (at / 64 - frames.camera.cy) / frames.camera.fy * z;
            struct vec3 q = v3((float)(f.pose[0] * x + f.pose[1] * y + f.pose[2] * z + f.pose[3]),
                               (float)(f.pose[4] * x + f.pose[5] * y + f.pose[6] * z + f.pose[7]),
                               (float)(f.pose[8] * x + f.pose[9] * y + f.pose[10] * z + f.pose[11]));
            int prim;

            n += z > 0;
            if (z > 0)
                worst = fmaxf(worst, fabsf(scene_distance(s, NULL, s->n, q, &prim)));
        }
    }
    if (frames.close)
        frames.close(&frames);
    free(s);
    if (rc)
        return -1;
    /* a millimetre of rounding along the ray, and the marcher's 0.2 mm */
    if (n < 2 * 64 * 48 * 9 / 10 || !(worst < 1.5e-3f))
        return ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name,
                               "self-test of '%s': %d depths, the worst %g m off the scene", k->name, n,
                               (double)worst);
    return 0;
}

/* The sphere in the middle of a picture, its centre brighter than its rim, the corners background. */
static int check_picture(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_image *i)
{
    const uint8_t *p = i->pixels;
    uint32_t w = i->width, centre = 3 * (i->height / 2 * w + w / 2);
    int lit = 0;

    for (uint32_t at = 0; at < w * i->height; at++) /* clay is warm, the background cool */
        lit += p[3 * at] > p[3 * at + 2];
    if (p[0] > p[2] || p[centre] <= p[centre + 2] || lit < (int)(w * i->height / 16) ||
        lit > (int)(w * i->height * 6 / 10))
        return ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name,
                               "self-test of '%s': %d of %u pixels show the sphere", k->name, lit,
                               w * i->height);
    return 0;
}

int golden_preview(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    struct recon_value p[] = {[PREVIEW_FILE] = {.s = "preview.png"}, [PREVIEW_WIDTH] = {.i = 48},
                              [PREVIEW_HEIGHT] = {.i = 40},          [PREVIEW_VIEW] = {.i = PREVIEW_VIEW_ISO},
                              [PREVIEW_UP] = {.i = PREVIEW_UP_MY},   [PREVIEW_SAMPLES] = {.i = 1}};
    uint32_t n = 24;
    struct recon_volume v = {
        .dim = {n, n, n}, .origin = {-1, -1, -1}, .voxel = 2.0 / (n - 1), .truncation = 1};
    struct recon_image image = { 0 };
    char dir[] = "/tmp/recon-selftest.XXXXXX";
    const char *out = ctx->out;
    struct recon_cost cost = { 0 };
    int rc;

    if (!mkdtemp(dir))
        return ctx->host->fail(ctx, CODE_CREATE, NULL, dir,
                               "cannot create a folder in /tmp for the self-test");
    ctx->out = dir;
    rc = (v.tsdf = ctx->host->alloc(ctx, (uint64_t)n * n * n * 4)) ? 0 : -1;
    if (rc == 0) {
        golden_sphere(v.tsdf, n);
        rc = golden_move(ctx, device, RECON_VOLUME, &v, RECON_DEVICE);
    }
    if (rc == 0)
        rc = k->run(ctx, (const void *[]){ &v, NULL }, p, (void *[]){ &image, NULL }, &cost);
    if (rc == 0)
        rc = golden_move(ctx, device, RECON_IMAGE, &image, RECON_HOST);
    if (rc == 0)
        rc = check_picture(ctx, k, &image);
    golden_free(ctx, device, RECON_IMAGE, &image);
    golden_free(ctx, device, RECON_VOLUME, &v);
    ctx->out = out;
    dir_remove(dir);
    return rc;
}
