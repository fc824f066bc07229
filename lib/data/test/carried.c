/* What goes along with the faces of a GLB and a PLY, and from one form to another. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "data/test/meshes.h"

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
    one = get("g.glb");
    two = get("g2.glb");
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.s, two.s, one.len);
    str_release(&one);
    str_release(&two);
    write_mesh("back.obj", &b, &w);
    assert_int_equal(w.files.n, 4);
    mesh_written_release(&w);
    one = get("back.mtl");
    has(one.s, "newmtl wood\nKd 0.5 0.25 0\nPm 0\nPr 1\nmap_Kd back-textures/a.png\nnewmtl glass\nKd 1 1 1\nd 0.25\n");
    has(one.s, "map_Ke back-textures/b.jpg\nnewmtl third");
    str_release(&one);
    one = get("back.obj");
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
    got = get("x2.glb");
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
    got = get("x-textures/image0.png");
    assert_memory_equal(got.s, png, 12);
    str_release(&got);
    got = get("x.obj");
    has(got.s, "vt 0 0.800000012\n");
    has(got.s, "usemtl m\nf 1/1 2/2 3/3\n");
    str_release(&got);
    drop(&m);
}

/* ---- PLY ---- */

/* rows of 25 bytes: place, quality, alpha, nx */
static void kept_columns(const char *body)
{
    double quality;

    memcpy(&quality, body + 12, 8);
    assert_true(quality == 0.1);
    memcpy(&quality, body + 25 + 12, 8);
    assert_true(quality == 1e-300);
    assert_int_equal((uint8_t)body[25 + 20], 255); /* 300 is none of a byte */
    assert_int_equal((uint8_t)body[50 + 20], 0);
}

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
    one = get("c2.ply");
    two = get("c3.ply");
    has(one.s, "comment TextureFile c2-textures/a.png\ncomment TextureFile t/none.png\nelement vertex 5\n");
    has(one.s, "property float z\nproperty double quality\nproperty uchar alpha\nproperty float nx\nelement face 3\n");
    has(one.s, "property list uchar int vertex_indices\nproperty list uchar float texcoord\nproperty uchar flags\nproperty int texnumber\nend_header\n");
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.s + one.len - 80, two.s + two.len - 80, 80);
    kept_columns(strstr(one.s, "end_header\n") + 11);
    str_release(&one);
    str_release(&two);
    write_mesh("c.obj", &m, &w);
    has(w.left_out.v[0], "no place for the properties quality and others of vertices");
    has(w.left_out.v[1], "no place for the properties flags and texnumber of faces");
    mesh_written_release(&w);
    one = get("c.obj");
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
    t = get("e2.ply");
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
    t = get("st2.ply");
    has(t.s, "property float z\nproperty float s\nproperty float t\nelement face 1\n");
    str_release(&t);
    write_mesh("st.obj", &m, &w);
    mesh_written_release(&w);
    t = get("st.obj");
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
    t = get("p2.obj");
    has(t.s, "usemtl\nf 1/1 2/2 3/3\nusemtl texture0\nf 1/4 3/5 4/6 5/7\nusemtl\nf 1 2 5\n");
    str_release(&t);
    drop(&m);
}

/* ---- more faces ---- */

/* So many faces behind, face i like face like[i]: at its corners. */
static int grow(struct recon_mesh *m, const uint32_t *like, uint64_t n, bool *left, struct fault *fault)
{
    struct recon_mesh grown = { 0 };
    uint32_t *index = xmalloc(12 * (m->faces + n));
    struct mesh_run run[10];
    uint64_t runs = 0;
    int rc;

    for (uint64_t i = 0; i < n; i++)
        if (i && like[i] == like[i - 1])
            run[runs - 1].faces++;
        else
            run[runs++] = (struct mesh_run){ 1, like[i] };
    rc = mesh_extra_grow(m, run, runs, &data_malloc, &grown, left, fault);
    if (rc) {
        free(index);
        return rc;
    }
    memcpy(index, m->index, 12 * m->faces);
    for (uint64_t i = 0; i < n; i++)
        memcpy(index + 3 * (m->faces + i), m->index + 3 * (uint64_t)like[i], 12);
    if (m->joined) {
        m->joined = xrealloc(m->joined, m->faces + n);
        memset(m->joined + m->faces, 0, n);
    }
    free(m->index);
    free(m->extra);
    m->index = index;
    m->extra = grown.extra;
    m->extra_bytes = grown.extra_bytes;
    m->faces += n;
    return 0;
}

static void more_marks(void **state)
{
    static const uint32_t like[] = { 0, 2, 2, 3, 1, 4 };
    struct mesh_written w;
    struct fault fault = { 0 };
    struct recon_mesh m;
    struct str t;
    bool left = true;

    (void)state;
    put_text("m.mtl", "newmtl wood\nKd 1 0 0\nnewmtl glass\nd 0.5\n");
    put_text("m.obj", LIBRARY("m.mtl") TRIANGLE TRIANGLE "f 1 2 3\no one\nusemtl wood\nf 1 3 4\ng side\nusemtl glass\nf 1 2 5\nf 2 3 5\no two\ns 1\nf 3 4 5\no none\n");
    read_mesh("m.obj", &m, 1);
    assert_int_equal(grow(&m, like, 6, &left, &fault), 0);
    assert_false(left);
    write_mesh("m2.obj", &m, &w);
    mesh_written_release(&w);
    t = get("m2.obj");
    has(t.s, "o two\ns 1\nf 3 4 5\no none\nusemtl\nf 1 2 3\no one\nusemtl glass\nf 1 2 5\nf 1 2 5\nf 2 3 5\n"
             "usemtl wood\nf 1 3 4\no two\nusemtl glass\nf 3 4 5\n");
    str_release(&t);
    drop(&m);
}

static void more_rows(void **state)
{
    static const uint32_t like[] = { 4, 0, 2, 1, 4, 3 };
    struct mesh_written w;
    struct fault fault = { 0 };
    struct recon_mesh m;
    struct str t;
    bool left;

    (void)state;
    put_text("r.ply", "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\nelement face 3\n"
                      "property list uchar int vertex_indices\nproperty uchar a\nend_header\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3 7\n4 1 2 3 0 8\n3 0 1 2 9\n");
    read_mesh("r.ply", &m, 1);
    assert_int_equal(m.faces, 5);
    assert_int_equal(grow(&m, like, 3, &left, &fault), 0);
    assert_false(left);
    write_mesh("r2.ply", &m, &w);
    mesh_written_release(&w);
    t = get("r2.ply");
    has(t.s, "element face 6\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(t.s[t.len - 1 - 14 * (size_t)i], "\10\7\11"[i]);
    str_release(&t);
    drop(&m);
    read_mesh("r.ply", &m, 1);
    assert_int_equal(grow(&m, like, 6, &left, &fault), 0); /* more than there were polygons */
    assert_true(left);
    write_mesh("r3.ply", &m, &w);
    mesh_written_release(&w);
    t = get("r3.ply");
    has(t.s, "element face 9\nproperty list uchar int vertex_indices\nend_header\n");
    str_release(&t);
    m.extra[8]++; /* bytes of marks */
    assert_int_equal(grow(&m, like, 1, &left, &fault), -1);
    assert_int_equal(fault.err.code, CODE_INTERNAL);
    for (m.extra[8]--; m.extra_bytes > 0;) {
        m.extra_bytes--;
        assert_int_equal(grow(&m, like, 1, &left, &fault), -1);
    }
    drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(obj_to_glb),
        cmocka_unit_test(glb_as_it_was),
        cmocka_unit_test(ply_columns),
        cmocka_unit_test(ply_empty_faces),
        cmocka_unit_test(ply_textures),
        cmocka_unit_test(more_marks),
        cmocka_unit_test(more_rows),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
