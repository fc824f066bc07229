/* What a mesh has beyond places and faces: materials, textures, corners, parts, polygons; from file to file. */
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

static char told[8000];
static void take_told(void *self, const char *rule, const char *object, const char *text)
{
    (void)self;
    (void)object;
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s: %s\n", rule ? rule : "", text);
}

static struct str slurp(const char *name)
{
    char *path = path_join(scratch, name);
    struct str t = { 0 };

    assert_int_equal(file_read(path, 1 << 24, &t, NULL), 0);
    free(path);
    return t;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static void put_text(const char *name, const char *text)
{
    free(put(name, text, strlen(text)));
}

static void read_mesh(const char *name, struct recon_mesh *m, int threads)
{
    char *path = path_join(scratch, name);
    struct mesh_notes notes;
    struct fault fault = { 0 };

    told[0] = 0;
    if (mesh_read(path, &(struct geom_options){ .threads = threads, .warn = take_told }, &data_malloc, m, &notes, &fault))
        fail_msg("%s: %s", name, fault.err.text);
    free(path);
}

static void write_mesh(const char *name, const struct recon_mesh *m, struct mesh_written *w)
{
    char *path = path_join(scratch, name);
    struct err err = { 0 };

    *w = (struct mesh_written){ 0 };
    if (mesh_write(path, m, w, &err))
        fail_msg("%s: %s", name, err.text);
    free(path);
}

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

#define LIBRARY(name) "mtllib " name "\n"
#define BOX "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 1\nvt 0 0\nvt 1 0.25\nvt 1 1\nvt 0 0.125\nvn 0 0 -1\nvn 0 1 0\n"
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
        obj = slurp("out.obj");
        lib = slurp("out.mtl");
        pic = slurp("out-textures/grain.png");
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
    put_text("many.obj", LIBRARY("box.mtl") BOX FACES "f 1/1/1 2/2/1 3/3/1 4/4/1 5/1/1\nl 1 2\nf 1 3 4\n");
    read_mesh("many.obj", &m, 1);
    write_mesh("first.obj", &m, &w);
    mesh_written_release(&w);
    drop(&m);
    first = slurp("first.obj");
    for (int i = 0; i < 2 && quick[i]; i++) {
        char *path = path_join(scratch, "first.obj");
        struct mesh_notes notes = { 0 };

        assert_int_equal(obj_parse_by(quick[i], path, &(struct geom_options){ .threads = 2 }, &data_malloc, &m, &notes, NULL), 0);
        assert_int_equal(notes.polygons, 2);
        write_mesh("first.obj", &m, &w);
        now = slurp("first.obj");
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
    t = slurp("p2.obj");
    has(t.s, "f 1 5 4 3 2\nf 2 3 1\n");
    str_release(&t);
    mesh_written_release(&w);
    drop(&m);
}

/* ---- GLB ---- */

static const char png[] = "\x89PNG\r\n\x1a\nrest", jpg[] = "\xff\xd8\xff rest!";

static bool floats_at(const struct recon_mesh *m, uint64_t corner, float u, float v)
{
    const float *uv = m->uv + 2 * (uint64_t)(m->uv_index ? m->uv_index[corner] : m->index[corner]);

    return uv[0] == u && uv[1] == v;
}

static void obj_to_glb(void **state)
{
    static const char mtl[] = "newmtl wood\nKd 0.5 0.25 0\nKa 1 1 1\nmap_Kd -s 2 2 2 t/a.png\nnewmtl glass\nd 0.25\nNs 0\nmap_Ke t/b.jpg\n"
                              "map_Bump t/a.png\nnewmtl third\nmap_Kd t/c.tga\n";
    struct mesh_written w;
    struct recon_mesh m, b;
    struct str one, two;
    char *path = path_join(scratch, "t");

    (void)state;
    assert_int_equal(dir_make(path, 0755, NULL), 0);
    free(path);
    free(put("t/a.png", png, sizeof(png) - 1));
    free(put("t/b.jpg", jpg, sizeof(jpg) - 1));
    put_text("t/c.tga", "no magic");
    put_text("g.mtl", mtl);
    put_text("g.obj", LIBRARY("g.mtl") BOX "o one\nusemtl wood\nf 1/1/1 2/2/1 3/3/1\nusemtl glass\nf 1/2 3/4 4/1\no \"two\\x\nusemtl third\nf 1 2 5\n");
    read_mesh("g.obj", &m, 1);
    write_mesh("g.glb", &m, &w);
    assert_int_equal(w.files.n, 1);
    assert_int_equal(w.left_out.n, 2);
    has(w.left_out.v[0], "'t/c.tga' is left out: glTF holds PNG and JPEG");
    has(w.left_out.v[1], "no place for Ka, options of textures, map_Bump of materials");
    mesh_written_release(&w);
    read_mesh("g.glb", &b, 1);
    assert_string_equal(told, "");
    assert_int_equal(b.faces, 3);
    assert_int_equal(b.vertices, 5 + 2 + 2); /* two corners of the second face, two of the third */
    assert_true(b.uv_down && floats_at(&b, 1, 1, 0.75f) && floats_at(&b, 3, 1, 0.75f) && b.uv_index[6] == RECON_NONE);
    assert_true(b.corner_normal && b.normal_index[0] == b.index[0] && b.normal_index[3] == RECON_NONE);
    for (int i = 0; i < 9; i++)
        assert_memory_equal(b.xyz + 3 * (uint64_t)b.index[i], m.xyz + 3 * (uint64_t)m.index[i], 12);
    write_mesh("g2.glb", &b, &w);
    assert_int_equal(w.left_out.n, 0);
    mesh_written_release(&w);
    one = slurp("g.glb");
    two = slurp("g2.glb");
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.s, two.s, one.len);
    str_release(&one);
    str_release(&two);
    write_mesh("back.obj", &b, &w);
    assert_int_equal(w.files.n, 4);
    mesh_written_release(&w);
    one = slurp("back.mtl");
    has(one.s, "newmtl wood\nKd 0.5 0.25 0\nPm 0\nPr 1\nmap_Kd back-textures/a.png\nnewmtl glass\nKd 1 1 1\nd 0.25\n");
    has(one.s, "map_Ke back-textures/b.jpg\nnewmtl third");
    str_release(&one);
    one = slurp("back.obj");
    has(one.s, "o one\nusemtl wood\nf ");
    has(one.s, "o \"two\\x\nusemtl third\n");
    has(one.s, "vt 1 0.25\n");
    str_release(&one);
    drop(&m);
    drop(&b);
}

/* What recon does not know of a material comes out as it went in; a picture's bytes, too. */
static void glb_as_it_was(void **state)
{
    static const char json[] =
        "{\"asset\":{\"version\":\"2.0\"},\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0}],\"meshes\":[{\"name\":\"caf\\u00e9 \\n\","
        "\"primitives\":[{\"attributes\":{\"POSITION\":0,\"TEXCOORD_0\":1,\"TANGENT\":0},\"material\":0}]}],\"animations\":[{}],"
        "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"count\":3,\"type\":\"VEC3\"},"
        "{\"bufferView\":1,\"componentType\":5123,\"normalized\":true,\"count\":3,\"type\":\"VEC2\"}],"
        "\"bufferViews\":[{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":36,\"byteLength\":12},"
        "{\"buffer\":0,\"byteOffset\":48,\"byteLength\":12}],\"buffers\":[{\"byteLength\":60}],"
        "\"materials\":[{\"name\":\"m\",\"doubleSided\":true,\"extensions\":{\"KHR_materials_x\":{\"k\":[1, 2]}},"
        "\"pbrMetallicRoughness\":{\"baseColorTexture\":{\"index\":1}}}],\"textures\":[{\"source\":1},{\"source\":0,\"sampler\":0}],"
        "\"samplers\":[{\"wrapS\":33071}],\"images\":[{\"bufferView\":2,\"mimeType\":\"image/png\"},{\"uri\":\"data:image/png;base64,AA==\"}],"
        "\"extensionsUsed\":[\"KHR_materials_x\"],\"extensionsRequired\":[\"KHR_materials_x\"]}   ";
    static const float xyz[9] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    static const uint16_t uv[6] = { 0, 0, 65535, 0, 0, 13107 };
    uint32_t head[5] = { 0x46546c67, 2, 0, sizeof(json) / 4 * 4, 0x4e4f534a }, bin[2] = { 60, 0x004e4942 };
    struct mesh_written w;
    struct recon_mesh m;
    struct str t = { 0 }, got;

    (void)state;
    head[2] = 28 + head[3] + 60;
    str_addn(&t, head, 20);
    str_addn(&t, json, head[3]);
    str_addn(&t, bin, 8);
    str_addn(&t, xyz, 36);
    str_addn(&t, uv, 12);
    str_addn(&t, png, 12);
    free(put("x.glb", t.s, t.len));
    str_release(&t);
    read_mesh("x.glb", &m, 1);
    has(told, "of what it has, TANGENT, animations are not kept");
    assert_true(!m.uv_index && m.uv[2] == 1 && m.uv[5] == 0.2f);
    write_mesh("x2.glb", &m, &w);
    assert_int_equal(w.left_out.n, 0);
    mesh_written_release(&w);
    got = slurp("x2.glb");
    has(got.s + 20, "\"materials\":[{\"name\":\"m\",\"doubleSided\":true,\"extensions\":{\"KHR_materials_x\":{\"k\":[1, 2]}},");
    has(got.s + 20, "\"textures\":[{\"source\":1},{\"source\":0,\"sampler\":0}]");
    has(got.s + 20, "{\"uri\":\"data:image/png;base64,AA==\"}");
    has(got.s + 20, "\"samplers\":[{\"wrapS\":33071}]");
    has(got.s + 20, "\"extensionsRequired\":[\"KHR_materials_x\"]");
    has(got.s + 20, "\"name\":\"caf\xc3\xa9 _\"");
    assert_memory_equal(got.s + got.len - 12, png, 12);
    str_release(&got);
    write_mesh("x.obj", &m, &w);
    mesh_written_release(&w);
    got = slurp("x-textures/image0.png");
    assert_memory_equal(got.s, png, 12);
    str_release(&got);
    got = slurp("x.obj");
    has(got.s, "vt 0 0.800000012\n");
    has(got.s, "usemtl m\nf 1/1 2/2 3/3\n");
    str_release(&got);
    drop(&m);
}

/* ---- PLY ---- */

static void ply_columns(void **state)
{
    static const char text[] =
        "ply\nformat ascii 1.0\ncomment TextureFile t/a.png\ncomment TextureFile t/none.png\nelement vertex 5\nproperty double quality\n"
        "property float x\nproperty float y\nproperty float z\nproperty uchar alpha\nproperty float nx\nelement edge 1\nproperty int a\n"
        "element face 3\nproperty uchar flags\nproperty list uchar float texcoord\nproperty list uchar int vertex_indices\nproperty int texnumber\n"
        "property list uchar int more\nend_header\n"
        "0.1 0 0 0 255 1\n1e-300 1 0 0 300 2\n2 1 1 0 -4 3\n3 0 1 0 7 4\n4 5 5 5 8 5\n9\n"
        "1 8 0 0 1 0 1 1 0 0.25 4 0 1 2 3 1 0\n2 0 3 0 1 4 0 0\n3 6 0.5 0.5 0 0 1 1 3 1 2 4 7 0\n";
    struct mesh_written w;
    struct recon_mesh m, b;
    struct str one, two;

    (void)state;
    put_text("c.ply", text);
    read_mesh("c.ply", &m, 1);
    has(told, "'t/none.png' is not there");
    has(told, "element edge, more of face are not kept");
    assert_true(m.faces == 4 && m.uvs == 7 && m.joined[1] == 1 && !m.joined[2] && !m.normals);
    assert_true(m.uv_index[5] == 3 && m.uv_index[6] == RECON_NONE && m.uv_index[9] == 4);
    write_mesh("c2.ply", &m, &w);
    assert_int_equal(w.files.n, 2);
    assert_int_equal(w.left_out.n, 0);
    mesh_written_release(&w);
    read_mesh("c2.ply", &b, 1);
    assert_true(b.vertices == 5 && b.faces == 4 && b.uvs == 7);
    assert_memory_equal(b.xyz, m.xyz, 60);
    assert_memory_equal(b.index, m.index, 48);
    assert_memory_equal(b.uv, m.uv, 56);
    assert_memory_equal(b.uv_index, m.uv_index, 48);
    assert_memory_equal(b.joined, m.joined, 4);
    write_mesh("c3.ply", &b, &w);
    mesh_written_release(&w);
    one = slurp("c2.ply");
    two = slurp("c3.ply");
    has(one.s, "comment TextureFile c2-textures/a.png\ncomment TextureFile t/none.png\nelement vertex 5\n");
    has(one.s, "property float z\nproperty double quality\nproperty uchar alpha\nproperty float nx\nelement face 3\n");
    has(one.s, "property list uchar int vertex_indices\nproperty list uchar float texcoord\nproperty uchar flags\nproperty int texnumber\nend_header\n");
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.s + one.len - 80, two.s + two.len - 80, 80);
    {
        const char *body = strstr(one.s, "end_header\n") + 11;
        double quality;

        memcpy(&quality, body + 12, 8);
        assert_true(quality == 0.1);
        memcpy(&quality, body + 25 + 12, 8);
        assert_true(quality == 1e-300);
        assert_int_equal((uint8_t)body[25 + 20], 255); /* 300 is none of a byte */
        assert_int_equal((uint8_t)body[50 + 20], 0);
    }
    str_release(&one);
    str_release(&two);
    write_mesh("c.obj", &m, &w);
    has(w.left_out.v[0], "no place for the properties quality and others of vertices");
    has(w.left_out.v[1], "no place for the properties flags and texnumber of faces");
    mesh_written_release(&w);
    one = slurp("c.obj");
    has(one.s, "usemtl texture1\nf 1/1 2/2 3/3 4/4\nusemtl texture0\nf 1 2 5\nusemtl\nf 2/5 3/6 5/7\n");
    str_release(&one);
    drop(&m);
    drop(&b);
}

/* faces without corners have no row, wherever they stand */
static void ply_empty_faces(void **state)
{
    struct mesh_written w;
    struct recon_mesh m;
    struct str t;

    (void)state;
    put_text("e.ply", "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 4\n"
                      "property uchar a\nproperty list uchar int vertex_indices\nproperty int b\nend_header\n0 0 0\n1 0 0\n0 1 0\n"
                      "9 0 8\n1 3 0 1 2 2\n7 0 6\n5 0 4\n");
    read_mesh("e.ply", &m, 1);
    assert_int_equal(m.faces, 1);
    write_mesh("e2.ply", &m, &w);
    mesh_written_release(&w);
    t = slurp("e2.ply");
    assert_memory_equal(t.s + t.len - 5, "\1\2\0\0\0", 5);
    str_release(&t);
    drop(&m);
}

/* texture coordinates of vertices, and what a PLY cannot say of an OBJ */
static void ply_textures(void **state)
{
    struct mesh_written w;
    struct recon_mesh m;
    struct str t;

    (void)state;
    put_text("st.ply", "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nproperty float u\n"
                       "property float v\nelement face 1\nproperty list uchar int vertex_index\nend_header\n0 0 0 0 0.25\n1 0 0 1 0\n0 1 0 0 1\n3 0 1 2\n");
    read_mesh("st.ply", &m, 1);
    assert_true(m.uvs == 3 && !m.uv_index && m.uv[1] == 0.25f && !m.extra);
    write_mesh("st2.ply", &m, &w);
    mesh_written_release(&w);
    t = slurp("st2.ply");
    has(t.s, "property float z\nproperty float s\nproperty float t\nelement face 1\n");
    str_release(&t);
    write_mesh("st.obj", &m, &w);
    mesh_written_release(&w);
    t = slurp("st.obj");
    has(t.s, "vt 0 0.25\n");
    has(t.s, "f 1/1 2/2 3/3\n");
    str_release(&t);
    drop(&m);
    put_text("g.mtl", "newmtl wood\nKd 1 0 0\nmap_Kd t/a.png\nnewmtl glass\nd 0.5\n");
    put_text("p.obj", LIBRARY("g.mtl") BOX "o x\nf 1/1/1 2/2/1 3/3/1\nusemtl wood\nf 1/1 3/3 4/4 5/1\nusemtl glass\nf 1 2 5\n");
    read_mesh("p.obj", &m, 1);
    write_mesh("p.ply", &m, &w);
    assert_int_equal(w.left_out.n, 3);
    has(w.left_out.v[0], "PLY names textures alone");
    has(w.left_out.v[1], "no place for objects");
    has(w.left_out.v[2], "no place for normals of corners");
    mesh_written_release(&w);
    drop(&m);
    read_mesh("p.ply", &m, 1);
    assert_true(m.faces == 4 && m.joined[2] && m.uvs == 7 && m.uv_index[11] == RECON_NONE);
    write_mesh("p2.obj", &m, &w);
    mesh_written_release(&w);
    t = slurp("p2.obj");
    has(t.s, "usemtl\nf 1/1 2/2 3/3\nusemtl texture0\nf 1/4 3/5 4/6 5/7\nusemtl\nf 1 2 5\n");
    str_release(&t);
    drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library), cmocka_unit_test(library_refused),    cmocka_unit_test(obj_and_mtl),     cmocka_unit_test(again_and_again),
        cmocka_unit_test(plain),   cmocka_unit_test(normals_of_corners), cmocka_unit_test(turned_polygons),
        cmocka_unit_test(obj_to_glb), cmocka_unit_test(glb_as_it_was), cmocka_unit_test(ply_columns), cmocka_unit_test(ply_empty_faces), cmocka_unit_test(ply_textures),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
