/* mesh.fill_holes: the border with what joins its vertices is taken out of the mesh, filled (kernels/holes.h), and the new faces
 * come behind the old ones. */
#include "config.h"
#include "kernels/cpu/mesh_cpu.h"
#include "kernels/holes.h"

static bool is_border(const struct topo *t, uint32_t h)
{
    return t->edge_of[h] != TOPO_NONE && topo_count(t, t->edge_of[h]) == 1;
}

/* Bit i: half-edge i of the face is of the border. */
static unsigned border_mask(const struct topo *t, uint32_t f)
{
    return (unsigned)is_border(t, 3 * f) | (unsigned)is_border(t, 3 * f + 1) << 1 | (unsigned)is_border(t, 3 * f + 2) << 2;
}

/* the border half-edge that follows h around the fan at its end, or TOPO_NONE where the fan is not to be followed */
static uint32_t follow(const struct topo *t, uint32_t h)
{
    uint32_t g = topo_next(h);

    while (!is_border(t, g)) {
        uint32_t k = topo_twin(t, g);

        if (k == TOPO_NONE)
            return TOPO_NONE;
        g = topo_next(k);
    }
    return g;
}

static uint32_t place_of(const struct border *b, uint32_t half)
{
    uint64_t low = 0, high = b->halves;

    while (low + 1 < high) {
        uint64_t mid = low + (high - low) / 2;

        if (b->half[mid] <= half)
            low = mid;
        else
            high = mid;
    }
    return (uint32_t)low;
}

/* place: of each vertex among those of the border, and 1; 0: not of it */
static void count_border(const struct topo *t, uint32_t *place, struct border *b)
{
    for (uint32_t f = 0; f < t->faces; f++) {
        unsigned mask = border_mask(t, f);

        b->lone += mask == 7;
        for (uint32_t i = 0; mask != 7 && i < 3; i++)
            if (mask >> i & 1) {
                place[t->index[3 * f + i]] = 1;
                b->halves++;
            }
    }
    for (uint64_t v = 0; b->halves && v < t->vertices; v++)
        if (place[v])
            place[v] = (uint32_t)++b->vertices;
}

/* Whether both ends of edge e are of the border; their places. */
static bool between(const struct topo *t, const uint32_t *place, uint32_t e, uint32_t *low, uint32_t *high)
{
    uint32_t h = t->half[t->first[e]], a = t->index[h], b = t->index[topo_next(h)];

    *low = place[a < b ? a : b] - 1;
    *high = place[a < b ? b : a] - 1;
    return *low != TOPO_NONE && *high != TOPO_NONE;
}

static void take_halves(const struct topo *t, const uint32_t *place, struct border *b)
{
    uint64_t n = 0;

    for (uint32_t f = 0; f < t->faces; f++) {
        unsigned mask = border_mask(t, f);

        for (uint32_t i = 0; mask != 7 && i < 3; i++)
            if (mask >> i & 1)
                b->half[n++] = 3 * f + i;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t g = follow(t, b->half[i]);

        b->start[i] = place[t->index[b->half[i]]] - 1;
        b->next[i] = g == TOPO_NONE ? TOPO_NONE : place_of(b, g);
    }
}

static void take_edges(const struct topo *t, const uint32_t *place, struct border *b)
{
    uint32_t n = 0, v = 0;

    for (uint32_t e = 0, low, high; e < t->edges; e++)
        if (between(t, place, e, &low, &high)) {
            while (v <= low)
                b->row[v++] = n;
            b->higher[n++] = high;
        }
    while (v <= b->vertices)
        b->row[v++] = n;
}

static void take_vertices(const struct recon_mesh *m, const uint32_t *place, struct border *b)
{
    uint64_t n = 0;

    for (uint32_t v = 0; v < m->vertices; v++)
        if (place[v])
            memcpy(b->xyz + 3 * n++, m->xyz + 3 * (uint64_t)v, 12);
}

/* The block of b is the caller's. */
static int find_border(struct recon_ctx *ctx, const struct recon_mesh *m, struct border *b)
{
    uint32_t *place = NULL;
    void *block = NULL;
    struct topo t;
    int rc = -1;

    if (topo_build(ctx, m, &t))
        return -1;
    if ((place = ctx->host->alloc(ctx, 4 * m->vertices))) {
        memset(place, 0, 4 * m->vertices);
        count_border(&t, place, b);
        for (uint32_t e = 0, low, high; b->halves && e < t.edges; e++)
            b->edges += between(&t, place, e, &low, &high);
        block = ctx->host->alloc(ctx, border_bytes(b));
    }
    if (block) {
        border_lay(b, block);
        take_halves(&t, place, b);
        take_edges(&t, place, b);
        take_vertices(m, place, b);
        rc = 0;
    }
    ctx->host->free(ctx, place);
    topo_release(ctx, &t);
    return rc;
}

/* faces, runs: new ones; widest: edges of the longest loop that is tried */
static void cost_of(const struct recon_mesh *m, const struct border *b, uint64_t faces, uint64_t runs, uint64_t widest, struct recon_cost *cost)
{
    uint64_t v = m->vertices, n = m->faces, kept, meanwhile, filling = border_bytes(b) + holes_bytes(b, n, widest, &kept);
    uint64_t finding = topo_bytes(v, n) + 4 * v + border_bytes(b), giving = kept + mesh_grow_bytes(m, faces, runs, &meanwhile) + meanwhile;

    cost->host_bytes = finding > filling ? finding : filling;
    cost->host_bytes = (cost->host_bytes > giving ? cost->host_bytes : giving) + 4096;
    cost->moved_bytes = 12 * v + 72 * n;
    cost->items = n;
}

static int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    uint64_t most = (uint64_t)p[MESH_FILL_MAX].i;
    struct border b;

    (void)ctx;
    if (!m)
        return 0;
    b = border_worst(m->vertices, m->faces);
    cost_of(m, &b, m->faces, holes_most(&b), most < m->faces + 2 ? most : m->faces + 2, cost);
    return 0;
}

static int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];
    struct border b = { 0 };
    struct holes h = { 0 };
    int rc = find_border(ctx, m, &b);

    rc = rc ? rc : holes_fill(ctx, &b, m->faces, (uint64_t)p[MESH_FILL_MAX].i, &h);
    ctx->host->free(ctx, b.xyz);
    rc = rc ? rc : mesh_grow(ctx, m, &h.more, out[0]);
    if (rc == 0)
        holes_tell(ctx, &h);
    holes_release(ctx, &h);
    cost_of(m, &b, h.more.faces, h.more.runs, h.widest, cost);
    cost->items = h.more.faces;
    return rc;
}

static int selftest(struct recon_ctx *ctx)
{
    return golden_fill(ctx, &cpu_mesh_fill, NULL);
}

const struct recon_kernel cpu_mesh_fill = { RECON_KERNEL_ABI, MESH_FILL_NAME, MESH_FILL_DOC, mesh_one_in, mesh_one_out,
                                            mesh_fill_params, bound,          run,           selftest,    NULL };
