/* Stands for the kernels that are to be built for every GPU type. */
#include <stdio.h>

__global__ void twice(float *x) { x[threadIdx.x] *= 2; }

int main()
{
    float *x;

    if (cudaMalloc(&x, 32 * sizeof(float)) != cudaSuccess)
        return 1;
    twice<<<1, 32>>>(x);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return cudaGetLastError() != cudaSuccess;
}
