/* The device operations of the CUDA module. One state per device, opened once in a process. */
#include <cstdio>
#include <cstring>
#include "cuda.cuh"

namespace {

enum { DEVICES = 32, MARKS = 16, BLOCKS_HELD = 512 };
const uint64_t STAGE = 8ull << 20;     /* of each of the two pinned buffers that copies go through */
const uint64_t STAGE_LEAST = 64 << 10; /* smaller copies go directly */

struct block {
    void *at;
    uint64_t bytes;
    uint32_t users; /* slots that hold it */
};
struct state {
    bool open, pools;
    cudaStream_t stream;
    cudaEvent_t marks[MARKS], staged[2];
    char *stage[2]; /* pinned, made when first needed */
    block held[BLOCKS_HELD];
    int n_held;
    void *pinned;
    uint64_t pinned_bytes;
    uint64_t now, peak;
};
state states[DEVICES];

state *state_of(const struct recon_ctx *ctx)
{
    return &states[ctx->device];
}

/* Codes: another node may do where the device or driver is at fault; memory; else a defect. */
struct {
    cudaError_t e;
    int code;
    const char *rule;
} const table[] = {
    { cudaErrorMemoryAllocation, 71, nullptr },
    { cudaErrorNoKernelImageForDevice, 75, "arch-no-image" },
    { cudaErrorUnsupportedPtxVersion, 75, "ptx-newer-than-driver" },
    { cudaErrorInsufficientDriver, 75, "driver-too-old" },
    { cudaErrorSystemDriverMismatch, 75, "driver-lib-mismatch" },
    { cudaErrorNoDevice, 75, "device-not-visible" },
    { cudaErrorDevicesUnavailable, 75, "gpu-busy" },
    { cudaErrorECCUncorrectable, 75, "gpu-error-state" },
    { cudaErrorNvlinkUncorrectable, 75, "gpu-error-state" },
    { cudaErrorInitializationError, 75, nullptr },
    { cudaErrorSystemNotReady, 75, nullptr },
    { cudaErrorStubLibrary, 75, "libcuda-stub" },
};

} // namespace

int cuda_fail(struct recon_ctx *ctx, cudaError_t e, const char *what)
{
    char object[16];

    cudaGetLastError(); /* what can be cleared is */
    snprintf(object, sizeof(object), "cuda:%d", ctx->device);
    for (const auto &row : table)
        if (row.e == e)
            return ctx->host->fail(ctx, row.code, row.rule, object, "%s on %s: %s (%s)", what, object,
                                   cudaGetErrorString(e), cudaGetErrorName(e));
    return ctx->host->fail(ctx, 70, nullptr, object, "%s on %s: %s (%s)", what, object, cudaGetErrorString(e),
                           cudaGetErrorName(e));
}

/* ---- memory ---- */

uint64_t cuda_memory_free(struct recon_ctx *ctx)
{
    size_t free_bytes = 0, total = 0;
    uint64_t reserved = 0, used = 0;
    cudaMemPool_t pool;

    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    if (state_of(ctx)->pools && cudaDeviceGetDefaultMemPool(&pool, ctx->device) == cudaSuccess &&
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) == cudaSuccess &&
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess && reserved > used)
        free_bytes += reserved - used;
    cudaGetLastError();
    return free_bytes;
}

void *cuda_alloc(struct recon_ctx *ctx, uint64_t bytes)
{
    state *s = state_of(ctx);
    void *p = nullptr;
    cudaError_t e;

    if (s->n_held == BLOCKS_HELD) {
        ctx->host->fail(ctx, 70, nullptr, nullptr, "more than %d blocks of device memory at once", (int)BLOCKS_HELD);
        return nullptr;
    }
    e = s->pools ? cudaMallocAsync(&p, bytes ? bytes : 1, s->stream) : cudaMalloc(&p, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        ctx->host->fail(ctx, 71, nullptr, nullptr, "cuda:%d has %.1f MiB of memory left, %.1f MiB are wanted",
                        ctx->device, (double)cuda_memory_free(ctx) / 1048576.0, (double)bytes / 1048576.0);
        return nullptr;
    }
    if (cuda_ok(ctx, e, "cudaMalloc"))
        return nullptr;
    s->held[s->n_held++] = { p, bytes, 1 };
    s->now += bytes;
    s->peak = s->now > s->peak ? s->now : s->peak;
    return p;
}

static block *block_at(struct recon_ctx *ctx, void *p)
{
    state *s = state_of(ctx);

    for (int i = s->n_held - 1; i >= 0; i--)
        if (s->held[i].at == p)
            return &s->held[i];
    ctx->host->fail(ctx, 70, nullptr, nullptr, "a kernel names device memory that is not the module's");
    return nullptr;
}

int cuda_share(struct recon_ctx *ctx, void *p)
{
    block *b = p ? block_at(ctx, p) : nullptr;

    if (b)
        b->users++;
    return b || !p ? 0 : -1;
}

void cuda_free(struct recon_ctx *ctx, void *p)
{
    state *s = state_of(ctx);
    block *b = p ? block_at(ctx, p) : nullptr;

    if (!b || --b->users)
        return;
    s->now -= b->bytes;
    *b = s->held[--s->n_held];
    cuda_ok(ctx, s->pools ? cudaFreeAsync(p, s->stream) : cudaFree(p), "cudaFree");
}

void *cuda_pinned(struct recon_ctx *ctx, uint64_t bytes)
{
    state *s = state_of(ctx);

    if (s->pinned_bytes >= bytes)
        return s->pinned;
    if (s->pinned)
        cudaFreeHost(s->pinned);
    s->pinned = nullptr;
    s->pinned_bytes = 0;
    if (cuda_ok(ctx, cudaMallocHost(&s->pinned, bytes), "cudaMallocHost")) {
        s->pinned = nullptr;
        return nullptr;
    }
    s->pinned_bytes = bytes;
    return s->pinned;
}

/* ---- copies ---- */

namespace {

int stage_ready(struct recon_ctx *ctx, state *s)
{
    for (int i = 0; i < 2; i++)
        if (!s->stage[i] && cuda_ok(ctx, cudaMallocHost((void **)&s->stage[i], STAGE), "cudaMallocHost")) {
            s->stage[i] = nullptr;
            return -1;
        }
    return 0;
}

/* Pageable memory goes through two pinned buffers: one is filled or emptied while the other is under way. */
int upload(struct recon_ctx *ctx, void *device, const void *host, uint64_t bytes)
{
    state *s = state_of(ctx);

    if (bytes <= STAGE_LEAST)
        return cuda_ok(ctx, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, s->stream), "upload");
    if (stage_ready(ctx, s))
        return -1;
    for (uint64_t at = 0, i = 0; at < bytes; at += STAGE, i++) {
        uint64_t n = bytes - at < STAGE ? bytes - at : STAGE;
        int b = (int)(i & 1);

        if (cuda_ok(ctx, cudaEventSynchronize(s->staged[b]), "upload"))
            return -1;
        memcpy(s->stage[b], (const char *)host + at, n);
        if (cuda_ok(ctx, cudaMemcpyAsync((char *)device + at, s->stage[b], n, cudaMemcpyHostToDevice, s->stream),
                    "upload") ||
            cuda_ok(ctx, cudaEventRecord(s->staged[b], s->stream), "upload"))
            return -1;
    }
    return 0;
}

int download(struct recon_ctx *ctx, void *host, const void *device, uint64_t bytes)
{
    state *s = state_of(ctx);
    uint64_t chunks = (bytes + STAGE - 1) / STAGE;

    if (bytes <= STAGE_LEAST) {
        if (cuda_ok(ctx, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, s->stream), "download"))
            return -1;
        return cuda_ok(ctx, cudaStreamSynchronize(s->stream), "download");
    }
    if (stage_ready(ctx, s))
        return -1;
    for (uint64_t i = 0; i <= chunks; i++) {
        if (i < chunks) { /* the buffer was emptied two rounds ago */
            uint64_t at = i * STAGE, n = bytes - at < STAGE ? bytes - at : STAGE;
            int b = (int)(i & 1);

            if (cuda_ok(ctx, cudaMemcpyAsync(s->stage[b], (const char *)device + at, n, cudaMemcpyDeviceToHost,
                                             s->stream), "download") ||
                cuda_ok(ctx, cudaEventRecord(s->staged[b], s->stream), "download"))
                return -1;
        }
        if (i > 0) {
            uint64_t at = (i - 1) * STAGE, n = bytes - at < STAGE ? bytes - at : STAGE;
            int b = (int)((i - 1) & 1);

            if (cuda_ok(ctx, cudaEventSynchronize(s->staged[b]), "download"))
                return -1;
            memcpy((char *)host + at, s->stage[b], n);
        }
    }
    return 0;
}

/* ---- life ---- */

int count(char *why, size_t size)
{
    int n = 0, driver = 0, runtime = 0;
    cudaError_t e = cudaGetDeviceCount(&n);

    if (e == cudaSuccess && n > 0)
        return n;
    cudaGetLastError();
    if (e == cudaErrorInsufficientDriver && cudaRuntimeGetVersion(&runtime) == cudaSuccess) {
        if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0)
            snprintf(why, size, "the driver serves CUDA %d.%d, this module needs %d.%d", driver / 1000,
                     driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        else
            snprintf(why, size, "no NVIDIA driver (libcuda.so.1) is loaded here");
    } else {
        snprintf(why, size, "%s", e == cudaSuccess ? "no CUDA device is visible" : cudaGetErrorString(e));
    }
    cudaGetLastError();
    return 0;
}

__global__ void nothing()
{
}

/* So that a device without an image in this module is told at the start and not at the first launch. */
int has_image(struct recon_ctx *ctx)
{
    cudaFuncAttributes a;
    int major = 0, minor = 0;
    cudaError_t e = cudaFuncGetAttributes(&a, nothing);

    if (e == cudaSuccess)
        return 0;
    cudaGetLastError();
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ctx->device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ctx->device);
    if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorInvalidDeviceFunction)
        return ctx->host->fail(ctx, 75, "arch-no-image", "cuda.so",
                               "cuda.so holds no code that compute capability %d.%d runs; build it with NVCC_GENCODE "
                               "for sm_%d%d", major, minor, major, minor);
    return cuda_fail(ctx, e, "looking for device code");
}

void close_device(struct recon_ctx *ctx)
{
    state *s = state_of(ctx);

    if (!s->open)
        return;
    cudaStreamSynchronize(s->stream);
    for (cudaEvent_t e : s->marks)
        if (e)
            cudaEventDestroy(e);
    for (int i = 0; i < 2; i++) {
        if (s->staged[i])
            cudaEventDestroy(s->staged[i]);
        if (s->stage[i])
            cudaFreeHost(s->stage[i]);
    }
    if (s->pinned)
        cudaFreeHost(s->pinned);
    for (int i = 0; i < s->n_held; i++)
        s->pools ? cudaFreeAsync(s->held[i].at, s->stream) : cudaFree(s->held[i].at);
    if (s->stream) {
        cudaStreamSynchronize(s->stream);
        cudaStreamDestroy(s->stream);
    }
    cudaGetLastError();
    *s = state();
    ctx->stream = nullptr;
}

int open_device(struct recon_ctx *ctx, int index)
{
    uint64_t all = UINT64_MAX;
    cudaMemPool_t pool;
    state *s;
    int pools = 0;

    ctx->device = index;
    if (index < 0 || index >= DEVICES)
        return ctx->host->fail(ctx, 64, nullptr, nullptr, "device cuda:%d is beyond the %d that are served", index,
                               (int)DEVICES);
    s = state_of(ctx);
    if (s->open)
        return ctx->host->fail(ctx, 70, nullptr, nullptr, "cuda:%d is open already", index);
    if (cuda_ok(ctx, cudaSetDevice(index), "cudaSetDevice") || has_image(ctx))
        return -1;
    s->open = true;
    if (cuda_ok(ctx, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "cudaStreamCreate"))
        goto fail;
    for (cudaEvent_t &e : s->marks)
        if (cuda_ok(ctx, cudaEventCreate(&e), "cudaEventCreate"))
            goto fail;
    for (cudaEvent_t &e : s->staged)
        if (cuda_ok(ctx, cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate"))
            goto fail;
    if (cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, index) == cudaSuccess && pools &&
        cudaDeviceGetDefaultMemPool(&pool, index) == cudaSuccess &&
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all) == cudaSuccess)
        s->pools = true;
    cudaGetLastError();
    ctx->stream = s->stream;
    return 0;
fail:
    close_device(ctx);
    return -1;
}

int describe(struct recon_ctx *ctx, char *name, size_t size, uint64_t *total, uint64_t *free_bytes)
{
    cudaDeviceProp p;
    size_t f = 0, t = 0;

    if (cuda_ok(ctx, cudaGetDeviceProperties(&p, ctx->device), "cudaGetDeviceProperties") ||
        cuda_ok(ctx, cudaMemGetInfo(&f, &t), "cudaMemGetInfo"))
        return -1;
    snprintf(name, size, "%s", p.name);
    *total = t;
    *free_bytes = f;
    return 0;
}

int sync(struct recon_ctx *ctx)
{
    return cuda_ok(ctx, cudaStreamSynchronize(cuda_stream(ctx)), "waiting for the device");
}

int mark(struct recon_ctx *ctx, int slot)
{
    if (slot < 0 || slot >= MARKS)
        return ctx->host->fail(ctx, 70, nullptr, nullptr, "mark %d is outside 0..%d", slot, MARKS - 1);
    return cuda_ok(ctx, cudaEventRecord(state_of(ctx)->marks[slot], cuda_stream(ctx)), "cudaEventRecord");
}

int elapsed(struct recon_ctx *ctx, int from, int to, double *ms)
{
    state *s = state_of(ctx);
    float f = 0;

    if (cuda_ok(ctx, cudaEventSynchronize(s->marks[to]), "waiting for a mark") ||
        cuda_ok(ctx, cudaEventElapsedTime(&f, s->marks[from], s->marks[to]), "cudaEventElapsedTime"))
        return -1;
    *ms = f;
    return 0;
}

uint64_t peak(struct recon_ctx *ctx, int reset)
{
    state *s = state_of(ctx);
    uint64_t p = s->peak;

    if (reset)
        s->peak = s->now;
    return p;
}

/* fp32 lanes of a multiprocessor: CUDA C++ Programming Guide, arithmetic instructions, results per clock. */
int lanes(int major, int minor)
{
    if (major == 7 || (major == 8 && minor == 0))
        return 64;
    return 128;
}

/* What the data sheet promises: memory clock * bus * 2, and lanes * 2 * clock. A measured copy reaches about nine tenths
 * of the first (H200: 4.29 of 4.9 TB/s). */
void ceilings(struct recon_ctx *ctx, double *bytes_per_s, double *flops_per_s)
{
    int memory = 0, bus = 0, clock = 0, sms = 0, major = 0, minor = 0;

    cudaDeviceGetAttribute(&memory, cudaDevAttrMemoryClockRate, ctx->device);
    cudaDeviceGetAttribute(&bus, cudaDevAttrGlobalMemoryBusWidth, ctx->device);
    cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, ctx->device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, ctx->device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ctx->device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ctx->device);
    cudaGetLastError();
    *bytes_per_s = memory * 1e3 * 2 * bus / 8;
    *flops_per_s = clock * 1e3 * 2 * sms * lanes(major, minor);
}

} // namespace

extern "C" const struct recon_device cuda_device = {
    RECON_KERNEL_ABI, "cuda", count,    open_device, close_device, describe, cuda_alloc, cuda_free,
    upload,           download, sync,   mark,        elapsed,      peak,     ceilings,
};
