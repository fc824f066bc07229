/* Kernels of meshes on scans: figures that were found by other means, and what must not change. Skipped without the data folder. */
#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "data/data.h"
#include "kernels/test/made.h"

static const struct recon_module *cpu, *ref;
static char *folder;

static struct recon_mesh scan(const char *name)
{
    char *path = path_join(folder, name);
    struct mesh_notes notes;
    struct recon_mesh m;

    assert_int_equal(mesh_read(path, &(struct geom_options){ .threads = 2 }, &data_malloc, &m, &notes, NULL), 0);
    free(path);
    return m;
}

/* 100,000 points, or as many as RECON_TEST_POINTS says: parity is the winding number, and the share inside is volume / box, 0.2721 */
static void signs(void **state)
{
    const char *many = getenv("RECON_TEST_POINTS");
    struct recon_points in = cloud(many ? strtoull(many, NULL, 10) : 100000, 77, 0), a;
    float low[3] = { INFINITY, INFINITY, INFINITY }, high[3] = { -INFINITY, -INFINITY, -INFINITY };
    struct recon_mesh m = scan("meshes/rocker-arm.obj");
    struct test_ctx t;

    (void)state;
    for (uint64_t i = 0; i < 3 * m.vertices; i++) {
        low[i % 3] = fminf(low[i % 3], m.xyz[i]);
        high[i % 3] = fmaxf(high[i % 3], m.xyz[i]);
    }
    for (uint64_t i = 0; i < 3 * in.n; i++)
        in.xyz[i] = low[i % 3] + (in.xyz[i] + 1) / 2 * (high[i % 3] - low[i % 3]);
    signs_agree(cpu, ref, &m, &in, 500);
    test_ctx_init(&t, NULL, NULL, 2);
    sign_of(cpu, &m, &in, CHECK_SIGN_PARITY, &a, &t);
    assert_true(fabs((double)a.n / (double)in.n - 0.2721) < 3 * sqrt(0.2 / (double)in.n));
    test_slot_free(&t, RECON_POINTS, &a);
    free_mesh(&m);
    free_points(&in);
}

/* volumes after smoothing, as shares of those before, by numpy in double from a list of edges */
static void volumes(void **state)
{
    static const struct {
        const char *name;
        int method;
        int64_t iterations;
        double share;
    } rows[] = {
        { "meshes/rocker-arm.obj", MESH_SMOOTH_LAPLACIAN, 10, 0.98180823 }, { "meshes/rocker-arm.obj", MESH_SMOOTH_TAUBIN, 10, 1.00235244 },
        { "meshes/rocker-arm.obj", MESH_SMOOTH_LAPLACIAN, 100, 0.84624530 }, { "meshes/rocker-arm.obj", MESH_SMOOTH_TAUBIN, 100, 1.01734572 },
        { "meshes/spot.obj", MESH_SMOOTH_LAPLACIAN, 10, 0.87995074 },       { "meshes/spot.obj", MESH_SMOOTH_TAUBIN, 10, 1.00397387 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct recon_value *p = test_params(test_kernel(cpu, MESH_SMOOTH_NAME));
        struct recon_mesh m = scan(rows[i].name), a;
        struct mesh_facts before, after;
        struct test_ctx t;

        test_ctx_init(&t, NULL, NULL, 2);
        p[MESH_SMOOTH_METHOD].i = rows[i].method;
        p[MESH_SMOOTH_ITERATIONS].i = rows[i].iterations;
        assert_int_equal(run_mesh(&t, cpu, MESH_SMOOTH_NAME, &m, p, &a), 0);
        mesh_facts(&m, &before);
        mesh_facts(&a, &after);
        if (!(fabs(after.volume / before.volume - rows[i].share) < 1e-6))
            fail_msg("%s after %d steps: %.8f of its volume, %.8f wanted", rows[i].name, (int)rows[i].iterations, after.volume / before.volume,
                     rows[i].share);
        test_slot_free(&t, RECON_MESH, &a);
        free_mesh(&m);
        free(p);
    }
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, 24);
}

/* directed edges without an opposite as pairs of places, sorted; every vertex of a scan is in one place alone */
static float *border_of(const struct recon_mesh *m, uint64_t *n)
{
    struct rows_of {
        uint32_t from, to;
    } *half = xmalloc(sizeof(*half) * 3 * m->faces);
    uint32_t *at = xcalloc(m->vertices + 2, 4);
    float *e;

    for (uint64_t i = 0; i < 3 * m->faces; i++)
        at[m->index[i] + 2]++;
    for (uint64_t v = 0; v < m->vertices; v++)
        at[v + 2] += at[v + 1];
    for (uint64_t i = 0; i < 3 * m->faces; i++) {
        uint32_t a = m->index[i], b = m->index[i % 3 == 2 ? i - 2 : i + 1];

        half[at[a + 1]++] = (struct rows_of){ a, b };
    }
    e = xmalloc(72 * m->faces);
    *n = 0;
    for (uint64_t i = 0; i < 3 * m->faces; i++) {
        bool paired = false;

        for (uint32_t k = at[half[i].to]; k < at[half[i].to + 1]; k++)
            paired = paired || half[k].to == half[i].from;
        if (paired)
            continue;
        memcpy(e + 6 * *n, m->xyz + 3 * (uint64_t)half[i].from, 12);
        memcpy(e + 6 * (*n)++ + 3, m->xyz + 3 * (uint64_t)half[i].to, 12);
    }
    qsort(e, *n, 24, by_bytes);
    free(half);
    free(at);
    return e;
}

/* bunny's five holes, of 223 edges, stay bit for bit; filled, they are gone: chi from -3 to 2 */
static void bunny(void **state)
{
    struct recon_value p[] = { { .i = 10000 }, { .i = 0 }, { .f = 0 }, { .i = *(int64_t *)*state } };
    struct recon_mesh m = scan("meshes/stanford-bunny.obj"), clean, simple, full;
    uint64_t before_n, after_n;
    float *before, *after;
    struct mesh_facts f;
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    assert_int_equal(run_mesh(&t, cpu, MESH_CLEAN_NAME, &m, NULL, &clean), 0); /* vertices in no face go */
    mesh_facts(&clean, &f);
    assert_int_equal(f.euler, -3);
    before = border_of(&clean, &before_n);
    assert_int_equal(before_n, 223);
    assert_int_equal(run_mesh(&t, cpu, MESH_SIMPLIFY_NAME, &clean, p, &simple), 0);
    mesh_facts(&simple, &f);
    assert_int_equal(simple.faces, 9999); /* an odd number of border edges */
    assert_int_equal(f.euler, -3);
    after = border_of(&simple, &after_n);
    assert_int_equal(after_n, before_n);
    assert_memory_equal(after, before, 24 * after_n);
    assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &simple, NULL, &full), 0);
    mesh_facts(&full, &f);
    assert_int_equal(f.euler, 2);
    assert_int_equal(f.open, 0);
    assert_int_equal(full.faces, 10212); /* 223 - 2 x 5 more */
    test_slot_free(&t, RECON_MESH, &full);
    assert_int_equal(run_mesh(&t, cpu, MESH_FILL_NAME, &clean, NULL, &full), 0);
    mesh_facts(&full, &f);
    assert_int_equal(f.euler, 2);
    assert_int_equal(f.open, 0);
    for (struct recon_mesh **x = (struct recon_mesh *[]){ &clean, &simple, &full, NULL }; *x; x++)
        test_slot_free(&t, RECON_MESH, *x);
    assert_int_equal(t.live, 0);
    free(before);
    free(after);
    free_mesh(&m);
}

int main(void)
{
    static int64_t levels = MESH_SIMPLIFY_LEVELS, rounds = MESH_SIMPLIFY_ROUNDS;
    const struct CMUnitTest tests[] = { cmocka_unit_test(signs), cmocka_unit_test(volumes), { "bunny, by levels", bunny, NULL, NULL, &levels },
                                        { "bunny, by rounds", bunny, NULL, NULL, &rounds } };
    const char *src = getenv("abs_top_srcdir"), *data = getenv("RECON_TEST_DATA");
    char *probe;
    int rc = 0;

    folder = data ? xstrdup(data) : xasprintf("%s/../shared/data", src ? src : ".");
    probe = path_join(folder, "meshes/stanford-bunny.obj");
    if (access(probe, R_OK) == 0) {
        cpu = test_module("cpu");
        ref = test_module("ref");
        rc = cmocka_run_group_tests(tests, NULL, NULL);
    } else {
        printf("1..0 # SKIP no data folder: RECON_TEST_DATA says where it is\n");
    }
    free(probe);
    free(folder);
    return rc;
}
