/* What a boot does not change of a node (system, loader, processors, version nodes), kept for the next probe.
 *
 * One file a root file system and probe, below a folder that only this user or root can write. It begins with the boot id,
 * the processors online and the files and folders that the answer came from, each with its stamp; anything that is
 * otherwise now, or any doubt about the folder, and the file is as good as absent. GPUs, limits, TMPDIR and toolkits are
 * never kept: they are a job's. Writers do not wait for each other: each renames a whole file over the last one's. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "probe.h"

#define CACHE_MAX ((size_t)1 << 20)
#define SITE_DIR "/run/recon" /* root's, for everybody */

/* Whatever a change of these would change in the answer; besides them the loader, its folders, and the libraries. */
static const char *const inputs[] = { "/", "/etc/os-release", "/usr/lib/os-release", "/etc/ld.so.cache",
                                      "/etc/ld.so.preload" };

/* ---- the head of a file ---- */

/* "# stamp DEVICE INODE SIZE MTIME-NS PATH", or zeros for what is not there. */
static void add_stamp(struct str *t, const char *path)
{
    struct stat st = { 0 };

    if (!path || strpbrk(path, "\n"))
        return;
    if (stat(path, &st))
        st = (struct stat){ 0 };
    str_addf(t, "# stamp %" PRIu64 " %" PRIu64 " %lld %lld %s\n", (uint64_t)st.st_dev, (uint64_t)st.st_ino,
             S_ISDIR(st.st_mode) && str_eq(path, "/") ? 0LL : (long long)st.st_size,
             str_eq(path, "/") ? 0LL : (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec, path);
}

/* "/" is there to tell one root file system from another (a container's): its time says nothing. */
static void add_boot(struct str *t, const struct facts *f)
{
    char *online = first_line("/sys/devices/system/cpu/online");

    str_addf(t, "# boot %s\n# processors %s\n", f->boot_id ? f->boot_id : "", online ? online : "");
    free(online);
}

static void head_of(const struct facts *f, struct str *t)
{
    add_boot(t, f);
    for (size_t i = 0; i < COUNT(inputs); i++)
        add_stamp(t, inputs[i]);
    add_stamp(t, f->loader.path);
    for (size_t i = 0; i < f->loader.dirs.n; i++)
        add_stamp(t, f->loader.dirs.v[i]);
    for (size_t i = 0; i < f->libraries.n; i++)
        add_stamp(t, f->libraries.v[i].path);
}

/* Is the head of a kept text what it would be now? Its lines name what to look at. */
static bool head_holds(const char *text, const struct facts *now)
{
    struct str t = { 0 };
    const char *line = text, *path;
    bool same;

    add_boot(&t, now);
    same = str_starts(text, t.s);
    line += t.len;
    for (; same && str_starts(line, "# stamp "); line = strchr(line, '\n') + 1) {
        size_t n = strcspn(line, "\n");
        char *one = xstrndup(line, n);

        path = strchr(one, '/');
        str_clear(&t);
        add_stamp(&t, path);
        same = path && line[n] == '\n' && t.len == n + 1 && strncmp(t.s, line, n) == 0;
        free(one);
        if (!same)
            break;
    }
    str_release(&t);
    return same;
}

/* ---- where ---- */

/* A folder that nobody but its owner writes to, who is root or this user. */
static bool dir_safe(const char *dir)
{
    struct stat st;

    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* /dev/shm is of this boot and of this node alone, and cannot hang as a file system of the network does. */
static char *own_dir(const struct probe *q)
{
    if (*q->cache)
        return xstrdup(q->cache);
    return geteuid() == 0 ? xstrdup(SITE_DIR) : xasprintf("/dev/shm/recon-%lu", (unsigned long)geteuid());
}

/* Another release of recon-probe, or another root, has a file of its own. */
static char *file_in(const char *dir)
{
    struct str t = { 0 };
    char digest[DIGEST_SIZE], *path;

    add_stamp(&t, "/");
    add_stamp(&t, "/proc/self/exe");
    digest_bytes(t.s, t.len, digest);
    path = xasprintf("%s/node-%s.facts", dir, strchr(digest, ':') + 1);
    str_release(&t);
    return path;
}

/* ---- reading and writing ---- */

static bool read_safe(const char *path, struct str *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                (st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
                file_read_fd(fd, path, CACHE_MAX, ret, NULL) == 0 && ret->len;

    if (fd >= 0)
        close(fd);
    return good;
}

static void move_kept(struct facts *to, struct facts *from)
{
    char *kernel = to->os.kernel, *machine = to->os.machine;

    to->os = from->os;
    to->os.kernel = kernel;
    to->os.machine = machine;
    to->loader = from->loader;
    to->cpu = from->cpu;
    to->libraries = from->libraries;
    memset(&from->os, 0, sizeof(from->os));
    memset(&from->loader, 0, sizeof(from->loader));
    memset(&from->cpu, 0, sizeof(from->cpu));
    memset(&from->libraries, 0, sizeof(from->libraries));
}

static bool read_from(const char *dir, struct facts *f)
{
    char *path = file_in(dir);
    struct str t = { 0 };
    struct facts kept;
    struct conf *c = NULL;
    bool good = dir_safe(dir) && read_safe(path, &t) && head_holds(t.s, f);

    conf_defaults(facts_rows, &kept);
    if (good)
        c = conf_parse(t.s, t.len, path, NULL);
    good = c && conf_bind(c, facts_rows, &kept, NULL) == 0 && kept.loader.cache && kept.libraries.n;
    if (good)
        move_kept(f, &kept);
    facts_release(&kept);
    conf_free(c);
    str_release(&t);
    free(path);
    return good;
}

bool cache_read(const struct probe *q, struct facts *f)
{
    char *own;
    bool good;

    if (!q->cache)
        return false;
    own = own_dir(q);
    good = (!*q->cache && !str_eq(own, SITE_DIR) && read_from(SITE_DIR, f)) || read_from(own, f);
    free(own);
    return good;
}

void cache_write(const struct probe *q, const struct facts *f)
{
    char *dir, *path;
    struct str t = { 0 };
    struct facts kept = { 0 };

    if (!q->cache || !f->loader.cache || !f->libraries.n || f->unknown.n)
        return;
    dir = own_dir(q);
    path = file_in(dir);
    if ((mkdir(dir, 0755) == 0 || errno == EEXIST) && dir_safe(dir)) {
        conf_defaults(facts_rows, &kept); /* a view: nothing of it is released */
        kept.version = 1;
        kept.os = f->os;
        kept.os.kernel = kept.os.machine = NULL;
        kept.loader = f->loader;
        kept.cpu = f->cpu;
        kept.libraries = f->libraries;
        head_of(f, &t);
        facts_text(&kept, &t);
        file_write(path, t.s, t.len, 0644, NULL); /* who cannot keep it looks again */
    }
    str_release(&t);
    free(path);
    free(dir);
}
