#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "elf/elf.h"
#include "probe.h"

char *first_line(const char *path)
{
    struct str t = { 0 };
    char *line = NULL;

    if (file_read(path, 65536, &t, NULL) == 0 && t.len)
        line = xstrndup(t.s, strcspn(t.s, "\n"));
    str_release(&t);
    return line;
}

/* ---- operating system ---- */

void probe_os(const struct probe *q, struct facts *f)
{
    (void)q;
    f->os.glibc = xstrdup(gnu_get_libc_version());
    facts_os_release("", f);
}

/* ---- loader ---- */

void probe_loader(const struct probe *q, struct facts *f)
{
    struct loader l = { 0 };
    struct object o = { 0 };
    struct err err = { 0 };
    struct stat st;
    char *real;

    (void)q;
    if (object_read("/proc/self/exe", false, &o, NULL) == 0 && o.interp) {
        f->loader.path = xstrdup(o.interp);
        object_release(&o);
    }
    real = f->loader.path ? realpath(f->loader.path, NULL) : NULL;
    if (real && object_read(real, false, &o, NULL) == 0) {
        f->loader.build_id = xstrdup(o.build_id);
        object_release(&o);
    }
    free(real);
    f->loader.preload = first_line("/etc/ld.so.preload");
    if (loader_probe(&l, &err)) {
        strv_addf(&f->unknown, "loader: %s", err.text);
        return;
    }
    strv_copy(&f->loader.dirs, &l.dirs);
    strv_copy(&f->loader.hwcaps, &l.hwcaps);
    f->loader.lib = xstrdup(l.lib);
    f->loader.platform = xstrdup(l.platform);
    f->loader.cache = xstrdup(l.cache_path);
    if (l.cache_path && stat(l.cache_path, &st) == 0) {
        f->loader.cache_size = st.st_size;
        f->loader.cache_mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    loader_release(&l);
}

/* The system's libraries are asked for by name, as a program of this node would get them. */
void probe_libraries(const struct probe *q, struct facts *f)
{
    static const char *const names[] = { "libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1" };

    (void)q;
    for (size_t i = 0; i < COUNT(names); i++) {
        void *lib = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        struct link_map *map = NULL;
        struct object o = { 0 };
        struct facts_library *l;

        if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map) || object_read(map->l_name, false, &o, NULL))
            continue;
        l = VEC_ADD(&f->libraries);
        l->soname = xstrdup(names[i]);
        l->path = xstrdup(map->l_name);
        for (size_t v = 0; v < o.versions.n; v++)
            if (!str_eq(o.versions.v[v], o.soname)) /* the base node is the library's own name */
                strv_add(&l->versions, o.versions.v[v]);
        object_release(&o);
    }
}

/* ---- limits and places ---- */

static void limit(int which, int64_t *ret_soft, int64_t *ret_hard)
{
    struct rlimit r;

    if (getrlimit((__rlimit_resource_t)which, &r))
        return;
    *ret_soft = r.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)r.rlim_cur;
    *ret_hard = r.rlim_max == RLIM_INFINITY ? -1 : (int64_t)r.rlim_max;
}

static int64_t free_mib(const char *path)
{
    struct statvfs s;

    return statvfs(path, &s) ? CONF_UNSET : (int64_t)((uint64_t)s.f_bavail * s.f_frsize >> 20);
}

void probe_limits(const struct probe *q, struct facts *f)
{
    int64_t hard;

    (void)q;
    limit(RLIMIT_MEMLOCK, &f->limits.memlock, &f->limits.memlock_hard);
    limit(RLIMIT_NOFILE, &f->limits.open_files, &f->limits.open_files_hard);
    limit(RLIMIT_STACK, &f->limits.stack, &hard);
    f->limits.shm_mib = free_mib("/dev/shm");
}

static bool has(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

/* A CUDA toolkit, or a folder that is named as one and has its shape. */
static bool is_toolkit(const char *dir)
{
    static const char *const marks[] = { "bin/nvcc", "version.json", "lib64/libcudart.so", "include/cuda.h" };
    static const char *const shape[] = { "lib64", "lib", "bin", "include" };
    const char *name = path_base(dir);

    for (size_t i = 0; i < COUNT(marks); i++)
        if (has(dir, marks[i]))
            return true;
    if (!str_starts(name, "cuda") && (*name < '0' || *name > '9'))
        return false;
    for (size_t i = 0; i < COUNT(shape); i++)
        if (has(dir, shape[i]))
            return true;
    return false;
}

static int by_version(const void *a, const void *b)
{
    const char *x = path_base(*(char *const *)a), *y = path_base(*(char *const *)b);

    return version_cmp(x + strcspn(x, "0123456789"), y + strcspn(y, "0123456789"));
}

/* Adds the toolkits of one folder, at most 64, in the order of their versions. */
static void list_place(const char *place, struct facts *f)
{
    size_t from = f->toolkits.n;
    struct dirent *e;
    DIR *d;

    if (strv_has(&f->toolkit_places, place))
        return;
    strv_add(&f->toolkit_places, place);
    d = opendir(place);
    while (d && (e = readdir(d)) && f->toolkits.n < from + 64) {
        char *dir = path_join(place, e->d_name);

        if (e->d_name[0] != '.' && !strv_has(&f->toolkits, dir) && is_toolkit(dir))
            strv_add(&f->toolkits, dir);
        free(dir);
    }
    if (d)
        closedir(d);
    if (f->toolkits.n > from)
        qsort(f->toolkits.v + from, f->toolkits.n - from, sizeof(*f->toolkits.v), by_version);
}

void probe_places(const struct probe *q, struct facts *f)
{
    static const char *const usual[] = { "/usr/local", "/opt", "/opt/cuda", "/usr/local/cuda-toolkits" };

    for (size_t i = 0; i < COUNT(usual); i++)
        if (access(usual[i], F_OK) == 0)
            list_place(usual[i], f);
    for (size_t i = 0; i < q->toolkits.n; i++) {
        char *dir = path_absolute(q->toolkits.v[i]), *place = path_dir(dir);

        if (access(dir, F_OK) == 0 && !strv_has(&f->toolkits, dir))
            strv_add(&f->toolkits, dir);
        list_place(place, f);
        free(dir);
        free(place);
    }
    for (size_t i = 0; i < f->toolkits.n; i++)
        facts_toolkit_read(f->toolkits.v[i], VEC_ADD(&f->toolkit_parts));
}

void probe_tmpdir(const struct probe *q, struct facts *f)
{
    const char *tmp = q->tmpdir ? q->tmpdir : "/tmp";
    struct stat st;

    f->limits.tmp_dir = xstrdup(tmp);
    if (stat(tmp, &st))
        f->limits.tmp_problem = xstrdup(errno == ENOENT ? "it does not exist" : strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        f->limits.tmp_problem = xstrdup("it is no folder");
    else if (access(tmp, W_OK | X_OK))
        f->limits.tmp_problem = xstrdup(errno == EROFS ? "it is read-only" : "it may not be written to");
    else
        f->limits.tmp_mib = free_mib(tmp);
}
