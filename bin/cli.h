/* bin/cli.h - what all programs share: options from a table of rows (argp), --version, and the one place that prints
 * errors. Words go to stderr, data to stdout. */
#ifndef RECON_CLI_H
#define RECON_CLI_H

#include <argp.h>
#include "base/base.h"

/* One line on stderr, "PROGRAM: text", escaped for the terminal; gives the exit status: err->code, or 70 if unset. */
int cli_fail(const struct err *err);
/* The same without an err; gives code. */
int cli_error(int code, const char *fmt, ...) PRINTF(2, 3);
void cli_warn(const char *fmt, ...) PRINTF(1, 2);

/* argp_parse with recon's conventions: --version from configure, exit status 64 on a bad command line, an unknown long
 * option is answered with the nearest one, parsing stops at "--". Gives 0 or 64; *ret_rest is the index of the first
 * argument that is no option. */
/* Whatever is wrong is one line. */
int cli_parse(const struct argp *argp, int argc, char **argv, int *ret_rest, void *input);

/* The same, where some names that are no options have a better answer than the nearest: hint gives what to write instead
 * ("--set pin=..."), owned by the caller, or NULL. */
int cli_parse_hinted(const struct argp *argp, int argc, char **argv, int *ret_rest, void *input,
                     char *(*hint)(const char *name));

/* A program as a shell finds it: in the folders of list (as PATH), or by its path; absolute, owned, NULL: none. */
char *cli_search(const char *name, const char *list);
/* What the kernel starts for a script: "#!/usr/bin/python3", "#!/usr/bin/env -S python3 -u". Owned, NULL: no script. */
char *cli_interpreter(const char *path, const char *list);
/* 0, or why it cannot be executed: CODE_NOTFOUND; CODE_NOEXEC for what is there, a folder too. */
int cli_executable(const char *path, struct err *err);

/* ~/.cache/recon/NAME, or below XDG_CACHE_HOME; owned, NULL: there is no home. */
char *cli_cache(const char *name);

/* Locale, umask-safe stdout: flushes and closes stdout, gives status or 74 when output was lost. */
int cli_end(int status);

#endif
