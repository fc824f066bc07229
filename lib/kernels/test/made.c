#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/test/made.h"

/* n x n points in the plane, triangles up, a bump of height h */
struct recon_mesh grid(uint32_t n, float h)
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
struct recon_mesh sphere(uint32_t n)
{
    struct recon_volume v = { .dim = { n, n, n }, .origin = { -1, -1, -1 }, .voxel = 2.0 / (n - 1), .truncation = 1, .tsdf = xmalloc((size_t)n * n * n * 4) };
    const struct recon_kernel *k = test_kernel(test_module("cpu"), MC_NAME);
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
struct recon_mesh garbage(uint32_t seed)
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
void within(const struct test_ctx *t, const char *name, const struct recon_cost *most)
{
    if (t->peak > most->host_bytes + 2048)
        fail_msg("%s took %llu bytes, %llu were said", name, (unsigned long long)t->peak, (unsigned long long)most->host_bytes);
}

int run_mesh(struct test_ctx *t, const struct recon_module *mod, const char *name, const struct recon_mesh *m, struct recon_value *p,
                    struct recon_mesh *r)
{
    const struct recon_kernel *k = test_kernel(mod, name);
    struct recon_value *def = p ? NULL : test_params(k);
    struct recon_cost cost = { 0 }, most = { 0 };
    uint64_t before = t->bytes;
    int rc;

    *r = (struct recon_mesh){ 0 };
    assert_int_equal(k->bound(&t->ctx, (const void *[]){ m, NULL }, p ? p : def, &most), 0);
    most.host_bytes += before;
    t->peak = before;
    rc = k->run(&t->ctx, (const void *[]){ m, NULL }, p ? p : def, (void *[]){ r, NULL }, &cost);
    within(t, name, &most);
    cost.host_bytes += before;
    if (rc == 0) /* and below what is said once all is counted */
        within(t, name, &cost);
    free(def);
    return rc;
}

void same_mesh(const struct recon_mesh *a, const struct recon_mesh *b)
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

struct str census_text(const struct recon_module *mod, const char *dir, const struct recon_mesh *m)
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

struct recon_points cloud(uint64_t n, uint32_t seed, int kind)
{
    struct recon_points p = { .n = n, .xyz = xmalloc(12 * n), .rgb = xmalloc(3 * n) };

    for (uint64_t i = 0; i < 3 * n; i++) {
        /* anywhere; on a lattice, so that distances tie and points repeat; in clumps */
        p.xyz[i] = kind == 0 ? uniform(&seed) : kind == 1 ? (float)(next_random(&seed) % 5) : uniform(&seed) * 0.01f + (float)(i / 3 % 7);
        p.rgb[i] = (uint8_t)next_random(&seed);
    }
    return p;
}

void free_points(struct recon_points *p)
{
    free(p->xyz);
    free(p->rgb);
}

void sign_of(const struct recon_module *mod, const struct recon_mesh *m, const struct recon_points *in, int method, struct recon_points *r,
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

void signs_agree(const struct recon_module *cpu, const struct recon_module *ref, const struct recon_mesh *m, const struct recon_points *in,
                 uint64_t plain)
{
    struct recon_points a, b, few = { .n = plain < in->n ? plain : in->n, .xyz = in->xyz };
    struct test_ctx t;

    test_ctx_init(&t, NULL, NULL, 2);
    sign_of(cpu, m, in, CHECK_SIGN_PARITY, &a, &t);
    sign_of(cpu, m, in, CHECK_SIGN_WINDING, &b, &t);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.xyz, b.xyz, 12 * a.n);
    test_slot_free(&t, RECON_POINTS, &b);
    for (int method = CHECK_SIGN_PARITY; method <= CHECK_SIGN_WINDING; method++) {
        sign_of(ref, m, &few, method, &b, &t);
        assert_true(b.n <= a.n && (few.n < in->n || b.n == a.n));
        assert_memory_equal(a.xyz, b.xyz, 12 * b.n);
        test_slot_free(&t, RECON_POINTS, &b);
    }
    test_slot_free(&t, RECON_POINTS, &a);
    assert_int_equal(t.live, 0);
}
