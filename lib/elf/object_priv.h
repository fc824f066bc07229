/* elf/object_priv.h - one object while it is read. */
#ifndef RECON_OBJECT_PRIV_H
#define RECON_OBJECT_PRIV_H

#include "elf/elf_priv.h"

#define NAMES_MAX 20000 /* names of one kind: far above any real object */

struct segment { /* a program header */
    uint32_t type, flags;
    uint64_t offset, vaddr, filesz, align;
};
struct reading {
    struct reader *r;
    struct object *o;
    bool wide, big;              /* ELFCLASS64; big-endian */
    struct { struct segment *v; size_t n; } segments;
    uint64_t strtab, strtab_end; /* file offsets */
    const char *tail;            /* the last texts, in the object's own; NULL: not kept */
    uint64_t tail_at;            /* file offset */
    uint64_t verneed, verdef;    /* addresses */
    uint64_t n_verneed, n_verdef;
    char *problem;
};
/* Fields in the file's byte order. address: 8 bytes, of ELFCLASS32 4. */
static inline uint16_t half(const struct reading *x, const uint8_t *p)
{
    return x->big ? __builtin_bswap16(get16(p)) : get16(p);
}
static inline uint32_t word(const struct reading *x, const uint8_t *p)
{
    return x->big ? __builtin_bswap32(get32(p)) : get32(p);
}
static inline uint64_t address(const struct reading *x, const uint8_t *p)
{
    return !x->wide ? word(x, p) : x->big ? __builtin_bswap64(get64(p)) : get64(p);
}
/* The file offset of an address in a load segment, and the end of what the file has of that; false: none. */
bool reading_offset(const struct reading *x, uint64_t addr, uint64_t *ret, uint64_t *ret_end);
/* A text of the dynamic string table, owned, or put into the object's texts; NULL: there is none. */
char *reading_string(struct reading *x, uint64_t off);
const char *reading_text(struct reading *x, uint64_t off);
const char *object_text(struct object *o, const char *s, size_t n); /* kept with the object */
void object_take_version(struct object *o, const char *name, struct version_def def); /* name: in its texts */
void reading_note(struct reading *x, const struct segment *s); /* build ID and x86 ISA level (notes.c) */
void reading_versions(struct reading *x);              /* fills needs and versions of the object (symver.c) */
void images_of_elf(const struct reading *x);           /* GPU images of the object (images.c) */

#endif
