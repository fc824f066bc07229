/* Digests of many files, several at a time, and what is remembered of them between runs. A remembered file is taken as it is
 * when size, times (ctime too, which no copy keeps) and inode are the same; one that changed within the last seconds is never
 * remembered, since its times would not show the next change. The file: a line "recon digests 1", then
 * "DIGEST SIZE MTIME_NS CTIME_NS DEVICE INODE PATH" a line. Whatever is wrong with it costs only the reading of files. */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "pin/pin_priv.h"

#define HEAD "recon digests 1\n"
#define REMEMBERED_MAX 50000
#define SETTLED_NS INT64_C(3000000000)

struct known {
    char *path;
    char digest[DIGEST_SIZE];
    int64_t size, mtime_ns, ctime_ns;
    uint64_t dev, ino;
};
struct memory {
    struct known *v;
    size_t n, cap;
    bool changed;
};

static int64_t ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static bool stamps(const char *path, struct known *ret)
{
    struct stat st;

    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return false;
    ret->size = st.st_size;
    ret->mtime_ns = ns(&st.st_mtim);
    ret->ctime_ns = ns(&st.st_ctim);
    ret->dev = st.st_dev;
    ret->ino = st.st_ino;
    return true;
}

static bool same(const struct known *a, const struct known *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->dev == b->dev && a->ino == b->ino;
}

/* ---- the file ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct known *)a)->path, ((const struct known *)b)->path);
}

static void remember(const char *line, struct memory *ret)
{
    struct known k = { 0 };
    int at = 0;

    if (sscanf(line, "%23s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNu64 " %" SCNu64 " %n", k.digest, &k.size, &k.mtime_ns,
               &k.ctime_ns, &k.dev, &k.ino, &at) != 6 || !at || line[at] != '/' || !str_starts(k.digest, "xxh3:"))
        return;
    k.path = xstrdup(line + at);
    *VEC_ADD(ret) = k;
}

static void memory_read(const char *file, struct memory *ret)
{
    struct strv lines = { 0 };
    struct str t = { 0 };

    if (file && file_trusted(file, NULL, NULL) == 0 && file_read(file, FILE_MAX_DEFAULT, &t, NULL) == 0 && t.len &&
        str_starts(t.s, HEAD))
        strv_split(&lines, t.s + strlen(HEAD), "\n");
    for (size_t i = 0; i < lines.n && ret->n < REMEMBERED_MAX; i++)
        remember(lines.v[i], ret);
    if (ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
    strv_release(&lines);
    str_release(&t);
}

static void memory_write(const char *file, const struct memory *m)
{
    char *dir = path_dir(file);
    struct str t = { 0 };

    str_add(&t, HEAD);
    for (size_t i = 0; i < m->n; i++) {
        const struct known *k = &m->v[i];

        if (!strchr(k->path, '\n'))
            str_addf(&t, "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %s\n", k->digest, k->size, k->mtime_ns,
                     k->ctime_ns, k->dev, k->ino, k->path);
    }
    if (dir_make(dir, 0700, NULL) == 0)
        file_write(file, t.s, t.len, 0600, NULL);
    str_release(&t);
    free(dir);
}

/* ---- the work ---- */

struct work {
    struct digest_job *jobs;
    size_t n, next;
    struct memory memory;
    size_t remembered;        /* entries that came from the file: sorted */
    bool keep;
    pthread_mutex_t lock;
};

static bool recall(const struct work *w, const struct known *now, struct digest_job *job)
{
    const struct known *k = w->remembered ? bsearch(now, w->memory.v, w->remembered, sizeof(*k), by_path) : NULL;

    if (!k || !same(k, now))
        return false;
    memcpy(job->digest, k->digest, sizeof(job->digest));
    return true;
}

static bool settled(const struct known *k)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return ns(&t) - k->mtime_ns > SETTLED_NS && ns(&t) - k->ctime_ns > SETTLED_NS;
}

static void do_job(struct work *w, struct digest_job *job)
{
    struct known before = { .path = (char *)job->path }, after = { 0 };
    bool known;

    if (!job->path)
        return;
    known = w->keep && stamps(job->path, &before);
    pthread_mutex_lock(&w->lock); /* the list may grow */
    known = known && recall(w, &before, job);
    pthread_mutex_unlock(&w->lock);
    if (known || digest_file(job->path, job->digest, &job->err) || !w->keep)
        return;
    if (!stamps(job->path, &after) || !same(&before, &after) || !settled(&after))
        return;
    pthread_mutex_lock(&w->lock);
    after.path = xstrdup(job->path);
    memcpy(after.digest, job->digest, sizeof(after.digest));
    *VEC_ADD(&w->memory) = after;
    w->memory.changed = true;
    pthread_mutex_unlock(&w->lock);
}

static void *worker(void *arg)
{
    struct work *w = arg;

    for (;;) {
        size_t i;

        pthread_mutex_lock(&w->lock);
        i = w->next++;
        pthread_mutex_unlock(&w->lock);
        if (i >= w->n)
            return NULL;
        do_job(w, &w->jobs[i]);
    }
}

/* What was read anew takes the place of what was remembered of that path; what is gone is forgotten. */
static void forget_old(struct work *w)
{
    struct memory kept = { 0 };

    for (size_t i = 0; i < w->memory.n; i++) {
        struct known *k = &w->memory.v[i];
        bool old = i < w->remembered && access(k->path, F_OK) != 0;

        for (size_t j = w->remembered; i < w->remembered && j < w->memory.n && !old; j++)
            old = str_eq(w->memory.v[j].path, k->path);
        if (old)
            free(k->path);
        else
            *VEC_ADD(&kept) = *k;
    }
    free(w->memory.v);
    w->memory = kept;
}

void digests_of(struct digest_job *jobs, size_t n, const char *memory)
{
    struct work w = { .jobs = jobs, .n = n, .keep = memory, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[16];
    size_t started = 0, want = (size_t)sysconf(_SC_NPROCESSORS_ONLN);

    memory_read(memory, &w.memory);
    w.remembered = w.memory.n;
    want = want > COUNT(threads) ? COUNT(threads) : want > n ? n : want;
    for (; started + 1 < want; started++)
        if (pthread_create(&threads[started], NULL, worker, &w))
            break;
    worker(&w);
    while (started)
        pthread_join(threads[--started], NULL);
    if (w.memory.changed) {
        forget_old(&w);
        memory_write(memory, &w.memory);
    }
    for (size_t i = 0; i < w.memory.n; i++)
        free(w.memory.v[i].path);
    free(w.memory.v);
}
