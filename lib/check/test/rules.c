#include "made.h"

/* ---- healthy ---- */

static void silent_on_healthy(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    /* a weak need that nobody offers, an own library, code for the GPU with a too new PTX beside it */
    add(&s, "libown.so.1", "/opt/app/lib/libown.so.1", WHY_RUNPATH, 0, "libc.so.6:GLIBC_2.36 ?libc.so.6:GLIBC_2.99", "OWN_1");
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_SASS, .arch = 90 });
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_PTX, .arch = 90, .major = 9, .minor = 4 });
    assert_int_equal(judge(&s), 0);
    assert_int_equal(findings_status(&s.out), 0);
    end(&s);
}

static void nothing_known_is_not_checked(void **state)
{
    struct check_case c = { 0 };
    struct findings out;

    (void)state;
    check(&c, NULL, &out);
    assert_int_equal(findings_status(&out), 0);
    for (size_t i = 0; i < out.n; i++) {
        assert_string_equal(out.v[i].rule, "not-checked");
        assert_int_equal(out.v[i].level, LEVEL_NOTE);
    }
    assert_int_equal(out.not_checked, out.n);
    findings_release(&out);
}

static void a_silent_probe_is_a_note(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    strv_add(&s.f.unknown, "nvidia: gave no answer within 2000 ms");
    strv_add(&s.r.failed, "module 'x': its program could not be read");
    assert_int_equal(judge(&s), 1);
    assert_int_equal(findings_status(&s.out), 0);
    assert_int_equal(s.out.not_checked, 8); /* four rules want a pin, three the environment, and the module */
    assert_string_equal(not_checked(&s, "resolution"), "module 'x': its program could not be read");
    for (size_t i = 0; i < s.out.n; i++)
        if (str_eq(s.out.v[i].rule, "node-unknown"))
            assert_string_equal(s.out.v[i].object, "nvidia");
    strv_release(&s.r.failed);
    end(&s);
}

/* What a batch shell knows of conda when it reads these lines. */
static void scripts(void **state)
{
    static const struct { const char *text, *says; enum level level; } rows[] = {
        { "#!/bin/bash\nconda activate gs\npython x\n", "line 2: `conda activate gs` has no init in a batch shell; errors", LEVEL_ERROR },
        { "#!/bin/sh\nset -euo pipefail\n(mamba activate y; python z)", "line 3: `mamba activate y` has no init in a batch shell", LEVEL_ERROR },
        { "#!/bin/bash -e\ncd /x && conda activate", "line 2: `conda activate` has no init in a batch shell", LEVEL_ERROR },
        { "#!/bin/bash\nif true; then micromamba activate a; fi\n", "line 2: `micromamba activate a`", LEVEL_ERROR },
        { "#!/bin/bash\nmodule load anaconda\nconda activate n\n", "works only when", LEVEL_NOTE },
        { "#!/bin/bash\n. ~/.bashrc\nconda activate n\n", "works only when", LEVEL_NOTE },
        { "#!/bin/bash -l\nconda activate n\n", "works only when", LEVEL_NOTE },
        { "#!/bin/bash\neval \"$(conda shell.bash hook)\"\nconda activate n\n", NULL, LEVEL_NOTE },
        { "#!/bin/bash\nif true; then source /opt/c/etc/profile.d/conda.sh && conda activate n; fi\n", NULL, LEVEL_NOTE },
        { "#!/bin/bash\nconda() { true; }\nconda activate n\n", NULL, LEVEL_NOTE },
        { "#!/bin/bash\ncat >x <<'END'\nconda activate n\nEND\n", NULL, LEVEL_NOTE },
        { "#!/bin/bash\n# conda activate n\necho conda activate; conda run -n x python\nsource activate n\n", NULL, LEVEL_NOTE },
        { "#!/usr/bin/python3\nconda activate n\n", NULL, LEVEL_NOTE },
    };
    static char *const nothing[] = { NULL };
    static char *const functions[] = { (char *)(uintptr_t) "BASH_FUNC_conda%%=() {  true; }", NULL };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct check_script one = { (char *)(uintptr_t) "/x/run.sh", (char *)(uintptr_t)rows[i].text };
        struct check_scripts list = { &one, 1, 1 };
        struct check_case c = { .scripts = &list, .received = nothing };
        const struct finding *f = NULL;
        struct findings out;

        check(&c, NULL, &out);
        for (size_t k = 0; k < out.n; k++)
            if (str_eq(out.v[k].rule, "shell-init-missing"))
                f = &out.v[k];
        if (!f != !rows[i].says || (f && (!str_starts(f->text, rows[i].says) && !strstr(f->text, rows[i].says))))
            fail_msg("row %zu: %s", i, f ? f->text : "nothing");
        if (f)
            assert_int_equal(f->level, rows[i].level);
        findings_release(&out);
        c.received = functions; /* exported functions come along */
        check(&c, NULL, &out);
        assert_int_equal(findings_status(&out), 0);
        findings_release(&out);
    }
}

/* A site's levels: errors and warnings move, notes stay, off is silent. */
static void levels(void **state)
{
    static const struct { const char *level; int found; enum level want; } rows[] = {
        { "off", 0, LEVEL_NOTE }, { "note", 1, LEVEL_NOTE }, { "warn", 1, LEVEL_WARN }, { "error", 1, LEVEL_ERROR } };
    static char *const nothing[] = { NULL };
    struct check_script one = { (char *)(uintptr_t) "/x/run.sh", NULL };
    struct check_scripts list = { &one, 1, 1 };

    (void)state;
    for (int maybe = 0; maybe < 2; maybe++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct conf_map map = { 0 };
            struct check_case c = { .scripts = &list, .levels = &map, .received = nothing };
            struct findings out;
            int found = 0;

            one.text = (char *)(uintptr_t)(maybe ? "#!/bin/sh\n. x\nconda activate n\n" : "#!/bin/sh\nconda activate n\n");
            conf_map_set(&map, "shell-init-missing", rows[i].level, CONF_KIND_TEXT);
            check(&c, NULL, &out);
            for (size_t k = 0; k < out.n; k++)
                if (str_eq(out.v[k].rule, "shell-init-missing")) {
                    found++;
                    assert_int_equal(out.v[k].level, maybe ? LEVEL_NOTE : rows[i].want);
                }
            assert_int_equal(found, rows[i].found);
            findings_release(&out);
            conf_map_release(&map);
        }
}

static void tools(void **state)
{
    static const struct { const char *have, *want; bool old; } rows[] = {
        { "3.16.3", "3.18", true }, { "3.18", "3.18", false }, { "3.9", "3.18", true }, { "4.0", "3.28", false } };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct build_tool t = { (char *)(uintptr_t) "cmake", (char *)(uintptr_t)rows[i].have, (char *)(uintptr_t)rows[i].want,
                                (char *)(uintptr_t) "'/src/CMakeLists.txt'" };
        struct build b = { .tools = { &t, 1, 1 } };
        struct facts f;
        struct check_case c = { .build = &b, .facts = &f };
        struct findings out;

        facts_minimal(&f);
        check(&c, NULL, &out);
        facts_release(&f);
        assert_int_equal(findings_status(&out), rows[i].old ? CODE_JOB : 0);
        if (rows[i].old)
            assert_string_equal(out.v[0].rule, "tool-too-old");
        findings_release(&out);
    }
}

static void skipped_is_silent(void **state)
{
    struct strv skip = { 0 };
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libx.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    strv_add(&skip, "lib-not-found");
    check(&s.c, &skip, &s.out);
    assert_int_equal(findings_status(&s.out), 0);
    strv_release(&skip);
    end(&s);
}

/* ---- libraries ---- */

static void tried(struct library *l, const char *path, const char *why_not)
{
    *VEC_ADD(&l->tried) = (struct tried){ xstrdup(path), xstrdup(why_not), WHY_RUNPATH };
}

static void lib_not_found(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s);
    l = add(&s, "libtsdf.so.2", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    tried(l, "/builds/ci-4711/out/lib", "no such directory");
    closure(&s)->libs.v[0].object.runpath = xstrdup("/builds/ci-4711/out/lib");
    *VEC_ADD(&closure(&s)->dirs) = (struct searched_dir){ xstrdup("/builds/ci-4711/out/lib"), 0 };
    strv_add(&l->candidates, "/opt/app/lib/libtsdf.so.2");
    f = only(&s, "lib-not-found");
    says(f, "needed by '/opt/app/bin/app'");
    says(f, "/builds/ci-4711/out/lib (no such directory)");
    says(f, "/opt/app/lib/libtsdf.so.2");
    assert_string_equal(f->hint, "runpath-dead");
    assert_string_equal(f->remedy, "export LD_LIBRARY_PATH='/opt/app/lib'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
    assert_int_equal(f->scope, SCOPE_JOB);
    assert_int_equal(findings_status(&s.out), CODE_JOB);
    conf_defaults(pin_rows, &s.p); /* the launcher gives back the pinned value: exporting another changes nothing */
    *VEC_ADD(&s.p.objects) = (struct pin_object){ .role = PIN_PROGRAM, .path = xstrdup("/opt/app/bin/app") };
    s.c.pin = &s.p;
    s.c.restored = true;
    f = only(&s, "lib-not-found");
    assert_non_null(strstr(f->remedy, "; recon-pin capture -o PIN '/opt/app/bin/app' (or recon-submit again)"));
    assert_non_null(strstr(f->remedy, "sbatch --exclude=gpu017"));
    end(&s);
}

static void lib_not_found_hints(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s); /* the program's RUNPATH has it, a library without one needs it */
    closure(&s)->libs.v[0].object.runpath = xstrdup("$ORIGIN/../lib");
    add(&s, "liba.so.1", "/opt/app/lib/liba.so.1", WHY_RUNPATH, 0, NULL, NULL);
    l = add(&s, "libb.so.1", NULL, WHY_NOT_FOUND, 2, NULL, NULL);
    strv_add(&l->candidates, "/opt/app/lib/libb.so.1");
    f = only(&s, "lib-not-found");
    assert_string_equal(f->hint, "runpath-not-inherited");
    says(f, "needed by '/opt/app/lib/liba.so.1'");
    end(&s);

    begin(&s);
    l = add(&s, "libb.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    tried(l, "/opt/x/libb.so.1", "permission denied");
    f = only(&s, "lib-not-found");
    assert_string_equal(f->hint, "unreadable");
    assert_string_equal(f->remedy, "chmod a+r '/opt/x/libb.so.1'");
    end(&s);

    begin(&s);
    l = add(&s, "libb.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    strv_add(&l->candidates, "/usr/local/lib/libb.so.1");
    f = only(&s, "lib-not-found");
    assert_string_equal(f->hint, "cache-entry-missing");
    end(&s);

    begin(&s); /* the pin knows a place: another node has it */
    conf_defaults(pin_rows, &s.p);
    *VEC_ADD(&s.p.objects) = (struct pin_object){ .role = PIN_LIBRARY, .soname = xstrdup("libb.so.1"),
                                                  .path = xstrdup("/usr/local/cuda-12.8/lib64/libb.so.1") };
    s.c.pin = &s.p;
    add(&s, "libb.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    f = only(&s, "lib-not-found");
    assert_int_equal(f->scope, SCOPE_NODE);
    assert_non_null(strstr(f->remedy, "sbatch --exclude=gpu017"));
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    end(&s);
}

static void lib_of_the_driver(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libcuda.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    s.c.elsewhere = true; /* another node's facts: its driver's files cannot be seen from here */
    assert_int_equal(only(&s, "lib-not-found")->level, LEVEL_NOTE);
    assert_int_equal(findings_status(&s.out), 0);
    s.c.elsewhere = false;
    says(only(&s, "lib-not-found"), "has a driver, but the loader does not find its libraries");
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    assert_int_equal(facts_assume(&s.f, "gpu=none", NULL), 0);
    free(s.f.driver.kernel_module);
    s.f.driver.kernel_module = NULL;
    says(only(&s, "lib-not-found"), "it comes with the NVIDIA driver, and gpu017 has no GPU");
    end(&s);
}

static void lib_corrupt(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s);
    l = add(&s, "libuv3d.so.28", "/data/lib/libuv3d.so.28", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    l->corrupt = xstrdup("17 bytes of text");
    l->beside = xstrdup("libuv3d.so.28.6.3");
    f = only(&s, "lib-corrupt");
    says(f, "17 bytes of text");
    assert_string_equal(f->object, "/data/lib/libuv3d.so.28");
    assert_string_equal(f->remedy, "ln -sf 'libuv3d.so.28.6.3' '/data/lib/libuv3d.so.28'");
    free(l->corrupt);
    l->corrupt = xstrdup("a directory");
    f = only(&s, "lib-corrupt");
    assert_string_equal(f->remedy, "mv '/data/lib/libuv3d.so.28' '/data/lib/libuv3d.so.28'.broken && "
                                   "ln -s 'libuv3d.so.28.6.3' '/data/lib/libuv3d.so.28'");
    l->preload = true;
    assert_string_equal(only(&s, "preload-missing")->object, "libuv3d.so.28");
    assert_int_equal(findings_status(&s.out), 0);
    end(&s);

    begin(&s); /* a fit file elsewhere is put before it: nothing is written into a folder of others */
    l = add(&s, "libv.so.1", "/data/lib/libv.so.1", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    l->corrupt = xstrdup("17 bytes of text");
    strv_add(&l->candidates, "/opt/v/lib/libv.so.1");
    assert_string_equal(only(&s, "lib-corrupt")->remedy, "export LD_LIBRARY_PATH='/opt/v/lib'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
    l->why = WHY_RPATH; /* which comes before LD_LIBRARY_PATH */
    assert_string_equal(only(&s, "lib-corrupt")->remedy,
                        "install the library again, or mv '/data/lib/libv.so.1' '/data/lib/libv.so.1'.broken");
    free(l->candidates.v[0]);
    l->candidates.v[0] = xstrdup("/usr/lib/libv.so.1");
    says(only(&s, "lib-corrupt"), "17 bytes of text");
    assert_non_null(strstr(only(&s, "lib-corrupt")->remedy, ".broken: the loader then goes on to '/usr/lib/libv.so.1'"));
    end(&s);

    begin(&s); /* no part of the system libc is linked into a user's folder */
    l = add(&s, "libm.so.6", "/data/lib/libm.so.6", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    l->corrupt = xstrdup("17 bytes of text");
    strv_add(&l->candidates, "/lib/x86_64-linux-gnu/libm.so.6");
    s.c.received = (char *[]){ (char *)"LD_LIBRARY_PATH=/opt/a:/data/lib/:/opt/b", NULL };
    assert_string_equal(only(&s, "lib-corrupt")->remedy, "export LD_LIBRARY_PATH='/opt/a:/opt/b'");
    s.c.received = (char *[]){ (char *)"LD_LIBRARY_PATH=/data/lib", NULL };
    assert_string_equal(only(&s, "lib-corrupt")->remedy, "unset LD_LIBRARY_PATH");
    end(&s);
}

static void audit_library(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    s.c.received = (char *[]){ (char *)"LD_AUDIT=:/opt/xalt/audit.so", NULL };
    says(only(&s, "audit-library"), "LD_AUDIT names it");
    assert_string_equal(only(&s, "audit-library")->object, "/opt/xalt/audit.so");
    assert_string_equal(only(&s, "audit-library")->remedy, "unset LD_AUDIT");
    closure(&s)->secure = true; /* a path counts for nothing then */
    assert_int_equal(judge(&s), 0);
    closure(&s)->secure = false;
    s.c.received = (char *[]){ (char *)"LD_AUDIT=", NULL };
    assert_int_equal(judge(&s), 0);
    strv_add(&closure(&s)->libs.v[0].object.audit, "libwatch.so");
    assert_string_equal(only(&s, "audit-library")->object, "libwatch.so");
    end(&s);
}

static void lib_wrong_class(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    tried(add(&s, "libgs.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL), "/data/lib/libgs.so.1", "wrong class");
    says(only(&s, "lib-wrong-class"), "only '/data/lib/libgs.so.1' has the name");
    end(&s);
}

/* ---- versions ---- */

static void symver_missing(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libstdc++.so.6", "/conda/lib/libstdc++.so.6", WHY_LD_LIBRARY_PATH, 0, NULL, "GLIBCXX_3.4 GLIBCXX_3.4.9 GLIBCXX_3.4.21");
    add(&s, "libown.so.1", "/opt/app/lib/libown.so.1", WHY_RUNPATH, 0,
        "libstdc++.so.6:GLIBCXX_3.4.26 libstdc++.so.6:GLIBCXX_3.4.30 libstdc++.so.6:GLIBCXX_3.4", NULL);
    f = only(&s, "symver-missing");
    says(f, "'/opt/app/lib/libown.so.1' needs GLIBCXX_3.4.30 and 1 more");
    says(f, "ends at GLIBCXX_3.4.21");
    assert_string_equal(f->object, "/conda/lib/libstdc++.so.6");
    assert_non_null(strstr(f->remedy, "module load gcc/12"));
    strv_add(&closure(&s)->libs.v[2].candidates, "/opt/gcc12/lib64/libstdc++.so.6");
    assert_non_null(strstr(only(&s, "symver-missing")->remedy, "export LD_LIBRARY_PATH='/opt/gcc12/lib64'"));
    end(&s);
}

/* Facts of another node: its own libstdc++ is what counts, unless the program brings one. */
static void symver_of_another_node(void **state)
{
    const struct finding *f;
    struct facts_library *l;
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libstdc++.so.6", "/lib/libstdc++.so.6", WHY_CACHE, 0, NULL, "GLIBCXX_3.4 GLIBCXX_3.4.30");
    add(&s, "libown.so.1", "/opt/app/lib/libown.so.1", WHY_RUNPATH, 0, "libstdc++.so.6:GLIBCXX_3.4.30", NULL);
    s.c.elsewhere = true;
    l = VEC_ADD(&s.f.libraries);
    l->soname = xstrdup("libstdc++.so.6");
    l->path = xstrdup("/usr/lib64/libstdc++.so.6");
    strv_split(&l->versions, "GLIBCXX_3.4 GLIBCXX_3.4.19", " ");
    f = only(&s, "symver-missing");
    says(f, "'/usr/lib64/libstdc++.so.6' ends at GLIBCXX_3.4.19");
    closure(&s)->libs.v[2].why = WHY_RPATH;
    assert_int_equal(judge(&s), 0);
    end(&s);
}

static void glibc_too_old(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    add(&s, "libown.so.1", "/opt/app/lib/libown.so.1", WHY_RUNPATH, 0, "libc.so.6:GLIBC_2.38 libc.so.6:GLIBC_2.37", NULL);
    f = only(&s, "glibc-too-old"); /* and not symver-missing as well */
    says(f, "'libown.so.1' needs glibc 2.38 (GLIBC_2.38), and gpu017 has 2.36");
    assert_null(strstr(f->remedy, "LD_LIBRARY_PATH"));
    end(&s);

    begin(&s);
    s.c.elsewhere = true;
    assert_int_equal(facts_assume(&s.f, "os.glibc=2.17", NULL), 0);
    add(&s, "libz.so.1", "/lib/libz.so.1", WHY_CACHE, 0, "libc.so.6:GLIBC_2.33", NULL); /* that node has its own */
    add(&s, "libown.so.1", "/opt/app/lib/libown.so.1", WHY_RUNPATH, 0, "libc.so.6:GLIBC_ABI_DT_RELR", NULL);
    f = only(&s, "glibc-too-old");
    says(f, "needs glibc 2.36 (GLIBC_ABI_DT_RELR), and gpu017 has 2.17; 2 objects need more than 2.17");
    end(&s);

    begin(&s);
    free(s.f.os.glibc);
    s.f.os.glibc = NULL;
    s.c.elsewhere = true;
    assert_int_equal(judge(&s), 0);
    assert_non_null(strstr(not_checked(&s, "glibc-too-old"), "the glibc of gpu017 is not known"));
    end(&s);
}

/* ---- GPUs ---- */

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

/* ---- environment ---- */

static void cuda_home(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    pin_variable(&s, "CUDA_HOME", PIN_SET, "/usr/local/cuda-12.8/");
    assert_int_equal(judge(&s), 0);
    free(s.p.variables.v[0].value);
    s.p.variables.v[0].value = xstrdup("/usr/local/cuda-11.8");
    f = only(&s, "cuda-home-missing");
    says(f, "CUDA_HOME=/usr/local/cuda-11.8 does not exist on gpu017; toolkits there: /usr/local/cuda-12.8");
    free(s.p.variables.v[0].value);
    s.p.variables.v[0].value = xstrdup("/sw/cuda/11.8"); /* nobody looked there */
    assert_int_equal(judge(&s), 0);
    assert_non_null(not_checked(&s, "cuda-home-missing"));
    *VEC_ADD(&closure(&s)->dirs) = (struct searched_dir){ xstrdup("/sw/cuda/11.8/lib64"), 5 }; /* but the search did */
    assert_int_equal(judge(&s), 0);
    assert_null(not_checked(&s, "cuda-home-missing"));
    end(&s);

    begin(&s); /* no pin: the environment alone promises nothing */
    strv_add(&s.r.env, "CUDA_HOME=/usr/local/cuda-11.8");
    f = only(&s, "cuda-home-missing");
    assert_int_equal(f->level, LEVEL_WARN);
    assert_string_equal(f->remedy, "export CUDA_HOME=/usr/local/cuda-12.8");
    strv_release(&s.r.env);
    end(&s);
}

static void environment(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    pin_variable(&s, "CUDA_HOME", PIN_SET, "/usr/local/cuda-12.8");
    pin_variable(&s, "LD_LIBRARY_PATH", PIN_PREPEND, "/a:/b");
    pin_variable(&s, "LD_PRELOAD", PIN_UNSET, NULL);
    strv_add(&s.received, "SLURM_JOB_ID=1");
    strv_add(&s.received, "SLURM_STEP_ID=0");
    s.c.received = s.received.v;
    f = only(&s, "env-not-exported");
    assert_string_equal(f->object, "CUDA_HOME, LD_LIBRARY_PATH");
    says(f, "not in the environment of this Slurm step");
    assert_non_null(strstr(f->remedy, "--export=ALL"));
    assert_int_equal(f->level, LEVEL_ERROR);
    s.c.restored = true;
    assert_int_equal(only(&s, "env-not-exported")->level, LEVEL_WARN);
    strv_add(&s.received, "CUDA_HOME=/usr/local/cuda-12.8");
    strv_add(&s.received, "LD_LIBRARY_PATH=/a:/b:/c");
    s.c.received = s.received.v;
    assert_int_equal(judge(&s), 0);
    env_set(&s.received, "LD_LIBRARY_PATH", "/a:/bc");
    env_set(&s.received, "LD_PRELOAD", "libx.so");
    s.c.received = s.received.v;
    assert_int_equal(judge(&s), 2);
    assert_string_equal(s.out.v[0].rule, "env-drift");
    assert_string_equal(s.out.v[0].remedy, "export LD_LIBRARY_PATH='/a:/b'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"");
    assert_string_equal(s.out.v[1].remedy, "unset LD_PRELOAD");
    end(&s);
}

/* ---- the engine ---- */

static void ordered_by_what_to_fix_first(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    pin_variable(&s, "CUDA_HOME", PIN_SET, "/usr/local/cuda-11.8");
    image(&closure(&s)->libs.v[0], (struct gpu_image){ .kind = IMAGE_PTX, .arch = 80, .major = 7 });
    add(&s, "libx.so.1", NULL, WHY_NOT_FOUND, 0, NULL, NULL);
    *VEC_ADD(&s.r.closures) = (struct closure){ 0 }; /* a module's closure that misses the same */
    s.r.closures.v[1] = (struct closure){ 0 };
    *VEC_ADD(&s.r.closures.v[1].libs) = (struct library){ .soname = xstrdup("libx.so.1"), .why = WHY_NOT_FOUND };
    assert_int_equal(judge(&s), 3);
    assert_string_equal(s.out.v[0].rule, "cuda-home-missing");
    assert_string_equal(s.out.v[1].rule, "lib-not-found");
    assert_string_equal(s.out.v[2].rule, "arch-jit-only");
    assert_int_equal(findings_status(&s.out), CODE_NODE); /* node and job together: another node settles it */
    closure_release(&s.r.closures.v[1]);
    end(&s);
}

static void registry(void **state)
{
    (void)state;
    for (size_t i = 0; check_rules[i]; i++) {
        const struct rule *r = check_rules[i];

        assert_non_null(r->name);
        assert_true(strlen(r->doc) > 20 && r->doc[strlen(r->doc) - 1] != '.');
        assert_true(r->inputs != 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(check_rules[j]->name, r->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_on_healthy),   cmocka_unit_test(nothing_known_is_not_checked),
        cmocka_unit_test(scripts),
        cmocka_unit_test(levels),
        cmocka_unit_test(tools),
        cmocka_unit_test(skipped_is_silent),   cmocka_unit_test(a_silent_probe_is_a_note),
         cmocka_unit_test(lib_not_found),
        cmocka_unit_test(lib_not_found_hints), cmocka_unit_test(lib_of_the_driver),
        cmocka_unit_test(lib_corrupt),         cmocka_unit_test(audit_library), cmocka_unit_test(lib_wrong_class),
        cmocka_unit_test(symver_missing),      cmocka_unit_test(symver_of_another_node),
        cmocka_unit_test(glibc_too_old),       cmocka_unit_test(arch),
        cmocka_unit_test(arch_by_variables), cmocka_unit_test(arch_of_amd), cmocka_unit_test(arch_not_known),      cmocka_unit_test(arch_per_container),
        cmocka_unit_test(driver),              cmocka_unit_test(cuda_home),
        cmocka_unit_test(environment),         cmocka_unit_test(ordered_by_what_to_fix_first),
        cmocka_unit_test(registry),
    };

    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
