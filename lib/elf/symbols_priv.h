/* elf/symbols_priv.h - symbol tables of objects, for symbols.c and twin.c. */
#ifndef RECON_SYMBOLS_PRIV_H
#define RECON_SYMBOLS_PRIV_H

#include "elf/elf_priv.h"

enum { REF_CALL = 1, REF_DATA = 2, REF_COPY = 4 }; /* how relocations refer to a symbol */

struct symbol {
    uint32_t name;
    uint8_t type, bind, visibility;
    uint16_t section; /* SHN_UNDEF: not defined here */
    uint64_t value;
};
struct version_name {
    const char *name, *file; /* file NULL: the object's own; name NULL: no version of that index */
    bool hidden;
};
struct symtab { /* empty when it could not be read */
    uint64_t dev, ino;
    bool wide, bind_now, readable;
    const uint8_t *sym, *versym, *bloom, *buckets, *chains, *sysv;
    const char *str;           /* a NUL follows somewhere */
    uint8_t *refs;             /* by symbol: how relocations refer to it; owned */
    struct { uint8_t **v; size_t n, cap; } owned; /* what the tables lie in */
    size_t n_sym, n_str, n_versym, n_refs, n_chains;
    uint32_t n_buckets, first, n_bloom, shift;   /* GNU hash; first: symbol of chains[0] */
    uint32_t n_sysv_buckets, n_sysv;             /* DT_HASH */
    struct { struct version_name *v; size_t n, cap; } versions; /* by DT_VERSYM index */
    char *texts;               /* theirs; owned */
};
struct symbols { /* open addressing, cap a power of two */
    struct symtab **slots;
    size_t n, cap;
};

/* The tables of an object, read once; never NULL. */
const struct symtab *symtab_of(struct symbols *s, const struct object *o);
/* The same out of the open file, -1: none; size: as of fstat. */
const struct symtab *symtab_read(struct symbols *s, const struct object *o, int fd, uint64_t size);
bool symtab_symbol(const struct symtab *t, size_t i, struct symbol *ret); /* false: there is no such symbol */
const char *symtab_name(const struct symtab *t, uint32_t name);           /* never NULL */
const struct version_name *symtab_version(const struct symtab *t, size_t i, bool *ret_hidden); /* of symbol i; NULL none */

struct wanted { /* one reference */
    const char *name;
    const struct version_name *version; /* NULL: any */
    uint32_t gnu_hash;
    bool call;                          /* a PLT slot does not bind to a program's own PLT address */
};
uint32_t symbol_gnu_hash(const char *name);
uint32_t symbol_sysv_hash(const char *name); /* that of DT_HASH and of versions */
bool symtab_offers(const struct symtab *t, const struct wanted *w); /* does the loader bind w to this object? */

#endif
