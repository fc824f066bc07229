/* What musl's loader does otherwise than glibc's: ldso/dynlink.c of musl 1.2.3, in the words of doc/elf.md. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "elf/elf_priv.h"

static const char stem[] = "ld-musl-";

bool loader_is_musl(const char *interp)
{
    return interp && str_starts(path_base(interp), stem);
}

static void default_dirs(struct loader *l, const char *file)
{
    char *host = root_path(l->root, file);
    struct strv dirs = { 0 };
    struct str t = { 0 };

    if (access(host, F_OK))
        str_add(&t, errno == ENOENT ? "/lib:/usr/local/lib:/usr/lib" : "");
    else if (file_read(host, 1 << 20, &t, NULL)) /* one that cannot be read is an empty one */
        str_release(&t);
    if (t.s)
        strv_split(&dirs, t.s, ":\n");
    for (size_t i = 0; i < dirs.n; i++)
        if (*dirs.v[i])
            strv_add(&l->dirs, dirs.v[i]);
    strv_release(&dirs);
    str_release(&t);
    free(host);
}

char *loader_musl_list(const char *interp)
{
    const char *arch = path_base(interp) + sizeof(stem) - 1;
    char *dir = path_dir(interp), *prefix = path_dir(dir); /* of PREFIX/lib/ld-musl-ARCH.so.1 */
    char *file = xasprintf("%s/etc/ld-musl-%.*s.path", str_eq(prefix, "/") ? "" : prefix, (int)strcspn(arch, "."), arch);

    free(prefix);
    free(dir);
    return file;
}

void loader_musl(const char *root, const char *interp, struct loader *ret)
{
    char *file = loader_musl_list(interp);

    memset(ret, 0, sizeof(*ret));
    ret->root = xstrdup(root);
    ret->path = xstrdup(interp);
    ret->musl = true;
    default_dirs(ret, file);
    free(file);
}

bool musl_own_name(const char *name)
{
    static const char *const parts[] = { "c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet." };

    for (size_t i = 0; str_starts(name, "lib") && i < COUNT(parts); i++)
        if (str_starts(name + 3, parts[i]))
            return true;
    return false;
}

char *musl_run_path(const char *path, const char *origin, bool no_origin)
{
    struct str t = { 0 };

    str_add(&t, "");
    while (*path) {
        size_t n = strcspn(path, "$"), token;

        str_addn(&t, path, n);
        path += n;
        if (!*path)
            break;
        token = str_starts(path, "$ORIGIN") ? 7 : str_starts(path, "${ORIGIN}") ? 9 : 0;
        if (!token || no_origin) { /* the whole path is then none */
            str_release(&t);
            return NULL;
        }
        str_add(&t, origin);
        path += token;
    }
    return str_take(&t);
}

void search_adopt(struct search *s, const char *interp)
{
    s->c->musl = loader_is_musl(interp);
    if (!s->c->musl || s->l->musl)
        return;
    loader_musl(s->l->root, interp, &s->own);
    s->l = &s->own;
}
