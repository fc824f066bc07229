/* The facts that the files of another root tell: system, loader's folders, version nodes of its libraries. Nothing of this
 * host goes in, and nothing of the root is run: processors, GPUs and limits stay unknown. */
#include "config.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include "check_root.h"
#include "elf/elf.h"

/* libc's own words, "GNU C Library ... release version 2.31.": a release need not have a version node. owned, NULL none. */
static char *glibc_of(const char *file)
{
    static const char before[] = "release version ";
    struct str t = { 0 };
    const char *at = NULL;
    char *version = NULL;

    if (file_read(file, (size_t)64 << 20, &t, NULL) == 0 && t.len)
        at = memmem(t.s, t.len, before, sizeof(before) - 1);
    if (at) {
        at += sizeof(before) - 1;
        version = xstrndup(at, strspn(at, "0123456789.") - (at[strspn(at, "0123456789.") - 1] == '.'));
    }
    str_release(&t);
    return version;
}

/* The library as the root's loader finds it in its own folders; its version nodes. */
static void read_library(const struct loader *l, const char *soname, struct facts *f)
{
    static char *const nothing[] = { NULL };

    for (size_t i = 0; i < l->dirs.n; i++) {
        char *path = path_join(l->dirs.v[i], soname);
        struct closure c = { 0 };
        bool found = closure_resolve(path, nothing, "/", l, false, NULL, &c, NULL) == 0 && c.libs.n && c.libs.v[0].object.path;
        struct facts_library *lib = found ? VEC_ADD(&f->libraries) : NULL;

        for (size_t v = 0; lib && v < c.libs.v[0].object.versions.n; v++)
            if (!str_eq(c.libs.v[0].object.versions.v[v], c.libs.v[0].object.soname))
                strv_add(&lib->versions, c.libs.v[0].object.versions.v[v]);
        if (lib) {
            lib->soname = xstrdup(soname);
            lib->path = xstrdup(path);
            if (str_eq(soname, "libc.so.6"))
                f->os.glibc = glibc_of(c.libs.v[0].object.path);
        }
        closure_release(&c);
        free(path);
        if (found)
            return;
    }
}

void check_root_facts(const char *root, struct facts *ret)
{
    static const char *const names[] = { "libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1" };
    struct utsname u = { 0 };
    struct loader l;

    facts_minimal(ret);
    uname(&u);
    free(ret->node);
    free(ret->boot_id);
    free(ret->os.kernel);
    ret->node = xstrdup(root);
    ret->boot_id = ret->os.kernel = NULL;
    facts_os_release(root, ret);
    loader_default(root, u.machine, &l);
    ret->loader.path = xstrdup(l.path);
    strv_copy(&ret->loader.dirs, &l.dirs);
    ret->loader.lib = xstrdup(l.lib);
    ret->loader.preload = xstrdup(l.preload);
    for (size_t i = 0; i < COUNT(names); i++)
        read_library(&l, names[i], ret);
    loader_release(&l);
}
