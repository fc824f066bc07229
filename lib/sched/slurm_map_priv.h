/* #SBATCH directives to libslurm's job description: one row an option, by the names of job's table. */
#ifndef RECON_SLURM_MAP_H
#define RECON_SLURM_MAP_H

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include "sched/sched_priv.h"

/* What changed in newer headers; configure looks. */
#if !HAVE_DECL_SLURM_GET_ERRNO /* 24.11 on */
#define slurm_get_errno() errno
#endif
#if !HAVE_DECL_ESLURM_ERROR_ON_DESC_TO_RECORD_COPY /* 26.05 on */
#define ESLURM_ERROR_ON_DESC_TO_RECORD_COPY 2013
#endif

#ifdef HAVE_SUBMIT_RESPONSE_MSG_T_JOB_ID
#define ANSWER_JOB(answer) ((answer)->job_id)
#else /* 25.11 on */
#define ANSWER_JOB(answer) ((answer)->step_id.job_id)
#endif

struct slurm_map {
    job_desc_msg_t desc;
    struct strv owned; /* texts that desc points to */
    long ntasks, cpus_per_task, min_nodes, max_nodes, ntasks_per_node; /* 0: not asked */
};
/* Fills desc but script and environment, as sbatch does. CODE_USAGE: a directive that has no row here, or whose value
 * only sbatch reads; then sbatch is the way. m is initialised even on failure. */
int slurm_map_directives(const struct directives *d, const struct sched_request *r, struct slurm_map *m, struct err *err);
void slurm_map_release(struct slurm_map *m);

/* What the controller says of partitions and nodes, two RPCs; -1 with slurm_get_errno(). */
int slurm_cluster_load(const slurm_conf_t *conf, struct cluster *ret);
/* What accounting lets the user do: one RPC where a limit is enforced, else none; -1 with slurm_get_errno(). */
int slurm_accounting_load(const slurm_conf_t *conf, struct accounting *ret);

#endif
