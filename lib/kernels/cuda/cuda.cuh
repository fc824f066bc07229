/* kernels/cuda/cuda.cuh - what the CUDA kernels share: every call checked, memory through the context, launch sizes. */
#ifndef KERNELS_CUDA_CUH
#define KERNELS_CUDA_CUH

#include <cuda_runtime.h>
#include "kernels/plan.h"
#include "kernels/rows.h"

extern "C" const struct recon_device cuda_device;
extern const struct recon_kernel cuda_tsdf_fuse, cuda_marching_cubes, cuda_preview, cuda_scene, cuda_mesh_smooth, cuda_mesh_normals,
    cuda_mesh_check, cuda_mesh_subdivide, cuda_mesh_clean, cuda_mesh_fill,
    cuda_mesh_simplify, cuda_check_sign, cuda_points_fps, cuda_points_voxelize, cuda_points_normals;

/* Tells a failed call through the context with a fit code (71 memory, 75 the node, else 70); gives -1. */
int cuda_fail(struct recon_ctx *ctx, cudaError_t e, const char *what);
/* 0, or -1 after cuda_fail. */
static inline int cuda_ok(struct recon_ctx *ctx, cudaError_t e, const char *what)
{
    return e == cudaSuccess ? 0 : cuda_fail(ctx, e, what);
}
/* After a launch: what the launch itself refused. */
static inline int cuda_launched(struct recon_ctx *ctx, const char *what)
{
    return cuda_ok(ctx, cudaGetLastError(), what);
}

void *cuda_alloc(struct recon_ctx *ctx, uint64_t bytes); /* counted, in order of the queue; NULL after fail() */
/* One more slot holds a block of cuda_alloc, which goes when the last has freed it; nobody may write to it. NULL is fine. 0, or -1
 * after fail(). */
int cuda_share(struct recon_ctx *ctx, void *p);
template <typename T> int cuda_share_to(struct recon_ctx *ctx, T **to, T *from)
{
    if (cuda_share(ctx, (void *)from))
        return -1;
    *to = from;
    return 0;
}
void cuda_free(struct recon_ctx *ctx, void *p);          /* NULL is fine */
/* Pinned host memory that the module keeps between calls (pinning 1 MiB costs half a millisecond): one block, grown when
 * more is asked, of one user at a time. NULL after fail(). */
void *cuda_pinned(struct recon_ctx *ctx, uint64_t bytes);
uint64_t cuda_memory_free(struct recon_ctx *ctx);        /* what alloc can still give, what its pool holds included */

static inline cudaStream_t cuda_stream(const struct recon_ctx *ctx)
{
    return (cudaStream_t)ctx->stream;
}
static inline unsigned blocks_of(uint64_t n, unsigned size)
{
    return (unsigned)((n + size - 1) / size);
}

/* Device memory for one call of a kernel: everything taken through it is freed at its end. */
struct Scratch {
    struct recon_ctx *ctx;
    void *held[24];
    int n;
    explicit Scratch(struct recon_ctx *c) : ctx(c), n(0) {}
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch()
    {
        while (n)
            cuda_free(ctx, held[--n]);
    }
    template <typename T> T *take(uint64_t count)
    {
        if (n == (int)(sizeof(held) / sizeof(held[0]))) {
            ctx->host->fail(ctx, 70, nullptr, nullptr, "a kernel takes more pieces of scratch memory than it may");
            return nullptr;
        }
        T *p = (T *)cuda_alloc(ctx, count * sizeof(T));
        if (p)
            held[n++] = p;
        return p;
    }
    void give_back(void *p) /* before the end */
    {
        for (int i = 0; i < n; i++)
            if (held[i] == p) {
                held[i] = held[--n];
                cuda_free(ctx, p);
                return;
            }
    }
};

#endif
