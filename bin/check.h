/* bin/check.h - the parts of recon-check.
 *
 * check_print.c  what is printed: rules, images, libraries, findings
 * check_build.c  --toolkit, --arch, --host-compiler, --arch-list
 * check_where.c  --where: one program against a folder of facts
 */
#ifndef RECON_CHECK_PARTS_H
#define RECON_CHECK_PARTS_H

#include "check/check.h"

struct options {
    const char *pin, *facts, *env_file, *save, *root, *images, *host, *toolkit, *archs, *compiler;
    struct strv assume, skip, programs, packages;
    const char *node, *config;   /* --node */
    const char *source;          /* of what is to be built */
    struct strv tools;           /* "cmake-3.16" */
    struct conf_map levels;      /* of rules, the site's */
    bool nagios;
    bool jsonl, libs, list, verbose, where, arch_list;
};

int list_rules(const struct options *o);
/* Libraries if asked, findings, and a last line. */
void report(const struct options *o, const struct resolution *r, const struct findings *l);

/* Every fact file of a folder and of the folders in it (which are then named as partitions); or one file. */
struct node_facts {
    char *path;
    struct facts facts;
};
struct nodes {
    struct node_facts *v;
    size_t n, cap;
};
int nodes_read(const char *path, struct nodes *ret, struct err *err); /* CODE_NOTFOUND: there are none */
void nodes_release(struct nodes *l);

/* Can the toolkit compile for the architectures asked for, or those of the facts? Prints findings; the exit status. */
int check_build(const struct options *o, const struct facts *f);
/* What to compile for: the architectures of these nodes' GPUs, as PyTorch, CMake and nvcc want them. */
int print_arch_list(const struct options *o, const struct nodes *l);
/* One resolution against every node: a row a group of nodes that get one verdict. */
int check_where(const struct options *o, const struct pin *pin, const struct resolution *r, size_t n, char *const *env,
                const struct nodes *l);

#endif
