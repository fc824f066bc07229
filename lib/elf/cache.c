/* ld.so.cache, formats "ld.so-1.7.0" followed by "glibc-ld.so.cache1.1", and the latter alone (glibc 2.32 and later).
 * Source: sysdeps/generic/dl-cache.h of glibc, as doc/elf.md tells it. */
#include "config.h"

#include <stdlib.h>
#include <elf.h>
#include "elf/elf_priv.h"

static const char old_magic[] = "ld.so-1.7.0", new_magic[] = "glibc-ld.so.cache1.1";
#define OLD_HEADER 16 /* magic, padding, u32 count */
#define OLD_ENTRY 12
#define NEW_HEADER 48
#define NEW_ENTRY 24
#define EXTENSION_MAGIC 0xEAA42174u
#define HWCAP_EXTENSION (UINT64_C(1) << 62)

static const uint8_t *at(const struct cache *c, uint64_t off, uint64_t n)
{
    return off <= c->bytes.len && c->bytes.len - off >= n ? (const uint8_t *)c->bytes.s + off : NULL;
}

/* A text that the end of the file cuts is ended there, as the zeros behind a mapped file end it for the loader. */
static const char *text(const struct cache *c, uint64_t off)
{
    return off < c->bytes.len ? c->bytes.s + off : NULL;
}

/* The names that entries refer to by number: extension section 1. With one section that ends beyond the file none counts. */
static void parse_names(struct cache *c, uint64_t base, uint32_t offset)
{
    const uint8_t *p = offset ? at(c, base + offset, 8) : NULL;
    uint32_t n;

    if (!p || get32(p) != EXTENSION_MAGIC)
        return;
    n = get32(p + 4);
    for (uint32_t i = 0; i < n && i < 64; i++) {
        const uint8_t *s = at(c, base + offset + 8 + 16 * (uint64_t)i, 16);

        if (!s || !at(c, base + get32(s + 8), get32(s + 12))) {
            c->n_names = 0;
            return;
        }
        if (get32(s) == 1) {
            c->names = (size_t)(base + get32(s + 8));
            c->n_names = get32(s + 12) / 4;
        }
    }
}

int cache_parse(struct cache *c, struct err *err)
{
    const uint8_t *p = at(c, 0, OLD_HEADER);
    uint64_t base = 0;

    if (p && !memcmp(p, old_magic, sizeof(old_magic) - 1)) {
        uint64_t end = OLD_HEADER + (uint64_t)OLD_ENTRY * get32(p + 12);

        if (!at(c, 0, end))
            return err_set(err, CODE_DATA, "ld.so.cache is damaged: its table ends beyond its end");
        c->table = OLD_HEADER;
        c->count = get32(p + 12);
        c->entry = OLD_ENTRY;
        c->strings = (size_t)end;
        base = (end + 7) & ~(uint64_t)7;
    }
    p = at(c, base, NEW_HEADER);
    if (!p || memcmp(p, new_magic, sizeof(new_magic) - 1))
        return c->count ? 0 : err_set(err, CODE_DATA, "ld.so.cache is in no format known here");
    if (p[28] != 0 && p[28] != 2) {
        c->count = 0;
        return err_set(err, CODE_DATA, "ld.so.cache is of a big-endian machine");
    }
    if (!at(c, base, NEW_HEADER + (uint64_t)NEW_ENTRY * get32(p + 20))) {
        c->count = 0;
        return err_set(err, CODE_DATA, "ld.so.cache is damaged: its table ends beyond its end");
    }
    c->new_format = true;
    c->table = (size_t)base + NEW_HEADER;
    c->count = get32(p + 20);
    c->entry = NEW_ENTRY;
    c->strings = (size_t)base;
    parse_names(c, base, get32(p + 32));
    return 0;
}

int cache_open(struct cache *c, const char *path, struct err *err)
{
    memset(c, 0, sizeof(*c));
    if (file_read(path, FILE_MAX_DEFAULT, &c->bytes, err))
        return -1;
    return cache_parse(c, err);
}

void cache_close(struct cache *c)
{
    str_release(&c->bytes);
    memset(c, 0, sizeof(*c));
}

/* The order that ldconfig sorts by (descending): digit runs as numbers, the rest as bytes. */
static int libcmp(const char *a, const char *b)
{
    while (*a) {
        if (*a == *b && (unsigned char)(*a - '0') > 9) { /* mostly so */
            a++;
            b++;
            continue;
        }
        bool da = *a >= '0' && *a <= '9', db = *b >= '0' && *b <= '9';

        if (da && db) {
            uint64_t x = 0, y = 0;

            for (; *a >= '0' && *a <= '9'; a++)
                x = x * 10 + (uint64_t)(*a - '0');
            for (; *b >= '0' && *b <= '9'; b++)
                y = y * 10 + (uint64_t)(*b - '0');
            if (x != y)
                return x < y ? -1 : 1;
        } else if (da != db) {
            return da ? 1 : -1;
        } else if (*a != *b) {
            return *a < *b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return *b ? -1 : 0;
}

/* The flags word of entries that this kind of program takes; old caches mark them with 1 (ELF) or 3 (libc6) alone. */
static bool flags_fit(uint32_t flags, int machine, int elfclass)
{
    static const struct { int machine, elfclass; uint32_t flags; } rows[] = {
        { EM_X86_64, ELFCLASS64, 0x0303 }, { EM_X86_64, ELFCLASS32, 0x0803 }, { EM_386, ELFCLASS32, 0x0003 },
        { EM_AARCH64, ELFCLASS64, 0x0A03 }, { EM_PPC64, ELFCLASS64, 0x0503 }, { EM_S390, ELFCLASS64, 0x0403 },
        { EM_RISCV, ELFCLASS64, 0x1003 }, { EM_LOONGARCH, ELFCLASS64, 0x1203 },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].machine == machine && rows[i].elfclass == elfclass)
            return flags == rows[i].flags || flags == 1;
    return (flags & 0xFF) == 3;
}

/* 0: not for this CPU; else the smaller the better. */
static size_t hwcap_rank(const struct cache *c, uint64_t hwcap, const struct strv *hwcaps)
{
    uint64_t index = hwcap & 0xFFFFFFFFu;
    unsigned level = (unsigned)(hwcap >> 32) & 0x3FF;
    const uint8_t *p = index < c->n_names ? at(c, c->names + 4 * index, 4) : NULL;
    const char *name = p ? text(c, c->strings + get32(p)) : NULL;

    for (size_t i = 0; name && i < hwcaps->n; i++) {
        if (!str_eq(hwcaps->v[i], name))
            continue;
        /* the object's own ISA note: bits 0..3 are baseline, v2, v3, v4 */
        if (level >= 16 || (level >= 8 && !strv_has(hwcaps, "x86-64-v4")) ||
            (level >= 4 && !strv_has(hwcaps, "x86-64-v3")) || (level >= 2 && !strv_has(hwcaps, "x86-64-v2")))
            return 0;
        return i + 1;
    }
    return 0;
}

/* Entries of the subdirectories that glibc before 2.37 had: a bit for "tls", for each capability and for the platform. Their
 * numbers on x86: sysdeps/x86/dl-procinfo.h of glibc 2.36. */
static bool legacy_fits(uint64_t hwcap, const struct loader *l)
{
    static const struct { const char *name; unsigned bit; } rows[] = {
        { "tls", 63 }, { "x86_64", 1 }, { "avx512_1", 2 }, { "haswell", 50 }, { "xeon_phi", 51 },
    };

    for (size_t i = 0; hwcap && i < COUNT(rows); i++)
        if (strv_has(&l->legacy, rows[i].name))
            hwcap &= ~(UINT64_C(1) << rows[i].bit);
    return hwcap == 0;
}

static const char *key_of(const struct cache *c, size_t i)
{
    return text(c, c->strings + (uint64_t)get32((const uint8_t *)c->bytes.s + c->table + i * c->entry + 4));
}

const char *cache_find(const struct cache *c, const char *name, int machine, int elfclass, const struct loader *l)
{
    size_t low = 0, high = c->count, best_rank = SIZE_MAX;
    const char *best = NULL, *key;

    while (low < high) { /* the order is descending; these very steps, since a damaged cache ends the search where they meet it */
        size_t mid = (low + high - 1) / 2;
        int order;

        key = key_of(c, mid);
        if (!key)
            return NULL;
        order = libcmp(name, key);
        if (order == 0) {
            for (low = mid; low > 0 && (key = key_of(c, low - 1)) && libcmp(name, key) == 0; low--)
                ;
            break;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < c->count && (key = key_of(c, low)) && libcmp(name, key) == 0; low++) {
        const uint8_t *p = (const uint8_t *)c->bytes.s + c->table + low * c->entry;
        uint64_t hwcap = c->new_format ? get64(p + 16) : 0;
        const char *value = text(c, c->strings + (uint64_t)get32(p + 8));
        size_t rank;

        if (!flags_fit(get32(p), machine, elfclass) || !value)
            continue;
        if (hwcap & HWCAP_EXTENSION) {
            rank = hwcap_rank(c, hwcap, &l->hwcaps);
            if (rank && rank < best_rank) {
                best = value;
                best_rank = rank;
            }
            continue;
        }
        if (best)
            return best;
        if (legacy_fits(hwcap, l))
            return value;
    }
    return best;
}
