/* Frames decoded ahead by threads into a ring of slots and given out in order. Slot i % depth holds frame i;
 * a decoder takes the next frame when its slot is free; the taker waits for the slot of its frame. */
#include "config.h"
#include "data/data_priv.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct slot {
    float *depth;
    uint8_t *rgb;
    bool ready;
    int rc;
    struct fault fault;
};
struct frames_source {
    struct folder folder;
    struct frames_options options;
    double bounds[6];
    int threads, running;
    pthread_t *thread;
    pthread_mutex_t lock;
    pthread_cond_t room, ready;
    struct slot *slot;
    size_t depth;
    uint64_t next_decode, next_give; /* frames */
    bool holding, stop;              /* holding: the taker still uses frame next_give - 1 */
};

static void *decode_loop(void *arg)
{
    struct frames_source *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        uint64_t i = s->next_decode, oldest = s->next_give - (s->holding ? 1 : 0);
        struct slot *t = &s->slot[i % s->depth];

        if (i >= s->folder.frames.n || i - oldest >= s->depth) {
            pthread_cond_wait(&s->room, &s->lock);
            continue;
        }
        s->next_decode++;
        pthread_mutex_unlock(&s->lock);
        t->rc = frame_decode(&s->folder, &s->folder.frames.v[i], &s->options, t->depth, t->rgb, &t->fault);
        pthread_mutex_lock(&s->lock);
        t->ready = true;
        pthread_cond_signal(&s->ready);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int start(struct frames_source *s, struct fault *fault)
{
    sigset_t all, old;

    s->stop = false;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are the program's, not a decoder's */
    while (s->running < s->threads && pthread_create(&s->thread[s->running], NULL, decode_loop, s) == 0)
        s->running++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return s->running ? 0 : fault_set(fault, CODE_MEMORY, NULL, "cannot start a thread to decode frames");
}

static void halt(struct frames_source *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->room);
    pthread_mutex_unlock(&s->lock);
    while (s->running > 0)
        pthread_join(s->thread[--s->running], NULL);
}

static int take_slots(struct frames_source *s, struct fault *fault)
{
    size_t pixels = (size_t)s->folder.camera.width * s->folder.camera.height;

    for (size_t i = 0; i < s->depth; i++) {
        s->slot[i].depth = malloc(pixels * sizeof(float));
        s->slot[i].rgb = s->folder.colored ? malloc(pixels * 3) : NULL;
        if (!s->slot[i].depth || (s->folder.colored && !s->slot[i].rgb))
            return fault_set(fault, CODE_MEMORY, NULL, "no memory to decode %zu frames of %zu pixels ahead",
                             s->depth, pixels);
    }
    return 0;
}

int frames_open(const char *folder, const struct frames_options *o, struct frames_source **ret,
                struct fault *fault)
{
    struct frames_source *s = xcalloc(1, sizeof(*s));

    s->options = *o;
    s->threads = o->threads > 0 ? o->threads : 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->room, NULL);
    pthread_cond_init(&s->ready, NULL);
    if (folder_scan(folder, o, &s->folder, fault) || folder_bounds(&s->folder, o, s->bounds, fault)) {
        frames_free(s);
        return -1;
    }
    if ((uint64_t)s->threads > s->folder.frames.n)
        s->threads = (int)s->folder.frames.n;
    s->thread = xcalloc((size_t)s->threads + 1, sizeof(*s->thread));
    s->depth = 2 * (size_t)s->threads + 2;
    s->slot = xcalloc(s->depth, sizeof(*s->slot));
    *ret = s;
    return 0;
}

const struct recon_camera *frames_camera(const struct frames_source *s)
{
    return &s->folder.camera;
}

uint64_t frames_count(const struct frames_source *s)
{
    return s->folder.frames.n;
}

uint64_t frames_skipped(const struct frames_source *s)
{
    return s->folder.skipped;
}

bool frames_colored(const struct frames_source *s)
{
    return s->folder.colored;
}

const double *frames_bounds(const struct frames_source *s)
{
    return s->bounds;
}

uint64_t frames_bytes(const struct frames_source *s)
{
    return (uint64_t)s->depth * s->folder.camera.width * s->folder.camera.height *
           (s->folder.colored ? 7 : 4);
}

int frames_next(struct frames_source *s, struct recon_frame *ret, struct fault *fault)
{
    const struct frame_entry *e;
    struct slot *t;
    int rc;

    if (!s->slot[0].depth && take_slots(s, fault))
        return -1;
    if (!s->running && s->next_give < s->folder.frames.n && start(s, fault))
        return -1;
    pthread_mutex_lock(&s->lock);
    if (s->holding)
        s->slot[(s->next_give - 1) % s->depth].ready = false;
    s->holding = false;
    pthread_cond_signal(&s->room);
    if (s->next_give >= s->folder.frames.n) {
        pthread_mutex_unlock(&s->lock);
        return 0;
    }
    t = &s->slot[s->next_give % s->depth];
    while (!t->ready)
        pthread_cond_wait(&s->ready, &s->lock);
    rc = t->rc;
    e = &s->folder.frames.v[s->next_give];
    if (rc == 0) {
        s->next_give++;
        s->holding = true;
    }
    pthread_mutex_unlock(&s->lock);
    if (rc) {
        if (fault)
            *fault = t->fault;
        return -1;
    }
    *ret = (struct recon_frame){
        .depth = t->depth, .color = e->color ? t->rgb : NULL, .name = e->stem, .index = e->index};
    memcpy(ret->pose, e->pose, sizeof(ret->pose));
    return 1;
}

void frames_rewind(struct frames_source *s)
{
    halt(s);
    for (size_t i = 0; i < s->depth; i++)
        s->slot[i].ready = false;
    s->next_decode = s->next_give = 0;
    s->holding = false;
}

void frames_free(struct frames_source *s)
{
    if (!s)
        return;
    halt(s);
    for (size_t i = 0; i < s->depth; i++) {
        free(s->slot[i].depth);
        free(s->slot[i].rgb);
    }
    free(s->slot);
    free(s->thread);
    folder_release(&s->folder);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->room);
    pthread_cond_destroy(&s->ready);
    free(s);
}
