/* data/test/meshes.h - what the tests of mesh and point files share: a file of bytes, a mesh of numbers. After cmocka.h. */
#ifndef DATA_TEST_MESHES_H
#define DATA_TEST_MESHES_H

#include <stdlib.h>
#include "base/test/scratch.h"
#include "data/geom.h"

#define TRIANGLE "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
#define BYTES(s) s, sizeof(s) - 1

static inline char *put(const char *name, const void *p, size_t n)
{
    char *path = path_join(scratch, name);

    assert_int_equal(file_write(path, p, n, 0644, NULL), 0);
    return path;
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

#endif
