/* cuda/fuse_tiles.cuh - the device side of the fusion: see fuse.cu. */
#ifndef KERNELS_CUDA_FUSE_TILES_CUH
#define KERNELS_CUDA_FUSE_TILES_CUH

#include <cub/block/block_reduce.cuh>
#include "fuse_feed.cuh"

namespace {

enum { THREADS = 256, RESIDENT = 4, STRIPS = 16 };

/* A tile is one x, ROWS samples along y and ALONG along z: a thread each. WEIGHTED: the frame's weight falls with the distance, and
 * means are cut off, not values, as nvblox has it. SPARSE: the volume is in blocks, of which a tile is one x. */
struct dense {
    enum { ROWS = 8, ALONG = 32, WEIGHTED = 0, SPARSE = 0 };
};
struct dense_weighted {
    enum { ROWS = 8, ALONG = 32, WEIGHTED = 1, SPARSE = 0 };
};
struct sparse {
    enum { ROWS = FUSE_BLOCK, ALONG = FUSE_BLOCK, WEIGHTED = 0, SPARSE = 1 };
};
struct sparse_weighted {
    enum { ROWS = FUSE_BLOCK, ALONG = FUSE_BLOCK, WEIGHTED = 1, SPARSE = 1 };
};

struct volume {
    float *tsdf, *weight;
    uint16_t *color; /* running mean in 1/256, or NULL */
    uint32_t dim[3];
    double origin[3], voxel, truncation, reach;
    float most;            /* of the weight */
    const uint32_t *block; /* of a volume in blocks: their places, three numbers each */
};
struct tile {
    uint32_t id, seen; /* by which frames of the batch, a bit each */
};
/* What a batch works with besides frames and volume. */
struct work {
    tile *list;
    uint32_t *listed, *taken; /* tiles in the list; tiles that blocks have taken */
    uint32_t *farthest;       /* of each frame: bits of a float */
    unsigned long long *updates, *depths;
    uint32_t tiles_y, tiles_z, tiles;
};

/* ---- device ---- */

__global__ void fill_one(float *p, uint64_t n)
{
    uint64_t i = 4 * ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= n)
        *(float4 *)(p + i) = make_float4(1, 1, 1, 1);
    else
        for (; i < n; i++)
            p[i] = 1;
}

/* A block a strip of a frame. Depths are positive, so their bits are ordered as they are. */
__global__ void __launch_bounds__(THREADS) measure(const cuda_frame *frames, uint32_t pixels, work w)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch;
    __shared__ uint32_t most;
    uint32_t f = blockIdx.x / STRIPS, have = 0, sum;
    const float *depth = frames[f].depth;
    float far = 0;

    if (threadIdx.x == 0)
        most = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x % STRIPS * THREADS + threadIdx.x; i < pixels; i += STRIPS * THREADS) {
        float d = depth[i];

        have += d > 0;
        far = d > far ? d : far;
    }
    atomicMax(&most, __float_as_uint(far));
    sum = Reduce(scratch).Sum(have);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax(&w.farthest[f], most);
        atomicAdd(w.depths, (unsigned long long)sum);
    }
}

/* Camera coordinates where a row begins: as row_of() of cpu/tsdf_fuse.c. */
__device__ void row_start(const volume &t, const struct fuse_view &v, uint32_t i, uint32_t j, double start[3])
{
    double d[3] = { t.origin[0] + t.voxel * i - v.t[0], t.origin[1] + t.voxel * j - v.t[1], t.origin[2] - v.t[2] };

    for (int a = 0; a < 3; a++)
        start[a] = v.r[3 * a] * d[0] + v.r[3 * a + 1] * d[1] + v.r[3 * a + 2] * d[2];
}

struct corner {
    uint32_t i, j, k;
};
template <typename F> __device__ corner corner_of(const volume &t, const work &w, uint32_t id)
{
    if (F::SPARSE) {
        const uint32_t *at = t.block + 3 * (uint64_t)(id / FUSE_BLOCK);
        corner c = { FUSE_BLOCK * at[0] + id % FUSE_BLOCK, FUSE_BLOCK * at[1], FUSE_BLOCK * at[2] };

        return c;
    }
    uint32_t slab = id / w.tiles_z, i = slab / w.tiles_y;
    corner c = { i, (slab - i * w.tiles_y) * F::ROWS, (id - slab * w.tiles_z) * F::ALONG };

    return c;
}
/* Place in the arrays of the thread's voxel (i, j, k) of the tile. */
template <typename F> __device__ uint64_t place_of(const volume &t, uint32_t id, uint32_t i, uint32_t j, uint32_t k)
{
    return F::SPARSE ? (uint64_t)id * THREADS + threadIdx.x : ((uint64_t)i * t.dim[1] + j) * t.dim[2] + k;
}

/* Whether a tile can meet what the frame sees. Each plane of the view is
 * linear: its largest value over the tile is that at the first corner and the steps along y and z that raise it. The
 * slack is far above rounding. */
template <typename F> __device__ bool tile_seen(const volume &t, const struct fuse_view &v, double zmax, const corner &c)
{
    double s[3], dy[3], dz[3], left = v.cx + 0.5, right = v.width - 0.5 - v.cx, top = v.cy + 0.5,
           bottom = v.height - 0.5 - v.cy;

    if (F::SPARSE && c.i >= t.dim[0])
        return false;
    row_start(t, v, c.i, c.j, s);
    for (int a = 0; a < 3; a++) {
        s[a] += c.k * (v.r[3 * a + 2] * t.voxel);
        dy[a] = v.r[3 * a + 1] * t.voxel * (F::ROWS - 1);
        dz[a] = v.r[3 * a + 2] * t.voxel * (F::ALONG - 1);
    }
    auto most = [&](double x, double y, double z) {
        return x * s[0] + y * s[1] + z * s[2] + fmax(x * dy[0] + y * dy[1] + z * dy[2], 0.0) +
               fmax(x * dz[0] + y * dz[1] + z * dz[2], 0.0);
    };
    return most(0, 0, 1) >= -1e-3 && zmax + most(0, 0, -1) >= -1e-3 && most(v.fx, 0, left) >= -1e-3 &&
           most(-v.fx, 0, right) >= -1e-3 && most(0, v.fy, top) >= -1e-3 && most(0, -v.fy, bottom) >= -1e-3;
}

template <typename F> __global__ void __launch_bounds__(THREADS) cull(volume t, const cuda_frame *frames, int n, work w)
{
    uint32_t lane = threadIdx.x % 32, id = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, seen;
    bool mine = false;

    if (id >= w.tiles)
        return;
    if ((int)lane < n)
        mine = tile_seen<F>(t, frames[lane].v, fmin((double)__uint_as_float(w.farthest[lane]) + t.truncation, t.reach), corner_of<F>(t, w, id));
    seen = __ballot_sync(0xffffffffu, mine);
    if (lane == 0 && seen) {
        tile listed = { id, seen };

        w.list[atomicAdd(w.listed, 1u)] = listed;
    }
}

/* A frame as the quick way sees it: x and y are multiplied by fx and fy; `margin` is how near to the border between two
 * pixels float may not decide, `safe` the least z at which that holds. With e = 2^-24 and P = width + height + fx + fy +
 * |cx| + |cy|, coordinates within a tile are off by less than e (3 |x| + 62 step), a quotient by 4 e of itself, so a
 * pixel by less than 12 e P + 62 e (width + fx) voxel / z, which for z > 8 voxels is below 16 e P = margin. */
struct quick {
    const float *depth;
    const uint8_t *color;
    float step[3], cx, cy, wide, high, margin;
    int32_t stride;
};
__device__ void quick_of(const volume &t, const cuda_frame &f, quick *q)
{
    const struct fuse_view &v = f.v;

    q->depth = f.depth;
    q->color = f.color;
    q->step[0] = (float)(v.fx * v.r[2] * t.voxel);
    q->step[1] = (float)(v.fy * v.r[5] * t.voxel);
    q->step[2] = (float)(v.r[8] * t.voxel);
    q->cx = (float)(v.cx + 0.5);
    q->cy = (float)(v.cy + 0.5);
    q->wide = (float)v.width;
    q->high = (float)v.height;
    q->margin = (float)(v.width + v.height + v.fx + v.fy + fabs(v.cx) + fabs(v.cy)) * 0x1p-20f;
    q->stride = (int32_t)v.stride;
}
/* Out of the picture by more than the margin. u - wide is exact where it matters (Sterbenz), so that whoever stays and is not in the
 * picture is at most the margin from 0 or wide, and doubtful. */
__device__ bool outside(const quick &q, float u, float w)
{
    return u < -q.margin || w < -q.margin || u - q.wide > q.margin || w - q.high > q.margin;
}
/* At most the margin from the border between two pixels: float cannot tell which it is. */
__device__ bool doubtful(const quick &q, float u, float w)
{
    return fabsf(u - rintf(u)) <= q.margin || fabsf(w - rintf(w)) <= q.margin;
}

/* The pixel that double gives, -1: none. */
__device__ int32_t exact_pixel(const volume &t, const struct fuse_view &v, const double start[3], double at)
{
    double zc = start[2] + at * (v.r[8] * t.voxel), u, w;

    if (!(zc > 0))
        return -1;
    u = v.fx * (start[0] + at * (v.r[2] * t.voxel)) / zc + v.cx;
    w = v.fy * (start[1] + at * (v.r[5] * t.voxel)) / zc + v.cy;
    if (!(u > -0.5 && u < v.width - 0.5 && w > -0.5 && w < v.height - 0.5))
        return -1;
    return (int32_t)(w + 0.5) * (int32_t)v.stride + (int32_t)(u + 0.5);
}

/* a / b correctly rounded, inv = 1 / b correctly rounded (Markstein 1990: a faithful quotient and one more step); a is 0
 * or far from the least float. */
__device__ float divided(float a, float b, float inv)
{
    float q = a * inv;

    q = fmaf(fmaf(-q, b, a), inv, q);
    return fmaf(fmaf(-q, b, a), inv, q);
}

/* One voxel in registers. */
struct held {
    float tsdf, w;
    uint16_t color[3];
};

__device__ void update(const volume &t, const uint8_t *color, int32_t pixel, float s, held &h)
{
    float w1 = h.w + 1;

    h.tsdf = (h.tsdf * h.w + s) / w1;
    if (t.color && color) {
        float inv = __frcp_rn(w1);

        for (int c = 0; c < 3; c++)
            h.color[c] = (uint16_t)(divided(h.color[c] * h.w + color[3 * (size_t)pixel + c] * 256.0f, w1, inv) + 0.5f);
    }
    h.w = w1 < t.most ? w1 : t.most;
}

/* own: the frame's weight */
__device__ void update_weighted(const volume &t, const uint8_t *color, int32_t pixel, float s, float own, held &h)
{
    float w1 = h.w + own, mean = (h.tsdf * h.w + s * own) / w1;

    if (t.color && color)
        for (int c = 0; c < 3; c++)
            h.color[c] = (uint16_t)((h.color[c] * h.w + color[3 * (size_t)pixel + c] * 256.0f * own) / w1 + 0.5f);
    h.tsdf = mean < -1 ? -1 : mean > 1 ? 1 : mean;
    h.w = w1 < t.most ? w1 : t.most;
}

/* What a frame has to say of a voxel. */
struct said {
    int32_t pixel;
    float value, own;
};

/* The distance d - z over the truncation, at most 1; or as it is, with its weight. False: too far in front of the voxel, or the
 * voxel out of reach. */
template <typename F> __device__ bool exact_value(const volume &t, float d, double z, said *ret)
{
    double exact = d - z, part = exact * (1 / t.truncation);

    if (exact < -t.truncation || (F::WEIGHTED && !(z <= t.reach)))
        return false;
    ret->value = !F::WEIGHTED && part > 1 ? 1 : (float)part;
    if (F::WEIGHTED)
        ret->own = (float)(z > FUSE_NEAR ? 1 / (z * z) : 1);
    return true;
}

/* Whether the frame has a depth for the voxel, not too far in front of it: the value to fuse. local: of the voxel in its
 * tile; row: camera coordinates at the tile's row, at: of the voxel along it from `start` on. */
template <typename F>
__device__ bool value_of(const volume &t, const cuda_frame &f, const quick &q, const float row[3], float local,
                         const double start[3], double at, said *ret)
{
    float z = fmaf(local, q.step[2], row[2]), d, s, doubt, trunc = (float)t.truncation, safe = 8 * (float)t.voxel;
    int32_t pixel;

    if (z < -safe)
        return false;
    if (z > safe) {
        float inv = __fdividef(1.0f, z), u = fmaf(fmaf(local, q.step[0], row[0]), inv, q.cx),
              w = fmaf(fmaf(local, q.step[1], row[1]), inv, q.cy);

        if (outside(q, u, w))
            return false;
        pixel = doubtful(q, u, w) ? exact_pixel(t, f.v, start, at) : (int32_t)w * q.stride + (int32_t)u;
    } else {
        pixel = exact_pixel(t, f.v, start, at);
    }
    if (pixel < 0)
        return false;
    d = q.depth[pixel];
    s = d - z;
    doubt = 2e-6f * (fabsf(z) + d + 4 * safe);
    if (!(d > 0) || s < -trunc - doubt)
        return false;
    ret->pixel = pixel;
    ret->value = 1;
    return (!F::WEIGHTED && s > trunc + doubt) || exact_value<F>(t, d, start[2] + at * (f.v.r[8] * t.voxel), ret);
}

template <typename F>
__device__ uint32_t fuse_voxel(const volume &t, const cuda_frame *frames, const quick *quicks, uint32_t seen, uint64_t at,
                               uint32_t k, const double (*start)[F::ROWS][3], const float (*row)[F::ROWS][3])
{
    uint32_t changed = 0, r = threadIdx.x / F::ALONG;
    held h = { 0, 0, { 0, 0, 0 } };

    for (; seen; seen &= seen - 1) {
        int f = __ffs((int)seen) - 1;
        said s;

        if (!value_of<F>(t, frames[f], quicks[f], row[f][r], (float)(threadIdx.x % F::ALONG), start[f][r], k, &s))
            continue;
        if (!changed) {
            h.tsdf = t.tsdf[at];
            h.w = t.weight[at];
            for (int c = 0; c < 3 && t.color; c++)
                h.color[c] = t.color[3 * at + c];
        }
        if (F::WEIGHTED)
            update_weighted(t, quicks[f].color, s.pixel, s.value, s.own, h);
        else
            update(t, quicks[f].color, s.pixel, s.value, h);
        changed++;
    }
    if (changed) {
        t.tsdf[at] = h.tsdf;
        t.weight[at] = h.w;
        for (int c = 0; c < 3 && t.color; c++)
            t.color[3 * at + c] = h.color[c];
    }
    return changed;
}

/* Row r of a tile: where the volume's row begins, in double; the tile's first sample, scaled as the quick way wants it. */
__device__ void begin_row(const volume &t, const struct fuse_view &v, const corner &c, uint32_t r, double start[3], float row[3])
{
    double scale[3] = { v.fx, v.fy, 1 };

    row_start(t, v, c.i, c.j + r, start);
    for (int a = 0; a < 3; a++)
        row[a] = (float)(scale[a] * (start[a] + c.k * (v.r[3 * a + 2] * t.voxel)));
}

template <typename F> __global__ void __launch_bounds__(THREADS, RESIDENT) fuse_tiles(volume t, const cuda_frame *frames, int n, work w)
{
    typedef cub::BlockReduce<uint32_t, THREADS> Reduce;
    __shared__ typename Reduce::TempStorage scratch;
    __shared__ cuda_frame views[BATCH];
    __shared__ quick quicks[BATCH];
    __shared__ double start[BATCH][F::ROWS][3];
    __shared__ float row[BATCH][F::ROWS][3];
    __shared__ uint32_t mine;
    uint32_t changed = 0, sum, listed = *w.listed, r = threadIdx.x % F::ROWS;

    static_assert(F::ALONG * F::ROWS == THREADS && FUSE_BLOCK * FUSE_BLOCK == THREADS && THREADS % F::ROWS == 0, "a thread a voxel of a tile, rows are shared out evenly");
    if ((int)threadIdx.x < n) {
        views[threadIdx.x] = frames[threadIdx.x];
        quick_of(t, views[threadIdx.x], &quicks[threadIdx.x]);
    }
    for (;;) {
        if (threadIdx.x == 0)
            mine = atomicAdd(w.taken, 1u);
        __syncthreads();
        if (mine >= listed)
            break;
        tile now = w.list[mine];
        corner c = corner_of<F>(t, w, now.id);
        uint32_t k = c.k + threadIdx.x % F::ALONG, j = c.j + threadIdx.x / F::ALONG;

        for (uint32_t f = threadIdx.x / F::ROWS; f < BATCH; f += THREADS / F::ROWS)
            if (now.seen >> f & 1)
                begin_row(t, views[f].v, c, r, start[f][r], row[f][r]);
        __syncthreads();
        if (k < t.dim[2] && j < t.dim[1])
            changed += fuse_voxel<F>(t, views, quicks, now.seen, place_of<F>(t, now.id, c.i, j, k), k, start, row);
        __syncthreads();
    }
    sum = Reduce(scratch).Sum(changed);
    if (threadIdx.x == 0 && sum)
        atomicAdd(w.updates, (unsigned long long)sum);
}

__device__ uint8_t whole_color(uint16_t mean)
{
    uint32_t c = ((uint32_t)mean + 128) >> 8;

    return (uint8_t)(c > 255 ? 255 : c);
}
__global__ void finish_color(const uint16_t *color, uint8_t *rgb, uint64_t n)
{
    uint64_t i = 4 * ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x);

    if (i + 4 <= n) {
        ushort4 c = *(const ushort4 *)(color + i);

        *(uchar4 *)(rgb + i) = make_uchar4(whole_color(c.x), whole_color(c.y), whole_color(c.z), whole_color(c.w));
    } else {
        for (; i < n; i++)
            rgb[i] = whole_color(color[i]);
    }
}

} // namespace

#endif
