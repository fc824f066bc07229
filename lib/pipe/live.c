/* Slots while they live: where their arrays are, copies between host and device, release. */
#include "config.h"

#include <stdlib.h>
#include "pipe/pipe_priv.h"

void *live_new(enum recon_slot type, enum recon_place place)
{
    void *slot = xcalloc(1, recon_slot_size(type));
    enum recon_place *at = recon_slot_place(type, slot);

    if (at)
        *at = place;
    return slot;
}

uint64_t live_bytes(enum recon_slot type, void *slot)
{
    struct recon_array a[RECON_ARRAYS_MAX];
    uint64_t sum = 0;
    int n = recon_slot_arrays(type, slot, a);

    for (int i = 0; i < n; i++)
        sum += a[i].bytes;
    return sum;
}

static void arrays_free(struct runner *r, enum recon_slot type, void *slot, enum recon_place place)
{
    struct recon_array a[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(type, slot, a);

    for (int i = 0; i < n; i++) {
        if (place == RECON_DEVICE)
            r->dev->free(&r->gpu, *a[i].at);
        else
            host_free(&r->host, *a[i].at);
        *a[i].at = NULL;
    }
}

void live_release(struct runner *r, struct live *l, enum recon_slot type)
{
    for (int place = 0; place < 2; place++) {
        if (!l->at[place])
            continue;
        if (type == RECON_FRAMES) {
            struct recon_frames *f = l->at[place];

            if (f->close)
                f->close(f);
        } else {
            arrays_free(r, type, l->at[place], (enum recon_place)place);
        }
        free(l->at[place]);
        l->at[place] = NULL;
    }
}

/* The arrays of from into those of to, which are a copy of the pointers until replaced one by one. */
static int copy_arrays(struct runner *r, enum recon_slot type, void *to, enum recon_place place, uint64_t *bytes)
{
    struct recon_array a[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(type, to, a), rc = 0;

    for (int i = 0; i < n; i++) {
        const void *source = *a[i].at;
        void *copy = NULL;

        if (source && rc == 0) {
            copy = place == RECON_DEVICE ? r->dev->alloc(&r->gpu, a[i].bytes) : host_alloc(&r->host, a[i].bytes);
            if (!copy)
                rc = -1;
            else if (place == RECON_DEVICE)
                rc = r->dev->upload(&r->gpu, copy, source, a[i].bytes);
            else
                rc = r->dev->download(&r->gpu, copy, source, a[i].bytes);
            *bytes += a[i].bytes;
        }
        *a[i].at = copy;
    }
    return rc;
}

int live_ensure(struct runner *r, struct live *l, enum recon_slot type, enum recon_place place, uint64_t *bytes,
                double *ms)
{
    void *from = l->at[!place], *to;
    double start;
    int rc;

    if (l->at[place] || !from)
        return 0;
    to = xmalloc(recon_slot_size(type));
    memcpy(to, from, recon_slot_size(type));
    *recon_slot_place(type, to) = place;
    start = clock_ms();
    rc = copy_arrays(r, type, to, place, bytes);
    if (r->dev->sync(&r->gpu))
        rc = -1;
    *ms += clock_ms() - start;
    if (rc) {
        arrays_free(r, type, to, place);
        free(to);
        return -1;
    }
    l->at[place] = to;
    return 0;
}

char *live_lost(const struct recon_mesh *from, const struct recon_mesh *to)
{
    const struct {
        const char *name;
        bool lost;
    } rows[] = {
        { "texture coordinates", from->uv && !to->uv },
        { "normals of corners", from->corner_normal && !to->corner_normal },
        { "polygons", from->joined && !to->joined },
        { "names, materials and further properties", from->extra && !to->extra },
    };
    struct str t = { 0 };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].lost)
            str_addf(&t, "%s%s", t.len ? ", " : "", rows[i].name);
    return t.len ? str_take(&t) : NULL;
}
