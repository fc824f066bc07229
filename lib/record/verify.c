/* All results read again, by several threads. */
#include "config.h"
#include "record/record_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 8, TELL_MS = 100 };

struct verify {
    const struct run *r;
    const char *pin, *pipeline;
    const bool *skip;
    unsigned char *states;
    _Atomic uint64_t next, done;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int live; /* threads; under lock */
};

static void *work(void *arg)
{
    struct verify *v = arg;
    uint64_t i;

    while ((i = atomic_fetch_add(&v->next, 1)) < v->r->n) {
        if (!v->skip || !v->skip[i])
            v->states[i] = (unsigned char)run_judge(v->r, i, v->pin, v->pipeline, true, NULL);
        atomic_fetch_add(&v->done, 1);
    }
    pthread_mutex_lock(&v->lock);
    v->live--;
    pthread_cond_signal(&v->ended);
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

static int how_many(uint64_t n)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int most = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (int)cores;

    return n < (uint64_t)most ? (int)n : most;
}

static void wait_all(struct verify *v, run_verify_f *tell, void *arg)
{
    pthread_mutex_lock(&v->lock);
    while (v->live > 0) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TELL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&v->ended, &v->lock, &until) != ETIMEDOUT || !tell)
            continue;
        pthread_mutex_unlock(&v->lock);
        tell(arg, atomic_load(&v->done), v->r->n);
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
}

void run_verify(const struct run *r, const char *pin, const char *pipeline, const bool *skip, run_verify_f *tell,
                void *arg, unsigned char *states)
{
    struct verify v = { .r = r, .pin = pin, .pipeline = pipeline, .skip = skip, .states = states };
    pthread_t threads[THREADS_MAX];
    int wanted = how_many(r->n), n = 0;

    memset(states, RESULT_NONE, r->n);
    pthread_mutex_init(&v.lock, NULL);
    pthread_cond_init(&v.ended, NULL);
    v.live = wanted;
    while (n < wanted && pthread_create(&threads[n], NULL, work, &v) == 0)
        n++;
    pthread_mutex_lock(&v.lock);
    v.live -= wanted - n;
    pthread_mutex_unlock(&v.lock);
    if (n == 0) { /* no thread is to be had */
        v.live = 1;
        work(&v);
    }
    wait_all(&v, tell, arg);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&v.ended);
    pthread_mutex_destroy(&v.lock);
}
