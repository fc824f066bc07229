/* Rules about the environment, and the engine: levels, order, what is skipped, the registry. */
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

/* ---- versions ---- */

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

static void pinned(void **state)
{
    const struct finding *f;
    struct library *l;
    struct scene s;

    (void)state;
    begin(&s);
    pin_variable(&s, "RECON_X", PIN_SET, "1");
    strv_add(&s.received, "RECON_X=1");
    s.c.received = s.received.v;
    free(s.p.prefix);
    s.p.prefix = xstrdup("/c/envs/gs");
    f = only(&s, "env-prefix-missing");
    says(f, "was active at capture, and no prefix is now");
    assert_int_equal(findings_status(&s.out), CODE_JOB);
    env_set(&s.received, "VIRTUAL_ENV", "/c/envs/gs");
    s.c.received = s.received.v;
    assert_int_equal(judge(&s), 0);

    l = add(&s, "libown.so.1", "/a/libown.so.1", WHY_RUNPATH, 0, NULL, NULL);
    l->object.build_id = xstrdup("b2");
    *VEC_ADD(&s.p.objects) = (struct pin_object){ .role = PIN_LIBRARY,
                                                  .soname = xstrdup("libown.so.1"),
                                                  .path = xstrdup("/a/libown.so.1"),
                                                  .build_id = xstrdup("b1"),
                                                  .size = CONF_UNSET };
    says(only(&s, "lib-changed"), "has build-id b2, the pin has b1");
    assert_int_equal(findings_status(&s.out), 0);
    l->why = WHY_CACHE; /* the system's own */
    assert_int_equal(only(&s, "lib-changed")->level, LEVEL_NOTE);
    s.r.reused = true;
    assert_int_equal(judge(&s), 0);

    pin_variable(&s, "SLURM_NTASKS", PIN_SET, "4");
    env_set(&s.received, "SLURM_NTASKS", "4");
    s.c.received = s.received.v;
    assert_string_equal(only(&s, "slurm-env-stale")->object, "SLURM_NTASKS");
    end(&s);
}

static void requires_unmet(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    s.c.pin = &s.p;
    s.p.requires.driver = xstrdup("570.211.01"); /* the node's own */
    s.p.requires.cpu_isa = xstrdup("x86-64-v3");
    s.p.requires.glibc = xstrdup("2.36");
    assert_int_equal(judge(&s), 0);
    free(s.p.requires.driver);
    s.p.requires.driver = xstrdup("590.10");
    says(only(&s, "requires-unmet"), "the pin requires driver 590.10, and gpu017 has 570.211.01");
    assert_int_equal(findings_status(&s.out), CODE_NODE);
    strv_add(&s.r.env, "LD_LIBRARY_PATH=/usr/local/cuda/compat");
    assert_int_equal(judge(&s), 0); /* a newer libcuda stands in front */
    strv_release(&s.r.env);
    free(s.p.requires.driver);
    s.p.requires.driver = xstrdup("580.65.06"); /* what a capture writes for this runtime is driver-too-old's */
    s.p.requires.cuda_runtime = xstrdup("13.0");
    assert_int_equal(judge(&s), 0);
    free(s.p.requires.cpu_isa);
    s.p.requires.cpu_isa = xstrdup("x86-64-v4");
    says(only(&s, "requires-unmet"), "the pin requires cpu_isa x86-64-v4, and gpu017 has x86-64-v3");
    add(&s, "libfast.so.1", "/a/libfast.so.1", WHY_RUNPATH, 0, NULL, NULL)->object.isa = "x86-64-v4";
    assert_int_equal(judge(&s), 2); /* lib-changed is the other one */
    assert_string_equal(s.out.v[0].rule, "cpu-isa"); /* told once */
    assert_string_equal(s.out.v[1].rule, "lib-changed");
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
        cmocka_unit_test(silent_on_healthy),
        cmocka_unit_test(nothing_known_is_not_checked),
        cmocka_unit_test(a_silent_probe_is_a_note),
        cmocka_unit_test(scripts),
        cmocka_unit_test(levels),
        cmocka_unit_test(tools),
        cmocka_unit_test(skipped_is_silent),
        cmocka_unit_test(cuda_home),
        cmocka_unit_test(environment),
        cmocka_unit_test(pinned),
        cmocka_unit_test(requires_unmet),
        cmocka_unit_test(ordered_by_what_to_fix_first),
        cmocka_unit_test(registry),
    };

    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
