/* kernels/mesh_normal.h - what one corner gives to its vertex's normal. */
#ifndef KERNELS_MESH_NORMAL_H
#define KERNELS_MESH_NORMAL_H

#include "kernels/mesh_plan.h"

/* by area: the face's cross product; by angle (Thuermer and Wuethrich 1998): its unit normal times the angle at the corner */
KERN_HD void normal_add(const struct recon_mesh *m, uint32_t h, int angle, double sum[3])
{
    double n[3], w = 1, length;

    face_cross(m, h / 3, n);
    if (angle) {
        const float *p = m->xyz + 3 * (uint64_t)m->index[h], *a = m->xyz + 3 * (uint64_t)m->index[topo_next(h)],
                    *b = m->xyz + 3 * (uint64_t)m->index[topo_prev(h)];
        double dot = 0;

        for (int i = 0; i < 3; i++)
            dot += ((double)a[i] - (double)p[i]) * ((double)b[i] - (double)p[i]);
        length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        w = length > 0 ? atan2(length, dot) / length : 0;
    }
    for (int i = 0; i < 3; i++)
        sum[i] += w * n[i];
}

KERN_HD void normal_unit(const double sum[3], float to[3])
{
    double length = sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);

    for (int i = 0; i < 3; i++)
        to[i] = length > 0 ? (float)(sum[i] / length) : 0;
}

#endif
