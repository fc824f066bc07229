/* Faces at edges of more than two. Which of them go depends on which went at the edges before, so the host decides, edge after edge;
 * the device finds the edges, measures their faces and drops what was chosen. */
#include "mesh_clean.cuh"

namespace {

enum { THREADS = 256 };

__global__ void __launch_bounds__(THREADS) count_wide(cuda_topo t, uint32_t *at)
{
    uint64_t e = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (e < t.edges)
        at[e] = topo_count(t, (uint32_t)e) > 2 ? topo_count(t, (uint32_t)e) : 0;
}

/* Half-edges of such edges in their order. */
__global__ void __launch_bounds__(THREADS) measure_wide(cuda_topo t, struct recon_mesh m, const uint32_t *at, struct clean_sized *to)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i >= t.halves)
        return;
    uint32_t e = t.edge_of[t.half[i]];

    if (topo_count(t, e) > 2)
        to[at[e] + (i - t.first[e])] = { clean_size(&m, t.half[i] / 3), t.half[i] / 3, e };
}

__global__ void __launch_bounds__(THREADS) keep_all(uint32_t *keep, uint64_t n)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < n)
        keep[f] = 1;
}

__global__ void __launch_bounds__(THREADS) keep_not(uint32_t *keep, const uint32_t *gone, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        keep[gone[i]] = 0;
}

/* What the host decides on. */
struct wide {
    struct clean_sized *s; /* n faces, by edge */
    uint64_t n;
    uint32_t *list; /* faces that go, chosen of them */
    uint64_t chosen;
    uint8_t *gone; /* of every face */
};

int gather_wide(struct cuda_clean *c, struct wide *w)
{
    const struct recon_host *host = c->ctx->host;
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    uint64_t edges = c->topo.edges, halves = c->topo.halves;
    uint32_t *at = meanwhile.take<uint32_t>(edges + 1), n;
    struct clean_sized *s;

    if (!at)
        return -1;
    count_wide<<<blocks_of(edges + 1, THREADS), THREADS, 0, queue>>>(c->topo, at);
    if (cuda_launched(c->ctx, "non-manifold edges") || cuda_clean_places(c->ctx, at, edges, &n))
        return -1;
    w->n = n;
    if (n == 0)
        return 0;
    if (!(s = meanwhile.take<struct clean_sized>(n)) || !(w->s = (struct clean_sized *)host->alloc(c->ctx, n * sizeof(*s))))
        return -1;
    measure_wide<<<blocks_of(halves + 1, THREADS), THREADS, 0, queue>>>(c->topo, cuda_clean_mesh(c), at, s);
    return cuda_launched(c->ctx, "non-manifold edges") || cuda_read(c->ctx, w->s, s, n) ? -1 : 0;
}

int choose(struct cuda_clean *c, struct wide *w)
{
    const struct recon_host *host = c->ctx->host;

    if (!(w->list = (uint32_t *)host->alloc(c->ctx, 4 * (w->n < c->faces ? w->n : c->faces))) || !(w->gone = (uint8_t *)host->alloc(c->ctx, c->faces)))
        return -1;
    memset(w->gone, 0, c->faces);
    for (uint64_t i = 0, to; i < w->n; i = to) {
        for (to = i; to < w->n && w->s[to].edge == w->s[i].edge; to++)
            ;
        for (uint32_t k = 0, went = clean_thin(w->s + i, (uint32_t)(to - i), w->gone); k < went; k++)
            w->list[w->chosen++] = w->s[i + k].face;
    }
    return 0;
}

int drop_chosen(struct cuda_clean *c, const struct wide *w)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    uint64_t faces = c->faces, chosen = w->chosen;
    uint32_t *keep, *list;

    cuda_clean_topo_release(c);
    if (!(keep = meanwhile.take<uint32_t>(faces + 1)) || !(list = meanwhile.take<uint32_t>(chosen)) ||
        cuda_device.upload(c->ctx, list, w->list, 4 * chosen))
        return -1;
    keep_all<<<blocks_of(faces + 1, THREADS), THREADS, 0, queue>>>(keep, faces);
    keep_not<<<blocks_of(chosen + 1, THREADS), THREADS, 0, queue>>>(keep, list, chosen);
    return cuda_launched(c->ctx, "non-manifold edges") || cuda_clean_drop(c, keep, &c->n.non_manifold) ? -1 : 0;
}

} // namespace

int cuda_clean_non_manifold(struct cuda_clean *c)
{
    const struct recon_host *host = c->ctx->host;
    struct wide w = {};
    int rc = cuda_clean_topo(c) || gather_wide(c, &w) ? -1 : 0;

    if (rc == 0 && w.n)
        rc = choose(c, &w) || drop_chosen(c, &w) ? -1 : 0;
    host->free(c->ctx, w.s);
    host->free(c->ctx, w.list);
    host->free(c->ctx, w.gone);
    return rc;
}
