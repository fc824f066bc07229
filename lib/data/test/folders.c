/* Folders of frames: order, choice, what is left out, what is refused. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "data/test/files.h"

/* ---- folders of frames ---- */

enum { W = 40, H = 30 };
static char *scan_dir;
static int warnings;
static char warned[500];

static void take_warning(void *self, const char *rule, const char *object, const char *text)
{
    (void)self;
    warnings++;
    snprintf(warned, sizeof(warned), "%s %s %s", rule, object, text);
}

static void make_scan(int n)
{
    static float depth[W * H];
    static uint8_t rgb[W * H * 3];
    struct recon_camera c = { W, H, 30, 31, 19.5, 14.5 };
    struct recon_frame f = {
        .depth = depth, .color = rgb, .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
    char name[32];

    free(scan_dir);
    scan_dir = at("scan");
    dir_remove(scan_dir);
    assert_int_equal(dir_make(scan_dir, 0755, NULL), 0);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "frame-%06d", i);
        for (int k = 0; k < W * H; k++) {
            depth[k] = (float)(1000 + k + i) / 1000;
            rgb[3 * k] = (uint8_t)(k + i);
        }
        f.name = name;
        f.pose[3] = i * 0.25;
        assert_int_equal(frames_write_one(scan_dir, &f, &c, i & 1 ? FRAMES_PNG : FRAMES_NONE, 90, NULL), 0);
    }
    assert_int_equal(frames_write_camera(scan_dir, &c, NULL), 0);
}

static void scan_file(const char *name, const char *text)
{
    char *path = path_join(scan_dir, name);

    unlink(path);
    if (text)
        assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), 0);
    free(path);
}

static struct frames_options options(int threads)
{
    return (struct frames_options){ .invalid = 65535, .threads = threads, .warn = take_warning };
}

static void frames_in_order(void **state)
{
    (void)state;
    make_scan(23);
    for (int threads = 1; threads < 6; threads++) {
        struct frames_options o = options(threads);
        struct frames_source *s;
        struct recon_frame f;

        assert_int_equal(frames_open(scan_dir, &o, &s, NULL), 0);
        assert_int_equal(frames_count(s), 23);
        assert_true(frames_camera(s)->fy == 31 && frames_camera(s)->width == W);
        assert_true(frames_bounds(s)[4] < 1 && frames_bounds(s)[5] > 2.2 && frames_bounds(s)[1] > 5.5);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < (round == 1 ? 5 : 23); i++) { /* the second round stops in the middle */
                assert_int_equal(frames_next(s, &f, NULL), 1);
                assert_int_equal(f.index, i);
                assert_true(f.pose[3] == i * 0.25);
                assert_true(f.depth[7] == (float)((1007 + i) * 0.001));
                assert_int_equal(f.color != NULL, i & 1);
                if (f.color)
                    assert_int_equal(f.color[30], (uint8_t)(10 + i));
            }
            if (round != 1)
                assert_int_equal(frames_next(s, &f, NULL), 0);
            frames_rewind(s);
        }
        frames_free(s);
    }
}

static void frames_chosen(void **state)
{
    struct frames_options o = options(2);
    struct frames_source *s;
    struct recon_frame f;

    (void)state;
    make_scan(10);
    o.every = 3;
    o.limit = 3;
    o.depth_max = 1.5;
    o.no_color = true;
    assert_int_equal(frames_open(scan_dir, &o, &s, NULL), 0);
    assert_int_equal(frames_count(s), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(frames_next(s, &f, NULL), 1);
        assert_int_equal(f.index, 3 * i);
        assert_null(f.color);
        assert_true(f.depth[0] > 0 && f.depth[600] == 0);
    }
    frames_free(s);
}

static void bad_poses_are_left_out(void **state)
{
    struct frames_options o = options(2);
    struct frames_source *s;
    struct fault fault;

    (void)state;
    make_scan(5);
    scan_file("frame-000001.pose.txt", "nan nan nan nan nan nan nan nan nan nan nan nan nan nan nan nan");
    scan_file("frame-000003.pose.txt", NULL);
    warnings = 0;
    assert_int_equal(frames_open(scan_dir, &o, &s, &fault), 0);
    assert_int_equal(frames_count(s), 3);
    assert_int_equal(frames_skipped(s), 2);
    assert_int_equal(warnings, 2);
    assert_non_null(strstr(warned, "pose-invalid frame-000003"));
    frames_free(s);
    o.stop_on_bad = true;
    assert_int_equal(frames_open(scan_dir, &o, &s, &fault), -1);
    assert_int_equal(fault.err.code, CODE_DATA);
    o.stop_on_bad = false;
    scan_file("frame-000000.pose.txt", "1 2 3");
    assert_int_equal(frames_open(scan_dir, &o, &s, &fault), -1);
    assert_int_equal(fault.err.code, CODE_DATA);
    assert_string_equal(fault.rule, "pose-invalid");
    assert_non_null(strstr(fault.err.text, "only 2 of 5 frames"));
}

static void broken_folders(void **state)
{
    static const struct {
        const char *file, *text; /* replaced, NULL: removed */
        const char *says, *rule;
    } cases[] = {
        { "camera-intrinsics.txt", NULL, "camera-intrinsics.txt", NULL },
        { "camera-intrinsics.txt", "1 2 3", "3 numbers, 9 are wanted", NULL },
        { "camera-intrinsics.txt", "0 0 1 0 0 1 0 0 1", "is no camera", NULL },
        { "frame-000002.depth.png", "this is no picture at all, whatever its name says", "is no PNG", NULL },
        { "frame-000002.depth.png", "", "is truncated", "file-truncated" },
    };
    struct frames_options o = options(2);
    struct frames_source *s;
    struct fault fault;
    char *path;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        make_scan(4);
        scan_file(cases[i].file, cases[i].text);
        memset(&fault, 0, sizeof(fault));
        assert_int_equal(frames_open(scan_dir, &o, &s, &fault), -1);
        assert_int_equal(fault.err.code, CODE_DATA);
        assert_non_null(strstr(fault.err.text, cases[i].says));
        assert_true(str_eq(fault.rule, cases[i].rule));
    }
    make_scan(3); /* a FIFO where a file should be, and as the dataset */
    scan_file("frame-000001.depth.png", NULL);
    path = path_join(scan_dir, "frame-000001.depth.png");
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_int_equal(frames_open(scan_dir, &o, &s, &fault), -1);
    assert_non_null(strstr(fault.err.text, "no regular file"));
    assert_int_equal(frames_open(path, &o, &s, &fault), -1);
    assert_non_null(strstr(fault.err.text, "is a FIFO"));
    free(path);
    assert_int_equal(frames_open("/nonexistent/scan", &o, &s, &fault), -1);
    assert_int_equal(fault.err.code, CODE_DATA);
    assert_int_equal(frames_open("/tmp", &o, &s, &fault), -1);
}

static void truncated_in_the_middle(void **state)
{
    struct frames_options o = options(3);
    struct frames_source *s;
    struct recon_frame f;
    struct fault fault;
    struct str t = { 0 };
    char *path;
    int i, rc;

    (void)state;
    make_scan(40);
    path = path_join(scan_dir, "frame-000019.depth.png"); /* not of the bounds' sample */
    assert_int_equal(file_read(path, 1 << 20, &t, NULL), 0);
    assert_int_equal(file_write(path, t.s, t.len / 2, 0644, NULL), 0);
    assert_int_equal(frames_open(scan_dir, &o, &s, &fault), 0);
    for (i = 0; (rc = frames_next(s, &f, &fault)) == 1; i++)
        ;
    assert_int_equal(rc, -1);
    assert_int_equal(i, 19);
    assert_string_equal(fault.rule, "file-truncated");
    assert_non_null(strstr(fault.err.text, "frame-000019.depth.png"));
    frames_free(s);
    str_release(&t);
    free(path);
}

static void eight_bits(void **state)
{
    struct picture p = { .width = W, .height = H, .channels = 1, .bits = 8, .pixels = xcalloc(W, H) };
    struct frames_options o = options(1);
    struct frames_source *s;
    struct fault fault;
    char *path;

    (void)state;
    make_scan(2);
    path = path_join(scan_dir, "frame-000001.depth.png");
    assert_int_equal(png_write(path, &p, 3, NULL), 0);
    assert_int_equal(frames_open(scan_dir, &o, &s, &fault), -1);
    assert_string_equal(fault.rule, "depth-8bit");
    assert_non_null(strstr(fault.err.text, "frame-000001.depth.png"));
    picture_release(&p);
    free(path);
}

static void outliers(void **state)
{
    static float depth[W * H];
    struct recon_camera c = { W, H, 30, 30, 19.5, 14.5 };
    struct recon_frame f = {
        .depth = depth, .name = "frame-000000", .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
    struct frames_options o = options(1);
    struct frames_source *s;

    (void)state;
    make_scan(0);
    for (int k = 0; k < W * H; k++)
        depth[k] = 1.5f;
    depth[777] = 65;
    assert_int_equal(frames_write_one(scan_dir, &f, &c, FRAMES_NONE, 90, NULL), 0);
    warnings = 0;
    assert_int_equal(frames_open(scan_dir, &o, &s, NULL), 0);
    assert_true(frames_bounds(s)[5] < 2);
    assert_true(warnings > 0);
    assert_non_null(strstr(warned, "bounds-outlier"));
    frames_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_in_order),
        cmocka_unit_test(frames_chosen),
        cmocka_unit_test(bad_poses_are_left_out),
        cmocka_unit_test(broken_folders),
        cmocka_unit_test(truncated_in_the_middle),
        cmocka_unit_test(eight_bits),
        cmocka_unit_test(outliers),
    };
    int rc = cmocka_run_group_tests(tests, make_scratch, remove_scratch);

    free(scan_dir);
    return rc;
}
