/* What the files of lib/sched share. */
#ifndef RECON_SCHED_PRIV_H
#define RECON_SCHED_PRIV_H

#include "job/job.h"
#include "sched/sched.h"

extern const struct sched_backend recon_backend; /* each module's own */

/* Where the controller should be, for messages: "localhost(127.0.0.1):17000 of FILE". Owned. */
char *sched_endpoint(char *const *env);
/* Every slot of "3", "0-9,12%4", "5-7"; -1 when it is no such list. */
int sched_slots(const char *text, void (*each)(void *arg, uint32_t slot), void *arg);
/* The state of one slot in the list, added when new. */
struct sched_task *sched_task_of(struct sched_tasks *t, uint32_t slot);
/* Is a job of this name and command ours? */
bool sched_is(const struct sched_job *job, const char *name, const char *command);
/* A name of sbatch's output patterns in full: %A %a %J %j %x %N %n %s %t %u %%, with a width as in %4a. */
struct sched_names { uint64_t array, job; uint32_t slot; const char *name, *node, *user; };
char *sched_pattern(const char *pattern, const struct sched_names *n);

/* What sbatch puts into a job's environment besides what --export takes from env; for the libslurm backend.
 * umask: of the submitting process; propagate: slurm.conf's PropagateResourceLimits and its ...Except, may be NULL.
 * CODE_USAGE: an --export that only sbatch reads. */
struct submit_env { const char *propagate, *propagate_except; mode_t umask; int nice; };
int submit_environment(const struct sched_request *r, const struct directives *d, const struct submit_env *how,
                       struct strv *ret, struct err *err);

#endif
