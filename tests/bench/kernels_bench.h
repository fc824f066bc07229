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

/* The slots of one call, and its time. */
struct call {
    const struct recon_kernel *k;
    const void *in[3];
    const struct recon_value *p;
};

/* Times of c; the first is left out. 0 or 1. */
int time_call(const struct call *c, struct times *ret);
int to_device(enum recon_slot type, void *slot); /* where the module has one; 0 or 1 */
const char *count_text(uint64_t n, char text[32]);

/* A ball of about so many faces, wide strips at its poles, on the device; golden_free() ends it. 0 or 1. */
int bench_ball(uint64_t faces, struct recon_mesh *ret);
int bench_voxels(uint64_t n);
int bench_farthest(uint64_t n, uint64_t k); /* floor: each point's distance renewed k times, at the operations that takes */
int bench_signs(uint64_t n, uint64_t faces);

/* The kernels of meshes and points, or of them those bound by the copy's rate; most: largest number of elements. 0 or 1. */
int bench_meshes(uint64_t most, bool arrays);

#endif
