/* scene.render_rgbd and render.preview: one thread a pixel, the pixel itself is kernels/render.h's. */
#include <cstdlib>
#include <cstring>
#include "blocks.cuh"
#include "kernels/render.h"

namespace {

enum { TILE = 16 };

/* ---- scene.render_rgbd: a block a tile, with the list of the shapes that its cone of rays can meet ---- */

__device__ struct vec3 direction(const struct scene_view &v, float u, float w)
{
    float x = (u - v.cx) / v.fx, y = (w - v.cy) / v.fy;

    return v3_unit(v3(v.r[0] * x + v.r[1] * y + v.r[2], v.r[3] * x + v.r[4] * y + v.r[5], v.r[6] * x + v.r[7] * y + v.r[8]));
}

/* The cone around a tile: as tile_list() of cpu/scene_render.c, so that rays take the same steps. */
struct cone {
    struct vec3 eye, axis;
    float cosine, sine;
};

__device__ cone cone_of(const struct scene_view &v, uint32_t u, uint32_t w)
{
    float reach = 4 + TILE / 2.0f;
    cone c;

    c.eye = v3(v.t[0], v.t[1], v.t[2]);
    c.axis = direction(v, (float)u + TILE / 2.0f, (float)w + TILE / 2.0f);
    c.cosine = 1;
    for (int i = 0; i < 4; i++)
        c.cosine = fminf(c.cosine, v3_dot(c.axis, direction(v, (float)u + TILE / 2.0f + (i & 1 ? reach : -reach),
                                                            (float)w + TILE / 2.0f + (i & 2 ? reach : -reach))));
    c.sine = sqrtf(fmaxf(1 - c.cosine * c.cosine, 0));
    return c;
}

/* As scene_cull(), for one shape. */
__device__ bool meets(const cone &c, const struct scene_prim &p)
{
    struct vec3 d = v3_sub(v3(p.at[0], p.at[1], p.at[2]), c.eye);
    float along = v3_dot(d, c.axis), d2 = v3_dot(d, d), across = sqrtf(fmaxf(d2 - along * along, 0));

    if (p.reach <= 0)
        return true;
    return (d2 <= p.reach * p.reach || across * c.cosine - along * c.sine <= p.reach * 1.001f) && along > -p.reach;
}

__global__ void __launch_bounds__(TILE * TILE) render_tiles(const struct scene *from, struct scene_view v, uint16_t *mm,
                                                            uint8_t *rgb)
{
    __shared__ struct scene s;
    __shared__ uint16_t list[SCENE_PRIMS];
    __shared__ uint8_t met[SCENE_PRIMS];
    __shared__ int n;
    uint32_t u = blockIdx.x * TILE + threadIdx.x % TILE, w = blockIdx.y * TILE + threadIdx.x / TILE;

    for (unsigned i = threadIdx.x; i < sizeof(s) / 4; i += TILE * TILE)
        ((uint32_t *)&s)[i] = ((const uint32_t *)from)[i];
    __syncthreads();
    if ((int)threadIdx.x < s.n)
        met[threadIdx.x] = meets(cone_of(v, blockIdx.x * TILE, blockIdx.y * TILE), s.prim[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        n = 0;
        for (int i = 0; i < s.n; i++)
            if (met[i])
                list[n++] = (uint16_t)i;
    }
    __syncthreads();
    if (u < v.width && w < v.height) {
        uint64_t at = (uint64_t)w * v.width + u;

        mm[at] = (uint16_t)scene_pixel(&s, list, n, &v, u, w, rgb + 3 * at);
    }
}
static_assert(SCENE_PRIMS <= TILE * TILE && sizeof(struct scene) % 4 == 0, "a block looks at all shapes at once");

/* As scene_depth(): a pixel's depth in metres with the losses at edges. */
__global__ void __launch_bounds__(TILE * TILE) sense(struct scene_view v, const uint16_t *mm, float *depth)
{
    uint32_t x = blockIdx.x * TILE + threadIdx.x % TILE, y = blockIdx.y * TILE + threadIdx.x / TILE, w = v.width,
             at = y * w + x, d;

    if (x >= w || y >= v.height)
        return;
    d = mm[at];
    uint32_t around[4] = { x ? mm[at - 1] : 0u, x + 1 < w ? mm[at + 1] : 0u, y ? mm[at - w] : 0u,
                           y + 1 < v.height ? mm[at + w] : 0u };

    depth[at] = d && !(v.noise > 0 && scene_edge_lost(&v, at, d, around)) ? (float)(d * 0.001) : 0;
}

/* Frames are rendered one ahead of use on a queue of their own, into two buffers that take turns. */
struct renderer {
    struct recon_ctx *ctx;
    cudaStream_t queue;
    cudaEvent_t done[2];
    struct scene *scene;
    uint16_t *d_mm;
    float *d_depth[2], *depth[2];
    uint8_t *d_rgb[2], *rgb[2];
    int64_t frame[2]; /* that the buffer holds or will hold, -1: none */
    uint64_t pixels;
};

void end_renderer(void *self)
{
    renderer *r = (renderer *)self;

    if (r->queue) {
        cudaStreamSynchronize(r->queue);
        cudaStreamDestroy(r->queue);
    }
    for (int i = 0; i < 2; i++) {
        if (r->done[i])
            cudaEventDestroy(r->done[i]);
        if (r->depth[i])
            cudaFreeHost(r->depth[i]);
        if (r->rgb[i])
            cudaFreeHost(r->rgb[i]);
        cuda_free(r->ctx, r->d_depth[i]);
        cuda_free(r->ctx, r->d_rgb[i]);
    }
    cuda_free(r->ctx, r->d_mm);
    cuda_free(r->ctx, r->scene);
    cudaGetLastError();
    free(r);
}

int start_renderer(renderer *r, const struct scene *s)
{
    struct recon_ctx *ctx = r->ctx;

    if (cuda_ok(ctx, cudaStreamCreateWithFlags(&r->queue, cudaStreamNonBlocking), "cudaStreamCreate") ||
        !(r->scene = (struct scene *)cuda_alloc(ctx, sizeof(*s))) ||
        !(r->d_mm = (uint16_t *)cuda_alloc(ctx, r->pixels * 2)))
        return -1;
    for (int i = 0; i < 2; i++) {
        r->frame[i] = -1;
        if (cuda_ok(ctx, cudaEventCreateWithFlags(&r->done[i], cudaEventDisableTiming), "cudaEventCreate") ||
            cuda_ok(ctx, cudaMallocHost((void **)&r->depth[i], r->pixels * 4), "cudaMallocHost") ||
            cuda_ok(ctx, cudaMallocHost((void **)&r->rgb[i], r->pixels * 3), "cudaMallocHost") ||
            !(r->d_depth[i] = (float *)cuda_alloc(ctx, r->pixels * 4)) ||
            !(r->d_rgb[i] = (uint8_t *)cuda_alloc(ctx, r->pixels * 3)))
            return -1;
    }
    /* the memory was taken in order of the main queue */
    return cuda_ok(ctx, cudaMemcpyAsync(r->scene, s, sizeof(*s), cudaMemcpyHostToDevice, cuda_stream(ctx)), "upload") ||
                   cuda_ok(ctx, cudaStreamSynchronize(cuda_stream(ctx)), "upload")
               ? -1 : 0;
}

int launch(renderer *r, const struct scene_view &v, int b)
{
    dim3 grid((v.width + TILE - 1) / TILE, (v.height + TILE - 1) / TILE);
    struct recon_ctx *ctx = r->ctx;

    render_tiles<<<grid, TILE * TILE, 0, r->queue>>>(r->scene, v, r->d_mm, r->d_rgb[b]);
    sense<<<grid, TILE * TILE, 0, r->queue>>>(v, r->d_mm, r->d_depth[b]);
    r->frame[b] = -1;
    if (cuda_launched(ctx, "rendering") ||
        cuda_ok(ctx, cudaMemcpyAsync(r->depth[b], r->d_depth[b], r->pixels * 4, cudaMemcpyDeviceToHost, r->queue), "download") ||
        cuda_ok(ctx, cudaMemcpyAsync(r->rgb[b], r->d_rgb[b], r->pixels * 3, cudaMemcpyDeviceToHost, r->queue), "download") ||
        cuda_ok(ctx, cudaEventRecord(r->done[b], r->queue), "cudaEventRecord"))
        return -1;
    r->frame[b] = v.frame;
    return 0;
}

int render(void *self, const struct scene_plan *p, const struct scene *s, const struct scene_view *v, float *depth,
           uint8_t *rgb)
{
    renderer *r = (renderer *)self;
    int b = (int)(v->frame & 1);

    if (!r->queue) {
        r->pixels = (uint64_t)v->width * v->height;
        if (start_renderer(r, s))
            return -1;
    }
    if (r->frame[b] != (int64_t)v->frame && launch(r, *v, b))
        return -1;
    if (v->frame + 1 < p->frames && r->frame[!b] != (int64_t)v->frame + 1) {
        struct scene_view ahead;
        double pose[16];

        scene_view_of(p, s, v->frame + 1, pose, &ahead);
        if (launch(r, ahead, !b))
            return -1;
    }
    if (cuda_ok(r->ctx, cudaEventSynchronize(r->done[b]), "rendering"))
        return -1;
    memcpy(depth, r->depth[b], r->pixels * 4);
    memcpy(rgb, r->rgb[b], r->pixels * 3);
    return 0;
}

int scene_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, struct recon_cost *cost)
{
    struct scene_plan p;
    uint64_t pixels;

    (void)ctx;
    (void)in;
    scene_plan(params, &p);
    pixels = (uint64_t)p.camera.width * p.camera.height;
    cost->host_bytes = pixels * (7 + 14);
    cost->device_bytes = pixels * 16 + sizeof(struct scene);
    cost->items = p.frames;
    return 0;
}

int scene_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out,
              struct recon_cost *cost)
{
    renderer *r = (renderer *)calloc(1, sizeof(*r));
    struct scene_render how = { render, end_renderer, r };

    if (!r)
        return ctx->host->fail(ctx, 71, nullptr, nullptr, "no host memory left");
    r->ctx = ctx;
    if (scene_source(ctx, params, &how, (struct recon_frames *)out[0]))
        return -1;
    return scene_bound(ctx, in, params, cost);
}

int scene_selftest(struct recon_ctx *ctx)
{
    return golden_scene(ctx, &cuda_scene);
}

/* ---- render.preview ---- */

enum { SIDE = 16, ROUND = 256 };

struct samples {
    const float *tsdf, *weight;
    uint32_t dim[3], blocks[3]; /* blocks of 8 samples: march.h */
    uint64_t n;
    const uint32_t *block; /* of a volume in blocks: their places, three numbers each; side samples along each axis */
    uint32_t side;
};

/* Row, the same number for all samples of one x and y, and coordinates of a sample; false: beyond the volume's end. */
__device__ bool sample_at(const samples &v, uint64_t at, uint32_t p[3], uint32_t *row)
{
    if (v.side) {
        const uint32_t *b = v.block + 3 * (at / v.side / v.side / v.side);

        p[0] = v.side * b[0] + (uint32_t)(at / v.side / v.side % v.side);
        p[1] = v.side * b[1] + (uint32_t)(at / v.side % v.side);
        p[2] = v.side * b[2] + (uint32_t)(at % v.side);
        *row = p[0] * v.dim[1] + p[1];
        return p[0] < v.dim[0] && p[1] < v.dim[1] && p[2] < v.dim[2];
    }
    uint64_t r = at / v.dim[2];

    p[0] = (uint32_t)(r / v.dim[1]);
    p[1] = (uint32_t)(r - (uint64_t)p[0] * v.dim[1]);
    p[2] = (uint32_t)(at - r * v.dim[2]);
    *row = (uint32_t)r;
    return true;
}

/* One thread a sample: its block is marked when a surface may be there; near one, it counts along each axis. The lanes of
 * a warp mostly stand in one row: there they count together along x and y. */
__global__ void __launch_bounds__(ROUND) find_surface(samples v, uint8_t *mark, unsigned long long *counts)
{
    uint64_t at = (uint64_t)blockIdx.x * ROUND + threadIdx.x;
    uint32_t p[3] = { 0, 0, 0 }, row = ~0u, votes, strangers, x, y, z;
    bool is = at < v.n && sample_at(v, at, p, &row) && (!v.weight || v.weight[at] > 0), near = false;

    x = p[0];
    y = p[1];
    z = p[2];

    if (is) {
        float d = v.tsdf[at];

        if (d < 1)
            mark[((uint64_t)(x / 8) * v.blocks[1] + y / 8) * v.blocks[2] + z / 8] = 1;
        near = d < 0.5f && d > -0.5f;
    }
    votes = __ballot_sync(0xffffffffu, near);
    strangers = __ballot_sync(0xffffffffu, row != __shfl_sync(0xffffffffu, row, 0));
    if (strangers && near) {
        atomicAdd(&counts[x], 1ull);
        atomicAdd(&counts[v.dim[0] + y], 1ull);
    } else if (!strangers && votes && threadIdx.x % 32 == 0) {
        atomicAdd(&counts[x], (unsigned long long)__popc(votes));
        atomicAdd(&counts[v.dim[0] + y], (unsigned long long)__popc(votes));
    }
    if (near)
        atomicAdd(&counts[v.dim[0] + v.dim[1] + z], 1ull);
}

/* A block also answers for the first samples of the next along each axis. */
__global__ void __launch_bounds__(ROUND) spread(samples v, const uint8_t *mark, uint8_t *block)
{
    uint64_t at = (uint64_t)blockIdx.x * ROUND + threadIdx.x, slab = (uint64_t)v.blocks[1] * v.blocks[2];
    uint32_t x = (uint32_t)(at / slab), y = (uint32_t)(at % slab / v.blocks[2]), z = (uint32_t)(at % v.blocks[2]);
    uint8_t any = 0;

    if (x >= v.blocks[0])
        return;
    for (int i = 0; i < 8; i++)
        if (x + (i & 1) < v.blocks[0] && y + (i >> 1 & 1) < v.blocks[1] && z + (i >> 2) < v.blocks[2])
            any |= mark[at + (i & 1 ? slab : 0) + (i & 2 ? v.blocks[2] : 0) + (i >> 2)];
    block[at] = any;
}

/* For volumes in blocks or dense ones alone: f says so where the compiler sees it. */
template <bool BLOCKS>
__global__ void __launch_bounds__(SIDE * SIDE) preview_pixels(const __grid_constant__ struct march_field from,
                                                              const uint8_t *rgb, const __grid_constant__ struct view w,
                                                              int samples, uint8_t *pixels)
{
    uint32_t x = blockIdx.x * SIDE + threadIdx.x % SIDE, y = blockIdx.y * SIDE + threadIdx.x / SIDE;
    struct march_field f = from;

    f.scene = nullptr;
    f.grid = BLOCKS ? f.grid : nullptr;
    if (x < w.width && y < w.height)
        preview_pixel(&f, rgb, &w, x, y, samples, pixels + 3 * ((size_t)y * w.width + x));
}

int preview_bound_here(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params,
                       struct recon_cost *cost)
{
    const struct recon_volume *v = in ? (const struct recon_volume *)in[0] : nullptr;
    struct blocks grid;

    if (preview_bound(ctx, in, params, cost))
        return -1;
    cost->device_bytes = (uint64_t)params[PREVIEW_WIDTH].i * (uint64_t)params[PREVIEW_HEIGHT].i * 3;
    if (!v)
        return 0;
    cost->device_bytes += ((uint64_t)v->dim[0] + v->dim[1] + v->dim[2]) * 8 +
                          2 * (uint64_t)march_blocks(v->dim[0]) * march_blocks(v->dim[1]) * march_blocks(v->dim[2]);
    if (v->side) {
        blocks_plan(v->dim, v->side, &grid);
        cost->device_bytes += cuda_blocks_bytes(&grid) + sizeof(grid);
    }
    return 0;
}

/* The blocks to march through (on the device), and the box to frame. */
int survey(struct recon_ctx *ctx, const struct recon_volume *v, Scratch &scratch, const uint8_t **ret_block, double box[6])
{
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t axes = (uint64_t)v->dim[0] + v->dim[1] + v->dim[2], all = 1;
    samples s = { v->tsdf, v->weight, { v->dim[0], v->dim[1], v->dim[2] }, { 0, 0, 0 }, recon_volume_samples(v), v->block, v->side };
    uint64_t *counts = (uint64_t *)ctx->host->alloc(ctx, axes * 8);
    unsigned long long *d_counts;
    uint8_t *mark, *block;
    int rc = -1;

    for (int a = 0; a < 3; a++) {
        s.blocks[a] = march_blocks(v->dim[a]);
        all *= s.blocks[a];
    }
    if (!counts || !(d_counts = scratch.take<unsigned long long>(axes)) || !(mark = scratch.take<uint8_t>(all)) ||
        !(block = scratch.take<uint8_t>(all)) ||
        cuda_ok(ctx, cudaMemsetAsync(d_counts, 0, axes * 8, queue), "cudaMemset") ||
        cuda_ok(ctx, cudaMemsetAsync(mark, 0, all, queue), "cudaMemset"))
        goto out;
    if (s.n)
        find_surface<<<blocks_of(s.n, ROUND), ROUND, 0, queue>>>(s, mark, d_counts);
    spread<<<blocks_of(all, ROUND), ROUND, 0, queue>>>(s, mark, block);
    if (cuda_launched(ctx, "preview, looking for surfaces") ||
        cuda_ok(ctx, cudaMemcpyAsync(counts, d_counts, axes * 8, cudaMemcpyDeviceToHost, queue), "download") ||
        cuda_ok(ctx, cudaStreamSynchronize(queue), "preview, looking for surfaces"))
        goto out;
    preview_box(v, counts, box);
    *ret_block = block;
    rc = 0;
out:
    ctx->host->free(ctx, counts);
    return rc;
}

/* The grid of a volume in blocks where the ray-marcher finds it; NULL: the volume is dense. */
int take_grid(struct recon_ctx *ctx, const struct recon_volume *v, Scratch &scratch, const struct blocks **ret)
{
    struct blocks grid, *to;

    *ret = nullptr;
    if (!v->side)
        return 0;
    if (cuda_blocks_of_volume(ctx, scratch, v, &grid) || !(to = scratch.take<struct blocks>(1)) ||
        cuda_device.upload(ctx, to, &grid, sizeof(grid)))
        return -1;
    *ret = to;
    return 0;
}

/* The picture to the host and into its file. */
int preview_save(struct recon_ctx *ctx, const struct recon_value *params, const uint8_t *d_pixels, uint64_t bytes)
{
    uint8_t *pixels = (uint8_t *)ctx->host->alloc(ctx, bytes);
    int rc = pixels ? cuda_device.download(ctx, pixels, d_pixels, bytes) : -1;

    if (rc == 0)
        rc = preview_write(ctx, params, pixels);
    ctx->host->free(ctx, pixels);
    return rc;
}

/* Device time of the work; the rest of a preview is its PNG, which the host makes. */
struct stopwatch {
    cudaEvent_t event[2];
    stopwatch() : event() {}
    ~stopwatch()
    {
        for (cudaEvent_t e : event)
            if (e)
                cudaEventDestroy(e);
    }
    int mark(struct recon_ctx *ctx, int i)
    {
        return cuda_ok(ctx, cudaEventCreate(&event[i]), "cudaEventCreate") ||
                       cuda_ok(ctx, cudaEventRecord(event[i], cuda_stream(ctx)), "cudaEventRecord")
                   ? -1 : 0;
    }
    int elapsed(struct recon_ctx *ctx, double *ret)
    {
        float ms = 0;

        if (cuda_ok(ctx, cudaEventSynchronize(event[1]), "preview") ||
            cuda_ok(ctx, cudaEventElapsedTime(&ms, event[0], event[1]), "cudaEventElapsedTime"))
            return -1;
        *ret = ms;
        return 0;
    }
};

int preview_run(struct recon_ctx *ctx, const void *const *in, const struct recon_value *params, void *const *out,
                struct recon_cost *cost)
{
    const struct recon_volume *v = (const struct recon_volume *)in[0];
    struct recon_image *image = (struct recon_image *)out[0];
    struct march_field f = march_volume(v);
    Scratch scratch(ctx);
    struct view w;
    uint8_t *pixels;
    uint64_t bytes;
    double box[6], device_ms = 0;
    stopwatch watch;
    int rc;

    if (watch.mark(ctx, 0) || take_grid(ctx, v, scratch, &f.grid) || survey(ctx, v, scratch, &f.block, box))
        return -1;
    preview_view_box(v, params, box, &w);
    dim3 grid((w.width + SIDE - 1) / SIDE, (w.height + SIDE - 1) / SIDE);
    bytes = (uint64_t)w.width * w.height * 3;
    if (!(pixels = (uint8_t *)cuda_alloc(ctx, bytes)))
        return -1;
    auto *draw = f.grid ? preview_pixels<true> : preview_pixels<false>;
    draw<<<grid, SIDE * SIDE, 0, cuda_stream(ctx)>>>(f, v->rgb, w, (int)params[PREVIEW_SAMPLES].i, pixels);
    rc = cuda_launched(ctx, "preview") || watch.mark(ctx, 1) || watch.elapsed(ctx, &device_ms) ? -1 : 0;
    if (rc == 0)
        rc = preview_save(ctx, params, pixels, bytes);
    preview_bound_here(ctx, in, params, cost);
    cost->copied_bytes = bytes;
    cost->device_ms = device_ms;
    if (rc == 0 && image) {
        memset(image, 0, sizeof(*image));
        image->width = w.width;
        image->height = w.height;
        image->channels = 3;
        image->place = RECON_DEVICE;
        image->pixels = pixels;
    } else {
        cuda_free(ctx, pixels);
    }
    return rc;
}

int preview_selftest(struct recon_ctx *ctx)
{
    return golden_preview(ctx, &cuda_preview, &cuda_device);
}

} // namespace

const struct recon_kernel cuda_scene = { RECON_KERNEL_ABI, SCENE_NAME,  SCENE_DOC, scene_in,       scene_out,
                                         scene_params,     scene_bound, scene_run, scene_selftest, nullptr };
const struct recon_kernel cuda_preview = { RECON_KERNEL_ABI,   PREVIEW_NAME, PREVIEW_DOC,      preview_in,   preview_out,
                                           preview_params,     preview_bound_here, preview_run, preview_selftest,
                                           preview_shape };
