#include "config.h"
#include "base/base.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

/* This program's own header (the linker gives it): class, byte order and machine that a module has to have. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static bool read_at(int fd, void *p, size_t n, uint64_t at)
{
    ssize_t got;

    if (at > INT64_MAX - n)
        return false;
    do
        got = pread(fd, p, n, (off_t)at);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)n;
}

static int not_elf(int fd, const char *path, uint64_t size, struct err *err)
{
    unsigned char head[512];
    ssize_t n = pread(fd, head, sizeof(head), 0), i = 0;

    if (n < 0)
        return err_sys(err, CODE_IO, "cannot read '%s'", path);
    while (i < n && (head[i] >= 0x20 || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
        i++;
    if (size == 0)
        return err_set(err, CODE_NODE, "'%s' is an empty file, wanted a shared object", path);
    if (n >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG))
        return err_set(err, CODE_NODE, "'%s' is a truncated ELF file of %llu bytes; copy it again", path,
                       (unsigned long long)size);
    if (i == n)
        return err_set(err, CODE_NODE, "'%s' is %llu bytes of text, wanted a shared object", path,
                       (unsigned long long)size);
    return err_set(err, CODE_NODE, "'%s' is no ELF file, wanted a shared object", path);
}

/* The loader maps a truncated file all the same, and the program dies of SIGBUS. */
static int check_loads(int fd, const char *path, const ElfW(Ehdr) *h, uint64_t size, struct err *err)
{
    ElfW(Phdr) p;

    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (h->e_phentsize != sizeof(p) || !read_at(fd, &p, sizeof(p), h->e_phoff + i * sizeof(p)))
            return err_set(err, CODE_NODE, "'%s' is a damaged ELF file (its program headers lie beyond its end)", path);
        if ((p.p_type == PT_LOAD || p.p_type == PT_DYNAMIC) && p.p_filesz &&
            (p.p_offset > size || size - p.p_offset < p.p_filesz))
            return err_set(err, CODE_NODE,
                           "'%s' is a truncated ELF file: a load segment ends at byte %llu, the file at %llu; copy it again",
                           path, (unsigned long long)(p.p_offset + p.p_filesz), (unsigned long long)size);
    }
    return 0;
}

static int check_fd(int fd, const char *path, uint64_t size, struct err *err)
{
    const ElfW(Ehdr) *own = &__ehdr_start;
    ElfW(Ehdr) h;

    if (!read_at(fd, &h, sizeof(h), 0) || memcmp(h.e_ident, ELFMAG, SELFMAG))
        return not_elf(fd, path, size, err);
    if (h.e_ident[EI_CLASS] != own->e_ident[EI_CLASS] || h.e_ident[EI_DATA] != own->e_ident[EI_DATA] ||
        h.e_machine != own->e_machine)
        return err_set(err, CODE_NODE, "'%s' is built for another machine (%d-bit ELF machine %u), wanted %d-bit %u", path,
                       h.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, (unsigned)h.e_machine,
                       own->e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32, (unsigned)own->e_machine);
    if (h.e_type != ET_DYN)
        return err_set(err, CODE_NODE, "'%s' is an ELF file but no shared object (type %u)", path, (unsigned)h.e_type);
    return check_loads(fd, path, &h, size, err);
}

int object_check(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        rc = err_sys(err, CODE_NODE, "cannot open '%s'", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    if (S_ISREG(st.st_mode))
        rc = check_fd(fd, path, (uint64_t)st.st_size, err);
    else
        rc = err_set(err, CODE_NODE, "'%s' is %s, wanted a shared object", path, kind_of(st.st_mode));
    close(fd);
    return rc;
}
