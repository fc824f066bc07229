/* What a pin says of the shell and the host that it is taken on. */
#include "config.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pin/pin_priv.h"

const struct pin_default pin_default_variables[] = {
    { "LD_LIBRARY_PATH", true, "where libraries are looked for first" },
    { "LD_PRELOAD", true, "a library put before all others; a stray one of the node is kept out" },
    { "LD_AUDIT", true, "loader plug-ins of tools; a stray one of the node is kept out" },
    { "GLIBC_TUNABLES", false, "tuning of libc and its loader" },
    { "PATH", false, "programs that the job starts by name" },
    { "MANPATH", false, "set by modules together with PATH" },
    { "CUDA_HOME", false, "the CUDA toolkit, as modules and build tools name it" },
    { "CUDA_PATH", false, "the same by NVIDIA's name" },
    { "CUDA_ROOT", false, "the same by some sites' name" },
    { "CUDA_MODULE_LOADING", false, "lazy or eager loading of GPU code" },
    { "CUDA_DEVICE_ORDER", false, "how CUDA numbers the GPUs" },
    { "CUDA_CACHE_PATH", false, "where compiled PTX is kept" },
    { "NVHPC_ROOT", false, "the NVIDIA HPC SDK" },
    { "ROCM_PATH", false, "the ROCm installation" },
    { "HIP_PATH", false, "the same for HIP" },
    { "OMP_NUM_THREADS", false, "OpenMP" },
    { "OMP_PROC_BIND", false, "OpenMP" },
    { "OMP_PLACES", false, "OpenMP" },
    { "OMP_SCHEDULE", false, "OpenMP" },
    { "OMP_STACKSIZE", false, "OpenMP" },
    { "MKL_NUM_THREADS", false, "threads of Intel MKL" },
    { "OPENBLAS_NUM_THREADS", false, "threads of OpenBLAS" },
    { "PYTHONPATH", false, "Python modules that kernels or wrappers import" },
    { "PYTHONHOME", false, "the Python installation" },
    { "PYTHONNOUSERSITE", false, "whether Python takes ~/.local" },
    { "CONDA_PREFIX", false, "the active conda environment" },
    { "CONDA_DEFAULT_ENV", false, "its name" },
    { "VIRTUAL_ENV", false, "the active Python virtual environment" },
    { "MODULEPATH", false, "where `module` looks" },
    { "LOADEDMODULES", false, "what `module list` shows" },
    { "_LMFILES_", false, "the files of those modules" },
    { "LANG", false, "locale" },
    { "LC_ALL", false, "locale" },
    { NULL, false, NULL },
};

/* ---- the environment ---- */

static void add_variable(struct pin *p, const char *name, const char *value)
{
    struct pin_variable *v;

    for (size_t i = 0; i < p->variables.n; i++)
        if (str_eq(p->variables.v[i].name, name))
            return;
    v = VEC_ADD(&p->variables);
    v->name = xstrdup(name);
    v->how = value ? PIN_SET : PIN_UNSET;
    v->value = xstrdup(value);
}

/* "NCCL_*": every variable whose name begins so. */
static void add_pattern(struct pin *p, const char *pattern, char *const *env)
{
    size_t n = strlen(pattern) - 1;

    for (; env && *env; env++) {
        const char *eq = strchr(*env, '=');
        char *name;

        if (!eq || (size_t)(eq - *env) < n || strncmp(*env, pattern, n))
            continue;
        name = xstrndup(*env, (size_t)(eq - *env));
        add_variable(p, name, eq + 1);
        free(name);
    }
}

void pin_steady_environment(char *const *env, struct strv *ret)
{
    const char *path = env ? env_get(env, "LD_LIBRARY_PATH") : NULL;
    struct strv parts = { 0 };
    struct str t = { 0 };

    for (; env && *env; env++)
        strv_add(ret, *env);
    if (!path)
        return;
    strv_split(&parts, path, ":;");
    for (size_t i = 0; i < parts.n; i++)
        if (*parts.v[i])
            str_addf(&t, "%s%s", t.len ? ":" : "", parts.v[i]);
    env_set(ret, "LD_LIBRARY_PATH", t.len ? t.s : NULL);
    str_release(&t);
    strv_release(&parts);
}

void pin_add_variables(struct pin *p, const struct pin_request *r)
{
    for (const struct pin_default *d = pin_default_variables; d->name; d++) {
        const char *value = r->env ? env_get(r->env, d->name) : NULL;

        if (value || d->always)
            add_variable(p, d->name, value);
    }
    for (size_t i = 0; i < r->variables.n; i++) {
        const char *name = r->variables.v[i];

        if (str_ends(name, "*"))
            add_pattern(p, name, r->env);
        else
            add_variable(p, name, r->env ? env_get(r->env, name) : NULL);
    }
}

void pin_add_setting(struct pin *p, char *const *env, const char *prefix)
{
    const char *loaded = env ? env_get(env, "LOADEDMODULES") : NULL;
    struct strv names = { 0 };

    if (loaded)
        strv_split(&names, loaded, ":");
    for (size_t i = 0; i < names.n; i++)
        if (*names.v[i])
            strv_add(&p->modules, names.v[i]);
    strv_release(&names);
    if (env && !prefix)
        prefix = env_get(env, "VIRTUAL_ENV") ? env_get(env, "VIRTUAL_ENV") : env_get(env, "CONDA_PREFIX");
    free(p->prefix);
    p->prefix = xstrdup(prefix ? prefix : "");
}

/* ---- this host ---- */

static int64_t limit_of(int which)
{
    struct rlimit l;

    if (getrlimit((__rlimit_resource_t)which, &l))
        return CONF_UNSET;
    return l.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)l.rlim_cur;
}

/* /proc tells the umask without changing it for an instant. */
static char *umask_text(void)
{
    struct str t = { 0 };
    char *found = NULL, *line;

    if (file_read("/proc/self/status", 1 << 16, &t, NULL) == 0 && (line = strstr(t.s, "\nUmask:"))) {
        line += strlen("\nUmask:");
        line += strspn(line, " \t");
        found = xstrndup(line, strcspn(line, "\n"));
    }
    str_release(&t);
    return found;
}

void pin_add_host(struct pin *p)
{
    char host[256] = "", when[32];

    gethostname(host, sizeof(host) - 1);
    clock_iso(when);
    if (strchr(when, '.'))
        strcpy(strchr(when, '.'), "Z"); /* seconds are enough */
    p->captured.node = xstrdup(host);
    p->captured.time = xstrdup(when);
    p->captured.recon = xstrdup(PACKAGE_VERSION);
    p->captured.umask = umask_text();
    p->limits.memlock = limit_of(RLIMIT_MEMLOCK);
    p->limits.open_files = limit_of(RLIMIT_NOFILE);
}

char *pin_loader_file(const char *interp, const struct loader *l)
{
    return loader_is_musl(interp) ? loader_musl_list(interp) : xstrdup(l->cache_path);
}

void pin_add_loader(struct pin *p, const char *path, const struct loader *l, bool reusable)
{
    struct object o;
    struct stat st;
    char *file;

    if (!path)
        return;
    p->loader.path = xstrdup(path);
    if (!loader_is_musl(path))
        strv_copy(&p->loader.hwcaps, &l->hwcaps);
    file = pin_loader_file(path, l);
    if (file && stat(file, &st) == 0) {
        p->loader.cache_size = st.st_size;
        p->loader.cache_mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    free(file);
    if (reusable && object_read(path, false, &o, NULL) == 0) {
        p->loader.build_id = xstrdup(o.build_id);
        object_release(&o);
    }
}
