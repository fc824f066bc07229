/* The fake runtime: see fake_cuda.h. */
#include "fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

uint3 fake_thread, fake_block;
dim3 fake_dim, fake_grid;
int fake_votes[1024];
unsigned fake_lanes[1024];

/* ---- device memory: one mapping, closed to the host ---- */

static const size_t ARENA = (size_t)8 << 30;
static char *arena;
static size_t used;
static int opened;
static std::map<void *, size_t> size_of;        /* blocks in use */
static std::multimap<size_t, void *> given_back; /* of exactly that size */

fake_device::fake_device()
{
    if (opened++ == 0 && used)
        mprotect(arena, used, PROT_READ | PROT_WRITE);
}

fake_device::~fake_device()
{
    if (--opened == 0 && used)
        mprotect(arena, used, PROT_NONE);
}

static void *take(size_t n)
{
    fake_device device;
    std::multimap<size_t, void *>::iterator old;
    void *p;

    n = (n + 4095) / 4096 * 4096; /* what is protected is whole pages */
    if (!arena && (arena = (char *)mmap(nullptr, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED)
        return arena = nullptr;
    old = given_back.find(n);
    if (old != given_back.end()) {
        p = old->second;
        given_back.erase(old);
    } else {
        if (used + n > ARENA)
            return nullptr;
        p = arena + used;
        used += n;
        mprotect(p, n, PROT_READ | PROT_WRITE);
    }
    memset(p, 0xA5, n); /* nobody may count on zeros */
    size_of[p] = n;
    return p;
}

/* ---- threads that take turns ---- */

enum { THREADS = 1024, STACK = 65536 };
static ucontext_t home, thread[THREADS];
static char *stacks;
static bool done[THREADS];
static unsigned current;
static const std::function<void()> *called;

/* Those who wait for each other: a block, or one of its warps. Threads that have ended are not waited for. */
struct meeting {
    unsigned live, arrived, round;
};
static meeting block_meeting, warp_meeting[THREADS / 32];

static void open_if_full(meeting &m)
{
    if (m.arrived < m.live)
        return;
    m.arrived = 0;
    m.round++;
}

static void wait_at(meeting &m)
{
    unsigned round = m.round;

    m.arrived++;
    open_if_full(m);
    while (m.round == round)
        swapcontext(&thread[current], &home);
}

static void leave(meeting &m)
{
    m.live--;
    if (m.arrived)
        open_if_full(m);
}

static void body()
{
    (*called)();
    done[current] = true;
    leave(block_meeting);
    leave(warp_meeting[current / 32]);
}

void fake_barrier()
{
    wait_at(block_meeting);
}

void fake_warp_barrier()
{
    wait_at(warp_meeting[current / 32]);
}

void fake_turn()
{
    swapcontext(&thread[current], &home);
}

static void run_block(unsigned n)
{
    bool any = true;

    block_meeting = meeting{ n, 0, 0 };
    for (unsigned w = 0; 32 * w < n; w++)
        warp_meeting[w] = meeting{ n - 32 * w < 32 ? n - 32 * w : 32, 0, 0 };
    for (unsigned t = 0; t < n; t++) {
        done[t] = false;
        getcontext(&thread[t]);
        thread[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
        thread[t].uc_stack.ss_size = STACK;
        thread[t].uc_link = &home;
        makecontext(&thread[t], body, 0);
    }
    while (any) {
        any = false;
        for (unsigned t = 0; t < n; t++) {
            if (done[t])
                continue;
            current = t;
            fake_thread = uint3{ t, 0, 0 };
            swapcontext(&home, &thread[t]);
            any = any || !done[t];
        }
    }
}

void fake_run(dim3 grid, dim3 block, const std::function<void()> &call)
{
    fake_device device;

    if (!stacks)
        stacks = (char *)malloc((size_t)THREADS * STACK);
    called = &call;
    fake_dim = block;
    fake_grid = grid;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            fake_block = uint3{ x, y, 0 };
            run_block(block.x);
        }
}

/* ---- the runtime on host memory ---- */

static double now()
{
    timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

extern "C" {
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "an error of the fake"; }
const char *cudaGetErrorName(cudaError_t) { return "fake"; }
cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *n) { *n = 13000; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *n) { *n = 13000; return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t *f, size_t *t) { *f = *t = (size_t)4 << 30; return cudaSuccess; }
cudaError_t cudaMalloc(void **p, size_t n)
{
    *p = take(n);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *p)
{
    std::map<void *, size_t>::iterator block = size_of.find(p);

    if (block != size_of.end()) {
        given_back.insert({ block->second, p });
        size_of.erase(block);
    }
    return cudaSuccess;
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaFreeAsync(void *p, cudaStream_t) { return cudaFree(p); }
cudaError_t cudaMallocHost(void **p, size_t n) { *p = malloc(n); return *p ? cudaSuccess : cudaErrorMemoryAllocation; }
cudaError_t cudaFreeHost(void *p) { free(p); return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind, cudaStream_t)
{
    fake_device device;

    memcpy(to, from, n);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t) { fake_device device; memset(p, v, n); return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { *s = (cudaStream_t)malloc(1); return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { free(s); return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *e) { *e = (cudaEvent_t)calloc(1, sizeof(double)); return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { return cudaEventCreate(e); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { free(e); return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) { *(double *)e = now(); return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    *ms = (float)(*(double *)b - *(double *)a);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr, int) { *v = 1; return cudaSuccess; }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *, int) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *v)
{
    *(uint64_t *)v = 0;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int) { memset(p, 0, sizeof(*p)); return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *) { return cudaSuccess; }
}
