/* Meshes and points over any bytes, in each form. What is read has indices in range and finite coordinates, and a mesh that
 * is written and read again is the same. The first byte chooses the form. */
#include "config.h"
#include "data/geom.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_mesh(const struct recon_mesh *m)
{
    must(m->vertices > 0 && m->faces > 0);
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        must(m->index[i] < m->vertices);
    for (uint64_t i = 0; i < 3 * m->vertices; i++)
        must(isfinite(m->xyz[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const suffixes[] = { "ply", "obj", "off", "pcd", "xyz", "xyzn", "xyzrgb", "glb", "npy" };
    struct mesh_notes notes;
    struct fault fault = { 0 };
    struct recon_mesh m = { 0 };
    struct recon_points p = { 0 };
    char path[64];
    FILE *f;

    if (!size)
        return 0;
    snprintf(path, sizeof(path), "%s/recon-fuzz-%d.%s", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid(), suffixes[data[0] % COUNT(suffixes)]);
    f = fopen(path, "w"); /* without file_write's fsync */
    must(f && fwrite(data + 1, 1, size - 1, f) == size - 1 && fclose(f) == 0);
    if (mesh_read(path, &(struct geom_options){ .threads = 1 + data[0] % 3 }, &data_malloc, &m, &notes, &fault))
        must(fault.err.code && *fault.err.text && !strchr(fault.err.text, '\n') && !m.xyz);
    else
        check_mesh(&m);
    mesh_drop(&m, &data_malloc);
    fault = (struct fault){ 0 };
    if (points_read(path, &(struct geom_options){ .drop = true }, &data_malloc, &p, &notes, &fault)) {
        must(fault.err.code && *fault.err.text);
    } else {
        for (uint64_t i = 0; i < 3 * p.n; i++)
            must(isfinite(p.xyz[i]));
        free(p.xyz);
        free(p.normals);
        free(p.rgb);
    }
    unlink(path);
    return 0;
}
