/* Kernels of meshes and points: golden numbers, invariants, and the plain references. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "data/data.h"
#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/ctx.h"
#include "kernels/test/mesh_check.h"

static const struct recon_module *cpu, *ref;
static char dir[] = "/tmp/recon-mesh-test.XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return dir_remove(dir);
}

static uint32_t next_random(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static float uniform(uint32_t *s) /* -1 to 1 */
{
    return (float)next_random(s) / (1 << 23) - 1;
}

/* ---- meshes made here; released with free_mesh ---- */

static struct recon_mesh mesh_of(uint64_t vertices, uint64_t faces)
{
    return (struct recon_mesh){ .vertices = vertices, .faces = faces, .xyz = xcalloc(3 * vertices + 1, 4), .index = xcalloc(3 * faces + 1, 4) };
}

static void free_mesh(struct recon_mesh *m)
{
    free(m->xyz);
    free(m->normals);
    free(m->rgb);
    free(m->index);
    *m = (struct recon_mesh){ 0 };
}

/* n x n points in the plane, triangles up, a bump of height h */
static struct recon_mesh grid(uint32_t n, float h)
{
    struct recon_mesh m = mesh_of(n * n, 2 * (n - 1) * (n - 1));
    uint32_t *f = m.index;

    for (uint32_t i = 0; i < n * n; i++) {
        m.xyz[3 * i] = (float)(i / n);
        m.xyz[3 * i + 1] = (float)(i % n);
        m.xyz[3 * i + 2] = h * sinf((float)(i / n)) * cosf((float)(i % n) / 2);
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t j = 0; j + 1 < n; j++) {
            uint32_t a = i * n + j;

            memcpy(f, (uint32_t[]){ a, a + n, a + 1, a + 1, a + n, a + n + 1 }, 24);
            f += 6;
        }
    return m;
}

/* the golden sphere through marching cubes */
static struct recon_mesh sphere(uint32_t n)
{
    struct recon_volume v = { .dim = { n, n, n }, .origin = { -1, -1, -1 }, .voxel = 2.0 / (n - 1), .truncation = 1, .tsdf = xmalloc((size_t)n * n * n * 4) };
    const struct recon_kernel *k = test_kernel(cpu, MC_NAME);
    struct recon_value *p = test_params(k);
    struct recon_cost cost = { 0 };
    struct recon_mesh m = { 0 };
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 1);
    golden_sphere(v.tsdf, n);
    assert_int_equal(k->run(&t.ctx, (const void *[]){ &v, NULL }, p, (void *[]){ &m, NULL }, &cost), 0);
    free(v.tsdf);
    free(p);
    return m;
}

/* anything: few vertices, so that edges and faces repeat */
static struct recon_mesh garbage(uint32_t seed)
{
    uint32_t n = 3 + next_random(&seed) % 12, f = 1 + next_random(&seed) % 30;
    struct recon_mesh m = mesh_of(n, f);

    m.rgb = xmalloc(3 * n);
    for (uint32_t i = 0; i < 3 * n; i++) {
        m.xyz[i] = (float)(next_random(&seed) % 4);
        m.rgb[i] = (uint8_t)next_random(&seed);
    }
    for (uint32_t i = 0; i < 3 * f; i++)
        m.index[i] = next_random(&seed) % n;
    return m;
}

/* what was taken stays below what was said before; 2 KiB for what malloc adds */
static void within(const struct test_ctx *t, const char *name, const struct recon_cost *most)
{
    if (t->peak > most->host_bytes + 2048)
        fail_msg("%s took %llu bytes, %llu were said", name, (unsigned long long)t->peak, (unsigned long long)most->host_bytes);
}

static int run_mesh(struct test_ctx *t, const struct recon_module *mod, const char *name, const struct recon_mesh *m, struct recon_value *p,
                    struct recon_mesh *r)
{
    const struct recon_kernel *k = test_kernel(mod, name);
    struct recon_value *def = p ? NULL : test_params(k);
    struct recon_cost cost = { 0 }, most = { 0 };
    int rc;

    *r = (struct recon_mesh){ 0 };
    assert_int_equal(k->bound(&t->ctx, (const void *[]){ m, NULL }, p ? p : def, &most), 0);
    most.host_bytes += t->bytes;
    t->peak = t->bytes;
    rc = k->run(&t->ctx, (const void *[]){ m, NULL }, p ? p : def, (void *[]){ r, NULL }, &cost);
    within(t, name, &most);
    free(def);
    return rc;
}

static void same_mesh(const struct recon_mesh *a, const struct recon_mesh *b)
{
    assert_int_equal(a->vertices, b->vertices);
    assert_int_equal(a->faces, b->faces);
    assert_memory_equal(a->xyz, b->xyz, 12 * a->vertices);
    assert_memory_equal(a->index, b->index, 12 * a->faces);
    assert_int_equal(!a->normals, !b->normals);
    assert_int_equal(!a->rgb, !b->rgb);
    if (a->normals)
        assert_memory_equal(a->normals, b->normals, 12 * a->vertices);
    if (a->rgb)
        assert_memory_equal(a->rgb, b->rgb, 3 * a->vertices);
}

/* each kernel that has a reference gives its bits, on anything, for any number of threads */
static void references(void **state)
{
    static const char *const names[] = { MESH_SMOOTH_NAME, MESH_NORMALS_NAME, MESH_SUBDIVIDE_NAME };

    (void)state;
    for (uint32_t round = 0; round < 400; round++)
        for (size_t k = 0; k < COUNT(names); k++) {
            struct recon_mesh m = round < 390 ? garbage(round) : grid(20 + 40 * (round % 5), 0.5f), a, b;
            struct recon_value *p = test_params(test_kernel(cpu, names[k]));
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 1 + (int)(round % 3));
            p[0].i = round & 1; /* method, weight */
            if (k == 0) {
                p[MESH_SMOOTH_WEIGHTS].i = round >> 1 & 1;
                p[MESH_SMOOTH_BORDER].i = round >> 2 & 1;
                p[MESH_SMOOTH_ITERATIONS].i = 1 + round % 4;
            }
            if (k == 2)
                p[MESH_SUBDIVIDE_LEVELS].i = 1 + (round >> 1 & 1);
            assert_int_equal(run_mesh(&t, cpu, names[k], &m, p, &a), 0);
            assert_int_equal(run_mesh(&t, ref, names[k], &m, p, &b), 0);
            same_mesh(&a, &b);
            test_slot_free(&t, RECON_MESH, &a);
            test_slot_free(&t, RECON_MESH, &b);
            assert_int_equal(t.live, 0);
            free_mesh(&m);
            free(p);
        }
}

static struct str census_text(const struct recon_module *mod, const struct recon_mesh *m)
{
    struct recon_value *p = test_params(test_kernel(mod, MESH_CHECK_NAME));
    char *path = path_join(dir, p[MESH_CHECK_FILE].s);
    struct recon_mesh r;
    struct str text = { 0 };
    struct test_ctx t;

    test_ctx_init(&t, NULL, dir, 1);
    assert_int_equal(run_mesh(&t, mod, MESH_CHECK_NAME, m, p, &r), 0);
    assert_int_equal(file_read(path, 4096, &text, NULL), 0);
    assert_int_equal(t.live, 0);
    test_ctx_release(&t);
    free(path);
    free(p);
    return text;
}

static void census(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 500; round++) {
        struct recon_mesh m = round < 490 ? garbage(round) : grid(3 + round % 10, 1);
        struct str a = census_text(cpu, &m), b = census_text(ref, &m);

        assert_string_equal(a.s, b.s);
        str_release(&a);
        str_release(&b);
        free_mesh(&m);
    }
}

static void refused(void **state)
{
    static const char *const names[] = { MESH_CHECK_NAME, MESH_CLEAN_NAME, MESH_FILL_NAME, MESH_SUBDIVIDE_NAME, MESH_SMOOTH_NAME, MESH_NORMALS_NAME };
    struct recon_mesh m = mesh_of(3, 1), r;

    (void)state;
    memcpy(m.index, (uint32_t[]){ 0, 1, 3 }, 12);
    for (size_t k = 0; k < COUNT(names); k++) {
        struct test_ctx t;

        test_ctx_init(&t, NULL, dir, 1);
        assert_int_equal(run_mesh(&t, cpu, names[k], &m, NULL, &r), -1);
        assert_int_equal(t.code, CODE_DATA);
        assert_string_equal(t.rule, "face-index-out-of-range");
        assert_int_equal(t.live, 0);
    }
    free_mesh(&m);
}

/* ---- clean, fill ---- */

static void cleaned(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 600; round++) {
        struct recon_mesh m = garbage(round), a, again;
        struct recon_value *p = test_params(test_kernel(cpu, MESH_CLEAN_NAME));
        struct mesh_facts f;
        struct str text;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        p[MESH_CLEAN_ORIENT].i = round & 1;
        p[MESH_CLEAN_MIN_FACES].i = round % 3;
        if (run_mesh(&t, cpu, MESH_CLEAN_NAME, &m, p, &a)) {
            assert_string_equal(t.rule, "empty-result");
            assert_int_equal(t.live, 0);
        } else {
            mesh_facts(&a, &f);
            assert_int_equal(f.bad + f.unused, 0);
            text = census_text(cpu, &a);
            assert_non_null(strstr(text.s, "\"degenerate\": 0,\n  \"zero_area\": 0,\n  \"repeated\": 0,"));
            assert_non_null(strstr(text.s, "\"non_manifold\": 0,"));
            str_release(&text);
            p[MESH_CLEAN_MIN_FACES].i = 0;
            assert_int_equal(run_mesh(&t, cpu, MESH_CLEAN_NAME, &a, p, &again), 0);
            same_mesh(&a, &again); /* twice is once */
            test_slot_free(&t, RECON_MESH, &a);
            test_slot_free(&t, RECON_MESH, &again);
            assert_int_equal(t.live, 0);
        }
        free_mesh(&m);
        free(p);
    }
}

static void holes(void **state)
{
    uint32_t seed = 3;
    int told = 0;

    (void)state;
    for (int round = 0; round < 40; round++) { /* a sphere with faces taken away, and anything */
        struct recon_mesh m = round < 20 ? sphere(16) : garbage((uint32_t)round), a;
        struct mesh_facts before, after;
        uint64_t k = 0;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        for (uint64_t f = 0; round < 20 && f < m.faces; f++)
            if (next_random(&seed) % (200 / (uint32_t)(round + 1)) || f == 0)
                memmove(m.index + 3 * k++, m.index + 3 * f, 12);
        m.faces = round < 20 ? k : m.faces;
        mesh_facts(&m, &before);
        assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, NULL, &a), 0);
        mesh_facts(&a, &after);
        assert_memory_equal(a.index, m.index, 12 * m.faces);
        assert_true(after.repeated <= before.repeated);
        if (round < 20) { /* what is told closed is closed */
            assert_true(before.open > 0 && after.open < before.open && after.repeated == 0);
            assert_true(t.warnings ? after.open > 0 : after.open == 0);
            told += !t.warnings;
        }
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
        free_mesh(&m);
    }
    assert_true(told > 0);
}

/* a grid's border of n edges: left, by dynamic programming, by shortest diagonals; the closed one has chi 2 */
static void long_hole(void **state)
{
    static const uint32_t sides[] = { 4, 20, 120 };

    (void)state;
    for (size_t i = 0; i < COUNT(sides); i++) {
        struct recon_mesh m = grid(sides[i], 0.3f), a;
        uint32_t border = 4 * (sides[i] - 1);
        struct recon_value p[1] = { { .i = border - 1 } };
        struct mesh_facts f;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, p, &a), 0);
        assert_int_equal(a.faces, m.faces);
        assert_int_equal(t.warnings, 1);
        test_slot_free(&t, RECON_MESH, &a);
        test_ctx_reset(&t);
        p[0].i = border;
        assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &m, p, &a), 0);
        assert_int_equal(a.faces, m.faces + border - 2);
        mesh_facts(&a, &f);
        assert_int_equal(f.open + f.repeated, 0);
        assert_int_equal(f.euler, 2);
        test_slot_free(&t, RECON_MESH, &a);
        free_mesh(&m);
    }
}

/* ---- smooth, subdivide, normals ---- */

static double volume_after(const struct recon_mesh *m, int method, int64_t iterations)
{
    struct recon_value *p = test_params(test_kernel(cpu, MESH_SMOOTH_NAME));
    struct mesh_facts f;
    struct recon_mesh a;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    p[MESH_SMOOTH_METHOD].i = method;
    p[MESH_SMOOTH_ITERATIONS].i = iterations;
    assert_int_equal(run_mesh(&t, cpu, MESH_SMOOTH_NAME, m, p, &a), 0);
    mesh_facts(&a, &f);
    assert_int_equal(f.open + f.bad, 0);
    test_slot_free(&t, RECON_MESH, &a);
    free(p);
    return f.volume;
}

static void smoothing(void **state)
{
    struct recon_mesh m = sphere(32), flat = grid(12, 0), a;
    struct recon_value *p = test_params(test_kernel(cpu, MESH_SMOOTH_NAME));
    struct mesh_facts f;
    double last, now;
    struct test_ctx t;

    (void)state;
    mesh_facts(&m, &f);
    last = f.volume;
    for (int64_t n = 1; n < 30; n += 7) { /* a sphere shrinks all the way */
        now = volume_after(&m, MESH_SMOOTH_LAPLACIAN, n);
        assert_true(now < last);
        last = now;
    }
    assert_true(fabs(volume_after(&m, MESH_SMOOTH_TAUBIN, 10) - f.volume) < 0.1 * fabs(volume_after(&m, MESH_SMOOTH_LAPLACIAN, 10) - f.volume));
    /* a plane stays one; with its border fixed the middle of a regular grid does not move */
    test_ctx_init(&t, NULL, NULL, 1);
    p[MESH_SMOOTH_BORDER].i = MESH_SMOOTH_FIX;
    assert_int_equal(run_mesh(&t, cpu, MESH_SMOOTH_NAME, &flat, p, &a), 0);
    for (uint64_t i = 0; i < 3 * flat.vertices; i++)
        assert_true(fabsf(a.xyz[i] - flat.xyz[i]) < 1e-5f);
    test_slot_free(&t, RECON_MESH, &a);
    free_mesh(&flat);
    free_mesh(&m);
    free(p);
}

static void subdivision(void **state)
{
    struct recon_mesh m = sphere(16), a;
    struct recon_value p[2] = { { .i = MESH_SUBDIVIDE_MIDPOINT }, { .i = 2 } };
    struct mesh_facts before, after;
    struct test_ctx t;

    (void)state;
    test_ctx_init(&t, NULL, NULL, 2);
    mesh_facts(&m, &before);
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), 0);
    mesh_facts(&a, &after);
    assert_int_equal(after.open + after.repeated + after.bad + after.unused, 0);
    assert_int_equal(after.euler, 2);
    assert_int_equal(a.faces, 16 * m.faces);
    assert_true(fabs(after.area - before.area) < 1e-5 && fabs(after.volume - before.volume) < 1e-5);
    test_slot_free(&t, RECON_MESH, &a);
    p[0].i = MESH_SUBDIVIDE_LOOP;
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), 0);
    mesh_facts(&a, &after);
    assert_int_equal(after.open + after.euler, 2);
    assert_true(after.volume < before.volume && after.volume > 0.9 * before.volume);
    test_slot_free(&t, RECON_MESH, &a);
    p[1].i = 10;
    m.faces = 2; /* 2 * 4^10 is fine, 1052 * 4^10 is not */
    m.faces = 1052;
    t.most = 1 << 28;
    assert_int_equal(run_mesh(&t, cpu, MESH_SUBDIVIDE_NAME, &m, p, &a), -1);
    assert_int_equal(t.live, 0);
    free_mesh(&m);
}

static void normals(void **state)
{
    struct recon_mesh m = sphere(64), a;
    struct recon_value p[1] = { { .i = 0 } };
    struct test_ctx t;

    (void)state;
    for (p[0].i = 0; p[0].i < 2; p[0].i++) {
        test_ctx_init(&t, NULL, NULL, 3);
        assert_int_equal(run_mesh(&t, cpu, MESH_NORMALS_NAME, &m, p, &a), 0);
        for (uint64_t v = 0; v < a.vertices; v++) { /* along the radius */
            const float *x = a.xyz + 3 * v, *n = a.normals + 3 * v;
            double r = sqrt((double)x[0] * x[0] + (double)x[1] * x[1] + (double)x[2] * x[2]);

            assert_true((n[0] * x[0] + n[1] * x[1] + n[2] * x[2]) / r > 0.995);
        }
        test_slot_free(&t, RECON_MESH, &a);
    }
    free_mesh(&m);
}

/* ---- simplify ---- */

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, 24);
}

/* border edges as pairs of places, sorted */
static float *border_of(const struct recon_mesh *m, uint64_t *n)
{
    float *e = xmalloc(72 * m->faces + 24);

    *n = 0;
    for (uint64_t f = 0; f < m->faces; f++)
        for (uint64_t i = 0; i < 3; i++) {
            uint32_t a = m->index[3 * f + i], b = m->index[3 * f + (i + 1) % 3];
            bool paired = false;

            for (uint64_t g = 0; !paired && g < m->faces; g++)
                for (uint64_t k = 0; k < 3; k++)
                    paired = paired || (m->index[3 * g + k] == b && m->index[3 * g + (k + 1) % 3] == a);
            if (!paired) {
                memcpy(e + 6 * *n, m->xyz + 3 * (uint64_t)a, 12);
                memcpy(e + 6 * *n + 3, m->xyz + 3 * (uint64_t)b, 12);
                ++*n;
            }
        }
    qsort(e, *n, 24, by_bytes);
    return e;
}

static void simplified(void **state)
{
    struct recon_mesh m = grid(24, 0.4f), a;
    struct recon_value p[2] = { { .i = 300 }, { .i = 0 } };
    uint64_t n, k;
    float *before, *after;
    struct mesh_facts f, g;
    struct test_ctx t;

    (void)state;
    memmove(m.index + 600, m.index + 606, 12 * (m.faces - 202)); /* a hole */
    m.faces -= 2;
    before = border_of(&m, &n);
    assert_int_equal(n, 96);
    test_ctx_init(&t, NULL, NULL, 1);
    assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
    assert_true(a.faces <= 300 && a.faces >= 298 && t.warnings == 0);
    mesh_facts(&m, &f);
    mesh_facts(&a, &g);
    assert_int_equal(g.euler, f.euler);
    assert_int_equal(g.repeated + g.bad + g.unused, 0);
    after = border_of(&a, &k);
    assert_int_equal(k, n);
    assert_memory_equal(before, after, 24 * n);
    test_slot_free(&t, RECON_MESH, &a);
    p[0].i = 1; /* more than the border allows */
    assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
    assert_string_equal(t.warned_rule, "simplify-target-not-reached");
    assert_true(a.faces >= 94);
    free(after);
    after = border_of(&a, &k);
    assert_int_equal(k, n);
    assert_memory_equal(before, after, 24 * n);
    test_slot_free(&t, RECON_MESH, &a);
    free(before);
    free(after);
    free_mesh(&m);
}

static void simplified_closed(void **state)
{
    static const int64_t wanted[] = { 9000, 2000, 200, 4, 1 };
    struct recon_mesh m = sphere(64), a;

    (void)state;
    for (size_t i = 0; i < COUNT(wanted); i++) {
        struct recon_value p[2] = { { .i = wanted[i] }, { .i = 0 } };
        struct mesh_facts f;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        mesh_facts(&a, &f);
        assert_int_equal(f.open + f.repeated + f.bad + f.unused, 0);
        assert_int_equal(f.euler, 2);
        assert_true(a.faces >= 4 && (t.warnings || a.faces <= (uint64_t)wanted[i]));
        if (wanted[i] >= 2000) {
            double most = 0;

            for (uint64_t v = 0; v < a.vertices; v++) {
                const float *x = a.xyz + 3 * v;

                most = fmax(most, fabs(sqrt((double)x[0] * x[0] + (double)x[1] * x[1] + (double)x[2] * x[2]) - 0.7));
            }
            assert_true(most < 0.004);
            assert_true(fabs(f.volume / (4.0 / 3 * M_PI * 0.343) - 1) < 0.01);
        }
        test_slot_free(&t, RECON_MESH, &a);
        p[0].i = 0;
        p[1].i = 500; /* by vertices: closed, so F = 2 (V - 2) */
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        assert_int_equal(a.vertices, 500);
        assert_int_equal(a.faces, 996);
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
    }
    free_mesh(&m);
    for (uint32_t round = 0; round < 400; round++) { /* anything: no worse than it was */
        struct recon_value p[2] = { { .i = 2 }, { .i = 0 } };
        struct mesh_facts f, g;
        struct test_ctx t;

        m = garbage(round);
        test_ctx_init(&t, NULL, NULL, 1);
        assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &m, p, &a), 0);
        mesh_facts(&m, &f);
        mesh_facts(&a, &g);
        assert_true(g.repeated <= f.repeated);
        test_slot_free(&t, RECON_MESH, &a);
        assert_int_equal(t.live, 0);
        free_mesh(&m);
    }
}

/* ---- points ---- */

static struct recon_points cloud(uint64_t n, uint32_t seed, int kind)
{
    struct recon_points p = { .n = n, .xyz = xmalloc(12 * n), .rgb = xmalloc(3 * n) };

    for (uint64_t i = 0; i < 3 * n; i++) {
        /* anywhere; on a lattice, so that distances tie and points repeat; in clumps */
        p.xyz[i] = kind == 0 ? uniform(&seed) : kind == 1 ? (float)(next_random(&seed) % 5) : uniform(&seed) * 0.01f + (float)(i / 3 % 7);
        p.rgb[i] = (uint8_t)next_random(&seed);
    }
    return p;
}

static void free_points(struct recon_points *p)
{
    free(p->xyz);
    free(p->rgb);
}

static void points_references(void **state)
{
    static const char *const names[] = { FPS_NAME, POINTS_NORMALS_NAME };

    (void)state;
    for (uint32_t round = 0; round < 60; round++)
        for (size_t k = 0; k < COUNT(names); k++) {
            struct recon_points in = cloud(3 + round * 13, round, (int)(round % 3)), r[2] = { { 0 } };
            struct recon_value *p = test_params(test_kernel(cpu, names[k]));
            struct test_ctx t;

            test_ctx_init(&t, NULL, NULL, 1 + (int)(round % 3));
            p[0].i = k == 0 ? 1 + round * 9 : 3 + round % 20; /* count, k */
            p[1].i = k == 0 ? round & 1 : round & 3;          /* first, orient */
            for (int d = 0; d < 2; d++) {
                const struct recon_kernel *kernel = test_kernel(d ? ref : cpu, names[k]);
                struct recon_cost cost = { 0 }, most = { 0 };

                assert_int_equal(kernel->bound(&t.ctx, (const void *[]){ &in, NULL }, p, &most), 0);
                most.host_bytes += t.bytes;
                t.peak = t.bytes;
                assert_int_equal(kernel->run(&t.ctx, (const void *[]){ &in, NULL }, p, (void *[]){ &r[d], NULL }, &cost), 0);
                within(&t, names[k], &most);
            }
            assert_int_equal(r[0].n, r[1].n);
            assert_memory_equal(r[0].xyz, r[1].xyz, 12 * r[0].n);
            assert_memory_equal(r[0].rgb, r[1].rgb, 3 * r[0].n);
            if (k == 1)
                assert_memory_equal(r[0].normals, r[1].normals, 12 * r[0].n);
            for (int d = 0; d < 2; d++)
                test_slot_free(&t, RECON_POINTS, &r[d]);
            assert_int_equal(t.live, 0);
            free_points(&in);
            free(p);
        }
}

static void sphere_normals(void **state)
{
    struct recon_mesh m = sphere(48);
    struct recon_points in = { .n = m.vertices, .xyz = m.xyz }, r;
    const struct recon_kernel *k = test_kernel(cpu, POINTS_NORMALS_NAME);
    struct recon_value *p = test_params(k);
    static const double origin[3] = { 0, 0, 0 };

    (void)state;
    p[POINTS_NORMALS_VIEWPOINT].v = origin;
    p[POINTS_NORMALS_VIEWPOINT].n = 3;
    for (int orient = POINTS_NORMALS_PROPAGATE; orient <= POINTS_NORMALS_OUTWARD; orient++) {
        struct recon_cost cost = { 0 };
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[POINTS_NORMALS_ORIENT].i = orient;
        r = (struct recon_points){ 0 };
        assert_int_equal(k->run(&t.ctx, (const void *[]){ &in, NULL }, p, (void *[]){ &r, NULL }, &cost), 0);
        for (uint64_t i = 0; i < r.n; i++) {
            double dot = 0;

            for (uint64_t a = 0; a < 3; a++)
                dot += (double)r.normals[3 * i + a] * r.xyz[3 * i + a] / 0.7;
            assert_true((orient == POINTS_NORMALS_TO_VIEWPOINT ? -dot : dot) > 0.98);
        }
        test_slot_free(&t, RECON_POINTS, &r);
    }
    free(p);
    free_mesh(&m);
}

static void voxels(void **state)
{
    static const double shape[3] = { 4, 7, 5 }, origin[3] = { -0.5, 0, 0.1 };

    (void)state;
    for (uint32_t round = 0; round < 36; round++) {
        struct recon_points in = cloud(1 + round * 5, round, (int)(round % 3)), sparse[2] = { { 0 } };
        struct recon_volume dense[2] = { { .tsdf = NULL }, { .tsdf = NULL } };
        struct recon_value *p = test_params(test_kernel(cpu, VOXELIZE_NAME));
        int rc[2];
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[VOXELIZE_MEANING].i = round % 3;
        p[VOXELIZE_RESOLUTION].i = 2 + round % 9;
        p[VOXELIZE_VOXEL].f = round % 3 ? 0.3 : 0;
        p[VOXELIZE_FORM].i = round & 1;
        if (round % 4 == 0 && round % 3 == 2)
            p[VOXELIZE_SHAPE] = (struct recon_value){ .v = shape, .n = 3 };
        if (round % 5 == 0)
            p[VOXELIZE_ORIGIN] = (struct recon_value){ .v = origin, .n = 3 };
        for (int d = 0; d < 2; d++) {
            struct recon_cost cost = { 0 }, most = { 0 };

            test_kernel(d ? ref : cpu, VOXELIZE_NAME)->bound(&t.ctx, (const void *[]){ &in, NULL }, p, &most);
            most.host_bytes += t.bytes;
            t.peak = t.bytes;
            rc[d] = test_kernel(d ? ref : cpu, VOXELIZE_NAME)->run(&t.ctx, (const void *[]){ &in, NULL }, p,
                                                                   (void *[]){ round & 1 ? NULL : (void *)&dense[d], round & 1 ? (void *)&sparse[d] : NULL, NULL }, &cost);
            if (d == 0 || !(round & 1)) /* the reference's sparse form is a dense one */
                within(&t, VOXELIZE_NAME, &most);
        }
        assert_int_equal(rc[0], rc[1]);
        assert_memory_equal(dense[0].dim, dense[1].dim, 12);
        assert_memory_equal(dense[0].origin, dense[1].origin, 24);
        if (dense[0].tsdf) {
            uint64_t n = (uint64_t)dense[0].dim[0] * dense[0].dim[1] * dense[0].dim[2];

            assert_memory_equal(dense[0].tsdf, dense[1].tsdf, 4 * n);
            assert_memory_equal(dense[0].weight, dense[1].weight, 4 * n);
        }
        assert_int_equal(sparse[0].n, sparse[1].n);
        if (sparse[0].n)
            assert_memory_equal(sparse[0].xyz, sparse[1].xyz, 12 * sparse[0].n);
        for (int d = 0; d < 2; d++) {
            test_slot_free(&t, RECON_VOLUME, &dense[d]);
            test_slot_free(&t, RECON_POINTS, &sparse[d]);
        }
        assert_int_equal(t.live, 0);
        free_points(&in);
        free(p);
    }
}

/* ---- check_sign ---- */

static void sign_of(const struct recon_module *mod, const struct recon_mesh *m, const struct recon_points *in, int method, struct recon_points *r,
                    struct test_ctx *t)
{
    struct recon_value p[2] = { { .i = method }, { .s = "" } };
    struct recon_cost cost = { 0 }, most = { 0 };

    test_kernel(mod, CHECK_SIGN_NAME)->bound(&t->ctx, (const void *[]){ m, in, NULL }, p, &most);
    most.host_bytes += t->bytes;
    t->peak = t->bytes;
    *r = (struct recon_points){ 0 };
    assert_int_equal(test_kernel(mod, CHECK_SIGN_NAME)->run(&t->ctx, (const void *[]){ m, in, NULL }, p, (void *[]){ r, NULL }, &cost), 0);
    within(t, CHECK_SIGN_NAME, &most);
}

static void signs_agree(const struct recon_mesh *m, const struct recon_points *in, bool lattice)
{
    struct recon_points a, b, w;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    sign_of(cpu, m, in, CHECK_SIGN_PARITY, &a, &t);
    sign_of(ref, m, in, CHECK_SIGN_PARITY, &b, &t);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.xyz, b.xyz, 12 * a.n);
    if (!lattice) { /* none on the surface */
        sign_of(cpu, m, in, CHECK_SIGN_WINDING, &w, &t);
        assert_int_equal(a.n, w.n);
        assert_memory_equal(a.xyz, w.xyz, 12 * a.n);
        test_slot_free(&t, RECON_POINTS, &w);
    }
    test_slot_free(&t, RECON_POINTS, &a);
    test_slot_free(&t, RECON_POINTS, &b);
    assert_int_equal(t.live, 0);
}

static void signs(void **state)
{
    struct recon_points in = cloud(2000, 5, 0);
    struct recon_mesh m = sphere(24);
    uint64_t k = 0;

    (void)state;
    signs_agree(&m, &in, false);
    for (int i = 0; i < 24 && k < 2000; i++) /* rays through vertices and edges: the sphere's own grid lines */
        for (int j = 0; j < 24 && k < 2000; j++) {
            in.xyz[3 * k] = -0.05f;
            in.xyz[3 * k + 1] = (float)(-1 + 2.0 * i / 23);
            in.xyz[3 * k++ + 2] = (float)(-1 + 2.0 * j / 23);
        }
    in.n = k;
    signs_agree(&m, &in, false);
    free_points(&in);
    free_mesh(&m);
}

/* rocker-arm, real: parity is the winding number. RECON_TEST_POINTS says how many points (100000 take minutes) */
static void signs_of_scan(void **state)
{
    const char *src = getenv("abs_top_srcdir"), *data = getenv("RECON_TEST_DATA"), *many = getenv("RECON_TEST_POINTS");
    char *path = data ? path_join(data, "meshes/rocker-arm.obj") : xasprintf("%s/../shared/data/meshes/rocker-arm.obj", src ? src : ".");
    struct recon_points in = cloud(many ? strtoull(many, NULL, 10) : 1500, 77, 0), a;
    struct mesh_notes notes;
    struct recon_mesh m;
    struct stat st;
    struct test_ctx t;

    (void)state;
    if (stat(path, &st) == 0) { /* else there is nothing to hold it against */
        float low[3] = { INFINITY, INFINITY, INFINITY }, high[3] = { -INFINITY, -INFINITY, -INFINITY };

        assert_int_equal(mesh_read(path, &(struct geom_options){ .threads = 2 }, &data_malloc, &m, &notes, NULL), 0);
        for (uint64_t i = 0; i < 3 * m.vertices; i++) {
            low[i % 3] = fminf(low[i % 3], m.xyz[i]);
            high[i % 3] = fmaxf(high[i % 3], m.xyz[i]);
        }
        for (uint64_t i = 0; i < 3 * in.n; i++)
            in.xyz[i] = low[i % 3] + (in.xyz[i] + 1) / 2 * (high[i % 3] - low[i % 3]);
        signs_agree(&m, &in, false);
        test_ctx_init(&t, NULL, NULL, 2);
        sign_of(cpu, &m, &in, CHECK_SIGN_PARITY, &a, &t);
        /* the share of the box inside is volume / box, 0.2721 */
        assert_true(fabs((double)a.n / (double)in.n - 0.2721) < 3 * sqrt(0.2 / (double)in.n));
        test_slot_free(&t, RECON_POINTS, &a);
        free_mesh(&m);
    }
    free_points(&in);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references),  cmocka_unit_test(census),           cmocka_unit_test(refused),        cmocka_unit_test(cleaned),
        cmocka_unit_test(holes),       cmocka_unit_test(long_hole),        cmocka_unit_test(smoothing),      cmocka_unit_test(subdivision),
        cmocka_unit_test(normals),     cmocka_unit_test(simplified),       cmocka_unit_test(simplified_closed),
        cmocka_unit_test(points_references), cmocka_unit_test(sphere_normals), cmocka_unit_test(voxels),     cmocka_unit_test(signs),
        cmocka_unit_test(signs_of_scan),
    };

    cpu = test_module("cpu");
    ref = test_module("ref");
    return cmocka_run_group_tests(tests, setup, teardown);
}
