#include "config.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <signal.h>

static void write_all(struct events *e)
{
    struct strv gpus = { 0 };
    struct finding f = { .rule = (char *)"r", .level = LEVEL_WARN, .scope = SCOPE_DATA, .object = (char *)"o", .text = (char *)"t" };

    strv_add(&gpus, "GPU-8932f937-d72c");
    events_attempt(e, &(struct event_attempt){ .sub = 1, .slot = 17, .attempt = 2, .job = "4711_17", .node = "gpu017",
                                               .gpus = &gpus, .pin = "xxh3:a54ff53a5f1d36f1" });
    events_finding(e, &f);
    events_step(e, &(struct event_step){ .dataset = 17, .name = "fuse", .kernel = "tsdf.fuse", .device = "cuda:0",
                                         .wall_ms = 84.2, .bytes = UINT64_MAX, .share_of_peak = NAN });
    events_alarm(e, 17, "leak", "5 samples up");
    events_output(e, &(struct event_output){ .dataset = 17, .path = "m\xff.ply", .bytes = 5, .digest = "xxh3:0" });
    events_dataset(e, &(struct event_dataset){ .dataset = 17, .status = "done", .wall_ms = 2231.5, .vertices = 3, .faces = 1 });
    events_end(e, &(struct event_end){ .status = "ok", .signal = 9, .done = 1, .max_rss = 402653184 });
    strv_release(&gpus);
}

static void test_round_trip(void **state)
{
    const char *path = in_scratch("a.jsonl");
    struct events *e = events_create(path, NULL);
    struct events_read r;
    struct err err = { 0 };
    char *text;

    (void)state;
    assert_non_null(e);
    write_all(e);
    assert_true(events_now(e) >= 0 && events_now(e) < 60000);
    assert_int_equal(events_close(e, NULL), 0);
    assert_null(events_create(path, &err));
    assert_int_equal(err.code, CODE_CREATE);

    text = get_file(path);
    assert_non_null(strstr(text, "\"wall_ms\":84.2,"));
    assert_non_null(strstr(text, "\"share_of_peak\":null"));
    free(text);

    assert_int_equal(events_read(path, &r, NULL), 0);
    assert_int_equal(r.n, 7);
    assert_false(r.torn);
    assert_int_equal(r.v[0].type, EVENT_ATTEMPT);
    assert_true(clock_parse_iso(r.v[0].time) > 0);
    assert_int_equal(r.v[0].attempt.slot, 17);
    assert_string_equal(r.v[0].attempt.gpus->v[0], "GPU-8932f937-d72c");
    assert_null(r.v[0].attempt.pipeline);
    assert_int_equal(r.v[1].finding.level, LEVEL_WARN);
    assert_int_equal(r.v[1].finding.scope, SCOPE_DATA);
    assert_true(r.v[2].step.bytes == INT64_MAX);
    assert_true(isnan(r.v[2].step.share_of_peak));
    assert_string_equal(r.v[3].alarm.rule, "leak");
    assert_string_equal(r.v[4].output.path, "m\xff.ply");
    assert_true(r.v[5].dataset.wall_ms == 2231.5);
    assert_int_equal(r.v[6].end.signal, 9);
    events_read_free(&r);
}

static void test_nowhere(void **state)
{
    struct events *e = events_create(NULL, NULL);

    (void)state;
    assert_non_null(e);
    write_all(e);
    assert_int_equal(events_fd(e), -1);
    assert_int_equal(events_close(e, NULL), 0);
}

static const char line_1[] = "{\"v\":1,\"type\":\"end\",\"status\":\"ok\"}\n";

static void test_tolerant(void **state)
{
    static const struct {
        const char *text;
        int rc;
        size_t n;
        bool torn;
        const char *say;
    } cases[] = {
        { "", 0, 0, false, NULL },
        { "{\"v\":1,\"type\":\"end\",\"status\":\"ok\",\"new\":[1]}\n{\"v\":1,\"type\":\"fu", 0, 1, true, NULL },
        { "{\"v\":1,\"type\":\"end\"}\n{\"v\":1,\"type\":\"end\"}", 0, 1, true, NULL },
        { "{\"v\":1,\"type\":\"future\"}\n", 0, 0, false, NULL },
        { "{\"v\":1,\"type\":\"e\n{\"v\":1,\"type\":\"end\"}\n", -1, 0, false, "line 1" },
        { "{\"v\":1,\"type\":\"end\"}\n{\"v\":2,\"type\":\"end\"}\n", -1, 0, false, "line 2: version 2, this recon reads 1" },
        { "[1]\n", -1, 0, false, "line 1: no JSON object" },
        { "{\"type\":\"end\"}\n", -1, 0, false, "line 1: no version" },
        { "{\"v\":1,\"type\":5,\"at_ms\":\"x\"}\n", 0, 0, false, NULL },
        { "{\"v\":1,\"type\":\"step\",\"bytes\":-5,\"name\":7,\"share_of_peak\":\"a\"}\n", 0, 1, false, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct events_read r = { 0 };
        struct err err = { 0 };

        assert_int_equal(events_parse(cases[i].text, strlen(cases[i].text), "f", &r, &err), cases[i].rc);
        assert_int_equal(r.n, cases[i].n);
        assert_int_equal(r.torn, cases[i].torn);
        if (cases[i].say)
            assert_non_null(strstr(err.text, cases[i].say));
        events_read_free(&r);
    }
}

/* A program killed in the middle of a line: the launcher's end still reads. */
static void test_cut_torn(void **state)
{
    const char *path = in_scratch("torn.jsonl");
    struct events_read r;
    struct events *e;
    int fd;

    (void)state;
    for (size_t cut = 0; cut < sizeof(line_1) - 1; cut++) {
        unlink(path);
        e = events_create(path, NULL);
        fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(write(fd, line_1, sizeof(line_1) - 1), sizeof(line_1) - 1);
        assert_int_equal(write(fd, line_1, cut), cut);
        close(fd);
        events_end(e, &(struct event_end){ .status = "killed", .signal = 9 });
        assert_int_equal(events_close(e, NULL), 0);
        assert_int_equal(events_read(path, &r, NULL), 0);
        assert_int_equal(r.n, 2);
        assert_string_equal(r.v[1].end.status, "killed");
        events_read_free(&r);
    }
}

/* A file system that fills up (here: a size limit) gives a short write: no part of the line stays, the error is kept. */
static void test_full(void **state)
{
    const char *path = in_scratch("full.jsonl");
    struct rlimit old, small;
    struct events *e = events_create(path, NULL);
    struct events_read r;
    struct err err = { 0 };

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    events_end(e, &(struct event_end){ .status = "ok" });
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 200;
    setrlimit(RLIMIT_FSIZE, &small);
    events_end(e, &(struct event_end){ .status = "lost" });
    setrlimit(RLIMIT_FSIZE, &old);
    events_end(e, &(struct event_end){ .status = "after" });
    assert_int_equal(events_close(e, &err), -1);
    assert_int_equal(err.code, CODE_IO);
    assert_int_equal(err.sys, EFBIG);
    assert_int_equal(events_read(path, &r, NULL), 0);
    assert_int_equal(r.n, 2);
    assert_false(r.torn);
    assert_string_equal(r.v[1].end.status, "after");
    events_read_free(&r);
}

static void test_too_large(void **state)
{
    const char *path = in_scratch("large.jsonl");
    const char text[] = "{\"v\":1,\"type\":\"end\",\"status\":\"ok\",\"exit\":139000000000,\"signal\":-1e300}\n";
    struct events_read r;

    (void)state;
    assert_int_equal(file_write(path, text, sizeof(text) - 1, 0600, NULL), 0);
    assert_int_equal(events_read(path, &r, NULL), 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.v[0].end.exit, INT_MAX);
    assert_int_equal(r.v[0].end.signal, INT_MIN);
    events_read_free(&r);
}

static void *write_many(void *e)
{
    for (int i = 0; i < 200; i++)
        events_alarm(e, (uint64_t)i, "rule", "text");
    return NULL;
}

static void test_threads(void **state)
{
    const char *path = in_scratch("threads.jsonl");
    struct events *e = events_create(path, NULL);
    struct events_read r;
    pthread_t t[4];

    (void)state;
    for (size_t i = 0; i < COUNT(t); i++)
        assert_int_equal(pthread_create(&t[i], NULL, write_many, e), 0);
    for (size_t i = 0; i < COUNT(t); i++)
        pthread_join(t[i], NULL);
    assert_int_equal(events_close(e, NULL), 0);
    assert_int_equal(events_read(path, &r, NULL), 0);
    assert_int_equal(r.n, 800);
    events_read_free(&r);
}

static void test_passed_on(void **state)
{
    const char *path = in_scratch("passed.jsonl");
    struct events *e = events_create(path, NULL), *child;
    struct events_read r;

    (void)state;
    assert_true(fcntl(events_fd(e), F_GETFD) == 0);
    child = events_from_fd(dup(events_fd(e)), clock_ms() - 5000);
    assert_true(events_now(child) >= 5000);
    events_alarm(child, 1, "a", "b");
    events_end(e, &(struct event_end){ .status = "ok" });
    assert_int_equal(events_close(child, NULL), 0);
    assert_int_equal(events_close(e, NULL), 0);
    assert_int_equal(events_read(path, &r, NULL), 0);
    assert_int_equal(r.n, 2);
    assert_true(r.v[0].at_ms >= 5000);
    events_read_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_nowhere), cmocka_unit_test(test_tolerant),
        cmocka_unit_test(test_cut_torn),   cmocka_unit_test(test_full),    cmocka_unit_test(test_passed_on),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_too_large),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
