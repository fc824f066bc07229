/* Kernels that take a mesh. */
#include "config.h"
#include "agree.h"

#include <stdlib.h>

static struct tally smooth, normals, angles;

static void normals_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = agree_params(MESH_NORMALS_NAME);

    p[MESH_NORMALS_WEIGHT].i = MESH_NORMALS_AREA;
    agree_one(&normals, MESH_NORMALS_NAME, what, (const void *[]){ m, NULL }, p, 0);
    p[MESH_NORMALS_WEIGHT].i = MESH_NORMALS_ANGLE;
    agree_one(&angles, MESH_NORMALS_NAME, what, (const void *[]){ m, NULL }, p, 1.2e-7);
    free(p);
}

/* A vertex of n faces. */
static struct recon_mesh fan(uint32_t n)
{
    struct recon_mesh m = mesh_of(n + 1ull, n);
    uint32_t seed = n;

    for (uint32_t i = 0; i < n; i++) {
        memcpy(m.index + 3ull * i, (uint32_t[]){ 0, 1 + i, 1 + (i + 1) % n }, 12);
        for (int k = 0; k < 3; k++)
            m.xyz[3 * (i + 1ull) + (uint32_t)k] = uniform(&seed);
    }
    return m;
}

/* Large enough to be spread over blocks and tiles of a device; and more faces at a vertex than these hold. */
static void large_meshes(void)
{
    struct recon_mesh m = agree_sheet(agree_small ? 140 : 1200, 3);

    normals_one(&m, "large sheet");
    agree_shuffle(&m, 4);
    normals_one(&m, "large shuffled sheet");
    free_mesh(&m);
    for (uint32_t n = 500; n < 20000; n *= 6) {
        m = fan(n);
        normals_one(&m, "fan");
        free_mesh(&m);
    }
}

static void smooth_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = agree_params(MESH_SMOOTH_NAME);
    char name[80];

    p[MESH_SMOOTH_ITERATIONS].i = 3;
    for (int i = 0; i < 8; i++) {
        p[MESH_SMOOTH_METHOD].i = i & 1;
        p[MESH_SMOOTH_WEIGHTS].i = i >> 1 & 1;
        p[MESH_SMOOTH_BORDER].i = i >> 2;
        snprintf(name, sizeof(name), "%s, way %d", what, i);
        agree_one(&smooth, MESH_SMOOTH_NAME, name, (const void *[]){ m, NULL }, p, 0);
    }
    free(p);
    normals_one(m, what);
}

static struct tally checks;

static void check_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = agree_params(MESH_CHECK_NAME);
    char name[80];

    for (int i = MESH_CHECK_NOTHING; i <= MESH_CHECK_CLOSED; i++) {
        p[MESH_CHECK_REQUIRE].i = i;
        snprintf(name, sizeof(name), "%s, required %d", what, i);
        agree_one(&checks, MESH_CHECK_NAME, name, (const void *[]){ m, NULL }, p, 0);
    }
    free(p);
}

static struct tally loops, midpoints;

/* Levels one after the other, as many as stay small; and with the deadline before the last. */
static void subdivide_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = agree_params(MESH_SUBDIVIDE_NAME);
    char name[80];

    for (int method = MESH_SUBDIVIDE_LOOP; method <= MESH_SUBDIVIDE_MIDPOINT; method++)
        for (int i = 1; i < 4 && (i == 1 || m->faces << 2 * i < (agree_small ? 20000 : 2000000)); i++) {
            struct tally *t = method == MESH_SUBDIVIDE_LOOP ? &loops : &midpoints;

            p[MESH_SUBDIVIDE_METHOD].i = method;
            p[MESH_SUBDIVIDE_LEVELS].i = i;
            snprintf(name, sizeof(name), "%s, %d levels", what, i);
            agree_one(t, MESH_SUBDIVIDE_NAME, name, (const void *[]){ m, NULL }, p, 0);
            agree_patience = i - 1;
            if (agree_patience)
                agree_one(t, MESH_SUBDIVIDE_NAME, name, (const void *[]){ m, NULL }, p, 0);
            agree_patience = 0;
        }
    free(p);
}

static struct tally signs, windings;

static void sign_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = agree_params(CHECK_SIGN_NAME);
    struct recon_points c = agree_cloud(agree_small ? 300 : 20000, 9, false);

    for (uint64_t i = 0; i < c.n / 2 && m->vertices; i++) /* through vertices, along edges */
        memcpy(c.xyz + 3 * i + 1, m->xyz + 3 * (i % m->vertices) + 1, 8 - 4 * (i & 1));
    p[CHECK_SIGN_METHOD].i = CHECK_SIGN_PARITY;
    agree_one(&signs, CHECK_SIGN_NAME, what, (const void *[]){ m, &c, NULL }, p, 0);
    p[CHECK_SIGN_METHOD].i = CHECK_SIGN_WINDING;
    if (m->faces < 2000 || agree_small)
        agree_one(&windings, CHECK_SIGN_NAME, what, (const void *[]){ m, &c, NULL }, p, 0);
    free(p);
    agree_free_points(&c);
}

int agree_meshes(void)
{
    int rc;

    agree_each_mesh(smooth_one);
    large_meshes();
    rc = agree_told(MESH_SMOOTH_NAME, &smooth) + agree_told(MESH_NORMALS_NAME, &normals) + agree_told("  by angle", &angles);
    agree_each_mesh(check_one);
    rc += agree_told(MESH_CHECK_NAME, &checks);
    agree_each_mesh(subdivide_one);
    rc += agree_told(MESH_SUBDIVIDE_NAME, &loops) + agree_told("  midpoint", &midpoints);
    agree_each_mesh(sign_one);
    return rc + agree_told(CHECK_SIGN_NAME, &signs) + agree_told("  winding", &windings);
}
