/* sched/sched.h - backends: where tasks run. A backend is a module lib/recon/sched/NAME.so that exports recon_backend. */
#ifndef RECON_SCHED_H
#define RECON_SCHED_H

#include "base/base.h"
#include "node/accounting.h"
#include "node/cluster.h"
#include "record/record.h"

#define RECON_BACKEND_ABI 4u

struct sched_request {
    const char *run;           /* run directory */
    uint32_t sub;
    const char *name;          /* unique job name: NAME-<8 hex>.<sub> */
    const char *script;        /* the text of sub/<n>.sbatch, the only statement of the request */
    const char *script_path;
    const char *cwd;
    char *const *env;          /* the submitting environment, see sched_environment */
    uint32_t tasks, at_a_time; /* array slots; how many run at once (0: the backend's default) */
    bool once;                 /* a controller that is full refuses at once, and is not asked again as sbatch does */
    const char *exclude;       /* node list or NULL; stands in the script already */
};
struct sched_task { /* what a backend knows of one slot */
    uint32_t slot;
    enum { TASK_UNKNOWN, TASK_WAITING, TASK_RUNNING, TASK_ENDED } state;
    int exit, signal;
    bool withdrawn; /* cancelled before it had a node */
    char *reason, *node;
};
struct sched_tasks { struct sched_task *v; size_t n, cap; };

/* A job of recon's. After a controller lost its state the number may be another job's: neither name nor script is ours then,
 * and the job counts as known no more. NULL: not looked at. */
struct sched_job { const char *id, *name, *script_path; };

/* What the cluster takes; 0: unknown or no bound. */
struct sched_limits { uint32_t array_size, job_count; };

struct sched_backend {
    uint32_t abi;
    const char *name, *doc;
    /* 0 and the job id (owned), or -1: CODE_UNAVAILABLE not reachable, CODE_USAGE refused (the reason in err),
     * CODE_NOEXEC this backend cannot talk to this cluster, another may. After a CODE_DEADLINE the request may have been
     * taken all the same: ask find() before submitting again. */
    int (*submit)(const struct sched_request *r, char **ret_job_id, struct err *err);
    /* Blocks until every task ended, calling progress now and then; 0. NULL: not a backend that waits. -1 with code
     * 128+n when signal n ended it; every task is gone then. */
    int (*wait)(const char *job_id, void (*progress)(void *arg, const struct sched_tasks *t), void *arg, struct err *err);
    /* Live tasks and what is still known of ended ones; a job that is known no more gives none. */
    int (*tasks)(const struct sched_job *job, struct sched_tasks *ret, struct err *err);
    int (*cancel)(const char *job_id, struct err *err);
    /* The rest may be NULL.
     * Would submit() say all that the script says? 0, or -1 with what it cannot say. */
    int (*accepts)(const struct sched_request *r, struct err *err);
    /* Asks the cluster whether the job could run: one line of text (owned), or -1 as submit. */
    int (*test)(const struct sched_request *r, char **ret_text, struct err *err);
    /* The job of this unique name: CODE_NOTFOUND when there is none. */
    int (*find)(const char *name, char **ret_job_id, struct err *err);
    int (*limits)(struct sched_limits *ret, struct err *err);
    /* Keeps the waiting tasks of a job from starting until its owner releases them. */
    int (*hold)(const char *job_id, struct err *err);
    /* What the cluster offers, in few RPCs: released by the caller, empty on failure. */
    int (*cluster)(struct cluster *ret, struct err *err);
    /* What accounting lets this user do; released by the caller, empty on failure. */
    int (*accounting)(struct accounting *ret, struct err *err);
    /* How many jobs the controller holds, each task of an array one, ended ones until it forgets them: as far as this user
     * may see them. */
    int (*held)(uint64_t *ret, struct err *err);
};

/* Loads lib/recon/sched/NAME.so; CODE_UNAVAILABLE with the loader's reason. */
const struct sched_backend *sched_load(const char *name, struct err *err);
void sched_tasks_release(struct sched_tasks *t);
/* The environment to submit with: env without what an outer job left in it (SLURM_*, SLURMD_*, and SBATCH_*, which the
 * script says already); SLURM_CONF and what chooses a cluster stay. */
void sched_environment(char *const *env, struct strv *ret);

#endif
