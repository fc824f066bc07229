/* node/accounting.h - what accounting (slurmdbd) lets this user do: limits of the user's associations, of the accounts above
 * them, and of QOS, with what is used of each. From the controller's own copy (lib/sched fills it).
 */
#ifndef RECON_ACCOUNTING_H
#define RECON_ACCOUNTING_H

#include "base/base.h"

enum limit_kind {
    LIMIT_SUBMIT,   /* jobs pending and running, each array task one */
    LIMIT_JOBS,     /* jobs running */
    LIMIT_WALL,     /* minutes of one job */
    LIMIT_TRES_JOB, /* of one job */
    LIMIT_TRES_ALL, /* of all running jobs of the group or user */
};
struct account_limit {
    bool qos;               /* `of` is a QOS, else an account of the user's */
    char *of, *whose;       /* "lab"; "account 'root'", "QOS 'short'" for words */
    const char *what;       /* Slurm's own name, "MaxSubmitJobs" */
    enum limit_kind kind;
    char *tres;             /* "cpu", "mem" (MiB), "node", "gres/gpu"; NULL for the first three */
    uint64_t most, used;
};
struct accounting {
    bool known;             /* false: why says why not */
    bool enforced;          /* false: no limit counts */
    char *why;
    char *account;          /* the user's default; NULL: none */
    struct { struct account_of { char *name, *qos; } *v; size_t n, cap; } accounts; /* of the user, with their default QOS */
    struct { struct account_limit *v; size_t n, cap; } limits;
};
void accounting_release(struct accounting *a);
/* The QOS and account that count for a job that asks for these (NULL: none asked). NULL: none known. */
const char *accounting_account(const struct accounting *a, const char *account);
const char *accounting_qos(const struct accounting *a, const char *account, const char *qos);
/* Does the limit hold for such a job? */
bool accounting_holds(const struct accounting *a, const struct account_limit *l, const char *account, const char *qos);
/* Of the limits on submitted jobs the one with the least left; NULL: none. */
const struct account_limit *accounting_submit(const struct accounting *a, const char *account, const char *qos);
static inline uint64_t limit_left(const struct account_limit *l) { return l->used < l->most ? l->most - l->used : 0; }

#endif
