#include "config.h"
#include "data/data_priv.h"

#include <stdlib.h>

static void add_rows(struct str *t, const double *v, int rows, int columns)
{
    for (int i = 0; i < rows * columns; i++)
        str_addf(t, "%.17g%c", v[i], i % columns == columns - 1 ? '\n' : ' ');
}

static int write_text(const char *folder, const char *name, const struct str *t, struct err *err)
{
    char *path = path_join(folder, name);
    int rc = file_write(path, t->s, t->len, 0666, err);

    free(path);
    return rc;
}

static int write_depth(const char *path, const struct recon_frame *frame, const struct recon_camera *c,
                       struct err *err)
{
    size_t n = (size_t)c->width * c->height;
    uint16_t *mm = malloc(n * sizeof(*mm));
    struct picture p = { .width = c->width, .height = c->height, .channels = 1, .bits = 16, .pixels = mm };
    int rc;

    if (!mm)
        return err_set(err, CODE_MEMORY, "no memory to encode '%s'", path);
    for (size_t i = 0; i < n; i++) {
        float d = frame->depth[i] * 1000.0f + 0.5f;

        mm[i] = d >= 1.0f && d < 65535.0f ? (uint16_t)d : 0;
    }
    rc = png_write(path, &p, 3, err);
    free(mm);
    return rc;
}

int frames_write_one(const char *folder, const struct recon_frame *frame, const struct recon_camera *camera,
                     enum frames_color color, int quality, struct err *err)
{
    struct picture p = { .width = camera->width, .height = camera->height, .channels = 3, .bits = 8 };
    char *base = path_join(folder, frame->name), *path = xasprintf("%s.depth.png", base);
    struct str pose = { 0 };
    int rc = write_depth(path, frame, camera, err);

    free(path);
    if (rc == 0 && frame->color && color != FRAMES_NONE) {
        p.pixels = (void *)(uintptr_t)frame->color;
        path = xasprintf("%s.color.%s", base, color == FRAMES_JPG ? "jpg" : "png");
        rc = color == FRAMES_JPG ? jpeg_write(path, &p, quality, err) : png_write(path, &p, 3, err);
        free(path);
    }
    if (rc == 0) {
        path = xasprintf("%s.pose.txt", frame->name);
        add_rows(&pose, frame->pose, 4, 4);
        rc = write_text(folder, path, &pose, err);
        free(path);
    }
    str_release(&pose);
    free(base);
    return rc;
}

int frames_write_camera(const char *folder, const struct recon_camera *c, struct err *err)
{
    double k[9] = { c->fx, 0, c->cx, 0, c->fy, c->cy, 0, 0, 1 };
    struct str t = { 0 };
    int rc;

    add_rows(&t, k, 3, 3);
    rc = write_text(folder, "camera-intrinsics.txt", &t, err);
    str_release(&t);
    return rc;
}
