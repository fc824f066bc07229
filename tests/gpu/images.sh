#!/bin/sh
# What recon-check says of GPU code against what the driver does with it: one small program built in many ways, judged
# and run on a machine with a GPU.
#   tests/gpu/images.sh BUILD OUT        nvcc of the toolkit in PATH or /usr/local/cuda/bin
# Prints a row for each build and ends with "N passed, N failed": a row passes when the verdict was right.
[ $# = 2 ] || { echo "usage: $0 BUILD OUT" >&2; exit 64; }
build=$(cd "$1" && pwd) || exit 64
mkdir -p "$2" || exit 73
out=$(cd "$2" && pwd)
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo 'no nvcc here' >&2; exit 69; }
passed=0 failed=0

cat >"$out/one.cu" <<'C'
#include <cstdio>
#include <cuda_runtime.h>
#ifdef OTHER
__device__ int other(int x);
#else
__device__ int other(int x) { return x + 1; }
#endif
__global__ void kernel(int *p) { *p = other(41); }
int main()
{
    int *p = nullptr, v = 0;
    cudaError_t e = cudaMalloc(&p, sizeof(int));
    if (!e) { kernel<<<1, 1>>>(p); e = cudaGetLastError(); }
    if (!e) e = cudaMemcpy(&v, p, sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d %s", (int)e, e ? cudaGetErrorName(e) : v == 42 ? "ran" : "wrong result");
    return e || v != 42;
}
C
echo '__device__ int other(int x) { return x + 1; }' >"$out/two.cu"

# row 'name' 'flags' [rdc] [NAME=VALUE of the environment]
row() {
    name=$1 flags=$2 rdc=$3 env=$4
    if [ -n "$rdc" ]; then nvcc $flags -rdc=true -DOTHER -o "$out/p" "$out/one.cu" "$out/two.cu" >"$out/log" 2>&1
    else nvcc $flags -o "$out/p" "$out/one.cu" >"$out/log" 2>&1; fi || { echo "not built  $name: $(head -n 1 "$out/log")"; return; }
    env ${env:-A=b} "$build/bin/recon-check" "$out/p" >"$out/check" 2>&1; verdict=$?
    rules=$(sed -n 's/^\(error\|warn[a-z]*\): \([a-z-]*\): .*/\2/p' "$out/check" | sort -u | tr '\n' ' ')
    did=$(env ${env:-A=b} CUDA_CACHE_DISABLE=1 "$out/p" 2>&1); ran=$?
    if [ -n "$env" ] && [ $verdict = 0 ] && [ $ran != 0 ] && grep -q '^warn' "$out/check"; then word=warned # a program may do without
    elif { [ $verdict = 0 ] && [ $ran = 0 ]; } || { [ $verdict != 0 ] && [ $ran != 0 ]; }; then word=right passed=$((passed + 1))
    else word=WRONG failed=$((failed + 1)); fi
    printf '%-6s %-34s recon-check %-3s %-26s driver: %s\n' "$word" "$name" "$verdict" "$rules" "$did"
}
echo "device: $(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader | head -n 1), $(nvcc --version | tail -n 2 | head -n 1)"
row 'sm_80'                            '-gencode arch=compute_80,code=sm_80'
row 'compute_80 (PTX)'                 '-gencode arch=compute_80,code=compute_80'
row 'sm_80 and compute_80'             '-gencode arch=compute_80,code=[sm_80,compute_80]'
row 'sm_90'                            '-gencode arch=compute_90,code=sm_90'
row 'sm_90a'                           '-gencode arch=compute_90a,code=sm_90a'
row 'compute_90a (PTX)'                '-gencode arch=compute_90a,code=compute_90a'
row 'sm_100'                           '-gencode arch=compute_100,code=sm_100'
row 'compute_100 (PTX)'                '-gencode arch=compute_100,code=compute_100'
row 'sm_75, sm_80, sm_120'             '-gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_120,code=sm_120'
row '-rdc sm_80'                       '-gencode arch=compute_80,code=sm_80' rdc
row '-rdc compute_80'                  '-gencode arch=compute_80,code=compute_80' rdc
row '-rdc sm_80 and compute_80'        '-gencode arch=compute_80,code=[sm_80,compute_80]' rdc
row '-rdc sm_90'                       '-gencode arch=compute_90,code=sm_90' rdc
row 'compute_80, JIT disabled'         '-gencode arch=compute_80,code=compute_80' '' CUDA_DISABLE_PTX_JIT=1
row 'sm_90, forced JIT'                '-gencode arch=compute_90,code=sm_90' '' CUDA_FORCE_PTX_JIT=1
row 'static cudart, sm_90'             '-cudart static -gencode arch=compute_90,code=sm_90'
row 'shared cudart, sm_90'             '-cudart shared -gencode arch=compute_90,code=sm_90'
row 'no device visible'                '-gencode arch=compute_90,code=sm_90' '' CUDA_VISIBLE_DEVICES=
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
