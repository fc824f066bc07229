/* Rules about GPU code, drivers and toolkits. */
#include "made.h"

static void arch(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 80 });
    f = only(&s, "arch-no-image");
    says(f, "'app' has no code for GPU 'NVIDIA H100' (compute capability 9.0); it holds sm_80");
    assert_string_equal(f->remedy, "add -gencode arch=compute_90,code=sm_90 (CUDA 11.8 or newer) to the build of 'app'; as it is it "
                                   "runs on compute capability 8.0 (A100, A30), 8.6 (A40, A10, RTX 30), 8.8, 8.9 (L40S, L4, RTX 40)");
    assert_int_equal(facts_assume(&s.f, "gpu=8.0,8.9", NULL), 0);
    assert_int_equal(judge(&s), 0);
    assert_int_equal(facts_assume(&s.f, "gpu=7.5,8.6,10.0,7.5", NULL), 0);
    assert_int_equal(judge(&s), 2);
    /* PTX of it: compiled at the first launch, or not readable by an old driver */
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_PTX, .arch = 80, .major = 8, .minor = 5 });
    assert_int_equal(facts_assume(&s.f, "gpu=9.0", NULL), 0);
    assert_int_equal(only(&s, "arch-jit-only")->level, LEVEL_WARN);
    assert_int_equal(facts_assume(&s.f, "driver.cuda=12.2", NULL), 0);
    says(only(&s, "ptx-newer-than-driver"), "its ISA 8.5 is newer than ISA 8.2");
    end(&s);
}

static void arch_by_variables(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    s.c.received = (char *[]){ (char *)"CUDA_FORCE_PTX_JIT=1", NULL };
    f = only(&s, "arch-no-image");
    says(f, "CUDA_FORCE_PTX_JIT makes the driver pass over SASS, and 'app' has no PTX for GPU 'NVIDIA H100'");
    assert_string_equal(f->hint, "jit-variable");
    assert_string_equal(f->remedy, "unset CUDA_FORCE_PTX_JIT");
    assert_int_equal(f->scope, SCOPE_JOB);
    s.c.received = (char *[]){ (char *)"CUDA_FORCE_PTX_JIT=0", NULL };
    assert_int_equal(judge(&s), 0);
    s.c.received = (char *[]){ (char *)"CUDA_DISABLE_PTX_JIT=1", NULL };
    assert_int_equal(judge(&s), 0); /* there is SASS */
    s.c.received = (char *[]){ (char *)"CUDA_FORCE_PTX_JIT=1", (char *)"CUDA_FORCE_JIT=0", NULL };
    assert_int_equal(judge(&s), 0); /* the one counts before the other */
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_PTX, .arch = 80, .major = 8, .minor = 5 });
    s.c.received = (char *[]){ (char *)"CUDA_FORCE_JIT=1", NULL };
    f = only(&s, "arch-jit-only");
    says(f, "'app' has SASS and PTX for GPU 'NVIDIA H100' (compute capability 9.0), of which the driver takes the PTX by CUDA_FORCE_JIT");
    assert_string_equal(f->remedy, "unset CUDA_FORCE_JIT");
    closure(&s)->libs.v[0].object.images.v[0].arch = 80;
    s.c.received = (char *[]){ (char *)"CUDA_DISABLE_PTX_JIT=1", NULL };
    f = only(&s, "arch-no-image");
    says(f, "CUDA_DISABLE_PTX_JIT makes the driver compile no PTX, and 'app' has no SASS for");
    assert_non_null(strstr(f->cause, "error 223"));
    /* no device at all: nothing is judged against the GPUs of the node */
    s.c.received = (char *[]){ (char *)"CUDA_VISIBLE_DEVICES=", NULL };
    closure(&s)->libs.v[0].object.images.v[1].arch = 100;
    f = only(&s, "device-not-visible");
    assert_int_equal(f->level, LEVEL_WARN);
    assert_string_equal(f->hint, "hidden");
    says(f, "'' hides the 1 GPU of gpu017");
    assert_int_equal(facts_assume(&s.f, "gpu=none", NULL), 0);
    assert_int_equal(judge(&s), 0);
    end(&s);

    begin(&s); /* a program without GPU code */
    s.c.received = (char *[]){ (char *)"CUDA_VISIBLE_DEVICES=", NULL };
    assert_int_equal(judge(&s), 0);
    end(&s);
}

static void arch_of_amd(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    strv_add(&closure(&s)->libs.v[0].object.images.hip, "gfx906");
    strv_add(&closure(&s)->libs.v[0].object.images.hip, "gfx90a:xnack-");
    assert_int_equal(facts_assume(&s.f, "gpu=gfx906", NULL), 0);
    assert_int_equal(judge(&s), 0);
    assert_int_equal(facts_assume(&s.f, "gpu=gfx1030", NULL), 0);
    f = only(&s, "arch-no-image");
    says(f, "'app' has no code for AMD GPU gfx1030; it holds gfx906 gfx90a:xnack-");
    assert_string_equal(f->remedy, "add --offload-arch=gfx1030 to the build of 'app', or take a node with one of the GPUs that it "
                                   "holds code for");
    assert_int_equal(facts_assume(&s.f, "gpu=gfx90a", NULL), 0); /* its mode is not known */
    assert_int_equal(only(&s, "arch-no-image")->level, LEVEL_NOTE);
    assert_int_equal(findings_status(&s.out), 0);
    assert_int_equal(facts_assume(&s.f, "gpu=gfx942", NULL), 0);
    strv_add(&closure(&s)->libs.v[0].object.images.hip, "gfx9-4-generic");
    assert_int_equal(judge(&s), 0);
    s.f.gpus_known = false;
    judge(&s);
    assert_non_null(strstr(not_checked(&s, "arch-no-image"), "has HIP code, but the GPUs of the node are not known"));
    end(&s);
}

static void add_openmp(struct scene *s, enum offload_form form, const char *target)
{
    *VEC_ADD(&closure(s)->libs.v[0].object.images.offload) =
        (struct offload_image){ OFFLOAD_OPENMP, form, 1, xstrdup(target) };
}

static void arch_of_openmp(void **state)
{
    static const struct { const char *gpu, *words; } rows[] = { /* words NULL: some code runs there */
        { "gpu=9.0", NULL }, { "gpu=8.6", NULL }, { "gpu=gfx90a", NULL }, { "gpu=gfx1030", "none for AMD GPU gfx1030" },
        { "gpu=7.5", "none for a GPU of compute capability 7.5" }, { "gpu=12.0", "none for a GPU of compute capability 12.0" },
    };
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    add_openmp(&s, OFFLOAD_CODE, "sm_80");
    add_openmp(&s, OFFLOAD_CODE, "sm_90a");
    add_openmp(&s, OFFLOAD_CODE, "gfx90a:xnack-");
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(facts_assume(&s.f, rows[i].gpu, NULL), 0);
        if (!rows[i].words) {
            assert_int_equal(judge(&s), 0);
            continue;
        }
        f = only(&s, "arch-no-image");
        assert_int_equal(f->level, LEVEL_WARN);
        assert_string_equal(f->hint, "openmp");
        says(f, "'app' has OpenMP device code for sm_80 sm_90a gfx90a:xnack-, none for ");
        says(f, rows[i].words);
    }
    s.c.received = (char *[]){ (char *)"OMP_TARGET_OFFLOAD=mandatory", NULL };
    f = only(&s, "arch-no-image");
    assert_int_equal(f->level, LEVEL_ERROR);
    says(f, "MANDATORY");
    s.c.received = (char *[]){ (char *)"OMP_TARGET_OFFLOAD=DISABLED", NULL };
    assert_int_equal(judge(&s), 0);
    s.c.received = NULL;
    add_openmp(&s, OFFLOAD_IR, "sm_60"); /* compiled for any NVIDIA GPU */
    assert_int_equal(judge(&s), 0);
    assert_int_equal(facts_assume(&s.f, "gpu=none", NULL), 0);
    judge(&s);
    assert_non_null(strstr(not_checked(&s, "arch-no-image"), "has OpenMP device code, but the node has no GPU"));
    end(&s);
    begin(&s); /* what is not linked is not judged */
    *VEC_ADD(&closure(&s)->libs.v[0].object.images.offload) =
        (struct offload_image){ OFFLOAD_CUDA, OFFLOAD_CODE, 1, xstrdup("sm_80") };
    assert_int_equal(facts_assume(&s.f, "gpu=7.5", NULL), 0);
    assert_int_equal(judge(&s), 0);
    end(&s);
}

static void arch_not_known(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 80 });
    assert_int_equal(facts_assume(&s.f, "gpu=none", NULL), 0);
    assert_int_equal(judge(&s), 0);
    assert_non_null(strstr(not_checked(&s, "arch-no-image"), "the node has no GPU"));
    end(&s);
}

static void arch_per_container(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 80, .container = 1 });
    f = only(&s, "arch-no-image");
    assert_string_equal(f->hint, "per-container");
    says(f, "1 of 2 parts");
    end(&s);
}

static void driver(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libcudart.so.10.2", "/x/cuda/libcudart.so.10.2", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    assert_int_equal(judge(&s), 0); /* older runtimes run on newer drivers */
    assert_int_equal(facts_assume(&s.f, "driver.kernel_module=418.87.00", NULL), 0);
    f = (judge(&s), &s.out.v[0]);
    assert_string_equal(f->rule, "driver-too-old");
    says(f, "driver 418.87.00 (CUDA 10.1) is older than 440.33, which CUDA 10.2 of 'libcudart.so.10.2' needs");
    assert_non_null(strstr(f->cause, "below CUDA 11 there is no minor-version compatibility"));
    end(&s);

    begin(&s); /* a newer minor version of the same major */
    add(&s, "libcudart.so.12", "/x/cuda/libcudart.so.12", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    closure(&s)->libs.v[0].object.images.toolkit = xstrdup("12.8");
    assert_int_equal(facts_assume(&s.f, "driver.kernel_module=535.183.01", NULL), 0);
    free(s.f.driver.cuda);
    s.f.driver.cuda = NULL;
    f = only(&s, "driver-too-old");
    assert_int_equal(f->level, LEVEL_NOTE);
    assert_string_equal(f->hint, "minor-version");
    assert_int_equal(facts_assume(&s.f, "driver.kernel_module=470.82.01", NULL), 0);
    f = only(&s, "driver-too-old");
    assert_int_equal(f->level, LEVEL_ERROR);
    says(f, "driver 470.82.01 (CUDA 11.4) is older than 525.60.13");
    end(&s);
}

static void toolkits(void **state)
{
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s);
    l = add(&s, "libown.so.1", "/a/libown.so.1", WHY_RUNPATH, 0, NULL, NULL);
    image(l, (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    l->object.images.toolkit = xstrdup("12.4");
    add(&s, "libcudart.so.12", "/c/libcudart.so.12", WHY_RUNPATH, 0, NULL, NULL);
    l = add(&s, "libcudnn.so.9", "/c/libcudnn.so.9", WHY_RUNPATH, 0, NULL,
            NULL); /* NVIDIA's own may be newer */
    image(l, (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    l->object.images.toolkit = xstrdup("13.0");
    assert_int_equal(judge(&s), 0);
    add(&s, "libcudart.so.11.0", "/b/libcudart.so.11.0", WHY_RUNPATH, 0, NULL, NULL);
    says(only(&s, "toolkit-mismatch"),
         "is of CUDA 11.0, and '/a/libown.so.1' in the same process of CUDA 12.4");
    end(&s);
}

static void drivers(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libcudart.so.12", "/c/libcudart.so.12", WHY_RUNPATH, 0, NULL, NULL);
    strv_add(&s.r.drivers, "/c/compat/libcuda.so.1");
    s.r.driver_file = xstrdup("/c/compat/libcuda.so.570.211.01");
    assert_int_equal(judge(&s), 0);
    free(s.r.driver_file);
    s.r.driver_file = xstrdup("/c/compat/libcuda.so.580.65.06");
    f = only(&s, "libcuda-kernel-mismatch");
    assert_int_equal(f->level, LEVEL_WARN);
    assert_string_equal(f->hint, "compat");
    free(s.r.driver_file);
    s.r.driver_file = xstrdup("/c/compat/libcuda.so.550.54.14");
    says(only(&s, "libcuda-kernel-mismatch"),
         "of release 550.54.14, and the kernel module of gpu017 is of 570.211.01");
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    free(s.r.drivers.v[0]); /* by dlopen: the stub stands first, the real one behind it */
    s.r.drivers.v[0] = xstrdup("/c/lib64/stubs/libcuda.so.1");
    strv_add(&s.r.drivers, "/drv/libcuda.so.1");
    free(s.r.driver_file);
    s.r.driver_file = xstrdup("/c/lib64/stubs/libcuda.so");
    says(only(&s, "libcuda-stub"), "; the driver's own is '/drv/libcuda.so.1'");
    assert_int_equal(findings_status(&s.out), CODE_JOB);
    strv_release(&s.r.drivers);
    free(s.r.driver_file);
    end(&s);
}

static void builds(void **state)
{
    static const struct {
        const char *cuda, *arch;
        int gcc;
        const char *fires, *text;
    } asked[] = {
        { "11.0", "8.6", 0, "toolkit-too-old",
          "CUDA 11.0 cannot compile for sm_86, which needs CUDA 11.1 or newer" },
        { "11.1", "compute_86", 0, NULL, NULL },
        { "11.1", "9.0", 0, "toolkit-too-old", "needs CUDA 11.8" },
        { "11.8", "sm_90a", 0, "toolkit-too-old", "sm_90a, which needs CUDA 12.0" },
        { "13.0", "7.0", 0, "toolkit-too-old",
          "CUDA 13.0 no longer compiles for sm_70: dropped in CUDA 13.0" },
        { "12.8", "10.3f", 0, "toolkit-too-old", "needs CUDA 12.9" },
        { "12.8", "12.0+PTX", 14, NULL, NULL },
        { "12.1", "8.6", 13, "host-compiler-too-new",
          "GCC 13 is newer than GCC 12, the last that CUDA 12.1 takes" },
        { "12.1", "8.6", 5, "host-compiler-too-old", "GCC 5 is older than GCC 6" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct build b = { .toolkit = { .version = xstrdup(asked[i].cuda) }, .gcc = asked[i].gcc };
        struct scene s;

        begin(&s);
        strv_add(&b.archs, asked[i].arch);
        s.c.build = &b;
        if (asked[i].fires)
            says(only(&s, asked[i].fires), asked[i].text);
        else if (judge(&s))
            fail_msg("CUDA %s for %s: %s", asked[i].cuda, asked[i].arch, s.out.v[0].text);
        strv_release(&b.archs);
        free(b.toolkit.version);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arch),
        cmocka_unit_test(arch_by_variables),
        cmocka_unit_test(arch_of_amd),
        cmocka_unit_test(arch_of_openmp),
        cmocka_unit_test(arch_not_known),
        cmocka_unit_test(arch_per_container),
        cmocka_unit_test(driver),
        cmocka_unit_test(toolkits),
        cmocka_unit_test(drivers),
        cmocka_unit_test(builds),
    };

    return cmocka_run_group_tests_name("rules_gpu", tests, NULL, NULL);
}
