/* kernels/quadric.h - mesh.simplify: quadric errors (Garland and Heckbert 1997), weighted by area: the sum over faces of area times
 * the squared distance from the face's plane. A quadric is about its vertex's own place, an edge's about its middle, so that floats
 * keep what counts; lengths are in units in which the mesh is about 1 long. C and C++. */
#ifndef KERNELS_QUADRIC_H
#define KERNELS_QUADRIC_H

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "kernels/mesh_rows.h"

KERN_BEGIN

struct quadric { /* x'Ax + 2b'x + c */
    float d[3], c, o[3], area, b[3]; /* A: d is xx yy zz, o is yz xz xy; area: of the faces in it */
};

/* A face at one of its vertices, which lie on its plane: b and c stay 0. cross: twice the area long. */
KERN_HD void quadric_face(const double cross[3], struct quadric *ret)
{
    double length = sqrt(cross[0] * cross[0] + cross[1] * cross[1] + cross[2] * cross[2]), w = length > 0 ? 0.5 / length : 0;

    for (int i = 0; i < 3; i++) {
        ret->d[i] = (float)(w * cross[i] * cross[i]);
        ret->o[i] = (float)(w * cross[(i + 1) % 3] * cross[(i + 2) % 3]);
    }
    ret->area = (float)(0.5 * length);
}

KERN_HD void quadric_times(const float d[3], const float o[3], const float x[3], float r[3])
{
    r[0] = d[0] * x[0] + o[2] * x[1] + o[1] * x[2];
    r[1] = d[1] * x[1] + o[0] * x[2] + o[2] * x[0];
    r[2] = d[2] * x[2] + o[1] * x[0] + o[0] * x[1];
}

/* Of two vertices 2 h apart, about the middle between them. */
KERN_HD void quadric_sum(const struct quadric *x, const struct quadric *y, const float h[3], struct quadric *r)
{
    float d[3], o[3], dh[3], sh[3], c[3];

    for (int i = 0; i < 3; i++) {
        r->d[i] = x->d[i] + y->d[i];
        r->o[i] = x->o[i] + y->o[i];
        d[i] = x->d[i] - y->d[i];
        o[i] = x->o[i] - y->o[i];
    }
    quadric_times(d, o, h, dh);
    quadric_times(r->d, r->o, h, sh);
    for (int i = 0; i < 3; i++) {
        r->b[i] = x->b[i] + y->b[i] + dh[i];
        c[i] = (2 * (x->b[i] - y->b[i]) + sh[i]) * h[i];
    }
    r->c = x->c + y->c + (c[0] + c[1] + c[2]);
    r->area = x->area + y->area;
}

/* At p; at least 0. */
KERN_HD float quadric_at(const struct quadric *q, const float p[3])
{
    float ap[3], e;

    quadric_times(q->d, q->o, p, ap);
    for (int i = 0; i < 3; i++)
        ap[i] = (2 * q->b[i] + ap[i]) * p[i];
    e = q->c + (ap[0] + ap[1] + ap[2]);
    return e > 0 ? e : 0;
}

/* The same about p. */
KERN_HD void quadric_move(struct quadric *q, const float p[3])
{
    float ap[3];

    q->c = quadric_at(q, p);
    quadric_times(q->d, q->o, p, ap);
    for (int i = 0; i < 3; i++)
        q->b[i] += ap[i];
}

/* The place of least error, where a thousandth of the area holds to the middle: directions that the planes leave open stay there. By
 * Cholesky's method without roots. */
KERN_HD void quadric_least(const struct quadric *q, float p[3])
{
    const float *o = q->o, *b = q->b, hold = 1e-3f * q->area + 1e-30f;
    float d0 = 1 / (q->d[0] + hold), l1 = o[2] * d0, l2 = o[1] * d0;
    float d1 = 1 / (q->d[1] + hold - l1 * o[2]), m = o[0] - l1 * o[1], l3 = m * d1;
    float d2 = 1 / (q->d[2] + hold - l2 * o[1] - l3 * m), y1 = b[1] - l1 * b[0], y2 = b[2] - l2 * b[0] - l3 * y1;

    p[2] = -y2 * d2;
    p[1] = -y1 * d1 - l3 * p[2];
    p[0] = -b[0] * d0 - l1 * p[1] - l2 * p[2];
}

/* What orders edges: their error and a little for their length (2 h) and area, a thousandth of half the length as distance, so that what
 * is flat comes out even. */
KERN_HD float quadric_order(const struct quadric *q, const float h[3], float error)
{
    return error + 1e-6f * q->area * (h[0] * h[0] + h[1] * h[1] + h[2] * h[2]);
}

/* Levels are a factor of two apart: what is in one counts as equal. */
#define QUADRIC_LAST 126

KERN_HD uint8_t quadric_level(float order)
{
    uint32_t bits;
    int level;

    memcpy(&bits, &order, 4); /* from 0 on they are in the order of the numbers; the exponent is at 23 */
    level = (int)(bits >> 23) - 7;
    return (uint8_t)(level < 0 ? 0 : level > QUADRIC_LAST ? QUADRIC_LAST : level);
}

/* Whether a face v x y stands when v goes to p: it turns by less than 80 degrees and does not become thinner than a millionth of its
 * length; what was so thin before had no side to keep. */
KERN_HD bool face_stands(const float v[3], const float x[3], const float y[3], const float p[3])
{
    float d[3], u[3], w[3], was[3], is[3], dd, uu, ww, dot, a, b;

    for (int i = 0; i < 3; i++) {
        d[i] = y[i] - x[i];
        u[i] = v[i] - x[i];
        w[i] = p[i] - x[i];
    }
    was[0] = d[1] * u[2] - d[2] * u[1];
    was[1] = d[2] * u[0] - d[0] * u[2];
    was[2] = d[0] * u[1] - d[1] * u[0];
    is[0] = d[1] * w[2] - d[2] * w[1];
    is[1] = d[2] * w[0] - d[0] * w[2];
    is[2] = d[0] * w[1] - d[1] * w[0];
    dd = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    uu = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    ww = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
    dot = was[0] * is[0] + was[1] * is[1] + was[2] * is[2];
    a = was[0] * was[0] + was[1] * was[1] + was[2] * was[2];
    b = is[0] * is[0] + is[1] * is[1] + is[2] * is[2];
    return !(a > 1e-12f * dd * uu) || (dot > 0 && dot / a * dot >= 0.03f * b && b > 1e-12f * dd * ww);
}

/* ---- mesh.simplify, for every device ---- */

/* The mesh as it is worked on: vertices along a space-filling curve (Morton's, 1024 cells a side of a cube around the mesh), those of
 * one cell by their numbers; faces by their lowest vertex, equal ones by their numbers. Memory is walked from one end to the other,
 * whatever the order of the mesh. */
struct simplify_order {
    uint32_t *was;   /* number of a vertex in the mesh */
    uint32_t *index; /* of faces, in numbers along the curve */
    float scale;     /* a power of two: times the longest side of the mesh's box, from a half to one; 1 where there is none */
};
/* Both arrays are the caller's to free, on failure, too. Refuses an index out of range. */
int simplify_sort(struct recon_ctx *ctx, const struct recon_mesh *m, struct simplify_order *ret);
float simplify_scale(float side); /* of a mesh whose box has this longest side */
int simplify_fits(struct recon_ctx *ctx, const struct recon_mesh *m); /* refuses more faces than are taken */
int simplify_check(struct recon_ctx *ctx, const struct recon_value *params); /* refuses when nothing says how far to go */
/* The square of max_error in scaled units, 0: any error is fine. */
float simplify_most(const struct recon_value *params, float scale);
/* Tells what is left when it is more than was asked for. */
void simplify_tell(struct recon_ctx *ctx, const struct recon_value *params, uint64_t faces, uint64_t vertices);
bool simplify_enough(const struct recon_value *params, uint64_t faces, uint64_t vertices);
/* How many collapses, of two faces and a vertex each, it takes until that holds; UINT64_MAX without a target. */
uint64_t simplify_wanted(const struct recon_value *params, uint64_t faces, uint64_t vertices);
/* What it takes with so many edges; a bound before a run assumes three a face. */
void simplify_cost(const struct recon_mesh *m, const struct recon_value *params, uint64_t edges, struct recon_cost *cost);
int simplify_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
/* For recon_module.elsewhere of a device that has rounds alone: 1 with why, or 0. */
int simplify_elsewhere(const struct recon_value *params, char *why, size_t size);
/* By both methods; on a device, which is NULL for the host, by rounds. */
int golden_simplify(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

KERN_END
#endif
