/* Any bytes as ld.so.cache; names in it and beside it are looked up. */
#include "config.h"

#include <stdlib.h>
#include "elf/elf_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "libc.so.6", "libz.so.1", "libx.so.10", "", "~", "libcudart.so.13" };
    struct loader l = { .platform = (char[]){ "haswell" } };
    struct cache c = { 0 };

    strv_add(&l.hwcaps, "x86-64-v3");
    strv_add(&l.hwcaps, "x86-64-v2");
    loader_legacy(&l, "2.36");
    str_addn(&c.bytes, data, size);
    if (cache_parse(&c, NULL) == 0)
        for (size_t i = 0; i < COUNT(names); i++) {
            const char *path = cache_find(&c, names[i], 62, 2, &l);

            if (path && strlen(path) > size)
                abort();
        }
    cache_close(&c);
    strv_release(&l.hwcaps);
    strv_release(&l.legacy);
    return 0;
}
