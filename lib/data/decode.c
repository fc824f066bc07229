#include "config.h"
#include "data/data_priv.h"

#include <stdlib.h>
#include <strings.h>

static int decode_depth(const struct folder *f, const char *path, const struct frames_options *o,
                        float *depth, struct fault *fault)
{
    double scale = f->depth_scale, most = o->depth_max;
    size_t n = (size_t)f->camera.width * f->camera.height;
    struct picture p;
    const uint16_t *from;

    if (png_read(path, &p, fault))
        return -1;
    if (p.width != f->camera.width || p.height != f->camera.height || p.bits != 16 || p.channels != 1) {
        picture_release(&p);
        return fault_set(fault, CODE_DATA, NULL, "'%s' changed while it was read", path);
    }
    from = p.pixels;
    for (size_t i = 0; i < n; i++) {
        double d = from[i] * scale;

        depth[i] = from[i] == o->invalid || (most > 0 && d > most) ? 0.0f : (float)d;
    }
    picture_release(&p);
    return 0;
}

static bool is_jpeg(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static int decode_color(const struct folder *f, const char *path, uint8_t *rgb, struct fault *fault)
{
    size_t n = (size_t)f->camera.width * f->camera.height;
    struct picture p;
    int rc = is_jpeg(path) ? jpeg_read(path, &p, fault) : png_read(path, &p, fault);
    const uint8_t *from;

    if (rc)
        return -1;
    if (p.width != f->camera.width || p.height != f->camera.height)
        rc = fault_set(
            fault, CODE_DATA, NULL,
            "'%s' has %u x %u pixels, its depth %u x %u: register the pictures, or set color = false", path,
            p.width, p.height, f->camera.width, f->camera.height);
    else if (p.bits != 8)
        rc = fault_set(fault, CODE_DATA, "texture-channels", "'%s' has %u bits a channel, colour has 8", path,
                       p.bits);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        from = (const uint8_t *)p.pixels + i * p.channels;
        rgb[3 * i] = from[0];
        rgb[3 * i + 1] = from[p.channels == 1 ? 0 : 1];
        rgb[3 * i + 2] = from[p.channels == 1 ? 0 : 2];
    }
    picture_release(&p);
    return rc;
}

int frame_decode(const struct folder *f, const struct frame_entry *e, const struct frames_options *o,
                 float *depth, uint8_t *rgb, struct fault *fault)
{
    int rc = decode_depth(f, e->depth, o, depth, fault);

    if (rc == 0 && rgb && e->color)
        rc = decode_color(f, e->color, rgb, fault);
    return rc;
}
