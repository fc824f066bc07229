/* Points in files, and what is doubtful in coordinates. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "data/test/meshes.h"

static char doubts[2000];
static void take_doubt(void *self, const char *rule, const char *object, const char *text)
{
    (void)self;
    (void)object;
    snprintf(doubts + strlen(doubts), sizeof(doubts) - strlen(doubts), "%s: %s\n", rule, text);
}

/* a survey's coordinates keep their millimetres when an offset is taken off in double; without, they are told */
static void offsets(void **state)
{
    static const char xyz[] = "447200.001 4649700.002 120.5\n447210.251 4649705.502 121\n447203.123 4649799.999 122\n";
    static const char *const names[] = { "u.xyz", "u.ply", "u.off", "u.obj" };
    struct geom_options o = { .offset = { 447200, 4649700, 0 } };
    struct mesh_notes notes;
    struct recon_points r;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct str t = { 0 };
        char *path;

        if (i == 3)
            str_add(&t, "v 447200.001 4649700.002 120.5\nv 447210.251 4649705.502 121\nv 447203.123 4649799.999 122\n");
        else
            str_addf(&t, "%s%s",
                     i == 1   ? "ply\nformat ascii 1.0\nelement vertex 3\nproperty double x\nproperty double y\nproperty double z\nend_header\n"
                     : i == 2 ? "OFF\n3 0 0\n"
                              : "",
                     xyz);
        path = put(names[i], t.s, t.len);
        assert_int_equal(points_read(path, &o, &data_malloc, &r, &notes, NULL), 0);
        assert_true(fabsf(r.xyz[0] - 0.001f) < 1e-6f && fabsf(r.xyz[7] - 99.999f) < 1e-5f && r.xyz[2] == 120.5f);
        doubts[0] = 0;
        geom_doubts(r.xyz, r.n, true, take_doubt, NULL);
        assert_string_equal(doubts, "");
        free(r.xyz);
        assert_int_equal(points_read(path, &(struct geom_options){ 0 }, &data_malloc, &r, &notes, NULL), 0);
        geom_doubts(r.xyz, r.n, true, take_doubt, NULL);
        assert_non_null(strstr(doubts, "coord-offset: coordinates reach 4649800 along y and span 100: floats step by 0.5 there; read with offset = 447200, 4649700, 120"));
        free(r.xyz);
        free(path);
        str_release(&t);
    }
}

static void doubtful_points(void **state)
{
    struct recon_points r = { .n = 3000, .xyz = xmalloc(36000) };
    struct geom_options o = { .drop = true, .drop_zero = true };
    struct mesh_notes notes;
    char *path;

    (void)state;
    for (uint64_t i = 0; i < r.n; i++) {
        r.xyz[3 * i] = (float)(i % 50);
        r.xyz[3 * i + 1] = (float)(i % 60);
        r.xyz[3 * i + 2] = i % 100 == 7 ? 0 : 1 + (float)(i % 70);
    }
    doubts[0] = 0;
    geom_doubts(r.xyz, r.n, true, take_doubt, NULL);
    assert_string_equal(doubts, "depth-range: 30 of 3000 points have z = 0, which depth that was not seen becomes; zero = drop leaves them out\n");
    doubts[0] = 0;
    geom_doubts(r.xyz, r.n, false, take_doubt, NULL); /* a mesh may lie on its ground */
    assert_string_equal(doubts, "");
    r.xyz[300] = 900;
    geom_doubts(r.xyz, r.n, true, take_doubt, NULL);
    assert_non_null(strstr(doubts, "bounds-outlier: points reach from 0 to 900 along x, 99.8 % of them from 0 to 49"));
    free(r.xyz);
    path = put("z.xyz", BYTES("0 0 0\n1 1 1\n2 2 0\n3 3 3\n"));
    assert_int_equal(points_read(path, &o, &data_malloc, &r, &notes, NULL), 0);
    assert_int_equal(r.n, 2);
    assert_int_equal(notes.zeros, 2);
    free(r.xyz);
    free(path);
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

/* what is found without sorting is what stands there once sorted */
static void doubts_of_a_sample(void **state)
{
    static const uint64_t counts[] = { 1001, 2000, 65535, 65536, 65537, 200000 };
    uint32_t seed = 9;

    (void)state;
    for (size_t round = 0; round < 4 * COUNT(counts); round++) {
        uint64_t n = counts[round / 4], step = n / 65536 + 1, k = 0, cut;
        float *xyz = xcalloc(3 * n, 4), *x = xmalloc(n * 4);
        char want[300];

        for (uint64_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            xyz[3 * i] = (float)(seed >> 8) / (1 << 24);
            if (round % 4 == 1)
                xyz[3 * i] = floorf(xyz[3 * i] * 5); /* many equal ones */
            else if (round % 4 > 1)
                xyz[3 * i] = (float)(round % 4 == 2 ? i : n - i) / (float)n; /* sorted either way */
        }
        xyz[0] = -100; /* step or not, in the sample */
        for (uint64_t i = 0; i < n; i += step)
            x[k++] = xyz[3 * i];
        qsort(x, k, 4, ascending);
        cut = (uint64_t)((double)k * 0.001);
        snprintf(want, sizeof(want), "points reach from %.6g to %.6g along x, 99.8 %% of them from %.6g to %.6g", (double)x[0], (double)x[k - 1],
                 (double)x[cut], (double)x[k - 1 - cut]);
        doubts[0] = 0;
        geom_doubts(xyz, n, true, take_doubt, NULL);
        if (!strstr(doubts, want))
            fail_msg("%llu points: '%s' is not in '%s'", (unsigned long long)n, want, doubts);
        free(xyz);
        free(x);
    }
}

static void npy(void **state)
{
    static const double xyz[6] = { 1, 2, 3, 4, 5, 6 };
    struct { const char *head; size_t columns; const char *says; } cases[] = {
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 3, NULL },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 6), }", 6, NULL },
        { "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", 3, "Fortran" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", 3, "array of points" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", 3, "array of points" },
        { "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }", 3, "little-endian" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (200000000000, 3), }", 3, "its shape wants" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str t = { 0 };
        struct mesh_notes notes;
        struct recon_points r;
        struct fault fault = { 0 };
        char *path;

        str_addn(&t, "\x93NUMPY\1\0", 8);
        str_addn(&t, (uint8_t[]){ (uint8_t)strlen(cases[i].head), 0 }, 2);
        str_add(&t, cases[i].head);
        str_addn(&t, xyz, sizeof(xyz));
        path = put("p.npy", t.s, t.len);
        if (cases[i].says) {
            assert_int_equal(points_read(path, &(struct geom_options){ 0 }, &data_malloc, &r, &notes, &fault), -1);
            assert_non_null(strstr(fault.err.text, cases[i].says));
        } else {
            assert_int_equal(points_read(path, &(struct geom_options){ 0 }, &data_malloc, &r, &notes, &fault), 0);
            assert_int_equal(r.n, 6 / cases[i].columns);
            assert_true(r.xyz[2] == 3 && (r.normals ? r.normals[2] == 6 : r.xyz[5] == 6));
            free(r.xyz);
            free(r.normals);
        }
        free(path);
        for (size_t n = 0; n < t.len; n++) {
            path = put("p.npy", t.s, n);
            assert_int_equal(points_read(path, &(struct geom_options){ 0 }, &data_malloc, &r, &notes, &fault), -1);
            free(path);
        }
        str_release(&t);
    }
}

static void point_files(void **state)
{
    static const struct {
        const char *name, *text;
        uint64_t n, dropped;
    } cases[] = {
        { "a.xyz", "# c\n0 0 0\n1 0 0 9 9\n\n0 1 0\n", 3, 0 },
        { "a.xyzn", "0 0 0 0 0 1\n1 0 0 0 0 1\n0 1 0 0 0 1\n", 3, 0 },
        { "a.xyzrgb", "0 0 0 255 0 0\n1 0 0 0.0 0.5 1.0\n0 1 0 1 2 3\n", 3, 0 },
        { "nan.xyz", "0 0 0\nnan 0 0\n1 0 0\n0 1 0\n", 3, 1 },
        { "a.pcd", "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 4\nHEIGHT 1\nDATA ascii\n0 0 0\n1 0 0\nnan nan nan\n0 1 0\n", 3, 1 },
    };
    static const float want[9] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *path = put(cases[i].name, cases[i].text, strlen(cases[i].text));
        struct recon_points r;
        struct mesh_notes notes;
        struct fault fault = { 0 };

        if (points_read(path, &(struct geom_options){ .drop = true }, &data_malloc, &r, &notes, &fault))
            fail_msg("%s: %s", cases[i].name, fault.err.text);
        assert_int_equal(r.n, cases[i].n);
        assert_int_equal(notes.dropped, cases[i].dropped);
        assert_memory_equal(r.xyz, want, sizeof(want));
        free(r.xyz);
        free(r.normals);
        free(r.rgb);
        assert_int_equal(points_read(path, &(struct geom_options){ .drop = false }, &data_malloc, &r, &notes, &fault), cases[i].dropped ? -1 : 0);
        if (cases[i].dropped) {
            assert_string_equal(fault.rule, "vertex-nan");
        } else {
            free(r.xyz);
            free(r.normals);
            free(r.rgb);
        }
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets),
        cmocka_unit_test(doubtful_points),
        cmocka_unit_test(doubts_of_a_sample),
        cmocka_unit_test(npy),
        cmocka_unit_test(point_files),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
