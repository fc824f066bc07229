#include "config.h"
#include "kernels/kd.h"
#include "kernels/points_plan.h"

#include <math.h>

static int before(const float *xyz, uint32_t a, uint32_t b, int axis)
{
    float x = xyz[3 * (uint64_t)a + (uint64_t)axis], y = xyz[3 * (uint64_t)b + (uint64_t)axis];

    return x < y || (x == y && a < b);
}

/* Hoare's: the pivot is never the last, so the lower part never is all */
void kd_select(const float *xyz, uint32_t *order, uint32_t from, uint32_t to, uint32_t middle, int axis)
{
    while (to - from > 1) {
        uint32_t pivot = order[from + (to - from - 1) / 2];
        int64_t i = (int64_t)from - 1, j = to;

        for (;;) {
            uint32_t x;

            do
                i++;
            while (before(xyz, order[i], pivot, axis));
            do
                j--;
            while (before(xyz, pivot, order[j], axis));
            if (i >= j)
                break;
            x = order[i];
            order[i] = order[j];
            order[j] = x;
        }
        if (middle <= (uint32_t)j)
            to = (uint32_t)j + 1;
        else
            from = (uint32_t)j + 1;
    }
}

static int widest(const struct kd *t, uint32_t from, uint32_t to)
{
    float low[3] = { INFINITY, INFINITY, INFINITY }, high[3] = { -INFINITY, -INFINITY, -INFINITY };
    int axis = 0;

    for (uint32_t i = from; i < to; i++)
        for (int a = 0; a < 3; a++) {
            float x = t->xyz[3 * (uint64_t)t->order[i] + (uint64_t)a];

            low[a] = x < low[a] ? x : low[a];
            high[a] = x > high[a] ? x : high[a];
        }
    for (int a = 1; a < 3; a++)
        if (high[a] - low[a] > high[axis] - low[axis])
            axis = a;
    return axis;
}

void kd_build(struct kd *t)
{
    uint32_t stack[128], top = 0;

    for (uint32_t i = 0; i < t->n; i++)
        t->order[i] = i;
    stack[top++] = 0;
    stack[top++] = t->n;
    while (top) {
        uint32_t to = stack[--top], from = stack[--top], middle = from + (to - from) / 2;

        if (to - from <= KD_LEAF)
            continue;
        t->axis[middle] = (uint8_t)widest(t, from, to);
        kd_select(t->xyz, t->order, from, to, middle, t->axis[middle]);
        stack[top++] = from;
        stack[top++] = middle;
        stack[top++] = middle + 1; /* the middle one stays where it is */
        stack[top++] = to;
    }
}

struct search {
    const struct kd *t;
    const float *at;
    uint32_t k, n;
    struct {
        double d;
        uint32_t i;
    } best[KD_NEAR_MAX]; /* ascending by (d, i) */
};

static void offer(struct search *s, uint32_t number)
{
    double d = point_distance2(s->t->xyz + 3 * (uint64_t)number, s->at);
    uint32_t i;

    if (s->n == s->k && (d > s->best[s->n - 1].d || (d == s->best[s->n - 1].d && number > s->best[s->n - 1].i)))
        return;
    i = s->n < s->k ? s->n++ : s->n - 1;
    for (; i > 0 && (d < s->best[i - 1].d || (d == s->best[i - 1].d && number < s->best[i - 1].i)); i--)
        s->best[i] = s->best[i - 1];
    s->best[i].d = d;
    s->best[i].i = number;
}

static void descend(struct search *s, uint32_t from, uint32_t to)
{
    while (to - from > KD_LEAF) {
        uint32_t middle = from + (to - from) / 2;
        int axis = s->t->axis[middle];
        double gap = (double)s->at[axis] - (double)s->t->xyz[3 * (uint64_t)s->t->order[middle] + (uint64_t)axis];

        if (gap < 0)
            descend(s, from, middle);
        else
            descend(s, middle + 1, to);
        offer(s, s->t->order[middle]);
        if (s->n == s->k && gap * gap > s->best[s->n - 1].d)
            return;
        if (gap < 0)
            from = middle + 1;
        else
            to = middle;
    }
    for (uint32_t i = from; i < to; i++)
        offer(s, s->t->order[i]);
}

uint32_t kd_near(const struct kd *t, const float *at, uint32_t k, uint32_t *ret)
{
    struct search s = { .t = t, .at = at, .k = k < KD_NEAR_MAX ? k : KD_NEAR_MAX };

    descend(&s, 0, t->n);
    for (uint32_t i = 0; i < s.n; i++)
        ret[i] = s.best[i].i;
    return s.n;
}
