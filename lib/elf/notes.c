/* Notes of an object: its build ID, and the x86 ISA level that its property note needs. */
#include "config.h"

#include <elf.h>
#include "elf/object_priv.h"

#define NOTES_MAX ((uint64_t)1 << 20) /* bytes of one segment */
#define BUILD_ID_MAX 64

static const char *isa_of(const uint8_t *p, size_t n, size_t align)
{
    static const char *const levels[] = { "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" };
    const char *found = NULL;

    while (n >= 8) {
        uint32_t type = get32(p), size = get32(p + 4);
        size_t whole = 8 + (((size_t)size + align - 1) & ~(align - 1));

        if (size > n - 8)
            break;
        if (type == 0xc0008002u && size >= 4) /* GNU_PROPERTY_X86_ISA_1_NEEDED */
            for (size_t i = 0; i < COUNT(levels); i++)
                if (get32(p + 8) & (1u << i))
                    found = levels[i];
        p += whole < n ? whole : n;
        n -= whole < n ? whole : n;
    }
    return found;
}

static char *hex(const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char *s = xmalloc(2 * n + 1), *to = s;

    for (size_t i = 0; i < n; i++) {
        *to++ = digits[p[i] >> 4];
        *to++ = digits[p[i] & 15];
    }
    *to = '\0';
    return s;
}

static void take_note(struct reading *x, uint32_t type, const uint8_t *desc, size_t n)
{
    if (type == NT_GNU_BUILD_ID && !x->o->build_id && n <= BUILD_ID_MAX)
        x->o->build_id = hex(desc, n);
    if (type == NT_GNU_PROPERTY_TYPE_0 && !x->o->isa && !x->big)
        x->o->isa = isa_of(desc, n, x->wide ? 8 : 4);
}

void reading_note(struct reading *x, const struct segment *s)
{
    uint64_t align = s->align == 8 ? 8 : 4, at = 0;

    if (s->filesz > NOTES_MAX || s->offset > x->r->size || x->r->size - s->offset < s->filesz)
        return;
    while (at <= s->filesz && s->filesz - at >= 12) {
        const uint8_t *p = reader_at(x->r, s->offset + at, 12);
        uint64_t name, size, desc;
        uint32_t type;

        if (!p)
            return;
        name = word(x, p);
        size = word(x, p + 4);
        type = word(x, p + 8);
        desc = (at + 12 + name + align - 1) & ~(align - 1);
        if (desc > s->filesz || s->filesz - desc < size)
            return;
        if (name == 4 && size <= READER_MAX - 16 && (p = reader_at(x->r, s->offset + at, 16 + (size_t)size)) &&
            !memcmp(p + 12, "GNU", 4))
            take_note(x, type, p + 16, (size_t)size);
        at = (desc + size + align - 1) & ~(align - 1);
    }
}
