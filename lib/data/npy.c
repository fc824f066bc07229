#include "config.h"
#include "data/npy.h"

#include <math.h>
#include <stdlib.h>

/* 'shape': (165, 75, 74), */
static int parse_shape(const char *p, struct npy *a)
{
    a->dims = 0;
    a->count = 1;
    while (*p && *p != ')') {
        char *end;

        if (*p < '0' || *p > '9') {
            p++;
            continue;
        }
        if (a->dims == 5)
            return -1;
        a->dim[a->dims] = strtoull(p, &end, 10);
        if (a->dim[a->dims] > (1ull << 40) || (a->dim[a->dims] && a->count > (1ull << 42) / a->dim[a->dims]))
            return -1;
        a->count *= a->dim[a->dims++];
        p = end;
    }
    return *p == ')' ? 0 : -1;
}

int npy_header(const char *h, struct npy *a)
{
    const char *descr = strstr(h, "'descr'"), *order = strstr(h, "'fortran_order'"),
               *shape = strstr(h, "'shape'");
    char endian, kind;
    int item;

    if (!descr || !order || !shape || !(descr = strchr(descr + 7, '\'')) || !(shape = strchr(shape, '(')))
        return -1;
    if (sscanf(descr, "'%c%c%d'", &endian, &kind, &item) != 3 || !strchr("<|=", endian) ||
        !strchr("fuib", kind))
        return -1;
    if (item != 1 && item != 2 && item != 4 && item != 8)
        return -1;
    a->kind = kind;
    a->item = item;
    a->fortran = strstr(order, "True") && strstr(order, "True") < order + 24;
    return parse_shape(shape + 1, a);
}

static double half_value(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

    return h >> 15 ? -v : v;
}

#define CONVERT(type)                                                                                        \
    for (size_t i = 0; i < n; i++) {                                                                         \
        type v;                                                                                              \
        memcpy(&v, from + i * sizeof(v), sizeof(v));                                                         \
        to[i] = (double)v;                                                                                   \
    }                                                                                                        \
    break

void npy_doubles(const struct npy *a, const unsigned char *from, size_t n, double *to)
{
    switch (a->kind << 4 | a->item) {
    case 'f' << 4 | 4: CONVERT(float);
    case 'f' << 4 | 8: CONVERT(double);
    case 'u' << 4 | 1: case 'b' << 4 | 1: CONVERT(uint8_t);
    case 'u' << 4 | 2: CONVERT(uint16_t);
    case 'u' << 4 | 4: CONVERT(uint32_t);
    case 'u' << 4 | 8: CONVERT(uint64_t);
    case 'i' << 4 | 1: CONVERT(int8_t);
    case 'i' << 4 | 2: CONVERT(int16_t);
    case 'i' << 4 | 4: CONVERT(int32_t);
    case 'i' << 4 | 8: CONVERT(int64_t);
    default: /* f2 */
        for (size_t i = 0; i < n; i++)
            to[i] = half_value((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
    }
}


static int bad(const char *path, const char *rule, const char *what, struct fault *fault)
{
    return fault_set(fault, CODE_DATA, rule, "'%s' %s", path, what);
}

/* *ret_body: where the numbers begin */
static int read_head(const char *path, const struct load *t, struct npy *a, const char **ret_body, struct fault *fault)
{
    const unsigned char *b = (const unsigned char *)t->s;
    uint64_t lead = 10, n;
    char *text;
    int rc;

    if (t->n < 12 || memcmp(b, "\x93NUMPY", 6))
        return bad(path, t->n < 12 ? "file-truncated" : NULL, "is no NPY array", fault);
    n = b[8] | (uint64_t)b[9] << 8;
    if (b[6] > 1) {
        n |= (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
        lead = 12;
    }
    if (n > 65536 || n > t->n - lead)
        return bad(path, n > 65536 ? NULL : "file-truncated", "has a header longer than the file or 65536 bytes", fault);
    text = xstrndup(t->s + lead, n);
    rc = npy_header(text, a);
    free(text);
    if (rc)
        return bad(path, NULL, "has a type or shape that is not read (little-endian f2 f4 f8, u1..u8, i1..i8, 4 axes)", fault);
    *ret_body = t->s + lead + n;
    if (a->count * (uint64_t)a->item != t->n - lead - n)
        return fault_set(fault, CODE_DATA, "file-truncated", "'%s' has %llu bytes of numbers, its shape wants %llu", path,
                         (unsigned long long)(t->n - lead - n), (unsigned long long)(a->count * (uint64_t)a->item));
    return 0;
}

int npy_parse(const char *path, const struct load *t, const struct data_alloc *alloc, struct recon_mesh *ret, struct fault *fault)
{
    struct recon_mesh m;
    const char *body = NULL;
    struct npy a;
    double v[6];

    if (read_head(path, t, &a, &body, fault))
        return -1;
    if (a.dims != 2 || (a.dim[1] != 3 && a.dim[1] != 6))
        return bad(path, NULL, "is no array of points: two axes, n x 3 (x y z) or n x 6 (and a normal), are wanted", fault);
    if (a.fortran)
        return bad(path, NULL, "is in Fortran order: save numpy.ascontiguousarray of it", fault);
    if (a.dim[0] > UINT32_MAX)
        return bad(path, NULL, "has more than 4294967295 points", fault);
    if (mesh_arrays(&m, a.dim[0], a.dim[1] == 6, false, alloc, fault))
        return -1;
    for (uint64_t i = 0; i < a.dim[0]; i++) {
        npy_doubles(&a, (const unsigned char *)body + i * a.dim[1] * (uint64_t)a.item, a.dim[1], v);
        for (int k = 0; k < 3; k++) {
            m.xyz[3 * i + (uint64_t)k] = place(t, k, v[k]);
            if (m.normals)
                m.normals[3 * i + (uint64_t)k] = (float)v[3 + k];
        }
    }
    *ret = m;
    return 0;
}
