#include "blocks.cuh"

#include <cub/device/device_scan.cuh>
#include "slots.cuh"

namespace {

enum { THREADS = 256 };

__global__ void __launch_bounds__(THREADS) count_bits(struct blocks b)
{
    uint64_t w = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (w <= b.words)
        b.before[w] = w < b.words ? (uint64_t)blocks_count_bits(b.bits[w]) : 0;
}

/* A thread a word. */
__global__ void __launch_bounds__(THREADS) list(struct blocks b, uint32_t *to)
{
    uint64_t w = (uint64_t)blockIdx.x * THREADS + threadIdx.x, at = 64 * w;

    if (w >= b.words || !b.bits[w])
        return;
    to += 3 * b.before[w];
    for (uint64_t left = b.bits[w]; left; left >>= 1, at++)
        if (left & 1) {
            to[2] = (uint32_t)(at % b.n[2]);
            to[1] = (uint32_t)(at / b.n[2] % b.n[1]);
            to[0] = (uint32_t)(at / b.n[2] / b.n[1]);
            to += 3;
        }
}

__global__ void __launch_bounds__(THREADS) mark_listed(struct blocks b, const uint32_t *block, uint64_t n)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

    if (i < n)
        blocks_mark(b, blocks_cell(&b, block[3 * i], block[3 * i + 1], block[3 * i + 2]));
}

/* Far more than CUB takes to scan n numbers: some 20 bytes for a thousand. */
uint64_t scan_bytes(uint64_t n)
{
    return n / 16 + (64 << 10);
}

} // namespace

uint64_t cuda_blocks_bytes(const struct blocks *b)
{
    return b->words * 16 + 8 + scan_bytes(b->words + 1);
}

int cuda_blocks_take(struct recon_ctx *ctx, Scratch &scratch, const uint32_t dim[3], uint32_t side, struct blocks *ret)
{
    blocks_plan(dim, side, ret);
    if (!(ret->bits = scratch.take<uint64_t>(2 * ret->words + 1)))
        return -1;
    ret->before = ret->bits + ret->words;
    return cuda_ok(ctx, cudaMemsetAsync(ret->bits, 0, ret->words * 8, cuda_stream(ctx)), "cudaMemset");
}

int cuda_blocks_rank(struct recon_ctx *ctx, Scratch &scratch, const struct blocks *b)
{
    cudaStream_t queue = cuda_stream(ctx);
    uint64_t n = b->words + 1;

    count_bits<<<blocks_of(n, THREADS), THREADS, 0, queue>>>(*b);
    if (cuda_launched(ctx, "counting blocks"))
        return -1;
    return cuda_cub(ctx, scratch, "counting blocks", [&](void *room, size_t &size) {
        return cub::DeviceScan::ExclusiveSum(room, size, b->before, b->before, n, queue);
    });
}

int cuda_blocks_count(struct recon_ctx *ctx, const struct blocks *b, uint64_t *ret)
{
    return cuda_read(ctx, ret, b->before + b->words, 1);
}

int cuda_blocks_places(struct recon_ctx *ctx, const struct blocks *b, uint32_t *to)
{
    uint64_t words = b->words;

    list<<<blocks_of(words, THREADS), THREADS, 0, cuda_stream(ctx)>>>(*b, to);
    return cuda_launched(ctx, "listing blocks");
}

int cuda_blocks_list(struct recon_ctx *ctx, const struct blocks *b, uint64_t n, struct recon_volume *v)
{
    v->side = b->side;
    v->blocks = n;
    v->block = (uint32_t *)cuda_alloc(ctx, n * 12);
    return v->block ? cuda_blocks_places(ctx, b, v->block) : -1;
}

int cuda_blocks_of_volume(struct recon_ctx *ctx, Scratch &scratch, const struct recon_volume *v, struct blocks *ret)
{
    uint64_t n = v->blocks;

    if (cuda_blocks_take(ctx, scratch, v->dim, v->side, ret))
        return -1;
    if (n)
        mark_listed<<<blocks_of(n, THREADS), THREADS, 0, cuda_stream(ctx)>>>(*ret, v->block, n);
    return cuda_launched(ctx, "marking blocks") ? -1 : cuda_blocks_rank(ctx, scratch, ret);
}
