/* kernels/points_fit.h - the plane of a few points, the same bits on the host and on a device. C and C++. */
#ifndef KERNELS_POINTS_FIT_H
#define KERNELS_POINTS_FIT_H

#include "kernels/hd.h"

/* one turn that makes a[p][q] zero */
KERN_HD void normal_turn(double a[3][3], double v[3][3], int p, int q)
{
    double theta, t, c, s;

    if (a[p][q] == 0)
        return;
    theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    c = 1 / sqrt(t * t + 1);
    s = t * c;
    for (int i = 0; i < 3; i++) {
        double x = a[i][p], y = a[i][q];

        a[i][p] = c * x - s * y;
        a[i][q] = s * x + c * y;
    }
    for (int i = 0; i < 3; i++) {
        double x = a[p][i], y = a[q][i];

        a[p][i] = c * x - s * y;
        a[q][i] = s * x + c * y;
        x = v[i][p];
        y = v[i][q];
        v[i][p] = c * x - s * y;
        v[i][q] = s * x + c * y;
    }
}

KERN_HD void normal_fit(const float *xyz, const uint32_t *near, int n, double normal[3])
{
    double mean[3] = { 0 }, a[3][3] = { { 0 } }, v[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
    int least = 0, most = 0, second, large = 0;

    for (int k = 0; k < n; k++)
        for (int i = 0; i < 3; i++)
            mean[i] += (double)xyz[3 * (uint64_t)near[k] + (uint64_t)i] / n;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                a[i][j] += ((double)xyz[3 * (uint64_t)near[k] + (uint64_t)i] - mean[i]) * ((double)xyz[3 * (uint64_t)near[k] + (uint64_t)j] - mean[j]);
    for (int sweep = 0; sweep < 12; sweep++) {
        normal_turn(a, v, 0, 1);
        normal_turn(a, v, 0, 2);
        normal_turn(a, v, 1, 2);
    }
    for (int i = 1; i < 3; i++) {
        least = a[i][i] < a[least][least] ? i : least;
        most = a[i][i] >= a[most][most] ? i : most;
    }
    second = 3 - least - most;
    if (least == most || !(a[second][second] > 1e-12 * a[most][most])) {
        normal[0] = normal[1] = normal[2] = 0;
        return;
    }
    for (int i = 0; i < 3; i++)
        large = fabs(v[i][least]) > fabs(v[large][least]) ? i : large;
    for (int i = 0; i < 3; i++)
        normal[i] = v[large][least] < 0 ? -v[i][least] : v[i][least];
}

#endif
