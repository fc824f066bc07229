#include "config.h"
#include "scratch.h"

static void test_status(void **state)
{
    static const struct {
        int level[2], scope[2], want;
    } cases[] = {
        { { LEVEL_NOTE, LEVEL_WARN }, { SCOPE_NODE, SCOPE_JOB }, 0 },
        { { LEVEL_ERROR, LEVEL_WARN }, { SCOPE_DATA, SCOPE_NODE }, 65 },
        { { LEVEL_ERROR, LEVEL_ERROR }, { SCOPE_DATA, SCOPE_JOB }, 78 },
        { { LEVEL_ERROR, LEVEL_ERROR }, { SCOPE_JOB, SCOPE_NODE }, 75 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct findings l = { 0 };

        for (int k = 0; k < 2; k++)
            findings_add(&l, "rule", (enum level)cases[i].level[k], (enum scope)cases[i].scope[k], "o", "t");
        assert_int_equal(findings_status(&l), cases[i].want);
        findings_release(&l);
    }
    assert_int_equal(findings_status(&(struct findings){ 0 }), 0);
}

static void test_json(void **state)
{
    struct findings l = { .not_checked = 2, .ms = 12.3 };
    struct str t = { 0 };

    (void)state;
    finding_explain(findings_add(&l, "lib-not-found", LEVEL_ERROR, SCOPE_JOB, "libcudart.so.11.0", "not \"found\" in %d", 3),
                    "runpath-dead", "moved", NULL);
    finding_explain(&l.v[0], NULL, NULL, "add it");
    findings_add(&l, "env-drift", LEVEL_WARN, SCOPE_JOB, "A\xff", "b");
    findings_json(&l, &t);
    assert_string_equal(
        t.s, "{\"v\":1,\"type\":\"finding\",\"rule\":\"lib-not-found\",\"level\":\"error\",\"scope\":\"job\","
             "\"object\":\"libcudart.so.11.0\",\"text\":\"not \\\"found\\\" in 3\",\"cause\":\"moved\",\"remedy\":\"add it\","
             "\"hint\":\"runpath-dead\"}\n"
             "{\"v\":1,\"type\":\"finding\",\"rule\":\"env-drift\",\"level\":\"warn\",\"scope\":\"job\","
             "\"object\":\"A\\\\xff\",\"text\":\"b\"}\n"
             "{\"v\":1,\"type\":\"summary\",\"status\":\"error\",\"errors\":1,\"warnings\":1,\"not_checked\":2,\"ms\":12.3}\n");
    str_release(&t);
    findings_release(&l);
}

static void test_library(void **state)
{
    struct str t = { 0 };

    (void)state;
    library_json(&(struct library_line){ .soname = "liba.so.1", .needed_by = "/bin/x" }, &t);
    assert_string_equal(t.s, "{\"v\":1,\"type\":\"library\",\"soname\":\"liba.so.1\",\"path\":null,\"why\":null,"
                             "\"needed_by\":\"/bin/x\"}\n");
    str_clear(&t);
    library_json(&(struct library_line){ .soname = "/m.so", .path = "/m.so", .why = "path", .optional = true }, &t);
    assert_string_equal(t.s, "{\"v\":1,\"type\":\"library\",\"soname\":\"/m.so\",\"path\":\"/m.so\",\"why\":\"path\","
                             "\"needed_by\":null,\"optional\":true}\n");
    str_release(&t);
}

static void test_may_dlopen(void **state)
{
    struct strv names = { 0 };
    struct str t = { 0 };

    (void)state;
    strv_add(&names, "liba.so.2");
    strv_add(&names, "lib\xff.so");
    may_dlopen_json(&(struct may_dlopen_line){ .names = &names, .by = "/bin/x", .feature = "\"f\"" }, &t);
    assert_string_equal(t.s, "{\"v\":1,\"type\":\"may-dlopen\",\"names\":[\"liba.so.2\",\"lib\\\\xff.so\"],\"path\":null,"
                             "\"by\":\"/bin/x\",\"feature\":\"\\\"f\\\"\"}\n");
    str_release(&t);
    strv_release(&names);
}

static void test_text(void **state)
{
    struct findings l = { 0 };
    struct str t = { 0 };

    (void)state;
    finding_explain(findings_add(&l, "lib-not-found", LEVEL_ERROR, SCOPE_JOB, "libx.so.1", "bell \a"), NULL, "c", "r");
    findings_add(&l, "not-checked", LEVEL_NOTE, SCOPE_NODE, "glibc-too-old", "no facts");
    findings_text(&l, false, false, &t);
    assert_string_equal(t.s, "error: lib-not-found: libx.so.1: bell \\x07\n    cause: c\n    remedy: r\n");
    str_clear(&t);
    findings_text(&l, true, true, &t);
    assert_non_null(strstr(t.s, "\033[31merror:\033[0m lib-not-found"));
    assert_non_null(strstr(t.s, "note:\033[0m not-checked: glibc-too-old: no facts\n"));
    str_release(&t);
    findings_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_may_dlopen),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
