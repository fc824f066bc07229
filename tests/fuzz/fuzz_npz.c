/* A volume over any bytes; what is read is written and must come back the same. */
#include "config.h"
#include "data/data.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void release(struct recon_volume *v)
{
    free(v->tsdf);
    free(v->weight);
    free(v->rgb);
    free(v->block);
}

static void again(const struct recon_volume *v)
{
    uint64_t n = recon_volume_samples(v);
    char *path = xasprintf("/tmp/recon-fuzz-%ld.npz", (long)getpid());
    struct recon_volume w;

    if (volume_write(path, v, n & 1, NULL) || volume_read(path, &data_malloc, &w, NULL))
        abort();
    if (memcmp(v->dim, w.dim, sizeof(w.dim)) || memcmp(v->tsdf, w.tsdf, n * 4) ||
        (v->weight && memcmp(v->weight, w.weight, n * 4)) || v->side != w.side || v->blocks != w.blocks ||
        (v->side && memcmp(v->block, w.block, v->blocks * 12)))
        abort();
    release(&w);
    unlink(path);
    free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("npz", MFD_CLOEXEC);
    char path[64];
    struct recon_volume v;
    struct fault fault = { 0 };

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (volume_read(path, &data_malloc, &v, &fault)) {
        if (!fault.err.text[0] || strchr(fault.err.text, '\n'))
            abort();
    } else {
        again(&v);
        release(&v);
    }
    close(fd);
    return 0;
}
