/* Volumes as NPZ (doc/format-volume.md): a zip of NPY arrays, as numpy.savez writes it. */
#include "config.h"
#include "data/data_priv.h"
#include "data/npy.h"

#include <math.h>
#include <stdlib.h>

static int bad_array(const struct zip_stream *s, const char *path, const char *key, const char *what,
                     struct fault *fault)
{
    (void)s;
    return fault_set(fault, CODE_DATA, NULL, "array '%s' of '%s' %s", key, path, what);
}

static int read_header(struct zip_stream *s, const char *path, const char *key, const struct zip_member *m,
                       struct npy *a, struct fault *fault)
{
    unsigned char b[12];
    char text[8192];
    size_t n, lead;

    if (zip_stream_read(s, b, 10, fault))
        return -1;
    if (memcmp(b, "\x93NUMPY", 6))
        return bad_array(s, path, key, "is no NPY array", fault);
    n = b[8] | (size_t)b[9] << 8;
    lead = 10;
    if (b[6] > 1) {
        if (zip_stream_read(s, b + 10, 2, fault))
            return -1;
        n |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
        lead = 12;
    }
    if (n >= sizeof(text))
        return bad_array(s, path, key, "has a header that is too long", fault);
    if (zip_stream_read(s, text, n, fault))
        return -1;
    text[n] = 0;
    if (npy_header(text, a))
        return bad_array(
            s, path, key,
            "has a type or shape that is not read (little-endian f2 f4 f8, u1..u8, i1..i8, 5 axes)", fault);
    if (a->fortran && a->dims > 1)
        return bad_array(s, path, key, "is in Fortran order: save numpy.ascontiguousarray of it", fault);
    if (m->size - lead - n != a->count * (uint64_t)a->item)
        return fault_set(fault, CODE_DATA, "file-truncated",
                         "array '%s' of '%s' has %llu bytes, its shape wants %llu", key, path,
                         (unsigned long long)(m->size - lead - n),
                         (unsigned long long)(a->count * (uint64_t)a->item));
    return 0;
}

enum { BLOCK = 8192 };

/* all values as float (rgb NULL) or as bytes */
static int read_values(struct zip_stream *s, const struct npy *a, float *to, uint8_t *rgb,
                       struct fault *fault)
{
    unsigned char raw[BLOCK * 8];
    double values[BLOCK];

    if (to && a->kind == 'f' && a->item == 4)
        return zip_stream_read(s, to, (size_t)a->count * 4, fault);
    for (uint64_t done = 0, n; done < a->count; done += n) {
        n = a->count - done < BLOCK ? a->count - done : BLOCK;
        if (zip_stream_read(s, raw, (size_t)n * (size_t)a->item, fault))
            return -1;
        npy_doubles(a, raw, (size_t)n, values);
        for (uint64_t i = 0; i < n; i++)
            if (to)
                to[done + i] = (float)values[i];
            else
                rgb[done + i] = (uint8_t)(values[i] < 0 ? 0 : values[i] > 255 ? 255 : values[i]);
    }
    return 0;
}

struct reader {
    struct zip zip;
    const char *path;
    const struct data_alloc *alloc; /* NULL: shapes only */
    struct recon_volume v;
};

static const struct zip_member *member(const struct reader *r, const char *key)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.npy", key);
    return zip_find(&r->zip, name);
}

/* up to 3 numbers of a small array; gives how many, 0 when the key is absent, -1 */
static int read_small(const struct reader *r, const char *key, double ret[3], struct fault *fault)
{
    const struct zip_member *m = member(r, key);
    unsigned char raw[24];
    struct zip_stream *s;
    struct npy a;
    int rc = -1;

    if (!m)
        return 0;
    if (!(s = zip_stream_open(&r->zip, m)))
        return fault_set(fault, CODE_MEMORY, NULL, "no memory to read '%s'", r->path);
    if (read_header(s, r->path, key, m, &a, fault) == 0) {
        if (a.count < 1 || a.count > 3)
            bad_array(s, r->path, key, "has not 1 to 3 numbers", fault);
        else if (zip_stream_read(s, raw, (size_t)a.count * (size_t)a.item, fault) == 0 &&
                 zip_stream_end(s, fault) == 0) {
            npy_doubles(&a, raw, (size_t)a.count, ret);
            rc = (int)a.count;
        }
    }
    zip_stream_close(s);
    for (int i = 0; i < rc; i++)
        if (!isfinite(ret[i]))
            return fault_set(fault, CODE_DATA, NULL, "array '%s' of '%s' is not finite", key, r->path);
    return rc;
}

static int wrong_axes(const struct reader *r, const char *key, const struct npy *a, const char *want, struct fault *fault)
{
    return fault_set(fault, CODE_DATA, NULL, "array '%s' of '%s' has %d axes, %s are wanted", key, r->path, a->dims, want);
}

static int take_dim(struct reader *r, const char *key, const uint64_t dim[3], struct fault *fault)
{
    for (int i = 0; i < 3; i++) {
        if (dim[i] < 1 || dim[i] > (1u << 20))
            return fault_set(fault, CODE_DATA, NULL,
                             "array '%s' of '%s' has an axis of %llu samples, 1 to 1048576 are read", key,
                             r->path, (unsigned long long)dim[i]);
        r->v.dim[i] = (uint32_t)dim[i];
    }
    return 0;
}

/* the array's shape less its colours, as a dense volume or as the blocks of one wants it */
static int check_shape(struct reader *r, const char *key, const struct npy *a, bool rgb, struct fault *fault)
{
    uint64_t want[4] = { r->v.blocks, r->v.side, r->v.side, r->v.side };
    int axes = r->v.side ? 4 : 3;

    if (a->dims != axes + rgb || (rgb && a->dim[axes] != 3))
        return wrong_axes(r, key, a, rgb ? r->v.side ? "block, x, y, z and 3 colours" : "x, y, z and 3 colours"
                          : r->v.side    ? "block, x, y, z"
                                         : "x, y, z", fault);
    if (!r->v.side && str_eq(key, "tsdf"))
        return take_dim(r, key, a->dim, fault);
    for (int i = 0; i < 3 && !r->v.side; i++)
        want[i] = r->v.dim[i];
    for (int i = 0; i < axes; i++)
        if (a->dim[i] != want[i])
            return fault_set(fault, CODE_DATA, NULL, "array '%s' of '%s' has %llu along axis %d, its %s wants %llu", key, r->path,
                             (unsigned long long)a->dim[i], i, r->v.side ? "list of blocks" : "tsdf", (unsigned long long)want[i]);
    return 0;
}

/* ---- blocks ---- */

/* side of the blocks, from tsdf's shape */
static int read_side(struct reader *r, struct fault *fault)
{
    const struct zip_member *m = member(r, "tsdf");
    struct zip_stream *s = zip_stream_open(&r->zip, m);
    struct npy a;
    int rc;

    if (!s)
        return fault_set(fault, CODE_MEMORY, NULL, "no memory to read '%s'", r->path);
    rc = read_header(s, r->path, "tsdf", m, &a, fault);
    zip_stream_close(s);
    if (rc == 0 && a.dims != 4)
        return wrong_axes(r, "tsdf", &a, "block, x, y, z", fault);
    if (rc == 0 && a.dim[1] != 8 && a.dim[1] != 16 && a.dim[1] != 32)
        return fault_set(fault, CODE_DATA, NULL, "blocks of '%s' have %llu samples a side, 8, 16 or 32 are read", r->path,
                         (unsigned long long)a.dim[1]);
    if (rc == 0)
        r->v.side = (uint32_t)a.dim[1];
    return rc;
}

/* ascending, each within the grid */
static int check_blocks(const struct reader *r, const double *v, uint64_t i, uint64_t n, uint64_t *last, struct fault *fault)
{
    const struct recon_volume *w = &r->v;
    uint64_t grid[3];

    for (int a = 0; a < 3; a++)
        grid[a] = (w->dim[a] + w->side - 1) / w->side;
    for (uint64_t k = 0; k < n; k++, v += 3) {
        uint64_t at = 0;

        for (int a = 0; a < 3; a++) {
            if (!(v[a] >= 0 && v[a] < (double)grid[a]) || v[a] != floor(v[a]))
                return fault_set(fault, CODE_DATA, NULL, "block %llu of '%s' has place %g along axis %d of %llu", (unsigned long long)(i + k),
                                 r->path, v[a], a, (unsigned long long)grid[a]);
            at = at * grid[a] + (uint64_t)v[a];
        }
        if (i + k && at <= *last)
            return fault_set(fault, CODE_DATA, NULL, "block %llu of '%s' does not come after the one before it", (unsigned long long)(i + k), r->path);
        *last = at;
    }
    return 0;
}

static int read_list(struct reader *r, struct zip_stream *s, const struct npy *a, struct fault *fault)
{
    unsigned char raw[3 * 1024 * 8];
    double v[3 * 1024];
    uint64_t last = 0;

    for (uint64_t done = 0, n; done < r->v.blocks; done += n) {
        n = r->v.blocks - done < 1024 ? r->v.blocks - done : 1024;
        if (zip_stream_read(s, raw, (size_t)(3 * n) * (size_t)a->item, fault))
            return -1;
        npy_doubles(a, raw, (size_t)(3 * n), v);
        if (check_blocks(r, v, done, n, &last, fault))
            return -1;
        for (uint64_t i = 0; r->v.block && i < 3 * n; i++)
            r->v.block[3 * done + i] = (uint32_t)v[i];
    }
    return zip_stream_end(s, fault);
}

static int read_blocks(struct reader *r, struct fault *fault)
{
    const struct zip_member *m = member(r, "blocks");
    struct zip_stream *s;
    double dim[3], beyond[3];
    struct npy a;
    int rc = read_small(r, "dim", dim, fault);

    if (rc < 0)
        return -1;
    if (rc != 3 || dim[0] < 1 || dim[1] < 1 || dim[2] < 1 || dim[0] > 1048576 || dim[1] > 1048576 || dim[2] > 1048576)
        return fault_set(fault, CODE_DATA, NULL, "'%s' has blocks, but no array 'dim' of 3 numbers from 1 to 1048576", r->path);
    for (int i = 0; i < 3; i++)
        r->v.dim[i] = (uint32_t)dim[i];
    if (dim[0] * dim[1] * dim[2] > 1099511627776.0)
        return fault_set(fault, CODE_DATA, "volume-too-big", "'%s' is %g samples, at most 2^40 are read", r->path, dim[0] * dim[1] * dim[2]);
    if ((rc = read_small(r, "beyond", beyond, fault)) < 0)
        return -1;
    r->v.beyond = rc ? (float)beyond[0] : 1;
    if (read_side(r, fault))
        return -1;
    if (!(s = zip_stream_open(&r->zip, m)))
        return fault_set(fault, CODE_MEMORY, NULL, "no memory to read '%s'", r->path);
    rc = read_header(s, r->path, "blocks", m, &a, fault);
    if (rc == 0 && (a.dims != 2 || a.dim[1] != 3 || a.kind == 'f'))
        rc = fault_set(fault, CODE_DATA, NULL, "array 'blocks' of '%s' is not n x 3 whole numbers", r->path);
    if (rc == 0) {
        r->v.blocks = a.dim[0];
        if (r->alloc && !(r->v.block = r->alloc->alloc(r->alloc->self, 12 * a.dim[0])))
            rc = fault_set(fault, CODE_MEMORY, "volume-too-big", "no memory for the list of %llu blocks of '%s'", (unsigned long long)a.dim[0], r->path);
        rc = rc ? rc : read_list(r, s, &a, fault);
    }
    zip_stream_close(s);
    return rc;
}

static int read_big(struct reader *r, const char *key, float **ret, uint8_t **rgb, struct fault *fault)
{
    const struct zip_member *m = member(r, key);
    struct zip_stream *s = zip_stream_open(&r->zip, m);
    struct npy a;
    void *to;
    int rc;

    if (!s)
        return fault_set(fault, CODE_MEMORY, NULL, "no memory to read '%s'", r->path);
    rc = read_header(s, r->path, key, m, &a, fault);
    if (rc == 0)
        rc = check_shape(r, key, &a, rgb != NULL, fault);
    if (rc == 0 && r->alloc) {
        to = r->alloc->alloc(r->alloc->self, a.count * (rgb ? 1 : 4));
        if (!to)
            rc = fault_set(fault, CODE_MEMORY, "volume-too-big",
                           "no memory for array '%s' of '%s', %u x %u x %u", key, r->path, r->v.dim[0],
                           r->v.dim[1], r->v.dim[2]);
        if (rgb)
            *rgb = to;
        else
            *ret = to;
        if (rc == 0)
            rc = read_values(s, &a, rgb ? NULL : to, rgb ? to : NULL, fault);
        if (rc == 0)
            rc = zip_stream_end(s, fault);
    }
    zip_stream_close(s);
    return rc;
}

static int read_frame(struct reader *r, struct fault *fault)
{
    double v[3];
    int n = read_small(r, "origin", v, fault);

    if (n < 0)
        return -1;
    if (n != 3)
        return fault_set(fault, CODE_DATA, NULL, "'%s' has no array 'origin' of 3 numbers", r->path);
    memcpy(r->v.origin, v, sizeof(r->v.origin));
    if ((n = read_small(r, "voxel", v, fault)) < 0)
        return -1;
    if (n < 1 || v[0] <= 0 || (n == 3 && (v[1] != v[0] || v[2] != v[0])))
        return fault_set(fault, CODE_DATA, NULL, "'%s' has no array 'voxel' of one number above 0", r->path);
    r->v.voxel = v[0];
    if ((n = read_small(r, "truncation", v, fault)) < 0)
        return -1;
    r->v.truncation = n > 0 && v[0] > 0 ? v[0] : 0;
    return 0;
}

static int read_all(const char *path, const struct data_alloc *alloc, struct recon_volume *ret,
                    struct fault *fault)
{
    struct reader r = { .path = path, .alloc = alloc };
    const char *colour;
    int rc;

    if (zip_open(path, &r.zip, fault))
        return -1;
    if (!member(&r, "tsdf"))
        rc = fault_set(fault, CODE_DATA, NULL, "'%s' is no volume: it has no array 'tsdf'", path);
    else
        rc = read_frame(&r, fault);
    if (rc == 0 && member(&r, "blocks"))
        rc = read_blocks(&r, fault);
    if (rc == 0)
        rc = read_big(&r, "tsdf", &r.v.tsdf, NULL, fault);
    if (rc == 0 && member(&r, "weight"))
        rc = read_big(&r, "weight", &r.v.weight, NULL, fault);
    colour = member(&r, "colour") ? "colour" : "color";
    if (rc == 0 && member(&r, colour))
        rc = read_big(&r, colour, NULL, &r.v.rgb, fault);
    zip_close(&r.zip);
    if (rc == 0) {
        *ret = r.v;
        return 0;
    }
    if (alloc) {
        alloc->free(alloc->self, r.v.tsdf);
        alloc->free(alloc->self, r.v.weight);
        alloc->free(alloc->self, r.v.rgb);
        alloc->free(alloc->self, r.v.block);
    }
    return rc;
}

int volume_read(const char *path, const struct data_alloc *alloc, struct recon_volume *ret,
                struct fault *fault)
{
    return read_all(path, alloc, ret, fault);
}

int volume_probe(const char *path, struct recon_volume *ret, struct fault *fault)
{
    return read_all(path, NULL, ret, fault);
}

/* ---- writing ---- */

static int add_array(struct zip_out *z, const char *key, const char *descr, const char *shape, const void *p,
                     uint64_t bytes, struct err *err)
{
    char head[256] = "\x93NUMPY\x01", name[32];
    size_t n = 10, whole = 128;

    n += (size_t)snprintf(head + 10, sizeof(head) - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    memset(head + n, ' ', whole - n);
    head[7] = 0;
    head[8] = (char)(whole - 10);
    head[9] = 0;
    head[whole - 1] = '\n';
    snprintf(name, sizeof(name), "%s.npy", key);
    return zip_out_add(z, name, (struct zip_piece[]){ { head, whole }, { p, bytes } }, 2, err);
}

/* blocks, dim, beyond */
static int add_blocks(struct zip_out *z, const struct recon_volume *v, struct err *err)
{
    uint64_t dim[3] = { v->dim[0], v->dim[1], v->dim[2] };
    double beyond = (double)v->beyond;
    char shape[64];

    snprintf(shape, sizeof(shape), "(%llu, 3)", (unsigned long long)v->blocks);
    return add_array(z, "blocks", "<u4", shape, v->block, 12 * v->blocks, err) || add_array(z, "dim", "<u8", "(3,)", dim, sizeof(dim), err) ||
                   add_array(z, "beyond", "<f8", "()", &beyond, sizeof(beyond), err) ? -1 : 0;
}

int volume_write(const char *path, const struct recon_volume *v, bool compress, struct err *err)
{
    uint64_t n = recon_volume_samples(v);
    char shape[96], colours[112];
    struct zip_out z;
    int rc;

    if (v->side)
        snprintf(shape, sizeof(shape), "(%llu, %u, %u, %u", (unsigned long long)v->blocks, v->side, v->side, v->side);
    else
        snprintf(shape, sizeof(shape), "(%u, %u, %u", v->dim[0], v->dim[1], v->dim[2]);
    snprintf(colours, sizeof(colours), "%s, 3)", shape);
    strcat(shape, ")");
    if (zip_out_open(&z, path, compress, err))
        return -1;
    rc = add_array(&z, "tsdf", "<f4", shape, v->tsdf, n * 4, err);
    if (rc == 0 && v->weight)
        rc = add_array(&z, "weight", "<f4", shape, v->weight, n * 4, err);
    if (rc == 0)
        rc = add_array(&z, "origin", "<f8", "(3,)", v->origin, sizeof(v->origin), err);
    if (rc == 0)
        rc = add_array(&z, "voxel", "<f8", "()", &v->voxel, sizeof(v->voxel), err);
    if (rc == 0 && v->truncation > 0)
        rc = add_array(&z, "truncation", "<f8", "()", &v->truncation, sizeof(v->truncation), err);
    if (rc == 0 && v->rgb)
        rc = add_array(&z, "colour", "|u1", colours, v->rgb, n * 3, err);
    if (rc == 0 && v->side)
        rc = add_blocks(&z, v, err);
    if (rc == 0)
        return zip_out_commit(&z, err);
    zip_out_abort(&z);
    return rc;
}
