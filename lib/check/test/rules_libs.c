/* Rules about libraries: what is missing, damaged, of another class or version, and what does not fit together in one process. */
#include "made.h"

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

static void one_process(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s); /* a FIFO */
    l = add(&s, "libx.so.1", "/d/libx.so.1", WHY_LD_LIBRARY_PATH, 0, NULL, NULL);
    l->corrupt = xstrdup("a FIFO");
    says(only(&s, "not-a-regular-file"), "a FIFO, where '/opt/app/bin/app' needs a library");
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    end(&s);

    begin(&s); /* two cuDNN */
    add(&s, "libcudnn.so.8", "/a/libcudnn.so.8", WHY_RUNPATH, 0, NULL, NULL);
    add(&s, "libcudnn_ops.so.8", "/a/libcudnn_ops.so.8", WHY_RUNPATH, 0, NULL, NULL);
    assert_int_equal(judge(&s), 0);
    add(&s, "libcudnn.so.9", "/a/libcudnn.so.9", WHY_RUNPATH, 0, NULL, NULL);
    says(only(&s, "family-mixed"), "'/a/libcudnn.so.8' and '/a/libcudnn.so.9' meet in one process");
    end(&s);

    begin(&s); /* one release from two folders; /usr/lib is /lib */
    add(&s, "libcublas.so.12", "/usr/lib/libcublas.so.12", WHY_CACHE, 0, NULL, NULL);
    l = add(&s, "libcublasLt.so.12", "/lib/libcublasLt.so.12", WHY_CACHE, 0, NULL, NULL);
    assert_int_equal(judge(&s), 0);
    free(l->path);
    l->path = xstrdup("/opt/cuda/lib64/libcublasLt.so.12");
    assert_string_equal(only(&s, "family-mixed")->object, "cuBLAS");
    end(&s);

    begin(&s); /* one SONAME, two files */
    add(&s, "libx.so.1", "/a/libx.so.1", WHY_RUNPATH, 0, NULL, NULL)->object.ino = 1;
    l = add(&s, "libx.so", "/b/libx.so", WHY_RUNPATH, 0, NULL, NULL);
    l->object.ino = 2;
    free(l->object.soname);
    l->object.soname = xstrdup("libx.so.1");
    f = only(&s, "soname-mismatch");
    assert_int_equal(f->level, LEVEL_WARN);
    says(f, "'libx.so.1' is loaded twice, from '/a/libx.so.1' and, asked for as 'libx.so', from here");
    l->object.ino = 1; /* one file by two names */
    assert_int_equal(judge(&s), 0);
    end(&s);

    begin(&s); /* an instruction set */
    l = add(&s, "libfast.so.1", "/a/libfast.so.1", WHY_RUNPATH, 0, NULL, NULL);
    l->object.isa = "x86-64-v3";
    assert_int_equal(judge(&s), 0);
    l->object.isa = "x86-64-v4";
    says(only(&s, "cpu-isa"), "needs x86-64-v4, and the CPU of gpu017 is x86-64-v3");
    end(&s);
}

static void shadows(void **state)
{
    const struct finding *f;
    struct scene s;

    (void)state;
    begin(&s);
    strv_add(&s.r.shadows, "torch=/home/ada/torch.py");
    f = only(&s, "module-shadowed");
    assert_string_equal(f->object, "/home/ada/torch.py");
    says(f, "`import torch`");
    s.c.elsewhere = true;
    assert_int_equal(judge(&s), 0);
    strv_release(&s.r.shadows);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lib_not_found),
        cmocka_unit_test(lib_not_found_hints),
        cmocka_unit_test(lib_of_the_driver),
        cmocka_unit_test(lib_corrupt),
        cmocka_unit_test(audit_library),
        cmocka_unit_test(lib_wrong_class),
        cmocka_unit_test(symver_missing),
        cmocka_unit_test(symver_of_another_node),
        cmocka_unit_test(glibc_too_old),
        cmocka_unit_test(one_process),
        cmocka_unit_test(shadows),
    };

    return cmocka_run_group_tests_name("rules_libs", tests, NULL, NULL);
}
