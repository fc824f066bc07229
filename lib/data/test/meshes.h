/* data/test/meshes.h - what the tests of mesh and point files share: a file of bytes, a mesh of numbers. After cmocka.h. */
#ifndef DATA_TEST_MESHES_H
#define DATA_TEST_MESHES_H

#include "data/geom.h"
#include "data/test/files.h"

#define TRIANGLE "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
#define BYTES(s) s, sizeof(s) - 1

static inline char *put(const char *name, const void *p, size_t n)
{
    put_file(name, p, n);
    return at(name);
}

static inline int read_bytes(const char *name, const void *p, size_t n, int threads, struct recon_mesh *m, struct mesh_notes *notes, struct fault *fault)
{
    char *path = put(name, p, n);
    int rc;

    *fault = (struct fault){ 0 };
    rc = mesh_read(path, &(struct geom_options){ .threads = threads }, &data_malloc, m, notes, fault);
    free(path);
    return rc;
}

static inline void drop(struct recon_mesh *m)
{
    mesh_drop(m, &data_malloc);
}

static inline struct recon_mesh made(uint32_t n, bool normals, bool rgb)
{
    struct recon_mesh m = { 0 };
    uint32_t seed = n;

    assert_int_equal(mesh_arrays(&m, n, normals, rgb, &data_malloc, NULL), 0);
    assert_int_equal(mesh_indices(&m, 2 * n, &data_malloc, NULL), 0);
    for (uint32_t i = 0; i < 6 * n; i++) {
        seed = seed * 1664525u + 1013904223u;
        m.index[i] = seed % n;
        if (i < 3 * n) {
            m.xyz[i] = (float)((double)seed / 1e9 - 2) * (i % 7 ? 1 : 1e-12f);
            if (normals)
                m.normals[i] = (float)((double)seed / 4e9);
            if (rgb)
                m.rgb[i] = (uint8_t)(seed >> 24);
        }
    }
    return m;
}

/* ---- what goes along ---- */

#define LIBRARY(name) "mtllib " name "\n"
#define BOX "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.5 1\nvt 0 0\nvt 1 0.25\nvt 1 1\nvt 0 0.125\nvn 0 0 -1\nvn 0 1 0\n"

static char told[8000];
static inline void take_told(void *self, const char *rule, const char *object, const char *text)
{
    (void)self;
    (void)object;
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s: %s\n", rule ? rule : "", text);
}

static inline void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

static inline void put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

static inline void read_mesh(const char *name, struct recon_mesh *m, int threads)
{
    char *path = at(name);
    struct mesh_notes notes;
    struct fault fault = { 0 };

    told[0] = 0;
    if (mesh_read(path, &(struct geom_options){ .threads = threads, .warn = take_told }, &data_malloc, m, &notes, &fault))
        fail_msg("%s: %s", name, fault.err.text);
    free(path);
}

static inline void write_mesh(const char *name, const struct recon_mesh *m, struct mesh_written *w)
{
    char *path = at(name);
    struct err err = { 0 };

    *w = (struct mesh_written){ 0 };
    if (mesh_write(path, m, w, &err))
        fail_msg("%s: %s", name, err.text);
    free(path);
}

#endif
