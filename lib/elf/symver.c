/* DT_VERNEED and DT_VERDEF: System V gABI and the LSB's "Symbol Versioning". Their records are alike in both classes. */
#include "config.h"

#include <elf.h>
#include "elf/object_priv.h"

enum { NEED = 16, NEED_AUX = 16, DEF = 20, DEF_AUX = 8 }; /* bytes of a record */
#define STEPS_MAX (4 * NAMES_MAX)

/* A table of which the file tells no size: it ends with its segment. Numbers and offsets come from the file, so every step
 * goes forward and the steps are counted. */
struct chain { uint64_t off, end; size_t steps; };

static bool find_table(const struct reading *x, uint64_t addr, struct chain *ret)
{
    *ret = (struct chain){ 0 };
    return addr && reading_offset(x, addr, &ret->off, &ret->end);
}

/* The record `at` bytes behind off; NULL: there is none. */
static const uint8_t *record(struct reading *x, struct chain *c, uint64_t off, uint64_t at, size_t n)
{
    if (c->steps++ >= STEPS_MAX || off > c->end || at > c->end - off || c->end - off - at < n)
        return NULL;
    return reader_at(x->r, off + at, n);
}

/* The versions that are needed of one file; false: the table is damaged from here on. */
static bool take_needs(struct reading *x, struct chain *c, const char *file, uint64_t off, uint64_t at, unsigned n)
{
    while (n-- && x->o->needs.n < NAMES_MAX) {
        const uint8_t *p = record(x, c, off, at, NEED_AUX);
        uint32_t hash, name, next;
        uint16_t flags, index;
        const char *version;

        if (!p)
            return false;
        hash = word(x, p);
        flags = half(x, p + 4);
        index = half(x, p + 6);
        name = word(x, p + 8);
        next = word(x, p + 12);
        version = reading_text(x, name);
        if (version)
            *VEC_ADD(&x->o->needs) = (struct version_need){ file, version, (flags & VER_FLG_WEAK) != 0, index, hash };
        if (!next)
            break;
        at += next;
    }
    return true;
}

static void read_needs(struct reading *x)
{
    struct chain c;
    bool whole = find_table(x, x->verneed, &c);

    for (uint64_t i = 0; whole && i < x->n_verneed && x->o->needs.n < NAMES_MAX; i++) {
        const uint8_t *p = record(x, &c, c.off, 0, NEED);
        uint32_t name, aux, next;
        uint16_t n;
        const char *file;

        if (!p)
            return;
        n = half(x, p + 2);
        name = word(x, p + 4);
        aux = word(x, p + 8);
        next = word(x, p + 12);
        file = reading_text(x, name);
        whole = !file || take_needs(x, &c, file, c.off, aux, n);
        if (!next)
            return;
        c.off += next;
    }
}

static void read_definitions(struct reading *x)
{
    struct chain c;
    bool there = find_table(x, x->verdef, &c);

    for (uint64_t i = 0; there && i < x->n_verdef && x->o->versions.n < NAMES_MAX; i++) {
        const uint8_t *p = record(x, &c, c.off, 0, DEF);
        uint16_t flags, index;
        uint32_t hash, aux, next;
        const char *name;

        if (!p)
            return;
        flags = half(x, p + 2);
        index = half(x, p + 4);
        hash = word(x, p + 8);
        aux = word(x, p + 12);
        next = word(x, p + 16);
        p = record(x, &c, c.off, aux, DEF_AUX);
        if (!p)
            return;
        name = reading_text(x, word(x, p));
        if (name)
            object_take_version(x->o, name, (struct version_def){ flags & VER_FLG_BASE ? 0 : index, hash });
        if (!next)
            return;
        c.off += next;
    }
}

void reading_versions(struct reading *x)
{
    read_needs(x);
    read_definitions(x);
}
