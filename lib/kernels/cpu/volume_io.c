#include "config.h"
#include "data/data.h"
#include "kernels/cpu/cpu.h"
#include "kernels/plan.h"

#include <stdlib.h>
#include <sys/stat.h>

static char *input_path(struct recon_ctx *ctx, const char *file)
{
    struct stat st;

    if (file[0])
        return path_join(ctx->dataset, file);
    if (stat(ctx->dataset, &st) == 0 && S_ISDIR(st.st_mode))
        return path_join(ctx->dataset, "volume.npz");
    return xstrdup(ctx->dataset);
}

static uint64_t volume_bytes(const struct recon_volume *v)
{
    return recon_volume_samples(v) * (8 + (v->rgb ? 3 : 0)) + 12 * v->blocks;
}

static int read_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                      struct recon_cost *cost)
{
    struct recon_volume v = { 0 };
    char *path;

    (void)in;
    if (!ctx->dataset)
        return 0;
    path = input_path(ctx, p[VOLUME_READ_FILE].s);
    if (volume_probe(path, &v, NULL) == 0)
        cost->host_bytes = recon_volume_samples(&v) * 11 + 12 * v.blocks;
    free(path);
    return 0;
}

static int read_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                      void *const *out)
{
    struct recon_volume *v = out[0];
    char *path;

    (void)in;
    if (!ctx->dataset)
        return 0;
    path = input_path(ctx, p[VOLUME_READ_FILE].s);
    if (volume_probe(path, v, NULL))
        *v = (struct recon_volume){ 0 }; /* what is wrong is told by the run */
    free(path);
    return 0;
}

static int read_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                    void *const *out, struct recon_cost *cost)
{
    struct data_alloc alloc = ctx_alloc(ctx);
    struct recon_volume *v = out[0];
    struct fault fault = { 0 };
    char *path;
    int rc;

    (void)in;
    if (!ctx->dataset)
        return ctx->host->fail(ctx, CODE_USAGE, NULL, "dataset", "no dataset to read a volume from");
    path = input_path(ctx, p[VOLUME_READ_FILE].s);
    rc = volume_probe(path, v, &fault);
    if (rc == 0) {
        uint32_t dim[3] = { v->dim[0], v->dim[1], v->dim[2] };

        rc = plan_volume_fits(ctx, dim, recon_volume_samples(v) * 11 + 12 * v->blocks, plan_memory_free(), "host");
        if (rc == 0)
            rc = volume_read(path, &alloc, v, &fault);
    }
    if (rc && fault.err.code)
        ctx->host->fail(ctx, fault.err.code, fault.rule, path, "%s", fault.err.text);
    free(path);
    if (rc)
        return -1;
    if (v->truncation <= 0)
        v->truncation = p[VOLUME_READ_TRUNCATION].f * v->voxel;
    cost->items = recon_volume_samples(v);
    cost->host_bytes = cost->moved_bytes = volume_bytes(v);
    return 0;
}

static int write_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                       struct recon_cost *cost)
{
    (void)ctx;
    (void)in;
    (void)p;
    cost->host_bytes = 1 << 20;
    return 0;
}

static int write_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p,
                     void *const *out, struct recon_cost *cost)
{
    const struct recon_volume *v = in[0];
    char *path = plan_output(ctx, p[VOLUME_WRITE_FILE].s);
    struct err err = { 0 };
    int rc = path ? 0 : -1;

    (void)out;
    if (rc == 0 && volume_write(path, v, p[VOLUME_WRITE_COMPRESS].i != 0, &err))
        rc = ctx->host->fail(ctx, err.code, NULL, path, "%s", err.text);
    if (rc == 0)
        ctx->host->output(ctx, path);
    cost->items = recon_volume_samples(v);
    cost->moved_bytes = volume_bytes(v);
    free(path);
    return rc;
}

/* both ways through a file in memory: what is written is what is read */
static int selftest(struct recon_ctx *ctx)
{
    float tsdf[24], weight[24];
    struct recon_volume v = {.dim = {2, 3, 4},
                             .origin = {1, -2, 3},
                             .voxel = 0.5,
                             .truncation = 2,
                             .tsdf = tsdf,
                             .weight = weight},
                        back = {0};
    char dir[] = "/tmp/recon-selftest.XXXXXX", *path;
    struct fault fault = { 0 };
    int rc;

    for (int i = 0; i < 24; i++) {
        tsdf[i] = (float)i / 16 - 0.7f;
        weight[i] = (float)(i % 3);
    }
    if (!mkdtemp(dir))
        return ctx->host->fail(ctx, CODE_CREATE, NULL, dir,
                               "cannot create a folder in /tmp for the self-test");
    path = path_join(dir, "volume.npz");
    rc = volume_write(path, &v, true, &fault.err);
    if (rc == 0)
        rc = volume_read(path, &data_malloc, &back, &fault);
    if (rc)
        ctx->host->fail(ctx, CODE_INTERNAL, NULL, path, "%s", fault.err.text);
    else if (memcmp(back.dim, v.dim, sizeof(v.dim)) || memcmp(back.tsdf, tsdf, sizeof(tsdf)) ||
             memcmp(back.weight, weight, sizeof(weight)) || back.truncation != 2 || back.origin[1] != -2)
        rc = ctx->host->fail(ctx, CODE_INTERNAL, NULL, path, "a volume is not read as it was written");
    free(back.tsdf);
    free(back.weight);
    free(path);
    dir_remove(dir);
    return rc;
}

const struct recon_kernel cpu_volume_read = {
    RECON_KERNEL_ABI,   VOLUME_READ_NAME, VOLUME_READ_DOC, volume_read_in, volume_read_out,
    volume_read_params, read_bound,       read_run,        selftest,       read_shape};
const struct recon_kernel cpu_volume_write = {
    RECON_KERNEL_ABI,    VOLUME_WRITE_NAME, VOLUME_WRITE_DOC, volume_write_in, volume_write_out,
    volume_write_params, write_bound,       write_run,        selftest,        NULL};
