/* Fans and components: sets that join, so that the lowest number of each is its root whoever came first. */
#include "mesh_clean.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace {

enum { THREADS = 256 };

__global__ void __launch_bounds__(THREADS) settle(uint32_t *set, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        set[i] = sets_root(set, (uint32_t)i);
}

/* ---- fans ---- */

__device__ __forceinline__ bool is_fan(const uint32_t *index, const uint32_t *corner, uint64_t h)
{
    return corner[h] == h && !face_degenerate(index + h / 3 * 3);
}

/* lowest: of a vertex, its first fan's lowest corner */
__global__ void __launch_bounds__(THREADS) find_lowest(const uint32_t *index, const uint32_t *corner, uint64_t n, uint32_t *lowest)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (h < n && is_fan(index, corner, h))
        atomicMin(&lowest[index[h]], (uint32_t)h);
}

/* at: 1 where a fan begins that gets a copy */
__global__ void __launch_bounds__(THREADS) mark_copies(const uint32_t *index, const uint32_t *corner, uint64_t n, const uint32_t *lowest, uint32_t *at)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (h < n)
        at[h] = is_fan(index, corner, h) && lowest[index[h]] != h;
}

/* Vertices of several fans. */
__global__ void __launch_bounds__(THREADS) count_several(const uint32_t *fans, uint64_t n, uint32_t *ret)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    int of_block = __syncthreads_count(v < n && fans[v] > 1);

    if (threadIdx.x == 0 && of_block)
        atomicAdd(ret, (uint32_t)of_block);
}

/* Each corner names its fan's vertex: the one it had, or the copy, whose number in the input is its vertex's. */
__global__ void __launch_bounds__(THREADS) name_copies(uint32_t *index, const uint32_t *corner, uint64_t n, const uint32_t *at, uint64_t vertices,
                                                       uint32_t *source)
{
    uint64_t h = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (h >= n)
        return;
    uint32_t root = corner[h];

    if (at[root + 1ull] == at[root])
        return;
    if (root == h)
        source[vertices + at[h]] = index[h];
    index[h] = (uint32_t)vertices + at[root];
}

/* Roots of corners, and where fans begin that get a copy; copies are counted. */
int find_copies(struct cuda_clean *c, Scratch &scratch, uint32_t **corner, uint32_t **at, uint32_t *copies)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    uint64_t n = 3 * c->faces;
    unsigned blocks = blocks_of(n + 1, THREADS), vertices = blocks_of(c->vertices + 1, THREADS);
    uint32_t *lowest, *count, *fans, several = 0;

    if (cuda_clean_topo(c) || !(*corner = scratch.take<uint32_t>(n)) || !(fans = meanwhile.take<uint32_t>(c->vertices)) ||
        cuda_topo_fans(c->ctx, &c->topo, *corner, fans))
        return -1;
    cuda_clean_topo_release(c);
    if (!(*at = scratch.take<uint32_t>(n + 1)) || !(lowest = meanwhile.take<uint32_t>(c->vertices)) || !(count = meanwhile.take<uint32_t>(1)) ||
        cuda_ok(c->ctx, cudaMemsetAsync(lowest, 0xff, 4 * c->vertices, queue), "cudaMemset") ||
        cuda_ok(c->ctx, cudaMemsetAsync(count, 0, 4, queue), "cudaMemset"))
        return -1;
    find_lowest<<<blocks, THREADS, 0, queue>>>(c->index, *corner, n, lowest);
    mark_copies<<<blocks, THREADS, 0, queue>>>(c->index, *corner, n, lowest, *at);
    count_several<<<vertices, THREADS, 0, queue>>>(fans, c->vertices, count);
    return cuda_launched(c->ctx, "fans") || cuda_clean_places(c->ctx, *at, n, copies) || cuda_read(c->ctx, &several, count, 1) ||
           clean_copies_fit(c->ctx, c->vertices, (uint64_t)*copies + several) ? -1 : 0;
}

} // namespace

int cuda_clean_fans(struct cuda_clean *c)
{
    Scratch meanwhile(c->ctx);
    uint32_t *corner, *at, copies;
    uint64_t n = 3 * c->faces;

    if (find_copies(c, meanwhile, &corner, &at, &copies))
        return -1;
    if (copies == 0)
        return 0;
    if (!(c->source = c->scratch.take<uint32_t>(c->vertices + copies)) || cuda_count_up(c->ctx, c->source, c->vertices))
        return -1;
    name_copies<<<blocks_of(n + 1, THREADS), THREADS, 0, cuda_stream(c->ctx)>>>(c->index, corner, n, at, c->vertices, c->source);
    c->vertices += copies;
    c->n.split = copies;
    return cuda_launched(c->ctx, "fans");
}

/* ---- components ---- */

namespace {

__global__ void __launch_bounds__(THREADS) join_vertices(const uint32_t *index, uint64_t faces, uint32_t *set)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f >= faces)
        return;
    sets_join(set, index[3 * f], index[3 * f + 1]);
    sets_join(set, index[3 * f], index[3 * f + 2]);
}

/* Faces of each root. Those of a block's first root are added at once: most are of one. */
__global__ void __launch_bounds__(THREADS) count_faces(const uint32_t *index, uint64_t faces, const uint32_t *set, uint32_t *count)
{
    __shared__ uint32_t first;
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t root = f < faces ? set[index[3 * f]] : TOPO_NONE;

    if (threadIdx.x == 0)
        first = root;
    __syncthreads();
    int alike = __syncthreads_count(f < faces && root == first);

    if (threadIdx.x == 0 && alike)
        atomicAdd(&count[first], (uint32_t)alike);
    else if (f < faces && root != first)
        atomicAdd(&count[root], 1u);
}

__global__ void __launch_bounds__(THREADS) mark_parts(const uint32_t *count, uint64_t n, uint32_t *at)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v < n)
        at[v] = count[v] > 0;
}

/* Ascending: most faces first, then the lowest root. */
__global__ void __launch_bounds__(THREADS) list_parts(const uint32_t *count, uint64_t n, const uint32_t *at, unsigned long long *key)
{
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (v < n && count[v])
        key[at[v]] = (unsigned long long)~count[v] << 32 | v;
}

__global__ void __launch_bounds__(THREADS) forget_parts(const unsigned long long *key, uint64_t from, uint64_t to, uint32_t *count)
{
    uint64_t i = from + (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < to)
        count[(uint32_t)key[i]] = 0;
}

__global__ void __launch_bounds__(THREADS) keep_parts(const uint32_t *index, uint64_t faces, const uint32_t *set, const uint32_t *count, uint64_t least,
                                                      uint32_t *keep)
{
    uint64_t f = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (f < faces) {
        uint32_t n = count[set[index[3 * f]]];

        keep[f] = n && n >= least;
    }
}

/* Components beyond the largest are as if they had no faces. */
int forget_small(struct cuda_clean *c, uint32_t *count, uint64_t largest)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    unsigned blocks = blocks_of(c->vertices + 1, THREADS);
    uint32_t *at = meanwhile.take<uint32_t>(c->vertices + 1), n;
    unsigned long long *key, *sorted;

    if (!at)
        return -1;
    mark_parts<<<blocks, THREADS, 0, queue>>>(count, c->vertices, at);
    if (cuda_launched(c->ctx, "components") || cuda_clean_places(c->ctx, at, c->vertices, &n))
        return -1;
    if (n <= largest)
        return 0;
    if (!(key = meanwhile.take<unsigned long long>(n)) || !(sorted = meanwhile.take<unsigned long long>(n)))
        return -1;
    list_parts<<<blocks, THREADS, 0, queue>>>(count, c->vertices, at, key);
    if (cuda_launched(c->ctx, "components") || cuda_cub(c->ctx, meanwhile, "components", [&](void *room, size_t &size) {
            return cub::DeviceRadixSort::SortKeys(room, size, key, sorted, (uint64_t)n, 0, 64, queue);
        }))
        return -1;
    forget_parts<<<blocks_of(n - largest, THREADS), THREADS, 0, queue>>>(sorted, largest, n, count);
    return cuda_launched(c->ctx, "components");
}

} // namespace

int cuda_clean_small(struct cuda_clean *c, uint64_t least, uint64_t largest)
{
    Scratch meanwhile(c->ctx);
    cudaStream_t queue = cuda_stream(c->ctx);
    unsigned blocks = blocks_of(c->faces + 1, THREADS), vertices = blocks_of(c->vertices + 1, THREADS);
    uint32_t *set = meanwhile.take<uint32_t>(c->vertices), *count = meanwhile.take<uint32_t>(c->vertices), *keep;

    if (!set || !count || cuda_count_up(c->ctx, set, c->vertices) || cuda_ok(c->ctx, cudaMemsetAsync(count, 0, 4 * c->vertices, queue), "cudaMemset"))
        return -1;
    join_vertices<<<blocks, THREADS, 0, queue>>>(c->index, c->faces, set);
    settle<<<vertices, THREADS, 0, queue>>>(set, c->vertices);
    count_faces<<<blocks, THREADS, 0, queue>>>(c->index, c->faces, set, count);
    if (cuda_launched(c->ctx, "components") || (largest && forget_small(c, count, largest)) || !(keep = meanwhile.take<uint32_t>(c->faces + 1)))
        return -1;
    keep_parts<<<blocks, THREADS, 0, queue>>>(c->index, c->faces, set, count, least, keep);
    return cuda_launched(c->ctx, "components") || cuda_clean_drop(c, keep, &c->n.small) ? -1 : 0;
}
