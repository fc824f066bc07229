/* check/preflight.h - a request against a cluster, before it is queued. Pure, as check(): the names are those of the
 * catalogue; what is not known of the cluster gives one not-checked note that says so.
 */
#ifndef RECON_PREFLIGHT_H
#define RECON_PREFLIGHT_H

#include "job/job.h"
#include "node/accounting.h"
#include "node/cluster.h"
#include "record/record.h"

struct preflight {
    const struct conf_map *asked;        /* sbatch's options as they were spelled */
    const struct directives *directives; /* as they stand in the script */
    size_t script_bytes;
    const struct cluster *cluster;       /* NULL: nobody could be asked */
    const struct accounting *accounting; /* NULL: as cluster */
    char *const *env;                    /* of the submitting process; NULL: not looked at */
    bool site;                           /* judge what only the site can mend, too */
};
void preflight(const struct preflight *p, struct findings *ret);
/* The names of the nodes that the request may go to, by partition, nodelist, exclude, GRES, memory, features as far as
 * they are known. */
void preflight_nodes(const struct preflight *p, struct strv *ret);
/* The compute capabilities of the GPUs that a task may get on a node, "8.0,9.0", by a map of GRES types and features;
 * owned, NULL: no GPU is asked, or the map does not know. */
char *preflight_gpus(const struct preflight *p, const char *node, const struct conf_map *architectures);

#endif
