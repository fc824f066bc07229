/* report/report.h - what a run came to: one reader over the run directory, many writers.
 *
 * Reads a run that is still being written. Memory: about 100 bytes a dataset and 8 a step's run.
 */
#ifndef RECON_REPORT_H
#define RECON_REPORT_H

#include "record/record.h"

enum state {
    STATE_WAITING, /* no attempt yet */
    STATE_DONE,    /* published and sizes match; or its program, started once per task, ended with status 0 */
    STATE_FAILED,
    STATE_REFUSED, /* the launcher said no before the program began */
    STATE_SKIPPED, /* a task had no time left for it */
    STATE_LOST,    /* an attempt without an end: lost or running */
    STATE_CANCELLED, /* its submission was called off before any attempt, or while it ran */
};
enum { STATES = STATE_CANCELLED + 1 };
extern const struct name state_names[]; /* "waiting" ... */

/* The outcome of a dataset: of the attempt that is done, else of the latest. Texts are the report's; NULL if none. */
struct report_dataset {
    enum state state;
    int exit;
    double wall_ms;
    uint64_t vertices, faces;
    uint32_t attempts;
    const char *reason; /* why it is not done */
    const char *rule;   /* the finding that stopped it */
    const char *node;
};
/* One step over all its runs; cuda:0 and cuda:1 count as cuda. */
struct report_step {
    char *name, *kernel, *device;
    struct {
        double *v;
        size_t n, cap;
    } wall;               /* ms of each run, sorted */
    double total_ms, device_ms, copy_ms;
    double share;         /* of all steps' time, 0..1 */
    double share_of_peak; /* highest; NaN unknown */
};
double report_median(const struct report_step *s);
/* Equal rule, level, scope and object. Alarms have object "" and level LEVEL_WARN. */
struct report_group {
    char *rule, *object, *text, *remedy; /* text and remedy of the first; remedy may be NULL */
    enum level level;
    enum scope scope;
    uint64_t count;
    struct strv nodes; /* where, at most 100 */
};
struct report_groups {
    struct report_group **v;
    size_t n, cap;
};
struct report {
    char *outputs;   /* folder of the published results */
    char time[32];
    struct run *run; /* for names */
    uint64_t n;
    struct report_dataset *datasets; /* n */
    uint64_t totals[STATES]; /* by state */
    uint64_t attempts, bad_nodes;
    struct {
        struct report_step *v;
        size_t n, cap;
    } steps;                         /* in order of first appearance */
    struct report_groups findings;   /* errors first, then by count */
    struct report_groups alarms;
    struct {
        struct { const char *rule; uint64_t count; } *v; /* rule "other": no finding said why */
        size_t n, cap;
    } failed_by;                     /* datasets failed or refused */
    struct submissions submissions;
    struct strv damaged;             /* what could not be read, and why; at most 20 */
    void *texts;                     /* internal */
};
/* CODE_USAGE when path is no run directory. A damaged events file is no failure: it stands in damaged. */
struct report *report_load(const char *path, struct err *err);
/* The same, and results count only when their files, read again, have the digests that were published, and when they are of
 * RUN's env.pin and pipeline.conf. tell: as of run_verify. */
struct report *report_load_verified(const char *path, run_verify_f *tell, void *arg, struct err *err);
void report_free(struct report *r);

/* The forms of a report; the table ends with name NULL. */
struct report_format {
    const char *name, *doc;
    int (*write)(const struct report *r, FILE *f, struct err *err);
};
extern const struct report_format report_formats[];
/* Writes to f; CODE_IO when a write fails or a name cannot be read. */
int report_write(const struct report *r, const struct report_format *format, FILE *f, struct err *err);

#endif
