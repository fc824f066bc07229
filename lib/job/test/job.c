#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>
#include "job/job.h"

static void test_values(void **state)
{
    static const struct { const char *text; int64_t seconds; } times[] = {
        { "30", 1800 },        { "02:00", 120 },       { "0:30:00", 1800 }, { "1-0", 86400 },
        { "1-2:30", 95400 },   { "1-2:30:15", 95415 }, { "UNLIMITED", -1 }, { "0", 0 },
    };
    static const char *const bad_times[] = { "", "1h", "1:2:3:4", "-5", "1-", "1-2-3", "99999999999", "1:" };
    static const struct { const char *text; uint64_t mib; } mems[] = {
        { "32G", 32768 }, { "1024", 1024 }, { "2g", 2048 }, { "1T", 1048576 }, { "1K", 1 }, { "512MB", 512 },
    };
    static const char *const bad_mems[] = { "", "G", "32X", "3.5G", "-1", "32GiB" };
    uint64_t mib;
    int64_t s;

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++) {
        assert_int_equal(slurm_time(times[i].text, &s), 0);
        assert_int_equal(s, times[i].seconds);
    }
    for (size_t i = 0; i < COUNT(bad_times); i++)
        assert_int_equal(slurm_time(bad_times[i], &s), -1);
    for (size_t i = 0; i < COUNT(mems); i++) {
        assert_int_equal(slurm_mib(mems[i].text, &mib), 0);
        assert_int_equal(mib, mems[i].mib);
    }
    for (size_t i = 0; i < COUNT(bad_mems); i++)
        assert_int_equal(slurm_mib(bad_mems[i], &mib), -1);
}

static void test_options(void **state)
{
    static const struct { const char *name, *value, *wanted; } cases[] = {
        { "partition", "gpu", NULL },
        { "hold", NULL, NULL },
        { "exclusive", NULL, NULL },
        { "exclusive", "user", NULL },
        { "output", "/x/%j.log", NULL },
        { "output", "/x/%A_%4a.log", NULL },
        { "error", "/dev/null", NULL },
        { "partitoin", "gpu", "the nearest is 'partition'" },
        { "array", "0-9", "recon splits the datasets" },
        { "wrap", "true", "put the program after '--'" },
        { "job-name", "x", "each submission has its own name" },
        { "output", "/x/all.log", "all tasks would write one file" },
        { "output", "/x/%%a.log", "all tasks would write one file" },
        { "time", "soon", "wants minutes, H:M:S or D-H:M:S, found 'soon'" },
        { "mem", "lots", "wants a number with K, M, G or T" },
        { "comment", "a\nb", "holds a line break" },
        { "hold", "3", "takes no value" },
        { "gres", NULL, "wants a value" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err e = { 0 };
        int rc = sbatch_option_check(cases[i].name, cases[i].value, &e);

        if (cases[i].wanted ? rc == 0 || !strstr(e.text, cases[i].wanted) || e.code != CODE_USAGE : rc != 0)
            fail_msg("%s=%s gave %d '%s'", cases[i].name, cases[i].value ? cases[i].value : "", rc, e.text);
    }
    for (const struct sbatch_option *o = sbatch_options; o->name; o++) {
        if (o->flags & (OPTION_OURS | OPTION_REFUSED))
            assert_non_null(o->why);
        for (const struct sbatch_option *p = o + 1; p->name; p++) {
            assert_string_not_equal(o->name, p->name);
            assert_false(o->letter && o->letter == p->letter);
        }
    }
}

/* ---- layers ---- */

static char *make_dir(void)
{
    char *dir = xstrdup("/tmp/recon-job.XXXXXX");

    assert_non_null(mkdtemp(dir));
    return dir;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char *path = path_join(dir, name), *folder = path_dir(path);
    struct err e = { 0 };

    assert_int_equal(dir_make(folder, 0755, &e), 0);
    assert_int_equal(file_write(path, text, strlen(text), 0644, &e), 0);
    free(folder);
    free(path);
}

/* What test_layers wants of its layers: options over --set over the environment over job.conf over the folder's, user's, site's. */
static void layered(const struct spec *s, const char *dir)
{
    char *list = path_join(dir, "work/scans.txt"), *program = path_join(dir, "work/fuse");

    assert_string_equal(s->name, "7scenes");
    assert_string_equal(s->datasets, list);
    assert_string_equal(s->program.v[0], program);
    assert_int_equal(s->device, DEVICE_CPU);
    assert_int_equal(s->max_running, 7);
    assert_int_equal(s->max_tasks, 50);
    assert_int_equal(s->retry.node_unfit, 4);
    assert_string_equal(s->template, "mine");
    assert_string_equal(conf_map_get(&s->sbatch, "partition"), "user");
    assert_string_equal(conf_map_get(&s->sbatch, "time"), "10");
    assert_string_equal(conf_map_get(&s->sbatch, "mem"), "64G");
    assert_string_equal(conf_map_get(&s->sbatch, "qos"), "high");
    assert_string_equal(conf_map_get(&s->sbatch, "account"), "recon");
    assert_string_equal(conf_map_get(&s->sbatch, "comment"), "two words");
    assert_null(conf_map_get(&s->sbatch, "requeue"));
    assert_true(spec_asks_gpu(s));
    free(list);
    free(program);
}

static void test_layers(void **state)
{
    char *dir = make_dir(), *was = getcwd(NULL, 0), *file = path_join(dir, "work/job.conf");
    char *home = xasprintf("HOME=%s/home", dir), *cwd;
    char *env[] = { home, (char *)(uintptr_t)"RECON_MAX_RUNNING=7", (char *)(uintptr_t)"SBATCH_QOS=high",
                    (char *)(uintptr_t)"SBATCH_ACCOUNT=env", (char *)(uintptr_t)"RECON_SBATCH_ACCOUNT=recon",
                    (char *)(uintptr_t)"SBATCH_ARRAY_INX=0-3", (char *)(uintptr_t)"SBATCH_REQUEUE=0", NULL };
    struct conf_map options = { 0 };
    struct strv set = { 0 }, ignored = { 0 };
    struct spec_source source = { .file = file, .env = env, .set = &set, .options = &options, .root = dir };
    struct str shown = { 0 };
    struct err e = { 0 };
    struct spec s;

    (void)state;
    put_file(dir, "etc/recon/recon.conf", "max_tasks = 50; sbatch = { partition = \"site\"; time = \"10\"; };");
    put_file(dir, "home/.config/recon/recon.conf", "sbatch = { partition = \"user\"; }; template = \"mine\";");
    put_file(dir, "cwd/recon.conf", "device = \"cpu\"; max_running = 3;");
    put_file(dir, "work/job.conf",
             "name = \"k\"; datasets = \"scans.txt\"; program = ( \"./fuse\", \"{dataset}\" );\n"
             "sbatch = { gres = \"gpu:h100:1\"; mem = \"32G\"; cpus-per-task = 8; requeue = true; };\n");
    cwd = path_join(dir, "cwd");
    assert_int_equal(chdir(cwd), 0);
    strv_add(&set, "retry.node_unfit=4");
    strv_add(&set, "sbatch.comment=two words");
    strv_add(&set, "name=7scenes");
    conf_map_set(&options, "mem", "64G", CONF_KIND_TEXT);
    if (spec_load(&source, &s, &ignored, &e))
        fail_msg("%s", e.text);
    assert_int_equal(spec_check(&s, &e), 0);
    layered(&s, dir);
    assert_int_equal(ignored.n, 1);
    assert_non_null(strstr(ignored.v[0], "SBATCH_ARRAY_INX"));
    spec_show(&s, &shown);
    spec_release(&s);
    put_file(dir, "work/job.conf", shown.s); /* what is shown says the same */
    set.n = 0;
    options.n = 0;
    source.env = (char *[]){ home, NULL };
    if (spec_load(&source, &s, NULL, &e))
        fail_msg("%s in %s", e.text, shown.s);
    assert_string_equal(conf_map_get(&s.sbatch, "mem"), "64G");
    assert_int_equal(s.max_running, 7);
    spec_release(&s);
    str_release(&shown);
    set.n = 3;
    options.n = 1;
    strv_release(&set);
    strv_release(&ignored);
    conf_map_release(&options);
    assert_int_equal(chdir(was), 0);
    dir_remove(dir);
    free(cwd);
    free(home);
    free(file);
    free(was);
    free(dir);
}

static void test_refused(void **state)
{
    static const struct { const char *text, *set, *wanted; } cases[] = {
        { "name = \"x\";\nmax_runing = 3;", NULL, "job.conf:2: unknown key 'max_runing', the nearest is 'max_running'" },
        { "name = \"x\";\nsbatch = { gres = \"g\";\n partitoin = \"gpu\"; };", NULL,
          "job.conf:3: sbatch has no option 'partitoin', the nearest is 'partition'" },
        { "sbatch = { array = \"0-3\"; };", NULL, "job.conf:1: sbatch's option 'array' is not taken" },
        { "sbatch = { gres = [ \"a\", \"b\" ]; };", NULL, "job.conf:1: 'gres' is a list" },
        { "device = \"tpu\";", NULL, "job.conf:1: 'device' wants one of: auto, cpu, cuda" },
        { "", "divice=cpu", "--set 'divice=cpu': unknown key 'divice', the nearest is 'device'" },
        { "", "device", "is no assignment" },
        { "", "sbatch.time=soon", "wants minutes" },
        { "", NULL, "'name' is missing" },
        { "name = \"a b\";", NULL, "'name' is 'a b'" },
        { "name = \"a\";", NULL, "'datasets' is missing" },
        { "name = \"a\"; datasets = \"d\";", NULL, "none of 'pipeline', 'program' and 'script' is given" },
        { "name = \"a\"; datasets = \"d\"; pipeline = \"p\"; script = \"q\";", NULL, "script: cannot open " },
        { "name = \"a\"; datasets = \"d\"; pipeline = \"p\"; program = [ \"q\" ];", NULL, "several of 'pipeline'," },
        { "name = \"a\"; datasets = \"d\"; pipeline = \"p\"; max_running = -1;", NULL, "'max_running' is -1" },
        { "name = \"a\"; datasets = \"d\"; pipeline = \"p\"; env = [ \"1A\" ];", NULL, "no name of a variable" },
    };
    char *dir = make_dir(), *file = path_join(dir, "job.conf");

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *env[] = { NULL };
        struct strv set = { 0 };
        struct spec_source source = { .file = file, .env = env, .set = &set, .root = dir };
        struct err e = { 0 };
        struct spec s;
        int rc;

        put_file(dir, "job.conf", cases[i].text);
        if (cases[i].set)
            strv_add(&set, cases[i].set);
        rc = spec_load(&source, &s, NULL, &e);
        if (rc == 0) {
            rc = spec_check(&s, &e);
            spec_release(&s);
        }
        if (rc == 0 || e.code != CODE_USAGE || !strstr(e.text, cases[i].wanted))
            fail_msg("'%s' %s gave %d '%s'", cases[i].text, cases[i].set ? cases[i].set : "", rc, e.text);
        strv_release(&set);
    }
    dir_remove(dir);
    free(file);
    free(dir);
}

/* ---- script ---- */

static const char template[] = "#!/bin/bash\n@DIRECTIVES@\n# @VERSION@ @TEMPLATE@ a@@b\n\n@ENVIRONMENT@\n\nexec @LAUNCH@\n";

static void render(const char *run, const char *text, struct str *ret, struct err *e)
{
    struct pin_variable variables[] = {
        { (char *)(uintptr_t)"CUDA_HOME", PIN_SET, (char *)(uintptr_t)"/usr/local/cuda-13.0" },
        { (char *)(uintptr_t)"PATH", PIN_PREPEND, (char *)(uintptr_t)"/a 'b'$(touch x)" },
        { (char *)(uintptr_t)"LD_PRELOAD", PIN_UNSET, NULL },
    };
    struct pin pin = { .variables = { variables, COUNT(variables), COUNT(variables) } };
    struct spec spec = { 0 };
    struct strv argv = { 0 };
    struct script s = { .spec = &spec, .pin = &pin, .run = run, .sub = 0, .slots = 100,
                        .job_name = "kitchen-7f3a91c2.0", .chdir = "/scratch/ada/kitchen", .umask = "0027",
                        .launcher = "/opt/recon/bin/recon-launch", .argv = &argv, .template_text = text,
                        .template_name = "default" };

    conf_defaults(spec_rows, &spec);
    conf_map_set(&spec.sbatch, "time", "0:30:00", CONF_KIND_TEXT);
    conf_map_set(&spec.sbatch, "partition", "gpu", CONF_KIND_TEXT);
    conf_map_set(&spec.sbatch, "gres", "gpu:h100:1", CONF_KIND_TEXT);
    conf_map_set(&spec.sbatch, "comment", "say \"hi\" # \\ there", CONF_KIND_TEXT);
    conf_map_set(&spec.sbatch, "hold", "true", CONF_KIND_BOOL);
    spec.max_running = 20;
    strv_add(&argv, "/opt/recon/bin/recon-run");
    strv_add(&argv, "--device");
    strv_add(&argv, "cuda");
    script_render(&s, ret, e);
    strv_release(&argv);
    spec_release(&spec);
}

static void test_script(void **state)
{
    static const char golden[] =
        "#!/bin/bash\n"
        "#SBATCH --job-name=kitchen-7f3a91c2.0\n"
        "#SBATCH --partition=gpu\n"
        "#SBATCH --gres=gpu:h100:1\n"
        "#SBATCH --time=0-00:30:00\n"
        "#SBATCH --hold\n"
        "#SBATCH --comment=\"say \\\"hi\\\" # \\\\ there\"\n"
        "#SBATCH --array=0-99%20\n"
        "#SBATCH --chdir=\"/scratch/ada/kitchen\"\n"
        "#SBATCH --output=\"/scratch/ada/kit chen/50%%/logs/%A_%a.log\"\n"
        "#SBATCH --open-mode=append\n"
        "# " PACKAGE_VERSION " default a@b\n\n"
        "umask 0027\n"
        "export SLURM_EXPORT_ENV=ALL\n"
        "export CUDA_HOME='/usr/local/cuda-13.0'\n"
        "export PATH='/a '\\''b'\\''$(touch x)'\"${PATH:+:$PATH}\"\n"
        "unset LD_PRELOAD\n"
        "export RECON_PIN='/scratch/ada/kit chen/50%/env.pin'\n\n"
        "exec '/opt/recon/bin/recon-launch' --pin \"$RECON_PIN\" --run '/scratch/ada/kit chen/50%' --sub 0 --task "
        "\"${RECON_TASK:-${SLURM_ARRAY_TASK_ID:?}}\" -- '/opt/recon/bin/recon-run' --device cuda\n";
    struct directives d;
    struct str t = { 0 };
    struct err e = { 0 };

    (void)state;
    render("/scratch/ada/kit chen/50%", template, &t, &e);
    if (e.code)
        fail_msg("%s", e.text);
    assert_string_equal(t.s, golden);
    assert_int_equal(directives_parse(t.s, "s", &d, &e), 0);
    assert_string_equal(directives_get(&d, "comment"), "say \"hi\" # \\ there");
    assert_string_equal(directives_get(&d, "output"), "/scratch/ada/kit chen/50%%/logs/%A_%a.log");
    assert_non_null(directives_find(&d, "hold"));
    assert_null(directives_get(&d, "hold"));
    directives_release(&d);
    str_release(&t);
}

static void test_templates(void **state)
{
    static const struct { const char *run, *text, *wanted; } cases[] = {
        { "/r", "#!/bin/sh\n@DIRECTIVES@\n@ENVIRONMENT@\n@LUNCH@\n", "default:4: unknown placeholder '@LUNCH@'" },
        { "/r", "#!/bin/sh\n@DIRECTIVES@\n@ENVIRONMENT@\nmail a@b.c\n@LAUNCH@\n", "a literal one is written @@" },
        { "/r", "#!/bin/sh\n@DIRECTIVES@\n@LAUNCH@\n", "the placeholder @ENVIRONMENT@ is missing" },
        { "/r", "@DIRECTIVES@\n@ENVIRONMENT@\n@LAUNCH@\n", "has to begin with #!" },
        { "/r", "#!/bin/sh\necho\n@DIRECTIVES@\n@ENVIRONMENT@\n@LAUNCH@\n", "after the first command" },
        { "/r", "#!/bin/sh\n@DIRECTIVES@\n#SBATCH -a 0-3\n@ENVIRONMENT@\n@LAUNCH@\n", "where '0-99%20' is wanted" },
        { "/r", "#!/bin/sh\n@DIRECTIVES@\n#SBATCH --wrap=x\n@ENVIRONMENT@\n@LAUNCH@\n", "'wrap' is not taken" },
        { "/r", "#!/bin/sh\n@DIRECTIVES@\n#SBATCH --comment=\"x\n@ENVIRONMENT@\n@LAUNCH@\n", "a quote is left open" },
        { "/r\nx", template, "holds a line break" },
        { "/r\\x", template, "holds a backslash" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str t = { 0 };
        struct err e = { 0 };

        render(cases[i].run, cases[i].text, &t, &e);
        if (e.code != CODE_USAGE || !strstr(e.text, cases[i].wanted) || t.len)
            fail_msg("case %zu gave '%s'", i, e.text);
        str_release(&t);
    }
}

static void test_parse(void **state)
{
    static const char text[] = "#!/bin/sh\n#SBATCH -p gpu --mem 3G # not this\n#SBATCH -c8 --exclusive\n# x\n\n"
                               "#SBATCH --comment='a b'\\ c -p cpu\n\necho\n";
    struct directives d;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(directives_parse(text, "s", &d, &e), 0);
    assert_string_equal(directives_get(&d, "partition"), "cpu");
    assert_string_equal(directives_get(&d, "mem"), "3G");
    assert_string_equal(directives_get(&d, "cpus-per-task"), "8");
    assert_string_equal(directives_get(&d, "comment"), "a b c");
    assert_int_equal(d.n, 5);
    directives_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_options),   cmocka_unit_test(test_layers),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_script),    cmocka_unit_test(test_templates),
        cmocka_unit_test(test_parse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
