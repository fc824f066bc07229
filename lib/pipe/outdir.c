#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pipe/pipe.h"

#define RANDOM_LENGTH 6 /* of mkdtemp */

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0777 & ~mask;
}

/* Names of private folders hold this boot of the host, since a lock may be known on its host only. Owned. */
static char *private_prefix(const struct outdir *o)
{
    struct str boot = { 0 };
    char *name;

    if (file_read("/proc/sys/kernel/random/boot_id", 64, &boot, NULL) || boot.len < 8)
        str_add(&boot, "unknown-");
    name = xasprintf(".%.200s.%.8s.", o->existed ? "recon-run" : path_base(o->path), boot.s);
    str_release(&boot);
    return name;
}

/* A leftover: of this user, of this name, and locked by nobody. It is held while it is removed. */
static void remove_if_dead(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
        dir_remove(path);
    if (fd >= 0)
        close(fd);
}

static void remove_leftovers(const char *dir, const char *prefix)
{
    struct strv found = { 0 };
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (str_starts(e->d_name, prefix) && strlen(e->d_name) == strlen(prefix) + RANDOM_LENGTH)
            strv_add(&found, e->d_name);
    if (d)
        closedir(d);
    for (size_t i = 0; i < found.n; i++) {
        char *path = path_join(dir, found.v[i]);

        remove_if_dead(path);
        free(path);
    }
    strv_release(&found);
}

/* Made and locked. Between the two another run may take it for a leftover: then it is made again. */
static int make_private(struct outdir *o, const char *dir, const char *prefix)
{
    struct stat here, held;

    for (int tries = 0; tries < 100; tries++) {
        char *name = xasprintf("%sXXXXXX", prefix);

        free(o->work);
        o->work = path_join(dir, name);
        free(name);
        if (!mkdtemp(o->work))
            return -1;
        o->lock = open(o->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (o->lock >= 0 && (flock(o->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
            stat(o->work, &here) == 0 && fstat(o->lock, &held) == 0 && here.st_ino == held.st_ino)
            return chmod(o->work, usual_mode());
        if (o->lock >= 0)
            close(o->lock);
    }
    return -1;
}

int outdir_begin(const char *path, struct outdir *ret, struct err *err)
{
    char *parent, *prefix = NULL;
    const char *dir;
    struct stat st;

    *ret = (struct outdir){ .path = path_absolute(path) };
    parent = path_dir(ret->path);
    ret->existed = stat(ret->path, &st) == 0;
    dir = ret->existed ? ret->path : parent;
    if (ret->existed && !S_ISDIR(st.st_mode)) {
        err_set(err, CODE_CREATE, "output folder '%s' is no folder", path);
        goto fail;
    }
    if (!ret->existed && dir_make(parent, 0777, err))
        goto fail;
    prefix = private_prefix(ret);
    remove_leftovers(dir, prefix);
    if (make_private(ret, dir, prefix)) {
        err_sys(err, CODE_CREATE, "cannot create a folder in '%s'", dir);
        goto fail;
    }
    free(prefix);
    free(parent);
    return 0;
fail:
    free(prefix);
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
    if (o->work) {
        dir_remove(o->work);
        close(o->lock);
    }
    free(o->path);
    free(o->work);
    *o = (struct outdir){ 0 };
}
