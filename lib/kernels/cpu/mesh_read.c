#include "config.h"
#include "data/data.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/plan.h"

#include <stdlib.h>
#include <sys/stat.h>

static const char *const mesh_files[] = { "mesh.ply", "mesh.obj", "mesh.off", "mesh.glb", NULL };
static const char *const points_files[] = { "points.ply", "points.pcd", "points.xyz", "points.npy", NULL };

static char *input_path(struct recon_ctx *ctx, const char *file, const char *const *usual)
{
    struct stat st;

    if (file[0])
        return path_join(ctx->dataset, file);
    if (stat(ctx->dataset, &st) || !S_ISDIR(st.st_mode))
        return xstrdup(ctx->dataset);
    for (const char *const *u = usual; *u; u++) {
        char *path = path_join(ctx->dataset, *u);

        if (stat(path, &st) == 0)
            return path;
        free(path);
    }
    return path_join(ctx->dataset, usual[0]);
}

/* The file itself, then what its bytes can become: a corner of a polygon is a triangle of twelve bytes, in an OBJ of 37 with those of
 * its texture coordinates and normals, and takes at least two bytes of text or one of a binary PLY (25 with those of texture coordinates); a mark of 16 bytes takes
 * two ("g"); LZF makes up to 88 bytes of one; glb_parse keeps below 40, images and their JSON below 4. */
static uint64_t growth_of(const char *path)
{
    static const struct {
        const char *suffix;
        uint64_t most;
    } rows[] = { { ".ply", 27 }, { ".glb", 45 }, { ".npy", 13 }, { ".pcd", 177 }, { ".obj", 20 } };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_ends(path, rows[i].suffix))
            return rows[i].most;
    return 7;
}

static int file_bound(struct recon_ctx *ctx, const char *file, const char *const *usual, struct recon_cost *cost)
{
    struct stat st;
    char *path;

    if (!ctx->dataset)
        return 0;
    path = input_path(ctx, file, usual);
    if (stat(path, &st) == 0)
        cost->host_bytes = (uint64_t)st.st_size * growth_of(path) + 65536;
    cost->moved_bytes = cost->host_bytes;
    free(path);
    return 0;
}

static int mesh_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    (void)in;
    return file_bound(ctx, p[MESH_READ_FILE].s, mesh_files, cost);
}

static int points_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    (void)in;
    return file_bound(ctx, p[POINTS_READ_FILE].s, points_files, cost);
}

static uint64_t file_size(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void warn(void *self, const char *rule, const char *object, const char *text)
{
    struct recon_ctx *ctx = self;

    ctx->host->log(ctx, RECON_WARN, rule, object, "%s", text);
}

static int take_offset(struct recon_ctx *ctx, const struct recon_value *v, struct geom_options *o)
{
    if (v->n && v->n != 3)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "offset", "offset has %u numbers, x, y and z are wanted", v->n);
    for (uint32_t i = 0; i < v->n; i++)
        o->offset[i] = v->v[i];
    return 0;
}

static void tell_notes(struct recon_ctx *ctx, const char *path, const struct mesh_notes *n)
{
    if (n->polygons)
        ctx->host->log(ctx, RECON_NOTE, NULL, path, "%llu polygons are cut into triangles", (unsigned long long)n->polygons);
    if (n->uv_out)
        ctx->host->log(ctx, RECON_WARN, "uv-out-of-range", path, "'%s': %llu faces have texture coordinates outside 0 to 1", path,
                       (unsigned long long)n->uv_out);
    if (n->other)
        ctx->host->log(ctx, RECON_WARN, NULL, path, "%llu lines that are of no mesh (points, lines, curves) are passed over, the first is line %llu",
                       (unsigned long long)n->other, (unsigned long long)n->other_line);
    if (n->unknown_materials)
        ctx->host->log(ctx, RECON_WARN, NULL, path, "%llu materials are named by faces and defined nowhere", (unsigned long long)n->unknown_materials);
}

static int mesh_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct data_alloc alloc = ctx_alloc(ctx);
    struct geom_options o = { .threads = ctx->threads, .plain = p[MESH_READ_KEEP].i == MESH_READ_GEOMETRY, .warn = warn, .warn_self = ctx };
    struct stat st;
    struct mesh_notes notes;
    struct recon_mesh *m = out[0];
    struct fault fault = { 0 };
    char *path;
    int rc;

    (void)in;
    if (!ctx->dataset)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "dataset", "no dataset to read a mesh from");
    if (take_offset(ctx, &p[MESH_READ_OFFSET], &o))
        return -1;
    path = input_path(ctx, p[MESH_READ_FILE].s, mesh_files);
    o.root = stat(ctx->dataset, &st) == 0 && S_ISDIR(st.st_mode) ? ctx->dataset : NULL;
    rc = mesh_read(path, &o, &alloc, m, &notes, &fault);
    if (rc)
        rc = ctx->host->fail(ctx, fault.err.code, fault.rule, path, "%s", fault.err.text);
    if (rc == 0)
        tell_notes(ctx, path, &notes);
    if (rc == 0) {
        geom_doubts(m->xyz, m->vertices, false, warn, ctx);
        cost->items = m->vertices + m->faces;
        cost->host_bytes = m->vertices * (12 + (m->normals ? 12 : 0) + (m->rgb ? 3 : 0)) + m->faces * 12 + mesh_beyond(m);
        cost->moved_bytes = cost->host_bytes + 3 * file_size(path); /* read, and gone over twice */
    }
    free(path);
    return rc;
}

static int points_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct data_alloc alloc = ctx_alloc(ctx);
    struct geom_options o = { .drop = p[POINTS_READ_NONFINITE].i == 0, .drop_zero = p[POINTS_READ_ZERO].i == 1 };
    struct mesh_notes notes;
    struct recon_points *r = out[0];
    struct fault fault = { 0 };
    char *path;
    int rc;

    (void)in;
    if (!ctx->dataset)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "dataset", "no dataset to read points from");
    if (take_offset(ctx, &p[POINTS_READ_OFFSET], &o))
        return -1;
    path = input_path(ctx, p[POINTS_READ_FILE].s, points_files);
    rc = points_read(path, &o, &alloc, r, &notes, &fault);
    if (rc)
        rc = ctx->host->fail(ctx, fault.err.code, fault.rule, path, "%s", fault.err.text);
    if (rc == 0 && notes.dropped)
        ctx->host->log(ctx, RECON_WARN, "vertex-nan", path, "'%s': %llu of %llu points are not finite and left out", path,
                       (unsigned long long)notes.dropped, (unsigned long long)(notes.dropped + notes.zeros + r->n));
    if (rc == 0 && notes.zeros)
        ctx->host->log(ctx, RECON_NOTE, NULL, path, "%llu points with z = 0 are left out", (unsigned long long)notes.zeros);
    if (rc == 0) {
        geom_doubts(r->xyz, r->n, true, warn, ctx);
        cost->items = r->n;
        cost->host_bytes = r->n * (12 + (r->normals ? 12 : 0) + (r->rgb ? 3 : 0));
        cost->moved_bytes = cost->host_bytes + 2 * file_size(path);
    }
    free(path);
    return rc;
}

static int write_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    (void)ctx;
    (void)in;
    (void)p;
    cost->host_bytes = 1 << 17;
    return 0;
}

static int points_write_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_points *r = in[0];
    struct recon_mesh m = { .vertices = r->n, .xyz = r->xyz, .normals = r->normals, .rgb = r->rgb };
    char *path = plan_output(ctx, p[POINTS_WRITE_FILE].s);
    struct err err = { 0 };
    int rc = path ? 0 : -1;

    (void)out;
    if (rc == 0 && !str_ends(path, ".ply"))
        rc = ctx->host->fail(ctx, CODE_USAGE, NULL, "file", "file '%s' must end in .ply", p[POINTS_WRITE_FILE].s);
    if (rc == 0 && ply_write(path, &m, NULL, &err))
        rc = ctx->host->fail(ctx, err.code, NULL, path, "%s", err.text);
    if (rc == 0)
        ctx->host->output(ctx, path);
    cost->items = r->n;
    cost->moved_bytes = r->n * (12 + (r->normals ? 12 : 0) + (r->rgb ? 3 : 0));
    free(path);
    return rc;
}

/* through a file and back, in each form that is written and read */
static int selftest(struct recon_ctx *ctx)
{
    float xyz[12] = { 0, 0, 0, 1.5f, 0, 0, 0, 1, 0, 0, 0, 0.1f };
    uint32_t index[12] = { 0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3 };
    struct recon_mesh m = { .vertices = 4, .faces = 4, .xyz = xyz, .index = index }, back = { 0 };
    char dir[] = "/tmp/recon-selftest.XXXXXX";
    int rc = 0;

    if (!mkdtemp(dir))
        return ctx->host->fail(ctx, CODE_CREATE, NULL, dir, "cannot create a folder in /tmp for the self-test");
    for (int i = 0; rc == 0 && i < 3; i++) {
        char *path = path_join(dir, i == 0 ? "mesh.ply" : i == 1 ? "mesh.obj" : "mesh.glb");
        struct mesh_notes notes;
        struct fault fault = { 0 };

        rc = mesh_write(path, &m, NULL, &fault.err);
        if (rc == 0)
            rc = mesh_read(path, &(struct geom_options){ .threads = 1 }, &data_malloc, &back, &notes, &fault);
        if (rc)
            ctx->host->fail(ctx, CODE_INTERNAL, NULL, path, "%s", fault.err.text);
        else if (back.vertices != 4 || back.faces != 4 || memcmp(back.xyz, xyz, sizeof(xyz)) || memcmp(back.index, index, sizeof(index)))
            rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, path, "a mesh is not read as it was written");
        free(back.xyz);
        free(back.index);
        back = (struct recon_mesh){ 0 };
        free(path);
    }
    dir_remove(dir);
    return rc;
}

const struct recon_kernel cpu_mesh_read = { RECON_KERNEL_ABI, MESH_READ_NAME,   MESH_READ_DOC, mesh_read_in, mesh_read_out,
                                            mesh_read_params, mesh_bound,       mesh_run,      selftest,     NULL };
const struct recon_kernel cpu_points_read = { RECON_KERNEL_ABI,   POINTS_READ_NAME, POINTS_READ_DOC, points_read_in, points_read_out,
                                              points_read_params, points_bound,     points_run,      selftest,       NULL };
const struct recon_kernel cpu_points_write = { RECON_KERNEL_ABI,    POINTS_WRITE_NAME, POINTS_WRITE_DOC, points_write_in, points_write_out,
                                               points_write_params, write_bound,       points_write_run, selftest,        NULL };
