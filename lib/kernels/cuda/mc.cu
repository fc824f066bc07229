/* Marching cubes in passes over samples, one thread each, blocks of consecutive samples (z fastest):
 *   sides   a byte a sample: inside or not, observed or not
 *   cells   a byte a cell: its case, 0 where a corner is unobserved
 *   count   a byte a sample: which of its three edges (and the centre of its cell) carry a vertex; vertices and faces
 *           of each block, whose exclusive sums are where the block's begin
 *   points  vertices to their places, and the number of each sample's first
 *   faces   triangles, by the numbers of the samples around the cell
 * Order and arithmetic are cpu/marching_cubes.c's: the meshes are the same. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <cstring>
#include "cuda.cuh"
#include "kernels/mc.h"

namespace {

enum { THREADS = 256, OBSERVED = 2 };

struct job {
    const float *tsdf, *weight;
    const uint8_t *rgb;
    uint32_t dim[3];
    double origin[3], voxel;
    struct mc_rule rule;
    uint32_t n[3];          /* samples with padding */
    uint64_t all, down;     /* n[0] * n[1] * n[2]; n[1] * n[2] */
    uint8_t *flags, *code;  /* flags: sides until cells are known */
    uint32_t *first;        /* number of a sample's first vertex */
    uint64_t *vertex, *face; /* by block, then where the block's begin */
    float *xyz;
    uint8_t *out_rgb;
    uint32_t *index;
};

struct place {
    uint32_t x, y, z;
};

__device__ place place_of(const job &j, uint64_t at)
{
    place p;

    p.x = (uint32_t)(at / j.down);
    at -= p.x * j.down;
    p.y = (uint32_t)((uint32_t)at / j.n[2]);
    p.z = (uint32_t)at - p.y * j.n[2];
    return p;
}

__device__ bool source_of(const job &j, int64_t x, int64_t y, int64_t z, uint64_t *at)
{
    x -= j.rule.pad;
    y -= j.rule.pad;
    z -= j.rule.pad;
    if (x < 0 || y < 0 || z < 0 || x >= j.dim[0] || y >= j.dim[1] || z >= j.dim[2])
        return false;
    *at = ((uint64_t)x * j.dim[1] + (uint64_t)y) * j.dim[2] + (uint64_t)z;
    return true;
}

__device__ double value_at(const job &j, int64_t x, int64_t y, int64_t z)
{
    uint64_t at;

    return source_of(j, x, y, z, &at) ? mc_value(&j.rule, j.tsdf[at]) : j.rule.pad_value;
}

/* ---- sides, cells ---- */

__global__ void __launch_bounds__(THREADS) make_sides(job j, unsigned long long *nans)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch;
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x, from;
    uint32_t nan = 0, sum;

    if (at < j.all) {
        place p = place_of(j, at);
        unsigned side = OBSERVED;

        if (source_of(j, p.x, p.y, p.z, &from)) {
            float f = j.tsdf[from];

            side |= j.rule.ge ? f >= j.rule.iso : f < j.rule.iso;
            nan = f != f;
            if (j.weight && j.rule.min_weight >= 0 && !(j.weight[from] > (float)j.rule.min_weight))
                side &= 1;
        }
        j.flags[at] = (uint8_t)side;
    }
    sum = Reduce(scratch).Sum(nan);
    if (threadIdx.x == 0 && sum)
        atomicAdd(nans, (unsigned long long)sum);
}

__global__ void __launch_bounds__(THREADS) make_cells(job j)
{
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned all = OBSERVED, bits = 0;
    place p;

    if (at >= j.all)
        return;
    p = place_of(j, at);
    if (p.x + 1 < j.n[0] && p.y + 1 < j.n[1] && p.z + 1 < j.n[2]) {
        for (int c = 0; c < 8; c++) {
            unsigned s = j.flags[at + (c & 1 ? j.down : 0) + (c & 2 ? j.n[2] : 0) + (c >> 2)];

            all &= s;
            bits |= (s & 1) << c;
        }
        bits = all & OBSERVED ? bits : 0;
    }
    j.code[at] = (uint8_t)bits;
}

/* ---- count ---- */

/* Entry of the table for the cell at p. */
__device__ int entry_of(const job &j, const place &p, int code)
{
    double v[8];

    if (!mc_ambiguous[code])
        return mc_first[code];
    for (int c = 0; c < 8; c++)
        v[c] = value_at(j, (int64_t)p.x + (c & 1), (int64_t)p.y + (c >> 1 & 1), (int64_t)p.z + (c >> 2));
    return mc_entry(code, v);
}

/* Edges of the sample that carry a vertex: a cell whose corners are all observed crosses them. */
__device__ unsigned edges_of(const job &j, uint64_t at, const place &p)
{
    uint64_t nz = j.n[2];
    unsigned a = j.code[at], b = p.y ? j.code[at - nz] : 0, c = p.x ? j.code[at - j.down] : 0;
    unsigned d = p.x && p.y ? j.code[at - j.down - nz] : 0, za = p.z ? j.code[at - 1] : 0;
    unsigned zb = p.z && p.y ? j.code[at - nz - 1] : 0, zc = p.z && p.x ? j.code[at - j.down - 1] : 0;
    unsigned x = (a ^ a >> 1) | (b >> 2 ^ b >> 3) | (za >> 4 ^ za >> 5) | (zb >> 6 ^ zb >> 7);
    unsigned y = (a ^ a >> 2) | (c >> 1 ^ c >> 3) | (za >> 4 ^ za >> 6) | (zc >> 5 ^ zc >> 7);
    unsigned z = (a ^ a >> 4) | (c >> 1 ^ c >> 5) | (b >> 2 ^ b >> 6) | (d >> 3 ^ d >> 7);

    return (x & 1) | (y & 1) << 1 | (z & 1) << 2;
}

__global__ void __launch_bounds__(THREADS) count(job j)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch[2];
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t vertices = 0, faces = 0;

    if (at < j.all) {
        place p = place_of(j, at);
        unsigned flags = edges_of(j, at, p), code = j.code[at];

        if (code && code != 255) {
            int entry = entry_of(j, p, (int)code);

            faces = (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]);
            flags |= mc_centre[entry] ? 8u : 0;
        }
        j.flags[at] = (uint8_t)flags;
        vertices = (uint32_t)__popc(flags);
    }
    vertices = Reduce(scratch[0]).Sum(vertices);
    faces = Reduce(scratch[1]).Sum(faces);
    if (threadIdx.x == 0) {
        j.vertex[blockIdx.x] = vertices;
        j.face[blockIdx.x] = faces;
    }
}

/* ---- points ---- */

struct point {
    double p[3];
    uint8_t rgb[3];
};

__device__ uint64_t nearest_source(const job &j, const int64_t s[3])
{
    uint64_t at = 0;

    for (int a = 0; a < 3; a++) {
        int64_t i = s[a] - j.rule.pad;

        i = i < 0 ? 0 : i >= j.dim[a] ? (int64_t)j.dim[a] - 1 : i;
        at = at * j.dim[a] + (uint64_t)i;
    }
    return at;
}

__device__ void mix(const job &j, const int64_t s[3], int axis, double t, uint8_t rgb[3])
{
    int64_t e[3] = { s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2) };
    uint64_t a = nearest_source(j, s), b = nearest_source(j, e);

    if (j.weight && !(j.weight[a] > 0))
        a = b;
    else if (j.weight && !(j.weight[b] > 0))
        b = a;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)(j.rgb[3 * a + c] * (1 - t) + j.rgb[3 * b + c] * t + 0.5);
}

__device__ point edge_point(const job &j, const int64_t s[3], int axis)
{
    point o = { { (double)s[0], (double)s[1], (double)s[2] }, { 0, 0, 0 } };
    double t = mc_cross(value_at(j, s[0], s[1], s[2]),
                        value_at(j, s[0] + (axis == 0), s[1] + (axis == 1), s[2] + (axis == 2)));

    for (int a = 0; a < 3; a++)
        o.p[a] += a == axis ? t : 0;
    if (j.rgb)
        mix(j, s, axis, t, o.rgb);
    return o;
}

__device__ point centre_point(const job &j, const place &at, int bits)
{
    point o = { { 0, 0, 0 }, { 0, 0, 0 } };
    int n = 0, rgb[3] = { 0, 0, 0 };

    for (int e = 0; e < 12; e++) {
        int corner = mc_edge_corner(e);
        int64_t q[3] = { (int64_t)at.x + (corner & 1), (int64_t)at.y + (corner >> 1 & 1), (int64_t)at.z + (corner >> 2) };

        if (!(bits >> e & 1))
            continue;
        point p = edge_point(j, q, e >> 2);

        n++;
        for (int a = 0; a < 3; a++) {
            o.p[a] += p.p[a];
            rgb[a] += p.rgb[a];
        }
    }
    for (int a = 0; a < 3; a++) {
        o.p[a] /= n;
        o.rgb[a] = (uint8_t)((rgb[a] + n / 2) / n);
    }
    return o;
}

__device__ void put(const job &j, uint64_t at, const point &p)
{
    for (int a = 0; a < 3; a++)
        j.xyz[3 * at + a] = (float)(j.origin[a] + j.voxel * (p.p[a] - j.rule.pad));
    for (int a = 0; a < 3 && j.out_rgb; a++)
        j.out_rgb[3 * at + a] = p.rgb[a];
}

__global__ void __launch_bounds__(THREADS) make_points(job j)
{
    typedef cub::BlockScan<uint32_t, THREADS> Scan;
    __shared__ typename Scan::TempStorage scratch;
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x, to;
    unsigned flags = at < j.all ? j.flags[at] : 0;
    uint32_t before;

    Scan(scratch).ExclusiveSum((uint32_t)__popc(flags), before);
    if (at >= j.all)
        return;
    to = j.vertex[blockIdx.x] + before;
    j.first[at] = (uint32_t)to;
    if (!flags)
        return;
    place p = place_of(j, at);
    int64_t s[3] = { p.x, p.y, p.z };

    for (int axis = 0; axis < 3; axis++)
        if (flags >> axis & 1)
            put(j, to++, edge_point(j, s, axis));
    if (flags & 8)
        put(j, to, centre_point(j, p, mc_centre[entry_of(j, p, j.code[at])]));
}

/* ---- faces ---- */

__device__ uint32_t edge_id(const job &j, uint64_t at, int e)
{
    int corner = mc_edge_corner(e);
    uint64_t q = at + (corner & 1 ? j.down : 0) + (corner & 2 ? j.n[2] : 0) + (corner >> 2);

    return j.first[q] + (uint32_t)__popc(j.flags[q] & ((1u << (e >> 2)) - 1));
}

__global__ void __launch_bounds__(THREADS) make_faces(job j)
{
    typedef cub::BlockScan<uint32_t, THREADS> Scan;
    __shared__ typename Scan::TempStorage scratch;
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    int code = at < j.all ? j.code[at] : 0, entry = 0;
    uint32_t n = 0, before;

    if (code && code != 255) {
        place p = place_of(j, at);

        entry = entry_of(j, p, code);
        n = (uint32_t)(mc_offset[entry + 1] - mc_offset[entry]);
    }
    Scan(scratch).ExclusiveSum(n, before);
    uint32_t *to = j.index + 3 * (j.face[blockIdx.x] + before);
    const uint8_t *edges = &mc_triangle[3 * mc_offset[entry]];

    for (uint32_t t = 0; t < 3 * n; t++) {
        int e = edges[t];

        to[t] = e == MC_CENTRE ? j.first[at] + (uint32_t)__popc(j.flags[at] & 7u) : edge_id(j, at, e);
    }
}

/* ---- host ---- */

enum { PER_SAMPLE = 6 }; /* bytes held beside the volume: flags, code, first */

/* Exclusive sums of a list in place; its last element holds the total after. */
int scan(struct recon_ctx *ctx, Scratch &scratch, uint64_t *list, uint64_t n, void *&room, size_t &size)
{
    if (!room) {
        if (cuda_ok(ctx, cub::DeviceScan::ExclusiveSum(nullptr, size, list, list, n, cuda_stream(ctx)), "scan"))
            return -1;
        room = scratch.take<char>(size ? size : 1);
        if (!room)
            return -1;
    }
    return cuda_ok(ctx, cub::DeviceScan::ExclusiveSum(room, size, list, list, n, cuda_stream(ctx)), "scan");
}

job job_of(const struct recon_volume *v, const struct recon_value *params)
{
    job j = {};

    j.rule = mc_rule_of(params[MC_ISO].f, params[MC_INSIDE].i == MC_INSIDE_GE, params[MC_MIN_WEIGHT].f,
                        params[MC_PAD].i != 0);
    j.tsdf = v->tsdf;
    j.weight = v->weight;
    j.rgb = v->rgb;
    j.voxel = v->voxel;
    memcpy(j.dim, v->dim, sizeof(j.dim));
    memcpy(j.origin, v->origin, sizeof(j.origin));
    for (int a = 0; a < 3; a++)
        j.n[a] = v->dim[a] + 2 * (uint32_t)j.rule.pad;
    j.down = (uint64_t)j.n[1] * j.n[2];
    j.all = j.n[0] * j.down;
    return j;
}

/* Sides, cells and counts; totals[3]: vertices, faces, samples that are not a number. */
int survey(struct recon_ctx *ctx, Scratch &scratch, job &j, unsigned blocks, uint64_t totals[3])
{
    cudaStream_t queue = cuda_stream(ctx);
    unsigned long long *nans;
    void *room = nullptr;
    size_t size = 0;

    if (!(j.flags = scratch.take<uint8_t>(j.all)) || !(j.code = scratch.take<uint8_t>(j.all)) ||
        !(j.vertex = scratch.take<uint64_t>(blocks + 1ull)) || !(j.face = scratch.take<uint64_t>(blocks + 1ull)) ||
        !(nans = scratch.take<unsigned long long>(1)))
        return -1;
    if (cuda_ok(ctx, cudaMemsetAsync(nans, 0, 8, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(j.vertex + blocks, 0, 8, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(j.face + blocks, 0, 8, queue), "cudaMemset"))
        return -1;
    make_sides<<<blocks, THREADS, 0, queue>>>(j, nans);
    make_cells<<<blocks, THREADS, 0, queue>>>(j);
    count<<<blocks, THREADS, 0, queue>>>(j);
    if (cuda_launched(ctx, "marching cubes, counting") || scan(ctx, scratch, j.vertex, blocks + 1ull, room, size) ||
        scan(ctx, scratch, j.face, blocks + 1ull, room, size) ||
        cuda_ok(ctx, cudaMemcpyAsync(&totals[0], j.vertex + blocks, 8, cudaMemcpyDeviceToHost, queue), "download") ||
        cuda_ok(ctx, cudaMemcpyAsync(&totals[1], j.face + blocks, 8, cudaMemcpyDeviceToHost, queue), "download") ||
        cuda_ok(ctx, cudaMemcpyAsync(&totals[2], nans, 8, cudaMemcpyDeviceToHost, queue), "download"))
        return -1;
    return cuda_ok(ctx, cudaStreamSynchronize(queue), "marching cubes, counting");
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

int bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost)
{
    const struct recon_volume *v = in ? (const struct recon_volume *)in[0] : nullptr;

    (void)ctx;
    (void)params;
    if (v) {
        mc_bound(v, PER_SAMPLE, cost);
        cost->device_bytes = cost->host_bytes;
        cost->host_bytes = 0;
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
    unsigned blocks;

    if (j.down > UINT32_MAX || j.all / THREADS >= 0x7fffffff)
        return ctx->host->fail(ctx, 65, "volume-too-big", "volume", "%u x %u x %u samples are more than one launch covers",
                               j.n[0], j.n[1], j.n[2]);
    blocks = blocks_of(j.all, THREADS);
    if (survey(ctx, scratch, j, blocks, totals) || take_mesh(ctx, v, j, totals, m) ||
        !(j.first = scratch.take<uint32_t>(j.all)))
        return -1;
    if (totals[2])
        ctx->host->log(ctx, RECON_WARN, nullptr, "volume", "%llu samples are not a number and count as outside",
                       (unsigned long long)totals[2]);
    make_points<<<blocks, THREADS, 0, cuda_stream(ctx)>>>(j);
    make_faces<<<blocks, THREADS, 0, cuda_stream(ctx)>>>(j);
    if (cuda_launched(ctx, "marching cubes"))
        return -1;
    mc_cost(v, m, PER_SAMPLE, cost);
    cost->device_bytes = cost->host_bytes;
    cost->host_bytes = 0;
    return 0;
}

int selftest(struct recon_ctx *ctx)
{
    return golden_marching_cubes(ctx, &cuda_marching_cubes, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_marching_cubes = { RECON_KERNEL_ABI, MC_NAME, MC_DOC, mc_in,    mc_out,
                                                  mc_params,        bound,   run,    selftest, mc_shape };
