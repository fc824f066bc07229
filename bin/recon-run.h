/* What recon-run's files share: the command line and its ways to run. */
#ifndef BIN_RECON_RUN_H
#define BIN_RECON_RUN_H

#include "cli.h"
#include "pipe/pipe.h"

struct options {
    const char *pipeline, *dataset, *out, *device, *kernels, *events, *run, *describe, *scratch;
    const char *selftest_kernel; /* in a child of --selftest */
    int64_t sub, task, repeat, threads;
    double deadline;             /* seconds, 0: none */
    struct conf_map set;
    bool list, estimate, selftest, json, verbose;
    struct err err;              /* of the first bad value */
};

/* What every way to run needs. */
struct setup {
    struct modules modules;
    struct device device;
    struct pipeline pipeline;
    struct plan plan;
};

/* Words of kernels, for people. */
void say(void *verbose, enum level level, const char *text);

int run_one(const struct options *o, struct setup *s);      /* --dataset, --out: exit status */
int run_estimate(const struct options *o, struct setup *s); /* --estimate */

#endif
