/* Libraries of materials, and what goes along in an OBJ: textures, corners, parts, polygons. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <unistd.h>
#include "data/test/meshes.h"
#include "data/mtl.h"
#include "data/obj.h"

/* ---- libraries ---- */

static const struct material *named(const struct extra *e, const char *name)
{
    for (size_t i = 0; i < e->materials.n; i++)
        if (str_eq(e->materials.v[i].name, name))
            return &e->materials.v[i];
    fail_msg("no material '%s'", name);
    return NULL;
}

static void library(void **state)
{
    static const char text[] = "# made\n\nnewmtl red wood\r\n  Kd 0.8 0.1 .1 # red\nKa 0.5\nKs spectral x.rfl 1\nNs 96.5\nd -halo 0.5\nillum 2\n"
                               "map_Kd -s 2 2 -o 0.5 -clamp on wood grain.png\nmap_Bump -bm 0.3 \t deep/bump.jpg\nnewmtl b\nTr 0.25\nPr 0.3\n"
                               "vendor_thing 1 2 x\nrefl -type sphere sky.hdr\nmap_Ks -mm 0 1 -texres 64 a.png\nnewmtl b\nKd 0 0 0\n";
    struct extra e = { 0 };
    const struct material *m;
    uint64_t again = 0;
    double v[3];

    (void)state;
    assert_int_equal(mtl_parse("m.mtl", "mats/", text, sizeof(text) - 1, &e, &again, NULL), 0);
    assert_int_equal(e.materials.n, 2);
    assert_int_equal(again, 1);
    m = named(&e, "red wood");
    assert_true(m->known && m->lines.n == 8);
    assert_true(mtl_values(m, "Kd", v, 3) && v[0] == 0.8 && v[1] == 0.1 && v[2] == 0.1);
    assert_true(mtl_values(m, "Ka", v, 3) && v[0] == 0.5 && v[2] == 0.5);
    assert_false(mtl_values(m, "Ks", v, 3));
    assert_string_equal(m->lines.v[2].text, "Ks spectral x.rfl 1");
    assert_string_equal(m->lines.v[6].text, "map_Kd -s 2 2 -o 0.5 -clamp on");
    assert_string_equal(e.images.v[mtl_image(m, "map_Kd")].name, "mats/wood grain.png");
    assert_string_equal(m->lines.v[7].text, "map_Bump -bm 0.3");
    assert_string_equal(e.images.v[mtl_image(m, "map_Bump")].name, "mats/deep/bump.jpg");
    m = named(&e, "b");
    assert_true(m->lines.n == 5 && mtl_image(m, "map_Kd") == RECON_NONE && !mtl_values(m, "Kd", v, 3));
    assert_string_equal(m->lines.v[2].text, "vendor_thing 1 2 x");
    assert_string_equal(e.images.v[mtl_image(m, "refl")].name, "mats/sky.hdr");
    assert_string_equal(e.images.v[mtl_image(m, "map_Ks")].name, "mats/a.png");
    extra_free(&e);
}

static void library_refused(void **state)
{
    static const struct {
        const char *text, *say;
    } cases[] = {
        { "newmtl\n", "line 1: 'newmtl' has no name" },
        { "newmtl a\nKd\n", "line 2: 'Kd' needs 1 finite number, or three" },
        { "newmtl a\nKd 1 2\n\nKs 1 x 2\n", "line 4: 'Ks' needs" },
        { "newmtl a\nKd nan 0 0\n", "line 2: 'Kd' needs" },
        { "newmtl a\nNs\n", "line 2: 'Ns' needs 1 finite number;" },
        { "newmtl a\nd 1 2\n", "line 2: 'd' needs" },
        { "newmtl a\nmap_Kd\n", "line 2: 'map_Kd' names no picture" },
        { "newmtl a\nmap_Kd -s 1 1 1\n", "line 2: 'map_Kd' names no picture" },
        { "newmtl a\nmap_Kd -bm\n", "line 2: 'map_Kd' names no picture" },
        { "Kd 1 1 1\n", "line 1: 'Kd' stands before any newmtl" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct extra e = { 0 };
        struct fault fault = { 0 };
        uint64_t again;

        if (mtl_parse("m.mtl", "", cases[i].text, strlen(cases[i].text), &e, &again, &fault) == 0 || fault.err.code != CODE_DATA ||
            !strstr(fault.err.text, cases[i].say) || strchr(fault.err.text, '\n'))
            fail_msg("%s: %s", cases[i].text, fault.err.text);
        extra_free(&e);
    }
}

/* ---- OBJ there and back ---- */

#define FACES                                                                                                                           \
    "o base\ng floor all\nusemtl wood\ns off\nf 1/1/1 4/4/1 3/3/1 2/2/1\no roof\nusemtl none\ns 1\nf 1/1 2/2 5/3\nf 2//2 3//2 5//2\n"   \
    "usemtl glass pane\nf 3 4 5\nf 4/4/2 1/1/2 5/3/2\n"

/* all lines that mean something */
static char *gist(const char *text)
{
    struct str t = { 0 };

    for (const char *p = text, *e; *p; p = *e ? e + 1 : e) {
        e = strchrnul(p, '\n');
        if (*p != '#')
            str_addf(&t, "%.*s\n", (int)(e - p), p);
    }
    return str_take(&t);
}

static void obj_and_mtl(void **state)
{
    static const char mtl[] = "newmtl wood\nKd 0.5 0.25 0\nmap_Kd -s 2 2 2 pics/grain.png\nodd 1\nnewmtl glass pane\nd 0.3\nmap_d gone.png\n"
                              "map_Ks ../up.png\nmap_Ke /etc/hostname\n";
    static const char wrote[] = "newmtl wood\nKd 0.5 0.25 0\nmap_Kd -s 2 2 2 out-textures/grain.png\nodd 1\nnewmtl glass pane\nd 0.3\nmap_d gone.png\n"
                                "map_Ks ../up.png\nmap_Ke /etc/hostname\n";
    char *pics = path_join(scratch, "pics");

    (void)state;
    assert_int_equal(dir_make(pics, 0755, NULL), 0);
    free(pics);
    put_text("pics/grain.png", "no real picture");
    put_text("box.mtl", mtl);
    put_text("box.obj", LIBRARY("box.mtl") BOX FACES);
    for (int threads = 1; threads < 4; threads++) {
        struct mesh_written w;
        struct recon_mesh m;
        struct str obj, lib, pic;
        char *a, *b;

        read_mesh("box.obj", &m, threads);
        has(told, "texture-missing: the texture 'gone.png' is not there");
        has(told, "texture-missing: the texture '../up.png' lies outside the dataset's folder and is not followed");
        has(told, "'/etc/hostname' lies outside");
        assert_true(m.uvs == 4 && m.corner_normals == 2 && m.faces == 6 && !m.normals && m.joined[1] == 1 && m.joined[2] == 0);
        assert_int_equal(m.uv_index[3 * 3], RECON_NONE);
        assert_int_equal(m.normal_index[3 * 2], RECON_NONE);
        write_mesh("out.obj", &m, &w);
        assert_int_equal(w.files.n, 3);
        assert_int_equal(w.left_out.n, 0);
        obj = get("out.obj");
        lib = get("out.mtl");
        pic = get("out-textures/grain.png");
        a = gist(obj.s);
        assert_string_equal(a, LIBRARY("out.mtl") BOX FACES);
        free(a);
        b = gist(lib.s);
        assert_string_equal(b, wrote);
        assert_string_equal(pic.s, "no real picture");
        free(b);
        str_release(&obj);
        str_release(&lib);
        str_release(&pic);
        mesh_written_release(&w);
        drop(&m);
    }
}

/* what is written is a fixed point, whichever way lines were read */
static void again_and_again(void **state)
{
    static const struct obj_quick *quick[2];
    struct recon_mesh m;
    struct mesh_written w;
    struct str first, now;

    (void)state;
    quick[0] = &obj_plain;
    quick[1] = obj_wide();
    put_text("box.mtl", "newmtl wood\nKd 1 1 1\n");
    put_text("many.obj", LIBRARY("box.mtl") BOX FACES "f 1/1/1 2/2/1 3/3/1 4/4/1 5/1/1\nl 1 2\nvt 0.5 1 \\\n0\nf 1 3 4\n");
    for (int i = 0; i < 2 && quick[i]; i++) {
        char *path = path_join(scratch, "many.obj");
        struct mesh_notes notes = { 0 };

        assert_int_equal(obj_parse_by(quick[i], path, &(struct geom_options){ .threads = 1 }, &data_malloc, &m, &notes, NULL), 0);
        assert_true(notes.other == 1 && m.uvs == 5);
        drop(&m);
        free(path);
    }
    read_mesh("many.obj", &m, 1);
    write_mesh("first.obj", &m, &w);
    mesh_written_release(&w);
    drop(&m);
    first = get("first.obj");
    for (int i = 0; i < 2 && quick[i]; i++) {
        char *path = path_join(scratch, "first.obj");
        struct mesh_notes notes = { 0 };

        assert_int_equal(obj_parse_by(quick[i], path, &(struct geom_options){ .threads = 2 }, &data_malloc, &m, &notes, NULL), 0);
        assert_int_equal(notes.polygons, 2);
        write_mesh("first.obj", &m, &w);
        now = get("first.obj");
        assert_string_equal(first.s, now.s);
        has(now.s, "f 1/1/1 2/2/1 3/3/1 4/4/1 5/1/1\n");
        mesh_written_release(&w);
        str_release(&now);
        free(path);
        drop(&m);
    }
    str_release(&first);
}

/* in the plain way nothing is looked at: neither libraries nor what is wrong in them */
static void plain(void **state)
{
    char *path = path_join(scratch, "plain.obj");
    struct mesh_notes notes;
    struct recon_mesh m;
    struct fault fault = { 0 };

    (void)state;
    put_text("bad.mtl", "Kd\n");
    put_text("plain.obj", LIBRARY("bad.mtl") BOX "vt nan 0\n" FACES);
    assert_int_equal(mesh_read(path, &(struct geom_options){ .threads = 1 }, &data_malloc, &m, &notes, &fault), -1);
    assert_string_equal(fault.rule, "uv-nan");
    put_text("plain.obj", LIBRARY("bad.mtl") BOX FACES);
    assert_int_equal(mesh_read(path, &(struct geom_options){ .threads = 1 }, &data_malloc, &m, &notes, &fault), -1);
    has(fault.err.text, "bad.mtl' line 1: 'Kd' stands before any newmtl; keep = geometry reads the mesh without");
    assert_int_equal(mesh_read(path, &(struct geom_options){ .threads = 1, .plain = true }, &data_malloc, &m, &notes, &fault), 0);
    assert_true(m.faces == 6 && !m.uv && !m.uv_index && !m.corner_normal && !m.normals && !m.joined && !m.extra);
    drop(&m);
    free(path);
}

/* normals that seem to be those of vertices until a later face says otherwise */
static void normals_of_corners(void **state)
{
    static const char head[] = TRIANGLE "v 1 1 1\nvn 0 0 1\nvn 0 1 0\nvn 1 0 0\nvn 0 0 -1\nf 1//1 2//2 3//3\n";
    struct recon_mesh m;

    (void)state;
    put_text("paired.obj", head);
    read_mesh("paired.obj", &m, 1);
    assert_true(m.normals && !m.corner_normal && m.normals[4] == 1);
    drop(&m);
    for (int i = 0; i < 2; i++) {
        char *text = xasprintf("%s%s", head, i ? "f 2 3 4\n" : "f 2//2 3//3 4//1\n");

        put_text("unpaired.obj", text);
        read_mesh("unpaired.obj", &m, 1);
        assert_true(!m.normals && m.corner_normals == 4 && m.corner_normal[4] == 1);
        assert_int_equal(m.normal_index[5], i ? RECON_NONE : 0);
        assert_int_equal(m.normal_index[2], 2);
        drop(&m);
        free(text);
    }
}

/* polygons turned by a reflection come out turned */
static void turned_polygons(void **state)
{
    struct recon_mesh m;
    struct mesh_written w;
    struct str t;

    (void)state;
    put_text("p.obj", "v 0 0 0\nv 1 0 0\nv 2 1 0\nv 1 2 0\nv 0 1 0\nf 1 2 3 4 5\nf 2 1 3\n");
    read_mesh("p.obj", &m, 1);
    for (uint64_t f = 0; f < m.faces; f++) {
        uint32_t v = m.index[3 * f + 1];

        m.index[3 * f + 1] = m.index[3 * f + 2];
        m.index[3 * f + 2] = v;
    }
    write_mesh("p2.obj", &m, &w);
    t = get("p2.obj");
    has(t.s, "f 1 5 4 3 2\nf 2 3 1\n");
    str_release(&t);
    mesh_written_release(&w);
    drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library),
        cmocka_unit_test(library_refused),
        cmocka_unit_test(obj_and_mtl),
        cmocka_unit_test(again_and_again),
        cmocka_unit_test(plain),
        cmocka_unit_test(normals_of_corners),
        cmocka_unit_test(turned_polygons),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
