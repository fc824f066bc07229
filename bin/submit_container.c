/* A container's image at submission: there, and the one that was pinned. */
#include "config.h"
#include "recon-submit.h"

#include <stdlib.h>
#include <sys/stat.h>

#define DIGEST_MS 1800000.0 /* an image of many GB from a slow file system */

/* By coreutils, which reads an image of GB as fast as the file system gives it. "sha256:<64 hex>", owned; NULL with err. */
static char *image_digest(const char *path, struct err *err)
{
    const char *argv[] = { "sha256sum", "--", path, NULL };
    struct child c = { .argv = argv, .env = (char *[]){ (char *)(uintptr_t)"PATH=/usr/bin:/bin", NULL }, .search = true,
                       .deadline_ms = DIGEST_MS };
    char *digest = NULL;
    const char *hex;

    if (child_run(&c, err) == 0) {
        hex = c.out.len ? c.out.s + (*c.out.s == '\\') : "";
        if (c.status || strspn(hex, "0123456789abcdef") != 64)
            err_set(err, CODE_IO, "cannot digest '%s': %s", path, c.errout.len ? c.errout.s : "sha256sum gave none");
        else
            digest = xasprintf("sha256:%.64s", hex);
    }
    str_release(&c.out);
    str_release(&c.errout);
    return digest;
}

int container_settle(struct order *x, struct err *err)
{
    struct spec_container *c = &x->spec.container;
    struct stat st;
    char *digest;

    if (c->kind <= CONTAINER_NONE)
        return 0;
    if (container_unpinned(c))
        cli_warn("image '%s' names no digest (NAME@sha256:...): what runs may change from one task to the next", c->image);
    if (!container_is_file(c))
        return 0;
    if (stat(c->image, &st))
        return err_sys(err, CODE_USAGE, "cannot find image '%s'", c->image);
    if (!S_ISREG(st.st_mode)) {
        cli_warn("image '%s' is no file, and its content is not pinned", c->image);
        return 0;
    }
    digest = image_digest(c->image, err);
    if (!digest)
        return -1;
    if (c->digest && !str_eq(c->digest, digest)) {
        err_set(err, CODE_USAGE, "image '%s' is %s, pinned was %s; --set container.digest=%s takes it as it is", c->image,
                digest, c->digest, digest);
        free(digest);
        return -1;
    }
    free(c->digest);
    c->digest = digest;
    return 0;
}

static void add_bind(struct strv *l, const char *path)
{
    if (!strv_has(l, path))
        strv_add(l, path);
}

void container_binds(struct order *x, const char *chdir, struct strv *ret)
{
    static const char *const parts[] = { "bin/recon-launch", "bin/recon-run", "lib/recon", "libexec/recon", "share/recon" };

    if (x->spec.container.kind <= CONTAINER_NONE)
        return;
    add_bind(ret, x->path);
    add_bind(ret, chdir);
    for (size_t i = 0; i < COUNT(parts); i++) { /* not the prefix, which may be the image's own /usr */
        char *path = path_part(parts[i]);

        add_bind(ret, path);
        free(path);
    }
}
