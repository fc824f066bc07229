/* A fake NVML for tests of recon-probe: FAKE_NVML says what it plays.
 * "" two GPUs; "none" no GPU; "mig" one GPU with two instances; "mismatch" nvmlInit fails with 18; "hang" nvmlInit never
 * returns; "lost" the second GPU gives no handle; "crash" nvmlInit ends with a signal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct memory {
    unsigned long long total, free, used;
};
struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

int nvmlInit_v2(void);
const char *nvmlErrorString(int rc);
int nvmlSystemGetDriverVersion(char *text, unsigned n);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **dev);
int nvmlDeviceGetName(void *dev, char *text, unsigned n);
int nvmlDeviceGetUUID(void *dev, char *text, unsigned n);
int nvmlDeviceGetPciInfo_v3(void *dev, struct pci *p);
int nvmlDeviceGetCudaComputeCapability(void *dev, int *major, int *minor);
int nvmlDeviceGetMemoryInfo(void *dev, struct memory *m);
int nvmlDeviceGetMigMode(void *dev, unsigned *now, unsigned *then);
int nvmlDeviceGetMaxMigDeviceCount(void *dev, unsigned *n);
int nvmlDeviceGetMigDeviceHandleByIndex(void *dev, unsigned i, void **part);

/* handles: 1, 2 are GPUs; 11, 12 are instances */
static unsigned long number(const void *dev)
{
    return (unsigned long)(size_t)dev;
}

static int plays(const char *role)
{
    const char *s = getenv("FAKE_NVML");

    return strcmp(s ? s : "", role) == 0;
}

int nvmlInit_v2(void)
{
    while (plays("hang"))
        pause();
    if (plays("crash"))
        raise(SIGSEGV);
    return plays("mismatch") ? 18 : 0;
}

const char *nvmlErrorString(int rc)
{
    return rc == 18 ? "Driver/library version mismatch" : rc == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned n)
{
    snprintf(text, n, "570.211.01");
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 12080;
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = plays("none") ? 0 : plays("mig") ? 1 : 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **dev)
{
    if (i == 1 && plays("lost"))
        return 15;
    *dev = (void *)(size_t)(i + 1);
    return 0;
}

int nvmlDeviceGetName(void *dev, char *text, unsigned n)
{
    snprintf(text, n, number(dev) > 10 ? "NVIDIA FAKE MIG 3g.40gb" : "NVIDIA FAKE");
    return 0;
}

int nvmlDeviceGetUUID(void *dev, char *text, unsigned n)
{
    snprintf(text, n, "%s-fake-%lu", number(dev) > 10 ? "MIG" : "GPU", number(dev));
    return 0;
}

int nvmlDeviceGetPciInfo_v3(void *dev, struct pci *p)
{
    memset(p, 0, sizeof(*p));
    snprintf(p->bus_id, sizeof(p->bus_id), "00000000:%02lX:00.0", 0x1A + number(dev));
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *dev, int *major, int *minor)
{
    *major = 9;
    *minor = number(dev) == 2 ? 1 : 0;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *dev, struct memory *m)
{
    m->total = (number(dev) > 10 ? 40ull : 80ull) << 30;
    m->free = m->total;
    m->used = 0;
    return 0;
}

int nvmlDeviceGetMigMode(void *dev, unsigned *now, unsigned *then)
{
    (void)dev;
    *now = *then = (unsigned)plays("mig");
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *dev, unsigned *n)
{
    (void)dev;
    *n = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *dev, unsigned i, void **part)
{
    if (i > 1)
        return 6; /* not found */
    *part = (void *)(number(dev) * 10 + i + (size_t)1);
    return 0;
}
