/* Pictures, poses, volumes, a PLY byte for byte. */
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

/* ---- pictures ---- */

static struct picture made_picture(uint32_t channels, uint32_t bits)
{
    struct picture p = { .width = 37, .height = 21, .channels = channels, .bits = bits };
    size_t n = (size_t)37 * 21 * channels * bits / 8;
    uint8_t *b = xmalloc(n);

    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(i * 37 + i / 64);
    p.pixels = b;
    return p;
}

static void png_round_trip(void **state)
{
    static const uint32_t forms[][2] = { { 1, 8 }, { 3, 8 }, { 4, 8 }, { 1, 16 } };

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++)
        for (int level = 0; level <= 9; level += 3) {
            struct picture p = made_picture(forms[i][0], forms[i][1]), q, head;
            char *path = at("p.png");

            assert_int_equal(png_write(path, &p, level, NULL), 0);
            assert_int_equal(png_read(path, &q, NULL), 0);
            assert_int_equal(png_probe(path, &head, NULL), 0);
            assert_true(q.width == 37 && q.height == 21 && q.channels == p.channels && q.bits == p.bits);
            assert_true(head.width == 37 && head.height == 21 && head.channels == p.channels &&
                        head.bits == p.bits);
            assert_memory_equal(p.pixels, q.pixels, (size_t)37 * 21 * p.channels * p.bits / 8);
            picture_release(&p);
            picture_release(&q);
            free(path);
        }
}

static void png_cut_anywhere(void **state)
{
    struct picture p = made_picture(1, 16), q;
    char *path = at("cut.png");
    struct fault fault;
    struct str t;

    (void)state;
    assert_int_equal(png_write(path, &p, 3, NULL), 0);
    t = get("cut.png");
    for (size_t n = 0; n + 12 < t.len; n += 1 + n / 16) { /* IEND itself may be missing to libspng */
        memset(&fault, 0, sizeof(fault));
        assert_int_equal(png_read_bytes(t.s, n, "cut.png", &q, &fault), -1);
        assert_int_equal(fault.err.code, CODE_DATA);
        assert_non_null(strstr(fault.err.text, "'cut.png'"));
        assert_null(strchr(fault.err.text, '\n'));
    }
    put_file("cut.png", t.s, t.len / 2);
    assert_int_equal(png_read(path, &q, &fault), -1);
    assert_string_equal(fault.rule, "file-truncated");
    /* a header that says more than the bytes can hold */
    memcpy(t.s + 16, "\0\0\x7f\xff\0\0\x7f\xff", 8);
    assert_int_equal(png_read_bytes(t.s, t.len, "big.png", &q, &fault), -1);
    assert_int_equal(fault.err.code, CODE_DATA);
    str_release(&t);
    picture_release(&p);
    free(path);
}

static void jpeg_there_and_back(void **state)
{
    struct picture p = made_picture(3, 8), q;
    struct fault fault = { 0 };
    char *path = at("p.jpg");
    struct str t;

    (void)state;
    memset(p.pixels, 77, 37 * 21 * 3);
    assert_int_equal(jpeg_write(path, &p, 95, NULL), 0);
    assert_int_equal(jpeg_read(path, &q, NULL), 0);
    assert_true(q.width == 37 && q.height == 21 && q.channels == 3);
    assert_in_range(((uint8_t *)q.pixels)[1000], 74, 80);
    picture_release(&q);
    t = get("p.jpg");
    assert_int_equal(jpeg_read_bytes(t.s, t.len - 40, "p.jpg", &q, &fault), -1);
    assert_string_equal(fault.rule, "file-truncated");
    assert_int_equal(jpeg_read_bytes(t.s, 1, "p.jpg", &q, &fault), -1);
    assert_int_equal(jpeg_read_bytes("garbage, no picture", 19, "p.jpg", &q, &fault), -1);
    assert_int_equal(fault.err.code, CODE_DATA);
    str_release(&t);
    picture_release(&p);
    free(path);
}

/* ---- poses ---- */

static void poses(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: fine */
    } cases[] = {
        {"1 0 0 1\n0 1 0 2\n0 0 1 3\n0 0 0 1\n", NULL},
        {"1,0,0,1 0,1,0,2 0,0,1,3 0,0,0,1", NULL},
        {"0.999 0.001 0 1\r\n0 1 0 2\r\n0 0 1 3\r\n0 0 0 1\r\n", NULL},
        {"-inf -inf -inf -inf\n-inf -inf -inf -inf\n-inf -inf -inf -inf\n-inf -inf -inf -inf\n",
         "not finite"},
        {"1 0 0 nan 0 1 0 2 0 0 1 3 0 0 0 1", "not finite"},
        {"1 0 0 1 0 1 0 2 0 0 -1 3 0 0 0 1", "reflection"},
        {"2 0 0 1 0 2 0 2 0 0 2 3 0 0 0 1", "not rigid"},
        {"1 0 0 1 0 1 0 2 0 0 1 3 1 2 3 1", "last row"},
        {"1 0 0 1 0 1 0 2 0 0 1 3 0 0 0", "15 numbers"},
        {"1 0 0 1 0 1 0 2 0 0 1 3 0 0 0 1 5", "more than 16"},
        {"", "0 numbers"},
        {"one two", "no number"},
        {"1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
         "numbers"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fault fault = { 0 };
        double m[16];
        int rc = pose_parse(cases[i].text, strlen(cases[i].text), "frame", m, &fault);

        if (rc == 0)
            rc = pose_check(m, "frame", &fault);
        assert_int_equal(rc, cases[i].says ? -1 : 0);
        if (cases[i].says) {
            assert_string_equal(fault.rule, "pose-invalid");
            assert_non_null(strstr(fault.err.text, cases[i].says));
        } else {
            assert_true(m[11] == 3);
        }
    }
}

/* ---- volumes ---- */

/* 7 x 5 x 9 samples, or two of the blocks of 20 x 5 x 9 */
static struct recon_volume made_volume(bool blocks)
{
    struct recon_volume v = {.dim = {7, 5, 9}, .origin = {-1, 0.25, 3}, .voxel = 0.04, .truncation = 0.2};
    static const uint32_t places[] = { 0, 0, 1, 2, 0, 0 };
    uint64_t n;

    if (blocks) {
        v.dim[0] = 20;
        v.side = 8;
        v.beyond = 0.5f;
        v.blocks = 2;
        v.block = xmalloc(24);
        memcpy(v.block, places, 24);
    }
    n = recon_volume_samples(&v);
    v.tsdf = xmalloc(n * 4);
    v.weight = xmalloc(n * 4);
    v.rgb = xmalloc(n * 3);
    for (uint64_t i = 0; i < n; i++) {
        v.tsdf[i] = (float)sin((double)i);
        v.weight[i] = (float)(i % 5);
        v.rgb[3 * i] = v.rgb[3 * i + 1] = v.rgb[3 * i + 2] = (uint8_t)i;
    }
    return v;
}

static void free_volume(struct recon_volume *v)
{
    free(v->tsdf);
    free(v->weight);
    free(v->rgb);
    free(v->block);
}

static void volume_round_trip(void **state)
{
    struct recon_volume w = { .dim = { 0 } };
    char *path = at("v.npz");

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct recon_volume v = made_volume(way / 2);
        uint64_t n = recon_volume_samples(&v);

        assert_int_equal(volume_write(path, &v, way % 2, NULL), 0);
        assert_int_equal(volume_probe(path, &w, NULL), 0);
        assert_memory_equal(w.dim, v.dim, sizeof(v.dim));
        assert_null(w.tsdf);
        assert_int_equal(volume_read(path, &data_malloc, &w, NULL), 0);
        assert_memory_equal(w.dim, v.dim, sizeof(v.dim));
        assert_memory_equal(w.origin, v.origin, sizeof(v.origin));
        assert_true(w.voxel == v.voxel && w.truncation == v.truncation);
        assert_true(w.side == v.side && w.blocks == v.blocks && (!v.side || w.beyond == v.beyond));
        assert_memory_equal(w.tsdf, v.tsdf, n * 4);
        assert_memory_equal(w.weight, v.weight, n * 4);
        assert_memory_equal(w.rgb, v.rgb, n * 3);
        if (v.side)
            assert_memory_equal(w.block, v.block, 24);
        free_volume(&w);
        free_volume(&v);
    }
    free(path);
}

/* every cut and many changed bytes: refused with one line, or read as a volume of the size that it says */
static void volume_damaged(void **state)
{
    struct recon_volume w;
    char *path = at("v.npz");
    uint32_t seed = 1;
    struct str t;

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct recon_volume v = made_volume(way / 2);

        assert_int_equal(volume_write(path, &v, way % 2, NULL), 0);
        t = get("v.npz");
        for (size_t n = 0; n < t.len; n += 1 + n / 24) {
            struct fault fault = { 0 };

            put_file("cut.npz", t.s, n);
            free(path);
            path = at("cut.npz");
            assert_int_equal(volume_read(path, &data_malloc, &w, &fault), -1);
            assert_int_equal(fault.err.code, CODE_DATA);
            assert_null(strchr(fault.err.text, '\n'));
        }
        for (int i = 0; i < 300; i++) {
            struct fault fault = { 0 };
            size_t where;
            char old;

            seed = seed * 1664525u + 1013904223u;
            where = (seed >> 8) % t.len;
            old = t.s[where];
            t.s[where] = (char)(old ^ (1 << (seed >> 5 & 7)));
            put_file("cut.npz", t.s, t.len);
            if (volume_read(path, &data_malloc, &w, &fault) == 0)
                free_volume(&w);
            else
                assert_true(fault.err.code == CODE_DATA || fault.err.code == CODE_MEMORY);
            t.s[where] = old;
        }
        str_release(&t);
        free_volume(&v);
        free(path);
        path = at("v.npz");
    }
    free(path);
}

/* a list of blocks that is out of order or of the grid, a side that is not read */
static void blocks_refused(void **state)
{
    static const struct {
        uint32_t at, value, side;
        const char *text;
    } cases[] = { { 3, 0, 8, "does not come after" }, { 2, 0, 8, NULL }, { 3, 3, 8, "has place 3 along axis 0 of 3" }, { 2, 2, 8, "has place 2 along axis 2 of 2" },
                  { 0, 0, 4, "have 4 samples a side" } };
    char *path = at("b.npz");

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recon_volume v = made_volume(true), w = { .side = 0 };
        struct fault fault = { 0 };

        v.block[cases[i].at] = cases[i].value;
        v.side = cases[i].side;
        assert_int_equal(volume_write(path, &v, false, NULL), 0);
        assert_int_equal(volume_read(path, &data_malloc, &w, &fault), cases[i].text ? -1 : 0);
        if (cases[i].text)
            assert_non_null(strstr(fault.err.text, cases[i].text));
        else
            free_volume(&w);
        assert_int_equal(volume_probe(path, &w, NULL), cases[i].text ? -1 : 0);
        free_volume(&v);
    }
    unlink(path);
    free(path);
}

static void volume_refused(void **state)
{
    struct fault fault;
    struct recon_volume v;
    char *path = at("no.npz");

    (void)state;
    put_file("no.npz", "PK no archive, only a beginning that looks like one", 50);
    assert_int_equal(volume_read(path, &data_malloc, &v, &fault), -1);
    assert_string_equal(fault.rule, "file-truncated");
    unlink(path);
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_int_equal(volume_read(path, &data_malloc, &v, &fault), -1);
    assert_int_equal(fault.err.code, CODE_DATA);
    assert_int_equal(volume_read("/tmp", &data_malloc, &v, &fault), -1);
    assert_int_equal(volume_read("/nonexistent", &data_malloc, &v, &fault), -1);
    unlink(path);
    free(path);
}

/* ---- meshes ---- */

static void ply_bytes(void **state)
{
    float xyz[9] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 }, normals[9] = { 0, 0, 1, 0, 0, 1, 0, 0, 1 };
    uint8_t rgb[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    uint32_t index[3] = { 0, 1, 2 };
    struct recon_mesh m = {
        .vertices = 3, .faces = 1, .xyz = xyz, .normals = normals, .rgb = rgb, .index = index};
    struct err err = { 0 };
    char *path = at("m.ply");
    struct str t;
    const char *body;

    (void)state;
    assert_int_equal(ply_write(path, &m, NULL, NULL), 0);
    t = get("m.ply");
    assert_true(str_starts(t.s, "ply\nformat binary_little_endian 1.0\n"));
    assert_non_null(body = strstr(t.s, "end_header\n"));
    body += 11;
    assert_int_equal(t.s + t.len - body, 3 * 27 + 13);
    assert_memory_equal(body + 27, xyz + 3, 12);
    assert_memory_equal(body + 27 + 24, rgb + 3, 3);
    assert_memory_equal(body + 81 + 1, index, 12);
    str_release(&t);
    assert_int_equal(ply_write("/nonexistent/m.ply", &m, NULL, &err), -1);
    assert_int_equal(err.code, CODE_CREATE);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_round_trip),
        cmocka_unit_test(png_cut_anywhere),
        cmocka_unit_test(jpeg_there_and_back),
        cmocka_unit_test(poses),
        cmocka_unit_test(volume_round_trip),
        cmocka_unit_test(volume_damaged),
        cmocka_unit_test(blocks_refused),
        cmocka_unit_test(volume_refused),
        cmocka_unit_test(ply_bytes),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
