/* Copies of meshes: places and faces, and what files say of corners and faces for kernels that keep those. */
#include "config.h"
#include "kernels/mesh_plan.h"

#include <string.h>

/* the array at place k of recon_slot_arrays, copied; 0 when there is none */
static int copy_array(struct recon_ctx *ctx, struct recon_array *from, struct recon_array *to)
{
    if (!from->bytes)
        return 0;
    if (!(*to->at = ctx->host->alloc(ctx, from->bytes)))
        return -1;
    memcpy(*to->at, *from->at, from->bytes);
    return 0;
}

int mesh_copy(struct recon_ctx *ctx, const struct recon_mesh *m, bool normals, bool rgb, struct recon_mesh *ret)
{
    struct recon_mesh c = { .vertices = m->vertices, .faces = m->faces, .place = RECON_HOST };

    normals = normals && m->normals;
    rgb = rgb && m->rgb;
    c.xyz = ctx->host->alloc(ctx, m->vertices * 12);
    c.index = c.xyz ? ctx->host->alloc(ctx, m->faces * 12) : NULL;
    c.normals = c.index && normals ? ctx->host->alloc(ctx, m->vertices * 12) : NULL;
    c.rgb = c.index && rgb ? ctx->host->alloc(ctx, m->vertices * 3) : NULL;
    if (!c.xyz || !c.index || (normals && !c.normals) || (rgb && !c.rgb)) {
        mesh_free(ctx, &c);
        return -1;
    }
    memcpy(c.xyz, m->xyz, m->vertices * 12);
    memcpy(c.index, m->index, m->faces * 12);
    if (normals)
        memcpy(c.normals, m->normals, m->vertices * 12);
    if (rgb)
        memcpy(c.rgb, m->rgb, m->vertices * 3);
    *ret = c;
    return 0;
}

/* m without what a kernel makes itself: places, normals, colours, faces */
static struct recon_mesh beyond(const struct recon_mesh *m, bool corner_normals)
{
    struct recon_mesh b = *m;

    b.xyz = b.normals = NULL;
    b.rgb = NULL;
    b.index = NULL;
    if (!corner_normals) {
        b.corner_normals = 0;
        b.corner_normal = NULL;
        b.normal_index = NULL;
    }
    return b;
}

int mesh_keep(struct recon_ctx *ctx, const struct recon_mesh *m, bool corner_normals, struct recon_mesh *ret)
{
    struct recon_mesh b = beyond(m, corner_normals);
    struct recon_array from[RECON_ARRAYS_MAX], to[RECON_ARRAYS_MAX];
    int n = recon_slot_arrays(RECON_MESH, &b, from), rc = 0;

    recon_slot_arrays(RECON_MESH, ret, to);
    ret->uvs = b.uvs;
    ret->uv_down = b.uv_down;
    ret->corner_normals = b.corner_normals;
    ret->extra_bytes = b.extra_bytes;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = copy_array(ctx, &from[i], &to[i]);
    return rc;
}

uint64_t mesh_beyond(const struct recon_mesh *m)
{
    struct recon_mesh b = beyond(m, true);
    struct recon_array a[RECON_ARRAYS_MAX];
    uint64_t sum = 0;

    for (int n = recon_slot_arrays(RECON_MESH, &b, a); n > 0; n--)
        sum += a[n - 1].bytes;
    return sum;
}

static void swap_corners(uint32_t *corner, uint64_t faces)
{
    for (uint64_t f = 0; corner && f < faces; f++) {
        uint32_t v = corner[3 * f + 1];

        corner[3 * f + 1] = corner[3 * f + 2];
        corner[3 * f + 2] = v;
    }
}

void mesh_flip(struct recon_mesh *m)
{
    swap_corners(m->index, m->faces);
    swap_corners(m->uv_index, m->faces);
    swap_corners(m->normal_index, m->faces);
}

void mesh_free(struct recon_ctx *ctx, struct recon_mesh *m)
{
    struct recon_array a[RECON_ARRAYS_MAX];

    for (int n = recon_slot_arrays(RECON_MESH, m, a); n > 0; n--)
        ctx->host->free(ctx, *a[n - 1].at);
    *m = (struct recon_mesh){ 0 };
}
