/* Meshes and points over any bytes, in each form. What is read has indices in range and finite coordinates, what goes along is
 * consistent, and a mesh that is written in each form and read again has as many faces. The first byte chooses the form. */
#include "config.h"
#include "data/extra.h"
#include "data/geom.h"
#include "data/obj.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_corners(const uint32_t *index, const float *values, uint64_t n, uint64_t faces)
{
    for (uint64_t i = 0; index && i < 3 * faces; i++)
        must(index[i] == RECON_NONE || index[i] < n);
    must(!index || values || !faces);
}

/* With faces more, like the first, the last and one between, what goes along is consistent, too. */
static void check_grown(const struct recon_mesh *m)
{
    struct mesh_run run[] = { { 1, 0 }, { 2, (uint32_t)m->faces - 1 }, { 1, (uint32_t)m->faces / 2 } };
    struct recon_mesh grown = *m;
    struct fault fault = { 0 };
    struct extra e;
    bool left;

    must(mesh_extra_grow(m, run, COUNT(run), &data_malloc, &grown, &left, &fault) == 0);
    grown.faces = m->faces + 4;
    grown.joined = NULL;
    if (m->joined) {
        grown.joined = xcalloc(grown.faces, 1);
        memcpy(grown.joined, m->joined, m->faces);
    }
    must(extra_unpack(&grown, &e, NULL) == 0);
    extra_free(&e);
    free(grown.joined);
    free(grown.extra);
}

static void check_mesh(const struct recon_mesh *m)
{
    struct extra e;

    must(m->vertices > 0 && m->faces > 0);
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        must(m->index[i] < m->vertices);
    for (uint64_t i = 0; i < 3 * m->vertices; i++)
        must(isfinite(m->xyz[i]));
    for (uint64_t i = 0; m->uv && i < 2 * m->uvs; i++)
        must(isfinite(m->uv[i]));
    must(!m->uv || m->uv_index || m->uvs == m->vertices);
    check_corners(m->uv_index, m->uv, m->uvs, m->faces);
    check_corners(m->normal_index, m->corner_normal, m->corner_normals, m->faces);
    must(extra_unpack(m, &e, NULL) == 0);
    extra_free(&e);
    if (m->extra)
        check_grown(m);
}

static void same_meshes(const struct recon_mesh *a, const struct recon_mesh *b)
{
    must(a->vertices == b->vertices && a->faces == b->faces && a->uvs == b->uvs && a->corner_normals == b->corner_normals && a->extra_bytes == b->extra_bytes);
    must(memcmp(a->xyz, b->xyz, 12 * a->vertices) == 0 && memcmp(a->index, b->index, 12 * a->faces) == 0);
    must(!a->uv_index == !b->uv_index && (!a->uv_index || memcmp(a->uv_index, b->uv_index, 12 * a->faces) == 0));
    must(!a->extra == !b->extra && (!a->extra || memcmp(a->extra, b->extra, a->extra_bytes) == 0));
}

/* both ways of reading lines find the same, or the same fault */
static void check_ways(const char *path)
{
    const struct obj_quick *wide = obj_wide();
    struct geom_options o = { .threads = 1 };
    struct mesh_notes na = { 0 }, nb = { 0 };
    struct recon_mesh a = { 0 }, b = { 0 };
    struct fault fa = { 0 }, fb = { 0 };
    int rc = obj_parse_by(&obj_plain, path, &o, &data_malloc, &a, &na, &fa);

    if (wide)
        must(obj_parse_by(wide, path, &o, &data_malloc, &b, &nb, &fb) == rc && str_eq(fa.err.text, fb.err.text));
    if (wide && rc == 0) {
        must(memcmp(&na, &nb, sizeof(na)) == 0);
        same_meshes(&a, &b);
    }
    mesh_drop(&a, &data_malloc);
    mesh_drop(&b, &data_malloc);
}

static void write_and_read(const char *stem, const struct recon_mesh *m, const char *suffix)
{
    struct geom_options o = { .threads = 1 };
    struct mesh_written w = { 0 };
    struct mesh_notes notes;
    struct recon_mesh b = { 0 };
    struct err err = { 0 };
    char *path = xasprintf("%s-out.%s", stem, suffix);

    if (mesh_write(path, m, &w, &err)) {
        must(err.code && *err.text);
    } else {
        must(mesh_read(path, &o, &data_malloc, &b, &notes, NULL) == 0 && b.faces == m->faces && b.vertices >= m->vertices);
        check_mesh(&b);
        mesh_drop(&b, &data_malloc);
    }
    for (size_t i = 0; i < w.files.n; i++)
        unlink(w.files.v[i]);
    mesh_written_release(&w);
    free(path);
    path = xasprintf("%s-out-textures", stem);
    rmdir(path);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const suffixes[] = { "ply", "obj", "off", "pcd", "xyz", "xyzn", "xyzrgb", "glb", "npy" };
    static const char *const written[] = { "obj", "ply", "glb" };
    struct mesh_notes notes;
    struct fault fault = { 0 };
    struct recon_mesh m = { 0 };
    struct recon_points p = { 0 };
    char path[80], stem[64];
    FILE *f;

    if (!size)
        return 0;
    snprintf(stem, sizeof(stem), "%s/recon-fuzz-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
    snprintf(path, sizeof(path), "%s.%s", stem, suffixes[data[0] % COUNT(suffixes)]);
    f = fopen(path, "w"); /* without file_write's fsync */
    must(f && fwrite(data + 1, 1, size - 1, f) == size - 1 && fclose(f) == 0);
    if (data[0] % COUNT(suffixes) == 1)
        check_ways(path);
    if (mesh_read(path, &(struct geom_options){ .threads = 1 + data[0] % 3 }, &data_malloc, &m, &notes, &fault)) {
        must(fault.err.code && *fault.err.text && !strchr(fault.err.text, '\n') && !m.xyz);
    } else {
        check_mesh(&m);
        if (data[size - 1] % 4 == 0) /* seldom: files cost more than all else */
            write_and_read(stem, &m, written[data[size - 1] / 4 % COUNT(written)]);
    }
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
