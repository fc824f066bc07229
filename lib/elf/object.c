#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <gelf.h>
#include <libelf.h>
#include "elf/object_priv.h"

#ifndef PT_GNU_PROPERTY
#define PT_GNU_PROPERTY 0x6474e553
#endif
#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif
/* bounds on what one file can make recon read: far above any real object */
#define DYNAMIC_MAX ((uint64_t)1 << 20)
#define NOTES_MAX ((uint64_t)1 << 20)

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

/* ---- header ---- */

/* libelf makes room for as many sections as the file claims: hold that against the file's size first. */
static int check_sections(struct reading *x, const uint8_t *h)
{
    bool wide = h[EI_CLASS] == ELFCLASS64, big = h[EI_DATA] == ELFDATA2MSB;
    uint64_t shoff = 0, count = 0;
    const uint8_t *p = h + (wide ? 40 : 32);

    for (size_t i = 0, n = wide ? 8 : 4; i < n; i++)
        shoff |= (uint64_t)p[big ? n - 1 - i : i] << (8 * i);
    p = h + (wide ? 60 : 48);
    if (!shoff || p[0] || p[1])
        return 0; /* none, or at most 65535 */
    p = reader_at(&x->r, shoff, wide ? 64 : 40);
    if (!p)
        return 0; /* libelf takes it as none */
    p += wide ? 32 : 20;
    for (size_t i = 0, n = wide ? 8 : 4; i < n; i++)
        count |= (uint64_t)p[big ? n - 1 - i : i] << (8 * i);
    if (count > x->r.size / 40)
        return problem(x, xasprintf("an ELF file with a damaged section table (%llu sections)",
                                    (unsigned long long)count));
    return 0;
}

static int read_header(struct reading *x)
{
    const uint8_t *h = reader_at(&x->r, 0, EI_NIDENT);
    GElf_Ehdr ehdr;
    size_t need;

    if (!h || memcmp(h, ELFMAG, SELFMAG))
        return problem(x, file_kind(&x->r));
    if (h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64)
        return problem(x, xasprintf("an ELF file of no known class (%d)", h[EI_CLASS]));
    if (h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB)
        return problem(x, xasprintf("an ELF file of no known byte order (%d)", h[EI_DATA]));
    need = h[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    h = reader_at(&x->r, 0, need);
    if (!h)
        return problem(x, file_kind(&x->r));
    if (check_sections(x, h))
        return -1;
    elf_version(EV_CURRENT);
    x->elf = elf_begin(x->r.fd, ELF_C_READ, NULL);
    if (!x->elf || elf_kind(x->elf) != ELF_K_ELF || !gelf_getehdr(x->elf, &ehdr))
        return problem(x, xasprintf("a damaged ELF file (%s)", elf_errmsg(-1)));
    x->o->elfclass = ehdr.e_ident[EI_CLASS];
    x->o->machine = ehdr.e_machine;
    x->o->big_endian = h[EI_DATA] == ELFDATA2MSB;
    x->o->type = ehdr.e_type;
    if (elf_getphdrnum(x->elf, &x->n_phdrs))
        x->n_phdrs = 0;
    if (x->n_phdrs > NAMES_MAX)
        return problem(x, xasprintf("an ELF file with %zu program headers", x->n_phdrs));
    if (ehdr.e_phnum && !x->n_phdrs)
        return problem(x, xstrdup("a damaged ELF file (its program headers lie beyond its end)"));
    return 0;
}

/* ---- program headers ---- */

bool reading_offset(const struct reading *x, uint64_t addr, uint64_t *ret, uint64_t *ret_end)
{
    GElf_Phdr p;

    for (size_t i = 0; i < x->n_phdrs; i++) {
        if (!gelf_getphdr(x->elf, (int)i, &p) || p.p_type != PT_LOAD || addr < p.p_vaddr ||
            addr - p.p_vaddr >= p.p_filesz)
            continue;
        *ret = p.p_offset + (addr - p.p_vaddr);
        *ret_end = p.p_offset + p.p_filesz;
        return *ret >= p.p_offset && *ret_end >= p.p_offset;
    }
    return false;
}

char *reading_string(struct reading *x, uint64_t off)
{
    return off < x->strtab_end - x->strtab ? reader_string(&x->r, x->strtab + off, x->strtab_end) : NULL;
}

/* Truncated files are mapped all the same by the loader, and the program dies of SIGBUS. */
static int check_loads(struct reading *x)
{
    GElf_Phdr p;

    for (size_t i = 0; i < x->n_phdrs; i++) {
        if (!gelf_getphdr(x->elf, (int)i, &p))
            return problem(x, xstrdup("a damaged ELF file (its program headers lie beyond its end)"));
        if (p.p_type == PT_LOAD && p.p_filesz &&
            (p.p_offset > x->r.size || x->r.size - p.p_offset < p.p_filesz))
            return problem(x, xasprintf("a truncated ELF file: a load segment ends at byte %llu, the file at %llu",
                                        (unsigned long long)(p.p_offset + p.p_filesz),
                                        (unsigned long long)x->r.size));
    }
    return 0;
}

/* ---- notes: build-id and x86 ISA level ---- */

static const char *isa_of(const uint8_t *p, size_t n, size_t align, bool big)
{
    static const char *const levels[] = { "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" };
    const char *found = NULL;

    while (n >= 8 && !big) {
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

static void read_notes(struct reading *x, const GElf_Phdr *p)
{
    bool big = elf_getident(x->elf, NULL)[EI_DATA] == ELFDATA2MSB;
    Elf_Type type = p->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
    Elf_Data *d = p->p_filesz <= NOTES_MAX
                      ? elf_getdata_rawchunk(x->elf, (int64_t)p->p_offset, p->p_filesz, type)
                      : NULL;
    size_t off = 0, name, desc;
    GElf_Nhdr n;

    while (d && off < d->d_size && (off = gelf_getnote(d, off, &n, &name, &desc)) > 0) {
        const uint8_t *bytes = (const uint8_t *)d->d_buf + desc;

        if (n.n_namesz != 4 || memcmp((const char *)d->d_buf + name, "GNU", 4))
            continue;
        if (n.n_type == NT_GNU_BUILD_ID && !x->o->build_id && n.n_descsz <= 64) {
            static const char digits[] = "0123456789abcdef";
            struct str t = { 0 };

            for (size_t i = 0; i < n.n_descsz; i++)
                str_addn(&t, (char[]){ digits[bytes[i] >> 4], digits[bytes[i] & 15] }, 2);
            x->o->build_id = str_take(&t);
        }
        if (n.n_type == NT_GNU_PROPERTY_TYPE_0 && !x->o->isa)
            x->o->isa = isa_of(bytes, n.n_descsz, x->o->elfclass == ELFCLASS64 ? 8 : 4, big);
    }
}

/* ---- dynamic section ---- */

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

static void take_table(struct reading *x, const GElf_Dyn *d)
{
    struct symbol_tables *t = &x->o->tables;

    switch (d->d_tag) {
    case DT_SYMTAB: t->symtab = place(x, d->d_un.d_ptr); break;
    case DT_HASH: t->hash = place(x, d->d_un.d_ptr); break;
    case DT_GNU_HASH: t->gnu_hash = place(x, d->d_un.d_ptr); break;
    case DT_REL:
    case DT_RELA:
        t->rel = d->d_tag == DT_REL;
        t->rela = place(x, d->d_un.d_ptr);
        break;
    case DT_RELSZ:
    case DT_RELASZ: t->relasz = d->d_un.d_val; break;
    case DT_RELCOUNT:
    case DT_RELACOUNT: t->relative = d->d_un.d_val; break;
    case DT_JMPREL: t->jmprel = place(x, d->d_un.d_ptr); break;
    case DT_PLTRELSZ: t->jmprelsz = d->d_un.d_val; break;
    case DT_PLTREL: t->jmprel_is_rel = d->d_un.d_val == DT_REL; break;
    default: break;
    }
}

static void read_entry(struct reading *x, const GElf_Dyn *d)
{
    struct object *o = x->o;
    char *s;

    switch (d->d_tag) {
    case DT_NEEDED:
        s = o->needed.n < NAMES_MAX ? reading_string(x, d->d_un.d_val) : NULL;
        if (s && *s)
            strv_add(&o->needed, s);
        free(s);
        break;
    case DT_FILTER:
    case DT_AUXILIARY:
        s = o->filters.n < NAMES_MAX ? reading_string(x, d->d_un.d_val) : NULL;
        if (s && *s)
            *VEC_ADD(&o->filters) = (struct filter){ s, o->needed.n, d->d_tag == DT_AUXILIARY };
        else
            free(s);
        break;
    case DT_AUDIT:
    case DT_DEPAUDIT:
        s = o->audit.n < NAMES_MAX ? reading_string(x, d->d_un.d_val) : NULL;
        if (s && *s)
            strv_add(&o->audit, s);
        free(s);
        break;
    case DT_SONAME: take(x, &o->soname, d->d_un.d_val); break;
    case DT_RPATH: take(x, &o->rpath, d->d_un.d_val); break;
    case DT_RUNPATH: take(x, &o->runpath, d->d_un.d_val); break;
    case DT_VERNEED: x->verneed = d->d_un.d_ptr; break;
    case DT_VERNEEDNUM: x->n_verneed = d->d_un.d_val; break;
    case DT_VERDEF: x->verdef = d->d_un.d_ptr; break;
    case DT_VERDEFNUM: x->n_verdef = d->d_un.d_val; break;
    case DT_VERSYM:
        o->has_versym = true;
        o->tables.versym = place(x, d->d_un.d_ptr);
        break;
    case DT_BIND_NOW: o->bind_now = true; break;
    case DT_FLAGS: o->bind_now |= (d->d_un.d_val & DF_BIND_NOW) != 0; break;
    case DT_FLAGS_1:
        o->bind_now |= (d->d_un.d_val & DF_1_NOW) != 0;
        o->nodeflib = (d->d_un.d_val & DF_1_NODEFLIB) != 0;
        o->is_pie = (d->d_un.d_val & DF_1_PIE) != 0;
        break;
    default: take_table(x, d); break;
    }
}

static int read_dynamic(struct reading *x, const GElf_Phdr *p)
{
    Elf_Data *d;
    GElf_Dyn dyn;
    uint64_t strtab = 0, strsz = 0, end = 0;
    int n;

    if (p->p_filesz > DYNAMIC_MAX || p->p_offset > x->r.size || x->r.size - p->p_offset < p->p_filesz)
        return problem(x, xstrdup("a damaged ELF file (its dynamic section lies beyond its end)"));
    d = elf_getdata_rawchunk(x->elf, (int64_t)p->p_offset, p->p_filesz, ELF_T_DYN);
    if (!d)
        return p->p_filesz ? problem(x, xasprintf("a damaged ELF file (%s)", elf_errmsg(-1))) : 0;
    x->o->dynamic = true;
    n = (int)(d->d_size / gelf_fsize(x->elf, ELF_T_DYN, 1, EV_CURRENT));
    for (int i = 0; i < n && gelf_getdyn(d, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
        strtab = dyn.d_tag == DT_STRTAB ? dyn.d_un.d_ptr : strtab;
        strsz = dyn.d_tag == DT_STRSZ ? dyn.d_un.d_val : strsz;
    }
    if (reading_offset(x, strtab, &x->strtab, &end))
        x->strtab_end = strsz && end - x->strtab > strsz ? x->strtab + strsz : end;
    x->o->tables.strtab = x->strtab;
    x->o->tables.strsz = x->strtab_end - x->strtab;
    for (int i = 0; i < n && gelf_getdyn(d, i, &dyn) && dyn.d_tag != DT_NULL; i++)
        read_entry(x, &dyn);
    if (x->o->runpath) { /* the loader forgets DT_RPATH then */
        free(x->o->rpath);
        x->o->rpath = NULL;
    }
    return 0;
}

/* ---- the whole ---- */

static int read_segments(struct reading *x)
{
    GElf_Phdr p;

    if (check_loads(x))
        return -1;
    for (size_t i = 0; i < x->n_phdrs && gelf_getphdr(x->elf, (int)i, &p); i++) {
        if (p.p_type == PT_INTERP && !x->o->interp)
            x->o->interp = reader_string(&x->r, p.p_offset, p.p_offset + p.p_filesz);
        if (p.p_type == PT_NOTE || p.p_type == PT_GNU_PROPERTY)
            read_notes(x, &p);
        if (p.p_type == PT_DYNAMIC && !x->o->dynamic && read_dynamic(x, &p))
            return -1;
    }
    reading_versions(x);
    return 0;
}

int object_read_fd(int fd, const struct stat *st, const char *path, bool images, struct object *ret,
                   char **ret_problem)
{
    struct object o = { 0 };
    struct reading x;
    int rc;

    memset(&x, 0, offsetof(struct reading, r));
    x.o = &o;
    reader_init(&x.r, fd, (uint64_t)st->st_size);
    rc = read_header(&x) || read_segments(&x) ? -1 : 0;
    if (rc == 0 && images)
        images_of_elf(x.elf, &x.r, &o.images);
    elf_end(x.elf);
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
    struct stat st;
    int fd = open_calmly(path, &st, &what), rc;

    if (fd < 0)
        return err_sys(err, errno == ENOENT || errno == ENOTDIR ? CODE_NOTFOUND : errno == EACCES ? CODE_PERM : CODE_IO,
                       "cannot open '%s'", path);
    if (what)
        rc = err_set(err, CODE_DATA, "'%s' is %s, not an ELF object", path, what);
    else if ((rc = object_read_fd(fd, &st, path, images, ret, &why)))
        err_set(err, CODE_DATA, "'%s' is %s, not an ELF object that can be loaded", path, why);
    free(why);
    close(fd);
    return rc;
}

void object_copy(struct object *dst, const struct object *src)
{
    struct object o = *src;

    o.path = xstrdup(src->path);
    o.soname = xstrdup(src->soname);
    o.interp = xstrdup(src->interp);
    o.rpath = xstrdup(src->rpath);
    o.runpath = xstrdup(src->runpath);
    o.build_id = xstrdup(src->build_id);
    memset(&o.needed, 0, sizeof(o.needed));
    memset(&o.audit, 0, sizeof(o.audit));
    memset(&o.filters, 0, sizeof(o.filters));
    memset(&o.versions, 0, sizeof(o.versions));
    memset(&o.needs, 0, sizeof(o.needs));
    memset(&o.version_index, 0, sizeof(o.version_index));
    memset(&o.images, 0, sizeof(o.images));
    strv_copy(&o.needed, &src->needed);
    strv_copy(&o.audit, &src->audit);
    strv_copy(&o.versions, &src->versions);
    for (size_t i = 0; i < src->filters.n; i++)
        *VEC_ADD(&o.filters) =
            (struct filter){ xstrdup(src->filters.v[i].name), src->filters.v[i].after, src->filters.v[i].auxiliary };
    for (size_t i = 0; i < src->needs.n; i++)
        *VEC_ADD(&o.needs) = (struct version_need){ xstrdup(src->needs.v[i].file), xstrdup(src->needs.v[i].version),
                                                    src->needs.v[i].weak, src->needs.v[i].index };
    for (size_t i = 0; i < src->version_index.n; i++)
        *VEC_ADD(&o.version_index) = src->version_index.v[i];
    for (size_t i = 0; i < src->images.n; i++)
        *VEC_ADD(&o.images) = src->images.v[i];
    o.images.containers = src->images.containers;
    o.images.toolkit = xstrdup(src->images.toolkit);
    strv_copy(&o.images.hip, &src->images.hip);
    o.images.bundles = src->images.bundles;
    o.images.hip_unread = src->images.hip_unread;
    *dst = o;
}

void object_release(struct object *o)
{
    free(o->path);
    free(o->soname);
    free(o->interp);
    free(o->rpath);
    free(o->runpath);
    free(o->build_id);
    strv_release(&o->needed);
    for (size_t i = 0; i < o->filters.n; i++)
        free(o->filters.v[i].name);
    free(o->filters.v);
    strv_release(&o->audit);
    strv_release(&o->versions);
    free(o->version_index.v);
    needs_clear(o);
    free(o->needs.v);
    images_release(&o->images);
    memset(o, 0, sizeof(*o));
}
