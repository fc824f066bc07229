/* Symbol tables by pread. GNU hash: binutils' description, glibc 2.36 elf/dl-lookup.c; the rest: System V gABI. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <elf.h>
#include "elf/symbols_priv.h"

#define VERSION_INDEX_MAX 0x7fff
#define TABLE_MAX ((uint64_t)1 << 30)

struct source { int fd; uint64_t size; };

/* n bytes at off, owned; NULL when the file has not got them. One zero byte follows. */
static void *slurp(const struct source *f, uint64_t off, uint64_t n)
{
    uint8_t *p;
    size_t done = 0;

    if (!off || !n || n > TABLE_MAX || off > f->size || f->size - off < n)
        return NULL;
    p = xmalloc((size_t)n + 1);
    while (done < n) {
        ssize_t got = pread(f->fd, p + done, (size_t)n - done, (off_t)(off + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            free(p);
            return NULL;
        }
        done += (size_t)got;
    }
    p[n] = 0;
    return p;
}

/* ---- hash tables ---- */

static void read_gnu_hash(struct symtab *t, const struct source *f, uint64_t off)
{
    uint8_t *h = slurp(f, off, 16), *more;
    uint32_t last = 0;
    uint64_t at;

    if (!h)
        return;
    t->n_buckets = get32(h);
    t->first = get32(h + 4);
    t->n_bloom = get32(h + 8);
    t->shift = get32(h + 12);
    free(h);
    t->bloom = slurp(f, off + 16, (uint64_t)t->n_bloom * (t->wide ? 8 : 4));
    at = off + 16 + (uint64_t)t->n_bloom * (t->wide ? 8 : 4);
    t->buckets = slurp(f, at, (uint64_t)t->n_buckets * 4);
    if (!t->bloom || !t->buckets || (t->n_bloom & (t->n_bloom - 1)) || t->shift > 31) {
        t->n_buckets = 0;
        return;
    }
    for (uint32_t i = 0; i < t->n_buckets; i++)
        last = get32(t->buckets + 4 * (size_t)i) > last ? get32(t->buckets + 4 * (size_t)i) : last;
    if (last < t->first)
        return;
    at += (uint64_t)t->n_buckets * 4;
    /* the last chain ends somewhere behind its first entry */
    for (uint64_t n = (uint64_t)last - t->first + 64;; n += 4096) {
        uint64_t all = at < f->size ? (f->size - at) / 4 : 0;
        size_t have = (size_t)(n < all ? n : all);

        more = slurp(f, at, (uint64_t)have * 4);
        free(t->chains);
        t->chains = more;
        t->n_chains = 0;
        if (!more)
            return;
        for (size_t i = last - t->first; i < have && !t->n_chains; i++)
            if (get32(more + 4 * i) & 1)
                t->n_chains = i + 1;
        if (t->n_chains || have < n)
            return;
    }
}

static void read_sysv_hash(struct symtab *t, const struct source *f, uint64_t off)
{
    uint8_t *h = slurp(f, off, 8);

    if (!h)
        return;
    t->n_sysv_buckets = get32(h);
    t->n_sysv = get32(h + 4);
    free(h);
    t->sysv = slurp(f, off + 8, ((uint64_t)t->n_sysv_buckets + t->n_sysv) * 4);
    if (!t->sysv)
        t->n_sysv_buckets = t->n_sysv = 0;
}

/* ---- relocations ---- */

static bool is_copy(int machine, uint32_t type)
{
    static const struct { int machine; uint32_t type; } rows[] = {
        { EM_X86_64, R_X86_64_COPY }, { EM_386, R_386_COPY },     { EM_AARCH64, R_AARCH64_COPY },
        { EM_PPC64, R_PPC64_COPY },   { EM_S390, R_390_COPY },    { EM_RISCV, R_RISCV_COPY },
        { EM_ARM, R_ARM_COPY },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].machine == machine)
            return rows[i].type == type;
    return false;
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

    while (i < n) {
        uint64_t block = n - i < 8192 ? n - i : 8192;
        uint8_t *p = slurp(f, off ? off + i * size : 0, block * size);

        if (!p)
            return;
        for (uint64_t j = 0; j < block; j++) {
            const uint8_t *e = p + j * size;
            uint64_t info = t->wide ? get64(e + 8) : get32(e + 4), symbol = info >> (t->wide ? 32 : 8);
            uint32_t type = t->wide ? (uint32_t)info : (uint32_t)info & 0xff;
            bool slot = jump && !(o->machine == EM_X86_64 && type != R_X86_64_JUMP_SLOT);

            refer(t, symbol, is_copy(o->machine, type) ? REF_COPY : slot ? REF_CALL : REF_DATA, limit);
        }
        free(p);
        i += block;
    }
}

/* ---- the whole ---- */

static void set_version(struct symtab *t, uint16_t index, const char *name, const char *file)
{
    size_t i = index & VERSION_INDEX_MAX;

    while (t->versions.n <= i)
        VEC_ADD(&t->versions);
    if (!index || t->versions.v[i].name)
        return;
    t->versions.v[i] = (struct version_name){ xstrdup(name), xstrdup(file), (index & 0x8000) != 0 };
}

static void read_versions(struct symtab *t, const struct object *o)
{
    for (size_t i = 0; i < o->versions.n && i < o->version_index.n; i++)
        set_version(t, o->version_index.v[i], o->versions.v[i], NULL);
    for (size_t i = 0; i < o->needs.n; i++)
        set_version(t, o->needs.v[i].index, o->needs.v[i].version, o->needs.v[i].file);
}

static void read_tables(struct symtab *t, const struct source *f, const struct object *o)
{
    const struct symbol_tables *x = &o->tables;
    size_t size = t->wide ? 24 : 16, n;
    uint64_t limit = x->symtab && x->symtab < f->size ? (f->size - x->symtab) / size : 0;

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
    t->sym = slurp(f, x->symtab, (uint64_t)n * size);
    t->n_sym = t->sym ? n : 0;
    t->str = slurp(f, x->strtab, x->strsz);
    t->n_str = t->str ? (size_t)x->strsz : 0;
    t->versym = slurp(f, x->versym, (uint64_t)n * 2);
    t->n_versym = t->versym ? n : 0;
    t->readable = n == 0 || (t->sym && t->str);
    read_versions(t, o);
}

struct symtab *symtab_of(struct symbols *s, const struct object *o)
{
    struct symtab *t;
    const char *what = NULL;
    struct stat st;
    int fd;

    for (size_t i = s->tables.n; i-- > 0;)
        if (s->tables.v[i]->ino == o->ino && s->tables.v[i]->dev == o->dev)
            return s->tables.v[i];
    t = xcalloc(1, sizeof(*t));
    *VEC_ADD(&s->tables) = t;
    t->dev = o->dev;
    t->ino = o->ino;
    t->wide = o->elfclass == ELFCLASS64;
    t->bind_now = o->bind_now;
    fd = open_calmly(o->path, &st, &what);
    if (fd >= 0 && !what && !o->big_endian)
        read_tables(t, &(struct source){ fd, (uint64_t)st.st_size }, o);
    if (fd >= 0)
        close(fd);
    return t;
}

static void symtab_free(struct symtab *t)
{
    for (size_t i = 0; i < t->versions.n; i++) {
        free(t->versions.v[i].name);
        free(t->versions.v[i].file);
    }
    free(t->versions.v);
    free(t->sym);
    free(t->str);
    free(t->versym);
    free(t->refs);
    free(t->bloom);
    free(t->buckets);
    free(t->chains);
    free(t->sysv);
    free(t);
}

struct symbols *symbols_new(void)
{
    return xcalloc(1, sizeof(struct symbols));
}

void symbols_free(struct symbols *s)
{
    for (size_t i = 0; s && i < s->tables.n; i++)
        symtab_free(s->tables.v[i]);
    if (s)
        free(s->tables.v);
    free(s);
}
