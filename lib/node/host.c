#include "config.h"
#include "node/node.h"

#include <stdlib.h>

/* *a and *b change places, whatever they are. */
#define SWAP(a, b)                                                                                           \
    do {                                                                                                     \
        __typeof__(a) kept_ = (a);                                                                           \
        (a) = (b);                                                                                           \
        (b) = kept_;                                                                                         \
    } while (0)

void facts_take_host(struct facts *f, struct facts *host)
{
    SWAP(f->node, host->node);
    SWAP(f->boot_id, host->boot_id);
    SWAP(f->os.kernel, host->os.kernel);
    SWAP(f->cpu, host->cpu);
    SWAP(f->gpus, host->gpus);
    SWAP(f->gpus_known, host->gpus_known);
    SWAP(f->driver, host->driver);
    if (host->driver.library) { /* the libcuda that is seen inside is the one that the job gets */
        free(f->driver.library);
        f->driver.library = xstrdup(host->driver.library);
    }
    SWAP(f->devices, host->devices);
    SWAP(f->vendors, host->vendors);
    SWAP(f->partitions, host->partitions);
    SWAP(f->limits.memlock, host->limits.memlock);
    SWAP(f->limits.memlock_hard, host->limits.memlock_hard);
    SWAP(f->limits.shm_mib, host->limits.shm_mib);
}
