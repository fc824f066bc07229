#!/bin/sh
# Failures of libraries and GPU code that are known from the field, each through the real programs: what is found, with both
# values, the hint and the remedy, and what the loader itself makes of the same input.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/finds.sh"
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES CONDA_PREFIX VIRTUAL_ENV
unset CUDA_FORCE_PTX_JIT CUDA_FORCE_JIT CUDA_DISABLE_PTX_JIT CUDA_DISABLE_JIT
cd "$T" || exit 99
say() { has "$T/out" "$1" "${2:-$1}"; }
# loader TEXT PROGRAM [VAR=VALUE]...: with all bound at the start, ld.so says it
loader() {
    text=$1 prog=$2; shift 2
    env LD_BIND_NOW=1 "$@" "$prog" >ld.out 2>&1 </dev/null
    has ld.out "$text" "ld.so: $text"
}

# SASS of an older major version alone, for several GPUs; the launcher stops before the program runs
fatbin f.s '2 80'
program app "#include <stdio.h>
int main(void){puts(\"ran\");return 0;}" f.s
for g in 8.0 8.6 8.9; do tap 0 "sm_80 on $g" recon-check --assume gpu=$g --assume driver.cuda=13.0 ./app; lacks out 'error:' 'is fine'; done
for g in 7.5 9.0 10.0; do
    tap 75 "sm_80 on $g" recon-check --assume gpu=$g --assume driver.cuda=13.0 ./app
    found arch-no-image
    say "'app' has no code for a GPU of compute capability $g; it holds sm_80" 'images and GPU'
    say "add -gencode arch=compute_${g%.*}${g#*.},code=sm_${g%.*}${g#*.}" 'what to add'
    say 'as it is it runs on compute capability 8.0 (A100, A30), 8.6' 'and where it runs'
done
tap 0 'a pin' recon-pin capture -o app.pin ./app
cat >node <<'C'
driver = { kernel_module = "580.65.06"; library = "580.65.06"; cuda = "13.0"; source = "nvml"; };
gpus = ( { vendor = "nvidia"; compute_capability = "9.0"; } );
C
recon-check --assume node --save-facts node.facts >out 2>&1
tap 75 'judged by saved facts with the pin' recon-check --facts node.facts --pin app.pin
say 'arch-no-image' 'is found again'
lacks out 'ran' 'nothing was run'

# PTX of a toolkit that is newer than any driver
fatbin p.s '1 50 99 0'
program jit 'int main(void){return 0;}' p.s
for g in 8.0 12.0; do
    tap 75 "PTX of ISA 99.0 on $g" recon-check --assume gpu=$g --assume driver.cuda=13.0 ./jit
    found ptx-newer-than-driver
    say 'its ISA 99.0 is newer than ISA 9.0' 'both versions'
done
tap 75 'a variable does not matter where nothing fits' env CUDA_DISABLE_PTX_JIT=1 recon-check --assume gpu=9.0 --assume driver.cuda=13.0 ./jit
found ptx-newer-than-driver
fatbin q.s '1 80 8 0'
program jit80 'int main(void){return 0;}' q.s
tap 78 'by a variable: no SASS' env CUDA_DISABLE_PTX_JIT=1 recon-check --assume gpu=9.0 --assume driver.cuda=13.0 ./jit80
say 'unset CUDA_DISABLE_PTX_JIT' 'the variable is to blame'
tap 78 'by a variable: no PTX' env CUDA_FORCE_PTX_JIT=1 recon-check --assume gpu=8.0 --assume driver.cuda=13.0 ./app
say 'CUDA_FORCE_PTX_JIT makes the driver pass over SASS' 'the variable is to blame'
tap 0 'no device is visible' env CUDA_VISIBLE_DEVICES= recon-check --assume gpu=9.0 --assume driver.cuda=13.0 ./app
found device-not-visible

# a driver below the runtime, and the counterpart that minor-version compatibility saves
lib cuda/libcudart.so.10.2 libcudart.so.10.2 'int f(void){return 0;}'
program rt10 'int f(void);int main(void){return f();}' cuda/libcudart.so.10.2
tap 75 'CUDA 10.2 on a driver of 10.1' env LD_LIBRARY_PATH="$T/cuda" recon-check --assume gpu=8.0 --assume driver.cuda=10.1 ./rt10
found driver-too-old
say 'driver (CUDA 10.1) is older than 440.33, which CUDA 10.2' 'both'
say 'below CUDA 11 there is no minor-version compatibility'
lib cuda/libcudart.so.12 libcudart.so.12 'int f(void){return 0;}'
fatbin t.s '2 90;1 90 8 7'
program rt12 'int f(void);int main(void){return f();}' cuda/libcudart.so.12 t.s
tap 0 'CUDA 12.8 on a driver of 12.2' env LD_LIBRARY_PATH="$T/cuda" recon-check -v --assume gpu=9.0 --assume driver.cuda=12.2 ./rt12
say 'note: driver-too-old' 'is a note'; say '[minor-version]' 'with its reason'

# an old libstdc++ first
printf 'GLIBCXX_3.4.21 { global: recon_old; local: *; };\nGLIBCXX_3.4.30 { global: recon_new; } GLIBCXX_3.4.21;\n' >new.map
printf 'GLIBCXX_3.4.21 { global: recon_old; local: *; };\n' >old.map
for d in old new; do
    lib $d/libstdc++.so.6 libstdc++.so.6 'void recon_new(void){} void recon_old(void){}' -nostdlib "-Wl,--version-script,$d.map"
done
program cxx 'void recon_new(void);int main(void){recon_new();return 0;}' new/libstdc++.so.6
tap 75 'an old libstdc++ first' env LD_LIBRARY_PATH="$T/old:$T/new" recon-check ./cxx
found symver-missing
say "needs GLIBCXX_3.4.30, and '$T/old/libstdc++.so.6' ends at GLIBCXX_3.4.21" 'wanted and had'
say "'$T/new/libstdc++.so.6' has what is needed" 'who has it'
say "remedy: export LD_LIBRARY_PATH='$T/new'" 'the line to paste'
loader "version \`GLIBCXX_3.4.30' not found" ./cxx LD_LIBRARY_PATH="$T/old:$T/new"
(eval "$(sed -n 's/^ *remedy: //p' out)"; ./cxx) && ok 'pasted, the program runs' || not_ok 'pasted, the program runs'

# two releases of one family: the version is there, the symbol under it is not
printf 'libcublasLt.so.11 { global: *; };\n' >lt.map
lib blas/old/libcublasLt.so.11 libcublasLt.so.11 'int ltMatmul(void){return 1;}' -Wl,--version-script,lt.map
lib blas/new/libcublasLt.so.11 libcublasLt.so.11 'int ltMatmul(void){return 1;} int ltStatus(void){return 42;}' -Wl,--version-script,lt.map
lib blas/new/libcublas.so.11 libcublas.so.11 'int ltStatus(void);int ltMatmul(void);int f(void){return ltStatus()+0*ltMatmul();}' \
    blas/new/libcublasLt.so.11
program blas/app 'int f(void);int main(void){return f()-42;}' blas/new/libcublas.so.11 -Wl,-rpath-link,blas/new
tap 78 'a symbol of a version that is there is not there' env LD_LIBRARY_PATH="$T/blas/old:$T/blas/new" recon-check blas/app
found symbol-missing family-mixed
say "needs function 'ltStatus' of version libcublasLt.so.11" 'symbol and version'
say "'$T/blas/old/libcublasLt.so.11', which the loader takes by ld_library_path, has not the symbol of that version" 'who has it not'
say "'$T/blas/new/libcublasLt.so.11' has it" 'and who has'
loader 'undefined symbol: ltStatus, version libcublasLt.so.11' blas/app LD_LIBRARY_PATH="$T/blas/old:$T/blas/new"
(LD_LIBRARY_PATH=$T/blas/old:$T/blas/new; eval "$(sed -n 's/^ *remedy: \(export .*\)/\1/p' out)"; LD_BIND_NOW=1 blas/app) &&
    ok 'pasted, the program runs' || not_ok 'pasted, the program runs' "$(cat out)"

# a run path into a build folder
lib lib/libtsdf.so.2 libtsdf.so.2 'int f(void){return 42;}'
program bin/app 'int f(void);int main(void){return f()-42;}' lib/libtsdf.so.2 -Wl,-rpath,/builds/ci-4711/out/lib
tap 78 'a run path into a build folder' recon-check bin/app
found lib-not-found
say '[runpath-dead]' 'hint'; say "leads to '/builds/ci-4711/out/lib', which does not exist here" 'the dead entry'
say "$T/lib/libtsdf.so.2" 'the sibling has it'
loader 'libtsdf.so.2: cannot open shared object file' bin/app
(eval "$(sed -n 's/^ *remedy: //p' out)"; bin/app) && ok 'pasted, the program runs' || not_ok 'pasted, the program runs'

# a symlink that a zip turned into text: the loader goes no further, nor does recon-check
lib text/libuv3d.so.28.6.3 libuv3d.so.28 'int f(void){return 42;}'
lib later/libuv3d.so.28 libuv3d.so.28 'int f(void){return 42;}'
program uv 'int f(void);int main(void){return f()-42;}' later/libuv3d.so.28
printf 'libuv3d.so.28.6.3' >text/libuv3d.so.28
tap 75 'text where a library should be' env LD_LIBRARY_PATH="$T/text:$T/later" recon-check ./uv
found lib-corrupt
say '17 bytes of text' 'what it is'
say "ln -sf 'libuv3d.so.28.6.3' '$T/text/libuv3d.so.28'" 'the link to make'
loader 'file too short' ./uv LD_LIBRARY_PATH="$T/text:$T/later"
(eval "$(sed -n 's/^ *remedy: //p' out)"; LD_LIBRARY_PATH=$T/text ./uv) && ok 'pasted, the program runs' || not_ok 'pasted, the program runs'

# a 32-bit library alone, lib64 beside it
lib c/lib/libgs.so.1 libgs.so.1 'int f(void){return 42;}'; lib c/lib64/libgs.so.1 libgs.so.1 'int f(void){return 42;}'
printf '\001' | dd of=c/lib/libgs.so.1 bs=1 seek=4 conv=notrunc 2>/dev/null
program gs 'int f(void);int main(void){return f()-42;}' c/lib64/libgs.so.1
tap 78 'a 32-bit library alone' env LD_LIBRARY_PATH="$T/c/lib" recon-check ./gs
found lib-wrong-class
say "a fit one is $T/c/lib64/libgs.so.1" 'the 64-bit one'

# LD_PRELOAD left over: told once, the program runs, its status passes
program ten 'int main(void){return 10;}'
tap 0 'a pin with LD_PRELOAD' env LD_PRELOAD=/opt/site/xalt/lib64/libxalt_init.so recon-pin capture -o ten.pin --env LD_PRELOAD ./ten
tap 10 'the launcher starts the program' recon-launch --pin ten.pin -- ./ten
if [ "$(cat out err | grep -c 'warn: preload-missing: /opt/site/xalt/lib64/libxalt_init.so')" = 1 ]; then ok 'preload-missing, once'
else not_ok 'preload-missing, once' "$(cat out err)"; fi
finish
