/* peers: one kernel of cpu.so on one input, the least of N runs, as peers.sh holds against others' programs.
 *
 *   peers CPU.so CASE [INPUT] [--repeat N] [--threads T] [--points F32] [--out FOLDER] [--faces N] [--levels N] [--color] [--dense] [--winding] [--rounds]
 *
 * CASE: mc (sphere 256^3), fuse (INPUT: RGB-D folder, at most 100 frames, decoded before), loop, simplify, sign, load
 * (INPUT: a mesh), copy (memcpy of 256 MiB). Prints "ms X cpu Y" and then words about what came out: name value ...
 * --out: the mesh made is written there as mesh.obj. Status 0, or 1 when a kernel failed. */
#include "config.h"
#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/ctx.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { FRAMES = 100, SIDE = 256 };

struct peer {
    const struct recon_module *m;
    const char *input, *points, *out;
    int winding, dense, rounds;
    int repeat, threads, faces, levels, color;
    uint64_t items;
    double best, cpu; /* least wall and processor time of a run, ms */
    char words[200];
};
static struct test_ctx T;

static int bad(const char *what)
{
    fprintf(stderr, "peers: %s: %s\n", what, T.text);
    return 1;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void keep_least(struct peer *p, double ms, double cpu)
{
    p->best = p->best <= 0 || ms < p->best ? ms : p->best;
    p->cpu = p->cpu <= 0 || cpu < p->cpu ? cpu : p->cpu;
}

/* One call; the time of the least is kept. */
static int call(struct peer *p, const char *name, const void *const *in, struct recon_value *v, void *const *out)
{
    const struct recon_kernel *k = test_kernel(p->m, name);
    struct recon_cost cost = { 0 };
    double t0 = clock_ms(), c0 = cpu_ms();

    if (k->run(&T.ctx, in, v, out, &cost))
        return bad(name);
    keep_least(p, clock_ms() - t0, cpu_ms() - c0);
    p->items = cost.items;
    return 0;
}

static int read_mesh(struct peer *p, struct recon_mesh *ret)
{
    const struct recon_kernel *k = test_kernel(p->m, MESH_READ_NAME);
    struct recon_value *v = test_params(k);
    void *out[] = { ret };
    struct recon_cost cost = { 0 };
    int rc;

    T.ctx.dataset = p->input;
    rc = k->run(&T.ctx, NULL, v, out, &cost) ? bad(p->input) : 0;
    free(v);
    return rc;
}

static int write_mesh(struct peer *p, const struct recon_mesh *m)
{
    const struct recon_kernel *k = test_kernel(p->m, MESH_WRITE_NAME);
    struct recon_value *v = test_params(k);
    struct recon_cost cost = { 0 };
    const void *in[] = { m };
    int rc;

    v[MESH_WRITE_FILE].s = "mesh.obj";
    T.ctx.out = p->out;
    rc = k->run(&T.ctx, in, v, NULL, &cost) ? bad(p->out) : 0;
    free(v);
    return rc;
}

/* Mesh to mesh, repeated; the last is written where --out says. */
static int mesh_case(struct peer *p, const char *name, const void *const *in, struct recon_value *v)
{
    int rc = 0;

    for (int i = 0; i <= p->repeat && rc == 0; i++) {
        struct recon_mesh m = { 0 };
        void *out[] = { &m };

        rc = call(p, name, in, v, out);
        snprintf(p->words, sizeof(p->words), "vertices %llu faces %llu", (unsigned long long)m.vertices,
                 (unsigned long long)m.faces);
        if (rc == 0 && i == p->repeat && p->out)
            rc = write_mesh(p, &m);
        test_slot_free(&T, RECON_MESH, &m);
    }
    free(v);
    return rc;
}

static int mc(struct peer *p)
{
    struct recon_volume v = { .dim = { SIDE, SIDE, SIDE }, .voxel = 2.0 / (SIDE - 1), .truncation = 1 };
    const void *in[] = { &v };
    int rc;

    v.tsdf = T.ctx.host->alloc(&T.ctx, (uint64_t)SIDE * SIDE * SIDE * 4);
    golden_sphere(v.tsdf, SIDE);
    rc = mesh_case(p, MC_NAME, in, test_params(test_kernel(p->m, MC_NAME)));
    test_slot_free(&T, RECON_VOLUME, &v);
    return rc;
}

static int of_mesh(struct peer *p, const char *name)
{
    struct recon_value *v = test_params(test_kernel(p->m, name));
    struct recon_mesh m = { 0 };
    const void *in[] = { &m };
    int rc;

    if (str_eq(name, MESH_SUBDIVIDE_NAME)) {
        v[MESH_SUBDIVIDE_LEVELS].i = p->levels;
        v[MESH_SUBDIVIDE_LEVELS].f = p->levels;
    } else {
        v[MESH_SIMPLIFY_FACES].i = p->faces;
        v[MESH_SIMPLIFY_FACES].f = p->faces;
        v[MESH_SIMPLIFY_METHOD].i = p->rounds ? MESH_SIMPLIFY_ROUNDS : MESH_SIMPLIFY_LEVELS;
    }
    rc = read_mesh(p, &m) || mesh_case(p, name, in, v);
    test_slot_free(&T, RECON_MESH, &m);
    return rc;
}

static int loop(struct peer *p)
{
    return of_mesh(p, MESH_SUBDIVIDE_NAME);
}

static int simplify(struct peer *p)
{
    return of_mesh(p, MESH_SIMPLIFY_NAME);
}

static int load(struct peer *p)
{
    struct stat st;
    int rc;

    T.ctx.dataset = p->input;
    rc = mesh_case(p, MESH_READ_NAME, NULL, test_params(test_kernel(p->m, MESH_READ_NAME)));
    if (rc == 0 && stat(p->input, &st) == 0)
        snprintf(p->words + strlen(p->words), sizeof(p->words) - strlen(p->words), " bytes %lld", (long long)st.st_size);
    return rc;
}

static int copy(struct peer *p)
{
    size_t n = 256u << 20;
    char *a = xcalloc(n, 1), *b = xcalloc(n, 1);

    memset(a, 1, n);
    for (int i = 0; i <= p->repeat; i++) {
        double t0 = clock_ms(), c0 = cpu_ms();

        memcpy(b, a, n);
        keep_least(p, clock_ms() - t0, cpu_ms() - c0);
    }
    snprintf(p->words, sizeof(p->words), "bytes %zu last %d", n, b[n - 1]);
    free(a);
    free(b);
    return 0;
}

static int sign(struct peer *p)
{
    struct recon_value *v = test_params(test_kernel(p->m, CHECK_SIGN_NAME));
    struct recon_mesh m = { 0 };
    struct recon_points pts = { 0 };
    const void *in[] = { &m, &pts };
    FILE *f = p->points ? fopen(p->points, "rb") : NULL;
    struct stat st;
    int rc = 0;

    if (!f || fstat(fileno(f), &st)) {
        fprintf(stderr, "peers: no points to read\n");
        return 1;
    }
    pts.n = (uint64_t)st.st_size / 12;
    pts.xyz = T.ctx.host->alloc(&T.ctx, pts.n * 12);
    if (fread(pts.xyz, 12, pts.n, f) != pts.n)
        rc = bad(p->points);
    fclose(f);
    v[CHECK_SIGN_METHOD].i = p->winding ? CHECK_SIGN_WINDING : CHECK_SIGN_PARITY;
    rc = rc || read_mesh(p, &m);
    for (int i = 0; i <= p->repeat && rc == 0; i++) {
        struct recon_points inside = { 0 };
        void *out[] = { &inside };

        rc = call(p, CHECK_SIGN_NAME, in, v, out);
        snprintf(p->words, sizeof(p->words), "points %llu inside %llu", (unsigned long long)pts.n,
                 (unsigned long long)inside.n);
        test_slot_free(&T, RECON_POINTS, &inside);
    }
    test_slot_free(&T, RECON_MESH, &m);
    test_slot_free(&T, RECON_POINTS, &pts);
    free(v);
    return rc;
}

/* ---- frames, decoded once ---- */

struct kept {
    struct recon_frame frame[FRAMES];
    uint64_t n, at;
};

static int again(struct recon_frames *self)
{
    ((struct kept *)self->impl)->at = 0;
    return 0;
}

static int give(struct recon_frames *self, struct recon_frame *ret)
{
    struct kept *k = self->impl;

    if (k->at == k->n)
        return 0;
    *ret = k->frame[k->at++];
    return 1;
}

static int keep(struct peer *p, struct kept *k, struct recon_frames *ret)
{
    const struct recon_kernel *read = test_kernel(p->m, FRAMES_READ_NAME);
    struct recon_value *v = test_params(read);
    struct recon_frames from = { 0 };
    struct recon_cost cost = { 0 };
    void *out[] = { &from };
    struct recon_frame f;

    T.ctx.dataset = p->input;
    v[FRAMES_READ_MAX].f = 5;
    if (read->run(&T.ctx, NULL, v, out, &cost))
        return bad(p->input);
    while (k->n < FRAMES && from.next(&from, &f) == 1) {
        size_t pixels = (size_t)from.camera.width * from.camera.height;
        float *depth = xcalloc(pixels, 4);
        uint8_t *color = xcalloc(pixels, 3);

        memcpy(depth, f.depth, pixels * 4);
        if (f.color)
            memcpy(color, f.color, pixels * 3);
        f.depth = depth;
        f.color = color;
        f.name = "frame";
        k->frame[k->n++] = f;
    }
    *ret = (struct recon_frames){ .camera = from.camera, .count = k->n, .next = give, .rewind = again, .lasting = 1, .impl = k };
    memcpy(ret->bounds, from.bounds, sizeof(ret->bounds));
    from.close(&from);
    free(v);
    return 0;
}

static int fuse(struct peer *p)
{
    static struct kept kept;
    struct recon_value *v = test_params(test_kernel(p->m, FUSE_NAME));
    struct recon_frames frames = { 0 };
    const void *in[] = { &frames };
    int rc = keep(p, &kept, &frames);

    static const double room[6] = { -2.9, 3.9, -2, 1.2, 0.8, 4 }; /* more than the frames show, as a grid without bounds takes it */

    v[FUSE_TRUNCATION].f = 4;
    v[FUSE_COLOR].i = p->color;
    v[FUSE_LAYOUT].i = p->dense ? FUSE_DENSE : FUSE_BLOCKS;
    if (!p->dense)
        v[FUSE_BOUNDS] = (struct recon_value){ .v = room, .n = 6 };
    for (int i = 0; i <= p->repeat && rc == 0; i++) {
        struct recon_volume o = { 0 };
        void *out[] = { &o };
        uint64_t seen = 0;

        kept.at = 0;
        rc = call(p, FUSE_NAME, in, v, out);
        for (uint64_t n = rc ? 0 : recon_volume_samples(&o); n-- > 0;)
            seen += o.weight[n] > 0;
        snprintf(p->words, sizeof(p->words), "frames %llu dim %ux%ux%u blocks %llu observed %llu updates %llu", (unsigned long long)kept.n,
                 o.dim[0], o.dim[1], o.dim[2], (unsigned long long)o.blocks, (unsigned long long)seen, (unsigned long long)p->items);
        test_slot_free(&T, RECON_VOLUME, &o);
    }
    for (uint64_t i = 0; i < kept.n; i++) {
        free((void *)(uintptr_t)kept.frame[i].depth);
        free((void *)(uintptr_t)kept.frame[i].color);
    }
    free(v);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(struct peer *);
} cases[] = {
    { "mc", mc }, { "fuse", fuse }, { "loop", loop }, { "simplify", simplify }, { "sign", sign }, { "load", load }, { "copy", copy },
};

static void options(struct peer *p, int argc, char **argv)
{
    for (int i = 3; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";

        if (str_eq(argv[i], "--color"))
            p->color = 1;
        else if (str_eq(argv[i], "--winding"))
            p->winding = 1;
        else if (str_eq(argv[i], "--rounds"))
            p->rounds = 1;
        else if (str_eq(argv[i], "--dense"))
            p->dense = 1;
        else if (strncmp(argv[i], "--", 2))
            p->input = argv[i];
        else if (++i && str_eq(argv[i - 1], "--repeat"))
            p->repeat = atoi(next);
        else if (str_eq(argv[i - 1], "--threads"))
            p->threads = atoi(next);
        else if (str_eq(argv[i - 1], "--faces"))
            p->faces = atoi(next);
        else if (str_eq(argv[i - 1], "--levels"))
            p->levels = atoi(next);
        else if (str_eq(argv[i - 1], "--points"))
            p->points = next;
        else if (str_eq(argv[i - 1], "--out"))
            p->out = next;
    }
}

int main(int argc, char **argv)
{
    struct peer p = { .repeat = 5, .threads = 2, .faces = 10000, .levels = 1 };
    void *so = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!so || !(p.m = dlsym(so, "recon_module"))) {
        fprintf(stderr, "usage: %s CPU.so CASE [INPUT] [OPTION...]%s%s\n", argv[0], argc > 2 ? ": " : "", argc > 2 ? dlerror() : "");
        return 64;
    }
    options(&p, argc, argv);
    test_ctx_init(&T, NULL, "/tmp", p.threads);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (str_eq(cases[i].name, argv[2])) {
            if (cases[i].run(&p))
                return 1;
            printf("ms %.4f cpu %.4f %s\n", p.best, p.cpu, p.words);
            return 0;
        }
    fprintf(stderr, "peers: no case '%s'\n", argv[2]);
    return 64;
}
