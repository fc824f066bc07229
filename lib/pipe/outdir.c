#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pipe/pipe.h"

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0777 & ~mask;
}

int outdir_begin(const char *path, struct outdir *ret, struct err *err)
{
    struct stat st;
    char *parent;

    *ret = (struct outdir){ .path = path_absolute(path) };
    parent = path_dir(ret->path);
    if (stat(ret->path, &st) == 0) {
        ret->existed = true;
        if (!S_ISDIR(st.st_mode)) {
            err_set(err, CODE_CREATE, "output folder '%s' is no folder", path);
            goto fail;
        }
        ret->work = path_join(ret->path, ".recon-run.XXXXXX");
    } else {
        if (dir_make(parent, 0777, err))
            goto fail;
        ret->work = xasprintf("%s/.%s.XXXXXX", str_eq(parent, "/") ? "" : parent, path_base(ret->path));
    }
    if (!mkdtemp(ret->work) || chmod(ret->work, usual_mode())) {
        err_sys(err, CODE_CREATE, "cannot create a folder in '%s'", ret->existed ? ret->path : parent);
        goto fail;
    }
    free(parent);
    return 0;
fail:
    free(parent);
    free(ret->path);
    free(ret->work);
    *ret = (struct outdir){ 0 };
    return -1;
}

/* Every file below from into the same place below to, each by one rename. */
static int move_all(const char *from, const char *to, struct err *err)
{
    struct dirent *e;
    DIR *d = opendir(from);
    int rc = 0;

    if (!d)
        return err_sys(err, CODE_IO, "cannot read folder '%s'", from);
    while (rc == 0 && (e = readdir(d))) {
        char *source = path_join(from, e->d_name), *target = path_join(to, e->d_name);
        struct stat st;

        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            ;
        else if (lstat(source, &st) == 0 && S_ISDIR(st.st_mode) && (rename(source, target) == 0 ||
                                                                    errno == ENOTEMPTY || errno == EEXIST))
            rc = access(source, F_OK) ? 0 : move_all(source, target, err);
        else if (rename(source, target))
            rc = err_sys(err, CODE_CREATE, "cannot rename '%s' to '%s'", source, target);
        free(source);
        free(target);
    }
    closedir(d);
    return rc;
}

int outdir_publish(struct outdir *o, struct err *err)
{
    int rc = 0;

    if (o->existed || rename(o->work, o->path)) {
        if (!o->existed && errno != ENOTEMPTY && errno != EEXIST)
            rc = err_sys(err, CODE_CREATE, "cannot rename '%s' to '%s'", o->work, o->path);
        else
            rc = move_all(o->work, o->path, err);
    }
    outdir_abort(o);
    return rc;
}

void outdir_abort(struct outdir *o)
{
    if (o->work)
        dir_remove(o->work);
    free(o->path);
    free(o->work);
    *o = (struct outdir){ 0 };
}
