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
    r->last = r->hot = 0;
    for (unsigned i = 0; i < READER_VIEWS; i++)
        r->views[i].n = 0;
    r->window = READER_MAX;
}

/* What a view holds from off on, and how much; NULL when none holds any. The view read last is asked first. */
static const uint8_t *held(struct reader *r, uint64_t off, size_t *ret_n)
{
    for (unsigned i = 0; i < READER_VIEWS; i++) {
        unsigned k = (r->last + READER_VIEWS - i) % READER_VIEWS;
        const struct view *v = &r->views[k];

        if (off >= v->at && off - v->at < v->n) {
            r->hot = k;
            *ret_n = v->n - (size_t)(off - v->at);
            return v->buf + (off - v->at);
        }
    }
    return NULL;
}

const uint8_t *reader_fetch(struct reader *r, uint64_t off, size_t n)
{
    const uint8_t *p;
    struct view *v;
    size_t have;
    ssize_t got;

    if (n > READER_MAX || off > r->size || r->size - off < n)
        return NULL;
    p = held(r, off, &have);
    if (p && have >= n)
        return p;
    r->hot = r->last = (r->last + 1) % READER_VIEWS;
    v = &r->views[r->last];
    do
        got = pread(r->fd, v->buf, n > r->window ? n : r->window, (off_t)off);
    while (got < 0 && errno == EINTR);
    v->at = off;
    v->n = got > 0 ? (size_t)got : 0;
    return v->n >= n ? v->buf : NULL;
}

const char *reader_text(struct reader *r, uint64_t off, uint64_t end, size_t *ret_n)
{
    const uint8_t *p, *nul;
    size_t n, have;

    if (end > r->size)
        end = r->size;
    if (off >= end)
        return NULL;
    n = end - off < READER_MAX ? (size_t)(end - off) : READER_MAX;
    /* what a view has of it often is enough */
    p = held(r, off, &have);
    nul = p ? memchr(p, 0, have < n ? have : n) : NULL;
    if (!nul) {
        p = reader_at(r, off, n);
        nul = p ? memchr(p, 0, n) : NULL;
    }
    *ret_n = nul ? (size_t)(nul - p) : 0;
    return nul ? (const char *)p : NULL;
}

char *reader_string(struct reader *r, uint64_t off, uint64_t end)
{
    size_t n;
    const char *s = reader_text(r, off, end, &n);

    return s ? xstrndup(s, n) : NULL;
}

int open_calmly(const char *path, struct stat *ret_st, const char **ret_what)
{
    int fd;

    place_at(path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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
