/* Any bytes behind the magic of a static library: members, their sections, the GPU code in these. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char magic[] = { '!', '<', 'a', 'r', 'c', 'h', '>', '\n' };
    int fd = memfd_create("archive", 0);
    struct gpu_images l = { 0 };
    char path[64];

    if (fd < 0 || write(fd, magic, sizeof(magic)) != (ssize_t)sizeof(magic) || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (images_read(path, &l, NULL))
        abort();
    images_release(&l);
    close(fd);
    return 0;
}
