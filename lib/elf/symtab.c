/* Symbol tables by pread. GNU hash: binutils' description, glibc 2.36 elf/dl-lookup.c; the rest: System V gABI. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <elf.h>
#include "elf/symbols_priv.h"

#define VERSION_INDEX_MAX 0x7fff
#define TABLE_MAX ((uint64_t)1 << 30)
#define SPAN_MAX ((uint64_t)64 << 20)

/* A file while its tables are read. They mostly stand together: span is what was read of them at once. */
struct source {
    int fd;
    uint64_t size, at, n; /* at, n: of the span */
    const uint8_t *span;
    struct symtab *t;
};

static bool fill(const struct source *f, uint8_t *p, uint64_t off, uint64_t n)
{
    uint64_t done = 0;

    while (done < n) {
        ssize_t got = pread(f->fd, p + done, (size_t)(n - done), (off_t)(off + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

/* n bytes at off, owned; NULL when the file has not got them. One zero byte follows. */
static uint8_t *slurp(const struct source *f, uint64_t off, uint64_t n)
{
    uint8_t *p;

    if (!off || !n || n > TABLE_MAX || off > f->size || f->size - off < n)
        return NULL;
    p = xmalloc((size_t)n + 1);
    p[n] = 0;
    if (!fill(f, p, off, n)) {
        free(p);
        return NULL;
    }
    return p;
}

/* The symbol table takes it: it is freed with it. */
static const uint8_t *own(const struct source *f, uint8_t *p)
{
    if (p)
        *VEC_ADD(&f->t->owned) = p;
    return p;
}

/* The same, valid as long as the symbol table; texts in it end before it does. */
static const uint8_t *table(const struct source *f, uint64_t off, uint64_t n)
{
    if (off && n && off >= f->at && off - f->at <= f->n && f->n - (off - f->at) >= n)
        return f->span + (off - f->at);
    return own(f, slurp(f, off, n));
}

/* Where the tables lie, from the first to the end of the last, as far as that can be told before they are read. */
static void read_span(struct source *f, const struct symbol_tables *x, bool wide)
{
    const uint64_t starts[] = { x->gnu_hash, x->hash, x->symtab, x->strtab, x->versym };
    uint64_t low = UINT64_MAX, end = x->strtab + x->strsz, symbols = 0;

    for (size_t i = 0; i < COUNT(starts); i++)
        low = starts[i] && starts[i] < low ? starts[i] : low;
    if (x->symtab && x->symtab < x->strtab) /* the texts follow the symbols */
        symbols = (x->strtab - x->symtab) / (wide ? 24 : 16);
    if (x->versym + 2 * symbols > end)
        end = x->versym + 2 * symbols;
    end = end < f->size ? end : f->size;
    if (low >= end || end - low > SPAN_MAX || (end - low) / 16 > x->strsz + 4096)
        return; /* far apart: each by itself */
    f->span = own(f, slurp(f, low, end - low));
    f->at = low;
    f->n = f->span ? end - low : 0;
}

/* ---- hash tables ---- */

/* How many entries the chains have that begin at off: the last one ends somewhere behind entry `last`. */
static void read_chains(struct symtab *t, const struct source *f, uint64_t off, uint64_t last)
{
    uint64_t all = off < f->size ? (f->size - off) / 4 : 0;

    for (uint64_t n = last + 64;; n *= 2) {
        size_t have = (size_t)(n < all ? n : all);
        uint8_t *more = NULL;
        const uint8_t *p;

        if (off >= f->at && off < f->at + f->n && (f->at + f->n - off) / 4 >= have)
            p = f->span + (off - f->at);
        else
            p = more = slurp(f, off, (uint64_t)have * 4);
        for (size_t i = (size_t)last; p && i < have; i++)
            if (get32(p + 4 * i) & 1) {
                t->chains = more ? own(f, more) : p;
                t->n_chains = i + 1;
                return;
            }
        free(more);
        if (!p || have < n)
            return;
    }
}

static void read_gnu_hash(struct symtab *t, const struct source *f, uint64_t off)
{
    const uint8_t *h = table(f, off, 16);
    uint32_t last = 0;
    uint64_t at;

    if (!h)
        return;
    t->n_buckets = get32(h);
    t->first = get32(h + 4);
    t->n_bloom = get32(h + 8);
    t->shift = get32(h + 12);
    t->bloom = table(f, off + 16, (uint64_t)t->n_bloom * (t->wide ? 8 : 4));
    at = off + 16 + (uint64_t)t->n_bloom * (t->wide ? 8 : 4);
    t->buckets = table(f, at, (uint64_t)t->n_buckets * 4);
    if (!t->bloom || !t->buckets || (t->n_bloom & (t->n_bloom - 1)) || t->shift > 31) {
        t->n_buckets = 0;
        return;
    }
    for (uint32_t i = 0; i < t->n_buckets; i++)
        last = get32(t->buckets + 4 * (size_t)i) > last ? get32(t->buckets + 4 * (size_t)i) : last;
    if (last >= t->first)
        read_chains(t, f, at + (uint64_t)t->n_buckets * 4, last - t->first);
}

static void read_sysv_hash(struct symtab *t, const struct source *f, uint64_t off)
{
    const uint8_t *h = table(f, off, 8);

    if (!h)
        return;
    t->n_sysv_buckets = get32(h);
    t->n_sysv = get32(h + 4);
    t->sysv = table(f, off + 8, ((uint64_t)t->n_sysv_buckets + t->n_sysv) * 4);
    if (!t->sysv)
        t->n_sysv_buckets = t->n_sysv = 0;
}

/* ---- relocations ---- */

/* The relocation that copies a variable into the program; 0: none is known. */
static uint32_t copy_type(int machine)
{
    static const struct { int machine; uint32_t type; } rows[] = {
        { EM_X86_64, R_X86_64_COPY }, { EM_386, R_386_COPY },     { EM_AARCH64, R_AARCH64_COPY },
        { EM_PPC64, R_PPC64_COPY },   { EM_S390, R_390_COPY },    { EM_RISCV, R_RISCV_COPY },
        { EM_ARM, R_ARM_COPY },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].machine == machine)
            return rows[i].type;
    return 0;
}

static void refer(struct symtab *t, uint64_t symbol, uint8_t how, uint64_t limit)
{
    if (symbol == 0 || symbol >= limit)
        return;
    if (symbol >= t->n_refs) {
        size_t n = (size_t)symbol * 2 + 256;

        t->refs = xrealloc(t->refs, n);
        memset(t->refs + t->n_refs, 0, n - t->n_refs);
        t->n_refs = n;
    }
    t->refs[symbol] |= how;
}

static void read_relocations(struct symtab *t, const struct source *f, const struct object *o, bool jump, uint64_t limit)
{
    const struct symbol_tables *x = &o->tables;
    bool rel = jump ? x->jmprel_is_rel : x->rel;
    size_t size = (t->wide ? 16u : 8u) + (rel ? 0u : t->wide ? 8u : 4u);
    uint64_t off = jump ? x->jmprel : x->rela, n = (jump ? x->jmprelsz : x->relasz) / size;
    uint64_t i = jump || x->relative > n ? 0 : x->relative;
    uint32_t copy = copy_type(o->machine);
    uint8_t block[16384];

    if (!off || off > f->size)
        n = 0;
    while (i < n) {
        uint64_t some = n - i < sizeof(block) / size ? n - i : sizeof(block) / size;

        if (!fill(f, block, off + i * size, some * size))
            return;
        for (uint64_t j = 0; j < some; j++) {
            const uint8_t *e = block + j * size;
            uint64_t info = t->wide ? get64(e + 8) : get32(e + 4), symbol = info >> (t->wide ? 32 : 8);
            uint32_t type = t->wide ? (uint32_t)info : (uint32_t)info & 0xff;
            bool slot = jump && !(o->machine == EM_X86_64 && type != R_X86_64_JUMP_SLOT);

            refer(t, symbol, copy && type == copy ? REF_COPY : slot ? REF_CALL : REF_DATA, limit);
        }
        i += some;
    }
}

/* ---- the whole ---- */

static char *put(char **at, const char *text)
{
    char *p = *at;

    if (!text)
        return NULL;
    *at = stpcpy(p, text) + 1;
    return p;
}

static void set_version(struct symtab *t, uint16_t index, const char *name, const char *file, char **texts)
{
    size_t i = index & VERSION_INDEX_MAX;

    while (t->versions.n <= i)
        VEC_ADD(&t->versions);
    if (!index || t->versions.v[i].name)
        return;
    t->versions.v[i] = (struct version_name){ put(texts, name), put(texts, file), (index & 0x8000) != 0 };
}

static void read_versions(struct symtab *t, const struct object *o)
{
    size_t n = 1;
    char *texts;

    for (size_t i = 0; i < o->versions.n; i++)
        n += strlen(o->versions.v[i]) + 1;
    for (size_t i = 0; i < o->needs.n; i++)
        n += strlen(o->needs.v[i].version) + strlen(o->needs.v[i].file) + 2;
    texts = t->texts = xmalloc(n);
    for (size_t i = 0; i < o->versions.n && i < o->version_defs.n; i++)
        set_version(t, o->version_defs.v[i].index, o->versions.v[i], NULL, &texts);
    for (size_t i = 0; i < o->needs.n; i++)
        set_version(t, o->needs.v[i].index, o->needs.v[i].version, o->needs.v[i].file, &texts);
}

static void read_tables(struct source *f, const struct object *o)
{
    const struct symbol_tables *x = &o->tables;
    struct symtab *t = f->t;
    size_t size = t->wide ? 24 : 16, n;
    uint64_t limit = x->symtab && x->symtab < f->size ? (f->size - x->symtab) / size : 0;

    read_span(f, x, t->wide);
    if (x->gnu_hash)
        read_gnu_hash(t, f, x->gnu_hash);
    if (x->hash && !t->n_buckets)
        read_sysv_hash(t, f, x->hash);
    read_relocations(t, f, o, false, limit);
    read_relocations(t, f, o, true, limit);
    n = t->n_chains ? t->first + t->n_chains : 0;
    n = t->n_sysv > n ? t->n_sysv : n;
    for (size_t i = t->n_refs; i > n; i--)
        if (t->refs[i - 1]) {
            n = i;
            break;
        }
    n = n < limit ? n : (size_t)limit;
    t->sym = table(f, x->symtab, (uint64_t)n * size);
    t->n_sym = t->sym ? n : 0;
    t->str = (const char *)table(f, x->strtab, x->strsz);
    t->n_str = t->str ? (size_t)x->strsz : 0;
    t->versym = table(f, x->versym, (uint64_t)n * 2);
    t->n_versym = t->versym ? n : 0;
    t->readable = n == 0 || (t->sym && t->str);
    read_versions(t, o);
}

/* ---- known ones, by device and inode ---- */

static struct symtab **slot_of(const struct symbols *s, uint64_t dev, uint64_t ino)
{
    size_t i = (ino * 11400714819323198485u ^ dev) & (s->cap - 1);

    while (s->slots[i] && (s->slots[i]->ino != ino || s->slots[i]->dev != dev))
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

static struct symtab **place_of(struct symbols *s, const struct object *o)
{
    struct symtab **old = s->slots;
    size_t n = s->cap;

    if (s->n * 2 >= s->cap) {
        s->cap = n ? n * 2 : 512;
        s->slots = xcalloc(s->cap, sizeof(struct symtab *));
        for (size_t i = 0; i < n; i++)
            if (old[i])
                *slot_of(s, old[i]->dev, old[i]->ino) = old[i];
        free(old);
    }
    return slot_of(s, o->dev, o->ino);
}

const struct symtab *symtab_read(struct symbols *s, const struct object *o, int fd, uint64_t size)
{
    struct symtab **slot = place_of(s, o), *t = *slot;

    if (t)
        return t;
    t = *slot = xcalloc(1, sizeof(*t));
    s->n++;
    t->dev = o->dev;
    t->ino = o->ino;
    t->wide = o->elfclass == ELFCLASS64;
    t->bind_now = o->bind_now;
    if (fd >= 0 && !o->big_endian)
        read_tables(&(struct source){ .fd = fd, .size = size, .t = t }, o);
    return t;
}

const struct symtab *symtab_of(struct symbols *s, const struct object *o)
{
    const struct symtab *t = *place_of(s, o);
    const char *what = NULL;
    struct stat st = { 0 };
    int fd;

    if (t)
        return t;
    fd = open_calmly(o->path, &st, &what);
    t = symtab_read(s, o, what ? -1 : fd, (uint64_t)st.st_size);
    if (fd >= 0)
        close(fd);
    return t;
}

static void symtab_free(struct symtab *t)
{
    for (size_t i = 0; i < t->owned.n; i++)
        free(t->owned.v[i]);
    free(t->versions.v);
    free(t->texts);
    free(t->owned.v);
    free(t->refs);
    free(t);
}

struct symbols *symbols_new(void)
{
    return xcalloc(1, sizeof(struct symbols));
}

void symbols_free(struct symbols *s)
{
    for (size_t i = 0; s && i < s->cap; i++)
        if (s->slots[i])
            symtab_free(s->slots[i]);
    if (s)
        free(s->slots);
    free(s);
}
