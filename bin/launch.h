/* launch.h - the parts of recon-launch: what it knows, and its steps in files of their own.
 *
 * launch_gpu.c    which GPUs are this task's; the CPUs near them
 * launch_judge.c  resolve and check in a forked child under a deadline: findings
 * launch_keep.c   a program run as a child: signals, grace, terminal, what it leaves behind
 * launch_left.c   the descendants of this process, by /proc
 * launch_record.c the attempt's events: opened, begun, ended
 * launch_slot.c   a program run once for each dataset of the task
 * launch_verdict.c what the findings mean: recorded, shown, refused
 */
#ifndef RECON_LAUNCH_H
#define RECON_LAUNCH_H

#include <signal.h>
#include "base/base.h"
#include "check/check.h"
#include "node/node.h"
#include "pin/pin.h"
#include "record/record.h"

/* ---- a program as a child -------------------------------------------------------------------------------------- */

struct keeper {
    sigset_t taken;     /* signals that are waited for instead of being delivered */
    sigset_t received;  /* the mask as this process got it; programs get it back */
    double grace_ms;    /* from the first TERM or INT until KILL */
    int told;           /* the TERM or INT that ended, or will end, the task; 0 none */
    double kill_at;     /* clock_ms() when the grace is over; 0: no one told */
    bool shared;        /* the program stays in our process group, since a terminal's foreground is ours */
    pid_t *others;      /* children that were there before the program and are not its own; ends with 0 */
};
struct ended {
    int status;         /* what the launcher passes on: the program's, 128 + signal */
    int signal;         /* that ended it, 0 none */
    double wall_ms, user_ms, sys_ms;
    uint64_t max_rss;   /* bytes */
    struct strv left;   /* "sleep (4711)": alive after the end, killed since */
};

/* From here on signals wait until a program runs, and orphans of its tree become this process' children. */
void keeper_init(struct keeper *k, double grace_ms);
void keeper_release(struct keeper *k);
/* The TERM or INT that came so far, also one that still waits; 0 none. */
int keeper_told(struct keeper *k);
/* Runs the program at path, in a process group of its own unless a terminal is shared with it, until it and all that it started are gone; hands signals on.
 * -1: it could not be executed (CODE_NOTFOUND, CODE_NOEXEC). ended_release(ret) either way. */
int keeper_run(struct keeper *k, const char *path, char *const *argv, char *const *env, struct ended *ret,
               struct err *err);
/* Becomes the program; returns only on failure, -1. */
int keeper_exec(struct keeper *k, const char *path, char *const *argv, char *const *env, struct err *err);
void ended_release(struct ended *e);
/* One line for a person: "exit status 3", "signal 9 (Killed)"; owned. */
char *ended_words(const struct ended *e);

/* Living descendants of this process but those of `others` (ended by 0, may be NULL). */
struct process {
    pid_t pid, parent;
    char state, name[20];
};
struct processes {
    struct process *v;
    size_t n, cap;
};
void descendants(const pid_t *others, struct processes *ret);
void processes_release(struct processes *p);

/* ---- the launcher ---------------------------------------------------------------------------------------------- */

struct launch {
    /* as asked */
    const char *pin_path, *run_path;
    const char *save_facts, *host_facts; /* a folder, outside of a container; a file, inside */
    uint32_t sub, slot;
    bool check_only, exec, no_bind, jsonl, verbose;
    bool each; /* PROGRAM runs once for each dataset: asked, or found by its arguments */
    struct strv skip;
    double grace_ms;
    char **argv; /* PROGRAM ARG... NULL; argv[0] NULL with check_only alone */

    /* as found */
    double began;
    struct run *run; /* NULL without --run */
    struct submap map;
    const uint32_t *datasets; /* of the slot */
    uint32_t n_datasets, attempt;
    struct strv all_columns; /* of the run's datasets */
    struct strv columns; /* of the run's datasets, that arguments ask for */
    struct events *events; /* nowhere without --run */
    int events_fd;         /* its descriptor as the program gets it, -1 none */
    struct pin pin;
    const struct pin *body; /* of the pin: the one that is taken here */
    struct facts facts;
    char *node, *job;
    struct strv env; /* that the program gets */
    struct findings findings;
    struct keeper keeper;
    /* totals for the `end` event */
    double user_ms, sys_ms;
    uint64_t max_rss;
};

/* How the datasets of the slot ended. */
struct slot_sum {
    int status; /* the task's: 0, the first failing dataset's, 124 when only time was short, 128 + signal */
    uint64_t done, failed, skipped;
};

/* Node and job in Slurm's words. */
void record_place(struct launch *l);
/* The run directory, the slot's datasets, the attempt's events file; nowhere without --run. */
int record_open(struct launch *l, struct err *err);
/* The first line; facts and pin may be empty. */
void record_attempt(struct launch *l);
/* The last line. Gives the exit status: end->exit, 74 when what should say "ok" could not be written. */
int record_end(struct launch *l, const struct event_end *end);
/* Counts the dataset events that the program wrote itself; one that wrote none did all of the slot's or none. */
void record_count(const struct launch *l, int status, struct slot_sum *ret);

/* The indices into facts->gpus of this task's GPUs, by CUDA_VISIBLE_DEVICES, SLURM_STEP_GPUS or SLURM_JOB_GPUS of env;
 * all of them outside Slurm. */
struct gpu_list {
    size_t *v;
    size_t n, cap;
};
void gpus_of_task(const struct facts *f, char *const *env, struct gpu_list *ret);
/* Confines this process to the CPUs near those GPUs, within what it may use: only when at least `wanted` remain.
 * Gives the number of CPUs it is confined to, 0: left as it was. */
int bind_near(const struct facts *f, const struct gpu_list *gpus, int wanted);

/* This body of the pin is taken: its variables, its program where argv names that of another body. */
void launch_take(struct launch *l, size_t body);
/* Looks at the node and takes the body of l's pin, which has variants, that fits best; findings say why. */
void launch_choose(struct launch *l);
/* Fills l->findings and takes the body that fits. Whatever goes wrong here is a not-checked note: recon fails open. */
void launch_judge(struct launch *l);
/* Judges unless RECON_CHECK says off, records and shows the findings. 0: the program may run; else the exit status. */
int launch_verdict(struct launch *l);

/* PROGRAM's file by PATH of the environment it gets (absolute folders only), owned; NULL: CODE_NOTFOUND, CODE_NOEXEC. */
char *launch_program(const struct launch *l, struct err *err);
/* Adds what a program used and left behind to the record. */
void launch_account(struct launch *l, const struct ended *e);

/* --task-prolog; always 0. */
int task_prolog(struct launch *l);

/* Is a placeholder ({dataset}, {out}, a {column} of the run's datasets) in the arguments? Sets l->each, l->columns. */
int slot_wanted(struct launch *l, struct err *err);
/* PROGRAM once for each dataset of the slot: results published, dataset events written. */
void slot_run(struct launch *l, const char *path, struct slot_sum *ret);

#endif
