#include "config.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "pipe/pipe_priv.h"

#define MARKS 16

int threads_available(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

static double thread_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the runner ---- */

struct runner *runner_new(const struct device *d, int threads, struct err *err)
{
    static const struct run_args none;
    struct runner *r = xcalloc(1, sizeof(*r));

    r->device = *d;
    r->dev = d->module->m->device;
    r->host = (struct recon_ctx){ .abi = RECON_KERNEL_ABI, .host = &host_services, .device = -1,
                                  .threads = threads > 0 ? threads : threads_available(), .runner = &r->state };
    r->gpu = r->host;
    host_begin(&r->state, &none, NULL);
    if (!r->dev)
        return r;
    if (r->dev->open(&r->gpu, d->index)) {
        host_failure(&r->state, d->name, err);
        free(r);
        return NULL;
    }
    r->dev->ceilings(&r->gpu, &r->bytes_per_s, &r->flops_per_s);
    return r;
}

void runner_free(struct runner *r)
{
    static const struct run_args none;

    if (r && r->dev) {
        host_begin(&r->state, &none, NULL);
        r->dev->close(&r->gpu);
    }
    free(r);
}

struct recon_ctx *runner_ctx(struct runner *r, const struct plan_step *s)
{
    return s->on_device ? &r->gpu : &r->host;
}

const struct plan_step *runner_choose(struct runner *r, const struct plan_step *s, const void *const *in)
{
    char why[200] = "";

    if (!s->host || !s->module->m->elsewhere(&r->gpu, s->kernel, in, s->values, why, sizeof(why)))
        return s;
    r->host.host->log(&r->host, RECON_NOTE, NULL, s->name, "step '%s' runs on the host: module '%s': %s", s->name, s->module->name, why);
    return s->host;
}

void run_report_release(struct run_report *r)
{
    free(r->steps.v);
    strv_release(&r->outputs);
    *r = (struct run_report){ 0 };
}

/* ---- one run ---- */

struct run {
    struct runner *r;
    const struct plan *p;
    const struct run_args *args;
    struct run_report *report;
    struct live *live; /* by slot */
    size_t told;       /* steps whose events are written */
    size_t pending[MARKS / 2]; /* steps whose marks are not read yet */
    int n_pending;
};

static enum recon_place place_of(const struct plan_step *s, const struct recon_port *port)
{
    return s->on_device && port->type != RECON_FRAMES && !(port->flags & RECON_PORT_HOST) ? RECON_DEVICE : RECON_HOST;
}

static double share(const struct runner *r, const struct run_step *s)
{
    double bytes = r->bytes_per_s > 0 ? (double)s->cost.moved_bytes / r->bytes_per_s : 0;
    double flops = r->flops_per_s > 0 ? (double)s->cost.flops / r->flops_per_s : 0;
    double least = bytes > flops ? bytes : flops;

    return s->plan->on_device && s->device_ms > 0 && least > 0 ? least * 1e3 / s->device_ms : NAN;
}

static void tell_step(const struct run *x, const struct run_step *s)
{
    struct event_step e = {
        .dataset = x->args->index, .name = s->plan->name, .kernel = s->plan->kernel->name,
        .device = s->plan->on_device ? x->r->device.name : s->plan->module->name,
        .wall_ms = s->wall_ms, .busy_ms = s->busy_ms, .wait_ms = s->wait_ms, .device_ms = s->device_ms,
        .copy_ms = s->copy_ms, .bytes = s->cost.moved_bytes, .flops = s->cost.flops, .items = s->cost.items,
        .peak_host = s->peak_host, .peak_device = s->peak_device, .share_of_peak = s->share_of_peak,
    };

    if (x->args->events)
        events_step(x->args->events, &e);
}

/* Waits for the device, reads the marks of the steps since the last time, writes their events. */
static int settle(struct run *x)
{
    struct runner *r = x->r;
    int rc = x->n_pending ? r->dev->sync(&r->gpu) : 0;

    for (int i = 0; i < x->n_pending; i++) {
        struct run_step *s = &x->report->steps.v[x->pending[i]];

        if (rc == 0 && s->device_ms <= 0)
            rc = r->dev->elapsed(&r->gpu, 2 * i, 2 * i + 1, &s->device_ms);
        s->share_of_peak = share(r, s);
    }
    x->n_pending = 0;
    for (; x->told < x->report->steps.n; x->told++)
        tell_step(x, &x->report->steps.v[x->told]);
    return rc;
}

/* Inputs to where the kernel wants them. A copy ends what is under way on the device, and is a step's own time. */
static int gather(struct run *x, const struct plan_step *s, const void **in, struct run_step *t)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        enum recon_place place = place_of(s, &s->kernel->in[i]);
        struct live *l = s->in[i] < 0 ? NULL : &x->live[s->in[i]];
        double start = clock_ms();

        in[i] = NULL;
        if (!l)
            continue;
        if (!l->at[place]) {
            if (settle(x))
                return -1;
            t->wait_ms += clock_ms() - start;
            if (live_ensure(x->r, l, (enum recon_slot)s->kernel->in[i].type, place, &t->cost.copied_bytes, &t->copy_ms))
                return -1;
        }
        if (s->kernel->in[i].type == RECON_FRAMES) {
            struct recon_frames *f = l->at[place];

            if (l->used && f->rewind(f))
                return -1;
            l->used = true;
        }
        in[i] = l->at[place];
    }
    return 0;
}

static void scatter(struct run *x, const struct plan_step *s, void **out)
{
    for (uint32_t i = 0; i < s->n_out; i++) {
        enum recon_slot type = (enum recon_slot)s->kernel->out[i].type;
        enum recon_place *place = recon_slot_place(type, out[i]);

        x->live[s->out[i]].at[place ? *place : RECON_HOST] = out[i];
        if (type == RECON_MESH) {
            x->report->vertices = ((const struct recon_mesh *)out[i])->vertices;
            x->report->faces = ((const struct recon_mesh *)out[i])->faces;
        }
    }
}

static void release_used(struct run *x, int at, bool all)
{
    for (size_t i = 0; i < x->p->slots.n; i++)
        if (all || x->p->slots.v[i].last_use == at)
            live_release(x->r, &x->live[i], x->p->slots.v[i].type);
}

/* The call itself between two marks; what it returned. */
static int call(struct run *x, const struct plan_step *s, const void *const *in, void *const *out, struct run_step *t)
{
    struct recon_ctx *ctx = runner_ctx(x->r, s);
    struct recon_cost cost = { 0 };
    int at = x->n_pending, rc;
    double busy;

    if (s->on_device && x->r->dev->mark(ctx, 2 * at))
        return -1;
    busy = thread_ms();
    rc = s->kernel->run(ctx, in, s->values, out, &cost);
    t->busy_ms = thread_ms() - busy;
    if (rc == 0 && s->on_device) {
        rc = x->r->dev->mark(ctx, 2 * at + 1);
        x->pending[x->n_pending++] = x->report->steps.n;
        t->peak_device = x->r->dev->peak(ctx, 1);
    }
    if (rc == 0 && x->r->state.err.code) /* it failed in a service and went on as if nothing were */
        rc = -1;
    cost.copied_bytes += t->cost.copied_bytes;
    t->cost = cost;
    t->copy_ms += cost.copy_ms;
    t->wait_ms += cost.wait_ms;
    t->device_ms = cost.device_ms;
    return rc;
}

/* what a mesh comes in with and does not go out with */
static void tell_lost(struct run *x, const struct plan_step *s, const void *const *in, void *const *out)
{
    for (uint32_t i = 0; i < s->n_in; i++)
        for (uint32_t k = 0; k < s->n_out && in[i] && s->kernel->in[i].type == RECON_MESH; k++) {
            char *lost = s->kernel->out[k].type == RECON_MESH ? live_lost(in[i], out[k]) : NULL;

            if (lost)
                host_services.log(&x->r->host, RECON_WARN, NULL, "mesh", "'%s' does not keep %s", s->kernel->name, lost);
            free(lost);
        }
}

/* Which module runs the step, by what its inputs are. */
static const struct plan_step *choose(struct run *x, const struct plan_step *s, const void **in)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        const struct live *l = s->in[i] < 0 ? NULL : &x->live[s->in[i]];

        in[i] = !l ? NULL : l->at[RECON_HOST] ? l->at[RECON_HOST] : l->at[RECON_DEVICE];
    }
    return runner_choose(x->r, s, in);
}

static int run_step(struct run *x, size_t at, struct err *err)
{
    const struct plan_step *s = &x->p->steps.v[at];
    struct run_step t = { .share_of_peak = NAN };
    const void **in = xcalloc(s->n_in + 1, sizeof(*in));
    void **out = xcalloc(s->n_out + 1, sizeof(*out));
    double start = clock_ms();
    char what[160];
    int rc;

    snprintf(what, sizeof(what), "step '%s'", s->name);
    host_begin(&x->r->state, x->args, x->report);
    x->r->host.dataset = x->r->gpu.dataset = x->args->dataset;
    x->r->host.out = x->r->gpu.out = x->args->out;
    t.plan = s = choose(x, s, in);
    for (uint32_t i = 0; i < s->n_out; i++)
        out[i] = live_new((enum recon_slot)s->kernel->out[i].type, place_of(s, &s->kernel->out[i]));
    rc = runner_cancelled() ? -1 : 0;
    if (rc == 0 && x->n_pending == MARKS / 2)
        rc = settle(x);
    rc = rc || gather(x, s, in, &t) || call(x, s, in, out, &t) ? -1 : 0;
    if (rc == 0)
        tell_lost(x, s, in, out);
    scatter(x, s, out); /* after a failure too, so that what it holds is released */
    if (rc)
        host_failure(&x->r->state, what, err);
    t.wall_ms = clock_ms() - start;
    t.peak_host = x->r->state.peak;
    if (rc == 0)
        *VEC_ADD(&x->report->steps) = t;
    else
        x->n_pending -= s->on_device && x->n_pending && x->pending[x->n_pending - 1] == x->report->steps.n;
    release_used(x, (int)at, false);
    if (rc == 0 && !x->n_pending)
        settle(x);
    free(in);
    free(out);
    return rc;
}

int runner_run(struct runner *r, const struct plan *p, const struct run_args *args, struct run_report *ret,
               struct err *err)
{
    struct run x = { .r = r, .p = p, .args = args, .report = ret };
    double start = clock_ms();
    int rc = 0;

    *ret = (struct run_report){ 0 };
    x.live = xcalloc(p->slots.n + 1, sizeof(*x.live));
    if (r->dev)
        r->dev->peak(&r->gpu, 1);
    for (size_t i = 0; i < p->steps.n && rc == 0; i++)
        rc = run_step(&x, i, err);
    if (rc == 0) {
        host_begin(&r->state, args, ret);
        if (settle(&x))
            rc = host_failure(&r->state, "the device", err);
    } else {
        settle(&x);
    }
    release_used(&x, 0, true);
    ret->wall_ms = clock_ms() - start;
    ret->leaked_host = host_reap(&r->state);
    free(x.live);
    return rc;
}
