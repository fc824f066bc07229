/* CUDA fat binaries. Layout: doc/elf.md. Only headers are read, so that a library of 500 MB takes milliseconds. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <gelf.h>
#include <libelf.h>
#include "elf/images_priv.h"
#include "elf/object_priv.h"

#define FATBIN_MAGIC 0xBA55ED50u
#define CONTAINER_HEADER 16
#define ENTRY_HEADER 64
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define FLAG_ARCH 0x100000u   /* sm_90a */
#define FLAG_FAMILY 0x200000u /* sm_100f */
#define EM_CUBIN 190
#define NOTE_CUINFO 1000
#define IMAGES_MAX ((size_t)1 << 20)
#define SECTIONS_MAX 65536
#define SMALL_WINDOW 256
#define NAMES_LAST 512 /* bytes before a section table that mostly hold the names of its sections */

/* The toolkit that writes a PTX ISA (the first that does). Source: PTX ISA release notes. */
static const struct { uint16_t isa; const char *toolkit; } isa_rows[] = {
    { 605, "10.2" }, { 700, "11.0" }, { 701, "11.1" }, { 702, "11.2" }, { 703, "11.3" }, { 704, "11.4" },
    { 705, "11.5" }, { 706, "11.6" }, { 707, "11.7" }, { 708, "11.8" }, { 800, "12.0" }, { 801, "12.1" },
    { 802, "12.2" }, { 803, "12.3" }, { 804, "12.4" }, { 805, "12.5" }, { 806, "12.7" }, { 807, "12.8" },
    { 808, "12.9" }, { 900, "13.0" }, { 901, "13.1" }, { 902, "13.2" },
};

/* The toolkit that first had an architecture, where that tells more than the PTX ISA. Source: CUDA release notes. */
static const struct { uint16_t arch, toolkit; } arch_rows[] = {
    { 86, 111 }, { 87, 114 }, { 89, 118 }, { 90, 118 }, { 100, 128 }, { 101, 128 }, { 103, 129 }, { 110, 130 },
    { 120, 128 }, { 121, 129 },
};

/* The highest counts, of an image and of the file. */
static void saw_toolkit(struct scan *s, struct gpu_image *image, unsigned toolkit)
{
    if (toolkit > s->toolkit && toolkit < 1000)
        s->toolkit = toolkit;
    if (toolkit > image->toolkit && toolkit < 1000)
        image->toolkit = (uint16_t)toolkit;
}

static void saw_arch(struct scan *s, struct gpu_image *image)
{
    for (size_t i = 0; i < COUNT(arch_rows); i++)
        if (arch_rows[i].arch == image->arch)
            saw_toolkit(s, image, arch_rows[i].toolkit);
}

static void saw_isa(struct scan *s, struct gpu_image *image, unsigned major, unsigned minor)
{
    for (size_t i = 0; i < COUNT(isa_rows); i++)
        if (isa_rows[i].isa == major * 100 + minor) {
            unsigned a = 0, b = 0;

            if (sscanf(isa_rows[i].toolkit, "%u.%u", &a, &b) == 2)
                saw_toolkit(s, image, a * 10 + b);
        }
}

/* An uncompressed cubin: has it code, and which toolkit made it? */
static bool cubin_has_code(struct scan *s, struct gpu_image *image, uint64_t off, uint64_t size)
{
    const uint8_t *p = size >= 64 ? reader_at(s->r, off, 64) : NULL;
    uint64_t table, note = 0;
    unsigned n;
    bool code = false;

    if (!p || memcmp(p, ELFMAG, SELFMAG) || get16(p + 18) != EM_CUBIN)
        return true;
    if (get32(p + 20) > 1) /* before CUDA 13 e_version is the toolkit */
        saw_toolkit(s, image, get32(p + 20));
    table = get64(p + 40);
    n = get16(p + 60);
    if (get16(p + 58) != 64 || table > size || (size - table) / 64 < n)
        return true;
    s->r->window = READER_MAX;
    for (unsigned i = 0; i < n && (p = reader_at(s->r, off + table + 64 * (uint64_t)i, 64)); i++) {
        code |= (get64(p + 8) & SHF_EXECINSTR) != 0;
        if (get32(p + 4) == SHT_NOTE && get64(p + 24) < size && get64(p + 32) <= 64)
            note = off + get64(p + 24);
    }
    if (note && (p = reader_at(s->r, note, 32)) && get32(p) == 12 && get32(p + 4) >= 6 && get32(p + 8) == NOTE_CUINFO)
        saw_toolkit(s, image, get16(p + 24 + 4));
    s->r->window = SMALL_WINDOW;
    return code;
}

static void add_image(struct scan *s, const uint8_t *e, uint64_t payload, uint64_t size, bool *stub)
{
    uint16_t kind = get16(e), minor = get16(e + 24), major = get16(e + 26);
    uint32_t arch = get32(e + 28);
    uint64_t flags = get64(e + 40);
    bool packed = get32(e + 16) || (flags & (FLAG_LZ4 | FLAG_ZSTD));
    struct gpu_image *image;

    if (kind == 4)
        kind = IMAGE_SASS;
    if ((kind != IMAGE_PTX && kind != IMAGE_SASS && kind != IMAGE_LTO) || arch > UINT16_MAX ||
        s->out->n >= IMAGES_MAX)
        return;
    image = VEC_ADD(s->out);
    image->kind = (enum image_kind)kind;
    image->container = s->out->containers;
    image->arch = (uint16_t)arch;
    image->suffix = flags & FLAG_ARCH ? 'a' : flags & FLAG_FAMILY ? 'f' : 0;
    image->major = major;
    image->minor = minor;
    image->relocatable = s->relocatable;
    saw_arch(s, image);
    if (kind == IMAGE_PTX)
        saw_isa(s, image, major, minor);
    if (kind != IMAGE_SASS || packed || cubin_has_code(s, image, payload, size))
        *stub = false;
}

/* One container at off inside [.., end): its end, or 0 if there is none. */
static uint64_t container(struct scan *s, uint64_t off, uint64_t end)
{
    const uint8_t *p = reader_at(s->r, off, CONTAINER_HEADER);
    size_t first = s->out->n;
    uint64_t at, limit;
    bool stub = true;

    if (!p || get32(p) != FATBIN_MAGIC || get16(p + 4) != 1 || get16(p + 6) < CONTAINER_HEADER)
        return 0;
    at = off + get16(p + 6);
    if (at > end || end - at < get64(p + 8))
        return 0;
    limit = at + get64(p + 8);
    while (limit - at >= ENTRY_HEADER && (p = reader_at(s->r, at, ENTRY_HEADER))) {
        uint64_t header = get32(p + 4), size = get64(p + 8);

        if (header < ENTRY_HEADER || header > limit - at || size > limit - at - header)
            break;
        add_image(s, p, at + header, size, &stub);
        at += header + size;
    }
    /* nvcc puts a container of cubins without code before the real ones of every linked file */
    for (size_t i = first; i < s->out->n; i++)
        s->out->v[i].link_stub = stub;
    s->out->containers++;
    return limit;
}

/* The next place from off on, in steps of 8, where the magic stands; end if there is none. */
static uint64_t next_magic(struct reader *r, uint64_t off, uint64_t end)
{
    r->window = READER_MAX;
    for (off = (off + 7) & ~(uint64_t)7; off + CONTAINER_HEADER <= end;) {
        size_t n = end - off < READER_MAX ? (size_t)(end - off) : READER_MAX;
        const uint8_t *p = reader_at(r, off, n & ~(size_t)7);

        if (!p)
            break;
        for (size_t i = 0; i + 8 <= n; i += 8)
            if (get32(p + i) == FATBIN_MAGIC) {
                r->window = SMALL_WINDOW;
                return off + i;
            }
        off += n & ~(size_t)7;
    }
    r->window = SMALL_WINDOW;
    return end;
}

void scan_region(struct scan *s, uint64_t off, uint64_t size, bool relocatable)
{
    uint64_t end;

    if (off > s->r->size)
        return;
    end = s->r->size - off < size ? s->r->size : off + size;
    s->relocatable = relocatable;
    s->r->window = SMALL_WINDOW;
    while (off + CONTAINER_HEADER <= end) {
        uint64_t next = container(s, off, end);

        off = next ? next : next_magic(s->r, off + 1, end);
    }
    s->r->window = READER_MAX;
}

bool scan_section(struct scan *s, const char *name, uint64_t off, uint64_t size)
{
    bool relocatable = str_eq(name, "__nv_relfatbin");

    if (relocatable || str_eq(name, ".nv_fatbin"))
        scan_region(s, off, size, relocatable);
    else if (str_eq(name, ".hip_fatbin"))
        (is_offload(s->r, off) ? scan_offload : scan_bundles)(s, off, size);
    else if (str_eq(name, ".llvm.offloading"))
        scan_offload(s, off, size);
    else
        return false;
    return true;
}

/* true when the file has sections to go by */
static bool by_sections(struct scan *s, Elf *elf)
{
    struct { uint64_t off, size; } other[64];
    size_t names = 0, n_other = 0, n = 0;
    uint64_t inside = 0, outside = 0;
    bool cuda = false;
    Elf_Scn *scn = NULL;
    GElf_Shdr h;

    if (!elf || elf_getshdrstrndx(elf, &names) || names == 0)
        return false;
    while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &h) && n++ < SECTIONS_MAX) {
        const char *name = elf_strptr(elf, names, h.sh_name);

        if (h.sh_type == SHT_NOBITS || h.sh_type == SHT_NULL || h.sh_offset > s->r->size)
            continue;
        cuda |= str_eq(name, ".nvFatBinSegment");
        if (name && scan_section(s, name, h.sh_offset, h.sh_size)) {
            cuda = true;
            inside += h.sh_size;
        } else if (h.sh_type == SHT_PROGBITS && (h.sh_flags & SHF_ALLOC) && !(h.sh_flags & SHF_EXECINSTR) &&
                   h.sh_size >= 1 << 20 && n_other < COUNT(other)) {
            outside += h.sh_size;
            other[n_other].off = h.sh_offset;
            other[n_other++].size = h.sh_size;
        }
    }
    /* some libraries keep their images in a section of their own and register them themselves (cuFFT's .ldata) */
    for (size_t i = 0; cuda && inside < outside / 16 && i < n_other; i++)
        scan_region(s, other[i].off, other[i].size, false);
    return n > 0;
}

static void finish(struct scan *s)
{
    if (s->toolkit)
        s->out->toolkit = xasprintf("%u.%u", s->toolkit / 10, s->toolkit % 10);
}

/* memmem, which is slow to start. */
static bool holds(const uint8_t *p, size_t n, const char *word)
{
    size_t m = strlen(word);

    for (const uint8_t *end = p + n, *q = p; (size_t)(end - q) >= m && (q = memchr(q, *word, (size_t)(end - q) - m + 1)); q++)
        if (!memcmp(q, word, m))
            return true;
    return false;
}

/* Is it plain from the section table of a 64-bit little-endian file that no section holds GPU code? One read tells it of
 * most objects; whatever is unusual is not plain. */
static bool plainly_none(struct reader *r)
{
    const uint8_t *p = reader_at(r, 0, 64);
    uint64_t table, names, size, from;
    unsigned n, index;

    if (!p || p[EI_CLASS] != ELFCLASS64 || p[EI_DATA] != ELFDATA2LSB)
        return false;
    table = get64(p + 40);
    n = get16(p + 60);
    index = get16(p + 62);
    if (!n || n > READER_MAX / 64 - NAMES_LAST / 64 || !index || index >= n || table > r->size || (r->size - table) / 64 < n)
        return false;
    from = table < NAMES_LAST ? 0 : table - NAMES_LAST; /* the names mostly stand before the table */
    if (!reader_at(r, from, (size_t)(table - from) + 64 * n) || !(p = reader_at(r, table + 64 * index, 64)))
        return false;
    names = get64(p + 24);
    size = get64(p + 32);
    p = size <= READER_MAX ? reader_at(r, names, (size_t)size) : NULL;
    return p && !holds(p, (size_t)size, "fatbin") && !holds(p, (size_t)size, "FatBin") &&
           !holds(p, (size_t)size, "ffloading");
}

/* libelf makes room for as many sections as the file claims: that is held against the file's size first. */
static bool too_many_sections(const struct reading *x)
{
    const uint8_t *p = reader_at(x->r, 0, x->wide ? 64 : 52);
    uint64_t table = p ? address(x, p + (x->wide ? 40 : 32)) : 0;

    if (!table || half(x, p + (x->wide ? 60 : 48)))
        return false; /* none, or at most 65535 */
    p = reader_at(x->r, table, x->wide ? 64 : 40);
    return p && address(x, p + (x->wide ? 32 : 20)) > x->r->size / 40;
}

void images_of_elf(const struct reading *x)
{
    struct scan s = { .r = x->r, .out = &x->o->images };
    Elf *elf;

    if (plainly_none(x->r))
        return;
    elf_version(EV_CURRENT);
    elf = too_many_sections(x) ? NULL : elf_begin(x->r->fd, ELF_C_READ, NULL);
    if (!by_sections(&s, elf))
        for (size_t i = 0; i < x->segments.n; i++)
            if (x->segments.v[i].type == PT_LOAD && !(x->segments.v[i].flags & PF_X))
                scan_region(&s, x->segments.v[i].offset, x->segments.v[i].filesz, false);
    elf_end(elf);
    finish(&s);
}

/* A cubin by itself is one image. Old and new layout of e_flags: doc/elf.md. */
static bool bare_cubin(struct scan *s)
{
    const uint8_t *p = reader_at(s->r, 0, 64);
    struct gpu_image *image;
    uint32_t flags;

    if (!p || memcmp(p, ELFMAG, SELFMAG) || get16(p + 18) != EM_CUBIN)
        return false;
    flags = get32(p + 48);
    image = VEC_ADD(s->out);
    image->kind = IMAGE_SASS;
    image->arch = (uint16_t)(p[EI_OSABI] == 0x41 || p[EI_ABIVERSION] >= 8 ? flags >> 8 & 0xFF : flags & 0xFF);
    image->suffix = p[EI_ABIVERSION] < 8 && (flags & 0x800) ? 'a' : 0;
    saw_arch(s, image);
    cubin_has_code(s, image, 0, s->r->size);
    s->out->containers = 1;
    return true;
}

int images_read(const char *path, struct gpu_images *ret, struct err *err)
{
    struct gpu_images found = { 0 };
    struct scan s = { .out = &found };
    struct object o = { 0 };
    struct reader r;
    const char *what = NULL;
    struct stat st;
    int fd = open_calmly(path, &st, &what), rc = 0;
    const uint8_t *p;

    if (fd < 0)
        return err_sys(err, errno == ENOENT ? CODE_NOTFOUND : errno == EACCES ? CODE_PERM : CODE_IO, "cannot open '%s'",
                       path);
    reader_init(&r, fd, what ? 0 : (uint64_t)st.st_size);
    s.r = &r;
    p = reader_at(&r, 0, 4);
    if (p && get32(p) == FATBIN_MAGIC) {
        scan_region(&s, 0, r.size, false);
        finish(&s);
    } else if (is_bundle(&r, 0)) {
        scan_bundles(&s, 0, r.size);
    } else if (is_offload(&r, 0)) {
        scan_offload(&s, 0, r.size);
        finish(&s);
    } else if (scan_archive(&s)) {
        finish(&s);
    } else if (bare_cubin(&s)) {
        finish(&s);
    } else {
        rc = object_read(path, true, &o, err);
        if (rc == 0) {
            found = o.images;
            memset(&o.images, 0, sizeof(o.images));
            object_release(&o);
        }
    }
    close(fd);
    if (rc == 0)
        *ret = found;
    return rc;
}

void images_release(struct gpu_images *l)
{
    free(l->v);
    free(l->toolkit);
    strv_release(&l->hip);
    for (size_t i = 0; i < l->offload.n; i++)
        free(l->offload.v[i].target);
    free(l->offload.v);
    memset(l, 0, sizeof(*l));
}
