/* data/npy.h - inside lib/data: NPY arrays (numpy.lib.format, versions 1 to 3), alone or as members of an NPZ. */
#ifndef DATA_NPY_H
#define DATA_NPY_H

#include "data/geom.h"

struct npy {
    char kind; /* f u i b */
    int item;  /* bytes */
    bool fortran;
    int dims;
    uint64_t dim[5], count;
};
/* The dictionary's text, NUL at its end; little-endian types of 1 to 8 bytes, at most 5 axes; 0 or -1. */
int npy_header(const char *text, struct npy *ret);
void npy_doubles(const struct npy *a, const unsigned char *from, size_t n, double *to);
/* An array of n x 3 numbers as points, n x 6 with normals behind. */
int npy_parse(const char *path, const struct load *text, const struct data_alloc *alloc, struct recon_mesh *ret, struct fault *fault);

#endif
