#include "config.h"
#include "data/data.h"
#include "kernels/cpu/cpu.h"
#include "kernels/mesh_plan.h"

#include <stdlib.h>

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                 struct recon_cost *cost)
{
    (void)ctx;
    (void)in;
    (void)p;
    cost->host_bytes = 1 << 17;
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out,
               struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    char *path = plan_output(ctx, p[MESH_WRITE_FILE].s);
    struct mesh_written w = { 0 };
    struct err err = { 0 };
    int rc = path ? 0 : -1;

    (void)out;
    if (rc == 0 && mesh_write(path, m, &w, &err))
        rc = ctx->host->fail(ctx, err.code, NULL, path, "%s", err.text);
    for (size_t i = 0; rc == 0 && i < w.files.n; i++)
        ctx->host->output(ctx, w.files.v[i]);
    for (size_t i = 0; rc == 0 && i < w.left_out.n; i++)
        ctx->host->log(ctx, RECON_WARN, NULL, p[MESH_WRITE_FILE].s, "%s", w.left_out.v[i]);
    cost->items = m->vertices;
    cost->moved_bytes = m->vertices * (12 + (m->normals ? 12 : 0) + (m->rgb ? 3 : 0)) + m->faces * 12 + mesh_beyond(m);
    mesh_written_release(&w);
    free(path);
    return rc;
}

/* a triangle, byte for byte */
static int selftest(struct recon_ctx *ctx)
{
    float xyz[9] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    uint32_t index[3] = { 0, 1, 2 };
    struct recon_mesh m = { .vertices = 3, .faces = 1, .xyz = xyz, .index = index };
    char dir[] = "/tmp/recon-selftest.XXXXXX", *path;
    struct str t = { 0 };
    struct err err = { 0 };
    int rc;

    if (!mkdtemp(dir))
        return ctx->host->fail(ctx, CODE_CREATE, NULL, dir,
                               "cannot create a folder in /tmp for the self-test");
    path = path_join(dir, "mesh.ply");
    rc = ply_write(path, &m, NULL, &err) || file_read(path, 4096, &t, &err);
    if (rc)
        ctx->host->fail(ctx, CODE_INTERNAL, NULL, path, "%s", err.text);
    else if (t.len < 49 || memcmp(t.s + t.len - 49, xyz, 36) || t.s[t.len - 13] != 3 ||
             memcmp(t.s + t.len - 12, index, 12))
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, path, "a triangle is not written as it is");
    str_release(&t);
    free(path);
    dir_remove(dir);
    return rc ? -1 : 0;
}

const struct recon_kernel cpu_mesh_write = {RECON_KERNEL_ABI,
                                            MESH_WRITE_NAME,
                                            MESH_WRITE_DOC,
                                            mesh_write_in,
                                            mesh_write_out,
                                            mesh_write_params,
                                            bound,
                                            run,
                                            selftest,
                                            NULL};
