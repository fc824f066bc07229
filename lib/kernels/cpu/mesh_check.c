#include "config.h"
#include "kernels/cpu/mesh_cpu.h"

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    struct census c;

    (void)out;
    if (mesh_census(ctx, in[0], &c))
        return -1;
    census_bound(ctx, in, p, cost);
    return census_report(ctx, p, &c);
}

static int selftest(struct recon_ctx *ctx)
{
    return census_selftest(ctx, &cpu_mesh_check, NULL);
}

const struct recon_kernel cpu_mesh_check = { RECON_KERNEL_ABI,  MESH_CHECK_NAME, MESH_CHECK_DOC, mesh_check_in, mesh_check_out,
                                             mesh_check_params, census_bound,    run,            selftest,      NULL };
