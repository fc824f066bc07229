/* Marching cubes in passes over words of 32 samples along z:
 *   sides    the volume is read once: a bit a sample, inside or not, observed or not
 *   classify by bits, 32 samples at a time: which of a sample's three edges (and the centre of its cell) carry a vertex;
 *            vertices and faces of each word and of each block of words, whose exclusive sums are where the block's begin
 *   list     the words that have some, in order, each with the numbers of its first vertex and face
 *   points   vertices to their places
 *   faces    triangles, by the words around the cell
 * In the last two a warp takes a few words of the list and shares out what is in them. Order and arithmetic are cpu/marching_cubes.c's: the meshes are the
 * same. */
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cmath>
#include <cstring>
#include "mc.cuh"
#include "mc_share.cuh"
#include "mc_sides.cuh"
#include "slots.cuh"

namespace {

enum { THREADS = 128, WORD_BYTES = 60 };

/* ---- words of a block ---- */

__device__ bool place_in_plane(const job &j, uint32_t block, uint32_t thread, place *ret)
{
    uint32_t word;

    ret->x = block / j.blocks;
    word = (block - ret->x * j.blocks) * THREADS + thread;
    ret->y = word / j.words;
    ret->w = word - ret->y * j.words;
    ret->at = (uint64_t)ret->x * j.plane + word;
    return word < j.plane;
}

__device__ marks marks_here(const job &j)
{
    marks none = { { 0, 0, 0 }, 0 };
    place p;

    return place_in_plane(j, blockIdx.x, threadIdx.x, &p) ? marks_of(j, p) : none;
}

__global__ void __launch_bounds__(THREADS) classify(job j)
{
    __shared__ uint8_t whose[THREADS];
    __shared__ uint32_t n, vertices, faces, cells_in[THREADS], faces_of[THREADS], centres[THREADS];
    uint32_t lane = threadIdx.x % 32, nv;
    marks m = marks_here(j);
    bool any = (m.edge[0] | m.edge[1] | m.edge[2] | m.cell) != 0;
    place p;

    if (threadIdx.x == 0)
        n = vertices = faces = 0;
    if (!__syncthreads_or(any)) {
        if (threadIdx.x == 0)
            j.totals[blockIdx.x] = j.totals[j.all_blocks + blockIdx.x] = j.totals[2 * j.all_blocks + blockIdx.x] = 0;
        return;
    }
    cells_in[threadIdx.x] = m.cell;
    faces_of[threadIdx.x] = centres[threadIdx.x] = 0;
    if (any)
        whose[atomicAdd(&n, 1u)] = (uint8_t)threadIdx.x;
    __syncthreads();
    for (uint32_t i = threadIdx.x / 32 * 32; i < n; i += THREADS) {
        uint32_t count = i + lane < n ? (uint32_t)__popc(cells_in[whose[i + lane]]) : 0;
        share s = share_of(count, lane);

        for (uint32_t t = lane; t - lane < s.all; t += 32) {
            uint32_t nth, thread = i + owner_of(s, t, &nth);

            if (t >= s.all)
                continue;
            thread = whose[thread];
            uint32_t bit = nth_bit(cells_in[thread], nth);

            place_in_plane(j, blockIdx.x, thread, &p);
            spot at = { p.x, p.y, 32 * p.w + bit };
            int entry = entry_of(j, at, code_of(cells_of(j, p), bit));

            atomicAdd(&faces_of[thread], (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]));
            if (mc_centre[entry])
                atomicOr(&centres[thread], 1u << bit);
        }
    }
    __syncthreads();
    nv = (uint32_t)(__popc(m.edge[0]) + __popc(m.edge[1]) + __popc(m.edge[2]) + __popc(centres[threadIdx.x]));
    if (place_in_plane(j, blockIdx.x, threadIdx.x, &p))
        j.count[p.at] = nv | faces_of[threadIdx.x] << 15 | (any ? LISTED : 0);
    if (any) {
        j.owned[p.at] = make_uint4(m.edge[0], m.edge[1], m.edge[2], centres[threadIdx.x]);
        j.cell[p.at] = m.cell;
        atomicAdd(&vertices, nv);
        atomicAdd(&faces, faces_of[threadIdx.x]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        j.totals[blockIdx.x] = vertices;
        j.totals[j.all_blocks + blockIdx.x] = faces;
        j.totals[2 * j.all_blocks + blockIdx.x] = n;
    }
}

/* What the host asks of the sums: vertices, faces, words with a surface, samples that are not a number. */
__global__ void tell(job j, const unsigned long long *nans, uint64_t *ret)
{
    ret[0] = j.totals[j.all_blocks];
    ret[1] = j.totals[2 * j.all_blocks] - j.totals[j.all_blocks];
    ret[2] = j.totals[3 * j.all_blocks] - j.totals[2 * j.all_blocks];
    ret[3] = *nans;
}

/* The words with a surface in their order, each with the numbers of its first vertex and face. */
__global__ void __launch_bounds__(THREADS) list_words(job j)
{
    typedef cub::BlockScan<uint32_t, THREADS> Scan;
    __shared__ typename Scan::TempStorage scratch, scratch2;
    const uint64_t *v = j.totals + blockIdx.x, *f = v + j.all_blocks, *w = f + j.all_blocks;
    uint32_t count, before, place_in_list;
    place p;

    if (w[0] == w[1])
        return;
    bool is = place_in_plane(j, blockIdx.x, threadIdx.x, &p);

    count = is ? j.count[p.at] : 0;
    is = is && (count & LISTED);
    Scan(scratch).ExclusiveSum(count & ~LISTED, before);
    Scan(scratch2).ExclusiveSum(is, place_in_list);
    if (is) {
        entry e = { f[0] - j.totals[j.all_blocks] + (before >> 15), (uint32_t)v[0] + (before & 0x7fff), blockIdx.x,
                    threadIdx.x };

        j.list[w[0] - j.totals[2 * j.all_blocks] + place_in_list] = e;
        j.first[p.at] = e.first;
    }
}

/* ---- points ---- */

/* What a lane works on: a word of the list and a sample of it. */
struct piece {
    place p;
    uint32_t bit;
    bool is;
};
__device__ piece piece_of(const job &j, uint64_t at, bool is)
{
    piece w = { { 0, 0, 0, 0 }, 0, is };

    if (is)
        place_in_plane(j, j.list[at].block, j.list[at].thread, &w.p);
    return w;
}

__device__ void make_point(const job &j, const place &p, uint32_t first, uint32_t nth)
{
    uint32_t bit;
    int axis = nth_owned(j.owned[p.at], nth, &bit);
    spot at = { p.x, p.y, 32 * p.w + bit };
    int64_t s[3] = { at.x, at.y, at.z };

    put(j, first + nth,
        axis < 3 ? edge_point(j, s, axis) : centre_point(j, at, mc_centre[entry_of(j, at, code_of(cells_of(j, p), bit))]));
}

/* A warp GROUP words of the list, about as many vertices as it has lanes, a lane a vertex. */
__global__ void __launch_bounds__(THREADS) make_points(job j)
{
    uint32_t lane = threadIdx.x % 32;
    uint64_t i = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * GROUP + lane;

    if (i - lane >= j.listed)
        return;
    piece own = piece_of(j, i, lane < GROUP && i < j.listed);
    share s = share_of(own.is ? j.count[own.p.at] & 0x7fff : 0, lane);

    for (uint32_t t = lane; t - lane < s.all; t += 32) {
        uint32_t nth, owner = owner_of(s, t, &nth);

        if (t < s.all)
            make_point(j, piece_of(j, i - lane + owner, true).p, j.list[i - lane + owner].first, nth);
    }
}

/* ---- faces ---- */

/* Number of the vertex on edge e of the cell at sample `bit` of the word. */
__device__ uint32_t edge_id(const job &j, uint64_t word, uint32_t bit, int e)
{
    int corner = mc_edge_corner(e);
    uint64_t q = word + (corner & 1 ? j.plane : 0) + (corner & 2 ? j.words : 0);

    bit += (uint32_t)corner >> 2;
    q += bit >> 5;
    return j.first[q] + rank_of(j.owned[q], bit & 31, e >> 2);
}

/* The triangles of one cell. */
__device__ void make_triangles(const job &j, const place &p, uint32_t bit, uint32_t first, int in_table, uint32_t n,
                               uint32_t *to)
{
    const uint8_t *edges = &mc_triangle[3 * mc_offset[in_table]];

    for (uint32_t t = 0; t < 3 * n; t++)
        to[t] = edges[t] == MC_CENTRE ? first + rank_of(j.owned[p.at], bit, 3) : edge_id(j, p.at, bit, edges[t]);
}

/* A warp GROUP words of the list, a lane a cell; their faces follow each other as the words do. */
__global__ void __launch_bounds__(THREADS) make_faces(job j)
{
    uint32_t lane = threadIdx.x % 32;
    uint64_t i = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / 32 * GROUP + lane, face;

    if (i - lane >= j.listed)
        return;
    piece own = piece_of(j, i, lane < GROUP && i < j.listed);
    share s = share_of(own.is ? (uint32_t)__popc(j.cell[own.p.at]) : 0, lane);

    face = j.list[i - lane].face;
    for (uint32_t t = lane; t - lane < s.all; t += 32) {
        uint32_t nth, n = 0, owner = owner_of(s, t, &nth);
        piece w = piece_of(j, i - lane + owner, t < s.all);
        int in_table = 0;

        if (w.is) {
            w.bit = nth_bit(j.cell[w.p.at], nth);
            spot at = { w.p.x, w.p.y, 32 * w.p.w + w.bit };

            in_table = entry_of(j, at, code_of(cells_of(j, w.p), w.bit));
            n = (uint32_t)(mc_offset[in_table + 1] - mc_offset[in_table]);
        }
        share f = share_of(n, lane);

        if (n)
            make_triangles(j, w.p, w.bit, j.list[i - lane + owner].first, in_table, n, j.index + 3 * (face + f.before));
        face += f.all;
    }
}

/* ---- host ---- */

/* Blocks and planes; refuses what one launch does not cover. */
int measure(struct recon_ctx *ctx, job &j)
{
    uint64_t plane = (uint64_t)j.n[1] * j.words, blocks = (plane + THREADS - 1) / THREADS;

    j.all_blocks = blocks * j.n[0];
    if (plane > 0x7fffffff || 3 * j.all_blocks > 0x7fffffff)
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%u x %u x %u samples are more than one launch covers",
                               j.n[0], j.n[1], j.n[2]);
    j.plane = (uint32_t)plane;
    j.blocks = (uint32_t)blocks;
    return 0;
}

/* Exclusive sums of the blocks' totals in place. */
int scan(struct recon_ctx *ctx, Scratch &scratch, job &j)
{
    return cuda_cub(ctx, scratch, "scan", [&](void *room, size_t &size) {
        return cub::DeviceScan::ExclusiveSum(room, size, j.totals, j.totals, 3 * j.all_blocks + 1, cuda_stream(ctx));
    });
}

enum { VERTICES, FACES, WORDS, NANS, TOTALS };

/* Sides and counts. */
int survey(struct recon_ctx *ctx, Scratch &scratch, job &j, uint64_t totals[TOTALS])
{
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t all = (uint64_t)j.plane * j.n[0], *told = (uint64_t *)cuda_pinned(ctx, TOTALS * sizeof(uint64_t));
    uint32_t blocks = (j.plane + SIDES / 32 * RUN - 1) / (SIDES / 32 * RUN);
    unsigned long long *nans;

    if (!told || !(j.inside = scratch.take<uint32_t>(all)) || (j.weight && !(j.seen = scratch.take<uint32_t>(all))) ||
        !(j.owned = scratch.take<uint4>(all)) || !(j.count = scratch.take<uint32_t>(all)) ||
        !(j.cell = scratch.take<uint32_t>(all)) ||
        !(j.first = scratch.take<uint32_t>(all)) || !(j.totals = scratch.take<uint64_t>(3 * j.all_blocks + 1)) ||
        !(nans = scratch.take<unsigned long long>(1)) ||
        cuda_ok(ctx, cudaMemsetAsync(nans, 0, 8, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(j.totals + 3 * j.all_blocks, 0, 8, queue), "cudaMemset"))
        return -1;
    if (j.rule.pad || j.dim[2] % 32)
        make_sides<<<blocks * j.n[0], SIDES, 0, queue>>>(j, blocks, nans);
    else
        make_sides_flat<<<blocks_of(all, SIDES / 32 * RUN), SIDES, 0, queue>>>(j, all, nans);
    classify<<<(unsigned)j.all_blocks, THREADS, 0, queue>>>(j);
    if (cuda_launched(ctx, "marching cubes, counting") || scan(ctx, scratch, j))
        return -1;
    tell<<<1, 1, 0, queue>>>(j, nans, told);
    if (cuda_launched(ctx, "marching cubes, counting") ||
        cuda_ok(ctx, cudaStreamSynchronize(queue), "marching cubes, counting"))
        return -1;
    memcpy(totals, told, TOTALS * sizeof(*told));
    return 0;
}

/* A byte a sample in whole words, the blocks' totals, and the list: 24 bytes a word, were there a surface in each. */
uint64_t scratch_bytes(const struct recon_volume *v, bool pad)
{
    uint64_t more = pad ? 2 : 0, words = (v->dim[2] + more + 31) / 32, plane = (v->dim[1] + more) * words;

    return (v->dim[0] + more) * (plane * WORD_BYTES + (plane + THREADS - 1) / THREADS * 24) + (1 << 20);
}

void to_device(const struct recon_volume *v, const struct recon_value *params, struct recon_cost *cost)
{
    cost->device_bytes = cost->host_bytes + (v->side ? cuda_mc_blocks_bytes(v, params) : scratch_bytes(v, params[MC_PAD].i != 0));
    cost->host_bytes = 0;
}

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost)
{
    const struct recon_volume *v = in ? (const struct recon_volume *)in[0] : nullptr;

    (void)ctx;
    if (v) {
        mc_bound(v, 0, cost);
        to_device(v, params, cost);
    }
    return 0;
}

int run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out,
        struct recon_cost *cost)
{
    const struct recon_volume *v = (const struct recon_volume *)in[0];
    struct recon_mesh *m = (struct recon_mesh *)out[0];
    cudaStream_t queue = cuda_stream(ctx);
    job j = job_of(v, params);
    uint64_t totals[TOTALS] = { 0 };
    Scratch scratch(ctx);

    if (v->side)
        return cuda_mc_blocks(ctx, v, params, m, cost);
    if (measure(ctx, j) || survey(ctx, scratch, j, totals) || cuda_mc_take_mesh(ctx, v, &j.rule, totals[VERTICES], totals[FACES], m))
        return -1;
    if (totals[NANS])
        ctx->host->log(ctx, RECON_WARN, nullptr, "volume", "%llu samples are not a number and count as outside",
                       (unsigned long long)totals[NANS]);
    write_to(j, m);
    j.weight = v->weight; /* colours are mixed by it, whatever is observed */
    j.listed = totals[WORDS];
    if (!(j.list = scratch.take<entry>(j.listed)))
        return -1;
    list_words<<<(unsigned)j.all_blocks, THREADS, 0, queue>>>(j);
    make_points<<<blocks_of(j.listed, THREADS / 32 * GROUP), THREADS, 0, queue>>>(j);
    make_faces<<<blocks_of(j.listed, THREADS / 32 * GROUP), THREADS, 0, queue>>>(j);
    if (cuda_launched(ctx, "marching cubes"))
        return -1;
    mc_cost(v, m, 0, cost);
    to_device(v, params, cost);
    return 0;
}

/* The reason why there is no surface, told from a copy on the host. */
int refuse_empty(struct recon_ctx *ctx, const struct recon_volume *v, const struct mc_rule *rule)
{
    uint64_t bytes = recon_volume_samples(v) * 4;
    struct recon_volume copy = *v;
    int rc;

    copy.place = RECON_HOST;
    copy.tsdf = (float *)ctx->host->alloc(ctx, bytes);
    copy.weight = v->weight ? (float *)ctx->host->alloc(ctx, bytes) : nullptr;
    if (!copy.tsdf || (v->weight && !copy.weight) || cuda_device.download(ctx, copy.tsdf, v->tsdf, bytes) ||
        (v->weight && cuda_device.download(ctx, copy.weight, v->weight, bytes)))
        rc = -1;
    else
        rc = mc_refuse_empty(ctx, &copy, rule);
    ctx->host->free(ctx, copy.tsdf);
    ctx->host->free(ctx, copy.weight);
    return rc;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_marching_cubes(ctx, &cuda_marching_cubes, &cuda_device);
}

} // namespace

int cuda_mc_take_mesh(struct recon_ctx *ctx, const struct recon_volume *v, const struct mc_rule *rule, uint64_t vertices, uint64_t faces,
                      struct recon_mesh *m)
{
    m->place = RECON_DEVICE;
    m->vertices = vertices;
    m->faces = faces;
    if (!m->faces)
        return refuse_empty(ctx, v, rule);
    if (m->vertices > UINT32_MAX)
        return ctx->host->fail(ctx, 65, "volume-too-big", "mesh", "%llu vertices are more than 32-bit indices hold",
                               (unsigned long long)m->vertices);
    if (!(m->xyz = (float *)cuda_alloc(ctx, m->vertices * 12)) || !(m->index = (uint32_t *)cuda_alloc(ctx, m->faces * 12)))
        return -1;
    return v->rgb && !(m->rgb = (uint8_t *)cuda_alloc(ctx, m->vertices * 3)) ? -1 : 0;
}

const struct recon_kernel cuda_marching_cubes = { RECON_KERNEL_ABI, MC_NAME, MC_DOC, mc_in,    mc_out,
                                                  mc_params,        bound,   run,    selftest, mc_shape };
