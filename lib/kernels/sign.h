/* kernels/sign.h - whether a ray from a point along +x meets a triangle, the same for two triangles at one edge. C and C++. */
#ifndef KERNELS_SIGN_H
#define KERNELS_SIGN_H

#include <math.h>
#include <stdbool.h>
#include "kernels/mesh_rows.h"

KERN_BEGIN

/* Whether the edge a-b, seen along x, is crossed by the half-line from p towards +y. The ends are taken in one order whoever
 * asks (lower z, then lower y), and z counts half-open: two triangles at an edge get the same answer, bit for bit, so a ray
 * through an edge or a vertex counts exactly as a ray a hair beside it (simulation of simplicity). */
KERN_HD bool edge_crossed(const float *a, const float *b, const float *p)
{
    double u, v;

    if ((a[2] <= p[2]) == (b[2] <= p[2]))
        return false;
    if (b[2] < a[2]) {
        const float *x = a;

        a = b;
        b = x;
    }
    u = ((double)b[1] - (double)a[1]) * ((double)p[2] - (double)a[2]);
    v = ((double)p[1] - (double)a[1]) * ((double)b[2] - (double)a[2]);
    return u > v; /* the edge is at y > p's */
}

KERN_HD bool triangle_hit(const float *a, const float *b, const float *c, const float *p)
{
    double u[3], v[3], n[3], d;

    if (!(edge_crossed(a, b, p) ^ edge_crossed(b, c, p) ^ edge_crossed(c, a, p)))
        return false;
    for (int i = 0; i < 3; i++) {
        u[i] = (double)b[i] - (double)a[i];
        v[i] = (double)c[i] - (double)a[i];
    }
    n[0] = u[1] * v[2] - u[2] * v[1];
    n[1] = u[2] * v[0] - u[0] * v[2];
    n[2] = u[0] * v[1] - u[1] * v[0];
    d = ((double)p[0] - (double)a[0]) * n[0] + ((double)p[1] - (double)a[1]) * n[1] + ((double)p[2] - (double)a[2]) * n[2];
    return n[0] > 0 ? d < 0 : d > 0; /* the plane is at x > p's */
}

/* Solid angle of a triangle from p over 4 pi (Van Oosterom and Strackee 1983). */
KERN_HD double triangle_winding(const float *a, const float *b, const float *c, const float *p)
{
    double x[3], y[3], z[3], lx, ly, lz, det, div;

    for (int i = 0; i < 3; i++) {
        x[i] = (double)a[i] - (double)p[i];
        y[i] = (double)b[i] - (double)p[i];
        z[i] = (double)c[i] - (double)p[i];
    }
    lx = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    ly = sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
    lz = sqrt(z[0] * z[0] + z[1] * z[1] + z[2] * z[2]);
    det = x[0] * (y[1] * z[2] - y[2] * z[1]) + x[1] * (y[2] * z[0] - y[0] * z[2]) + x[2] * (y[0] * z[1] - y[1] * z[0]);
    div = lx * ly * lz + (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]) * lz + (y[0] * z[0] + y[1] * z[1] + y[2] * z[2]) * lx +
          (z[0] * x[0] + z[1] * x[1] + z[2] * x[2]) * ly;
    return 2 * atan2(det, div) / (4 * 3.14159265358979323846);
}

int sign_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost);
/* Tells that n of the points are inside and writes the file; inside is read only when a file is asked for. */
int sign_tell(struct recon_ctx *ctx, uint64_t points, uint64_t n, const struct recon_value *params, const uint8_t *inside);
/* Tells, writes the file, fills the output (NULL: nobody asks). */
int sign_give(struct recon_ctx *ctx, const struct recon_points *p, const struct recon_value *params, const uint8_t *inside, struct recon_points *ret);
int golden_sign(struct recon_ctx *ctx, const struct recon_kernel *kernel, const struct recon_device *device);

KERN_END
#endif
