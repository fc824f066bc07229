/* A Python environment whose settings, paths, sources and metadata hold any bytes: what is found in it lies in it or is told in
 * one line, and lists of packages are lines that a shell and pip can take. The bytes are cut at every "\n%%" into files. */
#include "config.h"
#include "pin/pin.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SITE "lib/python3.11/site-packages/"

static char root[] = "/dev/shm/recon-fuzz-python.XXXXXX";
static const char *const files[] = {
    SITE "a/__init__.py", SITE "a/b.py", SITE "x.pth", "pyvenv.cfg", SITE "a-1.dist-info/METADATA", SITE "a-1.dist-info/direct_url.json",
    "conda-meta/a-1.json", NULL
};

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void clean(void)
{
    dir_remove(root);
}

static void put(const char *name, const void *p, size_t n)
{
    char *path = path_join(root, name), *dir = path_dir(path);
    FILE *f;

    must(dir_make(dir, 0755, NULL) == 0);
    unlink(path);
    if (p) {
        f = fopen(path, "w");
        must(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
    }
    free(dir);
    free(path);
}

static void set_up(void)
{
    must(mkdtemp(root) || mkdtemp(strcpy(root, "/tmp/recon-fuzz-python.XXXXXX")));
    atexit(clean);
    put("bin/python3.11", "", 0);
    put("lib/python3.11/os.py", "", 0);
    put(SITE "a/_c.cpython-311-x86_64-linux-gnu.so", "", 0);
    put(SITE "c/d.cpython-311-x86_64-linux-gnu.so", "", 0);
    put(SITE "c/__init__.py", "from . import d\n", 16);
}

static void imports(void)
{
    static char *env[] = { NULL };
    char *program = path_join(root, "bin/python3.11");
    struct python_modules modules = { 0 };
    struct strv packages = { 0 }, libraries = { 0 };
    struct err err = { 0 };
    struct python p;

    if (python_find(program, env, &p, &err)) {
        must(err.code && *err.text && !strchr(err.text, '\n'));
        free(program);
        return;
    }
    strv_add(&packages, "a");
    if (python_modules(&p, &packages, &modules, NULL, &err) == 0)
        must(modules.n >= 1 && strstr(modules.v[0].path, ".so"));
    else
        must(err.code && *err.text && !strchr(err.text, '\n'));
    python_libraries(&p, &libraries);
    strv_release(&libraries);
    strv_release(&packages);
    python_modules_release(&modules);
    python_release(&p);
    free(program);
}

/* Each line is one word or a comment. */
static void lists(void)
{
    static const char *const formats[] = { "requirements", "conda-explicit" };
    struct pin pin = { .prefix = root };

    for (size_t i = 0; i < COUNT(formats); i++) {
        struct str t = { 0 };
        struct strv left = { 0 };
        struct err err = { 0 };

        if (pin_packages(&pin, formats[i], &t, &left, &err))
            must(err.code && *err.text && !strchr(err.text, '\n'));
        else
            for (const char *s = t.s; s && *s; s++)
                must(*s == '\n' || (unsigned char)*s >= ' ');
        strv_release(&left);
        str_release(&t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size, *p = data;

    if (str_ends(root, "XXXXXX"))
        set_up();
    for (int i = 0; files[i]; i++) {
        const uint8_t *cut = p ? memmem(p, (size_t)(end - p), "\n%%", 3) : NULL;

        put(files[i], p, p ? (size_t)((cut ? cut : end) - p) : 0);
        p = cut ? cut + 3 : NULL;
    }
    imports();
    lists();
    return 0;
}
