#include "config.h"
#include "scratch.h"

#include <sys/stat.h>

#define TEXT(s) s, sizeof(s) - 1

static void test_forms(void **state)
{
    static const struct {
        const char *list, *text;
        size_t n;
        const char *names, *paths; /* separated by | */
    } cases[] = {
        { "a.txt", TEXT("seq-17\n\n./b/seq-17/\n/c/seq-17\nseq-17-2"), "seq-17|seq-17-2|seq-17-3|seq-17-2-2",
          "/l/seq-17|/l/b/seq-17/|/c/seq-17|/l/seq-17-2" },
        { "crlf.txt", TEXT("a\r\nb\r\n"), "a|b", "/l/a|/l/b" },
        { "cr.txt", TEXT("a\r\nb\n"), "a\r|b", "/l/a\r|/l/b" },
        { "bom.txt", TEXT("\xEF\xBB\xBF" "a\n"), "a", "/l/a" },
        { "odd.txt", TEXT("..\n/\n \n#x\n\xff\xfe\n"), "dataset|dataset-2| |#x|\xff\xfe", "/l/..|/|/l/ |/l/#x|/l/\xff\xfe" },
        { "t.tsv", TEXT("fuse.voxel\tpath\tname\n0.01\tx\tn\n\t/y\t\n"), "n|y", "/l/x|/y" },
        { "t.jsonl", TEXT("{\"path\":\"x\",\"name\":\"n/1\"}\n{\"path_b64\":\"/w==\"}\n"), "n/1|\xff", "/l/x|/l/\xff" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct datasets l = { 0 };
        struct err err = { 0 };
        struct str names = { 0 }, paths = { 0 };

        if (datasets_parse(cases[i].text, cases[i].n, cases[i].list, "/l", &l, &err))
            fail_msg("%s", err.text);
        for (size_t k = 0; k < l.n; k++) {
            str_addf(&names, "%s%s", k ? "|" : "", l.v[k].name);
            str_addf(&paths, "%s%s", k ? "|" : "", l.v[k].path);
        }
        assert_string_equal(names.s, cases[i].names);
        assert_string_equal(paths.s, cases[i].paths);
        str_release(&names);
        str_release(&paths);
        datasets_release(&l);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *list, *text;
        size_t n;
        const char *say;
    } cases[] = {
        { "a.txt", TEXT(""), "list of datasets 'a.txt' is empty" },
        { "a.txt", TEXT("\n\n"), "is empty" },
        { "a.txt", TEXT("x\na\0b\n"), "'a.txt' line 2: a NUL byte" },
        { "a.tsv", TEXT("path\tx\n"), "is empty: a head line" },
        { "a.tsv", TEXT("file\tx\n1\t2\n"), "line 1: the head line has no column 'path'" },
        { "a.tsv", TEXT("path\tx\n1\t2\n1\n"), "line 3: 1 columns, the head line has 2" },
        { "a.tsv", TEXT("path\tx\tx\n1\t2\t3\n"), "line 1: column 'x' stands twice" },
        { "a.tsv", TEXT("path\tx\n\t2\n"), "line 2: 'path' is empty" },
        { "a.tsv", TEXT("path\tx_b64\np\t!\n"), "line 2: 'x_b64' is no base64" },
        { "a.jsonl", TEXT("{\"path\":\"x\"}\n{\"pth\":\"x\"}\n"), "line 2: no key 'path'" },
        { "a.jsonl", TEXT("{\"path\":\"x\"\n"), "line 1: no JSON" },
        { "a.jsonl", TEXT("{\"path\":\"x\",\"path\":\"y\"}\n"), "line 1: no JSON: duplicate" },
        { "a.jsonl", TEXT("[]\n"), "line 1: no JSON object" },
        { "a.jsonl", TEXT("{\"path\":5}\n"), "'path' is no text" },
        { "a.jsonl", TEXT("{\"path\":\"a\\nb\"}\n"), "'path' holds a newline" },
        { "a.jsonl", TEXT("{\"path\":\"a\",\"path_b64\":\"/w==\"}\n"), "'path' stands twice" },
        { "a.jsonl", TEXT("{\"path_b64\":\"AA==\"}\n"), "no base64 of a text without NUL" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct datasets l = { 0 };
        struct err err = { 0 };

        assert_int_equal(datasets_parse(cases[i].text, cases[i].n, cases[i].list, "/l", &l, &err), -1);
        assert_int_equal(err.code, CODE_USAGE);
        if (!strstr(err.text, cases[i].say))
            fail_msg("'%s' is not in '%s'", cases[i].say, err.text);
        assert_int_equal(l.n, 0);
    }
}

static void test_files(void **state)
{
    const char *fifo = in_scratch("fifo"), *list = in_scratch("sub/list.txt");
    struct datasets l = { 0 };
    struct err err = { 0 };
    char *want = xasprintf("%s/sub/x", scratch);

    (void)state;
    assert_int_equal(datasets_load(in_scratch("none"), &l, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(datasets_load(fifo, &l, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    assert_non_null(strstr(err.text, "FIFO"));
    assert_int_equal(datasets_load(scratch, &l, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);

    dir_make(in_scratch("sub"), 0700, NULL);
    put_file(list, TEXT("./x\n"));
    assert_int_equal(datasets_load(list, &l, &err), 0);
    assert_string_equal(l.v[0].path, want);
    datasets_release(&l);
    assert_int_equal(chdir(scratch), 0);
    assert_int_equal(datasets_load("sub/list.txt", &l, &err), 0);
    assert_string_equal(l.v[0].path, want);
    datasets_release(&l);
    free(want);
}

/* Values keep their text through datasets.jsonl, as numbers where a JSON number says the same. */
static void test_values(void **state)
{
    static const struct {
        const char *value, *json;
    } cases[] = {
        { "0.01", "0.01" },     { "0.10", "\"0.10\"" }, { "7", "7" },       { "007", "\"007\"" }, { "-3", "-3" },
        { "true", "true" },     { "1e5", "\"1e5\"" },   { "1e+22", "1e+22" }, { "nan", "\"nan\"" }, { "", "\"\"" },
        { "0x10", "\"0x10\"" }, { "[1]", "\"[1]\"" },   { "0.1", "0.1" },   { "-0", "\"-0\"" },
        { "9223372036854775807", "9223372036854775807" }, { "9223372036854775808", "\"9223372036854775808\"" },
        { "a\"b\t\xc3\xa9", "\"a\\\"b\\t\xc3\xa9\"" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str line = { 0 };
        struct datasets back = { 0 };
        char *want = xasprintf("{\"name\":\"5\",\"path\":\"/l/5\",\"k\":%s}\n", cases[i].json);
        struct dataset d = { .name = xstrdup("5"), .path = xstrdup("/l/5") };

        assert_int_equal(dataset_put(&d, xstrdup("k"), xstrdup(cases[i].value), NULL), 0);
        dataset_line(&d, &line);
        assert_string_equal(line.s, want);
        assert_int_equal(datasets_parse(line.s, line.len, "x.jsonl", "/z", &back, NULL), 0);
        assert_string_equal(dataset_column(&back.v[0], "k"), cases[i].value);
        assert_null(dataset_column(&back.v[0], "j"));
        dataset_release(&d);
        datasets_release(&back);
        str_release(&line);
        free(want);
    }
}

/* A column whose own name ends in "_b64" keeps it. */
static void test_b64_key(void **state)
{
    static const char list[] = "{\"path\":\"/a\",\"x_b64_b64\":\"YQ==\"}\n";
    struct datasets l = { 0 }, back = { 0 };
    struct str line = { 0 };

    (void)state;
    assert_int_equal(datasets_parse(TEXT(list), "l.jsonl", "/l", &l, NULL), 0);
    assert_string_equal(dataset_column(&l.v[0], "x_b64"), "a");
    dataset_line(&l.v[0], &line);
    assert_int_equal(datasets_parse(line.s, line.len, "b.jsonl", "/l", &back, NULL), 0);
    assert_string_equal(dataset_column(&back.v[0], "x_b64"), "a");
    str_release(&line);
    datasets_release(&l);
    datasets_release(&back);
}

/* Equal names must not cost a walk over all numbers each. */
static void test_many(void **state)
{
    enum { MANY = 200000 };
    struct str t = { 0 };
    struct datasets l = { 0 };
    double before;

    (void)state;
    for (int i = 0; i < MANY; i++)
        str_addf(&t, "/d/%d/scan\n", i);
    before = clock_ms();
    assert_int_equal(datasets_parse(t.s, t.len, "a.txt", "/l", &l, NULL), 0);
    assert_true(clock_ms() - before < 20000);
    assert_int_equal(l.n, MANY);
    assert_string_equal(l.v[MANY - 1].name, "scan-200000");
    datasets_release(&l);
    str_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),  cmocka_unit_test(test_refused), cmocka_unit_test(test_files),
        cmocka_unit_test(test_values), cmocka_unit_test(test_b64_key), cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
