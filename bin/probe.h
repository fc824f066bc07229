/* bin/probe.h - the parts of recon-probe. Each adds what it sees to the facts; what it cannot see goes to `unknown`. */
#ifndef RECON_PROBE_H
#define RECON_PROBE_H

#include "node/node.h"

struct probe {
    double deadline_ms;     /* of each part that may hang */
    const char *tmpdir;     /* NULL: /tmp */
    const char *profiles;   /* folder of vendor profiles; NULL: beside this program */
    const char *nvml;       /* NVML's path; NULL: where the loader finds libnvidia-ml.so.1 */
    bool no_hwloc;          /* processors by sysfs, as on a node without hwloc */
    const char *cache;      /* folder that keeps what a boot does not change; "": the usual one; NULL: nothing is kept */
    struct strv toolkits;   /* looked at and beside, besides the usual places */
};
typedef void probe_f(const struct probe *q, struct facts *f);

/* In this process: they read what the kernel and the system's own files say. */
void probe_os(const struct probe *q, struct facts *f);
void probe_loader(const struct probe *q, struct facts *f);
void probe_libraries(const struct probe *q, struct facts *f);
void probe_cpu(const struct probe *q, struct facts *f);
void probe_limits(const struct probe *q, struct facts *f);
/* What the first four of these said earlier in this boot: true when it still holds. */
bool cache_read(const struct probe *q, struct facts *f);
void cache_write(const struct probe *q, const struct facts *f);
/* In a child each, under the deadline: a driver or a network file system may hang. */
void probe_nvidia(const struct probe *q, struct facts *f);
void probe_amd(const struct probe *q, struct facts *f);
void probe_places(const struct probe *q, struct facts *f); /* toolkits */
void probe_tmpdir(const struct probe *q, struct facts *f);
void probe_profiles(const struct probe *q, struct facts *f); /* vendors that a profile describes */

/* Starts all parts of a table at once, each in a child; collects what they print. A part that gives no answer in time is
 * named in `unknown` and left behind. */
struct part {
    const char *name;
    probe_f *run;
    bool gpus;   /* looks for GPUs: gpus_known needs its answer */
    int fd;      /* set by parts_start, as what follows */
    pid_t pid;
    double end;  /* clock_ms() at which its time is over */
};
void parts_start(struct part *parts, size_t n, const struct probe *q);
void parts_collect(struct part *parts, size_t n, const struct probe *q, struct facts *f);

/* NVML by dlopen: driver and GPUs. CODE_NOTFOUND: there is no NVML. */
int nvml_probe(const char *path, struct facts *f, struct err *err);
/* The CPUs near a PCI device, from sysfs. */
void pci_cpus(const char *pci, struct conf_ints *ret);
/* First line of a small file without its newline, or NULL; owned. */
char *first_line(const char *path);

#endif
