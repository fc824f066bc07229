#include "config.h"
#include "record/record_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int write_line(int fd, const char *s, size_t n)
{
    size_t done = 0;
    off_t end;
    int sys;

    while (done < n) {
        ssize_t k = write(fd, s + done, n - done);

        if (k > 0) {
            done += (size_t)k;
        } else if (k < 0 && errno != EINTR) {
            sys = errno;
            if (done && (end = lseek(fd, 0, SEEK_END)) >= (off_t)done && ftruncate(fd, end - (off_t)done))
                return sys; /* the next writer cuts what stays */
            return sys;
        }
    }
    return 0;
}

/* The size of a file whose last line has no newline, else 0. */
static off_t torn_size(int fd)
{
    struct stat st;
    char last;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    return pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n' ? st.st_size : 0;
}

/* A line that is just being written looks torn for a moment, one of a dead writer stays so. */
static off_t settled_torn_size(int fd)
{
    struct timespec pause = { .tv_nsec = 20000000 };
    off_t size = torn_size(fd), again;

    for (int i = 0; size && i < 50; i++, size = again) {
        nanosleep(&pause, NULL);
        again = torn_size(fd);
        if (again == size)
            return size;
    }
    return 0;
}

void cut_torn(int fd)
{
    char block[4096];
    off_t end = settled_torn_size(fd);

    if (!end)
        return;
    while (end > 0) {
        size_t want = end < (off_t)sizeof(block) ? (size_t)end : sizeof(block);
        const char *newline;

        if (pread(fd, block, want, end - (off_t)want) != (ssize_t)want)
            return;
        newline = memrchr(block, '\n', want);
        if (newline) {
            end -= (off_t)want - (newline - block) - 1;
            break;
        }
        end -= (off_t)want;
    }
    if (ftruncate(fd, end))
        return; /* read as a torn line then */
}

/* Without a lock (a file system that has none, or a lock held for ten seconds) O_APPEND has to do. */
static void lock(int fd)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct timespec pause = { .tv_nsec = 5000000 };

    for (int i = 0; i < 2000; i++) {
        if (fcntl(fd, F_OFD_SETLK, &l) == 0 || (errno != EAGAIN && errno != EACCES && errno != EINTR))
            return;
        nanosleep(&pause, NULL);
    }
}

int append_line(const char *path, const struct str *line, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666), sys, rc = 0;

    if (fd < 0)
        return err_sys(err, CODE_CREATE, "cannot open '%s' to append", path);
    lock(fd);
    cut_torn(fd);
    sys = write_line(fd, line->s, line->len);
    if (!sys && fsync(fd) && errno != EINVAL)
        sys = errno;
    if (close(fd) && !sys) /* drops the lock */
        sys = errno;
    if (sys) {
        errno = sys;
        rc = err_sys(err, CODE_IO, "cannot append to '%s'", path);
    }
    return rc;
}

static int line_version(const json_t *o, const char *name, size_t no, struct err *err)
{
    const json_t *v = json_object_get(o, "v");

    if (!json_is_object(o))
        return err_set(err, CODE_IO, "'%s' line %zu: no JSON object", name, no);
    if (!json_is_integer(v))
        return err_set(err, CODE_IO, "'%s' line %zu: no version key 'v'", name, no);
    if (json_integer_value(v) != RECORD_VERSION)
        return err_set(err, CODE_IO, "'%s' line %zu: version %lld, this recon reads %d", name, no,
                       (long long)json_integer_value(v), RECORD_VERSION);
    return 0;
}

int lines_each(const char *s, size_t n, const char *name, bool *torn, line_f *call, void *arg, struct err *err)
{
    const char *end = s + n, *newline;
    size_t no = 0;

    for (; (newline = s < end ? memchr(s, '\n', (size_t)(end - s)) : NULL); s = newline + 1) {
        json_error_t why;
        json_t *o = json_loadb(s, (size_t)(newline - s), JSON_REJECT_DUPLICATES, &why);
        int rc;

        no++;
        if (!o)
            return err_set(err, CODE_IO, "'%s' line %zu is damaged: %s", name, no, why.text);
        rc = line_version(o, name, no, err);
        if (rc == 0)
            rc = call(arg, o, no, err);
        json_decref(o);
        if (rc)
            return -1;
    }
    *torn = s < end;
    return 0;
}

int file_lines(const char *path, line_f *call, void *arg, struct err *err)
{
    struct str text = { 0 };
    struct err why = { 0 };
    bool torn;
    int rc = file_read(path, RECORD_FILE_MAX, &text, &why);

    if (rc && why.code == CODE_NOTFOUND) {
        rc = 0;
    } else if (rc) {
        if (err)
            *err = why;
    } else {
        rc = lines_each(text.s, text.len, path, &torn, call, arg, err);
    }
    str_release(&text);
    return rc;
}
