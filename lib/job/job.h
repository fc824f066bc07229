/* job/job.h - what the user wants (spec) and the script that is submitted, the only statement of the request.
 *
 * Formats: doc/format-job.md, doc/format-script.md.
 * Layers, each over the one before: /etc/recon/recon.conf, ~/.config/recon/recon.conf, ./recon.conf, job.conf, sbatch's
 * own SBATCH_* variables, RECON_* variables, --set and the command line. Groups merge, the rest is replaced.
 */
#ifndef RECON_JOB_H
#define RECON_JOB_H

#include "base/base.h"
#include "conf/conf.h"
#include "pin/pin.h"

/* ---- sbatch's options ------------------------------------------------------------------------------ */

enum option_arg { ARG_NONE, ARG_NEEDED, ARG_MAYBE };
#define OPTION_OURS 1u     /* recon writes it itself; asking for it is refused with the reason in `why` */
#define OPTION_REFUSED 2u  /* would break the split into tasks, or means nothing here; `why` says it */
#define OPTION_PATH 4u     /* a path: always quoted in the script */
#define OPTION_TASKFILE 8u /* an output pattern: has to hold %a, %j or %J, so that tasks do not share a file */

/* One of sbatch's long options. The order of the table is the order in the script. What becomes of it in a job_desc is
 * the libslurm backend's own table (lib/sched/slurm_map.c), by the same names. */
struct sbatch_option {
    const char *name;                /* long spelling; NULL ends the table */
    char letter;                     /* short spelling, 0: none */
    enum option_arg arg;
    unsigned flags;                  /* OPTION_* */
    int (*check)(const char *value); /* 0 when the value has the right form; NULL: any */
    const char *form;                /* the right form in words, for the message and the help */
    const char *env;                 /* SBATCH_* variable with the same meaning, NULL: none */
    const char *why;                 /* why it is ours or refused */
};
extern const struct sbatch_option sbatch_options[];
const struct sbatch_option *sbatch_option_find(const char *name); /* aliases too; NULL */
/* Refused, ours, unknown (with the nearest name), or a value of the wrong form: CODE_USAGE. value NULL: none given. */
int sbatch_option_check(const char *name, const char *value, struct err *err);
/* "[D-]H:M:S", "M", "M:S", "D-H[:M]" (sbatch's spellings) or UNLIMITED to seconds; -1 unlimited. 0 or -1. */
int slurm_time(const char *text, int64_t *ret_seconds);
/* "32G", "1024" (MiB) ... to MiB. 0 or -1. */
int slurm_mib(const char *text, uint64_t *ret);

/* ---- spec ------------------------------------------------------------------------------------------ */

enum spec_device { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };
extern const struct name device_names[];
enum via { VIA_AUTO, VIA_API, VIA_SBATCH, VIA_NOBODY };
extern const struct name via_names[];

enum container_kind { CONTAINER_NONE, CONTAINER_APPTAINER, CONTAINER_PYXIS, CONTAINER_COMMAND };
extern const struct name container_names[];
struct spec_container {
    int kind;                  /* enum container_kind, -1 when it is not said */
    char *image;               /* a file or folder, absolute once loaded, or a registry's reference */
    char *digest;              /* "sha256:<64 hex>" of a file; settled at submission, held against it afterwards */
    struct strv command;       /* kind "command": argv with {image}; else the program to call, NULL: by its name */
    struct strv options;       /* more options for the runtime */
    struct strv bind;          /* folders to show besides the run's own, SRC or SRC:DST */
};

struct spec { /* texts owned; paths absolute once loaded */
    char *name, *datasets, *pipeline;
    struct strv program;       /* argv; or a pipeline */
    struct strv script;        /* an sbatch script of the user's and its arguments; or one of the above */
    int device;                /* enum spec_device */
    char *pin, *template;      /* NULL: captured now, "default" */
    struct conf_map params;    /* "step.parameter" */
    struct conf_map params_from; /* where each of them was said last: "job.conf:3", "--set 'params.fuse.voxel=0.01'" */
    struct conf_map sbatch;    /* by long names; a flag is "true" with kind bool */
    struct strv env;           /* NAME: captured as well; NAME=VALUE: set */
    int64_t max_running;       /* tasks at once over the whole run, 0: no bound */
    int64_t max_tasks;         /* array slots of one submission, 0: what the cluster takes */
    int64_t datasets_per_task; /* 0: as few as fit */
    struct {
        int64_t node_unfit; /* submissions of a dataset after the first, by the run itself */
        bool closing;       /* by a job of its own that waits for the others */
        char *partition;    /* where that job runs; NULL: where the tasks do */
    } retry;
    struct { int via; } submit; /* enum via */
    struct {
        struct strv command;   /* argv, run when the run has ended */
        char *mail, *mailer;   /* address; the program that sends, NULL: Slurm mails when the closing job ends */
    } on_end;
    struct spec_container container;
    char *facts;               /* folder of saved *.facts of the nodes; NULL: none */
    struct conf_map architectures; /* GRES type or feature -> compute capability: "a100" -> "8.0" */
    struct conf_ints trusted_owners; /* uids whose pins, templates and pipelines are taken */
};
extern const struct conf_row spec_rows[];

struct spec_source {
    const char *file;               /* job.conf, NULL: none */
    char *const *env;               /* for HOME, SBATCH_* and RECON_* */
    const struct strv *set;         /* "key=value" of --set; may be NULL */
    const struct conf_map *options; /* sbatch's options from the command line; may be NULL */
    const struct strv *script;      /* of --wrap-script: the script and its arguments; may be NULL */
    const char *root;               /* before /etc, for tests; NULL: "" */
    bool alone;                     /* file holds all layers already (RUN/job.conf): only set and options over it */
};
/* Reads and merges the layers. An unknown key, a wrong type, a bad or refused sbatch option: CODE_USAGE with
 * "FILE:LINE: ". ignored (may be NULL) gets the SBATCH_* variables that are set but not taken, each with the reason. */
int spec_load(const struct spec_source *s, struct spec *ret, struct strv *ignored, struct err *err);
/* The rules over the whole: name, datasets, exactly one of pipeline and program, ranges. */
int spec_check(const struct spec *s, struct err *err);
void spec_show(const struct spec *s, struct str *ret); /* as a job.conf that says the same */
void spec_release(struct spec *s);
bool spec_asks_gpu(const struct spec *s);
/* The file of a pipeline or a template: a path, or a name looked up at the project (dir), the user's, the site's and
 * the shipped ones ("share/recon/KIND"). CODE_USAGE, naming where it was looked for. Owned by the caller. */
struct spec_place { const char *dir, *home, *root; }; /* dir/KIND, home/.config/recon/KIND, root/etc/recon/KIND */
char *spec_find(const struct spec_place *p, const char *kind, const char *name, const char *suffix, struct err *err);
/* uids of trusted_owners ended by -1, for file_trusted; owned by the caller. */
uid_t *spec_trusted(const struct spec *s);

/* A name for a run from a program's or a job's: the last part of a path; what a name may not hold becomes '-'. Owned. */
char *spec_name_of(const char *text);

/* ---- the script ------------------------------------------------------------------------------------ */

struct directive {
    const struct sbatch_option *option;
    char *value; /* NULL: a flag, or an optional value left out */
    int line;    /* where it was read, 0: it was not */
};
struct directives {
    struct directive *v;
    size_t n, cap;
};
const struct directive *directives_find(const struct directives *d, const char *name); /* NULL */
const char *directives_get(const struct directives *d, const char *name);              /* value or NULL */
void directives_release(struct directives *d);
/* Reads the #SBATCH lines of a script as sbatch does (quotes, backslashes, comments, up to the first command), in the
 * table's names. CODE_USAGE "NAME:LINE: ...". */
int directives_parse(const char *script, const char *name, struct directives *ret, struct err *err);

/* A script of the user's own, written for sbatch. Its directives are read as sbatch reads them and become a layer of the
 * spec, over the files that were read before and under SBATCH_*; its text is data and runs once a dataset. */
struct wrapped {
    struct str text;            /* whole, DOS line ends left out */
    struct strv interpreter;    /* of its first line: a path, perhaps one argument */
    struct directives directives; /* all of them options that a spec takes */
    char *job_name;             /* its --job-name; NULL */
    struct strv notes;          /* what a person should know, each with file and line */
};
/* CODE_USAGE with "FILE:LINE: ": a late directive, an option that breaks the split or is unknown, a value of the wrong form;
 * no first line with #!. Otherwise as file_read. */
int wrapped_load(const char *path, struct wrapped *ret, struct err *err);
void wrapped_release(struct wrapped *w);
bool text_drop_returns(struct str *t); /* "\r\n" to "\n"; whether there was one */

struct script {
    const struct spec *spec;
    const struct pin *pin;     /* its variables are exported */
    const char *run;           /* run directory, absolute */
    uint32_t sub, slots;
    const char *job_name;      /* NAME-<8 hex>.<sub> */
    const char *chdir;         /* where tasks start, absolute; the spec's own is settled in it */
    const char *exclude;       /* nodes to keep away from besides the spec's, NULL: none */
    const char *umask;         /* "0027" */
    const char *launcher;      /* path of recon-launch */
    const struct strv *argv;   /* what the launcher starts: the runner with its options, or the user's program */
    bool each;                 /* once a dataset, whatever its arguments hold */
    const struct strv *binds;  /* folders that a container has to show; NULL without one */
    const char *template_text, *template_name;
};
/* Where the launcher runs: argv that stands before it, empty without a container. binds: folders that it needs. */
void container_argv(const struct spec_container *c, const struct strv *binds, struct strv *ret);
/* A reference of a registry that names no digest: what runs may change from one task to the next. */
bool container_unpinned(const struct spec_container *c);
bool container_is_file(const struct spec_container *c); /* image is a path */

/* Renders the script. Every value is validated (a newline in a path or directive is refused) and quoted for its place;
 * dataset names never enter. CODE_USAGE: unknown placeholder, value that cannot be said. */
int script_render(const struct script *s, struct str *ret, struct err *err);
/* The script of the closing job: waits for `after` ("4711:4712"), then runs `submit` --resume RUN --closing with one CPU
 * where the tasks were, or in the spec's retry.partition. job_name, run, sub, exclude, umask, chdir of s are taken. */
int script_closing(const struct script *s, const char *after, const char *submit, struct str *ret, struct err *err);
/* The directives that script_render writes, in the table's order. */
int script_directives(const struct script *s, struct directives *ret, struct err *err);

#endif
