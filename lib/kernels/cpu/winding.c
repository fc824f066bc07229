/* A tree of halves of the faces, along the longest side of their middles' box each. The solid angle of a group of faces is the sum of the integrals of n.g over them,
 * with g(x) = x / |x|^3. From afar g is taken as linear about their centroid c: a dipole, and its first moment M, the integral of
 * n (x - c)'. The rest, in Taylor's form, is at most 3 S / (d - r)^4, S the integral of |x - c|^2, d the distance, r the radius: no third
 * derivative of 1 / |x| is above 6 / |x|^4. */
#include "config.h"
#include "kernels/cpu/winding.h"
#include "kernels/sign.h"

#include <float.h>
#include <stdlib.h>

enum { LEAF = 4 };
#define FOUR_PI (4 * 3.14159265358979323846)

struct group {
    double c[3], r, n[3], spread, m[6], trace, area; /* spread: 3 S / 4 pi; m: M + M', xx xy xz yy yz zz, each once; trace of M */
    uint32_t first, faces, skip;              /* faces first ..; skip: the group behind this one and all within */
};

struct winding {
    const struct recon_mesh *m;
    uint32_t *face; /* by groups */
    struct group *group;
    uint32_t groups;
};

/* sums over faces, about their centroid */
struct moments {
    double area, c[3], n[3], m[9], s, low[3], high[3];
};

static void of_face(const struct recon_mesh *m, uint64_t f, struct moments *r)
{
    double cross[3], c[3] = { 0 };

    *r = (struct moments){ .low = { INFINITY, INFINITY, INFINITY }, .high = { -INFINITY, -INFINITY, -INFINITY } };
    face_cross(m, f, cross);
    for (int i = 0; i < 3; i++)
        r->n[i] = cross[i] / 2;
    r->area = sqrt(r->n[0] * r->n[0] + r->n[1] * r->n[1] + r->n[2] * r->n[2]);
    for (uint64_t k = 0; k < 3; k++)
        for (uint64_t i = 0; i < 3; i++) {
            double x = (double)m->xyz[3 * (uint64_t)m->index[3 * f + k] + i];

            c[i] += x / 3;
            r->low[i] = fmin(r->low[i], x);
            r->high[i] = fmax(r->high[i], x);
        }
    for (uint64_t i = 0; i < 3; i++) {
        r->c[i] = c[i];
        for (uint64_t k = 0; k < 3; k++) {
            double x = (double)m->xyz[3 * (uint64_t)m->index[3 * f + k] + i] - c[i];

            r->s += r->area / 12 * x * x;
        }
    }
}

static void move_to(struct moments *x, const double c[3])
{
    for (int i = 0; i < 3; i++) {
        double d = x->c[i] - c[i];

        for (int k = 0; k < 3; k++)
            x->m[3 * k + i] += x->n[k] * d;
        x->s += x->area * d * d;
        x->c[i] = c[i];
    }
}

static struct moments sum_of(struct moments x, struct moments y)
{
    struct moments r = { .area = x.area + y.area };

    for (int i = 0; i < 3; i++) {
        r.low[i] = fmin(x.low[i], y.low[i]);
        r.high[i] = fmax(x.high[i], y.high[i]);
        r.c[i] = r.area > 0 ? (x.area * x.c[i] + y.area * y.c[i]) / r.area : (r.low[i] + r.high[i]) / 2;
        r.n[i] = x.n[i] + y.n[i];
    }
    move_to(&x, r.c);
    move_to(&y, r.c);
    for (int i = 0; i < 9; i++)
        r.m[i] = x.m[i] + y.m[i];
    r.s = x.s + y.s;
    return r;
}

/* ---- halves ---- */

struct halving {
    float *middle; /* of a face, three times */
    uint64_t *key; /* order of a float << 32 | face */
};

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t key_of(float x, uint32_t f)
{
    uint32_t bits;

    memcpy(&bits, &x, 4);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | f;
}

/* k[nth] becomes what it is in order, lower ones stand before it; all are different (Hoare's selection) */
static void select_nth(uint64_t *k, int64_t n, int64_t nth)
{
    int64_t low = 0, high = n - 1;

    for (int turn = 0; low < high; turn++) {
        uint64_t a = k[low], b = k[low + (high - low) / 2], c = k[high], x = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        int64_t i = low, j = high;

        if (turn == 64) { /* made to be slow */
            qsort(k + low, (size_t)(high - low + 1), 8, ascending);
            return;
        }
        while (i <= j) {
            while (k[i] < x)
                i++;
            while (k[j] > x)
                j--;
            if (i <= j) {
                uint64_t swap = k[i];

                k[i++] = k[j];
                k[j--] = swap;
            }
        }
        if (nth <= j)
            high = j;
        else if (nth >= i)
            low = i;
        else
            return;
    }
}

/* the lower half of these faces along their longest side comes first */
static void halve(struct winding *w, const struct halving *h, uint32_t first, uint32_t n)
{
    float low[3] = { INFINITY, INFINITY, INFINITY }, high[3] = { -INFINITY, -INFINITY, -INFINITY };
    uint32_t *face = w->face + first;
    int axis = 0;

    for (uint32_t i = 0; i < n; i++)
        for (int a = 0; a < 3; a++) {
            low[a] = fminf(low[a], h->middle[3 * (uint64_t)face[i] + (uint64_t)a]);
            high[a] = fmaxf(high[a], h->middle[3 * (uint64_t)face[i] + (uint64_t)a]);
        }
    for (int a = 1; a < 3; a++)
        axis = high[a] - low[a] > high[axis] - low[axis] ? a : axis;
    for (uint32_t i = 0; i < n; i++)
        h->key[i] = key_of(h->middle[3 * (uint64_t)face[i] + (uint64_t)axis], face[i]);
    select_nth(h->key, n, n / 2);
    for (uint32_t i = 0; i < n; i++)
        face[i] = (uint32_t)h->key[i];
}

/* the group of these faces, then those within it, from w->groups on */
static struct moments make_group(struct winding *w, const struct halving *h, uint32_t first, uint32_t n)
{
    struct group *g = &w->group[w->groups++];
    double far = 0;
    struct moments r;

    if (n <= LEAF) {
        of_face(w->m, w->face[first], &r);
        for (uint32_t i = 1; i < n; i++) {
            struct moments x;

            of_face(w->m, w->face[first + i], &x);
            r = sum_of(r, x);
        }
    } else {
        halve(w, h, first, n);
        r = make_group(w, h, first, n / 2);
        r = sum_of(r, make_group(w, h, first + n / 2, n - n / 2));
    }
    for (int i = 0; i < 3; i++) {
        double d = fmax(r.high[i] - r.c[i], r.c[i] - r.low[i]);

        far += d * d;
        g->c[i] = r.c[i];
        g->n[i] = r.n[i];
    }
    memcpy(g->m, (double[6]){ r.m[0], r.m[1] + r.m[3], r.m[2] + r.m[6], r.m[4], r.m[5] + r.m[7], r.m[8] }, sizeof(g->m));
    g->trace = r.m[0] + r.m[4] + r.m[8];
    g->r = sqrt(far) * (1 + 1e-12);
    g->area = r.area;
    g->spread = 3 * r.s / FOUR_PI;
    g->first = first;
    g->faces = n <= LEAF ? n : 0;
    g->skip = w->groups;
    return r;
}

struct winding *winding_build(struct recon_ctx *ctx, const struct recon_mesh *m)
{
    uint64_t groups = 2 * (m->faces / (LEAF / 2)) + 1; /* halves of more than LEAF have more than LEAF / 2 - 1 */
    struct halving h = { .middle = ctx->host->alloc(ctx, 12 * m->faces) };
    struct winding *w = h.middle ? ctx->host->alloc(ctx, sizeof(*w)) : NULL;
    bool taken = false;

    if (w) {
        *w = (struct winding){ .m = m };
        taken = (h.key = ctx->host->alloc(ctx, 8 * m->faces)) && (w->face = ctx->host->alloc(ctx, 4 * m->faces)) &&
                (w->group = ctx->host->alloc(ctx, groups * sizeof(*w->group)));
    }
    for (uint64_t f = 0; taken && f < m->faces; f++) {
        const uint32_t *v = m->index + 3 * f;

        w->face[f] = (uint32_t)f;
        for (uint64_t a = 0; a < 3; a++)
            h.middle[3 * f + a] = (m->xyz[3 * (uint64_t)v[0] + a] + m->xyz[3 * (uint64_t)v[1] + a] + m->xyz[3 * (uint64_t)v[2] + a]) / 3;
    }
    if (taken && m->faces)
        make_group(w, &h, 0, (uint32_t)m->faces);
    ctx->host->free(ctx, h.middle);
    ctx->host->free(ctx, h.key);
    if (!taken) {
        winding_free(ctx, w);
        return NULL;
    }
    return w;
}

void winding_free(struct recon_ctx *ctx, struct winding *w)
{
    if (w) {
        ctx->host->free(ctx, w->face);
        ctx->host->free(ctx, w->group);
    }
    ctx->host->free(ctx, w);
}

static double winding_of(const struct recon_mesh *m, uint64_t f, const float p[3])
{
    const uint32_t *v = m->index + 3 * f;

    return triangle_winding(m->xyz + 3 * (uint64_t)v[0], m->xyz + 3 * (uint64_t)v[1], m->xyz + 3 * (uint64_t)v[2], p);
}

/* n.g and M's part, times 4 pi */
static double dipole(const struct group *g, double x, double y, double z, double d2, double d3)
{
    const double *m = g->m;
    double mx = m[0] * x * x + m[3] * y * y + m[5] * z * z + m[1] * x * y + m[2] * x * z + m[4] * y * z;

    return (g->n[0] * x + g->n[1] * y + g->n[2] * z + g->trace - 3 * mx / d2) / d3;
}

/* Groups with an error of at most `most` each from afar. *ret_error: how far the plain sum may be from what is returned, the rounding
 * of all its terms and sums with it. */
static double sum_to(const struct winding *w, const float p[3], double most, double *ret_error)
{
    double sum = 0, error = 0, all = 0;

    for (uint32_t i = 0; i < w->groups;) {
        const struct group *g = &w->group[i];
        double x = g->c[0] - (double)p[0], y = g->c[1] - (double)p[1], z = g->c[2] - (double)p[2];
        double d2 = x * x + y * y + z * z, d = sqrt(d2), gap = d - g->r, gap2 = gap * gap;

        if (gap > 0 && g->spread <= most * gap2 * gap2) {
            sum += dipole(g, x, y, z, d2, d2 * d) / FOUR_PI;
            error += g->spread / (gap2 * gap2);
            all += g->area / gap2 / FOUR_PI;
            i = g->skip;
            continue;
        }
        for (uint32_t k = 0; k < g->faces; k++) {
            double t = winding_of(w->m, w->face[g->first + k], p);

            sum += t;
            all += fabs(t);
        }
        i++;
    }
    *ret_error = error * (1 + 1e-9) + 64 * DBL_EPSILON * (double)w->m->faces * (1 + all);
    return sum;
}

bool winding_inside(const struct winding *w, const float p[3])
{
    double sum = 0, error;

    for (double most = 0.003; most > 1e-7; most /= 16) {
        sum = sum_to(w, p, most, &error);
        if (fabs(sum - 0.5) > error) /* not where one is not a number */
            return sum > 0.5;
    }
    sum = 0;
    for (uint64_t f = 0; f < w->m->faces; f++)
        sum += winding_of(w->m, f, p);
    return sum > 0.5;
}
