/* GPU images of the members of a static library. ar(5); members are ELF64 little-endian objects, cubins or fat binaries. */
#include "config.h"

#include <stdlib.h>
#include <elf.h>
#include "elf/images_priv.h"

#define MEMBERS_MAX 200000
#define SECTIONS_MAX 200000
#define SHT_LLVM_OFFLOADING 0x6FFF4C0Bu

struct member { uint64_t off, size; };

static const uint8_t *header(struct reader *r, const struct member *m, uint64_t table, uint64_t i)
{
    uint64_t at = table + i * 64;

    return table > m->size || m->size - table < (i + 1) * 64 ? NULL : reader_at(r, m->off + at, 64);
}

/* Sections by their names; the name table is read piece by piece. */
static void object(struct scan *s, const struct member *m)
{
    const uint8_t *p = m->size >= 64 ? reader_at(s->r, m->off, 64) : NULL;
    uint64_t table, n, names, names_off, names_size;

    if (!p || memcmp(p, ELFMAG, SELFMAG) || p[EI_CLASS] != ELFCLASS64 || p[EI_DATA] != ELFDATA2LSB)
        return;
    table = get64(p + 40);
    n = get16(p + 60);
    names = get16(p + 62);
    p = table ? header(s->r, m, table, 0) : NULL;
    if (!p)
        return;
    n = n ? n : get64(p + 32);
    names = names == SHN_XINDEX ? get32(p + 40) : names;
    p = n <= SECTIONS_MAX && names < n ? header(s->r, m, table, names) : NULL;
    if (!p)
        return;
    names_off = get64(p + 24);
    names_size = get64(p + 32);
    if (names_off > m->size || m->size - names_off < names_size)
        return;
    for (uint64_t i = 1; i < n && (p = header(s->r, m, table, i)); i++) {
        uint64_t off = get64(p + 24), size = get64(p + 32), name = get32(p);
        char *text;

        if ((get32(p + 4) != SHT_PROGBITS && get32(p + 4) != SHT_LLVM_OFFLOADING) || off > m->size || m->size - off < size || name >= names_size)
            continue;
        text = reader_string(s->r, m->off + names_off + name, m->off + names_off + names_size);
        if (text)
            scan_section(s, text, m->off + off, size);
        free(text);
    }
}

bool scan_archive(struct scan *s)
{
    const uint8_t *p = reader_at(s->r, 0, 8);
    uint64_t at = 8;

    if (!p || memcmp(p, "!<arch>\n", 8))
        return false;
    for (size_t i = 0; i < MEMBERS_MAX && (p = reader_at(s->r, at, 60)) && !memcmp(p + 58, "`\n", 2); i++) {
        char digits[11] = { 0 };
        struct member m = { .off = at + 60 };

        memcpy(digits, p + 48, 10);
        digits[strcspn(digits, " ")] = '\0';
        if (str_to_u64(digits, &m.size) || m.size > s->r->size - m.off)
            break;
        object(s, &m);
        at = m.off + m.size + (m.size & 1);
    }
    return true;
}
