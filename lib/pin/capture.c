#include "config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pin/pin_priv.h"

/* ---- objects ---- */

static int64_t dir_index(struct pin *p, const struct searched_dir *d)
{
    for (size_t i = 0; i < p->dirs.n; i++)
        if (str_eq(p->dirs.v[i].path, d->path))
            return (int64_t)i;
    *VEC_ADD(&p->dirs) = (struct pin_dir){ xstrdup(d->path), d->mtime_ns };
    return (int64_t)p->dirs.n - 1;
}

static size_t object_index(const struct pin *p, const struct library *lib)
{
    for (size_t i = 0; i < p->objects.n; i++)
        if (lib->path ? str_eq(p->objects.v[i].path, lib->path)
                      : !p->objects.v[i].path && str_eq(p->objects.v[i].soname, lib->soname))
            return i;
    return SIZE_MAX;
}

static void fill_object(struct pin *p, const struct closure *c, size_t i, int role)
{
    const struct library *lib = &c->libs.v[i];
    struct pin_object *o = pin_add_object(p);
    struct stat st;

    o->role = role;
    if (role == PIN_LIBRARY)
        o->soname = xstrdup(lib->soname);
    o->path = xstrdup(lib->path);
    o->why = (int)lib->why;
    if (lib->found_in != SIZE_MAX)
        o->found_in = dir_index(p, &c->dirs.v[lib->found_in]);
    for (size_t j = 0; j < lib->missed.n; j++)
        *VEC_ADD(&o->missed) = dir_index(p, &c->dirs.v[lib->missed.v[j]]);
    o->build_id = xstrdup(lib->object.build_id);
    if (lib->object.path) {
        o->size = lib->object.size;
        o->mtime_ns = lib->object.mtime_ns;
    } else if (lib->path && stat(lib->path, &st) == 0) { /* a script */
        o->size = st.st_size;
        o->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    pin_gpu_sets(&lib->object.images, &o->gpu);
    pin_targets(&lib->object.images, o);
}

static void need_once(struct conf_ints *l, int64_t i)
{
    for (size_t j = 0; j < l->n; j++)
        if (l->v[j] == i)
            return;
    *VEC_ADD(l) = i;
}

/* The objects of a closure that the pin has not got, and who needs them all. */
static void add_objects(struct pin *p, const struct closure *c, int role)
{
    size_t *at = xcalloc(c->libs.n, sizeof(*at));

    for (size_t i = 0; i < c->libs.n; i++) {
        at[i] = object_index(p, &c->libs.v[i]);
        if (at[i] != SIZE_MAX)
            continue;
        fill_object(p, c, i, i == 0 ? role : PIN_LIBRARY);
        at[i] = p->objects.n - 1;
    }
    for (size_t i = 0; i < c->edges.n; i++)
        if (at[c->edges.v[i].to] != 0)
            need_once(&p->objects.v[at[c->edges.v[i].to]].needed_by, (int64_t)at[c->edges.v[i].from]);
    free(at);
}

/* ---- what the objects ask for ---- */

bool in_default_dirs(const struct loader *l, const char *path)
{
    for (size_t i = 0; path && i < l->dirs.n; i++)
        if (str_starts(path, l->dirs.v[i]) && path[strlen(l->dirs.v[i])] == '/')
            return true;
    return false;
}

static bool of_system(const struct library *lib, const struct loader *l)
{
    return in_default_dirs(l, lib->path) || lib->why == WHY_LOADED;
}

static void highest(char **field, const char *version)
{
    if (*field && version_cmp(*field, version) >= 0)
        return;
    free(*field);
    *field = xstrdup(version);
}

static void highest_need(char **field, const struct object *o, const char *prefix)
{
    for (size_t i = 0; i < o->needs.n; i++) {
        const char *v = o->needs.v[i].version;

        if (str_starts(v, prefix) && v[strlen(prefix)] >= '0' && v[strlen(prefix)] <= '9')
            highest(field, v + strlen(prefix));
    }
}

/* "13.0" from the file name libcudart.so.13.0.96, else from the SONAME. */
static char *cudart_version(const struct library *lib)
{
    char *real = realpath(lib->path, NULL), *text = NULL;
    const char *at = real ? strstr(path_base(real), ".so.") : NULL;
    unsigned major, minor;
    int n = at ? sscanf(at, ".so.%u.%u", &major, &minor) : 0;

    if (n < 2) {
        at = strstr(lib->soname, ".so.");
        n = at ? sscanf(at, ".so.%u.%u", &major, &minor) : 0;
        minor = n < 2 ? 0 : minor;
    }
    if (n >= 1)
        text = xasprintf("%u.%u", major, minor);
    free(real);
    return text;
}

/* Minimum driver by the minor-version rule. Source: CUDA compatibility guide, table "minor version compatibility". */
static const char *driver_for(const char *cuda)
{
    static const struct { const char *major, *driver; } rows[] = {
        { "11.", "450.80.02" }, { "12.", "525.60.13" }, { "13.", "580.65.06" },
    };

    for (size_t i = 0; cuda && i < COUNT(rows); i++)
        if (str_starts(cuda, rows[i].major))
            return rows[i].driver;
    return NULL;
}

static void add_requires(struct pin *p, const struct closure *c, const struct loader *l, char **toolkit)
{
    for (size_t i = 0; i < c->libs.n; i++) {
        const struct library *lib = &c->libs.v[i];

        if (lib->path && str_starts(lib->soname, "libcudart.so.") && !p->requires.cuda_runtime)
            p->requires.cuda_runtime = cudart_version(lib);
        if (of_system(lib, l))
            continue;
        highest_need(&p->requires.glibc, &lib->object, "GLIBC_");
        highest_need(&p->requires.glibcxx, &lib->object, "GLIBCXX_");
        if (lib->object.isa && (!p->requires.cpu_isa || strcmp(lib->object.isa, p->requires.cpu_isa) > 0)) {
            free(p->requires.cpu_isa);
            p->requires.cpu_isa = xstrdup(lib->object.isa);
        }
        if (lib->object.images.toolkit)
            highest(toolkit, lib->object.images.toolkit);
    }
}

/* ---- digests: libraries of half a gigabyte are common ---- */

static int add_digests(struct pin *p, const char *memory, struct err *err)
{
    struct digest_job *jobs = xcalloc(p->objects.n, sizeof(*jobs));
    int rc = 0;

    for (size_t i = 0; i < p->objects.n; i++)
        jobs[i].path = p->objects.v[i].size == CONF_UNSET ? NULL : p->objects.v[i].path;
    digests_of(jobs, p->objects.n, memory);
    for (size_t i = 0; i < p->objects.n; i++) {
        if (jobs[i].err.code && rc == 0) {
            rc = -1;
            if (err)
                *err = jobs[i].err;
        }
        p->objects.v[i].digest = *jobs[i].digest ? xstrdup(jobs[i].digest) : NULL;
    }
    free(jobs);
    return rc;
}

/* ---- refusing ---- */

/* "libx.so.1 (needed by ...) was found nowhere; looked in a, b, c". */
static int refuse_missing(const struct closure *c, const struct library *lib, struct err *err)
{
    struct str where = { 0 };

    for (size_t i = 0; i < lib->tried.n && where.len < 600; i++)
        str_addf(&where, "%s%s (%s)", i ? ", " : "; looked at ", lib->tried.v[i].path, lib->tried.v[i].why_not);
    err_set(err, CODE_JOB, "'%s', which '%s' needs, was not found%s", lib->soname, c->libs.v[lib->needed_by].path,
            where.s ? where.s : "");
    str_release(&where);
    return -1;
}

bool driver_library(const char *soname)
{
    static const char *const prefixes[] = { "libcuda.so.", "libnvidia-", "libnvcuvid.so.", "libnvoptix.so." };

    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (str_starts(soname, prefixes[i]))
            return true;
    return false;
}

static int refuse(const struct closure *c, struct err *err)
{
    struct version_misses m = { 0 };
    int rc = 0;

    for (size_t i = 0; i < c->libs.n && rc == 0; i++) {
        const struct library *lib = &c->libs.v[i];

        if (lib->corrupt && !lib->preload)
            rc = err_set(err, CODE_JOB, "'%s', which '%s' needs, is %s", lib->path, c->libs.v[lib->needed_by].path,
                         lib->corrupt);
        else if (!lib->path && !lib->preload && !driver_library(lib->soname))
            rc = refuse_missing(c, lib, err);
    }
    closure_versions(c, &m);
    for (size_t i = 0; i < m.n && rc == 0; i++)
        if (!m.v[i].weak)
            rc = err_set(err, CODE_JOB, "'%s' needs version '%s'%s%s%s", c->libs.v[m.v[i].object].path, m.v[i].version,
                         m.v[i].provider == SIZE_MAX ? ", which nothing that it loads offers" : ", which '",
                         m.v[i].provider == SIZE_MAX ? "" : c->libs.v[m.v[i].provider].path,
                         m.v[i].provider == SIZE_MAX ? "" : "' does not offer");
    free(m.v);
    return rc;
}

/* ---- the whole ---- */

struct capture {
    const struct pin_request *r;
    struct loader l, other;
    const struct loader *use;
    struct resolution found; /* one closure for the program, one for each module */
    struct strv *left;
    char *toolkit;
    bool reusable; /* everything resolved */
};

static bool all_found(const struct closure *c)
{
    for (size_t i = 0; i < c->libs.n; i++)
        if (!c->libs.v[i].path)
            return false;
    return true;
}

static int take(struct capture *x, struct pin *p, const struct closure *c, int role, struct err *err)
{
    struct err why = { 0 };
    size_t n = p->objects.n;

    x->reusable = x->reusable && all_found(c);
    if (refuse(c, &why)) {
        if (strv_has(&x->found.optional, c->libs.v[0].path)) {
            if (x->left)
                strv_addf(x->left, "module '%s' is left out, its package may do without: %s", c->libs.v[0].path, why.text);
            return 0;
        }
        x->reusable = false;
        if (!x->r->allow_missing) {
            if (err)
                *err = why;
            return -1;
        }
    }
    add_objects(p, c, role);
    if (p->objects.n > n)
        p->objects.v[n].global = c->global;
    add_requires(p, c, x->use, &x->toolkit);
    return 0;
}

/* The modules of the packages, then those that were named. */
static int modules_wanted(const struct capture *x, struct python_modules *ret, struct strv *libraries, struct err *err)
{
    const struct pin_request *r = x->r;
    struct python python = { 0 };
    int rc = 0;

    if (r->packages.n) {
        rc = python_find(r->programs.v[0], r->env, &python, err);
        if (rc == 0)
            rc = python_modules(&python, &r->packages, ret, NULL, err);
        if (rc == 0)
            python_libraries(&python, libraries);
        if (python.program)
            python_release(&python);
    }
    for (size_t i = 1; i < r->programs.n; i++)
        VEC_ADD(ret)->path = xstrdup(r->programs.v[i]);
    return rc;
}

static int capture_objects(struct capture *x, struct pin *p, struct err *err)
{
    const struct pin_request *r = x->r;
    struct python_modules modules = { 0 };
    struct strv libraries = { 0 };
    struct closure program = { 0 };
    int rc = closure_resolve(r->programs.v[0], r->env, r->cwd, x->use, true, NULL, &program, err);

    if (rc)
        return rc;
    for (char *const *e = r->env; e && *e; e++)
        strv_add(&x->found.env, *e);
    *VEC_ADD(&x->found.closures) = program;
    rc = modules_wanted(x, &modules, &libraries, err);
    if (rc == 0)
        host_modules(&x->found, &modules, &libraries, x->use, r->cwd);
    if (rc == 0 && x->found.failed.n)
        rc = err_set(err, CODE_DATA, "%s", x->found.failed.v[0]);
    for (size_t i = 0; rc == 0 && i < x->found.closures.n; i++)
        rc = take(x, p, &x->found.closures.v[i], i ? PIN_MODULE : PIN_PROGRAM, err);
    python_modules_release(&modules);
    strv_release(&libraries);
    return rc;
}

static int capture(const struct pin_request *r, struct pin *ret, struct strv *ret_left, struct err *err)
{
    struct capture x = { .r = r, .reusable = true, .left = ret_left };
    struct pin p = { 0 };
    const char *driver;
    int rc;

    if (!r->programs.n)
        return err_set(err, CODE_USAGE, "no program to pin");
    conf_defaults(pin_rows, &p);
    p.version = 1;
    pin_add_variables(&p, r);
    pin_add_setting(&p, r->env, r->prefix);
    pin_add_host(&p);
    loader_of(NULL, "", &x.l);
    x.use = loader_for(&x.l, r->programs.v[0], &x.other);
    rc = capture_objects(&x, &p, err);
    if (rc == 0) {
        const struct closure *program = &x.found.closures.v[0];
        const struct object *main = &program->libs.v[program->main].object;

        if (!p.requires.cuda_runtime)
            p.requires.cuda_runtime = xstrdup(x.toolkit);
        driver = driver_for(p.requires.cuda_runtime);
        p.requires.driver = xstrdup(driver);
        pin_add_loader(&p, main->interp ? main->interp : x.use->path, x.use, x.reusable && x.use == &x.l && !main->audit.n);
        rc = add_digests(&p, r->memory, err);
    }
    if (rc)
        pin_release(&p);
    else
        *ret = p;
    resolution_release(&x.found);
    loader_release(&x.l);
    loader_release(&x.other);
    free(x.toolkit);
    return rc;
}

int pin_capture(const struct pin_request *r, struct pin *ret, struct strv *ret_left, struct err *err)
{
    struct pin_request steady = *r;
    struct strv env = { 0 };
    int rc;

    pin_steady_environment(r->env, &env);
    steady.env = env.n ? env.v : r->env;
    rc = capture(&steady, ret, ret_left, err);
    strv_release(&env);
    return rc;
}
