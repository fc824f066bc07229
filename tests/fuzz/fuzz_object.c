/* Any bytes as an ELF file, a fat binary, a cubin: read with images, its symbols looked up in itself, then once more as images
 * alone. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes the object. */
static void look_up(const struct object *o)
{
    struct symbols *s = symbols_new();
    struct symbol_misses m = { 0 };
    struct closure c = { 0 };
    struct library *lib = VEC_ADD(&c.libs);

    lib->object = *o;
    lib->path = xstrdup(o->path);
    lib->soname = xstrdup("object");
    closure_symbols(s, &c, NULL, &m);
    for (size_t i = 0; i < m.n; i++)
        if (!m.v[i].name || (m.v[i].provider != SIZE_MAX && m.v[i].provider))
            abort();
    symbol_misses_release(&m);
    symbols_free(s);
    closure_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("object", 0);
    char path[64];
    struct object o, copy;
    struct gpu_images l = { 0 };
    struct maybes maybes = { 0 };
    struct err err = { 0 };

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (object_read(path, true, &o, &err) == 0) {
        object_maybe(&o, true, 0, &maybes);
        maybes_release(&maybes);
        object_copy(&copy, &o);
        object_release(&copy);
        look_up(&o);
    } else if (!err.code || !*err.text || strchr(err.text, '\n')) {
        abort();
    }
    if (images_read(path, &l, &err) == 0)
        images_release(&l);
    close(fd);
    return 0;
}
