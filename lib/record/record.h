/* record/record.h - what happened: findings, events, the run directory. Types, one writer, one tolerant reader.
 *
 * Formats: doc/format-events.md, doc/format-run.md, doc/schemas/ (JSON Schema). Every line is one JSON object with "v":1.
 * A reader takes unknown keys, skips unknown types, and tolerates a torn last line; a torn line in the middle is an error.
 */
#ifndef RECON_RECORD_H
#define RECON_RECORD_H

#include "base/base.h"

/* ---- findings -------------------------------------------------------------------------------------- */

enum level { LEVEL_NOTE, LEVEL_WARN, LEVEL_ERROR };
enum scope { SCOPE_NODE, SCOPE_JOB, SCOPE_DATA };
extern const struct name level_names[], scope_names[]; /* "note" ..., "node" ... */

/* One difference, judged (CHECKS.md). All texts owned; cause, remedy, hint may be NULL. */
struct finding {
    char *rule;          /* stable name: "lib-not-found" */
    enum level level;
    enum scope scope;
    char *object;        /* path, SONAME, GPU, variable, frame */
    char *text;          /* one line with the value found and the value wanted */
    char *cause, *remedy, *hint;
};
struct findings {
    struct finding *v;
    size_t n, cap;
    size_t not_checked; /* rules that had no input or failed */
    double ms;          /* time that judging took */
};
struct finding *findings_add(struct findings *l, const char *rule, enum level level, enum scope scope,
                             const char *object, const char *fmt, ...) PRINTF(6, 7); /* text; the rest is set by: */
void finding_explain(struct finding *f, const char *hint, const char *cause, const char *remedy); /* copies, NULL keeps */
size_t findings_count(const struct findings *l, enum level level);
/* The exit status: 0, 75 if any error has scope node, else 78 (job), else 65 (data). */
int findings_status(const struct findings *l);
void findings_release(struct findings *l);
/* One JSON line each, and the summary line last. */
void findings_json(const struct findings *l, struct str *ret);
/* A line of how one library resolves: {"type":"library"}. path, why, needed_by may be NULL (null in the line). */
struct library_line {
    const char *soname, *path, *why, *needed_by;
    bool optional; /* a module that the import of its package does without; told where it is true */
};
void library_json(const struct library_line *l, struct str *ret);
/* A line of what an object may open while it runs: {"type":"may-dlopen"}. names: alternatives, the best first. path NULL: found
 * nowhere. feature and priority: as the object's note has them, NULL none. */
struct may_dlopen_line {
    const struct strv *names;
    const char *path, *by, *feature, *priority;
};
void may_dlopen_json(const struct may_dlopen_line *l, struct str *ret);
/* For people: "error: lib-not-found: libx.so.1: text" with cause and remedy indented; notes only when verbose. */
void findings_text(const struct findings *l, bool verbose, bool colour, struct str *ret);

/* ---- events ---------------------------------------------------------------------------------------- */

/* One writer per attempt: appends whole lines through one descriptor with one write(2) each. A line that another writer
 * left torn (it was killed in the middle) is cut off first. Calls from several threads are safe. */
struct events;
/* path NULL: nowhere (all calls are then no-ops). O_CREAT | O_EXCL | O_APPEND; CODE_CREATE if it exists. */
struct events *events_create(const char *path, struct err *err);
/* A descriptor that the launcher passed on; owned. at_ms0: the clock_ms() at which the attempt began. The launcher gives
 * its child RECON_EVENTS_FD, the descriptor's number, and RECON_EVENTS_START, that time (the monotonic clock is one for
 * the host), so that a child calls events_from_fd(fd, start). */
struct events *events_from_fd(int fd, double at_ms0);
int events_fd(const struct events *e);                      /* to pass on: clears its O_CLOEXEC; -1: nowhere */
double events_now(const struct events *e);                  /* ms since the attempt began */
int events_close(struct events *e, struct err *err);        /* the first write error of its life shows here */

struct event_attempt {
    uint32_t sub, slot, attempt;
    const char *job;            /* "4711_17", NULL outside Slurm */
    const char *node;
    const struct strv *gpus;    /* UUIDs; may be NULL */
    const char *pin, *pipeline; /* digests; may be NULL */
};
struct event_dataset {
    uint64_t dataset;
    const char *status;         /* "done", "failed", "skipped" */
    int exit;                   /* status of this dataset: 0, 65, ... */
    double wall_ms;
    uint64_t vertices, faces;   /* of its mesh, 0 if none */
    const char *reason;         /* one line when not done */
};
struct event_step {
    uint64_t dataset;
    const char *name, *kernel, *device;
    double wall_ms, busy_ms, wait_ms, device_ms, copy_ms;
    uint64_t bytes, flops, items, peak_host, peak_device;
    double share_of_peak;       /* 0..1, NaN unknown */
};
struct event_output {
    uint64_t dataset;
    const char *path;           /* relative to the result's folder */
    uint64_t bytes;
    const char *digest;
};
struct event_end {
    const char *status;         /* "ok", "failed", "refused", "killed" */
    int exit, signal;
    uint64_t done, failed;
    double user_ms, sys_ms;
    uint64_t max_rss;           /* bytes */
};
void events_attempt(struct events *e, const struct event_attempt *a);
void events_finding(struct events *e, const struct finding *f);
void events_dataset(struct events *e, const struct event_dataset *d);
void events_step(struct events *e, const struct event_step *s);
void events_alarm(struct events *e, uint64_t dataset, const char *rule, const char *text);
void events_output(struct events *e, const struct event_output *o);
void events_end(struct events *e, const struct event_end *x);

/* The reader. One event of any type; texts live until events_read_free. */
enum event_type { EVENT_ATTEMPT = 1, EVENT_FINDING, EVENT_DATASET, EVENT_STEP, EVENT_ALARM, EVENT_OUTPUT, EVENT_END };
struct event {
    enum event_type type;
    double at_ms;
    const char *time; /* attempt only */
    union {
        struct event_attempt attempt;
        struct finding finding;
        struct event_dataset dataset;
        struct event_step step;
        struct { uint64_t dataset; const char *rule, *text; } alarm;
        struct event_output output;
        struct event_end end;
    };
};
struct events_read {
    struct event *v;
    size_t n, cap;
    bool torn;   /* the last line was cut */
    void *owner; /* internal */
};
int events_read(const char *path, struct events_read *ret, struct err *err);
void events_read_free(struct events_read *r);

/* ---- the run directory ----------------------------------------------------------------------------- */

struct dataset { /* one line of datasets.jsonl */
    char *name;               /* as given; bytes, not always UTF-8 (then "name_b64" in the file) */
    char *path;
    struct { char *key, *value; } *columns; /* the manifest's other columns, as text */
    size_t n_columns;
};
const char *dataset_column(const struct dataset *d, const char *key); /* NULL if absent */
/* The variable that a program which is run once a dataset finds a column in: "fuse.voxel" is RECON_COLUMN_FUSE_VOXEL. Owned. */
char *dataset_variable(const char *column);
void dataset_release(struct dataset *d);
/* The next {NAME} of an argument at or after s: its place and NAME, owned; NULL: none. */
const char *next_hole(const char *s, char **ret_name);
/* Reads a list as the user wrote it: one path a line; .tsv with a head line; .jsonl. Relative paths are relative to the
 * list. Names come from the column "name" or the base names, made unique by "-2", "-3". CODE_USAGE: missing or empty list,
 * no regular file, bad line (with its number). */
struct datasets {
    struct dataset *v;
    size_t n, cap;
};
int datasets_load(const char *list, struct datasets *ret, struct err *err);
void datasets_release(struct datasets *l);

struct run; /* an open run directory */
/* Creates RUN with its folders, datasets.jsonl and datasets.idx. CODE_CREATE if it exists or cannot be made. */
struct run *run_create(const char *path, const struct datasets *l, struct err *err);
struct run *run_open(const char *path, struct err *err); /* CODE_USAGE when it is no run directory, naming what lacks */
/* run_create and run_open keep an absolute path. */
void run_free(struct run *r);
const char *run_path(const struct run *r);
uint64_t run_count(const struct run *r);                                           /* datasets */
int run_dataset(const struct run *r, uint64_t i, struct dataset *ret, struct err *err); /* O(1) by the index */

/* The columns that any dataset has, each once. A run without the file datasets.columns: none. */
int run_columns(const struct run *r, struct strv *ret, struct err *err);
void datasets_columns(const struct datasets *l, struct strv *ret);

/* Submission n: slot -> datasets. per_task datasets a slot, the last may have fewer. */
struct submap {
    uint32_t slots, per_task;
    uint32_t *datasets; /* all, in order of slots; owned */
    uint64_t n;
};
int run_next_sub(const struct run *r);                                              /* smallest unused n */
/* True for the first who asks since the last submission, by an empty file .WHAT-N in the run directory; where that cannot be made, too. */
bool run_first(const struct run *r, const char *what);
int run_write_map(struct run *r, uint32_t sub, const struct submap *m, struct err *err);
int run_read_map(const struct run *r, uint32_t sub, struct submap *ret, struct err *err);
/* The datasets of one slot: *ret points into m. CODE_USAGE when slot is outside. */
int submap_slot(const struct submap *m, uint32_t slot, const uint32_t **ret, uint32_t *ret_n, struct err *err);
void submap_release(struct submap *m);
/* submit.jsonl: intent before each RPC, result after. */
int run_submit_intent(struct run *r, uint32_t sub, const char *backend, const char *name, uint64_t tasks, struct err *err);
int run_submit_result(struct run *r, uint32_t sub, const char *job_id, const char *error, struct err *err);
int run_submit_cancelled(struct run *r, uint32_t sub, struct err *err); /* somebody called it off */
struct submission { uint32_t sub; char *backend, *name, *job_id, *error; uint64_t tasks; bool cancelled; };
struct submissions { struct submission *v; size_t n, cap; };
int run_submissions(const struct run *r, struct submissions *ret, struct err *err);
void submissions_release(struct submissions *l);

/* events/<n>/<slot/1000>/<slot>.<attempt>.jsonl: the next free attempt from `attempt` on; folders are made.
 * The file is created (O_EXCL); *ret_attempt is the number taken. */
struct events *run_events(struct run *r, uint32_t sub, uint32_t slot, uint32_t attempt, uint32_t *ret_attempt,
                          struct err *err);
/* Calls back for every events file, in order of sub, slot, attempt. A callback's -1 ends the walk. */
typedef int run_event_f(void *arg, uint32_t sub, uint32_t slot, uint32_t attempt, const char *path, struct err *err);
int run_each_events(const struct run *r, run_event_f *call, void *arg, struct err *err);

/* A result is built in a private folder and published by one rename that fails if a result is there. */
struct result_file { char *path; uint64_t bytes; char digest[DIGEST_SIZE]; };
struct result { /* recon.json of a published result */
    uint64_t dataset;
    char *pin, *pipeline;          /* digests or NULL */
    uint32_t sub, slot, attempt;
    struct { struct result_file *v; size_t n, cap; } files;
};
/* out/<i/1000>/.<i>.<sub>.<slot>.<attempt>/ : fresh and empty (a leftover of the same name is removed). Owned text. */
char *run_work_dir(struct run *r, uint64_t dataset, uint32_t sub, uint32_t slot, uint32_t attempt, struct err *err);
/* Digests every file below work, writes recon.json, syncs, renames to out/<i/1000>/<i>, links out/by-name/NAME where the
 * name allows. *ret_taken: another attempt had published already; then work is removed and that is success. A folder
 * that is no whole result (recon.json, sizes) is replaced. */
int run_publish(struct run *r, const char *work, const struct dataset *d, struct result *result, bool *ret_taken,
                struct err *err);
int run_result(const struct run *r, uint64_t dataset, struct result *ret, struct err *err); /* CODE_NOTFOUND: none */
/* Damaged: recon.json or a file is missing or of another size (deep: or digest; files are read again), err says which.
 * Other: whole, and of another pin or pipeline (compared when not NULL). */
enum result_state { RESULT_NONE, RESULT_GOOD, RESULT_DAMAGED, RESULT_OTHER };
enum result_state run_judge(const struct run *r, uint64_t dataset, const char *pin, const char *pipeline, bool deep,
                            struct err *err);
/* All results, deep, by several threads. states: run_count enum result_state; skip (may be NULL): those not to look at,
 * left RESULT_NONE. tell (may be NULL) is called by the calling thread some times a second. */
typedef void run_verify_f(void *arg, uint64_t done, uint64_t total);
void run_verify(const struct run *r, const char *pin, const char *pipeline, const bool *skip, run_verify_f *tell,
                void *arg, unsigned char *states);
/* Done = published, and good. */
bool run_done(const struct run *r, uint64_t dataset, const char *pin, const char *pipeline, bool deep);
void result_release(struct result *r);
/* Takes a published result away (renamed first, so that it never looks half there): for one that is damaged or of another
 * pin. No result is success. */
int run_unpublish(struct run *r, uint64_t dataset, struct err *err);
/* Removes hidden folders in out/ that attempts or run_unpublish left when they were killed: those of which `live` says no
 * (sub -1: run_unpublish's). *ret_n: how many. What cannot be removed stays, without an error. */
typedef bool run_live_f(void *arg, uint64_t dataset, int64_t sub, uint32_t slot, uint32_t attempt);
void run_sweep(struct run *r, run_live_f *live, void *arg, uint64_t *ret_n);
/* By its events file: 1 it has an end, or nobody holds it open; 0 somebody does; -1 unknown. Only this host's and, where the
 * file system has locks for all hosts, theirs. ret_end (may be NULL): its end is recorded. */
int run_attempt_over(const struct run *r, uint32_t sub, uint32_t slot, uint32_t attempt, bool *ret_end);
/* Removes what older attempts at one dataset left, where it is certain without asking anybody that they are over: the end is
 * recorded, or it ran on this very node and nobody here holds its events file (what locks are worth between hosts does not
 * matter then). For the next attempt; the rest is run_sweep's. node NULL: this one, as the launcher names it. */
void run_sweep_dead(struct run *r, uint64_t dataset, const char *node);

/* How a run ended, as the one line of RUN/summary.json. exit: 0, or the status of the first dataset that is not done. */
struct run_summary {
    const char *name;
    int exit;
    uint64_t datasets, done, failed, skipped;
    struct strv bad_nodes;
};
void run_summary_json(const struct run *r, const struct run_summary *s, struct str *ret);

int run_bad_node(struct run *r, const char *node, const struct finding *f, struct err *err); /* bad-nodes.jsonl */
int run_bad_nodes(const struct run *r, struct strv *ret, struct err *err);                   /* unique names */
/* A finding of scope job that stopped a task: written into the same file, as a line of type job-finding. */
int run_job_finding(struct run *r, const char *node, const struct finding *f, struct err *err);
/* The first rule and object of such findings on which two nodes agree, "RULE: OBJECT"; owned, NULL: none. */
char *run_agreed(const struct run *r);

#endif
