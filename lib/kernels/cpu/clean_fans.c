#include "config.h"
#include "kernels/cpu/clean.h"

/* room for more vertices, which are copies: copies[i] is what vertex n + i is one of */
static int grow(struct clean *c, const uint32_t *copies, uint64_t more)
{
    struct recon_mesh *m = &c->m, g = *m;
    uint64_t n = m->vertices;
    const struct recon_host *host = c->ctx->host;

    g.xyz = host->alloc(c->ctx, 12 * (n + more));
    g.normals = m->normals ? host->alloc(c->ctx, 12 * (n + more)) : NULL;
    g.rgb = m->rgb ? host->alloc(c->ctx, 3 * (n + more)) : NULL;
    if (!g.xyz || (m->normals && !g.normals) || (m->rgb && !g.rgb)) {
        host->free(c->ctx, g.xyz);
        host->free(c->ctx, g.normals);
        host->free(c->ctx, g.rgb);
        return -1;
    }
    for (uint64_t i = 0; i < n + more; i++) {
        uint64_t from = i < n ? i : copies[i - n];

        memcpy(g.xyz + 3 * i, m->xyz + 3 * from, 12);
        if (g.normals)
            memcpy(g.normals + 3 * i, m->normals + 3 * from, 12);
        if (g.rgb)
            memcpy(g.rgb + 3 * i, m->rgb + 3 * from, 3);
    }
    g.vertices = n + more;
    host->free(c->ctx, m->xyz);
    host->free(c->ctx, m->normals);
    host->free(c->ctx, m->rgb);
    *m = g;
    return 0;
}

/* The fan of a vertex's lowest corner keeps it; each other gets a copy at the end, in the order of their lowest corners.
 * corner: of each, the lowest of its fan; fans: of a vertex, 3 says that one has it already; to: the fan's vertex, at that corner.
 * Gives how many there are. */
static uint32_t part_fans(struct clean *c, uint32_t *corner, uint8_t *fans, uint32_t *to, uint32_t *copies)
{
    uint32_t n = 0;

    for (uint64_t f = 0; f < c->m.faces; f++) {
        uint32_t *v = c->m.index + 3 * f, h = (uint32_t)(3 * f);

        if (face_degenerate(v))
            continue;
        for (int i = 0; i < 3; i++, h++) {
            if (fans[v[i]] < 2)
                continue;
            if (set_root(corner, h) == h) {
                to[h] = fans[v[i]] == 2 ? v[i] : (uint32_t)c->m.vertices + n;
                if (fans[v[i]] > 2)
                    copies[n++] = v[i];
                fans[v[i]] = 3;
            }
            v[i] = to[set_root(corner, h)];
        }
    }
    return n;
}

/* the fans of all vertices; gives how many stand at those of several, at most UINT32_MAX */
static int find_fans(struct clean *c, uint32_t *corner, uint8_t *fans, uint64_t *ret)
{
    struct topo t;

    if (topo_build(c->ctx, &c->m, &t))
        return -1;
    topo_fans(&t, corner, fans);
    *ret = 0;
    for (uint32_t h = 0; h < 3 * t.faces; h++)
        *ret += t.edge_of[h] != TOPO_NONE && corner[h] == h && fans[t.index[h]] > 1;
    topo_release(c->ctx, &t);
    return clean_copies_fit(c->ctx, c->m.vertices, *ret);
}

int clean_fans(struct clean *c)
{
    const struct recon_host *host = c->ctx->host;
    uint32_t *corner = host->alloc(c->ctx, 12 * c->m.faces + 4), *to = NULL, *copies = NULL;
    uint8_t *fans = host->alloc(c->ctx, c->m.vertices + 1);
    uint64_t more = 0;
    int rc = corner && fans ? find_fans(c, corner, fans, &more) : -1;

    if (rc == 0 && more) {
        to = host->alloc(c->ctx, 12 * c->m.faces + 4);
        copies = to ? host->alloc(c->ctx, 4 * more) : NULL;
        rc = copies ? 0 : -1;
    }
    if (rc == 0 && more)
        c->n.split = part_fans(c, corner, fans, to, copies);
    host->free(c->ctx, corner);
    host->free(c->ctx, to);
    host->free(c->ctx, fans);
    if (rc == 0 && more)
        rc = grow(c, copies, c->n.split);
    host->free(c->ctx, copies);
    return rc;
}
