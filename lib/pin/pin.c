#include "config.h"

#include <stdlib.h>
#include "pin/pin_priv.h"

const struct name pin_how_names[] = {
    { "set", PIN_SET }, { "prepend", PIN_PREPEND }, { "append", PIN_APPEND }, { "unset", PIN_UNSET }, { NULL, 0 },
};
const struct name pin_role_names[] = {
    { "program", PIN_PROGRAM }, { "module", PIN_MODULE }, { "library", PIN_LIBRARY }, { NULL, 0 },
};

/* ---- the rows of the file (doc/format-pin.md) ---- */

#define AT(type, member) offsetof(struct type, member)
#define SUB(member) (offsetof(struct pin, member) - offsetof(struct pin, captured))

static const struct conf_row captured_rows[] = {
    { .name = "node", .type = CONF_TEXT, .offset = SUB(captured.node), .doc = "host where the pin was taken" },
    { .name = "time", .type = CONF_TEXT, .offset = SUB(captured.time), .doc = "when, UTC" },
    { .name = "recon", .type = CONF_TEXT, .offset = SUB(captured.recon), .doc = "version that took it" },
    { .name = "umask", .type = CONF_TEXT, .offset = SUB(captured.umask), .doc = "umask there, octal" },
    { 0 },
};
#undef SUB
static const struct conf_row variable_rows[] = {
    { .name = "name", .type = CONF_TEXT, .offset = AT(pin_variable, name), .flags = CONF_REQUIRED, .doc = "its name" },
    { .name = "how", .type = CONF_CHOICE, .offset = AT(pin_variable, how), .def = "set", .names = pin_how_names,
      .doc = "what the job does with it: set, prepend or append (with a colon), unset" },
    { .name = "value", .type = CONF_TEXT, .offset = AT(pin_variable, value), .doc = "its value" },
    { 0 },
};
#define SUB(member) (offsetof(struct pin, member) - offsetof(struct pin, limits))
static const struct conf_row limit_rows[] = {
    { .name = "memlock", .type = CONF_INT, .offset = SUB(limits.memlock), .doc = "bytes, -1 unlimited" },
    { .name = "open_files", .type = CONF_INT, .offset = SUB(limits.open_files), .doc = "number, -1 unlimited" },
    { 0 },
};
#undef SUB
#define SUB(member) (offsetof(struct pin, member) - offsetof(struct pin, requires))
static const struct conf_row require_rows[] = {
    { .name = "glibc", .type = CONF_TEXT, .offset = SUB(requires.glibc),
      .doc = "highest GLIBC version that the pinned files ask for, those of the system left out" },
    { .name = "glibcxx", .type = CONF_TEXT, .offset = SUB(requires.glibcxx), .doc = "the same for GLIBCXX" },
    { .name = "cuda_runtime", .type = CONF_TEXT, .offset = SUB(requires.cuda_runtime),
      .doc = "version of the CUDA runtime that is loaded, or linked in" },
    { .name = "driver", .type = CONF_TEXT, .offset = SUB(requires.driver),
      .doc = "lowest NVIDIA driver that this runtime takes (minor-version compatibility)" },
    { .name = "cpu_isa", .type = CONF_TEXT, .offset = SUB(requires.cpu_isa),
      .doc = "x86 ISA level that a pinned file's property note needs" },
    { 0 },
};
#undef SUB
#define SUB(member) (offsetof(struct pin, member) - offsetof(struct pin, loader))
static const struct conf_row loader_rows[] = {
    { .name = "path", .type = CONF_TEXT, .offset = SUB(loader.path), .doc = "the program's loader" },
    { .name = "build_id", .type = CONF_TEXT, .offset = SUB(loader.build_id), .doc = "its build-id" },
    { .name = "cache_size", .type = CONF_INT, .offset = SUB(loader.cache_size), .doc = "size of ld.so.cache, of musl's ld-musl-ARCH.path" },
    { .name = "cache_mtime_ns", .type = CONF_INT, .offset = SUB(loader.cache_mtime_ns), .doc = "its time" },
    { .name = "hwcaps", .type = CONF_TEXTS, .offset = SUB(loader.hwcaps),
      .doc = "glibc-hwcaps subdirectories that were searched, best first" },
    { 0 },
};
#undef SUB
static const struct conf_row dir_rows[] = {
    { .name = "path", .type = CONF_TEXT, .offset = AT(pin_dir, path), .flags = CONF_REQUIRED, .doc = "a directory" },
    { .name = "mtime_ns", .type = CONF_INT, .offset = AT(pin_dir, mtime_ns), .def = "0",
      .doc = "its time; 0: there was none" },
    { 0 },
};
static const struct conf_row gpu_rows[] = {
    { .name = "containers", .type = CONF_INT, .offset = AT(pin_gpu, containers), .def = "1",
      .doc = "how many containers (translation units) have this set" },
    { .name = "sass", .type = CONF_TEXTS, .offset = AT(pin_gpu, sass), .doc = "machine code: sm_90, sm_90a, sm_100f" },
    { .name = "ptx", .type = CONF_TEXTS, .offset = AT(pin_gpu, ptx), .doc = "PTX: compute_90" },
    { .name = "ptx_isa", .type = CONF_TEXT, .offset = AT(pin_gpu, ptx_isa), .doc = "highest PTX ISA of the set" },
    { .name = "toolkit", .type = CONF_TEXT, .offset = AT(pin_gpu, toolkit), .doc = "highest toolkit that built it" },
    { 0 },
};
static const struct conf_row object_rows[] = {
    { .name = "role", .type = CONF_CHOICE, .offset = AT(pin_object, role), .def = "library", .names = pin_role_names,
      .doc = "program, module (loaded later by name), library" },
    { .name = "soname", .type = CONF_TEXT, .offset = AT(pin_object, soname), .doc = "name that it was asked by" },
    { .name = "path", .type = CONF_TEXT, .offset = AT(pin_object, path),
      .doc = "the file; absent: found nowhere (--allow-missing)" },
    { .name = "needed_by", .type = CONF_INTS, .offset = AT(pin_object, needed_by), .doc = "objects that need it" },
    { .name = "why", .type = CONF_CHOICE, .offset = AT(pin_object, why), .def = "path", .names = why_names,
      .doc = "step of the search that found it" },
    { .name = "found_in", .type = CONF_INT, .offset = AT(pin_object, found_in), .doc = "its directory in dirs" },
    { .name = "missed", .type = CONF_INTS, .offset = AT(pin_object, missed),
      .doc = "directories of dirs that were searched before in vain" },
    { .name = "build_id", .type = CONF_TEXT, .offset = AT(pin_object, build_id), .doc = "GNU build-id" },
    { .name = "size", .type = CONF_INT, .offset = AT(pin_object, size), .doc = "bytes" },
    { .name = "mtime_ns", .type = CONF_INT, .offset = AT(pin_object, mtime_ns), .doc = "time" },
    { .name = "digest", .type = CONF_TEXT, .offset = AT(pin_object, digest), .doc = "XXH3 of the file" },
    { .name = "global", .type = CONF_BOOL, .offset = AT(pin_object, global), .def = "false",
      .doc = "a module that is opened with RTLD_GLOBAL" },
    { .name = "gpu", .type = CONF_LIST, .offset = AT(pin_object, gpu), .sub = gpu_rows, .size = sizeof(struct pin_gpu),
      .doc = "sets of GPU images" },
    { .name = "hip", .type = CONF_TEXTS, .offset = AT(pin_object, hip), .doc = "targets of HIP code: gfx90a:xnack-" },
    { .name = "openmp", .type = CONF_TEXTS, .offset = AT(pin_object, openmp),
      .doc = "targets of OpenMP's device code: sm_80, gfx90a; of LLVM IR: ir:sm_80" },
    { 0 },
};
/* What every variant has. */
#define BODY_ROWS                                                                                                              \
    { .name = "captured", .type = CONF_GROUP, .offset = AT(pin, captured), .sub = captured_rows, .doc = "origin" },            \
    { .name = "variables", .type = CONF_LIST, .offset = AT(pin, variables), .sub = variable_rows,                              \
      .size = sizeof(struct pin_variable), .doc = "environment variables that the job gets" },                                 \
    { .name = "modules", .type = CONF_TEXTS, .offset = AT(pin, modules), .doc = "environment modules that were loaded" },      \
    { .name = "prefix", .type = CONF_TEXT, .offset = AT(pin, prefix), .def = "", .doc = "conda or venv prefix" },              \
    { .name = "limits", .type = CONF_GROUP, .offset = AT(pin, limits), .sub = limit_rows, .doc = "limits there" },             \
    { .name = "requires", .type = CONF_GROUP, .offset = AT(pin, requires), .sub = require_rows, .doc = "least versions" },     \
    { .name = "loader", .type = CONF_GROUP, .offset = AT(pin, loader), .sub = loader_rows,                                     \
      .doc = "what the search depended on besides" },                                                                          \
    { .name = "dirs", .type = CONF_LIST, .offset = AT(pin, dirs), .sub = dir_rows, .size = sizeof(struct pin_dir),             \
      .doc = "directories that were looked into" },                                                                            \
    { .name = "objects", .type = CONF_LIST, .offset = AT(pin, objects), .flags = CONF_REQUIRED, .sub = object_rows,            \
      .size = sizeof(struct pin_object), .doc = "files in load order" }

static const struct conf_row variant_rows[] = {
    { .name = "name", .type = CONF_TEXT, .offset = AT(pin, name), .flags = CONF_REQUIRED, .doc = "its name" },
    BODY_ROWS,
    { 0 },
};
const struct conf_row pin_rows[] = {
    { .name = "version", .type = CONF_INT, .offset = AT(pin, version), .flags = CONF_REQUIRED, .doc = "1" },
    { .name = "name", .type = CONF_TEXT, .offset = AT(pin, name), .doc = "of this body, where there are variants" },
    BODY_ROWS,
    { .name = "variants", .type = CONF_LIST, .offset = AT(pin, variants), .sub = variant_rows, .size = sizeof(struct pin),
      .doc = "further whole bodies; a node takes the most specific that has no error there" },
    { 0 },
};

/* ---- reading and writing ---- */

static int check_indices(const char *file, size_t object, const char *what, const struct conf_ints *l, size_t limit,
                         struct err *err)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] < 0 || (uint64_t)l->v[i] >= limit)
            return err_set(err, CODE_USAGE, "%s: objects[%zu]: '%s' holds %lld, wanted 0 to %zu", file, object, what,
                           (long long)l->v[i], limit ? limit - 1 : 0);
    return 0;
}

static int check_object(const char *file, const struct pin *p, size_t i, struct err *err)
{
    const struct pin_object *o = &p->objects.v[i];

    if (!o->path && !o->soname)
        return err_set(err, CODE_USAGE, "%s: objects[%zu] has neither path nor soname", file, i);
    if (o->path && *o->path != '/')
        return err_set(err, CODE_USAGE, "%s: objects[%zu]: path '%s' is not absolute", file, i, o->path);
    if (o->found_in != CONF_UNSET && (o->found_in < 0 || (uint64_t)o->found_in >= p->dirs.n))
        return err_set(err, CODE_USAGE, "%s: objects[%zu]: 'found_in' holds %lld, dirs has %zu entries", file, i,
                       (long long)o->found_in, p->dirs.n);
    return check_indices(file, i, "needed_by", &o->needed_by, p->objects.n, err) ||
                   check_indices(file, i, "missed", &o->missed, p->dirs.n, err)
               ? -1
               : 0;
}

static int check_body(const char *file, const struct pin *p, struct err *err)
{
    if (!p->objects.n || p->objects.v[0].role != PIN_PROGRAM || !p->objects.v[0].path)
        return err_set(err, CODE_USAGE, "%s: the first of objects is no program with a path", file);
    for (size_t i = 0; i < p->objects.n; i++)
        if (check_object(file, p, i, err))
            return -1;
    for (size_t i = 0; i < p->variables.n; i++) {
        const struct pin_variable *v = &p->variables.v[i];

        if (!*v->name || strchr(v->name, '='))
            return err_set(err, CODE_USAGE, "%s: variables[%zu]: '%s' is no name of a variable", file, i, v->name);
        if (v->how != PIN_UNSET && !v->value)
            return err_set(err, CODE_USAGE, "%s: variables[%zu]: '%s' has no value", file, i, v->name);
    }
    return 0;
}

static int check_pin(const char *file, const struct pin *p, struct err *err)
{
    char *where;
    int rc;

    if (p->version != 1)
        return err_set(err, CODE_USAGE, "%s: version is %lld, this recon reads 1", file, (long long)p->version);
    rc = check_body(file, p, err);
    for (size_t i = 0; i < p->variants.n && rc == 0; i++) {
        where = xasprintf("%s: variant '%s'", file, p->variants.v[i].name);
        rc = check_body(where, &p->variants.v[i], err);
        if (rc == 0 && pin_named(p, p->variants.v[i].name) != &p->variants.v[i])
            rc = err_set(err, CODE_USAGE, "%s: there are two of this name", where);
        free(where);
    }
    return rc;
}

int pin_read(const char *path, struct pin *ret, struct err *err)
{
    struct pin p = { 0 };
    struct str text = { 0 };
    struct conf *c = NULL;
    char digest[DIGEST_SIZE];
    int rc = -1;

    if (file_read(path, FILE_MAX_DEFAULT, &text, err))
        goto out;
    if (!text.len) {
        err_set(err, CODE_USAGE, "%s is empty, wanted a pin (recon-pin capture)", path);
        goto out;
    }
    c = conf_parse(text.s, text.len, path, err);
    if (!c)
        goto out;
    rc = conf_bind(c, pin_rows, &p, err) || check_pin(path, &p, err) ? -1 : 0;
    if (rc) {
        pin_release(&p);
    } else {
        digest_bytes(text.s, text.len, digest);
        p.digest = xstrdup(digest);
        *ret = p;
    }
out:
    conf_free(c);
    str_release(&text);
    return rc;
}

int pin_write(const char *path, struct pin *p, struct err *err)
{
    struct str text = { 0 };
    char digest[DIGEST_SIZE];
    int rc;

    conf_write(pin_rows, p, &text);
    rc = file_write(path, text.s, text.len, 0666, err);
    if (rc == 0) {
        digest_bytes(text.s, text.len, digest);
        free(p->digest);
        p->digest = xstrdup(digest);
    }
    str_release(&text);
    return rc;
}

struct pin_object *pin_add_object(struct pin *p)
{
    struct pin_object *o = VEC_ADD(&p->objects);

    conf_defaults(object_rows, o);
    return o;
}

void pin_release(struct pin *p)
{
    conf_release(pin_rows, p);
    free(p->digest);
    memset(p, 0, sizeof(*p));
}

/* ---- variants ---- */

size_t pin_bodies(const struct pin *p)
{
    return 1 + p->variants.n;
}

const struct pin *pin_body(const struct pin *p, size_t i)
{
    return i ? &p->variants.v[i - 1] : p;
}

const struct pin *pin_named(const struct pin *p, const char *name)
{
    for (size_t i = 0; i < pin_bodies(p); i++)
        if (str_eq(pin_body(p, i)->name, name))
            return pin_body(p, i);
    return NULL;
}

int pin_merge(struct pin *p, struct pin *more, const char *name, struct err *err)
{
    struct pin *variants = more->variants.v;
    size_t n = more->variants.n;

    if (name) {
        free(more->name);
        more->name = xstrdup(name);
    }
    for (size_t i = 0; i < pin_bodies(more); i++) {
        const struct pin *b = pin_body(more, i);

        if (!b->name || !*b->name)
            return err_set(err, CODE_USAGE, "a variant needs a name: NAME=PIN");
        if (pin_named(p, b->name))
            return err_set(err, CODE_USAGE, "two variants are called '%s'", b->name);
    }
    free(more->digest);
    more->digest = NULL;
    memset(&more->variants, 0, sizeof(more->variants));
    *VEC_ADD(&p->variants) = *more;
    for (size_t i = 0; i < n; i++)
        *VEC_ADD(&p->variants) = variants[i];
    free(variants);
    memset(more, 0, sizeof(*more));
    return 0;
}

/* ---- the environment ---- */

static void replay(struct strv *env, const struct pin_variable *v)
{
    const char *old = env->n ? env_get(env->v, v->name) : NULL;
    char *value = NULL;

    if (v->how == PIN_PREPEND && old && *old)
        value = xasprintf("%s:%s", v->value, old);
    else if (v->how == PIN_APPEND && old && *old)
        value = xasprintf("%s:%s", old, v->value);
    else if (v->how != PIN_UNSET)
        value = xstrdup(v->value);
    env_set(env, v->name, value);
    free(value);
}

void pin_environment(const struct pin *p, char *const *env, struct strv *ret)
{
    for (; env && *env; env++)
        strv_add(ret, *env);
    for (size_t i = 0; i < p->variables.n; i++)
        replay(ret, &p->variables.v[i]);
}
