#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "report/report.h"

static char *scratch, *path;
static struct run *run;

static int begin(void **state)
{
    struct datasets l = { 0 };
    char *list;
    int rc;

    (void)state;
    scratch = xstrdup("/tmp/recon-report-XXXXXX");
    if (!mkdtemp(scratch))
        return -1;
    list = path_join(scratch, "list.txt");
    path = path_join(scratch, "run");
    rc = file_write(list, "a\nb\nc\nd\ne\nf\n", 12, 0644, NULL) || datasets_load(list, &l, NULL);
    run = rc ? NULL : run_create(path, &l, NULL);
    datasets_release(&l);
    free(list);
    return run ? 0 : -1;
}

static int end(void **state)
{
    int rc = dir_remove(scratch);

    (void)state;
    run_free(run);
    free(scratch);
    free(path);
    return rc;
}

static void write_map(uint32_t sub, uint32_t per_task, uint32_t *list, uint64_t n)
{
    struct submap m = { .slots = (uint32_t)((n + per_task - 1) / per_task), .per_task = per_task, .datasets = list, .n = n };

    assert_int_equal(run_write_map(run, sub, &m, NULL), 0);
}

static struct events *attempt(uint32_t sub, uint32_t slot)
{
    uint32_t number;
    struct events *e = run_events(run, sub, slot, 0, &number, NULL);

    assert_non_null(e);
    events_attempt(e, &(struct event_attempt){ .sub = sub, .slot = slot, .attempt = number, .node = "n1" });
    return e;
}

static void dataset(struct events *e, uint64_t i, const char *status, const char *reason)
{
    events_dataset(e, &(struct event_dataset){ .dataset = i, .status = status, .wall_ms = 10, .vertices = 3, .faces = 1,
                                               .exit = reason ? 65 : 0, .reason = reason });
}

static void publish(uint64_t i)
{
    struct result x = { .dataset = i };
    struct dataset d;
    char *work = run_work_dir(run, i, 0, 0, 0, NULL);
    bool taken;

    assert_int_equal(run_dataset(run, i, &d, NULL), 0);
    assert_int_equal(run_publish(run, work, &d, &x, &taken, NULL), 0);
    dataset_release(&d);
    free(work);
    result_release(&x);
}

static void finish(struct events *e, const char *status, int code, uint64_t done)
{
    events_end(e, &(struct event_end){ .status = status, .exit = code, .done = done });
    assert_int_equal(events_close(e, NULL), 0);
}

static struct report *report(void)
{
    struct err err = { 0 };
    struct report *r = report_load(path, &err);

    if (!r)
        fail_msg("%s", err.text);
    return r;
}

static void check(const struct report *r, size_t i, enum state want, const char *reason)
{
    const char *got = r->datasets[i].reason;

    assert_string_equal(name_of(state_names, (int)r->datasets[i].state), name_of(state_names, (int)want));
    if (!reason)
        assert_null(got);
    else if (!got || !strstr(got, reason))
        fail_msg("dataset %zu: '%s' is not in '%s'", i, reason, got ? got : "nothing");
}

/* a, b, c: one task; d: refused; e: lost; f: waits. Then c again, done; a again, failed: done stays. */
static void test_states(void **state)
{
    uint32_t first[] = { 0, 1, 2, 3, 4 }, second[] = { 2, 0 }, third[] = { 3, 4 };
    struct finding f = { .rule = (char *)"lib-not-found", .level = LEVEL_ERROR, .scope = SCOPE_NODE, .object = (char *)"libx.so",
                         .text = (char *)"not there" };
    struct finding pose = { .rule = (char *)"pose-invalid", .level = LEVEL_ERROR, .scope = SCOPE_DATA, .object = (char *)"5",
                            .text = (char *)"NaN" };
    struct events *e;
    struct report *r = report();

    (void)state;
    assert_int_equal(r->totals[STATE_WAITING], 6);
    report_free(r);

    write_map(0, 3, first, 5);
    e = attempt(0, 0);
    dataset(e, 0, "done", NULL); /* reported and published */
    publish(0);
    events_finding(e, &pose);
    dataset(e, 1, "failed", "no pose");
    r = report();
    check(r, 0, STATE_DONE, NULL);
    check(r, 2, STATE_LOST, "no end");
    check(r, 3, STATE_WAITING, NULL);
    report_free(r);
    dataset(e, 2, "done", NULL); /* reported, not published */
    finish(e, "failed", 65, 1);
    e = attempt(0, 1);
    events_finding(e, &f);
    finish(e, "refused", 75, 0);

    r = report();
    check(r, 0, STATE_DONE, NULL);
    check(r, 1, STATE_FAILED, "no pose");
    assert_string_equal(r->datasets[1].rule, "pose-invalid");
    check(r, 2, STATE_FAILED, "missing or damaged");
    check(r, 3, STATE_REFUSED, "not there");
    check(r, 4, STATE_REFUSED, "not there");
    check(r, 5, STATE_WAITING, NULL);
    assert_int_equal(r->failed_by.n, 3);
    assert_int_equal(r->findings.n, 2);
    assert_string_equal(r->datasets[3].node, "n1");
    report_free(r);

    write_map(1, 1, second, 2);
    e = attempt(1, 0);
    publish(2);
    dataset(e, 2, "done", NULL);
    finish(e, "ok", 0, 1);
    e = attempt(1, 1);
    dataset(e, 0, "failed", "late");
    finish(e, "failed", 65, 0);
    write_map(2, 2, third, 2);
    finish(attempt(2, 0), "ok", 0, 2); /* a program that was started once per task */
    r = report();
    check(r, 0, STATE_DONE, NULL);
    assert_int_equal(r->datasets[0].attempts, 2);
    check(r, 2, STATE_DONE, NULL);
    check(r, 3, STATE_DONE, NULL);
    check(r, 4, STATE_DONE, NULL);
    assert_int_equal(r->totals[STATE_DONE], 4);
    assert_int_equal(r->attempts, 5);
    report_free(r);
}

static void step(struct events *e, const char *name, const char *device, double ms, double share)
{
    events_step(e, &(struct event_step){ .dataset = 5, .name = name, .kernel = name, .device = device, .wall_ms = ms,
                                         .share_of_peak = share });
}

static void test_steps(void **state)
{
    uint32_t list[] = { 5 };
    struct events *e;
    struct report *r;

    (void)state;
    write_map(3, 1, list, 1);
    e = attempt(3, 0);
    step(e, "read", "cpu", 10, NAN);
    step(e, "fuse", "cuda:0", 30, 0.5);
    step(e, "fuse", "cuda:1", 10, 0.25);
    step(e, "fuse", "cuda:0", 20, NAN);
    step(e, "fuse", "cpu", 30, NAN);
    finish(e, "killed", 137, 0);
    r = report();
    assert_int_equal(r->steps.n, 3);
    assert_string_equal(r->steps.v[1].device, "cuda");
    assert_int_equal(r->steps.v[1].wall.n, 3);
    assert_true(report_median(&r->steps.v[1]) == 20);
    assert_true(r->steps.v[1].share == 0.6);
    assert_true(r->steps.v[1].share_of_peak == 0.5);
    assert_true(isnan(r->steps.v[0].share_of_peak));
    check(r, 5, STATE_FAILED, "status 137");
    report_free(r);
}

static void test_damaged(void **state)
{
    struct events *e = attempt(3, 0);
    struct report *r;

    (void)state;
    assert_int_equal(write(events_fd(e), "xx\n", 3), 3);
    finish(e, "ok", 0, 1);
    r = report();
    assert_int_equal(r->damaged.n, 1);
    assert_non_null(strstr(r->damaged.v[0], "3/0/0.1.jsonl' line 2"));
    check(r, 5, STATE_LOST, "no end");
    for (const struct report_format *f = report_formats; f->name; f++) {
        FILE *to = tmpfile();

        assert_int_equal(report_write(r, f, to, NULL), 0);
        assert_true(ftell(to) > 100);
        fclose(to);
        to = fopen("/dev/full", "w");
        assert_int_equal(report_write(r, f, to, NULL), -1);
        fclose(to);
    }
    report_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
