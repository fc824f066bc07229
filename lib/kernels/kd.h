/* kernels/kd.h - a k-d tree over points: numbers in an order whose halves are the subtrees. C, host memory. */
#ifndef KERNELS_KD_H
#define KERNELS_KD_H

#include <stdint.h>

enum { KD_LEAF = 12, KD_NEAR_MAX = 256 };
struct kd {
    const float *xyz;
    uint32_t n;
    uint32_t *order; /* n; of the caller, as axis */
    uint8_t *axis;   /* n: the axis of the node whose middle stands there */
};
/* Puts the one of rank middle within [from, to) there, lower ones before it; ties by number. */
void kd_select(const float *xyz, uint32_t *order, uint32_t from, uint32_t to, uint32_t middle, int axis);
void kd_build(struct kd *t); /* fills order and axis */
/* The k nearest points of at by (distance, number), ascending: fewer when there are fewer. Distances in double from floats. */
uint32_t kd_near(const struct kd *t, const float *at, uint32_t k, uint32_t *ret);

#endif
