#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "elf/elf_priv.h"

void reader_init(struct reader *r, int fd, uint64_t size)
{
    r->fd = fd;
    r->size = size;
    r->at = 0;
    r->n = 0;
    r->window = sizeof(r->buf);
}

const uint8_t *reader_at(struct reader *r, uint64_t off, size_t n)
{
    ssize_t got;

    if (n > sizeof(r->buf) || off > r->size || r->size - off < n)
        return NULL;
    if (off >= r->at && off - r->at <= r->n && r->n - (size_t)(off - r->at) >= n)
        return r->buf + (off - r->at);
    do
        got = pread(r->fd, r->buf, n > r->window ? n : r->window, (off_t)off);
    while (got < 0 && errno == EINTR);
    r->at = off;
    r->n = got > 0 ? (size_t)got : 0;
    return r->n >= n ? r->buf : NULL;
}

char *reader_string(struct reader *r, uint64_t off, uint64_t end)
{
    const uint8_t *p, *nul;
    size_t n;

    if (end > r->size)
        end = r->size;
    if (off >= end)
        return NULL;
    n = end - off < sizeof(r->buf) ? (size_t)(end - off) : sizeof(r->buf);
    /* what the window has of it often is enough */
    if (off >= r->at && off - r->at < r->n) {
        size_t have = r->n - (size_t)(off - r->at);

        have = have < n ? have : n;
        p = r->buf + (off - r->at);
        nul = memchr(p, 0, have);
        if (nul)
            return xstrndup((const char *)p, (size_t)(nul - p));
    }
    p = reader_at(r, off, n);
    nul = p ? memchr(p, 0, n) : NULL;
    return nul ? xstrndup((const char *)p, (size_t)(nul - p)) : NULL;
}

int open_calmly(const char *path, struct stat *ret_st, const char **ret_what)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return -1;
    if (fstat(fd, ret_st)) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    *ret_what = S_ISREG(ret_st->st_mode)    ? NULL
                : S_ISDIR(ret_st->st_mode)  ? "a directory"
                : S_ISFIFO(ret_st->st_mode) ? "a FIFO"
                : S_ISCHR(ret_st->st_mode)  ? "a character device"
                : S_ISBLK(ret_st->st_mode)  ? "a block device"
                                            : "no regular file";
    return fd;
}
