/* agree: whether the kernels of meshes, points and volumes of two modules give the same bytes, on inputs made here: regular, shuffled,
 * broken and tied.
 *
 *   agree A.so B.so [--small] [PART...]
 * A and B: cuda.so, cpu.so or ref.so. Each case runs twice on A and once on B. One line a kernel: how many cases, how many differ, the
 * first that does, and of a device the most memory that a case took of what was said before. --small: sizes that ref.so takes in
 * seconds and that the fake of a device (tests/fakes/cuda) bears. PART: meshes, clean, fill, simplify, points or volumes; all. Normals by
 * angle may differ by two roundings of 1 (1.2e-7): the arc tangents of two libraries differ in their last bit. Status 0 when all agree. */
#include "config.h"
#include "agree.h"

#include <dlfcn.h>
#include <math.h>
#include <sched.h>
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
    struct recon_image image;
};
struct said { /* by a run */
    int rc, code;
    char rule[64], text[1000], warned[1000], noted[1000];
    struct str files; /* what it wrote */
};

static struct side A, B;
static char folder[] = "/tmp/agree-XXXXXX"; /* for files */
bool agree_small, agree_plain;
int agree_patience;

/* That the process may run on. */
static int processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static void open_side(struct side *s, const char *path)
{
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!so) {
        fprintf(stderr, "agree: %s\n", dlerror());
        exit(70);
    }
    s->m = dlsym(so, "recon_module");
    test_ctx_init(&s->t, NULL, folder, processors());
    if (s->m->device && s->m->device->open(&s->t.ctx, 0)) {
        fprintf(stderr, "agree: %s: %s\n", path, s->t.text);
        exit(70);
    }
}

struct recon_value *agree_params(const char *kernel)
{
    return test_params(test_kernel(B.m, kernel));
}

/* ---- one case ---- */

/* The files of a run, one after the other; they are removed. */
static struct str take_files(struct side *s)
{
    struct str all = { 0 };

    for (size_t i = 0; i < s->t.outputs.n; i++) {
        struct str one = { 0 };
        struct err err = { 0 };

        if (file_read(s->t.outputs.v[i], 1 << 30, &one, &err)) {
            fprintf(stderr, "agree: %s\n", err.text);
            exit(74);
        }
        str_addf(&all, "%s\n", s->t.outputs.v[i]);
        str_addn(&all, one.s, one.len);
        str_release(&one);
        unlink(s->t.outputs.v[i]);
    }
    strv_release(&s->t.outputs);
    return all;
}

/* Frames from the first on. */
static void begin_again(const struct recon_kernel *k, int i, const void *in)
{
    struct recon_frames *f = (struct recon_frames *)(uintptr_t)in;

    if (k->in[i].type == RECON_FRAMES)
        f->rewind(f);
}

static void run_on(struct side *s, const struct recon_kernel *k, const void *const *in, const struct recon_value *p, union slot out[2], struct said *ret)
{
    void *to[3] = { NULL };

    memset(out, 0, 2 * sizeof(*out));
    for (int i = 0; k->out[i].name; i++)
        to[i] = &out[i];
    for (int i = 0; k->in[i].name; i++)
        begin_again(k, i, in[i]);
    test_ctx_reset(&s->t);
    s->t.patience = agree_patience;
    ret->rc = golden_run(&s->t.ctx, k, s->m->device, in, p, to, NULL);
    ret->code = s->t.code;
    memcpy(ret->rule, s->t.rule, sizeof(ret->rule));
    memcpy(ret->text, s->t.text, sizeof(ret->text));
    memcpy(ret->warned, s->t.warned, sizeof(ret->warned));
    memcpy(ret->noted, s->t.noted, sizeof(ret->noted));
    ret->files = take_files(s);
}

/* What a run took on a device, of what was said before it; inputs apart. 0: nothing was said, or there is no device. */
static double share_of(struct side *s, const struct recon_kernel *k, const void *const *in, const struct recon_value *p)
{
    struct recon_cost cost = { 0 };
    uint64_t inputs = 0, peak = s->m->device ? s->m->device->peak(&s->t.ctx, 0) : 0;

    for (int i = 0; k->in[i].name; i++)
        begin_again(k, i, in[i]);
    if (peak == 0 || !k->bound || k->bound(&s->t.ctx, in, p, &cost) || cost.device_bytes == 0)
        return 0;
    for (int i = 0; k->in[i].name; i++) {
        struct recon_array a[RECON_ARRAYS_MAX];
        union slot copy = { 0 };

        if (k->in[i].type == RECON_FRAMES)
            continue;
        memcpy(&copy, in[i], recon_slot_size((enum recon_slot)k->in[i].type));
        for (int n = recon_slot_arrays((enum recon_slot)k->in[i].type, &copy, a), j = 0; j < n; j++)
            inputs += *a[j].at ? a[j].bytes : 0;
    }
    return peak > inputs ? (double)(peak - inputs) / (double)cost.device_bytes : 0;
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

static bool same_text(const struct str *a, const struct str *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->s, b->s, a->len) == 0);
}

/* NULL: they agree, else how they do not. again: the second run on the first side. */
static const char *differ(const struct recon_kernel *k, union slot a[2], union slot again[2], union slot b[2], const struct said s[3], double most)
{
    if (s[0].rc != s[2].rc)
        return s[0].rc ? s[0].text : s[2].text;
    if (s[0].rc != s[1].rc || (!s[0].rc && !same_slots(k, a, again, 0)))
        return "not the same bytes again";
    if (s[0].rc && (s[0].code != s[2].code || !str_eq(s[0].rule, s[2].rule)))
        return "another refusal";
    if (!s[0].rc && !same_slots(k, a, b, most))
        return "other bytes";
    if (!same_text(&s[0].files, &s[1].files) || !same_text(&s[0].files, &s[2].files))
        return "other files";
    if (agree_plain) /* tells less */
        return NULL;
    if (!str_eq(s[0].warned, s[2].warned))
        return "another warning";
    return str_eq(s[0].noted, s[2].noted) ? NULL : "another note";
}

void agree_one(struct tally *t, const char *kernel, const char *what, const void *const *in, const struct recon_value *params, double most)
{
    const struct recon_kernel *k = test_kernel(B.m, kernel), *of_a = test_kernel(A.m, kernel);
    union slot a[2], again[2], b[2];
    struct said s[3];
    const char *how;
    double share;

    if (A.m->device)
        A.m->device->peak(&A.t.ctx, 1);
    run_on(&A, of_a, in, params, a, &s[0]);
    share = s[0].rc ? 0 : share_of(&A, of_a, in, params);
    run_on(&A, of_a, in, params, again, &s[1]);
    run_on(&B, k, in, params, b, &s[2]);
    how = differ(k, a, again, b, s, most);
    how = !how && share > 1 ? "more memory than was said" : how;
    t->cases++;
    t->share = share > t->share ? share : t->share;
    if (how && t->differ++ == 0)
        snprintf(t->first, sizeof(t->first), "%s: %s", what, how);
    free_slots(&A, k, a);
    free_slots(&A, k, again);
    free_slots(&B, k, b);
    for (int i = 0; i < 3; i++)
        str_release(&s[i].files);
}

int agree_told(const char *name, const struct tally *t)
{
    printf("%-7s %-20s %d cases, %d differ", t->differ ? "FAILED" : "ok", name, t->cases, t->differ);
    if (t->share > 0)
        printf(", %.2f of the memory said", t->share);
    printf("%s%s\n", t->differ ? ": " : "", t->first);
    fflush(stdout);
    return t->differ != 0;
}

struct part {
    const char *name;
    int (*run)(void);
};
static const struct part parts[] = {
    { "meshes", agree_meshes },     { "clean", agree_clean },   { "fill", agree_fill },
    { "simplify", agree_simplify }, { "points", agree_points }, { "volumes", agree_volumes },
};

static const struct part *part_of(const char *name)
{
    for (size_t i = 0; i < COUNT(parts); i++)
        if (str_eq(parts[i].name, name))
            return &parts[i];
    return NULL;
}

int main(int argc, char **argv)
{
    int first, failed = 0;

    agree_small = argc > 3 && str_eq(argv[3], "--small");
    first = agree_small ? 4 : 3;
    for (int i = first; i < argc; i++)
        argc = part_of(argv[i]) ? argc : 0;
    if (argc < 3) {
        fprintf(stderr, "usage: %s A.so B.so [--small] [meshes] [clean] [fill] [simplify] [points] [volumes]\n", argv[0]);
        return 64;
    }
    if (!mkdtemp(folder)) {
        perror(folder);
        return 73;
    }
    open_side(&A, argv[1]);
    open_side(&B, argv[2]);
    agree_plain = str_eq(B.m->name, "ref");
    for (size_t i = 0; argc == first && i < COUNT(parts); i++)
        failed += parts[i].run();
    for (int i = first; i < argc; i++)
        failed += part_of(argv[i])->run();
    rmdir(folder);
    if (A.t.live || B.t.live)
        printf("FAILED  memory: %llu and %llu allocations are left\n", (unsigned long long)A.t.live, (unsigned long long)B.t.live), failed++;
    return failed != 0;
}
