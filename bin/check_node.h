/* recon-check --node: the checks that Slurm's Prolog and HealthCheckProgram run, as root. Nothing here reads a file, a
 * variable or a path of a user: the configuration and what it names have to be root's (file_trusted), and of the
 * environment only SLURMD_NODENAME is kept.
 *
 * check_node.c        the steps, the verdict, the formats
 * check_node_probes.c what is looked at, each in a process of its own, all under one deadline
 * check_node_drain.c  Slurm's state of the node, by scontrol
 */
#ifndef BIN_CHECK_NODE_H
#define BIN_CHECK_NODE_H

#include "conf/conf.h"
#include "record/record.h"

enum node_mode { NODE_PROLOG, NODE_HEALTH };
enum node_format { NODE_TEXT, NODE_JSONL, NODE_NAGIOS };

struct node_conf { /* /etc/recon/node.conf, see doc/site.md */
    bool enabled;
    char *pins, *facts, *state; /* folders */
    double deadline;            /* seconds, in total */
    struct strv drain_on;       /* rules that drain */
    char *prefix;               /* of our drain reasons */
    int64_t gpus;               /* how many this node has to have */
    char *driver;               /* at least this release of the kernel module */
    char *nvidia_smi, *scontrol, *slurm_conf;
    struct strv smi_args;
    char *kernel_log;
    int64_t xid_age;            /* seconds */
    struct strv mounts;
};
extern const struct conf_row node_conf_rows[];

/* The exit status. config NULL: /etc/recon/node.conf. */
int check_node(enum node_mode mode, const char *config, enum node_format format, bool verbose);

/* Runs the probes of the mode; what does not answer within the deadline is named. */
void node_probe(enum node_mode mode, const struct node_conf *c, const char *node, struct findings *ret);
/* Tells Slurm: why NULL: healthy, our own drain is lifted; else the node is drained unless somebody else did. prolog:
 * the reason that the prolog left, given when Slurm's own says only "Prolog error". What was done in words, owned, or NULL. */
char *node_tell_slurm(const struct node_conf *c, const char *node, const char *why, const char *prolog, struct err *err);

#endif
