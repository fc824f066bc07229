#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <hwloc.h>
#include <stdlib.h>
#include "probe.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* The levels of the x86-64 psABI by their features: leaf (sub-leaf 0), register (eax ebx ecx edx), bits. */
static const struct {
    const char *level;
    unsigned leaf, reg, bits;
} isa_rows[] = {
    /* CMPXCHG16B SSE3 SSSE3 SSE4.1 SSE4.2 POPCNT; LAHF */
    { "x86-64-v2", 0x1, 2, 1u << 13 | 1u << 0 | 1u << 9 | 1u << 19 | 1u << 20 | 1u << 23 },
    { "x86-64-v2", 0x80000001, 2, 1u << 0 },
    /* AVX F16C FMA MOVBE OSXSAVE; AVX2 BMI1 BMI2; LZCNT */
    { "x86-64-v3", 0x1, 2, 1u << 28 | 1u << 29 | 1u << 12 | 1u << 22 | 1u << 27 },
    { "x86-64-v3", 0x7, 1, 1u << 5 | 1u << 3 | 1u << 8 },
    { "x86-64-v3", 0x80000001, 2, 1u << 5 },
    /* AVX512 F BW CD DQ VL */
    { "x86-64-v4", 0x7, 1, 1u << 16 | 1u << 30 | 1u << 28 | 1u << 17 | 1u << 31 },
};

/* Vector registers count only when the kernel saves them. */
static bool saved(const char *level)
{
    unsigned low, high, want = level[8] == '4' ? 0xE6 : level[8] == '3' ? 0x6 : 0;

    if (!want)
        return true;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & want) == want;
}

static const char *isa_level(void)
{
    const char *best = "x86-64";

    for (size_t i = 0; i < COUNT(isa_rows); i++) {
        unsigned r[4] = { 0 };

        if (!__get_cpuid_count(isa_rows[i].leaf, 0, &r[0], &r[1], &r[2], &r[3]) ||
            (r[isa_rows[i].reg] & isa_rows[i].bits) != isa_rows[i].bits)
            break;
        if ((i + 1 == COUNT(isa_rows) || !str_eq(isa_rows[i + 1].level, isa_rows[i].level)) && saved(isa_rows[i].level))
            best = isa_rows[i].level;
    }
    return best;
}
#else
static const char *isa_level(void)
{
    return NULL;
}
#endif

/* ---- hwloc, loaded by name: a node without it gets its processors from sysfs ---- */

/* The functions that are called here; types from its header. */
struct hwloc {
    unsigned (*version)(void);
    __typeof__(hwloc_topology_init) *init;
    __typeof__(hwloc_topology_destroy) *destroy;
    __typeof__(hwloc_topology_set_flags) *set_flags;
    __typeof__(hwloc_topology_set_all_types_filter) *filter_all;
    __typeof__(hwloc_topology_set_type_filter) *filter;
    __typeof__(hwloc_topology_load) *load;
    __typeof__(hwloc_get_type_depth) *depth;
    __typeof__(hwloc_get_nbobjs_by_depth) *count;
    __typeof__(hwloc_get_obj_by_depth) *object;
};

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
    { "hwloc_get_api_version", offsetof(struct hwloc, version) },
    { "hwloc_topology_init", offsetof(struct hwloc, init) },
    { "hwloc_topology_destroy", offsetof(struct hwloc, destroy) },
    { "hwloc_topology_set_flags", offsetof(struct hwloc, set_flags) },
    { "hwloc_topology_set_all_types_filter", offsetof(struct hwloc, filter_all) },
    { "hwloc_topology_set_type_filter", offsetof(struct hwloc, filter) },
    { "hwloc_topology_load", offsetof(struct hwloc, load) },
    { "hwloc_get_type_depth", offsetof(struct hwloc, depth) },
    { "hwloc_get_nbobjs_by_depth", offsetof(struct hwloc, count) },
    { "hwloc_get_obj_by_depth", offsetof(struct hwloc, object) },
};

/* hwloc 2.x is libhwloc.so.15 in all its releases; its structures are those of the header. */
static bool hwloc_open(struct hwloc *h)
{
    void *lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; lib && i < COUNT(symbols); i++) {
        void *at = dlsym(lib, symbols[i].symbol);

        if (!at)
            return false;
        memcpy((char *)h + symbols[i].offset, &at, sizeof(at));
    }
    return lib && h->version() >> 16 == HWLOC_API_VERSION >> 16;
}

static int hwloc_count(const struct hwloc *h, hwloc_topology_t t, hwloc_obj_type_t type)
{
    return (int)h->count(t, h->depth(t, type));
}

static char *cpu_model(const struct hwloc *h, hwloc_topology_t t)
{
    hwloc_obj_t from[] = { h->object(t, h->depth(t, HWLOC_OBJ_PACKAGE), 0), h->object(t, 0, 0) };

    for (size_t i = 0; i < COUNT(from); i++)
        for (unsigned j = 0; from[i] && j < from[i]->infos_count; j++)
            if (str_eq(from[i]->infos[j].name, "CPUModel"))
                return xstrdup(from[i]->infos[j].value);
    return NULL;
}

static int by_hwloc(struct facts *f)
{
    struct hwloc h;
    hwloc_topology_t t;

    if (!hwloc_open(&h) || h.init(&t))
        return -1;
    /* the whole node, not the job's part of it; nothing but cores and NUMA nodes */
    h.set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    h.filter_all(t, HWLOC_TYPE_FILTER_KEEP_NONE);
    h.filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    h.filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (h.load(t)) {
        h.destroy(t);
        return -1;
    }
    f->cpu.cores = hwloc_count(&h, t, HWLOC_OBJ_CORE);
    if (f->cpu.cores <= 0)
        f->cpu.cores = hwloc_count(&h, t, HWLOC_OBJ_PU);
    f->cpu.numa_nodes = hwloc_count(&h, t, HWLOC_OBJ_NUMANODE);
    f->cpu.model = cpu_model(&h, t);
    h.destroy(t);
    return 0;
}

/* ---- sysfs ---- */

/* Folders NAME<number> in dir. */
static int64_t numbered(const char *dir, const char *name)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int64_t n = 0;

    while (d && (e = readdir(d))) {
        size_t k = strlen(name);

        n += str_starts(e->d_name, name) && e->d_name[k] && !e->d_name[k + strspn(e->d_name + k, "0123456789")];
    }
    if (d)
        closedir(d);
    return n;
}

/* Each core is counted by the first of its threads. */
static int64_t cores(void)
{
    int64_t cpus = numbered("/sys/devices/system/cpu", "cpu"), n = 0;

    for (int64_t i = 0; i < cpus; i++) {
        char *path = xasprintf("/sys/devices/system/cpu/cpu%lld/topology/thread_siblings_list", (long long)i);
        char *first = first_line(path);

        n += first && strtoll(first, NULL, 10) == i;
        free(first);
        free(path);
    }
    return n ? n : cpus ? cpus : CONF_UNSET;
}

static char *model_of_proc(void)
{
    struct str t = { 0 };
    const char *at;
    char *model = NULL;

    file_read("/proc/cpuinfo", (size_t)16 << 20, &t, NULL);
    at = t.len ? strstr(t.s, "model name") : NULL;
    if (at) {
        at += strcspn(at, ":\n");
        at += strspn(at, ": \t");
        model = xstrndup(at, strcspn(at, "\n"));
    }
    str_release(&t);
    return model;
}

void probe_cpu(const struct probe *q, struct facts *f)
{
    int64_t nodes;

    f->cpu.isa = xstrdup(isa_level());
    if (!q->no_hwloc && by_hwloc(f) == 0)
        return;
    nodes = numbered("/sys/devices/system/node", "node");
    f->cpu.cores = cores();
    f->cpu.numa_nodes = nodes ? nodes : 1;
    f->cpu.model = model_of_proc();
}
