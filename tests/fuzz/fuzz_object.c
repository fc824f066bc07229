/* Any bytes as an ELF file, a fat binary, a cubin: read with images, then once more as images alone. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
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
        object_release(&o);
    } else if (!err.code || !*err.text || strchr(err.text, '\n')) {
        abort();
    }
    if (images_read(path, &l, &err) == 0)
        images_release(&l);
    close(fd);
    return 0;
}
