/* kernels/hd.h - functions that run on the host and on a device. C11 and CUDA C++. */
#ifndef KERNELS_HD_H
#define KERNELS_HD_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define KERN_HD static __host__ __device__ __forceinline__
#define KERN_DEVICE static __device__ __forceinline__ /* reads __constant__ tables */
#else
#define KERN_HD                                                                                              \
    static inline __attribute__((always_inline)) /* into each clone of the function that calls it */
#define KERN_DEVICE KERN_HD
#endif

#ifdef __cplusplus
#define KERN_BEGIN extern "C" {
#define KERN_END }
#else
#define KERN_BEGIN
#define KERN_END
#endif

/* Functions with a clone per instruction set; every clone gives the same bits (no contraction to fma). Their names must differ,
 * static or not: the resolvers that clang makes are global. */
#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) &&                         \
    !defined(__SANITIZE_THREAD__) && !defined(KERN_NO_CLONES)
#define KERN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERN_CLONES
#endif

struct vec3 {
    float x, y, z;
};

KERN_HD struct vec3 v3(float x, float y, float z)
{
    struct vec3 r;
    r.x = x;
    r.y = y;
    r.z = z;
    return r;
}
KERN_HD struct vec3 v3_add(struct vec3 a, struct vec3 b)
{
    return v3(a.x + b.x, a.y + b.y, a.z + b.z);
}
KERN_HD struct vec3 v3_sub(struct vec3 a, struct vec3 b)
{
    return v3(a.x - b.x, a.y - b.y, a.z - b.z);
}
KERN_HD struct vec3 v3_mul(struct vec3 a, float s)
{
    return v3(a.x * s, a.y * s, a.z * s);
}
KERN_HD float v3_dot(struct vec3 a, struct vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
KERN_HD struct vec3 v3_unit(struct vec3 a)
{
    float n = sqrtf(v3_dot(a, a));
    return n > 0.0f ? v3_mul(a, 1.0f / n) : a;
}
KERN_HD float minf(float a, float b) /* fminf and fmaxf are calls on the host */
{
    return a < b ? a : b;
}
KERN_HD float maxf(float a, float b)
{
    return a > b ? a : b;
}
KERN_HD float clampf(float x, float lo, float hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

#endif
