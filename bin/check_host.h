/* check_host.h - recon-check --host: a program and what it opens later. */
#ifndef RECON_CHECK_HOST_H
#define RECON_CHECK_HOST_H

#include "pin/pin.h"

/* Resolves host, then the extension modules of Python packages, then modules (paths), each in the scope of those before.
 * Prints a warning for a package that has none. */
int check_host(const char *host, const struct strv *packages, char *const *modules, const struct facts *f,
               char *const *env, struct resolution *ret, struct err *err);

#endif
