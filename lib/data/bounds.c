/* The box that a dataset's depth shows, from a grid of pixels of a sample of frames. Each side is the
 * quantile 0.001 of its coordinate, plus a margin, so that single wild depths do not stretch it. */
#include "config.h"
#include "data/data_priv.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLE_FRAMES 16
#define SAMPLE_PIXELS 4096 /* a frame */
#define DEPTH_LEAST 0.05     /* metres: a median depth below or above is doubtful */
#define DEPTH_MOST 50.0
#define TAIL 0.001
#define MARGIN 0.02        /* of the extent, and at least 5 cm */

struct cloud {
    float *axis[3];
    float *depth;
    size_t n, cap;
};

static void add_frame(struct cloud *c, const struct folder *f, const struct frame_entry *e,
                      const float *depth)
{
    const struct recon_camera *k = &f->camera;
    uint32_t step = (uint32_t)ceil(sqrt((double)k->width * k->height / SAMPLE_PIXELS));

    for (uint32_t v = step / 2; v < k->height; v += step)
        for (uint32_t u = step / 2; u < k->width; u += step) {
            double z = depth[(size_t)v * k->width + u],
                   p[3] = {(u - k->cx) / k->fx * z, (v - k->cy) / k->fy * z, z};

            if (z <= 0 || c->n == c->cap)
                continue;
            c->depth[c->n] = (float)z;
            for (int a = 0; a < 3; a++)
                c->axis[a][c->n] = (float)(e->pose[4 * a] * p[0] + e->pose[4 * a + 1] * p[1] +
                                           e->pose[4 * a + 2] * p[2] + e->pose[4 * a + 3]);
            c->n++;
        }
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

static void box_of(struct cloud *c, const struct frames_options *o, double ret[6])
{
    static const char names[] = "xyz";
    size_t cut = (size_t)((double)c->n * TAIL);

    for (int a = 0; a < 3; a++) {
        double lo, hi, margin, whole;

        qsort(c->axis[a], c->n, sizeof(float), ascending);
        lo = c->axis[a][cut];
        hi = c->axis[a][c->n - 1 - cut];
        whole = (double)c->axis[a][c->n - 1] - c->axis[a][0];
        margin = fmax(0.05, MARGIN * (hi - lo));
        if (whole > 2 * (hi - lo) + 2 * margin && o->warn) {
            char text[200];

            snprintf(text, sizeof(text),
                     "depth reaches from %.2f to %.2f m along %c, 99.8 %% of it from %.2f to %.2f m: the "
                     "rest is cut off",
                     c->axis[a][0], c->axis[a][c->n - 1], names[a], lo, hi);
            o->warn(o->warn_self, "bounds-outlier", "bounds", text);
        }
        ret[2 * a] = lo - margin;
        ret[2 * a + 1] = hi + margin;
    }
}

/* what the depths themselves say of their unit; sorted here */
static void doubt_depths(struct cloud *c, const struct folder *f, const struct frames_options *o)
{
    double middle, farthest;
    char text[240];

    if (!o->warn)
        return;
    qsort(c->depth, c->n, sizeof(float), ascending);
    middle = (double)c->depth[c->n / 2];
    farthest = (double)c->depth[c->n - 1];
    if (farthest <= 255.5 * f->depth_scale && farthest < 0.9) {
        snprintf(text, sizeof(text), "no depth is above %.0f units of %g m: 8-bit values in a 16-bit picture, or another depth_scale",
                 farthest / f->depth_scale, f->depth_scale);
        o->warn(o->warn_self, "depth-8bit", "depth", text);
    } else if (middle > DEPTH_MOST || middle < DEPTH_LEAST) {
        snprintf(text, sizeof(text), "half of the depths are beyond %.4g m, %g to %g m are likely: depth_scale %g is doubtful", middle, DEPTH_LEAST,
                 DEPTH_MOST, f->depth_scale);
        o->warn(o->warn_self, "depth-range", "depth", text);
    }
}

int folder_bounds(const struct folder *f, const struct frames_options *o, double ret[6], struct fault *fault)
{
    size_t pixels = (size_t)f->camera.width * f->camera.height,
           frames = f->frames.n < SAMPLE_FRAMES ? f->frames.n : SAMPLE_FRAMES;
    struct cloud c = { .cap = frames * SAMPLE_PIXELS * 2 };
    float *depth = malloc(pixels * sizeof(float));
    int rc = depth ? 0 : fault_set(fault, CODE_MEMORY, NULL, "no memory for a frame of %zu pixels", pixels);

    for (int i = 0; i < 6; i++)
        ret[i] = NAN;
    for (int a = 0; a < 3; a++)
        c.axis[a] = xmalloc(c.cap * sizeof(float) + 1);
    c.depth = xmalloc(c.cap * sizeof(float) + 1);
    for (size_t i = 0; rc == 0 && i < frames; i++) {
        const struct frame_entry *e = &f->frames.v[frames > 1 ? i * (f->frames.n - 1) / (frames - 1) : 0];
        size_t before = c.n;

        rc = frame_decode(f, e, o, depth, NULL, fault);
        if (rc)
            break;
        add_frame(&c, f, e, depth);
        if (c.n == before && o->warn)
            o->warn(o->warn_self, "depth-empty-frame", e->stem, "no pixel has a depth");
    }
    if (rc == 0 && c.n) {
        doubt_depths(&c, f, o);
        box_of(&c, o, ret);
    }
    free(c.depth);
    for (int a = 0; a < 3; a++)
        free(c.axis[a]);
    free(depth);
    return rc;
}
