/* kernels/tree_sum.h - a sum in an order that threads of any device can keep: numbers by TREE_BLOCK of them, absent ones 0; in a
 * block the second half is added to the first, number by number, until one is left; the blocks' sums are numbers again, until one
 * is left, to which 0 is added. It is nearer to the exact sum than one number after the other, too. */
#ifndef KERNELS_TREE_SUM_H
#define KERNELS_TREE_SUM_H

#include <stdbool.h>
#include <stdint.h>

#define TREE_BLOCK 256
enum { TREE_LEVELS = 4 }; /* for 2^32 numbers */

/* On the host: as far as the numbers have come, begun with zeros. */
struct tree_sum {
    double item[TREE_LEVELS][TREE_BLOCK];
    uint32_t n[TREE_LEVELS];
};

static inline double tree_block(double *x)
{
    for (int half = TREE_BLOCK / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

static inline void tree_add(struct tree_sum *s, double x)
{
    for (int l = 0; l < TREE_LEVELS; l++) {
        s->item[l][s->n[l]++] = x;
        if (s->n[l] < TREE_BLOCK)
            return;
        s->n[l] = 0;
        x = tree_block(s->item[l]);
    }
}

/* The sum; s is used up. */
static inline double tree_end(struct tree_sum *s)
{
    double x = 0;

    for (int l = 0; l < TREE_LEVELS; l++) {
        bool carry = l > 0 && s->n[l - 1];
        uint32_t n = s->n[l];

        if (carry)
            s->item[l][n++] = x;
        if (n == 0)
            continue;
        for (uint32_t i = n; i < TREE_BLOCK; i++)
            s->item[l][i] = 0;
        x = tree_block(s->item[l]);
        s->n[l] = n;
    }
    return x + 0;
}

#endif
