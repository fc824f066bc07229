/* bin/cli_rules.h - what a site says of the rules, for the programs that judge. */
#ifndef RECON_CLI_RULES_H
#define RECON_CLI_RULES_H

#include "conf/conf.h"

/* The levels of the file named (RECON_RULES), NULL: of /etc/recon/rules.conf (doc/site.md): rule to off, note, warn or error.
 * What it cannot take is told, and that rule keeps its level: recon fails open. conf_map_release. */
void cli_levels(const char *named, struct conf_map *ret);

#endif
