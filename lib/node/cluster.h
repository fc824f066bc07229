/* node/cluster.h - what a cluster offers: limits, partitions, nodes. From the controller (lib/sched fills it), or from
 * Slurm's own words: lines of Key=Value as in slurm.conf and as scontrol -o prints. What is not known is 0 or NULL.
 */
#ifndef RECON_CLUSTER_H
#define RECON_CLUSTER_H

#include "base/base.h"

struct cluster_node {
    char *name;
    uint32_t cpus;
    uint64_t memory_mib;
    char *gres;     /* "gpu:a100:2,shard:8"; NULL: none */
    char *features; /* "a100,cuda12"; NULL: none */
    bool down;      /* takes no job now and has not said when */
};
struct cluster_partition {
    char *name;
    bool is_default, down;
    int64_t max_seconds; /* -1: unlimited, 0: not known */
    struct strv nodes;   /* names */
};
struct cluster {
    char *source; /* "the controller", "/etc/slurm/slurm.conf" */
    uint32_t array_size, job_count, message_timeout, unkillable_timeout;
    uint64_t script_bytes;
    char *gres_types, *select_type;
    struct { struct cluster_partition *v; size_t n, cap; } partitions;
    struct { struct cluster_node *v; size_t n, cap; } nodes;
};
void cluster_release(struct cluster *c);

/* Every name of a host list, "n[1-3,07],m": appended. CODE_USAGE: no such list, or of more than 200000 names. */
int hostlist_expand(const char *list, struct strv *ret, struct err *err);

/* Takes lines of Key=Value (slurm.conf; scontrol show config; scontrol -o show partition, show node) into c; may be
 * called for several texts. What is not understood is passed over. */
void cluster_take(struct cluster *c, const char *text);
/* A slurm.conf and what it includes, with the values that Slurm takes where it says nothing. */
int cluster_read_conf(const char *path, struct cluster *ret, struct err *err);

const struct cluster_partition *cluster_partition(const struct cluster *c, const char *name); /* NULL name: the default */
const struct cluster_node *cluster_node(const struct cluster *c, const char *name);
/* How many of a GRES a node has: name "gpu", type NULL: any. */
uint64_t cluster_gres(const struct cluster_node *n, const char *name, const char *type);

#endif
