/* data/test/files.h - files of the scratch folder. After cmocka.h. */
#ifndef DATA_TEST_FILES_H
#define DATA_TEST_FILES_H

#include <stdlib.h>
#include "base/test/scratch.h"
#include "data/data.h"

static inline char *at(const char *name) /* owned by the caller */
{
    return path_join(scratch, name);
}

static inline void put_file(const char *name, const void *p, size_t n)
{
    char *path = at(name);

    assert_int_equal(file_write(path, p, n, 0644, NULL), 0);
    free(path);
}

static inline struct str get(const char *name)
{
    struct str t = { 0 };
    char *path = at(name);

    assert_int_equal(file_read(path, 1 << 26, &t, NULL), 0);
    free(path);
    return t;
}

#endif
