#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "probe.h"

/* "0-7,64-71" */
static void cpu_list(const char *s, struct conf_ints *ret)
{
    while (s && isdigit((unsigned char)*s)) {
        char *end;
        long a = strtol(s, &end, 10), b = *end == '-' ? strtol(end + 1, &end, 10) : a;

        for (; a <= b && ret->n < 65536; a++)
            *VEC_ADD(ret) = a;
        s = *end == ',' ? end + 1 : NULL;
    }
}

void pci_cpus(const char *pci, struct conf_ints *ret)
{
    char *path = xasprintf("/sys/bus/pci/devices/%s/local_cpulist", pci), *line = first_line(path);

    cpu_list(line, ret);
    free(line);
    free(path);
}

/* Does the PCI bus show a display controller or accelerator of this vendor? */
static bool pci_has(const char *vendor)
{
    DIR *d = opendir("/sys/bus/pci/devices");
    struct dirent *e;
    bool found = false;

    while (d && !found && (e = readdir(d))) {
        char *v, *c, *path;

        if (e->d_name[0] == '.')
            continue;
        path = xasprintf("/sys/bus/pci/devices/%s/vendor", e->d_name);
        v = first_line(path);
        free(path);
        path = xasprintf("/sys/bus/pci/devices/%s/class", e->d_name);
        c = str_eq(v, vendor) ? first_line(path) : NULL;
        found = c && (str_starts(c, "0x03") || str_starts(c, "0x12"));
        free(path);
        free(v);
        free(c);
    }
    if (d)
        closedir(d);
    return found;
}

/* ---- nvidia ---- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.211.01  Mon ...": the first word that is a release. */
static char *kernel_module(void)
{
    char *line = first_line("/proc/driver/nvidia/version"), *release = NULL, *save = NULL;

    for (char *w = line ? strtok_r(line, " \t", &save) : NULL; w && !release; w = strtok_r(NULL, " \t", &save))
        if (isdigit((unsigned char)*w) && strchr(w, '.') && w[strspn(w, "0123456789.")] == 0)
            release = xstrdup(w);
    free(line);
    return release ? release : first_line("/sys/module/nvidia/version");
}

/* "Model: \t\t NVIDIA H200" -> "NVIDIA H200"; owned. */
static char *information(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " \t:");
    return xstrndup(at, strcspn(at, "\n"));
}

/* Without NVML the kernel module still names its GPUs, though not their compute capability. */
static void from_proc(struct facts *f)
{
    DIR *d = opendir("/proc/driver/nvidia/gpus");
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char *path = xasprintf("/proc/driver/nvidia/gpus/%s/information", e->d_name);
        struct str t = { 0 };
        struct facts_gpu *g;

        if (e->d_name[0] != '.' && file_read(path, 65536, &t, NULL) == 0 && t.len) {
            g = VEC_ADD(&f->gpus);
            g->vendor = xstrdup("nvidia");
            g->name = information(t.s, "Model");
            g->uuid = information(t.s, "GPU UUID");
            g->pci = xstrdup(e->d_name);
            g->memory_mib = CONF_UNSET;
            pci_cpus(g->pci, &g->cpus);
        }
        str_release(&t);
        free(path);
    }
    if (d)
        closedir(d);
}

/* By the file's mode, not by opening it: that would wake a GPU, and a job's device cgroup is no fault. */
static void add_device(struct facts *f, const char *path)
{
    struct facts_device *d = VEC_ADD(&f->devices);

    d->path = xstrdup(path);
    if (access(path, R_OK | W_OK))
        d->problem = xstrdup(errno == ENOENT ? "missing" : errno == EACCES ? "permission denied" : strerror(errno));
}

static void nvidia_devices(struct facts *f)
{
    struct stat st;
    struct dirent *e;
    DIR *d = opendir("/dev");

    add_device(f, "/dev/nvidiactl");
    while (d && (e = readdir(d)))
        if (str_starts(e->d_name, "nvidia") && isdigit((unsigned char)e->d_name[6])) {
            char *path = path_join("/dev", e->d_name);

            add_device(f, path);
            free(path);
        }
    if (d)
        closedir(d);
    /* a setuid nvidia-modprobe, and root, make the last one when it is wanted */
    if (access("/dev/nvidia-uvm", F_OK) == 0 ||
        (geteuid() != 0 && (stat("/usr/bin/nvidia-modprobe", &st) || !(st.st_mode & S_ISUID))))
        add_device(f, "/dev/nvidia-uvm");
}

void probe_nvidia(const struct probe *q, struct facts *f)
{
    struct err err = { 0 };

    f->driver.kernel_module = kernel_module();
    if (f->driver.kernel_module)
        nvidia_devices(f);
    if (nvml_probe(q->nvml, f, &err) == 0) {
        f->driver.source = xstrdup("nvml");
        f->gpus_known = true;
        return;
    }
    from_proc(f);
    if (f->driver.kernel_module)
        f->driver.source = xstrdup("proc");
    if (err.code == CODE_NOTFOUND && !q->nvml && !f->driver.kernel_module && !pci_has("0x10de")) {
        f->gpus_known = true; /* no driver, no device: there is no GPU */
        return;
    }
    strv_addf(&f->unknown, "nvml: %s", err.text);
}

/* ---- amd ---- */

/* 90010 -> gfx90a: major, minor, step; the step is hexadecimal (amdkfd's gfx_target_version). */
static char *gfx_name(const char *properties)
{
    char *value = information(properties, "gfx_target_version"), *name = NULL;
    int64_t v;

    if (value && str_to_i64(value, &v) == 0 && v > 0)
        name = xasprintf("gfx%lld%lld%llx", (long long)v / 10000, (long long)v / 100 % 100, (long long)v % 100);
    free(value);
    return name;
}

void probe_amd(const struct probe *q, struct facts *f)
{
    static const char nodes[] = "/sys/class/kfd/kfd/topology/nodes";
    DIR *d = opendir(nodes);
    struct dirent *e;

    (void)q;
    f->gpus_known = d || !pci_has("0x1002");
    if (!f->gpus_known)
        strv_add(&f->unknown, "amd: the PCI bus shows a GPU, but amdkfd is not loaded");
    while (d && (e = readdir(d))) {
        char *path = xasprintf("%s/%s/properties", nodes, e->d_name);
        struct str t = { 0 };
        char *gfx = NULL;

        if (e->d_name[0] != '.' && file_read(path, 65536, &t, NULL) == 0 && t.len)
            gfx = gfx_name(t.s);
        if (gfx) {
            struct facts_gpu *g = VEC_ADD(&f->gpus);

            g->vendor = xstrdup("amd");
            g->compute_capability = gfx;
            g->memory_mib = CONF_UNSET;
            if (!f->devices.n)
                add_device(f, "/dev/kfd");
        }
        str_release(&t);
        free(path);
    }
    if (d)
        closedir(d);
}
