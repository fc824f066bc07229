/* Copies of meshes: places and faces, and what files say of corners and faces for kernels that keep those. */
#include "config.h"
#include "base/base.h"
#include "data/data.h"
#include "kernels/mesh_plan.h"
#include "kernels/plan.h"

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

/* ---- more faces ---- */

int mesh_grow_extra(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *ret)
{
    struct data_alloc alloc = ctx_alloc(ctx);
    struct fault fault = { 0 };
    bool left = false;

    if (mesh_extra_grow(m, more->run, more->runs, &alloc, ret, &left, &fault))
        return fault.err.code == CODE_MEMORY ? -1 : ctx->host->fail(ctx, fault.err.code, NULL, "mesh", "%s", fault.err.text); /* alloc has told it */
    if (left)
        ctx->host->log(ctx, RECON_WARN, NULL, "mesh", "further properties of faces are left out: more faces come in than there were polygons, "
                            "or they are not one row a polygon");
    return 0;
}

/* Three numbers a face, those of the new ones at the corners that they are like. */
static int grow_corners(struct recon_ctx *ctx, const uint32_t *from, uint64_t faces, const uint32_t *corner, uint64_t n, uint32_t **ret)
{
    if (!from)
        return 0;
    if (!(*ret = ctx->host->alloc(ctx, 12 * (faces + n))))
        return -1;
    memcpy(*ret, from, 12 * faces);
    for (uint64_t i = 0; i < 3 * n; i++)
        (*ret)[3 * faces + i] = from[corner[i]];
    return 0;
}

static int grow_faces(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *c)
{
    const uint32_t *corner = more->corner;
    uint64_t n = more->faces;

    if (grow_corners(ctx, m->index, m->faces, corner, n, &c->index) || grow_corners(ctx, m->uv_index, m->faces, corner, n, &c->uv_index) ||
        grow_corners(ctx, m->normal_index, m->faces, corner, n, &c->normal_index) || (m->joined && !(c->joined = ctx->host->alloc(ctx, m->faces + n))))
        return -1;
    if (m->joined) {
        memcpy(c->joined, m->joined, m->faces);
        memset(c->joined + m->faces, 0, n);
    }
    return m->extra ? mesh_grow_extra(ctx, m, more, c) : 0;
}

int mesh_grow(struct recon_ctx *ctx, const struct recon_mesh *m, const struct mesh_more *more, struct recon_mesh *ret)
{
    uint64_t n = more->faces;
    struct recon_mesh c = { 0 }, whole = *m;

    if (n) { /* the rest comes as it is */
        whole.faces = 0;
        whole.uv_index = whole.normal_index = NULL;
        whole.joined = whole.extra = NULL;
    }
    if (mesh_copy(ctx, &whole, true, true, &c))
        return -1;
    ctx->host->free(ctx, n ? c.index : NULL);
    c.index = n ? NULL : c.index;
    if (mesh_keep(ctx, &whole, true, &c) || (n && grow_faces(ctx, m, more, &c))) {
        mesh_free(ctx, &c);
        return -1;
    }
    c.faces = m->faces + n;
    *ret = c;
    return 0;
}

uint64_t mesh_grow_extra_bytes(const struct recon_mesh *m, uint64_t runs, uint64_t *ret_meanwhile)
{
    return mesh_extra_bytes(m->extra ? m->extra_bytes : 0, m->faces, runs, ret_meanwhile);
}

uint64_t mesh_grow_bytes(const struct recon_mesh *m, uint64_t n, uint64_t runs, uint64_t *ret_meanwhile)
{
    uint64_t extra = mesh_grow_extra_bytes(m, runs, ret_meanwhile);
    uint64_t more = (m->uv_index ? 12 * n : 0) + (m->normal_index ? 12 * n : 0) + (m->joined ? n : 0);

    return 27 * m->vertices + 12 * (m->faces + n) + mesh_beyond(m) + more + extra;
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
