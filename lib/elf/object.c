#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <elf.h>
#include "elf/object_priv.h"

#ifndef PT_GNU_PROPERTY
#define PT_GNU_PROPERTY 0x6474e553
#endif
#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif
/* bound on what one file can make recon read: far above any real object */
#define DYNAMIC_MAX ((uint64_t)1 << 20)
#define TEXTS_LAST 480 /* bytes at the end of the texts that mostly hold the names of libraries and versions */
#define TEXTS_WINDOW 2048 /* bytes to read there at once */

static int problem(struct reading *x, char *text)
{
    free(x->problem);
    x->problem = text;
    return -1;
}

static bool is_text(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < 0x20 && p[i] != '\n' && p[i] != '\r' && p[i] != '\t')
            return false;
    return n > 0;
}

char *file_kind(struct reader *r)
{
    static const struct { const char *magic; const char *kind; } kinds[] = {
        { "#!", "a script" },           { "!<arch>\n", "a static library" }, { "!<thin>\n", "a static library" },
        { "\x1f\x8b", "a gzip file" },  { "PK\x03\x04", "a zip file" },      { "\xfd" "7zXZ", "an xz file" },
        { "(\xb5/\xfd", "a zstd file" }, { "BZh", "a bzip2 file" },          { "MZ", "a Windows program" },
        { "\xcf\xfa\xed\xfe", "a macOS object" }, { "/* GNU ld script", "a linker script" },
        { "INPUT", "a linker script" }, { "GROUP", "a linker script" },
        { "version https://git-lfs", "a Git LFS pointer" },
    };
    size_t n = r->size < 512 ? (size_t)r->size : 512;
    const uint8_t *p = reader_at(r, 0, n);

    if (r->size == 0)
        return xstrdup("an empty file");
    if (!p)
        return xstrdup("unreadable");
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (n >= strlen(kinds[i].magic) && !memcmp(p, kinds[i].magic, strlen(kinds[i].magic)))
            return xstrdup(kinds[i].kind);
    if (is_text(p, n))
        return xasprintf("%llu bytes of text", (unsigned long long)r->size);
    if (n >= 4 && !memcmp(p, ELFMAG, SELFMAG))
        return xasprintf("a truncated ELF file of %llu bytes", (unsigned long long)r->size);
    return xstrdup("no ELF file");
}

/* ---- header and program headers ---- */

static int read_header(struct reading *x, uint64_t *ret_phdrs, size_t *ret_n)
{
    const uint8_t *h = reader_at(x->r, 0, EI_NIDENT);

    if (!h || memcmp(h, ELFMAG, SELFMAG))
        return problem(x, file_kind(x->r));
    if (h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64)
        return problem(x, xasprintf("an ELF file of no known class (%d)", h[EI_CLASS]));
    if (h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB)
        return problem(x, xasprintf("an ELF file of no known byte order (%d)", h[EI_DATA]));
    if (h[EI_VERSION] != EV_CURRENT)
        return problem(x, xasprintf("an ELF file of an unknown version (%d)", h[EI_VERSION]));
    x->wide = h[EI_CLASS] == ELFCLASS64;
    x->big = h[EI_DATA] == ELFDATA2MSB;
    h = reader_at(x->r, 0, x->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
    if (!h)
        return problem(x, file_kind(x->r));
    x->o->elfclass = h[EI_CLASS];
    x->o->big_endian = x->big;
    x->o->type = half(x, h + 16);
    x->o->machine = half(x, h + 18);
    *ret_phdrs = address(x, h + (x->wide ? 32 : 28));
    *ret_n = half(x, h + (x->wide ? 56 : 44));
    if (*ret_n > NAMES_MAX)
        return problem(x, xasprintf("an ELF file with %zu program headers", *ret_n));
    return 0;
}

static void take_segment(struct reading *x, const uint8_t *p)
{
    x->segments.v[x->segments.n++] =
        x->wide ? (struct segment){ .type = word(x, p), .flags = word(x, p + 4),
                                                         .offset = address(x, p + 8), .vaddr = address(x, p + 16),
                                                         .filesz = address(x, p + 32), .align = address(x, p + 48) }
                                     : (struct segment){ .type = word(x, p), .flags = word(x, p + 24),
                                                         .offset = address(x, p + 4), .vaddr = address(x, p + 8),
                                                         .filesz = address(x, p + 16), .align = address(x, p + 28) };
}

/* Truncated files are mapped all the same by the loader, and the program dies of SIGBUS. */
static int check_loads(struct reading *x)
{
    for (size_t i = 0; i < x->segments.n; i++) {
        const struct segment *s = &x->segments.v[i];

        if (s->type == PT_LOAD && s->filesz && (s->offset > x->r->size || x->r->size - s->offset < s->filesz))
            return problem(x, xasprintf("a truncated ELF file: a load segment ends at byte %llu, the file at %llu",
                                        (unsigned long long)(s->offset + s->filesz), (unsigned long long)x->r->size));
    }
    return 0;
}

static int read_segments(struct reading *x)
{
    uint64_t off = 0;
    size_t n = 0, size;
    const uint8_t *p;

    if (read_header(x, &off, &n))
        return -1;
    size = x->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    x->segments.v = xcalloc(n, sizeof(*x->segments.v));
    for (size_t i = 0; i < n && off && off < x->r->size && (p = reader_at(x->r, off + i * size, size)); i++)
        take_segment(x, p);
    if (check_loads(x))
        return -1;
    if (x->segments.n < n)
        return problem(x, xstrdup("a damaged ELF file (its program headers lie beyond its end)"));
    return 0;
}

bool reading_offset(const struct reading *x, uint64_t addr, uint64_t *ret, uint64_t *ret_end)
{
    for (size_t i = 0; i < x->segments.n; i++) {
        const struct segment *s = &x->segments.v[i];

        if (s->type != PT_LOAD || addr < s->vaddr || addr - s->vaddr >= s->filesz)
            continue;
        *ret = s->offset + (addr - s->vaddr);
        *ret_end = s->offset + s->filesz;
        return *ret >= s->offset && *ret_end >= s->offset;
    }
    return false;
}

/* A text of the table; NULL: there is none, or it is longer than a view. */
static const char *find_text(struct reading *x, uint64_t off, size_t *ret_n, bool *ret_kept)
{
    uint64_t at = x->strtab + off;

    if (off >= x->strtab_end - x->strtab)
        return NULL;
    *ret_kept = x->tail && at >= x->tail_at;
    if (!*ret_kept)
        return reader_text(x->r, at, x->strtab_end, ret_n);
    *ret_n = strlen(x->tail + (at - x->tail_at));
    return x->tail + (at - x->tail_at);
}

char *reading_string(struct reading *x, uint64_t off)
{
    bool kept;
    size_t n;
    const char *s = find_text(x, off, &n, &kept);

    return s ? xstrndup(s, n) : NULL;
}

const char *reading_text(struct reading *x, uint64_t off)
{
    bool kept;
    size_t n;
    const char *s = find_text(x, off, &n, &kept);

    return s && !kept ? object_text(x->o, s, n) : s;
}

/* ---- dynamic section ---- */

struct entry { int64_t tag; uint64_t value; };
struct entries { struct entry *v; size_t n; };

static void take(struct reading *x, char **field, uint64_t off)
{
    if (!*field)
        *field = reading_string(x, off);
}

static uint64_t place(const struct reading *x, uint64_t addr)
{
    uint64_t off, end;

    return reading_offset(x, addr, &off, &end) ? off : 0;
}

static void take_table(struct reading *x, const struct entry *d)
{
    struct symbol_tables *t = &x->o->tables;

    switch (d->tag) {
    case DT_SYMTAB: t->symtab = place(x, d->value); break;
    case DT_HASH: t->hash = place(x, d->value); break;
    case DT_GNU_HASH: t->gnu_hash = place(x, d->value); break;
    case DT_REL:
    case DT_RELA:
        t->rel = d->tag == DT_REL;
        t->rela = place(x, d->value);
        break;
    case DT_RELSZ:
    case DT_RELASZ: t->relasz = d->value; break;
    case DT_RELCOUNT:
    case DT_RELACOUNT: t->relative = d->value; break;
    case DT_JMPREL: t->jmprel = place(x, d->value); break;
    case DT_PLTRELSZ: t->jmprelsz = d->value; break;
    case DT_PLTREL: t->jmprel_is_rel = d->value == DT_REL; break;
    default: break;
    }
}

static void take_name(struct reading *x, struct strv *l, uint64_t off)
{
    char *s = l->n < NAMES_MAX ? reading_string(x, off) : NULL;

    if (s && *s)
        strv_take(l, s);
    else
        free(s);
}

static void read_entry(struct reading *x, const struct entry *d)
{
    struct object *o = x->o;
    char *s;

    switch (d->tag) {
    case DT_NEEDED: take_name(x, &o->needed, d->value); break;
    case DT_FILTER:
    case DT_AUXILIARY:
        s = o->filters.n < NAMES_MAX ? reading_string(x, d->value) : NULL;
        if (s && *s)
            *VEC_ADD(&o->filters) = (struct filter){ s, o->needed.n, d->tag == DT_AUXILIARY };
        else
            free(s);
        break;
    case DT_AUDIT:
    case DT_DEPAUDIT: take_name(x, &o->audit, d->value); break;
    case DT_SONAME: take(x, &o->soname, d->value); break;
    case DT_RPATH: take(x, &o->rpath, d->value); break;
    case DT_RUNPATH: take(x, &o->runpath, d->value); break;
    case DT_VERNEED: x->verneed = d->value; break;
    case DT_VERNEEDNUM: x->n_verneed = d->value; break;
    case DT_VERDEF: x->verdef = d->value; break;
    case DT_VERDEFNUM: x->n_verdef = d->value; break;
    case DT_VERSYM:
        o->has_versym = true;
        o->tables.versym = place(x, d->value);
        break;
    case DT_BIND_NOW: o->bind_now = true; break;
    case DT_FLAGS: o->bind_now |= (d->value & DF_BIND_NOW) != 0; break;
    case DT_FLAGS_1:
        o->bind_now |= (d->value & DF_1_NOW) != 0;
        o->nodeflib = (d->value & DF_1_NODEFLIB) != 0;
        o->is_pie = (d->value & DF_1_PIE) != 0;
        break;
    default: take_table(x, d); break;
    }
}

/* The entries up to DT_NULL. */
static int read_entries(struct reading *x, const struct segment *s, struct entries *ret)
{
    size_t size = x->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);

    if (s->filesz > DYNAMIC_MAX || s->offset > x->r->size || x->r->size - s->offset < s->filesz)
        return problem(x, xstrdup("a damaged ELF file (its dynamic section lies beyond its end)"));
    ret->v = xcalloc((size_t)s->filesz / size, sizeof(*ret->v));
    if (s->filesz < READER_MAX && x->r->size - s->offset > READER_MAX)
        x->r->window = (size_t)s->filesz;
    else
        x->r->window = READER_MAX; /* the section table, too, where that follows soon */
    for (uint64_t at = 0; s->filesz - at >= size; at += size) {
        const uint8_t *p = reader_at(x->r, s->offset + at, size);
        struct entry e;

        if (!p)
            return problem(x, xstrdup("a damaged ELF file (its dynamic section cannot be read)"));
        e.value = address(x, p + size / 2);
        e.tag = x->wide ? (int64_t)address(x, p) : (int32_t)word(x, p);
        if (e.tag == DT_NULL)
            break;
        ret->v[ret->n++] = e;
    }
    return 0;
}

/* Names of libraries and versions are the last texts that linkers put into the table, and the version tables follow: what is
 * read from there on mostly serves them all. */
static void look_ahead(struct reading *x)
{
    uint64_t from = x->strtab_end - x->strtab > TEXTS_LAST ? x->strtab_end - TEXTS_LAST : x->strtab;

    const uint8_t *p;

    x->r->window = TEXTS_WINDOW;
    p = reader_at(x->r, from, (size_t)(x->strtab_end - from));
    x->r->window = READER_MAX;
    if (!p || p[x->strtab_end - from - 1])
        return;
    x->tail = object_text(x->o, (const char *)p, (size_t)(x->strtab_end - from) - 1);
    x->tail_at = from;
}

static void find_strings(struct reading *x, const struct entries *l)
{
    uint64_t strtab = 0, strsz = 0, end = 0;

    for (size_t i = 0; i < l->n; i++) {
        strtab = l->v[i].tag == DT_STRTAB ? l->v[i].value : strtab;
        strsz = l->v[i].tag == DT_STRSZ ? l->v[i].value : strsz;
    }
    if (reading_offset(x, strtab, &x->strtab, &end))
        x->strtab_end = strsz && end - x->strtab > strsz ? x->strtab + strsz : end;
    x->o->tables.strtab = x->strtab;
    x->o->tables.strsz = x->strtab_end - x->strtab;
    if (x->o->tables.strsz)
        look_ahead(x);
}

static int read_dynamic(struct reading *x, const struct segment *s)
{
    struct entries l = { 0 };
    int rc = read_entries(x, s, &l);

    if (rc == 0) {
        x->o->dynamic = true;
        find_strings(x, &l);
        for (size_t i = 0; i < l.n; i++)
            read_entry(x, &l.v[i]);
        if (x->o->runpath) { /* the loader forgets DT_RPATH then */
            free(x->o->rpath);
            x->o->rpath = NULL;
        }
    }
    free(l.v);
    return rc;
}

/* ---- the whole ---- */

static int read_object(struct reading *x)
{
    if (read_segments(x))
        return -1;
    for (size_t i = 0; i < x->segments.n; i++) {
        const struct segment *s = &x->segments.v[i];

        if (s->type == PT_INTERP && !x->o->interp)
            x->o->interp = reader_string(x->r, s->offset, s->offset + s->filesz);
        if (s->type == PT_NOTE || s->type == PT_GNU_PROPERTY)
            reading_note(x, s);
        if (s->type == PT_DYNAMIC && !x->o->dynamic && read_dynamic(x, s))
            return -1;
    }
    reading_versions(x);
    return 0;
}

int object_read_open(struct reader *r, const struct stat *st, const char *path, bool images, struct object *ret,
                   char **ret_problem)
{
    struct object o = { 0 };
    struct reading x = { .r = r, .o = &o };
    int rc = read_object(&x);

    r->window = READER_MAX;
    if (rc == 0 && images)
        images_of_elf(&x);
    free(x.segments.v);
    if (rc) {
        object_release(&o);
        *ret_problem = x.problem;
        return -1;
    }
    o.path = xstrdup(path);
    o.size = st->st_size;
    o.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    o.dev = st->st_dev;
    o.ino = st->st_ino;
    *ret = o;
    return 0;
}

int object_read(const char *path, bool images, struct object *ret, struct err *err)
{
    const char *what = NULL;
    char *why = NULL;
    struct reader r;
    struct stat st;
    int fd = open_calmly(path, &st, &what), rc;

    if (fd < 0)
        return err_sys(err, errno == ENOENT || errno == ENOTDIR ? CODE_NOTFOUND : errno == EACCES ? CODE_PERM : CODE_IO,
                       "cannot open '%s'", path);
    reader_init(&r, fd, (uint64_t)st.st_size);
    r.window = HEAD_WINDOW;
    if (what)
        rc = err_set(err, CODE_DATA, "'%s' is %s, not an ELF object", path, what);
    else if ((rc = object_read_open(&r, &st, path, images, ret, &why)))
        err_set(err, CODE_DATA, "'%s' is %s, not an ELF object that can be loaded", path, why);
    free(why);
    close(fd);
    return rc;
}
