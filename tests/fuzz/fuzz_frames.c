/* Folders of frames whose lists, models, poses and intrinsics hold any bytes. The first byte chooses the layout, the rest is cut
 * at every "\n%%" into the layout's files. Two good depth pictures lie there, so that a good list gives frames. */
#include "config.h"
#include "data/data_priv.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/dev/shm/recon-fuzz-frames.XXXXXX";
static const char *const files[][5] = {
    { "camera-intrinsics.txt", "d0.pose.txt", "d1.pose.txt", NULL },
    { "depth.txt", "groundtruth.txt", "rgb.txt", "camera-intrinsics.txt", NULL },
    { "associations.txt", "groundtruth.txt", "camera-intrinsics.txt", NULL },
    { "cameras.txt", "images.txt", NULL },
    { "cameras.bin", "images.bin", NULL },
};

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void clean(void)
{
    dir_remove(root);
}

static void set_up(void)
{
    uint16_t pixels[12] = { 0, 1000, 65535, 2000, 40 };
    struct picture p = { .width = 4, .height = 3, .channels = 1, .bits = 16, .pixels = pixels };

    must(mkdtemp(root) || mkdtemp(strcpy(root, "/tmp/recon-fuzz-frames.XXXXXX")));
    atexit(clean);
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/d%d.depth.png", root, i);

        must(png_write(path, &p, 1, NULL) == 0);
        free(path);
    }
}

static void put(const char *name, const uint8_t *p, size_t n)
{
    char *path = path_join(root, name);
    FILE *f;

    unlink(path);
    if (p) {
        f = fopen(path, "w");
        must(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
    }
    free(path);
}

static void take_warning(void *self, const char *rule, const char *object, const char *text)
{
    (void)self;
    (void)rule;
    must(object && text);
}

static void look(void)
{
    struct frames_options o = { .invalid = 65535, .threads = 1, .warn = take_warning };
    struct folder f;
    struct fault fault = { 0 };

    if (folder_scan(root, &o, &f, &fault)) {
        must(fault.err.code && *fault.err.text);
        return;
    }
    must(f.frames.n > 0 && f.camera.fx > 0 && f.camera.fy > 0 && f.camera.width && f.camera.height);
    for (size_t i = 0; i < f.frames.n; i++)
        must(pose_check(f.frames.v[i].pose, "p", NULL) == 0 && str_starts(f.frames.v[i].depth, root));
    folder_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const *names;
    const uint8_t *end = data + size, *p = data + 1;

    if (!size)
        return 0;
    if (str_ends(root, "XXXXXX"))
        set_up();
    names = files[data[0] % COUNT(files)];
    for (int i = 0; names[i]; i++) {
        const uint8_t *cut = p ? memmem(p, (size_t)(end - p), "\n%%", 3) : NULL;

        put(names[i], p, p ? (size_t)((cut ? cut : end) - p) : 0);
        p = cut ? cut + 3 : NULL;
    }
    look();
    for (int i = 0; names[i]; i++)
        put(names[i], NULL, 0);
    return 0;
}
