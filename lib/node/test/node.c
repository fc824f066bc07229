#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/test/scratch.h"
#include "node/cluster.h"
#include "node/node.h"


static char *in_dir(const char *name, const char *text, mode_t mode)
{
    char *path = path_join(scratch, name);

    assert_int_equal(file_write(path, text, strlen(text), mode, NULL), 0);
    return path;
}

/* The fragment of DESIGN, as a user would write it. */
static const char fragment[] =
    "version = 1;  node = \"gpu017\";  boot_id = \"b\";  taken = \"2026-11-30T14:00:00Z\";\n"
    "os = { glibc = \"2.36\"; kernel = \"6.1.0\"; };   cpu = { isa = \"x86-64-v4\"; cores = 64; };\n"
    "driver = { kernel_module = \"570.211.01\"; cuda = \"12.8\"; };\n"
    "gpus = ( { vendor = \"nvidia\"; name = \"H100\"; compute_capability = \"9.0\"; uuid = \"GPU-1\"; memory_mib = 81559; } );\n"
    "limits = { memlock = -1L; shm_mib = 64320; };   toolkits = [ \"/usr/local/cuda-12.1\" ];\n";

static void read_fragment(struct facts *f)
{
    char *path = in_dir("fragment", fragment, 0644);
    struct err err = { 0 };

    if (facts_read(path, f, &err))
        fail_msg("%s", err.text);
    free(path);
}

static void reads_the_fragment(void **state)
{
    struct facts f;

    (void)state;
    read_fragment(&f);
    assert_string_equal(f.os.glibc, "2.36");
    assert_string_equal(f.driver.cuda, "12.8");
    assert_int_equal(f.cpu.cores, 64);
    assert_int_equal(f.gpus.n, 1);
    assert_true(f.gpus_known);
    assert_int_equal(f.gpus.v[0].memory_mib, 81559);
    assert_int_equal(f.limits.memlock, -1);
    assert_int_equal(f.limits.open_files, CONF_UNSET);
    assert_null(f.loader.path);
    assert_string_equal(f.toolkits.v[0], "/usr/local/cuda-12.1");
    facts_release(&f);
}

static void writes_what_it_reads(void **state)
{
    struct facts f, g;
    struct str a = { 0 }, b = { 0 };
    char *path = path_join(scratch, "again");

    (void)state;
    read_fragment(&f);
    assert_int_equal(facts_write(path, &f, NULL), 0);
    assert_int_equal(facts_read(path, &g, NULL), 0);
    facts_text(&f, &a);
    facts_text(&g, &b);
    assert_string_equal(a.s, b.s);
    str_release(&a);
    str_release(&b);
    facts_release(&f);
    facts_release(&g);
    free(path);
}

static void refuses_with_file_and_line(void **state)
{
    static const struct { const char *text, *says; } bad[] = {
        { "node = \"x\";", "'version' is missing" },
        { "version = 2;", "facts of version 2, this recon reads 1" },
        { "version = 1;\nnodee = \"x\";", ":2: unknown key 'nodee', the nearest is 'node'" },
        { "version = 1; cpu = { cores = \"many\"; };", "'cores' wants an integer" },
        { "version = 1; gpus = ", "syntax error" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        char *path = in_dir("bad", bad[i].text, 0644);
        struct err err = { 0 };
        struct facts f;

        assert_int_equal(facts_read(path, &f, &err), -1);
        assert_int_equal(err.code, CODE_DATA);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' lacks '%s'", err.text, bad[i].says);
        free(path);
    }
}

static void assumes(void **state)
{
    struct facts f;
    char *path = in_dir("part", "os = { glibc = \"2.17\"; };", 0644);

    (void)state;
    read_fragment(&f);
    assert_int_equal(facts_assume(&f, "gpu=8.0,9.0", NULL), 0);
    assert_int_equal(f.gpus.n, 2);
    assert_string_equal(f.gpus.v[0].compute_capability, "8.0");
    assert_string_equal(f.gpus.v[1].vendor, "nvidia");
    assert_int_equal(facts_assume(&f, "gpu=none", NULL), 0);
    assert_int_equal(f.gpus.n, 0);
    assert_true(f.gpus_known);
    assert_int_equal(facts_assume(&f, "gpu=gfx90a", NULL), 0);
    assert_string_equal(f.gpus.v[0].vendor, "amd");
    assert_int_equal(facts_assume(&f, "driver.kernel_module=418.87", NULL), 0);
    assert_string_equal(f.driver.kernel_module, "418.87");
    assert_null(f.driver.cuda); /* 12.8 was of the driver probed before */
    assert_string_equal(f.driver.source, "assumed");
    assert_int_equal(facts_assume(&f, "driver.cuda=10.1", NULL), 0);
    assert_string_equal(f.driver.cuda, "10.1");
    assert_string_equal(f.driver.kernel_module, "418.87");
    assert_int_equal(facts_assume(&f, path, NULL), 0);
    assert_string_equal(f.os.glibc, "2.17");
    assert_string_equal(f.os.kernel, "6.1.0"); /* groups merge */
    assert_int_equal(facts_assume(&f, "limits.memlock=8589934592", NULL), 0);
    assert_int_equal(f.limits.memlock, 8589934592);
    assert_int_equal(facts_assume(&f, "toolkits=/opt/cuda-11.8", NULL), 0);
    assert_int_equal(f.toolkits.n, 1);
    facts_release(&f);
    free(path);
}

static void refuses_to_assume(void **state)
{
    static const struct { const char *what, *says; } bad[] = {
        { "gpu=90", "'90' is no compute capability" },
        { "gpu=9.0,", "'' is no compute capability" },
        { "drivr.cuda=1", "no fact is named 'drivr.cuda'" },
        { "cpu.cores=many", "'cores' wants an integer" },
        { "/does/not/exist", "/does/not/exist" },
    };
    struct facts f;

    (void)state;
    read_fragment(&f);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = { 0 };

        assert_int_equal(facts_assume(&f, bad[i].what, &err), -1);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' lacks '%s'", err.text, bad[i].says);
    }
    assert_string_equal(f.driver.cuda, "12.8");
    facts_release(&f);
}

/* A probe that hangs, fails, prints nonsense or is not there gives minimal facts and the reason, never a failure. */
static void probe_fails_open(void **state)
{
    static const struct { const char *script, *says; } bad[] = {
        { "#!/bin/sh\nsleep 20\n", "gave no answer within" },
        { "#!/bin/sh\necho 'no hwloc' >&2; exit 70\n", "ended with status 70: no hwloc" },
        { "#!/bin/sh\nkill -9 $$\n", "ended with signal 9" },
        { "#!/bin/sh\necho 'version = 1; moon = 3;'\n", "unknown key 'moon'" },
        { NULL, "cannot run" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        char *path = bad[i].script ? in_dir("probe", bad[i].script, 0755) : path_join(scratch, "none");
        struct facts_request q = { .probe = path, .deadline_ms = 400 };
        struct facts f;
        struct utsname u;

        uname(&u);
        assert_int_equal(facts_probe_for(&q, &f, NULL), 0);
        assert_string_equal(f.node, u.nodename);
        assert_int_equal(f.unknown.n, 1);
        if (!strstr(f.unknown.v[0], bad[i].says))
            fail_msg("'%s' lacks '%s'", f.unknown.v[0], bad[i].says);
        assert_false(f.gpus_known);
        facts_release(&f);
        free(path);
    }
}

static void probe_gets_a_clean_environment(void **state)
{
    char *path = in_dir("probe", "#!/bin/sh\n[ -z \"$LD_LIBRARY_PATH$CUDA_HOME\" ] || exit 3\n"
                                 "echo \"version = 1; toolkits = [ \\\"$*\\\" ];\"\n", 0755);
    char *env[] = { (char *)(uintptr_t) "CUDA_HOME=/opt/cuda-9", (char *)(uintptr_t) "CUDA_PATH=/opt/cuda-9", NULL };
    struct strv toolkits = { 0 };
    struct facts_request q = { .probe = path, .toolkits = &toolkits, .tmpdir = "/scratch", .deadline_ms = 4000 };
    struct facts f;

    (void)state;
    setenv("LD_LIBRARY_PATH", "/nowhere", 1);
    facts_toolkits_of(env, &toolkits);
    assert_int_equal(toolkits.n, 1);
    assert_int_equal(facts_probe_for(&q, &f, NULL), 0);
    assert_int_equal(f.unknown.n, 0);
    assert_string_equal(f.toolkits.v[0], "--deadline=3000 --tmpdir=/scratch --toolkit=/opt/cuda-9");
    facts_release(&f);
    strv_release(&toolkits);
    free(path);
}

static void stale(void **state)
{
    struct facts f;
    char *text;

    (void)state;
    facts_minimal(&f);
    assert_null(facts_stale(&f));
    free(f.boot_id);
    f.boot_id = xstrdup("another");
    text = facts_stale(&f);
    assert_non_null(strstr(text, "earlier boot"));
    free(text);
    free(f.node);
    f.node = xstrdup("elsewhere"); /* another node's boot is no matter */
    assert_null(facts_stale(&f));
    free(f.taken);
    f.taken = xstrdup("2020-01-01T00:00:00Z");
    text = facts_stale(&f);
    assert_non_null(strstr(text, "more than a day ago"));
    free(text);
    facts_release(&f);
}

/* doc/format-facts.md has the rows as they are. */
static void documented(void **state)
{
    const char *top = getenv("abs_top_srcdir");
    char *path = top ? path_join(top, "doc/format-facts.md") : NULL;
    struct str page = { 0 }, rows = { 0 };

    (void)state;
    if (path) {
        assert_int_equal(file_read(path, FILE_MAX_DEFAULT, &page, NULL), 0);
        conf_document(facts_rows, &rows);
        if (!strstr(page.s, rows.s))
            fail_msg("doc/format-facts.md lacks these rows:\n%s", rows.s);
    }
    str_release(&page);
    str_release(&rows);
    free(path);
}

static void limits_of_partitions(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } times[] = { { "UNLIMITED", -1 }, { "90", 5400 }, { "1:30", 90 }, { "02:00:01", 7201 }, { "2-03:04:05", 183845 }, { "1-0", 86400 },
                  { "99999999999999999999999-0", (int64_t)UINT32_MAX * 86400 }, { "0:0:99999999999999999999999", UINT32_MAX } };

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++) {
        char *text = xasprintf("PartitionName=gpu Nodes=n1 MaxTime=%s\n", times[i].text);
        struct cluster c = { 0 };

        cluster_take(&c, text);
        if (c.partitions.n != 1 || c.partitions.v[0].max_seconds != times[i].seconds)
            fail_msg("MaxTime=%s: %lld seconds, wanted %lld", times[i].text,
                     c.partitions.n ? (long long)c.partitions.v[0].max_seconds : -2, (long long)times[i].seconds);
        cluster_release(&c);
        free(text);
    }
}

static void host_lists(void **state)
{
    static const struct {
        const char *text, *last; /* NULL: refused */
        size_t n;
    } lists[] = { { "n[1-3,07],m", "m", 5 }, { "n[08-11]", "n11", 4 }, { "n[3-1]", NULL, 0 }, { "n[0-300000]", NULL, 0 },
                  { "n[18446744073709551615-18446744073709551615]", NULL, 0 }, { "n[99999999999999999999999]", NULL, 0 } };

    (void)state;
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct strv l = { 0 };
        int rc = hostlist_expand(lists[i].text, &l, NULL);

        if ((rc == 0) != (lists[i].last != NULL) || (rc == 0 && (l.n != lists[i].n || !str_eq(l.v[l.n - 1], lists[i].last))))
            fail_msg("'%s' gives %d and %zu names", lists[i].text, rc, l.n);
        strv_release(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_fragment),  cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(refuses_with_file_and_line), cmocka_unit_test(assumes),
        cmocka_unit_test(refuses_to_assume),   cmocka_unit_test(probe_fails_open),
        cmocka_unit_test(probe_gets_a_clean_environment), cmocka_unit_test(stale),
        cmocka_unit_test(documented),          cmocka_unit_test(limits_of_partitions),
        cmocka_unit_test(host_lists),
    };

    return cmocka_run_group_tests_name("node", tests, make_scratch, remove_scratch);
}
