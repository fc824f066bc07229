#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include "pipe/pipe.h"

#define SUFFIX ".so"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct module *)a)->name, ((const struct module *)b)->name);
}

static int abi_differs(const struct module *m, const char *what, uint32_t abi, struct err *err)
{
    return err_set(err, CODE_JOB,
                   "kernel module '%s'%s%s has ABI %u, this recon-run takes ABI %u: build it against this recon's "
                   "recon/kernel.h",
                   m->path, *what ? ", " : "", what, (unsigned)abi, RECON_KERNEL_ABI);
}

/* ABI first: of a module with another, nothing else may be read. */
static int judge(struct module *m, const struct recon_module *r, struct err *err)
{
    if (r->abi != RECON_KERNEL_ABI)
        return abi_differs(m, "", r->abi, err);
    if (r->device && r->device->abi != RECON_KERNEL_ABI)
        return abi_differs(m, "its device", r->device->abi, err);
    for (const struct recon_kernel *const *k = r->kernels; k && *k; k++)
        if ((*k)->abi != RECON_KERNEL_ABI)
            return abi_differs(m, "a kernel of it", (*k)->abi, err);
    m->m = r;
    return 0;
}

static int open_module(struct module *m, struct err *err)
{
    const struct recon_module *r;
    struct err bad = { 0 };
    const char *why;
    void *handle;

    if (file_trusted(m->path, NULL, err))
        return -1;
    if (object_check(m->path, &bad)) {
        m->why = xstrdup(bad.text);
        return 0;
    }
    handle = dlopen(m->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        why = dlerror();
        m->why = xstrdup(why ? why : "it cannot be loaded");
        return 0;
    }
    r = dlsym(handle, "recon_module");
    if (!r) {
        m->why = xasprintf("'%s' exports no recon_module", m->path);
        return 0;
    }
    return judge(m, r, err);
}

int modules_load(const char *dir, struct modules *ret, struct err *err)
{
    struct dirent *e;
    int rc = 0;
    DIR *d;

    *ret = (struct modules){ .dir = dir ? xstrdup(dir) : path_part("lib/recon") };
    d = opendir(ret->dir);
    if (!d)
        return err_sys(err, errno == ENOENT || errno == ENOTDIR ? CODE_USAGE : CODE_IO,
                       "cannot open kernel folder '%s'", ret->dir);
    while ((e = readdir(d))) {
        struct module *m;

        if (e->d_name[0] == '.' || !str_ends(e->d_name, SUFFIX))
            continue;
        m = VEC_ADD(ret);
        m->name = xstrndup(e->d_name, strlen(e->d_name) - strlen(SUFFIX));
        m->path = path_join(ret->dir, e->d_name);
    }
    closedir(d);
    if (ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
    for (size_t i = 0; i < ret->n && rc == 0; i++)
        rc = open_module(&ret->v[i], err);
    if (rc == 0 && ret->n == 0)
        rc = err_set(err, CODE_JOB, "kernel folder '%s' holds no module (*.so)", ret->dir);
    return rc;
}

void modules_release(struct modules *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->v[i].name);
        free(m->v[i].path);
        free(m->v[i].why);
    }
    free(m->v);
    free(m->dir);
    *m = (struct modules){ 0 };
}

const struct module *modules_named(const struct modules *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].name, name))
            return &m->v[i];
    return NULL;
}

static const struct recon_kernel *kernel_of(const struct module *m, const char *name)
{
    if (m && m->m)
        for (const struct recon_kernel *const *k = m->m->kernels; k && *k; k++)
            if (str_eq((*k)->name, name))
                return *k;
    return NULL;
}

const struct recon_kernel *modules_kernel(const struct modules *m, const struct module *first, const char *name,
                                          const struct module **ret_module)
{
    const struct module *cpu = modules_named(m, "cpu");
    const struct recon_kernel *k;

    *ret_module = first;
    if ((k = kernel_of(first, name)))
        return k;
    *ret_module = cpu;
    if ((k = kernel_of(cpu, name)))
        return k;
    for (size_t i = 0; i < m->n; i++) {
        *ret_module = &m->v[i];
        if (m->v[i].m && !m->v[i].m->device && !str_eq(m->v[i].name, "ref") && (k = kernel_of(&m->v[i], name)))
            return k;
    }
    *ret_module = NULL;
    return NULL;
}

/* ---- devices ---- */

static void device_set(struct device *ret, const struct module *m, int index)
{
    *ret = (struct device){ .module = m, .index = index };
    if (index < 0)
        snprintf(ret->name, sizeof(ret->name), "%s", m->name);
    else
        snprintf(ret->name, sizeof(ret->name), "%s:%d", m->name, index);
}

static int choose_auto(const struct modules *m, struct device *ret, struct err *err)
{
    const struct module *cpu = modules_named(m, "cpu");
    char why[256];

    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].m && m->v[i].m->device && m->v[i].m->device->count(why, sizeof(why)) > 0) {
            device_set(ret, &m->v[i], 0);
            return 0;
        }
    if (!cpu || !cpu->m) { /* a folder of a user's own modules: any host module will do */
        for (size_t i = 0; i < m->n && (!cpu || !cpu->m); i++)
            if (m->v[i].m && !m->v[i].m->device)
                cpu = &m->v[i];
        if (!cpu || !cpu->m)
            return err_set(err, CODE_NODE, "kernel module '%s' cannot be used: %s", cpu ? cpu->name : m->v[0].name,
                           cpu ? cpu->why : m->v[0].why ? m->v[0].why : "it has no device here");
    }
    device_set(ret, cpu, -1);
    return 0;
}

static int no_module(const struct modules *m, const char *name, const char *spec, struct err *err)
{
    struct str known = { 0 };

    for (size_t i = 0; i < m->n; i++)
        str_addf(&known, ", %s", m->v[i].name);
    err_set(err, str_eq(name, "cuda") || str_eq(name, "cpu") || str_eq(name, "ref") ? CODE_JOB : CODE_USAGE,
            "no kernel module for device '%s' in '%s', it has: auto%s", spec, m->dir, known.s ? known.s : "");
    str_release(&known);
    return -1;
}

int device_choose(const struct modules *m, const char *spec, struct device *ret, struct err *err)
{
    const char *colon = strchr(spec, ':');
    char *name = xstrndup(spec, strcspn(spec, ":"));
    const struct module *module = modules_named(m, name);
    char why[256] = "it tells none";
    int64_t index = 0;
    int rc = -1, have;

    if (str_eq(spec, "auto")) {
        rc = choose_auto(m, ret, err);
    } else if (!module) {
        no_module(m, name, spec, err);
    } else if (!module->m) {
        err_set(err, CODE_NODE, "kernel module '%s' cannot be used: %s", name, module->why);
    } else if (!module->m->device && colon) {
        err_set(err, CODE_USAGE, "device '%s': module '%s' runs on the host and has no numbers", spec, name);
    } else if (!module->m->device) {
        device_set(ret, module, -1);
        rc = 0;
    } else if (colon && (str_to_i64(colon + 1, &index) || index < 0 || index > 1023)) {
        err_set(err, CODE_USAGE, "device '%s': '%s' is no device number, wanted 0, 1, ...", spec, colon + 1);
    } else if ((have = module->m->device->count(why, sizeof(why))) <= 0) {
        err_set(err, CODE_NODE, "device '%s' is not here: %s", spec, why);
    } else if (index >= have) {
        err_set(err, CODE_NODE, "device '%s' is not here: this process sees %d", spec, have);
    } else {
        device_set(ret, module, (int)index);
        rc = 0;
    }
    free(name);
    return rc;
}
