/* What lib/elf says about a program or a file, for the scenarios that compare it with others.
 *   elf-dump PROGRAM          "SONAME<TAB>PATH<TAB>why" a line in load order; the environment is this process's
 *   elf-dump -v PROGRAM       the same with what was tried, and versions that nothing offers
 *   elf-dump -s PROGRAM       the same with references that nothing answers: NAME<TAB>VERSION<TAB>PATH<TAB>lazy|now
 *   elf-dump -m MODULE PROGRAM   what dlopen(MODULE) by PROGRAM loads
 *   elf-dump -i FILE          GPU images
 *   elf-dump -t N PROGRAM     closes N times, prints the mean time in ms
 * -e NAME=VALUE, as often as needed, sets a variable of the judged program alone; -E empties its environment first.
 * -r FOLDER: that is "/", with this host's own loader in it; -C DIR: the working directory there.
 * RECON_TEST_ROOT: the folder that is "/"; RECON_TEST_HWCAPS: a colon list instead of this CPU's. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>
#include "elf/elf.h"

static int fail(const struct err *err)
{
    fprintf(stderr, "elf-dump: %s\n", err->text);
    return err->code;
}

static void print_library(const struct library *lib, bool verbose)
{
    printf("%s\t%s\t%s%s%s%s\n", lib->soname, lib->path ? lib->path : "-", name_of(why_names, (int)lib->why),
           lib->preload ? "\tpreload" : "", lib->corrupt ? "\tcorrupt: " : "", lib->corrupt ? lib->corrupt : "");
    if (verbose && lib->beside)
        printf("  beside: %s\n", lib->beside);
    for (size_t i = 0; verbose && i < lib->tried.n; i++)
        printf("  tried: %s (%s): %s\n", lib->tried.v[i].path, name_of(why_names, (int)lib->tried.v[i].why),
               lib->tried.v[i].why_not);
}

static void print_closure(const struct closure *c, bool verbose)
{
    struct version_misses m = { 0 };

    for (size_t i = 0; i < c->libs.n; i++)
        print_library(&c->libs.v[i], verbose);
    if (verbose)
        closure_versions(c, &m);
    for (size_t i = 0; i < m.n; i++)
        printf("version %s missing%s: %s wants it of %s\n", m.v[i].version, m.v[i].weak ? " (weak)" : "",
               c->libs.v[m.v[i].object].soname,
               m.v[i].provider == SIZE_MAX ? "?" : c->libs.v[m.v[i].provider].soname);
    free(m.v);
}

static void print_symbols(const struct closure *c, const struct closure *global)
{
    struct symbols *s = symbols_new();
    struct symbol_misses m = { 0 };
    double t0 = clock_ms();

    closure_symbols(s, c, global ? (const struct closure *const[]){ global, NULL } : NULL, &m);
    fprintf(stderr, "%zu references, %zu not found, %zu objects unread, %.1f ms\n", m.references, m.n, m.unread,
            clock_ms() - t0);
    for (size_t i = 0; i < m.n; i++) {
        char *shown = symbol_demangled(m.v[i].name);

        printf("%s: %s\t%s\t%s\t%s\t%s\n", m.v[i].unversioned ? "unversioned" : "undefined", m.v[i].name,
               m.v[i].version ? m.v[i].version : "-", c->libs.v[m.v[i].object].path, m.v[i].lazy ? "lazy" : "now", shown ? shown : "-");
        free(shown);
    }
    symbol_misses_release(&m);
    symbols_free(s);
}

static int print_images(const char *path)
{
    struct gpu_images l = { 0 };
    struct err err = { 0 };

    if (images_read(path, &l, &err))
        return fail(&err);
    printf("containers %u toolkit %s\n", l.containers, l.toolkit ? l.toolkit : "-");
    for (size_t i = 0; i < l.n; i++) {
        const struct gpu_image *g = &l.v[i];

        printf("%u %s%u%s %u.%u%s%s\n", g->container,
               g->kind == IMAGE_PTX ? "compute_" : g->kind == IMAGE_SASS ? "sm_" : "lto_", g->arch,
               g->suffix == 'a' ? "a" : g->suffix == 'f' ? "f" : "", g->major, g->minor,
               g->relocatable ? " relocatable" : "", g->link_stub ? " stub" : "");
    }
    for (size_t i = 0; i < l.hip.n; i++)
        printf("hip %s\n", l.hip.v[i]);
    for (size_t i = 0; i < l.offload.n; i++)
        printf("offload %d %d %s %u\n", (int)l.offload.v[i].producer, (int)l.offload.v[i].form, l.offload.v[i].target, l.offload.v[i].count);
    images_release(&l);
    return 0;
}

static void set(struct strv *env, const char *assignment)
{
    const char *eq = strchr(assignment, '=');
    char *name = eq ? xstrndup(assignment, (size_t)(eq - assignment)) : NULL;

    if (name)
        env_set(env, name, eq + 1);
    free(name);
}

/* This host's loader, in the tree `root` of which it is a part; NULL: in this one. */
static int host_loader(const char *root, struct loader *ret, struct err *err)
{
    struct loader there;

    if (loader_probe(ret, err))
        return -1;
    if (!root)
        return 0;
    loader_default(root, "x86_64", &there);
    free(ret->root);
    free(ret->preload);
    ret->root = there.root;
    ret->preload = there.preload;
    there.root = there.preload = NULL;
    loader_release(&there);
    return 0;
}

int main(int argc, char **argv)
{
    const char *inside = NULL, *cwd = NULL;
    const char *root = getenv("RECON_TEST_ROOT"), *hwcaps = getenv("RECON_TEST_HWCAPS"), *module = NULL;
    struct loader l = { 0 };
    struct closure c = { 0 }, more = { 0 };
    struct err err = { 0 };
    struct strv env = { 0 };
    bool verbose = false, symbols = false;
    int opt, times = 0, rc;
    double t0;

    for (char **e = environ; *e; e++)
        strv_add(&env, *e);
    while ((opt = getopt(argc, argv, "vsi:m:t:e:Er:C:")) != -1) {
        if (opt == 'i') {
            strv_release(&env);
            return print_images(optarg);
        }
        if (opt == 'E')
            strv_release(&env);
        if (opt == 'e')
            set(&env, optarg);
        verbose |= opt == 'v';
        symbols |= opt == 's';
        module = opt == 'm' ? optarg : module;
        inside = opt == 'r' ? optarg : inside;
        cwd = opt == 'C' ? optarg : cwd;
        times = opt == 't' ? atoi(optarg) : times;
    }
    if (optind >= argc)
        return 64;
    if (root)
        loader_default(root, "x86_64", &l);
    else if (host_loader(inside, &l, &err))
        return fail(&err);
    if (hwcaps) {
        strv_release(&l.hwcaps);
        strv_split(&l.hwcaps, hwcaps, ":");
    }
    rc = closure_resolve(argv[optind], env.v, cwd, &l, false, NULL, &c, &err);
    if (rc == 0 && module)
        rc = closure_extend(&c, module, env.v, cwd, &l, false, NULL, &more, &err);
    t0 = clock_ms();
    for (int i = 0; i < times && rc == 0; i++) {
        closure_release(&c);
        rc = closure_resolve(argv[optind], env.v, cwd, &l, false, NULL, &c, &err);
    }
    if (rc == 0 && times)
        printf("%zu objects, %.3f ms\n", c.libs.n, (clock_ms() - t0) / times);
    else if (rc == 0)
        print_closure(module ? &more : &c, verbose);
    if (rc == 0 && symbols)
        print_symbols(module ? &more : &c, module ? &c : NULL);
    closure_release(&c);
    closure_release(&more);
    loader_release(&l);
    strv_release(&env);
    return rc ? fail(&err) : 0;
}
