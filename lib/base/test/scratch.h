/* base/test/scratch.h - a fresh folder for a group of cmocka tests: make_scratch and remove_scratch are its setup and teardown. */
#ifndef BASE_TEST_SCRATCH_H
#define BASE_TEST_SCRATCH_H

#include <stdlib.h>
#include "base/base.h"

static char scratch[] = "/tmp/recon-test.XXXXXX";

static inline int make_scratch(void **state)
{
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int remove_scratch(void **state)
{
    (void)state;
    return dir_remove(scratch);
}

#endif
