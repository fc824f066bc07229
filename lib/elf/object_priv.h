/* elf/object_priv.h - one object while it is read. */
#ifndef RECON_OBJECT_PRIV_H
#define RECON_OBJECT_PRIV_H

#include "elf/elf_priv.h"

#define NAMES_MAX 20000 /* names of one kind: far above any real object */

struct reading {
    struct Elf *elf;
    size_t n_phdrs;
    uint64_t strtab, strtab_end; /* file offsets */
    uint64_t verneed, verdef;    /* addresses */
    size_t n_verneed, n_verdef;
    struct object *o;
    char *problem;
    struct reader r; /* last and set by reader_init: zeroing its views for each object costs more than reading */
};
/* The file offset of an address in a load segment, and the end of what the file has of that; false: none. */
bool reading_offset(const struct reading *x, uint64_t addr, uint64_t *ret, uint64_t *ret_end);
char *reading_string(struct reading *x, uint64_t off); /* of the dynamic string table; owned, NULL: none */
void reading_versions(struct reading *x);              /* fills needs and versions of the object (symver.c) */
void needs_clear(struct object *o);

#endif
