/* A fake of the CUDA runtime and of a device, for tests on machines without a GPU: the module's .cu files are compiled
 * by the host's compiler with this in front, device memory is host memory, and the threads of a block are contexts that
 * take turns at barriers. It shows whether indices, sums and arithmetic are right; nothing about races or speed. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#undef __constant__
#define __global__
#define __device__
#define __constant__
#undef __grid_constant__
#define __grid_constant__
#define __shared__ static
#define __launch_bounds__(...)

extern uint3 fake_thread, fake_block;
extern dim3 fake_dim, fake_grid;
#define threadIdx fake_thread
#define blockIdx fake_block
#define blockDim fake_dim
#define gridDim fake_grid

void fake_barrier();
void fake_warp_barrier();
void fake_turn();
/* Device memory can be touched only while one of these lives: a host that reads through a device's pointer ends. */
struct fake_device {
    fake_device();
    ~fake_device();
};
void fake_run(dim3 grid, dim3 block, const std::function<void()> &call);
/* A grid that runs together: the fake says that the device holds one block. Kernels launched so take a struct
 * and two numbers. */
template <typename J> cudaError_t cudaLaunchCooperativeKernel(void (*f)(J, unsigned, unsigned), dim3 grid, dim3 block, void **a, size_t, cudaStream_t)
{
    fake_run(grid, block, [=] { f(*(J *)a[0], *(unsigned *)a[1], *(unsigned *)a[2]); });
    return cudaSuccess;
}
#define cudaFuncSetAttribute(...) cudaSuccess /* more shared memory than is taken without asking */
#define fake_launch(F, GRID, BLOCK, ...) fake_run(GRID, BLOCK, [=] { F(__VA_ARGS__); })

static inline void __syncthreads()
{
    fake_barrier();
}
extern int fake_votes[1024];
static inline int __syncthreads_or(int v)
{
    int any = 0;

    fake_votes[threadIdx.x] = v;
    fake_barrier();
    for (unsigned i = 0; i < blockDim.x; i++)
        any |= fake_votes[i] != 0;
    fake_barrier();
    return any;
}
static inline int __syncthreads_count(int v)
{
    int n = 0;

    fake_votes[threadIdx.x] = v;
    fake_barrier();
    for (unsigned i = 0; i < blockDim.x; i++)
        n += fake_votes[i] != 0;
    fake_barrier();
    return n;
}
/* Of a whole warp whose lanes come here together. */
extern unsigned fake_lanes[1024];
static inline unsigned __ballot_sync(unsigned, bool v)
{
    unsigned first = threadIdx.x & ~31u, votes = 0;

    fake_lanes[threadIdx.x] = v;
    fake_warp_barrier();
    for (unsigned i = 0; i < 32 && first + i < blockDim.x; i++)
        votes |= fake_lanes[first + i] << i;
    fake_warp_barrier();
    return votes;
}
static inline unsigned __shfl_sync(unsigned, unsigned v, unsigned lane)
{
    unsigned got;

    fake_lanes[threadIdx.x] = v;
    fake_warp_barrier();
    got = fake_lanes[(threadIdx.x & ~31u) + lane];
    fake_warp_barrier();
    return got;
}
static inline unsigned __shfl_up_sync(unsigned mask, unsigned v, unsigned d)
{
    unsigned lane = threadIdx.x & 31u;

    return __shfl_sync(mask, v, lane >= d ? lane - d : lane);
}
static inline unsigned __shfl_xor_sync(unsigned mask, unsigned v, unsigned k)
{
    return __shfl_sync(mask, v, (threadIdx.x & 31u) ^ k);
}
static inline long long __double_as_longlong(double d)
{
    long long v;

    memcpy(&v, &d, 8);
    return v;
}
template <typename T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}
static inline unsigned __float_as_uint(float f)
{
    unsigned u;

    memcpy(&u, &f, 4);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float f;

    memcpy(&f, &u, 4);
    return f;
}
static inline double rsqrt(double v) /* within 1 ulp on a device */
{
    return 1 / sqrt(v);
}
static inline float __frcp_rn(float v)
{
    return 1.0f / v;
}
static inline float __fdividef(float a, float b) /* within 2 ulp on a device */
{
    return a / b * 1.0000001f;
}
template <typename T> static inline T __ldcs(const T *p)
{
    return *p;
}
static inline void __threadfence()
{
}
static inline void __nanosleep(unsigned)
{
    fake_turn();
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
template <typename T> static inline T atomicMax(T *p, T v)
{
    T old = *p;

    *p = v > old ? v : old;
    return old;
}
template <typename T> static inline T atomicMin(T *p, T v)
{
    T old = *p;

    *p = v < old ? v : old;
    return old;
}
static inline unsigned atomicOr(unsigned *p, unsigned v)
{
    unsigned old = *p;

    *p |= v;
    return old;
}
/* Other threads come between what was read and this. */
static inline unsigned atomicCAS(unsigned *p, unsigned was, unsigned v)
{
    unsigned old;

    fake_turn();
    old = *p;
    *p = old == was ? v : old;
    return old;
}
template <typename T> static inline T atomicAdd(T *p, T v)
{
    T old = *p;

    *p += v;
    return old;
}

#endif
