/* Any bytes behind the magic of a fat binary. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pin/pin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = { 0x50, 0xED, 0x55, 0xBA };
    int fd = memfd_create("fatbin", 0);
    struct gpu_images l = { 0 };
    struct pin_gpus sets = { 0 };
    char path[64];

    if (fd < 0 || write(fd, magic, sizeof(magic)) != (ssize_t)sizeof(magic) || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (images_read(path, &l, NULL))
        abort();
    pin_gpu_sets(&l, &sets);
    pin_gpus_release(&sets);
    images_release(&l);
    close(fd);
    return 0;
}
