/* pipe/pipe.h - a reconstruction as data: kernel modules, pipelines, plans, runs with timing.
 *
 *   modules_load   every *.so of a kernel folder, judged by recon/kernel.h
 *   pipeline_load  a file of steps (doc/format-pipeline.md)
 *   plan_make      steps bound to kernels, parameters parsed, slots matched by name and type, last uses known
 *   runner_run     the steps, one after the other; copies between host and device put in and timed on their own
 *   task_run       all datasets of one array slot of a run directory
 *
 * Nothing here knows a kernel by its name. Errors: CODE_USAGE for what the user wrote (with file and line),
 * CODE_JOB for another ABI or a kernel that no module has, CODE_NODE for a device that is not there, else the
 * kernel's own code.
 */
#ifndef RECON_PIPE_H
#define RECON_PIPE_H

#include "base/base.h"
#include "conf/conf.h"
#include "record/record.h"
#include "recon/kernel.h"

/* ---- modules --------------------------------------------------------------------------------------- */

struct module {
    char *name;                    /* of its file: "cpu" of cpu.so */
    char *path;
    const struct recon_module *m;  /* NULL: it cannot be used */
    char *why;                     /* the reason then */
};
struct modules {
    struct module *v;              /* in order of their names */
    size_t n, cap;
    char *dir;
};
/* Opens every *.so of dir (NULL: lib/recon beside this program). A module that does not load (a library that is not
 * here) stays with its reason; another ABI is CODE_JOB with both numbers; a folder that others may write is CODE_PERM.
 * The objects stay open until the process ends. */
int modules_load(const char *dir, struct modules *ret, struct err *err);
void modules_release(struct modules *m);
const struct module *modules_named(const struct modules *m, const char *name); /* NULL: none */
/* The kernel of this name: of `first` if it has it (may be NULL), else of "cpu", else of any other module without a
 * device that is not "ref". NULL: none. */
const struct recon_kernel *modules_kernel(const struct modules *m, const struct module *first, const char *name,
                                          const struct module **ret_module);

/* Where steps run. */
struct device {
    const struct module *module; /* whose kernels are taken first */
    int index;                   /* of the module's device, -1 on the host */
    char name[48];               /* "cpu", "ref", "cuda:0" */
};
/* "auto", or a module's name with ":N" for a module that has devices. auto: the first module that has one here,
 * else "cpu". */
int device_choose(const struct modules *m, const char *spec, struct device *ret, struct err *err);

/* ---- pipelines ------------------------------------------------------------------------------------- */

struct step {
    char *name, *kernel;
    struct conf_map in, out;  /* port = slot */
    struct conf_map params;
    struct conf_map origins;  /* of the parameters that pipeline_set laid over the file */
    int line;
};
struct pipeline {
    int64_t version;
    char *name, *doc;
    struct {
        struct step *v;
        size_t n, cap;
    } steps;
    char *path; /* for messages */
};
extern const struct conf_row pipeline_rows[];
/* A path, or a name without a slash: share/recon/pipelines/NAME.conf. Owned text; not checked for existence. */
char *pipeline_path(const char *name);
int pipeline_load(const char *path, struct pipeline *ret, struct err *err);
void pipeline_release(struct pipeline *p);
/* Sets "step.param" over what the file says; origin ("job.conf:3", "--set 'fuse.voxel'", "column 'fuse.voxel'") begins the
 * messages about it, here and in plan_make. */
int pipeline_set(struct pipeline *p, const char *key, const char *value, const char *origin, struct err *err);
/* The same with the origin "WHAT 'step.param'": for --set and for a column. */
int pipeline_set_as(struct pipeline *p, const char *key, const char *value, const char *what, struct err *err);
int pipeline_set_all(struct pipeline *p, const struct conf_map *values, const char *what, struct err *err);

/* ---- plans ----------------------------------------------------------------------------------------- */

struct plan_slot {
    char *name;
    enum recon_slot type;
    int producer, last_use; /* steps; last_use == producer when nobody takes it */
};
struct plan_step {
    char *name;
    const struct recon_kernel *kernel;
    const struct module *module;
    bool on_device;             /* the module's device, not the host */
    uint32_t n_in, n_out, n_params;
    int *in, *out;              /* slots in the order of the ports, -1: an optional input that is absent */
    struct recon_value *values; /* in the order of the kernel's parameters; texts and vectors owned */
    struct plan_step *host;     /* the same step by the module 'cpu', for what the device's has no form of; NULL: there is none */
};
struct plan {
    struct {
        struct plan_step *v;
        size_t n, cap;
    } steps;
    struct {
        struct plan_slot *v;
        size_t n, cap;
    } slots;
};
int plan_make(const struct pipeline *p, const struct modules *m, const struct device *d, struct plan *ret,
              struct err *err);
void plan_release(struct plan *p);

/* One parameter from text. kind: how it stood in the file; CONF_KIND_TEXT with loose: from a command line, any type.
 * On failure why says what is wrong, without naming the parameter. */
int value_parse(const struct recon_param *row, const char *text, enum conf_kind kind, bool loose,
                struct recon_value *ret, struct err *why);
void value_release(const struct recon_param *row, struct recon_value *v);
uint32_t ports_count(const struct recon_port *p);
uint32_t params_count(const struct recon_param *p);
extern const struct name slot_names[]; /* "frames" ... of enum recon_slot */

/* ---- runs ------------------------------------------------------------------------------------------ */

struct run_step {
    const struct plan_step *plan;
    struct recon_cost cost;      /* counts after the run */
    double wall_ms, busy_ms, wait_ms, device_ms, copy_ms;
    uint64_t peak_host, peak_device;
    double share_of_peak;        /* NaN: unknown */
};
struct run_report {
    struct {
        struct run_step *v;
        size_t n, cap;
    } steps;                     /* those that ended well */
    struct strv outputs;         /* absolute paths of the files written */
    double wall_ms;
    uint64_t vertices, faces;    /* of the last mesh */
    uint64_t warnings;
    uint64_t leaked_host;        /* bytes that kernels asked for and did not hand over or free; 0 is right */
};
void run_report_release(struct run_report *r);

struct run_args {
    const char *dataset;         /* may be NULL */
    const char *out;             /* existing folder */
    uint64_t index;              /* of the dataset, for events */
    struct events *events;       /* may be NULL */
    double deadline_ms;          /* of each step, 0: none */
    void (*tell)(void *arg, enum level level, const char *text); /* warnings and notes for people; may be NULL */
    void *arg;
};
/* Holds the device open over several runs. */
struct runner;
struct runner *runner_new(const struct device *d, int threads, struct err *err);
void runner_free(struct runner *r);
/* The steps of one dataset. The report holds what was done, also after a failure; release it always. */
int runner_run(struct runner *r, const struct plan *p, const struct run_args *args, struct run_report *ret,
               struct err *err);
/* Asks for an end, from a signal handler: the step under way fails with code 128 + signal. 0 takes it back. */
void runner_cancel(int signal);
int runner_cancelled(void);
int threads_available(void); /* by the affinity mask */

/* Memory and time of each step by its bound(), before anything runs. Sources of frames are opened. */
struct estimate_step {
    const struct plan_step *plan;
    bool known;                  /* false: depends on data that only a run makes */
    struct recon_cost cost;
    double ms;                   /* NaN: unknown */
};
struct estimate {
    struct {
        struct estimate_step *v;
        size_t n, cap;
    } steps;
    uint64_t peak_host, peak_device; /* largest step with the slots that live meanwhile */
};
int runner_estimate(struct runner *r, const struct plan *p, const struct run_args *args, struct estimate *ret,
                    struct err *err);
void estimate_release(struct estimate *e);
/* One kernel's self-test in this process. */
int runner_selftest(struct runner *r, const struct recon_kernel *k, const struct module *m, const char *scratch,
                    struct err *err);

/* ---- outputs --------------------------------------------------------------------------------------- */

/* A folder that appears whole or not at all: steps write into work; publish renames it to path, or, where path is a
 * folder already, each file into it. */
struct outdir {
    char *path, *work;
    bool existed;
    int lock; /* on work as long as it is being written; it tells a later run that this process is alive */
};
/* CODE_CREATE. Folders that killed processes of this host left for the same path are removed first: those of this boot,
 * by their names, that nobody holds a lock on. */
int outdir_begin(const char *path, struct outdir *ret, struct err *err);
int outdir_publish(struct outdir *o, struct err *err);                   /* and releases */
void outdir_abort(struct outdir *o);                                     /* removes work; safe on {0} */

/* ---- a task of a run directory ---------------------------------------------------------------------- */

struct task {
    const char *run;             /* the folder */
    uint32_t sub, slot, attempt;
    const struct modules *modules;
    const struct device *device;
    const struct conf_map *set;  /* "step.param" = value for all datasets; may be NULL */
    int threads;
    double deadline_ms;          /* of a step */
    double ends_at;              /* unix seconds when the task's time is up, 0: unknown */
    struct events *events;       /* may be NULL */
    void (*tell)(void *arg, enum level level, const char *text);
    void *arg;
    uint64_t done, failed, skipped; /* filled */
};
/* 0: every dataset of the slot is published. Else the code of the first failure (a signal's and a node's first). */
int task_run(struct task *t, struct err *err);

/* ---- words ----------------------------------------------------------------------------------------- */

void tell_kernels(const struct modules *m, bool json, FILE *f);             /* --list */
int tell_kernel(const struct modules *m, const char *name, bool json, FILE *f, struct err *err); /* --describe */
void tell_report(const struct run_report *r, size_t n, FILE *f);            /* n repeats: medians */
char *report_json(const struct pipeline *p, const struct device *d, const struct run_report *r, size_t n); /* owned */
void tell_estimate(const struct estimate *e, FILE *f);
char *estimate_json(const struct pipeline *p, const struct device *d, const struct estimate *e); /* owned */

#endif
