/* kernels/cpu/quadric4.h - the sums of quadric.h four floats at a time, in its order: the same bits. */
#ifndef KERNELS_CPU_QUADRIC4_H
#define KERNELS_CPU_QUADRIC4_H

#include "kernels/quadric.h"

typedef float four __attribute__((vector_size(16), may_alias, aligned(4)));
typedef int32_t four_i __attribute__((vector_size(16)));

#ifdef __clang__
#define FOUR_TURN1(x) __builtin_shufflevector(x, x, 1, 2, 0, 3)
#define FOUR_TURN2(x) __builtin_shufflevector(x, x, 2, 0, 1, 3)
#else
#define FOUR_TURN1(x) __builtin_shuffle(x, (four_i){ 1, 2, 0, 3 })
#define FOUR_TURN2(x) __builtin_shuffle(x, (four_i){ 2, 0, 1, 3 })
#endif

static inline four four_at(const float *p)
{
    return *(const four *)p;
}

/* what follows three floats becomes 0 */
static inline four three_at(const float *p)
{
    return (four)((four_i)four_at(p) & (four_i){ -1, -1, -1, 0 });
}

/* A x for the first three; the fourth is garbage */
static inline four four_times(four d, four o, four x)
{
    return d * x + FOUR_TURN2(o) * FOUR_TURN1(x) + FOUR_TURN1(o) * FOUR_TURN2(x);
}

static inline float sum_of_three(four x)
{
    return x[0] + x[1] + x[2];
}

struct quadric4 {
    four d, o, b; /* d[3] is c, o[3] the area */
};

static inline struct quadric4 quadric4_sum(const struct quadric *x, const struct quadric *y, four h)
{
    four xd = four_at(x->d), yd = four_at(y->d), xo = four_at(x->o), yo = four_at(y->o), xb = three_at(x->b), yb = three_at(y->b);
    struct quadric4 r = { .d = xd + yd, .o = xo + yo };
    four sh = four_times(r.d, r.o, h);

    r.b = xb + yb + four_times(xd - yd, xo - yo, h);
    r.d[3] += sum_of_three((2 * (xb - yb) + sh) * h);
    return r;
}

static inline float quadric4_at(const struct quadric4 *q, four p)
{
    float e = q->d[3] + sum_of_three((2 * q->b + four_times(q->d, q->o, p)) * p);

    return e > 0 ? e : 0;
}

static inline float quadric4_order(const struct quadric4 *q, four h, float error)
{
    return error + 1e-6f * q->o[3] * sum_of_three(h * h);
}

static inline four quadric4_least(const struct quadric4 *q)
{
    float hold = 1e-3f * q->o[3] + 1e-30f, xy = q->o[2], xz = q->o[1], b0 = q->b[0];
    float d0 = 1 / (q->d[0] + hold), l1 = xy * d0, l2 = xz * d0;
    float d1 = 1 / (q->d[1] + hold - l1 * xy), m = q->o[0] - l1 * xz, l3 = m * d1;
    float d2 = 1 / (q->d[2] + hold - l2 * xz - l3 * m), y1 = q->b[1] - l1 * b0, y2 = q->b[2] - l2 * b0 - l3 * y1;
    float p2 = -y2 * d2, p1 = -y1 * d1 - l3 * p2;

    return (four){ -b0 * d0 - l1 * p1 - l2 * p2, p1, p2, 0 };
}

#endif
