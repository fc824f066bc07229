/* bench/kernels_bench.h - what the rows of kernels_bench share: the module, its context, times. */
#ifndef BENCH_KERNELS_BENCH_H
#define BENCH_KERNELS_BENCH_H

#include "kernels/plan.h"
#include "kernels/test/ctx.h"

enum { MOST = 101 };
struct times {
    double ms[MOST];
    int n;
};

extern struct test_ctx T;
extern const struct recon_module *M;
extern int repeat;
extern double rate, flops; /* bytes and operations a second */

int bad(const char *what); /* tells the context's failure; 1 */
int begin(void);           /* a time begins; 0, or not after a failure */
int end(double *ret_ms);
/* One line; the median. floor_ms 0: none is told. */
double tell(const char *row, const char *size, struct times *t, double floor_ms, const char *bound, const char *remark);

/* The kernels of meshes and points; most: largest number of elements. 0 or 1. */
int bench_meshes(uint64_t most);

#endif
