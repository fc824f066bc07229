/* What the files of lib/job share. */
#ifndef RECON_JOB_PRIV_H
#define RECON_JOB_PRIV_H

#include "job/job.h"

/* A value for a #SBATCH line, quoted where sbatch needs it or when `quoted`. */
void script_add_value(struct str *t, const char *value, bool quoted);
/* A path within a pattern of sbatch: % is doubled. */
void script_add_pattern(struct str *t, const char *path);

#endif
