/* Any texts as LD_LIBRARY_PATH, LD_PRELOAD and ld.so.preload (split at NUL), inside a root that holds one program. */
#include "config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/tmp/recon-fuzz.XXXXXX";

static void clean(void)
{
    dir_remove(root);
}

static void set_up(struct loader *l)
{
    struct str bytes = { 0 };
    char *path;

    if (!mkdtemp(root))
        abort();
    atexit(clean);
    path = path_join(root, "bin");
    dir_make(path, 0755, NULL);
    free(path);
    path = path_join(root, "bin/prog");
    if (file_read("/bin/sh", 64 << 20, &bytes, NULL) || file_write(path, bytes.s, bytes.len, 0755, NULL))
        abort();
    free(path);
    str_release(&bytes);
    loader_default(root, "x86_64", l);
    strv_add(&l->hwcaps, "x86-64-v3");
    loader_legacy(l, "2.36");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loader l;
    struct strv parts = { 0 };
    struct closure c;
    char *text, *env[3] = { NULL };

    if (!l.root)
        set_up(&l);
    text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at <= size && parts.n < 3; at += strlen(text + at) + 1)
        strv_add(&parts, text + at);
    env[0] = xasprintf("LD_LIBRARY_PATH=%s", parts.v[0]);
    env[1] = parts.n > 1 ? xasprintf("LD_PRELOAD=%s", parts.v[1]) : NULL;
    l.preload = parts.n > 2 ? parts.v[2] : NULL;
    if (closure_resolve("/bin/prog", env, "/bin", &l, false, NULL, &c, NULL) == 0) {
        struct version_misses m = { 0 };

        closure_versions(&c, &m);
        free(m.v);
        closure_release(&c);
    }
    l.preload = NULL;
    strv_release(&parts);
    free(env[0]);
    free(env[1]);
    free(text);
    return 0;
}
