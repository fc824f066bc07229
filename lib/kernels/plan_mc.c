#include "config.h"
#include "kernels/plan.h"
#include "kernels/mc.h"
#include "base/base.h"

#include <math.h>

int mc_refuse_range(struct recon_ctx *ctx, double low, double high, uint64_t observed,
                    const struct mc_rule *rule)
{
    if (!observed)
        return ctx->host->fail(
            ctx, CODE_DATA, "empty-result", "volume",
            "no sample has a weight above %g, so there is no surface: check min_weight and the fusion",
            rule->min_weight);
    return ctx->host->fail(
        ctx, CODE_DATA, "empty-result", "volume",
        "no surface: the observed values go from %g to %g and do not cross iso %g in a cell whose corners "
        "are all observed%s",
        low, high, rule->iso,
        low >= 1 ? ", only free space was seen: check depth_scale, depth_max and the bounds" : "");
}

int mc_refuse_empty(struct recon_ctx *ctx, const struct recon_volume *v, const struct mc_rule *rule)
{
    uint64_t n = recon_volume_samples(v), observed = 0;
    double low = INFINITY, high = -INFINITY;

    for (uint64_t i = 0; i < n; i++) {
        if (v->weight && rule->min_weight >= 0 && !(v->weight[i] > rule->min_weight))
            continue;
        observed++;
        low = v->tsdf[i] < low ? v->tsdf[i] : low;
        high = v->tsdf[i] > high ? v->tsdf[i] : high;
    }
    return mc_refuse_range(ctx, low, high, observed, rule);
}

static uint64_t guess_vertices(const struct recon_volume *v)
{
    uint64_t n = (uint64_t)(32 * pow((double)(v->dim[0] + 2) * (v->dim[1] + 2) * (v->dim[2] + 2), 2.0 / 3)),
             blocks = v->blocks * 4 * v->side * v->side;

    return v->side && v->blocks && blocks < n ? blocks : n;
}

int mc_shape(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out)
{
    const struct recon_volume *v = in ? in[0] : NULL;
    struct recon_mesh *m = out[0];

    (void)ctx;
    (void)params;
    if (v && v->dim[0]) {
        m->vertices = guess_vertices(v);
        m->faces = 2 * m->vertices;
    }
    return 0;
}

void mc_bound(const struct recon_volume *v, int bytes_a_sample, struct recon_cost *cost)
{
    uint64_t rows = (uint64_t)(v->dim[0] + 2) * (v->dim[1] + 2), n = rows * (v->dim[2] + 2);
    uint64_t vertices = guess_vertices(v), held = v->side && v->blocks ? recon_volume_samples(v) : n;

    cost->host_bytes = n * (uint64_t)bytes_a_sample + rows * 16 + vertices * (12 + 24 + (v->rgb ? 3 : 0));
    cost->items = held;
    cost->moved_bytes = held * (8 + 2 * (uint64_t)bytes_a_sample) + vertices * 36;
    cost->flops = held * 2 + vertices * 20;
}

void mc_cost(const struct recon_volume *v, const struct recon_mesh *m, int bytes_a_sample,
             struct recon_cost *cost)
{
    uint64_t n = recon_volume_samples(v);

    cost->items = n;
    cost->moved_bytes = n * (4 + (v->weight ? 4 : 0)) + m->vertices * (12 + (m->rgb ? 3 : 0)) + m->faces * 12;
    cost->flops = n * 2 + m->vertices * 20;
    cost->host_bytes = n * (uint64_t)bytes_a_sample + m->vertices * (12 + (m->rgb ? 3 : 0)) + m->faces * 12;
}
