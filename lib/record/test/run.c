#include "config.h"
#include "scratch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct run *make_run(const char *name, const char *list)
{
    struct datasets l = { 0 };
    struct err err = { 0 };
    struct run *r;

    if (datasets_parse(list, strlen(list), "l.txt", "/l", &l, &err))
        fail_msg("%s", err.text);
    r = run_create(in_scratch(name), &l, &err);
    if (!r)
        fail_msg("%s", err.text);
    datasets_release(&l);
    return r;
}

static void test_create(void **state)
{
    struct run *r = make_run("deep/er/run", "a\nb\xff\nc\n"), *again;
    struct dataset d;
    struct err err = { 0 };
    struct datasets one = { 0 };

    (void)state;
    assert_string_equal(run_path(r), in_scratch("deep/er/run"));
    assert_int_equal(run_count(r), 3);
    for (int i = 2; i >= 0; i--) {
        static const char *const names[] = { "a", "b\xff", "c" };

        assert_int_equal(run_dataset(r, (uint64_t)i, &d, &err), 0);
        assert_string_equal(d.name, names[i]);
        dataset_release(&d);
    }
    assert_int_equal(run_dataset(r, 3, &d, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    datasets_parse("x", 1, "l", "/l", &one, NULL);
    again = run_create(run_path(r), &one, &err);
    assert_null(again);
    assert_int_equal(err.code, CODE_CREATE);
    run_free(r);
    put_file(in_scratch("plain"), "x", 1);
    assert_null(run_create(in_scratch("plain/run"), &one, &err));
    assert_int_equal(err.code, CODE_CREATE);
    datasets_release(&one);
}

static void test_open_refused(void **state)
{
    struct run *r = make_run("damaged", "a\nb\n");
    struct err err = { 0 };

    (void)state;
    run_free(r);
    assert_null(run_open(in_scratch("none"), &err));
    assert_int_equal(err.code, CODE_USAGE);
    assert_null(run_open(scratch, &err));
    assert_int_equal(err.code, CODE_USAGE);
    assert_non_null(strstr(err.text, "datasets.jsonl"));
    assert_int_equal(truncate(in_scratch("damaged/datasets.jsonl"), 20), 0);
    assert_null(run_open(in_scratch("damaged"), &err));
    assert_int_equal(err.code, CODE_IO);
    assert_int_equal(truncate(in_scratch("damaged/datasets.idx"), 8), 0);
    assert_null(run_open(in_scratch("damaged"), &err));
    unlink(in_scratch("damaged/datasets.idx"));
    assert_null(run_open(in_scratch("damaged"), &err));
    assert_int_equal(err.code, CODE_USAGE);
    assert_non_null(strstr(err.text, "datasets.idx"));
}

static void test_maps(void **state)
{
    struct run *r = make_run("maps", "a\nb\nc\nd\ne\n");
    uint32_t all[] = { 4, 0, 2, 1, 3 };
    struct submap m = { .slots = 3, .per_task = 2, .datasets = all, .n = 5 }, back;
    const uint32_t *at;
    struct err err = { 0 };
    uint32_t n;
    char *raw;

    (void)state;
    assert_int_equal(run_next_sub(r), 0);
    assert_int_equal(run_write_map(r, 0, &m, &err), 0);
    assert_int_equal(run_next_sub(r), 1);
    assert_int_equal(run_write_map(r, 0, &m, &err), -1);
    assert_int_equal(err.code, CODE_CREATE);
    raw = get_file(in_scratch("maps/sub/0.map"));
    assert_memory_equal(raw, "reconMP1\3\0\0\0\2\0\0\0\4\0\0\0\0\0\0\0", 24);
    free(raw);
    assert_int_equal(run_read_map(r, 0, &back, &err), 0);
    assert_int_equal(submap_slot(&back, 0, &at, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(at[0], 4);
    assert_int_equal(submap_slot(&back, 2, &at, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(at[0], 3);
    assert_int_equal(submap_slot(&back, 3, &at, &n, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    submap_release(&back);
    assert_int_equal(run_read_map(r, 7, &back, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    m.slots = 2;
    assert_int_equal(run_write_map(r, 1, &m, &err), -1);
    put_file(in_scratch("maps/sub/1.map"), "reconMP1\1\0\0\0\1\0\0\0\7\0\0\0", 20);
    assert_int_equal(run_read_map(r, 1, &back, &err), -1);
    assert_non_null(strstr(err.text, "dataset 7 is outside"));
    run_free(r);
}

static void test_submit(void **state)
{
    struct run *r = make_run("submit", "a\n");
    struct submissions l = { 0 };
    struct err err = { 0 };

    (void)state;
    assert_int_equal(run_submissions(r, &l, &err), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(run_submit_intent(r, 0, "slurm", "kitchen.0", 100, &err), 0);
    assert_int_equal(run_submit_result(r, 0, "4711", NULL, &err), 0);
    assert_int_equal(run_submit_intent(r, 1, "local", "kitchen.1", 3, &err), 0);
    assert_int_equal(run_submit_result(r, 1, NULL, "refused", &err), 0);
    assert_int_equal(run_submit_intent(r, 2, "local", "kitchen.2", 1, &err), 0);
    assert_int_equal(run_next_sub(r), 3);
    assert_int_equal(run_submissions(r, &l, &err), 0);
    assert_int_equal(l.n, 3);
    assert_string_equal(l.v[0].job_id, "4711");
    assert_int_equal(l.v[0].tasks, 100);
    assert_string_equal(l.v[1].error, "refused");
    assert_string_equal(l.v[1].backend, "local");
    assert_null(l.v[2].job_id);
    submissions_release(&l);
    run_free(r);
}

static void test_bad_nodes(void **state)
{
    enum { WRITERS = 4, LINES = 50 };
    struct run *r = make_run("bad", "a\n");
    struct finding f = { .rule = (char *)"gpu-lost", .object = (char *)"GPU-1", .text = (char *)"no answer" };
    struct strv nodes = { 0 };
    struct err err = { 0 };
    pid_t child[WRITERS];
    char *text;
    size_t lines = 0;

    (void)state;
    assert_int_equal(run_bad_nodes(r, &nodes, &err), 0);
    assert_int_equal(nodes.n, 0);
    put_file(in_scratch("bad/bad-nodes.jsonl"), "{\"v\":1,\"type\":\"bad-n", 20); /* a writer that died */
    for (int w = 0; w < WRITERS; w++) {
        child[w] = fork();
        if (child[w] == 0) {
            char node[16];

            snprintf(node, sizeof(node), "gpu%03d", w);
            for (int i = 0; i < LINES; i++)
                if (run_bad_node(r, node, &f, NULL))
                    _exit(1);
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;

        waitpid(child[w], &status, 0);
        assert_int_equal(status, 0);
    }
    text = get_file(in_scratch("bad/bad-nodes.jsonl"));
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    free(text);
    assert_int_equal(lines, WRITERS * LINES);
    assert_int_equal(run_bad_nodes(r, &nodes, &err), 0);
    assert_int_equal(nodes.n, WRITERS);
    strv_release(&nodes);
    run_free(r);
}

struct seen {
    struct str text;
    int stop;
};

static int see(void *arg, uint32_t sub, uint32_t slot, uint32_t attempt, const char *path, struct err *err)
{
    struct seen *s = arg;

    str_addf(&s->text, "%u/%u.%u ", sub, slot, attempt);
    assert_int_equal(access(path, R_OK), 0);
    return --s->stop ? 0 : err_set(err, CODE_DATA, "enough");
}

static void test_events(void **state)
{
    static const uint32_t at[][3] = { { 0, 2, 0 }, { 0, 1000, 0 }, { 10, 0, 0 }, { 2, 0, 3 }, { 0, 10, 0 }, { 0, 2, 0 } };
    struct run *r = make_run("events", "a\n");
    struct seen s = { .stop = -1 };
    struct err err = { 0 };
    uint32_t attempt;

    (void)state;
    for (size_t i = 0; i < COUNT(at); i++) {
        struct events *e = run_events(r, at[i][0], at[i][1], at[i][2], &attempt, &err);

        assert_non_null(e);
        assert_int_equal(attempt, i == 5 ? 1 : at[i][2]); /* the last one finds its number taken */
        assert_int_equal(events_close(e, NULL), 0);
    }
    put_file(in_scratch("events/events/0/0/x.1.jsonl"), "", 0);
    put_file(in_scratch("events/events/0/0/.3.1.jsonl"), "", 0);
    assert_int_equal(run_each_events(r, see, &s, &err), 0);
    assert_string_equal(s.text.s, "0/2.0 0/2.1 0/10.0 0/1000.0 2/0.3 10/0.0 ");
    s.stop = 2;
    assert_int_equal(run_each_events(r, see, &s, &err), -1);
    assert_int_equal(err.code, CODE_DATA);
    str_release(&s.text);
    run_free(r);
}

static char *fill(struct run *r, uint64_t dataset, uint32_t attempt, const char *mesh)
{
    struct err err = { 0 };
    char *work = run_work_dir(r, dataset, 0, 0, attempt, &err), *path;

    if (!work)
        fail_msg("%s", err.text);
    path = path_join(work, "sub");
    dir_make(path, 0777, NULL);
    free(path);
    path = path_join(work, "sub/mesh.ply");
    put_file(path, mesh, strlen(mesh));
    free(path);
    path = path_join(work, "a\xff");
    put_file(path, "", 0);
    free(path);
    return work;
}

static void test_publish(void **state)
{
    struct run *r = make_run("publish", "a\nb/x\n");
    struct result x = { .dataset = 1, .pin = (char *)"xxh3:1", .attempt = 3 }, back;
    struct dataset d;
    struct err err = { 0 };
    bool taken;
    char *work = fill(r, 1, 3, "ply"), *rival = fill(r, 1, 4, "other");
    char to[64];

    (void)state;
    assert_int_equal(run_dataset(r, 1, &d, NULL), 0);
    assert_false(run_done(r, 1, NULL, NULL, false));
    assert_int_equal(run_result(r, 1, &back, &err), -1);
    assert_int_equal(err.code, CODE_NOTFOUND);
    if (run_publish(r, work, &d, &x, &taken, &err))
        fail_msg("%s", err.text);
    assert_false(taken);
    assert_int_equal(access(work, F_OK), -1);
    assert_int_equal(readlink(in_scratch("publish/out/by-name/x"), to, sizeof(to)), 6);
    assert_memory_equal(to, "../0/1", 6);
    assert_int_equal(access(in_scratch("publish/out/by-name/x/sub/mesh.ply"), R_OK), 0);
    assert_int_equal(run_result(r, 1, &back, &err), 0);
    assert_int_equal(back.files.n, 2);
    assert_string_equal(back.files.v[0].path, "a\xff");
    assert_string_equal(back.files.v[1].path, "sub/mesh.ply");
    assert_int_equal(back.attempt, 3);
    assert_string_equal(back.pin, "xxh3:1");
    assert_null(back.pipeline);
    result_release(&back);
    assert_true(run_done(r, 1, "xxh3:1", NULL, true));
    assert_false(run_done(r, 1, "xxh3:2", NULL, false));
    assert_false(run_done(r, 1, NULL, "xxh3:1", false));

    assert_int_equal(run_publish(r, rival, &d, &x, &taken, &err), 0);
    assert_true(taken);
    assert_int_equal(access(rival, F_OK), -1);

    put_file(in_scratch("publish/out/0/1/sub/mesh.ply"), "plx", 3); /* same size, other bytes */
    assert_true(run_done(r, 1, NULL, NULL, false));
    assert_false(run_done(r, 1, NULL, NULL, true));
    put_file(in_scratch("publish/out/0/1/sub/mesh.ply"), "pl", 2);
    assert_false(run_done(r, 1, NULL, NULL, false));
    assert_int_equal(run_unpublish(r, 1, &err), 0);
    assert_int_equal(run_unpublish(r, 1, &err), 0);
    assert_int_equal(access(in_scratch("publish/out/0/1"), F_OK), -1);
    free(work);
    free(rival);
    for (size_t i = 0; i < x.files.n; i++)
        free(x.files.v[i].path);
    free(x.files.v);
    dataset_release(&d);
    run_free(r);
}

static void test_publish_refused(void **state)
{
    struct run *r = make_run("refused", "a\n");
    struct result x = { .dataset = 0 };
    struct dataset d;
    struct err err = { 0 };
    bool taken;
    char *work = fill(r, 0, 0, "ply"), *own = path_join(work, "recon.json");

    (void)state;
    assert_int_equal(run_dataset(r, 0, &d, NULL), 0);
    put_file(own, "{}", 2);
    assert_int_equal(run_publish(r, work, &d, &x, &taken, &err), -1);
    assert_int_equal(err.code, CODE_DATA);
    assert_int_equal(access(own, F_OK), 0);
    assert_int_equal(run_publish(r, in_scratch("nothing"), &d, &x, &taken, &err), -1);
    assert_int_equal(err.code, CODE_IO);
    unlink(own);
    put_file(in_scratch("refused/out/0/0"), "in the way", 10);
    assert_int_equal(run_publish(r, work, &d, &x, &taken, &err), -1);
    assert_int_equal(access(own, F_OK), -1);
    assert_false(run_done(r, 0, NULL, NULL, false));
    unlink(in_scratch("refused/out/0/0"));
    assert_int_equal(run_publish(r, work, &d, &x, &taken, &err), 0);
    assert_true(run_done(r, 0, NULL, NULL, true));
    put_file(in_scratch("refused/out/0/0/recon.json"),
             "{\"v\":1,\"type\":\"result\",\"dataset\":0,\"files\":[{\"path\":\"../0/a\",\"bytes\":0,\"digest\":\"x\"}]}", 82);
    assert_false(run_done(r, 0, NULL, NULL, false));
    free(own);
    free(work);
    result_release(&x);
    dataset_release(&d);
    run_free(r);
}

static void limit_files(rlim_t most)
{
    struct rlimit l;

    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &l);
}

/* A disk that fills up (here: a limit on the size of files) leaves nothing that looks whole. */
static void test_full(void **state)
{
    struct run *r = make_run("full", "a\n");
    struct result x = { .dataset = 0 };
    struct datasets many = { 0 };
    struct str list = { 0 };
    struct dataset d;
    struct err err = { 0 };
    char *work = fill(r, 0, 0, "ply"), *about = path_join(work, "recon.json");
    bool taken;

    (void)state;
    for (int i = 0; i < 2000; i++)
        str_addf(&list, "scan-%d\n", i);
    assert_int_equal(datasets_parse(list.s, list.len, "l", "/l", &many, NULL), 0);
    assert_int_equal(run_dataset(r, 0, &d, NULL), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(20);
    assert_null(run_create(in_scratch("full2"), &many, &err));
    assert_int_equal(err.code, CODE_IO);
    assert_int_equal(access(in_scratch("full2"), F_OK), -1);
    assert_int_equal(run_publish(r, work, &d, &x, &taken, &err), -1);
    assert_int_equal(err.code, CODE_IO);
    assert_int_equal(access(about, F_OK), -1);
    assert_int_equal(access(in_scratch("full/out/0/0"), F_OK), -1);
    assert_int_equal(run_submit_intent(r, 0, "local", "n", 1, &err), -1);
    assert_int_equal(err.code, CODE_IO);
    limit_files(RLIM_INFINITY);
    assert_int_equal(run_submit_intent(r, 0, "local", "n", 1, &err), 0);
    assert_int_equal(run_publish(r, work, &d, &x, &taken, &err), 0);
    str_release(&list);
    datasets_release(&many);
    result_release(&x);
    dataset_release(&d);
    free(about);
    free(work);
    run_free(r);
}

/* A result that is not whole does not stand in the way of a good one. */
static void test_publish_over_damage(void **state)
{
    static const char *const damage[] = { "recon.json", "sub/mesh.ply", NULL };
    struct run *r = make_run("repair", "a\n");
    unsigned char states[1];
    struct err err = { 0 };
    struct dataset d;
    bool taken;

    (void)state;
    assert_int_equal(run_dataset(r, 0, &d, NULL), 0);
    run_verify(r, NULL, NULL, NULL, NULL, NULL, states);
    assert_int_equal(states[0], RESULT_NONE);
    for (uint32_t i = 0; i < 3; i++) {
        struct result x = { .dataset = 0, .attempt = i };
        char *work = fill(r, 0, i, "ply"), *path = xasprintf("%s/out/0/0/%s", run_path(r), damage[i] ? damage[i] : "");

        assert_int_equal(run_publish(r, work, &d, &x, &taken, &err), 0);
        assert_false(taken);
        run_verify(r, NULL, NULL, NULL, NULL, NULL, states);
        assert_int_equal(states[0], RESULT_GOOD);
        assert_int_equal(run_judge(r, 0, "xxh3:1", NULL, false, NULL), RESULT_OTHER);
        if (damage[i]) {
            unlink(path);
            assert_int_equal(run_judge(r, 0, NULL, NULL, false, &err), RESULT_DAMAGED);
            assert_non_null(strstr(err.text, damage[i]));
        }
        free(work);
        free(path);
        result_release(&x);
    }
    put_file(in_scratch("repair/out/0/0/sub/mesh.ply"), "plx", 3);
    run_verify(r, NULL, NULL, NULL, NULL, NULL, states);
    assert_int_equal(states[0], RESULT_DAMAGED);
    run_verify(r, NULL, NULL, (bool[]){ true }, NULL, NULL, states);
    assert_int_equal(states[0], RESULT_NONE);
    dataset_release(&d);
    run_free(r);
}

static bool ask_over(void *arg, uint64_t dataset, int64_t sub, uint32_t slot, uint32_t attempt)
{
    (void)dataset;
    return sub >= 0 && run_attempt_over(arg, (uint32_t)sub, slot, attempt, NULL) != 1;
}

/* Work folders of attempts that have ended, or that nobody holds, go; those of living and unknown ones stay. */
/* The next attempt removes what older ones of its dataset left: ended, or dead on this node. */
static void test_sweep_dead(void **state)
{
    static const struct { const char *node; bool end, lives, stays; } cases[] = {
        { "here", false, false, false }, /* killed on this node */
        { "there", false, false, true }, /* on another: locks may say nothing */
        { "there", true, false, false }, /* its end is recorded */
        { "here", false, true, true },   /* alive */
    };
    struct run *r = make_run("dead", "a\nb\n");
    struct events *e[COUNT(cases)];
    uint32_t attempt;

    (void)state;
    for (uint32_t i = 0; i < COUNT(cases); i++) {
        e[i] = run_events(r, 0, 0, i, &attempt, NULL);
        events_attempt(e[i], &(struct event_attempt){ .attempt = i, .node = cases[i].node });
        if (cases[i].end)
            events_end(e[i], &(struct event_end){ .status = "failed", .exit = 1 });
        if (!cases[i].lives)
            events_close(e[i], NULL);
        free(run_work_dir(r, 0, 0, 0, i, NULL));
    }
    free(run_work_dir(r, 1, 0, 0, 0, NULL)); /* another dataset's */
    run_sweep_dead(r, 0, "here");
    for (uint32_t i = 0; i < COUNT(cases); i++) {
        char *path = xasprintf("dead/out/0/.0.0.0.%u", i);

        assert_int_equal(access(in_scratch(path), F_OK), cases[i].stays ? 0 : -1);
        free(path);
    }
    assert_int_equal(access(in_scratch("dead/out/0/.1.0.0.0"), F_OK), 0);
    events_close(e[3], NULL);
    run_free(r);
}

static void test_sweep(void **state)
{
    struct run *r = make_run("sweep", "a\nb\n");
    uint32_t attempt;
    struct events *ended = run_events(r, 0, 0, 0, &attempt, NULL), *lost = run_events(r, 0, 0, 1, &attempt, NULL);
    struct events *lives = run_events(r, 0, 0, 2, &attempt, NULL);
    uint64_t n;
    bool end;

    (void)state;
    events_end(ended, &(struct event_end){ .status = "failed", .exit = 1 });
    events_close(ended, NULL);
    events_close(lost, NULL);
    for (uint32_t i = 0; i < 4; i++)
        free(run_work_dir(r, 0, 0, 0, i, NULL));
    assert_int_equal(mkdir(in_scratch("sweep/out/0/.1.old.77.0"), 0777), 0);
    assert_int_equal(mkdir(in_scratch("sweep/out/0/.other"), 0777), 0);
    assert_int_equal(run_attempt_over(r, 0, 0, 0, &end), 1);
    assert_true(end);
    assert_int_equal(run_attempt_over(r, 0, 0, 1, &end), 1);
    assert_false(end);
    run_sweep(r, ask_over, r, &n);
    assert_int_equal(n, 3);
    assert_int_equal(access(in_scratch("sweep/out/0/.0.0.0.1"), F_OK), -1);
    assert_int_equal(access(in_scratch("sweep/out/0/.0.0.0.2"), F_OK), 0);
    assert_int_equal(access(in_scratch("sweep/out/0/.0.0.0.3"), F_OK), 0);
    assert_int_equal(access(in_scratch("sweep/out/0/.other"), F_OK), 0);
    events_close(lives, NULL);
    run_sweep(r, ask_over, r, &n);
    assert_int_equal(n, 1);
    run_free(r);
}

/* What a killed attempt left is removed when the same attempt begins again. */
static void test_leftover(void **state)
{
    struct run *r = make_run("left", "a\n");
    char *first = fill(r, 0, 0, "half"), *second = run_work_dir(r, 0, 0, 0, 0, NULL), *mesh;

    (void)state;
    assert_string_equal(first, second);
    mesh = path_join(second, "sub");
    assert_int_equal(access(mesh, F_OK), -1);
    assert_false(run_done(r, 0, NULL, NULL, false));
    free(mesh);
    free(first);
    free(second);
    run_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),    cmocka_unit_test(test_open_refused),    cmocka_unit_test(test_maps),
        cmocka_unit_test(test_submit),    cmocka_unit_test(test_bad_nodes),       cmocka_unit_test(test_events),
        cmocka_unit_test(test_publish),   cmocka_unit_test(test_publish_refused), cmocka_unit_test(test_leftover),
        cmocka_unit_test(test_publish_over_damage), cmocka_unit_test(test_sweep), cmocka_unit_test(test_sweep_dead),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
