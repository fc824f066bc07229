/* agree: whether the kernels of meshes and points of two modules give the same bytes, on inputs made here: regular, shuffled,
 * broken and tied.
 *
 *   agree A.so B.so [--small]
 * A and B: cuda.so, cpu.so or ref.so. Each case runs twice on A and once on B; refusals must have the same status and rule. One line a
 * kernel: how many cases, how many differ, the first that does; --small: sizes that ref.so takes in a second and that the fake
 * of a device (tests/fakes/cuda) bears. Normals by angle
 * may differ by two roundings of 1 (1.2e-7): the arc tangents of two libraries differ in their last bit. Status 0 when all agree. */
#include "config.h"
#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/ctx.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct side {
    struct test_ctx t; /* first */
    const struct recon_module *m;
};
union slot {
    struct recon_points points;
    struct recon_mesh mesh;
    struct recon_volume volume;
};
struct tally {
    int cases, differ;
    char first[1200];
};

static struct side A, B;
static bool small;

static void open_side(struct side *s, const char *path)
{
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!so) {
        fprintf(stderr, "agree: %s\n", dlerror());
        exit(70);
    }
    s->m = dlsym(so, "recon_module");
    test_ctx_init(&s->t, NULL, "/tmp", (int)sysconf(_SC_NPROCESSORS_ONLN));
    if (s->m->device && s->m->device->open(&s->t.ctx, 0)) {
        fprintf(stderr, "agree: %s: %s\n", path, s->t.text);
        exit(70);
    }
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

/* ---- one case ---- */

static int run_on(struct side *s, const char *name, const void *const *in, const struct recon_value *p, union slot out[2])
{
    const struct recon_kernel *k = test_kernel(s->m, name);
    void *to[3] = { NULL };

    memset(out, 0, 2 * sizeof(*out));
    for (int i = 0; k->out[i].name; i++)
        to[i] = &out[i];
    test_ctx_reset(&s->t);
    return golden_run(&s->t.ctx, k, s->m->device, in, p, to);
}

static void free_slots(struct side *s, const struct recon_kernel *k, union slot out[2])
{
    for (int i = 0; k->out[i].name; i++)
        test_slot_free(&s->t, (enum recon_slot)k->out[i].type, &out[i]);
}

/* The farthest that two arrays of floats are apart. */
static double apart(const void *a, const void *b, uint64_t bytes)
{
    const float *x = a, *y = b;
    double worst = 0;

    for (uint64_t i = 0; i < bytes / 4; i++) {
        double d = fabs((double)x[i] - (double)y[i]);

        worst = d > worst || isnan(d) ? d : worst;
    }
    return worst;
}

static bool same_slots(const struct recon_kernel *k, union slot x[2], union slot y[2], double most)
{
    for (int i = 0; k->out[i].name; i++) {
        struct recon_array a[RECON_ARRAYS_MAX], b[RECON_ARRAYS_MAX];
        int n = recon_slot_arrays((enum recon_slot)k->out[i].type, &x[i], a);

        if (recon_slot_arrays((enum recon_slot)k->out[i].type, &y[i], b) != n)
            return false;
        for (int j = 0; j < n; j++)
            if (a[j].bytes != b[j].bytes || (a[j].bytes && memcmp(*a[j].at, *b[j].at, a[j].bytes) &&
                                             (most == 0 || !(apart(*a[j].at, *b[j].at, a[j].bytes) <= most))))
                return false;
        if (k->out[i].type == RECON_VOLUME && (memcmp(x[i].volume.dim, y[i].volume.dim, 12) || memcmp(x[i].volume.origin, y[i].volume.origin, 24) ||
                                               x[i].volume.voxel != y[i].volume.voxel))
            return false;
    }
    return true;
}

static void one(struct tally *t, const char *name, const char *what, const void *const *in, const struct recon_value *p, double most)
{
    const struct recon_kernel *k = test_kernel(B.m, name);
    union slot a[2], again[2], b[2];
    int ra = run_on(&A, name, in, p, a), rb, rc, code = A.t.code;
    char text[sizeof(A.t.text)], rule[sizeof(A.t.rule)];

    memcpy(text, A.t.text, sizeof(text));
    memcpy(rule, A.t.rule, sizeof(rule));
    rc = run_on(&A, name, in, p, again);
    rb = run_on(&B, name, in, p, b);
    t->cases++;
    if (ra != rb || rc != ra || (ra && (code != B.t.code || strcmp(rule, B.t.rule))) || (!ra && (!same_slots(k, a, b, most) || !same_slots(k, a, again, 0)))) {
        if (t->differ++ == 0)
            snprintf(t->first, sizeof(t->first), "%s: %s", what, ra != rb ? (ra ? text : B.t.text) : ra ? "another refusal" : !same_slots(k, a, b, most)
                     ? "other bytes" : "not the same bytes again");
    }
    free_slots(&A, k, a);
    free_slots(&A, k, again);
    free_slots(&B, k, b);
}

static int told(const char *name, const struct tally *t)
{
    printf("%-7s %-20s %d cases, %d differ%s%s\n", t->differ ? "FAILED" : "ok", name, t->cases, t->differ, t->differ ? ": " : "", t->first);
    fflush(stdout);
    return t->differ != 0;
}

/* ---- meshes ---- */

static struct recon_mesh mesh_of(uint64_t vertices, uint64_t faces)
{
    return (struct recon_mesh){ .vertices = vertices, .faces = faces, .xyz = xcalloc(3 * vertices + 1, 4), .index = xcalloc(3 * faces + 1, 4) };
}

static void free_mesh(struct recon_mesh *m)
{
    free(m->xyz);
    free(m->rgb);
    free(m->index);
}

static struct recon_mesh sheet(uint32_t n, uint32_t seed)
{
    struct recon_mesh m = mesh_of((uint64_t)n * n, 2ull * (n - 1) * (n - 1));
    uint32_t *f = m.index;

    m.rgb = xcalloc(3 * m.vertices, 1);
    for (uint32_t i = 0; i < n * n; i++) {
        m.xyz[3 * i] = (float)(i / n) + 0.3f * uniform(&seed);
        m.xyz[3 * i + 1] = (float)(i % n) + 0.3f * uniform(&seed);
        m.xyz[3 * i + 2] = sinf((float)(i / n)) * cosf((float)(i % n) / 2) + 0.2f * uniform(&seed);
        m.rgb[3 * i] = (uint8_t)next_random(&seed);
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t j = 0; j + 1 < n; j++, f += 6) {
            uint32_t a = i * n + j;

            memcpy(f, (uint32_t[]){ a, a + n, a + 1, a + 1, a + n, a + n + 1 }, 24);
        }
    return m;
}

/* Vertices renumbered and faces reordered at random. */
static void shuffle(struct recon_mesh *m, uint32_t seed)
{
    uint32_t *at = xcalloc(m->vertices, 4);
    float *xyz = xcalloc(3 * m->vertices, 4);

    for (uint32_t i = 0; i < m->vertices; i++) {
        uint32_t k = (uint32_t)(((uint64_t)next_random(&seed) << 24 | next_random(&seed)) % (i + 1));

        at[i] = at[k];
        at[k] = i;
    }
    for (uint64_t i = 0; i < m->vertices; i++)
        memcpy(xyz + 3 * (uint64_t)at[i], m->xyz + 3 * i, 12);
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        m->index[i] = at[m->index[i]];
    for (uint64_t i = m->faces - 1; i > 0; i--) {
        uint64_t k = ((uint64_t)next_random(&seed) << 24 | next_random(&seed)) % (i + 1);
        uint32_t x[3];

        memcpy(x, m->index + 3 * i, 12);
        memcpy(m->index + 3 * i, m->index + 3 * k, 12);
        memcpy(m->index + 3 * k, x, 12);
    }
    free(m->xyz);
    free(at);
    m->xyz = xyz;
}

/* A sphere of n x n quads around z, closed. */
static struct recon_mesh ball(uint32_t n)
{
    struct recon_mesh m = mesh_of((uint64_t)n * (n - 1) + 2, 2ull * n * (n - 1));
    uint32_t *f = m.index, top = n * (n - 1), bottom = top + 1;

    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            double a = 3.14159265358979 * i / n, b = 2 * 3.14159265358979 * j / n;
            float *p = m.xyz + 3 * ((uint64_t)(i - 1) * n + j);

            p[0] = (float)(sin(a) * cos(b));
            p[1] = (float)(sin(a) * sin(b));
            p[2] = (float)cos(a);
        }
    m.xyz[3 * (uint64_t)top + 2] = 1;
    m.xyz[3 * (uint64_t)bottom + 2] = -1;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t k = (j + 1) % n, last = (n - 2) * n;

        memcpy(f, (uint32_t[]){ top, j, k, bottom, last + k, last + j }, 24);
        f += 6;
        for (uint32_t i = 0; i + 2 < n; i++, f += 6)
            memcpy(f, (uint32_t[]){ i * n + j, (i + 1) * n + j, i * n + k, i * n + k, (i + 1) * n + j, (i + 1) * n + k }, 24);
    }
    return m;
}

/* Few vertices and faces that repeat, turn, name a vertex twice. */
static struct recon_mesh garbage(uint32_t seed)
{
    uint32_t n = 3 + next_random(&seed) % 40, f = 1 + next_random(&seed) % 90;
    struct recon_mesh m = mesh_of(n, f);

    for (uint32_t i = 0; i < 3 * n; i++)
        m.xyz[i] = (float)(next_random(&seed) % 4);
    for (uint32_t i = 0; i < 3 * f; i++)
        m.index[i] = next_random(&seed) % n;
    if (seed % 16 == 0)
        m.index[f] = n + 5; /* refused */
    return m;
}

static void each_mesh(void (*call)(const struct recon_mesh *, const char *))
{
    struct recon_mesh m = sheet(small ? 40 : 500, 1);
    char name[40];

    call(&m, "sheet");
    shuffle(&m, 2);
    call(&m, "shuffled sheet");
    free_mesh(&m);
    m = ball(small ? 30 : 300);
    call(&m, "ball");
    free_mesh(&m);
    m = mesh_of(5, 0);
    call(&m, "no faces");
    free_mesh(&m);
    for (uint32_t i = 0; i < (small ? 6 : 200); i++) {
        m = garbage(77 * i + 3);
        snprintf(name, sizeof(name), "garbage %u", i);
        call(&m, name);
        free_mesh(&m);
    }
}

static struct tally smooth, normals, angles;

static void smooth_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = test_params(test_kernel(B.m, MESH_SMOOTH_NAME));
    char name[80];

    p[MESH_SMOOTH_ITERATIONS].i = 3;
    for (int i = 0; i < 8; i++) {
        p[MESH_SMOOTH_METHOD].i = i & 1;
        p[MESH_SMOOTH_WEIGHTS].i = i >> 1 & 1;
        p[MESH_SMOOTH_BORDER].i = i >> 2;
        snprintf(name, sizeof(name), "%s, way %d", what, i);
        one(&smooth, MESH_SMOOTH_NAME, name, (const void *[]){ m, NULL }, p, 0);
    }
    free(p);
    p = test_params(test_kernel(B.m, MESH_NORMALS_NAME));
    p[MESH_NORMALS_WEIGHT].i = MESH_NORMALS_AREA;
    one(&normals, MESH_NORMALS_NAME, what, (const void *[]){ m, NULL }, p, 0);
    p[MESH_NORMALS_WEIGHT].i = MESH_NORMALS_ANGLE;
    one(&angles, MESH_NORMALS_NAME, what, (const void *[]){ m, NULL }, p, 1.2e-7);
    free(p);
}

/* ---- points ---- */

/* ties: whole numbers, many equal. Colours and normals go along. */
static struct recon_points cloud(uint64_t n, uint32_t seed, bool ties)
{
    struct recon_points p = { .n = n, .xyz = xcalloc(3 * n + 1, 4), .normals = xcalloc(3 * n + 1, 4), .rgb = xcalloc(3 * n + 1, 1) };

    for (uint64_t i = 0; i < 3 * n; i++) {
        p.xyz[i] = ties ? (float)(next_random(&seed) % 20) : uniform(&seed);
        p.normals[i] = uniform(&seed);
        p.rgb[i] = (uint8_t)next_random(&seed);
    }
    return p;
}

static void free_points(struct recon_points *p)
{
    free(p->xyz);
    free(p->normals);
    free(p->rgb);
}

static void farthest(struct tally *t)
{
    static const struct {
        uint64_t n, k;
        int ties, first;
    } rows[] = { { 1, 1, 0, 0 }, { 2, 5, 0, 0 }, { 12, 12, 1, 0 }, { 40, 8, 1, 1 }, { 1500, 4, 0, 1 }, { 700, 700, 1, 0 }, { 5000, 400, 0, 1 },
                 { 5000, 6000, 1, 0 }, { 140000, 300, 1, 0 }, { 250000, 4096, 0, 0 }, { 300000, 500, 0, 0 }, { 1000000, 200, 0, 0 }, { 1200000, 100, 1, 0 } };
    struct recon_value *p = test_params(test_kernel(B.m, FPS_NAME));

    for (size_t i = 0; i < (small ? 5 : COUNT(rows)); i++) {
        struct recon_points c = cloud(rows[i].n, 5 + (uint32_t)i, rows[i].ties);
        char name[60];

        p[FPS_COUNT].i = (int64_t)rows[i].k;
        p[FPS_FIRST].i = rows[i].first;
        p[FPS_INDEX].i = (int64_t)rows[i].n / 2;
        snprintf(name, sizeof(name), "%llu of %llu", (unsigned long long)rows[i].k, (unsigned long long)rows[i].n);
        one(t, FPS_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        free_points(&c);
    }
    p[FPS_INDEX].i = 70;
    p[FPS_FIRST].i = 0;
    for (uint64_t n = 0; n < 2; n++) {
        struct recon_points c = cloud(n, 1, false);

        one(t, FPS_NAME, "refused", (const void *[]){ &c, NULL }, p, 0);
        free_points(&c);
    }
    free(p);
}

static void voxels(struct tally *t)
{
    static const double shape[3] = { 21, 30, 17 }, origin[3] = { -0.5, -0.25, -1 };
    struct recon_value *p = test_params(test_kernel(B.m, VOXELIZE_NAME)); /* ways: meanings, then with an origin, a voxel, a shape */
    uint32_t sizes[] = { 1, 50, small ? 90 : 3000, small ? 90 : 200000 };

    for (size_t i = 0; i < (small ? 48 : 192); i++) {
        int ties = (int)i & 1, form = (int)i >> 1 & 1, way = (int)(i / 4 % 6);
        struct recon_points c = cloud(sizes[(small ? i / 12 : i / 24) % 4], (uint32_t)i, ties);
        char name[80];

        p[VOXELIZE_MEANING].i = way % 3;
        p[VOXELIZE_FORM].i = form;
        p[VOXELIZE_RESOLUTION].i = small ? 7 : i & 32 ? 33 : 16;
        p[VOXELIZE_VOXEL].f = way % 3 == VOXELIZE_GRID ? (ties ? 2.5 : small ? 0.3 : 0.07) : way == 4 ? 0.11 : 0;
        p[VOXELIZE_SHAPE] = (struct recon_value){ .v = shape, .n = way == 5 ? 3 : 0 };
        p[VOXELIZE_ORIGIN] = (struct recon_value){ .v = origin, .n = way == 3 || way == 5 ? 3 : 0 };
        snprintf(name, sizeof(name), "%llu points, way %d, form %d, ties %d", (unsigned long long)c.n, way, form, ties);
        one(t, VOXELIZE_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        free_points(&c);
    }
    free(p);
}

static void planes(struct tally *t)
{
    static const struct {
        uint64_t n;
        int k, orient, ties;
    } rows[] = { { 2, 5, 0, 0 }, { 3, 3, 0, 0 }, { 20, 30, 3, 1 }, { 33, 8, 1, 0 }, { 300, 6, 2, 1 }, { 1200, 30, 0, 1 }, { 700, 33, 3, 0 },
                 { 2000, 256, 3, 0 }, { 100000, 30, 0, 0 }, { 100000, 12, 3, 1 }, { 30000, 100, 1, 0 } };
    struct recon_value *p = test_params(test_kernel(B.m, POINTS_NORMALS_NAME));

    for (size_t i = 0; i < (small ? 5 : COUNT(rows)); i++) {
        struct recon_points c = cloud(rows[i].n, 5 + (uint32_t)i, rows[i].ties);
        char name[60];

        p[POINTS_NORMALS_K].i = rows[i].k;
        p[POINTS_NORMALS_ORIENT].i = rows[i].orient;
        snprintf(name, sizeof(name), "%d of %llu", rows[i].k, (unsigned long long)rows[i].n);
        one(t, POINTS_NORMALS_NAME, name, (const void *[]){ &c, NULL }, p, 0);
        free_points(&c);
    }
    free(p);
}

static struct tally signs, windings;

static void sign_one(const struct recon_mesh *m, const char *what)
{
    struct recon_value *p = test_params(test_kernel(B.m, CHECK_SIGN_NAME));
    struct recon_points c = cloud(small ? 300 : 20000, 9, false);

    for (uint64_t i = 0; i < c.n / 2 && m->vertices; i++) /* through vertices, along edges */
        memcpy(c.xyz + 3 * i + 1, m->xyz + 3 * (i % m->vertices) + 1, 8 - 4 * (i & 1));
    p[CHECK_SIGN_METHOD].i = CHECK_SIGN_PARITY;
    one(&signs, CHECK_SIGN_NAME, what, (const void *[]){ m, &c, NULL }, p, 0);
    p[CHECK_SIGN_METHOD].i = CHECK_SIGN_WINDING;
    if (m->faces < 2000 || small)
        one(&windings, CHECK_SIGN_NAME, what, (const void *[]){ m, &c, NULL }, p, 0);
    free(p);
    free_points(&c);
}

int main(int argc, char **argv)
{
    struct tally fps = { 0 }, cells = { 0 }, flats = { 0 };
    int rc = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: %s A.so B.so [--small]\n", argv[0]);
        return 64;
    }
    small = argc > 3 && str_eq(argv[3], "--small");
    open_side(&A, argv[1]);
    open_side(&B, argv[2]);
    each_mesh(smooth_one);
    rc |= told(MESH_SMOOTH_NAME, &smooth);
    rc |= told(MESH_NORMALS_NAME, &normals);
    rc |= told("  by angle", &angles);
    each_mesh(sign_one);
    rc |= told(CHECK_SIGN_NAME, &signs);
    rc |= told("  winding", &windings);
    voxels(&cells);
    rc |= told(VOXELIZE_NAME, &cells);
    planes(&flats);
    rc |= told(POINTS_NORMALS_NAME, &flats);
    farthest(&fps);
    rc |= told(FPS_NAME, &fps);
    if (A.t.live || B.t.live)
        printf("FAILED  memory: %llu and %llu allocations are left\n", (unsigned long long)A.t.live, (unsigned long long)B.t.live), rc = 1;
    return rc;
}
