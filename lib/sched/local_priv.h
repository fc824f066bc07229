/* What the two files of the local backend share. */
#ifndef RECON_LOCAL_PRIV_H
#define RECON_LOCAL_PRIV_H

#include "sched/sched_priv.h"

struct job {
    char *id;
    uint64_t number; /* SLURM_ARRAY_JOB_ID */
    struct sched_request r;
    char *interpreter, *interpreter_arg;
    struct strv env;
    struct directives d;
    uint32_t at_a_time, next, running, threads;
    struct sched_tasks tasks;
    pid_t *pids; /* by slot, 0: not running */
};

const char *local_user(char *const *env);
void local_number(struct strv *env, const char *name, uint64_t v);
/* How many tasks at once, with how many threads each. */
void local_share_cores(struct job *j);
/* j->env: what --export lets through of env, and what Slurm would set for the job. */
void local_environment(struct job *j, char *const *env);

#endif
