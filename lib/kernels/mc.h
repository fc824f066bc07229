/* kernels/mc.h - marching cubes, the arithmetic that every device shares so that all give the same vertices.
 *
 * A sample's value is v = field - iso (double), turned so that the inside is negative for both rules:
 *   lt: inside where field < iso;  ge: v = iso - field, inside where v <= 0 (field >= iso).
 * A sample that is not a number, and padding, is outside. The surface crosses an edge at t = v0 / (v0 - v1).
 * Order of vertices: by the edge's lower sample (x, y, z; z fastest), then by axis; the centre vertex of a
 * cell after the edges of its lowest sample. Order of faces: by cell, then as in the table. */
#ifndef KERNELS_MC_H
#define KERNELS_MC_H

#include "kernels/hd.h"
#include "kernels/mc_tables.h"

struct mc_rule {
    double iso, pad_value; /* pad_value: of a padding or NaN sample, outside */
    double min_weight;     /* observed: weight > min_weight */
    int ge;                /* inside rule */
    int pad;               /* 0 or 1 samples of padding on each side */
};

KERN_HD struct mc_rule mc_rule_of(double iso, int ge, double min_weight, int pad)
{
    struct mc_rule r;
    r.iso = iso;
    r.ge = ge;
    r.min_weight = min_weight;
    r.pad = pad;
    r.pad_value = ge ? (iso > 0 ? iso : 1.0) : (iso < 1 ? 1.0 - iso : 1.0);
    return r;
}
/* Turned value of a sample. pad_value is already turned: field 0 (ge) or 1 (lt) where that is outside. */
KERN_HD double mc_value(const struct mc_rule *r, float field)
{
    double v = r->ge ? r->iso - (double)field : (double)field - r->iso;
    return v == v ? v : r->pad_value;
}
KERN_HD int mc_inside(const struct mc_rule *r, double v)
{
    return r->ge ? v <= 0 : v < 0;
}
/* Place of the crossing between samples of turned values v0 and v1 on different sides: 0 to 1. */
KERN_HD double mc_cross(double v0, double v1)
{
    double t = v0 / (v0 - v1);
    return t >= 0 && t <= 1 ? t : 0.5;
}

/* Corner c of a cell: (c & 1, c >> 1 & 1, c >> 2 & 1). The two ends of edge e = 4 * axis + q. */
KERN_HD int mc_edge_corner(int e)
{
    int axis = e >> 2, a = e & 1, b = e >> 1 & 1;
    return axis == 0 ? a << 1 | b << 2 : axis == 1 ? a | b << 2 : a | b << 1;
}
/* Corners of face f = 2 * axis + side around it: i = 0..3. */
KERN_HD int mc_face_corner(int f, int i)
{
    int axis = f >> 1, u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3;
    return ((f & 1) << axis) | ((i == 1 || i == 2) ? u : 0) | (i >= 2 ? v : 0);
}

/* Entry of the table for a cell: the case and, for its ambiguous faces, the asymptotic decider: the inside
 * corners a, c are joined when a * c > b * d. The products are the same in both cells of a face, so both
 * decide alike. */
KERN_DEVICE int mc_entry(int code, const double v[8])
{
    int entry = mc_first[code], mask = mc_ambiguous[code], bit = 1, f;

    for (f = 0; mask; f++, mask >>= 1) {
        double ac, bd;
        if (!(mask & 1))
            continue;
        ac = v[mc_face_corner(f, 0)] * v[mc_face_corner(f, 2)];
        bd = v[mc_face_corner(f, 1)] * v[mc_face_corner(f, 3)];
        if (code >> mc_face_corner(f, 0) & 1 ? ac > bd : bd > ac)
            entry += bit;
        bit <<= 1;
    }
    return entry;
}

#endif
