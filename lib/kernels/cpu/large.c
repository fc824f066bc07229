#include "config.h"
#include "kernels/cpu/cpu.h"

#include <sys/mman.h>

void *cpu_take_large(struct recon_ctx *ctx, uint64_t bytes)
{
    const uintptr_t page = 4096;
    void *p = ctx->host->alloc(ctx, bytes);

    if (p && bytes >= 4u << 20)
        (void)madvise((void *)(((uintptr_t)p + page - 1) & ~(page - 1)), bytes - page, MADV_HUGEPAGE);
    return p;
}
