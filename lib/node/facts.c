#include "config.h"
#include "node/node_priv.h"

#include <stddef.h>
#include <stdlib.h>

#define TOP(m) .offset = offsetof(struct facts, m)
#define IN(group, m) .offset = offsetof(struct facts, group.m) - offsetof(struct facts, group)
#define GPU(m) .offset = offsetof(struct facts_gpu, m)
#define LIB(m) .offset = offsetof(struct facts_library, m)

static const struct conf_row os_rows[] = {
    { .name = "id", .type = CONF_TEXT, IN(os, id), .doc = "ID of os-release: \"debian\"" },
    { .name = "version", .type = CONF_TEXT, IN(os, version), .doc = "VERSION_ID of os-release: \"12\"" },
    { .name = "kernel", .type = CONF_TEXT, IN(os, kernel), .doc = "kernel release, as `uname -r`" },
    { .name = "glibc", .type = CONF_TEXT, IN(os, glibc), .doc = "glibc release: \"2.36\"" },
    { .name = "machine", .type = CONF_TEXT, IN(os, machine), .doc = "machine, as `uname -m`" },
    { 0 },
};

static const struct conf_row loader_rows[] = {
    { .name = "path", .type = CONF_TEXT, IN(loader, path), .doc = "the dynamic loader" },
    { .name = "build_id", .type = CONF_TEXT, IN(loader, build_id), .doc = "its build id" },
    { .name = "dirs", .type = CONF_TEXTS, IN(loader, dirs), .doc = "default directories, in order" },
    { .name = "hwcaps", .type = CONF_TEXTS, IN(loader, hwcaps),
      .doc = "glibc-hwcaps subdirectories that this CPU takes, best first" },
    { .name = "platform", .type = CONF_TEXT, IN(loader, platform), .doc = "value of $PLATFORM" },
    { .name = "lib", .type = CONF_TEXT, IN(loader, lib), .doc = "value of $LIB" },
    { .name = "cache", .type = CONF_TEXT, IN(loader, cache), .doc = "path of ld.so.cache" },
    { .name = "cache_size", .type = CONF_INT, IN(loader, cache_size), .doc = "its size in bytes" },
    { .name = "cache_mtime_ns", .type = CONF_INT, IN(loader, cache_mtime_ns),
      .doc = "its modification time, ns since 1970" },
    { .name = "preload", .type = CONF_TEXT, IN(loader, preload), .doc = "content of /etc/ld.so.preload" },
    { 0 },
};

static const struct conf_row cpu_rows[] = {
    { .name = "isa", .type = CONF_TEXT, IN(cpu, isa), .doc = "highest x86-64 level: \"x86-64-v3\"" },
    { .name = "model", .type = CONF_TEXT, IN(cpu, model), .doc = "model name" },
    { .name = "cores", .type = CONF_INT, IN(cpu, cores), .doc = "cores of the node, not of a job" },
    { .name = "numa_nodes", .type = CONF_INT, IN(cpu, numa_nodes), .doc = "NUMA nodes" },
    { 0 },
};

static const struct conf_row driver_rows[] = {
    { .name = "kernel_module", .type = CONF_TEXT, IN(driver, kernel_module),
      .doc = "release of the NVIDIA kernel module: \"570.211.01\"" },
    { .name = "library", .type = CONF_TEXT, IN(driver, library), .doc = "release of NVML as the probe saw it" },
    { .name = "cuda", .type = CONF_TEXT, IN(driver, cuda), .doc = "CUDA version that the driver implements: \"12.8\"" },
    { .name = "source", .type = CONF_TEXT, IN(driver, source), .doc = "who said so: nvml, proc, assumed" },
    { 0 },
};

static const struct conf_row gpu_rows[] = {
    { .name = "vendor", .type = CONF_TEXT, GPU(vendor), .doc = "nvidia, amd, or the name of a profile" },
    { .name = "name", .type = CONF_TEXT, GPU(name), .doc = "product name" },
    { .name = "uuid", .type = CONF_TEXT, GPU(uuid), .doc = "UUID of the GPU" },
    { .name = "pci", .type = CONF_TEXT, GPU(pci), .doc = "PCI address: \"0000:1b:00.0\"" },
    { .name = "compute_capability", .type = CONF_TEXT, GPU(compute_capability), .doc = "\"9.0\"; AMD: \"gfx90a\"" },
    { .name = "memory_mib", .type = CONF_INT, GPU(memory_mib), .doc = "memory in MiB" },
    { .name = "mig", .type = CONF_TEXT, GPU(mig), .doc = "UUID of the MIG instance when this is one" },
    { .name = "cpus", .type = CONF_INTS, GPU(cpus), .doc = "numbers of the CPUs near it" },
    { 0 },
};

static const struct conf_row library_rows[] = {
    { .name = "soname", .type = CONF_TEXT, LIB(soname), .doc = "SONAME" },
    { .name = "path", .type = CONF_TEXT, LIB(path), .doc = "where the node's loader finds it" },
    { .name = "versions", .type = CONF_TEXTS, LIB(versions), .doc = "version nodes that it offers" },
    { 0 },
};

static const struct conf_row limit_rows[] = {
    { .name = "memlock", .type = CONF_INT, IN(limits, memlock), .doc = "locked memory in bytes (soft), -1 unlimited" },
    { .name = "open_files", .type = CONF_INT, IN(limits, open_files), .doc = "open files (soft), -1 unlimited" },
    { .name = "shm_mib", .type = CONF_INT, IN(limits, shm_mib), .doc = "free space of /dev/shm in MiB" },
    { .name = "tmp_mib", .type = CONF_INT, IN(limits, tmp_mib), .doc = "free space of TMPDIR in MiB" },
    { .name = "stack", .type = CONF_INT, IN(limits, stack), .doc = "stack in bytes (soft), -1 unlimited" },
    { .name = "memlock_hard", .type = CONF_INT, IN(limits, memlock_hard), .doc = "locked memory in bytes (hard)" },
    { .name = "open_files_hard", .type = CONF_INT, IN(limits, open_files_hard), .doc = "open files (hard)" },
    { .name = "tmp_dir", .type = CONF_TEXT, IN(limits, tmp_dir), .doc = "TMPDIR, whose free space tmp_mib is" },
    { .name = "tmp_problem", .type = CONF_TEXT, IN(limits, tmp_problem), .doc = "why nothing can be written there" },
    { 0 },
};

#define DEVICE(m) .offset = offsetof(struct facts_device, m)
#define TOOLKIT(m) .offset = offsetof(struct facts_toolkit, m)
#define VENDOR(m) .offset = offsetof(struct facts_vendor, m)

static const struct conf_row device_rows[] = {
    { .name = "path", .type = CONF_TEXT, DEVICE(path), .doc = "device file" },
    { .name = "problem", .type = CONF_TEXT, DEVICE(problem), .doc = "\"missing\", \"permission denied\"; absent: usable" },
    { 0 },
};

static const struct conf_row toolkit_rows[] = {
    { .name = "path", .type = CONF_TEXT, TOOLKIT(path), .doc = "folder" },
    { .name = "version", .type = CONF_TEXT, TOOLKIT(version), .doc = "\"12.4\"" },
    { .name = "nvcc", .type = CONF_BOOL, TOOLKIT(nvcc), .doc = "it has bin/nvcc" },
    { .name = "headers", .type = CONF_BOOL, TOOLKIT(headers), .doc = "it has include/cuda_runtime.h" },
    { 0 },
};

static const struct conf_row vendor_rows[] = {
    { .name = "name", .type = CONF_TEXT, VENDOR(name), .doc = "as in gpus[].vendor" },
    { .name = "runtimes", .type = CONF_TEXTS, VENDOR(runtimes), .doc = "how the SONAMEs of its libraries begin" },
    { .name = "foreign", .type = CONF_TEXTS, VENDOR(foreign), .doc = "how those begin that cannot work there" },
    { .name = "symbols", .type = CONF_TEXT, VENDOR(symbols), .doc = "how the names of its functions begin" },
    { 0 },
};

const struct conf_row facts_rows[] = {
    { .name = "version", .type = CONF_INT, TOP(version), .doc = "of this format: 1" },
    { .name = "node", .type = CONF_TEXT, TOP(node), .doc = "host name" },
    { .name = "boot_id", .type = CONF_TEXT, TOP(boot_id), .doc = "the kernel's boot id" },
    { .name = "taken", .type = CONF_TEXT, TOP(taken), .doc = "time in ISO 8601, UTC" },
    { .name = "os", .type = CONF_GROUP, TOP(os), .sub = os_rows, .doc = "operating system" },
    { .name = "loader", .type = CONF_GROUP, TOP(loader), .sub = loader_rows,
      .doc = "the node's dynamic loader and what it reads" },
    { .name = "cpu", .type = CONF_GROUP, TOP(cpu), .sub = cpu_rows, .doc = "processors" },
    { .name = "driver", .type = CONF_GROUP, TOP(driver), .sub = driver_rows, .doc = "GPU driver" },
    { .name = "gpus_known", .type = CONF_BOOL, TOP(gpus_known),
      .doc = "the probe could look: an empty list of GPUs then means that there is none" },
    { .name = "gpus", .type = CONF_LIST, TOP(gpus), .sub = gpu_rows, .size = sizeof(struct facts_gpu),
      .doc = "GPUs; a MIG instance is an entry of its own" },
    { .name = "libraries", .type = CONF_LIST, TOP(libraries), .sub = library_rows,
      .size = sizeof(struct facts_library), .doc = "system libraries and their version nodes" },
    { .name = "limits", .type = CONF_GROUP, TOP(limits), .sub = limit_rows, .doc = "limits and places" },
    { .name = "devices", .type = CONF_LIST, TOP(devices), .sub = device_rows, .size = sizeof(struct facts_device),
      .doc = "device files that GPU programs open" },
    { .name = "vendors", .type = CONF_LIST, TOP(vendors), .sub = vendor_rows, .size = sizeof(struct facts_vendor),
      .doc = "GPU vendors that profiles describe" },
    { .name = "partitions", .type = CONF_TEXTS, TOP(partitions), .doc = "Slurm partitions that the node was seen in" },
    { .name = "toolkit_parts", .type = CONF_LIST, TOP(toolkit_parts), .sub = toolkit_rows,
      .size = sizeof(struct facts_toolkit), .doc = "what the toolkits hold" },
    { .name = "toolkits", .type = CONF_TEXTS, TOP(toolkits), .doc = "CUDA toolkits found" },
    { .name = "toolkit_places", .type = CONF_TEXTS, TOP(toolkit_places),
      .doc = "folders whose toolkits were listed; of others nothing is known" },
    { .name = "unknown", .type = CONF_TEXTS, TOP(unknown), .doc = "probes that gave no answer, and why" },
    { 0 },
};

void facts_release(struct facts *f)
{
    conf_release(facts_rows, f);
}

int facts_bind(const struct conf *c, const char *name, struct facts *ret, struct err *err)
{
    struct facts f;
    struct err why = { 0 };
    int rc = conf_bind(c, facts_rows, &f, &why);

    if (rc == 0 && f.version != 1)
        rc = f.version == CONF_UNSET ? err_set(&why, CODE_DATA, "%s: 'version' is missing: these are no facts", name)
                                     : err_set(&why, CODE_DATA, "%s: facts of version %lld, this recon reads 1", name,
                                               (long long)f.version);
    if (rc) {
        facts_release(&f);
        return err_set(err, CODE_DATA, "%s", why.text);
    }
    f.gpus_known = f.gpus_known || f.gpus.n > 0;
    *ret = f;
    return 0;
}

int facts_read(const char *path, struct facts *ret, struct err *err)
{
    struct err why = { 0 };
    struct conf *c = conf_load(path, &why);
    int rc;

    if (!c)
        return err_set(err, why.code == CODE_USAGE ? CODE_DATA : why.code, "%s", why.text);
    rc = facts_bind(c, path, ret, err);
    conf_free(c);
    return rc;
}

void facts_text(const struct facts *f, struct str *ret)
{
    conf_write(facts_rows, f, ret);
}

int facts_write(const char *path, const struct facts *f, struct err *err)
{
    struct str text = { 0 };
    int rc;

    str_add(&text, "# what recon knows of this node; read by recon-check --facts\n");
    facts_text(f, &text);
    rc = file_write(path, text.s, text.len, 0666, err);
    str_release(&text);
    return rc;
}
