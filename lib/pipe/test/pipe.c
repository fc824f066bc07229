#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pipe/pipe.h"

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1"; /* more memory than there is is asked for on purpose */
}

static struct modules modules;
static char *scratch;

static char *kernels_dir(void)
{
    char *self = path_self(), *dir = path_dir(self), *kernels = path_join(dir, "kernels");

    free(self);
    free(dir);
    return kernels;
}

static int set_up(void **state)
{
    char *dir = kernels_dir();
    struct err err = { 0 };
    int rc = modules_load(dir, &modules, &err);

    (void)state;
    if (rc)
        print_error("%s\n", err.text);
    free(dir);
    scratch = xstrdup("/tmp/recon-pipe-XXXXXX");
    return rc || !mkdtemp(scratch) ? -1 : 0;
}

static int tear_down(void **state)
{
    int rc = dir_remove(scratch);

    (void)state;
    free(scratch);
    modules_release(&modules);
    return rc;
}

/* ---- values ---- */

static void test_values(void **state)
{
    static const struct {
        struct recon_param row;
        const char *text;
        enum conf_kind kind;
        bool loose;
        const char *why; /* NULL: it is taken */
        double f;
    } cases[] = {
        { { .type = RECON_INT, .min = 1, .max = 9 }, "7", CONF_KIND_INT, false, NULL, 7 },
        { { .type = RECON_INT, .min = 1, .max = 9 }, "10", CONF_KIND_INT, false, "10 is outside 1 .. 9", 0 },
        { { .type = RECON_INT }, "1.5", CONF_KIND_FLOAT, false, "'1.5' is not an integer", 0 },
        { { .type = RECON_INT }, "1.5", CONF_KIND_TEXT, true, "'1.5' is no integer", 0 },
        { { .type = RECON_FLOAT, .min = 0, .max = 1, .unit = "m" }, "2", CONF_KIND_INT, false, "2 is outside 0 .. 1 m", 0 },
        { { .type = RECON_FLOAT }, "2", CONF_KIND_INT, false, NULL, 2 },
        { { .type = RECON_FLOAT }, "0.5", CONF_KIND_TEXT, false, "'0.5' is not a number", 0 },
        { { .type = RECON_FLOAT }, "0.5", CONF_KIND_TEXT, true, NULL, 0.5 },
        { { .type = RECON_FLOAT }, "nan", CONF_KIND_TEXT, true, "'nan' is no number", 0 },
        { { .type = RECON_BOOL }, "true", CONF_KIND_BOOL, false, NULL, 0 },
        { { .type = RECON_BOOL }, "yep", CONF_KIND_TEXT, true, "'yep' is neither true nor false", 0 },
        { { .type = RECON_CHOICE, .choices = "left|right" }, "right", CONF_KIND_TEXT, false, NULL, 0 },
        { { .type = RECON_CHOICE, .choices = "left|right" }, "rihgt", CONF_KIND_TEXT, false,
          "'rihgt' is none of: left, right; the nearest is 'right'", 0 },
        { { .type = RECON_CHOICE, .choices = "left|right" }, "", CONF_KIND_TEXT, false, "'' is none of: left, right", 0 },
        { { .type = RECON_VEC, .min = -1, .max = 1 }, "0.5, -1", CONF_KIND_LIST, false, NULL, 0 },
        { { .type = RECON_VEC, .min = -1, .max = 1 }, "0.5, -3", CONF_KIND_LIST, false, "-3 is outside -1 .. 1", 0 },
        { { .type = RECON_VEC }, "( 1, x )", CONF_KIND_TEXT, true, "'x' is no number", 0 },
        { { .type = RECON_TEXT }, "5", CONF_KIND_INT, false, "'5' is not a text in quotes", 0 },
        { { .type = RECON_TEXT }, "", CONF_KIND_TEXT, false, NULL, 0 },
        { { .type = 77 }, "x", CONF_KIND_TEXT, false, "unknown type 77", 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct recon_value v;
        struct err why = { 0 };
        int rc = value_parse(&cases[i].row, cases[i].text, cases[i].kind, cases[i].loose, &v, &why);

        if (!cases[i].why) {
            assert_int_equal(rc, 0);
            assert_true(v.f == cases[i].f);
            value_release(&cases[i].row, &v);
        } else {
            assert_int_equal(rc, -1);
            if (!strstr(why.text, cases[i].why))
                fail_msg("case %zu: '%s' lacks '%s'", i, why.text, cases[i].why);
        }
    }
}

/* ---- pipelines and plans ---- */

#define HEAD "version = 1;\nsteps = (\n"
#define MAKE "{ name = \"a\"; kernel = \"fake.points\"; }"

static int plan_of(const char *text, const char *device, struct pipeline *p, struct plan *plan, struct err *err)
{
    char *path = path_join(scratch, "p.conf");
    struct device d;
    int rc;

    file_write(path, text, strlen(text), 0644, NULL);
    rc = pipeline_load(path, p, err);
    free(path);
    if (rc == 0 && (device_choose(&modules, device, &d, err) || plan_make(p, &modules, &d, plan, err)))
        rc = -1;
    return rc;
}

static void test_plan_errors(void **state)
{
    static const struct {
        const char *text, *why;
        int code;
    } cases[] = {
        { "version = 2; steps = ();", "version 2, this recon-run reads version 1", 64 },
        { "version = 1; steps = ();", "'steps' is empty", 64 },
        { "version = 1;", "'steps' is missing", 64 },
        { HEAD "{ name = \"a b\"; kernel = \"x\"; } );", "p.conf:3: step name 'a b'", 64 },
        { HEAD MAKE ",\n" MAKE " );", "p.conf:4: step name 'a' stands already on line 3", 64 },
        { HEAD "{ name = \"a\"; kernl = \"x\"; } );", "p.conf:3: unknown key 'kernl', the nearest is 'kernel'", 64 },
        { HEAD "{ name = \"a\"; kernel = \"fake.point\"; } );",
          "p.conf:3: step 'a': no module has the kernel 'fake.point', the nearest is 'fake.points'", 64 },
        { HEAD MAKE ",\n{ name = \"b\"; kernel = \"fake.sum\";\nparams = { fil = \"x\"; }; } );",
          "p.conf:5: step 'b': kernel 'fake.sum' has no parameter 'fil', the nearest is 'file'", 64 },
        { HEAD "{ name = \"a\"; kernel = \"fake.points\"; params = { start = 101; }; } );",
          "p.conf:3: step 'a': parameter 'start': 101 is outside -100 .. 100 m", 64 },
        { HEAD "{ name = \"a\"; kernel = \"fake.points\"; params = { n = \"3\"; }; } );",
          "step 'a': parameter 'n': '3' is not an integer", 64 },
        { HEAD "{ name = \"b\"; kernel = \"fake.sum\"; } );",
          "p.conf:3: step 'b' needs 'points' (points), which no step before it gives", 64 },
        { HEAD MAKE ",\n{ name = \"b\"; kernel = \"fake.sum\"; in = { points = \"other\"; }; } );",
          "step 'b' needs 'other' (points), which no step before it gives; there are: 'points' (points)", 64 },
        { HEAD MAKE ",\n{ name = \"b\"; kernel = \"fake.sum\"; in = { pints = \"points\"; }; } );",
          "p.conf:4: step 'b': kernel 'fake.sum' has no input port 'pints', the nearest is 'points'", 64 },
        { HEAD MAKE ",\n{ name = \"b\"; kernel = \"fake.double\"; in = { mesh = \"points\"; }; } );",
          "step 'b' needs 'points' as mesh, step 'a' gives points", 64 },
        { HEAD MAKE ",\n{ name = \"b\"; kernel = \"fake.sum\"; in = { points = 3; }; } );",
          "'points' wants the name of a slot in quotes", 64 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pipeline p = { 0 };
        struct plan plan = { 0 };
        struct err err = { 0 };

        assert_int_equal(plan_of(cases[i].text, "cpu", &p, &plan, &err), -1);
        if (!strstr(err.text, cases[i].why) || err.code != cases[i].code)
            fail_msg("case %zu: %d '%s' lacks '%s'", i, err.code, err.text, cases[i].why);
        plan_release(&plan);
        pipeline_release(&p);
    }
}

static void test_set(void **state)
{
    struct pipeline p = { 0 };
    struct plan plan = { 0 };
    struct err err = { 0 };

    (void)state;
    assert_int_equal(plan_of(HEAD "{ name = \"make\"; kernel = \"fake.points\"; params = { n = 2; }; } );", "cpu", &p,
                             &plan, &err), 0);
    assert_int_equal(plan.steps.v[0].values[0].i, 2);
    plan_release(&plan);
    assert_int_equal(pipeline_set_as(&p, "make.n", "5", "--set", &err), 0);
    assert_int_equal(pipeline_set_as(&p, "mak.n", "5", "--set", &err), -1);
    assert_non_null(strstr(err.text, "--set 'mak.n': pipeline 'p' has no step 'mak', the nearest is 'make'"));
    assert_int_equal(pipeline_set(&p, "make", "5", "column", &err), -1);
    {
        struct device d;

        assert_int_equal(device_choose(&modules, "cpu", &d, &err), 0);
        assert_int_equal(plan_make(&p, &modules, &d, &plan, &err), 0);
        assert_int_equal(plan.steps.v[0].values[0].i, 5);
    }
    plan_release(&plan);
    pipeline_release(&p);
}

static void test_devices(void **state)
{
    struct device d;
    struct err err = { 0 };

    (void)state;
    unsetenv("FAKE_DEVICES");
    assert_int_equal(device_choose(&modules, "auto", &d, &err), 0);
    assert_string_equal(d.name, "cpu");
    assert_int_equal(device_choose(&modules, "fake", &d, &err), -1);
    assert_int_equal(err.code, CODE_NODE);
    assert_non_null(strstr(err.text, "FAKE_DEVICES is not set"));
    assert_int_equal(device_choose(&modules, "cuda", &d, &err), -1);
    assert_int_equal(err.code, CODE_JOB);
    assert_int_equal(device_choose(&modules, "toaster", &d, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    assert_int_equal(device_choose(&modules, "cpu:1", &d, &err), -1);
    setenv("FAKE_DEVICES", "2", 1);
    assert_int_equal(device_choose(&modules, "auto", &d, &err), 0);
    assert_string_equal(d.name, "fake:0");
    assert_int_equal(device_choose(&modules, "fake:1", &d, &err), 0);
    assert_int_equal(device_choose(&modules, "fake:2", &d, &err), -1);
    assert_int_equal(err.code, CODE_NODE);
    assert_int_equal(device_choose(&modules, "fake:x", &d, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
}

/* ---- runs ---- */

static char *sum_of(const char *name)
{
    char *path = path_join(scratch, name);
    struct str text = { 0 };

    file_read(path, 100, &text, NULL);
    free(path);
    return str_take(&text);
}

static int run_text(const char *text, const char *device, const char *dataset, struct run_report *r, struct err *err)
{
    struct run_args args = { .dataset = dataset, .out = scratch };
    struct pipeline p = { 0 };
    struct plan plan = { 0 };
    struct device d;
    struct runner *runner;
    int rc = plan_of(text, device, &p, &plan, err);

    *r = (struct run_report){ 0 };
    if (rc == 0) {
        device_choose(&modules, device, &d, err);
        runner = runner_new(&d, 1, err);
        rc = runner ? runner_run(runner, &plan, &args, r, err) : -1;
        runner_free(runner);
    }
    for (size_t i = 0; i < r->steps.n; i++)
        r->steps.v[i].plan = NULL; /* the plan ends here */
    plan_release(&plan);
    pipeline_release(&p);
    return rc;
}

static const char chain[] = HEAD MAKE ",\n"
    "{ name = \"twice\"; kernel = \"fake.double\"; out = { points = \"more\"; }; },\n"
    "{ name = \"again\"; kernel = \"fake.double\"; in = { points = \"more\"; }; out = { points = \"most\"; }; },\n"
    "{ name = \"one\"; kernel = \"fake.sum\"; params = { file = \"one.txt\"; }; },\n"
    "{ name = \"four\"; kernel = \"fake.sum\"; in = { points = \"most\"; }; params = { file = \"four.txt\"; }; } );\n";

static void check_chain(const char *device)
{
    struct run_report r;
    struct err err = { 0 };
    char *one, *four;

    assert_int_equal(run_text(chain, device, NULL, &r, &err), 0);
    one = sum_of("one.txt");
    four = sum_of("four.txt");
    assert_string_equal(one, "45.0\n");
    assert_string_equal(four, "180.0\n");
    assert_int_equal(r.steps.n, 5);
    assert_int_equal(r.outputs.n, 2);
    assert_int_equal(r.leaked_host, 0);
    assert_true(r.steps.v[0].peak_host >= 36);
    free(one);
    free(four);
    run_report_release(&r);
}

static void test_run_host(void **state)
{
    (void)state;
    check_chain("cpu");
}

static void test_run_device(void **state)
{
    struct run_report r;
    struct err err = { 0 };

    (void)state;
    setenv("FAKE_DEVICES", "1", 1);
    check_chain("fake");
    assert_int_equal(run_text(chain, "fake", NULL, &r, &err), 0);
    assert_int_equal(r.steps.v[1].cost.copied_bytes, 36); /* up before the first device step */
    assert_int_equal(r.steps.v[2].cost.copied_bytes, 0);  /* there already */
    assert_int_equal(r.steps.v[3].cost.copied_bytes, 0);  /* the host's copy still lives */
    assert_int_equal(r.steps.v[4].cost.copied_bytes, 36); /* down again */
    assert_true(r.steps.v[1].peak_device >= 72);
    assert_true(isnan(r.steps.v[0].share_of_peak));
    assert_true(r.steps.v[1].device_ms >= 0);
    run_report_release(&r);
}

/* what the device's module leaves to the host runs there, and its output goes to the device when that is asked again */
static void test_elsewhere(void **state)
{
    static const struct {
        int n;
        const char *sum, *module;
        uint64_t copied;
    } cases[] = { { 4, "156.0\n", "cpu", 0 }, { 5, "240.0\n", "fake", 60 } };

    (void)state;
    setenv("FAKE_DEVICES", "1", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *of = xasprintf("version = 1;\nsteps = (\n{ name = \"a\"; kernel = \"fake.points\"; params = { n = %d; }; },\n"
                             "{ name = \"twice\"; kernel = \"fake.double\"; },\n{ name = \"s\"; kernel = \"fake.sum\"; } );\n", cases[i].n), *sum;
        struct run_args args = { .out = scratch };
        struct pipeline p = { 0 };
        struct plan plan = { 0 };
        struct run_report r;
        struct estimate e;
        struct err err = { 0 };
        struct device d;
        struct runner *runner;

        assert_int_equal(run_text(of, "fake", NULL, &r, &err), 0);
        sum = sum_of("sum.txt");
        assert_string_equal(sum, cases[i].sum);
        assert_int_equal(r.steps.v[1].cost.copied_bytes, cases[i].copied);
        assert_int_equal(r.steps.v[1].peak_device > 0, cases[i].copied > 0);
        run_report_release(&r);
        free(sum);
        assert_int_equal(plan_of(of, "fake", &p, &plan, &err), 0);
        device_choose(&modules, "fake", &d, &err);
        runner = runner_new(&d, 1, &err);
        assert_int_equal(runner_estimate(runner, &plan, &args, &e, &err), 0);
        assert_string_equal(e.steps.v[1].plan->module->name, cases[i].module);
        estimate_release(&e);
        runner_free(runner);
        plan_release(&plan);
        pipeline_release(&p);
        free(of);
    }
}

static void test_many_device_steps(void **state)
{
    struct str text = { 0 };
    struct run_report r;
    struct err err = { 0 };
    char *sum;

    (void)state;
    setenv("FAKE_DEVICES", "1", 1);
    str_add(&text, HEAD MAKE);
    for (int i = 0; i < 20; i++)
        str_addf(&text, ",\n{ name = \"d%d\"; kernel = \"fake.double\"; }", i);
    str_add(&text, ",\n{ name = \"s\"; kernel = \"fake.sum\"; } );");
    assert_int_equal(run_text(text.s, "fake", NULL, &r, &err), 0);
    sum = sum_of("sum.txt");
    assert_string_equal(sum, "47185920.0\n"); /* 45 * 2^20 */
    assert_true(r.steps.v[20].peak_device <= 72); /* slots go after their last use */
    free(sum);
    run_report_release(&r);
    str_release(&text);
}

static void test_frames(void **state)
{
    struct run_report r;
    struct err err = { 0 };
    char *sum;

    (void)state;
    assert_int_equal(run_text(HEAD "{ name = \"f\"; kernel = \"fake.frames\"; },\n"
                                   "{ name = \"c\"; kernel = \"fake.count\"; },\n"
                                   "{ name = \"again\"; kernel = \"fake.count\"; },\n"
                                   "{ name = \"s\"; kernel = \"fake.sum\"; } );", "cpu", scratch, &r, &err), 0);
    sum = sum_of("sum.txt");
    assert_string_equal(sum, "5.0\n"); /* the second counter got them from the first again */
    free(sum);
    assert_true(r.steps.v[1].wait_ms >= 1);
    run_report_release(&r);
}

static void test_failures(void **state)
{
    static const struct {
        const char *params, *why;
        int code;
    } cases[] = {
        { "what = \"fail\"; code = 65;", "step 'f': 'frame-3': depth 9 is above 4", 65 },
        { "what = \"silent\";", "step 'f': failed without a reason", 70 },
        { "what = \"memory\";", "of host memory left", 71 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = xasprintf(HEAD MAKE ",\n{ name = \"f\"; kernel = \"fake.fault\"; params = { %s }; } );",
                               cases[i].params);
        struct run_report r;
        struct err err = { 0 };

        assert_int_equal(run_text(text, "cpu", NULL, &r, &err), -1);
        if (!strstr(err.text, cases[i].why) || err.code != cases[i].code)
            fail_msg("case %zu: %d '%s' lacks '%s'", i, err.code, err.text, cases[i].why);
        assert_int_equal(r.steps.n, 1);
        assert_int_equal(r.leaked_host, 0);
        run_report_release(&r);
        free(text);
    }
}

static void test_deadline_and_leak(void **state)
{
    struct run_args args = { .out = scratch, .deadline_ms = 20 };
    struct pipeline p = { 0 };
    struct plan plan = { 0 };
    struct run_report r = { 0 };
    struct err err = { 0 };
    struct runner *runner;
    struct device d;

    (void)state;
    assert_int_equal(plan_of(HEAD "{ name = \"f\"; kernel = \"fake.fault\"; params = { what = \"sleep\"; ms = 5000; }; } );",
                             "cpu", &p, &plan, &err), 0);
    device_choose(&modules, "cpu", &d, &err);
    runner = runner_new(&d, 1, &err);
    assert_int_equal(runner_run(runner, &plan, &args, &r, &err), -1);
    assert_int_equal(err.code, CODE_DEADLINE);
    run_report_release(&r);
    runner_cancel(15);
    args.deadline_ms = 0;
    assert_int_equal(runner_run(runner, &plan, &args, &r, &err), -1);
    assert_int_equal(err.code, 128 + 15);
    runner_cancel(0);
    run_report_release(&r);
    plan_release(&plan);
    pipeline_release(&p);
    assert_int_equal(plan_of(HEAD "{ name = \"f\"; kernel = \"fake.fault\"; params = { what = \"leak\"; }; } );", "cpu",
                             &p, &plan, &err), 0);
    assert_int_equal(runner_run(runner, &plan, &args, &r, &err), 0);
    assert_int_equal(r.leaked_host, 100);
    run_report_release(&r);
    plan_release(&plan);
    pipeline_release(&p);
    runner_free(runner);
}

static void test_estimate(void **state)
{
    struct run_args args = { .out = scratch };
    struct pipeline p = { 0 };
    struct plan plan = { 0 };
    struct estimate e;
    struct err err = { 0 };
    struct runner *runner;
    struct device d;

    (void)state;
    assert_int_equal(plan_of(HEAD "{ name = \"a\"; kernel = \"fake.points\"; params = { n = 1000; }; },\n"
                                  "{ name = \"s\"; kernel = \"fake.sum\"; } );", "cpu", &p, &plan, &err), 0);
    device_choose(&modules, "cpu", &d, &err);
    runner = runner_new(&d, 1, &err);
    assert_int_equal(runner_estimate(runner, &plan, &args, &e, &err), 0);
    assert_true(e.steps.v[0].known);
    assert_false(e.steps.v[1].known); /* it brings no bound */
    assert_int_equal(e.peak_host, 12000);
    estimate_release(&e);
    runner_free(runner);
    plan_release(&plan);
    pipeline_release(&p);
}

/* ---- outputs ---- */

static void test_outdir(void **state)
{
    char *fresh = path_join(scratch, "x/fresh"), *file = path_join(fresh, "d/f"), *inner;
    struct outdir o;
    struct err err = { 0 };

    (void)state;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(outdir_begin(fresh, &o, &err), 0);
        assert_int_equal(o.existed, again);
        inner = path_join(o.work, "d");
        assert_int_equal(mkdir(inner, 0777), 0);
        free(inner);
        inner = path_join(o.work, "d/f");
        assert_int_equal(file_write(inner, again ? "2" : "1", 1, 0644, &err), 0);
        free(inner);
        assert_int_equal(access(file, F_OK), again ? 0 : -1);
        assert_int_equal(outdir_publish(&o, &err), 0);
        assert_int_equal(access(file, F_OK), 0);
    }
    inner = sum_of("x/fresh/d/f");
    assert_string_equal(inner, "2");
    free(inner);
    assert_int_equal(outdir_begin(file, &o, &err), -1);
    assert_int_equal(err.code, CODE_CREATE);
    free(fresh);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_plan_errors),  cmocka_unit_test(test_set),
        cmocka_unit_test(test_devices),    cmocka_unit_test(test_run_host),     cmocka_unit_test(test_run_device),
        cmocka_unit_test(test_elsewhere), cmocka_unit_test(test_frames),     cmocka_unit_test(test_many_device_steps),
        cmocka_unit_test(test_failures),   cmocka_unit_test(test_deadline_and_leak),
        cmocka_unit_test(test_estimate),   cmocka_unit_test(test_outdir),
    };

    return cmocka_run_group_tests_name("pipe", tests, set_up, tear_down);
}
