/* The kernels of meshes, at a million elements and at 16 million; those of points in between. Floors count what the kernel's interface must
 * move, each byte once; where a step of a kernel is told apart, the floor is that step's. */
#include "config.h"
#include "kernels_bench.h"

#include <math.h>
#include <stdlib.h>
#include "kernels/mesh_rows.h"
#include "kernels/test/inputs.h"

static void drop_all(const struct recon_kernel *k, void *const *out)
{
    for (int i = 0; k->out[i].name; i++)
        golden_free(&T.ctx, M->device, (enum recon_slot)k->out[i].type, out[i]);
}

int time_call(const struct call *c, struct times *t)
{
    union {
        struct recon_points points;
        struct recon_mesh mesh;
        struct recon_volume volume;
    } slot[2];
    void *out[] = { &slot[0], &slot[1], NULL };

    t->n = 0;
    for (int i = 0; i <= repeat; i++) {
        struct recon_cost cost = { 0 };
        double ms = 0;

        memset(slot, 0, sizeof(slot));
        if (begin() || c->k->run(&T.ctx, c->in, c->p, out, &cost) || end(&ms))
            return bad(c->k->name);
        drop_all(c->k, out);
        if (i)
            t->ms[t->n++] = ms;
    }
    return 0;
}

int to_device(enum recon_slot type, void *slot)
{
    return M->device && golden_move(&T.ctx, M->device, type, slot, RECON_DEVICE) ? bad("upload") : 0;
}

const char *count_text(uint64_t n, char text[32])
{
    snprintf(text, 32, n >= 1 << 20 ? "%.1f M" : "%.0f k", n >= 1 << 20 ? (double)n / 1048576 : (double)n / 1000);
    return text;
}

/* ---- meshes: a sheet of n x n vertices, rows after each other; every 50 cells a hole of so many a side ---- */

static int sheet(uint32_t n, uint32_t hole, struct recon_mesh *m)
{
    uint32_t *f, seed = 1;

    *m = (struct recon_mesh){ .vertices = (uint64_t)n * n, .faces = 2ull * (n - 1) * (n - 1) };
    m->xyz = T.ctx.host->alloc(&T.ctx, 12 * m->vertices);
    f = m->index = T.ctx.host->alloc(&T.ctx, 12 * m->faces);
    if (!m->xyz || !m->index)
        return bad("mesh");
    for (uint64_t i = 0; i < m->vertices; i++) {
        m->xyz[3 * i] = (float)(i / n);
        m->xyz[3 * i + 1] = (float)(i % n);
        m->xyz[3 * i + 2] = uniform(&seed);
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t j = 0; j + 1 < n; j++) {
            uint32_t a = i * n + j;

            if ((i + 25) % 50 < hole && (j + 25) % 50 < hole)
                continue;
            memcpy(f, (uint32_t[]){ a, a + n, a + 1, a + 1, a + n, a + n + 1 }, 24);
            f += 6;
        }
    m->faces = (uint64_t)(f - m->index) / 3;
    return 0;
}

/* A step: the difference of 25 and 5 turns of two steps, over 40. Its floor: a row's begin, its numbers, a place read and one
 * written, a vertex. */
static int time_smooth(const struct recon_mesh *m, const char *size)
{
    const struct recon_kernel *k = test_kernel(M, MESH_SMOOTH_NAME);
    struct recon_value *p = test_params(k);
    struct call c = { k, { m }, p };
    struct times few, many, step = { .n = 0 };
    double bytes = 28 * (double)m->vertices + 12 * (double)m->faces;
    int rc;

    p[MESH_SMOOTH_ITERATIONS].i = 5;
    rc = time_call(&c, &few);
    p[MESH_SMOOTH_ITERATIONS].i = 25;
    rc = rc || time_call(&c, &many);
    for (int i = 0; rc == 0 && i < few.n; i++)
        step.ms[step.n++] = (many.ms[i] - few.ms[i]) / 40;
    if (rc == 0) {
        tell(k->name, size, &step, bytes / rate * 1e3, "bytes", "taubin, a step");
        tell(k->name, size, &few, 0, "", "taubin, 5 turns of two, neighbours found");
    }
    free(p);
    return rc;
}

static int time_normals(const struct recon_mesh *m, const char *size, const char *remark)
{
    const struct recon_kernel *k = test_kernel(M, MESH_NORMALS_NAME);
    struct recon_value *p = test_params(k);
    struct call c = { k, { m }, p };
    struct times t;
    double v = (double)m->vertices, f = (double)m->faces;
    int rc = time_call(&c, &t);

    if (rc == 0)
        tell(k->name, size, &t, (24 * v + 12 * f) / rate * 1e3, "bytes", remark);
    free(p);
    return rc;
}

/* x of a row of n things of size bytes each into any order, the same for the same seed */
static void shuffle(void *x, uint64_t n, size_t size, uint32_t seed)
{
    char *at = x, keep[16];

    for (uint64_t i = n; i-- > 1;) {
        uint64_t k = ((uint64_t)next_random(&seed) << 24 | next_random(&seed)) % (i + 1);

        memcpy(keep, at + i * size, size);
        memcpy(at + i * size, at + k * size, size);
        memcpy(at + k * size, keep, size);
    }
}

/* Vertices renumbered and faces in any order: the places stay where they are, what they are the places of does not. */
static int in_no_order(uint32_t n)
{
    struct recon_mesh m;
    uint32_t *number;
    char size[32], text[100];
    int rc = sheet(n, 0, &m);

    if (rc == 0 && !(number = T.ctx.host->alloc(&T.ctx, 4 * m.vertices)))
        rc = bad("mesh");
    if (rc == 0) {
        for (uint32_t i = 0; i < m.vertices; i++)
            number[i] = i;
        shuffle(number, m.vertices, 4, 5);
        for (uint64_t i = 0; i < 3 * m.faces; i++)
            m.index[i] = number[m.index[i]];
        shuffle(m.index, m.faces, 12, 7);
        T.ctx.host->free(&T.ctx, number);
        snprintf(text, sizeof(text), "%s vertices", count_text((uint64_t)n * n, size));
        rc = to_device(RECON_MESH, &m) || time_normals(&m, text, "vertices and faces in no order");
    }
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    return rc;
}

/* What marching cubes makes of a sphere in n^3 samples. */
static int of_a_sphere(uint32_t n)
{
    const struct recon_kernel *k = test_kernel(M, MC_NAME);
    struct recon_value *p = test_params(k);
    struct recon_volume v = { .dim = { n, n, n }, .voxel = 2.0 / (n - 1), .truncation = 1 };
    struct recon_mesh m = { 0 };
    struct recon_cost cost = { 0 };
    char size[32], text[100];
    int rc;

    if (!(v.tsdf = T.ctx.host->alloc(&T.ctx, 4ull * n * n * n)))
        return bad("volume");
    golden_sphere(v.tsdf, n);
    rc = to_device(RECON_VOLUME, &v) || (k->run(&T.ctx, (const void *[]){ &v }, p, (void *[]){ &m }, &cost) && bad(k->name));
    golden_free(&T.ctx, M->device, RECON_VOLUME, &v);
    snprintf(text, sizeof(text), "%s vertices", count_text(m.vertices, size));
    rc = rc || time_normals(&m, text, "a sphere of marching cubes");
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    free(p);
    return rc;
}

/* Floor: faces read, and the mesh written. */
static int fill(uint32_t n, uint32_t hole, const char *remark)
{
    const struct recon_kernel *k = test_kernel(M, MESH_FILL_NAME);
    struct recon_value *p = test_params(k);
    struct recon_mesh m = { 0 };
    struct call c = { k, { &m }, p };
    struct times t;
    char size[32], text[100];
    int rc = sheet(n, hole, &m) || to_device(RECON_MESH, &m) || time_call(&c, &t);

    snprintf(text, sizeof(text), "%s faces", count_text(m.faces, size));
    if (rc == 0)
        tell(k->name, text, &t, (24 * (double)m.vertices + 24 * (double)m.faces) / rate * 1e3, "bytes", remark);
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    free(p);
    return rc;
}

static int time_check(const struct recon_mesh *m, const char *size)
{
    const struct recon_kernel *k = test_kernel(M, MESH_CHECK_NAME);
    struct recon_value *p = test_params(k);
    struct call c = { k, { m }, p };
    struct times t;
    int rc;

    p[MESH_CHECK_FILE].s = "";
    rc = time_call(&c, &t);
    if (rc == 0)
        tell(k->name, size, &t, 12 * (double)(m->vertices + m->faces) / rate * 1e3, "bytes", "mesh read; edges are sorted");
    free(p);
    return rc;
}

static int time_subdivide(const struct recon_mesh *m, const char *size, int method, const char *remark)
{
    const struct recon_kernel *k = test_kernel(M, MESH_SUBDIVIDE_NAME);
    struct recon_value *p = test_params(k);
    struct call c = { k, { m }, p };
    struct times t;
    double v = (double)m->vertices, f = (double)m->faces;
    int rc;

    p[MESH_SUBDIVIDE_METHOD].i = method;
    rc = time_call(&c, &t);
    if (rc == 0) /* 3 / 2 edges a face */
        tell(k->name, size, &t, (12 * v + 12 * f + 12 * (v + 1.5 * f) + 48 * f) / rate * 1e3, "bytes", remark);
    free(p);
    return rc;
}

/* about faces of them */
static int faces(uint64_t faces)
{
    struct recon_mesh m;
    char size[32], text[100];
    int rc = sheet((uint32_t)sqrt((double)faces / 2), 0, &m) || to_device(RECON_MESH, &m);

    snprintf(text, sizeof(text), "%s faces", count_text(m.faces, size));
    rc = rc || time_check(&m, text) || time_subdivide(&m, text, MESH_SUBDIVIDE_LOOP, "loop, one level, mesh read and written") ||
         time_subdivide(&m, text, MESH_SUBDIVIDE_MIDPOINT, "midpoint");
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    return rc;
}

/* As the pipelines clean, then with everything on. Floor: the mesh read, its faces written. */
static int time_clean(const struct recon_mesh *m, const char *size, const char *what)
{
    const struct recon_kernel *k = test_kernel(M, MESH_CLEAN_NAME);
    struct recon_value *p = test_params(k);
    struct call c = { k, { m }, p };
    double bytes = 12 * (double)m->vertices + 24 * (double)m->faces;
    char remark[80];
    int rc = 0;

    for (int all = 0; all < 2 && rc == 0; all++) {
        struct times t;

        p[MESH_CLEAN_ORIENT].i = all ? MESH_CLEAN_OUTWARD : MESH_CLEAN_KEEP;
        p[MESH_CLEAN_LARGEST].i = all;
        rc = time_call(&c, &t);
        snprintf(remark, sizeof(remark), "%s%s", what, all ? ", turned outward, the largest part kept" : "");
        if (rc == 0)
            tell(k->name, size, &t, bytes / rate * 1e3, "bytes", remark);
    }
    free(p);
    return rc;
}

/* The same faces, each with three vertices of its own. */
static int soup(uint32_t n, struct recon_mesh *m)
{
    struct recon_mesh s;
    int rc = sheet(n, 0, m);

    s = (struct recon_mesh){ .vertices = 3 * m->faces, .faces = m->faces };
    s.xyz = rc ? NULL : T.ctx.host->alloc(&T.ctx, 12 * s.vertices);
    s.index = rc ? NULL : T.ctx.host->alloc(&T.ctx, 12 * s.faces);
    if (!s.xyz || !s.index)
        return bad("mesh");
    for (uint64_t i = 0; i < s.vertices; i++) {
        memcpy(s.xyz + 3 * i, m->xyz + 3 * (uint64_t)m->index[i], 12);
        s.index[i] = (uint32_t)i;
    }
    golden_free(&T.ctx, NULL, RECON_MESH, m);
    *m = s;
    return to_device(RECON_MESH, m);
}

static int clean(uint32_t n)
{
    struct recon_mesh m;
    char size[32], text[100];
    int rc = sheet(n, 0, &m);

    snprintf(text, sizeof(text), "%s faces", count_text(m.faces, size));
    rc = rc || to_device(RECON_MESH, &m) || time_clean(&m, text, "nothing to clean");
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    rc = rc || soup(n, &m) || time_clean(&m, text, "three vertices a face");
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    return rc;
}

static int meshes(uint32_t n)
{
    struct recon_mesh m;
    char size[32], text[100];
    int rc = sheet(n, 0, &m);

    snprintf(text, sizeof(text), "%s vertices", count_text((uint64_t)n * n, size));
    rc = rc || to_device(RECON_MESH, &m) || time_smooth(&m, text) || time_normals(&m, text, "mesh read, normals written");
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    return rc || in_no_order(n);
}

int bench_ball(uint64_t faces, struct recon_mesh *m)
{
    uint32_t n = (uint32_t)sqrt((double)faces / 2), *f;

    *m = (struct recon_mesh){ .vertices = (uint64_t)n * (n + 1), .faces = 2ull * n * n };
    m->xyz = T.ctx.host->alloc(&T.ctx, 12 * m->vertices);
    f = m->index = T.ctx.host->alloc(&T.ctx, 12 * m->faces);
    if (!m->xyz || !m->index)
        return bad("mesh");
    for (uint64_t i = 0; i < m->vertices; i++) {
        double a = 3.14159265358979 * (double)(i / n) / n, b = 6.28318530717959 * (double)(i % n) / n;

        m->xyz[3 * i] = (float)(0.9 * sin(a) * cos(b));
        m->xyz[3 * i + 1] = (float)(0.9 * sin(a) * sin(b));
        m->xyz[3 * i + 2] = (float)(0.9 * cos(a));
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++, f += 6) {
            uint32_t a = i * n + j, b = i * n + (j + 1) % n;

            memcpy(f, (uint32_t[]){ a, a + n, b, b, a + n, b + n }, 24);
        }
    return to_device(RECON_MESH, m);
}

/* A tenth of a ball's faces is left. Floor: the mesh read and written once. */
static int simplify(uint64_t faces)
{
    const struct recon_kernel *k = test_kernel(M, MESH_SIMPLIFY_NAME);
    struct recon_value *p = test_params(k);
    struct recon_mesh m = { 0 };
    struct call call = { k, { &m }, p };
    char size[32], text[100];
    int rc = bench_ball(faces, &m);

    p[MESH_SIMPLIFY_FACES].i = (int64_t)faces / 10;
    snprintf(text, sizeof(text), "%s faces to a tenth", count_text(m.faces, size));
    for (int method = M->device ? MESH_SIMPLIFY_ROUNDS : MESH_SIMPLIFY_LEVELS; method <= MESH_SIMPLIFY_ROUNDS && rc == 0; method++) {
        struct times t;

        p[MESH_SIMPLIFY_METHOD].i = method;
        rc = time_call(&call, &t);
        if (rc == 0)
            tell(k->name, text, &t, 1.1 * (12 * (double)m.vertices + 12 * (double)m.faces) / rate * 1e3, "bytes", method ? "rounds" : "levels");
    }
    golden_free(&T.ctx, M->device, RECON_MESH, &m);
    free(p);
    return rc;
}

int bench_meshes(uint64_t most, bool arrays)
{
    int rc = 0;

    for (uint64_t n = most < 1 << 20 ? most : 1 << 20; n <= most && rc == 0; n *= 16)
        rc = meshes((uint32_t)sqrt((double)n)) || (!arrays && clean((uint32_t)sqrt((double)n))) || bench_voxels(n);
    if (arrays)
        return rc;
    for (uint32_t n = most < 1 << 20 ? 200 : 1001, i = 0; i < 2 && rc == 0; i++)
        rc = fill(n, 5 * i, i ? "holes of 20 edges; the outer border stays" : "the outer border stays");
    for (uint64_t n = most < 1 << 20 ? most : 1 << 20; n <= most && n <= 2 << 20 && rc == 0; n *= 2)
        rc = faces(n);
    return rc || of_a_sphere(most < 1 << 24 ? 64 : 512) || bench_farthest(most < 250000 ? most : 250000, most < 250000 ? 1000 : 4096) ||
           (most > 1000000 && bench_farthest(1000000, 4096)) || bench_signs(most < 1000000 ? most : 1000000, 100000) || simplify(most < 2000000 ? most : 2000000);
}
