#include "config.h"
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    static const struct name kinds[] = { { "a directory", S_IFDIR },        { "a FIFO", S_IFIFO },
                                         { "a socket", S_IFSOCK },          { "a character device", S_IFCHR },
                                         { "a block device", S_IFBLK },     { NULL, 0 } };
    const char *name = name_of(kinds, (int)(mode & S_IFMT));

    return name ? name : "not a regular file";
}

static int code_of_open(void)
{
    if (errno == ENOENT || errno == ENOTDIR)
        return CODE_NOTFOUND;
    return errno == EACCES || errno == EPERM ? CODE_PERM : CODE_IO;
}

int file_read_fd(int fd, const char *name, size_t max, struct str *ret, struct err *err)
{
    char block[65536];
    size_t start = ret->len;
    ssize_t n;

    while ((n = read(fd, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, CODE_IO, "cannot read '%s'", name);
        if (ret->len - start + (size_t)n > max)
            return err_set(err, CODE_IO, "'%s' is larger than %zu bytes, the most that is read", name, max);
        str_addn(ret, block, (size_t)n);
    }
    str_addn(ret, "", 0);
    return 0;
}

int file_read(const char *path, size_t max, struct str *ret, struct err *err)
{
    struct stat st;
    int fd, rc;

    place_at(path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_sys(err, code_of_open(), "cannot open '%s'", path);
    if (fstat(fd, &st) < 0)
        rc = err_sys(err, CODE_IO, "cannot stat '%s'", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(err, CODE_IO, "'%s' is %s, a regular file is wanted", path, kind_of(st.st_mode));
    else
        rc = file_read_fd(fd, path, max, ret, err);
    close(fd);
    return rc;
}

/* ---- written whole or not at all ---- */

/* Opens a fresh file of a random name beside the path; the umask narrows the mode, as for any file of the user. */
static int open_fresh(struct file_out *o, mode_t mode)
{
    char *dir = path_dir(o->path);
    uint64_t random = 0;
    int fd = -1;

    for (int tries = 0; tries < 100 && fd < 0; tries++) {
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            random = (uint64_t)(clock_ms() * 1e6) ^ (uint64_t)getpid() << 40;
        free(o->tmp);
        o->tmp = xasprintf("%s/.%s.%012llx", dir, path_base(o->path), (unsigned long long)random & 0xffffffffffff);
        fd = open(o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    free(dir);
    return fd;
}

int file_open_out(struct file_out *o, const char *path, mode_t mode, struct err *err)
{
    int fd;

    *o = (struct file_out){ .path = xstrdup(path) };
    fd = open_fresh(o, mode);
    if (fd < 0 || !(o->f = fdopen(fd, "w"))) {
        err_sys(err, CODE_CREATE, "cannot create '%s'", path);
        if (fd >= 0)
            close(fd);
        else {
            free(o->tmp);
            o->tmp = NULL;
        }
        file_abort(o);
        return -1;
    }
    return 0;
}

int file_commit(struct file_out *o, struct err *err)
{
    int rc = 0;

    if (fflush(o->f) || ferror(o->f) || fsync(fileno(o->f)))
        rc = err_sys(err, CODE_IO, "cannot write '%s'", o->path);
    if (fclose(o->f) && rc == 0)
        rc = err_sys(err, CODE_IO, "cannot write '%s'", o->path);
    o->f = NULL;
    if (rc == 0 && rename(o->tmp, o->path))
        rc = err_sys(err, CODE_CREATE, "cannot rename '%s' to '%s'", o->tmp, o->path);
    if (rc == 0) {
        free(o->tmp);
        o->tmp = NULL;
    }
    file_abort(o);
    return rc;
}

void file_abort(struct file_out *o)
{
    if (o->f)
        fclose(o->f);
    if (o->tmp)
        unlink(o->tmp);
    free(o->tmp);
    free(o->path);
    *o = (struct file_out){ 0 };
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *err)
{
    struct file_out o;

    if (file_open_out(&o, path, mode, err))
        return -1;
    if (len)
        fwrite(data, 1, len, o.f); /* a failure sticks to the stream and shows in file_commit */
    return file_commit(&o, err);
}

/* ---- trust ---- */

static bool owner_trusted(uid_t uid, const uid_t *trusted)
{
    if (uid == 0 || uid == geteuid())
        return true;
    for (; trusted && *trusted != (uid_t)-1; trusted++)
        if (*trusted == uid)
            return true;
    return false;
}

static int part_trusted(const char *path, bool parent, const uid_t *trusted, struct err *err)
{
    struct stat st;
    bool sticky;

    if (stat(path, &st))
        return err_sys(err, code_of_open(), "cannot stat '%s'", path);
    sticky = parent && st.st_uid == 0 && (st.st_mode & S_ISVTX);
    if (!owner_trusted(st.st_uid, trusted))
        return err_set(err, CODE_PERM,
                       "'%s' belongs to uid %ld, wanted root, uid %ld or one of trusted_owners; chown it or copy it",
                       path, (long)st.st_uid, (long)geteuid());
    if ((st.st_mode & S_IWOTH) && !sticky)
        return err_set(err, CODE_PERM, "'%s' is writable by others (mode %04o): chmod o-w it", path,
                       (unsigned)st.st_mode & 07777);
    if ((st.st_mode & S_IWGRP) && !sticky && geteuid() == 0)
        return err_set(err, CODE_PERM, "'%s' is writable by its group (mode %04o), refused as root: chmod g-w it",
                       path, (unsigned)st.st_mode & 07777);
    return 0;
}

int file_trusted(const char *path, const uid_t *trusted, struct err *err)
{
    char *whole = realpath(path, NULL), *slash;
    int rc;

    if (!whole)
        return err_sys(err, code_of_open(), "cannot resolve '%s'", path);
    rc = part_trusted(whole, false, trusted, err);
    while (rc == 0 && (slash = strrchr(whole, '/')) && whole[1]) {
        slash[slash == whole] = 0;
        rc = part_trusted(whole, true, trusted, err);
    }
    free(whole);
    return rc;
}

/* ---- folders ---- */

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
    char *copy = xstrdup(path);
    int rc = 0;

    for (char *p = copy + 1; rc == 0; p++) {
        char c = *p;

        if (c != '/' && c != 0)
            continue;
        *p = 0;
        if (mkdir(copy, mode)) {
            int why = errno; /* EEXIST, but also EROFS and EACCES, may stand for a folder that is there */

            if (!is_dir(copy)) {
                errno = why == EEXIST ? ENOTDIR : why;
                rc = err_sys(err, CODE_CREATE, "cannot create folder '%s'", copy);
            }
        }
        *p = c;
        if (!c)
            break;
    }
    free(copy);
    return rc;
}

static int remove_at(int parent, const char *name)
{
    int fd, rc = 0;
    struct dirent *e;
    DIR *d;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -1;
    }
    while ((e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && remove_at(dirfd(d), e->d_name))
            rc = -1;
    closedir(d);
    return unlinkat(parent, name, AT_REMOVEDIR) || rc ? -1 : 0;
}

int dir_remove(const char *path)
{
    return remove_at(AT_FDCWD, path);
}
