/* kernels/test/ctx.h - a context and a module for tests: services that keep what they were told. */
#ifndef KERNELS_TEST_CTX_H
#define KERNELS_TEST_CTX_H

#include "base/base.h"
#include "kernels/rows.h"

struct test_ctx {
    struct recon_ctx ctx; /* first */
    int code;             /* of the last fail(), 0: none */
    char rule[64], object[256], text[1000];
    int warnings;
    char warned[1000], warned_rule[64]; /* the last warning */
    char noted[1000];                   /* the last note */
    struct strv outputs;
    uint64_t live; /* allocations not yet freed */
    uint64_t bytes, peak; /* of them, and the most at a time; as large as malloc makes them */
    int patience;  /* cancelled() says yes at the call of that number and after; 0: never */
    uint64_t most; /* alloc() refuses more bytes than this; 0: no limit */
};
void test_ctx_init(struct test_ctx *t, const char *dataset, const char *out, int threads);
void test_ctx_reset(struct test_ctx *t); /* forgets failures and warnings */
void test_ctx_release(struct test_ctx *t);

/* dlopens BUILD/lib/recon/NAME.so; ends the program when it cannot. */
const struct recon_module *test_module(const char *name);
const struct recon_kernel *test_kernel(const struct recon_module *m, const char *name); /* the same */

/* The defaults of a kernel's parameters, parsed; free with free(). Text and vectors point into static or
 * owned memory that lives as long as the program. */
struct recon_value *test_params(const struct recon_kernel *k);
void test_slot_free(struct test_ctx *t, enum recon_slot type, void *slot);

#endif
