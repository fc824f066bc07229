#include "config.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include "probe.h"

/* NVML's interface as its reference manual states it; only what is called here. */
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
    char room[64];
};
struct nvml {
    int (*init)(void);
    const char *(*error_text)(int);
    int (*driver_version)(char *, unsigned);
    int (*cuda_version)(int *);
    int (*count)(unsigned *);
    int (*handle)(unsigned, void **);
    int (*name)(void *, char *, unsigned);
    int (*uuid)(void *, char *, unsigned);
    int (*pci)(void *, struct nvml_pci *);
    int (*capability)(void *, int *, int *);
    int (*memory)(void *, struct nvml_memory *);
    int (*mig_mode)(void *, unsigned *, unsigned *);
    int (*mig_count)(void *, unsigned *);
    int (*mig_handle)(void *, unsigned, void **);
};

static const struct {
    const char *symbol;
    size_t offset;
    bool optional;
} symbols[] = {
    { "nvmlInit_v2", offsetof(struct nvml, init), false },
    { "nvmlErrorString", offsetof(struct nvml, error_text), false },
    { "nvmlSystemGetDriverVersion", offsetof(struct nvml, driver_version), false },
    { "nvmlSystemGetCudaDriverVersion_v2", offsetof(struct nvml, cuda_version), true },
    { "nvmlDeviceGetCount_v2", offsetof(struct nvml, count), false },
    { "nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, handle), false },
    { "nvmlDeviceGetName", offsetof(struct nvml, name), false },
    { "nvmlDeviceGetUUID", offsetof(struct nvml, uuid), false },
    { "nvmlDeviceGetPciInfo_v3", offsetof(struct nvml, pci), true },
    { "nvmlDeviceGetCudaComputeCapability", offsetof(struct nvml, capability), true },
    { "nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory), false },
    { "nvmlDeviceGetMigMode", offsetof(struct nvml, mig_mode), true },
    { "nvmlDeviceGetMaxMigDeviceCount", offsetof(struct nvml, mig_count), true },
    { "nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct nvml, mig_handle), true },
};

static void *load(const char *path, struct err *err)
{
    static const char *const places[] = {
        "libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1",
        "/usr/lib64/nvidia/libnvidia-ml.so.1", "/run/opengl-driver/lib/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    };
    void *lib = NULL;

    if (path)
        lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !path && !lib && i < COUNT(places); i++)
        lib = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        err_set(err, CODE_NOTFOUND, "libnvidia-ml.so.1 is not found");
    return lib;
}

static int bind_symbols(void *lib, struct nvml *n, struct err *err)
{
    for (size_t i = 0; i < COUNT(symbols); i++) {
        void *at = dlsym(lib, symbols[i].symbol);

        if (!at && !symbols[i].optional)
            return err_set(err, CODE_UNAVAILABLE, "NVML has no %s", symbols[i].symbol);
        memcpy((char *)n + symbols[i].offset, &at, sizeof(at));
    }
    return 0;
}

/* The release in the name of the file behind libnvidia-ml.so.1: libnvidia-ml.so.570.211.01. */
static char *library_release(void *lib)
{
    struct link_map *map = NULL;
    char *real = dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 ? realpath(map->l_name, NULL) : NULL, *release = NULL;
    const char *dot = real ? strstr(path_base(real), ".so.") : NULL;

    if (dot && isdigit((unsigned char)dot[4]) && strchr(dot + 4, '.'))
        release = xstrdup(dot + 4);
    free(real);
    return release;
}

/* "00000000:1B:00.0" as sysfs writes it: "0000:1b:00.0". */
static char *pci_address(const char *bus_id)
{
    size_t n = strlen(bus_id);
    char *s = xstrdup(n == 16 ? bus_id + 4 : bus_id);

    for (char *p = s; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return s;
}

static struct facts_gpu *add_gpu(struct facts *f)
{
    struct facts_gpu *g = VEC_ADD(&f->gpus);

    g->vendor = xstrdup("nvidia");
    g->memory_mib = CONF_UNSET;
    return g;
}

static void set_memory(const struct nvml *n, void *dev, struct facts_gpu *g)
{
    struct nvml_memory m = { 0 };

    if (n->memory(dev, &m) == 0)
        g->memory_mib = (int64_t)(m.total >> 20);
}

static void describe(const struct nvml *n, void *dev, struct facts_gpu *g)
{
    struct nvml_pci pci = { 0 };
    char text[128] = "";
    int major = 0, minor = 0;

    if (n->name(dev, text, sizeof(text)) == 0)
        g->name = xstrdup(text);
    if (n->uuid(dev, text, sizeof(text)) == 0)
        g->uuid = xstrdup(text);
    if (n->pci && n->pci(dev, &pci) == 0) {
        g->pci = pci_address(pci.bus_id);
        pci_cpus(g->pci, &g->cpus);
    }
    if (n->capability && n->capability(dev, &major, &minor) == 0 && major)
        g->compute_capability = xasprintf("%d.%d", major, minor);
    set_memory(n, dev, g);
}

/* The MIG instances of a GPU take its place; their capability is the GPU's. */
static size_t add_instances(const struct nvml *n, void *dev, const struct facts_gpu *whole, struct facts *f)
{
    unsigned now = 0, then = 0, max = 0;
    size_t added = 0;

    if (!n->mig_mode || !n->mig_count || !n->mig_handle || n->mig_mode(dev, &now, &then) || now != 1 ||
        n->mig_count(dev, &max))
        return 0;
    for (unsigned i = 0; i < max; i++) {
        char uuid[128] = "", name[128] = "";
        struct facts_gpu *g;
        void *part;

        if (n->mig_handle(dev, i, &part) || n->uuid(part, uuid, sizeof(uuid)))
            continue;
        g = add_gpu(f);
        g->name = xstrdup(n->name(part, name, sizeof(name)) == 0 && *name ? name : whole->name);
        g->uuid = xstrdup(whole->uuid);
        g->pci = xstrdup(whole->pci);
        g->compute_capability = xstrdup(whole->compute_capability);
        g->mig = xstrdup(uuid);
        for (size_t c = 0; c < whole->cpus.n; c++)
            *VEC_ADD(&g->cpus) = whole->cpus.v[c];
        set_memory(n, part, g);
        added++;
    }
    return added;
}

static void clear_gpu(struct facts_gpu *g)
{
    free(g->vendor);
    free(g->name);
    free(g->uuid);
    free(g->pci);
    free(g->compute_capability);
    free(g->mig);
    free(g->cpus.v);
}

static void add_device(const struct nvml *n, unsigned index, struct facts *f)
{
    struct facts_gpu whole = { .vendor = xstrdup("nvidia"), .memory_mib = CONF_UNSET };
    void *dev;
    int rc = n->handle(index, &dev);

    if (rc) {
        strv_addf(&f->unknown, "nvml: GPU %u: %s", index, n->error_text(rc));
        clear_gpu(&whole);
        return;
    }
    describe(n, dev, &whole);
    if (add_instances(n, dev, &whole, f))
        clear_gpu(&whole);
    else
        *VEC_ADD(&f->gpus) = whole;
}

int nvml_probe(const char *path, struct facts *f, struct err *err)
{
    void *lib = load(path, err);
    struct nvml n = { 0 };
    char text[96] = "";
    unsigned count = 0;
    int rc, cuda = 0;

    if (!lib || bind_symbols(lib, &n, err))
        return -1;
    f->driver.library = library_release(lib);
    rc = n.init();
    if (rc)
        return err_set(err, CODE_UNAVAILABLE, "nvmlInit: %s", n.error_text(rc));
    if (n.driver_version(text, sizeof(text)) == 0) {
        if (!f->driver.library)
            f->driver.library = xstrdup(text);
        if (!f->driver.kernel_module)
            f->driver.kernel_module = xstrdup(text);
    }
    if (n.cuda_version && n.cuda_version(&cuda) == 0 && cuda)
        f->driver.cuda = xasprintf("%d.%d", cuda / 1000, cuda % 1000 / 10);
    rc = n.count(&count);
    if (rc)
        return err_set(err, CODE_UNAVAILABLE, "nvmlDeviceGetCount: %s", n.error_text(rc));
    for (unsigned i = 0; i < count; i++)
        add_device(&n, i, f);
    return 0; /* no nvmlShutdown: it takes milliseconds, and the process ends now */
}
