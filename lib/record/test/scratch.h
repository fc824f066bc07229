/* A fresh folder for a group of tests (base/test/scratch.h), and small helpers. */
#ifndef RECON_TEST_SCRATCH_H
#define RECON_TEST_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/test/scratch.h"
#include "record/record_priv.h"

/* A path in the scratch folder; holds until eight calls later. */
static inline const char *in_scratch(const char *name)
{
    static char paths[8][512];
    static int next;
    char *to = paths[next++ % 8];

    snprintf(to, sizeof(paths[0]), "%s/%s", scratch, name);
    return to;
}

static inline void put_file(const char *path, const char *text, size_t n)
{
    assert_int_equal(file_write(path, text, n, 0644, NULL), 0);
}

static inline char *get_file(const char *path)
{
    struct str t = { 0 };
    struct err e = { 0 };

    if (file_read(path, RECORD_FILE_MAX, &t, &e))
        fail_msg("%s", e.text);
    return str_take(&t);
}

#endif
