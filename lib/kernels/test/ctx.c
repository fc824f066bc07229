#include "config.h"
#include "kernels/test/ctx.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

static struct test_ctx *of(struct recon_ctx *c)
{
    return (struct test_ctx *)c;
}

static int fail(struct recon_ctx *c, int code, const char *rule, const char *object, const char *fmt, ...)
{
    struct test_ctx *t = of(c);
    va_list ap;

    t->code = code;
    snprintf(t->rule, sizeof(t->rule), "%s", rule ? rule : "");
    snprintf(t->object, sizeof(t->object), "%s", object ? object : "");
    va_start(ap, fmt);
    vsnprintf(t->text, sizeof(t->text), fmt, ap);
    va_end(ap);
    return -1;
}

static void *alloc(struct recon_ctx *c, uint64_t bytes)
{
    void *p = NULL;

    if ((of(c)->most && bytes > of(c)->most) || posix_memalign(&p, 64, bytes ? bytes : 1)) {
        fail(c, CODE_MEMORY, NULL, NULL, "no memory for %llu bytes", (unsigned long long)bytes);
        return NULL;
    }
    memset(p, 0xa5, bytes < 4096 ? bytes : 4096);
    of(c)->live++;
    of(c)->bytes += malloc_usable_size(p);
    of(c)->peak = of(c)->bytes > of(c)->peak ? of(c)->bytes : of(c)->peak;
    return p;
}

static void release(struct recon_ctx *c, void *p)
{
    if (p) {
        of(c)->live--;
        of(c)->bytes -= malloc_usable_size(p);
    }
    free(p);
}

static void take_log(struct recon_ctx *c, enum recon_log level, const char *rule, const char *object,
                     const char *fmt, ...)
{
    struct test_ctx *t = of(c);
    va_list ap;

    (void)object;
    if (level != RECON_WARN && level != RECON_NOTE)
        return;
    if (level == RECON_WARN) {
        t->warnings++;
        snprintf(t->warned_rule, sizeof(t->warned_rule), "%s", rule ? rule : "");
    }
    va_start(ap, fmt);
    vsnprintf(level == RECON_WARN ? t->warned : t->noted, sizeof(t->noted), fmt, ap);
    va_end(ap);
}

static void output(struct recon_ctx *c, const char *path)
{
    strv_add(&of(c)->outputs, path);
}

static int cancelled(struct recon_ctx *c)
{
    return of(c)->patience && --of(c)->patience <= 0 ? (of(c)->patience = 1) : 0;
}

static const struct recon_host services = { alloc, release, fail, take_log, output, cancelled };

void test_ctx_init(struct test_ctx *t, const char *dataset, const char *out, int threads)
{
    *t = (struct test_ctx){.ctx = {.abi = RECON_KERNEL_ABI,
                                   .host = &services,
                                   .dataset = dataset,
                                   .out = out,
                                   .threads = threads,
                                   .device = -1}};
}

void test_ctx_reset(struct test_ctx *t)
{
    t->code = t->warnings = 0;
    t->rule[0] = t->object[0] = t->text[0] = t->warned[0] = t->warned_rule[0] = t->noted[0] = 0;
}

void test_ctx_release(struct test_ctx *t)
{
    strv_release(&t->outputs);
}

const struct recon_module *test_module(const char *name)
{
    const char *build = getenv("abs_top_builddir");
    char *path = xasprintf("%s/lib/recon/%s.so", build ? build : ".", name);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct recon_module *m = so ? dlsym(so, "recon_module") : NULL;

    if (!m) {
        printf("Bail out! %s\n", dlerror());
        exit(1);
    }
    free(path);
    return m;
}

const struct recon_kernel *test_kernel(const struct recon_module *m, const char *name)
{
    for (const struct recon_kernel *const *k = m->kernels; *k; k++)
        if (str_eq((*k)->name, name))
            return *k;
    printf("Bail out! module '%s' has no kernel '%s'\n", m->name, name);
    exit(1);
}

static struct recon_value parse(const struct recon_param *p)
{
    struct recon_value v = { .s = p->def };
    char *end;

    switch (p->type) {
    case RECON_INT:
    case RECON_FLOAT:
        v.f = strtod(p->def, &end);
        v.i = (int64_t)v.f;
        break;
    case RECON_BOOL:
        v.i = str_eq(p->def, "true");
        break;
    case RECON_CHOICE: {
        struct strv l = { 0 };

        strv_split(&l, p->choices, "|");
        for (size_t i = 0; i < l.n; i++)
            if (str_eq(l.v[i], p->def))
                v.i = (int64_t)i;
        strv_release(&l);
        break;
    }
    default:
        break; /* text stands in s; the vectors' defaults are empty */
    }
    return v;
}

struct recon_value *test_params(const struct recon_kernel *k)
{
    struct recon_value *v;
    size_t n = 0;

    while (k->params[n].name)
        n++;
    v = xcalloc(n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++)
        v[i] = parse(&k->params[i]);
    return v;
}

void test_slot_free(struct test_ctx *t, enum recon_slot type, void *slot)
{
    struct recon_array a[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(type, slot, a);

    for (int i = 0; i < n; i++) {
        release(&t->ctx, *a[i].at);
        *a[i].at = NULL;
    }
    if (type == RECON_FRAMES && ((struct recon_frames *)slot)->close)
        ((struct recon_frames *)slot)->close(slot);
}
