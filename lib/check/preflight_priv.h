/* What the files of the preflight share. */
#ifndef RECON_PREFLIGHT_PRIV_H
#define RECON_PREFLIGHT_PRIV_H

#include "check/preflight.h"

struct gres_item { /* one of what is asked a node: "gpu", "a100", 2 */
    char *name, *type;
    uint64_t count; /* that one node has to have */
    bool per_node;  /* else of the whole job: one node need not have them all */
};
struct gres_items {
    struct gres_item *v;
    size_t n, cap;
};
void gres_asked(const struct preflight *p, struct gres_items *l);
void gres_release(struct gres_items *l);

/* The value of a directive, NULL when it is not said. */
const char *asked(const struct preflight *p, const char *name);
/* "partition 'gpu'", owned. */
char *partition_words(const struct preflight *p);
/* The nodes of the partitions that are asked for, each once; of the default one when none is. */
void partition_nodes(const struct preflight *p, struct strv *ret);

/* A constraint of Slurm's against a node's features: words joined by & (or a comma) and |, from left to right as Slurm reads
 * them, ( ), [a|b], counts as in rack*2. In brackets with counts the words are for different nodes, so that one is enough.
 * 1: the node fits; 0: it does not; -1: not understood. */
int constraint_fits(const char *text, const struct strv *features);
/* The words of it, each once. */
void constraint_words(const char *text, struct strv *ret);

/* The rule of what accounting allows a task. */
void accounting_limits(const struct preflight *p, struct findings *out);
/* The rule that no node, or too few, can take a task. */
void no_node_fits(const struct preflight *p, struct findings *out);

#endif
