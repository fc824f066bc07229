/* bin/check_root.h - facts of another root, for recon-check --root. */
#ifndef RECON_CHECK_ROOT_H
#define RECON_CHECK_ROOT_H

#include "node/node.h"

/* What the files below root say of a node that had them as its own; the rest stays unknown. Initialises ret; never fails. */
void check_root_facts(const char *root, struct facts *ret);

#endif
