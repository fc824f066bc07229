/* Whose GPU a library is for, and what a case wants of GPUs. */
#include "config.h"
#include "check/check_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* How SONAMEs of the vendors' runtimes begin; other vendors come with the facts, from profiles. */
static const struct {
    const char *vendor, *begins;
} runtimes[] = {
    { "nvidia", "libcudart.so" },   { "nvidia", "libcuda.so" },       { "nvidia", "libcublas.so" },
    { "nvidia", "libcublasLt.so" }, { "nvidia", "libcudnn" },         { "nvidia", "libcufft.so" },
    { "nvidia", "libcurand.so" },   { "nvidia", "libcusolver.so" },   { "nvidia", "libcusparse.so" },
    { "nvidia", "libnvrtc.so" },    { "nvidia", "libnccl.so" },       { "nvidia", "libnvJitLink.so" },
    { "amd", "libamdhip64.so" },    { "amd", "libhsa-runtime64.so" }, { "amd", "librocblas.so" },
    { "amd", "libhipblas.so" },     { "amd", "libMIOpen.so" },        { "amd", "librccl.so" },
};

static bool begins(const struct strv *l, const char *soname)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_starts(soname, l->v[i]))
            return true;
    return false;
}

const char *vendor_of(const struct check_case *c, const char *soname)
{
    for (size_t i = 0; soname && c->facts && i < c->facts->vendors.n; i++)
        if (begins(&c->facts->vendors.v[i].runtimes, soname))
            return c->facts->vendors.v[i].name;
    for (size_t i = 0; soname && i < COUNT(runtimes); i++)
        if (str_starts(soname, runtimes[i].begins))
            return runtimes[i].vendor;
    return NULL;
}

bool node_has_vendor(const struct facts *f, const char *vendor)
{
    for (size_t i = 0; i < f->gpus.n; i++)
        if (str_eq(f->gpus.v[i].vendor, vendor))
            return true;
    return false;
}

const char *vendor_instead(const struct check_case *c, const char *soname)
{
    const char *vendor;

    if (!c->facts || !c->facts->gpus_known || !c->facts->gpus.n || !soname)
        return NULL;
    vendor = vendor_of(c, soname);
    for (size_t i = 0; i < c->facts->vendors.n; i++)
        if (node_has_vendor(c->facts, c->facts->vendors.v[i].name) && !node_has_vendor(c->facts, vendor) &&
            begins(&c->facts->vendors.v[i].foreign, soname))
            return c->facts->vendors.v[i].name;
    return vendor && !node_has_vendor(c->facts, vendor) ? c->facts->gpus.v[0].vendor : NULL;
}

bool case_uses_gpu(const struct check_case *c)
{
    struct walk w = { 0 };

    for (size_t i = 0; c->pin && i < c->pin->objects.n; i++)
        if (c->pin->objects.v[i].gpu.n)
            return true;
    while (walk_next(c, &w))
        if (w.lib->object.images.n || vendor_of(c, w.lib->soname))
            return true;
    return false;
}

bool path_in(const char *path, const char *folder)
{
    char *dir = path ? path_dir(path) : NULL;
    bool in = dir && str_eq(path_base(dir), folder);

    free(dir);
    return in;
}

const char *release_in(const char *path)
{
    const char *dot = path ? strstr(path_base(path), ".so.") : NULL;

    return dot && isdigit((unsigned char)dot[4]) && strchr(dot + 4, '.') ? dot + 4 : NULL;
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

/* Index, "GPU-<uuid>", "MIG-<uuid>", or of older drivers "MIG-GPU-<uuid>/<gi>/<ci>"; a UUID may be cut. 1
 * yes, 0 no, -1 the facts do not tell. */
static int names_gpu(const struct facts *f, const char *entry)
{
    size_t digits = strspn(entry, "0123456789"), n;
    const char *uuid = str_starts(entry, "MIG-GPU-") ? entry + 4 : entry;
    bool unknown = false;

    if (digits && !entry[digits])
        return strtoull(entry, NULL, 10) < f->gpus.n;
    n = strcspn(uuid, "/");
    for (size_t i = 0; i < f->gpus.n; i++) {
        const struct facts_gpu *g = &f->gpus.v[i];
        const char *id = str_starts(entry, "MIG-") && uuid == entry ? g->mig : g->uuid;

        if (id && n > 4 && strncmp(id, uuid, n) == 0)
            return 1;
        unknown |= !g->uuid;
    }
    return unknown && (str_starts(entry, "GPU-") || str_starts(entry, "MIG-")) ? -1 : 0;
}

bool devices_hidden(const struct check_case *c)
{
    static const char *const none[] = { "", "-1", "none", "void", "NoDevFiles" };
    const char *list = c->elsewhere ? NULL : case_var(c, "CUDA_VISIBLE_DEVICES");

    for (size_t i = 0; list && i < COUNT(none); i++)
        if (str_eq(list, none[i]))
            return true;
    return false;
}

int visible_devices(const struct check_case *c, struct visible *ret)
{
    const char *list = c->elsewhere ? NULL : case_var(c, "CUDA_VISIBLE_DEVICES");
    int known = 1;

    if (!list || str_eq(list, "all") || devices_hidden(c))
        return 0;
    if (!c->facts->gpus_known)
        return -1;
    *ret = (struct visible){ .gpus = c->facts->gpus.n };
    strv_split(&ret->entries, list, ",");
    for (size_t i = 0; i < ret->entries.n && !ret->bad; i++) {
        const char *entry = ret->entries.v[i] + strspn(ret->entries.v[i], " ");

        known = names_gpu(c->facts, entry);
        for (size_t j = 0; j < i; j++)
            if (str_eq(ret->entries.v[j], ret->entries.v[i]))
                known = 0;
        if (known < 0)
            break;
        ret->good += known == 1;
        if (known == 0) {
            ret->bad = ret->entries.v[i];
            ret->by_uuid = str_starts(entry, "GPU-") || str_starts(entry, "MIG-");
        }
    }
    if (known < 0)
        visible_release(ret);
    return known < 0 ? -1 : 1;
}

void visible_release(struct visible *v)
{
    strv_release(&v->entries);
}
