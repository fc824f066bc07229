/* kernels_bench: how fast the kernels of a module are at the sizes of doc/performance.md, against the least time that
 * their bytes or operations take.
 *
 *   kernels_bench MODULE.so [--frames CPU.so DATASET] [--repeat N] [--small] [--only volumes|meshes|arrays]
 *
 * MODULE.so: cuda.so or cpu.so. Volumes and frames are made in place; with --frames, frames.read of CPU.so reads the real
 * ones of DATASET besides. --small: sizes for a trial; --only arrays: of the meshes what is bound by the copy's rate (smoothing, normals,
 * voxels). On a device, times are of events around the call, medians of N (15);
 * the first call is left out. One line a row:
 *   row  size  median ms  [least .. most]  floor ms  ratio  bound by  remark
 * Floors: bytes over the measured rate of a device-to-device copy (read and written counted; memcpy on a CPU), operations
 * over --tflops (67, an H200's fp32 by its data sheet). Status 0, or 1 when a kernel failed. */
#include "config.h"
#include "kernels_bench.h"

#include <dlfcn.h>
#include <unistd.h>
#include <stdlib.h>

enum { FRAMES = 100 };

struct test_ctx T;
const struct recon_module *M;
static void *so;
int repeat = 15;
double rate = 40e9, flops = 67e12;

int bad(const char *what)
{
    fprintf(stderr, "kernels_bench: %s: %s\n", what, T.text);
    return 1;
}

static const struct recon_module *open_module(const char *path, void **ret_so)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!h) {
        fprintf(stderr, "kernels_bench: %s\n", dlerror());
        exit(1);
    }
    *ret_so = h;
    return dlsym(h, "recon_module");
}

/* ---- times ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double tell(const char *row, const char *size, struct times *t, double floor_ms, const char *bound, const char *remark)
{
    double median;

    qsort(t->ms, (size_t)t->n, sizeof(double), by_value);
    median = t->ms[t->n / 2];
    printf("%-22s %-22s %9.4f  [%9.4f .. %9.4f]", row, size, median, t->ms[0], t->ms[t->n - 1]);
    if (floor_ms > 0)
        printf("  %8.4f  %6.2f  %s", floor_ms, median / floor_ms, bound);
    printf("  %s\n", remark);
    fflush(stdout);
    return median;
}

static double started;

int begin(void)
{
    started = clock_ms();
    return M->device ? M->device->sync(&T.ctx) || M->device->mark(&T.ctx, 0) : 0;
}

int end(double *ret_ms)
{
    if (M->device)
        return M->device->mark(&T.ctx, 1) || M->device->elapsed(&T.ctx, 0, 1, ret_ms);
    *ret_ms = clock_ms() - started;
    return 0;
}

/* ---- the ceiling ---- */

typedef int copy_fn(void *to, const void *from, size_t n, int kind, void *stream);

static int ceiling(uint64_t bytes)
{
    copy_fn *copy = (copy_fn *)dlsym(so, "cudaMemcpyAsync");
    char *a = M->device ? M->device->alloc(&T.ctx, bytes) : malloc(bytes), size[32];
    char *b = M->device ? M->device->alloc(&T.ctx, bytes) : malloc(bytes);
    struct times t = { .n = 0 };

    if (!a || !b || (M->device && !copy))
        return bad("memory to copy");
    if (!M->device)
        memset(a, 1, bytes);
    for (int i = 0; i <= repeat; i++) {
        double ms = 0;

        if (begin())
            return bad("copy");
        if (M->device)
            copy(b, a, bytes, 3, T.ctx.stream);
        else
            memcpy(b, a, bytes);
        if (end(&ms))
            return bad("copy");
        if (i)
            t.ms[t.n++] = ms;
    }
    qsort(t.ms, (size_t)t.n, sizeof(double), by_value);
    rate = 2 * (double)bytes / (t.ms[t.n / 2] / 1e3);
    snprintf(size, sizeof(size), "%llu MiB", (unsigned long long)(bytes >> 20));
    tell("copy", size, &t, 0, "", "");
    printf("%-22s %.0f GB/s read and written\n", "", rate / 1e9);
    if (M->device) {
        M->device->free(&T.ctx, a);
        M->device->free(&T.ctx, b);
    } else {
        free(a);
        free(b);
    }
    return 0;
}

/* ---- marching cubes ---- */

static void drop(enum recon_slot type, void *slot)
{
    golden_free(&T.ctx, M->device, type, slot);
}

static int time_mc(const struct recon_volume *v, const char *name, const char *size)
{
    const struct recon_kernel *k = test_kernel(M, MC_NAME);
    struct recon_value *p = test_params(k);
    struct times t = { .n = 0 };
    double bytes = 0, n = (double)v->dim[0] * v->dim[1] * v->dim[2];
    char remark[80] = "";

    for (int i = 0; i <= repeat; i++) {
        struct recon_mesh m = { 0 };
        struct recon_cost cost = { 0 };
        const void *in[] = { v };
        void *out[] = { &m };
        double ms = 0;

        if (begin() || k->run(&T.ctx, in, p, out, &cost) || end(&ms))
            return bad(MC_NAME);
        bytes = n * (v->weight ? 8 : 4) + (double)m.vertices * 12 + (double)m.faces * 12;
        snprintf(remark, sizeof(remark), "%llu vertices, %llu faces", (unsigned long long)m.vertices,
                 (unsigned long long)m.faces);
        drop(RECON_MESH, &m);
        if (i)
            t.ms[t.n++] = ms;
    }
    tell(name, size, &t, bytes / rate * 1e3, "bytes", remark);
    free(p);
    return 0;
}

static int marching_cubes(uint32_t n)
{
    uint64_t all = (uint64_t)n * n * n;
    struct recon_volume v = { .dim = { n, n, n }, .voxel = 2.0 / (n - 1), .truncation = 1 };
    char size[32];
    int rc;

    if (!(v.tsdf = T.ctx.host->alloc(&T.ctx, all * 4)))
        return bad("volume");
    golden_sphere(v.tsdf, n);
    snprintf(size, sizeof(size), "sphere %u^3", n);
    if (M->device && golden_move(&T.ctx, M->device, RECON_VOLUME, &v, RECON_DEVICE))
        return bad("volume");
    rc = time_mc(&v, MC_NAME, size);
    drop(RECON_VOLUME, &v);
    return rc;
}

/* ---- frames kept in memory ---- */

struct kept {
    struct recon_frame frame[FRAMES];
    uint64_t n, at;
};

static int give(struct recon_frames *self, struct recon_frame *ret)
{
    struct kept *k = self->impl;

    if (k->at == k->n)
        return 0;
    *ret = k->frame[k->at++];
    return 1;
}

static int keep(struct recon_frames *from, struct kept *k)
{
    size_t pixels = (size_t)from->camera.width * from->camera.height;
    struct recon_frame f;
    int rc = 0;

    for (k->n = 0; k->n < FRAMES && (rc = from->next(from, &f)) == 1; k->n++) {
        float *depth = xcalloc(pixels, 4);
        uint8_t *color = f.color ? xcalloc(pixels, 3) : NULL;

        memcpy(depth, f.depth, pixels * 4);
        if (color)
            memcpy(color, f.color, pixels * 3);
        f.depth = depth;
        f.color = color;
        f.name = "frame";
        k->frame[k->n] = f;
    }
    return rc < 0 ? -1 : 0;
}

static void forget(struct kept *k)
{
    for (uint64_t i = 0; i < k->n; i++) {
        free((void *)(uintptr_t)k->frame[i].depth);
        free((void *)(uintptr_t)k->frame[i].color);
    }
}

/* ---- fusion, and a picture of what came out ---- */

static int preview(const struct recon_volume *v, const char *name)
{
    const struct recon_kernel *k = test_kernel(M, PREVIEW_NAME);
    struct recon_value *p = test_params(k);
    struct times t = { .n = 0 }, wall = { .n = 0 };

    for (int i = 0; i <= repeat; i++) {
        struct recon_image image = { 0 };
        struct recon_cost cost = { 0 };
        const void *in[] = { v };
        void *out[] = { &image };
        double ms = 0, t0 = clock_ms();

        if (begin() || k->run(&T.ctx, in, p, out, &cost) || end(&ms))
            return bad(PREVIEW_NAME);
        drop(RECON_IMAGE, &image);
        if (i) {
            t.ms[t.n++] = cost.device_ms > 0 ? cost.device_ms : ms;
            wall.ms[wall.n++] = clock_ms() - t0;
        }
    }
    tell(PREVIEW_NAME, name, &t, 0, "", "device");
    tell(PREVIEW_NAME, name, &wall, 0, "", "wall, PNG and all");
    free(p);
    return 0;
}

static int give_again(struct recon_frames *self)
{
    ((struct kept *)self->impl)->at = 0;
    return 0;
}

static int time_fuse(const struct recon_frames *source, struct kept *kept, const char *name, int color, int layout)
{
    static const uint32_t dim[3] = { 405, 264, 289 };
    const struct recon_kernel *k = test_kernel(M, FUSE_NAME);
    struct recon_value *p = test_params(k);
    struct times t = { .n = 0 }, wall = { .n = 0 };
    double bounds[6], voxels = 0;
    char size[40], remark[120] = "";
    int rc = 0;

    for (int a = 0; a < 3; a++) {
        double middle = (source->bounds[2 * a] + source->bounds[2 * a + 1]) / 2, half = 0.01 * dim[a];

        bounds[2 * a] = middle - half;
        bounds[2 * a + 1] = middle + half;
    }
    p[FUSE_BOUNDS].v = bounds;
    p[FUSE_BOUNDS].n = 6;
    p[FUSE_COLOR].i = color;
    p[FUSE_LAYOUT].i = layout;
    for (int i = 0; i <= repeat && rc == 0; i++) {
        struct recon_frames frames = { .camera = source->camera, .count = kept->n, .next = give, .rewind = give_again, .impl = kept };
        struct recon_volume v = { 0 };
        struct recon_cost cost = { 0 };
        const void *in[] = { &frames };
        void *out[] = { &v };
        double t0 = clock_ms();

        kept->at = 0;
        if (k->run(&T.ctx, in, p, out, &cost) || (M->device && M->device->sync(&T.ctx)))
            return bad(FUSE_NAME);
        if (i) {
            wall.ms[wall.n++] = clock_ms() - t0;
            t.ms[t.n++] = M->device ? cost.device_ms : wall.ms[wall.n - 1];
        }
        snprintf(remark, sizeof(remark), "%u x %u x %u, %.1f M updates, copies %.2f ms", v.dim[0], v.dim[1], v.dim[2],
                 (double)cost.items / 1e6, cost.copy_ms);
        if (i == repeat && color && layout == FUSE_DENSE)
            rc = preview(&v, name);
        voxels = (double)recon_volume_samples(&v);
        drop(RECON_VOLUME, &v);
    }
    snprintf(size, sizeof(size), "%s%s%s", name, color ? ", colour" : "", layout == FUSE_BLOCKS ? ", blocks" : "");
    tell(FUSE_NAME, size, &t, voxels * (double)kept->n * 45 / flops * 1e3, "flops", remark);
    tell(FUSE_NAME, size, &wall, 0, "", "wall");
    free(p);
    return rc;
}

static int fuse(struct recon_frames *frames, const char *name)
{
    static struct kept kept;
    int rc;

    if (keep(frames, &kept))
        return bad(name);
    rc = time_fuse(frames, &kept, name, 0, FUSE_DENSE) || time_fuse(frames, &kept, name, 1, FUSE_DENSE) ||
         time_fuse(frames, &kept, name, 1, FUSE_BLOCKS);
    forget(&kept);
    return rc;
}

static int scene(void)
{
    const struct recon_kernel *k = test_kernel(M, SCENE_NAME);
    struct recon_value *p = test_params(k);
    struct recon_frames frames = { 0 };
    struct recon_cost cost = { 0 };
    struct recon_frame f;
    struct times t = { .n = 0 };
    void *out[] = { &frames };
    int rc;

    p[SCENE_FRAMES].i = FRAMES;
    p[SCENE_FRAMES].f = FRAMES;
    if (k->run(&T.ctx, NULL, p, out, &cost))
        return bad(SCENE_NAME);
    for (int i = 0; i < FRAMES; i++) {
        double t0 = clock_ms();

        if (frames.next(&frames, &f) != 1)
            return bad(SCENE_NAME);
        t.ms[t.n++] = clock_ms() - t0;
    }
    tell(SCENE_NAME, "640 x 480, a frame", &t, 0, "", "wall");
    rc = frames.rewind(&frames) || fuse(&frames, "room, 100 frames");
    frames.close(&frames);
    free(p);
    return rc;
}

static int real_frames(const char *path, const char *dataset)
{
    void *cpu;
    const struct recon_module *m = open_module(path, &cpu);
    const struct recon_kernel *k = test_kernel(m, FRAMES_READ_NAME);
    struct recon_value *p = test_params(k);
    struct recon_frames frames = { 0 };
    struct recon_cost cost = { 0 };
    void *out[] = { &frames };
    int rc;

    T.ctx.dataset = dataset;
    if (k->run(&T.ctx, NULL, p, out, &cost))
        return bad(dataset);
    rc = fuse(&frames, "kitchen, 100 frames");
    frames.close(&frames);
    free(p);
    return rc;
}

int main(int argc, char **argv)
{
    const char *cpu = NULL, *dataset = NULL;
    uint32_t sides[] = { 128, 256, 512 };
    int rc, small = 0;
    const char *only = "";
    bool with_volumes;

    for (int i = 2; i + 1 < argc; i++)
        if (str_eq(argv[i], "--only") && !str_eq(argv[i + 1], "volumes") && !str_eq(argv[i + 1], "meshes") && !str_eq(argv[i + 1], "arrays"))
            argc = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODULE.so [--frames CPU.so DATASET] [--repeat N] [--tflops X] [--small] [--only volumes|meshes|arrays]\n", argv[0]);
        return 64;
    }
    for (int i = 2; i < argc; i++) {
        if (str_eq(argv[i], "--small"))
            small = 1;
        else if (str_eq(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (str_eq(argv[i], "--repeat") && i + 1 < argc)
            repeat = atoi(argv[++i]);
        else if (str_eq(argv[i], "--tflops") && i + 1 < argc)
            flops = atof(argv[++i]) * 1e12;
        else if (str_eq(argv[i], "--frames") && i + 2 < argc)
            cpu = argv[i + 1], dataset = argv[i + 2], i += 2;
    }
    with_volumes = only[0] == 0 || str_eq(only, "volumes");
    repeat = repeat < 1 ? 1 : repeat >= MOST ? MOST - 1 : repeat;
    M = open_module(argv[1], &so);
    test_ctx_init(&T, NULL, "/tmp", sysconf(_SC_NPROCESSORS_ONLN) < 16 ? (int)sysconf(_SC_NPROCESSORS_ONLN) : 16);
    if (M->device && M->device->open(&T.ctx, 0))
        return bad("device");
    rc = ceiling(small ? 16 << 20 : M->device ? 4ull << 30 : 256 << 20);
    for (int i = 0; i < (small ? 1 : 3) && rc == 0 && with_volumes; i++)
        rc = marching_cubes(sides[i]);
    rc = rc || (with_volumes && (scene() || (cpu && real_frames(cpu, dataset))));
    rc = rc || (!str_eq(only, "volumes") && bench_meshes(small ? 100000 : 1 << 24, str_eq(only, "arrays")));
    if (M->device)
        M->device->close(&T.ctx);
    return rc;
}
