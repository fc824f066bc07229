#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pin/pin.h"

static char dir[] = "/tmp/recon-pin.XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir("/") || dir_remove(dir);
}

static void write_text(const char *name, const char *text)
{
    struct err err = { 0 };

    if (file_write(name, text, strlen(text), 0644, &err))
        fail_msg("%s", err.text);
}

static const char head[] = "version = 1;  captured = { node = \"login1\"; time = \"2026-11-30T14:00:00Z\"; };\n";

/* Written by hand: several keys a line, L where none is needed, both kinds of lists. */
static const char example[] =
    "version = 1;  captured = { node = \"login1\"; time = \"2026-11-30T14:00:00Z\"; recon = \"0.1.0\"; umask = \"0027\"; };\n"
    "variables = ( { name = \"CUDA_HOME\"; how = \"set\"; value = \"/usr/local/cuda-13.0\"; },\n"
    "  { name = \"LD_LIBRARY_PATH\"; how = \"set\"; value = \"/usr/local/cuda-13.0/lib64\"; },\n"
    "  { name = \"LD_PRELOAD\"; how = \"unset\"; } );\n"
    "modules = [ \"gcc/12.2\", \"cuda/13.0\" ];  prefix = \"\";  limits = { memlock = -1L; open_files = 1024L; };\n"
    "requires = { glibc = \"2.34\"; glibcxx = \"3.4.30\"; cuda_runtime = \"13.0\"; driver = \"580.65.06\"; "
    "cpu_isa = \"x86-64-v2\"; };\n"
    "loader = { path = \"/lib64/ld-linux-x86-64.so.2\"; build_id = \"9b1c5e6f\"; cache_size = 24182L; "
    "cache_mtime_ns = 1796050800000000000L; };\n"
    "dirs = ( { path = \"/usr/local/cuda-13.0/lib64\"; mtime_ns = 1790000000000000000L; } );\n"
    "objects = (\n"
    "  { role = \"program\"; path = \"/opt/recon/bin/recon-run\"; why = \"path\"; build_id = \"4f2a90c1\"; size = 412344L; "
    "mtime_ns = 1796050000000000000L; digest = \"xxh3:0f3a5e9d11c27b64\"; },\n"
    "  { role = \"module\"; path = \"/opt/recon/lib/recon/cuda.so\"; why = \"path\"; build_id = \"77d0e1aa\"; "
    "size = 9120344L; mtime_ns = 1796050000000000000L; digest = \"xxh3:5be0cd19137e2179\";\n"
    "    gpu = ( { containers = 6; sass = [ \"sm_75\", \"sm_80\", \"sm_90\" ]; ptx = [ \"compute_121\" ]; ptx_isa = \"9.0\"; "
    "toolkit = \"13.0\"; } ); },\n"
    "  { role = \"library\"; soname = \"libcudart.so.13\"; path = \"/usr/local/cuda-13.0/lib64/libcudart.so.13\"; "
    "needed_by = [ 1 ]; why = \"ld_library_path\"; found_in = 0; missed = [ ];\n"
    "    build_id = \"c81e728d\"; size = 704288L; mtime_ns = 1790000000000000000L; digest = \"xxh3:1f83d9abfb41bd6b\"; } );\n";

static void check_example(const struct pin *p)
{
    assert_string_equal(p->captured.umask, "0027");
    assert_int_equal(p->variables.n, 3);
    assert_int_equal(p->variables.v[2].how, PIN_UNSET);
    assert_int_equal(p->modules.n, 2);
    assert_int_equal(p->limits.memlock, -1);
    assert_string_equal(p->requires.driver, "580.65.06");
    assert_int_equal(p->loader.cache_mtime_ns, INT64_C(1796050800000000000));
    assert_int_equal(p->objects.n, 3);
    assert_int_equal(p->objects.v[1].role, PIN_MODULE);
    assert_int_equal(p->objects.v[1].gpu.v[0].sass.n, 3);
    assert_string_equal(p->objects.v[1].gpu.v[0].ptx_isa, "9.0");
    assert_int_equal(p->objects.v[2].why, WHY_LD_LIBRARY_PATH);
    assert_int_equal(p->objects.v[2].found_in, 0);
    assert_int_equal(p->objects.v[0].found_in, CONF_UNSET);
    assert_int_equal(p->objects.v[2].needed_by.v[0], 1);
}

static void round_trip(void **state)
{
    struct err err = { 0 };
    struct pin p, q;

    (void)state;
    write_text("a.pin", example);
    if (pin_read("a.pin", &p, &err))
        fail_msg("%s", err.text);
    check_example(&p);
    if (pin_write("b.pin", &p, &err) || pin_read("b.pin", &q, &err))
        fail_msg("%s", err.text);
    check_example(&q);
    assert_string_equal(p.digest, q.digest);
    assert_true(str_starts(q.digest, "xxh3:"));
    pin_release(&p);
    pin_release(&q);
}

static void refused(void **state)
{
    static const struct { const char *text, *want; } rows[] = {
        { "", "is empty" },
        { "version = 2; objects = ( { role = \"program\"; path = \"/p\"; } );", "version is 2" },
        { "objects = ( { role = \"program\"; path = \"/p\"; } );", "'version' is missing" },
        { "version = 1;", "'objects' is missing" },
        { "version = 1; objects = ( );", "no program" },
        { "version = 1; objects = ( { path = \"/p\"; } );", "no program" },
        { "version = 1; objects = ( { role = \"program\"; path = \"p\"; } );", "not absolute" },
        { "version = 1; objects = ( { role = \"program\"; path = \"/p\"; needed_by = [ 1 ]; } );", "'needed_by' holds 1" },
        { "version = 1; objects = ( { role = \"program\"; path = \"/p\"; missed = [ -1 ]; } );", "'missed' holds -1" },
        { "version = 1; objects = ( { role = \"program\"; path = \"/p\"; found_in = 0; } );", "'found_in' holds 0" },
        { "version = 1; objects = ( { role = \"program\"; path = \"/p\"; }, { } );", "neither path nor soname" },
        { "version = 1; objects = ( { role = \"program\"; path = \"/p\"; } ); variable = ();", "nearest is 'variables'" },
        { "version = 1; variables = ( { name = \"A=B\"; value = \"x\"; } ); objects = ( { role = \"program\"; path = \"/p\"; } );",
          "no name of a variable" },
        { "version = 1; variables = ( { name = \"A\"; } ); objects = ( { role = \"program\"; path = \"/p\"; } );",
          "'A' has no value" },
        { "version = 1; variables = ( { name = \"A\"; how = \"sett\"; } ); objects = ( );", "wants one of: set, prepend" },
        { "\177ELF", "a.pin" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        struct pin p;

        write_text("a.pin", rows[i].text);
        if (pin_read("a.pin", &p, &err) == 0)
            fail_msg("row %zu is taken", i);
        if (!strstr(err.text, rows[i].want) || err.code != CODE_USAGE)
            fail_msg("row %zu: %d %s", i, err.code, err.text);
    }
}

static void environment(void **state)
{
    char *const env[] = { (char[]){ "A=1" }, (char[]){ "B=2" }, (char[]){ "C=" }, (char[]){ "D=4" }, NULL };
    struct strv got = { 0 };
    struct err err = { 0 };
    struct pin p;

    (void)state;
    write_text("a.pin",
               "version = 1; objects = ( { role = \"program\"; path = \"/p\"; } ); variables = (\n"
               " { name = \"A\"; how = \"set\"; value = \"x y'z\"; }, { name = \"B\"; how = \"prepend\"; value = \"/b\"; },\n"
               " { name = \"C\"; how = \"append\"; value = \"/c\"; }, { name = \"D\"; how = \"unset\"; },\n"
               " { name = \"E\"; how = \"append\"; value = \"/e\"; }, { name = \"B\"; how = \"append\"; value = \"/z\"; } );");
    if (pin_read("a.pin", &p, &err))
        fail_msg("%s", err.text);
    pin_environment(&p, env, &got);
    assert_string_equal(env_get(got.v, "A"), "x y'z");
    assert_string_equal(env_get(got.v, "B"), "/b:2:/z");
    assert_string_equal(env_get(got.v, "C"), "/c"); /* no empty element */
    assert_null(env_get(got.v, "D"));
    assert_string_equal(env_get(got.v, "E"), "/e");
    strv_release(&got);
    pin_release(&p);
}

/* ---- sets of images ---- */

static void add(struct gpu_images *l, uint32_t container, enum image_kind kind, uint16_t arch, bool relocatable, bool stub)
{
    *VEC_ADD(l) = (struct gpu_image){ .kind = kind, .container = container, .arch = arch, .relocatable = relocatable,
                                      .link_stub = stub, .major = 9, .minor = container ? 0 : 1 };
}

static void sets(void **state)
{
    struct gpu_images l = { .toolkit = xstrdup("13.0") }, rdc = { 0 }, alone = { 0 };
    struct pin_gpus got = { 0 };

    (void)state;
    add(&l, 0, IMAGE_SASS, 75, false, true); /* a stub is never judged */
    add(&l, 1, IMAGE_SASS, 100, false, false);
    add(&l, 1, IMAGE_SASS, 90, false, false);
    add(&l, 1, IMAGE_PTX, 120, false, false);
    add(&l, 2, IMAGE_PTX, 120, false, false); /* the same set in another order */
    add(&l, 2, IMAGE_SASS, 90, false, false);
    add(&l, 2, IMAGE_SASS, 100, false, false);
    add(&l, 3, IMAGE_SASS, 80, false, false);
    add(&l, 4, IMAGE_LTO, 80, false, false); /* of no use to the driver */
    pin_gpu_sets(&l, &got);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.v[0].containers, 2);
    assert_string_equal(got.v[0].sass.v[0], "sm_90");
    assert_string_equal(got.v[0].sass.v[1], "sm_100");
    assert_string_equal(got.v[0].ptx.v[0], "compute_120");
    assert_string_equal(got.v[0].ptx_isa, "9.0");
    assert_string_equal(got.v[0].toolkit, "13.0");
    assert_int_equal(got.v[1].sass.n, 1);
    assert_int_equal(got.v[1].ptx.n, 0);
    pin_gpus_release(&got);
    images_release(&l);

    /* -rdc: linked code, and the PTX that all relocatable containers with PTX share; their SASS does not count */
    add(&rdc, 0, IMAGE_SASS, 90, false, false);
    add(&rdc, 1, IMAGE_SASS, 75, true, false);
    add(&rdc, 1, IMAGE_PTX, 80, true, false);
    add(&rdc, 2, IMAGE_PTX, 80, true, false);
    add(&rdc, 2, IMAGE_PTX, 90, true, false);
    pin_gpu_sets(&rdc, &got);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.v[0].sass.n, 1);
    assert_int_equal(got.v[0].ptx.n, 1);
    assert_string_equal(got.v[0].ptx.v[0], "compute_80");
    pin_gpus_release(&got);
    images_release(&rdc);

    add(&alone, 0, IMAGE_PTX, 80, true, false);
    pin_gpu_sets(&alone, &got);
    assert_int_equal(got.n, 1);
    assert_string_equal(got.v[0].ptx.v[0], "compute_80");
    pin_gpus_release(&got);
    images_release(&alone);
}

/* ---- capture, resolve, reuse ---- */

static char *const plain_env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", (char *)(uintptr_t) "CUDA_HOME=/x",
                                   (char *)(uintptr_t) "LOADEDMODULES=gcc/12:cuda/13", (char *)(uintptr_t) "NCCL_DEBUG=1",
                                   (char *)(uintptr_t) "NCCL_ALGO=Ring", (char *)(uintptr_t) "SECRET=1",
                                   (char *)(uintptr_t) "VIRTUAL_ENV=/venv", NULL };

static void capture_program(const char *program, struct pin *ret)
{
    struct pin_request r = { .env = plain_env };
    struct err err = { 0 };

    strv_add(&r.programs, program);
    strv_add(&r.variables, "NCCL_*");
    strv_add(&r.variables, "ABSENT");
    if (pin_capture(&r, ret, NULL, &err))
        fail_msg("%s", err.text);
    strv_release(&r.programs);
    strv_release(&r.variables);
}

static const char *value_of(const struct pin *p, const char *name, int how)
{
    for (size_t i = 0; i < p->variables.n; i++)
        if (str_eq(p->variables.v[i].name, name) && p->variables.v[i].how == how)
            return p->variables.v[i].value ? p->variables.v[i].value : "";
    return NULL;
}

static void captured(void **state)
{
    struct pin p;

    (void)state;
    capture_program("/bin/sh", &p);
    assert_string_equal(value_of(&p, "CUDA_HOME", PIN_SET), "/x");
    assert_string_equal(value_of(&p, "NCCL_ALGO", PIN_SET), "Ring");
    assert_non_null(value_of(&p, "LD_LIBRARY_PATH", PIN_UNSET));
    assert_non_null(value_of(&p, "LD_PRELOAD", PIN_UNSET));
    assert_non_null(value_of(&p, "ABSENT", PIN_UNSET));
    assert_null(value_of(&p, "SECRET", PIN_SET));
    assert_int_equal(p.modules.n, 2);
    assert_string_equal(p.prefix, "/venv");
    assert_int_equal(p.objects.v[0].role, PIN_PROGRAM);
    assert_non_null(p.objects.v[0].digest);
    assert_non_null(p.requires.glibc);
    assert_non_null(p.loader.build_id);
    assert_int_equal(strlen(p.captured.umask), 4);
    pin_release(&p);
}

static void reused(void **state)
{
    struct resolution r;
    struct err err = { 0 };
    struct str bytes = { 0 };
    struct pin p, q;
    struct pin_differences d = { 0 };

    (void)state;
    assert_int_equal(file_read("/bin/sh", 64 << 20, &bytes, &err), 0);
    assert_int_equal(file_write("prog", bytes.s, bytes.len, 0755, &err), 0);
    char *path = xasprintf("%s/prog", dir);
    capture_program(path, &p);
    assert_int_equal(pin_write("c.pin", &p, &err), 0);
    assert_int_equal(pin_read("c.pin", &q, &err), 0);

    assert_int_equal(resolve(&q, NULL, "", plain_env, &r, &err), 0);
    if (access("/etc/ld.so.preload", F_OK)) {
        assert_true(r.reused);
        assert_int_equal(r.closures.v[0].libs.n, p.objects.n);
        for (size_t i = 0; i < p.objects.n; i++)
            assert_string_equal(r.closures.v[0].libs.v[i].path, p.objects.v[i].path);
    }
    pin_compare(&q, &r, plain_env, true, &d);
    assert_int_equal(d.n, 0);
    resolution_release(&r);

    /* another byte at the end: searched again, the same closure, and told as changed */
    str_addn(&bytes, "x", 1);
    assert_int_equal(file_write("prog", bytes.s, bytes.len, 0755, &err), 0);
    assert_int_equal(resolve(&q, NULL, "", plain_env, &r, &err), 0);
    assert_false(r.reused);
    assert_int_equal(r.closures.v[0].libs.n, p.objects.n);
    pin_compare(&q, &r, plain_env, true, &d);
    assert_int_equal(d.n, 1);
    assert_string_equal(d.v[0].rule, "lib-changed");
    assert_false(d.v[0].missing);
    pin_differences_release(&d);
    resolution_release(&r);

    /* gone: a finding, no failure */
    assert_int_equal(unlink("prog"), 0);
    assert_int_equal(resolve(&q, NULL, "", plain_env, &r, &err), 0);
    assert_null(r.closures.v[0].libs.v[0].path);
    assert_int_equal(r.closures.v[0].libs.v[0].why, WHY_NOT_FOUND);
    pin_compare(&q, &r, plain_env, true, &d);
    assert_true(d.n >= 1 && d.v[0].missing);
    pin_differences_release(&d);
    resolution_release(&r);
    pin_release(&p);
    pin_release(&q);
    str_release(&bytes);
    free(path);
}

static void capture_refused(void **state)
{
    struct pin_request r = { .env = plain_env };
    struct err err = { 0 };
    struct pin p;

    (void)state;
    assert_int_equal(pin_capture(&r, &p, NULL, &err), -1);
    assert_int_equal(err.code, CODE_USAGE);
    strv_add(&r.programs, "/nowhere/prog");
    assert_int_equal(pin_capture(&r, &p, NULL, &err), -1);
    assert_int_equal(err.code, CODE_NOTFOUND);
    strv_release(&r.programs);
    write_text("text", head);
    strv_addf(&r.programs, "%s/text", dir);
    assert_int_equal(pin_capture(&r, &p, NULL, &err), -1);
    assert_int_equal(err.code, CODE_DATA);
    strv_release(&r.programs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(refused),  cmocka_unit_test(environment),
        cmocka_unit_test(sets),       cmocka_unit_test(captured), cmocka_unit_test(reused),
        cmocka_unit_test(capture_refused),
    };

    return cmocka_run_group_tests_name("pin", tests, enter, leave);
}
