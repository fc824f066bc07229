/* What the files of the libslurm backend share. */
#ifndef RECON_SLURM_PRIV_H
#define RECON_SLURM_PRIV_H

#include "sched/slurm_map_priv.h"

/* libslurm writes to stderr: kept for the error's text. hush_end gives the last line that was said, without
 * "PROGRAM: error: "; owned, "" for nothing. */
struct hush { int saved, kept; };
void hush_begin(struct hush *h);
char *hush_end(struct hush *h);

/* Sets err from slurm_get_errno(); -1. */
int slurm_failed(const char *what, struct err *err);
/* Both once a process; the configuration is libslurm's own. */
int slurm_start(struct err *err);
int slurm_config(const slurm_conf_t **ret, struct err *err);

int slurm_ask_tasks(const struct sched_job *job, struct sched_tasks *ret, struct err *err);
int slurm_ask_find(const char *name, char **ret_job_id, struct err *err);
int slurm_ask_limits(struct sched_limits *ret, struct err *err);
int slurm_ask_cluster(struct cluster *ret, struct err *err);
int slurm_ask_accounting(struct accounting *ret, struct err *err);
int slurm_ask_held(uint64_t *ret, struct err *err);

#endif
