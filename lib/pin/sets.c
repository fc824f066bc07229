/* The sets of GPU images that a file's containers have. */
#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

static char *image_name(const struct gpu_image *g)
{
    return xasprintf("%s%u%s", g->kind == IMAGE_PTX ? "compute_" : "sm_", g->arch,
                     g->suffix == 'a' ? "a" : g->suffix == 'f' ? "f" : "");
}

static void add_once(struct strv *l, const char *s)
{
    if (!strv_has(l, s))
        strv_add(l, s);
}

static void set_add(struct pin_gpu *set, const struct gpu_image *g)
{
    char *name, *isa;

    if (g->kind == IMAGE_LTO)
        return;
    name = image_name(g);
    add_once(g->kind == IMAGE_PTX ? &set->ptx : &set->sass, name);
    free(name);
    if (g->kind != IMAGE_PTX)
        return;
    isa = xasprintf("%u.%u", g->major, g->minor);
    if (!set->ptx_isa || version_cmp(isa, set->ptx_isa) > 0) {
        free(set->ptx_isa);
        set->ptx_isa = isa;
    } else {
        free(isa);
    }
}

static void set_release(struct pin_gpu *set)
{
    strv_release(&set->sass);
    strv_release(&set->ptx);
    free(set->ptx_isa);
    free(set->toolkit);
    memset(set, 0, sizeof(*set));
}

static bool same_texts(const struct strv *a, const struct strv *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strv_has(b, a->v[i]))
            return false;
    return a->n == b->n;
}

/* sm_75, sm_90, sm_90a, sm_100 */
static int by_number(const void *a, const void *b)
{
    const char *x = strchr(*(const char *const *)a, '_') + 1, *y = strchr(*(const char *const *)b, '_') + 1;
    long i = strtol(x, NULL, 10), j = strtol(y, NULL, 10);

    return i != j ? (i < j ? -1 : 1) : strcmp(x, y);
}

static void sort(struct strv *l)
{
    if (l->n > 1)
        qsort(l->v, l->n, sizeof(*l->v), by_number);
}

/* Counts the set with an equal one, or appends it. */
static void sets_take(struct pin_gpus *l, struct pin_gpu *set, const char *toolkit)
{
    for (size_t i = 0; i < l->n; i++)
        if (same_texts(&l->v[i].sass, &set->sass) && same_texts(&l->v[i].ptx, &set->ptx) &&
            str_eq(l->v[i].ptx_isa, set->ptx_isa)) {
            l->v[i].containers++;
            set_release(set);
            return;
        }
    sort(&set->sass);
    sort(&set->ptx);
    set->containers = 1;
    set->toolkit = xstrdup(toolkit);
    *VEC_ADD(l) = *set;
}

/* PTX in relocatable containers is what the driver links from when no linked code fits: those with PTX must all do. */
static void add_relocatable(const struct gpu_images *l, struct pin_gpu *set)
{
    struct strv common = { 0 }, kept;
    bool first = true;

    for (size_t i = 0; i < l->n;) {
        struct pin_gpu one = { 0 };
        size_t j = i;

        for (; j < l->n && l->v[j].container == l->v[i].container; j++)
            if (l->v[j].relocatable && l->v[j].kind == IMAGE_PTX)
                set_add(&one, &l->v[j]);
        i = j;
        if (one.ptx.n) {
            kept = (struct strv){ 0 };
            for (size_t k = 0; k < one.ptx.n; k++)
                if (first || strv_has(&common, one.ptx.v[k]))
                    strv_add(&kept, one.ptx.v[k]);
            strv_release(&common);
            common = kept;
            first = false;
        }
        set_release(&one);
    }
    for (size_t i = 0; i < l->n; i++) {
        char *name = l->v[i].relocatable && l->v[i].kind == IMAGE_PTX ? image_name(&l->v[i]) : NULL;

        if (name && strv_has(&common, name))
            set_add(set, &l->v[i]);
        free(name);
    }
    strv_release(&common);
}

/* The final link of relocatable code is one container of SASS without PTX, the first that is no stub. */
static uint32_t linked_container(const struct gpu_images *l)
{
    bool relocatable = false;

    for (size_t i = 0; i < l->n; i++)
        relocatable |= l->v[i].relocatable;
    for (size_t i = 0; relocatable && i < l->n; i++)
        if (!l->v[i].relocatable && !l->v[i].link_stub)
            return l->v[i].container;
    return UINT32_MAX;
}

void pin_gpu_sets(const struct gpu_images *l, struct pin_gpus *ret)
{
    uint32_t linked = linked_container(l);
    bool any = false;

    for (size_t i = 0; i < l->n;) {
        struct pin_gpu set = { 0 };
        uint32_t at = l->v[i].container;

        for (; i < l->n && l->v[i].container == at; i++)
            if (!l->v[i].link_stub && !l->v[i].relocatable)
                set_add(&set, &l->v[i]);
        if (at == linked)
            add_relocatable(l, &set);
        if (set.sass.n || set.ptx.n) {
            sets_take(ret, &set, l->toolkit);
            any = true;
        } else {
            set_release(&set);
        }
    }
    if (!any) { /* relocatable code alone: all that there is is linked by the driver */
        struct pin_gpu set = { 0 };

        add_relocatable(l, &set);
        if (set.ptx.n)
            sets_take(ret, &set, l->toolkit);
        else
            set_release(&set);
    }
}

void pin_gpus_release(struct pin_gpus *l)
{
    for (size_t i = 0; i < l->n; i++)
        set_release(&l->v[i]);
    free(l->v);
    memset(l, 0, sizeof(*l));
}

void pin_targets(const struct gpu_images *l, struct pin_object *o)
{
    if (!l->hip_unread)
        strv_copy(&o->hip, &l->hip);
    for (size_t i = 0; i < l->offload.n; i++) {
        const struct offload_image *x = &l->offload.v[i];

        if (x->producer == OFFLOAD_OPENMP)
            strv_addf(&o->openmp, "%s%s", x->form == OFFLOAD_CODE ? "" : "ir:", x->target);
    }
}
