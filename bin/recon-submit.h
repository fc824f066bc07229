/* What recon-submit's files share: the command line, and the order that becomes a run and its submissions. */
#ifndef BIN_RECON_SUBMIT_H
#define BIN_RECON_SUBMIT_H

#include "cli.h"
#include "job/job.h"
#include "record/record.h"
#include "sched/sched.h"

struct options {
    const char *job_conf, *datasets, *run_dir, *wrap_script;
    const char *resume, *cancel, *watch_run; /* RUN */
    struct strv program;                     /* what stands after "--" */
    struct conf_map sbatch;                  /* sbatch's options */
    struct strv set;
    int64_t at_a_time;                       /* --local=N, 0: the backend's default */
    const char *hold_run;                    /* RUN */
    bool closing;                            /* --resume by the run itself: only what is worth another try */
    bool local, dry_run, test_only, parsable, show_config, watch, redo;
    struct err err;                          /* of the first bad option */
};
int options_parse(int argc, char **argv, struct options *o); /* 0, or the exit status after words on stderr */
void options_release(struct options *o);

/* How a dataset is known to be done. */
enum done_by { DONE_BY_RESULT, DONE_BY_EVENT, DONE_BY_TASK }; /* published; a dataset event; its task's end */

struct order {
    const struct options *o;
    struct spec spec;
    struct datasets datasets;      /* empty when an old run is resumed */
    struct pin pin;
    bool pin_changed;              /* not the bytes of spec.pin */
    struct strv argv;              /* what the launcher starts */
    char *cwd, *path, *hex;        /* path: of the run directory */
    char *pipeline;                /* its file; NULL: a program */
    struct str pipeline_text;      /* as it goes into the run */
    struct wrapped wrapped;        /* the user's script; empty: none */
    char *template_path;
    struct str template_text;
    char *exclude;
    enum done_by done_by;
    bool *damaged;                 /* by dataset: its published result was, at --resume */
    uint64_t n_damaged;
    uint32_t *todo;                /* datasets to submit, in order */
    uint64_t n_todo, n_under_way;  /* n_under_way: at --resume, queued or running */
    uint32_t per_task, slots_max;
    uint64_t slots_total;          /* that the cluster takes now, 0: no bound known */
    char *bound;                   /* what slots_total comes from, in words */
    uint32_t slots_now;            /* of the next part, 0: slots_max */
    struct accounting accounting;  /* what Slurm's accounting lets the user do */
    uint64_t n_sent;               /* of todo */
    const struct sched_backend *backend;
    struct strv env;
    struct run *run;
    int lock;
    bool offline;                  /* the controller did not answer: --dry-run goes by slurm.conf */
    bool made;                     /* the run directory is new and nothing was submitted from it */
};

/* submit_order.c: what is wanted, before anything is written */
int order_read(struct order *x, struct err *err);     /* spec, datasets, template */
int order_settle(struct order *x, struct err *err);   /* device, program or pipeline, pin */
#define WRAPPED_COPY "wrapped.sh" /* in the run directory: the user's script as it runs */
int order_script(struct order *x, const char *path, struct err *err); /* x->wrapped and argv, from the script or its copy */
void order_release(struct order *x);
int order_find_done_by(struct order *x, const struct strv *columns, struct err *err); /* by the program's placeholders */

/* submit_run.c: the run directory and what goes into it */
void order_name(struct order *x);                      /* path and hex, once */
int run_begin(struct order *x, struct err *err);      /* makes it, locks it, puts in spec, pin, pipeline */
int run_lock(struct order *x, struct err *err);
void run_undo(struct order *x, const char *why);      /* removes a run from which nothing was submitted */
/* A submission: datasets [from, from + n) of todo. Renders the script; with write also map and script in RUN. */
struct part {
    uint32_t sub, slots;
    uint64_t from, n;
    char *name, *script_path;
    struct str script;
    char *job_id;
};
int part_make(struct order *x, struct part *p, uint32_t sub, uint64_t from, const char *after, struct err *err);
int part_write(struct order *x, struct part *p, struct err *err);
void part_release(struct part *p);

/* submit_send.c: the backend and the talk with it */
int send_choose(struct order *x, struct err *err);    /* backend, slots_max, per_task */
int send_part(struct order *x, struct part *p, struct err *err);
int send_dry_run(struct order *x, struct err *err);   /* --dry-run and --test-only */
int cancel_run(const struct options *o, struct err *err);

int send_tasks(const struct run *run, const struct submission *s, const char *job_id, struct sched_tasks *ret,
               struct err *err);              /* what the backend knows of a submission's tasks */

/* submit_preflight.c: findings shown; -1 when one is an error. Nodes that saved facts rule out go to x->exclude. */
int preflight_run(struct order *x, struct err *err);
/* The script that is to run, and a captured pin, against this very shell: shown; CODE_JOB where no node could make it good. */
int judge_here(const struct order *x, bool captured, struct err *err);
const char *preflight_conf_path(void); /* a slurm.conf that can be read, NULL */

/* submit_state.c: what became of the datasets, by events and results */
struct state {
    uint64_t n;
    unsigned char *status;         /* by dataset: STATE_* */
    int *exit;                     /* of the last attempt at it, 0 unknown */
    uint32_t *unfit;               /* attempts that ended because the node was unfit */
    bool *again;                   /* the last attempt left it open for a reason of the node or of time */
    uint32_t *tries;               /* submissions that hold it */
    bool *unseen;                  /* the last of them wrote nothing of it: the launcher never ran */
    struct strv nodes;             /* on which launchers ran */
    uint64_t done, failed, skipped;
};
enum { STATE_OPEN, STATE_DONE, STATE_FAILED, STATE_SKIPPED };
/* deep: published results count, not events alone (slower). */
int state_read(const struct run *r, enum done_by by, const char *pin, const char *pipeline, bool deep,
               struct state *ret, struct err *err);
void state_release(struct state *s);

/* submit_wait.c */
int wait_local(struct order *x, const struct part *p, struct err *err); /* exit status */
int wait_watch(struct order *x, struct err *err);                       /* exit status */
int end_state(const struct order *x, double ms, struct state *ret, struct err *err); /* told in one line */

/* submit_container.c: the image is there and is what was pinned; digest and folders settled. */
int container_settle(struct order *x, struct err *err);
void container_binds(struct order *x, const char *chdir, struct strv *ret); /* what has to be seen inside */

/* submit_end.c: writes RUN/summary.json and runs the hooks, once. The run's exit status, or -1. */
int run_ended(const struct order *x, const struct state *s, struct err *err);

/* submit_closing.c: the run ends by itself */
int submit_parts(struct order *x, struct strv *ids, struct part *last, struct err *err); /* ids: of what was sent */
int closing_again(const char *run, uint64_t *ret_sent, struct err *err); /* what the closing job does, here and now */
int hold_agreed(const char *run, struct err *err);                       /* two nodes agree that none can do it */

/* submit_repair.c: --resume puts right what was published, and clears up */
struct under_way {                 /* what Slurm says of the tasks */
    bool *busy;                    /* by dataset: queued or running */
    bool *over;                    /* by dataset: the last task that had it is known to have ended on a node, or its whole
                                    * job is known no more; else it waits, runs, was cancelled, or ended long ago */
    char **node, **reason;         /* by dataset: where that task was and Slurm's word on it, or NULL */
    uint64_t n_datasets;
    struct under_way_slot { uint32_t sub, slot; } *v; /* queued or running */
    size_t n, cap;
};
void under_way_init(struct under_way *u, uint64_t datasets);
void under_way_add(struct under_way *u, uint32_t sub, uint32_t slot);
int under_way_ask(struct order *x, const struct submissions *l, struct under_way *u, struct err *err);
void under_way_release(struct under_way *u);
int repair_changed(struct order *x, const char *pin, const char *pipeline, struct err *err); /* refused unless o->redo */
int repair_damaged(struct order *x, const struct under_way *u, struct err *err); /* sets x->damaged */
void repair_sweep(struct order *x, struct under_way *u, const struct submissions *subs);

/* submit_resume.c */
int order_resume(struct order *x, struct err *err);
char *run_digest(const char *run, const char *name); /* of RUN/name, owned; NULL: not there */

#endif
