#include "config.h"
#include "data/geom.h"
#include "data/npy.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

struct part {
    int fd;
    const char *path;
    char *to;
    uint64_t n, offset;
    struct fault fault;
    int rc;
};

static void *read_part(void *arg)
{
    struct part *p = arg;

    p->rc = data_pread(p->fd, p->path, p->to, p->n, p->offset, &p->fault);
    return NULL;
}

enum { PARTS_MAX = 8 };

/* by several threads, since a copy out of the page cache keeps one busy */
static int read_parts(int fd, const char *path, int threads, char *to, uint64_t n, struct fault *fault)
{
    struct part part[PARTS_MAX] = { 0 };
    pthread_t thread[PARTS_MAX];
    bool started[PARTS_MAX] = { false };
    int parts = n < (uint64_t)8 << 20 || threads < 1 ? 1 : threads < PARTS_MAX ? threads : PARTS_MAX, rc = 0;

    for (int i = parts; i-- > 0;) {
        uint64_t from = n / (uint64_t)parts * (uint64_t)i, end = i + 1 < parts ? n / (uint64_t)parts * (uint64_t)(i + 1) : n;

        part[i] = (struct part){ .fd = fd, .path = path, .to = to + from, .n = end - from, .offset = from };
        started[i] = i && pthread_create(&thread[i], NULL, read_part, &part[i]) == 0;
        if (!started[i])
            read_part(&part[i]);
    }
    for (int i = 0; i < parts; i++) {
        if (started[i])
            pthread_join(thread[i], NULL);
        if (part[i].rc && rc == 0 && fault)
            *fault = part[i].fault;
        rc = rc ? rc : part[i].rc;
    }
    return rc;
}

int load_file(const char *path, int threads, const struct data_alloc *alloc, struct load *ret, struct fault *fault)
{
    uint64_t n = 0;
    int fd = data_open(path, &n, fault), rc;
    char *base;

    if (fd < 0)
        return -1;
    if (!(base = alloc->alloc(alloc->self, n + 2 * LOAD_PAD))) {
        close(fd);
        return fault_set(fault, CODE_MEMORY, NULL, "no memory for the %llu bytes of '%s'", (unsigned long long)n, path);
    }
    rc = read_parts(fd, path, threads, base + LOAD_PAD, n, fault);
    close(fd);
    if (rc) {
        alloc->free(alloc->self, base);
        return -1;
    }
    memset(base, 0, LOAD_PAD);
    memset(base + LOAD_PAD + n, 0, LOAD_PAD);
    *ret = (struct load){ .base = base, .s = base + LOAD_PAD, .n = n };
    return 0;
}

static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/* what the quick way cannot round: long mantissas, large exponents. The C locale, whatever the program's */
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

static void *array(uint64_t n, uint64_t size, const struct data_alloc *alloc)
{
    return n > UINT64_MAX / 64 ? NULL : alloc->alloc(alloc->self, n * size);
}

int mesh_arrays(struct recon_mesh *m, uint64_t vertices, bool normals, bool rgb, const struct data_alloc *alloc, struct fault *fault)
{
    *m = (struct recon_mesh){ .vertices = vertices, .place = RECON_HOST };
    m->xyz = array(vertices, 12, alloc);
    m->normals = normals ? array(vertices, 12, alloc) : NULL;
    m->rgb = rgb ? array(vertices, 3, alloc) : NULL;
    if (m->xyz && (m->normals || !normals) && (m->rgb || !rgb))
        return 0;
    mesh_drop(m, alloc);
    return fault_set(fault, CODE_MEMORY, NULL, "no memory for %llu vertices", (unsigned long long)vertices);
}

int mesh_indices(struct recon_mesh *m, uint64_t faces, const struct data_alloc *alloc, struct fault *fault)
{
    m->faces = faces;
    m->index = array(faces, 12, alloc);
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

static enum form form_of(const char *path, const struct load *t)
{
    static const struct {
        const char *suffix;
        enum form form;
    } rows[] = {
        { ".ply", FORM_PLY },  { ".obj", FORM_OBJ },   { ".off", FORM_OFF },    { ".pcd", FORM_PCD },
        { ".xyz", FORM_XYZ },  { ".xyzn", FORM_XYZ },  { ".xyzrgb", FORM_XYZ }, { ".npts", FORM_XYZ },
        { ".txt", FORM_XYZ },  { ".glb", FORM_GLB },   { ".npy", FORM_NPY },
    };

    if (t->n >= 4 && memcmp(t->s, "ply", 3) == 0 && (t->s[3] == '\n' || t->s[3] == '\r'))
        return FORM_PLY;
    if (t->n >= 4 && memcmp(t->s, "glTF", 4) == 0)
        return FORM_GLB;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (ends(path, rows[i].suffix))
            return rows[i].form;
    return FORM_NONE;
}

static int check_finite(const char *path, const struct recon_mesh *m, struct fault *fault)
{
    for (uint64_t i = 0; i < 3 * m->vertices; i++)
        if (!isfinite(m->xyz[i]))
            return fault_set(fault, CODE_DATA, "vertex-nan", "vertex %llu of '%s' is not finite, a number of a float's range is wanted",
                             (unsigned long long)(i / 3), path);
    return 0;
}

static int parse(const char *path, const struct load *t, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
                 struct mesh_notes *notes, struct fault *fault)
{
    switch (form_of(path, t)) {
    case FORM_PLY:
        return ply_parse(path, t, alloc, ret, notes, fault);
    case FORM_OBJ:
        return obj_parse(path, t, o, alloc, ret, notes, fault);
    case FORM_OFF:
        return off_parse(path, t, alloc, ret, notes, fault);
    case FORM_PCD:
        return pcd_parse(path, t, alloc, ret, fault);
    case FORM_XYZ:
        return xyz_parse(path, t, alloc, ret, fault);
    case FORM_GLB:
        return glb_parse(path, t, alloc, ret, notes, fault);
    case FORM_NPY:
        return npy_parse(path, t, alloc, ret, fault);
    default:
        return fault_set(fault, CODE_DATA, NULL, "'%s' is of no known form, .ply, .obj, .off, .glb, .pcd, .xyz or .npy are wanted", path);
    }
}

static int read_any(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *m, struct mesh_notes *notes,
                    struct fault *fault)
{
    struct load t;
    int rc;

    *notes = (struct mesh_notes){ 0 };
    if (load_file(path, o->threads, alloc, &t, fault))
        return -1;
    memcpy(t.offset, o->offset, sizeof(t.offset));
    *m = (struct recon_mesh){ 0 };
    rc = parse(path, &t, o, alloc, m, notes, fault);
    alloc->free(alloc->self, t.base);
    if (rc == 0 && m->vertices == 0) {
        mesh_drop(m, alloc);
        return fault_set(fault, CODE_DATA, "empty-result", "'%s' has no vertices", path);
    }
    return rc;
}

int mesh_read(const char *path, const struct geom_options *o, const struct data_alloc *alloc, struct recon_mesh *ret,
              struct mesh_notes *notes, struct fault *fault)
{
    struct recon_mesh m;

    if (read_any(path, o, alloc, &m, notes, fault))
        return -1;
    if (check_finite(path, &m, fault)) {
        mesh_drop(&m, alloc);
        return -1;
    }
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
    if (read_any(path, &plain, alloc, &m, notes, fault))
        return -1;
    if (!o->drop && check_finite(path, &m, fault)) {
        mesh_drop(&m, alloc);
        return -1;
    }
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
        rc = glb_write(path, m, err);
    else if (ends(path, ".ply"))
        rc = ply_write(path, m, err);
    else
        return err_set(err, CODE_USAGE, "'%s' ends in none of .ply, .obj, .glb", path);
    if (rc == 0 && !w.files.n)
        strv_add(&w.files, path);
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
