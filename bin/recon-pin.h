/* recon-pin.h - what the files of recon-pin share. Each command takes the options and gives the exit status; it has told what
 * went wrong. */
#ifndef RECON_BIN_PIN_H
#define RECON_BIN_PIN_H

#include "cli.h"
#include "pin/pin.h"

struct options {
    const char *output, *format, *prefix, *variant;
    bool allow_missing, quick, libs;
    struct strv env, packages, modules, args;
};

int command_capture(const struct options *o); /* pin_capture.c */
int command_merge(const struct options *o);
int command_verify(const struct options *o); /* pin_verify.c */
int command_diff(const struct options *o);
int command_show(const struct options *o); /* pin_show.c */

void show_requires(const struct pin *p); /* one line: what the node has to have */

/* Reads a pin and gives the body that was asked for, in *ret (bytes of *whole, which pin_release releases). The exit status. */
int read_body(const struct options *o, const char *path, struct pin *whole, const struct pin **ret);

#endif
