/* Which body of a pin a node should try first. */
#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

enum { FITS, COMPILES, NO_GPU_CODE, NO_GPU, UNFIT }; /* from the most to the least wanted */

struct rank {
    size_t body;
    int fit;
    size_t archs;               /* that its GPU code is for: one build for one GPU is the most specific */
    const char *isa, *cuda, *driver;
};

static void worse(int *fit, int other)
{
    if (other > *fit)
        *fit = other;
}

static void add_archs(const struct strv *names, struct strv *archs)
{
    for (size_t i = 0; i < names->n; i++)
        if (!strv_has(archs, names->v[i]))
            strv_add(archs, names->v[i]);
}

/* Of CUDA code on NVIDIA's GPUs: the worst of them; where there is none UNFIT. */
static int cuda_fit(const struct pin_object *o, const struct gpu_images *images, const struct facts *f)
{
    const char *isa = compat_ptx_isa_of_cuda(driver_cuda(f));
    int fit = FITS;
    bool any = false;

    for (size_t i = 0; i < f->gpus.n; i++) {
        struct arch_target t = { .capability = f->gpus.v[i].compute_capability, .driver_isa = isa };
        struct arch_verdict v;

        any = any || str_eq(f->gpus.v[i].vendor, "nvidia") || compat_capability(t.capability);
        if (!compat_capability(t.capability))
            continue;
        arch_judge(images, o->soname, &t, &v);
        if (v.fit != FIT_NO_CODE)
            worse(&fit, v.fit == FIT_SASS ? FITS : v.fit == FIT_PTX ? COMPILES : UNFIT);
    }
    return any || !f->gpus.n ? fit : UNFIT;
}

/* The same of HIP code on AMD's; code whose features may be off there counts as what is compiled. */
static int amd_fit(const struct strv *targets, const struct facts *f)
{
    int fit = FITS;
    bool any = false;

    for (size_t i = 0; i < f->gpus.n; i++) {
        const struct facts_gpu *g = &f->gpus.v[i];
        int runs = g->compute_capability ? hip_fit(targets, g->compute_capability) : 1;

        if (!str_eq(g->vendor, "amd"))
            continue;
        any = true;
        worse(&fit, runs > 0 ? FITS : runs ? COMPILES : UNFIT);
    }
    return any || !f->gpus.n ? fit : UNFIT;
}

static void rank_object(const struct pin_object *o, const struct facts *f, struct rank *r, struct strv *archs)
{
    struct gpu_images images = { 0 };
    int fit = UNFIT;

    for (size_t i = 0; i < o->gpu.n; i++) {
        add_archs(&o->gpu.v[i].sass, archs);
        add_archs(&o->gpu.v[i].ptx, archs);
    }
    add_archs(&o->hip, archs);
    images_of_pin(o, &images);
    if (o->gpu.n)
        fit = cuda_fit(o, &images, f);
    if (o->hip.n && fit == UNFIT) /* code for both vendors serves where one of them does */
        fit = amd_fit(&o->hip, f);
    worse(&r->fit, fit);
    images_release(&images);
}

static struct rank rank_of(const struct pin *p, size_t body, const struct facts *f)
{
    struct rank r = { body, FITS, 0, p->requires.cpu_isa, p->requires.cuda_runtime, p->requires.driver };
    struct strv archs = { 0 };

    for (size_t i = 0; i < p->objects.n; i++)
        if (p->objects.v[i].gpu.n || p->objects.v[i].hip.n)
            rank_object(&p->objects.v[i], f, &r, &archs);
    if (!archs.n)
        r.fit = NO_GPU_CODE;
    else if (f->gpus_known && !f->gpus.n)
        r.fit = NO_GPU;
    r.archs = archs.n;
    strv_release(&archs);
    return r;
}

/* The greater version first; one that is stated before none. */
static int higher(const char *a, const char *b)
{
    if (!a || !b)
        return (b != NULL) - (a != NULL);
    return -version_cmp(a, b);
}

static int before(const void *x, const void *y)
{
    const struct rank *a = x, *b = y;
    int c = a->fit - b->fit;

    if (!c)
        c = a->archs < b->archs ? -1 : a->archs > b->archs;
    if (!c)
        c = higher(a->isa, b->isa);
    if (!c)
        c = higher(a->cuda, b->cuda);
    if (!c)
        c = higher(a->driver, b->driver);
    return c ? c : a->body < b->body ? -1 : 1;
}

void variants_order(const struct pin *p, const struct facts *f, size_t *ret)
{
    size_t n = pin_bodies(p);
    struct rank *l = xcalloc(n, sizeof(*l));

    for (size_t i = 0; i < n; i++)
        l[i] = rank_of(pin_body(p, i), i, f);
    qsort(l, n, sizeof(*l), before);
    for (size_t i = 0; i < n; i++)
        ret[i] = l[i].body;
    free(l);
}
