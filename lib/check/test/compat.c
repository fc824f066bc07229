#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "check/check_priv.h"

static void drivers(void **state)
{
    static const struct { const char *cuda, *driver; } minimum[] = {
        { "10.1", "418.39" }, { "10.2", "440.33" }, { "11.0", "450.36.06" }, { "11.1", "450.80.02" }, { "11.8", "450.80.02" },
        { "12.0", "525.60.13" }, { "12.9", "525.60.13" }, { "13.2", "580.65.06" }, { "14.0", NULL }, { "", NULL },
    };
    static const struct { const char *driver, *cuda; } implements[] = {
        { "418.87.00", "10.1" }, { "440.33.01", "10.2" }, { "430.40", "10.1" }, { "470.82.01", "11.4" }, { "535.183.01", "12.2" },
        { "565.57.01", "12.7" }, { "570.211.01", "12.8" }, { "580.159.04", "13.0" }, { "340.108", NULL }, { "999.1", NULL },
        { NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(minimum); i++)
        if (!str_eq(compat_driver_minimum(minimum[i].cuda), minimum[i].driver))
            fail_msg("CUDA %s: %s", minimum[i].cuda, compat_driver_minimum(minimum[i].cuda));
    for (size_t i = 0; i < COUNT(implements); i++)
        if (!str_eq(compat_cuda_of_driver(implements[i].driver), implements[i].cuda))
            fail_msg("driver %s: %s", implements[i].driver, compat_cuda_of_driver(implements[i].driver));
    assert_string_equal(compat_ptx_isa_of_cuda("12.8"), "8.7");
    assert_string_equal(compat_ptx_isa_of_cuda("13.0"), "9.0");
    assert_null(compat_ptx_isa_of_cuda("7.5"));
    assert_int_equal(compat_gcc_of_node("GLIBCXX_3.4.30"), 12);
    assert_int_equal(compat_gcc_of_node("GLIBCXX_3.4.31"), 13);
    assert_int_equal(compat_gcc_of_node("CXXABI_1.3.13"), 11);
    assert_int_equal(compat_gcc_of_node("OWN_1"), 0);
}

/* As seen on GPUs and as the programming guide says: image, device, driver's ISA, answer. */
static void images(void **state)
{
    static const struct {
        enum image_kind kind;
        int arch;
        char suffix;
        int major, minor;
        const char *device, *isa;
        int runs;
    } rows[] = {
        { IMAGE_SASS, 80, 0, 0, 0, "8.0", NULL, 1 },   { IMAGE_SASS, 80, 0, 0, 0, "8.6", NULL, 1 },
        { IMAGE_SASS, 80, 0, 0, 0, "8.9", NULL, 1 },   { IMAGE_SASS, 80, 0, 0, 0, "7.5", NULL, 0 },
        { IMAGE_SASS, 80, 0, 0, 0, "9.0", NULL, 0 },   { IMAGE_SASS, 86, 0, 0, 0, "8.0", NULL, 0 },
        { IMAGE_SASS, 90, 'a', 0, 0, "9.0", NULL, 1 }, { IMAGE_SASS, 100, 'a', 0, 0, "10.3", NULL, 0 },
        { IMAGE_SASS, 100, 'f', 0, 0, "10.3", NULL, 1 }, { IMAGE_SASS, 103, 'f', 0, 0, "10.0", NULL, 0 },
        { IMAGE_SASS, 120, 'f', 0, 0, "12.1", NULL, 1 }, { IMAGE_SASS, 100, 0, 0, 0, "12.0", NULL, 0 },
        /* Tegra and desktop do not share SASS */
        { IMAGE_SASS, 80, 0, 0, 0, "8.7", NULL, 0 },   { IMAGE_SASS, 87, 0, 0, 0, "8.9", NULL, 0 },
        { IMAGE_SASS, 87, 0, 0, 0, "8.7", NULL, 1 },
        { IMAGE_PTX, 80, 0, 7, 0, "9.0", NULL, 2 },    { IMAGE_PTX, 80, 0, 7, 0, "12.0", "9.0", 2 },
        { IMAGE_PTX, 100, 0, 8, 7, "9.0", NULL, 0 },   { IMAGE_PTX, 90, 'a', 8, 0, "9.0", "9.0", 2 },
        { IMAGE_PTX, 90, 'a', 8, 0, "10.0", "9.0", 0 }, { IMAGE_PTX, 100, 'f', 8, 8, "10.3", "9.0", 2 },
        { IMAGE_PTX, 100, 'f', 8, 8, "12.0", "9.0", 0 }, { IMAGE_PTX, 50, 0, 99, 0, "9.0", "9.0", 0 },
        { IMAGE_PTX, 90, 0, 9, 1, "9.0", "9.0", 0 },   { IMAGE_PTX, 90, 0, 9, 1, "9.0", NULL, 2 },
        { IMAGE_PTX, 80, 0, 7, 0, "8.7", "9.0", 2 },
        { IMAGE_LTO, 90, 0, 1, 61, "9.0", NULL, 0 },
        { IMAGE_SASS, 90, 0, 0, 0, "gfx90a", NULL, 0 }, { IMAGE_SASS, 90, 0, 0, 0, NULL, NULL, 0 },
        { IMAGE_SASS, 90, 0, 0, 0, "90", NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpu_image g = { .kind = rows[i].kind, .arch = (uint16_t)rows[i].arch, .suffix = rows[i].suffix,
                               .major = (uint16_t)rows[i].major, .minor = (uint16_t)rows[i].minor };
        int got = compat_image_runs(&g, rows[i].device, rows[i].isa);

        if (got != rows[i].runs)
            fail_msg("row %zu: kind %d arch %d%c on %s: %d", i, rows[i].kind, rows[i].arch, rows[i].suffix,
                     rows[i].device ? rows[i].device : "nothing", got);
    }
}

#define SM(c, a) { .kind = IMAGE_SASS, .container = c, .arch = a }
#define SMX(c, a, x) { .kind = IMAGE_SASS, .container = c, .arch = a, .suffix = x }
#define PTX(c, a, M, m) { .kind = IMAGE_PTX, .container = c, .arch = a, .major = M, .minor = m }
#define STUB(c, a) { .kind = IMAGE_SASS, .container = c, .arch = a, .link_stub = true }
#define RSM(c, a) { .kind = IMAGE_SASS, .container = c, .arch = a, .relocatable = true }
#define RPTX(c, a, M, m) { .kind = IMAGE_PTX, .container = c, .arch = a, .major = M, .minor = m, .relocatable = true }

static void containers(void **state)
{
    static const struct {
        const char *what, *soname, *device, *isa;
        struct gpu_image v[6];
        size_t n;
        enum fit fit;
        uint32_t unfit;
    } rows[] = {
        { "one unit fits", NULL, "9.0", "9.0", { SM(0, 90) }, 1, FIT_SASS, 0 },
        { "nvcc's link stub is not the program", NULL, "9.0", "9.0", { STUB(0, 90), SM(1, 80) }, 2, FIT_NONE, 1 },
        { "of two units one has no code", NULL, "9.0", "9.0", { SM(0, 90), SM(1, 80) }, 2, FIT_NONE, 1 },
        { "a library that chooses is one whole", "libcublasLt.so.13", "9.0", "9.0", { SM(0, 90), SM(1, 80) }, 2, FIT_SASS, 1 },
        { "units for newer GPUs stand aside", NULL, "8.0", "9.0", { SM(0, 80), SM(1, 90), SMX(2, 100, 'a') }, 3, FIT_SASS, 0 },
        { "units for one GPU only stand aside", NULL, "12.0", "9.0", { SM(0, 120), SMX(1, 90, 'a') }, 2, FIT_SASS, 0 },
        { "only newer code", NULL, "7.5", "9.0", { SM(0, 80), SM(1, 90) }, 2, FIT_NONE, 2 },
        { "PTX serves", NULL, "9.0", "9.0", { SM(0, 80), PTX(0, 80, 8, 0) }, 2, FIT_PTX, 0 },
        { "PTX too new", NULL, "9.0", "8.7", { SM(0, 80), PTX(0, 80, 9, 0) }, 2, FIT_PTX_TOO_NEW, 1 },
        { "SASS saves from PTX too new", NULL, "9.0", "8.7", { SM(0, 90), PTX(0, 80, 9, 0) }, 2, FIT_SASS, 0 },
        { "separately compiled, linked for another GPU, PTX linked by the driver", NULL, "9.0", "9.0",
          { SM(0, 80), RSM(1, 80), RPTX(1, 80, 8, 0), RSM(2, 80), RSM(2, 90) }, 5, FIT_PTX, 0 },
        { "separately compiled without PTX: the runtime's own parts fit and the program's not", NULL, "9.0", "9.0",
          { SM(0, 80), RSM(1, 80), RSM(2, 80), RSM(2, 90) }, 4, FIT_NONE, 1 },
        { "nothing but stubs", NULL, "9.0", "9.0", { STUB(0, 80) }, 1, FIT_NO_CODE, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpu_images l = { .v = (struct gpu_image *)(uintptr_t)rows[i].v, .n = rows[i].n, .containers = 3 };
        struct arch_verdict v;

        arch_judge(&l, rows[i].soname, &(struct arch_target){ rows[i].device, rows[i].isa, NULL, NULL }, &v);
        if (v.fit != rows[i].fit || v.unfit != rows[i].unfit)
            fail_msg("%s: fit %d, unfit %u of %u", rows[i].what, (int)v.fit, v.unfit, v.containers);
    }
}

static void jit_variables(void **state)
{
    static const struct {
        const char *force, *forbid;
        struct gpu_image v[2];
        size_t n;
        enum fit fit;
        const char *variable;
    } rows[] = { /* what an H200 did: doc/h200.md */
        { NULL, NULL, { SM(0, 90), PTX(0, 90, 8, 0) }, 2, FIT_SASS, NULL },
        { "F", NULL, { SM(0, 90), PTX(0, 90, 8, 0) }, 2, FIT_PTX, "F" },
        { "F", NULL, { SM(0, 90) }, 1, FIT_NONE, "F" },
        { "F", NULL, { SM(0, 90), PTX(0, 80, 9, 9) }, 2, FIT_PTX_TOO_NEW, "F" },
        { NULL, "D", { PTX(0, 80, 8, 0) }, 1, FIT_NONE, "D" },
        { NULL, "D", { SM(0, 90), PTX(0, 80, 8, 0) }, 2, FIT_SASS, NULL },
        { "F", "D", { SM(0, 90), PTX(0, 80, 8, 0) }, 2, FIT_NONE, "F" },
        { "F", NULL, { SM(0, 80) }, 1, FIT_NONE, NULL }, /* unfit anyhow */
        { NULL, "D", { PTX(0, 100, 8, 7) }, 1, FIT_NONE, NULL },
        { NULL, "D", { PTX(0, 80, 9, 9) }, 1, FIT_PTX_TOO_NEW, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpu_images l = { .v = (struct gpu_image *)(uintptr_t)rows[i].v, .n = rows[i].n, .containers = 1 };
        struct arch_target t = { "9.0", "9.0", rows[i].force, rows[i].forbid };
        struct arch_verdict v;

        arch_judge(&l, NULL, &t, &v);
        if (v.fit != rows[i].fit || !str_eq(v.variable, rows[i].variable))
            fail_msg("row %zu: fit %d, variable %s", i, (int)v.fit, v.variable ? v.variable : "none");
    }
}

static void runs_on(void **state)
{
    struct gpu_image v[] = { SM(0, 80) }, a[] = { SMX(0, 90, 'a') }, p[] = { PTX(0, 110, 9, 0) };
    struct gpu_images l = { .v = v, .n = 1, .containers = 1 };
    char *text = arch_runs_on(&l, NULL);

    (void)state;
    assert_int_equal(compat_capability("9.0"), 90);
    assert_int_equal(compat_capability("99999999999999999999.0"), 0);
    assert_string_equal(text, "8.0 (A100, A30), 8.6 (A40, A10, RTX 30), 8.8, 8.9 (L40S, L4, RTX 40)");
    free(text);
    l.v = a;
    text = arch_runs_on(&l, NULL);
    assert_string_equal(text, "9.0 (H100, H200)");
    free(text);
    l.v = p;
    text = arch_runs_on(&l, NULL);
    assert_string_equal(text, "11.0 (Jetson Thor), 12.0 (RTX PRO 6000, RTX 50), 12.1 (GB10)");
    free(text);
}

static void hip(void **state)
{
    static const struct { const char *target, *gpu; int runs; } rows[] = {
        { "gfx90a", "gfx90a", 1 }, { "gfx906", "gfx90a", 0 }, { "gfx90a", "gfx90", 0 }, { "gfx90", "gfx90a", 0 },
        { "gfx90a:xnack-", "gfx90a", -1 }, { "gfx90a:xnack-", "gfx90a:xnack-", 1 }, { "gfx90a:xnack+", "gfx90a:xnack-", 0 },
        { "gfx90a", "gfx90a:sramecc+:xnack-", 1 }, { "gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", 1 },
        { "gfx90a:sramecc-", "gfx90a:sramecc+:xnack-", 0 }, { "gfx90a:sramecc+:xnack+", "gfx90a:sramecc+", -1 },
        { "gfx9-generic", "gfx906", 1 }, { "gfx9-generic", "gfx90a", 0 }, { "gfx9-generic:xnack-", "gfx906:xnack+", 0 },
        { "gfx9-4-generic", "gfx942", 1 }, { "gfx10-3-generic", "gfx1030", 1 }, { "gfx10-1-generic", "gfx1030", 0 },
        { "gfx11-generic", "gfx1151", 1 }, { "gfx12-generic", "gfx1201", 1 }, { "gfx1030", NULL, 0 }, { "gfx1030", "9.0", 0 },
        { "", "gfx906", 0 }, { "gfx10-3-generic", "", 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (hip_runs(rows[i].target, rows[i].gpu) != rows[i].runs)
            fail_msg("%s on %s: %d", rows[i].target, rows[i].gpu ? rows[i].gpu : "nothing", hip_runs(rows[i].target, rows[i].gpu));
}

static void lists(void **state)
{
    struct gpu_image v[] = { SM(0, 80), SMX(0, 90, 'a'), PTX(0, 90, 8, 4), STUB(1, 75), SM(2, 80) };
    struct gpu_images l = { .v = v, .n = COUNT(v), .containers = 3 };
    char *text = arch_list(&l);

    (void)state;
    assert_string_equal(text, "sm_80 sm_90a, PTX compute_90 (ISA 8.4)");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers), cmocka_unit_test(images), cmocka_unit_test(containers), cmocka_unit_test(jit_variables), cmocka_unit_test(runs_on), cmocka_unit_test(hip), cmocka_unit_test(lists),
    };

    return cmocka_run_group_tests_name("compat", tests, NULL, NULL);
}
