#include "config.h"
#include "check/check_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* The CUDA runtime that one object brings: libcudart by its SONAME, or code that carries a static one. */
struct runtime {
    char version[16]; /* "12.4"; "12.0" when only the major is known */
    const char *path;
    bool linked_in;   /* static cudart: no library names it */
};

/* The toolkit that built the code of a program or module, into ret; "" if none is told. */
static void built_with(const struct check_case *c, const struct library *l, char ret[16])
{
    struct gpu_images scratch = { 0 };
    const char *toolkit = l->why == WHY_PATH ? library_images(c, l, &scratch)->toolkit : NULL;

    snprintf(ret, 16, "%.15s", toolkit ? toolkit : "");
    images_release(&scratch);
}

/* The highest toolkit of a major among them: libcudart.so.12 tells no minor. */
static void minor_of(const struct check_case *c, int major, char ret[16])
{
    struct walk w = { 0 };
    char one[16];

    while (walk_next(c, &w)) {
        built_with(c, w.lib, one);
        if (*one && atoi(one) == major && (!*ret || version_cmp(one, ret) > 0))
            memcpy(ret, one, sizeof(one));
    }
}

static bool from_soname(const struct check_case *c, const struct library *l, struct runtime *ret)
{
    static const char prefix[] = "libcudart.so.";
    const char *version = l->soname && str_starts(l->soname, prefix) ? l->soname + strlen(prefix) : NULL;
    int major;

    if (!version || !isdigit((unsigned char)*version) || !l->path || l->corrupt)
        return false;
    major = atoi(version);
    ret->path = l->path;
    ret->linked_in = false;
    ret->version[0] = 0;
    if (major >= 11)
        minor_of(c, major, ret->version);
    if (!ret->version[0])
        snprintf(ret->version, sizeof(ret->version), "%.10s%s", version, strchr(version, '.') ? "" : ".0");
    return true;
}

/* At most one dynamic runtime is judged, else the program's own code. */
static bool find_runtime(const struct check_case *c, struct runtime *ret)
{
    struct walk w = { 0 };

    while (walk_next(c, &w))
        if (from_soname(c, w.lib, ret))
            return true;
    w = (struct walk){ 0 };
    while (walk_next(c, &w)) {
        built_with(c, w.lib, ret->version);
        ret->path = library_name(w.lib);
        ret->linked_in = true;
        if (*ret->version)
            return true;
    }
    return false;
}

/* The newest toolkit of the node that its driver serves, or NULL. */
static const char *toolkit_that_fits(const struct facts *f, const char *cuda)
{
    const char *best = NULL, *best_version = NULL;

    for (size_t i = 0; i < f->toolkits.n; i++) {
        const char *name = path_base(f->toolkits.v[i]), *version = name + strcspn(name, "0123456789");

        if (!*version || !strchr(version, '.') || version_cmp(version, cuda) > 0)
            continue;
        if (!best || version_cmp(version, best_version) > 0) {
            best = f->toolkits.v[i];
            best_version = version;
        }
    }
    return best;
}

static bool too_old(const struct facts *f, const struct runtime *r, const char *minimum, const char *cuda)
{
    if (f->driver.kernel_module && minimum)
        return version_cmp(f->driver.kernel_module, minimum) < 0;
    if (!cuda)
        return false;
    if (atoi(r->version) >= 11) /* within a major an older driver serves */
        return atoi(cuda) < atoi(r->version);
    return version_cmp(cuda, r->version) < 0;
}

static char *driver_words(const struct facts *f, const char *cuda)
{
    if (f->driver.kernel_module)
        return xasprintf("driver %s (CUDA %s)", f->driver.kernel_module, cuda ? cuda : "unknown");
    return xasprintf("driver (CUDA %s)", cuda);
}

static void report(const struct check_case *c, const struct runtime *r, const char *minimum, const char *cuda,
                   struct findings *out)
{
    const char *fits = cuda ? toolkit_that_fits(c->facts, cuda) : NULL;
    char *driver = driver_words(c->facts, cuda), *remedy;

    remedy = xasprintf("sbatch --exclude=%s (a node with driver %s or newer will do)%s%s%s%s", case_node(c),
                       minimum ? minimum : "of a newer branch", fits ? ", or build with " : "", fits ? fits : "",
                       fits ? ", which this node has and its driver serves" : "",
                       fits || !cuda ? "" : ", or build with an older toolkit");
    finding_explain(findings_add(out, "driver-too-old", LEVEL_ERROR, SCOPE_NODE, r->path,
                                 "%s is older than %s, which CUDA %s %s '%s' needs", driver,
                                 minimum ? minimum : "the least driver", r->version, r->linked_in ? "inside" : "of",
                                 path_base(r->path)),
                    NULL, atoi(r->version) < 11 ? "below CUDA 11 there is no minor-version compatibility: the driver "
                                                  "must be at least the toolkit's own (else error 35)"
                                                : "the runtime ends with error 35, driver version is insufficient",
                    remedy);
    free(driver);
    free(remedy);
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    const char *cuda = driver_cuda(c->facts), *minimum;
    struct runtime r;

    if (!find_runtime(c, &r))
        return 0;
    if (!c->facts->driver.kernel_module && !cuda)
        return err_set(err, CODE_UNAVAILABLE, "'%s' needs CUDA %s, but the driver of the node is not known",
                       path_base(r.path), r.version);
    if (case_forward_compatible(c))
        return err_set(err, CODE_UNAVAILABLE, "LD_LIBRARY_PATH names a compat folder, whose libcuda takes the driver's "
                                              "place");
    minimum = compat_driver_minimum(r.version);
    if (!minimum && !cuda)
        return err_set(err, CODE_UNAVAILABLE, "CUDA %s is not in the tables", r.version);
    if (too_old(c->facts, &r, minimum, cuda)) {
        report(c, &r, minimum, cuda, out);
    } else if (cuda && version_cmp(cuda, r.version) < 0) {
        char *driver = driver_words(c->facts, cuda);

        finding_explain(findings_add(out, "driver-too-old", LEVEL_NOTE, SCOPE_NODE, r.path,
                                     "%s serves CUDA %s of '%s' by minor-version compatibility", driver, r.version,
                                     path_base(r.path)),
                        "minor-version", "new features of the newer minor version, and PTX, are not covered", NULL);
        free(driver);
    }
    return 0;
}

const struct rule rule_driver_too_old = {
    .name = "driver-too-old",
    .doc = "the node's driver is below the least one of the CUDA runtime; from CUDA 11 on the rule of minor versions is "
           "applied, and a note says so where it saves the program",
    .level = LEVEL_ERROR,
    .scope = SCOPE_NODE,
    .inputs = CHECK_FACTS | CHECK_RESOLUTION,
    .eval = eval,
};
