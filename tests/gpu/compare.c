/* compare: how near two results are; for tests/gpu/run.sh and by hand.
 *
 *   compare volumes A.npz B.npz [TOLERANCE]   voxels that agree: both observed, tsdf within TOLERANCE (1e-4)
 *   compare meshes A.ply B.ply VOXEL          Hausdorff distance in voxels, both ways, over vertices and face centres
 *                                             against the other's triangles; Euler numbers of the large components
 *   compare sphere N OUT.npz                  the golden sphere: |x| - 0.7 on linspace(-1, 1, N)^3
 * Each prints one line of key=value; status 0 when it could be computed. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include "data/data.h"

static int die(const char *what, const char *why)
{
    fprintf(stderr, "compare: %s: %s\n", what, why);
    return 2;
}

/* ---- volumes ---- */

static int volumes(const char *pa, const char *pb, double tolerance)
{
    struct recon_volume a = { 0 }, b = { 0 };
    struct fault fault = { 0 };
    uint64_t n, seen = 0, only = 0, agree = 0, weights = 0, inside = 0;
    double worst = 0;

    if (volume_read(pa, &data_malloc, &a, &fault) || volume_read(pb, &data_malloc, &b, &fault))
        return die(pa, fault.err.text);
    if (memcmp(a.dim, b.dim, sizeof(a.dim)))
        return die(pb, "the volumes differ in size");
    if (a.side != b.side || a.blocks != b.blocks || (a.side && memcmp(a.block, b.block, 12 * a.blocks)))
        return die(pb, "one volume is dense and the other in blocks, or the blocks are others");
    n = recon_volume_samples(&a);
    for (uint64_t i = 0; i < n; i++) {
        int sa = !a.weight || a.weight[i] > 0, sb = !b.weight || b.weight[i] > 0;
        double d = fabs((double)a.tsdf[i] - (double)b.tsdf[i]);

        seen += sa || sb;
        only += sa != sb;
        if (!sa || !sb)
            continue;
        inside += b.tsdf[i] < 0;
        weights += a.weight && b.weight && a.weight[i] != b.weight[i];
        agree += d <= tolerance && !(a.weight && b.weight && a.weight[i] != b.weight[i]);
        worst = d > worst ? d : worst;
    }
    printf("voxels=%llu observed=%llu agree=%.7f only_one=%llu weights_differ=%llu worst=%.3g inside=%.6f same=%d\n",
           (unsigned long long)n, (unsigned long long)seen, seen ? (double)agree / (double)seen : 1.0,
           (unsigned long long)only, (unsigned long long)weights, worst, seen ? (double)inside / (double)seen : 0.0,
           memcmp(a.tsdf, b.tsdf, n * 4) == 0);
    free(a.tsdf);
    free(a.weight);
    free(a.rgb);
    free(b.tsdf);
    free(b.weight);
    free(b.rgb);
    return 0;
}

/* ---- meshes: binary PLY as recon writes it ---- */

struct mesh {
    uint64_t nv, nf;
    float *xyz;
    uint32_t *index;
};

static int header(FILE *f, struct mesh *m, size_t *stride)
{
    char line[256];
    int vertex = 0, little = 0;

    *stride = 0;
    while (fgets(line, sizeof(line), f) && strcmp(line, "end_header\n")) {
        unsigned long long n;

        little = little || str_starts(line, "format binary_little_endian");
        if (sscanf(line, "element vertex %llu", &n) == 1)
            m->nv = n, vertex = 1;
        else if (sscanf(line, "element face %llu", &n) == 1)
            m->nf = n, vertex = 0;
        else if (vertex && str_starts(line, "property float"))
            *stride += 4;
        else if (vertex && str_starts(line, "property uchar"))
            *stride += 1;
    }
    return little && *stride >= 12 ? 0 : -1;
}

static int ply_back(const char *path, struct mesh *m)
{
    FILE *f = fopen(path, "rb");
    size_t stride;
    char *row;
    int rc = 0;

    if (!f || header(f, m, &stride))
        return die(path, "not a binary PLY of recon's");
    m->xyz = xmalloc(m->nv * 12 + 1);
    m->index = xmalloc(m->nf * 12 + 1);
    row = xmalloc(stride + 13);
    for (uint64_t i = 0; i < m->nv && rc == 0; i++) {
        rc = fread(row, stride, 1, f) != 1;
        memcpy(m->xyz + 3 * i, row, 12);
    }
    for (uint64_t i = 0; i < m->nf && rc == 0; i++) {
        rc = fread(row, 13, 1, f) != 1 || row[0] != 3;
        memcpy(m->index + 3 * i, row + 1, 12);
    }
    for (uint64_t i = 0; i < 3 * m->nf && rc == 0; i++)
        rc = m->index[i] >= m->nv;
    free(row);
    fclose(f);
    return rc ? die(path, "truncated, not triangles, or an index out of range") : 0;
}

static void mesh_release(struct mesh *m)
{
    free(m->xyz);
    free(m->index);
}

/* ---- point to triangle (Ericson, Real-Time Collision Detection, 5.1.5), squared ---- */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double squared(const double p[3], const double a[3], const double u[3], double s, const double v[3], double t)
{
    double d = 0;

    for (int i = 0; i < 3; i++) {
        double x = p[i] - a[i] - s * u[i] - t * v[i];

        d += x * x;
    }
    return d;
}

static double to_triangle(const double p[3], const double a[3], const double b[3], const double c[3])
{
    double ab[3], ac[3], ap[3], bp[3], cp[3], d1, d2, d3, d4, d5, d6, va, vb, vc, w;

    for (int i = 0; i < 3; i++) {
        ab[i] = b[i] - a[i];
        ac[i] = c[i] - a[i];
        ap[i] = p[i] - a[i];
        bp[i] = p[i] - b[i];
        cp[i] = p[i] - c[i];
    }
    d1 = dot(ab, ap), d2 = dot(ac, ap);
    if (d1 <= 0 && d2 <= 0)
        return dot(ap, ap);
    d3 = dot(ab, bp), d4 = dot(ac, bp);
    if (d3 >= 0 && d4 <= d3)
        return dot(bp, bp);
    vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0)
        return squared(p, a, ab, d1 / (d1 - d3), ac, 0);
    d5 = dot(ab, cp), d6 = dot(ac, cp);
    if (d6 >= 0 && d5 <= d6)
        return dot(cp, cp);
    vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0)
        return squared(p, a, ab, 0, ac, d2 / (d2 - d6));
    va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
        w = (d4 - d3) / (d4 - d3 + d5 - d6);
        return squared(p, a, ab, 1 - w, ac, w);
    }
    w = va + vb + vc;
    return w > 0 ? squared(p, a, ab, vb / w, ac, vc / w) : dot(ap, ap);
}

/* ---- a hashed grid over the triangles of one mesh ---- */

#define REACH 6 /* cells that are searched around a point; farther counts as this */

struct grid {
    const struct mesh *m;
    double cell;
    uint64_t mask;
    uint32_t *first; /* into next, +1; 0: empty */
    struct { uint32_t *v; size_t n, cap; } next, face;
};

static uint64_t bucket(const struct grid *g, const int64_t c[3])
{
    return ((uint64_t)c[0] * 73856093u ^ (uint64_t)c[1] * 19349663u ^ (uint64_t)c[2] * 83492791u) & g->mask;
}

static void corner(const struct mesh *m, uint64_t face, int k, double ret[3])
{
    for (int i = 0; i < 3; i++)
        ret[i] = (double)m->xyz[3 * (uint64_t)m->index[3 * face + (uint64_t)k] + (uint64_t)i];
}

static void grid_add(struct grid *g, uint64_t face)
{
    int64_t lo[3] = { INT64_MAX, INT64_MAX, INT64_MAX }, hi[3] = { INT64_MIN, INT64_MIN, INT64_MIN }, c[3];

    for (int k = 0; k < 3; k++) {
        double p[3];

        corner(g->m, face, k, p);
        for (int i = 0; i < 3; i++) {
            int64_t at = (int64_t)floor(p[i] / g->cell);

            lo[i] = at < lo[i] ? at : lo[i];
            hi[i] = at > hi[i] ? at : hi[i];
        }
    }
    for (c[0] = lo[0]; c[0] <= hi[0]; c[0]++)
        for (c[1] = lo[1]; c[1] <= hi[1]; c[1]++)
            for (c[2] = lo[2]; c[2] <= hi[2]; c[2]++) {
                uint64_t b = bucket(g, c);

                *VEC_ADD(&g->next) = g->first[b];
                *VEC_ADD(&g->face) = (uint32_t)face;
                g->first[b] = (uint32_t)g->next.n;
            }
}

static double nearest(const struct grid *g, const double p[3])
{
    int64_t at[3], c[3];
    double best = INFINITY;

    for (int i = 0; i < 3; i++)
        at[i] = (int64_t)floor(p[i] / g->cell);
    for (int64_t r = 0; r <= REACH && best > (double)((r - 1) * (r - 1)) * g->cell * g->cell; r++)
        for (c[0] = at[0] - r; c[0] <= at[0] + r; c[0]++)
            for (c[1] = at[1] - r; c[1] <= at[1] + r; c[1]++)
                for (c[2] = at[2] - r; c[2] <= at[2] + r; c[2]++) {
                    int64_t ring = llabs(c[0] - at[0]) > llabs(c[1] - at[1]) ? llabs(c[0] - at[0]) : llabs(c[1] - at[1]);

                    ring = llabs(c[2] - at[2]) > ring ? llabs(c[2] - at[2]) : ring;
                    for (uint32_t e = ring == r ? g->first[bucket(g, c)] : 0; e; e = g->next.v[e - 1]) {
                        double q[3][3], d;

                        for (int k = 0; k < 3; k++)
                            corner(g->m, g->face.v[e - 1], k, q[k]);
                        d = to_triangle(p, q[0], q[1], q[2]);
                        best = d < best ? d : best;
                    }
                }
    return isfinite(best) ? sqrt(best) : REACH * g->cell;
}

/* The farthest that a vertex or face centre of a is from the surface of b. */
static double one_way(const struct mesh *a, const struct mesh *b, double voxel)
{
    struct grid g = { .m = b, .cell = 1.5 * voxel, .mask = (1 << 22) - 1 };
    double worst = 0, d;

    g.first = xcalloc(g.mask + 1, sizeof(*g.first));
    for (uint64_t f = 0; f < b->nf; f++)
        grid_add(&g, f);
    for (uint64_t i = 0; i < a->nv; i++) {
        double p[3] = { (double)a->xyz[3 * i], (double)a->xyz[3 * i + 1], (double)a->xyz[3 * i + 2] };

        d = nearest(&g, p);
        worst = d > worst ? d : worst;
    }
    for (uint64_t f = 0; f < a->nf; f++) {
        double q[3][3], p[3];

        for (int k = 0; k < 3; k++)
            corner(a, f, k, q[k]);
        for (int i = 0; i < 3; i++)
            p[i] = (q[0][i] + q[1][i] + q[2][i]) / 3;
        d = nearest(&g, p);
        worst = d > worst ? d : worst;
    }
    free(g.first);
    free(g.next.v);
    free(g.face.v);
    return worst;
}

/* ---- Euler numbers of components ---- */

struct part {
    int64_t v, e, f;
};

static uint32_t root_of(uint32_t *up, uint32_t i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int by_faces(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return x->f != y->f ? (x->f < y->f) - (x->f > y->f) : (x->v < y->v) - (x->v > y->v);
}

/* Parts with at least one face in a hundred, the largest first; gives how many. */
static size_t large_parts(const struct mesh *m, struct part **ret)
{
    uint32_t *up = xmalloc(m->nv * 4 + 4);
    uint64_t *edges = xmalloc(m->nf * 24 + 8);
    struct part *parts = xcalloc(m->nv + 1, sizeof(*parts));
    size_t n = 0;

    for (uint64_t i = 0; i < m->nv; i++)
        up[i] = (uint32_t)i;
    for (uint64_t i = 0; i < 3 * m->nf; i++) {
        uint32_t a = m->index[i], b = m->index[i % 3 == 2 ? i - 2 : i + 1];

        up[root_of(up, a)] = root_of(up, b);
        edges[i] = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    }
    qsort(edges, 3 * m->nf, 8, by_key);
    for (uint64_t i = 0; i < m->nv; i++)
        parts[root_of(up, (uint32_t)i)].v++;
    for (uint64_t i = 0; i < 3 * m->nf; i++)
        parts[root_of(up, (uint32_t)edges[i])].e += i == 0 || edges[i] != edges[i - 1];
    for (uint64_t f = 0; f < m->nf; f++)
        parts[root_of(up, m->index[3 * f])].f++;
    qsort(parts, m->nv, sizeof(*parts), by_faces);
    while (n < m->nv && parts[n].f > 0 && parts[n].f * 100 >= (int64_t)m->nf)
        n++;
    free(up);
    free(edges);
    *ret = parts;
    return n;
}

static int meshes(const char *pa, const char *pb, double voxel)
{
    struct mesh a = { 0 }, b = { 0 };
    struct part *x, *y;
    size_t nx, ny;
    int same, euler;
    double there, back;

    if (ply_back(pa, &a) || ply_back(pb, &b))
        return 2;
    same = a.nv == b.nv && a.nf == b.nf && !memcmp(a.xyz, b.xyz, a.nv * 12) && !memcmp(a.index, b.index, a.nf * 12);
    nx = large_parts(&a, &x);
    ny = large_parts(&b, &y);
    euler = nx == ny;
    for (size_t i = 0; i < nx && euler; i++)
        euler = x[i].v - x[i].e + x[i].f == y[i].v - y[i].e + y[i].f;
    there = same ? 0 : one_way(&a, &b, voxel);
    back = same ? 0 : one_way(&b, &a, voxel);
    printf("vertices=%llu,%llu faces=%llu,%llu same=%d hausdorff=%.5f large_parts=%zu,%zu euler_equal=%d euler=",
           (unsigned long long)a.nv, (unsigned long long)b.nv, (unsigned long long)a.nf, (unsigned long long)b.nf, same,
           (there > back ? there : back) / voxel, nx, ny, euler);
    for (size_t i = 0; i < nx && i < 8; i++)
        printf("%s%lld", i ? "," : "", (long long)(x[i].v - x[i].e + x[i].f));
    printf("\n");
    free(x);
    free(y);
    mesh_release(&a);
    mesh_release(&b);
    return 0;
}

/* ---- the sphere ---- */

static int sphere(const char *count, const char *path)
{
    uint64_t n = strtoull(count, NULL, 10), all = n * n * n;
    struct recon_volume v = { .dim = { (uint32_t)n, (uint32_t)n, (uint32_t)n }, .origin = { -1, -1, -1 } };
    struct err err = { 0 };
    int rc;

    if (n < 2 || n > 1024)
        return die(count, "wanted 2 to 1024");
    v.voxel = 2.0 / (double)(n - 1);
    v.truncation = 5 * v.voxel;
    v.tsdf = xmalloc(all * 4);
    v.weight = xmalloc(all * 4);
    for (uint64_t i = 0; i < all; i++) {
        double x = -1 + 2.0 * (double)(i / (n * n)) / (double)(n - 1), y = -1 + 2.0 * (double)(i / n % n) / (double)(n - 1),
               z = -1 + 2.0 * (double)(i % n) / (double)(n - 1);

        v.tsdf[i] = (float)(sqrt(x * x + y * y + z * z) - 0.7);
        v.weight[i] = 1;
    }
    rc = volume_write(path, &v, false, &err);
    free(v.tsdf);
    free(v.weight);
    return rc ? die(path, err.text) : 0;
}

int main(int argc, char **argv)
{
    if (argc >= 4 && str_eq(argv[1], "volumes"))
        return volumes(argv[2], argv[3], argc > 4 ? atof(argv[4]) : 1e-4);
    if (argc == 5 && str_eq(argv[1], "meshes") && atof(argv[4]) > 0)
        return meshes(argv[2], argv[3], atof(argv[4]));
    if (argc == 4 && str_eq(argv[1], "sphere"))
        return sphere(argv[2], argv[3]);
    fprintf(stderr, "compare volumes A.npz B.npz [TOLERANCE] | meshes A.ply B.ply VOXEL | sphere N OUT.npz\n");
    return 64;
}
