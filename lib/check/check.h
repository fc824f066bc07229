/* check/check.h - check(case): what a job needs against what a node has. Pure: no I/O, no clock, no GPU.
 *
 * A rule is one file rule_*.c with one `const struct rule rule_NAME`; the registry is generated from the source list.
 * An input that is NULL, or a fact that is absent, gives "not-checked", never a guess.
 */
#ifndef RECON_CHECK_H
#define RECON_CHECK_H

#include "base/base.h"
#include "node/node.h"
#include "pin/pin.h"
#include "record/record.h"

struct spec;    /* job/job.h */
struct cluster; /* node/cluster.h, later */

/* A host tool of a build and the release that something wants of it. */
struct build_tool {
    char *name, *have, *want; /* "cmake", "3.16", "3.18" */
    char *who;                /* who wants it: "'/src/CMakeLists.txt'" */
};

/* A build that is asked about: recon-check --toolkit. */
struct build {
    struct facts_toolkit toolkit; /* path NULL: only its version is known */
    struct strv archs;            /* "8.6", "9.0a", "sm_86", "compute_90"; those of the facts' GPUs if empty */
    int gcc;                      /* major version of the host compiler, 0 not asked */
    struct { struct build_tool *v; size_t n, cap; } tools;
};

/* A shell script that the job runs, by its text. */
struct check_script {
    char *path, *text;
};
struct check_scripts {
    struct check_script *v;
    size_t n, cap;
};
/* Adds the file where it begins with "#!" and is no larger than 1 MiB; anything else is left alone. */
void check_scripts_add(struct check_scripts *l, const char *path);
void check_scripts_release(struct check_scripts *l);

struct check_case {
    const struct spec *spec;
    const struct pin *pin;
    const struct facts *facts;
    const struct resolution *resolution;
    const struct cluster *cluster;
    const struct build *build; /* what is to be compiled; NULL: nothing is */
    const struct check_scripts *scripts; /* may be NULL */
    const struct conf_map *levels; /* the site's: rule to "off", "note", "warn" or "error"; may be NULL */
    char *const *received; /* the environment as the job received it, before the pin was replayed; may be NULL */
    bool elsewhere;        /* the facts are another node's: the files that were read are this host's, not its own */
    const struct walks *walks; /* check()'s own: leave it NULL */
    bool restored;         /* the launcher restores the environment: env-not-exported is then a warning */
};

/* Which inputs a rule needs. */
enum check_input { CHECK_SPEC = 1, CHECK_PIN = 2, CHECK_FACTS = 4, CHECK_RESOLUTION = 8, CHECK_CLUSTER = 16,
                   CHECK_ENV = 32 };

struct rule {
    const char *name, *doc;
    enum level level;      /* default level of its findings */
    enum scope scope;
    unsigned inputs;       /* enum check_input, all needed */
    /* Adds findings. -1: it could not judge (recon's own fault or a fact absent): err says why; becomes not-checked. */
    int (*eval)(const struct check_case *c, struct findings *out, struct err *err);
};
extern const struct rule *const check_rules[]; /* ends with NULL */

/* Runs every rule but those in skip (may be NULL). A site's level moves a rule's errors and warnings there; notes stay notes,
 * "off" skips the rule. Findings come ordered by what to fix first: errors before warnings
 * before notes; within a level by root cause; one root cause once. Never fails. */
void check(const struct check_case *c, const struct strv *skip, struct findings *ret);
/* path-not-answering, told by one who waited for a path for that long; of the case facts and levels count. false: the rule is off. */
bool check_not_answering(const struct check_case *c, const struct strv *skip, const char *path, double ms, struct findings *ret);

/* The bodies of a pin (pin_bodies of them) in the order in which a node should try them: those whose GPU code the node's GPUs
 * run as it is, then those that the driver compiles, then those without GPU code, then the rest; within these the one that is
 * built for fewest architectures, for the highest CPU ISA, CUDA runtime and driver. Without GPUs those without GPU code lead. */
void variants_order(const struct pin *p, const struct facts *f, size_t *ret);

/* ---- compatibility tables (data with sources, compat.c) ---- */

/* Minimum driver of a CUDA runtime by the minor-version rule: "12.4" -> "525.60.13"; NULL unknown. */
const char *compat_driver_minimum(const char *cuda);
/* CUDA version that a driver release implements: "570.211.01" -> "12.8"; NULL unknown. */
const char *compat_cuda_of_driver(const char *driver);
/* "8.6", "sm_90a", "compute_86", "86": architecture and suffix. 0 or -1. */
int compat_arch(const char *text, int *ret_arch, char *ret_suffix);
/* The first toolkit that compiles for an architecture, and the one that no longer does (NULL: none). -1: none known. */
int compat_arch_toolkits(int arch, char suffix, const char **ret_first, const char **ret_dropped);
const char *compat_ptx_isa_of_cuda(const char *cuda); /* "12.8" -> "8.7" */
/* Does an image run on this compute capability ("9.0")? 1 as SASS, 2 as PTX by compiling, 0 no. driver_isa: the PTX
 * ISA the driver takes, NULL unknown (then any). */
int compat_image_runs(const struct gpu_image *image, const char *capability, const char *driver_isa);

#endif
