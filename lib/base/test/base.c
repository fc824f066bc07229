#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

static char *scratch;

static int make_scratch(void **state)
{
    (void)state;
    scratch = xstrdup("/tmp/recon-base-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    int rc = dir_remove(scratch);

    (void)state;
    free(scratch);
    return rc;
}

static void test_err(void **state)
{
    struct err e = { 0 };
    char longer[2000];

    (void)state;
    assert_int_equal(err_set(&e, CODE_DATA, "frame %d", 3), -1);
    assert_int_equal(e.code, CODE_DATA);
    err_prefix(&e, "scan '%s'", "a");
    assert_string_equal(e.text, "scan 'a': frame 3");
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    err_set(&e, CODE_DATA, "%s", longer);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    assert_true(str_ends(e.text, "..."));
    longer[sizeof(e.text) - 1] = 0; /* fits exactly: no mark */
    err_set(&e, CODE_DATA, "%s", longer);
    assert_false(str_ends(e.text, "..."));
    assert_int_equal(err_set(NULL, CODE_DATA, "x"), -1);
    err_set(&e, CODE_DATA, "member '%s'", "a\n\033[2Jb\x7f\xc3\xa9"); /* one line, UTF-8 kept */
    err_prefix(&e, "%s", "x\ty");
    assert_string_equal(e.text, "x?y: member 'a??[2Jb?\xc3\xa9'");
}

static void test_nearest(void **state)
{
    static const char *const keys[] = { "datasets", "pipeline", "device", "max_running" };

    (void)state;
    assert_string_equal(str_nearest("dataset", keys, sizeof(*keys), COUNT(keys)), "datasets");
    assert_string_equal(str_nearest("pipline", keys, sizeof(*keys), COUNT(keys)), "pipeline");
    assert_null(str_nearest("colour", keys, sizeof(*keys), COUNT(keys)));
}

static void test_numbers(void **state)
{
    int64_t i = 0;
    double d = 0;

    (void)state;
    assert_int_equal(str_to_i64("-12", &i), 0);
    assert_int_equal(i, -12);
    assert_int_equal(str_to_i64("12x", &i), -1);
    assert_int_equal(str_to_i64("99999999999999999999", &i), -1);
    assert_int_equal(str_to_i64("", &i), -1);
    assert_int_equal(str_to_double("0.01", &d), 0);
    assert_true(d == 0.01);
    assert_int_equal(str_to_double("nan", &d), -1);
    assert_int_equal(str_to_double("1e999", &d), -1);
}

static void test_version(void **state)
{
    (void)state;
    assert_int_equal(version_cmp("12.10", "12.9"), 1);
    assert_int_equal(version_cmp("525.60.13", "525.60.13"), 0);
    assert_int_equal(version_cmp("470.82", "525.60.13"), -1);
    assert_int_equal(version_cmp("2.36", "2.4"), 1);
    assert_int_equal(version_cmp("580", "580.65.06"), -1);
}

static void test_escape(void **state)
{
    static const struct {
        char *(*escape)(const char *);
        const char *in, *out;
    } cases[] = {
        { esc_shell, "it's $(x)", "'it'\\''s $(x)'" },
        { esc_shell, "", "''" },
        { esc_terminal, "a\033[2Jb", "a\\x1b[2Jb" },
        { esc_terminal, "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
        { esc_terminal, "\xff\xc2\x9b", "\\xff\\xc2\\x9b" },
        { esc_html, "<a href='x'>&", "&lt;a href=&#39;x&#39;&gt;&amp;" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *got = cases[i].escape(cases[i].in);

        assert_string_equal(got, cases[i].out);
        free(got);
    }
}

static void test_base64(void **state)
{
    static const char *const cases[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foobar", "Zm9vYmFy" } };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *got = base64_encode(cases[i][0], strlen(cases[i][0]));

        assert_string_equal(got, cases[i][1]);
        free(got);
    }
}

static void test_paths(void **state)
{
    static const char *const cases[][2] = { { "/a/../b//c/.", "/b/c" }, { "/..", "/" }, { "/", "/" } };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *got = path_absolute(cases[i][0]);

        assert_string_equal(got, cases[i][1]);
        free(got);
    }
}

static void test_file(void **state)
{
    char *path = path_join(scratch, "f"), *fifo = path_join(scratch, "p");
    char *deep = path_join(scratch, "a/b/c");
    struct str t = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(file_write(path, "hello", 5, 0644, &e), 0);
    assert_int_equal(file_read(path, 100, &t, &e), 0);
    assert_string_equal(t.s, "hello");
    assert_int_equal(file_read(path, 4, &t, &e), -1);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(file_read(fifo, 100, &t, &e), -1);
    assert_non_null(strstr(e.text, "is a FIFO"));
    assert_int_equal(file_read(deep, 100, &t, &e), -1);
    assert_int_equal(e.code, CODE_NOTFOUND);
    assert_int_equal(dir_make(deep, 0755, &e), 0);
    assert_int_equal(dir_make(path, 0755, &e), -1);
    assert_int_equal(e.code, CODE_CREATE);
    assert_int_equal(dir_make("/proc/none/of/these", 0755, &e), -1);
    assert_int_equal(e.sys, ENOENT); /* what mkdir said of the first that cannot be made */
    assert_non_null(strstr(e.text, "'/proc/none'"));
    str_release(&t);
    free(path);
    free(fifo);
    free(deep);
}

static void test_file_mode(void **state)
{
    char *path = path_join(scratch, "mode");
    mode_t old = umask(0027);
    struct err e = { 0 };
    struct stat st;

    (void)state;
    assert_int_equal(file_write(path, "x", 1, 0666, &e), 0);
    umask(old);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    free(path);
}

static void test_trusted(void **state)
{
    char *path = path_join(scratch, "pin");
    struct err e = { 0 };

    (void)state;
    assert_int_equal(file_write(path, "", 0, 0644, &e), 0);
    assert_int_equal(file_trusted(path, NULL, &e), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(file_trusted(path, NULL, &e), -1);
    assert_int_equal(e.code, CODE_PERM);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chmod(scratch, 0777), 0);
    assert_int_equal(file_trusted(path, NULL, &e), -1);
    assert_int_equal(chmod(scratch, 0700), 0);
    free(path);
}

static void test_child(void **state)
{
    struct child ok = { .argv = (const char *const[]){ "/bin/sh", "-c", "echo out; echo err >&2; exit 3", NULL } };
    struct child slow = { .argv = (const char *const[]){ "/bin/sleep", "30", NULL }, .deadline_ms = 60 };
    struct child none = { .argv = (const char *const[]){ "/no/such", NULL } };
    struct err e = { 0 };
    double t0;

    (void)state;
    assert_int_equal(child_run(&ok, &e), 0);
    assert_string_equal(ok.out.s, "out\n");
    assert_string_equal(ok.errout.s, "err\n");
    assert_int_equal(ok.status >> 8, 3);
    str_release(&ok.out);
    str_release(&ok.errout);
    t0 = clock_ms();
    assert_int_equal(child_run(&slow, &e), -1);
    assert_int_equal(e.code, CODE_DEADLINE);
    assert_true(clock_ms() - t0 < 5000);
    assert_int_equal(child_run(&none, &e), -1);
    assert_int_equal(e.code, CODE_NOTFOUND);
}

static void test_digest(void **state)
{
    char a[DIGEST_SIZE], b[DIGEST_SIZE], *path = path_join(scratch, "d");
    struct err e = { 0 };

    (void)state;
    digest_bytes("", 0, a);
    assert_string_equal(a, "xxh3:2d06800538d394c2"); /* XXH3_64bits of nothing, seed 0 */
    digest_bytes("hello", 5, a);
    assert_int_equal(file_write(path, "hello", 5, 0644, &e), 0);
    assert_int_equal(digest_file(path, b, &e), 0);
    assert_string_equal(a, b);
    free(path);
}

static void test_time(void **state)
{
    char now[32];

    (void)state;
    assert_int_equal(clock_parse_iso("1970-01-02T00:00:00Z"), 86400);
    assert_int_equal(clock_parse_iso("2026-11-30T14:03:11.482Z"), 1796047391);
    assert_int_equal(clock_parse_iso("2026-11-30"), -1);
    clock_iso(now);
    assert_true(clock_parse_iso(now) > 1700000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err),    cmocka_unit_test(test_nearest), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_version), cmocka_unit_test(test_escape), cmocka_unit_test(test_base64),
        cmocka_unit_test(test_paths),  cmocka_unit_test(test_file), cmocka_unit_test(test_file_mode),    cmocka_unit_test(test_trusted),
        cmocka_unit_test(test_child),  cmocka_unit_test(test_digest),  cmocka_unit_test(test_time),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
