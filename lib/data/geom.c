#include "config.h"
#include "data/geom.h"
#include "data/npy.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

int load_file(const char *path, const struct data_alloc *alloc, struct load *ret, struct fault *fault)
{
    uint64_t n = 0;
    int fd = data_open(path, &n, fault), rc;
    char *s;

    if (fd < 0)
        return -1;
    if (!(s = mesh_array(alloc, n + 1, 1))) {
        close(fd);
        return fault_set(fault, CODE_MEMORY, NULL, "no memory for the %llu bytes of '%s'", (unsigned long long)n, path);
    }
    rc = data_pread(fd, path, s, n, 0, fault);
    close(fd);
    if (rc) {
        alloc->free(alloc->self, s);
        return -1;
    }
    s[n] = 0;
    *ret = (struct load){ .s = s, .n = n };
    return 0;
}

static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/* A whole number of 64 bits times a power of ten, where long doubles have 64 bits: both are exact, and the result is rounded to 64
 * bits once. To round it again to a double is right unless what is cut off is just one half. */
static bool long_number(uint64_t m, int exponent, double *ret)
{
#if LDBL_MANT_DIG == 64
    static const long double ten[] = { 1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                       1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L };
    long double v;
    uint64_t bits;

    if (exponent < -27 || exponent > 27)
        return false;
    v = exponent < 0 ? (long double)m / ten[-exponent] : (long double)m * ten[exponent];
    memcpy(&bits, &v, sizeof(bits)); /* the first 8 bytes are the number's digits */
    *ret = (double)v;
    return (bits & 0x7ff) != 0x400;
#else
    (void)m;
    (void)exponent;
    (void)ret;
    return false;
#endif
}

/* what the quick ways cannot round: long mantissas, large exponents. The C locale, whatever the program's */
static double slow_number(const char *from, const char *to)
{
    char buffer[512];
    size_t n = (size_t)(to - from);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double v;

    if (n >= sizeof(buffer))
        n = sizeof(buffer) - 1; /* 500 digits settle any double but for ties beyond them */
    memcpy(buffer, from, n);
    buffer[n] = 0;
    v = c ? strtod_l(buffer, NULL, c) : strtod(buffer, NULL);
    if (c)
        freelocale(c);
    return v;
}

static bool special(const char **p, const char *end, double *ret)
{
    static const char *const words[] = { "infinity", "nan", "inf" };

    for (size_t i = 0; i < COUNT(words); i++) {
        size_t n = strlen(words[i]);

        if ((size_t)(end - *p) >= n && strncasecmp(*p, words[i], n) == 0) {
            *p += n;
            *ret = NAN;
            return true;
        }
    }
    return false;
}

static const char *read_exponent(const char *p, const char *end, int *ret)
{
    const char *q = p + 1;
    bool minus = false;
    int e = 0;

    if (q < end && (*q == '-' || *q == '+'))
        minus = *q++ == '-';
    if (q >= end || *q < '0' || *q > '9')
        return p;
    for (; q < end && *q >= '0' && *q <= '9'; q++)
        e = e < 100000 ? e * 10 + (*q - '0') : e;
    *ret += minus ? -e : e;
    return q;
}

bool number_read(const char **at, const char *end, double *ret)
{
    const char *p = *at, *from = p, *digits;
    uint64_t m = 0;
    int exponent = 0, taken = 0, seen = 0;
    bool minus = false;
    double v;

    if (p < end && (*p == '-' || *p == '+'))
        minus = *p++ == '-';
    digits = p;
    for (; p < end && *p >= '0' && *p <= '9'; p++, seen++) {
        taken += taken || *p != '0';
        if (taken <= 19)
            m = m * 10 + (uint64_t)(*p - '0');
        else
            exponent++;
    }
    if (p < end && *p == '.')
        for (p++; p < end && *p >= '0' && *p <= '9'; p++, seen++) {
            taken += taken || *p != '0';
            if (taken <= 19) {
                m = m * 10 + (uint64_t)(*p - '0');
                exponent--;
            }
        }
    if (!seen) {
        p = digits;
        if (!special(&p, end, ret))
            return false;
        *at = p;
        return true;
    }
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p, end, &exponent);
    if (taken <= 19 && m < (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        v = exponent < 0 ? (double)m / tens[-exponent] : (double)m * tens[exponent];
        v = minus ? -v : v;
    } else if (taken <= 19 && long_number(m, exponent, &v)) {
        v = minus ? -v : v;
    } else {
        v = slow_number(from, p);
    }
    *at = p;
    *ret = v;
    return true;
}

bool integer_read(const char **at, const char *end, int64_t *ret)
{
    const char *p = *at;
    bool minus = false;
    int64_t v = 0;
    int n = 0;

    if (p < end && (*p == '-' || *p == '+'))
        minus = *p++ == '-';
    for (; p < end && *p >= '0' && *p <= '9'; p++, n++) {
        if (n >= 18)
            return false;
        v = v * 10 + (*p - '0');
    }
    if (!n)
        return false;
    *at = p;
    *ret = minus ? -v : v;
    return true;
}

const char *text_line_end(const struct text *t)
{
    const char *e = memchr(t->p, '\n', (size_t)(t->end - t->p));

    return e ? e : t->end;
}

bool text_next(struct text *t)
{
    for (;;) {
        t->p = skip_blank(t->p, t->end);
        if (t->p >= t->end)
            return false;
        if (*t->p == '#')
            t->p = text_line_end(t);
        else if (*t->p != '\n')
            return true;
        if (t->p < t->end) {
            t->p++;
            t->line++;
        }
    }
}

bool text_number(struct text *t, double *ret)
{
    return text_next(t) && number_read(&t->p, t->end, ret) &&
           (t->p >= t->end || is_blank(*t->p) || *t->p == '\n' || *t->p == '#');
}

void mesh_drop(struct recon_mesh *m, const struct data_alloc *alloc)
{
    struct recon_array a[RECON_ARRAYS_MAX];

    for (int n = recon_slot_arrays(RECON_MESH, m, a); n > 0; n--)
        alloc->free(alloc->self, *a[n - 1].at);
    *m = (struct recon_mesh){ 0 };
}

/* Large ones by huge pages, where the system gives them on advice: a page fault for each 4 KiB costs more than parsing them. */
void *mesh_array(const struct data_alloc *alloc, uint64_t n, uint64_t size)
{
    enum { HUGE = 2 << 20, LARGE = 4 * HUGE };
    void *p = n > UINT64_MAX / 64 ? NULL : alloc->alloc(alloc->self, n * size);

    if (p && n * size >= LARGE) {
        uintptr_t from = ((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1), end = ((uintptr_t)p + n * size) & ~(uintptr_t)(HUGE - 1);

        madvise((void *)from, end - from, MADV_HUGEPAGE); /* advice: nothing is lost where it is not taken */
    }
    return p;
}

int mesh_arrays(struct recon_mesh *m, uint64_t vertices, bool normals, bool rgb, const struct data_alloc *alloc, struct fault *fault)
{
    *m = (struct recon_mesh){ .vertices = vertices, .place = RECON_HOST };
    m->xyz = mesh_array(alloc, vertices, 12);
    m->normals = normals ? mesh_array(alloc, vertices, 12) : NULL;
    m->rgb = rgb ? mesh_array(alloc, vertices, 3) : NULL;
    if (m->xyz && (m->normals || !normals) && (m->rgb || !rgb))
        return 0;
    mesh_drop(m, alloc);
    return fault_set(fault, CODE_MEMORY, NULL, "no memory for %llu vertices", (unsigned long long)vertices);
}

int mesh_indices(struct recon_mesh *m, uint64_t faces, const struct data_alloc *alloc, struct fault *fault)
{
    m->faces = faces;
    m->index = mesh_array(alloc, faces, 12);
    if (m->index)
        return 0;
    mesh_drop(m, alloc);
    return fault_set(fault, CODE_MEMORY, NULL, "no memory for %llu triangles", (unsigned long long)faces);
}

/* ---- by what the file is ---- */

enum form { FORM_NONE, FORM_PLY, FORM_OBJ, FORM_OFF, FORM_PCD, FORM_XYZ, FORM_GLB, FORM_NPY };

static bool ends(const char *path, const char *suffix)
{
    size_t n = strlen(path), k = strlen(suffix);

    return n >= k && strcasecmp(path + n - k, suffix) == 0;
}

static enum form form_of(const char *path, const char head[4])
{
    static const struct {
        const char *suffix;
        enum form form;
    } rows[] = {
        { ".ply", FORM_PLY },  { ".obj", FORM_OBJ },   { ".off", FORM_OFF },    { ".pcd", FORM_PCD },
        { ".xyz", FORM_XYZ },  { ".xyzn", FORM_XYZ },  { ".xyzrgb", FORM_XYZ }, { ".npts", FORM_XYZ },
        { ".txt", FORM_XYZ },  { ".glb", FORM_GLB },   { ".npy", FORM_NPY },
    };

    if (memcmp(head, "ply", 3) == 0 && (head[3] == '\n' || head[3] == '\r'))
        return FORM_PLY;
    if (memcmp(head, "glTF", 4) == 0)
        return FORM_GLB;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (ends(path, rows[i].suffix))
            return rows[i].form;
    return FORM_NONE;
}

static int find_form(const char *path, enum form *ret, struct fault *fault)
{
    char head[4] = { 0 };
    uint64_t n = 0;
    int fd = data_open(path, &n, fault), rc;

    if (fd < 0)
        return -1;
    rc = data_pread(fd, path, head, n < 4 ? n : 4, 0, fault);
    close(fd);
    *ret = form_of(path, head);
    if (rc == 0 && *ret == FORM_NONE)
        rc = fault_set(fault, CODE_DATA, NULL, "'%s' is of no known form, .ply, .obj, .off, .glb, .pcd, .xyz or .npy are wanted", path);
    return rc;
}

static int check_finite(const char *path, const struct recon_mesh *m, struct fault *fault)
{
    uint32_t any = 0;

    for (uint64_t i = 0; i < 3 * m->vertices; i++) { /* an exponent of ones carries into the sign */
        uint32_t bits;

        memcpy(&bits, m->xyz + i, 4);
        any |= (bits & 0x7f800000u) + 0x00800000u;
    }
    for (uint64_t i = 0; any >> 31 && i < 3 * m->vertices; i++)
        if (!isfinite(m->xyz[i]))
            return fault_set(fault, CODE_DATA, "vertex-nan", "vertex %llu of '%s' is not finite, a number of a float's range is wanted",
                             (unsigned long long)(i / 3), path);
    return 0;
}

static int parse(enum form form, const char *path, const struct load *t, const struct geom_options *o, const struct data_alloc *alloc,
                 struct recon_mesh *ret, struct mesh_notes *notes, struct fault *fault)
{
    switch (form) {
    case FORM_PLY:
        return ply_parse(path, t, o, alloc, ret, notes, fault);
    case FORM_OFF:
        return off_parse(path, t, o, alloc, ret, notes, fault);
    case FORM_PCD:
        return pcd_parse(path, t, alloc, ret, fault);
    case FORM_XYZ:
        return xyz_parse(path, t, alloc, ret, fault);
    case FORM_GLB:
        return glb_parse(path, t, o, alloc, ret, fault);
    default:
        return npy_parse(path, t, alloc, ret, fault);
    }
}

/* finite: coordinates that are not are refused */
static int read_any(const char *path, const struct geom_options *o, bool finite, const struct data_alloc *alloc, struct recon_mesh *m,
                    struct mesh_notes *notes, struct fault *fault)
{
    struct load t;
    enum form form;
    int rc;

    *notes = (struct mesh_notes){ 0 };
    *m = (struct recon_mesh){ 0 };
    if (find_form(path, &form, fault))
        return -1;
    if (form == FORM_OBJ) {
        rc = obj_parse(path, o, alloc, m, notes, fault);
    } else if ((rc = load_file(path, alloc, &t, fault)) == 0) {
        memcpy(t.offset, o->offset, sizeof(t.offset));
        rc = parse(form, path, &t, o, alloc, m, notes, fault);
        alloc->free(alloc->self, t.s);
    }
    if (rc == 0 && m->vertices == 0)
        rc = fault_set(fault, CODE_DATA, "empty-result", "'%s' has no vertices", path);
    if (rc == 0 && finite && form != FORM_OBJ) /* whose reader has looked at each */
        rc = check_finite(path, m, fault);
    if (rc)
        mesh_drop(m, alloc);
    return rc;
}

int mesh_read(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    struct recon_mesh m;

    if (read_any(path, o, true, alloc, &m, notes, fault))
        return -1;
    if (m.faces == 0) {
        mesh_drop(&m, alloc);
        return fault_set(fault, CODE_DATA, "empty-result", "'%s' has no faces: points.read takes points", path);
    }
    *ret = m;
    return 0;
}

int points_read(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_points *ret,
                struct mesh_notes *notes, struct fault *fault)
{
    float zero = (float)(0 - o->offset[2]);
    struct geom_options plain = *o;
    struct recon_mesh m;
    uint64_t k = 0;

    plain.plain = true;
    if (read_any(path, &plain, !o->drop, alloc, &m, notes, fault))
        return -1;
    for (uint64_t i = 0; i < m.vertices; i++) {
        if (!isfinite(m.xyz[3 * i]) || !isfinite(m.xyz[3 * i + 1]) || !isfinite(m.xyz[3 * i + 2])) {
            notes->dropped++;
            continue;
        }
        if (o->drop_zero && m.xyz[3 * i + 2] == zero) {
            notes->zeros++;
            continue;
        }
        memmove(m.xyz + 3 * k, m.xyz + 3 * i, 12);
        if (m.normals)
            memmove(m.normals + 3 * k, m.normals + 3 * i, 12);
        if (m.rgb)
            memmove(m.rgb + 3 * k, m.rgb + 3 * i, 3);
        k++;
    }
    if (k == 0) {
        mesh_drop(&m, alloc);
        return fault_set(fault, CODE_DATA, "empty-result", "no point of '%s' is left: %llu are not finite, %llu have z = 0", path,
                         (unsigned long long)notes->dropped, (unsigned long long)notes->zeros);
    }
    alloc->free(alloc->self, m.index);
    *ret = (struct recon_points){ .n = k, .place = RECON_HOST, .xyz = m.xyz, .normals = m.normals, .rgb = m.rgb };
    return 0;
}

int mesh_write(const char *path, const struct recon_mesh *m, struct mesh_written *ret, struct err *err)
{
    struct mesh_written w = { 0 };
    int rc;

    if (ends(path, ".obj"))
        rc = obj_write(path, m, &w, err);
    else if (ends(path, ".glb"))
        rc = glb_write(path, m, &w, err);
    else if (ends(path, ".ply"))
        rc = ply_write(path, m, &w, err);
    else
        return err_set(err, CODE_USAGE, "'%s' ends in none of .ply, .obj, .glb", path);
    if (rc == 0 && ret)
        *ret = w;
    else
        mesh_written_release(&w);
    return rc;
}

void mesh_written_release(struct mesh_written *w)
{
    strv_release(&w->files);
    strv_release(&w->left_out);
}
