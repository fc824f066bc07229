/* Folders of frames in other layouts: TUM's, COLMAP models in text and binary; axes, units and doubtful depth. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "base/test/scratch.h"
#include "data/data.h"

enum { W = 8, H = 6, N = 4 };
static struct strv warned;

static int teardown(void **state)
{
    (void)state;
    strv_release(&warned);
    return remove_scratch(state);
}

static void take_warning(void *self, const char *rule, const char *object, const char *text)
{
    (void)self;
    strv_addf(&warned, "%s|%s|%s", rule ? rule : "", object, text);
}

static bool was_warned(const char *text)
{
    for (size_t i = 0; i < warned.n; i++)
        if (strstr(warned.v[i], text))
            return true;
    return false;
}

static void put(const char *name, const void *p, size_t n)
{
    char *path = path_join(scratch, name);

    assert_int_equal(file_write(path, p, n, 0644, NULL), 0);
    free(path);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* a 90 degree turn about z, and i * (0.5, 0.25, 0) */
static void pose_of(int i, double p[16])
{
    memcpy(p, (double[16]){ 0, -1, 0, 0.5 * i, 1, 0, 0, 0.25 * i, 0, 0, 1, 0, 0, 0, 0, 1 }, 16 * sizeof(double));
}

/* N frames in `sub`: picture i holds 1000 + 10 i + k; poses and intrinsics are as frames_write_one makes them */
static void pictures(const char *sub, enum frames_color color)
{
    struct recon_camera c = { W, H, 30, 31, 3.5, 2.5 };
    char *path = path_join(scratch, sub), name[32];
    float depth[W * H];
    uint8_t rgb[W * H * 3];
    struct recon_frame f = { .depth = depth, .color = rgb, .name = name };

    assert_int_equal(dir_make(path, 0755, NULL), 0);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        for (int k = 0; k < W * H; k++) {
            depth[k] = (float)(1000 + 10 * i + k) / 1000;
            memset(rgb + 3 * k, 40 * i, 3);
        }
        pose_of(i, f.pose);
        assert_int_equal(frames_write_one(path, &f, &c, color, 90, NULL), 0);
    }
    assert_int_equal(frames_write_camera(path, &c, NULL), 0);
    free(path);
}

static void fresh(void)
{
    dir_remove(scratch);
    assert_int_equal(dir_make(scratch, 0755, NULL), 0);
    strv_release(&warned);
}

static struct frames_options options(void)
{
    return (struct frames_options){ .invalid = 65535, .threads = 2, .warn = take_warning };
}

/* every frame is picture i with pose i, coloured where want says so */
static void expect(const struct frames_options *o, double scale, unsigned want_color)
{
    struct frames_source *s;
    struct recon_frame f;
    struct fault fault = { 0 };
    double p[16];

    if (frames_open(scratch, o, &s, &fault))
        fail_msg("%s", fault.err.text);
    assert_int_equal(frames_count(s), N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(frames_next(s, &f, NULL), 1);
        pose_of(i, p);
        for (int k = 0; k < 16; k++)
            if (fabs(f.pose[k] - p[k]) > 1e-12)
                fail_msg("frame %d, pose %d is %g, wanted %g", i, k, f.pose[k], p[k]);
        assert_true(f.depth[5] == (float)((1005 + 10 * i) * scale));
        assert_int_equal(f.color != NULL, want_color >> i & 1);
        if (f.color)
            assert_int_equal(f.color[0], 40 * i);
    }
    frames_free(s);
}

static void refuse(const struct frames_options *o, const char *text)
{
    struct frames_source *s;
    struct fault fault = { 0 };

    assert_int_equal(frames_open(scratch, o, &s, &fault), -1);
    if (!strstr(fault.err.text, text) || strchr(fault.err.text, '\n'))
        fail_msg("'%s' is not in: %s", text, fault.err.text);
}

/* ---- TUM ---- */

static const char tum_poses[] = "# timestamp tx ty tz qx qy qz qw\n"
                                "10.001 0 0 0 0 0 0.7071067811865476 0.7071067811865476\n"
                                "10.5 7 7 7 0 0 0 1\n" /* nearest to nothing */
                                "11.019 0.5 0.25 0 0 0 -1.4142135623730951 -1.4142135623730951\n"
                                "12.0 1.0 0.5 0 0 0 0.70710678118654757 0.70710678118654757\r\n"
                                "13.00 1.5 0.75 0 0 0 0.70710678118654757 0.70710678118654757\n";

static void tum_folder(void)
{
    fresh();
    pictures("all", FRAMES_PNG);
    put_text("groundtruth.txt", tum_poses);
    put_text("depth.txt", "# depth maps\n11 all/p1.depth.png\n10 all/p0.depth.png\n12.0 all/p2.depth.png\n13.0 all/p3.depth.png");
    /* p0's is the nearer of two; 13.5 is too far from all */
    put_text("rgb.txt", "# color images\n9.985 all/p3.color.png\n10.01 all/p0.color.png\n12.005 all/p2.color.png\n13.5 all/p3.color.png\n");
}

static void tum(void **state)
{
    struct frames_options o = options();

    (void)state;
    tum_folder();
    expect(&o, 0.0002, 5);
    assert_true(was_warned("525 525 319.5 239.5"));
    put_text("camera-intrinsics.txt", "30 0 3.5 0 31 2.5 0 0 1");
    strv_release(&warned);
    o.depth_scale = 0.001;
    expect(&o, 0.001, 5);
    assert_int_equal(warned.n, 0);
    o.association = 0.015; /* the second pose is 19 ms away */
    strv_release(&warned);
    {
        struct frames_source *s;

        assert_int_equal(frames_open(scratch, &o, &s, NULL), 0);
        assert_int_equal(frames_count(s), 3);
        assert_true(was_warned("pose-invalid|all/p1.depth.png") && was_warned("0.019000 s away"));
        frames_free(s);
    }
    o.association = 0;
    put_text("associations.txt", "10.3 all/p0.color.png 10 all/p0.depth.png\n11 all/p1.depth.png 11.2 all/p1.color.png\n"
                                 "12 all/p2.depth.png 12 all/p2.color.png\n13 all/p3.depth.png 13 all/p3.color.png\n");
    expect(&o, 0.001, 15);
}

static void tum_refused(void **state)
{
    static const struct {
        const char *file, *text, *says;
    } cases[] = {
        { "depth.txt", "10 /etc/passwd\n", "'" },
        { "depth.txt", "10 ../x.png\n", "line 1" },
        { "depth.txt", "# nothing\n", "lists nothing" },
        { "depth.txt", "ten all/p0.depth.png\n", "a time in seconds" },
        { "groundtruth.txt", "10 0 0 0 0 0 0\n", "tx ty tz qx qy qz qw" },
        { "groundtruth.txt", "10 0 0 0 0 0 0 0\n11 nan 0 0 0 0 0 1\n12 0 0 0 0 0 0 0\n13 0 0 0 0 0 0 0\n", "only 0 of 4 frames" },
        { "depth.txt", "10 all/none.png\n", "none.png" },
        { "depth.txt", "10 all/p0.color.png\n", "depth is 1 of 16" },
        { "camera-intrinsics.txt", "1 2", "9 are wanted" },
    };
    struct frames_options o = options();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        tum_folder();
        put_text(cases[i].file, cases[i].text);
        refuse(&o, cases[i].says);
    }
}

/* ---- COLMAP ---- */

/* images.txt or .bin: of pose i its inverse; in another order than by name */
static void colmap_images(struct str *text, struct str *bin, const char *first_camera)
{
    static const int order[N] = { 2, 0, 3, 1 };
    uint64_t n = N, points = 1;
    double point[3] = { 1, 2, 3 };

    str_add(text, "# Image list with two lines of data per image:\n");
    str_addn(bin, &n, 8);
    for (int k = 0; k < N; k++) {
        int i = order[k];
        /* world-to-camera: R' = a turn by -90 degrees, t' = -R' t = (-0.25 i, 0.5 i, 0) */
        double q[4] = { sqrt(0.5), 0, 0, -sqrt(0.5) }, t[3] = { -0.25 * i, 0.5 * i, 0 };
        uint32_t id = (uint32_t)k + 1, camera = 1;
        char name[32];

        snprintf(name, sizeof(name), "p%d.color.png", i);
        str_addf(text, "%d %.17g 0 0 %.17g %.17g %.17g 0 %s %s\n%s\n", k + 1, q[0], q[3], t[0], t[1], k ? "1" : first_camera, name,
                 k & 1 ? "" : "1.5 2.5 -1 7 8 3");
        str_addn(bin, &id, 4);
        str_addn(bin, q, 32);
        str_addn(bin, t, 24);
        str_addn(bin, &camera, 4);
        str_addn(bin, name, strlen(name) + 1);
        str_addn(bin, &points, 8);
        str_addn(bin, point, 24);
    }
}

static void colmap_folder(const char *cameras)
{
    struct str text = { 0 }, bin = { 0 };
    char *path = path_join(scratch, "sparse/0");

    fresh();
    assert_int_equal(dir_make(path, 0755, NULL), 0);
    free(path);
    pictures("images", FRAMES_PNG);
    colmap_images(&text, &bin, "1");
    put_text("sparse/0/cameras.txt", cameras);
    put("sparse/0/images.txt", text.s, text.len);
    str_release(&text);
    str_release(&bin);
}

static void colmap(void **state)
{
    struct frames_options o = options();
    struct str text = { 0 }, bin = { 0 };
    struct frames_source *s;
    uint64_t n = 1, size[2] = { W, H };
    uint32_t id = 1, model = 1;
    double params[4] = { 30, 31, 4, 3 };

    (void)state;
    colmap_folder("# Camera list\n1 PINHOLE 8 6 30 31 4 3\n");
    expect(&o, 0.001, 15);
    assert_int_equal(frames_open(scratch, &o, &s, NULL), 0);
    assert_true(frames_camera(s)->cx == 3.5 && frames_camera(s)->cy == 2.5 && frames_camera(s)->fy == 31);
    frames_free(s);
    colmap_folder("1 PINHOLE 8 6 30 31 4 3\n");
    put_text("sparse/0/images.txt", "garbage"); /* binary goes before text */
    colmap_images(&text, &bin, "1");
    put("sparse/0/images.bin", bin.s, bin.len);
    str_clear(&text);
    str_addn(&text, &n, 8);
    str_addn(&text, &id, 4);
    str_addn(&text, &model, 4);
    str_addn(&text, size, 16);
    str_addn(&text, params, 32);
    put("sparse/0/cameras.bin", text.s, text.len);
    expect(&o, 0.001, 15);
    for (size_t k = 0; k < bin.len; k += 5) { /* cut anywhere */
        put("sparse/0/images.bin", bin.s, k);
        refuse(&o, "images.bin");
    }
    put("sparse/0/images.bin", bin.s, bin.len);
    for (size_t k = 0; k < text.len; k += 3) {
        put("sparse/0/cameras.bin", text.s, k);
        refuse(&o, "cameras.bin");
    }
    str_release(&text);
    str_release(&bin);
}

static void colmap_refused(void **state)
{
    static const struct {
        const char *cameras, *says;
    } cases[] = {
        { "1 OPENCV 8 6 30 31 4 3 0.1 0 0 0\n", "colmap image_undistorter" },
        { "1 PINHOLE 8 6 30 31 4\n", "line 1" },
        { "1 BOX 8 6 30\n", "not known" },
        { "2 PINHOLE 8 6 30 31 4 3\n", "names camera 1" },
        { "1 PINHOLE 80 6 30 31 4 3\n", "8 x 6" },
        { "1 PINHOLE 8 6 -30 31 4 3\n", "is none" },
        { "# none\n", "holds no cameras" },
    };
    struct frames_options o = options();
    struct str text = { 0 }, bin = { 0 };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        colmap_folder(cases[i].cameras);
        refuse(&o, cases[i].says);
    }
    colmap_folder("1 PINHOLE 8 6 30 31 4 3\n2 PINHOLE 8 6 33 31 4 3\n");
    colmap_images(&text, &bin, "2");
    put("sparse/0/images.txt", text.s, text.len);
    refuse(&o, "different cameras");
    colmap_folder("1 OPENCV 8 6 30 31 4 3 0 0 0 0\n"); /* no distortion is a pinhole */
    expect(&o, 0.001, 15);
    o.layout = FRAMES_COLMAP;
    fresh();
    pictures("images", FRAMES_PNG);
    refuse(&o, "no COLMAP model");
    str_release(&text);
    str_release(&bin);
}

/* ---- axes, units ---- */

/* camera 1 of the scan when its poses are written in other axes */
static void axes(void **state)
{
    struct frames_options o = options();
    double turn[16] = { 0, 0, 1, 5, 0, 1, 0, 6, -1, 0, 0, 7, 0, 0, 0, 1 }, want[16], mirror[16] = { 0 };
    struct frames_source *s;
    struct recon_frame f;

    (void)state;
    for (int k = 0; k < 4; k++) {
        fresh();
        pictures(".", FRAMES_NONE);
        pose_of(1, want);
        for (int i = 0; i < N; i++) {
            struct str t = { 0 };
            double p[16];
            char name[32];

            pose_of(i, p);
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 4; c++) {
                    double v = p[4 * r + c];

                    if (k == 1) /* OpenGL: p diag(1, -1, -1, 1) */
                        v = c == 1 || c == 2 ? -v : v;
                    if (k == 2) /* OpenNI, millimetres: diag(1, -1, 1, 1) p diag(1, -1, 1, 1) */
                        v = ((r == 1) ^ (c == 1) ? -v : v) * (c == 3 && r < 3 ? 1000 : 1);
                    str_addf(&t, "%.17g ", v);
                }
            snprintf(name, sizeof(name), "p%d.pose.txt", i);
            put(name, t.s, t.len);
            str_release(&t);
        }
        o.axes = k == 1 ? FRAMES_OPENGL : k == 2 ? FRAMES_OPENNI : FRAMES_OPENCV;
        o.pose_scale = k == 2 ? 0.001 : 0;
        o.transform = k == 3 ? turn : NULL;
        assert_int_equal(frames_open(scratch, &o, &s, NULL), 0);
        assert_int_equal(frames_next(s, &f, NULL), 1);
        assert_int_equal(frames_next(s, &f, NULL), 1);
        if (k == 3) /* turn by hand: x' = z + 5, y' = y + 6, z' = -x + 7 */
            memcpy(want, (double[16]){ 0, 0, 1, 5, 1, 0, 0, 6.25, 0, 1, 0, 6.5, 0, 0, 0, 1 }, sizeof(want));
        for (int i = 0; i < 16; i++)
            assert_true(fabs(f.pose[i] - want[i]) < 1e-12);
        frames_free(s);
    }
    for (int i = 0; i < 4; i++)
        mirror[5 * i] = i == 1 ? -1 : 1;
    o.transform = mirror;
    refuse(&o, "cameras cannot be mirrored");
}

static void doubtful_depth(void **state)
{
    struct frames_options o = options();
    struct frames_source *s;

    (void)state;
    fresh();
    pictures(".", FRAMES_NONE);
    o.depth_scale = 1;
    assert_int_equal(frames_open(scratch, &o, &s, NULL), 0);
    assert_true(was_warned("depth-range|depth|") && was_warned("depth_scale 1 is doubtful"));
    frames_free(s);
    strv_release(&warned);
    o.depth_scale = 1e-5;
    assert_int_equal(frames_open(scratch, &o, &s, NULL), 0);
    assert_true(was_warned("depth-range|depth|"));
    frames_free(s);
    fresh();
    pictures(".", FRAMES_NONE);
    for (int i = 0; i < N; i++) {
        uint16_t d[W * H];
        struct picture p = { .width = W, .height = H, .channels = 1, .bits = 16, .pixels = d };
        char name[32], *path;

        for (int k = 0; k < W * H; k++)
            d[k] = (uint16_t)(100 + 2 * k);
        snprintf(name, sizeof(name), "p%d.depth.png", i);
        path = path_join(scratch, name);
        assert_int_equal(png_write(path, &p, 1, NULL), 0);
        free(path);
    }
    o.depth_scale = 0;
    assert_int_equal(frames_open(scratch, &o, &s, NULL), 0);
    assert_true(was_warned("depth-8bit|depth|"));
    frames_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tum),    cmocka_unit_test(tum_refused), cmocka_unit_test(colmap), cmocka_unit_test(colmap_refused),
        cmocka_unit_test(axes),   cmocka_unit_test(doubtful_depth),
    };

    return cmocka_run_group_tests(tests, make_scratch, teardown);
}
