#include "config.h"
#include "data/data.h"

#include <stdlib.h>

static void *plain_alloc(void *self, uint64_t bytes)
{
    (void)self;
    return bytes <= SIZE_MAX / 2 ? malloc(bytes ? (size_t)bytes : 1) : NULL;
}

static void plain_free(void *self, void *p)
{
    (void)self;
    free(p);
}

const struct data_alloc data_malloc = { plain_alloc, plain_free, NULL };

static int add(struct recon_array *out, int n, void *at, uint64_t bytes)
{
    void **pointer = at;

    out[n].at = pointer;
    out[n].bytes = *pointer ? bytes : 0;
    return n + 1;
}

uint64_t recon_volume_samples(const struct recon_volume *v)
{
    return v->side ? v->blocks * v->side * v->side * v->side : (uint64_t)v->dim[0] * v->dim[1] * v->dim[2];
}

int recon_slot_arrays(enum recon_slot type, void *slot, struct recon_array out[RECON_ARRAYS_MAX])
{
    struct recon_points *p = slot;
    struct recon_volume *v = slot;
    struct recon_mesh *m = slot;
    struct recon_image *i = slot;
    uint64_t n;
    int k = 0;

    switch (type) {
    case RECON_POINTS:
        k = add(out, k, &p->xyz, p->n * 12);
        k = add(out, k, &p->normals, p->n * 12);
        return add(out, k, &p->rgb, p->n * 3);
    case RECON_VOLUME:
        n = recon_volume_samples(v);
        k = add(out, k, &v->tsdf, n * 4);
        k = add(out, k, &v->weight, n * 4);
        k = add(out, k, &v->rgb, n * 3);
        return add(out, k, &v->block, v->blocks * 12);
    case RECON_MESH:
        k = add(out, k, &m->xyz, m->vertices * 12);
        k = add(out, k, &m->normals, m->vertices * 12);
        k = add(out, k, &m->rgb, m->vertices * 3);
        k = add(out, k, &m->index, m->faces * 12);
        k = add(out, k, &m->uv, m->uvs * 8);
        k = add(out, k, &m->uv_index, m->faces * 12);
        k = add(out, k, &m->corner_normal, m->corner_normals * 12);
        k = add(out, k, &m->normal_index, m->faces * 12);
        k = add(out, k, &m->joined, m->faces);
        return add(out, k, &m->extra, m->extra_bytes);
    case RECON_IMAGE:
        return add(out, k, &i->pixels, (uint64_t)i->width * i->height * i->channels);
    default:
        return 0;
    }
}

enum recon_place *recon_slot_place(enum recon_slot type, void *slot)
{
    switch (type) {
    case RECON_POINTS:
        return &((struct recon_points *)slot)->place;
    case RECON_VOLUME:
        return &((struct recon_volume *)slot)->place;
    case RECON_MESH:
        return &((struct recon_mesh *)slot)->place;
    case RECON_IMAGE:
        return &((struct recon_image *)slot)->place;
    default:
        return NULL;
    }
}

size_t recon_slot_size(enum recon_slot type)
{
    switch (type) {
    case RECON_FRAMES:
        return sizeof(struct recon_frames);
    case RECON_POINTS:
        return sizeof(struct recon_points);
    case RECON_VOLUME:
        return sizeof(struct recon_volume);
    case RECON_MESH:
        return sizeof(struct recon_mesh);
    case RECON_IMAGE:
        return sizeof(struct recon_image);
    default:
        return 0;
    }
}
