/* A fake of the CUDA runtime and of a device, for tests on machines without a GPU: the module's .cu files are compiled
 * by the host's compiler with this in front, device memory is host memory, and the threads of a block are contexts that
 * take turns at barriers. It shows whether indices, sums and arithmetic are right; nothing about races or speed. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
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
extern dim3 fake_dim;
#define threadIdx fake_thread
#define blockIdx fake_block
#define blockDim fake_dim

void fake_barrier();
void fake_run(dim3 grid, dim3 block, const std::function<void()> &call);
template <typename F, typename... A> void fake_launch(F f, dim3 grid, dim3 block, A... a)
{
    fake_run(grid, block, [=] { f(a...); });
}

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
static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
template <typename T> static inline T atomicAdd(T *p, T v)
{
    T old = *p;

    *p += v;
    return old;
}

#endif
