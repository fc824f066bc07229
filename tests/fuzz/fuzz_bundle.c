/* Any bytes as a HIP bundle or an offload binary. The first byte says how they are given: plain behind the magic, behind the magic of
 * a compressed bundle, compressed here by zlib with a true header of each version, or behind the magic of an offload binary. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_number(struct str *t, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        str_addn(t, &(char){ (char)(value >> 8 * i) }, 1);
}

/* CCOB, version, method 0 (zlib), from version 2 the whole size, the unpacked size, a hash, the data. */
static void add_packed(struct str *t, const uint8_t *data, size_t size, unsigned version)
{
    size_t wide = version == 3 ? 8 : 4, head = 8 + (version > 1 ? wide : 0) + wide + 8;
    uLongf n = compressBound(size);
    Bytef *packed = malloc(n);

    if (!packed || compress2(packed, &n, data, size, 1) != Z_OK)
        abort();
    str_add(t, "CCOB");
    add_number(t, version, 2);
    add_number(t, 0, 2);
    if (version > 1)
        add_number(t, head + n, wide);
    add_number(t, size, wide);
    add_number(t, 7, 8);
    str_addn(t, (const char *)packed, n);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("bundle", 0);
    struct gpu_images l = { 0 };
    struct str t = { 0 };
    char path[64];
    unsigned form;

    if (size == 0 || fd < 0) {
        close(fd);
        return 0;
    }
    form = *data++ % 6;
    size--;
    if (form > 1 && form < 5) {
        add_packed(&t, data, size, form - 1);
    } else {
        str_add(&t, form == 5 ? "\x10\xFF\x10\xAD" : form ? "CCOB" : "__CLANG_OFFLOAD_BUNDLE__");
        str_addn(&t, (const char *)data, size);
    }
    if (write(fd, t.s, t.len) != (ssize_t)t.len)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (images_read(path, &l, NULL) == 0) {
        for (size_t i = 0; i < l.hip.n; i++)
            if (!str_starts(l.hip.v[i], "gfx") || !utf8_valid(l.hip.v[i], strlen(l.hip.v[i])))
                abort();
        for (size_t i = 0; i < l.offload.n; i++)
            if (!*l.offload.v[i].target || strpbrk(l.offload.v[i].target, "\"\\\n") || !l.offload.v[i].count)
                abort();
        images_release(&l);
    } else if (t.len >= 24) { /* what a magic wants to be known by */
        abort();
    }
    str_release(&t);
    close(fd);
    return 0;
}
