#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "elf/elf_priv.h"

static char dir[] = "/tmp/recon-elf.XXXXXX";

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

static void write_file(const char *name, const void *p, size_t n)
{
    struct err err = { 0 };

    if (file_write(name, p, n, 0644, &err))
        fail_msg("%s", err.text);
}

/* ---- tokens and roots ---- */

static void tokens(void **state)
{
    static const struct { const char *in, *out; } rows[] = {
        { "$ORIGIN/../lib", "/o/../lib" }, { "${ORIGIN}x", "/ox" }, { "$ORIGINS", "$ORIGINS" },
        { "$LIB:$PLATFORM", "lib64:x86_64" }, { "a$", "a$" }, { "${LIB", "${LIB" }, { "$$LIB", "$lib64" },
        { "", "" }, { "$ORIGIN_x", "$ORIGIN_x" }, { "${ORIGIN}/${LIB}", "/o/lib64" },
    };
    struct loader l = { .lib = xstrdup("lib64"), .platform = xstrdup("x86_64") };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *got = token_expand(rows[i].in, "/o", &l);

        assert_string_equal(got, rows[i].out);
        free(got);
    }
    assert_null(token_expand("$ORIGIN", NULL, &l));
    loader_release(&l);
}

static void roots(void **state)
{
    char *got, *want;

    (void)state;
    assert_int_equal(dir_make("r/usr/lib", 0755, NULL), 0);
    write_file("r/usr/lib/real", "x", 1);
    assert_int_equal(symlink("usr/lib", "r/lib"), 0);
    assert_int_equal(symlink("/usr/lib/real", "r/usr/lib/link"), 0);
    assert_int_equal(symlink("../../../../../../lib/real", "r/usr/lib/up"), 0);
    assert_int_equal(symlink("loop", "r/loop"), 0);
    want = xasprintf("%s/r/usr/lib/real", dir);
    char *root = xasprintf("%s/r", dir);
    static const char *const paths[] = { "/lib/real", "/lib/link", "/lib/up", "/../usr//lib/./real", "/usr/./lib/./../lib/real" };

    for (size_t i = 0; i < COUNT(paths); i++) {
        struct stat a, b;

        got = root_path(root, paths[i]);
        assert_int_equal(stat(want, &a), 0);
        assert_int_equal(lstat(got, &b), 0);
        assert_int_equal(a.st_ino, b.st_ino);
        free(got);
    }
    got = root_path(root, "/loop/x"); /* ends */
    free(got);
    free(root);
    free(want);
}

/* ---- ld.so.cache ---- */

struct entry { const char *key, *value; uint32_t flags; uint64_t hwcap; };

static void put(struct str *t, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = i < 8 ? (char)(v >> (8 * i)) : 0;

        str_addn(t, &c, 1);
    }
}

/* A cache in the new format with two hwcap names; entries must stand in descending order. */
static void make_cache(struct str *t, const struct entry *e, size_t n)
{
    static const char names[] = "x86-64-v2\0x86-64-v3";
    struct str texts = { 0 };
    uint32_t base = 48 + 24 * (uint32_t)n, ext;

    str_add(t, "glibc-ld.so.cache1.1");
    put(t, n, 4);
    put(t, 0, 4);
    put(t, 2, 4);
    for (size_t i = 0; i < n; i++) {
        str_addn(&texts, e[i].key, strlen(e[i].key) + 1);
        str_addn(&texts, e[i].value, strlen(e[i].value) + 1);
    }
    ext = (base + (uint32_t)texts.len + (uint32_t)sizeof(names) + 3) & ~3u;
    put(t, ext, 4);
    put(t, 0, 12);
    for (size_t i = 0, at = base; i < n; i++) {
        put(t, e[i].flags, 4);
        put(t, at, 4);
        put(t, at + strlen(e[i].key) + 1, 4);
        put(t, 0, 4);
        put(t, e[i].hwcap, 8);
        at += strlen(e[i].key) + strlen(e[i].value) + 2;
    }
    str_addn(t, texts.s, texts.len);
    str_addn(t, names, sizeof(names));
    while (t->len < ext)
        put(t, 0, 1);
    put(t, 0xEAA42174, 4);
    put(t, 1, 4);
    put(t, 1, 4);
    put(t, 0, 4);
    put(t, ext + 24, 4);
    put(t, 8, 4);
    put(t, base + texts.len, 4);
    put(t, base + texts.len + 10, 4);
    str_release(&texts);
}

static const struct entry entries[] = {
    { "libz.so.1", "/lib/libz.so.1", 0x0303, 0 },
    { "libx.so.10", "/lib/libx.so.10", 0x0303, 0 },
    { "libx.so.9", "/v3/libx.so.9", 0x0303, (UINT64_C(1) << 62) | 1 },
    { "libx.so.9", "/v2/libx.so.9", 0x0303, (UINT64_C(1) << 62) | 0 },
    { "libx.so.9", "/tls/haswell/libx.so.9", 0x0303, (UINT64_C(1) << 63) | (UINT64_C(1) << 50) },
    { "libx.so.9", "/x86_64/libx.so.9", 0x0303, 2 },
    { "libx.so.9", "/lib/libx.so.9", 0x0303, 0 },
    { "libc.so.6", "/lib32/libc.so.6", 0x0003, 0 },
    { "libc.so.6", "/lib/libc.so.6", 0x0303, 0 },
};

static void cache_lookup(void **state)
{
    static const struct { const char *name; int machine, elfclass; const char *hwcaps, *want, *platform, *glibc; } rows[] = {
        { "libz.so.1", EM_X86_64, ELFCLASS64, "", "/lib/libz.so.1", NULL, NULL },
        { "libx.so.10", EM_X86_64, ELFCLASS64, "", "/lib/libx.so.10", NULL, NULL },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "", "/lib/libx.so.9", NULL, NULL },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "x86-64-v2", "/v2/libx.so.9", NULL, NULL },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "x86-64-v4:x86-64-v3:x86-64-v2", "/v3/libx.so.9", NULL, NULL },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "x86-64-v3", "/v3/libx.so.9", "haswell", "2.36" },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "", "/tls/haswell/libx.so.9", "haswell", "2.36" },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "", "/x86_64/libx.so.9", "x86_64", "2.36" },
        { "libx.so.9", EM_X86_64, ELFCLASS64, "", "/lib/libx.so.9", "haswell", "2.37" },
        { "libc.so.6", EM_X86_64, ELFCLASS64, "", "/lib/libc.so.6", NULL, NULL },
        { "libc.so.6", EM_386, ELFCLASS32, "", "/lib32/libc.so.6", NULL, NULL },
        { "libc.so.6", EM_AARCH64, ELFCLASS64, "", NULL, NULL, NULL },
        { "liba.so.1", EM_X86_64, ELFCLASS64, "", NULL, NULL, NULL },
        { "libzz.so.1", EM_X86_64, ELFCLASS64, "", NULL, NULL, NULL },
        { "", EM_X86_64, ELFCLASS64, "", NULL, NULL, NULL },
    };

    (void)state;
    for (int old = 0; old < 2; old++) { /* alone, and behind a table of the old format */
        struct cache c = { 0 };

        if (old) {
            struct str inner = { 0 };

            str_add(&c.bytes, "ld.so-1.7.0");
            put(&c.bytes, 0, 1);
            put(&c.bytes, 1, 4);
            put(&c.bytes, 0, 12);
            while (c.bytes.len % 8)
                put(&c.bytes, 0, 1);
            make_cache(&inner, entries, COUNT(entries));
            str_addn(&c.bytes, inner.s, inner.len);
            str_release(&inner);
        } else {
            make_cache(&c.bytes, entries, COUNT(entries));
        }
        assert_int_equal(cache_parse(&c, NULL), 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct loader l = { .platform = xstrdup(rows[i].platform) };
            const char *got;

            strv_split(&l.hwcaps, rows[i].hwcaps, ":");
            loader_legacy(&l, rows[i].glibc);
            got = cache_find(&c, rows[i].name, rows[i].machine, rows[i].elfclass, &l);
            if (!str_eq(got, rows[i].want))
                fail_msg("old %d, row %zu: %s, wanted %s", old, i, got ? got : "none",
                         rows[i].want ? rows[i].want : "none");
            loader_release(&l);
        }
        cache_close(&c);
    }
}

static void cache_damaged(void **state)
{
    struct str whole = { 0 };
    struct loader none = { 0 };

    (void)state;
    make_cache(&whole, entries, COUNT(entries));
    for (size_t n = 0; n < whole.len; n++) {
        struct cache c = { 0 };

        str_addn(&c.bytes, whole.s, n);
        if (cache_parse(&c, NULL) == 0)
            cache_find(&c, "libx.so.9", EM_X86_64, ELFCLASS64, &none);
        cache_close(&c);
    }
    for (size_t n = 0; n < whole.len; n++)
        for (int bit = 0; bit < 8; bit++) {
            struct cache c = { 0 };

            str_addn(&c.bytes, whole.s, whole.len);
            c.bytes.s[n] = (char)(c.bytes.s[n] ^ (1 << bit));
            if (cache_parse(&c, NULL) == 0)
                cache_find(&c, "libx.so.9", EM_X86_64, ELFCLASS64, &none);
            cache_close(&c);
        }
    str_release(&whole);
}

/* ---- objects ---- */

static void not_objects(void **state)
{
    static const struct { const char *content; size_t n; const char *kind; } rows[] = {
        { "", 0, "an empty file" },
        { "libx.so.1.2.3\n", 14, "14 bytes of text" },
        { "#!/bin/sh\n", 10, "a script" },
        { "INPUT(-lm)\n", 11, "a linker script" },
        { "version https://git-lfs.github.com/spec/v1\n", 43, "a Git LFS pointer" },
        { "!<arch>\n", 8, "a static library" },
        { "\177ELF\2\1\1\0\0", 9, "a truncated ELF file of 9 bytes" },
        { "\177ELF\7\1\1\0\0\0\0\0\0\0\0\0", 16, "no known class (7)" },
        { "\0\1\2\3", 4, "no ELF file" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };
        struct object o;

        write_file("x", rows[i].content, rows[i].n);
        assert_int_equal(object_read("x", true, &o, &err), -1);
        assert_int_equal(err.code, CODE_DATA);
        if (!strstr(err.text, rows[i].kind) || !strstr(err.text, "'x'"))
            fail_msg("row %zu: %s", i, err.text);
    }
}

static void not_files(void **state)
{
    struct err err = { 0 };
    struct object o;

    (void)state;
    assert_int_equal(object_read("absent", false, &o, &err), -1);
    assert_int_equal(err.code, CODE_NOTFOUND);
    assert_int_equal(mkfifo("fifo", 0644), 0);
    assert_int_equal(object_read("fifo", false, &o, &err), -1);
    assert_int_equal(err.code, CODE_DATA);
    assert_non_null(strstr(err.text, "a FIFO"));
    assert_int_equal(object_read(dir, false, &o, &err), -1);
    assert_non_null(strstr(err.text, "a directory"));
    assert_int_equal(object_read("/dev/null", false, &o, &err), -1);
    assert_non_null(strstr(err.text, "a character device"));
}

static void itself(void **state)
{
    struct err err = { 0 };
    struct object o, copy;
    struct str whole = { 0 };

    (void)state;
    if (object_read("/proc/self/exe", true, &o, &err))
        fail_msg("%s", err.text);
    assert_int_equal(o.elfclass, sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
    assert_true(o.dynamic);
    assert_true(strv_has(&o.needed, "libc.so.6"));
    assert_non_null(o.interp);
    assert_true(o.needs.n > 0);
    object_copy(&copy, &o);
    assert_string_equal(copy.interp, o.interp);
    assert_int_equal(copy.needs.n, o.needs.n);
    object_release(&copy);
    object_release(&o);

    /* cut anywhere it is an error, and never more */
    assert_int_equal(file_read("/proc/self/exe", 64 << 20, &whole, &err), 0);
    for (size_t n = 0; n < whole.len; n += n < 600 ? 7 : whole.len / 40) {
        write_file("cut", whole.s, n);
        if (object_read("cut", true, &o, &err) == 0) { /* what is missing is debug information */
            assert_true(n > 10000);
            object_release(&o);
        }
    }
    str_release(&whole);
}

/* ---- images ---- */

static void entry(struct str *t, unsigned kind, unsigned arch, unsigned major, unsigned minor, uint64_t flags,
                  const char *payload, size_t n)
{
    put(t, kind, 2);
    put(t, 0x0101, 2);
    put(t, 64, 4);
    put(t, (n + 7) & ~(size_t)7, 8);
    put(t, 0, 8);
    put(t, minor, 2);
    put(t, major, 2);
    put(t, arch, 4);
    put(t, 0, 8);
    put(t, flags, 8);
    put(t, 0, 16);
    str_addn(t, payload, n);
    while (t->len % 8)
        put(t, 0, 1);
}

static void container(struct str *t, const struct str *inner)
{
    put(t, 0xBA55ED50, 4);
    put(t, 1, 2);
    put(t, 16, 2);
    put(t, inner->len, 8);
    str_addn(t, inner->s, inner->len);
}

/* The header of a cubin whose one section has, or lacks, code. */
static void cubin(struct str *t, bool code)
{
    str_addn(t, "\177ELF\2\1\1\x41\x08\0\0\0\0\0\0\0", 16);
    put(t, 2, 2);
    put(t, 190, 2);
    put(t, 1, 4);
    put(t, 0, 16);
    put(t, 64, 8);
    put(t, 0x06005A04, 4);
    put(t, 64, 2);
    put(t, 0, 4);
    put(t, 64, 2);
    put(t, 1, 2);
    put(t, 0, 2);
    put(t, 0, 4);
    put(t, 1, 4);
    put(t, code ? 6 : 2, 8);
    put(t, 0, 48);
}

static void make_fatbin(struct str *t)
{
    struct str inner = { 0 }, stub = { 0 }, real = { 0 };

    cubin(&stub, false);
    cubin(&real, true);
    entry(&inner, 2, 90, 1, 8, 0x11, stub.s, stub.len);
    container(t, &inner);
    str_clear(&inner);
    entry(&inner, 2, 90, 1, 8, 0x100011, real.s, real.len);
    entry(&inner, 2, 100, 1, 8, 0x200011 | 0x8000, "zstd", 4);
    entry(&inner, 1, 120, 8, 7, 0x8011, "ptx", 3);
    entry(&inner, 8, 90, 1, 65, 0x10011, "lto", 3);
    entry(&inner, 0x20, 0, 0, 0, 0, "index", 5); /* unknown kinds are passed over */
    container(t, &inner);
    str_release(&inner);
    str_release(&stub);
    str_release(&real);
}

static void fatbin(void **state)
{
    static const struct gpu_image want[] = {
        { IMAGE_SASS, 0, 90, 0, 1, 8, false, true, 118 },    { IMAGE_SASS, 1, 90, 'a', 1, 8, false, false, 118 },
        { IMAGE_SASS, 1, 100, 'f', 1, 8, false, false, 128 }, { IMAGE_PTX, 1, 120, 0, 8, 7, false, false, 128 },
        { IMAGE_LTO, 1, 90, 0, 1, 65, false, false, 118 },
    };
    struct str t = { 0 };
    struct gpu_images l = { 0 };
    struct err err = { 0 };

    (void)state;
    make_fatbin(&t);
    write_file("x.fatbin", t.s, t.len);
    if (images_read("x.fatbin", &l, &err))
        fail_msg("%s", err.text);
    assert_int_equal(l.containers, 2);
    assert_int_equal(l.n, COUNT(want));
    assert_string_equal(l.toolkit, "12.8"); /* PTX ISA 8.7 */
    for (size_t i = 0; i < l.n; i++) {
        assert_int_equal(l.v[i].kind, want[i].kind);
        assert_int_equal(l.v[i].container, want[i].container);
        assert_int_equal(l.v[i].arch, want[i].arch);
        assert_int_equal(l.v[i].suffix, want[i].suffix);
        assert_int_equal(l.v[i].major, want[i].major);
        assert_int_equal(l.v[i].minor, want[i].minor);
        assert_int_equal(l.v[i].link_stub, want[i].link_stub);
        assert_int_equal(l.v[i].toolkit, want[i].toolkit);
    }
    images_release(&l);
    for (size_t n = 4; n < t.len; n += 5) {
        write_file("x.fatbin", t.s, n);
        assert_int_equal(images_read("x.fatbin", &l, NULL), 0);
        assert_true(l.n <= COUNT(want));
        images_release(&l);
        memset(&l, 0, sizeof(l));
    }
    str_release(&t);
}

static void bare_cubin(void **state)
{
    struct gpu_images l = { 0 };
    struct str t = { 0 };

    (void)state;
    cubin(&t, true);
    write_file("x.cubin", t.s, t.len);
    assert_int_equal(images_read("x.cubin", &l, NULL), 0);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.v[0].arch, 90);
    images_release(&l);
    str_release(&t);
}

/* ---- loaders and closures ---- */

static void loaders(void **state)
{
    struct loader l;

    (void)state;
    loader_default("", "x86_64", &l);
    assert_string_equal(l.path, "/lib64/ld-linux-x86-64.so.2");
    assert_true(l.dirs.n >= 2);
    loader_legacy(&l, "2.36");
    assert_true(strv_has(&l.legacy, "tls/x86_64"));
    loader_legacy(&l, "2.37");
    assert_int_equal(l.legacy.n, 0);
    free(l.platform);
    l.platform = xstrdup("haswell");
    strv_add(&l.hwcaps, "x86-64-v4");
    loader_legacy(&l, "2.36");
    assert_int_equal(l.legacy.n, 15);
    assert_string_equal(l.legacy.v[0], "tls/haswell/avx512_1/x86_64"); /* the order of LD_DEBUG=libs */
    assert_string_equal(l.legacy.v[8], "haswell/avx512_1/x86_64");
    assert_string_equal(l.legacy.v[14], "x86_64");
    loader_release(&l);
    assert_int_equal(loader_probe_path("/bin/false", &l, NULL), -1);
    assert_int_equal(loader_probe(&l, NULL), 0);
    assert_true(l.dirs.n >= 2);
    loader_release(&l);
}

static void own_closure(void **state)
{
    char *const env[] = { (char[]){ "LD_LIBRARY_PATH=/nowhere:" }, NULL };
    struct version_misses m = { 0 };
    struct err err = { 0 };
    struct closure c;
    struct loader l;
    bool libc = false;

    (void)state;
    loader_probe(&l, NULL);
    if (closure_resolve("/proc/self/exe", env, NULL, &l, false, NULL, &c, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < c.libs.n; i++) {
        libc |= str_eq(c.libs.v[i].soname, "libc.so.6");
        assert_true(c.libs.v[i].needed_by < c.libs.n);
        assert_true(c.libs.v[i].found_in == SIZE_MAX || c.libs.v[i].found_in < c.dirs.n);
        for (size_t j = 0; j < c.libs.v[i].missed.n; j++)
            assert_true(c.libs.v[i].missed.v[j] < c.dirs.n);
    }
    assert_true(libc);
    assert_string_equal(c.dirs.v[0].path, "/nowhere");
    assert_int_equal(c.dirs.v[0].mtime_ns, 0);
    assert_string_equal(c.dirs.v[1].path, dir);
    assert_true(c.dirs.v[1].mtime_ns > 0);
    closure_versions(&c, &m);
    assert_int_equal(m.n, 0);
    free(m.v);
    closure_release(&c);
    assert_int_equal(closure_resolve("/nowhere/program", env, NULL, &l, false, NULL, &c, &err), -1);
    assert_int_equal(err.code, CODE_NOTFOUND);
    loader_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),       cmocka_unit_test(roots),     cmocka_unit_test(cache_lookup),
        cmocka_unit_test(cache_damaged), cmocka_unit_test(not_objects), cmocka_unit_test(not_files),
        cmocka_unit_test(itself),       cmocka_unit_test(fatbin),    cmocka_unit_test(bare_cubin),
        cmocka_unit_test(loaders),      cmocka_unit_test(own_closure),
    };

    return cmocka_run_group_tests_name("elf", tests, enter, leave);
}
