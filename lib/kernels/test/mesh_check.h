/* kernels/test/mesh_check.h - what a surface is: whether it is closed, its Euler number, volume and area. */
#ifndef KERNELS_TEST_MESH_CHECK_H
#define KERNELS_TEST_MESH_CHECK_H

#include "base/base.h"
#include "recon/data.h"

struct mesh_facts {
    uint64_t edges;      /* undirected */
    uint64_t open;       /* directed edges without exactly one opposite */
    uint64_t repeated;   /* directed edges used more than once */
    uint64_t unused;     /* vertices in no face */
    uint64_t bad;        /* indices out of range, faces with a vertex twice, coordinates not finite */
    int64_t euler;       /* V - E + F */
    double volume, area;
};
void mesh_facts(const struct recon_mesh *m, struct mesh_facts *ret);

#endif
