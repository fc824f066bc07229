#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

/* Libraries that hold code for many GPUs in containers of their own and choose at run time: one image that fits is
 * enough. By the beginning of their SONAMEs. */
static const char *const dispatching[] = {
    "libcublas.so.",   "libcublasLt.so.", "libcudnn",     "libcufft",  "libcusparse", "libcusolver", "libcurand.so.",
    "libnccl.so.",     "libnpp",          "libnvjpeg",    "libcutensor", "libnvshmem", "libcufile",   "libnvrtc",
};

static bool dispatches(const char *soname)
{
    for (size_t i = 0; soname && i < COUNT(dispatching); i++)
        if (str_starts(soname, dispatching[i]))
            return true;
    return false;
}

static enum fit image_fit(const struct gpu_image *i, const struct arch_target *t)
{
    if ((i->kind == IMAGE_SASS && t->force) || (i->kind == IMAGE_PTX && t->forbid))
        return FIT_NONE;
    switch (compat_image_runs(i, t->capability, t->driver_isa)) {
    case 1: return FIT_SASS;
    case 2: return FIT_PTX;
    default: return i->kind == IMAGE_PTX && compat_image_runs(i, t->capability, NULL) ? FIT_PTX_TOO_NEW : FIT_NONE;
    }
}

struct container {
    enum fit fit;
    bool any;        /* has an image that counts */
    bool aside;      /* each image is for newer GPUs or for one architecture only: chosen at run time, not by the loader */
    bool specific;   /* an image of the very architecture number but for its suffix */
    char isa[16];
};

/* The images of one container, which stand together from *at on, that are, or are not, relocatable code. */
static void judge_container(const struct gpu_images *l, size_t *at, bool relocatable, const struct arch_target *t,
                            struct container *ret)
{
    int device = compat_capability(t->capability);
    uint32_t number = l->v[*at].container;

    *ret = (struct container){ .fit = FIT_NONE, .aside = true };
    for (; *at < l->n && l->v[*at].container == number; ++*at) {
        const struct gpu_image *g = &l->v[*at];
        enum fit fit;

        if (g->link_stub || g->relocatable != relocatable || g->kind == IMAGE_LTO)
            continue;
        ret->any = true;
        fit = image_fit(g, t);
        ret->aside = ret->aside && (g->arch > device || g->suffix);
        ret->specific = ret->specific || (g->suffix && fit == FIT_NONE && g->arch / 10 == device / 10);
        if (fit < ret->fit) {
            ret->fit = fit;
            if (g->kind == IMAGE_PTX)
                snprintf(ret->isa, sizeof(ret->isa), "%u.%u", g->major, g->minor);
        }
    }
}

/* All containers of one kind of code. whole: one that fits is enough. */
static void judge_all(const struct gpu_images *l, bool relocatable, bool whole, const struct arch_target *t,
                      struct arch_verdict *ret)
{
    struct container best = { .fit = FIT_NONE }, worst = { .fit = FIT_NO_CODE }, c;
    uint32_t aside = 0;

    *ret = (struct arch_verdict){ .fit = FIT_NO_CODE };
    for (size_t i = 0; i < l->n;) {
        judge_container(l, &i, relocatable, t, &c);
        if (!c.any)
            continue;
        ret->containers++;
        ret->unfit += c.fit > FIT_PTX;
        ret->specific = ret->specific || c.specific;
        if (c.fit < best.fit)
            best = c;
        if (c.fit == FIT_NONE && c.aside)
            aside++;
        else if (c.fit > worst.fit)
            worst = c;
    }
    if (!ret->containers)
        return;
    if (whole || worst.fit == FIT_NO_CODE) /* or nothing but containers that were put aside */
        worst = best;
    else
        ret->unfit -= aside;
    ret->fit = worst.fit;
    snprintf(ret->isa, sizeof(ret->isa), "%s", worst.isa);
}

static void judge_plainly(const struct gpu_images *images, const char *soname, const struct arch_target *t,
                          struct arch_verdict *ret)
{
    bool whole = dispatches(soname);
    struct arch_verdict linked;

    judge_all(images, false, whole, t, ret);
    if (ret->fit == FIT_SASS || ret->fit == FIT_PTX)
        return;
    /* separately compiled code (nvcc -rdc): the driver links the relocatable images when each of them fits */
    judge_all(images, true, whole, t, &linked);
    if (linked.fit != FIT_NO_CODE && (ret->fit == FIT_NO_CODE || linked.fit < ret->fit)) {
        *ret = linked;
        if (ret->fit == FIT_SASS)
            ret->fit = FIT_PTX; /* linking is compiling, too */
    }
}

void arch_judge(const struct gpu_images *images, const char *soname, const struct arch_target *t, struct arch_verdict *ret)
{
    struct arch_target free_of = { t->capability, t->driver_isa, NULL, NULL };
    struct arch_verdict without;

    judge_plainly(images, soname, t, ret);
    if (!t->force && !t->forbid)
        return;
    judge_plainly(images, soname, &free_of, &without);
    if (without.fit > FIT_PTX) /* unfit anyhow */
        *ret = without;
    else if (without.fit != ret->fit)
        ret->variable = without.fit == FIT_SASS && t->force ? t->force : t->forbid ? t->forbid : t->force;
}

/* The variable with JIT alone in its name counts before the one with PTX_JIT. */
static const char *jit_variable(const struct check_case *c, const char *jit, const char *ptx_jit)
{
    const char *value = case_var(c, jit);

    if (value && *value)
        return atoi(value) ? jit : NULL;
    value = case_var(c, ptx_jit);
    return value && atoi(value) ? ptx_jit : NULL;
}

void arch_jit(const struct check_case *c, struct arch_target *t)
{
    t->force = jit_variable(c, "CUDA_FORCE_JIT", "CUDA_FORCE_PTX_JIT");
    t->forbid = jit_variable(c, "CUDA_DISABLE_JIT", "CUDA_DISABLE_PTX_JIT");
}

char *arch_unset(const struct arch_verdict *v)
{
    return xasprintf("unset %s", v->variable);
}

char *arch_runs_on(const struct gpu_images *images, const char *soname)
{
    struct str t = { 0 };
    int n;

    for (size_t i = 0; (n = compat_known_capability(i)) > 0; i++) {
        char capability[16];
        const char *products = compat_products(n);
        struct arch_verdict v;

        snprintf(capability, sizeof(capability), "%d.%d", n / 10, n % 10);
        arch_judge(images, soname, &(struct arch_target){ .capability = capability }, &v);
        if (v.fit == FIT_SASS || v.fit == FIT_PTX)
            str_addf(&t, "%s%s%s%s%s", t.len ? ", " : "", capability, products ? " (" : "", products ? products : "",
                     products ? ")" : "");
    }
    return t.len ? str_take(&t) : NULL;
}

static void add_names(struct str *t, const struct gpu_images *l, enum image_kind kind, const char *prefix)
{
    struct strv names = { 0 };

    for (size_t i = 0; i < l->n; i++) {
        const struct gpu_image *g = &l->v[i];
        char name[48];

        if (g->kind != kind || g->link_stub)
            continue;
        if (kind == IMAGE_PTX)
            snprintf(name, sizeof(name), "%s%u%.1s (ISA %u.%u)", prefix, g->arch, g->suffix ? (char[]){ g->suffix, 0 } : "",
                     g->major, g->minor);
        else
            snprintf(name, sizeof(name), "%s%u%.1s", prefix, g->arch, g->suffix ? (char[]){ g->suffix, 0 } : "");
        if (!strv_has(&names, name))
            strv_add(&names, name);
    }
    for (size_t i = 0; i < names.n; i++)
        str_addf(t, "%s%s", t->len ? i ? " " : ", " : "", names.v[i]);
    strv_release(&names);
}

char *arch_list(const struct gpu_images *images)
{
    struct str t = { 0 };

    add_names(&t, images, IMAGE_SASS, "sm_");
    add_names(&t, images, IMAGE_PTX, "PTX compute_");
    if (!t.len)
        str_add(&t, "no code that a driver takes");
    return str_take(&t);
}

char *gpu_words(const struct facts_gpu *g)
{
    if (!g->name || str_eq(g->name, "assumed"))
        return xasprintf("a GPU of compute capability %s", g->compute_capability);
    return xasprintf("GPU '%s' (compute capability %s)", g->name, g->compute_capability);
}

/* Another GPU of the same capability stands before it. */
static bool repeated(const struct facts *f, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (str_eq(f->gpus.v[j].compute_capability, f->gpus.v[i].compute_capability))
            return true;
    return false;
}

static void each_gpu(const struct check_case *c, const char *path, const char *soname, const struct gpu_images *images,
                     arch_f *call, struct findings *out)
{
    struct arch_target t = { .driver_isa = compat_ptx_isa_of_cuda(driver_cuda(c->facts)) };

    arch_jit(c, &t);
    for (size_t i = 0; i < c->facts->gpus.n; i++) {
        const struct facts_gpu *g = &c->facts->gpus.v[i];
        struct arch_verdict v;

        if (!compat_capability(g->compute_capability) || repeated(c->facts, i))
            continue;
        t.capability = g->compute_capability;
        arch_judge(images, soname, &t, &v);
        if (v.fit != FIT_NO_CODE)
            call(c, path, images, g, &v, out);
    }
}

/* Why the GPUs cannot be judged by, or NULL. GPUs of other vendors are another rule's. */
static const char *gpus_unknown(const struct facts *f)
{
    bool nvidia = false;

    for (size_t i = 0; i < f->gpus.n; i++) {
        const struct facts_gpu *g = &f->gpus.v[i];

        if (compat_capability(g->compute_capability))
            return NULL;
        nvidia = nvidia || str_eq(g->vendor, "nvidia");
    }
    if (f->gpus.n && !nvidia)
        return NULL;
    if (f->gpus.n)
        return "the compute capability of the GPUs is not known";
    return f->gpus_known ? "the node has no GPU" : "the GPUs of the node are not known";
}

int arch_each(const struct check_case *c, arch_f *call, struct findings *out, struct err *err)
{
    const char *unknown = gpus_unknown(c->facts);
    struct walk w = { 0 };
    int rc = 0;

    if (devices_hidden(c)) /* device-not-visible says so */
        return 0;
    while (rc == 0 && walk_next(c, &w)) {
        struct gpu_images scratch = { 0 };
        const struct gpu_images *images = library_images(c, w.lib, &scratch);
        const char *soname = w.lib->object.soname ? w.lib->object.soname : w.lib->soname;

        if (images->n && unknown)
            rc = err_set(err, CODE_UNAVAILABLE, "'%s' has GPU code, but %s", library_name(w.lib), unknown);
        else if (images->n)
            each_gpu(c, library_name(w.lib), soname, images, call, out);
        images_release(&scratch);
    }
    return rc;
}
