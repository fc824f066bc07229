/* Extension modules of Python packages, found by files alone. Sources: PEP 405 (pyvenv.cfg), PEP 3149 (file names), site.py. */
#include "config.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "pin/pin_priv.h"

#define DEPTH_MAX 12
#define MODULES_MAX 4000

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void add_path(struct python *p, char *dir) /* takes dir */
{
    if (dir && is_dir(dir) && !strv_has(&p->path, dir))
        strv_add(&p->path, dir);
    free(dir);
}

/* ---- the interpreter ---- */

/* "key = value" of pyvenv.cfg; owned, NULL none. */
static char *setting(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *p = line + strspn(line, " \t");

        if (strncmp(p, key, n) || !strchr(" \t=", p[n]))
            continue;
        p += n + strspn(p + n, " \t=");
        return xstrndup(p, strcspn(p, "\r\n"));
    }
    return NULL;
}

/* "3.11" of a prefix that holds lib/python3.11/os.py (hint: wins where it exists); NULL none. */
static char *version_in(const char *prefix, const char *hint)
{
    char *lib = path_join(prefix, "lib"), *best = NULL;
    DIR *d = opendir(lib);

    for (struct dirent *e; d && (e = readdir(d));) {
        const char *v = str_starts(e->d_name, "python") ? e->d_name + 6 : "";
        char *os = xasprintf("%s/%s/os.py", lib, e->d_name);
        struct stat st;

        if (*v >= '0' && *v <= '9' && stat(os, &st) == 0 && !str_eq(best, hint) &&
            (!best || str_eq(v, hint) || version_cmp(v, best) > 0)) {
            free(best);
            best = xstrdup(v);
        }
        free(os);
    }
    if (d)
        closedir(d);
    free(lib);
    return best;
}

static void site(struct python *p, const char *prefix)
{
    static const char *const forms[] = { "%s/lib/python%s/lib-dynload", "%s/lib/python%s/site-packages",
                                         "%s/local/lib/python%s/dist-packages", "%s/lib/python%s/dist-packages" };

    for (size_t i = 0; i < COUNT(forms); i++) {
        struct str t = { 0 };
        const char *a = strstr(forms[i], "%s"), *b = strstr(a + 2, "%s");

        str_addf(&t, "%s%.*s%s%s", prefix, (int)(b - a - 2), a + 2, p->version, b + 2);
        add_path(p, str_take(&t));
    }
    add_path(p, xasprintf("%s/lib/python3/dist-packages", prefix));
}

/* Lines of .pth files that are directories; code in them is not run. */
static void path_files(struct python *p, const char *dir)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));) {
        struct strv lines = { 0 };
        struct str t = { 0 };
        char *file = path_join(dir, e->d_name);

        if (str_ends(e->d_name, ".pth") && file_read(file, 1 << 20, &t, NULL) == 0 && t.len)
            strv_split(&lines, t.s, "\r\n");
        for (size_t i = 0; i < lines.n; i++)
            if (*lines.v[i] && *lines.v[i] != '#' && !str_starts(lines.v[i], "import"))
                add_path(p, path_join(dir, lines.v[i]));
        strv_release(&lines);
        str_release(&t);
        free(file);
    }
    if (d)
        closedir(d);
}

static void environment_paths(struct python *p, char *const *env)
{
    const char *paths = env ? env_get(env, "PYTHONPATH") : NULL;
    struct strv parts = { 0 };

    if (paths)
        strv_split(&parts, paths, ":");
    for (size_t i = 0; i < parts.n; i++)
        add_path(p, xstrdup(*parts.v[i] ? parts.v[i] : "."));
    strv_release(&parts);
}

int python_find(const char *program, char *const *env, struct python *ret, struct err *err)
{
    char *real = realpath(program, NULL), *bin = path_dir(program), *venv = path_dir(bin), *cfg, *prefix, *outer = NULL;
    char *real_bin = real ? path_dir(real) : NULL, *digits;
    const char *home = env ? env_get(env, "HOME") : NULL;
    struct python p = { .program = xstrdup(program) };
    struct str text = { 0 };
    bool whole = true;
    size_t n;

    prefix = real_bin ? path_dir(real_bin) : NULL;
    cfg = xasprintf("%s/pyvenv.cfg", venv);
    if (file_read(cfg, 1 << 20, &text, NULL) == 0 && text.len) {
        outer = setting(text.s, "include-system-site-packages");
        whole = str_eq(outer, "true");
    }
    digits = real ? strstr(path_base(real), "python") : NULL;
    p.version = prefix ? version_in(prefix, digits ? digits + 6 : NULL) : NULL;
    if (!p.version) {
        python_release(&p);
    } else {
        environment_paths(&p, env);
        if (text.len)
            site(&p, venv);
        add_path(&p, xasprintf("%s/lib/python%s/lib-dynload", prefix, p.version));
        if (whole && home)
            add_path(&p, xasprintf("%s/.local/lib/python%s/site-packages", home, p.version));
        if (whole)
            site(&p, prefix);
        n = p.path.n;
        for (size_t i = 0; i < n; i++)
            path_files(&p, p.path.v[i]);
        *ret = p;
    }
    n = p.version != NULL;
    free(real);
    free(real_bin);
    free(bin);
    free(venv);
    free(cfg);
    free(prefix);
    free(outer);
    str_release(&text);
    return n ? 0
             : err_set(err, CODE_DATA, "'%s' is no Python whose library folder (lib/python3.X/os.py) is found; a shim "
                       "is none: name the one that python3 -c 'import sys; print(sys.executable)' prints", program);
}

void python_release(struct python *p)
{
    free(p->program);
    free(p->version);
    strv_release(&p->path);
    memset(p, 0, sizeof(*p));
}

/* ---- a package ---- */

struct hunt {
    const struct python *p;
    struct symbols *s;
    char tag[32];       /* ".cpython-311-" */
    struct strv files;
    struct strv imports; /* what to import: the package, or where it is a folder alone what lies in it */
    size_t other;       /* modules for other versions */
    char *other_tag;
};

/* A module by its tag or name; of lib*.so by what it exports: libtorch.so is none, libtriton.so is one. */
static bool is_module(struct hunt *h, const char *path)
{
    const char *base = path_base(path), *tag = strstr(base, ".cpython-");
    struct object o;
    char *init;
    bool is;

    if (!str_ends(base, ".so"))
        return false;
    if (tag) {
        if (str_starts(tag, h->tag))
            return true;
        h->other++;
        if (!h->other_tag)
            h->other_tag = xstrndup(tag + 1, strcspn(tag + 9, "-.") + 8);
        return false;
    }
    if (str_ends(base, ".abi3.so") || !str_starts(base, "lib")) /* some are opened by name: torchvision/_C.so */
        return true;
    if (object_read(path, false, &o, NULL))
        return false;
    init = xasprintf("PyInit_%.*s", (int)strcspn(base, "."), base);
    is = symbols_defines(h->s, &o, init);
    free(init);
    object_release(&o);
    return is;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files of a folder before its subfolders: a package is imported before what is in it. */
static void folder(struct hunt *h, const char *dir, int depth)
{
    struct strv names = { 0 };
    DIR *d = depth < DEPTH_MAX ? opendir(dir) : NULL;

    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && !str_eq(e->d_name, "__pycache__") && e->d_type != DT_FIFO)
            strv_add(&names, e->d_name);
    if (d)
        closedir(d);
    if (names.n)
        qsort(names.v, names.n, sizeof(*names.v), by_name);
    for (int sub = 0; sub < 2; sub++)
        for (size_t i = 0; i < names.n && h->files.n < MODULES_MAX; i++) {
            char *path = path_join(dir, names.v[i]);
            bool below = is_dir(path);

            if (sub && below)
                folder(h, path, depth + 1);
            else if (!sub && !below && is_module(h, path))
                strv_add(&h->files, path);
            free(path);
        }
    strv_release(&names);
}

static bool is_package(const char *dir)
{
    char *init = path_join(dir, "__init__.py");
    struct stat st;
    bool is = stat(init, &st) == 0;

    free(init);
    return is;
}

/* "nvidia.dali" of folder nvidia, which is no package itself. */
static void packages_in(const char *dir, const char *name, struct strv *ret)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = path_join(dir, e->d_name);

        if (*e->d_name != '.' && is_package(path))
            strv_addf(ret, "%s.%s", name, e->d_name);
        free(path);
    }
    if (d)
        closedir(d);
    if (ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
}

/* The first directory of the path that has it, as a folder or as a module; false: this one has not. */
static bool in_dir(struct hunt *h, const char *dir, const char *package)
{
    char *path = path_join(dir, package);
    bool found = is_dir(path);
    DIR *d;

    if (found) {
        folder(h, path, 0);
        if (!is_package(path))
            packages_in(path, package, &h->imports);
    }
    d = found ? NULL : opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(package);
        char *file = path_join(dir, e->d_name);

        if (strncmp(e->d_name, package, n) == 0 && e->d_name[n] == '.') {
            found = found || str_eq(e->d_name + n, ".py");
            if (is_module(h, file)) {
                strv_add(&h->files, file);
                found = true;
            }
        }
        free(file);
    }
    if (d)
        closedir(d);
    free(path);
    return found;
}

/* Does the file belong to a package whose import could be followed? */
static bool in_package(const struct python *p, const char *file)
{
    char *dir = path_dir(file), *up;
    bool found = false;

    for (int i = 0; i < DEPTH_MAX && !found && !strv_has(&p->path, dir); i++) {
        found = is_package(dir);
        up = path_dir(dir);
        free(dir);
        dir = up;
    }
    free(dir);
    return found;
}

/* Those that no import of the package was seen to need: it may do without them. Below no __init__.py nothing is known of that. */
static void add_rest(const struct hunt *h, struct python_modules *ret)
{
    for (size_t i = 0; i < h->files.n; i++) {
        bool known = false;

        for (size_t j = 0; j < ret->n && !known; j++)
            known = str_eq(ret->v[j].path, h->files.v[i]);
        if (!known)
            *VEC_ADD(ret) = (struct python_module){ .path = xstrdup(h->files.v[i]), .optional = in_package(h->p, h->files.v[i]) };
    }
}

static int find_package(struct hunt *h, const char *package, struct strv *ret_bare, struct err *err)
{
    const struct python *p = h->p;
    size_t before = h->files.n;
    char *name = xstrdup(package);
    bool found = false;
    int rc = 0;

    h->other = 0;
    strv_add(&h->imports, package);
    for (char *c = name; *c; c++)
        *c = *c == '.' ? '/' : *c;
    for (size_t i = 0; i < p->path.n && !found; i++)
        found = in_dir(h, p->path.v[i], name);
    free(name);
    if (!found)
        rc = err_set(err, CODE_NOTFOUND, "no package '%s' in the %zu folders of '%s' (Python %s), '%s' the first", package,
                     p->path.n, p->program, p->version, p->path.n ? p->path.v[0] : "none");
    else if (h->files.n == before && h->other)
        rc = err_set(err, CODE_JOB, "package '%s' has modules for %s only, '%s' is Python %s", package, h->other_tag, p->program,
                     p->version);
    else if (h->files.n == before && ret_bare)
        strv_add(ret_bare, package);
    return rc;
}

int python_modules(const struct python *p, const struct strv *packages, struct python_modules *ret, struct strv *ret_bare,
                   struct err *err)
{
    struct hunt h = { .p = p, .s = symbols_new() };
    size_t point = strcspn(p->version, ".");
    int rc = 0;

    snprintf(h.tag, sizeof(h.tag), ".cpython-%.*s%.6s-", (int)(point < 4 ? point : 4), p->version,
             p->version[point] ? p->version + point + 1 : "");
    for (size_t i = 0; rc == 0 && i < packages->n; i++)
        rc = find_package(&h, packages->v[i], ret_bare, err);
    if (rc == 0) {
        python_imports(p, h.tag, &h.imports, ret);
        add_rest(&h, ret);
    }
    symbols_free(h.s);
    strv_release(&h.files);
    strv_release(&h.imports);
    free(h.other_tag);
    return rc;
}

void python_modules_release(struct python_modules *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].path);
    free(l->v);
    memset(l, 0, sizeof(*l));
}

/* ---- what Python code opens by itself ---- */

/* Folders lib and lib64 of each package, and NAME.libs; dir is site-packages, or nvidia in it (depth 1). */
static void library_folders(const char *dir, int depth, struct strv *ret)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));) {
        static const char *const ends[] = { "lib", "lib64" };
        char *package = path_join(dir, e->d_name);

        if (*e->d_name != '.' && is_dir(package)) {
            if (str_ends(e->d_name, ".libs"))
                strv_add(ret, package);
            for (size_t i = 0; i < COUNT(ends); i++) {
                char *lib = path_join(package, ends[i]);

                if (is_dir(lib))
                    strv_add(ret, lib);
                free(lib);
            }
            if (depth == 0 && str_eq(e->d_name, "nvidia"))
                library_folders(package, 1, ret);
        }
        free(package);
    }
    if (d)
        closedir(d);
}

void python_libraries(const struct python *p, struct strv *ret)
{
    for (size_t i = 0; i < p->path.n; i++)
        if (str_ends(p->path.v[i], "-packages"))
            library_folders(p->path.v[i], 0, ret);
}
