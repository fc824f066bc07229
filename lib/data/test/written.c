/* Meshes that are written come back; GLB. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "data/test/meshes.h"

static void comes_back(void **state)
{
    static const char *const names[] = { "w.ply", "w.obj", "w.glb" };

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct recon_mesh m = made(i < 4 ? 5 : 4000, i & 1, i & 2), b;
        char *path = path_join(scratch, names[i & 1]);

        for (size_t k = 0; k < COUNT(names); k++)
            for (int threads = 1; threads <= 5; threads += 2) {
                struct mesh_notes notes;
                struct fault fault = { 0 };

                free(path);
                path = path_join(scratch, names[k]);
                assert_int_equal(mesh_write(path, &m, NULL, &fault.err), 0);
                if (mesh_read(path, &(struct geom_options){ .threads = threads }, &data_malloc, &b, &notes, &fault))
                    fail_msg("%s", fault.err.text);
                assert_int_equal(b.vertices, m.vertices);
                assert_int_equal(b.faces, m.faces);
                assert_memory_equal(b.xyz, m.xyz, m.vertices * 12);
                assert_memory_equal(b.index, m.index, m.faces * 12);
                assert_int_equal(!b.normals, !m.normals);
                assert_int_equal(!b.rgb, !m.rgb);
                if (m.normals)
                    assert_memory_equal(b.normals, m.normals, m.vertices * 12);
                if (m.rgb)
                    assert_memory_equal(b.rgb, m.rgb, m.vertices * 3);
                drop(&b);
            }
        free(path);
        drop(&m);
    }
}

static void glb(void **state)
{
    struct recon_mesh m = made(9, true, true), none = { 0 };
    char *path = path_join(scratch, "w.glb");
    struct err err = { 0 };
    struct str t = { 0 };
    uint32_t head[5], bin;

    (void)state;
    assert_int_equal(mesh_write(path, &m, NULL, &err), 0);
    assert_int_equal(file_read(path, 1 << 20, &t, NULL), 0);
    memcpy(head, t.s, 20);
    assert_int_equal(head[0], 0x46546c67);
    assert_int_equal(head[1], 2);
    assert_int_equal(head[2], t.len);
    assert_int_equal(head[3] % 4, 0);
    assert_int_equal(head[4], 0x4e4f534a);
    memcpy(&bin, t.s + 20 + head[3], 4);
    assert_int_equal(bin, 9 * (12 + 12 + 4) + 18 * 12);
    assert_memory_equal(t.s + 28 + head[3], m.xyz, 9 * 12);
    assert_memory_equal(t.s + t.len - 18 * 12, m.index, 18 * 12);
    assert_non_null(strstr(t.s + 20, "\"min\":["));
    str_release(&t);
    assert_int_equal(mesh_write(path, &none, NULL, &err), -1);
    assert_int_equal(err.code, CODE_DATA);
    free(path);
    path = path_join(scratch, "w.xyz");
    assert_int_equal(mesh_write(path, &m, NULL, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    free(path);
    drop(&m);
}

/* a GLB of two nodes with one triangle: the second is mirrored, turned, moved. pad: of JSON */
static struct str made_glb(const char *more)
{
    static const float xyz[9] = { 0, 0, 0, 1, 0, 0, 0, 2, 0 };
    static const uint16_t index[4] = { 0, 1, 2, 0 };
    struct str t = { 0 }, json = { 0 };
    uint32_t head[5], bin[2] = { 44, 0x004e4942 };

    str_addf(&json,
             "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0,\"children\":[1]},"
             "{\"mesh\":0,\"scale\":[1,1,-1],\"rotation\":[0,0,0.70710678118654757,0.70710678118654757],\"translation\":[10,0,5.5e0]}],"
             "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0},\"indices\":1}]}],"
             "\"accessors\":[{\"bufferView\":0,\"componentType\":5126,\"count\":3,\"type\":\"VEC3\"},"
             "{\"bufferView\":1,\"componentType\":5123,\"count\":3,\"type\":\"SCALAR\"}],"
             "\"bufferViews\":[{\"buffer\":0,\"byteLength\":36},{\"buffer\":0,\"byteOffset\":36,\"byteLength\":6}],"
             "\"buffers\":[{\"byteLength\":44}]%s}",
             more);
    while (json.len % 4)
        str_add(&json, " ");
    memcpy(head, (uint32_t[5]){ 0x46546c67, 2, (uint32_t)(28 + json.len + 44), (uint32_t)json.len, 0x4e4f534a }, 20);
    str_addn(&t, head, 20);
    str_addn(&t, json.s, json.len);
    str_addn(&t, bin, 8);
    str_addn(&t, xyz, 36);
    str_addn(&t, index, 8);
    str_release(&json);
    return t;
}

static void glb_read(void **state)
{
    /* (x, y, z) to (-y + 10, x, -z + 5.5), the face turned */
    static const float want[18] = { 0, 0, 0, 1, 0, 0, 0, 2, 0, 10, 0, 5.5f, 10, 1, 5.5f, 8, 0, 5.5f };
    static const uint32_t faces[6] = { 0, 1, 2, 3, 5, 4 };
    struct str t = made_glb("");
    struct mesh_notes notes;
    struct recon_mesh m;
    struct fault fault;

    (void)state;
    if (read_bytes("n.glb", t.s, t.len, 1, &m, &notes, &fault))
        fail_msg("%s", fault.err.text);
    assert_int_equal(m.vertices, 6);
    assert_int_equal(m.faces, 2);
    for (int i = 0; i < 18; i++)
        assert_true(fabsf(m.xyz[i] - want[i]) < 1e-6f);
    assert_memory_equal(m.index, faces, sizeof(faces));
    drop(&m);
    for (size_t n = 0; n < t.len; n++) {
        assert_int_equal(read_bytes("n.glb", t.s, n, 1, &m, &notes, &fault), -1);
        assert_null(strchr(fault.err.text, '\n'));
    }
    t.s[t.len - 6] = 3; /* an index of three vertices */
    assert_int_equal(read_bytes("n.glb", t.s, t.len, 1, &m, &notes, &fault), -1);
    assert_string_equal(fault.rule, "face-index-out-of-range");
    str_release(&t);
    t = made_glb(",\"extensionsRequired\":[\"KHR_draco_mesh_compression\"]");
    assert_int_equal(read_bytes("n.glb", t.s, t.len, 1, &m, &notes, &fault), -1);
    assert_non_null(strstr(fault.err.text, "KHR_draco_mesh_compression"));
    str_release(&t);
    for (int known = 0; known < 2; known++) { /* an image that nothing tells the form of could not be written again */
        t = made_glb(known ? ",\"materials\":[{}],\"images\":[{\"bufferView\":1,\"mimeType\":\"image/webp\"}]"
                            : ",\"materials\":[{}],\"images\":[{\"bufferView\":1}]");
        assert_int_equal(read_bytes("n.glb", t.s, t.len, 1, &m, &notes, &fault), known ? 0 : -1);
        if (known)
            drop(&m);
        else
            assert_non_null(strstr(fault.err.text, "image 0 is neither PNG nor JPEG"));
        str_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(glb),
        cmocka_unit_test(glb_read),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
