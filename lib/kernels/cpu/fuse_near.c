/* Which blocks a frame's depths come near to (kernels/fuse_near.h). Pixels of a square whose depths lie within a truncation of each
 * other share a piece. */
#include "config.h"
#include "kernels/cpu/fuse_cpu.h"

#include <math.h>

struct near {
    const struct fuse_plan *p;
    const struct fuse_frame *f;
    const struct blocks *g;
};

KERN_HD void set_bits(const struct blocks *g, const uint32_t span[3][2])
{
    for (uint32_t i = span[0][0]; i <= span[0][1]; i++)
        for (uint32_t j = span[1][0]; j <= span[1][1]; j++)
            for (uint32_t k = span[2][0]; k <= span[2][1]; k++) {
                uint64_t at = blocks_cell(g, i, j, k), bit = 1ull << (at & 63);

                if (!(__atomic_load_n(&g->bits[at >> 6], __ATOMIC_RELAXED) & bit))
                    __atomic_fetch_or(&g->bits[at >> 6], bit, __ATOMIC_RELAXED);
            }
}

KERN_HD void mark_piece(const struct near *x, const struct near_square *s, double near, double far)
{
    uint32_t blocks[3][2];

    if (near_blocks(x->p, &x->f->v, x->g->shift, s, near, far, blocks))
        set_bits(x->g, (const uint32_t(*)[2])blocks);
}

/* Of n pixels: the most depth up to limit, and the least above it. */
KERN_HD void part_row(const float *d, uint32_t n, float limit, float low[FUSE_TILE], float high[FUSE_TILE])
{
    for (uint32_t i = 0; i < n; i++) {
        float in = d[i] <= limit ? d[i] : 0, out = d[i] > limit ? d[i] : INFINITY;

        low[i] = in > low[i] ? in : low[i];
        high[i] = out < high[i] ? out : high[i];
    }
}

/* A tile with depths apart: a piece for those from the least on, as far as the truncation reaches, and so on. */
KERN_CLONES
static void mark_parts(const struct near *x, const struct near_square *s, float from)
{
    uint32_t width = x->f->v.stride, n = width - s->u < FUSE_TILE ? width - s->u : FUSE_TILE,
             end = s->v + FUSE_TILE < x->f->height ? s->v + FUSE_TILE : x->f->height;

    while (from < INFINITY) {
        float limit = from + (float)x->p->truncation, low[FUSE_TILE] = { 0 }, high[FUSE_TILE], to = from, next = INFINITY;

        for (int i = 0; i < FUSE_TILE; i++)
            high[i] = INFINITY;
        for (uint32_t v = s->v; v < end; v++)
            if (n == FUSE_TILE)
                part_row(x->f->depth + (size_t)v * width + s->u, FUSE_TILE, limit, low, high);
            else
                part_row(x->f->depth + (size_t)v * width + s->u, n, limit, low, high);
        for (int i = 0; i < FUSE_TILE; i++) {
            to = low[i] > to ? low[i] : to;
            next = high[i] < next ? high[i] : next;
        }
        mark_piece(x, s, (double)from, (double)to);
        from = next;
    }
}

/* Depths of tile (x, y); false: it has none. */
KERN_HD bool depths_in(const struct fuse_tiles *t, uint32_t x, uint32_t y, float *least, float *most)
{
    float l = t->least[0][y * t->width[0] + x];

    *most = t->most[0][y * t->width[0] + x];
    *least = l > 0 ? l : -l;
    return *most > 0;
}

KERN_HD void mark_tile(const struct near *x, const struct near_square *s, float least, float most)
{
    if ((double)most - (double)least <= x->p->truncation)
        mark_piece(x, s, (double)least, (double)most);
    else
        mark_parts(x, s, least);
}

KERN_CLONES
static void mark_seen_by(const struct fuse_plan *p, const struct fuse_frame *f, uint32_t row, const struct blocks *g)
{
    const struct fuse_tiles *t = &f->tiles;
    struct near x = { p, f, g };

    for (uint32_t i = 0; i < t->width[0]; i += 2) { /* four tiles at once, where their depths are alike */
        uint32_t right = i + 2 < t->width[0] ? i + 2 : t->width[0], low = 2 * row + 2 < t->height[0] ? 2 * row + 2 : t->height[0];
        float least[4], most[4], all[2] = { INFINITY, 0 };
        int n = 0;
        struct near_square s[4];

        for (uint32_t v = 2 * row; v < low; v++)
            for (uint32_t u = i; u < right; u++)
                if (depths_in(t, u, v, &least[n], &most[n])) {
                    s[n] = (struct near_square){ u * FUSE_TILE, v * FUSE_TILE, FUSE_TILE };
                    all[0] = least[n] < all[0] ? least[n] : all[0];
                    all[1] = most[n] > all[1] ? most[n] : all[1];
                    n++;
                }
        if (n && (double)all[1] - (double)all[0] <= p->truncation)
            mark_piece(&x, &(struct near_square){ i * FUSE_TILE, row * 2 * FUSE_TILE, 2 * FUSE_TILE }, (double)all[0], (double)all[1]);
        else
            for (int k = 0; k < n; k++)
                mark_tile(&x, &s[k], least[k], most[k]);
    }
}

void fuse_near(const struct fuse_plan *p, const struct fuse_frame *f, uint32_t row, const struct blocks *g)
{
    mark_seen_by(p, f, row, g);
}
