/* Normals on the device: each vertex sums up its corners in ascending order, in double from floats as the host does, so the bits
 * are the same. By area, tiles of faces that follow each other are looked for that touch a block of vertices that follow each
 * other; where there are few a block of threads reads them and keeps rows and cross products in shared memory. Else, and by angle,
 * rows of corners are made for the whole mesh first. */
#include "mesh_rows.cuh"

#include "kernels/mesh_normal.h"

namespace {

enum { THREADS = 256, STAGED = 8 * THREADS, STAGED_ALL = CUDA_ROW_FEW * THREADS };

/* ---- from rows of corners ---- */

struct row {
    const uint32_t *item;
    uint32_t n;
};

/* The row of the thread's vertex v; all threads of a block call it. held: STAGED numbers of shared memory. */
__device__ __forceinline__ row row_of(const cuda_rows &r, uint64_t v, uint64_t vertices, uint32_t *held)
{
    uint64_t low = (uint64_t)blockIdx.x * THREADS, high = low + THREADS < vertices ? low + THREADS : vertices;
    uint32_t from = r.first[low], to = r.first[high], a = v < vertices ? r.first[v] : to, b = v < vertices ? r.first[v + 1] : to;
    row x = { r.item + a, b - a };

    if (to - from <= STAGED) {
        for (uint32_t i = threadIdx.x; i < to - from; i += THREADS)
            held[i] = r.item[from + i];
        __syncthreads();
        x.item = held + (a - from);
    }
    return x;
}

/* The same of rows in any order, descending: each thread puts its own in order. held: STAGED_ALL numbers. */
__device__ __forceinline__ row descending_row_of(const cuda_rows &r, uint64_t v, uint64_t vertices, uint32_t *held)
{
    uint64_t low = (uint64_t)blockIdx.x * THREADS, high = low + THREADS < vertices ? low + THREADS : vertices;
    uint32_t from = r.first[low], to = r.first[high], a = v < vertices ? r.first[v] : to, b = v < vertices ? r.first[v + 1] : to;
    uint32_t *own = held + (a - from);
    row x = { own, b - a };

    for (uint32_t i = threadIdx.x; i < to - from; i += THREADS)
        held[i] = r.item[from + i];
    __syncthreads();
    for (uint32_t i = 1; i < x.n; i++) {
        uint32_t number = own[i], k = i;

        for (; k > 0 && own[k - 1] < number; k--)
            own[k] = own[k - 1];
        own[k] = number;
    }
    return x;
}

template <int ANGLE, bool SORTED>
__global__ void __launch_bounds__(THREADS) gather(struct recon_mesh m, cuda_rows corners, float *normals, uint32_t *none)
{
    __shared__ uint32_t held[SORTED ? STAGED : STAGED_ALL];
    uint64_t v = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    row r = SORTED ? row_of(corners, v, m.vertices, held) : descending_row_of(corners, v, m.vertices, held);
    double sum[3] = { 0, 0, 0 };
    float unit[3] = { 1, 0, 0 };

    if (v < m.vertices) {
        for (uint32_t i = 0; i < r.n; i++)
            normal_add(&m, r.item[SORTED ? i : r.n - 1 - i], ANGLE, sum);
        normal_unit(sum, unit);
        for (int k = 0; k < 3; k++)
            normals[3 * v + k] = unit[k];
    }
    int without = __syncthreads_count(unit[0] == 0 && unit[1] == 0 && unit[2] == 0);

    if (threadIdx.x == 0 && without)
        atomicAdd(none, (uint32_t)without);
}

typedef void gather_normals(struct recon_mesh m, cuda_rows corners, float *normals, uint32_t *none);
gather_normals *const gathers[2][2] = { { gather<0, false>, gather<0, true> }, { gather<1, false>, gather<1, true> } };

/* ---- from tiles of faces ---- */

/* A tile: faces that follow each other. A warp finds whose AT_ONCE tiles are. A block of vertices takes its tiles by GROUPs, two faces a
 * thread; with fewer vertices than threads the faces of a strip beside them fit in. */
enum { TILE = 64, CORNERS = 3 * TILE / 32, AT_ONCE = 4, BLOCK = 448, TILES_MOST = 128, GATHERERS = 512, GROUP = 16, PLACES = GROUP * TILE, ROW = 16, WINDOWS = 7 };
const uint32_t NONE = ~0u;

/* What is found on the way: the lowest corner that names no vertex, turned over so that 0 is none; vertices without a normal; that
 * the tiles are too many. */
struct findings {
    unsigned long long corner;
    uint32_t without, scattered;
};
struct board { /* tiles of a block of vertices, TILES_MOST places each, in any order */
    findings *told;
    uint32_t *count, *tile;
};

__device__ __forceinline__ uint32_t warp_min(uint32_t x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, x);
#else
    for (int k = 16; k; k /= 2) {
        uint32_t y = __shfl_xor_sync(~0u, x, k);

        x = y < x ? y : x;
    }
    return x;
#endif
}

__device__ __forceinline__ uint32_t warp_or(uint32_t x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_or_sync(~0u, x);
#else
    for (int k = 16; k; k /= 2)
        x |= __shfl_xor_sync(~0u, x, k);
    return x;
#endif
}

/* Of the warp's numbers those from the lowest on to 31 above it: lane n gets that n above it, when it is among them, else NONE. They
 * become NONE. */
__device__ __forceinline__ uint32_t take_lowest(uint32_t number[CORNERS])
{
    uint32_t low = number[0], among = 0;

#pragma unroll
    for (int k = 1; k < CORNERS; k++)
        low = number[k] < low ? number[k] : low;
    low = warp_min(low);
    if (low == NONE)
        return NONE;
#pragma unroll
    for (int k = 0; k < CORNERS; k++) {
        uint32_t above = number[k] - low;

        among |= above < 32 ? 1u << above : 0;
        number[k] = above < 32 ? NONE : number[k];
    }
    return warp_or(among) >> threadIdx.x % 32 & 1 ? low + threadIdx.x % 32 : NONE;
}

__device__ __forceinline__ bool any_left(const uint32_t number[CORNERS])
{
    uint32_t all = number[0];

#pragma unroll
    for (int k = 1; k < CORNERS; k++)
        all &= number[k];
    return __ballot_sync(~0u, all != NONE);
}

/* The tile's place among those of a block. */
__device__ __forceinline__ uint32_t place_of(const board &b, uint32_t block)
{
    return block == NONE ? 0 : atomicAdd(&b.count[block], 1u);
}

__device__ __forceinline__ void put_tile(const board &b, uint32_t block, uint32_t place, uint64_t tile)
{
    if (place >= TILES_MOST)
        b.told->scattered = 1;
    else if (block != NONE)
        b.tile[(uint64_t)block * TILES_MOST + place] = (uint32_t)tile;
}

/* Blocks of the tile's vertices. */
__device__ __forceinline__ void load_tile(const uint32_t *index, uint64_t faces, uint64_t vertices, uint64_t tile, findings *told, uint32_t number[CORNERS])
{
#pragma unroll
    for (int k = 0; k < CORNERS; k++) {
        uint64_t i = tile * TILE * 3 + 32 * k + threadIdx.x % 32;
        uint32_t v = i < 3 * faces ? index[i] : NONE;

        number[k] = v < vertices ? v / BLOCK : NONE;
        if (i < 3 * faces && v >= vertices)
            atomicMax(&told->corner, ~(unsigned long long)i);
    }
}

/* A warp AT_ONCE tiles: what is read, counted and written of one waits together with the others'. */
__global__ void __launch_bounds__(THREADS) find_tiles(const uint32_t *index, uint64_t faces, uint64_t vertices, board b)
{
    uint64_t first = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * AT_ONCE;
    uint32_t number[AT_ONCE][CORNERS], block[AT_ONCE], place[AT_ONCE], scattered = *(volatile uint32_t *)&b.told->scattered;

#pragma unroll
    for (int t = 0; t < AT_ONCE; t++)
        load_tile(index, faces, vertices, first + t, b.told, number[t]);
    if (__ballot_sync(~0u, scattered))
        return;
#pragma unroll
    for (int t = 0; t < AT_ONCE; t++) {
        block[t] = take_lowest(number[t]);
        place[t] = place_of(b, block[t]);
    }
#pragma unroll
    for (int t = 0; t < AT_ONCE; t++) {
        put_tile(b, block[t], place[t], first + t);
        for (int more = 0; any_left(number[t]); more++) {
            if (more == WINDOWS) {
                b.told->scattered = 1;
                return;
            }
            uint32_t other = take_lowest(number[t]);

            put_tile(b, other, place_of(b, other), first + t);
        }
    }
}

/* A block of vertices at work. */
struct bench {
    double cross[3][PLACES]; /* of the group's faces, those of even places first: neighbours among vertices want every other one */
    uint16_t row[ROW][BLOCK]; /* places of faces, of each vertex */
    uint32_t count[BLOCK], tile[TILES_MOST];
};

__device__ __forceinline__ uint32_t apart(uint32_t place)
{
    return place / 2 + place % 2 * (PLACES / 2);
}

/* The block's tiles, ascending; gives how many. */
__device__ uint32_t order_tiles(const board &b, bench &s)
{
    uint32_t n = b.count[blockIdx.x], mine = threadIdx.x < n ? b.tile[(uint64_t)blockIdx.x * TILES_MOST + threadIdx.x] : 0, rank = 0;

    if (threadIdx.x < n)
        s.count[threadIdx.x] = mine;
    __syncthreads();
    for (uint32_t i = 0; threadIdx.x < n && i < n; i++)
        rank += s.count[i] < mine;
    if (threadIdx.x < n)
        s.tile[rank] = mine;
    __syncthreads();
    return n;
}

/* The face at a place of the group that begins with tile at; false beyond the last. */
__device__ __forceinline__ bool face_at(const struct recon_mesh &m, const bench &s, uint32_t at, uint32_t place, uint32_t v[3])
{
    uint64_t f = (uint64_t)s.tile[at + place / TILE] * TILE + place % TILE;

    if (f >= m.faces)
        return false;
    for (int k = 0; k < 3; k++)
        v[k] = m.index[3 * f + k];
    return true;
}

/* Cross products of the group's faces with a vertex of the block, from vertex low on, and their places into its row. */
__device__ __forceinline__ void place_faces(const struct recon_mesh &m, bench &s, uint32_t at, uint32_t places, uint32_t low)
{
    for (uint32_t place = threadIdx.x; place < places; place += GATHERERS) {
        uint32_t v[3], at_place = apart(place);
        double n[3];

        if (!face_at(m, s, at, place, v) || !(v[0] - low < BLOCK || v[1] - low < BLOCK || v[2] - low < BLOCK))
            continue;
        cross_of(m.xyz + 3 * (uint64_t)v[0], m.xyz + 3 * (uint64_t)v[1], m.xyz + 3 * (uint64_t)v[2], n);
#pragma unroll
        for (int k = 0; k < 3; k++) {
            uint32_t own = v[k] - low, i = own < BLOCK ? atomicAdd(&s.count[own], 1u) : ROW;

            s.cross[k][at_place] = n[k];
            if (i < ROW)
                s.row[i][own] = (uint16_t)place;
        }
    }
}

__device__ __forceinline__ void add_face(const bench &s, uint32_t place, double sum[3])
{
    uint32_t at = apart(place);

    for (int k = 0; k < 3; k++)
        sum[k] += s.cross[k][at];
}

/* A row of at most four, put in order in registers; then of at most ROW, in its own place. */
__device__ __forceinline__ void add_few(const bench &s, uint32_t n, double sum[3])
{
    uint32_t t = threadIdx.x, x[4];

#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        x[i] = i < n ? s.row[i][t] : NONE;
    const uint8_t steps[5][2] = { { 0, 1 }, { 2, 3 }, { 0, 2 }, { 1, 3 }, { 1, 2 } };
#pragma unroll
    for (int i = 0; i < 5; i++) {
        uint32_t a = x[steps[i][0]], b = x[steps[i][1]];

        x[steps[i][0]] = a < b ? a : b;
        x[steps[i][1]] = a < b ? b : a;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        if (i < n)
            add_face(s, x[i], sum);
}

__device__ __forceinline__ void add_row(bench &s, uint32_t n, double sum[3])
{
    uint32_t t = threadIdx.x;

    for (uint32_t i = 1; i < n; i++) {
        uint16_t place = s.row[i][t];
        uint32_t k = i;

        for (; k > 0 && s.row[k - 1][t] > place; k--)
            s.row[k][t] = s.row[k - 1][t];
        s.row[k][t] = place;
    }
    for (uint32_t i = 0; i < n; i++)
        add_face(s, s.row[i][t], sum);
}

/* A vertex v of more faces than a row holds, of lane owner: the warp looks for it in all places of the group. */
__device__ void add_wide(const struct recon_mesh &m, const bench &s, uint32_t at, uint32_t places, uint32_t v, uint32_t owner, double sum[3])
{
    uint32_t lane = threadIdx.x % 32;

    for (uint32_t first = 0; first < places; first += 32) {
        uint32_t w[3] = { NONE, NONE, NONE };
        bool is = face_at(m, s, at, first + lane, w);
        uint32_t times = is ? (w[0] == v) + (w[1] == v) + (w[2] == v) : 0;

        for (uint32_t found = __ballot_sync(~0u, times); found; found &= found - 1) {
            uint32_t from = (uint32_t)__ffs((int)found) - 1, n = __shfl_sync(~0u, times, from);

            for (; lane == owner && n; n--)
                add_face(s, first + from, sum);
        }
    }
}

/* What the group gives to each vertex, a vertex a thread. count becomes 0. */
__device__ __forceinline__ void take_faces(const struct recon_mesh &m, bench &s, uint32_t at, uint32_t places, uint32_t low, double sum[3])
{
    uint32_t n = threadIdx.x < BLOCK ? s.count[threadIdx.x] : 0;

    if (threadIdx.x < BLOCK)
        s.count[threadIdx.x] = 0;
    if (n <= 4)
        add_few(s, n, sum);
    else if (n <= ROW)
        add_row(s, n, sum);
    for (uint32_t wide = __ballot_sync(~0u, n > ROW); wide; wide &= wide - 1) {
        uint32_t owner = (uint32_t)__ffs((int)wide) - 1;

        add_wide(m, s, at, places, low + threadIdx.x / 32 * 32 + owner, owner, sum);
    }
}

/* normal_unit by multiplication: the products are within five units in the last place of its quotients, so they give the same floats
 * unless they stand near where a float rounds the other way. */
__device__ __forceinline__ void unit_of(const double sum[3], float to[3])
{
    double square = sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2], r = rsqrt(square);
    bool sure = square > 1e-200 && square < 1e200;

    for (int i = 0; i < 3; i++) {
        double q = sum[i] * r;
        uint32_t beyond = (uint32_t)__double_as_longlong(q) & 0x1fffffff; /* the bits that a float has no place for */

        to[i] = (float)q;
        sure = sure && (q == 0 || (fabs(q) > 1e-30 && beyond - (0x10000000 - 64) > 128));
    }
    if (!sure)
        normal_unit(sum, to);
}

__global__ void __launch_bounds__(GATHERERS, 3) gather_tiles(struct recon_mesh m, board b, float *normals)
{
    __shared__ bench s;
    uint32_t low = blockIdx.x * BLOCK, tiles;
    uint64_t v = low + (uint64_t)threadIdx.x;
    double sum[3] = { 0, 0, 0 };
    float unit[3] = { 1, 0, 0 };

    if (b.told->scattered || b.told->corner)
        return;
    tiles = order_tiles(b, s);
    if (threadIdx.x < BLOCK)
        s.count[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t at = 0; at < tiles; at += GROUP) {
        uint32_t places = TILE * (tiles - at < GROUP ? tiles - at : GROUP);

        place_faces(m, s, at, places, low);
        __syncthreads();
        take_faces(m, s, at, places, low, sum);
        __syncthreads();
    }
    if (threadIdx.x < BLOCK && v < m.vertices) {
        unit_of(sum, unit);
        for (int k = 0; k < 3; k++)
            normals[3 * v + k] = unit[k];
    }
    int without = __syncthreads_count(unit[0] == 0 && unit[1] == 0 && unit[2] == 0);

    if (threadIdx.x == 0 && without)
        atomicAdd(&b.told->without, (uint32_t)without);
}

/* normals are there unless ret says that the mesh is scattered or a corner wrong; waits. */
int from_tiles(struct recon_ctx *ctx, const struct recon_mesh *m, float *normals, findings *ret)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t blocks = (m->vertices + BLOCK - 1) / BLOCK;
    unsigned finders = blocks_of(m->faces + 1, THREADS / 32 * AT_ONCE * TILE);
    board b = { scratch.take<findings>(2 + blocks / 4), nullptr, scratch.take<uint32_t>(blocks * TILES_MOST) };

    if (!b.told || !b.tile)
        return -1;
    b.count = (uint32_t *)(b.told + 1);
    if (cuda_ok(ctx, cudaMemsetAsync(b.told, 0, sizeof(findings) + 4 * blocks, queue), "cudaMemset"))
        return -1;
    find_tiles<<<finders, THREADS, 0, queue>>>(m->index, m->faces, m->vertices, b);
    if (blocks)
        gather_tiles<<<(unsigned)blocks, GATHERERS, 0, queue>>>(*m, b, normals);
    return cuda_launched(ctx, "normals") || cuda_read(ctx, ret, b.told, 1) ? -1 : 0;
}

/* ---- mesh.normals ---- */

int normals_bound_device(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];

    if (!m || normals_bound(ctx, in, p, cost))
        return m ? -1 : 0;
    cost->host_bytes = 0;
    cost->device_bytes = 12 * m->vertices + cuda_rows_corners_bytes(m->vertices, m->faces) + 4096; /* the other arrays are shared */
    return 0;
}

/* The same from rows of corners. */
int from_rows(struct recon_ctx *ctx, const struct recon_mesh *m, bool angle, float *normals, findings *ret)
{
    Scratch scratch(ctx);
    cudaStream_t queue = cuda_stream(ctx);
    unsigned blocks = blocks_of(m->vertices, THREADS);
    findings *told = scratch.take<findings>(1);
    struct cuda_rows corners;

    if (!told || cuda_rows_corners(ctx, scratch, m, &corners) || cuda_ok(ctx, cudaMemsetAsync(told, 0, sizeof(*told), queue), "cudaMemset"))
        return -1;
    gather_normals *kernel = gathers[angle][corners.sorted];

    if (m->vertices)
        kernel<<<blocks, THREADS, 0, queue>>>(*m, corners, normals, &told->without);
    return cuda_launched(ctx, "normals") || cuda_read(ctx, ret, told, 1) ? -1 : 0;
}

int normals_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, void *const *out, struct recon_cost *cost)
{
    const struct recon_mesh *m = (const struct recon_mesh *)in[0];
    struct recon_mesh *c = (struct recon_mesh *)out[0];
    bool angle = p[MESH_NORMALS_WEIGHT].i == MESH_NORMALS_ANGLE;
    findings told = { 0, 0, angle };

    if (topo_fits(ctx, m) || cuda_mesh_share(ctx, m, true, c) || !(c->normals = (float *)cuda_alloc(ctx, 12 * m->vertices)) ||
        (!angle && from_tiles(ctx, m, c->normals, &told)) ||
        (told.scattered ? from_rows(ctx, m, angle, c->normals, &told) : cuda_index_refuse(ctx, m, ~told.corner)))
        return -1;
    if (told.without)
        ctx->host->log(ctx, RECON_NOTE, nullptr, "mesh", "%u vertices have no normal: in no face, or their faces cancel out", told.without);
    return normals_bound_device(ctx, in, p, cost);
}

int normals_selftest(struct recon_ctx *ctx)
{
    return golden_normals(ctx, &cuda_mesh_normals, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_mesh_normals = { RECON_KERNEL_ABI,    MESH_NORMALS_NAME,    MESH_NORMALS_DOC, mesh_one_in,      mesh_one_out,
                                                mesh_normals_params, normals_bound_device, normals_run,      normals_selftest, same_shape };
