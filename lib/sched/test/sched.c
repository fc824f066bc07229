#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "sched/sched_priv.h"

static void test_pattern(void **state)
{
    static const struct { const char *pattern, *wanted; } cases[] = {
        { "/r/logs/%A_%a.log", "/r/logs/4711_17.log" }, { "%4a", "0017" }, { "%j-%x", "4728-k.0" },
        { "50%%/%N.%u", "50%/n1.ada" }, { "%12a", "0000000017" }, { "a%", "a" }, { "%q", "%q" }, { "", "" },
    };
    const struct sched_names n = { 4711, 4728, 17, "k.0", "n1", "ada" };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = sched_pattern(cases[i].pattern, &n);

        assert_string_equal(text, cases[i].wanted);
        free(text);
    }
}

static void add_slot(void *arg, uint32_t slot)
{
    str_addf(arg, "%u ", slot);
}

static void test_slots(void **state)
{
    static const struct { const char *text, *wanted; } cases[] = {
        { "3", "3 " }, { "0-3,7%2", "0 1 2 3 7 " }, { "0-6:3", "0 3 6 " }, { "1-2,4-5", "1 2 4 5 " },
    };
    static const char *const bad[] = { "", "x", "3-1", "0-3,...", "1-4000000000", "1-9:18446744073709551615" };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str t = { 0 };

        assert_int_equal(sched_slots(cases[i].text, add_slot, &t), 0);
        assert_string_equal(t.s, cases[i].wanted);
        str_release(&t);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct str t = { 0 };

        if (*bad[i])
            assert_int_equal(sched_slots(bad[i], add_slot, &t), -1);
        str_release(&t);
    }
}

#define S(text) ((char *)(uintptr_t)(text))

static void test_environment(void **state)
{
    char *env[] = { S("PATH=/bin"), S("SLURM_JOB_ID=1"), S("SLURM_CONF=/c"), S("SBATCH_EXPORT=NONE"), S("SLURMD_NODENAME=n"),
                    S("RECON_TASK=3"), S("RECON_RUN=/r"), S("RECON_CHECK=off"), S("RECON_EVENTS_FD=9"), S("A=b=c"), NULL };
    struct strv clean = { 0 };

    (void)state;
    sched_environment(env, &clean);
    assert_int_equal(clean.n, 4);
    assert_string_equal(env_get(clean.v, "SLURM_CONF"), "/c");
    assert_string_equal(env_get(clean.v, "A"), "b=c");
    assert_string_equal(env_get(clean.v, "RECON_CHECK"), "off");
    strv_release(&clean);
}

static void submit_env(const char *directives, struct strv *ret, int wanted)
{
    char *env[] = { S("PATH=/bin"), S("X=1"), S("Y=2"), NULL };
    struct sched_request r = { .name = "k.0", .cwd = "/here", .env = env };
    struct submit_env how = { .propagate = "NOFILE", .umask = 027, .nice = 3 };
    struct directives d;
    struct err e = { 0 };

    assert_int_equal(directives_parse(directives, "s", &d, &e), 0);
    assert_int_equal(submit_environment(&r, &d, &how, ret, &e), wanted);
    directives_release(&d);
}

static void test_submit_environment(void **state)
{
    struct strv env = { 0 };

    (void)state;
    submit_env("#SBATCH -c 8 --open-mode=append --job-name=n.1\n", &env, 0);
    assert_string_equal(env_get(env.v, "PATH"), "/bin");
    assert_string_equal(env_get(env.v, "SLURM_UMASK"), "0027");
    assert_string_equal(env_get(env.v, "SLURM_JOB_NAME"), "n.1");
    assert_string_equal(env_get(env.v, "SLURM_SUBMIT_DIR"), "/here");
    assert_string_equal(env_get(env.v, "SLURM_PRIO_PROCESS"), "3");
    assert_string_equal(env_get(env.v, "SLURM_CPUS_PER_TASK"), "8");
    assert_string_equal(env_get(env.v, "SLURM_OPEN_MODE"), "a");
    assert_non_null(env_get(env.v, "SLURM_RLIMIT_NOFILE"));
    assert_null(env_get(env.v, "SLURM_RLIMIT_CORE"));
    assert_null(env_get(env.v, "SLURM_GET_USER_ENV"));
    strv_release(&env);
    submit_env("#SBATCH --export=NONE\n", &env, 0);
    assert_null(env_get(env.v, "PATH"));
    assert_string_equal(env_get(env.v, "SLURM_EXPORT_ENV"), "NONE");
    assert_string_equal(env_get(env.v, "SLURM_GET_USER_ENV"), "1");
    strv_release(&env);
    submit_env("#SBATCH --export=X,Z=3\n", &env, 0);
    assert_null(env_get(env.v, "Y"));
    assert_string_equal(env_get(env.v, "X"), "1");
    assert_string_equal(env_get(env.v, "Z"), "3");
    strv_release(&env);
    submit_env("#SBATCH --export=\"X='a,b'\"\n", &env, -1);
    strv_release(&env);
}

/* ---- the local backend ---- */

static char *run_tasks(const char *script, uint32_t tasks, uint32_t at_a_time, struct sched_tasks *ret, struct err *e)
{
    char *dir = xstrdup("/tmp/recon sched.XXXXXX"), *path, *id = NULL, *text;
    char *env[] = { S("PATH=/usr/bin:/bin"), S("HOME=/nowhere"), S("SLURM_JOB_ID=99"), S("SLURM_PROCID=5"), S("SEEN=yes"),
                    NULL };
    struct sched_request r = { .name = "k.0", .tasks = tasks, .at_a_time = at_a_time, .env = env, .cwd = "/" };

    assert_non_null(mkdtemp(dir));
    path = path_join(dir, "s.sbatch");
    text = xasprintf("#!/bin/sh\n#SBATCH --output=\"%s/%%A_%%a.log\" --chdir=\"%s\" --open-mode=append\n%s", dir, dir,
                     script);
    assert_int_equal(file_write(path, text, strlen(text), 0644, e), 0);
    r.script = text;
    r.script_path = path;
    assert_int_equal(recon_backend.submit(&r, &id, e), 0);
    recon_backend.wait(id, NULL, NULL, e);
    assert_int_equal(recon_backend.tasks(&(struct sched_job){ .id = id }, ret, e), 0);
    free(path);
    path = xasprintf("%s/%s_1.log", dir, id + 6);
    free(text);
    text = NULL;
    if (tasks > 1) {
        struct str t = { 0 };

        assert_int_equal(file_read(path, 65536, &t, e), 0);
        text = str_take(&t);
    }
    dir_remove(dir);
    free(path);
    free(dir);
    free(id);
    return text;
}

static void test_local(void **state)
{
    struct sched_tasks t = { 0 };
    struct err e = { 0 };
    char *log;

    (void)state;
    log = run_tasks("echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, job $SLURM_PROCID, $SEEN\n"
                    "[ $SLURM_JOB_ID != 99 ] && [ -f s.sbatch ] || exit 9\n"
                    "[ $SLURM_ARRAY_TASK_ID != 2 ] || kill -KILL $$\nexit $SLURM_ARRAY_TASK_ID\n",
                    4, 3, &t, &e);
    assert_int_equal(e.code, 0);
    assert_string_equal(log, "1 of 4, job 0, yes\n");
    assert_int_equal(t.n, 4);
    for (size_t i = 0; i < t.n; i++) {
        assert_int_equal(t.v[i].state, TASK_ENDED);
        assert_int_equal(t.v[i].exit, i == 2 ? 0 : (int)i);
        assert_int_equal(t.v[i].signal, i == 2 ? SIGKILL : 0);
    }
    free(log);
    sched_tasks_release(&t);
    log = run_tasks("#SBATCH --export=NONE\necho ${SEEN-no} $HOME\n", 2, 1, &t, &e);
    assert_string_equal(log, "no /nowhere\n");
    free(log);
    sched_tasks_release(&t);
}

static void on_alarm(int sig)
{
    (void)sig;
    kill(getpid(), SIGTERM);
}

static void test_local_stopped(void **state)
{
    struct sched_tasks t = { 0 };
    struct err e = { 0 };

    (void)state;
    signal(SIGALRM, on_alarm);
    alarm(1);
    free(run_tasks("trap 'exit 7' TERM; sleep 30 & echo $!; wait\n", 1, 1, &t, &e));
    assert_int_equal(e.code, 128 + SIGTERM);
    assert_int_equal(t.v[0].state, TASK_ENDED);
    assert_int_equal(t.v[0].exit, 7);
    sched_tasks_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern), cmocka_unit_test(test_slots),        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_submit_environment), cmocka_unit_test(test_local), cmocka_unit_test(test_local_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
