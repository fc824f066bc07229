#include "config.h"

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

static char *cpu_model(hwloc_topology_t t)
{
    hwloc_obj_t package = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PACKAGE, NULL);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    if (!model)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(t), "CPUModel");
    return xstrdup(model);
}

void probe_cpu(const struct probe *q, struct facts *f)
{
    hwloc_topology_t t;
    int n;

    (void)q;
    f->cpu.isa = xstrdup(isa_level());
    if (hwloc_topology_init(&t)) {
        strv_add(&f->unknown, "cpu: hwloc does not start");
        return;
    }
    /* the whole node, not the job's part of it; nothing but cores and NUMA nodes */
    hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(t)) {
        strv_add(&f->unknown, "cpu: hwloc finds no topology");
    } else {
        n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
        f->cpu.cores = n > 0 ? n : hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
        f->cpu.numa_nodes = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
        f->cpu.model = cpu_model(t);
    }
    hwloc_topology_destroy(t);
}
