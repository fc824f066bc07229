#include "config.h"

#include <math.h>
#include <stdlib.h>
#include "pipe/pipe_priv.h"

void estimate_release(struct estimate *e)
{
    free(e->steps.v);
    *e = (struct estimate){ 0 };
}

/* Rough ceilings of this host: what one thread copies, measured over 16 MiB, and an operation a nanosecond and thread,
 * which is what branches and divisions leave. They are for telling seconds from hours before a run. */
static void host_ceilings(int threads, double *bytes_per_s, double *flops_per_s)
{
    enum { SIZE = 16 << 20 };
    char *a = malloc(SIZE), *b = malloc(SIZE);
    double best = 1e9;

    for (int i = 0; a && b && i < 3; i++) {
        double start = clock_ms(), ms;

        memset(a, i, SIZE);
        memcpy(b, a, SIZE);
        ms = clock_ms() - start;
        best = ms < best && b[SIZE - 1] == (char)i ? ms : best;
    }
    free(a);
    free(b);
    *bytes_per_s = 3.0 * SIZE / (best / 1e3) * (threads > 4 ? 4 : threads);
    *flops_per_s = 1e9 * threads;
}

static double least_ms(const struct recon_cost *c, double bytes_per_s, double flops_per_s)
{
    double bytes = bytes_per_s > 0 ? (double)c->moved_bytes / bytes_per_s : 0;
    double flops = flops_per_s > 0 ? (double)c->flops / flops_per_s : 0;
    double s = bytes > flops ? bytes : flops;

    return s > 0 ? s * 1e3 : NAN;
}

/* A step that only opens a source of frames costs next to nothing and tells sizes to those after it. */
static bool is_source(const struct recon_kernel *k)
{
    for (const struct recon_port *p = k->out; p && p->name; p++)
        if (p->type != RECON_FRAMES)
            return false;
    return ports_count(k->in) == 0 && ports_count(k->out) > 0;
}

struct estimating {
    struct runner *r;
    const struct plan *p;
    struct estimate *e;
    void **slots;            /* structs without arrays, or open frames; NULL: unknown */
};

static int shape_outputs(struct estimating *x, const struct plan_step *s, const void *const *in)
{
    struct recon_ctx *ctx = runner_ctx(x->r, s);
    void **out = xcalloc(s->n_out + 1, sizeof(*out));
    struct recon_cost unused = { 0 };
    int rc = 0;

    for (uint32_t i = 0; i < s->n_out; i++)
        out[i] = live_new((enum recon_slot)s->kernel->out[i].type, s->on_device ? RECON_DEVICE : RECON_HOST);
    if (is_source(s->kernel))
        rc = s->kernel->run(ctx, in, s->values, out, &unused);
    else if (s->kernel->shape)
        rc = s->kernel->shape(ctx, in, s->values, out);
    else
        rc = 1;
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (rc == 0)
            x->slots[s->out[i]] = out[i];
        else
            free(out[i]);
    }
    free(out);
    return rc < 0 ? -1 : 0;
}

/* What the step takes with the slots that live beside it, each held for what its producer may take. */
static void add_peak(struct estimating *x, size_t at)
{
    uint64_t host = 0, device = 0;

    for (size_t i = 0; i <= at; i++) {
        bool lives = i == at;

        for (size_t j = 0; j < x->p->slots.n; j++)
            lives = lives || (x->p->slots.v[j].producer == (int)i && x->p->slots.v[j].last_use >= (int)at);
        if (lives) {
            host += x->e->steps.v[i].cost.host_bytes;
            device += x->e->steps.v[i].cost.device_bytes;
        }
    }
    x->e->peak_host = host > x->e->peak_host ? host : x->e->peak_host;
    x->e->peak_device = device > x->e->peak_device ? device : x->e->peak_device;
}

static int estimate_step(struct estimating *x, size_t at, const double ceilings[2], struct err *err)
{
    const struct plan_step *s = &x->p->steps.v[at];
    const void **in = xcalloc(s->n_in + 1, sizeof(*in));
    struct estimate_step *e = VEC_ADD(&x->e->steps);
    struct runner *r = x->r;
    bool given = true;
    char what[160];
    int rc = 0;

    host_begin(&r->state, r->state.args, NULL);
    for (uint32_t i = 0; i < s->n_in; i++) {
        in[i] = s->in[i] < 0 ? NULL : x->slots[s->in[i]];
        given = given && (in[i] || s->in[i] < 0);
    }
    s = runner_choose(r, s, in);
    *e = (struct estimate_step){ .plan = s, .known = given && s->kernel->bound != NULL, .ms = NAN };
    if (e->known)
        rc = s->kernel->bound(runner_ctx(r, s), in, s->values, &e->cost);
    if (rc == 0 && e->known)
        rc = shape_outputs(x, s, in);
    if (rc == 0 && e->known)
        e->ms = s->on_device ? least_ms(&e->cost, r->bytes_per_s, r->flops_per_s)
                             : least_ms(&e->cost, ceilings[0], ceilings[1]);
    add_peak(x, at);
    snprintf(what, sizeof(what), "step '%s'", s->name);
    free(in);
    return rc ? host_failure(&r->state, what, err) : 0;
}

int runner_estimate(struct runner *r, const struct plan *p, const struct run_args *args, struct estimate *ret,
                    struct err *err)
{
    struct estimating x = { .r = r, .p = p, .e = ret };
    double ceilings[2];
    int rc = 0;

    *ret = (struct estimate){ 0 };
    x.slots = xcalloc(p->slots.n + 1, sizeof(*x.slots));
    host_begin(&r->state, args, NULL);
    host_ceilings(r->host.threads, &ceilings[0], &ceilings[1]);
    r->host.dataset = r->gpu.dataset = args->dataset;
    r->host.out = r->gpu.out = args->out;
    for (size_t i = 0; i < p->steps.n && rc == 0; i++)
        rc = estimate_step(&x, i, ceilings, err);
    for (size_t i = 0; i < p->slots.n; i++) {
        struct live l = { .at = { x.slots[i] } };

        live_release(r, &l, p->slots.v[i].type);
    }
    host_reap(&r->state);
    free(x.slots);
    return rc;
}

int runner_selftest(struct runner *r, const struct recon_kernel *k, const struct module *m, const char *scratch,
                    struct err *err)
{
    static const struct run_args none;
    struct recon_ctx *ctx = m->m->device ? &r->gpu : &r->host;
    char what[160];

    snprintf(what, sizeof(what), "self-test of '%s' on %s", k->name, m->m->device ? r->device.name : m->name);
    host_begin(&r->state, &none, NULL);
    ctx->dataset = NULL;
    ctx->out = scratch;
    if (!k->selftest)
        return err_set(err, CODE_JOB, "%s: the kernel brings none", what);
    if (k->selftest(ctx) || r->state.err.code || (m->m->device && r->dev->sync(ctx)))
        return host_failure(&r->state, what, err);
    return 0;
}
