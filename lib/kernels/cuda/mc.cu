/* Marching cubes in passes over words of 32 samples along z:
 *   sides    the volume is read once: a bit a sample, inside or not, observed or not
 *   classify by bits, 32 samples at a time: which of a sample's three edges (and the centre of its cell) carry a vertex;
 *            vertices and faces of each word and of each block of words, whose exclusive sums are where the block's begin
 *   points   vertices to their places, and the number of each word's first
 *   faces    triangles, by the words around the cell
 * In the last three, blocks without a surface leave at once; in the others a warp takes a word that has one. Order and
 * arithmetic are cpu/marching_cubes.c's: the meshes are the same. */
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cmath>
#include <cstring>
#include "mc_surface.cuh"

namespace {

enum { THREADS = 128, WARPS = THREADS / 32, RUN = 8, SIDES = 256, WORD_BYTES = 32 };
#define ALL_LANES 0xffffffffu

/* ---- sides ---- */

/* One sample: whether it is there; its value, one that is outside for padding. */
struct sample {
    float f, weight;
    bool in_row, in_volume;
};
__device__ sample sample_at(const job &j, bool wanted, uint32_t x, uint32_t y, uint32_t z)
{
    sample s = { 0, 0, wanted && z < j.n[2], false };
    uint64_t at = 0;

    s.in_volume = s.in_row && source_of(j, x, y, z, &at);
    if (s.in_volume) {
        s.f = j.tsdf[at];
        s.weight = j.seen ? j.weight[at] : 0;
    }
    return s;
}

/* A warp RUN words, a lane a sample of each. */
__global__ void __launch_bounds__(SIDES) make_sides(job j, uint32_t blocks, unsigned long long *nans)
{
    uint32_t lane = threadIdx.x % 32, x = blockIdx.x / blocks,
             word = ((blockIdx.x - x * blocks) * (SIDES / 32) + threadIdx.x / 32) * RUN, y = word / j.words,
             w = word - y * j.words, mine = 0, mine_seen = 0;
    sample s[RUN];

    if (word >= j.plane)
        return;
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        s[i] = sample_at(j, word + i < j.plane, x, y, 32 * w + lane);
        if (++w == j.words) {
            w = 0;
            y++;
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < RUN; i++) {
        bool below = s[i].f < j.least, above = s[i].f >= j.least; /* neither: not a number */
        uint32_t in = __ballot_sync(ALL_LANES, s[i].in_volume && (j.rule.ge ? above : below)),
                 bad = __ballot_sync(ALL_LANES, s[i].in_volume && !below && !above);

        mine = lane == i ? in : mine;
        if (j.seen) {
            uint32_t seen = __ballot_sync(ALL_LANES, s[i].in_row && (!s[i].in_volume || s[i].weight > (float)j.rule.min_weight));

            mine_seen = lane == i ? seen : mine_seen;
        }
        if (lane == 0 && bad)
            atomicAdd(nans, (unsigned long long)__popc(bad));
    }
    if (lane < RUN && word + lane < j.plane) {
        j.inside[(uint64_t)x * j.plane + word + lane] = mine;
        if (j.seen)
            j.seen[(uint64_t)x * j.plane + word + lane] = mine_seen;
    }
}

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

__global__ void __launch_bounds__(THREADS) classify(job j)
{
    __shared__ marks listed[THREADS];
    __shared__ uint8_t whose[THREADS];
    __shared__ uint32_t n, vertices, faces, of_word[THREADS], faces_of[THREADS];
    uint32_t lane = threadIdx.x % 32;
    place p;
    marks m = { { 0, 0, 0 }, 0 };

    if (place_in_plane(j, blockIdx.x, threadIdx.x, &p))
        m = marks_of(j, p);
    bool any = (m.edge[0] | m.edge[1] | m.edge[2] | m.cell) != 0;

    if (threadIdx.x == 0)
        n = vertices = faces = 0;
    if (!__syncthreads_or(any)) {
        if (threadIdx.x == 0)
            j.totals[blockIdx.x] = j.totals[j.all_blocks + blockIdx.x] = 0;
        return;
    }
    of_word[threadIdx.x] = faces_of[threadIdx.x] = 0;
    if (any) {
        uint32_t at = atomicAdd(&n, 1u);

        listed[at] = m;
        whose[at] = (uint8_t)threadIdx.x;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x / 32; i < n; i += WARPS) {
        uint32_t thread = whose[i], nf = 0, centres;
        bool centre = false;

        m = listed[i];
        place_in_plane(j, blockIdx.x, thread, &p);
        if (m.cell >> lane & 1) {
            spot at = { p.x, p.y, 32 * p.w + lane };
            int entry = entry_of(j, at, code_of(cells_of(j, p), lane));

            nf = (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]);
            centre = mc_centre[entry] != 0;
        }
        if (nf)
            atomicAdd(&faces_of[thread], nf);
        centres = __ballot_sync(ALL_LANES, centre);
        if (lane == 0) {
            uint32_t nv = (uint32_t)(__popc(m.edge[0]) + __popc(m.edge[1]) + __popc(m.edge[2]) + __popc(centres));

            j.owned[p.at] = make_uint4(m.edge[0], m.edge[1], m.edge[2], centres);
            of_word[thread] = nv;
            atomicAdd(&vertices, nv);
        }
    }
    __syncthreads();
    if (place_in_plane(j, blockIdx.x, threadIdx.x, &p))
        j.count[p.at] = of_word[threadIdx.x] | faces_of[threadIdx.x] << 16;
    if (faces_of[threadIdx.x])
        atomicAdd(&faces, faces_of[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        j.totals[blockIdx.x] = vertices;
        j.totals[j.all_blocks + blockIdx.x] = faces;
    }
}

/* What the host asks of the sums: vertices, faces, samples that are not a number. */
__global__ void tell(job j, const unsigned long long *nans, uint64_t *ret)
{
    ret[0] = j.totals[j.all_blocks];
    ret[1] = j.totals[2 * j.all_blocks] - ret[0];
    ret[2] = *nans;
}

/* The words of a block that have vertices or faces, and what precedes each in the block. */
struct listing {
    uint32_t n, before[THREADS]; /* vertices, and faces << 16 */
    uint8_t whose[THREADS];
};
/* False: nothing is there. */
__device__ bool list_words(const job &j, listing &l)
{
    typedef cub::BlockScan<uint32_t, THREADS> Scan;
    __shared__ typename Scan::TempStorage scratch;
    uint32_t count, before;
    place p;

    if (j.totals[blockIdx.x + 1] == j.totals[blockIdx.x] &&
        j.totals[j.all_blocks + blockIdx.x + 1] == j.totals[j.all_blocks + blockIdx.x])
        return false;
    if (threadIdx.x == 0)
        l.n = 0;
    count = place_in_plane(j, blockIdx.x, threadIdx.x, &p) ? j.count[p.at] : 0;
    Scan(scratch).ExclusiveSum(count, before); /* at most 128 * 384 faces: no carry */
    __syncthreads();
    if (count) {
        uint32_t at = atomicAdd(&l.n, 1u);

        l.whose[at] = (uint8_t)threadIdx.x;
        l.before[at] = before;
    }
    __syncthreads();
    return true;
}

__global__ void __launch_bounds__(THREADS) make_points(job j)
{
    __shared__ listing l;
    uint32_t lane = threadIdx.x % 32;

    if (!list_words(j, l))
        return;
    for (uint32_t i = threadIdx.x / 32; i < l.n; i += WARPS) {
        uint64_t first = j.totals[blockIdx.x] + (l.before[i] & 0xffff);
        place p;

        place_in_plane(j, blockIdx.x, l.whose[i], &p);
        uint4 o = j.owned[p.at];
        uint32_t own[3] = { o.x, o.y, o.z };
        int64_t s[3] = { p.x, p.y, 32 * p.w + lane };

        if (lane == 0)
            j.first[p.at] = (uint32_t)first;
        for (int axis = 0; axis < 3; axis++)
            if (own[axis] >> lane & 1)
                put(j, first + rank_of(o, lane, axis), edge_point(j, s, axis));
        if (o.w >> lane & 1) {
            spot at = { p.x, p.y, 32 * p.w + lane };

            put(j, first + rank_of(o, lane, 3),
                centre_point(j, at, mc_centre[entry_of(j, at, code_of(cells_of(j, p), lane))]));
        }
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

__device__ uint32_t sum_before(uint32_t v, uint32_t lane)
{
    uint32_t sum = v;

    for (uint32_t d = 1; d < 32; d *= 2) {
        uint32_t below = __shfl_up_sync(ALL_LANES, sum, d);

        sum += lane >= d ? below : 0;
    }
    return sum - v;
}

__global__ void __launch_bounds__(THREADS) make_faces(job j)
{
    __shared__ listing l;
    uint32_t lane = threadIdx.x % 32;

    if (!list_words(j, l))
        return;
    for (uint32_t i = threadIdx.x / 32; i < l.n; i += WARPS) {
        uint64_t base = j.totals[j.all_blocks + blockIdx.x] - j.totals[j.all_blocks] + (l.before[i] >> 16);
        uint32_t n = 0;
        int entry = 0, code;
        place p;

        place_in_plane(j, blockIdx.x, l.whose[i], &p);
        code = column_of(j, p, 0, 0).here >> lane & 1 ? code_of(cells_of(j, p), lane) : 0;
        if (code && code != 255) {
            spot at = { p.x, p.y, 32 * p.w + lane };

            entry = entry_of(j, at, code);
            n = (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]);
        }
        uint32_t *to = j.index + 3 * (base + sum_before(n, lane));
        const uint8_t *edges = &mc_triangle[3 * mc_offset[entry]];

        for (uint32_t t = 0; t < 3 * n; t++)
            to[t] = edges[t] == MC_CENTRE ? j.first[p.at] + rank_of(j.owned[p.at], lane, 3)
                                          : edge_id(j, p.at, lane, edges[t]);
    }
}

/* ---- host ---- */

job job_of(const struct recon_volume *v, const struct recon_value *params)
{
    job j = {};

    j.rule = mc_rule_of(params[MC_ISO].f, params[MC_INSIDE].i == MC_INSIDE_GE, params[MC_MIN_WEIGHT].f,
                        params[MC_PAD].i != 0);
    j.least = (float)j.rule.iso;
    if ((double)j.least < j.rule.iso)
        j.least = nextafterf(j.least, INFINITY);
    j.tsdf = v->tsdf;
    j.weight = j.rule.min_weight >= 0 ? v->weight : nullptr;
    j.rgb = v->rgb;
    j.voxel = v->voxel;
    memcpy(j.dim, v->dim, sizeof(j.dim));
    memcpy(j.origin, v->origin, sizeof(j.origin));
    for (int a = 0; a < 3; a++)
        j.n[a] = v->dim[a] + 2 * (uint32_t)j.rule.pad;
    j.words = (j.n[2] + 31) / 32;
    return j;
}

/* Blocks and planes; refuses what one launch does not cover. */
int measure(struct recon_ctx *ctx, job &j)
{
    uint64_t plane = (uint64_t)j.n[1] * j.words, blocks = (plane + THREADS - 1) / THREADS;

    j.all_blocks = blocks * j.n[0];
    if (plane > 0x7fffffff || 2 * j.all_blocks > 0x7fffffff)
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%u x %u x %u samples are more than one launch covers",
                               j.n[0], j.n[1], j.n[2]);
    j.plane = (uint32_t)plane;
    j.blocks = (uint32_t)blocks;
    return 0;
}

/* Exclusive sums of the blocks' totals in place. */
int scan(struct recon_ctx *ctx, Scratch &scratch, job &j)
{
    uint64_t n = 2 * j.all_blocks + 1;
    size_t size = 0;
    char *room;

    if (cuda_ok(ctx, cub::DeviceScan::ExclusiveSum(nullptr, size, j.totals, j.totals, n, cuda_stream(ctx)), "scan") ||
        !(room = scratch.take<char>(size ? size : 1)))
        return -1;
    return cuda_ok(ctx, cub::DeviceScan::ExclusiveSum(room, size, j.totals, j.totals, n, cuda_stream(ctx)), "scan");
}

/* Sides, cells and counts; totals[3]: vertices, faces, samples that are not a number. */
int survey(struct recon_ctx *ctx, Scratch &scratch, job &j, uint64_t totals[3])
{
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t all = (uint64_t)j.plane * j.n[0], *told = (uint64_t *)cuda_pinned(ctx, 3 * sizeof(uint64_t));
    uint32_t blocks = (j.plane + SIDES / 32 * RUN - 1) / (SIDES / 32 * RUN);
    unsigned long long *nans;

    if (!told || !(j.inside = scratch.take<uint32_t>(all)) || (j.weight && !(j.seen = scratch.take<uint32_t>(all))) ||
        !(j.owned = scratch.take<uint4>(all)) || !(j.count = scratch.take<uint32_t>(all)) ||
        !(j.first = scratch.take<uint32_t>(all)) || !(j.totals = scratch.take<uint64_t>(2 * j.all_blocks + 1)) ||
        !(nans = scratch.take<unsigned long long>(1)) ||
        cuda_ok(ctx, cudaMemsetAsync(nans, 0, 8, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(j.totals + 2 * j.all_blocks, 0, 8, queue), "cudaMemset"))
        return -1;
    make_sides<<<blocks * j.n[0], SIDES, 0, queue>>>(j, blocks, nans);
    classify<<<(unsigned)j.all_blocks, THREADS, 0, queue>>>(j);
    if (cuda_launched(ctx, "marching cubes, counting") || scan(ctx, scratch, j))
        return -1;
    tell<<<1, 1, 0, queue>>>(j, nans, told);
    if (cuda_launched(ctx, "marching cubes, counting") ||
        cuda_ok(ctx, cudaStreamSynchronize(queue), "marching cubes, counting"))
        return -1;
    memcpy(totals, told, 3 * sizeof(*told));
    return 0;
}

/* The reason why there is no surface, told from a copy on the host. */
int refuse_empty(struct recon_ctx *ctx, const struct recon_volume *v, const struct mc_rule *rule)
{
    uint64_t bytes = (uint64_t)v->dim[0] * v->dim[1] * v->dim[2] * 4;
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

int take_mesh(struct recon_ctx *ctx, const struct recon_volume *v, job &j, const uint64_t totals[3], struct recon_mesh *m)
{
    m->place = RECON_DEVICE;
    m->vertices = totals[0];
    m->faces = totals[1];
    if (!m->faces)
        return refuse_empty(ctx, v, &j.rule);
    if (m->vertices > UINT32_MAX)
        return ctx->host->fail(ctx, 65, "volume-too-big", "mesh", "%llu vertices are more than 32-bit indices hold",
                               (unsigned long long)m->vertices);
    if (!(j.xyz = m->xyz = (float *)cuda_alloc(ctx, m->vertices * 12)) ||
        !(j.index = m->index = (uint32_t *)cuda_alloc(ctx, m->faces * 12)))
        return -1;
    if (v->rgb && !(j.out_rgb = m->rgb = (uint8_t *)cuda_alloc(ctx, m->vertices * 3)))
        return -1;
    return 0;
}

/* A byte a sample in whole words, and the blocks' totals. */
uint64_t scratch_bytes(const struct recon_volume *v, bool pad)
{
    uint64_t more = pad ? 2 : 0, words = (v->dim[2] + more + 31) / 32, plane = (v->dim[1] + more) * words;

    return (v->dim[0] + more) * (plane * WORD_BYTES + (plane + THREADS - 1) / THREADS * 16) + (1 << 20);
}

void to_device(const struct recon_volume *v, const struct recon_value *params, struct recon_cost *cost)
{
    cost->device_bytes = cost->host_bytes + scratch_bytes(v, params[MC_PAD].i != 0);
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
    job j = job_of(v, params);
    uint64_t totals[3] = { 0, 0, 0 };
    Scratch scratch(ctx);

    if (measure(ctx, j) || survey(ctx, scratch, j, totals) || take_mesh(ctx, v, j, totals, m))
        return -1;
    if (totals[2])
        ctx->host->log(ctx, RECON_WARN, nullptr, "volume", "%llu samples are not a number and count as outside",
                       (unsigned long long)totals[2]);
    j.weight = v->weight; /* colours are mixed by it, whatever is observed */
    make_points<<<(unsigned)j.all_blocks, THREADS, 0, cuda_stream(ctx)>>>(j);
    make_faces<<<(unsigned)j.all_blocks, THREADS, 0, cuda_stream(ctx)>>>(j);
    if (cuda_launched(ctx, "marching cubes"))
        return -1;
    mc_cost(v, m, 0, cost);
    to_device(v, params, cost);
    return 0;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_marching_cubes(ctx, &cuda_marching_cubes, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_marching_cubes = { RECON_KERNEL_ABI, MC_NAME, MC_DOC, mc_in,    mc_out,
                                                  mc_params,        bound,   run,    selftest, mc_shape };
