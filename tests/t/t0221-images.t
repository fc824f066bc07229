#!/bin/sh
# GPU images of files that nvcc makes: kinds, suffixes, link stubs, relocatable code, without section headers.
. "${abs_top_srcdir:?}/tests/lib.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
[ -x "$NVCC" ] || skip_all 'wants nvcc'

cd "$T" || exit 99
cat >k.cu <<'C'
__global__ void k(float *x) { x[threadIdx.x] *= 2; }
int main() { k<<<1, 1>>>(0); return 0; }
C
archs=$($NVCC --list-gpu-code | tr '\n' ' ')
case $archs in *sm_90*sm_100*) ;; *) skip_all "nvcc knows only $archs" ;; esac
g() { echo "-gencode arch=compute_$1,code=$2"; }
# shellcheck disable=SC2046
tap 0 'nvcc' "$NVCC" -cudart shared $(g 80 sm_80) $(g 90 sm_90) $(g 90a sm_90a) $(g 100f sm_100f) $(g 120 compute_120) k.cu -o plain
images() { "$dump" -i "$1" | tail -n +2 | sed 's/ [0-9.]*\( \|$\)/\1/' | sort; }
want='0 sm_100f stub
0 sm_80 stub
0 sm_90 stub
0 sm_90a stub
1 compute_120
1 sm_100f
1 sm_80
1 sm_90
1 sm_90a'
images plain >got
if [ "$(cat got)" = "$want" ]; then ok 'images of a program'; else not_ok 'images of a program' "$(cat got)"; fi
version=$($NVCC --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
"$dump" -i plain >got
has got "toolkit $version" 'the toolkit that made it'

# no section headers: e_shoff, e_shnum and e_shstrndx are 0
cp plain bare
head -c 8 /dev/zero | dd of=bare bs=1 seek=40 conv=notrunc 2>/dev/null
head -c 4 /dev/zero | dd of=bare bs=1 seek=60 conv=notrunc 2>/dev/null
images bare >got
if [ "$(cat got)" = "$want" ]; then ok 'the same without section headers'; else not_ok 'without section headers' "$(cat got)"; fi

# compressed, for speed and for size
for mode in speed size; do
    # shellcheck disable=SC2046
    if "$NVCC" --compress-mode=$mode -cudart shared $(g 90 sm_90) $(g 90 compute_90) k.cu -o packed 2>/dev/null; then
        images packed >got
        has got '1 compute_90' "PTX compressed for $mode"
    else
        skip "nvcc has no --compress-mode=$mode"
    fi
done

# -rdc: the linked container, and what the driver links from
# shellcheck disable=SC2046
tap 0 'nvcc -rdc' "$NVCC" -rdc=true -cudart shared $(g 90 sm_90) $(g 80 compute_80) k.cu -o rdc
images rdc >got
has got '0 sm_90' 'the linked code'
has got '1 compute_80 relocatable' 'relocatable PTX'
lacks got 'stub' 'no stub'
ldlib=$(dirname "$(dirname "$(readlink -f "$NVCC")")")/lib64
tap 0 'recon-pin' env LD_LIBRARY_PATH="$ldlib" recon-pin capture -o rdc.pin ./rdc
has rdc.pin '{ containers = 1; sass = [ "sm_90" ]; ptx = [ "compute_80" ]; ' 'the pin has both as one set'
has rdc.pin "cuda_runtime = \"${version%%.*}." 'and the runtime'
tap 0 'recon-pin' env LD_LIBRARY_PATH="$ldlib" recon-pin capture -o plain.pin ./plain
has plain.pin '{ containers = 1; sass = [ "sm_80", "sm_90", "sm_90a", "sm_100f" ]; ptx = [ "compute_120" ]; ptx_isa = "' 'stubs are left out, names in order'

"$NVCC" -cubin -arch=sm_90 k.cu -o k.cubin
images k.cubin >got
has got 'sm_90' 'a bare cubin'
"$NVCC" -fatbin -arch=sm_90 k.cu -o k.fatbin
images k.fatbin >got
has got '0 sm_90' 'a bare fat binary'
"$NVCC" -c -arch=sm_90 k.cu -o k.o
images k.o >got
has got 'sm_90' 'an object file'
finish
