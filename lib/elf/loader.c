#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "elf/elf_priv.h"

/* What the distributions' loaders are built with; used where no loader can be asked. */
static const struct machine_row {
    const char *machine, *path, *debian; /* debian: its multiarch folder */
} machines[] = {
    { "x86_64", "/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu" },
    { "aarch64", "/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu" },
    { "ppc64le", "/lib64/ld64.so.2", "powerpc64le-linux-gnu" },
    { "s390x", "/lib/ld64.so.1", "s390x-linux-gnu" },
    { "riscv64", "/lib/ld-linux-riscv64-lp64d.so.1", "riscv64-linux-gnu" },
};

static const struct machine_row *machine_row(const char *machine)
{
    for (size_t i = 0; i < COUNT(machines); i++)
        if (str_eq(machines[i].machine, machine))
            return &machines[i];
    return &machines[0];
}

static void read_preload(struct loader *l)
{
    char *path = root_path(l->root, "/etc/ld.so.preload");
    struct str t = { 0 };

    if (access(path, R_OK) == 0 && file_read(path, 1 << 20, &t, NULL) == 0)
        l->preload = str_take(&t);
    str_release(&t);
    free(path);
}

void loader_default(const char *root, const char *machine, struct loader *ret)
{
    const struct machine_row *row = machine_row(machine);
    char *multiarch = xasprintf("/usr/lib/%s", row->debian), *there = root_path(root, multiarch);

    memset(ret, 0, sizeof(*ret));
    ret->root = xstrdup(root);
    ret->path = xstrdup(row->path);
    ret->platform = xstrdup(machine);
    ret->cache_path = xstrdup("/etc/ld.so.cache");
    if (access(there, F_OK) == 0) {
        ret->lib = xasprintf("lib/%s", row->debian);
        strv_addf(&ret->dirs, "/lib/%s", row->debian);
        strv_addf(&ret->dirs, "/usr/lib/%s", row->debian);
        strv_add(&ret->dirs, "/lib");
        strv_add(&ret->dirs, "/usr/lib");
    } else {
        ret->lib = xstrdup("lib64");
        strv_add(&ret->dirs, "/lib64");
        strv_add(&ret->dirs, "/usr/lib64");
    }
    read_preload(ret);
    free(there);
    free(multiarch);
}

void loader_legacy(struct loader *l, const char *glibc)
{
    const char *p = l->platform;

    const char *names[4]; /* the first counts most */
    size_t n = 0;

    strv_release(&l->legacy);
    if (!glibc || !p || version_cmp(glibc, "2.37") >= 0)
        return;
    names[n++] = "tls";
    names[n++] = p;
    /* glibc calls an Intel CPU haswell; one with the x86-64-v4 instructions has the capability avx512_1, too */
    if (str_eq(p, "haswell") && strv_has(&l->hwcaps, "x86-64-v4"))
        names[n++] = "avx512_1";
    if (str_eq(p, "x86_64") || str_eq(p, "haswell") || str_eq(p, "xeon_phi"))
        names[n++] = "x86_64";
    for (unsigned set = (1u << n) - 1; set; set--) { /* bit n-1: the first name */
        struct str t = { 0 };

        for (size_t i = 0; i < n; i++)
            if (set >> (n - 1 - i) & 1)
                str_addf(&t, "%s%s", t.len ? "/" : "", names[i]);
        if (!strv_has(&l->legacy, t.s))
            strv_add(&l->legacy, t.s);
        str_release(&t);
    }
}

/* ---- ld.so --list-diagnostics: lines NAME="value" and NAME[0x0]="value" ---- */

static char *unquoted(const char *s)
{
    struct str t = { 0 };

    for (s += *s == '"'; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1])
            s++;
        str_addn(&t, s, 1);
    }
    return str_take(&t);
}

static void set(char **field, const char *value)
{
    free(*field);
    *field = unquoted(value);
}

/* names "a:b:c" best first; bit i of the mask: this CPU takes the i-th. */
static void active_names(const char *names, uint64_t mask, struct strv *ret)
{
    struct strv all = { 0 };

    strv_split(&all, names, ":");
    for (size_t i = 0; i < all.n && i < 64; i++)
        if (*all.v[i] && (mask >> i & 1))
            strv_add(ret, all.v[i]);
    strv_release(&all);
}

static void without_slash(char *s)
{
    size_t n = strlen(s);

    while (n > 1 && s[n - 1] == '/')
        s[--n] = '\0';
}

static void diagnostics_line(struct loader *l, char *line, char **names, uint64_t *mask, char **glibc)
{
    char *value = strchr(line, '='), *dir, *etc = NULL;

    if (!value)
        return;
    *value++ = '\0';
    if (str_eq(line, "dl_dst_lib"))
        set(&l->lib, value);
    else if (str_eq(line, "dl_platform"))
        set(&l->platform, value);
    else if (str_eq(line, "dl_hwcaps_subdirs"))
        set(names, value);
    else if (str_eq(line, "dl_hwcaps_subdirs_active"))
        *mask = strtoull(value, NULL, 0);
    else if (str_eq(line, "version.version"))
        set(glibc, value);
    else if (str_eq(line, "path.rtld"))
        set(&l->path, value);
    else if (str_eq(line, "path.sysconfdir")) {
        set(&etc, value);
        free(l->cache_path);
        l->cache_path = xasprintf("%s/ld.so.cache", etc);
        free(etc);
    } else if (str_starts(line, "path.system_dirs[")) {
        dir = unquoted(value);
        without_slash(dir);
        strv_add(&l->dirs, dir);
        free(dir);
    }
}

static int parse_diagnostics(char *text, struct loader *ret)
{
    struct loader l = { .root = xstrdup("") };
    char *names = NULL, *glibc = NULL, *save = NULL;
    uint64_t mask = 0;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        diagnostics_line(&l, line, &names, &mask, &glibc);
    if (names)
        active_names(names, mask, &l.hwcaps);
    loader_legacy(&l, glibc);
    free(names);
    free(glibc);
    if (!l.dirs.n || !l.lib) {
        loader_release(&l);
        return -1;
    }
    if (!l.cache_path)
        l.cache_path = xstrdup("/etc/ld.so.cache");
    *ret = l;
    return 0;
}

int loader_probe_path(const char *path, struct loader *ret, struct err *err)
{
    const char *const argv[] = { path, "--list-diagnostics", NULL };
    struct child c = { .argv = argv, .deadline_ms = 2000, .max_output = 1 << 20 };
    int rc = child_run(&c, err);

    if (rc == 0 && (c.status != 0 || !c.out.s || parse_diagnostics(c.out.s, ret)))
        rc = err_set(err, CODE_UNAVAILABLE, "'%s' does not tell its search path (glibc before 2.33)", path);
    if (rc == 0) {
        free(ret->path);
        ret->path = xstrdup(path);
        read_preload(ret);
    }
    str_release(&c.out);
    str_release(&c.errout);
    return rc;
}

int loader_probe(struct loader *ret, struct err *err)
{
    const struct machine_row *row;
    struct utsname u;

    if (uname(&u))
        return err_sys(err, CODE_INTERNAL, "cannot tell this machine's kind");
    row = machine_row(u.machine);
    if (loader_probe_path(row->path, ret, NULL) == 0)
        return 0;
    loader_default("", row->machine, ret);
    return 0;
}

void loader_release(struct loader *l)
{
    free(l->root);
    strv_release(&l->dirs);
    strv_release(&l->hwcaps);
    strv_release(&l->legacy);
    free(l->lib);
    free(l->platform);
    free(l->cache_path);
    free(l->preload);
    free(l->path);
    memset(l, 0, sizeof(*l));
}
