/* node/node.h - facts: what a node is, whoever runs on it. Never mentions a pin.
 *
 * Facts come from recon-probe (exec'd; it alone knows hwloc, NVML and /proc), from a saved file, or from a file with
 * parts assumed. Format: doc/format-facts.md, libconfig by the rows below. What is absent stays CONF_UNSET, NaN, NULL or
 * an empty list, and a rule that wants it says not-checked.
 */
#ifndef RECON_NODE_H
#define RECON_NODE_H

#include "base/base.h"
#include "conf/conf.h"

/* The version nodes that a system library of this node offers: "GLIBC_2.36", "GLIBCXX_3.4.30". */
struct facts_library {
    char *soname, *path;
    struct strv versions;
};

struct facts_gpu {
    char *vendor;             /* "nvidia", "amd", or a profile's name */
    char *name, *uuid, *pci;  /* pci: "0000:1b:00.0" */
    char *compute_capability; /* "9.0"; NULL unknown; AMD: "gfx90a" */
    int64_t memory_mib;
    char *mig;                /* MIG UUID when this is an instance */
    struct conf_ints cpus;    /* CPUs near it (hwloc) */
};

/* A device file that GPU programs open. */
struct facts_device {
    char *path;    /* "/dev/nvidia-uvm" */
    char *problem; /* NULL: usable by the probe's user; "missing", "permission denied" */
};

/* What a toolkit folder holds. */
struct facts_toolkit {
    char *path, *version; /* "12.4", by version.json, version.txt or cuda.h; NULL unknown */
    bool nvcc, headers;   /* bin/nvcc; include/cuda_runtime.h */
};

/* A GPU vendor that a profile describes (doc/format-profile.md). */
struct facts_vendor {
    char *name;            /* as in the gpus' `vendor` */
    struct strv runtimes;  /* how its libraries' SONAMEs begin: "libsmr_runtime.so" */
    struct strv foreign;   /* how those begin that do not work there: "libcudart.so" */
    char *symbols;         /* how its functions' names begin: "smr" */
};

struct facts {
    int64_t version; /* 1 */
    char *node, *boot_id, *taken; /* host name, kernel's boot id, time in ISO 8601 UTC */
    struct {
        char *id, *version;   /* "debian", "12" */
        char *kernel, *glibc; /* "6.1.0", "2.36" */
        char *machine;        /* "x86_64" */
    } os;
    struct { /* the node's own loader and what it reads */
        char *path;             /* "/lib64/ld-linux-x86-64.so.2" */
        char *build_id;
        struct strv dirs;       /* default directories, in order */
        struct strv hwcaps;     /* glibc-hwcaps subdirectories that this CPU takes, best first: "x86-64-v3" ... */
        char *platform;         /* $PLATFORM */
        char *lib;              /* $LIB */
        char *cache;            /* path of ld.so.cache */
        int64_t cache_size, cache_mtime_ns;
        char *preload;          /* content of /etc/ld.so.preload, NULL if there is none */
    } loader;
    struct {
        char *isa;        /* "x86-64-v4" */
        char *model;
        int64_t cores, numa_nodes;
    } cpu;
    struct {
        char *kernel_module; /* "570.211.01": the NVIDIA kernel module's release */
        char *library;       /* libcuda / NVML release seen by the probe */
        char *cuda;          /* CUDA version that the driver implements: "12.8" */
        char *source;        /* "nvml", "proc", "assumed" */
    } driver;
    struct { struct facts_gpu *v; size_t n, cap; } gpus;
    bool gpus_known; /* the probe could look: an empty list then means "no GPU" */
    struct { struct facts_library *v; size_t n, cap; } libraries; /* libc.so.6, libstdc++.so.6, libgcc_s.so.1, ... */
    struct {
        int64_t memlock, open_files, shm_mib, tmp_mib, stack; /* soft ones; memlock in bytes, -1 unlimited */
        int64_t memlock_hard, open_files_hard;
        char *tmp_dir;     /* whose free space tmp_mib is */
        char *tmp_problem; /* why nothing can be written there; NULL: it can */
    } limits;
    struct { struct facts_device *v; size_t n, cap; } devices;
    struct { struct facts_vendor *v; size_t n, cap; } vendors;
    struct strv partitions; /* of Slurm, that the node was seen in */
    struct { struct facts_toolkit *v; size_t n, cap; } toolkit_parts;
    struct strv toolkits;  /* CUDA toolkits found: "/usr/local/cuda-12.1" */
    struct strv toolkit_places; /* folders whose CUDA toolkits were listed: "/usr/local"; elsewhere nothing is known */
    struct strv unknown;   /* probes that failed: "nvml: gave no answer within 2000 ms" */
};
extern const struct conf_row facts_rows[];

void facts_release(struct facts *f);
int facts_read(const char *path, struct facts *ret, struct err *err);  /* CODE_DATA, with file and line */
int facts_write(const char *path, const struct facts *f, struct err *err);
void facts_text(const struct facts *f, struct str *ret); /* appends the text of such a file */
/* "gpu=9.0", "driver.kernel_module=570.211.01", or the path of a fragment: lays it upon f. "gpu=9.0,8.0": two GPUs. */
int facts_assume(struct facts *f, const char *what, struct err *err);
/* What a probe is asked; {0} is a valid one. */
struct facts_request {
    const struct strv *toolkits; /* looked at and beside, besides the usual places: CUDA_HOME of the job; may be NULL */
    const char *tmpdir;          /* whose free space is wanted; NULL: TMPDIR of this process, else /tmp */
    const char *profiles;        /* folder of vendor profiles; NULL: path_part("share/recon/profiles") */
    double deadline_ms;          /* 0: 5000 */
    bool kept;                   /* what a boot does not change may come from an earlier probe (RECON_CACHE=DIR|off) */
    const char *probe;           /* the program; NULL: path_part("libexec/recon/recon-probe") */
};
/* Runs recon-probe with a scrubbed environment under a deadline. A probe that fails leaves minimal facts (node, kernel,
 * boot id, time) with the reason in `unknown` and is 0: recon fails open. */
int facts_probe_for(const struct facts_request *q, struct facts *ret, struct err *err);
/* The same, asked for the toolkits that this process' own CUDA_HOME, CUDA_PATH and CUDA_ROOT name. */
int facts_probe(struct facts *ret, double deadline_ms, struct err *err);
/* The toolkit folders that an environment names (CUDA_HOME, CUDA_PATH, CUDA_ROOT), to ask a probe for. */
void facts_toolkits_of(char *const *env, struct strv *ret);
/* Looks into a toolkit's folder; what is not there stays NULL or false. Initialises ret, whose texts are owned. */
void facts_toolkit_read(const char *dir, struct facts_toolkit *ret);
/* ID and VERSION_ID of the os-release below root ("" is this host). */
void facts_os_release(const char *root, struct facts *f);
/* What needs no probe: node, kernel, machine, boot id, time. Initialises ret. */
void facts_minimal(struct facts *ret);
/* In a container: what the node is (hardware, driver, devices, limits, name) is taken out of `host`, what the image is stays. */
void facts_take_host(struct facts *f, struct facts *host);
/* Old (a day) or of another boot of this very node: one line why, else NULL; owned. */
char *facts_stale(const struct facts *f);
/* Were they taken on this very node since it booted? */
bool facts_of_this_boot(const struct facts *f);

#endif
