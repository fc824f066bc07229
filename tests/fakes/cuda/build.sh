#!/bin/sh
# build.sh SRC BUILD CUDA_ROOT OUT: OUT/cuda.so from the module's .cu files on the fake runtime, which deals out fewer points. CXX: the compiler.
src=$1 build=$2 cuda=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$out/work
mkdir -p "$work" || exit 73
for f in "$src"/lib/kernels/cuda/*.cu; do
    n=$(basename "$f" .cu)
    # a launch is one call of a template; a kernel's address is no object's in standard C++
    { echo '#include "fake_cuda.h"'; tr '\n' '\001' <"$f" | sed -E \
        's/([A-Za-z_]+(<[A-Za-z0-9_]+>)?)<<<([^>]*), ([^,>]*), [^,>]*, ([^;]*)>>>\(([^;]*)\);/fake_launch(\1, \3, \4, \6);/g
         s/extern __shared__ ([a-z0-9_]+) ([a-z]+)\[\];/static \1 \2[1 << 16];/g
         s/cudaFuncGetAttributes\(&a, nothing\)/cudaFuncGetAttributes(\&a, (const void *)nothing)/' | tr '\001' '\n'; } >"$work/$n.cc"
    ${CXX:-c++} -std=c++17 -O1 -ffp-contract=off -fPIC -w -DVOXEL_MANY_POINTS=1000000 -I"$here" -I"$src/lib/kernels/cuda" -I"$src/lib" \
        -I"$src/lib/kernels/include" -I"$build" -I"$cuda/include" -c -o "$work/$n.o" "$work/$n.cc" || exit 1
done
${CXX:-c++} -std=c++17 -O2 -fPIC -w -I"$here" -I"$cuda/include" -c -o "$work/fake_cuda.o" "$here/fake_cuda.cc" || exit 1
${CXX:-c++} -shared -o "$out/cuda.so" "$work"/*.o "$build/lib/kernels/libkernels.a" "$build/lib/data/libdata.a" \
    "$build/lib/base/libbase.a" -lxxhash -lspng -lturbojpeg -lz -lm
