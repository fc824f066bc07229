/* What the files of lib/node share. */
#ifndef RECON_NODE_PRIV_H
#define RECON_NODE_PRIV_H

#include "node/node.h"

/* Facts out of a parsed text; its version is held against ours. CODE_DATA. */
int facts_bind(const struct conf *c, const char *name, struct facts *ret, struct err *err);

#endif
