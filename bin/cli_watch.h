/* cli_watch.h - a program that goes on in a child, which may come to hang on a file system. */
#ifndef RECON_CLI_WATCH_H
#define RECON_CLI_WATCH_H

#include "cli.h"

#define WATCH_MS 20000.0 /* as long as recon-launch judges */

/* For how long a child has asked the file system for nothing new and used no processor; start with {0} and ask every second or
 * so. Time for which the child or the one that asks is stopped (Ctrl-Z, a job that Slurm suspends) does not count.
 * place: what it asked for last, owned, NULL none (then it does not count as standing still); may be NULL. */
struct still {
    uint64_t steps, cpu;
    double last, idle;
    double watched; /* ms since the first look, but for what the one that asks was stopped */
};
double still_ms(struct still *s, pid_t pid, char **ret_place);

struct watched {
    int status;  /* of the child, which has ended */
    char *place; /* owned, NULL none: the path whose file system gave no answer for idle_ms */
};
/* false: go on, in a child (or here, where none can be started). true: in the parent, the work is done or hangs. A child that dies
 * of a signal takes the parent with it; one that asks for further files or uses the processor does not hang. */
bool cli_watch(double idle_ms, struct watched *ret);

#endif
