#include "config.h"
#include "data/data_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int fault_set(struct fault *fault, int code, const char *rule, const char *fmt, ...)
{
    va_list ap;

    if (!fault)
        return -1;
    fault->err = (struct err){ .code = code };
    fault->rule = rule;
    va_start(ap, fmt);
    if ((size_t)vsnprintf(fault->err.text, sizeof(fault->err.text), fmt, ap) >= sizeof(fault->err.text))
        strcpy(fault->err.text + sizeof(fault->err.text) - 4, "...");
    err_clean(fault->err.text);
    va_end(ap);
    return -1;
}

int data_slurp(const char *path, size_t max, struct str *ret, struct fault *fault)
{
    struct err err = { 0 };

    if (file_read(path, max, ret, &err) == 0)
        return 0;
    return fault_set(fault, CODE_DATA, NULL, "%s", err.text);
}

int data_open(const char *path, uint64_t *ret_size, struct fault *fault)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return fault_set(fault, CODE_DATA, NULL, "cannot open '%s': %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *ret_size = (uint64_t)st.st_size;
        return fd;
    }
    close(fd);
    return fault_set(fault, CODE_DATA, NULL, "'%s' is no regular file, which is wanted", path);
}

int data_pread(int fd, const char *path, void *to, size_t n, uint64_t offset, struct fault *fault)
{
    char *p = to;

    while (n) {
        ssize_t got = pread(fd, p, n, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fault_set(fault, CODE_IO, NULL, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0)
            return fault_set(fault, CODE_DATA, "file-truncated",
                             "'%s' is truncated: %zu bytes at %llu are wanted, it ends at %llu", path, n,
                             (unsigned long long)offset, (unsigned long long)offset);
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}
