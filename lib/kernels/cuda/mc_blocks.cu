/* Marching cubes of a volume in blocks, byte for byte what the same volume would give if it were dense. Samples are looked at in
 * chunks of 16 x 16 x 32, of which those alone are held that a surface may pass: a word of a chunk is 32 samples along z.
 *   mark     the chunks with samples of blocks, and with those below them that share a cell with one
 *   sides    a bit a sample, inside or not, observed or not: a block of threads a chunk
 *   classify which of a sample's three edges (and the centre of its cell) carry a vertex; vertices and faces of each word go where
 *            the word stands in the order of rows, whose sums are the numbers of first vertices and faces
 *   points, faces  as of a dense volume (mc.cu): a warp takes a few of the words that have some
 * Chunks are ranked as blocks are, so a neighbour is a look-up, and a word's place in the order is counted from ranks. */
#include <cub/device/device_scan.cuh>
#include "blocks.cuh"
#include "mc.cuh"
#include "mc_share.cuh"
#include "slots.cuh"

namespace {

enum { SIDE = 16, ALONG = 32, WORDS = SIDE * SIDE, THREADS = 128, WORD_BYTES = 56 + 16, MARK = 256 };

struct listed_word {
    uint64_t face;      /* numbers of its first face and vertex */
    uint32_t first, at;
};
/* Coordinates here are samples, padding included, moved up so that the volume's first sample opens a chunk. */
struct chunk_job : block_job {
    struct blocks chunks;
    uint32_t *place;        /* of each chunk, three numbers */
    uint32_t base[3];       /* where the volume begins */
    bool hollow;            /* what is in no block is inside */
    uint64_t words_held;    /* WORDS a chunk */
    uint64_t *vertex, *face; /* in the words' order: how many, then sums */
    uint32_t *order;        /* the same of words that have some */
    listed_word *found;
};

/* ---- places ---- */

/* Bits from..to - 1 of 32. */
__device__ uint32_t bits_between(int64_t from, int64_t to)
{
    from = from < 0 ? 0 : from;
    to = to > 32 ? 32 : to;
    return from >= to ? 0 : (to == 32 ? ~0u : (1u << to) - 1) & ~((1u << from) - 1);
}
/* Samples of the word that are there, of the volume and `pad` around it. */
__device__ uint32_t there_at(const chunk_job &j, int64_t x, int64_t y, int64_t w, int pad)
{
    int64_t b[3] = { (int64_t)j.base[0] - pad, (int64_t)j.base[1] - pad, (int64_t)j.base[2] - pad };

    if (x < b[0] || y < b[1] || x >= b[0] + j.dim[0] + 2 * pad || y >= b[1] + j.dim[1] + 2 * pad)
        return 0;
    return bits_between(b[2] - ALONG * w, b[2] + j.dim[2] + 2 * pad - ALONG * w);
}
/* Where the word is held, or BLOCKS_NONE. */
__device__ uint64_t word_at(const chunk_job &j, int64_t x, int64_t y, int64_t w)
{
    uint64_t k;

    if (x < 0 || y < 0 || w < 0 || x / SIDE >= j.chunks.n[0] || y / SIDE >= j.chunks.n[1] || w >= j.chunks.n[2])
        return BLOCKS_NONE;
    k = blocks_find(&j.chunks, (uint32_t)x / SIDE, (uint32_t)y / SIDE, (uint32_t)w);
    return k == BLOCKS_NONE ? k : k * WORDS + (uint32_t)x % SIDE * SIDE + (uint32_t)y % SIDE;
}
__device__ uint32_t inside_at(const chunk_job &j, int64_t x, int64_t y, int64_t w)
{
    uint64_t at = word_at(j, x, y, w);

    return at != BLOCKS_NONE ? j.inside[at] : j.hollow ? there_at(j, x, y, w, 0) : 0;
}
__device__ uint32_t seen_at(const chunk_job &j, int64_t x, int64_t y, int64_t w)
{
    uint32_t all = there_at(j, x, y, w, j.rule.pad);
    uint64_t at = j.seen ? word_at(j, x, y, w) : BLOCKS_NONE;

    return at != BLOCKS_NONE ? j.seen[at] : j.seen ? all & ~there_at(j, x, y, w, 0) : all;
}
__device__ cells cells_of(const chunk_job &j, const place &p)
{
    cells c;

    for (int i = 0; i < 4; i++) {
        int64_t x = (int64_t)p.x + (i & 1), y = (int64_t)p.y + (i >> 1);

        c.corner[i] = inside_at(j, x, y, p.w);
        c.corner[i + 4] = next_of(c.corner[i], inside_at(j, x, y, (int64_t)p.w + 1));
    }
    return c;
}
__device__ uint32_t four_seen(const chunk_job &j, int64_t x, int64_t y, int64_t w)
{
    return seen_at(j, x, y, w) & seen_at(j, x + 1, y, w) & seen_at(j, x, y + 1, w) & seen_at(j, x + 1, y + 1, w);
}
__device__ place place_at(const chunk_job &j, uint64_t at)
{
    const uint32_t *c = j.place + 3 * (at / WORDS);
    uint32_t in = (uint32_t)(at % WORDS);
    place p = { SIDE * c[0] + in / SIDE, SIDE * c[1] + in % SIDE, c[2], at };

    return p;
}
/* As padded samples are numbered elsewhere. */
__device__ spot spot_at(const chunk_job &j, const place &p, uint32_t bit)
{
    uint32_t pad = (uint32_t)j.rule.pad;
    spot s = { p.x + pad - j.base[0], p.y + pad - j.base[1], ALONG * p.w + bit + pad - j.base[2] };

    return s;
}
/* Place of a word in the order: by x, then y, then along z, of the words of all chunks. Those of the planes of chunks before its own
 * come first; then of its plane those of lower x, of chunks of lower y, of lower y, and of chunks below it. */
__device__ uint64_t order_of(const chunk_job &j, const place &p)
{
    uint32_t cx = p.x / SIDE, cy = p.y / SIDE;
    uint64_t plane = blocks_before(j.chunks, blocks_cell(&j.chunks, cx, 0, 0)), next = blocks_before(j.chunks, blocks_cell(&j.chunks, cx + 1, 0, 0));
    uint64_t row = blocks_before(j.chunks, blocks_cell(&j.chunks, cx, cy, 0)), above = blocks_before(j.chunks, blocks_cell(&j.chunks, cx, cy + 1, 0));

    return WORDS * plane + p.x % SIDE * SIDE * (next - plane) + SIDE * (row - plane) + p.y % SIDE * (above - row) + (p.at / WORDS - row);
}

/* ---- chunks ---- */

/* A thread a block: the chunks that its samples stand in. Cells reach one sample up, so those one below count, too: where weights do
 * not, and in the padding. */
__global__ void __launch_bounds__(MARK) mark_chunks(chunk_job j, const uint32_t *block, uint64_t n, bool weights)
{
    uint64_t i = (uint64_t)blockIdx.x * MARK + threadIdx.x;
    uint32_t from[3], to[3];

    if (i >= n)
        return;
    for (int a = 0; a < 3; a++) {
        uint32_t low = j.grid.side * block[3 * i + a], high = low + j.grid.side < j.dim[a] ? low + j.grid.side : j.dim[a],
                 below = low ? !weights : (uint32_t)j.rule.pad, size = a < 2 ? SIDE : ALONG;

        from[a] = (j.base[a] + low - below) / size;
        to[a] = (j.base[a] + high - 1) / size;
    }
    for (uint32_t x = from[0]; x <= to[0]; x++)
        for (uint32_t y = from[1]; y <= to[1]; y++)
            for (uint32_t z = from[2]; z <= to[2]; z++)
                blocks_mark(j.chunks, blocks_cell(&j.chunks, x, y, z));
}

/* A thread a chunk: marked where the volume ends, as what is in no block is inside and padding is not. */
__global__ void __launch_bounds__(MARK) mark_border(chunk_job j, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * MARK + threadIdx.x;
    uint32_t at[3] = { (uint32_t)(i / j.chunks.n[2] / j.chunks.n[1]), (uint32_t)(i / j.chunks.n[2] % j.chunks.n[1]), (uint32_t)(i % j.chunks.n[2]) };
    bool is = false;

    for (int a = 0; a < 3; a++)
        is = is || at[a] == 0 || at[a] == (j.base[a] + j.dim[a] - 1) / (a < 2 ? SIDE : ALONG);
    if (i < n && is)
        blocks_mark(j.chunks, i);
}

/* ---- sides ---- */

/* A block of threads a chunk, a warp 32 words, a lane a sample. Samples are looked up by eights: no block is smaller. */
__global__ void __launch_bounds__(WORDS) make_chunks(chunk_job j, unsigned long long *nans)
{
    __shared__ uint64_t eight[2 * 2 * 4];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = 0, mine_seen = 0, bad = 0;
    const uint32_t *c = j.place + 3 * (uint64_t)blockIdx.x;
    uint32_t corner[3] = { SIDE * c[0] - j.base[0], SIDE * c[1] - j.base[1], ALONG * c[2] - j.base[2] }; /* below 0 wraps above dim */

    if (threadIdx.x < 16) {
        uint32_t q[3] = { corner[0] + threadIdx.x / 8 * 8, corner[1] + threadIdx.x / 4 % 2 * 8, corner[2] + threadIdx.x % 4 * 8 };

        eight[threadIdx.x] = q[0] < j.dim[0] && q[1] < j.dim[1] && q[2] < j.dim[2] ? blocks_sample(&j.grid, q[0], q[1], q[2]) : BLOCKS_NONE;
    }
    __syncthreads();
    for (uint32_t r = 0; r < 32; r++) {
        uint32_t x = (32 * warp + r) / SIDE, y = r % SIDE, q[3] = { corner[0] + x, corner[1] + y, corner[2] + lane };
        uint64_t at = eight[x / 8 * 8 + y / 8 * 4 + lane / 8];
        bool within = q[0] < j.dim[0] && q[1] < j.dim[1] && q[2] < j.dim[2], held = within && at != BLOCKS_NONE;
        uint32_t in, pad = (uint32_t)j.rule.pad;
        float f = within ? j.beyond : j.rule.ge ? -INFINITY : INFINITY;

        at += (x % 8 * j.grid.side + y % 8) * j.grid.side + lane % 8;
        f = held ? j.tsdf[at] : f;
        bad += held && f != f;
        in = __ballot_sync(ALL_LANES, j.rule.ge ? f >= j.least : f < j.least);
        mine = lane == r ? in : mine;
        if (j.seen) {
            bool padding = !within && q[0] + pad < j.dim[0] + 2 * pad && q[1] + pad < j.dim[1] + 2 * pad && q[2] + pad < j.dim[2] + 2 * pad;
            uint32_t seen = __ballot_sync(ALL_LANES, padding || (held && j.weight[at] > (float)j.rule.min_weight));

            mine_seen = lane == r ? seen : mine_seen;
        }
    }
    if (bad)
        atomicAdd(nans, (unsigned long long)bad);
    j.inside[(uint64_t)blockIdx.x * WORDS + threadIdx.x] = mine;
    if (j.seen)
        j.seen[(uint64_t)blockIdx.x * WORDS + threadIdx.x] = mine_seen;
}

/* ---- counts ---- */

/* A thread a word. */
__global__ void __launch_bounds__(THREADS) count_words(chunk_job j)
{
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x, o;
    uint32_t faces = 0, centres = 0, vertices;

    if (at >= j.words_held)
        return;
    place p = place_at(j, at);
    marks m = marks_of(j, p);
    bool any = (m.edge[0] | m.edge[1] | m.edge[2] | m.cell) != 0;

    if (m.cell) {
        cells c = cells_of(j, p);

        for (uint32_t left = m.cell; left; left &= left - 1) {
            uint32_t bit = (uint32_t)__ffs((int)left) - 1;
            int entry = entry_of(j, spot_at(j, p, bit), code_of(c, bit));

            faces += (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]);
            centres |= mc_centre[entry] ? 1u << bit : 0;
        }
    }
    vertices = (uint32_t)(__popc(m.edge[0]) + __popc(m.edge[1]) + __popc(m.edge[2]) + __popc(centres));
    o = order_of(j, p);
    j.vertex[o] = vertices;
    j.face[o] = faces;
    j.order[o] = any;
    j.count[at] = vertices | (any ? LISTED : 0);
    if (any) {
        j.owned[at] = make_uint4(m.edge[0], m.edge[1], m.edge[2], centres);
        j.cell[at] = m.cell;
    }
}

/* The words that have some, in their order. */
__global__ void __launch_bounds__(THREADS) list_found(chunk_job j)
{
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x, o;

    if (at >= j.words_held || !(j.count[at] & LISTED))
        return;
    o = order_of(j, place_at(j, at));
    listed_word w = { j.face[o], (uint32_t)j.vertex[o], (uint32_t)at };

    j.found[j.order[o]] = w;
    j.first[at] = w.first;
}

__global__ void tell_found(chunk_job j, const unsigned long long *nans, uint64_t *ret)
{
    ret[0] = j.vertex[j.words_held];
    ret[1] = j.face[j.words_held];
    ret[2] = j.order[j.words_held];
    ret[3] = *nans;
}

/* ---- points and faces ---- */

__device__ void make_point(const chunk_job &j, const listed_word &w, uint32_t nth)
{
    place p = place_at(j, w.at);
    uint32_t bit;
    int axis = nth_owned(j.owned[w.at], nth, &bit);
    spot at = spot_at(j, p, bit);
    int64_t s[3] = { at.x, at.y, at.z };

    put(j, w.first + nth, axis < 3 ? edge_point(j, s, axis) : centre_point(j, at, mc_centre[entry_of(j, at, code_of(cells_of(j, p), bit))]));
}

__global__ void __launch_bounds__(THREADS) put_points(chunk_job j)
{
    uint32_t lane = threadIdx.x % 32;
    uint64_t i = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * GROUP + lane;

    if (i - lane >= j.listed)
        return;
    share s = share_of(lane < GROUP && i < j.listed ? j.count[j.found[i].at] & ~LISTED : 0, lane);

    for (uint32_t t = lane; t - lane < s.all; t += 32) {
        uint32_t nth, owner = owner_of(s, t, &nth);

        if (t < s.all)
            make_point(j, j.found[i - lane + owner], nth);
    }
}

/* Number of the vertex on edge e of the cell at sample `bit` of the word. */
__device__ uint32_t edge_number(const chunk_job &j, const place &p, uint32_t bit, int e)
{
    int corner = mc_edge_corner(e);
    uint64_t q;

    bit += (uint32_t)corner >> 2;
    q = word_at(j, (int64_t)p.x + (corner & 1), (int64_t)p.y + (corner >> 1 & 1), (int64_t)p.w + (bit >> 5));
    return j.first[q] + rank_of(j.owned[q], bit & 31, e >> 2);
}

__device__ void put_cell(const chunk_job &j, const listed_word &w, const place &p, uint32_t bit, int entry, uint32_t n, uint32_t *to)
{
    const uint8_t *edges = &mc_triangle[3 * mc_offset[entry]];

    for (uint32_t t = 0; t < 3 * n; t++)
        to[t] = edges[t] == MC_CENTRE ? w.first + rank_of(j.owned[w.at], bit, 3) : edge_number(j, p, bit, edges[t]);
}

__global__ void __launch_bounds__(THREADS) put_faces(chunk_job j)
{
    uint32_t lane = threadIdx.x % 32;
    uint64_t i = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * GROUP + lane, face;

    if (i - lane >= j.listed)
        return;
    share s = share_of(lane < GROUP && i < j.listed ? (uint32_t)__popc(j.cell[j.found[i].at]) : 0, lane);

    face = j.found[i - lane].face;
    for (uint32_t t = lane; t - lane < s.all; t += 32) {
        uint32_t nth, n = 0, owner = owner_of(s, t, &nth), bit = 0;
        listed_word w = { 0, 0, 0 };
        place p = { 0, 0, 0, 0 };
        int entry = 0;

        if (t < s.all) {
            w = j.found[i - lane + owner];
            p = place_at(j, w.at);
            bit = nth_bit(j.cell[w.at], nth);
            entry = entry_of(j, spot_at(j, p, bit), code_of(cells_of(j, p), bit));
            n = (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]);
        }
        share f = share_of(n, lane);

        if (n)
            put_cell(j, w, p, bit, entry, n, j.index + 3 * (face + f.before));
        face += f.all;
    }
}

/* ---- host ---- */

chunk_job chunk_job_of(const struct recon_volume *v, const struct recon_value *params)
{
    chunk_job j = {};

    (job &)j = job_of(v, params);
    j.beyond = v->beyond;
    j.hollow = mc_inside(&j.rule, mc_value(&j.rule, v->beyond)) != 0;
    for (int a = 0; a < 3; a++)
        j.base[a] = !j.rule.pad ? 0 : a < 2 ? SIDE : ALONG;
    return j;
}

/* The grid of chunks is one of cubes of SIDE, along z in steps of two. */
void chunk_dim(const chunk_job &j, uint32_t dim[3])
{
    for (int a = 0; a < 3; a++)
        dim[a] = j.base[a] + j.dim[a] + (uint32_t)j.rule.pad;
    dim[2] = (dim[2] + 1) / 2;
}

/* Whether chunks are held wherever the volume ends. */
bool has_border(const chunk_job &j, bool weights)
{
    return j.hollow && j.rule.pad && !weights;
}

/* The chunks, ranked and listed. */
int find_chunks(struct recon_ctx *ctx, Scratch &scratch, chunk_job &j, const struct recon_volume *v)
{
    uint64_t n = v->blocks, found, all;
    bool weights = j.weight != nullptr;
    uint32_t dim[3];

    chunk_dim(j, dim);
    if (cuda_blocks_of_volume(ctx, scratch, v, &j.grid) || cuda_blocks_take(ctx, scratch, dim, SIDE, &j.chunks))
        return -1;
    all = (uint64_t)j.chunks.n[0] * j.chunks.n[1] * j.chunks.n[2];
    if (n)
        mark_chunks<<<blocks_of(n, MARK), MARK, 0, cuda_stream(ctx)>>>(j, v->block, n, weights);
    if (has_border(j, weights))
        mark_border<<<blocks_of(all, MARK), MARK, 0, cuda_stream(ctx)>>>(j, all);
    if (cuda_launched(ctx, "looking for a surface") || cuda_blocks_rank(ctx, scratch, &j.chunks) || cuda_blocks_count(ctx, &j.chunks, &found))
        return -1;
    if (found > 0x7fffffff / WORDS)
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%llu chunks of samples with a surface are more than one launch covers",
                               (unsigned long long)found);
    j.words_held = found * WORDS;
    return !(j.place = scratch.take<uint32_t>(3 * found)) || cuda_blocks_places(ctx, &j.chunks, j.place) ? -1 : 0;
}

template <typename T> int sum_up(struct recon_ctx *ctx, Scratch &scratch, T *p, uint64_t n)
{
    return cuda_cub(ctx, scratch, "marching cubes, counting", [&](void *room, size_t &size) {
        return cub::DeviceScan::ExclusiveSum(room, size, p, p, n, cuda_stream(ctx));
    });
}

enum { VERTICES, FACES, FOUND, NANS, TOTALS };

/* Sides and counts. */
int survey(struct recon_ctx *ctx, Scratch &scratch, chunk_job &j, uint64_t totals[TOTALS])
{
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t n = j.words_held, *told = (uint64_t *)cuda_pinned(ctx, TOTALS * sizeof(uint64_t));
    unsigned long long *nans;

    if (!told || !(j.inside = scratch.take<uint32_t>(n)) || (j.weight && !(j.seen = scratch.take<uint32_t>(n))) ||
        !(j.owned = scratch.take<uint4>(n)) || !(j.count = scratch.take<uint32_t>(n)) || !(j.cell = scratch.take<uint32_t>(n)) ||
        !(j.first = scratch.take<uint32_t>(n)) || !(j.vertex = scratch.take<uint64_t>(n + 1)) || !(j.face = scratch.take<uint64_t>(n + 1)) ||
        !(j.order = scratch.take<uint32_t>(n + 1)) || !(nans = scratch.take<unsigned long long>(1)) ||
        cuda_ok(ctx, cudaMemsetAsync(nans, 0, 8, queue), "cudaMemset") || cuda_ok(ctx, cudaMemsetAsync(j.vertex + n, 0, 8, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(j.face + n, 0, 8, queue), "cudaMemset") || cuda_ok(ctx, cudaMemsetAsync(j.order + n, 0, 4, queue), "cudaMemset"))
        return -1;
    if (n) {
        make_chunks<<<blocks_of(n, WORDS), WORDS, 0, queue>>>(j, nans);
        count_words<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(j);
    }
    if (cuda_launched(ctx, "marching cubes, counting") || sum_up(ctx, scratch, j.vertex, n + 1) || sum_up(ctx, scratch, j.face, n + 1) ||
        sum_up(ctx, scratch, j.order, n + 1))
        return -1;
    tell_found<<<1, 1, 0, queue>>>(j, nans, told);
    if (cuda_launched(ctx, "marching cubes, counting") || cuda_ok(ctx, cudaStreamSynchronize(queue), "marching cubes, counting"))
        return -1;
    memcpy(totals, told, TOTALS * sizeof(*told));
    return 0;
}

} // namespace

/* Chunks that one block's samples, and those one below, stand in; of no more than there can be. A volume that is not there yet is
 * taken to have weights, as all have that a kernel makes. */
uint64_t cuda_mc_blocks_bytes(const struct recon_volume *v, const struct recon_value *params)
{
    chunk_job j = chunk_job_of(v, params);
    bool weights = j.rule.min_weight >= 0 && (v->weight || !v->tsdf);
    uint64_t across = v->side > SIDE ? 2 : 1, all, chunks;
    struct blocks grid, held;
    uint32_t dim[3];

    chunk_dim(j, dim);
    blocks_plan(dim, SIDE, &held);
    blocks_plan(v->dim, v->side, &grid);
    all = (uint64_t)held.n[0] * held.n[1] * held.n[2];
    chunks = v->blocks * (!weights || j.rule.pad ? (across + 1) * (across + 1) * 2 : across * across);
    chunks = has_border(j, weights) || chunks > all ? all : chunks;
    return cuda_blocks_bytes(&grid) + cuda_blocks_bytes(&held) + chunks * (WORDS * (WORD_BYTES + 2) + 12) + (1 << 20);
}

int cuda_mc_blocks(struct recon_ctx *ctx, const struct recon_volume *v, const struct recon_value *params, struct recon_mesh *m,
                   struct recon_cost *cost)
{
    cudaStream_t queue = cuda_stream(ctx);
    chunk_job j = chunk_job_of(v, params);
    uint64_t totals[TOTALS] = { 0 };
    Scratch scratch(ctx);

    if (find_chunks(ctx, scratch, j, v) || survey(ctx, scratch, j, totals) ||
        cuda_mc_take_mesh(ctx, v, &j.rule, totals[VERTICES], totals[FACES], m))
        return -1;
    if (totals[NANS])
        ctx->host->log(ctx, RECON_WARN, nullptr, "volume", "%llu samples are not a number and count as outside",
                       (unsigned long long)totals[NANS]);
    write_to(j, m);
    j.weight = v->weight; /* colours are mixed by it, whatever is observed */
    j.listed = totals[FOUND];
    if (!(j.found = scratch.take<listed_word>(j.listed)))
        return -1;
    list_found<<<blocks_of(j.words_held, THREADS), THREADS, 0, queue>>>(j);
    put_points<<<blocks_of(j.listed, THREADS / 32 * GROUP), THREADS, 0, queue>>>(j);
    put_faces<<<blocks_of(j.listed, THREADS / 32 * GROUP), THREADS, 0, queue>>>(j);
    if (cuda_launched(ctx, "marching cubes"))
        return -1;
    mc_cost(v, m, 0, cost);
    cost->device_bytes = cost->host_bytes + cuda_mc_blocks_bytes(v, params);
    cost->host_bytes = 0;
    return 0;
}
