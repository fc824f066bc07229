#include "config.h"
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static void text_of(XXH64_hash_t h, char ret[DIGEST_SIZE])
{
    snprintf(ret, DIGEST_SIZE, "xxh3:%016llx", (unsigned long long)h);
}

void digest_bytes(const void *p, size_t n, char ret[DIGEST_SIZE])
{
    text_of(XXH3_64bits(p, n), ret);
}

int digest_file(const char *path, char ret[DIGEST_SIZE], struct err *err)
{
    enum { BLOCK = 1 << 20 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = -1;
    XXH3_state_t *state = NULL;
    void *block = NULL;
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return err_sys(err, CODE_IO, "cannot open '%s'", path);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        err_set(err, CODE_IO, "'%s' is not a regular file", path);
        goto out;
    }
    state = XXH3_createState();
    block = xmalloc(BLOCK);
    XXH3_64bits_reset(state);
    while ((n = read(fd, block, BLOCK)) > 0)
        XXH3_64bits_update(state, block, (size_t)n);
    if (n < 0) {
        err_sys(err, CODE_IO, "cannot read '%s'", path);
        goto out;
    }
    text_of(XXH3_64bits_digest(state), ret);
    rc = 0;
out:
    free(block);
    XXH3_freeState(state);
    close(fd);
    return rc;
}
