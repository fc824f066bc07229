/* Readers of meshes and points: numbers, forms, traps, refusals. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include "data/test/meshes.h"

/* ---- numbers ---- */

static void numbers(void **state)
{
    static const char *const texts[] = { "0", "-0", "1", "-1.5", ".5", "5.", "1e3", "1E-3", "+2.25e+2", "0.1", "123456789.123456789",
                                         "9007199254740993", "1.7976931348623157e308", "4.9e-324", "1e-400", "1e400", "0.000000000000000000000000012345",
                                         "3.4028235e38", "1e22", "1e23", "12345678901234567890123", "0.30000000000000004", "1e", "2e+" };
    double v;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *p = texts[i], *end = p + strlen(p);
        double want = strtod(texts[i], NULL);

        assert_true(number_read(&p, end, &v));
        assert_memory_equal(&v, &want, sizeof(v));
    }
    for (uint32_t i = 0, seed = 1; i < 200000; i++) { /* every float comes back from nine digits */
        char text[32];
        const char *p = text;
        float f;

        seed = seed * 1664525u + 1013904223u;
        memcpy(&f, &seed, 4);
        if (!isfinite(f))
            continue;
        snprintf(text, sizeof(text), "%.9g", (double)f);
        assert_true(number_read(&p, text + strlen(text), &v));
        assert_true((float)v == f);
    }
    for (uint32_t i = 0, seed = 7; i < 200000; i++) { /* doubles as programs write them, and numbers beside the middle of two */
        char text[64];
        const char *p = text;
        uint64_t bits = 0;
        double want;

        for (int k = 0; k < 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            bits = bits << 16 | seed >> 16;
        }
        bits = (bits & 0x800fffffffffffffu) | (uint64_t)(1023 - 40 + (int)(seed >> 8) % 80) << 52;
        memcpy(&want, &bits, 8);
        snprintf(text, sizeof(text), i % 3 == 0 ? "%.17g" : i % 3 == 1 ? "%.18f" : "%.19g", want);
        if (i % 5 == 0) /* nineteen digits of the middle: a hair above it or below */
            snprintf(text, sizeof(text), "%.19Lg", ((long double)want + (long double)nextafter(want, INFINITY)) / 2);
        if (i % 7 == 0)
            snprintf(text, sizeof(text), "%llu.5", (unsigned long long)(bits & 0x1fffffffffffffu) | 1ull << 52);
        want = strtod(text, NULL);
        assert_true(number_read(&p, text + strlen(text), &v) && !*p);
        assert_memory_equal(&v, &want, 8);
    }
    for (const char *const *w = (const char *const[]){ "nan", "-NaN", "inf", "-Infinity", NULL }; *w; w++) {
        const char *p = *w;

        assert_true(number_read(&p, p + strlen(p), &v) && isnan(v) && *p == 0);
    }
    for (const char *const *w = (const char *const[]){ "", "-", ".", "e5", "x", "+-1", NULL }; *w; w++) {
        const char *p = *w;

        assert_false(number_read(&p, p + strlen(p), &v));
    }
}

/* ---- forms ---- */

#define PLY(format, vertex, face) "ply\nformat " format " 1.0\ncomment c\nelement vertex 3\n" vertex "element face 1\n" face "end_header\n"
#define XYZ "property float x\nproperty float y\nproperty float z\n"
#define LIST "property list uchar int vertex_indices\n"
#define Z "\0\0\0\0"
#define O "\0\0\x80\x3f"
#define CORNERS Z Z Z O Z Z Z O Z

static void triangles(void **state)
{
    static const struct {
        const char *name, *text;
        size_t n;
    } cases[] = {
        { "a.obj", BYTES(TRIANGLE "f 1 2 3\n") },
        { "negative.obj", BYTES(TRIANGLE "f -3 -2 -1\n") },
        { "early.obj", BYTES("f 1 2 3\n" TRIANGLE) },
        { "slashes.obj", BYTES(TRIANGLE "vt 0 0\nvn 0 0 1\nf 1/1 2/1/1 3//1\n") },
        { "crlf.obj", BYTES("v 0 0 0\r\nv 1 0 0\r\nv 0 1 0\r\nf 1 2 3\r\n") },
        { "joined.obj", BYTES("v 0 0 \\\n0\nv 1 0 0\nv 0 1 0\nf 1 \\\r\n2 3") },
        { "odd.obj", BYTES("# c\nmtllib a.mtl\no x\n\n  v\t0 0 0 1.0\nv 1 0 0\nv 0 1 0\ns off\nusemtl m\nf  1  2  3  # end\nl 1 2\n") },
        { "glued.obj", BYTES(TRIANGLE "vn 0 0 1\nf 1//1 2//1 -1//1#\vV x\n") },
        { "a.off", BYTES("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n") },
        { "line.off", BYTES("OFF 3 1 0 # c\n0 0 0\n\n1 0 0\n0 1 0\n3 0 1 2 255 0 0\n") },
        { "color.off", BYTES("COFF\n3 1 0\n0 0 0 255 0 0 255\n1 0 0 0 1 2 3\n0 1 0 9 9 9 9\n3 0 1 2\n") },
        { "normal.off", BYTES("NOFF\n3 1 0\n0 0 0 0 0 1\n1 0 0 0 0 1\n0 1 0 0 0 1\n3 0 1 2") },
        { "ascii.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n") },
        { "free.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0 1 0\n0 0 1 0 3\n0 1 2") },
        { "le.ply", BYTES(PLY("binary_little_endian", XYZ, LIST) CORNERS "\x03" Z "\x01\0\0\0\x02\0\0\0") },
        { "crlf.ply", BYTES("ply\r\nformat binary_little_endian 1.0\r\nelement vertex 3\r\nproperty float x\r\nproperty float y\r\n"
                            "property float z\r\nelement face 1\r\nproperty list uchar int vertex_indices\r\nend_header\r\n" CORNERS
                            "\x03" Z "\x01\0\0\0\x02\0\0\0") },
        { "types.ply", BYTES(PLY("binary_little_endian", XYZ, "property list uint16 uint32 vertex_index\n") CORNERS "\x03\0" Z
                             "\x01\0\0\0\x02\0\0\0") },
        { "be.ply", BYTES(PLY("binary_big_endian", XYZ, LIST) Z Z Z "\x3f\x80\0\0" Z Z Z "\x3f\x80\0\0" Z "\x03" Z "\0\0\0\x01\0\0\0\x02") },
        { "double.ply", BYTES(PLY("binary_little_endian", "property double x\nproperty double y\nproperty double z\n", LIST)
                              Z Z Z Z Z Z "\0\0\0\0\0\0\xf0\x3f" Z Z Z Z Z Z "\0\0\0\0\0\0\xf0\x3f" Z Z "\x03" Z "\x01\0\0\0\x02\0\0\0") },
        { "short.ply", BYTES(PLY("binary_little_endian", "property uchar k\nproperty int8 x\nproperty int8 y\nproperty short z\n"
                                 "property list uchar short extra\n", "property float w\nproperty list char uchar vertex_indices\n")
                             "\x09\0\0\0\0\x01\x07\0" "\x09\x01\0\0\0\0" "\x09\0\x01\0\0\x02\x07\0\x07\0" Z "\x03\0\x01\x02") },
        { "other.ply", BYTES("ply\nformat ascii 1.0\nelement camera 1\nproperty list int float k\nelement face 1\n" LIST
                             "element vertex 3\n" XYZ "end_header\n2 1 1\n3 0 1 2\n0 0 0\n1 0 0\n0 1 0\n") },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const float want[9] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 };
        static const uint32_t face[3] = { 0, 1, 2 };
        struct mesh_notes notes;
        struct fault fault;
        struct recon_mesh m;

        if (read_bytes(cases[i].name, cases[i].text, cases[i].n, 1, &m, &notes, &fault))
            fail_msg("%s: %s", cases[i].name, fault.err.text);
        assert_int_equal(m.vertices, 3);
        assert_int_equal(m.faces, 1);
        assert_memory_equal(m.xyz, want, sizeof(want));
        assert_memory_equal(m.index, face, sizeof(face));
        drop(&m);
    }
}

static void polygons_and_strips(void **state)
{
    static const char obj[] = TRIANGLE "v 1 1 0 0.5 0 1\nf 1 2 4 3\nvt -0.25 0\nvt 0.5 1\nf 1/1 2/2 3/2\n";
    static const char strip[] = "ply\nformat ascii 1.0\nelement vertex 5\n" XYZ "element tristrips 1\nproperty list int int vertex_indices\n"
                                "end_header\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n0 2 0\n9 0 1 2 3 4 -1 4 3 2\n";
    static const uint32_t quads[9] = { 0, 1, 3, 0, 3, 2, 0, 1, 2 }, turned[12] = { 0, 1, 2, 2, 1, 3, 2, 3, 4, 4, 3, 2 };
    struct mesh_notes notes;
    struct fault fault;
    struct recon_mesh m;

    (void)state;
    assert_int_equal(read_bytes("q.obj", BYTES(obj), 1, &m, &notes, &fault), 0);
    assert_int_equal(m.faces, 3);
    assert_memory_equal(m.index, quads, sizeof(quads));
    assert_int_equal(notes.polygons, 1);
    assert_int_equal(notes.uv_out, 1);
    assert_null(m.rgb); /* the first vertex has none */
    drop(&m);
    assert_int_equal(read_bytes("q.off", BYTES("OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n3 0 1 2\n4 0 1 3 2 255 0 0\n"), 1, &m, &notes, &fault), 0);
    assert_true(m.faces == 3 && !m.joined[0] && !m.joined[1] && m.joined[2] && m.index[8] == 2);
    drop(&m);
    assert_int_equal(read_bytes("s.ply", BYTES(strip), 1, &m, &notes, &fault), 0);
    assert_int_equal(m.faces, 4);
    assert_memory_equal(m.index, turned, sizeof(turned));
    drop(&m);
}

/* ---- refusals ---- */

static void refused(void **state)
{
    static const struct {
        const char *name, *text;
        size_t n;
        const char *rule, *say;
    } cases[] = {
        { "e.obj", BYTES(""), "empty-result", "no vertices" },
        { "f.obj", BYTES(TRIANGLE), "empty-result", "no faces" },
        { "r.obj", BYTES(TRIANGLE "f 1 2 3\nf 1 2 4\n"), "face-index-out-of-range", "line 5: index 4" },
        { "v.obj", BYTES("f 1 2 3\nf 4 5 6\n"), "face-index-out-of-range", "line 1: index 1" },
        { "z.obj", BYTES(TRIANGLE "f 0 1 2\n"), "face-index-out-of-range", "line 4: index 0" },
        { "n.obj", BYTES(TRIANGLE "f -1 -2 -4\n"), "face-index-out-of-range", "line 4: index -4" },
        { "vt.obj", BYTES(TRIANGLE "f 1/1 2/1 3/1\n"), "face-index-out-of-range", "texture coordinate" },
        { "nan.obj", BYTES("v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n"), "vertex-nan", "line 2" },
        { "big.obj", BYTES("v 0 0 0\nv 1e39 0 0\nv 0 1 0\nf 1 2 3\n"), "vertex-nan", "line 2" },
        { "word.obj", BYTES("v 0 0 0\nv 1 x 0\n"), "", "line 2" },
        { "cut.obj", BYTES("v 0 0 0\nv 1 0"), "file-truncated", "line 2" },
        { "two.obj", BYTES(TRIANGLE "f 1 2\n"), "", "line 4: a face needs three" },
        { "corner.obj", BYTES(TRIANGLE "f 1 2 3x\n"), "", "line 4" },
        { "e.off", BYTES("OFF\n0 0 0\n"), "empty-result", "no vertices" },
        { "many.off", BYTES("OFF\n4000000000 1 0\n0 0 0\n"), "file-truncated", "4000000000" },
        { "cut.off", BYTES("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1"), "file-truncated", "line 5" },
        { "index.off", BYTES("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n"), "face-index-out-of-range", "line 6" },
        { "frac.off", BYTES("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 1.5\n"), "face-index-out-of-range", "line 6" },
        { "nan.off", BYTES("OFF\n3 1 0\n0 0 0\nnan 0 0\n0 1 0\n3 0 1 2\n"), "vertex-nan", "vertex 1" },
        { "head.ply", BYTES("ply\nformat ascii 1.0\nelement vertex 3\n"), "file-truncated", "does not end" },
        { "many.ply", BYTES("ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\n" XYZ "end_header\nabc"), "file-truncated", "4000000000" },
        { "huge.ply", BYTES("ply\nformat ascii 1.0\nelement vertex 99999999999999999999\n" XYZ "end_header\n"), "", "line 3" },
        { "cut.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0\n1 0 0\n0 1 0\n3 0 1"), "file-truncated", "face 0" },
        { "cutb.ply", BYTES(PLY("binary_little_endian", XYZ, LIST) CORNERS "\x03" Z), "file-truncated", "face 0" },
        { "list.ply", BYTES(PLY("binary_little_endian", XYZ, "property list uint int vertex_indices\n") CORNERS "\xff\xff\xff\xff" Z), "file-truncated", "longer" },
        { "neg.ply", BYTES(PLY("ascii", XYZ, "property list char int vertex_indices\n") "0 0 0\n1 0 0\n0 1 0\n-3 0 1 2\n"), "", "length" },
        { "index.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n"), "face-index-out-of-range", "index 7" },
        { "minus.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n"), "face-index-out-of-range", "index -1" },
        { "nan.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0\n1 0 0\nnan 1 0\n3 0 1 2\n"), "vertex-nan", "vertex 2" },
        { "word.ply", BYTES(PLY("ascii", XYZ, LIST) "0 0 0\n1 0 0\n0 one 0\n3 0 1 2\n"), "", "number" },
        { "noz.ply", BYTES("ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n0 0\n"), "", "x, y and z" },
        { "type.ply", BYTES("ply\nformat ascii 1.0\nelement vertex 1\nproperty quad x\n"), "", "line 4" },
        { "form.ply", BYTES("ply\nformat text 1.0\nend_header\n"), "", "line 2" },
        { "early.ply", BYTES("ply\nformat ascii 1.0\nproperty float x\n"), "", "line 3: a property before any element" },
        { "none.stl", BYTES("solid\n"), "", "no known form" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recon_mesh m = { 0 };
        struct mesh_notes notes;
        struct fault fault;

        if (read_bytes(cases[i].name, cases[i].text, cases[i].n, 2, &m, &notes, &fault) == 0)
            fail_msg("%s is read", cases[i].name);
        assert_int_equal(fault.err.code, CODE_DATA);
        if (!str_eq(fault.rule ? fault.rule : "", cases[i].rule) || !strstr(fault.err.text, cases[i].say) || strchr(fault.err.text, '\n'))
            fail_msg("%s: %s: %s", cases[i].name, fault.rule, fault.err.text);
        assert_null(m.xyz);
    }
}

/* every prefix of a file is refused or read, never worse */
static void prefixes(void **state)
{
    static const char ply[] = PLY("binary_big_endian", XYZ, LIST) Z Z Z "\x3f\x80\0\0" Z Z Z "\x3f\x80\0\0" Z "\x03" Z "\0\0\0\x01\0\0\0\x02";
    static const char pcd[] = "VERSION 0.7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F U\nCOUNT 1 1 1 1\nWIDTH 2\nHEIGHT 1\n"
                              "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA binary\n" Z Z Z "\x03\x02\x01\0" O O O "\x06\x05\x04\0";
    struct mesh_notes notes;
    struct recon_points r;
    struct fault fault;
    struct recon_mesh m;

    (void)state;
    for (size_t n = 0; n < sizeof(ply) - 1; n++)
        assert_int_equal(read_bytes("p.ply", ply, n, 1, &m, &notes, &fault), -1);
    for (size_t n = 0; n < sizeof(pcd); n++) {
        char *path = put("p.pcd", pcd, n);
        int rc = points_read(path, &(struct geom_options){ .drop = true }, &data_malloc, &r, &notes, &fault);

        assert_int_equal(rc, n == sizeof(pcd) - 1 ? 0 : -1);
        free(path);
    }
    assert_int_equal(r.n, 2);
    assert_int_equal(r.rgb[0], 1);
    assert_int_equal(r.rgb[5], 6);
    free(r.xyz);
    free(r.rgb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(triangles),
        cmocka_unit_test(polygons_and_strips),
        cmocka_unit_test(refused),
        cmocka_unit_test(prefixes),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
